//! The program as it ships: one static file that runs anywhere.

use std::ffi::OsStr;
use std::fs::{self, File};
use std::io::Read;
use std::os::unix::ffi::OsStrExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::os::unix::process::{CommandExt, ExitStatusExt};
use std::path::{Path, PathBuf};
use std::process::{Command, Output, Stdio};

const BINARY: &str = env!("CARGO_BIN_EXE_kfd-validate");

/// The program in an empty environment.
fn program() -> Command {
    let mut command = Command::new(BINARY);
    command.env_clear().stdin(Stdio::null());
    command
}

fn run<S: AsRef<OsStr>>(arguments: &[S]) -> Output {
    program().args(arguments).output().unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Asserts that the program refused in one line on standard error.
fn assert_refused(output: &Output, status: i32, expected: &str) {
    assert_eq!(output.status.code(), Some(status), "{output:?}");
    assert_eq!(text(&output.stdout), "", "{output:?}");
    let complaint = text(&output.stderr);
    assert!(complaint.starts_with("kfd-validate: "), "{complaint}");
    assert!(complaint.ends_with('\n') && complaint.lines().count() == 1, "{complaint:?}");
    assert!(complaint.contains(expected), "{complaint}");
}

fn has_kfd() -> bool {
    Path::new("/dev/kfd").exists()
}

/// A folder of the build that this test alone uses, empty.
fn scratch(name: &str) -> PathBuf {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    let _ = fs::remove_dir_all(&folder);
    fs::create_dir_all(&folder).unwrap();
    folder
}

#[test]
fn it_needs_no_loader_and_no_library() {
    let file = fs::read(BINARY).unwrap();
    assert_eq!(&file[..6], b"\x7fELF\x02\x01", "64 bits, little-endian");
    let at = |offset: usize, size: usize| {
        file[offset..offset + size].iter().rev().fold(0u64, |all, &byte| all << 8 | u64::from(byte))
    };
    assert_eq!(at(16, 2), 2, "ET_EXEC");
    let (table, entry, count) = (at(32, 8) as usize, at(54, 2) as usize, at(56, 2) as usize);
    assert!(count > 0);
    for index in 0..count {
        let kind = at(table + index * entry, 4);
        assert_ne!(kind, 2, "PT_DYNAMIC");
        assert_ne!(kind, 3, "PT_INTERP");
        assert_ne!(kind, 7, "PT_TLS");
    }
}

#[test]
fn help_and_version_go_to_standard_output() {
    let output = run(&["--help"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), kfd_validate::arguments::HELP);
    assert_eq!(text(&output.stderr), "");
    let output = run(&["info", "-V"]);
    assert_eq!(output.status.code(), Some(0));
    assert_eq!(text(&output.stdout), concat!("kfd-validate ", env!("CARGO_PKG_VERSION"), "\n"));
}

#[test]
fn wrong_arguments_are_one_line_and_status_2() {
    for (arguments, expected) in [
        (&["show"][..], "unknown command 'show'"),
        (&["info", "--jsno"], "unknown option '--jsno'"),
        (&["info", "--sim"], "--sim needs a value"),
        (&["info", "--sim", "nosuch"], "'nosuch'"),
        (&["info", "--sim", "mi300x:gpus=none"], "'mi300x:gpus=none'"),
        (&["info", "--sim", "apu:cpus=1,cpus=2"], "cpus is given twice"),
        (&["info", "--sim", "apu:cpus=1,"], "an option is empty"),
        (&["info", "--real", "--tree", "/"], "--real and --tree"),
        (&["--tree", "/"], "--tree needs the command info"),
        (&["--sim", "apu", "--gpus", "0"], "--gpus 0: there is no such GPU"),
        (&["--sim", "apu", "--gpus", "0x1"], "--gpus 0x1: there is no such GPU"),
        (&["--sim", "apu:fault=none"], "fault=none: expected"),
        (&["--stages", "memory,copying"], "--stages copying"),
        (&["--timeout", "0"], "--timeout 0"),
    ] {
        assert_refused(&run(arguments), 2, expected);
    }
    assert_refused(&run(&[OsStr::from_bytes(b"\xff\n")]), 2, "'\\xff\\n'");
}

#[test]
fn no_real_machine_is_status_3() {
    if has_kfd() {
        eprintln!("skipped: this machine has /dev/kfd");
        return;
    }
    assert_refused(&run(&["--real"]), 3, "/dev/kfd");
    let output = run(&["info", "--real"]);
    assert_refused(&output, 3, "/dev/kfd");
    assert!(text(&output.stderr).contains("ENOENT"), "{output:?}");
    assert!(text(&output.stderr).contains("amdgpu driver is not loaded"), "{output:?}");
    assert_refused(&run(&["info", "--real", "--discover"]), 3, "topology");
}

#[test]
fn without_a_driver_the_simulated_machine_is_shown_and_said() {
    if has_kfd() {
        eprintln!("skipped: this machine has /dev/kfd");
        return;
    }
    for (arguments, missing) in
        [(&["info"][..], "/dev/kfd"), (&["info", "--discover"], "KFD topology")]
    {
        let output = run(arguments);
        assert_eq!(output.status.code(), Some(0), "{output:?}");
        let first = text(&output.stdout).lines().next().unwrap();
        assert_eq!(first, format!("simulated machine mi300x (there is no {missing} here)"));
    }
}

#[test]
fn a_folder_without_a_topology_is_status_1() {
    let empty = scratch("empty");
    assert_refused(
        &run(&[OsStr::new("info"), OsStr::new("--tree"), empty.as_os_str()]),
        1,
        "topology",
    );
    assert_refused(&run(&["info", "--tree", "/nonexistent"]), 1, "/nonexistent");
    assert_refused(&run(&["info", "--tree", BINARY]), 1, "ENOTDIR");
}

/// A tree of one node without a GPU.
fn tree_of_one_node(name: &str) -> PathBuf {
    let folder = scratch(name);
    fs::create_dir_all(folder.join("nodes/0")).unwrap();
    fs::write(folder.join("nodes/0/properties"), "cpu_cores_count 4\n").unwrap();
    assert_eq!(run_tree(&folder).status.code(), Some(0));
    folder
}

/// Shows a tree; a program that waits for something in it is ended with status 124.
fn run_tree(folder: &Path) -> Output {
    let mut shell = Command::new("/bin/sh");
    shell.env_clear().args(["-c", "exec timeout 60 \"$@\"", "sh", BINARY, "info", "--tree"]);
    shell.arg(folder).stdin(Stdio::null()).output().unwrap()
}

fn make_pipe(path: &Path) {
    let made = Command::new("mkfifo").arg(path).status().unwrap();
    assert!(made.success());
}

#[test]
fn what_is_no_file_is_not_opened() {
    for place in ["nodes/0/properties", "nodes/0/gpu_id", "system_properties", "proc/cpuinfo"] {
        let folder = tree_of_one_node("no-file");
        let path = folder.join(place);
        let _ = fs::remove_file(&path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        make_pipe(&path);
        let expected = format!("read {}: this is a named pipe", path.display());
        assert_refused(&run_tree(&folder), 1, &expected);
        // The link to a pipe is no better, that to a file is one.
        let pipe = folder.join("pipe");
        fs::rename(&path, &pipe).unwrap();
        symlink(&pipe, &path).unwrap();
        assert_refused(&run_tree(&folder), 1, &expected);
    }
    let folder = tree_of_one_node("no-file");
    let properties = folder.join("nodes/0/properties");
    fs::rename(&properties, folder.join("elsewhere")).unwrap();
    symlink(folder.join("elsewhere"), &properties).unwrap();
    let output = run_tree(&folder);
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    fs::remove_file(&properties).unwrap();
    symlink("/dev/zero", &properties).unwrap();
    assert_refused(&run_tree(&folder), 1, "this is a character device");
}

#[test]
fn a_list_of_nodes_that_is_none_says_why() {
    let folder = scratch("no-nodes");
    let nodes = folder.join("nodes");
    fs::create_dir_all(nodes.join("of-nothing")).unwrap();
    let expected = format!("list {}: no node is in this folder", nodes.display());
    assert_refused(&run_tree(&folder), 1, &expected);
    // One more than there can be; links are made faster than folders.
    for number in 0..=1 << 16 {
        symlink("of-nothing", nodes.join(number.to_string())).unwrap();
    }
    assert_refused(&run_tree(&folder), 1, "more numbered entries than a topology has nodes");
    fs::remove_dir_all(&nodes).unwrap();
    symlink("nodes", &nodes).unwrap();
    assert_refused(&run_tree(&folder), 1, &format!("list {}: ELOOP\n", nodes.display()));
    fs::remove_file(&nodes).unwrap();
    fs::write(&nodes, "").unwrap();
    assert_refused(&run_tree(&folder), 1, &format!("{}: ENOTDIR", nodes.display()));
}

#[test]
fn output_that_cannot_be_written_is_status_1() {
    // Nobody reads: neither SIGPIPE nor success.
    let (ours, theirs) = UnixStream::pair().unwrap();
    drop(theirs);
    let output = program()
        .args(["info", "--sim", "cpu-only"])
        .stdout(Stdio::from(std::os::fd::OwnedFd::from(ours)))
        .stderr(Stdio::piped())
        .output()
        .unwrap();
    assert_eq!(output.status.signal(), None, "{output:?}");
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert_eq!(text(&output.stderr), "", "whoever closed the pipe needs no message");

    let full = File::options().write(true).open("/dev/full").unwrap();
    let output = program().arg("--help").stdout(full).stderr(Stdio::piped()).output().unwrap();
    assert_refused(&output, 1, "ENOSPC");
}

#[test]
fn a_stream_that_does_not_block_loses_nothing() {
    let arguments = ["info", "--sim", "mi300x:cpx,cores=1", "--json"];
    let whole = run(&arguments).stdout;
    // More than a socket takes at once.
    assert!(whole.len() > 256 << 10, "{}", whole.len());
    let (mut ours, theirs) = UnixStream::pair().unwrap();
    theirs.set_nonblocking(true).unwrap();
    let mut child =
        program().args(arguments).stdout(std::os::fd::OwnedFd::from(theirs)).spawn().unwrap();
    let mut got = Vec::new();
    ours.read_to_end(&mut got).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
    assert!(got == whole, "{} of {} bytes", got.len(), whole.len());
}

#[test]
fn closed_descriptors_are_survived() {
    let shell = |script: &str| {
        Command::new("/bin/sh")
            .env_clear()
            .args(["-c", script, "sh", BINARY])
            .stdin(Stdio::null())
            .output()
            .unwrap()
    };
    for machine in ["--sim cpu-only", "--sim mi300x", "--tree /"] {
        let output = shell(&format!("exec \"$1\" info {machine} >&-"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
        let output = shell(&format!("exec \"$1\" info {machine} <&- >&- 2>&-"));
        assert_eq!(output.status.code(), Some(1), "{output:?}");
    }
    assert_refused(&shell("exec \"$1\" info --sim cpu-only >&-"), 1, "EBADF");
}

#[test]
fn it_runs_where_nothing_else_is() {
    let root = scratch("root");
    fs::copy(BINARY, root.join("kfd-validate")).unwrap();
    let inside = |arguments: &[&str]| {
        let root = root.clone();
        let mut command = Command::new("/kfd-validate");
        command.args(arguments).env_clear().stdin(Stdio::null());
        // SAFETY: between fork and exec only two system calls are made.
        unsafe {
            command.pre_exec(move || {
                std::os::unix::fs::chroot(&root)?;
                std::env::set_current_dir("/")
            });
        }
        command.output()
    };
    match inside(&["info"]) {
        Ok(output) => {
            assert_eq!(output.status.code(), Some(0), "{output:?}");
            let first = text(&output.stdout).lines().next().unwrap();
            assert_eq!(first, "simulated machine mi300x (there is no /dev/kfd here)");
        }
        Err(error) if error.kind() == std::io::ErrorKind::PermissionDenied => {
            eprintln!("skipped: chroot needs root");
            return;
        }
        Err(error) => panic!("{error}"),
    }
    assert_refused(&inside(&["info", "--real"]).unwrap(), 3, "ENOENT");
    assert_refused(&inside(&["info", "--real", "--discover"]).unwrap(), 3, "ENOENT");
}
