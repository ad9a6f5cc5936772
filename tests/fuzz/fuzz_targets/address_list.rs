//! The list of the process's mappings, `/proc/self/maps`, in which addresses for
//! GPUs of 40 bits are looked for.
#![no_main]

use std::cell::{Cell, RefCell};
use std::ffi::CStr;

use hsakmt_conformance::{Alteration, Altered};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{ContextHandle, Process};
use hsakmt_core::seam::{EndOfFile, Mapping, Os, Placement};
use kfd_sim::{AddressesOnly, Machine, Profile, SimPlatform};
use libfuzzer_sys::fuzz_target;

const BASE: u64 = 2 << 20;
const END: u64 = 1 << 40;

/// Serves the list, and gives nothing.
#[derive(Default)]
struct Listed {
    list: RefCell<Vec<u8>>,
    asked: Cell<Option<u64>>,
}

impl Alteration for Listed {
    fn map(&self, _: &impl Os, mapping: Mapping) -> Result<usize, Errno> {
        if let Placement::Free(start) = mapping.placement {
            self.asked.set(Some(start as u64));
        }
        Err(Errno::ENOMEM)
    }

    fn read_file(
        &self,
        os: &impl Os,
        path: &CStr,
        into: &mut Vec<u8>,
        (limit, end): (usize, EndOfFile),
    ) -> Result<(), Errno> {
        if path != c"/proc/self/maps" {
            return os.read_file(path, into, limit, end);
        }
        into.extend_from_slice(&self.list.borrow());
        Ok(())
    }
}

struct Library {
    listed: &'static Listed,
    process: Process<Altered<'static, SimPlatform<AddressesOnly>, Listed>>,
}

impl Library {
    /// Opens the library on a machine with one GPU whose addresses have 40 bits.
    fn open() -> Library {
        let mut profile = Profile::parse("mi50:svm=0").expect("a profile");
        let gpu = profile.topology.nodes.iter_mut().find_map(|node| node.gpu.as_mut());
        gpu.expect("a GPU").properties.gfx_target_version = 80_003;
        let machine = Machine::new(&profile);
        machine.keep_log(false);
        let listed: &'static Listed = Box::leak(Box::default());
        let process = Process::new(Altered::new(machine.spawn(AddressesOnly::new()), listed));
        let options = || Ok(Options { guard_pages: 0, ..Options::default() });
        process.open_primary(options).expect("an open");
        process.primary().expect("a context").acquire_machine().expect("a machine");
        Library { listed, process }
    }
}

thread_local! {
    static LIBRARY: Library = Library::open();
}

/// The lines, read the slow way.
fn ranges(list: &[u8]) -> Vec<(u64, u64)> {
    let number = |text: &str| -> Option<u64> {
        let digits = text.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'));
        (digits && text.len() <= 16).then(|| u64::from_str_radix(text, 16).ok())?
    };
    let range = |line: &[u8]| {
        let word = line.split(|&byte| byte == b' ').next()?;
        let mut ends = word.split(|&byte| byte == b'-').map(std::str::from_utf8);
        let (start, stop) = (number(ends.next()?.ok()?)?, number(ends.next()?.ok()?)?);
        (start <= stop).then_some((start, stop))
    };
    list.split(|&byte| byte == b'\n').filter_map(range).collect()
}

fuzz_target!(|input: &[u8]| {
    let Some((&[pages, shift], list)) = input.split_first_chunk() else { return };
    let size = (1 << 30) + u64::from(pages) * 4096;
    let alignment = 4096 << (shift % 27);
    LIBRARY.with(|library| {
        library.listed.list.replace(list.to_vec());
        library.listed.asked.set(None);
        let guard = library.process.enter(ContextHandle::PRIMARY).expect("a context");
        let request = AllocationRequest {
            node: 1,
            size,
            alignment,
            flags: MemoryFlags::ONLY_ADDRESS,
            address: 0,
        };
        assert!(guard.allocate_memory(&request).is_err());
        let asked = library.listed.asked.get();
        let alignment = alignment.max(2 << 20);
        if let Some(start) = asked {
            assert!(start % alignment == 0 && start >= BASE && start + size <= END);
        }
        let ranges = ranges(list);
        if !ranges.is_sorted_by(|before, after| before.1 <= after.0) {
            return;
        }
        // Each candidate ends as high as it can below a range or below the end.
        let below = ranges.iter().map(|&(start, _)| start.min(END)).chain([END]);
        let candidates = below.filter_map(|end| {
            let start = end.checked_sub(size)? / alignment * alignment;
            let free = ranges.iter().all(|&(from, to)| start + size <= from || to <= start);
            (start >= BASE && free).then_some(start)
        });
        assert_eq!(asked, candidates.max());
    });
});
