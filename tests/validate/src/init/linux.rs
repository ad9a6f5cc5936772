//! [`System`] by Linux system calls.
//!
//! # Safety
//!
//! Every pointer handed to the kernel comes from a Rust reference that outlives
//! the call, with its length where there is one; the kernel keeps none of them.
//! Descriptors have an owner, except 0, 1 and 2, which belong to the process for
//! as long as it lives.
#![allow(unsafe_code)]

use alloc::ffi::CString;
use alloc::vec::Vec;
use core::ffi::{CStr, c_char};
use core::fmt;
use core::ptr::null;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{EndOfFile, Os};
use hsakmt_linux_shim::arch::{syscall0, syscall1, syscall3, syscall4, syscall5};
use hsakmt_linux_shim::fd::OwnedFd;
use linux_raw_sys::general::{
    __NR_clone, __NR_dup3, __NR_execve, __NR_exit_group, __NR_faccessat, __NR_finit_module,
    __NR_ioctl, __NR_mkdirat, __NR_mount, __NR_openat, __NR_reboot, __NR_sync, __NR_uname,
    __NR_wait4, __NR_write, AT_FDCWD, LINUX_REBOOT_CMD_POWER_OFF, LINUX_REBOOT_MAGIC1,
    LINUX_REBOOT_MAGIC2, O_CLOEXEC, O_NOCTTY, O_RDONLY, O_RDWR, O_WRONLY, OPOST, SIGCHLD, termios,
};
use linux_raw_sys::ioctl::{TCGETS, TCSBRK, TCSETS};
use linux_raw_sys::system::new_utsname;

use super::System;
use super::programs::Program;

/// The flag of finit_module(2) for a compressed file (linux/module.h, Linux 5.17).
const MODULE_INIT_COMPRESSED_FILE: usize = 4;
/// The working folder, for the calls that take a folder.
const HERE: usize = AT_FDCWD as isize as usize;
/// The exit status of a child that could not become the program, as shells have it.
const NOT_EXECUTED: usize = 127;
/// The largest file that is read, in bytes: a list of all modules has less
/// than one MiB.
const FILE_LIMIT: usize = 16 << 20;

/// The machine that runs this process.
#[derive(Debug, Clone, Copy, Default)]
pub struct ThisMachine;

fn check(answer: usize) -> Result<usize, Errno> {
    match answer.wrapping_neg() {
        number @ 1..=4095 => Err(Errno(number as u16)),
        _ => Ok(answer),
    }
}

fn restart(mut call: impl FnMut() -> usize) -> Result<usize, Errno> {
    loop {
        match check(call()) {
            Err(Errno::EINTR) => {}
            answer => return answer,
        }
    }
}

fn open(path: &CStr, flags: u32) -> Result<OwnedFd, Errno> {
    let path = path.as_ptr().expose_provenance();
    // SAFETY: the kernel reads the path.
    let fd = restart(|| unsafe { syscall4(__NR_openat, HERE, path, flags as usize, 0) })?;
    // SAFETY: the kernel made this descriptor just now, and for us alone.
    Ok(unsafe { OwnedFd::from_number(fd as i32) })
}

fn write_all(descriptor: usize, mut bytes: &[u8]) -> Result<(), Errno> {
    while !bytes.is_empty() {
        let start = bytes.as_ptr().expose_provenance();
        // SAFETY: the kernel reads `bytes`.
        let written = restart(|| unsafe { syscall3(__NR_write, descriptor, start, bytes.len()) })?;
        bytes = bytes.get(written..).unwrap_or_default();
    }
    Ok(())
}

/// Makes a terminal pass output as it is: no carriage return before a line
/// feed. Anything else but a terminal does so anyway and answers ENOTTY.
fn pass_bytes(descriptor: usize) {
    // SAFETY: integers and arrays of them, for which zeros are values.
    let mut line: termios = unsafe { core::mem::zeroed() };
    let state = (&raw mut line).expose_provenance();
    // SAFETY: the kernel fills `line`.
    if check(unsafe { syscall3(__NR_ioctl, descriptor, TCGETS as usize, state) }).is_ok() {
        line.c_oflag &= !OPOST;
        let state = (&raw const line).expose_provenance();
        // SAFETY: the kernel reads `line`.
        let _ = unsafe { syscall3(__NR_ioctl, descriptor, TCSETS as usize, state) };
    }
}

/// Waits until a terminal has sent what was written to it, as tcdrain(3) does.
fn drain(descriptor: usize) {
    // SAFETY: no pointers.
    let _ = restart(|| unsafe { syscall3(__NR_ioctl, descriptor, TCSBRK as usize, 1) });
}

/// The strings as execve(2) takes them. The pointers are good for as long as the
/// strings are.
fn pointers<'a>(strings: impl IntoIterator<Item = &'a CString>) -> Vec<*const c_char> {
    strings.into_iter().map(|string| string.as_ptr()).chain([null()]).collect()
}

impl System for ThisMachine {
    fn make_folder(&self, path: &CStr) -> Result<(), Errno> {
        let path = path.as_ptr().expose_provenance();
        // SAFETY: the kernel reads the path.
        check(unsafe { syscall3(__NR_mkdirat, HERE, path, 0o755) }).map(drop)
    }

    fn mount(&self, file_system: &CStr, folder: &CStr) -> Result<(), Errno> {
        let kind = file_system.as_ptr().expose_provenance();
        let folder = folder.as_ptr().expose_provenance();
        // SAFETY: the kernel reads the two strings.
        check(unsafe { syscall5(__NR_mount, kind, folder, kind, 0, 0) }).map(drop)
    }

    fn release(&self) -> Result<Vec<u8>, Errno> {
        // SAFETY: arrays of characters, for which zeros are values.
        let mut names: new_utsname = unsafe { core::mem::zeroed() };
        let into = (&raw mut names).expose_provenance();
        // SAFETY: the kernel fills `names`.
        check(unsafe { syscall1(__NR_uname, into) })?;
        Ok(names.release.iter().take_while(|&&byte| byte != 0).map(|&byte| byte as u8).collect())
    }

    fn read(&self, path: &CStr) -> Result<Vec<u8>, Errno> {
        let mut bytes = Vec::new();
        hsakmt_linux_shim::Linux.read_file(path, &mut bytes, FILE_LIMIT, EndOfFile::EmptyRead)?;
        Ok(bytes)
    }

    fn load_module(&self, path: &CStr, parameters: &CStr, compressed: bool) -> Result<(), Errno> {
        let file = open(path, O_RDONLY | O_CLOEXEC)?;
        let parameters = parameters.as_ptr().expose_provenance();
        let flags = if compressed { MODULE_INIT_COMPRESSED_FILE } else { 0 };
        // SAFETY: the kernel reads the parameters; what the module does to the
        // kernel is the purpose.
        check(unsafe { syscall3(__NR_finit_module, file.number() as usize, parameters, flags) })
            .map(drop)
    }

    fn exists(&self, path: &CStr) -> bool {
        let path = path.as_ptr().expose_provenance();
        // SAFETY: the kernel reads the path.
        check(unsafe { syscall3(__NR_faccessat, HERE, path, 0) }).is_ok()
    }

    fn sleep_millisecond(&self) {
        hsakmt_linux_shim::Linux.sleep(1_000_000);
    }

    fn redirect(&self, of: u32, device: &CStr) -> Result<(), Errno> {
        // Not close-on-exec: it is for the programs, too.
        let file = open(device, O_RDWR | O_NOCTTY)?;
        pass_bytes(file.number() as usize);
        // A process may have been started with `of` closed: dup3 refuses to
        // make a descriptor its own copy.
        if file.number() as usize == of as usize {
            let _ = file.into_number();
            return Ok(());
        }
        // SAFETY: the standard descriptors have no other owner.
        restart(|| unsafe { syscall3(__NR_dup3, file.number() as usize, of as usize, 0) }).map(drop)
    }

    fn run(&self, program: &Program, environment: &[CString]) -> Result<u32, Errno> {
        let path = program.path.as_ptr();
        let arguments = pointers([&program.path].into_iter().chain(&program.arguments));
        let variables = pointers(environment);
        // SAFETY: without CLONE_VM the child has memory of its own, and it goes
        // on only to the two calls below.
        let child = check(unsafe { syscall5(__NR_clone, SIGCHLD as usize, 0, 0, 0, 0) })?;
        if child == 0 {
            let path = path.expose_provenance();
            let arguments = arguments.as_ptr().expose_provenance();
            let variables = variables.as_ptr().expose_provenance();
            // SAFETY: the kernel reads the path and two lists that end with a
            // null pointer; where it answers, the child ends at once.
            unsafe {
                let _ = syscall3(__NR_execve, path, arguments, variables);
                let _ = syscall1(__NR_exit_group, NOT_EXECUTED);
            }
        }
        let mut status = 0_u32;
        loop {
            let into = (&raw mut status).expose_provenance();
            // SAFETY: the kernel fills `status`.
            let ended = restart(|| unsafe { syscall4(__NR_wait4, usize::MAX, into, 0, 0) })?;
            // Others are orphans, which become children of the first process.
            if ended == child {
                return Ok(status);
            }
        }
    }

    fn tell(&self, device: &CStr, bytes: &[u8]) -> Result<(), Errno> {
        let file = open(device, O_WRONLY | O_NOCTTY | O_CLOEXEC)?;
        pass_bytes(file.number() as usize);
        write_all(file.number() as usize, bytes)?;
        drain(file.number() as usize);
        Ok(())
    }

    fn say(&self, message: fmt::Arguments<'_>) {
        // There is nobody else to tell that nobody can be told.
        let _ = write_all(1, alloc::format!("init: {message}\n").as_bytes());
    }

    fn warn(&self, message: fmt::Arguments<'_>) {
        let _ = write_all(2, alloc::format!("init: {message}\n").as_bytes());
    }

    fn settle(&self) {
        drain(1);
        drain(2);
        // SAFETY: no pointers.
        let _ = unsafe { syscall0(__NR_sync) };
    }

    fn power_off(&self) -> Errno {
        let magic = (LINUX_REBOOT_MAGIC1 as usize, LINUX_REBOOT_MAGIC2 as usize);
        let command = LINUX_REBOOT_CMD_POWER_OFF as usize;
        // SAFETY: no pointers; ends the machine, which is the purpose.
        match check(unsafe { syscall4(__NR_reboot, magic.0, magic.1, command, 0) }) {
            Err(errno) => errno,
            Ok(_) => Errno(0),
        }
    }
}
