//! System management events, as `hsaKmtOpenSMI` delivers them (`linux/kfd_ioctl.h`, SMI events).

use super::open_enum;

/// Longest text of one event in bytes, with the terminating zero (2025).
pub const HSA_SMI_EVENT_MSG_SIZE: usize = 96;

open_enum! {
    /// What an event is; a reader enables number `n` with bit `n - 1` (2025).
    pub struct HSA_EVENT_TYPE: u32 {
        /// None.
        HSA_SMI_EVENT_NONE as NONE = 0,
        /// Memory fault.
        HSA_SMI_EVENT_VMFAULT as VM_FAULT = 1,
        /// The clock is held back because of heat.
        HSA_SMI_EVENT_THERMAL_THROTTLE as THERMAL_THROTTLE = 2,
        /// A reset begins.
        HSA_SMI_EVENT_GPU_PRE_RESET as GPU_PRE_RESET = 3,
        /// A reset is over.
        HSA_SMI_EVENT_GPU_POST_RESET as GPU_POST_RESET = 4,
        /// A range begins to move.
        HSA_SMI_EVENT_MIGRATE_START as MIGRATE_START = 5,
        /// A range has moved.
        HSA_SMI_EVENT_MIGRATE_END as MIGRATE_END = 6,
        /// A page fault is being handled.
        HSA_SMI_EVENT_PAGE_FAULT_START as PAGE_FAULT_START = 7,
        /// A page fault was handled.
        HSA_SMI_EVENT_PAGE_FAULT_END as PAGE_FAULT_END = 8,
        /// The queues of a process stop.
        HSA_SMI_EVENT_QUEUE_EVICTION as QUEUE_EVICTION = 9,
        /// The queues of a process run again.
        HSA_SMI_EVENT_QUEUE_RESTORE as QUEUE_RESTORE = 10,
        /// A range was unmapped from a device.
        HSA_SMI_EVENT_UNMAP_FROM_GPU as UNMAP_FROM_GPU = 11,
        /// One above the last kind.
        HSA_SMI_EVENT_INDEX_MAX as INDEX_MAX = 12,
        /// Events of all processes, where the reader may have them.
        HSA_SMI_EVENT_ALL_PROCESS as ALL_PROCESS = 64,
    }
}

open_enum! {
    /// Why a range moved (2025).
    pub struct HSA_MIGRATE_TRIGGERS: u32 {
        /// A prefetch was asked for.
        HSA_MIGRATE_TRIGGER_PREFETCH as PREFETCH = 0,
        /// A device faulted.
        HSA_MIGRATE_TRIGGER_PAGEFAULT_GPU as PAGE_FAULT_GPU = 1,
        /// The host faulted.
        HSA_MIGRATE_TRIGGER_PAGEFAULT_CPU as PAGE_FAULT_CPU = 2,
        /// Device memory ran short.
        HSA_MIGRATE_TRIGGER_TTM_EVICTION as TTM_EVICTION = 3,
    }
}

open_enum! {
    /// Why queues stopped (2025).
    pub struct HSA_QUEUE_EVICTION_TRIGGERS: u32 {
        /// An attributed range changed.
        HSA_QUEUE_EVICTION_TRIGGER_SVM as SVM = 0,
        /// Registered host memory changed.
        HSA_QUEUE_EVICTION_TRIGGER_USERPTR as USERPTR = 1,
        /// Device memory ran short.
        HSA_QUEUE_EVICTION_TRIGGER_TTM as TTM = 2,
        /// The system suspends.
        HSA_QUEUE_EVICTION_TRIGGER_SUSPEND as SUSPEND = 3,
        /// A checkpoint is taken.
        HSA_QUEUE_EVICTION_CRIU_CHECKPOINT as CRIU_CHECKPOINT = 4,
        /// A checkpoint is restored.
        HSA_QUEUE_EVICTION_CRIU_RESTORE as CRIU_RESTORE = 5,
    }
}

open_enum! {
    /// Why a range was unmapped from a device (2025).
    pub struct HSA_SVM_UNMAP_TRIGGERS: u32 {
        /// The host's page table changed.
        HSA_SVM_UNMAP_TRIGGER_MMU_NOTIFY as MMU_NOTIFY = 0,
        /// A page of the host moved.
        HSA_SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE as MMU_NOTIFY_MIGRATE = 1,
        /// The host unmapped it.
        HSA_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU as UNMAP_FROM_CPU = 2,
    }
}
