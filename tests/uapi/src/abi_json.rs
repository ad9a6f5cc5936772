//! Making the tables from `abi.json` of the facts folder.

use serde_json::{Map, Value};

use crate::exceptions;
use crate::table::{Constant, Field, Ioctl, Record, Tables};

/// The header whose records, enumerations and constants are the kernel's.
const HEADER: &str = "kfd_ioctl.h";

/// The tables that the text of `abi.json` gives.
///
/// # Panics
///
/// If the text is not of the known form.
pub fn tables(text: &str) -> Tables {
    let json: Value = serde_json::from_str(text).expect("abi.json is JSON");
    let mut tables = Tables::default();
    for kind in ["kfd_ioctls", "drm_ioctls"] {
        for (name, ioctl) in object(&json[kind]) {
            if exceptions::IOCTLS_LEFT_OUT.iter().any(|(left_out, _)| left_out == name) {
                continue;
            }
            let request = ioctl["request_hex"].as_str().expect("a request number");
            let digits = request.strip_prefix("0x").expect("a hexadecimal number");
            tables.ioctls.push(Ioctl {
                name: name.clone(),
                request: u32::from_str_radix(digits, 16).expect("a request has 32 bits"),
                record: ioctl["arg"].as_str().unwrap_or_default().to_owned(),
            });
        }
    }
    let records = object(&json["records"]);
    for (name, record) in records.iter().filter(|(_, record)| record["header"] == HEADER) {
        tables.records.push(Record { name: name.clone(), size: number(record, "size") });
        add_fields(&mut tables.fields, records, name, 0, "", &record["fields"]);
    }
    for (_, enumeration) in object(&json["enums"]).iter().filter(|(_, e)| e["header"] == HEADER) {
        let values = object(&enumeration["values"]);
        tables.constants.extend(values.iter().map(|(name, value)| constant(name, value)));
    }
    for (name, entry) in object(&json["constants"]).iter().filter(|(_, e)| e["header"] == HEADER) {
        tables.constants.push(constant(name, &entry["value"]));
    }
    tables.ioctls.sort();
    tables.records.sort();
    tables.fields.sort();
    tables.constants.sort();
    tables
}

/// Adds fields and what is within them; elements of arrays are not taken apart.
fn add_fields(
    rows: &mut Vec<Field>,
    records: &Map<String, Value>,
    record: &str,
    base: usize,
    prefix: &str,
    fields: &Value,
) {
    for field in fields.as_array().expect("fields are an array") {
        // The facts count the fields of a nested structure from its own start, but those of an
        // anonymous union from that of the record.
        let offset = number(field, "offset");
        let Some(name) = field["name"].as_str() else {
            add_fields(rows, records, record, base, prefix, &field["fields"]);
            continue;
        };
        let path = format!("{prefix}{name}");
        rows.push(Field {
            record: record.to_owned(),
            offset: base + offset,
            size: number(field, "size"),
            path: path.clone(),
        });
        let tag = field["type"].as_str().and_then(|c_type| c_type.strip_prefix("struct "));
        let within = field.get("fields").or_else(|| Some(&records.get(tag?)?["fields"]));
        if let Some(within) = within {
            let prefix = format!("{path}.");
            add_fields(rows, records, record, base + offset, &prefix, within);
        }
    }
}

fn constant(name: &str, value: &Value) -> Constant {
    let value = match (value.as_u64(), value.as_i64()) {
        (Some(value), _) => value,
        (None, Some(negative)) => {
            u64::from(i32::try_from(negative).expect("negative numbers have 32 bits") as u32)
        }
        (None, None) => panic!("{name}: {value} is no whole number"),
    };
    Constant { name: name.to_owned(), value }
}

fn object(value: &Value) -> &Map<String, Value> {
    value.as_object().expect("a list of named entries")
}

fn number(value: &Value, key: &str) -> usize {
    let number = value[key].as_u64().unwrap_or_else(|| panic!("{key} of {value}"));
    usize::try_from(number).expect("an offset or a size")
}
