//! How many system calls and file reads things may cost.

use std::collections::BTreeMap;

use hsakmt_bench::captured;
use hsakmt_bench::cost::{Cost, file_reads, measure, simulated};
use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Status};
use hsakmt_core::process::Process;
use hsakmt_core::seam::{DeviceNode, OperationKind};
use hsakmt_core::topology::{Settings, Unopened, read_snapshot};
use hsakmt_linux_shim::Linux;
use hsakmt_topology_tests::{Tree, captures, complete};
use kfd_sim::{Machine, Operation, Profile};

/// The capture of a machine in 64 partitions, if it is there.
fn capture_of_64() -> Option<Tree> {
    let (found, _) = captures("mi300x-cpx-64gpu")?;
    let mut tree = found.into_iter().next().expect("a tree").tree;
    complete(&mut tree);
    Some(tree)
}

fn profile(text: &str) -> Profile {
    Profile::parse(text).unwrap_or_else(|error| panic!("{text}: {error}"))
}

fn cost(profile: &Profile, gpus: GpuSelection) -> Cost {
    measure(&simulated(profile), gpus).expect("a machine")
}

/// How often an open and acquire of the library reads each file and lists each
/// folder.
fn reads(profile: &Profile) -> BTreeMap<String, u32> {
    let machine = Machine::new(profile);
    let process = Process::new(machine.spawn(Linux));
    process.open_primary(|| Ok(Options::default())).expect("an open");
    process.primary().expect("a context").acquire_machine().expect("a machine");
    let mut reads = BTreeMap::new();
    for record in machine.take_log() {
        if let Operation::ReadFile(path) | Operation::ListFolder(path) = record.operation {
            *reads.entry(path).or_insert(0) += 1;
        }
    }
    machine.assert_no_violations();
    reads
}

fn assert_bounds(name: &str, profile: &Profile) {
    let reads = reads(profile);
    for (path, &count) in &reads {
        let most = if path.ends_with("/generation_id") { 2 } else { 1 };
        assert!(count <= most, "{name}: {path} was read {count} times");
    }
    let cost = cost(profile, GpuSelection::All);
    for (what, counts) in [("discovery", &cost.discover), ("acquire", &cost.acquire)] {
        let folders = counts.of(OperationKind::ListFolder) * 4;
        let devices = counts.opens() + counts.ioctls();
        let of_files = counts.system_calls() - folders - devices;
        let most = 3 * file_reads(counts) + 3;
        assert!(of_files <= most, "{name}: {what}: {counts}");
    }
    assert_eq!(cost.discover.opens() + cost.discover.ioctls(), 0, "{name}: {}", cost.discover);
    let again = cost.acquire_again;
    assert!(again.system_calls() <= 5, "{name}: {again}");
    assert_eq!(cost.queries.system_calls(), 0, "{name}: {}", cost.queries);
}

#[test]
fn each_file_is_read_once_with_three_calls_and_queries_are_free() {
    for text in ["cpu-only:cores=2", "apu:cores=2", "mi210x8:cores=2", "mi300x:cpx,cores=2"] {
        assert_bounds(text, &profile(text));
    }
}

#[test]
fn the_captured_64_partitions_too() {
    let Some(tree) = capture_of_64() else { return };
    assert_bounds("mi300x-cpx-64gpu", &captured(&tree).expect("a topology"));
}

/// What open and acquire cost together.
fn life(profile: &Profile, gpus: GpuSelection) -> u64 {
    let cost = cost(profile, gpus);
    cost.open.system_calls() + cost.acquire.system_calls()
}

fn gpu_ids(profile: &Profile) -> Vec<u32> {
    profile.topology.gpus().map(|(_, gpu)| gpu.id).collect()
}

/// One GPU of many, against the only GPU of a machine.
fn assert_twice_at_most(name: &str, many: &Profile, only: u32, one: &Profile) {
    assert_eq!(gpu_ids(one).len(), 1, "{name}");
    let of_many = life(many, GpuSelection::Only(vec![only]));
    let of_one = life(one, GpuSelection::All);
    assert!(of_many <= 2 * of_one, "{name}: {of_many} system calls, {of_one} on a machine of one");
}

#[test]
fn one_gpu_of_64_costs_at_most_twice_a_machine_of_one() {
    for cores in [1, 8] {
        let many = profile(&format!("mi300x:cpx,cores={cores}"));
        let one = profile(&format!("mi300x:gpus=1,cores={cores}"));
        let ids = gpu_ids(&many);
        for place in [0, 31, 63] {
            assert_twice_at_most("mi300x:cpx", &many, ids[place], &one);
        }
    }
}

#[test]
fn one_of_the_captured_partitions_costs_at_most_twice_a_machine_of_one() {
    let Some(tree) = capture_of_64() else { return };
    let many = captured(&tree).expect("a topology");
    let gpus: Vec<usize> = many.topology.gpus().map(|(node, _)| node).collect();
    // The machine of one: the CPUs and the first GPU.
    let mut alone = tree;
    for node in &gpus[1..] {
        alone.remove(&format!("/topology/nodes/{node}"));
    }
    let one = captured(&alone).expect("a topology");
    for only in [0, gpus.len() / 2, gpus.len() - 1] {
        assert_twice_at_most("mi300x-cpx-64gpu", &many, gpu_ids(&many)[only], &one);
    }
}

#[test]
fn sixty_four_gpus_open_and_more_are_refused_with_a_reason() {
    let full = profile("mi300x:cpx,cores=1");
    assert_eq!(gpu_ids(&full).len(), 64);
    life(&full, GpuSelection::All);

    // The kernel makes no process object for more (kfd_process.c: MAX_GPU_INSTANCE).
    let over = Machine::new(&profile("mi300x:cpx,gpus=9,cores=1"));
    over.keep_log(false);
    let process = Process::new(over.spawn(Linux));
    let error = process.open_primary(|| Ok(Options::default())).expect_err("72 GPUs");
    assert_eq!((error.status, error.errno), (Status::NO_MEMORY, Some(Errno::ENOMEM)), "{error}");
    assert_eq!(error.object, Object::Device(DeviceNode::Kfd), "{error}");
    assert_eq!(over.opens("/dev/dri/"), 0);
    let discovered = read_snapshot(process.platform(), &Settings::KERNEL, &mut Unopened);
    assert_eq!(discovered.expect("a snapshot").nodes().len(), 2 + 72);

    // Where the device cgroup hides eight of them, the others open.
    for hidden in 0..8 {
        process.platform().process().hide(DeviceNode::Render(128 + 9 * hidden), true);
    }
    process.open_primary(|| Ok(Options::default())).expect("an open");
    let guard = process.primary().expect("a context");
    guard.acquire_machine().expect("a machine");
    let nodes = guard.machine(|machine| Ok(machine.snapshot().nodes().len()));
    assert_eq!(nodes, Ok(2 + 64));
    drop(guard);
    process.close_primary().expect("a close");
    over.assert_no_violations();
}
