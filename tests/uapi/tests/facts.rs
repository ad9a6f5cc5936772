//! The blocks, records and names of Rust are those of the facts.

use std::path::Path;
use std::{env, fs};

use hsakmt_core::uapi::{ALL, ArraySlot};
use hsakmt_uapi_tests::exceptions::{
    BLOCKS_BEYOND_THE_FACTS, CONSTANTS, CONSTANTS_LEFT_OUT, FIELDS_LEFT_OUT,
    NAMES_BEYOND_THE_FACTS, RECORDS_LEFT_OUT, REQUESTS,
};
use hsakmt_uapi_tests::kernel::{self, Layout};
use hsakmt_uapi_tests::named_values::named_values;
use hsakmt_uapi_tests::table::{Ioctl, Tables};
use hsakmt_uapi_tests::{abi_json, facts, facts_folder};

/// The blocks; a KFD request's record is the one that the facts name.
fn blocks(facts: &Tables) -> Vec<Layout> {
    kernel::blocks(|request_macro| {
        let ioctl = facts.ioctls.iter().find(|ioctl| ioctl.name == request_macro)?;
        Some(ioctl.record.clone())
    })
}

fn is_beyond_the_facts(block: &Layout) -> bool {
    BLOCKS_BEYOND_THE_FACTS
        .iter()
        .any(|(name, request, _)| (*name, *request) == (block.name, block.request))
}

#[test]
fn every_request_of_the_facts_has_a_block_with_its_number() {
    let facts = facts();
    assert!(facts.ioctls.len() > 50, "the table is there");
    let blocks = blocks(&facts);
    for Ioctl { name, request, .. } in &facts.ioctls {
        let mut of_request = blocks
            .iter()
            .filter(|block| block.request_macro == *name && !is_beyond_the_facts(block))
            .peekable();
        assert!(of_request.peek().is_some(), "{name}: no block");
        for block in of_request {
            let differs =
                REQUESTS.iter().any(|(other, size, _)| other == name && *size == block.size);
            assert_eq!(
                differs,
                block.request != *request,
                "{name}: {:#x} in Rust, {request:#x} in the facts",
                block.request
            );
            // What may differ is the form of the argument, never who answers.
            assert_eq!(block.request & 0xffff, request & 0xffff, "{name}");
        }
    }
}

#[test]
fn every_block_is_in_the_facts_or_listed() {
    let facts = facts();
    for block in blocks(&facts) {
        let known = facts.ioctls.iter().any(|ioctl| ioctl.name == block.request_macro);
        assert!(known || is_beyond_the_facts(&block), "{}: {:#x}", block.name, block.request);
        assert_eq!((block.request >> 16) as usize & 0x3fff, block.size, "{}", block.name);
    }
    for (name, request, _) in BLOCKS_BEYOND_THE_FACTS {
        let listed = |block: &Layout| (block.name, block.request) == (*name, *request);
        assert!(blocks(&facts).iter().any(listed), "{name}: listed without need");
    }
}

/// Compares a block or record with the record of the facts; returns what differs.
fn compare(facts: &Tables, layout: &Layout) -> Vec<String> {
    let record = layout.tag();
    let mut differences = Vec::new();
    let mut named_bytes = vec![false; layout.size];
    for place in &layout.fields {
        let (field, bytes) =
            (place.field, place.field.offset..place.field.offset + place.field.size);
        let Some(designator) = &place.designator else { continue };
        match facts.fields_of(record).find(|row| row.path == *designator) {
            None => differences.push(format!("{record}.{designator} is not in the facts")),
            Some(row) if (row.offset, row.size) != (field.offset, field.size) => {
                differences.push(format!(
                    "{record}.{designator}: {}+{} in Rust, {}+{} in the facts",
                    field.offset, field.size, row.offset, row.size
                ));
            }
            Some(_) => named_bytes[bytes].fill(true),
        }
    }
    differences.extend(fields_without_name(facts, layout, &named_bytes));
    differences
}

/// The fields of the facts whose bytes have no name in Rust. Of a union only the member that the
/// block is about counts.
fn fields_without_name(facts: &Tables, layout: &Layout, named_bytes: &[bool]) -> Vec<String> {
    let record = layout.tag();
    let members = |path: &str| path.split_once('.').map(|(member, _)| member.to_owned());
    let own: Vec<String> =
        layout.fields.iter().filter_map(|place| members(place.designator.as_deref()?)).collect();
    facts
        .fields_of(record)
        .filter(|row| match members(&row.path) {
            Some(member) => own.contains(&member),
            // A union's members as a whole: those that are taken apart, or another block's.
            None => !facts.fields.iter().any(|other| {
                other.record == record && other.path.starts_with(&format!("{}.", row.path))
            }),
        })
        .filter(|row| {
            let left_out =
                FIELDS_LEFT_OUT.iter().any(|(of, path, _)| *of == record && *path == row.path);
            let is_other_operation = layout.name.starts_with("PROFILER_") && row.path == "version";
            !left_out && !is_other_operation
        })
        .filter(|row| {
            let bytes = named_bytes.get(row.offset..row.offset + row.size);
            !bytes.is_some_and(|bytes| bytes.iter().all(|named| *named))
        })
        .map(|row| format!("{record}.{} has no field in Rust", row.path))
        .collect()
}

#[test]
fn every_field_has_the_place_the_facts_give() {
    let facts = facts();
    assert!(facts.fields.len() > 400, "the table is there");
    let of_kfd = |layout: &Layout| layout.tag().starts_with("kfd_");
    let mut differences = Vec::new();
    let mut compared = 0;
    for block in blocks(&facts).iter().filter(|block| of_kfd(block) && !is_beyond_the_facts(block))
    {
        compared += block.fields.len();
        if block.name != "CREATE_PROCESS" {
            differences.extend(compare(&facts, block));
        }
    }
    for record in kernel::records().iter().filter(|record| of_kfd(record)) {
        compared += record.fields.len();
        differences.extend(compare(&facts, record));
        let size = facts.records.iter().find(|row| row.name == record.tag()).map(|row| row.size);
        assert_eq!(size, Some(record.size), "{}", record.name);
    }
    assert!(differences.is_empty(), "{}", differences.join("\n"));
    println!("{compared} fields compared");
    assert!(compared > 300);
}

#[test]
fn every_record_of_the_facts_is_in_rust() {
    let facts = facts();
    let mut in_rust: Vec<String> =
        kernel::records().iter().map(|record| record.tag().to_owned()).collect();
    in_rust.extend(blocks(&facts).iter().map(|block| block.tag().to_owned()));
    for record in &facts.records {
        let is_left_out = RECORDS_LEFT_OUT.iter().any(|(name, _)| *name == record.name);
        // The members of the debugger's union: `every_field_has_the_place_the_facts_give` compares
        // them within the union.
        let is_debugger_operation = record.name.starts_with("kfd_ioctl_dbg_trap_");
        assert!(
            is_left_out || is_debugger_operation || in_rust.contains(&record.name),
            "{} is not in Rust",
            record.name
        );
    }
}

#[test]
fn every_listed_difference_is_one() {
    let facts = facts();
    for (record, path, _) in FIELDS_LEFT_OUT {
        assert!(facts.fields_of(record).any(|row| row.path == *path), "{record}.{path}");
    }
    for (name, ..) in REQUESTS {
        assert!(facts.ioctls.iter().any(|ioctl| ioctl.name == *name), "{name}");
    }
    for (name, _) in RECORDS_LEFT_OUT {
        assert!(facts.records.iter().any(|record| record.name == *name), "{name}");
    }
    for (name, _) in CONSTANTS_LEFT_OUT {
        assert!(facts.constants.iter().any(|constant| constant.name == *name), "{name}");
    }
    for (name, _) in NAMES_BEYOND_THE_FACTS {
        assert!(!facts.constants.iter().any(|constant| constant.name == *name), "{name}");
    }
}

#[test]
fn every_constant_of_the_facts_has_its_value_in_rust() {
    let facts = facts();
    let mut values: Vec<(String, u64)> =
        named_values().into_iter().flat_map(|named| named.values).collect();
    values.sort();
    for constant in &facts.constants {
        let in_rust = values.iter().find(|(name, _)| *name == constant.name);
        let is_left_out = CONSTANTS_LEFT_OUT.iter().any(|(name, _)| *name == constant.name);
        match in_rust {
            Some((name, value)) => {
                let corrected = CONSTANTS.iter().find(|(corrected, ..)| corrected == name);
                assert_ne!(corrected.map(|(_, value, _)| *value), Some(constant.value), "{name}");
                let expected = corrected.map_or(constant.value, |(_, value, _)| *value);
                assert_eq!(*value, expected, "{name}");
            }
            None => assert!(is_left_out, "{} has no name in Rust", constant.name),
        }
        assert!(in_rust.is_none() || !is_left_out, "{}: listed without need", constant.name);
    }
    for (name, _) in values.iter().filter(|(name, _)| {
        name.starts_with("KFD_") || name.starts_with("EC_") || name.starts_with("DEBUG_")
    }) {
        let known = facts.constants.iter().any(|constant| constant.name == *name);
        let is_listed = NAMES_BEYOND_THE_FACTS.iter().any(|(listed, _)| listed == name);
        assert!(known || is_listed, "{name} is not in the facts");
    }
}

#[test]
fn every_pointer_is_an_array() {
    for block in ALL {
        for field in block.fields.iter().filter(|field| field.name.ends_with("_ptr")) {
            let is_slot =
                |slot: &ArraySlot| (slot.name, slot.pointer_at) == (field.name, field.offset);
            assert!(block.arrays.iter().any(is_slot), "{}.{}", block.name, field.name);
        }
        for slot in block.arrays {
            let field = block.fields.iter().find(|field| field.name == slot.name);
            assert_eq!(field.map(|field| field.size), Some(8), "{}.{}", block.name, slot.name);
        }
    }
}

#[test]
fn fields_follow_each_other_without_gaps() {
    for block in ALL {
        let mut end = 0;
        for field in block.fields {
            assert_eq!(field.offset, end, "{}.{}", block.name, field.name);
            end += field.size;
        }
        assert_eq!(end, block.size, "{}", block.name);
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
    assert!(
        abi_json::tables(&text) == facts(),
        "{} is out of date: cargo run -p hsakmt-uapi-tests --bin write-uapi-facts -- {}",
        facts_folder().display(),
        path.display()
    );
}
