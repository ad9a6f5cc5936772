//! What lies between a CPU's stores to video memory and the memory itself: the CPU's
//! write-combining buffers, and the host data path (HDP) of the GPU.
//!
//! Off unless [`Machine::set_host_data_path`] turns it on. The model then has each piece of
//! video memory three times: as the CPU sees it, as it has reached HDP, and as GPUs see it.
//!
//! | step | effect |
//! |---|---|
//! | `Os::flush_wc` | all that the CPU stored reaches HDP |
//! | a store to HDP_MEM_FLUSH_CNTL, the first word of the GPU's page of remapped registers (`kfd_ioctl.h`) | all that had reached HDP by the newest `flush_wc` before is in the memory |
//! | a GPU's access | it reads the memory; where the CPU's view differs, stores were not flushed: [`Rule::HostWriteNotFlushed`] |
//!
//! Stores to the register are seen when something is done next, so of several between
//! two steps only that there was one. A GPU whose page nobody has mapped takes `flush_wc`
//! and a read-back, which nobody sees, for all of it. What GPUs write the CPU sees at
//! once: read caches are not modelled. Real hardware may show stores earlier: the model
//! is the latest that it may.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, MapDevice};
use spin::Mutex;

use crate::gpu_memory::{MemoryId, Place};
use crate::host_memory::HostMemory;
use crate::machine::Machine;
use crate::process::Pid;
use crate::violation::Rule;

/// The register of the flush and what is there until somebody stores to it: a number
/// that nobody would choose.
const REGISTER_AT: usize = 0;
const UNTOUCHED: [u8; 4] = [0xd0, 0x1e, 0xbe, 0x5c];

/// Bits 63 and 62 of the offset of a mapping of registers; the GPU is in 46 to 61.
const MMIO: u64 = 0;

/// A page of remapped registers that a process has mapped.
#[derive(Debug, Clone, Copy)]
struct Page {
    gpu_id: u32,
    address: usize,
}

/// Video memory behind the CPU's view of it.
#[derive(Debug)]
struct Behind {
    /// What has reached HDP.
    arrived: Vec<u8>,
    /// What GPUs see.
    stored: Vec<u8>,
}

/// The state of the model. Its lock is taken without the machine's, and held across
/// reads of the host's memory.
#[derive(Debug, Default)]
pub(crate) struct HostDataPath {
    pages: Vec<Page>,
    behind: BTreeMap<MemoryId, Behind>,
}

/// A piece of video memory, as the CPU sees it.
#[derive(Debug, Clone, Copy)]
struct Shown {
    memory: MemoryId,
    gpu_id: u32,
    start: usize,
    size: usize,
}

/// The model, if it is on, and the host whose memory it looks at.
type Modelled = (Arc<Mutex<HostDataPath>>, Arc<dyn HostMemory>);

impl Machine {
    /// Whether stores of the CPU to video memory reach GPUs only by their flushes, or at
    /// once. Needs memory of a host, and to be set before anything is mapped.
    pub fn set_host_data_path(&self, modelled: bool) {
        self.lock().host_data_path =
            modelled.then(|| Arc::new(Mutex::new(HostDataPath::default())));
    }

    fn path(&self) -> Option<Modelled> {
        let state = self.lock();
        Some((state.host_data_path.clone()?, state.host_memory.clone()?))
    }

    /// All video memory that the CPU may have seen.
    fn shown(&self) -> Vec<Shown> {
        let state = self.lock();
        let all = state.memory.iter().filter(|(_, memory)| memory.place == Place::Vram);
        let shown = all.filter_map(|(id, memory)| {
            let size = memory.size as usize;
            Some(Shown { memory: id, gpu_id: memory.gpu_id, start: memory.host?, size })
        });
        shown.collect()
    }

    /// A device was mapped: perhaps a page of registers.
    pub(crate) fn registers_mapped(&self, node: DeviceNode, mapping: MapDevice, at: usize) {
        if node != DeviceNode::Kfd || mapping.offset >> 62 != MMIO {
            return;
        }
        let Some((path, host)) = self.path() else { return };
        let gpu_id = (mapping.offset >> 46) as u32 & 0xffff;
        let mut path = path.lock();
        path.pages.retain(|page| page.address != at);
        if host.write(at + REGISTER_AT, &UNTOUCHED).is_ok() {
            path.pages.push(Page { gpu_id, address: at });
        }
    }

    /// A range was unmapped.
    pub(crate) fn registers_unmapped(&self, address: usize, length: usize) {
        let Some((path, _)) = self.path() else { return };
        path.lock().pages.retain(|page| !(address..address + length).contains(&page.address));
    }

    /// The CPU emptied its write-combining buffers.
    pub(crate) fn write_combining_emptied(&self) {
        let Some((path, host)) = self.path() else { return };
        let shown = self.shown();
        let mut path = path.lock();
        path.behind.retain(|id, _| shown.iter().any(|shown| shown.memory == *id));
        path.see_flushes(&host, &shown);
        for piece in &shown {
            let has_register = path.pages.iter().any(|page| page.gpu_id == piece.gpu_id);
            let behind = path.behind(piece);
            if host.read(piece.start, &mut behind.arrived).is_ok() && !has_register {
                behind.stored.copy_from_slice(&behind.arrived);
            }
        }
    }

    /// Reads memory of a device, from `offset` on, as a GPU does.
    pub(crate) fn read_contents(
        &self,
        pid: Pid,
        memory: MemoryId,
        offset: u64,
        into: &mut [u8],
    ) -> Result<(), Errno> {
        let Some((host, start)) = self.contents(memory)? else { return Ok(()) };
        host.read(start + offset as usize, into)?;
        let Some((path, _)) = self.path() else { return Ok(()) };
        let shown = self.shown();
        let Some(piece) = shown.iter().find(|piece| piece.memory == memory) else { return Ok(()) };
        let mut path = path.lock();
        path.see_flushes(&host, &shown);
        let stored = &path.behind(piece).stored;
        let Some(stored) = stored.get(offset as usize..offset as usize + into.len()) else {
            return Ok(());
        };
        if into != stored {
            into.copy_from_slice(stored);
            let detail = format!("GPU {:#x}, {offset:#x} bytes into its memory", piece.gpu_id);
            drop(path);
            self.lock().violation(pid, Rule::HostWriteNotFlushed, detail);
        }
        Ok(())
    }

    /// Writes memory of a device, from `offset` on, as a GPU or the driver does.
    pub(crate) fn write_contents(
        &self,
        memory: MemoryId,
        offset: u64,
        from: &[u8],
    ) -> Result<(), Errno> {
        let Some((host, start)) = self.contents(memory)? else { return Ok(()) };
        host.write(start + offset as usize, from)?;
        let Some((path, _)) = self.path() else { return Ok(()) };
        let shown = self.shown();
        let Some(piece) = shown.iter().find(|piece| piece.memory == memory) else { return Ok(()) };
        let mut path = path.lock();
        path.see_flushes(&host, &shown);
        let Behind { arrived, stored } = path.behind(piece);
        for view in [arrived, stored] {
            if let Some(range) = view.get_mut(offset as usize..offset as usize + from.len()) {
                range.copy_from_slice(from);
            }
        }
        Ok(())
    }
}

impl HostDataPath {
    /// New memory is zero everywhere.
    fn behind(&mut self, piece: &Shown) -> &mut Behind {
        let zeros = || Behind { arrived: vec![0; piece.size], stored: vec![0; piece.size] };
        self.behind.entry(piece.memory).or_insert_with(zeros)
    }

    /// Lets what has reached HDP into memory, where the register was stored to since.
    fn see_flushes(&mut self, host: &Arc<dyn HostMemory>, shown: &[Shown]) {
        for at in 0..self.pages.len() {
            let Some(&Page { gpu_id, address, .. }) = self.pages.get(at) else { continue };
            let mut word = [0; 4];
            if host.read(address + REGISTER_AT, &mut word).is_err() || word == UNTOUCHED {
                continue;
            }
            let _ = host.write(address + REGISTER_AT, &UNTOUCHED);
            for piece in shown.iter().filter(|piece| piece.gpu_id == gpu_id) {
                let Behind { arrived, stored } = self.behind(piece);
                stored.copy_from_slice(arrived);
            }
        }
    }
}
