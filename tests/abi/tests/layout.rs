//! The Rust types have the layout that the tables say, in each generation.

use std::collections::BTreeMap;
use std::path::Path;
use std::{env, fs};

use hsakmt_abi_tests::rust::Layouts;
use hsakmt_abi_tests::table::GENERATIONS;
use hsakmt_abi_tests::{abi_json, facts, facts_folder, rust_names};

/// Compares two maps and names each entry that differs.
fn assert_same<V: PartialEq + std::fmt::Debug>(
    what: &str,
    expected: BTreeMap<String, V>,
    found: BTreeMap<String, V>,
) {
    assert!(!expected.is_empty(), "{what}: the table has no row");
    let names = expected.keys().chain(found.keys());
    let mut wrong: Vec<String> = names
        .filter(|name| expected.get(*name) != found.get(*name))
        .map(|name| format!("{name}: {:?}, not {:?}", found.get(name), expected.get(name)))
        .collect();
    wrong.sort();
    wrong.dedup();
    assert!(wrong.is_empty(), "{what}:\n{}", wrong.join("\n"));
}

#[test]
fn records_have_the_size_and_alignment_of_c() {
    let facts = facts();
    for generation in GENERATIONS {
        let expected = facts.records.iter().filter(|row| row.generations.has(generation));
        let expected = expected.map(|row| (row.name.clone(), (row.size, row.align))).collect();
        let found = Layouts::of(generation).records.into_iter();
        let found = found.map(|row| (row.name.to_owned(), (row.size, row.align))).collect();
        assert_same(&format!("generation {generation}"), expected, found);
    }
}

#[test]
fn fields_have_the_offset_and_size_of_c() {
    let facts = facts();
    for generation in GENERATIONS {
        let expected = facts.fields.iter().filter(|row| row.generations.has(generation));
        let expected = expected
            .filter(|row| rust_names::field(&row.record, &row.path).is_some())
            .map(|row| (format!("{}.{}", row.record, row.path), (row.offset, row.size)))
            .collect();
        let found = Layouts::of(generation).fields.into_iter();
        let found = found
            .map(|row| (format!("{}.{}", row.record, row.path), (row.offset, row.size)))
            .collect();
        assert_same(&format!("generation {generation}"), expected, found);
    }
}

/// A field of Rust that C does not have would hide between those of C, so they must leave no gap.
#[test]
fn the_fields_that_c_knows_fill_the_rust_structure() {
    let facts = facts();
    for generation in GENERATIONS {
        let layouts = Layouts::of(generation);
        for record in &layouts.records {
            if facts.bits.iter().any(|bits| bits.record == record.name) {
                continue;
            }
            let fields = layouts.fields.iter().filter(|field| field.record == record.name);
            let mut ranges: Vec<_> = fields.map(|f| (f.offset, f.offset + f.size)).collect();
            ranges.sort();
            let end = ranges.into_iter().fold(0, |end, (start, stop)| {
                assert!(start <= end, "{generation} {}: gap before {start}", record.name);
                stop.max(end)
            });
            assert_eq!(end, record.size, "{generation} {}: gap at the end", record.name);
        }
    }
}

#[test]
fn registers_have_the_bits_of_c() {
    let facts = facts();
    let newest = facts.bits.iter().filter(|row| {
        // HsaMemMapFlags went before the newest generation; its last form counts.
        row.generations.has(2026) || row.record == "HsaMemMapFlags"
    });
    let expected = newest
        .filter(|row| !rust_names::is_reserved(&row.path))
        .map(|row| {
            let name = row.path.rsplit('.').next().unwrap();
            (format!("{}.{name}", row.record), (row.first, row.width))
        })
        .collect();
    let mut found = BTreeMap::new();
    for generation in GENERATIONS {
        for bits in Layouts::of(generation).bits {
            found.insert(format!("{}.{}", bits.record, bits.name), (bits.first, bits.width));
        }
    }
    assert_same("registers", expected, found);
}

/// A bit that an older generation names has the same place in Rust, which knows the newest form.
#[test]
fn bits_never_moved() {
    let facts = facts();
    for generation in GENERATIONS {
        let layouts = Layouts::of(generation);
        let named = facts.bits.iter().filter(|row| row.generations.has(generation));
        for row in named.filter(|row| !rust_names::is_reserved(&row.path)) {
            let name = row.path.rsplit('.').next().unwrap();
            let bits = layouts.bits.iter().find(|b| b.record == row.record && b.name == name);
            let found = bits.map(|bits| (bits.first, bits.width));
            assert_eq!(found, Some((row.first, row.width)), "{generation} {}", row.path);
        }
    }
}

#[test]
fn enumerations_have_the_size_and_values_of_c() {
    let facts = facts();
    for generation in GENERATIONS {
        let what = format!("generation {generation}");
        let layouts = Layouts::of(generation);
        let expected = facts.enums.iter().filter(|row| row.generations.has(generation));
        let expected = expected.map(|row| (row.name.clone(), row.size)).collect();
        let found = layouts.enums.iter().map(|(name, size)| (name.to_string(), *size)).collect();
        assert_same(&what, expected, found);

        let key = |enumeration: &str, name: &str| format!("{enumeration}::{name}");
        let expected: BTreeMap<_, _> = facts
            .enumerators
            .iter()
            .filter(|row| row.generations.has(generation))
            .map(|row| (key(&row.enumeration, &row.name), row.value))
            .collect();
        let mut found: BTreeMap<_, _> =
            layouts.enumerators.iter().map(|(e, name, value)| (key(e, name), *value)).collect();
        if generation != 2026 {
            // Rust knows the newest enumerators in every generation.
            found.retain(|name, _| expected.contains_key(name));
        }
        assert_same(&what, expected, found);
    }
}

#[test]
fn constants_identifiers_and_type_names_are_those_of_c() {
    let facts = facts();
    for generation in GENERATIONS {
        let what = format!("generation {generation}");
        let layouts = Layouts::of(generation);
        let expected = facts.constants.iter().filter(|row| row.generations.has(generation));
        let expected = expected.map(|row| (row.name.clone(), row.value)).collect();
        let found = layouts.constants.iter().map(|(name, value)| (name.to_string(), *value));
        assert_same(&what, expected, found.collect());

        let expected = facts.uuids.iter().map(|row| {
            let text = [&*row.data1, &*row.data2, &*row.data3, &*row.data4].concat();
            (row.name.clone(), text)
        });
        let found = layouts.uuids.iter().map(|(name, uuid)| {
            let bytes: String = uuid.Data4.iter().map(|byte| format!("{byte:02x}")).collect();
            let words = format!("{:08x}{:04x}{:04x}", uuid.Data1, uuid.Data2, uuid.Data3);
            (name.to_string(), words + &bytes)
        });
        assert_same(&what, expected.collect(), found.collect());

        for (name, size) in &layouts.typedefs {
            let row = facts.typedefs.iter().find(|row| row.name == *name).unwrap();
            assert_eq!(row.size, *size, "{what}: {name}");
        }
    }
}

/// The committed tables are those that the facts folder gives.
#[test]
fn the_tables_are_those_of_the_facts_folder() {
    let beside_the_repository = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/facts");
    let folder = env::var_os("HSAKMT_FACTS").map_or(beside_the_repository, Into::into);
    let path = folder.join("abi.json");
    let Ok(text) = fs::read_to_string(&path) else {
        println!("skipped: {} is not there (HSAKMT_FACTS names another folder)", path.display());
        return;
    };
    let expected = abi_json::tables(&text);
    assert!(
        expected == facts(),
        "{} is out of date: cargo run -p hsakmt-abi-tests --bin write-facts -- {}",
        facts_folder().display(),
        path.display()
    );
}
