//! Events that a program sets: those that reset themselves and those that stay set,
//! one, any and all of them, and as many as a runtime needs.

use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::error::Error;
use hsakmt_core::event::{EventRequest, Waited};
use hsakmt_core::process::Guard;
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::{EventData, EventType};

use crate::validation::findings::{Count, Findings};
use crate::validation::subject::Subject;

/// How many events there have to be.
const EVENTS: usize = 128;
/// How many are enough in a hurry.
const QUICK_EVENTS: usize = 16;
/// Milliseconds for what is set already.
const SET_ALREADY: u32 = 1000;
/// What the library knows our events by.
const OWNER: u64 = 1;

/// Creates events, sets them, waits for them.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let wanted = if subject.limits.quick { QUICK_EVENTS } else { EVENTS };
    let Some(guard) = findings.expect(&"library", subject.enter()) else { return };
    let mut events: Vec<(u32, bool)> = Vec::new();
    while events.len() < wanted {
        let number = events.len();
        if !subject.has_time(findings, &format_args!("event {number}")) {
            break;
        }
        // Every second one stays set.
        let manual_reset = number % 2 == 1;
        let request = EventRequest {
            kind: EventType::SIGNAL,
            node: 0,
            manual_reset,
            is_set: false,
            owner: OWNER,
        };
        match guard.create_event(&request) {
            Ok(event) => events.push((event.id, manual_reset)),
            Err(error) => {
                findings.refused(&format_args!("events: {number} of {wanted} and no more"), &error);
                break;
            }
        }
    }
    for &(id, stays) in &events {
        if !subject.has_time(findings, &format_args!("event {id}")) {
            break;
        }
        if let Err(error) = one(&guard, id, stays, findings) {
            findings.refused(&format_args!("event {id}"), &error);
        }
    }
    let ids: Vec<u32> = events.iter().take(64).map(|(id, _)| *id).collect();
    if ids.len() > 1 {
        if let Err(error) = several(&guard, &ids, findings) {
            findings.refused(&format_args!("{} at once", Count(ids.len() as u64, "event")), &error);
        }
    }
    for &(id, _) in &events {
        let destroyed = guard.destroy_event(id, OWNER);
        if findings.expect(&format_args!("event {id}"), destroyed) == Some(false) {
            findings.fail(format!("event {id}: was gone before it was destroyed"));
        }
    }
    findings.summary = format!("{} set and waited for", Count(events.len() as u64, "event"));
}

fn entry(id: u32) -> EventData {
    EventData { event_id: id, ..EventData::default() }
}

fn one<P: Platform>(
    guard: &Guard<'_, P>,
    id: u32,
    stays: bool,
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut expect = |moment: &str, milliseconds, expected| {
        let waited = guard.wait_for_events(&mut [entry(id)], false, milliseconds)?;
        if waited != expected {
            let how = if waited == Waited::Complete { "is" } else { "is not" };
            findings.fail(format!("event {id} {how} set {moment}"));
        }
        Ok(())
    };
    expect("from the start", 0, Waited::TimedOut)?;
    guard.set_event(id)?;
    expect("after it was set", SET_ALREADY, Waited::Complete)?;
    let still = if stays { Waited::Complete } else { Waited::TimedOut };
    expect("after a wait", 0, still)?;
    guard.reset_event(id)?;
    expect("after it was reset", 0, Waited::TimedOut)
}

/// One of them set is enough for any and too little for all.
fn several<P: Platform>(
    guard: &Guard<'_, P>,
    ids: &[u32],
    findings: &mut Findings,
) -> Result<(), Error> {
    let mut entries: Vec<EventData> = ids.iter().map(|&id| entry(id)).collect();
    let number = Count(ids.len() as u64, "event");
    let Some(&last) = ids.last() else { return Ok(()) };
    guard.set_event(last)?;
    if guard.wait_for_events(&mut entries, true, 0)? == Waited::Complete {
        findings.fail(format!("a wait for all of {number} ends when one is set"));
    }
    guard.set_event(last)?;
    if guard.wait_for_events(&mut entries, false, SET_ALREADY)? == Waited::TimedOut {
        findings.fail(format!("a wait for any of {number} does not end when event {last} is set"));
    }
    ids.iter().try_for_each(|&id| guard.set_event(id))?;
    if guard.wait_for_events(&mut entries, true, SET_ALREADY)? == Waited::TimedOut {
        findings.fail(format!("a wait for all of {number} does not end when all are set"));
    }
    ids.iter().try_for_each(|&id| guard.reset_event(id))
}
