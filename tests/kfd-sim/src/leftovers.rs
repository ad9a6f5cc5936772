//! What a machine's processes hold: descriptors, process objects, mappings.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::address_space::Shown;
use crate::descriptor::File;
use crate::drm::Syncobjs;
use crate::machine::State;
use crate::process::Pid;

/// What is held at one moment, without addresses, so that two moments compare.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Leftovers {
    /// By process.
    pub processes: BTreeMap<Pid, Held>,
    /// The process objects of the compute driver, with what each of them holds.
    pub objects: Vec<String>,
    /// The buffers of all objects with the GPUs that map them.
    pub buffers: Vec<String>,
    /// The queues of all objects.
    pub queues: Vec<String>,
    /// The SVM ranges of all objects, also those that a GPU's access made.
    pub ranges: Vec<String>,
    /// The GEM handles of all render files, with what is mapped by them.
    pub gem_handles: Vec<String>,
    /// Sync objects of all render files.
    pub syncobjs: usize,
    /// Bytes of memory that nothing holds and CPU mappings keep.
    pub orphaned_bytes: u64,
    /// Open file descriptions.
    pub files: usize,
}

/// What one process holds.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Held {
    /// Descriptor numbers with what they refer to.
    pub descriptors: BTreeMap<u32, String>,
    /// Device mappings, as node and bytes.
    pub device_mappings: Vec<(String, usize)>,
    /// Bytes of anonymous memory mapped through the platform.
    pub anonymous_bytes: usize,
}

impl Leftovers {
    pub(crate) fn of(state: &State) -> Leftovers {
        let mut processes = BTreeMap::new();
        for (pid, process) in &state.processes {
            let mut held = Held::default();
            for (number, descriptor) in process.descriptors.iter() {
                let file = state.files.get(&descriptor.file).copied();
                let text = match (file, file.and_then(File::node)) {
                    (_, Some(node)) => node.to_string(),
                    (Some(File::DmaBuf { .. }), _) => "dma-buf".into(),
                    (Some(File::Memory { .. }), _) => "memory".into(),
                    _ => "foreign".into(),
                };
                held.descriptors.insert(number, text);
            }
            for (_, mapped) in
                state.spaces.get(&process.space).into_iter().flat_map(|space| space.iter())
            {
                match mapped.shown {
                    Shown::Anonymous => held.anonymous_bytes += mapped.length,
                    Shown::Device { node, .. } => {
                        held.device_mappings.push((node.to_string(), mapped.length));
                    }
                    Shown::DmaBuf { .. } => {
                        held.device_mappings.push(("dma-buf".into(), mapped.length));
                    }
                    Shown::File { .. } => {
                        held.device_mappings.push(("memory".into(), mapped.length));
                    }
                }
            }
            held.device_mappings.sort();
            processes.insert(*pid, held);
        }
        let mut objects: Vec<String> = state
            .objects
            .iter()
            .map(|(id, object)| {
                let carriers = state
                    .files
                    .values()
                    .filter(|file| matches!(file, File::Kfd { object } if object == id))
                    .count();
                format!("{object}, {carriers} open files")
            })
            .collect();
        objects.sort();
        let mut buffers: Vec<String> = state
            .objects
            .values()
            .flat_map(|object| {
                object.records.iter().flat_map(move |record| {
                    let of = format!("process {}, GPU {:#x}", object.lead, record.gpu_id);
                    record.buffers.values().map(move |buffer| format!("{of}: {buffer}"))
                })
            })
            .collect();
        buffers.sort();
        let mut queues: Vec<String> = state
            .objects
            .values()
            .flat_map(|object| {
                object.queues.values().map(move |queue| {
                    format!("process {}, GPU {:#x}: {queue}", object.lead, queue.gpu_id)
                })
            })
            .collect();
        queues.sort();
        let mut ranges: Vec<String> = state
            .objects
            .values()
            .flat_map(|object| {
                object.svm.iter().map(move |(_, range)| {
                    let made = if range.registered { "registered" } else { "made by an access" };
                    let gpus = range.attributes.accessible().count_ones();
                    let length = range.length;
                    let of = format!("process {}", object.lead);
                    format!("{of}: {length:#x} bytes of SVM, {made}, open to {gpus} GPUs")
                })
            })
            .collect();
        ranges.sort();
        let mut gem_handles: Vec<String> =
            state.gem.iter().flat_map(|(file, handles)| handles.describe(state, *file)).collect();
        gem_handles.sort();
        Leftovers {
            processes,
            objects,
            buffers,
            queues,
            ranges,
            gem_handles,
            syncobjs: state.syncobjs.values().map(Syncobjs::len).sum(),
            orphaned_bytes: state.memory.orphaned_bytes(),
            files: state.files.len(),
        }
    }
}

impl fmt::Display for Leftovers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (pid, held) in &self.processes {
            writeln!(f, "process {pid}: {} bytes anonymous", held.anonymous_bytes)?;
            for (number, node) in &held.descriptors {
                writeln!(f, "  {number}: {node}")?;
            }
            for (node, length) in &held.device_mappings {
                writeln!(f, "  {length:#x} bytes of {node}")?;
            }
        }
        let lines = [&self.objects, &self.buffers, &self.queues, &self.ranges, &self.gem_handles];
        for line in lines.into_iter().flatten() {
            writeln!(f, "{line}")?;
        }
        if self.syncobjs > 0 {
            writeln!(f, "{} sync objects", self.syncobjs)?;
        }
        if self.orphaned_bytes > 0 {
            writeln!(f, "{:#x} bytes without a buffer", self.orphaned_bytes)?;
        }
        Ok(())
    }
}
