//! `save-area-table KERNEL=FOLDER... > tests/save-area/table.txt`
//!
//! Makes the committed table anew from unpacked kernel sources. Each folder's
//! `kfd_queue.c` gives the function, compiled as it stands by the system's C
//! compiler; its `kfd_device.c` gives the versions that the driver knows.
//! Nothing of them is kept but numbers.
//!
//! It also makes sure that the sizes do not depend on the number of dies.

#![deny(unsafe_code)]

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::io::Write as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::{env, fs, process};

use hsakmt_save_area::{ENGINES, LOCAL_DATA, MOST_DIES, MOST_UNITS, Row, Sizes, simd_per_unit};

/// Where the driver is in a kernel source.
const DRIVER: &str = "drivers/gpu/drm/amd/amdkfd";

/// The function whose text is taken.
const FUNCTION: &str = "void kfd_queue_ctx_save_restore_size(";

/// A shape of a GPU, all numbers of one die.
#[derive(Debug, Clone, Copy)]
struct Shape {
    local_data: u32,
    engines: u32,
    units: u32,
}

fn main() {
    let sources: Vec<(String, PathBuf)> = env::args()
        .skip(1)
        .filter_map(|word| {
            let (kernel, folder) = word.split_once('=')?;
            Some((kernel.to_owned(), PathBuf::from(folder)))
        })
        .collect();
    if sources.is_empty() || sources.len() != env::args().count() - 1 {
        eprintln!("usage: save-area-table KERNEL=FOLDER...");
        process::exit(2);
    }

    let work = env::temp_dir().join(format!("save-area-{}", process::id()));
    fs::create_dir_all(&work).expect("a folder for the compiler");
    let mut sections: BTreeMap<Vec<Row>, BTreeMap<&str, Vec<u32>>> = BTreeMap::new();
    for (kernel, folder) in &sources {
        let formula = cut(&read(folder, "kfd_queue.c"));
        let program = compile(&work, &formula);
        for target in targets(&read(folder, "kfd_device.c"), &formula) {
            let rows = rows(&program, target);
            if !rows.is_empty() {
                sections.entry(rows).or_default().entry(kernel).or_default().push(target);
            }
        }
    }
    fs::remove_dir_all(&work).expect("the compiler's folder");
    print!("{}", text(&sections));
}

fn read(folder: &Path, name: &str) -> String {
    let path = folder.join(DRIVER).join(name);
    fs::read_to_string(&path).unwrap_or_else(|error| panic!("{}: {error}", path.display()))
}

/// The function with the constants and functions that it needs: from the first
/// definition of a constant to the function's end.
fn cut(source: &str) -> String {
    let function = source.find(FUNCTION).expect("the function");
    let start = source.find("\n#define ").expect("constants before the function");
    assert!(start < function);
    let length = source[function..].find("\n}\n").expect("the function's end");
    source[start..function + length + 3].to_owned()
}

fn compile(work: &Path, formula: &str) -> PathBuf {
    let (cut, harness, program) = (work.join("cut.c"), work.join("shapes.c"), work.join("shapes"));
    fs::write(&cut, formula).expect("the function's file");
    fs::write(&harness, include_str!("shapes.c")).expect("its caller's file");
    let compiled = Command::new("cc")
        .arg(format!("-DKERNEL_FORMULA=\"{}\"", cut.display()))
        .args(["-O1", "-o"])
        .args([&program, &harness])
        .status()
        .expect("a C compiler");
    assert!(compiled.success(), "the function compiles");
    program
}

/// The versions that the driver gives to GPUs, and those that the function names.
fn targets(device: &str, formula: &str) -> BTreeSet<u32> {
    let given = device.split("gfx_target_version = ").skip(1);
    let given = given.filter_map(|rest| rest.split(';').next());
    let named = formula.split("gfxv == ").skip(1).filter_map(|rest| rest.get(..7));
    given
        .chain(named)
        .flat_map(|text| text.split(|c: char| !c.is_ascii_alphanumeric()))
        .filter_map(|word| word.parse().ok())
        .filter(|number| (70_000..1_000_000).contains(number))
        .collect()
}

/// All rows of a version, none where the function gives nothing.
fn rows(program: &Path, target: u32) -> Vec<Row> {
    let mut shapes = Vec::new();
    for local_data in LOCAL_DATA {
        for engines in ENGINES {
            shapes.extend((1..=MOST_UNITS).map(|units| Shape { local_data, engines, units }));
        }
    }
    let sizes = ask(program, target, &shapes, 1);
    for dies in 2..=MOST_DIES {
        assert_eq!(ask(program, target, &shapes, dies), sizes, "{target} with {dies} dies");
    }
    if sizes.iter().all(|sizes| sizes.per_die == 0) {
        return Vec::new();
    }
    let all: Vec<Row> = shapes
        .iter()
        .zip(&sizes)
        .map(|(shape, &sizes)| Row {
            local_data: Some(shape.local_data),
            engines: Some(shape.engines),
            units: shape.units,
            sizes,
        })
        .collect();
    let all = without(all, LOCAL_DATA.len(), |row| &mut row.local_data);
    without(all, ENGINES.len(), |row| &mut row.engines)
}

/// Leaves a number out where every one of its `values` gives the same sizes.
fn without(rows: Vec<Row>, values: usize, number: fn(&mut Row) -> &mut Option<u32>) -> Vec<Row> {
    let mut counts: BTreeMap<Row, usize> = BTreeMap::new();
    for mut row in rows.clone() {
        *number(&mut row) = None;
        *counts.entry(row).or_default() += 1;
    }
    let mut rows: Vec<Row> = rows
        .into_iter()
        .map(|mut row| {
            let kept = number(&mut row).take();
            if counts[&row] != values {
                *number(&mut row) = kept;
            }
            row
        })
        .collect();
    rows.sort();
    rows.dedup();
    rows
}

/// What the function answers for each shape, on a GPU of so many dies.
fn ask(program: &Path, target: u32, shapes: &[Shape], dies: u32) -> Vec<Sizes> {
    let per_unit = simd_per_unit(target);
    let mut questions = String::new();
    for shape in shapes {
        let simds = shape.units * per_unit * dies;
        let (engines, local) = (shape.engines, shape.local_data);
        writeln!(questions, "{target} {simds} {per_unit} {engines} {dies} {local}").unwrap();
    }
    let mut child = Command::new(program)
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the compiled function");
    let mut input = child.stdin.take().expect("its input");
    let writer = std::thread::spawn(move || input.write_all(questions.as_bytes()));
    let output = child.wait_with_output().expect("its output");
    writer.join().expect("a writer").expect("its input taken");
    let answers = String::from_utf8(output.stdout).expect("numbers");
    let sizes: Vec<Sizes> = answers
        .lines()
        .map(|line| {
            let numbers: Vec<u32> =
                line.split(' ').map(|word| word.parse().expect("a number")).collect();
            let &[control_stack, per_die, debug, end_of_pipe] = &numbers[..] else {
                panic!("four numbers: {line}");
            };
            Sizes { control_stack, per_die, debug, end_of_pipe }
        })
        .collect();
    assert_eq!(sizes.len(), shapes.len());
    sizes
}

fn text(sections: &BTreeMap<Vec<Row>, BTreeMap<&str, Vec<u32>>>) -> String {
    let mut text = String::from(
        "# Sizes of the save area of one die, in bytes, as kernels compute them.\n\
         # Made by save-area-table, see src/main.rs. Versions are gfx_target_version.\n\
         # Rows: local data in KiB, shader engines, compute units, then control\n\
         # stack, save area, debug area, end-of-pipe buffer. A - is every number.\n",
    );
    for (rows, targets) in sections {
        text.push('\n');
        for (kernel, targets) in targets {
            let targets: Vec<String> = targets.iter().map(u32::to_string).collect();
            writeln!(text, "= {kernel} {}", targets.join(" ")).unwrap();
        }
        for row in rows {
            writeln!(text, "{row}").unwrap();
        }
    }
    text
}
