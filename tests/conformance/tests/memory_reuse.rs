//! Addresses that a free gives back to the system may be another allocation's before
//! the free has returned.

mod watched;

use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use hsakmt_conformance::machine;
use hsakmt_core::context::Options;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Process;
use hsakmt_linux_shim::Linux;
use watched::{Watch, Watched};

/// From here on an allocation has a mapping of its own.
const SIZE: u64 = 1 << 30;

/// Allocates as soon as the addresses of another allocation went back.
#[derive(Default)]
struct Refill {
    armed: AtomicBool,
    process: std::sync::OnceLock<&'static Process<Watched<Refill>>>,
    address: AtomicU64,
}

fn allocate(process: &Process<Watched<Refill>>) -> u64 {
    let guard = process.primary().unwrap();
    let gpu = guard.machine(|machine| {
        let nodes = machine.snapshot().nodes();
        Ok(nodes.iter().position(|node| node.is_gpu()).unwrap() as u32)
    });
    let flags = MemoryFlags::NON_PAGED;
    let request =
        AllocationRequest { node: gpu.unwrap(), size: SIZE, alignment: 0, flags, address: 0 };
    guard.allocate_memory(&request).unwrap()
}

impl Watch for Refill {
    fn unmapped(&self) {
        if self.armed.swap(false, Ordering::Relaxed) {
            let process = self.process.get().unwrap();
            self.address.store(allocate(process), Ordering::Relaxed);
        }
    }
}

#[test]
fn an_allocation_at_addresses_just_given_back_stays_in_the_books() {
    let machine = machine("mi210x8:gpus=1");
    let process = Process::new(Watched::new(machine.spawn(Linux), Refill::default()));
    let process: &'static _ = Box::leak(Box::new(process));
    process.open_primary(|| Ok(Options::default())).unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
    let refill = process.platform().watch();
    refill.process.set(process).ok().unwrap();
    let mut same = 0;
    // The order of the books depends on what else is there.
    let mut others = Vec::new();
    for _ in 0..24 {
        let first = allocate(process);
        refill.armed.store(true, Ordering::Relaxed);
        process.primary().unwrap().free_memory(first, SIZE).unwrap();
        let second = refill.address.load(Ordering::Relaxed);
        same += u32::from(second == first);
        let guard = process.primary().unwrap();
        assert_eq!(guard.pointer_info(second).unwrap().gpu_address, second);
        guard.free_memory(second, SIZE).unwrap();
        assert!(guard.pointer_info(second).is_err());
        drop(guard);
        others.push(allocate(process));
    }
    for other in others {
        process.primary().unwrap().free_memory(other, SIZE).unwrap();
    }
    assert_ne!(same, 0, "no addresses were used again: nothing was tested");
    process.close_primary().unwrap();
    assert!(machine.leftovers().buffers.is_empty());
}
