//! The driver's buffers: made, shown to the CPU, given up.

use alloc::vec::Vec;

use super::MemoryFlags;
use super::access::{Access, Owner};
use super::object::Handles;
use super::regions::to_usize;
use super::tree::Place;
use crate::context::Options;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::fallible::try_push;
use crate::seam::{Advice, MapDevice, Os, Placement, Platform, Protection};
use crate::uapi::kfd::{AllocMemoryFlags, AllocMemoryOfGpu};

/// The largest buffer over memory of the process: the driver keeps its pages in
/// one array. Larger ones are made of several.
pub(super) const USERPTR_MAX: u64 = (512 << 30) - (2 << 20);

/// Mappings that only a debugger needs, at most: well below the kernel's default
/// of 65,530 mappings in a process (vm.max_map_count).
const DEBUGGER_MAPPINGS_MAX: u32 = 30_000;

/// How the driver is to make a buffer of these flags: rights and caching.
#[inline(always)]
pub(super) fn buffer_flags(flags: MemoryFlags, options: &Options) -> AllocMemoryFlags {
    let disable_cache = options.disable_cache;
    let mut to = AllocMemoryFlags::NO_SUBSTITUTE;
    let mut set = |flag, when: bool| {
        if when {
            to |= flag;
        }
    };
    set(AllocMemoryFlags::AQL_QUEUE_MEM, flags.contains(MemoryFlags::AQL_QUEUE));
    set(AllocMemoryFlags::WRITABLE, !flags.contains(MemoryFlags::READ_ONLY));
    set(
        AllocMemoryFlags::EXECUTABLE,
        flags.contains(MemoryFlags::EXECUTE) || options.all_memory_executable,
    );
    set(AllocMemoryFlags::COHERENT, !flags.contains(MemoryFlags::COARSE_GRAIN) || disable_cache);
    let uncached = MemoryFlags::UNCACHED | MemoryFlags::AQL_QUEUE;
    set(AllocMemoryFlags::UNCACHED, flags.intersects(uncached) || disable_cache);
    set(AllocMemoryFlags::EXT_COHERENT, flags.contains(MemoryFlags::EXTENDED_COHERENT));
    to
}

/// What the driver is asked for.
pub(super) struct Buffer {
    pub(super) gpu_id: u32,
    pub(super) address: u64,
    pub(super) size: u64,
    pub(super) flags: AllocMemoryFlags,
    /// The memory of the process below it.
    pub(super) source: u64,
}

impl<P: Platform> Access<'_, P> {
    /// Buffers over memory of the process, as many as its size needs.
    pub(super) fn make_userptr(
        &self,
        gpu_id: u32,
        address: u64,
        source: u64,
        size: u64,
        flags: AllocMemoryFlags,
        place: Place,
    ) -> Result<Handles, Error> {
        if size <= USERPTR_MAX {
            let buffer = Buffer { gpu_id, address, size, flags, source };
            return self.make_buffer(&buffer, place).map(|(handle, _)| Handles::One(handle));
        }
        let mut handles = Vec::new();
        let mut done = 0;
        while done < size {
            let part = u64::min(size.saturating_sub(done), USERPTR_MAX);
            let buffer = Buffer {
                gpu_id,
                address: address.saturating_add(done),
                size: part,
                flags,
                source: source.saturating_add(done),
            };
            let made = handles
                .try_reserve(1)
                .map_err(Error::from)
                .and_then(|()| self.make_buffer(&buffer, place))
                .and_then(|(handle, _)| try_push(&mut handles, handle));
            if let Err(error) = made {
                for handle in handles {
                    let _ = self.free_buffer(handle);
                }
                return Err(error);
            }
            done = done.saturating_add(part);
        }
        Ok(Handles::Many(handles))
    }

    /// Asks the driver for a buffer of the object at a place: its handle and its offset for the CPU.
    #[inline(always)]
    pub(super) fn make_buffer(&self, buffer: &Buffer, place: Place) -> Result<(u64, u64), Error> {
        let mut block = AllocMemoryOfGpu {
            va_addr: buffer.address,
            size: buffer.size,
            gpu_id: buffer.gpu_id,
            flags: buffer.flags,
            mmap_offset: buffer.source,
            ..AllocMemoryOfGpu::default()
        };
        let gpu = error::Object::Gpu(buffer.gpu_id);
        if let Err(error) = self.channel.execute(&mut block, &mut [], Status::ERROR, gpu) {
            // An access that strayed here has left a range of the driver's, which
            // goes only with the mapping of the process.
            if error.errno != Some(Errno::EADDRINUSE) || !self.refresh(place, buffer) {
                return Err(error);
            }
            block.mmap_offset = buffer.source;
            self.channel.execute(&mut block, &mut [], Status::ERROR, gpu)?;
        }
        Ok((block.handle, block.mmap_offset))
    }

    /// Frees a buffer of an allocation that failed.
    #[cold]
    pub(super) fn drop_buffer(&self, handle: u64, error: Error) -> Error {
        let _ = self.free_buffer(handle);
        error
    }

    /// A buffer for a part of scratch memory.
    pub(super) fn make_scratch(
        &self,
        gpu_id: u32,
        address: u64,
        size: u64,
        place: Place,
    ) -> Result<Handles, Error> {
        let flags =
            AllocMemoryFlags::NO_SUBSTITUTE | AllocMemoryFlags::VRAM | AllocMemoryFlags::WRITABLE;
        let buffer = Buffer { gpu_id, address, size, flags, source: 0 };
        self.make_buffer(&buffer, place).map(|(handle, _)| Handles::One(handle))
    }

    /// Lets the CPU see a buffer at its GPU address; how many bytes of it.
    #[inline(always)]
    pub(super) fn show(
        &self,
        owner: &Owner,
        flags: MemoryFlags,
        start: u64,
        size: u64,
        offset: u64,
    ) -> Result<u64, Error> {
        let for_cpu = flags.contains(MemoryFlags::HOST_ACCESS);
        if !for_cpu && !self.debugger_may_have_one_more() {
            return Ok(0);
        }
        self.map_buffer(owner, for_cpu, start, size, offset)
    }

    /// Maps a buffer for the CPU, or without rights for a debugger, which is then
    /// counted already.
    fn map_buffer(
        &self,
        owner: &Owner,
        for_cpu: bool,
        start: u64,
        size: u64,
        offset: u64,
    ) -> Result<u64, Error> {
        let gpu = error::Object::Gpu(owner.gpu_id);
        let failed = |errno| Error::system(Status::ERROR, Operation::MapDevice, errno, gpu);
        let (address, length) =
            to_usize(start).and_then(|start| Ok((start, to_usize(size)?))).map_err(failed)?;
        let mapping = MapDevice {
            placement: Placement::Replace(address),
            length,
            protection: if for_cpu {
                Protection::READ | Protection::WRITE
            } else {
                Protection::empty()
            },
            offset,
        };
        match self.channel.map_render(owner.render_minor, mapping, Status::ERROR, gpu) {
            Ok(_) => {
                let _ = self.os().advise(address, length, Advice::DontFork);
                Ok(size)
            }
            Err(error) if for_cpu => Err(error),
            Err(_) => {
                let mut books = self.memory.lock(self.os());
                books.debugger_mappings = books.debugger_mappings.saturating_sub(1);
                Ok(0)
            }
        }
    }

    /// Counts one more mapping that only a debugger needs, if it may be.
    #[inline]
    pub(super) fn debugger_may_have_one_more(&self) -> bool {
        if !self.context.options().debugger_access {
            return false;
        }
        let mut books = self.memory.lock(self.os());
        let may = books.debugger_mappings < DEBUGGER_MAPPINGS_MAX;
        if may {
            books.debugger_mappings = books.debugger_mappings.saturating_add(1);
        }
        may
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flags_become_the_drivers() {
        use AllocMemoryFlags as To;
        let of = |flags| buffer_flags(flags, &Options::default());
        let plain = To::NO_SUBSTITUTE | To::WRITABLE | To::COHERENT;
        assert_eq!(of(MemoryFlags::empty()), plain);
        assert_eq!(of(MemoryFlags::COARSE_GRAIN), To::NO_SUBSTITUTE | To::WRITABLE);
        assert_eq!(of(MemoryFlags::READ_ONLY), To::NO_SUBSTITUTE | To::COHERENT);
        assert_eq!(of(MemoryFlags::EXECUTE), plain | To::EXECUTABLE);
        assert_eq!(of(MemoryFlags::UNCACHED), plain | To::UNCACHED);
        assert_eq!(of(MemoryFlags::AQL_QUEUE), plain | To::UNCACHED | To::AQL_QUEUE_MEM);
        assert_eq!(of(MemoryFlags::EXTENDED_COHERENT), plain | To::EXT_COHERENT);
        let options = Options { disable_cache: true, ..Options::default() };
        assert_eq!(buffer_flags(MemoryFlags::COARSE_GRAIN, &options), plain | To::UNCACHED);
        let options = Options { all_memory_executable: true, ..Options::default() };
        assert_eq!(buffer_flags(MemoryFlags::empty(), &options), plain | To::EXECUTABLE);
    }
}
