//! Topologies that change while they are read.

use std::cell::Cell;

use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Operation, Status, SysfsFile};
use hsakmt_core::topology::{HiddenBecause, Settings, Unopened, read_generation, read_snapshot};
use hsakmt_topology_tests::{Answer, NodeSpec, SETTINGS, Tree, TreeOs};

fn machine() -> Tree {
    Tree::new(&[NodeSpec::cpu(2, 0), NodeSpec::gpu(111, 128), NodeSpec::gpu(222, 129)])
}

fn number(number: u64) -> Option<Answer> {
    Some(Answer::Content(format!("{number}\n").into_bytes()))
}

const GENERATION: &str = "/topology/generation_id";

#[test]
fn x3_a_generation_that_never_stands_still() {
    let os = TreeOs::new(machine()).with_hook(|path, earlier| {
        if path == GENERATION { number(u64::from(earlier)) } else { None }
    });
    let known = read_snapshot(&TreeOs::new(machine()), &SETTINGS, &mut Unopened).expect("before");
    let error = read_snapshot(&os, &SETTINGS, &mut Unopened).expect_err("given up");
    assert_eq!(
        (error.status, error.operation, error.object, error.errno),
        (
            Status::ERROR,
            Operation::FollowTopology,
            Object::Topology(SysfsFile::Generation, 0, 0),
            None
        )
    );
    assert!(error.advice().is_some_and(|advice| !advice.is_empty()));
    assert_eq!(os.reads()["/topology/system_properties"], SETTINGS.walks);
    assert_eq!(os.reads()[GENERATION], SETTINGS.walks + 1);
    assert!(os.slept() < 1_000_000_000);
    assert_eq!(known.nodes().len(), 3, "what was known stays known");
    for walks in [0, 1, 3] {
        os.forget_counts();
        let settings = Settings { walks, ..SETTINGS };
        assert!(read_snapshot(&os, &settings, &mut Unopened).is_err());
        assert_eq!(os.reads()["/topology/system_properties"], walks.max(1));
    }
}

#[test]
fn a_change_during_a_walk_costs_one_more() {
    let os = TreeOs::new(machine()).with_hook(|path, earlier| match path {
        GENERATION if earlier == 0 => number(6),
        _ => None,
    });
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.generation(), 7);
    assert!(snapshot.settled());
    assert!(os.reads().iter().all(|(path, &count)| count == 2 || path == GENERATION));
    assert_eq!(os.reads()[GENERATION], 3);
    assert_eq!(read_generation(&os, &SETTINGS), Ok(7));
}

#[test]
fn a_node_that_vanishes_during_a_walk() {
    for gone in ["/topology/nodes/2/gpu_id", "/topology/nodes/2/properties"] {
        for errno in [Errno::ENOENT, Errno::ENODEV] {
            let os = TreeOs::new(machine()).with_hook(move |path, earlier| {
                (path == gone && earlier == 0).then_some(Answer::Refused(errno))
            });
            let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
            assert_eq!(snapshot.nodes().len(), 3);
            assert!(snapshot.settled());
            assert_eq!(os.reads()["/topology/system_properties"], 2);
        }
    }
}

#[test]
fn a_node_that_stays_away() {
    let os = TreeOs::new(machine()).with_hook(|path, _| {
        path.starts_with("/topology/nodes/1/").then_some(Answer::Refused(Errno::ENOENT))
    });
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.hidden()[0].because, HiddenBecause::Vanished);
    assert_eq!(snapshot.by_gpu_id(222), Some(1));
    assert!(!snapshot.settled());
    assert!(os.reads()["/topology/system_properties"] < 10);
}

#[test]
fn a_gpu_that_is_not_ready_yet() {
    // The kernel fills in the id late and raises no number for it.
    let ready_at = |walk: u32| {
        TreeOs::new(machine()).with_hook(move |path, earlier| {
            if path == "/topology/nodes/2/gpu_id" && earlier < walk { number(0) } else { None }
        })
    };
    let os = ready_at(2);
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.by_gpu_id(222), Some(2));
    assert!(snapshot.settled());
    assert_eq!(os.reads()["/topology/nodes/2/gpu_id"], 3);

    let os = ready_at(1000);
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    assert_eq!(snapshot.hidden()[0].because, HiddenBecause::NotReady);
    assert_eq!(snapshot.by_gpu_id(111), Some(1));
    assert!(!snapshot.settled(), "an equal number proves nothing");
    assert!(os.slept() < 1_000_000_000);
}

#[test]
fn cpus_whose_gpu_is_not_ready() {
    let apu = NodeSpec::gpu(0, 128).with("cpu_cores_count", 8).with("cpu_core_id_base", 0);
    let os = TreeOs::new(Tree::new(&[apu]));
    let snapshot = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("a snapshot");
    let node = &snapshot.nodes()[0];
    assert_eq!((node.cpu_cores_count, node.simd_count, node.is_gpu()), (8, 0, false));
    assert!(!snapshot.settled());
}

#[test]
fn a_gpu_leaves_for_good() {
    // B12: after the loss the tree has one node fewer, and the numbers shift.
    let after = Tree::new(&[NodeSpec::cpu(2, 0), NodeSpec::gpu(222, 129)]);
    let before = read_snapshot(&TreeOs::new(machine()), &SETTINGS, &mut Unopened).expect("before");
    let after = read_snapshot(&TreeOs::new(after), &SETTINGS, &mut Unopened).expect("after");
    assert_eq!((before.by_gpu_id(222), after.by_gpu_id(222)), (Some(2), Some(1)));
    assert_eq!(after.by_gpu_id(111), None);
}

#[test]
fn single_refusals_of_every_file() {
    let whole = TreeOs::new(Tree::of_gpus(2, true));
    let expected = read_snapshot(&whole, &SETTINGS, &mut Unopened).expect("a snapshot");
    let mut paths: Vec<String> = whole.reads().into_keys().collect();
    paths.extend(whole.listed().into_keys());
    let mut failed = 0;
    for path in paths {
        for errno in [
            Errno::EINTR,
            Errno::EAGAIN,
            Errno::ENOMEM,
            Errno::EMFILE,
            Errno::EACCES,
            Errno::ENODEV,
            Errno::EIO,
            Errno::ENOENT,
            Errno::EPERM,
        ] {
            let refused = Cell::new(false);
            let target = path.clone();
            let os = TreeOs::new(Tree::of_gpus(2, true)).with_hook(move |path, _| {
                (path == target && !refused.replace(true)).then_some(Answer::Refused(errno))
            });
            match read_snapshot(&os, &SETTINGS, &mut Unopened) {
                Ok(snapshot) => {
                    assert!(
                        snapshot.nodes().len() >= expected.nodes().len() - 1,
                        "{errno} of {path} hides more than one node"
                    );
                }
                Err(error) => {
                    failed += 1;
                    assert_eq!(error.errno, Some(errno), "{path}: {error}");
                    let memory = error.status == Status::NO_MEMORY;
                    assert_eq!(memory, errno == Errno::ENOMEM, "{path}: {error}");
                }
            }
            let again = read_snapshot(&os, &SETTINGS, &mut Unopened).expect("the next one");
            assert_eq!(again, expected);
        }
    }
    assert!(failed > 50, "only {failed} failures");
}
