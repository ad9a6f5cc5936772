//! Making the tables from `abi.json` of the facts folder.

use serde_json::{Map, Value};

use crate::left_out;
use crate::table::{
    Bits, Constant, Enum, Enumerator, Field, Function, GENERATIONS, Generations, Record, Tables,
    Typedef, Uuid,
};

/// The tables that the text of `abi.json` gives, without what is [left out](left_out).
///
/// # Panics
///
/// If the text is not of the known form.
pub fn tables(text: &str) -> Tables {
    let json: Value = serde_json::from_str(text).expect("abi.json is JSON");
    let mut tables = Tables::default();
    for (name, record) in wanted(&json, "records") {
        for generation in present_in(record) {
            add_record(&mut tables, name, record, generation);
        }
    }
    for (name, enumeration) in wanted(&json, "enums") {
        for generation in present_in(enumeration) {
            add_enum(&mut tables, name, enumeration, generation);
        }
    }
    for (name, constant) in wanted(&json, "constants") {
        assert!(constant.get("differs_in").is_none(), "{name}: differs between generations");
        let value = constant["value"].as_i64().expect("a constant fits 64 bits");
        tables.constants.push(Constant { generations: since(constant), name: name.clone(), value });
    }
    for (name, uuid) in object(&json, "uuids") {
        tables.uuids.push(make_uuid(name, uuid));
    }
    for (name, typedef) in wanted(&json, "typedefs") {
        tables.typedefs.push(Typedef {
            generations: since(typedef),
            name: name.clone(),
            c_type: string(typedef, "type"),
            size: typedef["size"].as_u64().unwrap_or(0),
        });
    }
    for (name, function) in wanted(&json, "functions") {
        for generation in generations(&function["declared_in"]) {
            add_function(&mut tables, name, function, generation);
        }
    }
    tables
}

/// The entries of one kind that are not left out.
fn wanted<'a>(
    json: &'a Value,
    kind: &'static str,
) -> impl Iterator<Item = (&'a String, &'a Value)> {
    object(json, kind).iter().filter(move |(name, entry)| {
        left_out::reason(kind, name, entry["header"].as_str()).is_none()
    })
}

fn add_record(tables: &mut Tables, name: &str, record: &Value, generation: u32) {
    let layout = record["changed_from"].get(label(generation)).unwrap_or(record);
    merge(
        &mut tables.records,
        Record {
            generations: Generations(vec![generation]),
            name: name.to_owned(),
            size: number(layout, "size"),
            align: number(layout, "align"),
        },
        |row| &mut row.generations,
    );
    add_fields(tables, name, "", &layout["fields"], generation);
}

fn add_fields(tables: &mut Tables, record: &str, prefix: &str, fields: &Value, generation: u32) {
    for field in fields.as_array().expect("fields are an array") {
        let nested = field.get("fields");
        // The members of an anonymous structure or union are named as if they were outside it.
        let Some(name) = field["name"].as_str() else {
            add_fields(tables, record, prefix, nested.expect("anonymous but nested"), generation);
            continue;
        };
        let path = format!("{prefix}{name}");
        let (record, generations) = (record.to_owned(), Generations(vec![generation]));
        let c_type = string(field, "type");
        if field.get("bit_width").is_some() {
            let (first, width) = (number(field, "absolute_bit"), number(field, "bit_width"));
            let (first, width) = (first.try_into().unwrap(), width.try_into().unwrap());
            let row = Bits { generations, record, path, c_type, first, width };
            merge(&mut tables.bits, row, |row| &mut row.generations);
            continue;
        }
        if let Some(nested) = nested {
            add_fields(tables, &record, &format!("{path}."), nested, generation);
        }
        let (offset, size) = (number(field, "offset"), number(field, "size"));
        let row = Field { generations, record, path, c_type, offset, size };
        merge(&mut tables.fields, row, |row| &mut row.generations);
    }
}

fn add_enum(tables: &mut Tables, name: &str, enumeration: &Value, generation: u32) {
    let row = Enum {
        generations: Generations(vec![generation]),
        name: name.to_owned(),
        size: number(enumeration, "size"),
    };
    merge(&mut tables.enums, row, |row| &mut row.generations);
    let mut values: Vec<(&String, i64)> = object(enumeration, "values")
        .iter()
        .map(|(name, value)| (name, value.as_i64().expect("an enumerator fits 64 bits")))
        .collect();
    values.sort_by_key(|(name, value)| (*value, name.as_str()));
    for (enumerator, value) in values {
        let first = enumeration["value_since"][enumerator].as_str().expect("value_since");
        if number_of(first) > generation {
            continue;
        }
        let row = Enumerator {
            generations: Generations(vec![generation]),
            enumeration: name.to_owned(),
            name: enumerator.clone(),
            value,
        };
        merge(&mut tables.enumerators, row, |row| &mut row.generations);
    }
}

fn add_function(tables: &mut Tables, name: &str, function: &Value, generation: u32) {
    let signature = function["changed_from"].get(label(generation)).unwrap_or(function);
    let parameters = signature["params"].as_array().expect("params are an array");
    let row = Function {
        generations: Generations(vec![generation]),
        header: string(function, "header"),
        name: name.to_owned(),
        result: string(signature, "ret"),
        parameters: parameters.iter().map(|p| string(p, "type")).collect::<Vec<_>>().join("; "),
    };
    merge(&mut tables.functions, row, |row| &mut row.generations);
}

/// The words of an identifier are the last eleven that the facts give for it.
fn make_uuid(name: &str, uuid: &Value) -> Uuid {
    let words: Vec<u64> = uuid
        .as_array()
        .expect("a uuid is an array")
        .iter()
        .rev()
        .take(11)
        .rev()
        .map(|word| word.as_str().and_then(|word| word.strip_prefix("0x")).expect("a 0x number"))
        .map(|word| u64::from_str_radix(word, 16).expect("hexadecimal"))
        .collect();
    Uuid {
        name: name.to_owned(),
        data1: format!("{:08x}", words[0]),
        data2: format!("{:04x}", words[1]),
        data3: format!("{:04x}", words[2]),
        data4: words[3..].iter().map(|byte| format!("{byte:02x}")).collect(),
    }
}

/// Adds a row, or its generation to the equal row of another one.
fn merge<T: Clone + PartialEq>(
    rows: &mut Vec<T>,
    row: T,
    generations: impl Fn(&mut T) -> &mut Generations,
) {
    let mut row = row;
    let added = std::mem::replace(generations(&mut row), Generations(Vec::new()));
    for other in rows.iter_mut() {
        let mut bare = other.clone();
        generations(&mut bare).0.clear();
        if bare == row {
            generations(other).0.extend(added.0);
            return;
        }
    }
    *generations(&mut row) = added;
    rows.push(row);
}

fn present_in(entry: &Value) -> Vec<u32> {
    generations(&entry["present_in"])
}

fn generations(list: &Value) -> Vec<u32> {
    let list = list.as_array().expect("a list of generations");
    list.iter().map(|label| number_of(label.as_str().expect("a label"))).collect()
}

fn since(entry: &Value) -> Generations {
    let first = number_of(entry["since"].as_str().expect("since"));
    Generations(GENERATIONS.into_iter().filter(|generation| *generation >= first).collect())
}

/// How the facts call a generation.
fn label(generation: u32) -> &'static str {
    match generation {
        523 => "5.2.3",
        2025 => "2025-08",
        2026 => "2026",
        other => panic!("unknown generation {other}"),
    }
}

fn number_of(wanted: &str) -> u32 {
    GENERATIONS
        .into_iter()
        .find(|generation| label(*generation) == wanted)
        .unwrap_or_else(|| panic!("unknown generation {wanted}"))
}

fn object<'a>(json: &'a Value, key: &str) -> &'a Map<String, Value> {
    json[key].as_object().unwrap_or_else(|| panic!("{key} is not an object"))
}

fn string(json: &Value, key: &str) -> String {
    json[key].as_str().unwrap_or_else(|| panic!("{key} is not a string in {json}")).to_owned()
}

fn number(json: &Value, key: &str) -> u64 {
    json[key].as_u64().unwrap_or_else(|| panic!("{key} is not a number in {json}"))
}
