//! What a memory call works with.

use super::books::Memory;
use super::gpu_set::GpuSet;
use super::object::Handles;
use crate::context::{Channel, Context, Machine, no_such_node};
use crate::error::{Error, Object, Status};
use crate::log::Logger;
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
    /// It looks its pages up in units of 32 KiB.
    coarse: bool,
    /// It does not share the process's addresses, and has an aperture of its own.
    pub(super) apart: bool,
    pub(super) gpu_id: u32,
    pub(super) render_minor: u32,
    /// Who can map its memory.
    pub(super) peers: GpuSet,
}

impl Owner {
    /// The least alignment of its addresses, 0 for a page.
    #[inline]
    pub(super) fn alignment(&self) -> u64 {
        if self.coarse { 0x8000 } else { 0 }
    }
}

/// What an allocation for one node needs to know of the machine.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Scene {
    /// Whether the node is a GPU.
    pub(super) is_gpu: bool,
    /// The GPU of the node; for a CPU node the first GPU in use.
    pub(super) anchor: Option<Owner>,
    pub(super) all: GpuSet,
    pub(super) discrete: bool,
    /// The CPU node whose memory is closest; none where there is one only.
    pub(super) numa: Option<u32>,
}

fn owner(machine: &Machine, place: u8) -> Option<Owner> {
    let gpu = machine.gpus().get(usize::from(place))?;
    let node = machine.snapshot().node(gpu.node?)?;
    // Tonga and Carrizo.
    let coarse = matches!(node.device_id, 0x6920..=0x6939 | 0x9870..=0x9877);
    Some(Owner {
        place,
        gpu_id: gpu.gpu_id,
        render_minor: node.drm_render_minor,
        peers: gpu.peers,
        coarse,
        apart: machine.apertures_of(node).gpuvm.is_some(),
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
    /// The GPU of the node; none for a CPU node.
    #[inline]
    pub(super) fn gpu(&self) -> Option<&Owner> {
        self.anchor.as_ref().filter(|_| self.is_gpu)
    }

    /// Of one node of a machine.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub(crate) fn of(machine: &Machine, node: u32) -> Result<Scene, Error> {
        let place = machine.place(node)?;
        let all = machine.gpus_in_use();
        let anchor = place.or_else(|| all.places().next());
        Ok(Scene {
            is_gpu: place.is_some(),
            anchor: anchor.and_then(|place| owner(machine, place)),
            all,
            discrete: machine.is_discrete(),
            numa: numa(machine, node),
        })
    }
}

impl<P: Platform> Clone for Access<'_, P> {
    fn clone(&self) -> Self {
        *self
    }
}

impl<P: Platform> Copy for Access<'_, P> {}

impl<'a, P: Platform> Access<'a, P> {
    #[inline]
    pub(crate) fn new(channel: Channel<'a, P>, context: &'a Context<P>) -> Access<'a, P> {
        Access { channel, context, memory: context.memory() }
    }

    #[inline]
    pub(crate) fn os(&self) -> &'a P::Os {
        self.channel.os()
    }

    /// Where messages for people go.
    pub(crate) fn logger(&self) -> Logger {
        self.context.options().logger
    }

    #[inline]
    pub(super) fn page(&self) -> u64 {
        self.os().page_size() as u64
    }

    #[inline]
    pub(super) fn machine<R>(
        &self,
        look: impl FnOnce(&Machine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        self.context.machine().look(self.channel, look)
    }

    /// The addresses that all GPUs have in common with the process.
    pub(super) fn common_range(&self) -> Result<Option<Aperture>, Error> {
        self.machine(|machine| Ok(machine.svm()))
    }

    /// What an allocation for this node needs to know.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub(super) fn scene(&self, node: u32) -> Result<Scene, Error> {
        self.scene_if_any(node).ok_or_else(|| no_such_node(node))
    }

    /// The same; none for a node that is not there.
    #[inline(always)]
    pub(super) fn scene_if_any(&self, node: u32) -> Option<Scene> {
        self.context.machine().scene(self.channel, node)
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
    #[inline(always)]
    pub(super) fn map_buffers(&self, handles: &Handles, gpus: GpuSet) -> Result<(), MapFailure> {
        match handles {
            Handles::One(handle) => self.map_one(*handle, gpus),
            handles => self.map_several(handles.as_slice(), gpus),
        }
    }

    #[inline(always)]
    fn map_one(&self, handle: u64, gpus: GpuSet) -> Result<(), MapFailure> {
        let mut room = None;
        let devices = self.memory.gpu_ids_of(gpus, &mut room);
        let mut block =
            MapMemoryToGpu { handle, n_devices: devices.len() as u32, ..MapMemoryToGpu::default() };
        let arrays = &mut [Array::In(devices.as_bytes())];
        match self.channel.execute(&mut block, arrays, Status::ERROR, Object::Handle(handle)) {
            Ok(_) => Ok(()),
            Err(error) => {
                let reached = gpus.first(block.n_success.min(block.n_devices) as usize);
                Err(self.map_back(handle, reached, error))
            }
        }
    }

    /// Takes back what was mapped of a buffer before the driver refused the rest.
    #[cold]
    fn map_back(&self, handle: u64, reached: GpuSet, error: Error) -> MapFailure {
        let back = self.unmap_one(handle, reached).is_ok();
        MapFailure { error, left: if back { GpuSet::NONE } else { reached } }
    }

    #[inline(never)]
    fn map_several(&self, handles: &[u64], gpus: GpuSet) -> Result<(), MapFailure> {
        for (number, &handle) in handles.iter().enumerate() {
            if let Err(MapFailure { error, mut left }) = self.map_one(handle, gpus) {
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

    /// Unmaps buffers from some GPUs; of several buffers all or none.
    #[inline(always)]
    pub(super) fn unmap_buffers(&self, handles: &Handles, gpus: GpuSet) -> Result<(), MapFailure> {
        match handles {
            Handles::One(handle) => self.unmap_one(*handle, gpus),
            handles => self.unmap_several(handles.as_slice(), gpus),
        }
    }

    #[inline(never)]
    fn unmap_several(&self, handles: &[u64], gpus: GpuSet) -> Result<(), MapFailure> {
        for (number, &handle) in handles.iter().enumerate() {
            if let Err(MapFailure { error, .. }) = self.unmap_one(handle, gpus) {
                // The books have one set of GPUs for all buffers, and the driver refuses to
                // unmap what is not mapped: those that are gone come back.
                for &gone in handles.get(..=number).unwrap_or_default() {
                    let _ = self.map_one(gone, gpus);
                }
                return Err(MapFailure { error, left: gpus });
            }
        }
        Ok(())
    }

    #[inline(always)]
    fn unmap_one(&self, handle: u64, gpus: GpuSet) -> Result<(), MapFailure> {
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
        match self.channel.execute(&mut block, arrays, Status::ERROR, Object::Handle(handle)) {
            Ok(_) => Ok(()),
            Err(error) => {
                Err(MapFailure { error, left: gpus.without(gpus.first(block.n_success as usize)) })
            }
        }
    }

    /// Gives a buffer up.
    #[inline]
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
