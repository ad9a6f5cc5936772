//! Open, count, close, reopen: what stays, what goes, what is answered.

use hsakmt_conformance::{Mode, held, life, machine, machine_under, open, process};
use hsakmt_core::context::{GpuSelection, Options, Version};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Operation, Status};
use hsakmt_core::process::{ContextHandle, Opening};
use hsakmt_core::seam::DeviceNode;
use kfd_sim::{Kernel, KernelProfile, Machine, Profile};

#[test]
fn openings_are_counted() {
    let machine = machine("cpu-only");
    let process = process(&machine);
    assert_eq!(process.close_primary().unwrap_err().status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
    assert_eq!(open(&process).unwrap(), Opening::First);
    assert_eq!(open(&process).unwrap(), Opening::Again);
    process.close_primary().unwrap();
    assert_eq!(process.primary().unwrap().version(), Version { major: 1, minor: 17 });
    process.close_primary().unwrap();
    let refused = process.primary().err().unwrap();
    assert_eq!(refused.status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
    assert!(process.close_primary().is_err());
    machine.assert_no_violations();
}

#[test]
fn options_are_asked_by_the_first_opening_only() {
    let machine = machine("cpu-only");
    let process = process(&machine);
    open(&process).unwrap();
    process.open_primary(|| panic!("asked again")).unwrap();
}

#[test]
fn a_life_leaves_what_belongs_to_the_process_and_nothing_else() {
    for mode in Mode::ALL {
        let machine = machine_under("rx7900:gpus=2", Kernel::V7_2);
        let process = process(&machine);
        life(&process, mode).unwrap();
        let after_the_first = held(&machine);
        for _ in 0..100 {
            life(&process, mode).unwrap();
        }
        assert_eq!(held(&machine), after_the_first, "{mode:?}");
        machine.assert_no_violations();
    }
}

#[test]
fn five_hundred_cycles_fit_sixty_four_descriptors() {
    for profile in ["cpu-only", "rx7900:gpus=2"] {
        let machine = machine(profile);
        let process = process(&machine);
        let seen = process.platform().process();
        seen.set_descriptor_limit(64);
        life(&process, Mode::Primary).unwrap();
        let after_the_first = seen.descriptors();
        for cycle in 0..500 {
            life(&process, Mode::Primary).unwrap();
            assert_eq!(seen.descriptors(), after_the_first, "{profile}, cycle {cycle}");
        }
        machine.assert_no_violations();
    }
}

#[test]
fn the_bound_render_files_are_used_again() {
    let machine = machine("mi300x:gpus=2");
    let process = process(&machine);
    life(&process, Mode::Primary).unwrap();
    let opens = machine.opens("/dev/");
    life(&process, Mode::Primary).unwrap();
    assert_eq!(machine.opens("/dev/"), opens);
    machine.assert_no_violations();
}

#[test]
fn an_unchanged_machine_is_not_read_again() {
    let machine = machine("mi300x");
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let opens = machine.opens("/");
    guard.acquire_machine().unwrap();
    // generation_id, and nothing else
    assert_eq!(machine.opens("/"), opens + 1);
    for _ in 0..1000 {
        guard.machine(|machine| machine.node(3).map(|node| node.gpu_id)).unwrap();
    }
    assert_eq!(machine.opens("/"), opens + 1);
}

#[test]
fn only_the_wanted_gpus_are_opened() {
    let machine = machine("mi300x");
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let (gpu_id, minor) = guard
        .machine(|machine| {
            let gpu = machine.snapshot().nodes().iter().rfind(|node| node.is_gpu()).unwrap();
            Ok((gpu.gpu_id, gpu.drm_render_minor))
        })
        .unwrap();
    drop(guard);

    let process = hsakmt_conformance::process(&machine);
    let gpus = GpuSelection::Only(vec![gpu_id]);
    process.open_primary(|| Ok(Options { gpus, ..Options::default() })).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let gpus = guard
        .machine(|machine| Ok(machine.snapshot().nodes().iter().filter(|n| n.is_gpu()).count()))
        .unwrap();
    assert_eq!(gpus, 1);
    let opened: Vec<_> =
        process.platform().process().descriptors().into_iter().map(|(_, node)| node).collect();
    assert_eq!(opened, [Some(DeviceNode::Kfd), Some(DeviceNode::Render(minor))]);
    machine.assert_no_violations();
}

/// B11: every errno of an open keeps the status that callers know, and the
/// detail says exactly what happened.
#[test]
fn a_refused_open_says_why() {
    let errnos = [
        Errno::EPERM,
        Errno::ENOENT,
        Errno::EIO,
        Errno::ENXIO,
        Errno::ENOMEM,
        Errno::EACCES,
        Errno::EFAULT,
        Errno::EBUSY,
        Errno::ENODEV,
        Errno::EINVAL,
        Errno::ENFILE,
        Errno::EMFILE,
    ];
    for errno in errnos {
        let machine = machine("mi300x:gpus=1");
        machine.set_open_error(DeviceNode::Kfd, Some(errno));
        let process = process(&machine);
        let error = open(&process).unwrap_err();
        let status = match errno {
            Errno::ENOMEM => Status::NO_MEMORY,
            _ => Status::KERNEL_IO_CHANNEL_NOT_OPENED,
        };
        assert_eq!(error.status, status, "{errno}");
        assert_eq!(error.errno, Some(errno));
        assert_eq!(error.operation, Operation::OpenDevice);
        assert_eq!(error.object, Object::Device(DeviceNode::Kfd));
        assert!(error.advice().is_some(), "{errno}");

        machine.set_open_error(DeviceNode::Kfd, None);
        open(&process).unwrap();
    }
}

#[test]
fn a_refused_render_node_says_why_or_hides_its_gpu() {
    let errnos = [
        Errno::EPERM,
        Errno::ENOENT,
        Errno::EACCES,
        Errno::ENODEV,
        Errno::EHWPOISON,
        Errno::EMFILE,
    ];
    for errno in errnos {
        let machine = machine("mi300x:gpus=2");
        let process = process(&machine);
        open(&process).unwrap();
        let minor = machine.topology().gpus().next().unwrap().1.render_minor();
        machine.set_open_error(DeviceNode::Render(minor), Some(errno));
        let guard = process.primary().unwrap();
        match (guard.acquire_machine(), errno) {
            (Ok(()), Errno::EPERM | Errno::ENOENT) => {
                let gpus = guard.machine(|machine| {
                    Ok(machine.snapshot().nodes().iter().filter(|node| node.is_gpu()).count())
                });
                assert_eq!(gpus.unwrap(), 1, "{errno}");
            }
            (Err(error), Errno::EACCES | Errno::ENODEV | Errno::EHWPOISON | Errno::EMFILE) => {
                assert_eq!(error.errno, Some(errno));
                assert_eq!(error.object, Object::Device(DeviceNode::Render(minor)));
                assert_eq!(error.status, Status::ERROR);
                assert!(error.advice().is_some(), "{errno}");
            }
            (result, _) => panic!("{errno}: {result:?}"),
        }
    }
}

/// B02: a secondary context on a kernel that refuses it.
#[test]
fn a_refused_secondary_context_leaves_nothing() {
    let machine = machine_under("mi300x:gpus=1", Kernel::V6_12);
    let process = process(&machine);
    let error = process.open_secondary(Options::default()).unwrap_err();
    assert_eq!(error.status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
    open(&process).unwrap();
    let before = held(&machine);
    let error = process.open_secondary(Options::default()).unwrap_err();
    assert_eq!((error.status, error.errno), (Status::NOT_SUPPORTED, Some(Errno::ENOTTY)));
    assert_eq!(held(&machine), before);
    machine.assert_no_violations();
}

#[test]
fn sixteen_contexts_and_stale_handles() {
    let machine = machine_under("mi300x:gpus=1", Kernel::V7_2);
    let process = process(&machine);
    open(&process).unwrap();
    let before = held(&machine);
    let handles: Vec<ContextHandle> =
        (0..15).map(|_| process.open_secondary(Options::default()).unwrap()).collect();
    let error = process.open_secondary(Options::default()).unwrap_err();
    assert_eq!(error.status, Status::OUT_OF_RESOURCES);
    for &handle in &handles {
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
    }
    for &handle in &handles {
        process.close_secondary(handle).unwrap();
        assert_eq!(process.close_secondary(handle).unwrap_err().status, Status::INVALID_PARAMETER);
        assert_eq!(process.enter(handle).err().unwrap().status, Status::INVALID_PARAMETER);
    }
    let again = process.open_secondary(Options::default()).unwrap();
    assert!(!handles.contains(&again));
    process.close_secondary(again).unwrap();
    assert_eq!(
        process.close_secondary(ContextHandle::PRIMARY).unwrap_err().status,
        Status::INVALID_PARAMETER
    );
    assert_eq!(held(&machine), before);
    machine.assert_no_violations();
}

/// B05: another user of KFD in the process has bound the GPU.
#[test]
fn a_foreign_binding_is_named() {
    let machine = machine("mi300x:gpus=1");
    let first = process(&machine);
    life(&first, Mode::Primary).unwrap();
    // A second copy of the library in the same process: its own state, the same kernel object.
    let second = hsakmt_core::process::Process::new(first.platform());
    open(&second).unwrap();
    let error = second.primary().unwrap().acquire_machine().unwrap_err();
    assert_eq!(error.errno, Some(Errno::EBUSY));
    assert!(error.advice().unwrap().to_str().unwrap().contains("another user of KFD"));
}

/// B13: every minor from the oldest to ones that nobody knows yet.
#[test]
fn any_minor_version_opens() {
    for minor in 0..=28 {
        let kernel = KernelProfile::debian(Kernel::V6_12).with_kfd_minor(minor);
        let profile = Profile::parse_on(kernel, "mi300x:gpus=1").unwrap();
        let machine = Machine::new(&profile);
        let process = process(&machine);
        life(&process, Mode::Primary).unwrap();
        open(&process).unwrap();
        assert_eq!(process.primary().unwrap().version().minor, minor);
        machine.assert_no_violations();
    }
}

#[test]
fn tiling_and_clocks_of_every_kind_of_node() {
    let machine = machine("rx7900:gpus=1");
    let process = process(&machine);
    open(&process).unwrap();
    let guard = process.primary().unwrap();
    assert_eq!(guard.tile_config(1, 4, 4).unwrap_err().status, Status::INVALID_NODE_UNIT);
    guard.acquire_machine().unwrap();
    assert_eq!(guard.tile_config(0, 4, 4).unwrap_err().status, Status::INVALID_NODE_UNIT);
    assert_eq!(guard.tile_config(2, 4, 4).unwrap_err().status, Status::INVALID_NODE_UNIT);
    let config = guard.tile_config(1, 4, u32::MAX).unwrap();
    assert_eq!((config.tile_modes_used, config.macro_tile_modes_used), (4, 16));
    assert_ne!(config.gb_addr_config, 0);
    assert_eq!(guard.clock_counters(0).unwrap().gpu, 0);
    let (first, second) = (guard.clock_counters(1).unwrap(), guard.clock_counters(1).unwrap());
    assert!(first.gpu != 0 && first.gpu <= second.gpu && first.cpu <= second.cpu);
    assert_eq!(guard.clock_counters(2).unwrap_err().status, Status::INVALID_NODE_UNIT);
    machine.assert_no_violations();
}

/// What an acquire found is looked at before another thread can release it.
#[test]
fn an_acquire_does_not_lose_its_machine_to_a_release() {
    let machine = machine("cpu-only");
    let process = process(&machine);
    open(&process).unwrap();
    std::thread::scope(|scope| {
        let threads: Vec<_> = (0..4)
            .map(|thread| {
                let process = &process;
                scope.spawn(move || {
                    for _ in 0..200 {
                        let guard = process.primary().unwrap();
                        if thread % 2 == 0 {
                            guard.release_machine().unwrap();
                        } else {
                            let nodes = guard
                                .acquire_and_look(|machine| Ok(machine.snapshot().nodes().len()));
                            assert_eq!(nodes.unwrap(), 1);
                        }
                    }
                })
            })
            .collect();
        for thread in threads {
            thread.join().unwrap();
        }
    });
}

#[test]
fn failures_are_numbered_over_opens_and_stay() {
    let machine = machine("cpu-only");
    let process = process(&machine);
    let mut before = 0;
    for _ in 0..3 {
        let error = process.close_primary().unwrap_err();
        process.record(None, &error);
        let failure = process.newest_failure(None).unwrap();
        assert!(failure.error == error && failure.sequence > before);
        before = failure.sequence;
        open(&process).unwrap();
        assert_eq!(process.newest_failure(None).unwrap().sequence, before);
        process.close_primary().unwrap();
    }
}
