//! What GPUs and the system do to events, from a test, and how events are.
//!
//! | operation | does |
//! |---|---|
//! | [`Process::signal_event`] | a GPU writes an event's slot and interrupts |
//! | [`Process::fault_memory`] | a GPU faults: MEMORY events |
//! | [`Process::reset_gpu`] | a GPU is reset: HW_EXCEPTION events, of other processes, too |
//! | [`Process::interrupt_wait`] | a signal reaches a thread that waits |
//! | [`Process::events`] | the events as they are |
//!
//! All of them concern the primary object; those with a context's id, a secondary
//! one. [`GpuView::access`](crate::GpuView::access) that fails is a memory fault, too.

use alloc::vec::Vec;

use crate::gpu_view::find;
use crate::kfd::{self, MemoryFault};
use crate::process::Process;

/// An event.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct EventView {
    /// Its id.
    pub id: u32,
    /// KFD_IOC_EVENT_*.
    pub kind: u32,
    /// Whether a wait would see it set.
    pub is_set: bool,
    /// How often it was set, and 1.
    pub age: u64,
}

impl Process {
    /// Lets a GPU write the slot of an event and interrupt; whether there is one.
    pub fn signal_event(&self, context: Option<u16>, id: u32) -> bool {
        let mut state = self.machine().lock();
        match find(&state, self, context) {
            Some(object) => kfd::signal_event(&mut state, object, id),
            None => false,
        }
    }

    /// Lets a GPU fault at an address.
    pub fn fault_memory(
        &self,
        context: Option<u16>,
        gpu_id: u32,
        address: u64,
        fault: MemoryFault,
    ) {
        let mut state = self.machine().lock();
        if let Some(object) = find(&state, self, context) {
            kfd::fault_memory(&mut state, object, gpu_id, address, fault);
        }
    }

    /// Resets a GPU because it hangs, or because of an error that it cannot correct.
    pub fn reset_gpu(&self, gpu_id: u32, uncorrectable: bool) {
        kfd::reset_gpu(&mut self.machine().lock(), gpu_id, uncorrectable);
    }

    /// A signal: the wait that sleeps, or else the next that would, is interrupted.
    pub fn interrupt_wait(&self, context: Option<u16>) {
        let mut state = self.machine().lock();
        if let Some(object) = find(&state, self, context) {
            kfd::interrupt_wait(&mut state, object);
        }
    }

    /// The events by id.
    #[must_use]
    pub fn events(&self, context: Option<u16>) -> Vec<EventView> {
        let state = self.machine().lock();
        let object = find(&state, self, context).and_then(|id| state.objects.get(&id));
        let events = object.into_iter().flat_map(|object| object.events.iter());
        events
            .map(|(id, event)| EventView {
                id,
                kind: event.kind,
                is_set: event.signaled,
                age: event.age,
            })
            .collect()
    }

    /// How many waits sleep.
    #[must_use]
    pub fn sleeping_waits(&self, context: Option<u16>) -> usize {
        let state = self.machine().lock();
        let object = find(&state, self, context).and_then(|id| state.objects.get(&id));
        object.map_or(0, |object| object.events.sleepers())
    }
}
