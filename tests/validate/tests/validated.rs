//! Validations of simulated machines, whole and broken, by the program as it ships.

use std::process::{Command, Output, Stdio};

use serde_json::Value;

#[path = "../src/golden.rs"]
mod golden;

use golden::assert_golden;

fn run(arguments: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_kfd-validate"))
        .args(arguments)
        .env_clear()
        .stdin(Stdio::null())
        .output()
        .unwrap()
}

fn text(bytes: &[u8]) -> &str {
    std::str::from_utf8(bytes).unwrap()
}

/// Times and rates are another at each run: digits before their units become `_`.
fn without_times(text: &str) -> String {
    let mut out = String::new();
    for line in text.lines() {
        let mut words: Vec<String> = line.split(' ').map(str::to_owned).collect();
        for at in 1..words.len() {
            if ["s", "GB/s", "MB/s"].contains(&words[at].trim_end_matches([',', ';'])) {
                words[at - 1] = "_".into();
            }
        }
        out.push_str(&words.join(" "));
        out.push('\n');
    }
    out
}

#[track_caller]
fn assert_passes(arguments: &[&str]) -> String {
    let output = run(arguments);
    assert_eq!(output.status.code(), Some(0), "{arguments:?}: {output:?}");
    assert_eq!(text(&output.stderr), "", "{arguments:?}");
    text(&output.stdout).to_owned()
}

#[test]
fn whole_machines_pass() {
    for profile in [
        "mi300x",
        "mi300x:cpx,gpus=1,cus=2",
        "mi210x8:gpus=3",
        "mi210x8:gpus=2,p2p=1",
        "mi50",
        "rx6800:kernel=6.1",
        "rx7900:gpus=2",
        "rx9070:kernel=7.2",
        "apu",
        "cpu-only",
        "mi50+rx7900",
        "mi300x:gpus=2,svm=0",
        "rx7900:bar=256M,vram=1G",
    ] {
        let output = assert_passes(&["--sim", profile]);
        assert_eq!(output.lines().next(), Some(&*format!("simulated machine {profile}")));
        assert!(output.lines().last().unwrap().starts_with("passed: "), "{output}");
    }
}

#[test]
fn text_tap_and_json_keep_their_form() {
    let machine = ["--sim", "mi300x:gpus=2"];
    for profile in ["mi300x:gpus=2", "cpu-only"] {
        let file = format!("validated/{}.txt", profile.replace([':', '='], "_"));
        assert_golden(&file, &without_times(&assert_passes(&["--sim", profile])));
    }
    let tap = assert_passes(&[&machine[..], &["--tap"]].concat());
    assert_golden("validated/mi300x.tap", &without_times(&tap));
    let json = assert_passes(&[&machine[..], &["--json"]].concat());
    let value: Value = serde_json::from_str(&json).unwrap();
    assert_eq!(value["machine"], "simulated machine mi300x:gpus=2");
    assert_eq!(value["source"]["kind"], "simulated");
    assert_eq!(value["driver"]["major"], 1);
    assert_eq!(value["passed"], true);
    for stage in value["stages"].as_array().unwrap() {
        assert_eq!(stage["outcome"], "passed", "{stage}");
        assert_eq!(stage["failures"], Value::Array(Vec::new()));
        assert!(stage["microseconds"].is_u64());
    }
}

#[test]
fn only_what_was_asked_for_is_checked() {
    let output = assert_passes(&["--sim", "mi300x:gpus=4", "--stages", "events", "--quick"]);
    let stages: Vec<&str> =
        output.lines().filter(|line| line.contains(" passed ")).map(|line| &line[..8]).collect();
    assert_eq!(stages, ["open    ", "topology", "events  "]);
    // By node and by id.
    for gpus in ["3", "0x649"] {
        let output = assert_passes(&["--sim", "mi300x:gpus=4", "--quick", "--gpus", gpus]);
        assert!(output.contains("CPU nodes, 1 GPU,"), "{output}");
    }
}

/// What a fault is found by: the stages that fail, and what names the broken part.
struct Found {
    fault: &'static str,
    stages: &'static [&'static str],
    parts: &'static [&'static str],
}

/// On `mi300x:gpus=3`, whose last GPU is node 4.
const FOUND: &[Found] = &[
    Found {
        fault: "no-permission",
        stages: &["open"],
        parts: &["open /dev/kfd: EACCES", "join the group"],
    },
    Found { fault: "vm-busy", stages: &["topology"], parts: &["ACQUIRE_VM gpu_id 0x991e: EBUSY"] },
    Found {
        fault: "vram-short",
        stages: &["memory"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), video memory, half of its 192 GiB", "ENOMEM"],
    },
    Found {
        fault: "map-partial",
        stages: &["memory"],
        parts: &[
            "system memory of the driver",
            "mapped on GPU node 4 (gfx942, gpu_id 0x991e)",
            "ENOMEM",
        ],
    },
    Found {
        fault: "cwsr-size",
        stages: &["queues"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), PM4 queue 0: CREATE_QUEUE", "cwsr_size"],
    },
    Found {
        fault: "link-missing",
        stages: &["topology"],
        parts: &["link from GPU node 4 (gfx942, gpu_id 0x991e) to GPU node 2", "is missing"],
    },
    Found {
        fault: "events-exhausted",
        stages: &["events"],
        parts: &["events: 7 of 128 and no more: CREATE_EVENT: ENOSPC"],
    },
    Found {
        fault: "wrong-data",
        stages: &["copy"],
        parts: &["copy from GPU node 4 (gfx942, gpu_id 0x991e): wrong data"],
    },
    Found {
        fault: "stuck-engine",
        stages: &["queues"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), copy engine 0: submit packets"],
    },
    Found {
        fault: "lost-interrupt",
        stages: &["queues"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), PM4 queue 0: interrupt lost"],
    },
    Found {
        fault: "memory-fault",
        stages: &["copy"],
        parts: &["copy to GPU node 4 (gfx942, gpu_id 0x991e): submit packets address 0x"],
    },
    Found {
        fault: "doorbell-dead",
        stages: &["queues", "copy"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), PM4 queue 0: submit packets"],
    },
    Found {
        fault: "reset-midway",
        stages: &["queues"],
        parts: &["GPU node 4 (gfx942, gpu_id 0x991e), copy engine 0", "the GPU was reset"],
    },
    Found {
        fault: "slow-copy",
        stages: &["copy"],
        parts: &["copy to GPU node 4 (gfx942, gpu_id 0x991e): slow: "],
    },
];

#[test]
fn every_fault_is_found_and_the_broken_part_named() {
    for Found { fault, stages, parts } in FOUND {
        let profile = format!("mi300x:gpus=3,fault={fault}");
        let output = run(&["--sim", &profile, "--json"]);
        assert_eq!(output.status.code(), Some(1), "{fault}: {output:?}");
        assert_eq!(text(&output.stderr), "", "{fault}");
        let value: Value = serde_json::from_slice(&output.stdout).unwrap();
        assert_eq!(value["passed"], false);
        let named: Vec<&str> = stages_of(&value, "failed");
        for stage in *stages {
            assert!(named.contains(stage), "{fault}: {named:?}");
        }
        let all = value["stages"].as_array().unwrap();
        let reasons: Vec<&str> = all
            .iter()
            .flat_map(|stage| stage["failures"].as_array().unwrap())
            .map(|reason| reason.as_str().unwrap())
            .collect();
        let named = reasons.iter().any(|reason| parts.iter().all(|part| reason.contains(part)));
        assert!(named, "{fault}: {reasons:#?}");
    }
    let output = run(&["--sim", "mi300x:gpus=2,fault=vm-busy", "--tap"]);
    assert_eq!(output.status.code(), Some(1), "{output:?}");
    assert!(text(&output.stdout).contains("\nnot ok "), "{output:?}");
    assert_passes(&["--sim", "mi300x:gpus=3"]);
}

fn stages_of<'a>(value: &'a Value, outcome: &str) -> Vec<&'a str> {
    let stages = value["stages"].as_array().unwrap();
    stages
        .iter()
        .filter(|stage| stage["outcome"] == outcome)
        .map(|stage| stage["stage"].as_str().unwrap())
        .collect()
}

#[test]
fn every_fault_has_a_test() {
    for defect in kfd_sim::Defect::all() {
        let name = defect.name();
        let known = FOUND.iter().any(|found| found.fault == name);
        assert!(known, "{name}");
    }
}

#[test]
fn a_foundation_that_fails_skips_what_stands_on_it() {
    let output = run(&["--sim", "mi300x:gpus=2,fault=vm-busy", "--json"]);
    let value: Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(stages_of(&value, "passed"), ["open", "version"]);
    assert_eq!(value["stages"][3]["summary"], "stage topology failed");
}
