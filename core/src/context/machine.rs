//! The machine as a context sees it: the topology snapshot and the apertures of
//! its GPUs, between an acquire and a release.

use alloc::vec::Vec;

use super::render::{RenderNodes, apertures};
use super::{Channel, Options};
use crate::error::{Error, Object, Operation, Status};
use crate::fallible::{try_extend, try_push};
use crate::lock::Lock;
use crate::memory::{GpuSet, Scene};
use crate::process::mmio::{self, MmioPage};
use crate::seam::Platform;
use crate::topology::{Aperture, Apertures, Node, Snapshot, read_generation, read_snapshot};
use crate::uapi::kfd::{CachePolicy, ProcessDeviceApertures, SetMemoryPolicy};

/// What an acquire found. Never changes; a new acquire may replace it.
#[derive(Debug, Clone)]
pub struct Machine {
    snapshot: Snapshot,
    apertures: Vec<ProcessDeviceApertures>,
    svm: Option<Aperture>,
    /// The register page of each GPU that has one: gpu_id and address.
    mmio: Vec<(u32, u64)>,
    /// The GPUs of the kernel process object, in the kernel's order.
    gpus: Vec<GpuPlace>,
    /// What allocations for each node need to know, by public id.
    scenes: Vec<Scene>,
}

/// A GPU at its place in the kernel's list of the process object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct GpuPlace {
    pub(crate) gpu_id: u32,
    /// Its public id; none when the context does not use it.
    pub(crate) node: Option<u32>,
    /// The GPUs that have a link to it, and itself: who can map its memory.
    pub(crate) peers: GpuSet,
}

/// The size of a GPU's register page.
const MMIO_BYTES: u64 = 4096;

impl Machine {
    /// The topology.
    #[must_use]
    pub fn snapshot(&self) -> &Snapshot {
        &self.snapshot
    }

    /// The apertures of the GPU with this kernel id.
    #[must_use]
    pub fn apertures(&self, gpu_id: u32) -> Option<&ProcessDeviceApertures> {
        self.apertures.iter().find(|aperture| aperture.gpu_id == gpu_id)
    }

    /// The node with this public id.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub fn node(&self, node_id: u32) -> Result<&Node, Error> {
        self.snapshot.node(node_id).ok_or_else(|| no_such_node(node_id))
    }

    /// The GPU with this public id.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node.
    pub fn gpu(&self, node_id: u32) -> Result<&Node, Error> {
        let node = self.node(node_id)?;
        if node.is_gpu() { Ok(node) } else { Err(no_such_node(node_id)) }
    }

    /// The GPUs of the kernel process object, in the kernel's order, which never
    /// changes.
    pub(crate) fn gpus(&self) -> &[GpuPlace] {
        &self.gpus
    }

    /// The place of a GPU, by its public id; none for a CPU node.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT.
    pub(crate) fn place(&self, node_id: u32) -> Result<Option<u8>, Error> {
        let gpu_id = self.node(node_id)?.gpu_id;
        let place = self.gpus.iter().position(|gpu| gpu.gpu_id == gpu_id);
        Ok(place.and_then(|place| u8::try_from(place).ok()))
    }

    /// What an allocation for a node needs to know; none for a node that is not there.
    #[inline(always)]
    pub(crate) fn scene(&self, node_id: u32) -> Option<Scene> {
        self.scenes.get(node_id as usize).copied()
    }

    /// The GPUs that the context uses.
    pub(crate) fn gpus_in_use(&self) -> GpuSet {
        let places = (0..).zip(&self.gpus).filter(|(_, gpu)| gpu.node.is_some());
        places.fold(GpuSet::NONE, |set, (place, _)| set.with(GpuSet::one(place)))
    }

    /// The addresses that all GPUs have in common with the process.
    pub(crate) fn svm(&self) -> Option<Aperture> {
        self.svm
    }

    /// Whether some GPU has memory of its own: then all memory is the driver's,
    /// on APUs without such a neighbour it is the process's.
    pub(crate) fn is_discrete(&self) -> bool {
        is_discrete(&self.snapshot)
    }

    /// Whether every GPU has the SVM calls.
    pub(crate) fn has_svm_api(&self) -> bool {
        let mut gpus = self.snapshot.nodes().iter().filter(|node| node.is_gpu()).peekable();
        gpus.peek().is_some() && gpus.all(|node| node.capability & CAPABILITY_SVM_API != 0)
    }

    /// The address ranges of a node, as its memory banks show them.
    #[must_use]
    pub fn apertures_of(&self, node: &Node) -> Apertures {
        match self.apertures(node.gpu_id) {
            Some(gpu) => Apertures {
                lds: range(gpu.lds_base, gpu.lds_limit),
                scratch: range(gpu.scratch_base, gpu.scratch_limit),
                gpuvm: range(gpu.gpuvm_base, gpu.gpuvm_limit).filter(|_| !is_canonical(gpu)),
                svm: self.svm,
                mmio: self.mmio.iter().find(|(gpu_id, _)| *gpu_id == node.gpu_id).map(
                    |&(_, base)| Aperture { base, limit: base.saturating_add(MMIO_BYTES - 1) },
                ),
            },
            None => Apertures::default(),
        }
    }
}

/// An aperture that the kernel names; none where its limit is not above its base.
fn range(base: u64, limit: u64) -> Option<Aperture> {
    (limit > base).then_some(Aperture { base, limit })
}

/// Whether a GPU's addresses are the process's own: its limit is a user address
/// of at most 56 bits. Others are old APUs with a window of their own.
fn is_canonical(gpu: &ProcessDeviceApertures) -> bool {
    gpu.gpuvm_limit < 1 << 56
}

/// The addresses that all GPUs in use have in common, in whole 2 MiB.
fn common_range(snapshot: &Snapshot, apertures: &[ProcessDeviceApertures]) -> Option<Aperture> {
    const UNIT: u64 = 2 << 20;
    let mut gpus = apertures
        .iter()
        .filter(|gpu| is_canonical(gpu) && snapshot.by_gpu_id(gpu.gpu_id).is_some())
        .peekable();
    gpus.peek()?;
    let (base, limit) = gpus.fold((0, u64::MAX), |(base, limit), gpu| {
        (u64::max(base, gpu.gpuvm_base), u64::min(limit, gpu.gpuvm_limit))
    });
    let base = base.checked_next_multiple_of(UNIT)?;
    let end = limit.checked_add(1)?;
    let limit = end.saturating_sub(end.checked_rem(UNIT)?).checked_sub(1)?;
    range(base, limit)
}

/// Makes the register pages of the GPUs in use, where the common range is the
/// process's own address space.
fn register_pages<P: Platform>(
    channel: Channel<'_, P>,
    snapshot: &Snapshot,
    svm: Option<Aperture>,
) -> Result<Vec<(u32, u64)>, Error> {
    let os = channel.os();
    let mut pages = channel.files.mmio().acquire(os);
    let whole = svm.is_some_and(|svm| svm.limit >= USER_LIMIT);
    let discrete = is_discrete(snapshot);
    let gpus = snapshot
        .nodes()
        .iter()
        .filter(|node| node.is_gpu() && (discrete || node.gfx_version.major >= 9));
    if whole {
        mmio::make(&channel, &mut pages, gpus.map(|node| node.gpu_id))?;
    }
    let mut usable = Vec::new();
    usable.try_reserve_exact(pages.len())?;
    try_extend(&mut usable, pages.iter().filter_map(MmioPage::usable))?;
    Ok(usable)
}

fn is_discrete(snapshot: &Snapshot) -> bool {
    snapshot.nodes().iter().any(|node| node.is_gpu() && node.cpu_cores_count == 0)
}

/// `SVMAPISupported` in `HSA_CAPABILITY`.
const CAPABILITY_SVM_API: u32 = 1 << 27;

/// The GPUs in the kernel's order, with what they can reach.
fn places(
    snapshot: &Snapshot,
    apertures: &[ProcessDeviceApertures],
) -> Result<Vec<GpuPlace>, Error> {
    let mut places = Vec::new();
    let mut place_of = Vec::new();
    try_extend(&mut place_of, snapshot.nodes().iter().map(|_| None))?;
    for (place, gpu) in (0..).zip(apertures) {
        let node = snapshot.by_gpu_id(gpu.gpu_id);
        if let Some(cell) = node.and_then(|node| place_of.get_mut(node as usize)) {
            *cell = Some(place);
        }
        let peers = if node.is_some() { GpuSet::one(place) } else { GpuSet::NONE };
        try_push(&mut places, GpuPlace { gpu_id: gpu.gpu_id, node, peers })?;
    }
    for (node, place) in snapshot.nodes().iter().zip(&place_of) {
        let Some(place) = *place else { continue };
        for link in &node.links {
            let to = place_of.get(link.node_to as usize).copied().flatten();
            if let Some(to) = to.and_then(|to: u8| places.get_mut(usize::from(to))) {
                to.peers = to.peers.with(GpuSet::one(place));
            }
        }
    }
    Ok(places)
}

/// Tells GPUs before gfx9 how they cache: coherently where the process's memory
/// is, since device and host memory lie in one range there. Later GPUs take it
/// from each buffer.
fn set_cache_policies<P: Platform>(
    channel: Channel<'_, P>,
    snapshot: &Snapshot,
    svm: Option<Aperture>,
    disable_cache: bool,
) -> Result<(), Error> {
    let Some(svm) = svm else { return Ok(()) };
    let old = |node: &&Node| node.is_gpu() && node.gfx_version.major < 9;
    for gpu in snapshot.nodes().iter().filter(old) {
        let outside = if disable_cache { CachePolicy::COHERENT } else { CachePolicy::NONCOHERENT };
        let mut block = SetMemoryPolicy {
            alternate_aperture_base: svm.base,
            alternate_aperture_size: svm.limit.saturating_sub(svm.base).saturating_add(1),
            gpu_id: gpu.gpu_id,
            default_policy: outside,
            alternate_policy: CachePolicy::COHERENT,
            ..SetMemoryPolicy::default()
        };
        channel.execute(&mut block, &mut [], Status::ERROR, Object::Gpu(gpu.gpu_id))?;
    }
    Ok(())
}

/// The last address of a 47-bit user space.
const USER_LIMIT: u64 = (1 << 47) - 1;

/// The failure of a call that names a node that is not there.
#[cold]
pub(crate) fn no_such_node(node_id: u32) -> Error {
    Error::library(Status::INVALID_NODE_UNIT, Operation::LookUp, Object::Node(node_id))
}

/// Where a context keeps its machine.
///
/// Lock order: `acquiring`, then `machine`. The first is held while the tree is
/// read and devices are opened, so that two acquires do not do that twice; the
/// second only to swap or to look, so queries never wait for a reader of files.
#[derive(Debug, Default)]
pub(crate) struct MachineCell {
    acquiring: Lock<()>,
    machine: Lock<Option<Machine>>,
}

impl MachineCell {
    /// Reads the machine, unless it is known and unchanged, and looks at it
    /// before anybody can release it again.
    ///
    /// # Errors
    /// What the topology, the render nodes or ACQUIRE_VM refused. What was known
    /// before stays known.
    pub(crate) fn acquire<P: Platform, R>(
        &self,
        channel: Channel<'_, P>,
        options: &Options,
        look: impl FnOnce(&Machine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let _acquiring = self.acquiring.acquire(channel.os());
        self.refresh(channel, options)?;
        self.look(channel, look)
    }

    /// Reads the machine, unless it is known and unchanged. The caller holds
    /// `acquiring`.
    fn refresh<P: Platform>(
        &self,
        channel: Channel<'_, P>,
        options: &Options,
    ) -> Result<(), Error> {
        let os = channel.os();
        let overrides = options.node_overrides()?;
        let settings = options.settings(&overrides);
        let known = self
            .machine
            .acquire(os)
            .as_ref()
            .map(|machine| (machine.snapshot.settled(), machine.snapshot.generation()));
        if let Some((true, generation)) = known {
            if read_generation(os, &settings)? == generation {
                return Ok(());
            }
        }
        let apertures = apertures(&channel)?;
        let mut renders = RenderNodes::new(channel, options, &apertures);
        let snapshot = read_snapshot(os, &settings, &mut renders)?;
        renders.bind(|gpu| snapshot.by_gpu_id(gpu.gpu_id).is_some())?;
        let svm = common_range(&snapshot, &apertures);
        set_cache_policies(channel, &snapshot, svm, options.disable_cache)?;
        let mmio = register_pages(channel, &snapshot, svm)?;
        let gpus = places(&snapshot, &apertures)?;
        let mut machine = Machine { snapshot, apertures, svm, mmio, gpus, scenes: Vec::new() };
        for (node, _) in (0..).zip(machine.snapshot.nodes()) {
            let scene = Scene::of(&machine, node)?;
            try_push(&mut machine.scenes, scene)?;
        }
        let replaced = self.machine.acquire(os).replace(machine);
        drop(replaced);
        Ok(())
    }

    /// Forgets the machine.
    pub(crate) fn release<P: Platform>(&self, channel: Channel<'_, P>) {
        let _acquiring = self.acquiring.acquire(channel.os());
        let released = self.machine.acquire(channel.os()).take();
        drop(released);
        mmio::unmake(&channel, &mut channel.files.mmio().acquire(channel.os()));
    }

    /// What an allocation for a node needs to know, if there is a machine with such a
    /// node.
    #[inline(always)]
    pub(crate) fn scene<P: Platform>(&self, channel: Channel<'_, P>, node: u32) -> Option<Scene> {
        self.machine.acquire(channel.os()).as_ref()?.scene(node)
    }

    /// Looks at the machine.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT when there is none; the reference's answer, too.
    #[inline]
    pub(crate) fn look<P: Platform, R>(
        &self,
        channel: Channel<'_, P>,
        look: impl FnOnce(&Machine) -> Result<R, Error>,
    ) -> Result<R, Error> {
        match &*self.machine.acquire(channel.os()) {
            Some(machine) => look(machine),
            None => {
                Err(Error::library(Status::INVALID_NODE_UNIT, Operation::LookUp, Object::Nothing))
            }
        }
    }
}
