//! A host for tests that never touch the memory they map.

use alloc::collections::{BTreeMap, BTreeSet};
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
    free: Mutex<Free>,
    ticks: AtomicU64,
    fork_word: AtomicU32,
}

/// What is not mapped, as gaps on either side of [`FIRST`]: end by start, and
/// start by length.
#[derive(Debug, Default)]
struct Free {
    gaps: BTreeMap<usize, usize>,
    by_length: BTreeSet<(usize, usize)>,
}

impl Free {
    fn add(&mut self, start: usize, end: usize) {
        if start < end {
            self.gaps.insert(start, end);
            self.by_length.insert((end - start, start));
        }
    }

    fn remove(&mut self, start: usize) -> Option<usize> {
        let end = self.gaps.remove(&start)?;
        self.by_length.remove(&(end - start, start));
        Some(end)
    }

    /// The gaps that have a part of a range or touch it.
    fn near(&self, start: usize, end: usize) -> Vec<usize> {
        let before = self.gaps.range(..start).next_back();
        let before = before.filter(|(_, to)| **to >= start);
        before.into_iter().chain(self.gaps.range(start..=end)).map(|(at, _)| *at).collect()
    }

    fn has(&self, start: usize, end: usize) -> bool {
        let to = |at| self.gaps.range(..=at).next_back().map_or(0, |(_, &to)| to);
        let mut reached = start;
        while reached < end {
            match to(reached) {
                further if further > reached => reached = further,
                _ => return false,
            }
        }
        true
    }

    fn take(&mut self, start: usize, end: usize) {
        for gap in self.near(start, end) {
            let Some(to) = self.remove(gap) else { continue };
            self.add(gap, to.min(start.max(gap)));
            self.add(gap.max(end.min(to)), to);
        }
    }

    fn give(&mut self, start: usize, end: usize) {
        for (mut low, mut high) in [(start, end.min(FIRST)), (start.max(FIRST), end)] {
            if low >= high {
                continue;
            }
            let upper = low >= FIRST;
            for gap in self.near(low, high) {
                if (gap >= FIRST) != upper {
                    continue;
                }
                if let Some(to) = self.remove(gap) {
                    (low, high) = (low.min(gap), high.max(to));
                }
            }
            self.add(low, high);
        }
    }

    /// The smallest gap that is long enough, and not below [`FIRST`].
    fn find(&self, length: usize) -> Option<usize> {
        let mut long_enough = self.by_length.range((length, 0)..);
        long_enough.find(|(_, start)| *start >= FIRST).map(|(_, start)| *start)
    }
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
        let mut free = Free::default();
        // Addresses below are given only to who names them.
        free.add(0, FIRST);
        free.add(FIRST, END);
        let shared = Shared {
            free: Mutex::new(free),
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

impl Os for AddressesOnly {
    fn page_size(&self) -> usize {
        PAGE
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        let mut free = self.shared.free.lock();
        let length = mapping.length;
        let anywhere = || free.find(length).ok_or(Errno::ENOMEM);
        let start = match mapping.placement {
            Placement::Anywhere => anywhere()?,
            Placement::Hint(hint) => match check(hint, length) {
                Ok(end) if free.has(hint, end) => hint,
                _ => anywhere()?,
            },
            Placement::Free(start) => {
                if !free.has(start, check(start, length)?) {
                    return Err(Errno::EEXIST);
                }
                start
            }
            Placement::Replace(start) => start,
        };
        let end = check(start, length).map_err(|errno| {
            if length == 0 || length % PAGE != 0 { errno } else { Errno::ENOMEM }
        })?;
        free.take(start, end);
        Ok(start)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        let end = check(address, length)?;
        self.shared.free.lock().give(address, end);
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

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Os, Placement};

    use super::{AddressesOnly, END, FIRST, PAGE};
    use crate::fixture::anonymous;

    #[test]
    fn addresses_are_given_once_and_again_when_free() {
        let host = AddressesOnly::new();
        let map = |placement, pages| host.map(anonymous(placement, pages * PAGE));
        let places = [0, 1, 2, 3].map(|_| map(Placement::Anywhere, 2).unwrap());
        assert_eq!(places, [0, 2, 4, 6].map(|page| FIRST + page * PAGE));
        host.unmap(places[1] + PAGE, 2 * PAGE).unwrap();
        assert_eq!(map(Placement::Free(places[1]), 1), Err(Errno::EEXIST));
        assert_eq!(map(Placement::Anywhere, 3), Ok(FIRST + 8 * PAGE));
        // A hole of its size is taken first.
        assert_eq!(map(Placement::Anywhere, 1), Ok(places[1] + PAGE));
        assert_eq!(map(Placement::Hint(places[2]), 1), Ok(places[2]));
        assert_eq!(map(Placement::Hint(places[2]), 1), Ok(FIRST + 11 * PAGE));
        assert_eq!(map(Placement::Replace(places[0]), 5), Ok(places[0]));
        assert_eq!(map(Placement::Free(PAGE), 1), Ok(PAGE));
        host.unmap(0, END).unwrap();
        assert_eq!(map(Placement::Free(PAGE), END / PAGE - 1), Ok(PAGE));
        assert_eq!(map(Placement::Anywhere, 1), Err(Errno::ENOMEM));
        host.unmap(FIRST - PAGE, 2 * PAGE).unwrap();
        assert_eq!(map(Placement::Anywhere, 1), Ok(FIRST));
    }
}
