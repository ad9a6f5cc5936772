#![no_std]
#![no_main]
//! `kfd-validate`: one static file without a C library, which also serves as
//! the first process of a machine.

extern crate alloc;

use alloc::vec::Vec;
use core::ffi::CStr;

use hsakmt_core::seam::Os;
use hsakmt_linux_shim::Linux;
use hsakmt_linux_shim::freestanding::Start;
use kfd_validate::init::linux::ThisMachine;
use kfd_validate::init::{self, NOT_SET_UP, Settings, System};
use kfd_validate::output::streams::Streams;
use kfd_validate::{program, signals};

hsakmt_linux_shim::freestanding_main!(main);

fn main(start: &Start) -> i32 {
    signals::survive_bus_errors();
    let work = || {
        let arguments: Vec<&[u8]> = start.arguments().skip(1).map(CStr::to_bytes).collect();
        program::run(&arguments, Linux, &mut Streams::new()).0
    };
    let verdict = if is_first_process() { as_first_process(start, work) } else { work() };
    i32::from(verdict)
}

/// Whether the kernel started this process to bring the machine up. The first
/// process of a container has the same number, but finds `/proc` mounted.
fn is_first_process() -> bool {
    Linux.process_id() == 1 && !ThisMachine.exists(c"/proc/self")
}

fn as_first_process(start: &Start, work: impl FnOnce() -> u8) -> u8 {
    let settings = Settings::from_environment(start.environment());
    let own = match init::start(&ThisMachine, &settings) {
        Ok(()) => work(),
        Err(error) => {
            ThisMachine.warn(format_args!("{error}"));
            NOT_SET_UP
        }
    };
    init::finish(&ThisMachine, &settings, own)
}
