//! Allocation, mapping, registration, pointers: what a life of each kind leaves,
//! on machines of every shape.

use hsakmt_conformance::{Mode, Simulated, held, machine, open, process};
use hsakmt_core::error::Status;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{Guard, Process};
use kfd_sim::Machine;

const MACHINES: [&str; 8] = [
    "rx7900",
    "rx6800",
    "mi50",
    "mi210x8:gpus=2",
    "mi300x:gpus=2",
    "mi300x:cpx,gpus=8",
    "rx9070",
    "rx7900+apu",
];

/// The public ids of the machine's GPUs.
fn gpus(guard: &Guard<'_, Simulated>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

fn request(node: u32, size: u64, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size, alignment: 0, flags, address: 0 }
}

/// Runs `test` in a context of its own on each machine, and looks whether anything
/// is left behind.
fn on_each(mode: Mode, test: impl Fn(&Guard<'_, Simulated>, &Machine)) {
    for profile in MACHINES {
        if mode == Mode::Secondary && profile.contains("apu") {
            continue;
        }
        let text = if mode == Mode::Secondary {
            format!("{profile}{}", kernel(profile))
        } else {
            profile.to_owned()
        };
        on(&text, mode, &test);
    }
}

/// Secondary contexts need the newest kernel.
fn kernel(profile: &str) -> &'static str {
    if profile.contains(':') { ",kernel=7.2" } else { ":kernel=7.2" }
}

fn on(profile: &str, mode: Mode, test: impl Fn(&Guard<'_, Simulated>, &Machine)) {
    println!("{profile} {mode:?}");
    let machine = machine(profile);
    let process: Process<Simulated> = process(&machine);
    open(&process).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let handle = mode.open(&process).unwrap();
    {
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        // The first life makes the regions that addresses are cut from.
        test(&guard, &machine);
        let before = held(&machine);
        test(&guard, &machine);
        assert_eq!(held(&machine), before, "{profile}");
    }
    mode.close(&process, handle).unwrap();
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

const KINDS: [(&str, MemoryFlags); 9] = [
    ("VRAM", MemoryFlags::NON_PAGED),
    ("coarse VRAM", MemoryFlags::NON_PAGED.union(MemoryFlags::COARSE_GRAIN)),
    ("VRAM for code", MemoryFlags::NON_PAGED.union(MemoryFlags::EXECUTE)),
    ("contiguous VRAM", MemoryFlags::NON_PAGED.union(MemoryFlags::CONTIGUOUS)),
    ("ring in VRAM", MemoryFlags::NON_PAGED.union(MemoryFlags::AQL_QUEUE)),
    ("VRAM without an address", MemoryFlags::NON_PAGED.union(MemoryFlags::NO_ADDRESS)),
    ("paged", MemoryFlags::HOST_ACCESS),
    ("GTT", MemoryFlags::NON_PAGED.union(MemoryFlags::GTT_ACCESS).union(MemoryFlags::HOST_ACCESS)),
    ("addresses", MemoryFlags::ONLY_ADDRESS),
];

#[test]
fn every_kind_lives_and_leaves_nothing() {
    for mode in Mode::ALL {
        on_each(mode, |guard, _| {
            for &node in &gpus(guard) {
                for (name, flags) in KINDS {
                    for size in [4 << 10, 64 << 10, 2 << 20, 6 << 20] {
                        let address = match guard.allocate_memory(&request(node, size, flags)) {
                            Ok(address) => address,
                            Err(error)
                                if error.status == Status::NOT_SUPPORTED
                                    && name == "contiguous VRAM" =>
                            {
                                continue;
                            }
                            Err(error) => panic!("{name}, {size} bytes on node {node}: {error}"),
                        };
                        let mappable = !matches!(name, "addresses" | "VRAM without an address");
                        if mappable {
                            assert_eq!(guard.map_memory_to_nodes(address, size, &[node]), Ok(0));
                            let info = guard.pointer_info(address + size - 1).unwrap();
                            assert_eq!(info.mapped, [node], "{name}");
                            assert_eq!((info.gpu_address, info.size), (address, size));
                            assert_eq!(info.kind, PointerKind::Allocated);
                            guard.unmap_memory(address).unwrap();
                            guard.unmap_memory(address).unwrap();
                        } else {
                            assert_eq!(
                                guard.map_memory(address, size).unwrap_err().status,
                                Status::INVALID_PARAMETER
                            );
                        }
                        assert_eq!(guard.pointer_info(address).unwrap().mapped, []);
                        guard.free_memory(address, size).unwrap();
                        assert_eq!(guard.pointer_info(address).unwrap_err().status, Status::ERROR);
                    }
                }
            }
        });
    }
}

#[test]
fn memory_of_the_caller_is_registered_and_given_back() {
    on_each(Mode::Primary, |guard, _| {
        let memory = vec![0_u8; 3 << 20];
        let at = memory.as_ptr() as u64;
        let flags = MemoryFlags::HOST_ACCESS | MemoryFlags::COARSE_GRAIN;
        for (address, size) in [(at + 100, 1_u64 << 20), (at, 3 << 20), (at + 5000, 64)] {
            guard.register_memory(address, size, flags, None).unwrap();
            guard.register_memory(address, size, flags, None).unwrap();
            guard.map_memory(address, size).unwrap();
            guard.unmap_memory(address).unwrap();
            guard.deregister_memory(address).unwrap();
            guard.map_memory(address, size).unwrap();
            guard.unmap_memory(address).unwrap();
            guard.deregister_memory(address).unwrap();
        }
    });
}

#[test]
fn what_is_left_goes_with_the_context() {
    for mode in Mode::ALL {
        let profile = "mi300x:gpus=2,kernel=7.2";
        let machine = machine(profile);
        let process: Process<Simulated> = process(&machine);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        let before = held(&machine);
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        let memory = vec![0_u8; 1 << 20];
        for (_, flags) in KINDS {
            for node in gpus(&guard) {
                let address = guard.allocate_memory(&request(node, 2 << 20, flags)).unwrap();
                let _ = guard.map_memory(address, 2 << 20);
            }
        }
        if mode == Mode::Primary {
            let flags = MemoryFlags::HOST_ACCESS;
            guard.register_memory(memory.as_ptr() as u64, 1 << 20, flags, None).unwrap();
            guard.map_memory(memory.as_ptr() as u64, 1 << 20).unwrap();
        }
        drop(guard);
        mode.close(&process, handle).unwrap();
        if mode == Mode::Primary {
            // One opening is left.
            process.close_primary().unwrap();
            open(&process).unwrap();
            process.primary().unwrap().acquire_machine().unwrap();
        }
        let mut left = held(&machine);
        // The driver keeps what it knows of pages as long as they are mapped.
        for range in std::mem::take(&mut left.ranges) {
            assert!(range.ends_with("open to 0 GPUs"), "{range}");
        }
        assert_eq!(left, before, "{mode:?}");
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}
