//! The memory banks that callers see: the kernel's, and one for each aperture
//! of a GPU.

use super::{GfxVersion, HeapType, MemoryBank, Node};

/// Banks that a GPU is counted with beyond the kernel's: LDS, scratch, SVM. The
/// reference library counts them whether or not the apertures are there.
const COUNTED_APERTURES: u32 = 3;

/// Kaveri, whose video memory the kernel gives no bank of its own.
const KAVERI: GfxVersion = GfxVersion { major: 7, minor: 0, stepping: 0 };

/// A range of the address space, its last byte included.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Aperture {
    /// The first address.
    pub base: u64,
    /// The last address.
    pub limit: u64,
}

impl Aperture {
    /// Bytes; the whole address space counts as one less.
    #[must_use]
    pub const fn size(self) -> u64 {
        self.limit.saturating_sub(self.base).saturating_add(1)
    }
}

/// A GPU's apertures; `None` for what it does not have, or what nobody asked
/// for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Apertures {
    /// Where a work-group's local data share appears.
    pub lds: Option<Aperture>,
    /// Where a wave's scratch memory appears.
    pub scratch: Option<Aperture>,
    /// The GPU's own virtual address space, on GPUs that have one.
    pub gpuvm: Option<Aperture>,
    /// What CPU and GPUs share: from the base of the coherent aperture to the
    /// limit of the default one.
    pub svm: Option<Aperture>,
    /// The page with the GPU's flush registers.
    pub mmio: Option<Aperture>,
}

impl Node {
    /// How many banks the C getter of node properties counts.
    #[must_use]
    pub fn memory_bank_count(&self, apertures: &Apertures) -> u32 {
        let banks = u32::try_from(self.banks.len()).unwrap_or(u32::MAX);
        if !self.is_gpu() {
            return banks;
        }
        let mmio = u32::from(apertures.mmio.is_some());
        banks.saturating_add(COUNTED_APERTURES).saturating_add(mmio)
    }

    /// The banks in the order of the C getter: the kernel's, then for a GPU LDS,
    /// Kaveri's video memory, scratch, SVM, flush registers, each if its aperture
    /// is there.
    pub fn memory_banks(&self, apertures: &Apertures) -> impl Iterator<Item = MemoryBank> + '_ {
        let apertures = if self.is_gpu() { *apertures } else { Apertures::default() };
        let lds_bytes = u64::from(self.lds_size_in_kb).saturating_mul(1024);
        let kaveri = self.effective_gfx_version() == KAVERI && self.local_mem_size > 0;
        let synthetic = [
            bank(HeapType::GPU_LDS, apertures.lds, Some(lds_bytes)),
            bank(
                HeapType::FRAME_BUFFER_PRIVATE,
                apertures.gpuvm.filter(|_| kaveri),
                Some(self.local_mem_size),
            ),
            bank(HeapType::GPU_SCRATCH, apertures.scratch, None),
            bank(HeapType::DEVICE_SVM, apertures.svm, None),
            bank(HeapType::MMIO_REMAP, apertures.mmio, None),
        ];
        self.banks.iter().copied().chain(synthetic.into_iter().flatten())
    }
}

/// The bank of an aperture; `size` in bytes where it is not the aperture's own.
fn bank(heap_type: HeapType, aperture: Option<Aperture>, size: Option<u64>) -> Option<MemoryBank> {
    let aperture = aperture?;
    Some(MemoryBank {
        heap_type,
        size_in_bytes: size.unwrap_or(aperture.size()),
        virtual_base_address: aperture.base,
        ..MemoryBank::default()
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::vec;
    use alloc::vec::Vec;

    const ALL: Apertures = Apertures {
        lds: Some(Aperture { base: 1 << 56, limit: (1 << 56) + 0xffff_ffff }),
        scratch: Some(Aperture { base: 2 << 56, limit: (2 << 56) + 0xffff_ffff }),
        gpuvm: Some(Aperture { base: 3 << 56, limit: (3 << 56) + 0xff }),
        svm: Some(Aperture { base: 0x20_0000, limit: (1 << 47) - 1 }),
        mmio: Some(Aperture { base: 0x7f00_0000, limit: 0x7f00_0fff }),
    };

    fn gpu() -> Node {
        let banks =
            vec![MemoryBank { heap_type: HeapType(1), size_in_bytes: 5, ..MemoryBank::default() }];
        Node { gpu_id: 7, lds_size_in_kb: 64, banks, ..Node::default() }
    }

    fn list(node: &Node, apertures: &Apertures) -> Vec<(u32, u64)> {
        node.memory_banks(apertures).map(|bank| (bank.heap_type.0, bank.size_in_bytes)).collect()
    }

    #[test]
    fn a_gpu_with_all_apertures() {
        let node = gpu();
        let svm = (1 << 47) - 0x20_0000;
        assert_eq!(list(&node, &ALL), [(1, 5), (4, 65536), (5, 1 << 32), (6, svm), (7, 4096)]);
        assert_eq!(node.memory_bank_count(&ALL), 5);
        assert_eq!(node.memory_banks(&ALL).last().unwrap().virtual_base_address, 0x7f00_0000);
    }

    #[test]
    fn without_apertures_they_still_count() {
        let node = gpu();
        assert_eq!(list(&node, &Apertures::default()), [(1, 5)]);
        assert_eq!(node.memory_bank_count(&Apertures::default()), 4);
    }

    #[test]
    fn a_cpu_has_its_own_banks_only() {
        let node = Node { gpu_id: 0, ..gpu() };
        assert_eq!(list(&node, &ALL), [(1, 5)]);
        assert_eq!(node.memory_bank_count(&ALL), 1);
    }

    #[test]
    fn kaveri_shows_its_video_memory() {
        let node = Node { gfx_version: KAVERI, local_mem_size: 512, ..gpu() };
        assert_eq!(list(&node, &ALL)[1..3], [(4, 65536), (2, 512)]);
    }

    #[test]
    fn sizes_do_not_overflow() {
        assert_eq!(Aperture { base: 0, limit: u64::MAX }.size(), u64::MAX);
        assert_eq!(Aperture { base: 9, limit: 3 }.size(), 1);
    }
}
