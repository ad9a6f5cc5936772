//! Nothing that the sources define is left out of the catalogue and of these tests.

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;

use hsakmt_core::uapi::{ALL, RECORDS};
use hsakmt_uapi_tests::named_values::{NOT_IN_HEADERS, named_values};

/// The sources, without their unit tests.
fn sources() -> Vec<String> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../core/src/uapi");
    let mut texts = Vec::new();
    for folder in [folder.clone(), folder.join("kfd")] {
        for entry in fs::read_dir(&folder).unwrap_or_else(|e| panic!("{}: {e}", folder.display())) {
            let path = entry.unwrap().path();
            if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let end = text.find("#[cfg(test)]").unwrap_or(text.len());
                texts.push(text[..end].to_owned());
            }
        }
    }
    texts
}

/// The names of what a macro makes.
fn made_by(name: &str) -> BTreeSet<String> {
    let mut names = BTreeSet::new();
    for text in sources() {
        for (at, start) in text.match_indices(&format!("{name}! {{\n")) {
            // Only at the start of a line: not the examples in the macros' own documentation.
            if at > 0 && !text[..at].ends_with('\n') {
                continue;
            }
            let after = &text[at + start.len()..];
            let (_, item) = after.split_once("pub struct ").expect("a struct");
            let end = item.find(|c: char| !c.is_alphanumeric()).expect("a name");
            assert!(names.insert(item[..end].to_owned()), "{}: twice", &item[..end]);
        }
    }
    names
}

#[test]
fn every_block_and_record_is_in_the_catalogue() {
    let catalog = sources().into_iter().find(|text| text.contains("pub const ALL")).unwrap();
    for (made, listed) in [(made_by("block"), ALL.len()), (made_by("record"), RECORDS.len())] {
        for name in &made {
            assert!(catalog.contains(&format!("::{name},")), "{name} is not in the catalogue");
        }
        assert_eq!(made.len(), listed);
    }
}

#[test]
fn every_flag_word_and_enumeration_is_compared() {
    let mut made = made_by("flags");
    made.extend(made_by("open_enum"));
    let compared: Vec<&str> = named_values().iter().map(|named| named.rust_type).collect();
    for name in &made {
        let is_compared = compared.contains(&&**name);
        let is_listed = NOT_IN_HEADERS.iter().any(|(listed, _)| listed == name);
        assert!(is_compared != is_listed, "{name}: compared {is_compared}, listed {is_listed}");
    }
    for name in compared.iter().filter(|name| !name.is_empty()) {
        assert!(made.contains(*name), "{name} is not in the sources");
    }
}
