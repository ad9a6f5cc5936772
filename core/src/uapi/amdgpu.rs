//! Requests of the render node that are amdgpu's own: `drm/amdgpu_drm.h`,
//! letter `d`, numbers from 0x40.
//!
//! EINTR and EAGAIN are both sent again: `drmIoctl` of libdrm does, and the
//! driver relies on it.

use super::scalar::{flags, open_enum};
use super::{block, record};

open_enum! {
    /// Which question [`Info`] asks.
    pub struct InfoQuery: u32 {
        /// A `u32`: 1 when the GPU executes commands.
        const ACCEL_WORKING = 0x00;
        /// An [`InfoVramGtt`].
        const VRAM_GTT = 0x14;
        /// Registers, see [`InfoReadMmrReg`].
        const READ_MMR_REG = 0x15;
        /// An [`InfoDevice`].
        const DEV_INFO = 0x16;
        /// A [`MemoryInfo`].
        const MEMORY = 0x19;
    }
}

block! {
    /// Asks about the GPU. The driver copies the smaller of `return_size` and
    /// its answer.
    ///
    /// EINVAL: size or pointer 0, unknown query.
    pub struct Info: Write b'd' 0x45 "AMDGPU_INFO", 32 bytes, EintrEagain {
        /// The answer.
        pub return_pointer: u64 => Out,
        /// Bytes of the answer's array.
        pub return_size: u32,
        /// The question.
        pub query: InfoQuery,
        /// Zero for the questions that have no parameter.
        pub parameters: [u32; 4],
    }
}

block! {
    /// Reads GPU registers from the driver's list of permitted ones.
    ///
    /// EINVAL: instance beyond the chip, more than 128 registers. EFAULT: a
    /// register that is not permitted.
    pub struct InfoReadMmrReg: Write b'd' 0x45 "AMDGPU_INFO_READ_MMR_REG", 32 bytes, EintrEagain {
        /// `count` registers of 4 bytes.
        pub return_pointer: u64 => Out,
        /// Bytes of that array.
        pub return_size: u32,
        /// Always [`InfoQuery::READ_MMR_REG`].
        pub query: InfoQuery = InfoQuery::READ_MMR_REG,
        /// The first register, in dwords from the start of the register space.
        pub dword_offset: u32,
        /// Registers to read.
        pub count: u32,
        /// Bits 0-7 shader engine, 8-15 shader array, 0xff for broadcast.
        pub instance: u32,
        /// Zero.
        pub flags: u32,
    }
}

flags! {
    /// Properties of the GPU as a whole.
    pub struct InfoDeviceFlags: u64 {
        /// CPU and GPU share one memory (an APU).
        const FUSION = 1 << 0;
        /// Command preemption.
        const PREEMPTION = 1 << 1;
        /// Encrypted memory.
        const TMZ = 1 << 2;
        /// Texture coordinates are truncated as the standards say.
        const CONFORMANT_TRUNC_COORD = 1 << 3;
        /// Submissions to several engines at once.
        const GANG_SUBMIT = 1 << 4;
    }
}

record! {
    /// The answer to [`InfoQuery::DEV_INFO`]. Older drivers answer less; what
    /// they leave out stays as it was, zero.
    pub struct InfoDevice: "drm_amdgpu_info_device", 440 bytes {
        /// PCI device id.
        pub device_id: u32,
        /// Revision within the family.
        pub chip_rev: u32,
        /// Revision among all chips of the family.
        pub external_rev: u32,
        /// PCI revision id.
        pub pci_rev: u32,
        /// Chip family.
        pub family: u32,
        /// Shader engines.
        pub num_shader_engines: u32,
        /// Shader arrays in each engine.
        pub num_shader_arrays_per_engine: u32,
        /// Frequency of the GPU's clock counter in kHz.
        pub gpu_counter_freq: u32,
        /// Highest engine clock in kHz.
        pub max_engine_clock: u64,
        /// Highest memory clock in kHz.
        pub max_memory_clock: u64,
        /// Compute units in use.
        pub cu_active_number: u32,
        /// Not valid, see `cu_ao_bitmap`.
        pub cu_ao_mask: u32,
        /// Compute units in use, one word for each engine and array.
        pub cu_bitmap: [[u32; 4]; 4],
        /// Render backends in use, low word.
        pub enabled_rb_pipes_mask: u32,
        /// Render backends.
        pub num_rb_pipes: u32,
        /// Hardware contexts.
        pub num_hw_gfx_contexts: u32,
        /// PCIe generation of the slowest part of the link; 0 before 6.3.
        pub pcie_gen: u32,
        /// Properties.
        pub ids_flags: InfoDeviceFlags,
        /// First address a program may map.
        pub virtual_address_offset: u64,
        /// First address past the low range.
        pub virtual_address_max: u64,
        /// Alignment of mappings in bytes.
        pub virtual_address_alignment: u32,
        /// Bytes a page-table fragment covers.
        pub pte_fragment_size: u32,
        /// Bytes of a GPU page.
        pub gart_page_size: u32,
        /// Bytes of constant engine memory.
        pub ce_ram_size: u32,
        /// Kind of video memory.
        pub vram_type: u32,
        /// Its width in bits.
        pub vram_bit_width: u32,
        /// Video encoder instances fused off.
        pub vce_harvest_config: u32,
        /// Whether off-chip LDS buffers are doubled.
        pub gc_double_offchip_lds_buf: u32,
        /// Address of the primitive buffer.
        pub prim_buf_gpu_addr: u64,
        /// Address of the position buffer.
        pub pos_buf_gpu_addr: u64,
        /// Address of the control sideband buffer.
        pub cntl_sb_buf_gpu_addr: u64,
        /// Address of the parameter cache buffer.
        pub param_buf_gpu_addr: u64,
        /// Bytes of the primitive buffer.
        pub prim_buf_size: u32,
        /// Bytes of the position buffer.
        pub pos_buf_size: u32,
        /// Bytes of the control sideband buffer.
        pub cntl_sb_buf_size: u32,
        /// Bytes of the parameter cache buffer.
        pub param_buf_size: u32,
        /// Lanes of a wavefront.
        pub wave_front_size: u32,
        /// Vector registers a shader can address.
        pub num_shader_visible_vgprs: u32,
        /// Compute units of a shader array.
        pub num_cu_per_sh: u32,
        /// L2 cache channels.
        pub num_tcc_blocks: u32,
        /// Depth of the geometry shader table.
        pub gs_vgt_table_depth: u32,
        /// Depth of the geometry primitive buffer.
        pub gs_prim_buffer_depth: u32,
        /// Geometry waves per vertex grouper.
        pub max_gs_waves_per_vgt: u32,
        /// PCIe lanes of the narrowest part of the link; 0 before 6.3.
        pub pcie_num_lanes: u32,
        /// Compute units that never sleep, one word for each engine and array.
        pub cu_ao_bitmap: [[u32; 4]; 4],
        /// First address of the high range.
        pub high_va_offset: u64,
        /// First address past it.
        pub high_va_max: u64,
        /// Tile steering of gfx10.
        pub pa_sc_tile_steering_override: u32,
        /// Zero.
        pub reserved: u32,
        /// L2 cache channels fused off.
        pub tcc_disabled_mask: u64,
        /// Lowest engine clock in kHz; 6.3.
        pub min_engine_clock: u64,
        /// Lowest memory clock in kHz; 6.3.
        pub min_memory_clock: u64,
        /// Vector L0 cache in KiB; gfx11, 6.3.
        pub tcp_cache_size: u32,
        /// Scalar caches per work-group processor; gfx11, 6.3.
        pub num_sqc_per_wgp: u32,
        /// Scalar data cache in KiB; gfx11, 6.3.
        pub sqc_data_cache_size: u32,
        /// Scalar instruction cache in KiB; gfx11, 6.3.
        pub sqc_inst_cache_size: u32,
        /// L1 cache in KiB; gfx11, 6.3.
        pub gl1c_cache_size: u32,
        /// L2 cache in KiB; gfx11, 6.3.
        pub gl2c_cache_size: u32,
        /// Last-level cache in bytes; gfx11, 6.3.
        pub mall_size: u64,
        /// Render backends in use, high word; 6.3.
        pub enabled_rb_pipes_mask_hi: u32,
        /// Bytes of the shadow area of gfx11; 6.4.
        pub shadow_size: u32,
        /// Its alignment in bytes; 6.4.
        pub shadow_alignment: u32,
        /// Bytes of the context save area of gfx11; 6.4.
        pub csa_size: u32,
        /// Its alignment in bytes; 6.4.
        pub csa_alignment: u32,
        /// Engines with user queues, bit n for hardware block n; 6.16.
        pub userq_ip_mask: u32,
    }
}

record! {
    /// One heap, counted over all processes.
    pub struct HeapInfo: "drm_amdgpu_heap_info", 32 bytes {
        /// Bytes there are.
        pub total_heap_size: u64,
        /// Bytes that are not pinned by the driver.
        pub usable_heap_size: u64,
        /// Bytes in use.
        pub heap_usage: u64,
        /// Bytes the largest buffer could have.
        pub max_allocation: u64,
    }
}

record! {
    /// The answer to [`InfoQuery::MEMORY`].
    pub struct MemoryInfo: "drm_amdgpu_memory_info", 96 bytes {
        /// Video memory.
        pub vram: HeapInfo,
        /// The part of it that the CPU can see.
        pub cpu_accessible_vram: HeapInfo,
        /// System memory mapped for the GPU.
        pub gtt: HeapInfo,
    }
}

record! {
    /// The answer to [`InfoQuery::VRAM_GTT`].
    pub struct InfoVramGtt: "drm_amdgpu_info_vram_gtt", 24 bytes {
        /// Bytes of video memory.
        pub vram_size: u64,
        /// Bytes of it that the CPU can see.
        pub vram_cpu_accessible_size: u64,
        /// Bytes of system memory that can be mapped.
        pub gtt_size: u64,
    }
}

flags! {
    /// Where a buffer may be.
    pub struct GemDomain: u64 {
        /// System memory that no GPU accesses.
        const CPU = 1 << 0;
        /// System memory that the GPU accesses.
        const GTT = 1 << 1;
        /// Video memory.
        const VRAM = 1 << 2;
        /// Global data share.
        const GDS = 1 << 3;
        /// Global wave sync.
        const GWS = 1 << 4;
        /// Ordered append.
        const OA = 1 << 5;
    }
}

flags! {
    /// Properties of a buffer.
    pub struct GemCreateFlags: u64 {
        /// The CPU must reach it.
        const CPU_ACCESS_REQUIRED = 1 << 0;
        /// The CPU never will.
        const NO_CPU_ACCESS = 1 << 1;
        /// The CPU's accesses are write-combined.
        const CPU_GTT_USWC = 1 << 2;
        /// Zero at the start.
        const VRAM_CLEARED = 1 << 3;
        /// Video memory in one piece.
        const VRAM_CONTIGUOUS = 1 << 5;
        /// Belongs to this VM alone and is always resident.
        const VM_ALWAYS_VALID = 1 << 6;
        /// No implicit synchronisation.
        const EXPLICIT_SYNC = 1 << 7;
        /// A queue descriptor on gfx9.
        const CP_MQD_GFX9 = 1 << 8;
        /// Cleared when it is freed.
        const VRAM_WIPE_ON_RELEASE = 1 << 9;
        /// Encrypted.
        const ENCRYPTED = 1 << 10;
        /// The GPU may be stopped to move it.
        const PREEMPTIBLE = 1 << 11;
        /// Its content may be lost instead of moved.
        const DISCARDABLE = 1 << 12;
        /// Fine-grained coherence.
        const COHERENT = 1 << 13;
        /// Not cached by the GPU.
        const UNCACHED = 1 << 14;
        /// Coherent over all agents at system scope.
        const EXT_COHERENT = 1 << 15;
        /// Compressed, on gfx12.
        const GFX12_DCC = 1 << 16;
    }
}

block! {
    /// Makes a buffer of the DRM driver. The answer is written over the question:
    /// [`GemCreate::handle`].
    ///
    /// EINVAL: flags or domains. ENOMEM.
    pub struct GemCreate: ReadWrite b'd' 0x40 "AMDGPU_GEM_CREATE", 32 bytes, EintrEagain {
        /// Bytes, rounded up to a page.
        pub bo_size: u64,
        /// Alignment in bytes of its place in video memory.
        pub alignment: u64,
        /// Where it may be.
        pub domains: GemDomain,
        /// Properties.
        pub domain_flags: GemCreateFlags,
    }
}

impl GemCreate {
    /// The driver's answer: the buffer. Handles start at 1.
    #[must_use]
    pub fn handle(&self) -> u32 {
        let [handle, _]: [u32; 2] = zerocopy::transmute!(self.bo_size);
        handle
    }

    /// Puts an answer in place of the question, as the driver does.
    pub fn set_handle(&mut self, handle: u32) {
        self.bo_size = zerocopy::transmute!([handle, 0]);
    }
}

block! {
    /// Asks for the offset by which the CPU maps a buffer. The answer is written
    /// over the question: [`GemMmap::offset`].
    ///
    /// ENOENT: unknown handle. EPERM: no CPU access, or user memory.
    pub struct GemMmap: ReadWrite b'd' 0x41 "AMDGPU_GEM_MMAP", 8 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Zero.
        pub _pad: u32,
    }
}

impl GemMmap {
    /// The driver's answer: the offset for mmap of the render node.
    #[must_use]
    pub fn offset(&self) -> u64 {
        zerocopy::transmute!([self.handle, self._pad])
    }

    /// Puts an answer in place of the question, as the driver does.
    pub fn set_offset(&mut self, offset: u64) {
        [self.handle, self._pad] = zerocopy::transmute!(offset);
    }
}

open_enum! {
    /// What a [`GemMetadata`] does.
    pub struct GemMetadataOp: u32 {
        /// Stores.
        const SET_METADATA = 1;
        /// Asks.
        const GET_METADATA = 2;
    }
}

block! {
    /// Stores or asks what a buffer's owner wants others to know.
    ///
    /// ENOENT: unknown handle. EINVAL: operation, size.
    pub struct GemMetadata: ReadWrite b'd' 0x46 "AMDGPU_GEM_METADATA", 288 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Store or ask.
        pub op: GemMetadataOp,
        /// Zero.
        pub flags: u64,
        /// How it is tiled.
        pub tiling_info: u64,
        /// Bytes of `data` in use.
        pub data_size_bytes: u32,
        /// Any data.
        pub data: [u32; 64],
        /// Zero.
        pub reserved: u32,
    }
}

open_enum! {
    /// What a GEM_OP does; each has its block.
    pub struct GemOperation: u32 {
        /// [`GemOpGetGemCreateInfo`].
        const GET_GEM_CREATE_INFO = 0;
        /// [`GemOpSetPlacement`].
        const SET_PLACEMENT = 1;
    }
}

record! {
    /// How a buffer was made.
    pub struct GemCreateIn: "drm_amdgpu_gem_create_in", 32 bytes {
        /// Bytes.
        pub bo_size: u64,
        /// Alignment in bytes.
        pub alignment: u64,
        /// Where it may be.
        pub domains: GemDomain,
        /// Properties.
        pub domain_flags: GemCreateFlags,
    }
}

block! {
    /// Asks how a buffer was made.
    ///
    /// ENOENT: unknown handle. EFAULT.
    pub struct GemOpGetGemCreateInfo: ReadWrite b'd' 0x50 "AMDGPU_GEM_OP_GET_GEM_CREATE_INFO",
        16 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Always [`GemOperation::GET_GEM_CREATE_INFO`].
        pub op: GemOperation = GemOperation::GET_GEM_CREATE_INFO,
        /// A [`GemCreateIn`].
        pub value: u64 => Out,
    }
}

block! {
    /// Sets where a buffer should be.
    ///
    /// ENOENT: unknown handle. EINVAL: shared, pinned. EPERM: user memory.
    pub struct GemOpSetPlacement: ReadWrite b'd' 0x50 "AMDGPU_GEM_OP_SET_PLACEMENT",
        16 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Always [`GemOperation::SET_PLACEMENT`].
        pub op: GemOperation = GemOperation::SET_PLACEMENT,
        /// Where.
        pub value: GemDomain,
    }
}

open_enum! {
    /// What a [`GemVa`] does.
    pub struct VaOp: u32 {
        /// Maps part of a buffer.
        const MAP = 1;
        /// Unmaps what was mapped at exactly this address.
        const UNMAP = 2;
        /// Unmaps whatever is in a range.
        const CLEAR = 3;
        /// Both at once: whatever was in the range gives way.
        const REPLACE = 4;
    }
}

flags! {
    /// Rights and properties of a mapping. Bits 5 to 8 are a [`VmMtype`].
    pub struct VmFlags: u32 {
        /// Page tables are written with the next submission. Not with an out
        /// point.
        const DELAY_UPDATE = 1 << 0;
        /// The GPU may read.
        const PAGE_READABLE = 1 << 1;
        /// The GPU may write.
        const PAGE_WRITEABLE = 1 << 2;
        /// The GPU may execute.
        const PAGE_EXECUTABLE = 1 << 3;
        /// No buffer: reads are zero, writes vanish.
        const PAGE_PRT = 1 << 4;
        /// Not in the last-level cache.
        const PAGE_NOALLOC = 1 << 9;
    }
}

open_enum! {
    /// How the GPU caches a mapping, in place for [`VmFlags`].
    pub struct VmMtype: u32 {
        /// As the driver thinks best.
        const DEFAULT = 0;
        /// Not coherent.
        const NC = 1 << 5;
        /// Write-combined.
        const WC = 2 << 5;
        /// Coherent.
        const CC = 3 << 5;
        /// Not cached.
        const UC = 4 << 5;
        /// Read and write.
        const RW = 5 << 5;
    }
}

impl VmMtype {
    /// The bits of [`VmFlags`] that it takes.
    pub const MASK: u32 = 0xf << 5;
}

impl VmFlags {
    /// The same flags with this caching.
    #[must_use]
    pub const fn with_mtype(self, mtype: VmMtype) -> VmFlags {
        VmFlags(self.0 & !VmMtype::MASK | mtype.0 & VmMtype::MASK)
    }

    /// The caching in the flags.
    #[must_use]
    pub const fn mtype(self) -> VmMtype {
        VmMtype(self.0 & VmMtype::MASK)
    }
}

block! {
    /// Maps and unmaps buffers of the DRM driver in the VM of the open file. On a
    /// VM bound to a compute process since 1.15 of that driver.
    ///
    /// EINVAL: reserved or misaligned addresses, overlap, beyond the buffer,
    /// flags, operation. ENOENT: unknown handle, nothing mapped exactly there.
    pub struct GemVa: Write b'd' 0x48 "AMDGPU_GEM_VA", 40 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Zero.
        pub _pad: u32,
        /// What to do.
        pub operation: VaOp,
        /// Rights.
        pub flags: VmFlags,
        /// GPU address.
        pub va_address: u64,
        /// Bytes from the start of the buffer.
        pub offset_in_bo: u64,
        /// Bytes.
        pub map_size: u64,
    }
}

block! {
    /// [`GemVa`] that waits for sync objects and signals a point (7.2). A driver
    /// without these fields ignores them and says nothing.
    ///
    /// Further, EINVAL: DELAY_UPDATE with an out point. ENOENT: unknown sync object.
    pub struct GemVaTimeline: Write b'd' 0x48 "AMDGPU_GEM_VA", 64 bytes, EintrEagain {
        /// The buffer.
        pub handle: u32,
        /// Zero.
        pub _pad: u32,
        /// What to do.
        pub operation: VaOp,
        /// Rights.
        pub flags: VmFlags,
        /// GPU address.
        pub va_address: u64,
        /// Bytes from the start of the buffer.
        pub offset_in_bo: u64,
        /// Bytes.
        pub map_size: u64,
        /// The point to signal when the page tables are written; 0 makes the
        /// object a binary one.
        pub vm_timeline_point: u64,
        /// The sync object to signal, or 0.
        pub vm_timeline_syncobj_out: u32,
        /// Elements in the array.
        pub num_syncobj_handles: u32,
        /// An array of `u32` sync objects to wait for first.
        pub input_fence_syncobj_handles: u64 => In,
    }
}

open_enum! {
    /// What a [`Vm`] does.
    pub struct VmOp: u32 {
        /// Reserves a hardware VM for this file.
        const RESERVE_VMID = 1;
        /// Gives it back.
        const UNRESERVE_VMID = 2;
    }
}

block! {
    /// Settings of the VM of the open file. The answer, flags without a meaning
    /// yet, is written over the question.
    ///
    /// EINVAL: operation.
    pub struct Vm: ReadWrite b'd' 0x53 "AMDGPU_VM", 8 bytes, EintrEagain {
        /// What to do.
        pub op: VmOp,
        /// Zero.
        pub flags: u32,
    }
}

open_enum! {
    /// Which option a [`ProcOptions`] sets.
    pub struct ProcOption: u32 {
        /// When SIGBUS comes after poisoned data was used.
        const KFD_SIGBUS_DELAY = 0;
    }
}

/// A [`ProcOption::KFD_SIGBUS_DELAY`] for no SIGBUS at all.
pub const KFD_SIGBUS_DELAY_DISABLED: u32 = u32::MAX;

block! {
    /// Sets an option of the compute process whose VM this file is (7.3).
    ///
    /// EINVAL: option. EINVAL or ENOTTY: older driver.
    pub struct ProcOptions: ReadWrite b'd' 0x5a "AMDGPU_PROC_OPTIONS", 8 bytes, EintrEagain {
        /// Which.
        pub op: ProcOption,
        /// Milliseconds, 0 at once, [`KFD_SIGBUS_DELAY_DISABLED`] never.
        pub value: u32,
    }
}

block! {
    /// SVM attributes by way of the render node. Proposed, in no released kernel;
    /// EINVAL or ENOTTY elsewhere.
    pub struct GemSvm: ReadWrite b'd' 0x5b "AMDGPU_GEM_SVM", 32 bytes, EintrEagain {
        /// Address; a multiple of the page size.
        pub start_addr: u64,
        /// Bytes; a multiple of the page size.
        pub size: u64,
        /// Set or ask.
        pub operation: u32,
        /// Attributes in the array.
        pub nattr: u32,
        /// The attributes.
        pub attrs_ptr: u64 => InOut,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn answers_are_over_the_questions() {
        let mut create =
            GemCreate { bo_size: 4096, domains: GemDomain::VRAM, ..Default::default() };
        create.set_handle(7);
        assert_eq!((create.handle(), create.domains), (7, GemDomain::VRAM));

        let mut mmap = GemMmap { handle: 7, ..Default::default() };
        mmap.set_offset(0x1_2345_6000);
        assert_eq!(mmap.offset(), 0x1_2345_6000);
    }

    #[test]
    fn mtype_and_flags_do_not_mix() {
        let flags = (VmFlags::PAGE_READABLE | VmFlags::PAGE_NOALLOC).with_mtype(VmMtype::RW);
        assert_eq!(flags.bits(), 0x2 | 0x200 | 0xa0);
        assert_eq!(flags.mtype(), VmMtype::RW);
        assert_eq!(flags.with_mtype(VmMtype(!0)).bits(), 0x2 | 0x200 | 0x1e0);
    }
}
