//! The C functions over a machine whose topology is a folder, called as a C
//! program calls them.
//!
//! # Safety
//! The functions get NULL or structures and arrays of this module's own, as
//! long as the counts say.
#![allow(unsafe_code)]

use std::mem::zeroed;
use std::path::Path;
use std::sync::OnceLock;

use hsakmt::generation::{Current, Generation as Layout};
use hsakmt::types::{HSAKMT_STATUS, HsaMemoryProperties, HsaSystemProperties};
use hsakmt::{Host, Library};
use hsakmt_core::seam::Platform;
use kfd_sim::Profile;

use crate::folder::{FolderMachine, FolderOs, SimulatedDriver};

/// The machine, once it is known.
struct Later(OnceLock<FolderMachine>);

impl Later {
    fn machine(&self) -> &FolderMachine {
        self.0.get().expect("a machine before the first call")
    }
}

impl Platform for Later {
    type Os = FolderOs;
    type Driver = SimulatedDriver;

    fn os(&self) -> &FolderOs {
        self.machine().os()
    }

    fn driver(&self) -> &SimulatedDriver {
        self.machine().driver()
    }
}

struct Program;

impl Host for Program {
    type Platform = &'static Later;
    type Generation = Current;

    fn variables(&self, _: &mut dyn FnMut(&[u8])) {}

    fn write_log(&self, _: &[u8]) {}
}

static MACHINE: Later = Later(OnceLock::new());
static LIBRARY: Library<Program> = Library::new(Program, &MACHINE);

#[allow(non_snake_case, reason = "the names of the C ABI")]
mod exported {
    use super::{Current, LIBRARY};
    hsakmt::export!(LIBRARY, Current);
}

type NodeProperties = <Current as Layout>::NodeProperties;
type CacheProperties = <Current as Layout>::CacheProperties;
type IoLinkProperties = <Current as Layout>::IoLinkProperties;

/// What a program has room for before it knows the machine.
struct Room {
    banks: Vec<HsaMemoryProperties>,
    caches: Vec<CacheProperties>,
    links: Vec<IoLinkProperties>,
}

/// The most banks, caches or links of a node.
const ENTRIES: usize = 1024;

fn zeros<T: Copy>() -> Vec<T> {
    // SAFETY: the C structures hold numbers only.
    vec![unsafe { zeroed::<T>() }; ENTRIES]
}

/// Opens the library on the machine of `profile` with its topology in `folder`,
/// acquires it, and asks for every node with its banks, caches and links.
/// Returns how many nodes, banks, caches and links there were. Once in a process.
///
/// # Panics
/// When a function fails, or at the second time.
pub fn open_and_query_everything(folder: &Path, profile: &Profile) -> [usize; 4] {
    let set = MACHINE.0.set(FolderMachine::new(folder, profile));
    assert!(set.is_ok(), "one machine in a process");
    let mut room = Room { banks: zeros(), caches: zeros(), links: zeros() };
    counted(&mut room)
}

fn assert_success(status: HSAKMT_STATUS) {
    assert_eq!(status, HSAKMT_STATUS::SUCCESS);
}

/// What is counted, under a name that an instruction counter can be given.
// SAFETY: no other function has this name.
#[unsafe(export_name = "hsakmt_bench_counted_c")]
#[inline(never)]
fn counted(room: &mut Room) -> [usize; 4] {
    let mut counts = [0; 4];
    // SAFETY: see the head of the file; no array is shorter than its count, which
    // the assertion checks.
    unsafe {
        let mut system: HsaSystemProperties = zeroed();
        assert_success(exported::hsaKmtOpenKFD());
        assert_success(exported::hsaKmtAcquireSystemProperties(&mut system));
        for id in 0..system.NumNodes {
            let mut node: NodeProperties = zeroed();
            assert_success(exported::hsaKmtGetNodeProperties(id, &mut node));
            let (banks, caches, links) = (node.NumMemoryBanks, node.NumCaches, node.NumIOLinks);
            let longest = banks.max(caches).max(links) as usize;
            assert!(longest <= ENTRIES, "{longest} entries");
            let into = room.banks.as_mut_ptr();
            assert_success(exported::hsaKmtGetNodeMemoryProperties(id, banks, into));
            let into = room.caches.as_mut_ptr();
            assert_success(exported::hsaKmtGetNodeCacheProperties(id, 0, caches, into));
            let into = room.links.as_mut_ptr();
            assert_success(exported::hsaKmtGetNodeIoLinkProperties(id, links, into));
            let more = [1, banks as usize, caches as usize, links as usize];
            for (count, more) in counts.iter_mut().zip(more) {
                *count += more;
            }
        }
    }
    counts
}
