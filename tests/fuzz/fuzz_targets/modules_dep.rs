//! The lists of kernel modules, and their parameters on the command line.
#![no_main]

use std::cell::RefCell;
use std::ffi::{CStr, CString};
use std::fmt;

use hsakmt_core::errno::Errno;
use hsakmt_fuzz::files;
use kfd_validate::init::programs::Program;
use kfd_validate::init::{System, modules};
use libfuzzer_sys::fuzz_target;

/// A machine with these lists, which notes what is loaded.
struct Machine<'a> {
    release: &'a [u8],
    dependencies: &'a [u8],
    built_in: &'a [u8],
    command_line: &'a [u8],
    loaded: RefCell<Vec<CString>>,
}

impl System for Machine<'_> {
    fn make_folder(&self, _: &CStr) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn mount(&self, _: &CStr, _: &CStr) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn release(&self) -> Result<Vec<u8>, Errno> {
        Ok(self.release.to_vec())
    }

    fn read(&self, path: &CStr) -> Result<Vec<u8>, Errno> {
        let path = path.to_bytes();
        Ok(match () {
            () if path.ends_with(b"/modules.dep") => self.dependencies.to_vec(),
            () if path.ends_with(b"/modules.builtin") => self.built_in.to_vec(),
            () => self.command_line.to_vec(),
        })
    }

    fn load_module(&self, path: &CStr, _: &CStr, _: bool) -> Result<(), Errno> {
        self.loaded.borrow_mut().push(path.to_owned());
        Ok(())
    }

    fn exists(&self, _: &CStr) -> bool {
        true
    }

    fn sleep_millisecond(&self) {}

    fn redirect(&self, _: u32, _: &CStr) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn run(&self, _: &Program, _: &[CString]) -> Result<u32, Errno> {
        Err(Errno::ENOSYS)
    }

    fn tell(&self, _: &CStr, _: &[u8]) -> Result<(), Errno> {
        Err(Errno::ENOSYS)
    }

    fn settle(&self) {}

    fn power_off(&self) -> Errno {
        Errno::ENOSYS
    }

    fn say(&self, _: fmt::Arguments<'_>) {}

    fn warn(&self, _: fmt::Arguments<'_>) {}
}

fuzz_target!(|input: &[u8]| {
    let [dependencies, built_in, command_line] = files(input);
    // The kernel's own name; it is what it was compiled with.
    let release = b"6.12.0";
    let loaded = RefCell::default();
    let machine = Machine { release, dependencies, built_in, command_line, loaded };
    let result = modules::load(&machine, "amdgpu");
    let mut loaded = machine.loaded.into_inner();
    match result {
        Ok(()) => {
            // The module itself comes last, after what it needs, each once.
            if let Some(last) = loaded.last() {
                let name = last.to_bytes().rsplit(|&byte| byte == b'/').next().unwrap_or_default();
                assert!(name.starts_with(b"amdgpu"), "{last:?}");
            }
            let count = loaded.len();
            loaded.sort();
            loaded.dedup();
            assert_eq!(loaded.len(), count);
        }
        Err(error) => {
            assert!(loaded.is_empty());
            assert!(!error.to_string().contains('\n'));
        }
    }
});
