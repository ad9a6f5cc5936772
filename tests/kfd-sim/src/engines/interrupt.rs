//! Interrupts of GPUs: kernel-rules section 2, "Signal from the GPU" and "Queue
//! exception" (kfd_events.c, kfd_int_process_v9.c).

use alloc::format;

use super::Engine;
use crate::kfd;

const SLOT_BYTES: usize = 8;
/// What stands in a slot that is not set.
const NOT_SET: u64 = u64::MAX;
/// Slots that are looked at.
const SLOTS: usize = 4096;

/// Offsets in `struct kfd_context_save_area_header`.
const PAYLOAD: usize = 24;
const EVENT: usize = 32;

/// An interrupt with so many valid bits of a word. `by_number` fires the event of this
/// number without a look at its slot.
pub(super) fn signal(engine: &Engine, word: u32, bits: u32, by_number: bool) {
    // Current firmware sends 0 for nothing.
    if engine.defects.no_interrupts || word == 0 {
        return;
    }
    let machine = &engine.machine;
    let (page, ids) = {
        let state = machine.lock();
        let Some(object) = state.objects.get(&engine.object) else { return };
        (kfd::event_page(object), kfd::signal_ids(object))
    };
    let by_number = by_number && machine.lock().kernel.signals_by_number();
    let contents = page.and_then(|memory| machine.contents(memory).ok()?);
    let Some((host, start)) = contents.filter(|_| !by_number) else {
        // A page of the kernel's own, which no GPU has: by number.
        kfd::signal_event(&mut machine.lock(), engine.object, word);
        return;
    };
    let slot = |id: u32| {
        let mut bytes = [0; SLOT_BYTES];
        let at = start + id as usize * SLOT_BYTES;
        host.read(at, &mut bytes).ok()?;
        Some((at, u64::from_ne_bytes(bytes))).filter(|(_, value)| *value != NOT_SET)
    };
    let fire = |id: u32| match slot(id).filter(|_| ids.contains(&id)) {
        Some((at, _)) => {
            let _ = host.write(at, &NOT_SET.to_ne_bytes());
            kfd::signal_event(&mut machine.lock(), engine.object, id);
            true
        }
        None => false,
    };
    let covers = bits >= SLOTS.ilog2();
    let congruent = |id: u32| if covers { id == word } else { id & ((1 << bits) - 1) == word };
    if ids.iter().any(|id| congruent(*id) && fire(*id)) {
        return;
    }
    for id in ids.iter().filter(|id| (**id as usize) < SLOTS) {
        fire(*id);
    }
}

/// A packet that the command processor does not take: the driver tells the runtime
/// through the header of the save area, if it is enabled.
pub(super) fn queue_exception(engine: &Engine, code: u32) {
    let machine = &engine.machine;
    let host = {
        let state = machine.lock();
        let enabled = state.objects.get(&engine.object).is_some_and(kfd::runtime_is_enabled);
        state.host_memory.clone().filter(|_| enabled)
    };
    let (Some(host), header) = (host, engine.queue.save_area.0) else { return };
    let mut bytes = [0; 40];
    if header == 0 || host.read(header as usize, &mut bytes).is_err() {
        return;
    }
    let word = |at: usize| bytes[at..].first_chunk().map_or(0, |bytes| u64::from_ne_bytes(*bytes));
    let (payload, event) = (word(PAYLOAD) as usize, word(EVENT) as u32);
    let mut reasons = [0; 8];
    if payload == 0 || host.read(payload, &mut reasons).is_err() {
        return;
    }
    let reasons = u64::from_ne_bytes(reasons) | 1 << (code - 1);
    if host.write(payload, &reasons.to_ne_bytes()).is_err() {
        engine.violation(
            crate::violation::Rule::BadPacket,
            format!("the payload of exceptions at {payload:#x} cannot be written"),
        );
        return;
    }
    kfd::signal_event(&mut machine.lock(), engine.object, event);
}
