#![no_std]
#![no_main]
//! A program without a C library that does what its arguments say and prints
//! what it sees; a test of the shim reads it.

extern crate alloc;

use alloc::collections::BTreeMap;
use alloc::ffi::CString;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt::Write;
use core::ops::ControlFlow;

use hsakmt_core::seam::{Clock, EndOfFile, Os};
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::freestanding::{Output, Start};

hsakmt_linux_shim::freestanding_main!(main);

fn main(start: &Start) -> i32 {
    let mut output = Output::standard();
    run(start, &mut output).unwrap_or(3)
}

fn run(start: &Start, output: &mut Output) -> Result<i32, core::fmt::Error> {
    let arguments: Vec<CString> = start.arguments().map(CString::from).collect();
    let text = |index: usize| arguments.get(index).map_or("", |a| a.to_str().unwrap_or("?"));
    match text(1) {
        // Everything that the kernel handed over.
        "start" => {
            for argument in &arguments {
                writeln!(output, "argument {}", argument.to_string_lossy())?;
            }
            for entry in start.environment() {
                writeln!(output, "environment {}", String::from_utf8_lossy(entry))?;
            }
            writeln!(output, "page size {}", Linux.page_size())?;
            writeln!(output, "probed {}", hsakmt_linux_shim::page_size::probe())?;
            writeln!(output, "process {}", Linux.process_id())?;
            writeln!(output, "boot clock runs {}", Linux.now(Clock::Boot) > 0)?;
            writeln!(
                output,
                "fork word {}",
                Linux.fork_word().load(core::sync::atomic::Ordering::Relaxed)
            )?;
        }
        "file" => {
            let mut bytes = Vec::new();
            match Linux.read_file(&arguments[2], &mut bytes, 1 << 30, EndOfFile::ShortRead) {
                Ok(()) => output.write(&bytes).map_err(|_| core::fmt::Error)?,
                Err(errno) => {
                    writeln!(Output::error(), "{}: {errno}", text(2))?;
                    return Ok(1);
                }
            }
        }
        "folder" => {
            let answer = Linux.list_folder(&arguments[2], &mut |name, kind| {
                let _ = writeln!(output, "{kind:?} {}", String::from_utf8_lossy(name));
                ControlFlow::Continue(())
            });
            if let Err(errno) = answer {
                writeln!(Output::error(), "{}: {errno}", text(2))?;
                return Ok(1);
            }
        }
        "heap" => writeln!(output, "sum {}", heap())?,
        "memory" => writeln!(output, "{}", if memory() { "same" } else { "different" })?,
        "panic" => panic!("on purpose, with {}", arguments.len()),
        "status" => return Ok(text(2).parse().unwrap_or(-1)),
        other => {
            writeln!(Output::error(), "what is {other:?}?")?;
            return Ok(2);
        }
    }
    Ok(0)
}

/// Many blocks of many sizes, up to mappings of their own.
fn heap() -> u64 {
    let mut blocks = BTreeMap::new();
    let mut number = 1u32;
    for step in 0..20_000u32 {
        number = number.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
        let size = if step % 1000 == 0 { 3 << 20 } else { (number >> 16) as usize % 3000 };
        let mut block = alloc::vec![0u8; size];
        assert!(block.iter().all(|&byte| byte == 0));
        block.fill(step as u8);
        blocks.insert(number % 500, block);
    }
    blocks.values().map(|block| block.iter().map(|&b| u64::from(b)).sum::<u64>()).sum()
}

/// The memory functions against loops that the compiler cannot turn into them.
fn memory() -> bool {
    use core::hint::black_box;

    const SIZE: usize = 96;
    let pattern = |index: usize| (index * 7 + 3) as u8;
    for from in 0..20 {
        for to in 0..20 {
            for length in (0..40).chain([64, 70]) {
                let mut bytes: [u8; SIZE] = core::array::from_fn(pattern);
                black_box(&mut bytes).copy_within(from..from + length, to);
                let right = |index: usize| {
                    if (to..to + length).contains(&index) {
                        pattern(index - to + from)
                    } else {
                        pattern(index)
                    }
                };
                if (0..SIZE).any(|index| bytes[index] != right(index)) {
                    return false;
                }
                let mut other = [0xeeu8; SIZE];
                black_box(&mut other)[to..to + length].copy_from_slice(&bytes[from..from + length]);
                if (0..SIZE).any(|index| {
                    let inside = (to..to + length).contains(&index);
                    other[index] != if inside { bytes[index - to + from] } else { 0xee }
                }) {
                    return false;
                }
                black_box(&mut other)[to..to + length].fill(length as u8);
                if (0..SIZE).any(|index| {
                    let inside = (to..to + length).contains(&index);
                    other[index] != if inside { length as u8 } else { 0xee }
                }) {
                    return false;
                }
            }
        }
    }
    compares() && [c"", c"f", c"four"].map(|text| black_box(text).count_bytes()) == [0, 1, 4]
}

/// Slices of every short length that differ at every place, by the highest bit.
fn compares() -> bool {
    use core::cmp::Ordering::{Equal, Greater, Less};
    use core::hint::black_box;

    (0..20).all(|length| {
        (0..20).all(|place| {
            let (low, mut high) = ([0x7fu8; 20], [0x7fu8; 20]);
            high[place] = 0x80;
            let (low, high) = (black_box(&low[..length]), black_box(&high[..length]));
            let (there, back) = if place < length { (Less, Greater) } else { (Equal, Equal) };
            (low.cmp(high), high.cmp(low), low == high) == (there, back, there == Equal)
        })
    })
}
