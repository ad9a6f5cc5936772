//! AQL packets: the HSA specification; the vendor's packets: ROCr's `amd_hsa_*.h`
//! and `hsa_ven_amd_*.h`.

use alloc::format;

use super::{AQL_BYTES, Engine, Step, interrupt};
use crate::gpu_port::BadAccess;

/// HSA_PACKET_TYPE_*.
const VENDOR: u8 = 0;
pub(super) const INVALID: u8 = 1;
const KERNEL_DISPATCH: u8 = 2;
const BARRIER_AND: u8 = 3;
const AGENT_DISPATCH: u8 = 4;
const BARRIER_OR: u8 = 5;

/// Formats of the vendor's packets.
const PM4_BUFFER: u8 = 1;
const BARRIER_VALUE: u8 = 2;
/// Dwords that are left of a packet after the jump into a buffer.
const LEFT_AFTER_JUMP: u32 = 10;

/// Offsets in `amd_signal_t`.
const VALUE: u64 = 8;
const MAILBOX: u64 = 16;
const EVENT: u64 = 24;
const START: u64 = 32;

/// EC_QUEUE_PACKET_*.
const DIMENSIONS: u32 = 16;
const GROUP_SEGMENT: u32 = 17;
const CODE: u32 = 18;
const RESERVED: u32 = 19;
const UNSUPPORTED: u32 = 20;
const WORK_GROUP: u32 = 21;
const VENDOR_UNSUPPORTED: u32 = 23;

/// Executes the next packet.
pub(super) fn next(engine: &mut Engine) -> Step {
    execute(engine).unwrap_or_else(Step::from)
}

fn execute(engine: &mut Engine) -> Result<Step, BadAccess> {
    let at = engine.queue.ring + engine.progress.read % engine.places() * AQL_BYTES;
    let mut packet = [0; AQL_BYTES as usize];
    engine.port.read(at, &mut packet)?;
    let u64_at = |place: usize| {
        packet.get(place..).and_then(<[u8]>::first_chunk).map_or(0, |b| u64::from_le_bytes(*b))
    };
    let u32_at = |place: usize| u64_at(place) as u32;
    let u16_at = |place: usize| u64_at(place) as u16;
    let completion = u64_at(56);
    match packet[0] {
        INVALID => return Ok(Step::Waits),
        BARRIER_AND | BARRIER_OR => {
            let signals = (8..48).step_by(8).map(u64_at).filter(|signal| *signal != 0);
            let mut values = alloc::vec::Vec::new();
            for signal in signals {
                values.push(engine.read_u64(signal + VALUE)?);
            }
            let done = |value: &u64| *value == 0;
            let ready = match packet[0] {
                BARRIER_AND => values.iter().all(done),
                _ => values.is_empty() || values.iter().any(done),
            };
            if !ready {
                return Ok(Step::Waits);
            }
        }
        VENDOR => match packet[2] {
            _ if engine.chip.gfx < 90_000 => return Ok(bad("vendor's packet", VENDOR_UNSUPPORTED)),
            PM4_BUFFER => {
                let (jump, left) = (u32_at(4), u32_at(20));
                let is_jump = jump >> 30 == 3 && jump >> 8 & 0xff == 0x3f;
                if !is_jump || left != LEFT_AFTER_JUMP {
                    return Ok(bad("jump into a buffer", VENDOR_UNSUPPORTED));
                }
                let step = engine.call(1, u64_at(8), u32_at(16));
                if matches!(step, Step::Done(_)) {
                    engine.progress.completes = Some(completion);
                    consume(engine, at)?;
                }
                return Ok(step);
            }
            BARRIER_VALUE => {
                let there = engine.read_u64(u64_at(8) + VALUE)? & u64_at(24);
                let (there, value) = (there as i64, u64_at(16) as i64);
                let ready = match u32_at(32) {
                    0 => there == value,
                    1 => there != value,
                    2 => there < value,
                    _ => there >= value,
                };
                if !ready {
                    return Ok(Step::Waits);
                }
            }
            _ => return Ok(bad("vendor's packet", VENDOR_UNSUPPORTED)),
        },
        KERNEL_DISPATCH => {
            let dimensions = u16_at(2) & 3;
            let group = [4, 6, 8].map(|place| u32::from(u16_at(place)));
            let grid = [12, 16, 20].map(u32_at);
            let used = usize::from(dimensions);
            if dimensions == 0 || grid[..used].contains(&0) {
                return Ok(bad("dispatch without a grid", DIMENSIONS));
            }
            let items: u32 = group[..used].iter().product();
            if items == 0 || items > 1024 {
                return Ok(bad("work-group size", WORK_GROUP));
            }
            if u32_at(28) > 0x1_0000 {
                return Ok(bad("group segment size", GROUP_SEGMENT));
            }
            let kernel = u64_at(32);
            if kernel == 0 || kernel % 64 != 0 {
                return Ok(bad("code object", CODE));
            }
            let mut descriptor = [0; 64];
            engine.port.read(kernel, &mut descriptor)?;
            if descriptor == [0; 64] {
                return Ok(bad("code object", CODE));
            }
            return Ok(Step::Unknown(format!("dispatch of a kernel at {kernel:#x}")));
        }
        AGENT_DISPATCH => return Ok(bad("agent dispatch", UNSUPPORTED)),
        _ => return Ok(bad("reserved type", RESERVED)),
    }
    consume(engine, at)?;
    complete(engine, completion)?;
    Ok(Step::Done(1))
}

fn bad(what: &str, code: u32) -> Step {
    Step::Bad(format!("AQL packet: {what}"), Some(code))
}

/// The place is free again as soon as the packet was read.
fn consume(engine: &Engine, at: u64) -> Result<(), BadAccess> {
    engine.port.write(at, &[INVALID, 0])
}

/// Decrements a completion signal and sets its event.
pub(super) fn complete(engine: &mut Engine, signal: u64) -> Result<(), BadAccess> {
    if signal == 0 {
        return Ok(());
    }
    let clock = engine.clock();
    engine.write_u64(signal + START, clock)?;
    engine.write_u64(signal + START + 8, clock)?;
    let value = engine.read_u64(signal + VALUE)?;
    engine.write_u64(signal + VALUE, value.wrapping_sub(1))?;
    let mailbox = engine.read_u64(signal + MAILBOX)?;
    if mailbox != 0 {
        let event = engine.read_u32(signal + EVENT)?;
        engine.write_u64(mailbox, u64::from(event))?;
        interrupt::signal(engine, event, 32, false);
    }
    Ok(())
}
