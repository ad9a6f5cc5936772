//! Callbacks: waiting for every event that has one, and telling which are due.

use alloc::vec::Vec;

use super::books::Callback;
use super::calls::wait;
use super::{Events, Waited};
use crate::context::Channel;
use crate::error::Error;
use crate::fallible::try_push;
use crate::seam::Platform;
use crate::uapi::kfd::{EventData, EventType};

/// The entry of a wait for a callback's event.
fn entry(callback: &Callback) -> EventData {
    let age = if callback.event.kind == EventType::SIGNAL { callback.age } else { 0 };
    EventData { payload: [age, 0, 0, 0], event_id: callback.event.id, ..EventData::default() }
}

/// Waits for one of the events with a callback, and tells which callbacks are due.
///
/// An event that resets itself is due once for each time that it was seen set; one
/// that stays set, in each pump until it is reset. Of several threads that pump, one
/// gets a callback.
///
/// # Errors
/// NO_MEMORY; as a wait.
pub(super) fn pump<P: Platform>(
    channel: &Channel<'_, P>,
    events: &Events,
    milliseconds: u32,
) -> Result<Vec<[usize; 3]>, Error> {
    let os = channel.os();
    let callbacks = events.books.acquire(os).copy_callbacks()?;
    let mut data = Vec::new();
    let mut due = Vec::new();
    for callback in &callbacks {
        try_push(&mut data, entry(callback))?;
    }
    due.try_reserve_exact(callbacks.len())?;
    if callbacks.is_empty() || wait(channel, &mut data, false, milliseconds)? == Waited::TimedOut {
        return Ok(due);
    }
    for (callback, data) in callbacks.iter().zip(&data) {
        let event = callback.event;
        let is_due = match event.kind {
            // It was set since, though another wait may have reset it.
            EventType::SIGNAL if data.signal().last_event_age != callback.age => {
                let age = data.signal().last_event_age;
                events.books.acquire(os).advance(callback, age)
            }
            // A look does not reset it.
            _ if event.manual_reset => {
                let mut look = [entry(callback)];
                matches!(wait(channel, &mut look, false, 0), Ok(Waited::Complete))
            }
            EventType::MEMORY => data.memory_exception().gpu_id != 0,
            EventType::HW_EXCEPTION => data.hw_exception().gpu_id != 0,
            _ => false,
        };
        if is_due {
            try_push(&mut due, callback.words)?;
        }
    }
    Ok(due)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::event::books::Known;

    #[test]
    fn only_signals_have_an_age() {
        for (kind, age) in [(EventType::SIGNAL, 9), (EventType::MEMORY, 0)] {
            let event = Known { id: 5, owner: 0, kind, manual_reset: false, dying: false };
            let entry = entry(&Callback { event, words: [0; 3], age: 9 });
            assert_eq!((entry.event_id, entry.payload), (5, [age, 0, 0, 0]));
        }
    }
}
