//! The compute driver's requests: number, size, direction, and since when.
//!
//! Numbers and sizes: `linux/kfd_ioctl.h`; "since" is the KFD minor of
//! kernel-rules section 2 and the version list at the head of that file.

use hsakmt_core::uapi::Direction;

use crate::kernel::KernelProfile;

/// What the driver knows about a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Known {
    pub number: u8,
    pub name: &'static str,
    /// The driver's own direction: it decides what is copied, whatever the
    /// caller's request number says.
    pub direction: Direction,
    /// Bytes of the driver's block.
    pub size: usize,
    /// Another size that a header of user space has.
    pub other_size: Option<usize>,
    /// Offsets of 32-bit words that are padding.
    pub padding: &'static [usize],
    pub since: u32,
    pub origin: Origin,
}

/// Which driver has a request.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Origin {
    /// Every driver, from the minor on.
    Upstream,
    /// The old debugger's: always EPERM.
    Deprecated,
    /// The out-of-tree driver alone.
    OutOfTree,
    /// A driver with memory shared by number, which only some have.
    Ipc,
    /// The out-of-tree driver, until upstream took it in under another number.
    OutOfTreeUntil(u32),
}

const fn known(
    number: u8,
    name: &'static str,
    direction: Direction,
    size: usize,
    since: u32,
) -> Known {
    let origin = match number {
        0x0d..=0x10 => Origin::Deprecated,
        0x80 | 0x81 => Origin::Ipc,
        0x86 => Origin::OutOfTreeUntil(23),
        0x80.. => Origin::OutOfTree,
        _ => Origin::Upstream,
    };
    Known { number, name, direction, size, other_size: None, padding: &[], since, origin }
}

use Direction::{None as Io, Read, ReadWrite, Write};

const CREATE_PROCESS: u8 = 0x27;

const REQUESTS: &[Known] = &[
    known(0x01, "GET_VERSION", Read, 8, 0),
    Known { other_size: Some(88), ..known(0x02, "CREATE_QUEUE", ReadWrite, 96, 0) },
    known(0x03, "DESTROY_QUEUE", ReadWrite, 8, 0),
    known(0x04, "SET_MEMORY_POLICY", Write, 32, 0),
    Known { padding: &[36], ..known(0x05, "GET_CLOCK_COUNTERS", ReadWrite, 40, 0) },
    known(0x06, "GET_PROCESS_APERTURES", Read, 400, 0),
    Known { other_size: Some(40), ..known(0x07, "UPDATE_QUEUE", Write, 24, 0) },
    known(0x08, "CREATE_EVENT", ReadWrite, 32, 0),
    known(0x09, "DESTROY_EVENT", Write, 8, 0),
    known(0x0a, "SET_EVENT", Write, 8, 0),
    known(0x0b, "RESET_EVENT", Write, 8, 0),
    known(0x0c, "WAIT_EVENTS", ReadWrite, 24, 0),
    known(0x0d, "DBG_REGISTER_DEPRECATED", Write, 8, 0),
    known(0x0e, "DBG_UNREGISTER_DEPRECATED", Write, 8, 0),
    known(0x0f, "DBG_ADDRESS_WATCH_DEPRECATED", Write, 16, 0),
    known(0x10, "DBG_WAVE_CONTROL_DEPRECATED", Write, 16, 0),
    Known { padding: &[12], ..known(0x11, "SET_SCRATCH_BACKING_VA", ReadWrite, 16, 0) },
    known(0x12, "GET_TILE_CONFIG", ReadWrite, 40, 0),
    Known { padding: &[20], ..known(0x13, "SET_TRAP_HANDLER", Write, 24, 0) },
    Known { padding: &[12], ..known(0x14, "GET_PROCESS_APERTURES_NEW", ReadWrite, 16, 0) },
    known(0x15, "ACQUIRE_VM", Write, 8, 0),
    known(0x16, "ALLOC_MEMORY_OF_GPU", ReadWrite, 40, 0),
    known(0x17, "FREE_MEMORY_OF_GPU", Write, 8, 0),
    known(0x18, "MAP_MEMORY_TO_GPU", ReadWrite, 24, 0),
    known(0x19, "UNMAP_MEMORY_FROM_GPU", ReadWrite, 24, 0),
    known(0x1a, "SET_CU_MASK", Write, 16, 0),
    known(0x1b, "GET_QUEUE_WAVE_STATE", ReadWrite, 24, 0),
    known(0x1c, "GET_DMABUF_INFO", ReadWrite, 32, 0),
    known(0x1d, "IMPORT_DMABUF", ReadWrite, 24, 0),
    known(0x1e, "ALLOC_QUEUE_GWS", ReadWrite, 16, 0),
    known(0x1f, "SMI_EVENTS", ReadWrite, 8, 3),
    known(0x20, "SVM", ReadWrite, 24, 5),
    known(0x21, "SET_XNACK_MODE", ReadWrite, 4, 5),
    known(0x22, "CRIU_OP", ReadWrite, 56, 7),
    Known { padding: &[12], ..known(0x23, "AVAILABLE_MEMORY", ReadWrite, 16, 9) },
    known(0x24, "EXPORT_DMABUF", ReadWrite, 16, 12),
    known(0x25, "RUNTIME_ENABLE", ReadWrite, 16, 13),
    known(0x26, "DBG_TRAP", ReadWrite, 32, 13),
    Known { other_size: Some(8), ..known(CREATE_PROCESS, "CREATE_PROCESS", Io, 0, 19) },
    known(0x28, "PROFILER", ReadWrite, 16, 23),
    known(0x80, "IPC_IMPORT_HANDLE", ReadWrite, 48, 0),
    known(0x81, "IPC_EXPORT_HANDLE", ReadWrite, 32, 0),
    known(0x83, "CROSS_MEMORY_COPY", ReadWrite, 48, 0),
    known(0x84, "RLC_SPM", ReadWrite, 32, 0),
    known(0x85, "PC_SAMPLE", ReadWrite, 32, 0),
    known(0x86, "PROFILER", ReadWrite, 40, 0),
    known(0x87, "AIS_OP", ReadWrite, 40, 0),
];

/// The request of this number, if this driver has it.
pub(crate) fn find(kernel: KernelProfile, number: u8) -> Option<&'static Known> {
    let known = REQUESTS.iter().find(|known| known.number == number)?;
    let has = match known.origin {
        Origin::Upstream => {
            let off = number == CREATE_PROCESS && !kernel.secondary_contexts;
            kernel.kfd_minor >= known.since && !off
        }
        Origin::Deprecated => true,
        Origin::OutOfTree => kernel.out_of_tree,
        Origin::Ipc => kernel.ipc,
        Origin::OutOfTreeUntil(minor) => kernel.out_of_tree && kernel.kfd_minor < minor,
    };
    has.then_some(known)
}

impl Known {
    /// Whether a header has the request with a block of this size. SVM carries
    /// eight more bytes for each attribute.
    pub(crate) fn has_size(&self, size: usize) -> bool {
        let with_tail = self.name == "SVM" && size > self.size && (size - self.size) % 8 == 0;
        size == self.size || self.other_size == Some(size) || with_tail
    }
}

#[cfg(test)]
mod tests {
    use super::find;
    use crate::kernel::{Kernel, KernelProfile};

    fn last(kernel: KernelProfile) -> u8 {
        (0..0x80).rev().find(|&number| find(kernel, number).is_some()).unwrap()
    }

    #[test]
    fn the_last_number_of_each_kernel() {
        assert_eq!(last(KernelProfile::debian(Kernel::V6_1)), 0x23);
        assert_eq!(last(KernelProfile::debian(Kernel::V6_12)), 0x26);
        assert_eq!(last(KernelProfile::debian(Kernel::V7_2)), 0x28);
    }

    #[test]
    fn the_profiler_has_one_number_at_a_time() {
        for minor in 0..30 {
            let kernel = KernelProfile::out_of_tree(Kernel::V7_2).with_kfd_minor(minor);
            let numbers = [0x28, 0x86].map(|number| find(kernel, number).is_some());
            assert_eq!(numbers, [minor >= 23, minor < 23]);
        }
    }
}
