//! Looking at GPU address spaces from a test, and accesses by GPUs.
//!
//! [`Process::gpu`] is the address space that a GPU has of the process's primary
//! object, [`Process::gpu_in_context`] that of a secondary context. Of these:
//!
//! | operation | answer |
//! |---|---|
//! | [`GpuView::sees`] | the buffer or SVM range that the GPU sees at an address |
//! | [`GpuView::mappings`] | all of them, by address |
//! | [`GpuView::access`] | what an access at an address does, with its effects |
//! | [`GpuView::read`], [`GpuView::write`] | the same of bytes, with their contents |
//!
//! Of the process: [`Process::svm_ranges`], [`Process::evictions`],
//! [`Process::settle`], and [`Process::gpu_access`] as the short form of an access.

use alloc::vec::Vec;

use crate::gpu_port::{BadAccess, GpuPort};
use crate::gpu_vm::{GpuRange, Shows};
use crate::kfd::{self, Fault, KfdObject, Kind, ObjectId};
use crate::machine::State;
use crate::process::Process;
use crate::svm_ranges::SvmRange;

/// A range of a GPU's addresses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Seen {
    /// Where it begins.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// What is there.
    pub what: Sight,
}

/// What a GPU sees.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub enum Sight {
    /// A page of the driver: trap handler, sequence numbers, commands.
    Driver,
    /// A buffer, by its handle.
    Buffer(u64),
    /// What the render file has a GEM handle of.
    Handle,
    /// Memory of the process in an SVM range. With XNACK on it is there as soon
    /// as the GPU accesses it.
    Svm,
}

/// An SVM range with its attributes.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SvmView {
    /// Where it begins.
    pub start: u64,
    /// Bytes.
    pub length: u64,
    /// Made or changed by SET_ATTR; otherwise a GPU's access made it.
    pub registered: bool,
    /// In the page tables of the GPUs without an access of theirs.
    pub mapped: bool,
    /// 0, a gpu_id, or all ones.
    pub preferred_location: u32,
    /// The same for the last prefetch.
    pub prefetch_location: u32,
    /// KFD_IOCTL_SVM_FLAG_*.
    pub flags: u32,
    /// Base-2 logarithm of pages.
    pub granularity: u8,
    /// The GPUs with ACCESS.
    pub access: Vec<u32>,
    /// The GPUs with ACCESS_IN_PLACE.
    pub in_place: Vec<u32>,
}

/// The address space that one GPU has of one process object.
#[derive(Debug, Clone)]
pub struct GpuView {
    process: Process,
    /// The secondary context's id.
    context: Option<u16>,
    gpu_id: u32,
}

impl Process {
    /// The address space of a GPU, of the primary object.
    #[must_use]
    pub fn gpu(&self, gpu_id: u32) -> GpuView {
        GpuView { process: self.clone(), context: None, gpu_id }
    }

    /// The address space of a GPU, of the secondary context with this id.
    #[must_use]
    pub fn gpu_in_context(&self, context: u16, gpu_id: u32) -> GpuView {
        GpuView { process: self.clone(), context: Some(context), gpu_id }
    }

    /// See [`GpuView::access`]; through the primary object.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn gpu_access(&self, gpu_id: u32, address: u64, write: bool) -> Result<(), Fault> {
        self.gpu(gpu_id).access(address, write)
    }

    /// The SVM ranges by address.
    #[must_use]
    pub fn svm_ranges(&self) -> Vec<SvmView> {
        let state = self.machine().lock();
        let Some(object) = find(&state, self, None).and_then(|id| state.objects.get(&id)) else {
            return Vec::new();
        };
        object.svm.iter().map(|(start, range)| view(object, start, range)).collect()
    }

    /// How many buffers and SVM ranges were taken from the GPUs because memory of
    /// the process changed below them: each time the kernel stops all queues of
    /// the process. What was taken counts again after it was fetched again, by MAP
    /// or [`Process::settle`].
    ///
    /// Counted are user pages that a GPU has mapped and mapped SVM ranges, with XNACK
    /// on only those that are to be mapped at all times: under munmap, a mapping over them, mprotect that changes
    /// something, madvise that drops contents, and any of these or another change
    /// of advice next to them that splits a huge page they are in. An SVM range
    /// that is itself unmapped goes without a stop.
    #[must_use]
    pub fn evictions(&self) -> u64 {
        let state = self.machine().lock();
        let id = find(&state, self, None);
        id.and_then(|id| state.objects.get(&id)).map_or(0, |object| object.evictions)
    }

    /// Lets the restore work run: pages that changed are fetched again, as the
    /// kernel does about a millisecond later.
    pub fn settle(&self) {
        let mut state = self.machine().lock();
        if let Some(id) = find(&state, self, None) {
            kfd::restore(&mut state, id);
        }
    }
}

impl GpuView {
    /// Accesses an address as the GPU would, with the effects that has: changed
    /// pages are fetched again, and with XNACK on an access to memory of the
    /// process that nobody registered makes an SVM range there, even if the
    /// access itself is then refused.
    ///
    /// # Errors
    /// See [`Fault`].
    pub fn access(&self, address: u64, write: bool) -> Result<(), Fault> {
        let port = self.port()?;
        let answer = {
            let mut state = self.process.machine().lock();
            let id = find(&state, &self.process, self.context).ok_or(Fault::NoVm)?;
            kfd::access(&mut state, id, self.gpu_id, address, write)
        };
        answer.inspect_err(|&fault| port.report(BadAccess { address, fault }))
    }

    fn port(&self) -> Result<GpuPort, Fault> {
        let machine = self.process.machine();
        let id = find(&machine.lock(), &self.process, self.context).ok_or(Fault::NoVm)?;
        Ok(GpuPort::new(machine.clone(), id, self.gpu_id))
    }

    /// Reads as the GPU would; see [`GpuView::access`]. Without memory of the host
    /// ([`Machine::set_host_memory`](crate::Machine::set_host_memory)) all is zero, and so
    /// are pages of the driver.
    ///
    /// # Errors
    /// See [`Fault`]. What was read before the fault is in `into`.
    pub fn read(&self, address: u64, into: &mut [u8]) -> Result<(), Fault> {
        let port = self.port()?;
        port.read(address, into).inspect_err(|bad| port.report(*bad)).map_err(|bad| bad.fault)
    }

    /// Writes as the GPU would, as [`GpuView::read`].
    ///
    /// # Errors
    /// See [`Fault`]. What was written before the fault stays.
    pub fn write(&self, address: u64, from: &[u8]) -> Result<(), Fault> {
        let port = self.port()?;
        port.write(address, from).inspect_err(|bad| port.report(*bad)).map_err(|bad| bad.fault)
    }

    /// What the GPU sees at an address.
    #[must_use]
    pub fn sees(&self, address: u64) -> Option<Seen> {
        let state = self.process.machine().lock();
        let object = state.objects.get(&find(&state, &self.process, self.context)?)?;
        let file = object.gpu(self.gpu_id).ok()?.file?;
        if let Some((start, range)) = state.vms.get(&file)?.at(address) {
            return Some(seen(start, range));
        }
        let (start, range) = object.svm.at(address)?;
        let bit = object.svm_bit(self.gpu_id)?;
        (range.attributes.accessible() & bit != 0).then_some(of_range(start, range))
    }

    /// Everything that the GPU has mapped or may access, by address.
    #[must_use]
    pub fn mappings(&self) -> Vec<Seen> {
        let state = self.process.machine().lock();
        let id = find(&state, &self.process, self.context);
        let Some(object) = id.and_then(|id| state.objects.get(&id)) else { return Vec::new() };
        let file = object.gpu(self.gpu_id).ok().and_then(|record| record.file);
        let Some(vm) = file.and_then(|file| state.vms.get(&file)) else { return Vec::new() };
        let bit = object.svm_bit(self.gpu_id).unwrap_or(0);
        let ranges =
            object.svm.iter().filter(|(_, range)| range.attributes.accessible() & bit != 0);
        let mut all: Vec<Seen> = vm.iter().map(|(start, range)| seen(start, range)).collect();
        all.extend(ranges.map(|(start, range)| of_range(start, range)));
        all.sort_by_key(|seen| seen.start);
        all
    }
}

pub(crate) fn find(state: &State, process: &Process, context: Option<u16>) -> Option<ObjectId> {
    let space = state.processes.get(&process.pid())?.space;
    let Some(context) = context else { return state.spaces.get(&space)?.primary };
    let kind = Kind::Secondary(context);
    let mut objects = state.objects.iter();
    objects.find(|(_, object)| object.space == space && object.kind == kind).map(|(id, _)| *id)
}

fn seen(start: u64, range: &GpuRange) -> Seen {
    let what = match range.shows {
        Shows::Driver => Sight::Driver,
        Shows::Buffer { handle, .. } => Sight::Buffer(handle),
        Shows::Handle { .. } => Sight::Handle,
    };
    Seen { start, length: range.length, what }
}

fn of_range(start: u64, range: &SvmRange) -> Seen {
    Seen { start, length: range.length, what: Sight::Svm }
}

fn view(object: &KfdObject, start: u64, range: &SvmRange) -> SvmView {
    let gpus = |set: u64| {
        let ids = object.records.iter().map(|record| record.gpu_id);
        ids.filter(|id| object.svm_bit(*id).is_some_and(|bit| set & bit != 0)).collect()
    };
    let attributes = &range.attributes;
    SvmView {
        start,
        length: range.length,
        registered: range.registered,
        mapped: range.mapped,
        preferred_location: attributes.preferred,
        prefetch_location: attributes.prefetched,
        flags: attributes.flags,
        granularity: attributes.granularity,
        access: gpus(attributes.access),
        in_place: gpus(attributes.in_place),
    }
}
