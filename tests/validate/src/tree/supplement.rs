//! What captures tend to leave out, and what they must not have.

use alloc::ffi::CString;
use alloc::format;
use alloc::vec::Vec;
use core::cell::RefCell;
use core::ffi::CStr;
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake,
};

use super::file_type::FileType;

/// Bytes of a `properties` file that are looked at.
const LIMIT: usize = 64 << 10;

/// An [`Os`] on which every captured tree has the files without which there is
/// no topology: those that are missing are made up.
///
/// People capture the `properties` files. `gpu_id` tells GPUs from CPUs, so a
/// node with SIMD units gets its own number plus one, which is never 0.
///
/// A folder that anyone made may have anything in place of a file. What is
/// neither file nor folder is not opened but remembered.
#[derive(Debug)]
pub struct Supplemented<'o, O> {
    os: &'o O,
    made_up: RefCell<Vec<&'static str>>,
    no_file: RefCell<Option<(CString, FileType)>>,
}

impl<'o, O: Os> Supplemented<'o, O> {
    /// The same system with supplements.
    pub fn new(os: &'o O) -> Supplemented<'o, O> {
        Supplemented { os, made_up: RefCell::new(Vec::new()), no_file: RefCell::new(None) }
    }

    /// The names of the files that were made up.
    pub fn into_made_up(self) -> Vec<&'static str> {
        self.made_up.into_inner()
    }

    /// The first path that was to be read and is neither file nor folder.
    pub fn no_file(&self) -> Option<(CString, FileType)> {
        self.no_file.borrow().clone()
    }

    /// Reads a file of the capture. What cannot be asked for its type cannot be
    /// opened either, but on kernels without the question.
    fn read_captured(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        match FileType::of(path) {
            Ok(found) if !found.is_file_or_folder() => {
                self.no_file.borrow_mut().get_or_insert_with(|| (path.into(), found));
                Err(Errno::EINVAL)
            }
            _ => self.os.read_file(path, into, limit, end),
        }
    }

    /// Makes up the file at `path`, which is not there.
    fn make_up(&self, path: &CStr, into: &mut Vec<u8>) -> Option<()> {
        let path = path.to_bytes();
        let slash = path.iter().rposition(|&byte| byte == b'/')?;
        let (folder, name) = (path.get(..slash)?, path.get(slash + 1..)?);
        let name = match name {
            b"gpu_id" => {
                into.extend_from_slice(format!("{}\n", self.gpu_id(folder)?).as_bytes());
                "gpu_id"
            }
            b"generation_id" => {
                into.extend_from_slice(b"0\n");
                "generation_id"
            }
            b"system_properties" => {
                into.extend_from_slice(b"platform_oem 0\nplatform_id 0\nplatform_rev 0\n");
                "system_properties"
            }
            _ => return None,
        };
        let mut made_up = self.made_up.borrow_mut();
        if !made_up.contains(&name) {
            made_up.push(name);
        }
        Some(())
    }

    /// The id of the GPU of the node in this folder, 0 without one.
    fn gpu_id(&self, folder: &[u8]) -> Option<u32> {
        let mut properties = Vec::new();
        let path = super::joined(folder, "/properties");
        self.read_captured(&path, &mut properties, LIMIT, EndOfFile::ShortRead).ok()?;
        let has_simds = properties
            .split(|&byte| byte == b'\n')
            .filter_map(|line| line.strip_prefix(b"simd_count "))
            .any(|count| count.trim_ascii() != b"0");
        if !has_simds {
            return Some(0);
        }
        let number = folder.rsplit(|&byte| byte == b'/').next()?;
        let number: u32 = core::str::from_utf8(number).ok()?.parse().ok()?;
        number.checked_add(1)
    }
}

impl<O: Os> Os for Supplemented<'_, O> {
    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        match self.read_captured(path, into, limit, end) {
            Err(Errno::ENOENT) => self.make_up(path, into).ok_or(Errno::ENOENT),
            answer => answer,
        }
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        self.os.list_folder(path, visit)
    }

    fn page_size(&self) -> usize {
        self.os.page_size()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        self.os.map(mapping)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        self.os.unmap(address, length)
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        self.os.protect(address, length, allow)
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        self.os.advise(address, length, advice)
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        self.os.bind(address, length, policy, nodes)
    }

    fn now(&self, clock: Clock) -> u64 {
        self.os.now(clock)
    }

    fn sleep(&self, ns: u64) {
        self.os.sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        self.os.futex_wait(word, expected, timeout)
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        self.os.futex_wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        self.os.thread_id()
    }

    fn process_id(&self) -> u32 {
        self.os.process_id()
    }

    fn fork_word(&self) -> &AtomicU32 {
        self.os.fork_word()
    }

    fn wmb_device(&self) {
        self.os.wmb_device();
    }

    fn rmb_device(&self) {
        self.os.rmb_device();
    }

    fn flush_wc(&self) {
        self.os.flush_wc();
    }
}
