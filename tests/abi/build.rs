//! Turns each row of the tables into an expression over the Rust types.

#[path = "src/rust_names.rs"]
mod rust_names;
#[path = "src/table.rs"]
#[allow(dead_code)]
mod table;

use std::fmt::Write as _;
use std::path::Path;
use std::{env, fs};

use table::Tables;

fn main() {
    let folder = Path::new(&env::var_os("CARGO_MANIFEST_DIR").unwrap()).join("facts");
    println!("cargo::rerun-if-changed={}", folder.display());
    println!("cargo::rerun-if-changed=src/rust_names.rs");
    println!("cargo::rerun-if-changed=src/table.rs");
    let tables = Tables::read(&folder);
    let mut source = String::new();
    for generation in table::GENERATIONS {
        write_generation(&mut source, &tables, generation).unwrap();
    }
    let out = Path::new(&env::var_os("OUT_DIR").unwrap()).join("rust_layouts.rs");
    fs::write(out, source).unwrap();
}

fn write_generation(source: &mut String, tables: &Tables, generation: u32) -> std::fmt::Result {
    let module = rust_names::module(generation);
    writeln!(source, "fn generation_{generation}() -> Layouts {{")?;
    writeln!(source, "use hsakmt::generation::{module}::*;")?;
    writeln!(source, "let mut layouts = Layouts::default();")?;
    for record in tables.records.iter().filter(|row| row.generations.has(generation)) {
        let name = &record.name;
        writeln!(source, "layouts.records.push(Record::of::<{name}>({name:?}));")?;
    }
    for field in tables.fields.iter().filter(|row| row.generations.has(generation)) {
        let (record, path) = (&field.record, &field.path);
        let Some(place) = rust_names::field(record, path) else { continue };
        writeln!(source, "layouts.fields.push(field!({record}, {place}, {path:?}));")?;
    }
    let mut registers: Vec<&str> = Vec::new();
    for bits in tables.bits.iter().filter(|row| row.generations.has(generation)) {
        if !registers.contains(&bits.record.as_str()) && rust_names::is_register(&bits.record) {
            registers.push(&bits.record);
        }
    }
    for name in registers {
        writeln!(source, "layouts.bits.extend(bits!({name}));")?;
    }
    for enumeration in tables.enums.iter().filter(|row| row.generations.has(generation)) {
        writeln!(source, "layouts.add_enum(enumeration!({}));", enumeration.name)?;
    }
    for constant in tables.constants.iter().filter(|row| row.generations.has(generation)) {
        let name = &constant.name;
        writeln!(source, "layouts.constants.push(({name:?}, {name} as i64));")?;
    }
    for uuid in &tables.uuids {
        writeln!(source, "layouts.uuids.push(({0:?}, {0}));", uuid.name)?;
    }
    let types = tables.records.iter().map(|row| &row.name);
    let types: Vec<&String> = types.chain(tables.enums.iter().map(|row| &row.name)).collect();
    for typedef in tables.typedefs.iter().filter(|row| row.generations.has(generation)) {
        let name = &typedef.name;
        if typedef.size != 0 && !types.contains(&name) && !rust_names::is_scalar(name) {
            writeln!(source, "layouts.typedefs.push(({name:?}, size_of::<{name}>() as u64));")?;
        }
    }
    writeln!(source, "layouts }}")
}
