//! Packets of the copy engines: `cikd.h` and the `*_sdma_pkt_open.h` of amdgpu.

use alloc::format;

use super::{Call, Engine, Step, compares, interrupt};
use crate::gpu_port::BadAccess;

const NOP: u32 = 0;
const COPY: u32 = 1;
const WRITE: u32 = 2;
const INDIRECT: u32 = 4;
const FENCE: u32 = 5;
const TRAP: u32 = 6;
const POLL_REGMEM: u32 = 8;
const COND_EXE: u32 = 9;
const ATOMIC: u32 = 10;
const CONST_FILL: u32 = 11;
const TIMESTAMP: u32 = 13;
const SRBM_WRITE: u32 = 14;
const DUMMY_TRAP_OF_GFX9: u32 = 16;
const GCR_REQ: u32 = 17;
const DUMMY_TRAP: u32 = 32;

/// Atomic operations that add, with what was there before as answer.
const ADD_32: u32 = 0x0f;
const ADD_64: u32 = 0x2f;

/// Executes the next packet.
pub(super) fn next(engine: &mut Engine) -> Step {
    execute(engine).unwrap_or_else(Step::from)
}

fn execute(engine: &mut Engine) -> Result<Step, BadAccess> {
    let first = engine.fetch(0, 4)?;
    let Some(&header) = first.first() else { return Ok(Step::Waits) };
    let gfx = engine.chip.gfx;
    let from_zero = u32::from(gfx >= 90_000);
    let (operation, sub) = (header & 0xff, header >> 8 & 0xff);
    let unknown = || Ok(Step::Unknown(format!("SDMA packet {operation}, {sub}")));
    let length: u64 = match (operation, sub) {
        (NOP, _) if gfx >= 80_000 => 1 + u64::from(header >> 16 & 0x3fff),
        (NOP, _) => 1,
        (COPY, 0) if header >> 27 & 1 == 0 => 7,
        (WRITE, 0) => {
            let Some(&count) = first.get(3) else { return Ok(engine.cut_short(header)) };
            let mask = if from_zero == 1 { 0xf_ffff } else { 0x3f_ffff };
            4 + u64::from((count & mask) + from_zero)
        }
        (INDIRECT | POLL_REGMEM, 0) => 6,
        (FENCE, 0) => 4,
        (TRAP, _) => 2,
        (COND_EXE | CONST_FILL, 0) => 5,
        (ATOMIC, _) => 8,
        (TIMESTAMP | SRBM_WRITE, _) => 3,
        (DUMMY_TRAP_OF_GFX9, _) if gfx < 100_000 => 2,
        (GCR_REQ, _) if gfx >= 120_500 => 6,
        (GCR_REQ, _) if gfx >= 100_000 => 5,
        (DUMMY_TRAP, _) if gfx >= 100_000 => 2,
        _ => return unknown(),
    };
    let words = engine.fetch(0, length)?;
    if (words.len() as u64) < length {
        return Ok(engine.cut_short(header));
    }
    let at = |place: usize| words.get(place).copied().unwrap_or(0);
    let address = |place: usize| u64::from(at(place)) | u64::from(at(place + 1)) << 32;
    let count = |word: u32| {
        // SDMA 4.4, 5.2 and later count in 30 bits.
        let long = matches!(gfx, 90_010 | 90_400..=90_599) || gfx >= 100_300;
        u64::from((word & if long { 0x3fff_ffff } else { 0x3f_ffff }) + from_zero)
    };
    let bad = |what: &str| Ok(Step::Bad(format!("{operation}, {sub}: {what}"), None));
    match operation {
        COPY => {
            let bytes = count(at(1));
            if engine.takes_time(bytes) {
                return Ok(Step::Waits);
            }
            engine.copy(address(3), address(5), bytes)?;
        }
        WRITE | FENCE | POLL_REGMEM | COND_EXE if address(1) % 4 != 0 => {
            return bad("address of no dword");
        }
        WRITE => engine.write_words(address(1), words.get(4..).unwrap_or(&[]))?,
        FENCE => engine.write_words(address(1), &[at(3)])?,
        TRAP => interrupt::signal(engine, at(1) & 0xfff_ffff, 28, false),
        INDIRECT => {
            if address(1) % 32 != 0 {
                return bad("buffer is not aligned");
            }
            let (address, dwords) = (address(1), at(3) & 0xf_ffff);
            engine.advance(length);
            engine.progress.calls.push(Call { address, length: dwords, done: 0 });
            return Ok(Step::Done(0));
        }
        POLL_REGMEM => {
            let in_memory = header >> 31 == 1;
            let there = if in_memory { engine.read_u32(address(1))? } else { at(3) };
            if !compares(header >> 28 & 7, there & at(4), at(3)) && in_memory {
                return Ok(Step::Waits);
            }
        }
        COND_EXE => {
            let skipped = engine.read_u32(address(1))? != at(3);
            let more = if skipped { u64::from(at(4) & 0x3fff) } else { 0 };
            return Ok(Step::Done(length + more));
        }
        ATOMIC => {
            let to = address(1);
            match header >> 25 {
                ADD_64 => {
                    let value = engine.read_u64(to)?.wrapping_add(address(3));
                    engine.write_u64(to, value)?;
                }
                ADD_32 => {
                    let value = engine.read_u32(to)?.wrapping_add(at(3));
                    engine.write_words(to, &[value])?;
                }
                _ => return unknown(),
            }
        }
        CONST_FILL => {
            let (bytes, unit) = (count(at(4)), header >> 30);
            if unit == 3 || bytes % (1 << unit) != 0 || address(1) % (1 << unit) != 0 {
                return bad("not in whole units");
            }
            if engine.takes_time(bytes) {
                return Ok(Step::Waits);
            }
            engine.fill(address(1), at(3), 1 << unit, bytes)?;
        }
        TIMESTAMP if sub != 0 => {
            if address(1) % 8 != 0 {
                return bad("address is not aligned");
            }
            engine.write_u64(address(1), engine.clock())?;
        }
        _ => {}
    }
    Ok(Step::Done(length))
}
