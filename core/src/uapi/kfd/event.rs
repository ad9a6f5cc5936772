//! Events, and the file that reports what happens on a GPU.

use zerocopy::{FromBytes, IntoBytes};

use crate::uapi::scalar::{flags, open_enum};
use crate::uapi::{block, record};

/// Most signal events of a context, and slots of the event page.
pub const SIGNAL_EVENT_LIMIT: usize = 4096;

/// The first id of an event that is neither SIGNAL nor DEBUG_EVENT.
pub const FIRST_NONSIGNAL_EVENT_ID: u32 = 0x4000_0000;

/// A time-out that never ends.
pub const WAIT_FOREVER: u32 = u32::MAX;

open_enum! {
    /// What sets an event.
    pub struct EventType: u32 {
        /// A program or a GPU, through the event page.
        const SIGNAL = 0;
        /// Nothing today.
        const NODECHANGE = 1;
        /// Nothing today.
        const DEVICESTATECHANGE = 2;
        /// A GPU reset or poisoned data.
        const HW_EXCEPTION = 3;
        /// Nothing today.
        const SYSTEM_EVENT = 4;
        /// A GPU, through the event page.
        const DEBUG_EVENT = 5;
        /// Nothing today.
        const PROFILE_EVENT = 6;
        /// Nothing today.
        const QUEUE_EVENT = 7;
        /// A memory fault of a GPU.
        const MEMORY = 8;
    }
}

block! {
    /// Makes an event. The driver accepts any type.
    ///
    /// EINVAL: a page when there is one already, or a buffer that cannot be the
    /// page. ENODEV. ENOSPC: no signal slot left.
    pub struct CreateEvent: ReadWrite b'K' 0x08 "CREATE_EVENT", 32 bytes, Eintr {
        /// With the first SIGNAL or DEBUG_EVENT event of a context: the handle of
        /// the GTT buffer that becomes the event page, or 0 for a page of the
        /// driver. Answer: the [`super::MmapOffset`] of the driver's page.
        pub event_page_offset: u64,
        /// Answer: what a GPU writes with the interrupt to set it.
        pub event_trigger_data: u32,
        /// What sets it.
        pub event_type: EventType,
        /// Not 0: a wait that sees it set resets it.
        pub auto_reset: u32,
        /// Not looked at.
        pub node_id: u32,
        /// Answer: the event.
        pub event_id: u32,
        /// Answer: its slot of 8 bytes in the event page.
        pub event_slot_index: u32,
    }
}

block! {
    /// Destroys an event. Who waits for it gets EIO.
    ///
    /// EINVAL: unknown event.
    pub struct DestroyEvent: Write b'K' 0x09 "DESTROY_EVENT", 8 bytes, Eintr {
        /// The event.
        pub event_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Sets a SIGNAL event.
    ///
    /// EINVAL: unknown event, or of another type.
    pub struct SetEvent: Write b'K' 0x0a "SET_EVENT", 8 bytes, Eintr {
        /// The event.
        pub event_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

block! {
    /// Resets a SIGNAL event.
    ///
    /// EINVAL: unknown event, or of another type.
    pub struct ResetEvent: Write b'K' 0x0b "RESET_EVENT", 8 bytes, Eintr {
        /// The event.
        pub event_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

record! {
    /// Why an access of a GPU failed; each is 0 or 1.
    #[allow(non_snake_case, reason = "the kernel's names")]
    pub struct MemoryExceptionFailure: "kfd_memory_exception_failure", 16 bytes {
        /// No page, or a page of the kernel.
        pub NotPresent: u32,
        /// A write to a read-only page.
        pub ReadOnly: u32,
        /// Execution of a page that is not executable.
        pub NoExecute: u32,
        /// The address is not exact.
        pub imprecise: u32,
    }
}

open_enum! {
    /// What stands behind a memory fault.
    pub struct MemoryErrorType: u32 {
        /// A page fault.
        const NO_RAS = 0;
        /// An uncorrectable error in the GPU's own memories.
        const SRAM_ECC = 1;
        /// Poisoned data was used.
        const POISON_CONSUMED = 2;
        /// The GPU hangs.
        const GPU_HANG = 3;
    }
}

record! {
    /// Payload of a [`EventType::MEMORY`] event.
    #[allow(non_snake_case, reason = "the kernel's names")]
    pub struct MemoryExceptionData: "kfd_hsa_memory_exception_data", 32 bytes {
        /// Why.
        pub failure: MemoryExceptionFailure,
        /// Where; a page address.
        pub va: u64,
        /// On which GPU.
        pub gpu_id: u32,
        /// What stands behind it.
        pub ErrorType: MemoryErrorType,
    }
}

open_enum! {
    /// How much was reset.
    pub struct ResetType: u32 {
        /// The whole GPU.
        const WHOLE_GPU_RESET = 0;
        /// One engine.
        const PER_ENGINE_RESET = 1;
    }
}

open_enum! {
    /// Why it was reset.
    pub struct ResetCause: u32 {
        /// It hung.
        const GPU_HANG = 0;
        /// An uncorrectable memory error.
        const ECC = 1;
    }
}

record! {
    /// Payload of a [`EventType::HW_EXCEPTION`] event.
    pub struct HwExceptionData: "kfd_hsa_hw_exception_data", 16 bytes {
        /// How much was reset.
        pub reset_type: ResetType,
        /// Why.
        pub reset_cause: ResetCause,
        /// 1: video memory is lost.
        pub memory_lost: u32,
        /// Which GPU.
        pub gpu_id: u32,
    }
}

record! {
    /// Payload of a [`EventType::SIGNAL`] event (1.14).
    pub struct SignalEventData: "kfd_hsa_signal_event_data", 8 bytes {
        /// The age the caller last saw, 0 if it does not care; another age is a
        /// completed wait. Answer: the age now, for completed events.
        pub last_event_age: u64,
    }
}

record! {
    /// One event of a [`WaitEvents`].
    pub struct EventData: "kfd_event_data", 48 bytes {
        /// What comes with the event, by its type: read and written through the
        /// functions below.
        pub payload: [u64; 4],
        /// Zero.
        pub kfd_event_data_ext: u64,
        /// The event.
        pub event_id: u32,
        /// Zero.
        pub pad: u32,
    }
}

impl EventData {
    /// The payload of a [`EventType::MEMORY`] event.
    #[must_use]
    pub fn memory_exception(&self) -> MemoryExceptionData {
        zerocopy::transmute!(self.payload)
    }

    /// The payload of a [`EventType::HW_EXCEPTION`] event.
    #[must_use]
    pub fn hw_exception(&self) -> HwExceptionData {
        let [first, second, ..] = self.payload;
        zerocopy::transmute!([first, second])
    }

    /// The payload of a [`EventType::SIGNAL`] event.
    #[must_use]
    pub fn signal(&self) -> SignalEventData {
        let [last_event_age, ..] = self.payload;
        SignalEventData { last_event_age }
    }

    /// Puts a payload in, the rest is zero.
    pub fn set_payload<R: FromBytes + IntoBytes + zerocopy::Immutable>(&mut self, payload: &R) {
        self.payload = [0; 4];
        let bytes = self.payload.as_mut_bytes();
        if let Some(start) = bytes.get_mut(..size_of::<R>()) {
            start.copy_from_slice(payload.as_bytes());
        }
    }
}

open_enum! {
    /// How a wait ended.
    pub struct WaitResult: u32 {
        /// As asked: one event, or all.
        const COMPLETE = 0;
        /// The time was up.
        const TIMEOUT = 1;
        /// It did not; the errno says why.
        const FAIL = 2;
    }
}

block! {
    /// Waits for events. After EINTR the block holds the time that is left, so
    /// that it can be sent again; an infinite time-out stays infinite.
    ///
    /// EINVAL: unknown event. EIO: one was destroyed. ENOMEM: too many events
    /// (more than 4096 in 7.2). EFAULT.
    pub struct WaitEvents: ReadWrite b'K' 0x0c "WAIT_EVENTS", 24 bytes, Eintr {
        /// An array of [`EventData`]: payloads of the events that completed are
        /// answers, ages go both ways.
        pub events_ptr: u64 => InOut,
        /// Elements in the array.
        pub num_events: u32,
        /// Not 0: all of them, else any.
        pub wait_for_all: u32,
        /// Milliseconds, or [`WAIT_FOREVER`]; answer: those left.
        pub timeout: u32,
        /// Answer.
        pub wait_result: WaitResult,
    }
}

/// Bytes of the longest line read from an SMI file.
pub const SMI_EVENT_MSG_SIZE: usize = 96;

open_enum! {
    /// The number at the start of a line read from an SMI file. Event n is bit
    /// n - 1 of the [`SmiEventMask`] written to it.
    pub struct SmiEvent: u32 {
        /// Not used.
        const NONE = 0;
        /// A page fault that was not resolved.
        const VMFAULT = 1;
        /// The clocks were reduced, or no longer are.
        const THERMAL_THROTTLE = 2;
        /// A reset begins.
        const GPU_PRE_RESET = 3;
        /// It is over.
        const GPU_POST_RESET = 4;
        /// Pages begin to move (1.10).
        const MIGRATE_START = 5;
        /// They have.
        const MIGRATE_END = 6;
        /// A page fault begins to be resolved.
        const PAGE_FAULT_START = 7;
        /// It is.
        const PAGE_FAULT_END = 8;
        /// The queues of a process were stopped.
        const QUEUE_EVICTION = 9;
        /// They run again.
        const QUEUE_RESTORE = 10;
        /// A range was unmapped.
        const UNMAP_FROM_GPU = 11;
        /// A process began to use the GPU (7.2).
        const PROCESS_START = 12;
        /// It no longer does.
        const PROCESS_END = 13;
        /// Not an event: in a mask, those of other processes too; 6.12 only for
        /// CAP_SYS_ADMIN.
        const ALL_PROCESS = 64;
    }
}

flags! {
    /// What is written, as 8 bytes, to an SMI file to choose events. It starts empty.
    pub struct SmiEventMask: u64 {
        /// See [`SmiEvent::VMFAULT`].
        const VMFAULT = 1 << 0;
        /// See [`SmiEvent::THERMAL_THROTTLE`].
        const THERMAL_THROTTLE = 1 << 1;
        /// See [`SmiEvent::GPU_PRE_RESET`].
        const GPU_PRE_RESET = 1 << 2;
        /// See [`SmiEvent::GPU_POST_RESET`].
        const GPU_POST_RESET = 1 << 3;
        /// See [`SmiEvent::MIGRATE_START`].
        const MIGRATE_START = 1 << 4;
        /// See [`SmiEvent::MIGRATE_END`].
        const MIGRATE_END = 1 << 5;
        /// See [`SmiEvent::PAGE_FAULT_START`].
        const PAGE_FAULT_START = 1 << 6;
        /// See [`SmiEvent::PAGE_FAULT_END`].
        const PAGE_FAULT_END = 1 << 7;
        /// See [`SmiEvent::QUEUE_EVICTION`].
        const QUEUE_EVICTION = 1 << 8;
        /// See [`SmiEvent::QUEUE_RESTORE`].
        const QUEUE_RESTORE = 1 << 9;
        /// See [`SmiEvent::UNMAP_FROM_GPU`].
        const UNMAP_FROM_GPU = 1 << 10;
        /// See [`SmiEvent::PROCESS_START`].
        const PROCESS_START = 1 << 11;
        /// See [`SmiEvent::PROCESS_END`].
        const PROCESS_END = 1 << 12;
        /// See [`SmiEvent::ALL_PROCESS`].
        const ALL_PROCESS = 1 << 63;
    }
}

block! {
    /// Opens the SMI file of a GPU: read lines from it, write a mask to it. A
    /// read without a line answers EAGAIN.
    ///
    /// EINVAL: unknown GPU. ENOMEM. EMFILE.
    pub struct SmiEvents: ReadWrite b'K' 0x1f "SMI_EVENTS", 8 bytes, Eintr {
        /// The GPU.
        pub gpuid: u32,
        /// Answer: the file, by its [`crate::seam::DeviceToken`]. Not close-on-exec.
        pub anon_fd: u32,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn payloads() {
        let memory = MemoryExceptionData {
            failure: MemoryExceptionFailure { ReadOnly: 1, ..Default::default() },
            va: 0x7fff_0000_1000,
            gpu_id: 0x1234,
            ErrorType: MemoryErrorType::POISON_CONSUMED,
        };
        let mut event = EventData { event_id: 3, ..Default::default() };
        event.set_payload(&memory);
        assert_eq!(event.memory_exception(), memory);

        let reset = HwExceptionData {
            reset_type: ResetType::PER_ENGINE_RESET,
            reset_cause: ResetCause::ECC,
            memory_lost: 1,
            gpu_id: 7,
        };
        event.set_payload(&reset);
        assert_eq!(event.hw_exception(), reset);
        assert_eq!(event.memory_exception().gpu_id, 0, "no rest of the payload before");

        event.set_payload(&SignalEventData { last_event_age: 5 });
        assert_eq!(event.signal().last_event_age, 5);
        assert_eq!(event.event_id, 3);
    }

    #[test]
    fn event_n_is_bit_n_minus_1() {
        for (name, event) in &SmiEvent::NAMES[1..] {
            let bit = SmiEventMask::from_name(name).map(|mask| mask.bits());
            assert_eq!(bit, Some(1 << (event.0 - 1)), "{name}");
        }
    }
}
