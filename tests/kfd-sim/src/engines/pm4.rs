//! Packets of the command processors: `cikd.h`, `vid.h`, `soc15d.h`, `nvd.h` of
//! amdgpu.
//!
//! Caches are never stale here, so what only concerns caches does nothing, and so
//! does what sets registers.

use alloc::format;

use super::{Call, Engine, Step, compares, interrupt};
use crate::gpu_port::BadAccess;

const CLEAR_STATE: u32 = 0x12;
const NOP: u32 = 0x10;
const CONTEXT_CONTROL: u32 = 0x28;
const WRITE_DATA: u32 = 0x37;
const WAIT_REG_MEM: u32 = 0x3c;
const INDIRECT_BUFFER: u32 = 0x3f;
const COPY_DATA: u32 = 0x40;
const PFP_SYNC_ME: u32 = 0x42;
const SURFACE_SYNC: u32 = 0x43;
const EVENT_WRITE: u32 = 0x46;
const RELEASE_MEM: u32 = 0x49;
const DMA_DATA: u32 = 0x50;
const ACQUIRE_MEM: u32 = 0x58;
const SET_SH_REG: u32 = 0x76;
const SET_UCONFIG_REG: u32 = 0x79;
const HDP_FLUSH: u32 = 0x95;
/// The count of a NOP that is its header alone.
const NO_BODY: u32 = 0x3fff;

/// Executes the next packet of the ring or of the buffer that is executed.
pub(super) fn next(engine: &mut Engine) -> Step {
    execute(engine).unwrap_or_else(Step::from)
}

fn execute(engine: &mut Engine) -> Result<Step, BadAccess> {
    let first = engine.fetch(0, 1)?;
    let Some(&header) = first.first() else { return Ok(Step::Waits) };
    match header >> 30 {
        2 => return Ok(Step::Done(1)),
        3 => {}
        _ => return Ok(Step::Bad(format!("{header:#x} is the header of no packet"), None)),
    }
    let (operation, count) = (header >> 8 & 0xff, header >> 16 & 0x3fff);
    let length = if operation == NOP && count == NO_BODY { 1 } else { u64::from(count) + 2 };
    let words = engine.fetch(0, length)?;
    if (words.len() as u64) < length {
        return Ok(engine.cut_short(header));
    }
    let at = |place: usize| words.get(place).copied().unwrap_or(0);
    let address = |place: usize| u64::from(at(place)) | u64::from(at(place + 1)) << 32;
    let bad = |what: &str| Ok(Step::Bad(format!("{operation:#x}: {what}"), None));
    match operation {
        NOP | CLEAR_STATE | CONTEXT_CONTROL | PFP_SYNC_ME | SURFACE_SYNC | EVENT_WRITE
        | ACQUIRE_MEM | SET_SH_REG | SET_UCONFIG_REG | HDP_FLUSH => {}
        WRITE_DATA => {
            let to = address(2);
            if to % 4 != 0 {
                return bad("address of no dword");
            }
            // A register where it is none of these.
            if matches!(at(1) >> 8 & 0xf, 1 | 2 | 5) {
                let data = words.get(4..).unwrap_or(&[]);
                if at(1) & 1 << 16 == 0 {
                    engine.write_words(to, data)?;
                } else {
                    data.iter().try_for_each(|word| engine.write_words(to, &[*word]))?;
                }
            }
        }
        WAIT_REG_MEM => {
            let in_memory = at(1) >> 4 & 3 == 1;
            if in_memory && address(2) % 4 != 0 {
                return bad("address of no dword");
            }
            let (reference, mask) = (at(4), at(5));
            let there = if in_memory { engine.read_u32(address(2))? } else { reference };
            if !compares(at(1) & 7, there & mask, reference) && in_memory {
                return Ok(Step::Waits);
            }
        }
        COPY_DATA => {
            let wide = at(1) >> 16 & 1 == 1;
            let value = match at(1) & 0xf {
                1 | 2 if wide => engine.read_u64(address(2))?,
                1 | 2 => u64::from(engine.read_u32(address(2))?),
                5 => address(2),
                9 => engine.clock(),
                _ => 0,
            };
            if matches!(at(1) >> 8 & 0xf, 1 | 2 | 5) {
                let words = [value as u32, (value >> 32) as u32];
                engine.write_words(address(4), &words[..1 + usize::from(wide)])?;
            }
        }
        RELEASE_MEM => {
            let of_gfx9 = engine.chip.gfx >= 90_000;
            if words.len() != if of_gfx9 { 8 } else { 7 } {
                return bad("of another generation's length");
            }
            let (select, to, data) = (at(2) >> 29, address(3), address(5));
            let alignment = match select {
                0 => 1,
                1 => 4,
                _ => 8,
            };
            if to % alignment != 0 {
                return bad("address is not aligned");
            }
            match select {
                0 => {}
                1 => engine.write_words(to, &[data as u32])?,
                2 => engine.write_u64(to, data)?,
                _ => engine.write_u64(to, engine.clock())?,
            }
            // 3 waits for the write and does not interrupt.
            if matches!(at(2) >> 24 & 7, 1 | 2) {
                let (word, bits) =
                    if of_gfx9 { (at(7), 32) } else { (data as u32 & 0xfff_ffff, 28) };
                interrupt::signal(engine, word, bits, engine.chip.gfx >= 120_500);
            }
        }
        DMA_DATA => {
            let (control, command) = (at(1), at(6));
            let count = if engine.chip.gfx >= 90_000 { 0x3ff_ffff } else { 0x1f_ffff };
            let bytes = u64::from(command & count);
            let (source, target) = (control >> 29 & 3, control >> 20 & 3);
            if command & (1 << 26 | 1 << 27) != 0 || source == 1 || !matches!(target, 0 | 3) {
                return Ok(Step::Unknown("DMA_DATA of registers or GDS".into()));
            }
            if engine.takes_time(bytes) {
                return Ok(Step::Waits);
            }
            if source == 2 {
                engine.fill(address(4), at(2), 4, bytes)?;
            } else {
                engine.copy(address(2), address(4), bytes)?;
            }
        }
        INDIRECT_BUFFER => return Ok(engine.call(length, address(1), at(3))),
        _ => return Ok(Step::Unknown(format!("PM4 packet {operation:#x}"))),
    }
    Ok(Step::Done(length))
}

impl Engine {
    /// A packet that goes beyond what there is: the rest may come in a ring.
    pub(super) fn cut_short(&self, header: u32) -> Step {
        if self.progress.calls.is_empty() {
            return Step::Waits;
        }
        Step::Bad(format!("packet {header:#x} goes beyond the end of its buffer"), None)
    }

    /// Executes a buffer after the packet of this length that calls it.
    pub(super) fn call(&mut self, packet: u64, address: u64, control: u32) -> Step {
        const VALID: u32 = 1 << 23;
        if control & VALID == 0 || address % 4 != 0 {
            let detail = format!("buffer of packets at {address:#x}, control {control:#x}");
            return Step::Bad(detail, None);
        }
        self.advance(packet);
        self.progress.calls.push(Call { address, length: control & 0xf_ffff, done: 0 });
        Step::Done(0)
    }
}
