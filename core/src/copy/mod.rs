//! Copies between memory of the process and memory of GPUs.
//!
//! # Paths
//! A copy goes by one of two paths ([`CopyPath`]). The CPU copies where it reaches both
//! ranges; elsewhere, and where the caller wishes, an engine of a GPU does. Both
//! ranges are looked up in the context's books first (`memory::reach`): each lies within
//! one object, or within memory of the process that no object and no reservation of the
//! library has a part of. What a range is, and who reaches it, is an `Extent`; the
//! paths know nothing else of it.
//!
//! # Order
//! The CPU sees video memory through the GPU's BAR: its stores are combined on the way
//! (the driver maps it so, `ttm_io_prot` of TTM), and the host data path (HDP) of the
//! GPU may hold them back, and may answer loads from a cache of its own. Neither is seen
//! by the fences of a programming language. So a copy by the CPU
//! - out of video memory first has HDP flushed, which drops its read cache with it
//!   (FLUSH_INVALIDATE_CACHE, which the driver sets from gfx9 on, `hdp_v4_0.c`): what GPUs
//!   wrote before is read;
//! - into video memory ends with the CPU's buffers emptied, HDP flushed and read back:
//!   when the call returns, what is started on a GPU sees the copy.
//!
//! HDP is flushed by a store to its register in the page that the driver remaps for this
//! (`process::mmio`, HDP_MEM_FLUSH_CNTL of `kfd_ioctl.h`), and read back from there, which
//! orders the two on the bus. A GPU without the page is read back through the BAR.
//!
//! # Whose duty
//! The memory stays allocated until the call returns, as with `memmove`: a free of it
//! meanwhile is not waited for.
//!
//! # Safety
//! This is one of the few modules of `core` with `unsafe` code: it follows addresses of
//! the caller, so [`Guard::copy_memory`] is unsafe, and its caller answers for memory
//! of the process. What is in the books is the CPU's as far as they say so. The
//! accesses themselves are in `bytes`.
#![allow(unsafe_code)]

mod bytes;
mod cpu;
mod engine;

pub(crate) use engine::Copiers;

use crate::error::{Error, Object, Operation, Status};
use crate::memory::Extent;
use crate::process::Guard;
use crate::seam::Platform;

/// Who copies.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CopyPath {
    /// The calling thread.
    Cpu,
    /// An engine of a GPU.
    Engine,
}

/// What is to be copied.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyRequest {
    /// Where to, by the address of the CPU or of GPUs.
    pub destination: u64,
    /// Where from, likewise.
    pub source: u64,
    /// Bytes. The ranges may overlap.
    pub size: u64,
    /// Who is to copy; none for whoever can, the CPU first.
    pub path: Option<CopyPath>,
}

/// Memory that the wished path does not reach.
#[cold]
fn not_reached(address: u64) -> Error {
    Error::library(Status::NOT_SUPPORTED, Operation::Copy, Object::Address(address))
}

impl<P: Platform> Guard<'_, P> {
    /// Copies bytes, and returns who did it. When it returns the bytes are there for the
    /// CPU and for what is started on a GPU afterwards.
    ///
    /// # Errors
    /// INVALID_PARAMETER for a range that ends beyond the addresses, that lies partly
    /// in an object or in addresses that the library keeps free, that is addresses without
    /// memory, or for memory that may not be written; NOT_SUPPORTED for memory that the
    /// path does not reach. Nothing is copied then.
    ///
    /// # Safety
    /// Ranges outside of the memory that the library allocated or took in are the
    /// process's, readable or writable; all memory stays where it is until the call
    /// returns; nobody changes the source meanwhile or uses the destination.
    pub unsafe fn copy_memory(&self, request: &CopyRequest) -> Result<CopyPath, Error> {
        let CopyRequest { destination, source, size, path } = *request;
        if size == 0 {
            return Ok(path.unwrap_or(CopyPath::Cpu));
        }
        let access = self.memory();
        let to = access.extent(destination, size).map_err(|error| at_argument(error, 1))?;
        let from = access.extent(source, size).map_err(|error| at_argument(error, 2))?;
        if to.read_only {
            return Err(Error::argument(1));
        }
        match (path, to.cpu, from.cpu) {
            (None | Some(CopyPath::Cpu), Some(to_cpu), Some(from_cpu)) => {
                // SAFETY: the books say that the CPU reaches both ranges, or the caller does.
                unsafe { cpu::copy(&access, (&to, to_cpu), (&from, from_cpu))? };
                Ok(CopyPath::Cpu)
            }
            (Some(CopyPath::Cpu), None, _) => Err(not_reached(destination)),
            (Some(CopyPath::Cpu), ..) => Err(not_reached(source)),
            _ => {
                engine::copy(self, &to, &from)?;
                Ok(CopyPath::Engine)
            }
        }
    }
}

/// The failure of a range, with the argument where the range itself is wrong.
#[cold]
fn at_argument(error: Error, position: u32) -> Error {
    match error.object {
        Object::Argument(_) => Error { object: Object::Argument(position), ..error },
        _ => error,
    }
}

/// The range of an extent that only GPUs reach, or none.
fn out_of_reach(to: &Extent, from: &Extent) -> u64 {
    if to.cpu.is_none() { to.address } else { from.address }
}
