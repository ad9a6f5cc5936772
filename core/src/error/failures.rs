//! The newest failure of each thread, without locks and without TLS.
//!
//! A fixed table of [`Failures::SLOTS`] slots. A thread that has a slot keeps
//! using it; a new one takes a free slot, else the slot with the oldest
//! failure. So up to 64 threads each read their own newest failure, however
//! often the others fail.
//!
//! Each slot is a sequence lock made of plain atomics: odd while being written,
//! and a reader that saw it change looks again. A thread never waits for
//! another: a writer that finds a slot busy takes the next best.

use core::sync::atomic::{AtomicU32, AtomicU64, Ordering, fence};

use super::{Error, Object, Operation, Status};
use crate::errno::Errno;

/// A remembered failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Failure {
    /// What failed.
    pub error: Error,
    /// The thread that it failed in, by the kernel's id.
    pub thread: u32,
    /// Its number among all failures of the process, from 1.
    pub sequence: u64,
}

#[derive(Debug)]
struct Slot {
    /// Odd while the slot is being written.
    version: AtomicU32,
    /// 0: never used.
    thread: AtomicU32,
    sequence: AtomicU64,
    /// Status in the upper half, operation in the lower.
    what: AtomicU64,
    /// The object's kind in the upper half, errno in the lower (0: none).
    reason: AtomicU64,
    object: AtomicU64,
}

impl Slot {
    const fn new() -> Slot {
        Slot {
            version: AtomicU32::new(0),
            thread: AtomicU32::new(0),
            sequence: AtomicU64::new(0),
            what: AtomicU64::new(0),
            reason: AtomicU64::new(0),
            object: AtomicU64::new(0),
        }
    }

    /// Begins a write, if nobody has written since the slot had this version.
    fn claim(&self, version: u32) -> bool {
        self.version
            .compare_exchange(
                version,
                version.wrapping_add(1),
                Ordering::Acquire,
                Ordering::Relaxed,
            )
            .is_ok()
    }
}

/// The table of failures. Part of a context; one more belongs to the process.
#[derive(Debug)]
pub struct Failures {
    slots: [Slot; Failures::SLOTS],
}

impl Default for Failures {
    fn default() -> Self {
        Failures::new()
    }
}

impl Failures {
    /// How many threads' failures are remembered.
    pub const SLOTS: usize = 64;

    /// An empty table.
    #[must_use]
    pub const fn new() -> Failures {
        Failures { slots: [const { Slot::new() }; Failures::SLOTS] }
    }

    /// Remembers a failure of the calling thread. `sequence` grows from one
    /// failure of the process to the next, over all its tables, and starts at 1.
    pub fn record(&self, thread: u32, sequence: u64, error: &Error) {
        // A slot can be lost to another writer between choosing and claiming it;
        // one more round per slot is more than enough, and a failure that finds
        // no slot at all is forgotten rather than waited for.
        for _ in 0..Failures::SLOTS {
            let Some((slot, version)) = self.choose(thread) else { return };
            if !slot.claim(version) {
                continue;
            }
            fence(Ordering::Release);
            let (kind, value) = error.object.encode();
            let errno = error.errno.map_or(0, |errno| u64::from(errno.0));
            slot.thread.store(thread, Ordering::Relaxed);
            slot.sequence.store(sequence, Ordering::Relaxed);
            slot.what.store(
                u64::from(error.status.0) << 32 | u64::from(error.operation.code()),
                Ordering::Relaxed,
            );
            slot.reason.store(u64::from(kind) << 32 | errno, Ordering::Relaxed);
            slot.object.store(value, Ordering::Relaxed);
            slot.version.store(version.wrapping_add(2), Ordering::Release);
            return;
        }
    }

    /// The slot for a thread's next failure: its own, a free one, the oldest; and
    /// the version at which it was that, for it may be another thread's by now.
    fn choose(&self, thread: u32) -> Option<(&Slot, u32)> {
        let mut best: Option<(&Slot, u32, u64)> = None;
        for slot in &self.slots {
            let version = slot.version.load(Ordering::Acquire);
            if version & 1 != 0 {
                continue;
            }
            if slot.thread.load(Ordering::Relaxed) == thread {
                return Some((slot, version));
            }
            let sequence = slot.sequence.load(Ordering::Relaxed);
            if best.is_none_or(|(_, _, oldest)| sequence < oldest) {
                best = Some((slot, version, sequence));
            }
        }
        best.map(|(slot, version, _)| (slot, version))
    }

    /// The calling thread's newest failure.
    #[must_use]
    pub fn newest(&self, thread: u32) -> Option<Failure> {
        self.slots.iter().filter_map(|slot| read(slot, thread)).max_by_key(|f| f.sequence)
    }
}

fn read(slot: &Slot, thread: u32) -> Option<Failure> {
    // Only `thread` itself writes a slot that already bears its id, so for the
    // caller's own slot the first look nearly always succeeds; a slot that is
    // being taken over by somebody else is not the caller's any more.
    for _ in 0..Failures::SLOTS {
        let before = slot.version.load(Ordering::Acquire);
        if slot.thread.load(Ordering::Relaxed) != thread {
            return None;
        }
        let sequence = slot.sequence.load(Ordering::Relaxed);
        let what = slot.what.load(Ordering::Relaxed);
        let reason = slot.reason.load(Ordering::Relaxed);
        let object = slot.object.load(Ordering::Relaxed);
        fence(Ordering::Acquire);
        let after = slot.version.load(Ordering::Relaxed);
        if before & 1 != 0 || before != after {
            continue;
        }
        let errno = reason as u32 as u16;
        return Some(Failure {
            error: Error {
                status: Status((what >> 32) as u32),
                operation: Operation::from_code(what as u32)?,
                errno: (errno != 0).then_some(Errno(errno)),
                object: Object::decode((reason >> 32) as u8, object),
            },
            thread,
            sequence,
        });
    }
    None
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::sync::Barrier;

    fn error(node: u32) -> Error {
        Error::library(Status::INVALID_NODE_UNIT, Operation::CheckArgument, Object::Node(node))
    }

    #[test]
    fn the_newest_of_a_thread_wins() {
        let failures = Failures::new();
        assert_eq!(failures.newest(7), None);
        failures.record(7, 1, &error(1));
        failures.record(8, 2, &error(2));
        failures.record(7, 3, &error(3));
        assert_eq!(failures.newest(7).unwrap().error, error(3));
        assert_eq!(failures.newest(8).unwrap().error, error(2));
        assert_eq!(failures.newest(7).unwrap().sequence, 3);
    }

    #[test]
    fn a_full_table_forgets_the_oldest_thread() {
        let failures = Failures::new();
        for thread in 1..=65 {
            failures.record(thread, u64::from(thread), &error(thread));
        }
        assert_eq!(failures.newest(1), None);
        for thread in 2..=65 {
            assert_eq!(failures.newest(thread).unwrap().error, error(thread));
        }
    }

    #[test]
    fn a_noisy_thread_displaces_nobody() {
        let failures = Failures::new();
        failures.record(1, 1, &error(1));
        for node in 0..1000 {
            failures.record(2, u64::from(node) + 2, &error(node));
        }
        assert_eq!(failures.newest(1).unwrap().error, error(1));
    }

    /// Two threads may choose one free slot; the one that claims it later must
    /// not take it from the other.
    #[test]
    fn a_slot_that_was_taken_meanwhile_is_not_claimed() {
        let failures = Failures::new();
        let (slot, version) = failures.choose(1).unwrap();
        failures.record(2, 1, &error(2));
        assert!(!slot.claim(version));
        failures.record(1, 2, &error(1));
        assert_eq!(failures.newest(2).unwrap().error, error(2));
        assert_eq!(failures.newest(1).unwrap().error, error(1));
    }

    #[test]
    fn eight_threads_each_read_their_own() {
        let failures = Failures::new();
        let sequence = AtomicU64::new(1);
        let start = Barrier::new(8);
        std::thread::scope(|scope| {
            for thread in 1..=8 {
                let (failures, sequence, start) = (&failures, &sequence, &start);
                scope.spawn(move || {
                    start.wait();
                    for round in 0..2000 {
                        let mine = error(thread * 10_000 + round);
                        failures.record(thread, sequence.fetch_add(1, Ordering::Relaxed), &mine);
                        assert_eq!(failures.newest(thread).unwrap().error, mine);
                    }
                });
            }
        });
    }
}
