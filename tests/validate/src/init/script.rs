//! A [`System`] for tests: keeps a list of the calls and answers by plan.

use alloc::borrow::ToOwned;
use alloc::collections::{BTreeMap, VecDeque};
use alloc::ffi::CString;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;
use core::cell::{Cell, RefCell};
use core::ffi::CStr;
use core::fmt;

use hsakmt_core::errno::Errno;

use super::System;
use super::programs::Program;

/// A machine of release 6.1.0 that lists what is done to it.
#[derive(Default)]
pub struct Script {
    calls: RefCell<Vec<String>>,
    failures: RefCell<BTreeMap<String, Errno>>,
    files: RefCell<BTreeMap<String, String>>,
    /// How many sleeps it takes until any path exists.
    pub appears_after: Cell<u32>,
    /// The wait statuses of the programs to be run; 0 when used up.
    pub statuses: RefCell<VecDeque<u32>>,
}

impl Script {
    /// A machine with this `modules.dep`.
    pub fn with_modules(dependencies: &str) -> Script {
        let script = Script::default();
        script.file("/lib/modules/6.1.0/modules.dep", dependencies);
        script
    }

    /// Adds a file.
    pub fn file(&self, path: &str, content: &str) {
        self.files.borrow_mut().insert(path.to_owned(), content.to_owned());
    }

    /// Lets the call that is listed like this fail.
    pub fn fail(&self, call: &str, errno: Errno) {
        self.failures.borrow_mut().insert(call.to_owned(), errno);
    }

    /// What was done so far.
    pub fn calls(&self) -> Vec<String> {
        self.calls.borrow().clone()
    }

    fn call(&self, call: String) -> Result<(), Errno> {
        let answer = self.failures.borrow().get(&call).copied();
        self.calls.borrow_mut().push(call);
        answer.map_or(Ok(()), Err)
    }
}

fn text(path: &CStr) -> &str {
    path.to_str().unwrap()
}

impl System for Script {
    fn make_folder(&self, path: &CStr) -> Result<(), Errno> {
        self.call(format!("mkdir {}", text(path)))
    }

    fn mount(&self, file_system: &CStr, folder: &CStr) -> Result<(), Errno> {
        self.call(format!("mount {} {}", text(file_system), text(folder)))
    }

    fn release(&self) -> Result<Vec<u8>, Errno> {
        Ok(Vec::from(b"6.1.0"))
    }

    fn read(&self, path: &CStr) -> Result<Vec<u8>, Errno> {
        let files = self.files.borrow();
        files.get(text(path)).map(|content| Vec::from(content.as_bytes())).ok_or(Errno::ENOENT)
    }

    fn load_module(&self, path: &CStr, parameters: &CStr, compressed: bool) -> Result<(), Errno> {
        let compressed = if compressed { "compressed " } else { "" };
        let call = format!("load {compressed}{} {}", text(path), text(parameters));
        self.call(call.trim_end().to_owned())
    }

    fn exists(&self, _: &CStr) -> bool {
        self.appears_after.get() == 0
    }

    fn sleep_millisecond(&self) {
        self.appears_after.set(self.appears_after.get() - 1);
        let _ = self.call("sleep".to_owned());
    }

    fn redirect(&self, of: u32, device: &CStr) -> Result<(), Errno> {
        self.call(format!("redirect {of} {}", text(device)))
    }

    fn run(&self, program: &Program, _: &[CString]) -> Result<u32, Errno> {
        let mut call = format!("run {}", text(&program.path));
        for argument in &program.arguments {
            call = format!("{call} {}", text(argument));
        }
        self.call(call)?;
        Ok(self.statuses.borrow_mut().pop_front().unwrap_or(0))
    }

    fn tell(&self, device: &CStr, bytes: &[u8]) -> Result<(), Errno> {
        self.call(format!("tell {} {}", text(device), String::from_utf8_lossy(bytes).trim_end()))
    }

    fn say(&self, message: fmt::Arguments<'_>) {
        let _ = self.call(format!("say {message}"));
    }

    fn warn(&self, message: fmt::Arguments<'_>) {
        let _ = self.call(format!("warn {message}"));
    }

    fn settle(&self) {
        let _ = self.call("settle".to_owned());
    }

    fn power_off(&self) -> Errno {
        let _ = self.call("power off".to_owned());
        Errno::EPERM
    }
}
