//! The GPU address space of an opened render file: kernel-rules section 2,
//! "Mapping", and section 4, "reserved top" (amdgpu_vm.c).

use alloc::collections::BTreeMap;

use hsakmt_core::errno::Errno;

use crate::gpu_memory::MemoryId;
use crate::kernel::KernelProfile;
use crate::kfd::ObjectId;
use crate::topology::Gpu;

const PAGE: u64 = 4096;
/// Bytes at the top for the context save area, and below it for sequence numbers.
const TOP_PART: u64 = 2 << 20;
/// Bytes below those for the trap page, of which the driver uses the first two pages.
const TRAP_PART: u64 = 64 << 10;
/// Bytes of the driver's trap handler.
pub(crate) const TRAP_PAGES: u64 = 8192;
/// Where the trap page was before it went to the top, with a page for the
/// driver's own commands below it.
const OLD_TRAP: u64 = 0x2000;
const OLD_COMMANDS: u64 = 0x1000;

/// What a range of GPU addresses shows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Shows {
    /// Something of the driver.
    Driver,
    /// A buffer.
    Buffer { object: ObjectId, handle: u64 },
    /// A part of what a GEM handle names.
    Handle { memory: MemoryId, offset: u64, writable: bool },
}

/// One mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct GpuRange {
    pub length: u64,
    pub shows: Shows,
    /// Queues that use it: while there is one it cannot be unmapped (6.12).
    pub queues: u32,
}

/// The mappings by start address; no two overlap.
#[derive(Debug, Clone)]
pub(crate) struct GpuVm {
    ranges: BTreeMap<u64, GpuRange>,
    /// One past the highest address.
    end: u64,
}

impl GpuVm {
    /// The VM of a file just opened. The driver's sequence page is mapped at the
    /// open since 6.12.
    pub(crate) fn new(gpu: &Gpu, kernel: KernelProfile) -> GpuVm {
        let mut vm = GpuVm { ranges: BTreeMap::new(), end: gpu.address_space_end() };
        if kernel.has_sequence_page() {
            let start = vm.end - 2 * TOP_PART;
            vm.ranges.insert(start, GpuRange::of_driver(TOP_PART));
        }
        vm
    }

    /// What ACQUIRE_VM maps: kernel-rules section 1, "Binding a VM".
    pub(crate) fn map_trap_page(&mut self, gpu: &Gpu, kernel: KernelProfile) {
        let old = kernel.has_trap_page_at_bottom() || !gpu.is_gfx9_or_later();
        if !old {
            let start = self.end - 2 * TOP_PART - TRAP_PART;
            self.ranges.insert(start, GpuRange::of_driver(TRAP_PAGES));
        } else if !gpu.apu {
            self.ranges.insert(OLD_TRAP, GpuRange::of_driver(TRAP_PAGES));
            self.ranges.insert(OLD_COMMANDS, GpuRange::of_driver(PAGE));
        }
    }

    /// Maps a range: EINVAL if it is not of whole pages, beyond the end, or taken.
    pub(crate) fn map(&mut self, start: u64, length: u64, shows: Shows) -> Result<(), Errno> {
        let end = start.checked_add(length).ok_or(Errno::EINVAL)?;
        if start % PAGE != 0 || length % PAGE != 0 || length == 0 || end > self.end {
            return Err(Errno::EINVAL);
        }
        if self.overlaps(start, end) {
            return Err(Errno::EINVAL);
        }
        self.ranges.insert(start, GpuRange { length, shows, queues: 0 });
        Ok(())
    }

    /// The mapping that has this address.
    pub(crate) fn at(&self, address: u64) -> Option<(u64, &GpuRange)> {
        let (at, range) = self.ranges.range(..=address).next_back()?;
        (at + range.length > address).then_some((*at, range))
    }

    pub(crate) fn overlaps(&self, start: u64, end: u64) -> bool {
        let before = self.ranges.range(..end).next_back();
        before.is_some_and(|(at, range)| at + range.length > start)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (u64, &GpuRange)> {
        self.ranges.iter().map(|(at, range)| (*at, range))
    }

    /// The mapping that starts here.
    pub(crate) fn get(&self, start: u64) -> Option<&GpuRange> {
        self.ranges.get(&start)
    }

    /// A queue uses the mapping that starts here.
    pub(crate) fn used_by_queue(&mut self, start: u64) {
        if let Some(range) = self.ranges.get_mut(&start) {
            range.queues += 1;
        }
    }

    /// A queue that used it is gone.
    pub(crate) fn left_by_queue(&mut self, start: u64) {
        if let Some(range) = self.ranges.get_mut(&start) {
            range.queues = range.queues.saturating_sub(1);
        }
    }

    pub(crate) fn unmap(&mut self, start: u64) {
        self.ranges.remove(&start);
    }

    /// Where the addresses end that callers may map: below the parts for the context
    /// save area, the sequence page and the trap page.
    pub(crate) fn reserved_top(&self) -> u64 {
        self.end - 2 * TOP_PART - TRAP_PART
    }

    /// Removes all mappings of a handle that is closed.
    pub(crate) fn unmap_handle(&mut self, closed: MemoryId) {
        self.ranges.retain(
            |_, range| !matches!(range.shows, Shows::Handle { memory, .. } if memory == closed),
        );
    }
}

impl GpuRange {
    fn of_driver(length: u64) -> GpuRange {
        GpuRange { length, shows: Shows::Driver, queues: 0 }
    }
}

#[cfg(test)]
mod tests {
    use hsakmt_core::errno::Errno;

    use super::{GpuVm, Shows};
    use crate::kernel::{Kernel, KernelProfile};
    use crate::topology::{Gpu, GpuProperties};

    fn gpu(gfx_target_version: u32, apu: bool) -> Gpu {
        let properties = GpuProperties { gfx_target_version, ..GpuProperties::default() };
        Gpu { properties, apu, ..Gpu::default() }
    }

    fn vm(gfx: u32, kernel: Kernel) -> GpuVm {
        let (gpu, kernel) = (gpu(gfx, false), KernelProfile::debian(kernel));
        let mut vm = GpuVm::new(&gpu, kernel);
        vm.map_trap_page(&gpu, kernel);
        vm
    }

    fn map(vm: &mut GpuVm, start: u64, length: u64) -> Result<(), Errno> {
        vm.map(start, length, Shows::Driver)
    }

    #[test]
    fn ranges_are_whole_pages_below_the_end_and_free() {
        let mut vm = vm(110_000, Kernel::V6_12);
        for (start, length) in [
            (0x10_0800, 0x1000),
            (0x10_0000, 0x800),
            (0x10_0000, 0),
            (1 << 48, 0x1000),
            ((1 << 48) - 0x1000, 0x2000),
            (0xffff_8000_0000_0000, 0x1000),
            (u64::MAX - 0xfff, 0x1000),
        ] {
            assert_eq!(map(&mut vm, start, length), Err(Errno::EINVAL), "{start:#x}, {length:#x}");
        }
        assert_eq!(map(&mut vm, 0x10_0000, 0x2000), Ok(()));
        for (start, length) in
            [(0x10_0000, 0x1000), (0x10_1000, 0x1000), (0xf_f000, 0x2000), (0xf_0000, 0x10_0000)]
        {
            assert_eq!(map(&mut vm, start, length), Err(Errno::EINVAL), "{start:#x}, {length:#x}");
        }
        assert_eq!(map(&mut vm, 0xf_f000, 0x1000), Ok(()));
        assert_eq!(map(&mut vm, 0x10_2000, 0x1000), Ok(()));
        vm.unmap(0x10_0000);
        assert_eq!(map(&mut vm, 0x10_1000, 0x1000), Ok(()));
    }

    #[test]
    fn the_bottom_and_the_hole_are_not_tested() {
        let mut vm = vm(110_000, Kernel::V6_12);
        assert_eq!(map(&mut vm, 0x1000, 0x1000), Ok(()));
        assert_eq!(map(&mut vm, 1 << 47, 0x1000), Ok(()));
    }

    #[test]
    fn the_drivers_pages_are_taken() {
        let top = 1_u64 << 48;
        for (gfx, kernel, taken) in [
            (110_000, Kernel::V6_12, &[top - (4 << 20), top - (4 << 20) - 0x1_0000][..]),
            (110_000, Kernel::V6_1, &[0x1000, 0x2000, 0x3000]),
            (80_003, Kernel::V6_12, &[0x1000, 0x2000, 0x3000, (1 << 40) - (4 << 20)]),
        ] {
            for &start in taken {
                let result = map(&mut vm(gfx, kernel), start, 0x1000);
                assert_eq!(result, Err(Errno::EINVAL), "{gfx}, {kernel:?}, {start:#x}");
            }
            assert_eq!(map(&mut vm(gfx, kernel), 0x4000, 0x1000), Ok(()));
        }
    }
}
