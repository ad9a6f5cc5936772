//! A host for tests that never touch the memory they map.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::{AtomicU32, AtomicU64, Ordering};

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Placement, Protection, Wake,
};
use spin::Mutex;

/// Hands out addresses that no memory is behind, in one address space for all
/// clones; its clock is a counter, its files do not exist, nothing ever sleeps.
///
/// For a library that looks at its memory take the real system as host.
#[derive(Debug, Clone)]
pub struct AddressesOnly {
    shared: Arc<Shared>,
}

#[derive(Debug)]
struct Shared {
    mapped: Mutex<Vec<(usize, usize)>>,
    ticks: AtomicU64,
    fork_word: AtomicU32,
}

const PAGE: usize = 4096;
/// Where addresses begin when the caller does not care.
const FIRST: usize = 0x7f00_0000_0000;
/// One past the highest user address of x86-64.
const END: usize = (1 << 47) - PAGE;

impl Default for AddressesOnly {
    fn default() -> AddressesOnly {
        AddressesOnly::new()
    }
}

impl AddressesOnly {
    /// A host with nothing mapped.
    #[must_use]
    pub fn new() -> AddressesOnly {
        let shared = Shared {
            mapped: Mutex::new(Vec::new()),
            ticks: AtomicU64::new(1_000_000_000),
            fork_word: AtomicU32::new(0),
        };
        AddressesOnly { shared: Arc::new(shared) }
    }
}

fn check(address: usize, length: usize) -> Result<usize, Errno> {
    let end = address.checked_add(length).filter(|&end| end <= END).ok_or(Errno::EINVAL)?;
    if address % PAGE != 0 || length == 0 || length % PAGE != 0 {
        return Err(Errno::EINVAL);
    }
    Ok(end)
}

fn is_free(mapped: &[(usize, usize)], start: usize, end: usize) -> bool {
    !mapped.iter().any(|&(from, to)| from < end && start < to)
}

fn remove(mapped: &mut Vec<(usize, usize)>, start: usize, end: usize) {
    let mut rest = Vec::new();
    for &(from, to) in mapped.iter() {
        for (from, to) in [(from, to.min(start)), (from.max(end), to)] {
            if from < to {
                rest.push((from, to));
            }
        }
    }
    *mapped = rest;
}

impl Os for AddressesOnly {
    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        let mut mapped = self.shared.mapped.lock();
        let length = mapping.length;
        let lowest = || {
            let mut start = FIRST;
            let mut sorted = mapped.clone();
            sorted.sort_unstable();
            for (from, to) in sorted {
                if from < start + length && start < to {
                    start = to;
                }
            }
            start
        };
        let start = match mapping.placement {
            Placement::Anywhere => lowest(),
            Placement::Hint(hint) => match check(hint, length) {
                Ok(end) if is_free(&mapped, hint, end) => hint,
                _ => lowest(),
            },
            Placement::Free(start) => {
                if !is_free(&mapped, start, check(start, length)?) {
                    return Err(Errno::EEXIST);
                }
                start
            }
            Placement::Replace(start) => start,
        };
        let end = check(start, length).map_err(|errno| {
            if length == 0 || length % PAGE != 0 { errno } else { Errno::ENOMEM }
        })?;
        remove(&mut mapped, start, end);
        mapped.push((start, end));
        Ok(start)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        let end = check(address, length)?;
        remove(&mut self.shared.mapped.lock(), address, end);
        Ok(())
    }

    fn protect(&self, address: usize, length: usize, _allow: Protection) -> Result<(), Errno> {
        check(address, length).map(|_| ())
    }

    fn advise(&self, address: usize, length: usize, _advice: Advice) -> Result<(), Errno> {
        check(address, length).map(|_| ())
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        _policy: MemoryPolicy,
        _nodes: &[u64],
    ) -> Result<(), Errno> {
        check(address, length).map(|_| ())
    }

    fn read_file(
        &self,
        _path: &CStr,
        _into: &mut Vec<u8>,
        _limit: usize,
        _end: EndOfFile,
    ) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }

    fn list_folder(
        &self,
        _path: &CStr,
        _visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        Err(Errno::ENOENT)
    }

    fn now(&self, _clock: Clock) -> u64 {
        self.shared.ticks.fetch_add(1000, Ordering::Relaxed)
    }

    fn sleep(&self, ns: u64) {
        self.shared.ticks.fetch_add(ns, Ordering::Relaxed);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        core::hint::spin_loop();
        match timeout {
            Some(ns) if word.load(Ordering::Acquire) == expected => {
                self.sleep(ns);
                Ok(Wake::TimedOut)
            }
            _ => Ok(Wake::Again),
        }
    }

    fn futex_wake(&self, _word: &AtomicU32, _count: u32) {}

    fn thread_id(&self) -> u32 {
        1
    }

    fn process_id(&self) -> u32 {
        1
    }

    fn fork_word(&self) -> &AtomicU32 {
        &self.shared.fork_word
    }

    fn wmb_device(&self) {}

    fn rmb_device(&self) {}

    fn flush_wc(&self) {}
}
