//! What the program shows: of simulated machines, of a small tree, of captures.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use serde_json::Value;

#[path = "../src/golden.rs"]
mod golden;

use golden::assert_golden;

/// Columns of the terminal that tables keep to.
const WIDTH: usize = 100;

fn show<S: AsRef<OsStr>>(arguments: &[S]) -> String {
    let output = Command::new(env!("CARGO_BIN_EXE_kfd-validate"))
        .arg("info")
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap();
    assert_eq!(output.status.code(), Some(0), "{output:?}");
    assert!(output.stderr.is_empty(), "{output:?}");
    String::from_utf8(output.stdout).unwrap()
}

/// The text of a machine, checked for what every text must keep to.
fn show_text<S: AsRef<OsStr>>(arguments: &[S], first_line: &str) -> String {
    let text = show(arguments);
    assert_eq!(text.lines().next(), Some(first_line));
    for line in text.lines().skip(1) {
        assert!(line.chars().count() <= WIDTH, "{line}");
        assert!(!line.chars().any(char::is_control), "{line:?}");
        assert_eq!(line.trim_end(), line);
    }
    text
}

/// The JSON of a machine, checked likewise.
fn show_json(arguments: &[&OsStr], first_line: &str) -> Value {
    let arguments: Vec<&OsStr> = arguments.iter().copied().chain([OsStr::new("--json")]).collect();
    let text = show(&arguments);
    let value: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(value["machine"], Value::from(first_line));
    assert!(text.lines().next().unwrap().starts_with("{ \"machine\": "), "{text}");
    value
}

fn nodes(value: &Value) -> &[Value] {
    value["nodes"].as_array().unwrap()
}

#[test]
fn simulated_machines() {
    for (profile, count, file) in [
        ("mi300x", 10, "sim/mi300x"),
        ("mi300x:cpx", 66, "sim/mi300x_cpx"),
        ("apu", 2, "sim/apu"),
        ("cpu-only", 1, "sim/cpu-only"),
        ("rx7900", 2, "sim/rx7900"),
    ] {
        let first = format!("simulated machine {profile}");
        let arguments = ["--sim", profile].map(OsStr::new);
        assert_golden(&format!("{file}.txt"), &show_text(&arguments, &first));
        let value = show_json(&arguments, &first);
        assert_eq!(nodes(&value).len(), count, "{profile}");
        assert_eq!(value["driver"]["major"], 1, "{profile}");
        assert_eq!(value["source"]["name"], profile);
    }
    assert_golden("sim/cpu-only.json", &show(&["--sim", "cpu-only", "--json"]));
}

#[test]
fn discovery_shows_the_same_nodes_without_a_driver() {
    for profile in ["mi300x:cpx,gpus=2", "mi210x8", "rx6800", "apu"] {
        let first = format!("simulated machine {profile}");
        let opened = show_json(&["--sim", profile].map(OsStr::new), &first);
        let discovered = show_json(&["--sim", profile, "--discover"].map(OsStr::new), &first);
        assert_eq!(discovered["driver"], Value::Null);
        assert_eq!(nodes(&opened).len(), nodes(&discovered).len());
        for (opened, discovered) in nodes(&opened).iter().zip(nodes(&discovered)) {
            for key in ["gpu_id", "gfx_version", "simd_count", "io_links", "caches"] {
                assert_eq!(opened[key], discovered[key], "{profile} {key}");
            }
        }
    }
}

/// Where the small tree of the repository is.
fn small_tree() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/tree")
}

/// The output with `TREE` for the folder, which depends on the checkout.
fn without_folder(text: &str, folder: &Path) -> String {
    text.replace(folder.to_str().unwrap(), "TREE")
}

#[test]
fn a_small_tree() {
    let tree = small_tree();
    let arguments = [OsStr::new("--tree"), tree.as_os_str()];
    let first = format!("captured tree {}", tree.display());
    assert_golden("tree.txt", &without_folder(&show_text(&arguments, &first), &tree));
    let json = show(&[OsStr::new("--json"), OsStr::new("--tree"), tree.as_os_str()]);
    assert_golden("tree.json", &without_folder(&json, &tree));
    compare_with_files(
        &show_json(&arguments, &first),
        &tree.join("sys/devices/virtual/kfd/kfd/topology"),
    );
}

#[test]
fn a_tree_is_found_in_the_folders_around_it() {
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("around");
    let _ = fs::remove_dir_all(&scratch);
    let topology = small_tree().join("sys/devices/virtual/kfd/kfd/topology");
    for place in ["", "topology", "sys/class/kfd/kfd/topology"] {
        let folder = scratch.join(place.replace('/', "-")).join("folder");
        let link = folder.join(place);
        fs::create_dir_all(link.parent().unwrap()).unwrap();
        let link = if place.is_empty() { folder.clone() } else { link };
        std::os::unix::fs::symlink(&topology, &link).unwrap();
        let first = format!("captured tree {}", folder.display());
        let text = show_text(&[OsStr::new("--tree"), folder.as_os_str()], &first);
        assert!(text.contains("3 nodes: 1 CPU, 2 GPU"), "{text}");
        // Without a /proc/cpuinfo of its own the tree has no names of CPUs, and
        // this machine's are none of its business.
        let value = show_json(&[OsStr::new("--tree"), folder.as_os_str()], &first);
        assert_eq!(nodes(&value)[0]["marketing_name"], "");
    }
}

/// The numbers of a file of `key number` lines.
fn properties(path: &Path) -> BTreeMap<String, u64> {
    let text = fs::read_to_string(path).unwrap();
    let lines = text.lines().filter_map(|line| {
        let (key, value) = line.split_once(' ')?;
        Some((key.to_string(), value.parse().ok()?))
    });
    lines.collect()
}

fn folders(path: &Path) -> Vec<PathBuf> {
    let Ok(entries) = fs::read_dir(path) else { return Vec::new() };
    entries.map(|entry| entry.unwrap().path()).collect()
}

/// Asserts that `value` has what the files of a topology without hidden nodes
/// say, read once more and in another way.
fn compare_with_files(value: &Value, topology: &Path) {
    let shown = nodes(value);
    assert_eq!(value["hidden"].as_array().unwrap().len(), 0);
    for node in shown {
        let folder = topology.join("nodes").join(node["sysfs_node"].to_string());
        let mut compared = 0;
        for (key, number) in properties(&folder.join("properties")) {
            match key.as_str() {
                // These count what is listed.
                "mem_banks_count" | "caches_count" | "io_links_count" | "p2p_links_count" => {}
                // The kernels of old had no such key; a GPU has one at least.
                "num_xcc" => assert_eq!(node[&key], number.max(1)),
                _ => assert_eq!(node[&key], number, "{key} of {}", folder.display()),
            }
            compared += 1;
        }
        assert!(compared > 20, "{}", folder.display());
        let by_target = |links: &[PathBuf]| -> BTreeMap<u64, BTreeMap<String, u64>> {
            let links = links.iter().map(|link| properties(&link.join("properties")));
            links.map(|link| (link["node_to"], link)).collect()
        };
        let mut files = folders(&folder.join("io_links"));
        files.extend(folders(&folder.join("p2p_links")));
        for (target, link) in by_target(&files) {
            // A capture may have lost the node that a link leads to.
            let Some(to) = shown.iter().position(|node| node["sysfs_node"] == target) else {
                continue;
            };
            let listed = node["io_links"].as_array().unwrap();
            let found = listed.iter().find(|link| link["node_to"] == to).unwrap();
            for (key, number) in link.iter().filter(|(key, _)| !key.starts_with("node_")) {
                assert_eq!(found[key], *number, "{key} of a link of {}", folder.display());
            }
        }
        for (kind, list) in [("mem_banks", "mem_banks"), ("caches", "caches")] {
            for file in folders(&folder.join(kind)) {
                let place: usize = file.file_name().unwrap().to_str().unwrap().parse().unwrap();
                for (key, number) in properties(&file.join("properties")) {
                    assert_eq!(node[list][place][&key], number, "{key} of {}", file.display());
                }
            }
        }
    }
}

/// The folder with captures of machines, if it is beside the repository.
fn captures() -> Option<PathBuf> {
    let repository = Path::new(env!("CARGO_MANIFEST_DIR"));
    repository
        .ancestors()
        .map(|folder| folder.join("shared/captures"))
        .find(|folder| folder.is_dir())
}

#[test]
fn captures_of_machines() {
    let Some(captures) = captures() else {
        eprintln!("skipped: there is no folder of captures");
        return;
    };
    let scratch = Path::new(env!("CARGO_TARGET_TMPDIR")).join("captures");
    let _ = fs::remove_dir_all(&scratch);
    for (capture, trees) in [
        ("mi210-8gpu", &[("", "10 nodes: 2 CPU, 8 GPU")][..]),
        ("mi300x-cpx-64gpu", &[("", "65 nodes: 2 CPU, 63 GPU")]),
        (
            "cpu-only-real-driver",
            &[
                ("bookworm-numa1", "1 node: 1 CPU"),
                ("bookworm-numa2", "2 nodes: 2 CPU"),
                ("trixie-numa1", "1 node: 1 CPU"),
                ("trixie-numa2", "2 nodes: 2 CPU"),
                ("sid-numa1", "1 node: 1 CPU"),
                ("sid-numa2", "2 nodes: 2 CPU"),
            ],
        ),
    ] {
        let folder = scratch.join(capture);
        fs::create_dir_all(&folder).unwrap();
        let archive = captures.join(format!("{capture}.tar.xz"));
        let unpacked = Command::new("tar").arg("xf").arg(&archive).arg("-C").arg(&folder).status();
        if !unpacked.is_ok_and(|status| status.success()) {
            eprintln!("skipped: {} cannot be unpacked", archive.display());
            continue;
        }
        for (place, summary) in trees {
            let folder = if place.is_empty() { folder.clone() } else { folder.join(place) };
            let first = format!("captured tree {}", folder.display());
            let arguments = [OsStr::new("--tree"), folder.as_os_str()];
            let text = show_text(&arguments, &first);
            assert!(text.lines().nth(1).unwrap().starts_with(summary), "{text}");
            let value = show_json(&arguments, &first);
            let topology = folder.join("topology");
            let topology = if topology.is_dir() { topology } else { folder };
            compare_with_files(&value, &topology);
        }
    }
}
