//! Accesses of GPUs to memory, those of engines and those of tests: all of them go
//! through [`GpuPort::read`] and [`GpuPort::write`].

use alloc::sync::Arc;

use crate::host_memory::HostMemory;
use crate::kfd::{self, Fault, MemoryFault, ObjectId, Target};
use crate::machine::Machine;
use crate::process::Pid;

const PAGE: u64 = 4096;

/// The address space that one GPU has of one process object.
#[derive(Debug, Clone)]
pub(crate) struct GpuPort {
    machine: Machine,
    object: ObjectId,
    gpu_id: u32,
}

/// An access that failed.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct BadAccess {
    /// Where.
    pub address: u64,
    pub fault: Fault,
}

impl GpuPort {
    pub(crate) fn new(machine: Machine, object: ObjectId, gpu_id: u32) -> GpuPort {
        GpuPort { machine, object, gpu_id }
    }

    /// Reads. Without memory of the host all is zero, and so are pages of the driver.
    pub(crate) fn read(&self, address: u64, into: &mut [u8]) -> Result<(), BadAccess> {
        into.fill(0);
        let (mut at, mut rest) = (address, into);
        while !rest.is_empty() {
            let bad = |fault| BadAccess { address: at, fault };
            let place = self.place(at, rest.len(), false).map_err(bad)?;
            let (piece, after) = rest.split_at_mut(place.length);
            let done = match place.target {
                Target::Driver => Ok(()),
                Target::Process(from) => {
                    place.host.map_or(Ok(()), |host| host.read(from as usize, piece))
                }
                Target::Memory(memory, offset) => {
                    self.machine.read_contents(place.lead, memory, offset, piece)
                }
            };
            done.map_err(|_| bad(Fault::NoMemory))?;
            (at, rest) = (at + place.length as u64, after);
        }
        Ok(())
    }

    /// Writes.
    pub(crate) fn write(&self, address: u64, from: &[u8]) -> Result<(), BadAccess> {
        let (mut at, mut rest) = (address, from);
        while !rest.is_empty() {
            let bad = |fault| BadAccess { address: at, fault };
            let place = self.place(at, rest.len(), true).map_err(bad)?;
            let (piece, after) = rest.split_at(place.length);
            let done = match place.target {
                Target::Driver => Ok(()),
                Target::Process(to) => {
                    place.host.map_or(Ok(()), |host| host.write(to as usize, piece))
                }
                Target::Memory(memory, offset) => {
                    self.machine.write_contents(memory, offset, piece)
                }
            };
            done.map_err(|_| bad(Fault::NoMemory))?;
            (at, rest) = (at + place.length as u64, after);
        }
        Ok(())
    }

    /// What a failed access does: MEMORY events, and the end of the object's queues
    /// on this GPU.
    pub(crate) fn report(&self, bad: BadAccess) {
        let read_only = bad.fault == Fault::ReadOnly;
        let reported = MemoryFault { not_present: !read_only, read_only, ..Default::default() };
        let mut state = self.machine.lock();
        kfd::fault_memory(&mut state, self.object, self.gpu_id, bad.address, reported);
    }

    /// Where an access goes, and how much of it is in one piece.
    fn place(&self, address: u64, most: usize, write: bool) -> Result<Place, Fault> {
        let mut state = self.machine.lock();
        let target = kfd::target(&mut state, self.object, self.gpu_id, address, write)?;
        let object = state.objects.get(&self.object).ok_or(Fault::NoVm)?;
        let file = object.gpu(self.gpu_id).ok().and_then(|record| record.file);
        let mapping = file.and_then(|file| state.vms.get(&file)?.at(address));
        // An SVM range may change from page to page.
        let end = match mapping {
            Some((start, range)) => start + range.length,
            None => (address / PAGE + 1) * PAGE,
        };
        let length = usize::try_from(end - address).unwrap_or(most).min(most);
        Ok(Place { target, length, lead: object.lead, host: state.host_memory.clone() })
    }
}

/// Where an access goes.
struct Place {
    target: Target,
    /// Bytes in one piece.
    length: usize,
    /// Whose object it is.
    lead: Pid,
    host: Option<Arc<dyn HostMemory>>,
}
