//! A program without a C library, built and run.

use std::process::Output;

use hsakmt_shim_tests::freestanding::{command, program};

#[track_caller]
fn run(arguments: &[&str]) -> (i32, String, String) {
    let Output { status, stdout, stderr } = command(arguments).output().unwrap();
    let text = |bytes| String::from_utf8(bytes).unwrap();
    (status.code().unwrap_or(-1), text(stdout), text(stderr))
}

#[test]
fn it_needs_no_library_and_no_interpreter() {
    let elf = std::fs::read(program()).unwrap();
    let number = |at: usize, size: usize| {
        elf[at..at + size].iter().rev().fold(0usize, |n, &byte| n << 8 | usize::from(byte))
    };
    const EXECUTABLE: usize = 2;
    assert_eq!(number(16, 2), EXECUTABLE, "not a shared object, so not PIE");
    let (table, size, count) = (number(32, 8), number(54, 2), number(56, 2));
    const INTERPRETER: usize = 3;
    const DYNAMIC: usize = 2;
    const TLS: usize = 7;
    for header in 0..count {
        let kind = number(table + header * size, 4);
        assert!(![INTERPRETER, DYNAMIC, TLS].contains(&kind), "program header of type {kind}");
    }
}

#[test]
fn it_gets_what_the_kernel_hands_over() {
    let output =
        command(&["start", "", "a b", "ü"]).env("ONE", "1").env("EMPTY", "").output().unwrap();
    assert!(output.status.success());
    let text = String::from_utf8(output.stdout).unwrap();
    let lines: Vec<&str> = text.lines().collect();
    assert_eq!(lines[1..5], ["argument start", "argument ", "argument a b", "argument ü"]);
    let mut environment: Vec<_> =
        lines.iter().filter_map(|line| line.strip_prefix("environment ")).collect();
    environment.sort_unstable();
    assert_eq!(environment, ["EMPTY=", "ONE=1"]);
    // SAFETY: asks for a number.
    let page = unsafe { libc::sysconf(libc::_SC_PAGESIZE) };
    for line in [
        format!("page size {page}"),
        format!("probed {page}"),
        "boot clock runs true".into(),
        "fork word 0".into(),
    ] {
        assert!(lines.contains(&line.as_str()), "{line} in {text}");
    }
}

#[test]
fn it_reads_files_and_folders() {
    let (status, output, _) = run(&["file", concat!(env!("CARGO_MANIFEST_DIR"), "/Cargo.toml")]);
    assert_eq!(status, 0);
    assert_eq!(output, include_str!("../Cargo.toml"));
    assert_eq!(run(&["file", "/nonexistent"]), (1, String::new(), "/nonexistent: ENOENT\n".into()));

    let (status, output, _) = run(&["folder", env!("CARGO_MANIFEST_DIR")]);
    assert_eq!(status, 0);
    let mut lines: Vec<&str> = output.lines().collect();
    lines.sort_unstable();
    assert_eq!(
        lines,
        ["File Cargo.toml", "File build.rs", "Folder freestanding", "Folder src", "Folder tests"]
    );
}

#[test]
fn its_heap_works() {
    let mut blocks = std::collections::BTreeMap::new();
    let mut number = 1u32;
    for step in 0..20_000u32 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = if step % 1000 == 0 { 3 << 20 } else { (number >> 16) as u64 % 3000 };
        blocks.insert(number % 500, size * u64::from(step as u8));
    }
    let sum: u64 = blocks.values().sum();
    assert_eq!(run(&["heap"]), (0, format!("sum {sum}\n"), String::new()));
}

#[test]
fn its_memory_functions_are_right() {
    assert_eq!(run(&["memory"]), (0, "same\n".into(), String::new()));
}

#[test]
fn a_panic_is_told_and_ends_it() {
    let (status, output, error) = run(&["panic"]);
    assert_eq!((status, output.as_str()), (101, ""));
    assert!(error.starts_with("panicked at "), "{error}");
    assert!(error.ends_with("on purpose, with 2\n"), "{error}");
}

#[test]
fn its_status_is_what_main_returns() {
    for status in [0, 1, 7, 255] {
        assert_eq!(run(&["status", &status.to_string()]).0, status);
    }
    assert_eq!(run(&["nonsense"]), (2, String::new(), "what is \"nonsense\"?\n".into()));
}
