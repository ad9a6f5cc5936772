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
    }
}

record! {
    /// The answer to [`InfoQuery::DEV_INFO`]. Older drivers answer less; what
    /// they leave out stays as it was, zero.
    pub struct InfoDevice: "drm_amdgpu_info_device", 448 bytes {
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
        /// Zero.
        pub pad: u32,
        /// Zero.
        pub reserved1: u32,
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
