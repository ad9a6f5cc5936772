//! Buffer objects of the DRM driver: dma-bufs taken in under a handle, mapped at
//! addresses that the caller chooses.
//!
//! # What a handle is
//! A dma-buf becomes a GEM handle of the render file that the GPU's address space is
//! bound to, so what is mapped by it is what the context's queues see (amdgpu_gem.c,
//! `amdgpu_gem_va_ioctl`; on such address spaces since KFD 1.15). A
//! [`BufferHandle`] names it together with the context, the file and a serial number: a
//! handle that was freed, and one of another context, are recognised and refused. One
//! buffer has one handle in a file (drm_prime.c); importing it again counts, and as many
//! frees end it. What is still there when the context closes is closed with it.
//!
//! No descriptor is kept: the one of an import is the caller's, who may close it at once,
//! and the one of an export is given to the caller.
//!
//! # Mappings
//! A change of mappings is over when the call returns: each GPU has a timeline, a sync
//! object of the driver's, of which every change is the next point, and the call waits
//! for its point, however long. Two threads take their points and send them one after the
//! other, since the driver would lose a point that comes after a higher one
//! (drm_syncobj.c, `drm_syncobj_add_point`). A driver before 7.2 says nothing of points;
//! there a change is over soon after the call, as it is for every user of that driver.
//!
//! A closed handle has no mappings any more. Addresses are the caller's business: those
//! of an allocation of addresses alone are meant for it.
//!
//! # Other users of the same file
//! Where the process has a libdrm_amdgpu, the file is its, too, and it closes GEM handles
//! as it counts them. A buffer that it has is not to be taken in here as well, nor the
//! other way round.
//!
//! # Tags
//! The exporter of a buffer may leave a number in its metadata, the first word, which an
//! importer must name; see `tag.rs`.
//!
//! # Locks
//! `importing` is held while a dma-buf becomes a handle and while one is closed, across
//! the request: the driver gives the same number for the same buffer, and between the
//! answer and our note of it nobody may close that number. The books are held for
//! look-ups alone. A timeline is held while a point of it is sent. Lock order:
//! `importing`, timeline, books. A handle in use is not closed before its users are done.

mod books;
mod calls;
mod mapping;
mod tag;

pub use books::BufferHandle;
pub(crate) use books::Gem;
pub use tag::Tag;

use super::access::Access;
use super::spans::round_up;
use books::{Entry, Key, Object, Shown};

use crate::error::{self, Error, Operation, Status};
use crate::process::Render;
use crate::seam::{Advice, Array, MapDevice, Os, Placement, Platform, Protection};
use crate::uapi::amdgpu::{GemCreateIn, GemMmap, GemOpGetGemCreateInfo};
use crate::uapi::drm::{GemClose, PrimeFdToHandle, PrimeFlags, PrimeHandleToFd};

use zerocopy::{FromZeros, IntoBytes};

/// A buffer that was taken in under a handle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportedObject {
    /// Names it.
    pub handle: BufferHandle,
    /// Bytes.
    pub size: u64,
    /// Its tag, where one was asked for; else 0.
    pub tag: u32,
}

/// A buffer that was refused because it has another tag than the caller named.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ImportFailure {
    /// The failure.
    pub error: Error,
    /// The tag that it has instead.
    pub other_tag: Option<u32>,
}

impl From<Error> for ImportFailure {
    fn from(error: Error) -> ImportFailure {
        ImportFailure { error, other_tag: None }
    }
}

/// Part of a buffer and where it is to be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ObjectMapping {
    /// Bytes from the start of the buffer; a multiple of the page size.
    pub offset: u64,
    /// Bytes; a multiple of the page size.
    pub size: u64,
    /// The GPU's address.
    pub address: u64,
}

/// What a GPU may do with a mapping.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct GpuRights {
    /// Read.
    pub read: bool,
    /// Write.
    pub write: bool,
}

/// The failure of a call on a handle that names nothing.
#[cold]
fn no_such_handle(handle: BufferHandle) -> Error {
    let object = error::Object::Handle(handle.to_raw());
    Error::library(Status::INVALID_HANDLE, Operation::LookUp, object)
}

/// The failure of a call that names a render node which no GPU in use has.
#[cold]
fn no_such_device(render_minor: u32) -> Error {
    let object = error::Object::Device(crate::seam::DeviceNode::Render(render_minor));
    Error::library(Status::INVALID_HANDLE, Operation::LookUp, object)
}

impl<P: Platform> Access<'_, P> {
    /// The bound render file at a place.
    fn render_at(&self, place: u8) -> Result<&Render<P>, Error> {
        self.channel.files.render_at(place).ok_or(Error::not_open())
    }

    /// Takes a buffer in by its dma-buf, through the GPU of a render node.
    pub(crate) fn import_object(
        &self,
        render_minor: u32,
        descriptor: u32,
        tag: Tag,
    ) -> Result<ImportedObject, ImportFailure> {
        let (os, gem) = (self.os(), &self.memory.gem);
        let files = self.channel.files;
        let place = files.render_place(render_minor).ok_or_else(|| no_such_device(render_minor))?;
        let render = self.render_at(place)?;
        let _importing = gem.importing.acquire(os);
        gem.lock(os).reserve_one()?;
        let object = error::Object::Handle(u64::from(descriptor));
        let mut block = PrimeFdToHandle { fd: descriptor as i32, ..PrimeFdToHandle::default() };
        self.channel.execute_render(render, &mut block, &mut [], Status::ERROR, object)?;
        let key = Key { place, gem: block.handle };
        let known = gem.lock(os).entry(key).map(|entry| entry.size);
        let settled = match known {
            Some(size) => Ok(size),
            None => self.object_size(render, block.handle).map_err(ImportFailure::from),
        };
        let settled =
            settled.and_then(|size| Ok((size, self.settle_tag(render, block.handle, tag)?)));
        let (size, found) = match settled {
            Ok(settled) => settled,
            Err(failure) => {
                if known.is_none() {
                    let _ = self.close_object(render, block.handle);
                }
                return Err(failure);
            }
        };
        let handle = gem.lock(os).enter(key, size, tag != Tag::None)?;
        Ok(ImportedObject { handle, size, tag: found })
    }

    fn object_size(&self, render: &Render<P>, handle: u32) -> Result<u64, Error> {
        let mut created = GemCreateIn::new_zeroed();
        let mut block = GemOpGetGemCreateInfo { handle, ..GemOpGetGemCreateInfo::default() };
        let object = error::Object::Handle(u64::from(handle));
        let arrays = &mut [Array::Out(created.as_mut_bytes())];
        self.channel.execute_render(render, &mut block, arrays, Status::ERROR, object)?;
        Ok(created.bo_size)
    }

    fn close_object(&self, render: &Render<P>, handle: u32) -> Result<(), Error> {
        let mut block = GemClose { handle, ..GemClose::default() };
        let object = error::Object::Handle(u64::from(handle));
        self.channel.execute_render(render, &mut block, &mut [], Status::ERROR, object).map(drop)
    }

    /// Does something with a buffer, which nobody closes meanwhile.
    fn with_object<R>(
        &self,
        handle: BufferHandle,
        act: impl FnOnce(Object) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (os, gem) = (self.os(), &self.memory.gem);
        let object = gem.lock(os).take(handle).ok_or_else(|| no_such_handle(handle))?;
        let answer = act(object);
        let mut books = gem.lock(os);
        let wake = books.put_back(object.key);
        drop(books);
        if wake {
            gem.tell_of_turn(os);
        }
        answer
    }

    /// Gives a buffer out as a dma-buf; its descriptor, close-on-exec, is the caller's.
    pub(crate) fn export_object(
        &self,
        render_minor: u32,
        handle: BufferHandle,
    ) -> Result<u32, Error> {
        self.with_object(handle, |object| {
            let render = self.object_file(&object, render_minor)?;
            let flags = PrimeFlags::CLOEXEC | PrimeFlags::RDWR;
            let mut block =
                PrimeHandleToFd { handle: object.key.gem, flags, ..PrimeHandleToFd::default() };
            let named = error::Object::Handle(handle.to_raw());
            let status = Status::INVALID_HANDLE;
            self.channel.execute_render(render, &mut block, &mut [], status, named)?;
            Ok(block.fd as u32)
        })
    }

    /// The file that a buffer is in, if that is the render node's.
    fn object_file(&self, object: &Object, render_minor: u32) -> Result<&Render<P>, Error> {
        let render = self.render_at(object.key.place)?;
        if render.minor == render_minor { Ok(render) } else { Err(no_such_device(render_minor)) }
    }

    /// Where in the render node's file the CPU maps a buffer.
    pub(crate) fn object_offset(
        &self,
        render_minor: u32,
        handle: BufferHandle,
    ) -> Result<u64, Error> {
        self.with_object(handle, |object| {
            let render = self.object_file(&object, render_minor)?;
            self.offset_in_file(render, object.key.gem)
        })
    }

    fn offset_in_file(&self, render: &Render<P>, handle: u32) -> Result<u64, Error> {
        let mut block = GemMmap { handle, ..GemMmap::default() };
        let object = error::Object::Handle(u64::from(handle));
        self.channel.execute_render(render, &mut block, &mut [], Status::ERROR, object)?;
        Ok(block.offset())
    }

    /// Lets the CPU see a buffer; where. The same place for every call.
    pub(crate) fn show_object(&self, handle: BufferHandle) -> Result<u64, Error> {
        let (os, gem) = (self.os(), &self.memory.gem);
        self.with_object(handle, |object| {
            if let Some(shown) = object.shown {
                return Ok(shown.address as u64);
            }
            let render = self.render_at(object.key.place)?;
            let offset = self.offset_in_file(render, object.key.gem)?;
            let length = round_up(object.size, self.page())
                .and_then(|length| usize::try_from(length).ok())
                .filter(|&length| length != 0)
                .ok_or(Error::no_memory(object.size))?;
            let mapping = MapDevice {
                placement: Placement::Anywhere,
                length,
                protection: Protection::READ | Protection::WRITE,
                offset,
            };
            let named = error::Object::Handle(handle.to_raw());
            let address = self.channel.map_render(render.minor, mapping, Status::ERROR, named)?;
            let _ = os.advise(address, length, Advice::DontFork);
            let shown = gem.lock(os).note_shown(object.key, Shown { address, length });
            if shown.address != address {
                // Another thread was first.
                let _ = self.channel.unmap(address, length);
            }
            Ok(shown.address as u64)
        })
    }

    /// Takes one import back; with the last one the buffer is closed, its mappings end,
    /// and its tag is taken away unless it is to stay.
    pub(crate) fn free_object(&self, handle: BufferHandle, keep_tag: bool) -> Result<(), Error> {
        let (os, gem) = (self.os(), &self.memory.gem);
        let _importing = gem.importing.acquire(os);
        let mut books = gem.lock(os);
        let entry = books.find(handle).copied().ok_or_else(|| no_such_handle(handle))?;
        let key = handle.key();
        let last = entry.references <= 1;
        if last {
            books.reserve_aside()?;
            books.end(key);
        }
        drop(books);
        let ended = self.end_object(key, &entry, last, keep_tag);
        let mut books = gem.lock(os);
        match ended {
            Err(error) => {
                books.unend(key);
                Err(error)
            }
            Ok(()) if last => {
                let shown = books.remove(key);
                drop(books);
                self.hide(shown);
                Ok(())
            }
            Ok(()) => {
                books.count_down(key, keep_tag);
                Ok(())
            }
        }
    }

    /// The driver's part of a free. Nobody finds the buffer any more if it is the last.
    fn end_object(&self, key: Key, entry: &Entry, last: bool, keep_tag: bool) -> Result<(), Error> {
        let render = self.render_at(key.place)?;
        if last {
            self.memory.gem.wait_for_users(self.os(), key);
        }
        let taken = match entry.tagged && !keep_tag {
            true => self.take_tag_away(render, key.gem)?,
            false => None,
        };
        let closed = if last { self.close_object(render, key.gem) } else { Ok(()) };
        closed.inspect_err(|_| {
            if let Some(before) = taken {
                let _ = self.put_metadata(render, before);
            }
        })
    }

    /// Takes a mapping for the CPU down; one that cannot be is tried again later.
    fn hide(&self, shown: Option<Shown>) {
        let (os, gem) = (self.os(), &self.memory.gem);
        let Some(shown) = shown else { return };
        if self.channel.unmap(shown.address, shown.length).is_err() {
            gem.lock(os).set_aside(shown);
        }
    }

    /// Closes every buffer and every timeline of a context that nobody uses any more.
    pub(crate) fn close_objects(&self) {
        let (os, gem) = (self.os(), &self.memory.gem);
        loop {
            let mut books = gem.lock(os);
            let Some(key) = books.first() else { break };
            let shown = books.remove(key);
            drop(books);
            if let Ok(render) = self.render_at(key.place) {
                let _ = self.close_object(render, key.gem);
            }
            if let Some(shown) = shown {
                let _ = self.channel.unmap(shown.address, shown.length);
            }
        }
        let aside = gem.lock(os).take_aside();
        for shown in aside {
            let _ = self.channel.unmap(shown.address, shown.length);
        }
        self.end_timelines();
    }
}
