//! Generated machines against captured ones.
//!
//! The captures lie in a folder beside the repository, or in the one that
//! HSAKMT_CAPTURES names. Without them the tests say so and pass.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs};

use hsakmt_core::seam::{EndOfFile, Os};
use kfd_sim::{AddressesOnly, Change, Kernel, KernelProfile, Machine, Profile, SimPlatform};

type Files = BTreeMap<String, String>;

/// The files of a captured archive, below `prefix`.
fn capture(name: &str, prefix: &str) -> Option<Files> {
    let beside = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared/captures");
    let folder = env::var_os("HSAKMT_CAPTURES").map_or(beside, PathBuf::from);
    let archive = folder.join(name).with_extension("tar.xz");
    if !archive.is_file() {
        println!(
            "skipped: {} is not there (HSAKMT_CAPTURES names another folder)",
            archive.display()
        );
        return None;
    }
    let into = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    fs::create_dir_all(&into).unwrap();
    let status = Command::new("tar").arg("-xJf").arg(&archive).arg("-C").arg(&into).status();
    if !status.is_ok_and(|status| status.success()) {
        println!("skipped: tar cannot unpack {}", archive.display());
        return None;
    }
    let mut files = Files::new();
    read_folder(&into.join(prefix), "", &mut files);
    Some(files)
}

fn read_folder(folder: &Path, path: &str, files: &mut Files) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let name = entry.file_name().into_string().unwrap();
        let path = if path.is_empty() { name } else { format!("{path}/{name}") };
        if entry.file_type().unwrap().is_dir() {
            read_folder(&entry.path(), &path, files);
        } else {
            files.insert(path, fs::read_to_string(entry.path()).unwrap());
        }
    }
}

fn boot(profile: &Profile) -> SimPlatform<AddressesOnly> {
    Machine::new(profile).spawn(AddressesOnly::new())
}

fn read(sim: &SimPlatform<AddressesOnly>, below: &str) -> String {
    let path = format!("/sys/class/kfd/kfd/topology/{below}\0");
    let path = std::ffi::CStr::from_bytes_with_nul(path.as_bytes()).unwrap();
    let mut bytes = Vec::new();
    sim.read_file(path, &mut bytes, 1 << 20, EndOfFile::ShortRead)
        .unwrap_or_else(|errno| panic!("{below}: {errno}"));
    String::from_utf8(bytes).unwrap()
}

fn lines(text: &str) -> Vec<(&str, &str)> {
    text.lines().map(|line| line.split_once(' ').unwrap_or((line, ""))).collect()
}

fn keys(text: &str) -> Vec<&str> {
    lines(text).into_iter().map(|(key, _)| key).collect()
}

#[test]
fn a_cpu_only_machine_has_the_files_and_keys_of_the_real_driver() {
    for (suite, kernel) in [("bookworm", "6.1"), ("trixie", "6.12")] {
        for sockets in [1, 2] {
            let prefix = format!("{suite}-numa{sockets}/topology");
            let Some(real) = capture("cpu-only-real-driver", &prefix) else { return };
            let text = format!("cpu-only:kernel={kernel},cpus={sockets},cores={}", 2 / sockets);
            let sim = boot(&Profile::parse(&text).unwrap());
            for (path, contents) in &real {
                assert_eq!(keys(&read(&sim, path)), keys(contents), "{text}: {path}");
                if path.ends_with("gpu_id") || path == "generation_id" || path.ends_with("name") {
                    assert_eq!(read(&sim, path), *contents, "{text}: {path}");
                }
            }
            assert_eq!(
                read(&sim, "nodes/0/properties").replace("_ccompute 3700", "_ccompute 0"),
                real["nodes/0/properties"],
                "{text}"
            );
        }
    }
}

/// Keys whose values belong to one particular machine.
const OF_ONE_MACHINE: [&str; 5] =
    ["location_id", "hive_id", "unique_id", "simd_id_base", "max_engine_clk_ccompute"];
/// Keys that came into the kernel after the captures were made.
const NEWER: [&str; 2] = ["cwsr_size", "ctl_stack_size"];

fn assert_same_gpus(real: &Files, text: &str) {
    let sim = boot(&Profile::parse(text).unwrap());
    // A capture may have lost its last GPU.
    let last = sim.machine().topology().nodes.len() - 1;
    if !real.contains_key(&format!("nodes/{last}/properties")) {
        sim.machine().change(Change::RemoveNode(last));
    }
    let mut compared = 0;
    for (path, contents) in real.iter().filter(|(path, _)| path.ends_with("/properties")) {
        // Bandwidths of a bus are measured when it is set up.
        let varies = |key: &str| OF_ONE_MACHINE.contains(&key) || key.ends_with("_bandwidth");
        let made = read(&sim, path);
        let pairs = |text| -> Vec<(String, String)> {
            lines(text)
                .into_iter()
                .filter(|(key, _)| !NEWER.contains(key))
                .map(|(key, value)| {
                    (key.into(), if varies(key) { "varies".into() } else { value.into() })
                })
                .collect()
        };
        assert_eq!(pairs(&made), pairs(contents), "{text}: {path}");
        compared += 1;
    }
    assert!(compared > 50, "only {compared} files were compared");
}

#[test]
fn mi210x8_is_the_captured_machine() {
    let Some(real) = capture("mi210-8gpu", "") else { return };
    assert_same_gpus(&real, "mi210x8:dkms");
}

#[test]
fn mi300x_in_cpx_is_the_captured_machine() {
    let Some(mut real) = capture("mi300x-cpx-64gpu", "") else { return };
    real.retain(|path, _| path.starts_with("nodes/"));
    assert_same_gpus(&real, "mi300x:cpx,dkms");
}

#[test]
fn captured_machines_boot() {
    let kernel = KernelProfile::out_of_tree(Kernel::V6_12);
    for (name, gpus) in [("mi210-8gpu", 8), ("mi300x-cpx-64gpu", 63)] {
        let Some(real) = capture(name, "") else { return };
        let profile = Profile::from_captured(kernel, &real).unwrap();
        assert_eq!(profile.topology.gpus().count(), gpus);
        let sim = boot(&profile);
        for path in real.keys().filter(|path| *path != "generation_id") {
            assert_eq!(read(&sim, path), real[path]);
        }
    }
}
