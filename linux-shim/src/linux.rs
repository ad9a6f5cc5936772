//! The core's two traits, in terms of system calls.
//!
//! # Safety
//!
//! The traits' methods are safe to call and yet can unmap any range and hand
//! any block to a driver: what is mapped where, and which blocks are executed
//! with which arrays, is the contract of the core with whoever implements the
//! seams. Here it is only passed on. What this file answers for by itself: a
//! block is at least as long as its request says, each array's address is put
//! into the block that one call sees and taken out again, and memory that the
//! kernel filled is counted as initialised only as far as it said.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ffi::CStr;
use core::fmt::{self, Write};
use core::ops::ControlFlow;
use core::sync::atomic::AtomicU32;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{
    Advice, Array, Call, Clock, DeviceNode, DeviceToken, Driver, EndOfFile, FileKind, MapDevice,
    Mapping, MemoryPolicy, Os, Placement, Platform, Protection, Wake,
};
use linux_raw_sys::general::{
    CLOCK_BOOTTIME, CLOCK_MONOTONIC, CLOCK_MONOTONIC_RAW, DT_DIR, DT_REG, F_SEAL_GROW,
    F_SEAL_SHRINK, MADV_DOFORK, MADV_DONTDUMP, MADV_DONTFORK, MADV_DONTNEED, MADV_HUGEPAGE,
    MADV_NOHUGEPAGE, MADV_POPULATE_READ, MADV_REMOVE, MAP_ANONYMOUS, MAP_FIXED,
    MAP_FIXED_NOREPLACE, MAP_NORESERVE, MAP_PRIVATE, MAP_SHARED, MFD_ALLOW_SEALING,
    MFD_NOEXEC_SEAL, O_DIRECTORY, O_RDONLY, O_RDWR, PROT_EXEC, PROT_READ, PROT_WRITE,
};
use linux_raw_sys::mempolicy::{
    MPOL_BIND, MPOL_DEFAULT, MPOL_F_STATIC_NODES, MPOL_PREFERRED, MPOL_PREFERRED_MANY,
};

use crate::fd::{BorrowedFd, OwnedFd};
use crate::syscall::{file, futex, ioctl, memory, process, restart, time};
use crate::{arch, fork, page_size};

/// The running Linux kernel: operating system and driver in one.
#[derive(Debug, Clone, Copy, Default)]
pub struct Linux;

impl Linux {
    /// Another number of a file that somebody in the process has open, close-on-exec. It
    /// is the caller's, to be adopted ([`Driver::adopt`]) or closed.
    ///
    /// # Errors
    /// EBADF; EMFILE.
    pub fn duplicate(&self, number: i32) -> Result<DeviceToken, Errno> {
        let fd = BorrowedFd::of_others(number).ok_or(Errno::EBADF)?;
        let fd = file::duplicate(fd)?.into_number();
        Ok(DeviceToken(fd as u32))
    }
}

impl Platform for Linux {
    type Os = Linux;
    type Driver = Linux;

    fn os(&self) -> &Linux {
        self
    }

    fn driver(&self) -> &Linux {
        self
    }
}

impl Os for Linux {
    #[inline]
    fn page_size(&self) -> usize {
        page_size::get()
    }

    fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
        let mut flags = MAP_ANONYMOUS;
        flags |= if mapping.shared { MAP_SHARED } else { MAP_PRIVATE };
        if !mapping.reserve {
            flags |= MAP_NORESERVE;
        }
        map_at(mapping.placement, mapping.length, mapping.protection, flags, None, 0)
    }

    fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
        // SAFETY: see the head of the file.
        unsafe { memory::munmap(address, length) }
    }

    fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
        // SAFETY: see the head of the file.
        unsafe { memory::mprotect(address, length, protection_bits(allow)) }
    }

    fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
        let advice = match advice {
            Advice::DontFork => MADV_DONTFORK,
            Advice::DoFork => MADV_DOFORK,
            Advice::HugePage => MADV_HUGEPAGE,
            Advice::NoHugePage => MADV_NOHUGEPAGE,
            Advice::DontNeed => MADV_DONTNEED,
            Advice::Remove => MADV_REMOVE,
            Advice::DontDump => MADV_DONTDUMP,
            Advice::PopulateRead => MADV_POPULATE_READ,
            _ => return Err(Errno::EINVAL),
        };
        // SAFETY: see the head of the file.
        unsafe { memory::madvise(address, length, advice) }
    }

    fn bind(
        &self,
        address: usize,
        length: usize,
        policy: MemoryPolicy,
        nodes: &[u64],
    ) -> Result<(), Errno> {
        // The nodes are physical ones: they do not move with the process's cpuset.
        let fixed = if nodes.iter().all(|&word| word == 0) { 0 } else { MPOL_F_STATIC_NODES };
        let bind = |mode: u32, nodes| memory::mbind(address, length, mode, nodes);
        match policy {
            MemoryPolicy::Default => bind(MPOL_DEFAULT as u32, &[]),
            MemoryPolicy::Bind => bind(MPOL_BIND as u32 | fixed, nodes),
            MemoryPolicy::Preferred => {
                let several =
                    nodes.iter().fold(0u32, |n, word| n.saturating_add(word.count_ones()));
                if several > 1 {
                    // Linux 5.15; MPOL_PREFERRED looks at the first node alone.
                    match bind(MPOL_PREFERRED_MANY as u32 | fixed, nodes) {
                        Err(Errno::EINVAL) => {}
                        answer => return answer,
                    }
                }
                bind(MPOL_PREFERRED as u32 | fixed, nodes)
            }
        }
    }

    fn read_file(
        &self,
        path: &CStr,
        into: &mut Vec<u8>,
        limit: usize,
        end: EndOfFile,
    ) -> Result<(), Errno> {
        let file = restart(|| file::open(path, O_RDONLY))?;
        let start = into.len();
        let answer = read_to_end(file.borrow(), into, limit, end);
        if answer.is_err() {
            into.truncate(start);
        }
        answer
    }

    fn list_folder(
        &self,
        path: &CStr,
        visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
    ) -> Result<(), Errno> {
        let folder = restart(|| file::open(path, O_RDONLY | O_DIRECTORY))?;
        let mut block = DirectoryBlock([0; DIRECTORY_BLOCK]);
        loop {
            let length = restart(|| file::getdents64(folder.borrow(), &mut block.0))?;
            if length == 0 {
                return Ok(());
            }
            let entries = DirectoryEntries(block.0.get(..length).unwrap_or(&block.0));
            for (name, kind) in entries {
                if name != b"." && name != b".." && visit(name, kind).is_break() {
                    return Ok(());
                }
            }
        }
    }

    fn now(&self, clock: Clock) -> u64 {
        let clock = match clock {
            Clock::Monotonic => CLOCK_MONOTONIC,
            Clock::MonotonicRaw => CLOCK_MONOTONIC_RAW,
            Clock::Boot => CLOCK_BOOTTIME,
        };
        // Every kernel since 2.6.39 has all three, so there is no error to tell.
        time::clock_gettime(clock).unwrap_or(0)
    }

    fn sleep(&self, ns: u64) {
        // EINTR is all that can go wrong, and allowed.
        let _ = time::sleep(ns);
    }

    fn futex_wait(
        &self,
        word: &AtomicU32,
        expected: u32,
        timeout: Option<u64>,
    ) -> Result<Wake, Errno> {
        match futex::wait(word, expected, timeout) {
            Ok(()) | Err(Errno::EAGAIN) => Ok(Wake::Again),
            Err(Errno::ETIMEDOUT) => Ok(Wake::TimedOut),
            Err(errno) => Err(errno),
        }
    }

    fn futex_wake(&self, word: &AtomicU32, count: u32) {
        futex::wake(word, count);
    }

    fn thread_id(&self) -> u32 {
        process::gettid()
    }

    fn process_id(&self) -> u32 {
        process::getpid()
    }

    #[inline]
    fn fork_word(&self) -> &AtomicU32 {
        &fork::words().core
    }

    #[inline]
    fn wmb_device(&self) {
        arch::wmb();
    }

    #[inline]
    fn rmb_device(&self) {
        arch::rmb();
    }

    #[inline]
    fn flush_wc(&self) {
        arch::flush_wc();
    }
}

impl Driver for Linux {
    type Device = OwnedFd;

    fn open(&self, node: DeviceNode) -> Result<OwnedFd, Errno> {
        let mut path = DevicePath::new();
        write!(path, "{node}").map_err(|_| Errno::ENAMETOOLONG)?;
        restart(|| file::open(path.as_c_str()?, O_RDWR))
    }

    fn memory_file(&self, size: u64) -> Result<OwnedFd, Errno> {
        let make = |flags| restart(|| file::memfd(c"hsakmt", flags | MFD_ALLOW_SEALING));
        // Linux 6.3 wants to be told that nobody will execute it, and earlier ones do not know.
        let made = match make(MFD_NOEXEC_SEAL) {
            Err(Errno::EINVAL) => make(0)?,
            made => made?,
        };
        restart(|| file::set_length(made.borrow(), size))?;
        file::seal(made.borrow(), F_SEAL_SHRINK | F_SEAL_GROW)?;
        Ok(made)
    }

    // Where the block's type is known every check but the answer's folds away.
    #[inline(always)]
    fn execute(&self, device: &OwnedFd, call: &mut Call<'_, '_>) -> Result<u32, Errno> {
        let fits = |at: usize| at.checked_add(POINTER).is_some_and(|end| end <= call.block.len());
        if call.arrays.len() != call.slots.len()
            || call.block.len() < call.request.size()
            || !call.slots.iter().all(|slot| fits(slot.pointer_at))
        {
            return Err(Errno::EINVAL);
        }
        // Most blocks have none or one.
        if let ([slot], [array]) = (call.slots, &mut *call.arrays) {
            put_pointer(call.block, slot.pointer_at, address(array));
        } else {
            for (slot, array) in call.slots.iter().zip(call.arrays.iter_mut()) {
                put_pointer(call.block, slot.pointer_at, address(array));
            }
        }
        // SAFETY: see the head of the file; the arrays are borrowed until after
        // the call.
        let answer = unsafe { ioctl::ioctl(device.borrow(), call.request.0, call.block) };
        for slot in call.slots {
            put_pointer(call.block, slot.pointer_at, 0);
        }
        // An ioctl's answer is an int that is not negative.
        answer.map(|answer| answer as u32)
    }

    fn map(&self, device: &OwnedFd, mapping: MapDevice) -> Result<usize, Errno> {
        let MapDevice { placement, length, protection, offset } = mapping;
        map_at(placement, length, protection, MAP_SHARED, Some(device.borrow()), offset)
    }

    fn token(&self, device: &OwnedFd) -> DeviceToken {
        DeviceToken(device.number() as u32)
    }

    fn close_inherited(&self, node: DeviceNode, token: DeviceToken) {
        let device = self.adopt(token);
        let mut path = DevicePath::new();
        let same = write!(path, "{node}").is_ok()
            && path.as_c_str().is_ok_and(|path| {
                let named = file::device_number(None, path);
                named.is_ok() && named == file::device_number(Some(device.borrow()), c"")
            });
        if !same {
            // The number names something else by now, which is not ours to close.
            let _ = device.into_number();
        }
    }

    fn adopt(&self, token: DeviceToken) -> OwnedFd {
        // SAFETY: the caller gives the descriptor up.
        unsafe { OwnedFd::from_number(token.0 as i32) }
    }

    fn release(&self, device: OwnedFd) -> DeviceToken {
        DeviceToken(device.into_number() as u32)
    }
}

fn protection_bits(protection: Protection) -> u32 {
    let bit = |flag, bit| if protection.contains(flag) { bit } else { 0 };
    bit(Protection::READ, PROT_READ)
        | bit(Protection::WRITE, PROT_WRITE)
        | bit(Protection::EXECUTE, PROT_EXEC)
}

fn map_at(
    placement: Placement,
    length: usize,
    protection: Protection,
    flags: u32,
    fd: Option<BorrowedFd<'_>>,
    offset: u64,
) -> Result<usize, Errno> {
    let (at, placement_flag) = match placement {
        Placement::Anywhere => (0, 0),
        Placement::Hint(at) => (at, 0),
        Placement::Free(at) => (at, MAP_FIXED_NOREPLACE),
        Placement::Replace(at) => (at, MAP_FIXED),
    };
    let protection = protection_bits(protection);
    // SAFETY: only `Replace` can hit a range in use, and says that it is owned.
    let mapped =
        unsafe { memory::mmap(at, length, protection, flags | placement_flag, fd, offset) }?;
    if matches!(placement, Placement::Free(_)) && mapped != at {
        // Kernels before 4.17 take an unknown flag for a mere hint.
        // SAFETY: made just now, and known to nobody.
        unsafe { memory::munmap(mapped, length) }?;
        return Err(Errno::EEXIST);
    }
    Ok(mapped)
}

/// The least room to read into: sysfs attributes have at most a page, and most
/// are much shorter.
const READ_ROOM: usize = 4096;

fn read_to_end(
    file: BorrowedFd<'_>,
    into: &mut Vec<u8>,
    limit: usize,
    end: EndOfFile,
) -> Result<(), Errno> {
    // One byte more than allowed tells a file that is too long.
    let most = limit.saturating_add(1);
    let mut got = 0usize;
    if into.capacity().saturating_sub(into.len()) < READ_ROOM {
        into.try_reserve(READ_ROOM).map_err(|_| Errno::ENOMEM)?;
    }
    loop {
        if into.len() == into.capacity() {
            into.try_reserve(READ_ROOM).map_err(|_| Errno::ENOMEM)?;
        }
        let room = into.spare_capacity_mut();
        let asked = room.len().min(most.saturating_sub(got));
        let room = room.get_mut(..asked).unwrap_or(&mut []);
        let length = restart(|| file::read(file, room))?.min(asked);
        // SAFETY: the kernel filled that much, and it was within the capacity.
        unsafe { into.set_len(into.len().saturating_add(length)) };
        got = got.saturating_add(length);
        if got > limit {
            return Err(Errno::EFBIG);
        }
        if length == 0 || (length < asked && end == EndOfFile::ShortRead) {
            return Ok(());
        }
    }
}

/// Bytes asked from getdents64 at a time: some 80 entries of a sysfs folder. The
/// kernel needs room for one name of 255 bytes.
const DIRECTORY_BLOCK: usize = 2048;

/// The kernel lays out entries with 8-byte numbers.
#[repr(align(8))]
struct DirectoryBlock([u8; DIRECTORY_BLOCK]);

/// The entries of a block that getdents64 filled: `linux_dirent64`, each with
/// inode (8 bytes), offset (8), length of the record (2), type (1), name.
struct DirectoryEntries<'a>(&'a [u8]);

impl<'a> Iterator for DirectoryEntries<'a> {
    type Item = (&'a [u8], FileKind);

    fn next(&mut self) -> Option<Self::Item> {
        const LENGTH: usize = 16;
        const TYPE: usize = 18;
        const NAME: usize = 19;
        let length = u16::from_ne_bytes(*self.0.get(LENGTH..)?.first_chunk()?);
        let record = self.0.get(..usize::from(length))?;
        let name = record.get(NAME..)?.split(|&byte| byte == 0).next()?;
        let kind = match u32::from(*record.get(TYPE)?) {
            DT_DIR => FileKind::Folder,
            DT_REG => FileKind::File,
            _ => FileKind::Other,
        };
        self.0 = self.0.get(usize::from(length)..)?;
        Some((name, kind))
    }
}

/// Room for the longest path, `/dev/dri/renderD4294967295`, and its end.
const DEVICE_PATH: usize = 32;

/// A device's path, written without a heap.
struct DevicePath {
    bytes: [u8; DEVICE_PATH],
    length: usize,
}

impl DevicePath {
    const fn new() -> DevicePath {
        DevicePath { bytes: [0; DEVICE_PATH], length: 0 }
    }

    fn as_c_str(&self) -> Result<&CStr, Errno> {
        CStr::from_bytes_until_nul(&self.bytes).map_err(|_| Errno::ENAMETOOLONG)
    }
}

impl Write for DevicePath {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        let end = self.length.checked_add(text.len()).ok_or(fmt::Error)?;
        self.bytes.get_mut(self.length..end).ok_or(fmt::Error)?.copy_from_slice(text.as_bytes());
        self.length = end;
        Ok(())
    }
}

/// Where the array is, for the kernel; 0 for one that is absent or empty, whose
/// address would mean nothing.
#[inline]
fn address(array: &mut Array<'_>) -> usize {
    match array {
        Array::Absent | Array::In([]) | Array::Out([]) | Array::InOut([]) => 0,
        Array::In(bytes) => bytes.as_ptr().expose_provenance(),
        Array::Out(bytes) | Array::InOut(bytes) => bytes.as_mut_ptr().expose_provenance(),
    }
}

/// Bytes of a pointer field, in all blocks.
const POINTER: usize = size_of::<u64>();

/// Writes an address into a block that has room for it there.
#[inline]
fn put_pointer(block: &mut [u8], at: usize, address: usize) {
    if let Some(field) = block.get_mut(at..).and_then(<[u8]>::first_chunk_mut::<POINTER>) {
        *field = (address as u64).to_ne_bytes();
    }
}

#[cfg(test)]
mod tests {
    use super::{DevicePath, DirectoryEntries};
    use alloc::vec::Vec;
    use core::fmt::Write;
    use hsakmt_core::seam::{DeviceNode, FileKind};

    #[test]
    fn the_longest_device_path_fits() {
        let mut path = DevicePath::new();
        write!(path, "{}", DeviceNode::Render(u32::MAX)).unwrap();
        assert_eq!(path.as_c_str().unwrap(), c"/dev/dri/renderD4294967295");
        assert!(write!(path, "1234567").is_err());
    }

    #[test]
    fn directory_entries_end_where_the_block_does() {
        let mut block = Vec::new();
        for (kind, name) in [(4u8, "nodes"), (8, "name"), (10, "link")] {
            block.extend_from_slice(&[0; 16]);
            block.extend_from_slice(&32u16.to_ne_bytes());
            block.push(kind);
            block.extend_from_slice(name.as_bytes());
            block.resize(block.len().next_multiple_of(32), 0);
        }
        let all: Vec<_> = DirectoryEntries(&block).collect();
        assert_eq!(
            all,
            [
                (&b"nodes"[..], FileKind::Folder),
                (&b"name"[..], FileKind::File),
                (&b"link"[..], FileKind::Other)
            ]
        );
        // A record that claims more than there is, or nothing, ends the list.
        assert_eq!(DirectoryEntries(&block[..40]).count(), 1);
        assert_eq!(DirectoryEntries(&[0; 64]).count(), 0);
    }
}
