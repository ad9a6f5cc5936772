//! What a memory call works with.

use super::books::Memory;
use super::gpu_set::GpuSet;
use crate::context::{Channel, Context, Machine};
use crate::error::{Error, Object, Status};
use crate::seam::{Array, Os, Platform};
use crate::topology::Aperture;
use crate::uapi::kfd::{FreeMemoryOfGpu, MapMemoryToGpu, UnmapMemoryFromGpu};

use zerocopy::IntoBytes;

/// A context during one call.
pub(crate) struct Access<'a, P: Platform> {
    pub(super) channel: Channel<'a, P>,
    pub(super) context: &'a Context<P>,
    pub(super) memory: &'a Memory,
}

/// A GPU that an allocation belongs to.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Owner {
    pub(super) place: u8,
    pub(super) gpu_id: u32,
    pub(super) render_minor: u32,
    /// Who can map its memory.
    pub(super) peers: GpuSet,
    /// The least alignment of its addresses, 0 for a page.
    pub(super) alignment: u64,
    /// Its own aperture, if it does not share the process's addresses.
    pub(super) gpuvm: Option<Aperture>,
}

/// What an allocation for one node needs to know of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    /// The GPU of the node; none for a CPU node.
    pub(super) owner: Option<Owner>,
    /// The first GPU in use.
    pub(super) first: Option<Owner>,
    pub(super) all: GpuSet,
    pub(super) discrete: bool,
    pub(super) svm: Option<Aperture>,
    /// The CPU node whose memory is closest; none where there is one only.
    pub(super) numa: Option<u32>,
}

fn owner(machine: &Machine, place: u8) -> Option<Owner> {
    let gpu = machine.gpus().get(usize::from(place))?;
    let node = machine.snapshot().node(gpu.node?)?;
    let gpuvm = machine.apertures_of(node).gpuvm;
    // Tonga and Carrizo look their pages up in units of 32 KiB.
    let coarse = matches!(node.device_id, 0x6920..=0x6939 | 0x9870..=0x9877);
    Some(Owner {
        place,
        gpu_id: gpu.gpu_id,
        render_minor: node.drm_render_minor,
        peers: gpu.peers,
        alignment: if coarse { 0x8000 } else { 0 },
        gpuvm,
    })
}

/// The CPU node to bind memory to: the node itself, or the one that a GPU's
/// cheapest link goes to.
fn numa(machine: &Machine, node_id: u32) -> Option<u32> {
    let nodes = machine.snapshot().nodes();
    let is_cpu = |node: &&crate::topology::Node| node.cpu_cores_count != 0 && !node.is_gpu();
    nodes.iter().filter(is_cpu).nth(1)?;
    let node = machine.snapshot().node(node_id)?;
    if !node.is_gpu() {
        return Some(node.sysfs_node);
    }
    let to_cpus = node.links.iter().filter_map(|link| {
        let to = machine.snapshot().node(link.node_to)?;
        (!to.is_gpu()).then_some((link.weight, to.sysfs_node))
    });
    to_cpus.min().map(|(_, node)| node)
}

impl Scene {
    /// Of one node of a machine.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub(crate) fn of(machine: &Machine, node: u32) -> Result<Scene, Error> {
        let place = machine.place(node)?;
        let all = machine.gpus_in_use();
        Ok(Scene {
            owner: place.and_then(|place| owner(machine, place)),
            first: all.places().next().and_then(|place| owner(machine, place)),
            all,
            discrete: machine.is_discrete(),
            svm: machine.svm(),
            numa: numa(machine, node),
        })
    }
}

impl<'a, P: Platform> Access<'a, P> {
    pub(crate) fn new(channel: Channel<'a, P>, context: &'a Context<P>) -> Access<'a, P> {
        Access { channel, context, memory: context.memory() }
    }

    pub(super) fn os(&self) -> &'a P::Os {
        self.channel.os()
    }

    pub(super) fn page(&self) -> u64 {
        self.os().page_size() as u64
    }

    pub(super) fn machine<R>(
        &self,
        look: impl FnOnce(&Machine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.context.machine().look(self.channel, look)
    }

    /// What an allocation for this node needs to know.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub(super) fn scene(&self, node: u32) -> Result<Scene, Error> {
        self.machine(|machine| machine.scene(node))
    }

    /// Whether memory of the caller is registered by attributes.
    pub(super) fn svm_api(&self, machine: &Machine) -> bool {
        let options = self.context.options();
        options.svm_api
            && options.register_by_attributes
            && !self.context.is_secondary()
            && machine.has_svm_api()
    }

    /// Maps buffers on some GPUs; all of them or none.
    pub(super) fn map_buffers(&self, handles: &[u64], gpus: GpuSet) -> Result<(), MapFailure> {
        let mut room = None;
        let devices = self.memory.gpu_ids_of(gpus, &mut room);
        for (number, &handle) in handles.iter().enumerate() {
            let mut block = MapMemoryToGpu {
                handle,
                n_devices: devices.len() as u32,
                ..MapMemoryToGpu::default()
            };
            let arrays = &mut [Array::In(devices.as_bytes())];
            if let Err(error) =
                self.channel.execute(&mut block, arrays, Status::ERROR, Object::Handle(handle))
            {
                let some = gpus.first(block.n_success.min(block.n_devices) as usize);
                let mut left = self.unmap_one(handle, some).err().map_or(GpuSet::NONE, |_| some);
                for &handle in handles.get(..number).unwrap_or_default() {
                    if self.unmap_one(handle, gpus).is_err() {
                        left = gpus;
                    }
                }
                return Err(MapFailure { error, left });
            }
        }
        Ok(())
    }

    /// Unmaps buffers from some GPUs. The second result tells what is mapped still.
    pub(super) fn unmap_buffers(&self, handles: &[u64], gpus: GpuSet) -> Result<(), MapFailure> {
        for (number, &handle) in handles.iter().enumerate() {
            if let Err((error, left)) = self.unmap_one(handle, gpus) {
                // The first buffer decides; of the others nobody keeps a list.
                let left = if number == 0 { left } else { gpus };
                return Err(MapFailure { error, left });
            }
        }
        Ok(())
    }

    fn unmap_one(&self, handle: u64, gpus: GpuSet) -> Result<(), (Error, GpuSet)> {
        if gpus.is_empty() {
            return Ok(());
        }
        let mut room = None;
        let devices = self.memory.gpu_ids_of(gpus, &mut room);
        let mut block = UnmapMemoryFromGpu {
            handle,
            n_devices: devices.len() as u32,
            ..UnmapMemoryFromGpu::default()
        };
        let arrays = &mut [Array::In(devices.as_bytes())];
        self.channel
            .execute(&mut block, arrays, Status::ERROR, Object::Handle(handle))
            .map(drop)
            .map_err(|error| (error, gpus.without(gpus.first(block.n_success as usize))))
    }

    /// Gives a buffer up.
    pub(super) fn free_buffer(&self, handle: u64) -> Result<(), Error> {
        let mut block = FreeMemoryOfGpu { handle };
        self.channel.execute(&mut block, &mut [], Status::ERROR, Object::Handle(handle)).map(drop)
    }
}

/// A change of mappings that the driver refused.
pub(super) struct MapFailure {
    pub(super) error: Error,
    /// The GPUs of the change on which buffers are mapped all the same.
    pub(super) left: GpuSet,
}
