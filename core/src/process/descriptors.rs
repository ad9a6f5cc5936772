//! The open devices of a process, in a place that a forked child can read.
//!
//! A child must close what it inherited without looking at any structure that
//! another thread of the parent may have been writing at the moment of the fork.
//! So each device is noted here, one atomic word each, right after its open,
//! and struck out right before its close.

use core::sync::atomic::{AtomicU64, Ordering};

use crate::error::{Error, Object, Operation, Status};
use crate::seam::{DeviceNode, DeviceToken};

/// Word layout: bit 63 used, bits 62-56 kind, 55-32 render minor, 31-0 token.
const USED: u64 = 1 << 63;

/// A fixed list of open devices.
#[derive(Debug)]
pub(crate) struct Descriptors {
    words: [AtomicU64; Descriptors::CAPACITY],
}

fn encode(node: DeviceNode, token: DeviceToken) -> u64 {
    let (kind, minor) = match node {
        DeviceNode::Kfd => (0, 0),
        DeviceNode::Render(minor) => (1, u64::from(minor) & 0xff_ffff),
        DeviceNode::Udmabuf => (2, 0),
    };
    USED | kind << 56 | minor << 32 | u64::from(token.0)
}

fn decode(word: u64) -> (DeviceNode, DeviceToken) {
    let node = match (word & !USED) >> 56 {
        0 => DeviceNode::Kfd,
        1 => DeviceNode::Render((word >> 32) as u32 & 0xff_ffff),
        _ => DeviceNode::Udmabuf,
    };
    (node, DeviceToken(word as u32))
}

impl Descriptors {
    /// Fifteen contexts, each with `/dev/kfd` and the kernel's 64 GPUs, and some.
    pub(crate) const CAPACITY: usize = 1024;

    pub(crate) const fn new() -> Descriptors {
        Descriptors { words: [const { AtomicU64::new(0) }; Descriptors::CAPACITY] }
    }

    /// Notes a device that was just opened.
    pub(crate) fn note(&self, node: DeviceNode, token: DeviceToken) -> Result<(), Error> {
        let word = encode(node, token);
        for slot in &self.words {
            if slot.load(Ordering::Relaxed) == 0
                && slot.compare_exchange(0, word, Ordering::Relaxed, Ordering::Relaxed).is_ok()
            {
                return Ok(());
            }
        }
        Err(Error::library(Status::NO_MEMORY, Operation::OpenDevice, Object::Device(node)))
    }

    /// Strikes out a device that is about to be closed.
    pub(crate) fn strike(&self, node: DeviceNode, token: DeviceToken) {
        let word = encode(node, token);
        for slot in &self.words {
            if slot.compare_exchange(word, 0, Ordering::Relaxed, Ordering::Relaxed).is_ok() {
                return;
            }
        }
    }

    /// Takes every device off the list; for a forked child.
    pub(crate) fn drain(&self) -> impl Iterator<Item = (DeviceNode, DeviceToken)> + '_ {
        self.words.iter().filter_map(|slot| {
            let word = slot.swap(0, Ordering::Relaxed);
            (word != 0).then(|| decode(word))
        })
    }
}

#[cfg(test)]
mod tests {
    extern crate std;

    use super::*;
    use std::vec::Vec;

    #[test]
    fn what_is_noted_and_not_struck_out_is_drained() {
        let list = Descriptors::new();
        list.note(DeviceNode::Kfd, DeviceToken(0)).unwrap();
        list.note(DeviceNode::Render(300), DeviceToken(7)).unwrap();
        list.note(DeviceNode::Udmabuf, DeviceToken(9)).unwrap();
        list.strike(DeviceNode::Udmabuf, DeviceToken(9));
        let drained: Vec<_> = list.drain().collect();
        assert_eq!(
            drained,
            [(DeviceNode::Kfd, DeviceToken(0)), (DeviceNode::Render(300), DeviceToken(7))]
        );
        assert_eq!(list.drain().count(), 0);
    }

    #[test]
    fn a_full_list_refuses() {
        let list = Descriptors::new();
        for number in 0..Descriptors::CAPACITY as u32 {
            list.note(DeviceNode::Kfd, DeviceToken(number)).unwrap();
        }
        let error = list.note(DeviceNode::Render(128), DeviceToken(1)).unwrap_err();
        assert_eq!(error.status, Status::NO_MEMORY);
    }
}
