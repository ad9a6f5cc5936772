//! C sources made from the tables and the Rust layouts, and the compilers that judge them.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::rust::{Field, Layouts, Record};
use crate::table::{GENERATIONS, Tables};

/// A compiler and the language it is to accept.
#[derive(Debug, Clone, Copy)]
pub struct Compiler {
    /// Program to run.
    pub program: &'static str,
    /// Debian package that has it.
    pub package: &'static str,
    /// Language, as its option `-x` calls it.
    pub language: &'static str,
    /// Standard, as its option `-std` calls it.
    pub standard: &'static str,
}

/// Every compiler and language that the headers serve.
pub const COMPILERS: [Compiler; 3] = [
    Compiler { program: "gcc", package: "gcc", language: "c", standard: "c11" },
    Compiler { program: "musl-gcc", package: "musl-tools", language: "c", standard: "c11" },
    Compiler { program: "g++", package: "g++", language: "c++", standard: "c++17" },
];

/// The folder of the headers.
pub fn include_folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../ffi/include")
}

impl Compiler {
    /// A command with the strictest warnings, for one generation.
    pub fn strict(&self, generation: u32) -> Command {
        let mut command = self.command();
        command.args(["-Wall", "-Wextra", "-Werror", "-pedantic", "-pedantic-errors"]);
        command.arg(format!("-DHSAKMT_ABI_GENERATION={generation}"));
        command.arg("-I").arg(include_folder());
        command
    }

    /// A command without warnings and without our headers.
    pub fn command(&self) -> Command {
        let mut command = Command::new(self.program);
        command.args(["-x", self.language, &format!("-std={}", self.standard)]);
        command
    }

    /// Runs a command on a source, which is written to `folder` under `name`.
    ///
    /// Returns what the compiler prints.
    ///
    /// # Errors
    ///
    /// What the compiler complains of.
    ///
    /// # Panics
    ///
    /// If the compiler is missing; the message names its package.
    pub fn run(
        &self,
        mut command: Command,
        folder: &Path,
        name: &str,
        source: &str,
    ) -> Result<String, String> {
        let path = folder.join(format!("{name}-{}.{}", self.program, self.language));
        fs::write(&path, source).unwrap_or_else(|e| panic!("{}: {e}", path.display()));
        let output = command.arg(&path).output().unwrap_or_else(|e| {
            panic!("cannot run {}: {e}; install the package {}", self.program, self.package)
        });
        if output.status.success() {
            return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
        }
        Err(format!("{}\n{}", path.display(), String::from_utf8_lossy(&output.stderr)))
    }

    /// Only checks a source.
    ///
    /// # Errors
    ///
    /// What the compiler complains of.
    pub fn check(
        &self,
        mut command: Command,
        folder: &Path,
        name: &str,
        source: &str,
    ) -> Result<(), String> {
        command.arg("-fsyntax-only");
        self.run(command, folder, name, source).map(drop)
    }

    /// Compiles a source to a program, runs it, and returns what it prints.
    ///
    /// # Errors
    ///
    /// What the compiler complains of.
    ///
    /// # Panics
    ///
    /// If the program fails.
    pub fn print(
        &self,
        mut command: Command,
        folder: &Path,
        name: &str,
        source: &str,
    ) -> Result<String, String> {
        let program = folder.join(format!("{name}-{}", self.program));
        command.arg("-static").arg("-o").arg(&program);
        self.run(command, folder, name, source)?;
        let output = Command::new(&program).output().expect("the program starts");
        assert!(output.status.success(), "{} failed", program.display());
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    }
}

/// What every source begins with: `ASSERT`, `ALIGNOF`, and `IS` for the type of an expression.
///
/// The member access of `IS` is not in parentheses, so C++ gives the declared type, not a reference.
pub const PRELUDE: &str = "\
#include <stddef.h>
#ifdef __cplusplus
#include <type_traits>
#define ASSERT(condition) static_assert(condition, #condition)
#define ALIGNOF(type) alignof(type)
#define IS(...) IS_(__VA_ARGS__)
#define IS_(expression, ...) std::is_same<decltype(expression), __VA_ARGS__>::value
#else
#define ASSERT(condition) _Static_assert(condition, #condition)
#define ALIGNOF(type) _Alignof(type)
#define IS(expression, ...) _Generic((expression), __VA_ARGS__: 1, default: 0)
#endif
";

/// Sizes, alignments and offsets of the Rust types, as assertions on C.
pub fn layouts(generation: u32) -> String {
    let layouts = Layouts::of(generation);
    let mut source = records_and_fields(&layouts.records, &layouts.fields);
    for (name, size) in layouts.enums.iter().chain(&layouts.typedefs) {
        writeln!(source, "ASSERT(sizeof({name}) == {size});").unwrap();
    }
    source
}

/// The same for the structures of `hsakmt_ext.h`.
pub fn extension_layouts(generation: u32) -> String {
    let layouts = Layouts::of(generation);
    records_and_fields(&layouts.extension_records, &layouts.extension_fields)
}

fn records_and_fields(records: &[Record], fields: &[Field]) -> String {
    let mut source = String::new();
    for record in records {
        writeln!(source, "ASSERT(sizeof({}) == {});", record.name, record.size).unwrap();
        writeln!(source, "ASSERT(ALIGNOF({}) == {});", record.name, record.align).unwrap();
    }
    for field in fields {
        let (record, path) = (field.record, field.path);
        writeln!(source, "ASSERT(offsetof({record}, {path}) == {});", field.offset).unwrap();
        writeln!(source, "ASSERT(sizeof((({record} *)0)->{path}) == {});", field.size).unwrap();
    }
    source
}

/// Enumerators and constants with the values of Rust, as far as a generation has them.
pub fn values(facts: &Tables, generation: u32) -> String {
    let layouts = Layouts::of(generation);
    let mut source = String::new();
    for (enumeration, name, value) in &layouts.enumerators {
        let row = facts.enumerators.iter().find(|row| row.name == *name);
        let row = row.unwrap_or_else(|| panic!("{enumeration}: the facts have no {name}"));
        if row.generations.has(generation) {
            writeln!(source, "ASSERT((long long){name} == {value});").unwrap();
        }
    }
    for (name, value) in &layouts.constants {
        let value = *value as u64;
        writeln!(source, "ASSERT((unsigned long long){name} == {value}ULL);").unwrap();
    }
    source
}

/// The C types of fields, other types and functions, as assertions on C.
pub fn types(facts: &Tables, generation: u32) -> String {
    let mut source = String::new();
    for field in facts.fields.iter().filter(|row| row.generations.has(generation)) {
        if matches!(field.c_type.as_str(), "struct" | "union") {
            continue;
        }
        let (record, path) = (&field.record, &field.path);
        // C decays an array, and then its elements have the type; C++ does not.
        let array = field.c_type.contains('[');
        let (base, _) = field.c_type.split_once('[').unwrap_or((&field.c_type, ""));
        let place = format!("(({record} *)0)->{path}{}", if array { "[0]" } else { "" });
        if array {
            writeln!(source, "ASSERT(IS(&{place}, {base} *));").unwrap();
        } else {
            writeln!(source, "ASSERT(IS({place}, {base}));").unwrap();
        }
    }
    for typedef in facts.typedefs.iter().filter(|row| row.generations.has(generation)) {
        // The facts give a structure without a tag the name of its type.
        let tag = typedef.c_type.split_once(' ').map_or("", |(_, tag)| tag);
        if tag == typedef.name {
            continue;
        }
        let pointer = match typedef.c_type.split_once('[') {
            Some((base, length)) => format!("{base} (*)[{length}"),
            None => format!("{} *", typedef.c_type),
        };
        writeln!(source, "ASSERT(IS(({} *)0, {pointer}));", typedef.name).unwrap();
    }
    source
}

/// The signatures of the functions, as assertions on C.
pub fn signatures(facts: &Tables, generation: u32) -> String {
    let mut source = String::new();
    for function in facts.functions.iter().filter(|row| row.generations.has(generation)) {
        let (name, result) = (&function.name, &function.result);
        let parameters = match function.parameters.as_str() {
            "" => "void".to_owned(),
            // C++ calls the type bool, and so does C with the header.
            listed => listed.replace("; ", ", ").replace("_Bool", "bool"),
        };
        writeln!(source, "ASSERT(IS(&{name}, {result} (*)({parameters})));").unwrap();
    }
    source
}

/// Declares each name that a generation must not have as something else.
///
/// A header that has the name makes this a conflict.
pub fn absences(facts: &Tables, generation: u32) -> String {
    // A name may have a row for each of its forms.
    let mut present: BTreeMap<&str, bool> = BTreeMap::new();
    let records = facts.records.iter().map(|row| (&row.name, &row.generations));
    let typedefs = facts.typedefs.iter().map(|row| (&row.name, &row.generations));
    let enumerators = facts.enumerators.iter().map(|row| (&row.name, &row.generations));
    let functions = facts.functions.iter().map(|row| (&row.name, &row.generations));
    for (name, generations) in records.chain(typedefs).chain(enumerators).chain(functions) {
        *present.entry(name).or_default() |= generations.has(generation);
    }
    let mut source = String::new();
    for (name, _) in present.iter().filter(|(_, present)| !**present) {
        writeln!(source, "extern char {name}[];").unwrap();
    }
    for row in facts.constants.iter().filter(|row| !row.generations.has(generation)) {
        writeln!(source, "#ifdef {0}\n#error \"{0} is newer\"\n#endif", row.name).unwrap();
    }
    source
}

/// A program that fills one bit-field at a time and prints the record: `record path word`.
pub fn bits(facts: &Tables, generation: u32) -> String {
    let mut source = String::from(
        "#include <stdio.h>
#include <string.h>
#include \"hsakmttypes.h\"
static void print(const char *name, const void *record, size_t size)
{
    HSAuint64 word = 0;
    memcpy(&word, record, size);
    printf(\"%s %llx\\n\", name, (unsigned long long)word);
}
int main(void)
{
",
    );
    for row in facts.bits.iter().filter(|row| row.generations.has(generation)) {
        let (record, path) = (&row.record, &row.path);
        let ones = u64::MAX >> (64 - row.width);
        writeln!(
            source,
            "    {{ {record} record; memset(&record, 0, sizeof(record)); \
             record.{path} = {ones:#x}U{}; print(\"{record} {path}\", &record, sizeof(record)); }}",
            if row.width > 32 { "LL" } else { "" }
        )
        .unwrap();
    }
    source.push_str("    return 0;\n}\n");
    source
}

/// A program that prints each identifier: `name word word word bytes`.
pub fn uuids(facts: &Tables) -> String {
    let mut source = String::from(
        "#include <stdio.h>
#include \"hsakmttypes.h\"
static void print(const char *name, HSA_UUID uuid)
{
    int i;
    printf(\"%s %08x%04x%04x\", name, uuid.Data1, uuid.Data2, uuid.Data3);
    for (i = 0; i < 8; i++)
        printf(\"%02x\", uuid.Data4[i]);
    printf(\"\\n\");
}
int main(void)
{
",
    );
    for row in &facts.uuids {
        writeln!(source, "    print(\"{0}\", {0});", row.name).unwrap();
    }
    source.push_str("    return 0;\n}\n");
    source
}

/// The functions that a preprocessed header declares, by the beginning of their names.
pub fn declared_functions(preprocessed: &str) -> Vec<String> {
    let word = |c: char| c.is_ascii_alphanumeric() || c == '_';
    let mut names: Vec<String> = preprocessed
        .match_indices("hsaKmt")
        .filter(|(at, _)| !preprocessed[..*at].ends_with(word))
        .map(|(at, _)| &preprocessed[at..])
        .filter_map(|rest| {
            let end = rest.find(|c| !word(c))?;
            rest[end..].trim_start().starts_with('(').then(|| rest[..end].to_owned())
        })
        .collect();
    names.sort();
    names.dedup();
    names
}

/// Every generation with every compiler.
pub fn every_combination() -> impl Iterator<Item = (u32, Compiler)> {
    GENERATIONS.into_iter().flat_map(|generation| COMPILERS.map(|each| (generation, each)))
}
