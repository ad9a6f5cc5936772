//! Memory of an APU that is the process's: a file in memory, of which udmabuf makes a
//! dma-buf, which the GPU's driver takes in.
//!
//! The file is mapped before udmabuf takes its pages, because the NUMA policy of a
//! shared mapping is the file's and decides where they come from. It cannot shrink (udmabuf
//! asks for that seal) nor grow. File, dma-buf and udmabuf are closed before the call
//! ends: the driver's buffer keeps the pages, and the mapping does. Whatever fails, all of
//! it goes, and the addresses are as they were.

use super::access::{Access, Owner, Scene};
use super::object::{Draft, Handles, Kind, Span};
use super::objects::Placed;
use super::regions::{HUGE_PAGE, reservation, to_usize};
use super::spans::{Source, alignment_for, round_up};
use super::{AllocationRequest, MemoryFlags};
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::execute::execute;
use crate::process::{Device, Opened};
use crate::seam::{
    Advice, DeviceNode, DeviceToken, Driver, MapDevice, MemoryPolicy, Os, Placement, Platform,
    Protection,
};
use crate::uapi::Block;
use crate::uapi::kfd::ImportDmabuf;
use crate::uapi::udmabuf::{UdmabufCreate, UdmabufFlags};

/// What an imported buffer cannot be: the driver gives it an address, maps it once, and
/// caches it as it caches system memory (`import_obj_create`, amdgpu_amdkfd_gpuvm.c).
const NEVER: MemoryFlags = MemoryFlags::NO_ADDRESS
    .union(MemoryFlags::AQL_QUEUE)
    .union(MemoryFlags::UNCACHED)
    .union(MemoryFlags::EXTENDED_COHERENT);

/// Of a step that the system refused.
fn refused(operation: Operation, errno: Errno, object: Object) -> Error {
    let status = match errno {
        Errno::ENOMEM => Status::NO_MEMORY,
        _ => Status::ERROR,
    };
    Error::system(status, operation, errno, object)
}

impl<P: Platform> Access<'_, P> {
    /// Whether udmabuf can make memory of a node's GPU: one whose memory is the system's,
    /// and that shares the process's addresses.
    pub(super) fn has_udmabuf_memory(&self, node: u32, owner: &Owner) -> bool {
        let is_apu = |node: &crate::topology::Node| node.integrated || node.cpu_cores_count != 0;
        !owner.apart && self.machine(|machine| Ok(is_apu(machine.node(node)?))).unwrap_or(false)
    }

    /// Allocates memory of an APU by udmabuf, and in no other way.
    ///
    /// # Errors
    /// NOT_SUPPORTED for what it cannot be; NO_MEMORY; ERROR with the step that failed.
    pub(super) fn allocate_udmabuf(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: &Owner,
    ) -> Result<u64, Error> {
        let flags = request.flags;
        if flags.intersects(NEVER) {
            return Err(Error::argument(4).with_status(Status::NOT_SUPPORTED));
        }
        let page = self.page();
        let size = round_up(request.size, page).ok_or(Error::no_memory(request.size))?;
        let alignment = alignment_for(size, request.alignment, u64::max(page, owner.alignment()));
        let fixed = flags.contains(MemoryFlags::FIXED_ADDRESS).then_some(request.address);
        let draft = Draft {
            kind: Kind::Gtt,
            size: request.size,
            length: size,
            node: request.node,
            flags,
            reachable: owner.peers,
        };
        let placed = self.process_span(Source::Device, alignment, fixed, &draft)?;
        let mut shown = 0;
        match self.make_udmabuf(request, scene, owner, placed, size, &mut shown) {
            Ok(handle) => {
                let visible = self.hide_unless_wanted(flags, placed, size);
                self.publish(placed.place, Handles::One(handle), visible);
                Ok(placed.start)
            }
            Err(error) => {
                self.forget_shown(placed, shown);
                Err(error)
            }
        }
    }

    /// The driver's handle of a buffer of so many bytes at the addresses of an object, where
    /// the CPU sees it. `shown` is what is mapped, also after a failure.
    fn make_udmabuf(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        owner: &Owner,
        placed: Placed,
        size: u64,
        shown: &mut u64,
    ) -> Result<u64, Error> {
        let driver = self.channel.platform.driver();
        let bytes = Object::Bytes(size);
        let file = driver
            .memory_file(size)
            .map_err(|errno| refused(Operation::MakeMemoryFile, errno, bytes))?;
        self.show_file(&file, request.flags, placed, size)
            .map_err(|errno| refused(Operation::MapDevice, errno, bytes))?;
        *shown = size;
        self.settle_file(request, scene, placed, size)
            .map_err(|errno| refused(Operation::BindMemory, errno, bytes))?;
        let dma_buf = self.dma_buf_of(&file, size)?;
        let mut block = ImportDmabuf {
            va_addr: placed.start,
            gpu_id: owner.gpu_id,
            dmabuf_fd: driver.token(&dma_buf).0,
            ..ImportDmabuf::default()
        };
        let object = Object::Gpu(owner.gpu_id);
        let imported = self.channel.execute(&mut block, &mut [], Status::ERROR, object);
        imported.map_err(|error| match error.errno {
            Some(Errno::ENOMEM) => error.with_status(Status::NO_MEMORY),
            _ => error,
        })?;
        Ok(block.handle)
    }

    /// Maps a file at the addresses of an object.
    fn show_file(
        &self,
        file: &Device<P>,
        flags: MemoryFlags,
        placed: Placed,
        size: u64,
    ) -> Result<(), Errno> {
        let (start, length) = (to_usize(placed.start)?, to_usize(size)?);
        let protection = if flags.contains(MemoryFlags::HOST_ACCESS) {
            Protection::READ | Protection::WRITE
        } else {
            Protection::empty()
        };
        let placement = Placement::Replace(start);
        let mapping = MapDevice { placement, length, protection, offset: 0 };
        self.channel.platform.driver().map(file, mapping)?;
        let _ = self.os().advise(start, length, Advice::DontFork);
        if size >= HUGE_PAGE {
            let _ = self.os().advise(start, length, Advice::HugePage);
        }
        Ok(())
    }

    /// Says where the pages of a file that is mapped are to be: nowhere but on the APU's
    /// own NUMA node.
    fn settle_file(
        &self,
        request: &AllocationRequest,
        scene: &Scene,
        placed: Placed,
        size: u64,
    ) -> Result<(), Errno> {
        let anywhere = request.flags.contains(MemoryFlags::NO_NUMA_BIND);
        let Some(node) = scene.numa.filter(|_| !anywhere) else { return Ok(()) };
        let (start, length) = (to_usize(placed.start)?, to_usize(size)?);
        match self.bind(start, length, MemoryPolicy::Bind, node) {
            // Containers forbid it.
            Err(Errno::EPERM | Errno::ENOSYS) => Ok(()),
            answer => answer,
        }
    }

    /// The dma-buf over all pages of a file, which udmabuf takes here.
    fn dma_buf_of(&self, file: &Device<P>, size: u64) -> Result<Device<P>, Error> {
        let (platform, descriptors) = (self.channel.platform, self.channel.descriptors);
        let opened =
            Opened::open(platform, descriptors, DeviceNode::Udmabuf, |errno| match errno {
                Errno::ENOENT => Status::NOT_SUPPORTED,
                Errno::ENOMEM => Status::NO_MEMORY,
                _ => Status::ERROR,
            })?;
        let device = opened.device().ok_or(Error::not_open())?;
        let memfd = platform.driver().token(file).0;
        let mut block = UdmabufCreate { memfd, flags: UdmabufFlags::CLOEXEC, offset: 0, size };
        let made = execute(platform, device, &mut block, &mut []).map_err(|errno| {
            let operation = Operation::Execute(UdmabufCreate::REQUEST);
            refused(operation, errno, Object::Bytes(size))
        })?;
        Ok(platform.driver().adopt(DeviceToken(made)))
    }

    /// Takes a mapping away that neither the CPU nor a debugger is to have; how many bytes
    /// stay mapped.
    fn hide_unless_wanted(&self, flags: MemoryFlags, placed: Placed, size: u64) -> u64 {
        if flags.contains(MemoryFlags::HOST_ACCESS) || self.debugger_may_have_one_more() {
            return size;
        }
        let hidden = to_usize(placed.start).and_then(|start| {
            self.os().map(reservation(Placement::Replace(start), to_usize(size)?))
        });
        if hidden.is_ok() {
            return 0;
        }
        // It goes with the buffer, which counts it as a debugger's.
        let mut books = self.memory.lock(self.os());
        books.debugger_mappings = books.debugger_mappings.saturating_add(1);
        size
    }

    /// Takes the addresses of an object back of which the CPU may see so many bytes.
    fn forget_shown(&self, placed: Placed, shown: u64) {
        let span = self.span_of(placed.place);
        let own = span.is_some_and(|span: Span| span.reserved().is_some());
        if own || span.is_none_or(|span| self.cover(span, shown)) {
            return self.forget(placed);
        }
        // They are set aside.
        let mut books = self.memory.lock(self.os());
        books.objects.remove(placed.start);
        self.memory.unlock(self.os(), books);
    }
}
