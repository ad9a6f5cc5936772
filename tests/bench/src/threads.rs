//! Memory calls by several threads, over a driver that takes no time and no lock,
//! so that what the threads wait for is the library alone.

use std::sync::Barrier;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::Process;
use hsakmt_core::seam::{Call, DeviceNode, DeviceToken, Driver, MapDevice, Pair};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Profile, SimDevice, SimPlatform};

use crate::cost::simulated;

/// The simulated driver, but for buffers, which are always there and nowhere.
struct Timeless {
    inner: SimPlatform<Linux>,
    handles: AtomicU64,
}

/// Writes a field of a request.
fn answer(call: &mut Call<'_, '_>, name: &str, value: u64) {
    let Some(field) = call.fields.iter().find(|field| field.name == name) else { return };
    let bytes = value.to_le_bytes();
    if let Some(to) = call.block.get_mut(field.offset..field.offset + field.size) {
        to.copy_from_slice(&bytes[..field.size.min(bytes.len())]);
    }
}

impl Driver for Timeless {
    type Device = SimDevice;

    fn open(&self, node: DeviceNode) -> Result<SimDevice, Errno> {
        self.inner.open(node)
    }

    fn memory_file(&self, size: u64) -> Result<SimDevice, Errno> {
        self.inner.memory_file(size)
    }

    fn execute(&self, device: &SimDevice, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        match call.name {
            "ALLOC_MEMORY_OF_GPU" => {
                answer(call, "handle", self.handles.fetch_add(1, Ordering::Relaxed));
            }
            "MAP_MEMORY_TO_GPU" | "UNMAP_MEMORY_FROM_GPU" => {
                let asked = call.fields.iter().find(|field| field.name == "n_devices");
                let count = asked.and_then(|field| field.number(call.block)).unwrap_or(0);
                answer(call, "n_success", count);
            }
            "FREE_MEMORY_OF_GPU" => {}
            _ => return self.inner.execute(device, call),
        }
        Ok(0)
    }

    fn map(&self, device: &SimDevice, mapping: MapDevice) -> Result<usize, Errno> {
        Driver::map(&self.inner, device, mapping)
    }

    fn token(&self, device: &SimDevice) -> DeviceToken {
        self.inner.token(device)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        self.inner.close_inherited(node, token);
    }

    fn adopt(&self, token: DeviceToken) -> SimDevice {
        self.inner.adopt(token)
    }

    fn release(&self, device: SimDevice) -> DeviceToken {
        self.inner.release(device)
    }
}

/// How long `threads` threads take for so many cycles each of allocating 4 KiB of
/// video memory, mapping, unmapping and freeing it.
///
/// # Errors
/// The first failure.
///
/// # Panics
/// When a thread does.
pub fn cycles(threads: u32, cycles: u32) -> Result<Duration, Error> {
    let profile = Profile::parse("rx7900").expect("a profile");
    let simulated = simulated(&profile);
    let driver = Timeless { inner: simulated.clone(), handles: AtomicU64::new(1 << 40) };
    let process = Process::new(Pair { os: simulated, driver });
    process.open_primary(|| Ok(Options::default()))?;
    let guard = process.primary()?;
    guard.acquire_machine()?;
    let gpu = guard.machine(|machine| {
        let nodes = machine.snapshot().nodes();
        Ok(nodes.iter().position(|node| node.is_gpu()).unwrap_or_default())
    })?;
    drop(guard);
    let request = AllocationRequest {
        node: u32::try_from(gpu).unwrap_or_default(),
        size: 4096,
        alignment: 0,
        flags: MemoryFlags::NON_PAGED,
        address: 0,
    };
    let start = Barrier::new(threads as usize + 1);
    let run = || -> Result<(), Error> {
        let guard = process.primary()?;
        start.wait();
        for _ in 0..cycles {
            let address = guard.allocate_memory(&request)?;
            guard.map_memory(address, request.size)?;
            guard.unmap_memory(address)?;
            guard.free_memory(address, request.size)?;
        }
        Ok(())
    };
    let took = thread::scope(|scope| {
        let all: Vec<_> = (0..threads).map(|_| scope.spawn(run)).collect();
        start.wait();
        let begin = Instant::now();
        let done: Result<(), Error> =
            all.into_iter().try_for_each(|thread| thread.join().expect("a thread"));
        done.map(|()| begin.elapsed())
    })?;
    process.close_primary()?;
    Ok(took)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_get_everything_done() {
        for threads in [1, 2, 4] {
            println!("{threads} threads: {:?}", cycles(threads, 20_000).unwrap());
        }
    }
}
