//! The memory behind buffers: who keeps it, where a render file maps it, where the
//! host has its contents, and the limits of kernel-rules section 2, "Accounting" (amdgpu_amdkfd_gpuvm.c).

use alloc::collections::{BTreeMap, BTreeSet};
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;

use crate::descriptor::FileId;
use crate::topology::{Gpu, Topology};

/// The identity of a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub(crate) struct MemoryId(pub u64);

/// Where memory is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Place {
    /// On the GPU.
    Vram,
    /// System memory that the driver allocated.
    Gtt,
    /// An APU's own VRAM, which is counted as system memory as well.
    CarveOut,
    /// Pages of the process.
    User,
    /// A file in memory: pages of the system that no GPU's driver counts.
    File,
    /// Doorbells or a page of registers: on the GPU, and counted nowhere.
    Registers,
}

/// A piece of memory (`struct amdgpu_bo`). It lives by what holds it (buffers, GEM
/// handles, its dma-buf) and by CPU mappings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Memory {
    pub place: Place,
    /// Bytes, whole pages.
    pub size: u64,
    /// The GPU whose VRAM it is or was asked for.
    pub gpu_id: u32,
    /// The render node through which it can be mapped, and the offset there.
    pub minor: u32,
    pub offset: u64,
    /// The open files that may map it, with how often each was allowed
    /// (drm_vma_manager.c): the one bound for the owner GPU, those with a GEM handle.
    allowed: BTreeMap<FileId, u32>,
    /// Whether all of it has to be in the CPU's reach.
    pub public: bool,
    /// What a driver of user space keeps with it.
    pub metadata: Metadata,
    /// Its dma-buf, if there is one.
    pub dma_buf: Option<DmaBuf>,
    /// Where the host has its contents.
    pub host: Option<usize>,
    /// How many buffers, GEM handles, dma-bufs hold it.
    holders: u32,
}

/// What a driver of user space keeps with memory (GEM_METADATA).
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(crate) struct Metadata {
    pub flags: u64,
    pub tiling: u64,
    pub bytes: Vec<u8>,
}

/// The dma-buf of a piece of memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct DmaBuf {
    pub file: FileId,
    /// Buffers and handles that were exported to it or imported from it: they keep
    /// it open.
    pub holds: u32,
}

impl Memory {
    /// Lets a file map it, once more.
    pub(crate) fn allow(&mut self, file: FileId) {
        *self.allowed.entry(file).or_default() += 1;
    }

    /// Takes back one [`Memory::allow`].
    pub(crate) fn revoke(&mut self, file: FileId) {
        if let Some(count) = self.allowed.get_mut(&file) {
            *count -= 1;
            if *count == 0 {
                self.allowed.remove(&file);
            }
        }
    }

    pub(crate) fn allows(&self, file: FileId) -> bool {
        self.allowed.contains_key(&file)
    }
}

/// All memory of the machine.
#[derive(Debug, Default)]
pub(crate) struct GpuMemory {
    memories: BTreeMap<MemoryId, Memory>,
    offsets: BTreeMap<(u32, u64), MemoryId>,
    next_offset: BTreeMap<u32, u64>,
    /// Memory that nothing holds, which a CPU mapping may keep.
    orphans: BTreeSet<MemoryId>,
    /// Those of them that may have lost their last mapping.
    doubtful: Vec<MemoryId>,
    /// Address and length of memory of the host that is needed no more.
    discarded: Vec<(usize, usize)>,
    system_used: u64,
    gtt_used: u64,
    vram_used: BTreeMap<u32, Vram>,
}

/// What is used of a GPU's VRAM.
#[derive(Debug, Clone, Copy, Default)]
struct Vram {
    bytes: u64,
    /// The same with each buffer rounded up to [`GRANULE`].
    in_granules: u64,
}

/// VRAM is counted in pieces of this size.
const GRANULE: u64 = 2 << 20;
/// The least that is kept for page tables.
const LEAST_PAGE_TABLES: u64 = 8 << 20;
/// RAM that no GPU may take, beside 1/64 of it.
const SYSTEM_RESERVE: u64 = 3 << 29;
/// drm_vma_manager.c: offsets of buffers begin above those of old mappings.
const FIRST_OFFSET: u64 = 1 << 32;

/// What of all RAM GPUs may take.
fn system_limit(topology: &Topology) -> u64 {
    let ram: u64 = topology
        .nodes
        .iter()
        .filter(|node| node.cpu.is_some())
        .flat_map(|node| &node.banks)
        .map(|bank| bank.size_in_bytes)
        .sum();
    if ram < 2 * SYSTEM_RESERVE { ram / 2 } else { ram - ram / 64 - SYSTEM_RESERVE }
}

/// What of a GPU's VRAM buffers may take.
fn vram_limit(topology: &Topology, gpu: &Gpu) -> u64 {
    let all: u64 = topology.gpus().map(|(_, gpu)| gpu.vram).sum();
    let tables = (all >> 14).max(LEAST_PAGE_TABLES);
    gpu.vram.saturating_sub(gpu.missing_vram).saturating_sub(tables)
}

impl GpuMemory {
    /// Takes memory of a GPU; ENOMEM beyond a limit. One thing holds it.
    pub(crate) fn take(
        &mut self,
        id: MemoryId,
        topology: &Topology,
        gpu: &Gpu,
        place: Place,
        size: u64,
    ) -> Result<(), Errno> {
        self.check(topology, gpu, place, size)?;
        self.count(place, gpu.id, size, u64::wrapping_add);
        let minor = gpu.render_minor();
        let next = self.next_offset.entry(minor).or_insert(FIRST_OFFSET);
        let offset = *next;
        // An offset is never given twice, so that a stale one shows.
        *next += size;
        self.offsets.insert((minor, offset), id);
        let memory = Memory {
            place,
            size,
            gpu_id: gpu.id,
            minor,
            offset,
            allowed: BTreeMap::new(),
            public: false,
            metadata: Metadata::default(),
            dma_buf: None,
            host: None,
            holders: 1,
        };
        self.memories.insert(id, memory);
        Ok(())
    }

    /// Makes memory that is a file's, which holds it.
    pub(crate) fn make_file(&mut self, id: MemoryId, size: u64) {
        let memory = Memory {
            place: Place::File,
            size,
            gpu_id: 0,
            minor: 0,
            offset: id.0,
            allowed: BTreeMap::new(),
            public: false,
            metadata: Metadata::default(),
            dma_buf: None,
            host: None,
            holders: 1,
        };
        self.memories.insert(id, memory);
    }

    /// Whether the limits leave room.
    pub(crate) fn check(
        &self,
        topology: &Topology,
        gpu: &Gpu,
        place: Place,
        size: u64,
    ) -> Result<(), Errno> {
        let fits = |used: u64, limit: u64| used.checked_add(size).is_some_and(|sum| sum <= limit);
        let vram = self.vram_used.get(&gpu.id).copied().unwrap_or_default().bytes;
        let system = || fits(self.system_used, system_limit(topology));
        let room = match place {
            Place::Vram => fits(vram, vram_limit(topology, gpu)),
            Place::CarveOut => fits(vram, vram_limit(topology, gpu)) && system(),
            Place::Gtt => system() && fits(self.gtt_used, gpu.gtt),
            Place::User => system(),
            Place::File | Place::Registers => true,
        };
        if room { Ok(()) } else { Err(Errno::ENOMEM) }
    }

    /// Counts SVM ranges, which are system memory with XNACK off; ENOMEM beyond
    /// the limit.
    pub(crate) fn take_system(&mut self, topology: &Topology, bytes: u64) -> Result<(), Errno> {
        let used = self.system_used.checked_add(bytes).ok_or(Errno::ENOMEM)?;
        if bytes > 0 && used > system_limit(topology) {
            return Err(Errno::ENOMEM);
        }
        self.system_used = used;
        Ok(())
    }

    /// Takes SVM ranges off again.
    pub(crate) fn drop_system(&mut self, bytes: u64) {
        self.system_used = self.system_used.wrapping_sub(bytes);
    }

    fn count(&mut self, place: Place, gpu_id: u32, size: u64, step: fn(u64, u64) -> u64) {
        match place {
            Place::Vram | Place::CarveOut => {
                if place == Place::CarveOut {
                    self.system_used = step(self.system_used, size);
                }
                let vram = self.vram_used.entry(gpu_id).or_default();
                vram.bytes = step(vram.bytes, size);
                vram.in_granules = step(vram.in_granules, size.next_multiple_of(GRANULE));
            }
            Place::Gtt => {
                self.system_used = step(self.system_used, size);
                self.gtt_used = step(self.gtt_used, size);
            }
            Place::User => self.system_used = step(self.system_used, size),
            Place::File | Place::Registers => {}
        }
    }

    /// kernel-rules section 2: VRAM in whole granules, or for an APU the least of
    /// the three limits, in pages. Where its VRAM is GTT that is the third as well.
    pub(crate) fn available(&self, topology: &Topology, gpu: &Gpu, vram_is: Place) -> u64 {
        let used = self.vram_used.get(&gpu.id).copied().unwrap_or_default().in_granules;
        let vram = vram_limit(topology, gpu).saturating_sub(used);
        let system = system_limit(topology).saturating_sub(self.system_used);
        let gtt = gpu.gtt.saturating_sub(self.gtt_used);
        match vram_is {
            Place::Gtt => system.min(gtt) / 4096 * 4096,
            Place::CarveOut => system.min(gtt).min(vram) / 4096 * 4096,
            _ => vram / GRANULE * GRANULE,
        }
    }

    /// Bytes of a GPU's VRAM and of all system memory of the driver in use.
    pub(crate) fn used(&self, gpu_id: u32) -> (u64, u64) {
        (self.vram_used.get(&gpu_id).map_or(0, |vram| vram.bytes), self.gtt_used)
    }

    pub(crate) fn iter(&self) -> impl Iterator<Item = (MemoryId, &Memory)> {
        self.memories.iter().map(|(id, memory)| (*id, memory))
    }

    pub(crate) fn get_mut(&mut self, id: MemoryId) -> Option<&mut Memory> {
        self.memories.get_mut(&id)
    }

    /// The memory that starts at this offset of a render node.
    pub(crate) fn at_offset(&self, minor: u32, offset: u64) -> Option<(MemoryId, &Memory)> {
        let id = *self.offsets.get(&(minor, offset))?;
        Some((id, self.memories.get(&id)?))
    }

    pub(crate) fn get(&self, id: MemoryId) -> Option<&Memory> {
        self.memories.get(&id)
    }

    /// One more thing holds it.
    pub(crate) fn hold(&mut self, id: MemoryId) {
        if let Some(memory) = self.memories.get_mut(&id) {
            memory.holders += 1;
            self.orphans.remove(&id);
        }
    }

    /// One thing less holds it.
    pub(crate) fn let_go(&mut self, id: MemoryId) {
        if let Some(memory) = self.memories.get_mut(&id) {
            memory.holders = memory.holders.saturating_sub(1);
            if memory.holders == 0 {
                self.orphans.insert(id);
                self.doubtful.push(id);
            }
        }
    }

    /// Memory of the host that is needed no more.
    pub(crate) fn take_discarded(&mut self) -> Vec<(usize, usize)> {
        core::mem::take(&mut self.discarded)
    }

    /// A CPU mapping of memory went.
    pub(crate) fn unmapped(&mut self, id: MemoryId) {
        if self.orphans.contains(&id) {
            self.doubtful.push(id);
        }
    }

    /// Any mapping may have gone.
    pub(crate) fn look_at_all_orphans(&mut self) {
        self.doubtful = self.orphans.iter().copied().collect();
    }

    /// Ends memory that nothing holds and no CPU mapping keeps.
    pub(crate) fn collect(&mut self, is_mapped: impl Fn(MemoryId) -> bool) {
        for id in core::mem::take(&mut self.doubtful) {
            if !self.orphans.contains(&id) || is_mapped(id) {
                continue;
            }
            self.orphans.remove(&id);
            if let Some(memory) = self.memories.remove(&id) {
                self.offsets.remove(&(memory.minor, memory.offset));
                self.count(memory.place, memory.gpu_id, memory.size, u64::wrapping_sub);
                self.discarded.extend(memory.host.map(|at| (at, memory.size as usize)));
            }
        }
    }

    /// Bytes of memory that nothing holds any more and a CPU mapping keeps.
    pub(crate) fn orphaned_bytes(&self) -> u64 {
        self.orphans.iter().filter_map(|id| self.memories.get(id)).map(|memory| memory.size).sum()
    }
}
