//! The process object: version, apertures, VM, clocks, further contexts.

use crate::uapi::scalar::{flags, open_enum};
use crate::uapi::{block, record};

/// How many GPUs the deprecated [`GetProcessApertures`] can show.
pub const NUM_OF_SUPPORTED_GPUS: usize = 7;

block! {
    /// The version of the driver's interface. Never fails on an open node.
    pub struct GetVersion: Read b'K' 0x01 "GET_VERSION", 8 bytes, Eintr {
        /// Answer: 1 on every driver so far.
        pub major_version: u32,
        /// Answer: what each minor added is in [`crate::uapi::gate`].
        pub minor_version: u32,
    }
}

open_enum! {
    /// Cache policy of an aperture.
    pub struct CachePolicy: u32 {
        /// Coherent with the CPU.
        const COHERENT = 0;
        /// Not coherent.
        const NONCOHERENT = 1;
    }
}

flags! {
    /// Switches of a process on one GPU (1.18).
    pub struct ProcessFlags: u32 {
        /// MFMA instructions in high precision; acts on gfx9.5.0 only.
        const MFMA_HIGH_PRECISION = 1 << 0;
    }
}

block! {
    /// Sets the cache policies of a process on one GPU. gfx9 and later ignore
    /// the aperture.
    ///
    /// EINVAL: unknown policy or GPU, misaligned alternate aperture (gfx7, gfx8).
    /// ESRCH: no VM acquired on that GPU.
    pub struct SetMemoryPolicy: Write b'K' 0x04 "SET_MEMORY_POLICY", 32 bytes, Eintr {
        /// Start of the range under the alternate policy; a multiple of 64 KiB.
        pub alternate_aperture_base: u64,
        /// Bytes of that range; a multiple of 64 KiB.
        pub alternate_aperture_size: u64,
        /// The GPU, by the number of its sysfs file `gpu_id`.
        pub gpu_id: u32,
        /// Outside the alternate aperture.
        pub default_policy: CachePolicy,
        /// Inside it.
        pub alternate_policy: CachePolicy,
        /// Unknown bits are ignored; before 1.18 all are.
        pub misc_process_flag: ProcessFlags,
    }
}

block! {
    /// GPU and system clocks, read close together. Never fails: an unknown GPU
    /// has clock 0.
    pub struct GetClockCounters: ReadWrite b'K' 0x05 "GET_CLOCK_COUNTERS", 40 bytes, Eintr {
        /// Answer: ticks of the GPU's counter.
        pub gpu_clock_counter: u64,
        /// Answer: CLOCK_MONOTONIC_RAW in ns.
        pub cpu_clock_counter: u64,
        /// Answer: CLOCK_BOOTTIME in ns.
        pub system_clock_counter: u64,
        /// Answer: ticks per second of the two system clocks, 1 000 000 000.
        pub system_clock_freq: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

record! {
    /// The address ranges of one GPU for this process. Limits are inclusive.
    pub struct ProcessDeviceApertures: "kfd_process_device_apertures", 56 bytes {
        /// First address of the LDS aperture.
        pub lds_base: u64,
        /// Its last address.
        pub lds_limit: u64,
        /// First address of the scratch aperture.
        pub scratch_base: u64,
        /// Its last address.
        pub scratch_limit: u64,
        /// First address that can be mapped.
        pub gpuvm_base: u64,
        /// The last one.
        pub gpuvm_limit: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// The apertures of the first [`NUM_OF_SUPPORTED_GPUS`] GPUs.
    /// [`GetProcessAperturesNew`] shows all of them.
    pub struct GetProcessApertures: Read b'K' 0x06 "GET_PROCESS_APERTURES", 400 bytes, Eintr {
        /// Answer: the first `num_of_nodes` are filled.
        pub process_apertures: [ProcessDeviceApertures; NUM_OF_SUPPORTED_GPUS],
        /// Answer: GPUs shown, at most [`NUM_OF_SUPPORTED_GPUS`].
        pub num_of_nodes: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// The apertures of all GPUs that the process sees, in topology order.
    ///
    /// With a count of 0 only the number of GPUs is answered. EINVAL: since 6.12,
    /// a count above the number of topology nodes. ENOMEM, EFAULT.
    pub struct GetProcessAperturesNew: ReadWrite b'K' 0x14 "GET_PROCESS_APERTURES_NEW",
        16 bytes, Eintr {
        /// An array of [`ProcessDeviceApertures`].
        pub kfd_process_device_apertures_ptr: u64 => Out,
        /// Elements in the array; answer: elements filled, or GPUs if it was 0.
        pub num_of_nodes: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Binds the address space of an open render node to this process's object
    /// on one GPU, for the life of the process. The driver keeps the file.
    ///
    /// EINVAL: bad descriptor, not an amdgpu file, unknown GPU, VM of another
    /// object. EBUSY: another file is bound already. ENOMEM.
    pub struct AcquireVm: Write b'K' 0x15 "ACQUIRE_VM", 8 bytes, Eintr {
        /// The render node, by its [`crate::seam::DeviceToken`].
        pub drm_fd: u32,
        /// The GPU.
        pub gpu_id: u32,
    }
}

block! {
    /// Installs the process's trap handler on one GPU, second-level where the
    /// driver has its own.
    ///
    /// EINVAL: unknown GPU. ESRCH: no VM acquired on it.
    pub struct SetTrapHandler: Write b'K' 0x13 "SET_TRAP_HANDLER", 24 bytes, Eintr {
        /// GPU address of the handler's code.
        pub tba_addr: u64,
        /// GPU address of the handler's data.
        pub tma_addr: u64,
        /// The GPU.
        pub gpu_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Turns the object behind this open file into a new, secondary context
    /// (1.19). The object it had, the primary, lives on.
    ///
    /// The kernel's form takes no argument. Other headers declare 8 bytes of
    /// flags; the driver dispatches on the number and fills zeroes in.
    ///
    /// EINVAL: the file is secondary already. EBADF: another process's file.
    /// ENOMEM; ENOSPC: 65535 contexts. ENOTTY: older driver.
    pub struct CreateProcess: None b'K' 0x27 "CREATE_PROCESS", 0 bytes, Eintr {}
}

flags! {
    /// What the runtime asks for.
    pub struct RuntimeEnableMode: u32 {
        /// Enable; without it the request disables.
        const ENABLE = 1 << 0;
        /// Let the trap temporaries be set up at wave launch. Only with ENABLE.
        const TTMP_SAVE = 1 << 1;
    }
}

flags! {
    /// What the driver can do for the runtime.
    pub struct RuntimeEnableCaps: u32 {
        /// Core dumps of the GPU.
        const SUPPORTS_CORE_DUMP = 1 << 31;
    }
}

block! {
    /// Tells driver and debugger that a runtime is ready for exceptions (1.13).
    ///
    /// With a debugger attached it blocks until that acknowledges; interrupted,
    /// the request is to be repeated as it is. EBUSY: enabled already.
    /// EEXIST: the object has a queue.
    pub struct RuntimeEnable: ReadWrite b'K' 0x25 "RUNTIME_ENABLE", 16 bytes, Eintr {
        /// Address of the runtime's rendezvous structure, for a debugger to read.
        pub r_debug: u64,
        /// What is asked for.
        pub mode_mask: RuntimeEnableMode,
        /// Answer.
        pub capabilities_mask: RuntimeEnableCaps,
    }
}

block! {
    /// Sets or asks whether page faults are retried (XNACK), for the process.
    ///
    /// EBUSY: a queue exists, even if the value is the same. EPERM: not possible
    /// on these GPUs, or the driver has no SVM. ENOMEM when turning it off.
    pub struct SetXnackMode: ReadWrite b'K' 0x21 "SET_XNACK_MODE", 4 bytes, Eintr {
        /// 0 off, 1 on, negative asks; answer: the mode.
        pub xnack_enabled: i32,
    }
}
