//! Queues: kernel-rules section 2, "CREATE_QUEUE" and the table after it
//! (kfd_chardev.c, kfd_queue.c, kfd_process_queue_manager.c,
//! kfd_device_queue_manager.c).
//!
//! What a queue's packets do is in `engines`.

use alloc::collections::BTreeMap;
use alloc::format;
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::errno::Errno;

use super::dispatch::Request;
use super::{KfdObject, ObjectId, process_folder};
use crate::descriptor::FileId;
use crate::engines::{NEVER_RUNG, Progress};
use crate::gpu_memory::{MemoryId, Place};
use crate::gpu_vm::{GpuRange, GpuVm, Shows};
use crate::machine::{State, Write};
use crate::svm_ranges::ALWAYS_MAPPED;
use crate::topology::Gpu;
use crate::violation::Rule;

const PAGE: u64 = 4096;
/// The kernel's own errno for what a driver does not support.
const ENOTSUPP: Errno = Errno(524);
/// One past the highest user address of x86-64.
const USER_ADDRESSES: u64 = (1 << 47) - 4096;

/// KFD_MAX_QUEUE_PERCENTAGE, KFD_MAX_QUEUE_PRIORITY, KFD_MIN_QUEUE_RING_SIZE.
const HIGHEST_PERCENTAGE: u32 = 100;
const HIGHEST_PRIORITY: u32 = 15;
const SHORTEST_RING: u32 = 1024;
/// KFD_MAX_NUM_OF_QUEUES_PER_PROCESS, and the module option's default for a device.
const QUEUES_OF_OBJECT: u32 = 1024;
const QUEUES_OF_DEVICE: usize = 4096;
/// KFD_MMAP_TYPE_DOORBELL.
const DOORBELL_OFFSET: u64 = 3 << 62;
/// Doorbells of a slice, and the distance from one to its mirror.
const DOORBELLS: u32 = 1024;
const MIRROR: u32 = 512;
/// The most bits that a mask of compute units can have.
const MOST_MASK_BITS: u32 = 1024;

/// KFD_IOC_QUEUE_TYPE_*.
const PM4: u32 = 0;
const AQL: u32 = 2;
const SDMA_XGMI: u32 = 3;
const SDMA_BY_ENGINE: u32 = 4;

/// Who executes a queue, and what its packets are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum QueueKind {
    /// The command processor, PM4 packets.
    Pm4,
    /// The command processor, AQL packets.
    Aql,
    /// A copy engine.
    Sdma(SdmaSlot),
}

/// Which of the hardware queues for copies one is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct SdmaSlot {
    /// One of the engines for XGMI.
    pub xgmi: bool,
    /// The number among all hardware queues of those engines.
    pub slot: u32,
    /// The engine's number in the GPU; those for XGMI follow the others.
    pub engine: u32,
}

/// A queue (`struct queue`).
#[derive(Debug, Clone)]
pub(crate) struct Queue {
    pub gpu_id: u32,
    pub kind: QueueKind,
    pub ring: u64,
    pub ring_size: u32,
    pub metadata_size: u32,
    pub percentage: u32,
    pub priority: u32,
    pub read_pointer: u64,
    pub write_pointer: u64,
    pub ctl_stack_size: u32,
    /// Where the context save area begins, and bytes of one die's part.
    pub save_area: (u64, u32),
    /// Bytes from the start of the slice to the doorbell.
    pub doorbell: u32,
    /// Bytes of the doorbell.
    pub doorbell_bytes: u32,
    pub has_gws: bool,
    pub cu_mask: Vec<u32>,
    /// The buffers that it keeps mapped.
    held: Held,
    /// The mapping that is the ring.
    held_ring: Option<u64>,
    /// Tells it from others that had or get its number.
    pub serial: u64,
    /// What an engine did of it so far.
    pub progress: Progress,
    /// The place up to which a barrier saw packets.
    pub seen: u64,
}

impl Queue {
    /// Whether the scheduler lets it run if nothing stops the process: kernel-rules
    /// section 2, UPDATE_QUEUE.
    pub(crate) fn is_active(&self) -> bool {
        self.ring != 0 && self.ring_size > 0 && self.percentage > 0
    }

    pub(crate) fn is_compute(&self) -> bool {
        matches!(self.kind, QueueKind::Pm4 | QueueKind::Aql)
    }

    /// `enum kfd_queue_type`, which sysfs shows.
    fn type_in_sysfs(&self) -> u32 {
        match self.kind {
            QueueKind::Pm4 | QueueKind::Aql => 0,
            QueueKind::Sdma(slot) if slot.xgmi => 4,
            QueueKind::Sdma(_) => 1,
        }
    }
}

impl fmt::Display for Queue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kind {
            QueueKind::Pm4 => f.write_str("PM4")?,
            QueueKind::Aql => f.write_str("AQL")?,
            QueueKind::Sdma(slot) => write!(f, "SDMA engine {}", slot.engine)?,
        }
        write!(f, " queue with a ring of {:#x} bytes", self.ring_size)
    }
}

/// The mappings that a queue keeps, by start address, and the SVM ranges.
#[derive(Debug, Clone, Default)]
struct Held {
    mappings: Vec<u64>,
    svm: Option<(u64, u64)>,
}

/// What the request asks for, after steps 1 to 6.
struct Wanted {
    kind: u32,
    ring: u64,
    ring_size: u32,
    metadata_size: u32,
    percentage: u32,
    priority: u32,
    read_pointer: u64,
    write_pointer: u64,
    eop: (u64, u32),
    save_area: (u64, u32),
    ctl_stack_size: u32,
    engine: u32,
}

impl Wanted {
    fn is_compute(&self) -> bool {
        matches!(self.kind, PM4 | AQL)
    }
}

/// ring_base_address at 0, write_pointer_address at 8, read_pointer_address at 16,
/// doorbell_offset at 24, ring_size u32 at 32, gpu_id at 36, queue_type at 40,
/// queue_percentage at 44, queue_priority at 48, queue_id at 52, eop_buffer_address
/// at 56, eop_buffer_size at 64, ctx_save_restore_address at 72,
/// ctx_save_restore_size u32 at 80, ctl_stack_size at 84, sdma_engine_id at 88,
/// metadata_ring_size at 92.
fn look_at(request: &Request<'_, '_, '_>) -> Result<Wanted, Errno> {
    let (kernel, arguments) = (request.state.kernel, &request.arguments);
    let ring = look_at_ring(request, 0, 32, 44)?;
    let mut metadata_size = 0;
    if kernel.has_metadata_rings() {
        metadata_size = arguments.u32(92);
        if metadata_size != 0 && !metadata_size.is_power_of_two() {
            return Err(Errno::EINVAL);
        }
    }
    let addresses = [16, 8, 56, 72].map(|at| arguments.u64(at));
    if !addresses.iter().all(|&address| is_user_address(address)) {
        return Err(Errno::EFAULT);
    }
    let [read_pointer, write_pointer, eop, save_area] = addresses;
    let kind = arguments.u32(40);
    let last = if kernel.has_queues_by_engine() { SDMA_BY_ENGINE } else { SDMA_XGMI };
    if kind > last {
        return Err(ENOTSUPP);
    }
    Ok(Wanted {
        kind,
        ring: ring.address,
        ring_size: ring.size,
        metadata_size: if kind == AQL { metadata_size } else { 0 },
        percentage: ring.percentage,
        priority: ring.priority,
        read_pointer,
        write_pointer,
        // The driver keeps 32 bits of the size.
        eop: (eop, arguments.u64(64) as u32),
        save_area: (save_area, arguments.u32(80)),
        ctl_stack_size: arguments.u32(84),
        engine: arguments.u32(88),
    })
}

/// What CREATE and UPDATE look at first.
struct Ring {
    address: u64,
    size: u32,
    percentage: u32,
    priority: u32,
}

/// Steps 1 to 3; the priority follows the percentage.
fn look_at_ring(
    request: &Request<'_, '_, '_>,
    address_at: usize,
    size_at: usize,
    percentage_at: usize,
) -> Result<Ring, Errno> {
    let arguments = &request.arguments;
    let percentage = arguments.u32(percentage_at);
    let whole = !request.state.kernel.has_die_in_percentage();
    let looked_at = if whole { percentage } else { percentage & 0xff };
    let priority = arguments.u32(percentage_at + 4);
    if looked_at > HIGHEST_PERCENTAGE || priority > HIGHEST_PRIORITY {
        return Err(Errno::EINVAL);
    }
    let (address, size) = (arguments.u64(address_at), arguments.u32(size_at));
    if !is_user_address(address) {
        return Err(Errno::EFAULT);
    }
    if size != 0 && !size.is_power_of_two() {
        return Err(Errno::EINVAL);
    }
    Ok(Ring { address, size: size.max(SHORTEST_RING), percentage: percentage & 0xff, priority })
}

fn is_user_address(address: u64) -> bool {
    address < USER_ADDRESSES
}

/// See [`look_at`].
pub(super) fn create(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let wanted = look_at(request)?;
    let gpu_id = request.arguments.u32(36);
    let file = request.object()?.gpu(gpu_id)?.file.ok_or(Errno::ESRCH)?;
    let gpu = request.state.topology.gpu(gpu_id).cloned().ok_or(Errno::EINVAL)?;
    let engines = gpu.properties.num_sdma_engines + gpu.properties.num_sdma_xgmi_engines;
    if wanted.kind == SDMA_BY_ENGINE && wanted.engine >= engines {
        return Err(Errno::EINVAL);
    }
    let slice = doorbell_slice(request.state, request.id, &gpu)?;
    let (held, held_ring) = hold_buffers(request, &wanted, &gpu, file)?;
    let mut queue = Queue {
        gpu_id,
        kind: QueueKind::Pm4,
        ring: wanted.ring,
        ring_size: wanted.ring_size,
        metadata_size: wanted.metadata_size,
        percentage: wanted.percentage,
        priority: wanted.priority,
        read_pointer: wanted.read_pointer,
        write_pointer: wanted.write_pointer,
        ctl_stack_size: wanted.ctl_stack_size,
        save_area: wanted.save_area,
        doorbell: 0,
        doorbell_bytes: if gpu.doorbell_type() == 2 { 8 } else { 4 },
        has_gws: false,
        cu_mask: Vec::new(),
        held,
        held_ring,
        serial: request.state.number(),
        progress: Progress::default(),
        seen: 0,
    };
    let id = match place(request, &wanted, &gpu, file, &mut queue) {
        Ok(id) => id,
        Err(errno) => {
            let_go(request.state, file, &queue);
            return Err(errno);
        }
    };
    let width = queue.doorbell_bytes as usize;
    let place = queue.doorbell as usize;
    request.state.writes.push(Write::Fill(slice, place, width, NEVER_RUNG));
    let mut offset = DOORBELL_OFFSET | u64::from(gpu_id) << 46;
    if gpu.is_gfx9_or_later() {
        offset |= u64::from(queue.doorbell);
    }
    let folder = process_folder::folder(request.object()?);
    let folder = format!("{folder}/queues/{id}");
    for (name, value) in
        [("size", queue.ring_size), ("type", queue.type_in_sysfs()), ("gpuid", gpu_id)]
    {
        let text = format!("{value}");
        request.state.tree.put_bytes(&format!("{folder}/{name}"), text.into_bytes());
    }
    request.object_mut()?.queues.insert(id, queue);
    request.state.count_queues();
    request.arguments.put_u32(52, id);
    request.arguments.put_u64(24, offset);
    // The clamped size comes back, too.
    request.arguments.put_u32(32, wanted.ring_size);
    Ok(0)
}

/// The doorbells of an object on a GPU; made if there are none yet.
pub(super) fn doorbell_slice(
    state: &mut State,
    id: ObjectId,
    gpu: &Gpu,
) -> Result<MemoryId, Errno> {
    let object = state.objects.get(&id).ok_or(Errno::EBADF)?;
    if let Some(slice) = object.gpu(gpu.id)?.doorbells {
        return Ok(slice);
    }
    let slice = MemoryId(state.number());
    state.memory.take(slice, &state.topology, gpu, Place::Registers, gpu.doorbell_slice())?;
    let object = state.objects.get_mut(&id).ok_or(Errno::EBADF)?;
    object.record_mut(gpu.id).ok_or(Errno::EINVAL)?.doorbells = Some(slice);
    Ok(slice)
}

/// kernel-rules section 2, CREATE_QUEUE "Buffer rules": everything or nothing.
fn hold_buffers(
    request: &mut Request<'_, '_, '_>,
    wanted: &Wanted,
    gpu: &Gpu,
    file: FileId,
) -> Result<(Held, Option<u64>), Errno> {
    let kernel = request.state.kernel;
    let vm = request.state.vms.get(&file).ok_or(Errno::ESRCH)?;
    if !kernel.checks_queue_buffers() {
        if gpu.is_scheduled_by_mes() {
            let (_, range) = vm.at(wanted.write_pointer).ok_or(Errno::EINVAL)?;
            if range.length > PAGE {
                return Err(Errno::EINVAL);
            }
        }
        return Ok((Held::default(), None));
    }
    let mut held = Held::default();
    held.mappings.push(mapping(vm, wanted.write_pointer, PAGE)?);
    held.mappings.push(mapping(vm, wanted.read_pointer, PAGE)?);
    let doubled = wanted.kind == AQL && !gpu.is_gfx9_or_later();
    let mut ring_bytes = u64::from(wanted.ring_size);
    if doubled {
        ring_bytes /= 2;
    } else {
        ring_bytes += u64::from(wanted.metadata_size);
    }
    if kernel.rounds_rings_up() {
        ring_bytes = ring_bytes.next_multiple_of(PAGE);
    }
    let ring = mapping(vm, wanted.ring, ring_bytes)?;
    if wanted.is_compute() {
        let properties = &gpu.properties;
        let sizes = properties.save_area(kernel.has_keys_of_7_2());
        let (eop, eop_size) = wanted.eop;
        if eop != 0 {
            if eop_size < properties.least_eop_size() {
                return Err(Errno::EINVAL);
            }
            let length = u64::from(eop_size).next_multiple_of(PAGE);
            held.mappings.push(mapping(vm, eop, length)?);
        }
        let (save_area, save_size) = (wanted.save_area.0, u64::from(wanted.save_area.1));
        if u64::from(wanted.ctl_stack_size) != sizes.ctl_stack_size || save_size < sizes.cwsr_size {
            return Err(Errno::EINVAL);
        }
        let dies = u64::from(properties.num_xcc.max(1));
        let length = ((save_size + sizes.debug_size) * dies).next_multiple_of(PAGE);
        match mapping(vm, save_area, length) {
            Ok(start) => held.mappings.push(start),
            Err(errno) if !kernel.svm => return Err(errno),
            Err(_) => {
                let start = save_area / PAGE * PAGE;
                check_svm_area(request.object()?, gpu.id, start, start + length)?;
                held.svm = Some((start, start + length));
            }
        }
    }
    let vm = request.state.vms.get_mut(&file).ok_or(Errno::ESRCH)?;
    for start in held.mappings.iter().chain([&ring]) {
        vm.used_by_queue(*start);
    }
    Ok((held, Some(ring)))
}

/// The mapping of exactly this length whose first page has this address; a length
/// below a page is not looked at.
fn mapping(vm: &GpuVm, address: u64, length: u64) -> Result<u64, Errno> {
    let (start, range) = vm.at(address).ok_or(Errno::EINVAL)?;
    let pages = |bytes: u64| bytes / PAGE;
    let same = pages(length) == 0 || pages(length) == pages(range.length);
    if start / PAGE == address / PAGE && same { Ok(start) } else { Err(Errno::EINVAL) }
}

/// Whether SVM ranges cover an area that this GPU has mapped at all times.
fn check_svm_area(object: &KfdObject, gpu_id: u32, start: u64, end: u64) -> Result<(), Errno> {
    let bit = object.svm_bit(gpu_id).ok_or(Errno::EINVAL)?;
    let mut at = start;
    while at < end {
        let (from, range) = object.svm.at(at).ok_or(Errno::EINVAL)?;
        let attributes = &range.attributes;
        let always = attributes.flags & ALWAYS_MAPPED != 0;
        if !range.mapped || attributes.accessible() & bit == 0 || !always {
            return Err(Errno::EINVAL);
        }
        at = from + range.length;
    }
    Ok(())
}

/// Steps 11 to 15: numbers, the scheduler's wish, a slot and a doorbell.
fn place(
    request: &Request<'_, '_, '_>,
    wanted: &Wanted,
    gpu: &Gpu,
    file: FileId,
    queue: &mut Queue,
) -> Result<u32, Errno> {
    let (state, object) = (&*request.state, request.object()?);
    let here = object.queues.values().filter(|other| other.gpu_id == gpu.id).count();
    if here >= state.kernel.queues_of_gpu(gpu) {
        return Err(Errno::ENOSPC);
    }
    let mut ids = 0..QUEUES_OF_OBJECT;
    let id = ids.find(|id| !object.queues.contains_key(id)).ok_or(Errno::ENOMEM)?;
    if gpu.is_scheduled_by_mes() {
        check_write_pointer(state, object, gpu, file, wanted.write_pointer)?;
    }
    let all = || state.objects.values().flat_map(|object| object.queues.values());
    let on_device = || all().filter(|other| other.gpu_id == gpu.id);
    if on_device().count() >= QUEUES_OF_DEVICE {
        return Err(Errno::EPERM);
    }
    queue.kind = match wanted.kind {
        PM4 => QueueKind::Pm4,
        AQL => QueueKind::Aql,
        kind => {
            let taken = on_device().filter_map(|other| match other.kind {
                QueueKind::Sdma(slot) => Some((slot.xgmi, slot.slot)),
                _ => None,
            });
            let by_engine = (kind == SDMA_BY_ENGINE).then_some(wanted.engine);
            QueueKind::Sdma(free_slot(gpu, kind, by_engine, &taken.collect::<Vec<_>>())?)
        }
    };
    let taken = object.queues.values().filter(|other| other.gpu_id == gpu.id && other.is_compute());
    let taken: Vec<u32> = taken.map(|other| other.doorbell / 8).collect();
    queue.doorbell = match queue.kind {
        _ if !gpu.is_gfx9_or_later() => 4 * id,
        QueueKind::Sdma(slot) => 8 * sdma_doorbell(gpu, slot),
        _ => {
            let (first, last) = reserved_doorbells(gpu);
            let mut numbers = 0..DOORBELLS;
            let is_free = |number: &u32| {
                !(first..=last).contains(&(number % MIRROR)) && !taken.contains(number)
            };
            8 * numbers.find(is_free).ok_or(Errno::EBUSY)?
        }
    };
    Ok(id)
}

/// Step 13: the firmware's scheduler reads the write pointer itself.
fn check_write_pointer(
    state: &State,
    object: &KfdObject,
    gpu: &Gpu,
    file: FileId,
    address: u64,
) -> Result<(), Errno> {
    let found = state.vms.get(&file).and_then(|vm| vm.at(address));
    let Some((_, GpuRange { shows, .. })) = found else { return Err(Errno::EINVAL) };
    let memory = match *shows {
        Shows::Buffer { handle, .. } => {
            let buffer = object.buffer(handle).ok_or(Errno::EINVAL)?;
            if buffer.source.is_some() {
                return Err(Errno::EPERM);
            }
            buffer.memory
        }
        Shows::Handle { memory, .. } => memory,
        Shows::Driver => return Ok(()),
    };
    let owner = state.memory.get(memory).and_then(|memory| state.topology.gpu(memory.gpu_id));
    if owner.is_some_and(|owner| owner.is_same_device(gpu)) { Ok(()) } else { Err(Errno::EINVAL) }
}

/// kernel-rules section 2, "SDMA slot": ENOMEM if there is none.
fn free_slot(
    gpu: &Gpu,
    kind: u32,
    by_engine: Option<u32>,
    taken: &[(bool, u32)],
) -> Result<SdmaSlot, Errno> {
    let properties = &gpu.properties;
    let (for_pcie, for_xgmi) = (properties.num_sdma_engines, properties.num_sdma_xgmi_engines);
    let xgmi = by_engine.map_or(kind == SDMA_XGMI, |engine| engine >= for_pcie);
    let (engines, first) = if xgmi { (for_xgmi, for_pcie) } else { (for_pcie, 0) };
    if engines == 0 {
        return Err(Errno::ENOMEM);
    }
    let queues = gpu.sdma_queues();
    let reserved = if xgmi { 0 } else { queues.reserved * (for_pcie + for_xgmi) };
    let mut slots = (0..engines * queues.all)
        .filter(|slot| *slot >= reserved && !taken.contains(&(xgmi, *slot)));
    let wanted = by_engine.map(|engine| engine - first);
    let slot = slots.find(|slot| wanted.is_none_or(|engine| slot % engines == engine));
    let slot = slot.ok_or(Errno::ENOMEM)?;
    Ok(SdmaSlot { xgmi, slot, engine: first + slot % engines })
}

/// The doorbells of a slice that are not the command processor's, without mirrors
/// (amdgpu_doorbell.h, FIRST_NON_CP and LAST_NON_CP).
fn reserved_doorbells(gpu: &Gpu) -> (u32, u32) {
    match gpu.properties.gfx_target_version {
        _ if gpu.is_like_vega10() => (0xf0, 0xff),
        90_400..=90_500 => (0x100, 0x1e8),
        ..100_000 => (0x100, 0x18f),
        _ => (0x100, 0x190),
    }
}

/// The doorbell that a hardware queue for copies always has.
fn sdma_doorbell(gpu: &Gpu, slot: SdmaSlot) -> u32 {
    let properties = &gpu.properties;
    let engines = properties.num_sdma_engines + properties.num_sdma_xgmi_engines;
    let of_gfx9_4_3 = matches!(properties.gfx_target_version, 90_400..=90_500);
    // Partitions have engines of their own.
    let partition = if of_gfx9_4_3 { properties.location_id & 7 } else { 0 };
    let engine = partition * engines + slot.engine;
    let start = if gpu.is_like_vega10() { 0xf0 + 2 * engine } else { 0x100 + 10 * engine };
    let start = if of_gfx9_4_3 { start.next_multiple_of(4) } else { start };
    let of_class =
        if slot.xgmi { properties.num_sdma_xgmi_engines } else { properties.num_sdma_engines };
    let queue = slot.slot / of_class.max(1);
    start + (queue & 1) * MIRROR + (queue >> 1)
}

/// Gives the buffers of a queue free.
fn let_go(state: &mut State, file: FileId, queue: &Queue) {
    if let Some(vm) = state.vms.get_mut(&file) {
        for start in queue.held.mappings.iter().chain(&queue.held_ring) {
            vm.left_by_queue(*start);
        }
    }
}

/// queue_id u32 at 0, padding.
pub(super) fn destroy(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let id = request.arguments.u32(0);
    let folder = process_folder::folder(request.object()?);
    let queue = request.object_mut()?.queues.remove(&id).ok_or(Errno::EINVAL)?;
    let file = request.object()?.gpu(queue.gpu_id)?.file;
    if let Some(file) = file {
        let_go(request.state, file, &queue);
    }
    request.state.tree.remove(&format!("{folder}/queues/{id}"));
    request.state.count_queues();
    Ok(0)
}

/// The end of an object: its queues go before its buffers.
pub(crate) fn destroy_all(state: &mut State, object: &KfdObject) {
    for queue in object.queues.values() {
        let file = object.gpu(queue.gpu_id).ok().and_then(|record| record.file);
        if let Some(file) = file {
            let_go(state, file, queue);
        }
    }
}

/// ring_base_address at 0, queue_id u32 at 8, ring_size at 12, queue_percentage at
/// 16, queue_priority at 20.
pub(super) fn update(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let ring = look_at_ring(request, 0, 12, 16)?;
    let id = request.arguments.u32(8);
    let queue = request.object()?.queues.get(&id).ok_or(Errno::EFAULT)?;
    let (gpu_id, before) = (queue.gpu_id, queue.held_ring);
    let length = u64::from(ring.size) + u64::from(queue.metadata_size);
    let record = request.object()?.gpu(gpu_id)?;
    let (file, reset) = (record.file.ok_or(Errno::ENODEV)?, record.has_reset_queue);
    let mut held_ring = before;
    if ring.address != 0 && request.state.kernel.checks_queue_buffers() {
        let vm = request.state.vms.get_mut(&file).ok_or(Errno::EFAULT)?;
        let start = mapping(vm, ring.address, length).map_err(|_| Errno::EFAULT)?;
        vm.used_by_queue(start);
        before.iter().for_each(|before| vm.left_by_queue(*before));
        held_ring = Some(start);
    }
    let queue = request.object_mut()?.queues.get_mut(&id).ok_or(Errno::EFAULT)?;
    queue.held_ring = held_ring;
    (queue.ring, queue.ring_size) = (ring.address, ring.size);
    (queue.percentage, queue.priority) = (ring.percentage, ring.priority);
    if reset { Err(Errno::EACCES) } else { Ok(0) }
}

/// queue_id u32 at 0, num_cu_mask at 4, the array's address at 8.
pub(super) fn set_cu_mask(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (id, bits) = (request.arguments.u32(0), request.arguments.u32(4));
    if bits == 0 || bits % 32 != 0 {
        return Err(Errno::EINVAL);
    }
    let bytes = request.arrays.read(8, bits.min(MOST_MASK_BITS) as usize / 8)?;
    let word = |word: &[u8]| word.try_into().map_or(0, u32::from_ne_bytes);
    let mask: Vec<u32> = bytes.chunks_exact(4).map(word).collect();
    let gpu_id = request.object()?.queues.get(&id).ok_or(Errno::EFAULT)?.gpu_id;
    let gpu = request.state.topology.gpu(gpu_id).ok_or(Errno::EINVAL)?;
    // Work-group processors of two units are on or off as a whole.
    let halves = mask.iter().any(|word| (word ^ word >> 1) & 0x5555_5555 != 0);
    if gpu.properties.gfx_target_version >= 100_000 && halves {
        return Err(Errno::EINVAL);
    }
    if request.object()?.gpu(gpu_id)?.has_reset_queue {
        return Err(Errno::EACCES);
    }
    if let Some(queue) = request.object_mut()?.queues.get_mut(&id) {
        queue.cu_mask = mask;
    }
    Ok(0)
}

/// ctl_stack_address at 0, ctl_stack_used_size u32 at 8, save_area_used_size at 12,
/// queue_id at 16.
pub(super) fn wave_state(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (address, id) = (request.arguments.u64(0), request.arguments.u32(16));
    let object = request.object()?;
    let queue = object.queues.get(&id).ok_or(Errno::EFAULT)?;
    let evicted = object.stopped || object.gpu(queue.gpu_id)?.evicted;
    let gpu = request.state.topology.gpu(queue.gpu_id).ok_or(Errno::EINVAL)?;
    let properties = &gpu.properties;
    let active = queue.is_active() && !evicted;
    if !queue.is_compute() || active || !properties.saves_waves() {
        return Err(Errno::EINVAL);
    }
    // No wave is in flight: both stacks begin and end behind the control stack.
    let stack = queue.ctl_stack_size;
    let dies = match properties.gfx_target_version {
        ..90_000 => 0,
        90_400..=90_500 => u64::from(properties.num_xcc.max(1)),
        _ => 1,
    };
    let stride = u64::from(queue.save_area.1);
    let header: Vec<u8> = [stack, 0, stack, 0].iter().flat_map(|word| word.to_ne_bytes()).collect();
    for die in 0..dies {
        let at = address.saturating_add(die * stride);
        let page = (at / PAGE * PAGE) as usize;
        let space = request.state.space_of(request.pid).ok_or(Errno::EFAULT)?;
        let end = page.saturating_add(PAGE as usize);
        if at == 0 || !is_user_address(at) || !space.takes_copies(page, end) {
            return Err(Errno::EFAULT);
        }
        request.state.writes.push(Write::Process(at, header.clone()));
    }
    request.arguments.put_u32(8, 0);
    request.arguments.put_u32(12, 0);
    Ok(0)
}

/// queue_id u32 at 0, num_gws at 4, first_gws at 8.
pub(super) fn alloc_gws(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let (id, gives) = (request.arguments.u32(0), request.arguments.u32(4) != 0);
    let object = request.object()?;
    let gpu_id = object.queues.get(&id).ok_or(Errno::EINVAL)?.gpu_id;
    let gpu = request.state.topology.gpu(gpu_id).ok_or(Errno::ENODEV)?;
    if gpu.properties.num_gws == 0 {
        return Err(Errno::ENODEV);
    }
    let holds = |queue: &Queue| queue.gpu_id == gpu_id && queue.has_gws;
    match (gives, object.queues.values().any(holds)) {
        (true, true) => return Err(Errno::EBUSY),
        (false, false) => return Err(Errno::EINVAL),
        _ => {}
    }
    for queue in request.object_mut()?.queues.values_mut().filter(|queue| queue.gpu_id == gpu_id) {
        queue.has_gws = false;
    }
    if let Some(queue) = request.object_mut()?.queues.get_mut(&id) {
        queue.has_gws = gives;
    }
    request.arguments.put_u32(8, 0);
    Ok(0)
}

/// A part of an address space was unmapped: where it was the save area of a queue
/// the driver stops all queues of the process and never starts them again.
pub(super) fn memory_unmapped(state: &mut State, id: ObjectId, start: u64, end: u64) {
    let Some(object) = state.objects.get_mut(&id) else { return };
    let overlaps = |area: &(u64, u64)| area.0 < end && start < area.1;
    let hit: BTreeMap<u32, (u64, u64)> = object
        .queues
        .iter()
        .filter_map(|(id, queue)| Some((*id, queue.held.svm.filter(overlaps)?)))
        .collect();
    if hit.is_empty() {
        return;
    }
    object.stopped = true;
    let lead = object.lead;
    for (id, (start, end)) in hit {
        let detail = format!("save area {start:#x}..{end:#x} of queue {id}");
        state.violation(lead, Rule::QueueMemoryUnmapped, detail);
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec::Vec;
    use core::num::NonZeroU32;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::queue::sizes;
    use hsakmt_core::seam::{Array, Driver, EndOfFile, MapDevice, Os, Placement, Protection};
    use hsakmt_core::topology::{GfxVersion, Node};
    use hsakmt_core::uapi::kfd::{
        AllocMemoryFlags as Flags, AllocQueueGws, CreateQueue, DestroyQueue, GetQueueWaveState,
        QueueType, RuntimeEnable, RuntimeEnableMode, SetCuMask, SetXnackMode, UpdateQueue,
    };

    use super::ENOTSUPP;
    use crate::fixture::{
        Bound, Sim, alloc, alloc_user, ask, ask_with, bind, boot, boot_machine, broken, free,
        gpu_id, kfd, map, map_memory, render, set_svm, unmap,
    };
    use crate::profile::Profile;
    use crate::violation::Rule;

    const VA: u64 = 0x10_0000;

    /// A process with bound GPUs and addresses that follow one another.
    struct Bench {
        sim: Sim,
        bound: Bound,
        next: u64,
    }

    impl Bench {
        fn new(profile: &str) -> Bench {
            let sim = boot(profile);
            let bound = bind(&sim);
            Bench { sim, bound, next: VA }
        }

        /// A buffer of the first GPU, mapped on one; handle and address.
        fn buffer(&mut self, gpu: usize, size: u64) -> (u64, u64) {
            let at = self.next;
            self.next += 2 * size.next_multiple_of(4096) + 4096;
            let flags = Flags::GTT | Flags::WRITABLE;
            let (handle, _) = alloc(&self.sim, &self.bound.kfd, gpu, flags, at, size).unwrap();
            let id = gpu_id(&self.sim, gpu);
            assert_eq!(map(&self.sim, &self.bound.kfd, handle, &[id]), Ok(0));
            (handle, at)
        }

        fn piece(&mut self, size: u64) -> u64 {
            self.buffer(0, size).1
        }

        /// A request that the driver accepts, with buffers of its own.
        fn request(&mut self, queue_type: QueueType) -> CreateQueue {
            let topology = self.sim.machine().topology();
            let gpu = topology.gpus().next().unwrap().1.clone();
            let kernel = self.sim.machine().kernel();
            let area = gpu.properties.save_area(kernel.has_keys_of_7_2());
            let mut block = CreateQueue {
                ring_base_address: self.piece(0x1000),
                write_pointer_address: self.piece(0x1000) + 8,
                read_pointer_address: self.piece(0x1000) + 0x80,
                ring_size: 0x1000,
                gpu_id: gpu.id,
                queue_type,
                queue_percentage: 100,
                queue_priority: 7,
                ..CreateQueue::default()
            };
            if matches!(queue_type, QueueType::COMPUTE | QueueType::COMPUTE_AQL) {
                let dies = u64::from(gpu.properties.num_xcc.max(1));
                let all = ((area.cwsr_size + area.debug_size) * dies).next_multiple_of(4096);
                block.eop_buffer_address = self.piece(0x1000);
                block.eop_buffer_size = 0x1000;
                block.ctx_save_restore_address = self.piece(all);
                block.ctx_save_restore_size = area.cwsr_size as u32;
                block.ctl_stack_size = area.ctl_stack_size as u32;
            }
            block
        }

        fn create(&self, block: &CreateQueue) -> Result<(u32, u64), Errno> {
            let mut block = *block;
            ask(&self.sim, &self.bound.kfd, &mut block)?;
            Ok((block.queue_id, block.doorbell_offset))
        }

        fn add(&mut self, queue_type: QueueType) -> Result<(u32, u64), Errno> {
            let block = self.request(queue_type);
            self.create(&block)
        }

        fn destroy(&self, queue_id: u32) -> Result<u32, Errno> {
            ask(&self.sim, &self.bound.kfd, &mut DestroyQueue { queue_id, pad: 0 })
        }

        fn update(&self, block: &UpdateQueue) -> Result<u32, Errno> {
            ask(&self.sim, &self.bound.kfd, &mut { *block })
        }
    }

    const COMPUTE: QueueType = QueueType::COMPUTE;
    const AQL: QueueType = QueueType::COMPUTE_AQL;
    const SDMA: QueueType = QueueType::SDMA;
    const ALL: [QueueType; 3] = [COMPUTE, AQL, SDMA];

    fn changed(block: &CreateQueue, change: impl FnOnce(&mut CreateQueue)) -> CreateQueue {
        let mut block = *block;
        change(&mut block);
        block
    }

    #[test]
    fn queues_of_every_kind_on_every_machine() {
        for name in Profile::names().filter(|name| *name != "cpu-only") {
            for kernel in ["6.1", "6.12", "7.2"] {
                let mut bench = Bench::new(&format!("{name}:gpus=1,kernel={kernel}"));
                for (number, queue_type) in (0..).zip(ALL) {
                    let made = bench.add(queue_type).unwrap();
                    assert_eq!(made.0, number, "{name} {kernel}");
                    assert_eq!(made.1 >> 62, 3);
                    assert_eq!((made.1 >> 46) as u32 & 0xffff, gpu_id(&bench.sim, 0));
                }
                assert_eq!(bench.sim.machine().leftovers().queues.len(), 3);
                assert_eq!(bench.destroy(1), Ok(0));
                assert_eq!(bench.destroy(1), Err(Errno::EINVAL));
                assert_eq!(bench.add(AQL).unwrap().0, 1, "the lowest number that is free");
                assert_eq!(broken(&bench.sim), []);
            }
        }
    }

    #[test]
    fn errors_come_in_order() {
        let kernel_address = 1 << 47;
        for (kernel, type_4) in [("6.1", Some(ENOTSUPP)), ("6.12", None), ("7.2", None)] {
            let mut bench = Bench::new(&format!("rx7900:kernel={kernel}"));
            let good = bench.request(AQL);
            let bad = CreateQueue {
                ring_base_address: kernel_address,
                write_pointer_address: kernel_address,
                ring_size: 0x1800,
                metadata_ring_size: 0x1800,
                gpu_id: 0,
                queue_type: QueueType(5),
                queue_percentage: 101,
                queue_priority: 16,
                ..CreateQueue::default()
            };
            let mut block = bad;
            let mut expect = |errno, fix: &dyn Fn(&mut CreateQueue)| {
                assert_eq!(bench.create(&block), Err(errno), "{kernel} {block:?}");
                fix(&mut block);
            };
            expect(Errno::EINVAL, &|block| block.queue_percentage = 100);
            expect(Errno::EINVAL, &|block| block.queue_priority = 15);
            expect(Errno::EFAULT, &|block| block.ring_base_address = 0);
            expect(Errno::EINVAL, &|block| block.ring_size = 0);
            if kernel == "7.2" {
                expect(Errno::EINVAL, &|block| block.metadata_ring_size = 0);
            }
            expect(Errno::EFAULT, &|block| block.write_pointer_address = 0);
            expect(ENOTSUPP, &|block| block.queue_type = AQL);
            expect(Errno::EINVAL, &|block| block.gpu_id = good.gpu_id);
            if kernel != "6.1" {
                // No buffers at address 0.
                expect(Errno::EINVAL, &|_| {});
            }
            let by_engine = changed(&good, |block| {
                block.queue_type = QueueType::SDMA_BY_ENG_ID;
                block.sdma_engine_id = 2;
            });
            assert_eq!(bench.create(&by_engine), Err(type_4.unwrap_or(Errno::EINVAL)));
            assert!(bench.create(&good).is_ok());
            assert_eq!(broken(&bench.sim), []);
        }
    }

    /// kernel-truth, "queue": what two kernels answered on a machine without a GPU.
    #[test]
    fn measured_answers() {
        for kernel in ["6.1", "6.12"] {
            let sim = boot(&format!("cpu-only:kernel={kernel}"));
            let device = kfd(&sim);
            let good = CreateQueue { ring_size: 4096, ..CreateQueue::default() };
            let create =
                |change: &dyn Fn(&mut CreateQueue)| ask(&sim, &device, &mut changed(&good, change));
            assert_eq!(create(&|_| {}), Err(Errno::EINVAL), "create_bad_gpu");
            assert_eq!(create(&|block| block.queue_percentage = 101), Err(Errno::EINVAL));
            assert_eq!(create(&|block| block.queue_priority = 16), Err(Errno::EINVAL));
            assert_eq!(create(&|block| block.ring_size = 4095), Err(Errno::EINVAL));
            let address = 0xffff_8000_0000_0000;
            assert_eq!(create(&|block| block.ring_base_address = address), Err(Errno::EFAULT));
            assert_eq!(create(&|block| block.read_pointer_address = address), Err(Errno::EFAULT));
            assert_eq!(create(&|block| block.write_pointer_address = address), Err(Errno::EFAULT));
            assert_eq!(create(&|block| block.queue_type = QueueType(99)), Err(ENOTSUPP));
            for queue_id in [0, 5000] {
                let mut block = DestroyQueue { queue_id, pad: 0 };
                assert_eq!(ask(&sim, &device, &mut block), Err(Errno::EINVAL));
            }
            assert_eq!(ask(&sim, &device, &mut UpdateQueue::default()), Err(Errno::EFAULT));
            let mut block = UpdateQueue { queue_percentage: 101, ..UpdateQueue::default() };
            assert_eq!(ask(&sim, &device, &mut block), Err(Errno::EINVAL));
            for (num_cu_mask, expected) in
                [(32, Errno::EFAULT), (31, Errno::EINVAL), (0, Errno::EINVAL)]
            {
                let mut block = SetCuMask { num_cu_mask, ..SetCuMask::default() };
                let answer = ask_with(&sim, &device, &mut block, &mut [Array::In(&[0; 4])]);
                assert_eq!(answer, Err(expected));
            }
            let mut block = GetQueueWaveState::default();
            assert_eq!(ask(&sim, &device, &mut block), Err(Errno::EFAULT));
            assert_eq!(ask(&sim, &device, &mut AllocQueueGws::default()), Err(Errno::EINVAL));
            assert_eq!(broken(&sim), []);
        }
    }

    #[test]
    fn a_queue_needs_a_vm() {
        let sim = boot("rx7900");
        let device = kfd(&sim);
        let mut block = CreateQueue { gpu_id: gpu_id(&sim, 0), ..CreateQueue::default() };
        assert_eq!(ask(&sim, &device, &mut block), Err(Errno::ESRCH));
    }

    #[test]
    fn the_die_is_in_the_percentage_since_6_12() {
        for (kernel, expected) in [("6.1", Err(Errno::EINVAL)), ("6.12", Ok(())), ("7.2", Ok(()))] {
            let mut bench = Bench::new(&format!("mi300x:gpus=1,kernel={kernel}"));
            let block = bench.request(COMPUTE);
            let block = changed(&block, |block| block.queue_percentage = 0x364);
            assert_eq!(bench.create(&block).map(|_| ()), expected, "{kernel}");
        }
    }

    /// Each buffer is one mapping of the one length, and in the GPU's own VM.
    #[test]
    fn buffers_are_mappings_of_their_own() {
        for kernel in ["6.12", "7.2"] {
            let mut bench = Bench::new(&format!("mi210x8:gpus=2,kernel={kernel}"));
            let good = bench.request(AQL);
            let two_pages = bench.piece(0x2000);
            let elsewhere = bench.buffer(1, 0x1000).1;
            let small = bench.piece(0x1000);
            let changes: &[&dyn Fn(&mut CreateQueue)] = &[
                &|block| block.write_pointer_address = two_pages,
                &|block| block.read_pointer_address = two_pages + 0x1000,
                &|block| block.read_pointer_address = 0,
                &|block| block.write_pointer_address = elsewhere,
                &|block| block.ring_size = 0x2000,
                &|block| block.ring_base_address = two_pages,
                &|block| block.ring_base_address = two_pages + 0x1000,
                &|block| block.ring_base_address = 0,
                &|block| block.eop_buffer_size = 0xfff,
                &|block| block.eop_buffer_size = 0x2000,
                &|block| block.eop_buffer_address = two_pages,
                &|block| block.ctl_stack_size -= 1,
                &|block| block.ctl_stack_size += 0x1000,
                &|block| block.ctx_save_restore_size -= 1,
                &|block| block.ctx_save_restore_size += 0x1000,
                &|block| block.ctx_save_restore_address = small,
            ];
            for (number, change) in changes.iter().enumerate() {
                let block = changed(&good, change);
                assert_eq!(bench.create(&block), Err(Errno::EINVAL), "{kernel}, {number}");
            }
            // None of them left anything in use.
            let shared =
                changed(&good, |block| block.read_pointer_address = block.write_pointer_address);
            for block in [&good, &shared, &changed(&good, |block| block.eop_buffer_address = 0)] {
                let id = bench.create(block).unwrap().0;
                assert_eq!(bench.destroy(id), Ok(0));
            }
            assert_eq!(broken(&bench.sim), []);
        }
        // The old driver looks at none of them.
        let mut bench = Bench::new("mi210:kernel=6.1");
        let block = CreateQueue { queue_type: AQL, ..bench.request(SDMA) };
        assert!(bench.create(&block).is_ok());
    }

    #[test]
    fn a_ring_below_a_page() {
        for (kernel, both) in [("6.12", true), ("7.2", false)] {
            let mut bench = Bench::new(&format!("mi210:kernel={kernel}"));
            let two_pages = bench.piece(0x2000);
            let short = bench.request(SDMA);
            let short = changed(&short, |block| block.ring_size = 0x400);
            assert!(bench.create(&short).is_ok());
            let in_two = changed(&short, |block| block.ring_base_address = two_pages);
            assert_eq!(bench.create(&in_two).is_ok(), both, "{kernel}");
        }
    }

    #[test]
    fn the_metadata_ring_is_behind_the_ring_of_aql() {
        let mut bench = Bench::new("rx7900:kernel=7.2");
        let long = bench.piece(0x3000);
        for (queue_type, expected) in [(AQL, true), (COMPUTE, false), (SDMA, false)] {
            let block = bench.request(queue_type);
            let block = changed(&block, |block| {
                block.ring_base_address = long;
                block.metadata_ring_size = 0x2000;
            });
            assert_eq!(bench.create(&block).is_ok(), expected, "{queue_type:?}");
        }
    }

    #[test]
    fn memory_in_use_is_not_unmapped() {
        for (kernel, expected) in [("6.1", Ok(0)), ("6.12", Err(Errno::EBUSY))] {
            let mut bench = Bench::new(&format!("mi210:kernel={kernel}"));
            let id = gpu_id(&bench.sim, 0);
            let (pointers, at) = bench.buffer(0, 0x1000);
            let (ring, ring_at) = bench.buffer(0, 0x1000);
            let block = CreateQueue {
                write_pointer_address: at,
                read_pointer_address: at + 8,
                ring_base_address: ring_at,
                ..bench.request(SDMA)
            };
            let (queue, _) = bench.create(&block).unwrap();
            for handle in [pointers, ring] {
                assert_eq!(unmap(&bench.sim, &bench.bound.kfd, handle, &[id]), expected);
            }
            if expected == Ok(0) {
                continue;
            }
            assert_eq!(free(&bench.sim, &bench.bound.kfd, ring), Err(Errno::EBUSY));
            // Another queue with the same pointers keeps them.
            let other = CreateQueue { ring_base_address: bench.piece(0x1000), ..block };
            let (other, _) = bench.create(&other).unwrap();
            assert_eq!(bench.destroy(queue), Ok(0));
            assert_eq!(unmap(&bench.sim, &bench.bound.kfd, ring, &[id]), Ok(0));
            assert_eq!(unmap(&bench.sim, &bench.bound.kfd, pointers, &[id]), Err(Errno::EBUSY));
            assert_eq!(bench.destroy(other), Ok(0));
            assert_eq!(unmap(&bench.sim, &bench.bound.kfd, pointers, &[id]), Ok(0));
        }
    }

    #[test]
    fn save_areas_are_as_large_as_the_library_thinks() {
        for name in Profile::names() {
            for text in [format!("{name}:kernel=6.12"), format!("{name}:kernel=7.2")] {
                let profile = Profile::parse(&text).unwrap();
                for (_, gpu) in profile.topology.gpus() {
                    let properties = &gpu.properties;
                    let node = Node {
                        gfx_version: GfxVersion::from_target_version(properties.gfx_target_version),
                        simd_count: properties.simd_count,
                        simd_per_cu: properties.simd_per_cu,
                        num_xcc: properties.num_xcc,
                        shader_engines: properties.array_count / properties.simd_arrays_per_engine,
                        lds_size_in_kb: properties.lds_size_in_kb,
                        ..Node::default()
                    };
                    let area = properties.save_area(profile.kernel.has_keys_of_7_2());
                    let theirs = sizes::SaveArea::by_formula(&node).unwrap();
                    assert_eq!(u64::from(theirs.per_die), area.cwsr_size, "{text}");
                    assert_eq!(u64::from(theirs.control_stack), area.ctl_stack_size, "{text}");
                    assert_eq!(u64::from(theirs.debug_per_die), area.debug_size, "{text}");
                    let dies = u64::from(properties.num_xcc.max(1));
                    let all = ((area.cwsr_size + area.debug_size) * dies).next_multiple_of(4096);
                    let page = NonZeroU32::new(4096).unwrap();
                    assert_eq!(theirs.mapping_bytes(page), all, "{text}");
                    for queue_type in [COMPUTE, AQL] {
                        let bytes = sizes::end_of_pipe_bytes(node.gfx_version, queue_type);
                        assert!(bytes == 0 || bytes >= properties.least_eop_size(), "{text}");
                    }
                }
            }
        }
    }

    #[test]
    fn a_save_area_in_svm_ranges() {
        const AT: u64 = 0x7000_0000;
        for (profile, possible) in [("mi210:svm=1", true), ("mi210", false)] {
            let mut bench = Bench::new(profile);
            let block = bench.request(AQL);
            let area = bench.sim.machine().topology();
            let properties = area.gpus().next().unwrap().1.properties;
            let sizes = properties.save_area(false);
            let length = (sizes.cwsr_size + sizes.debug_size).next_multiple_of(4096);
            map_memory(&bench.sim, AT, length as usize);
            let block = changed(&block, |block| block.ctx_save_restore_address = AT);
            assert_eq!(bench.create(&block), Err(Errno::EINVAL), "no ranges");
            if !possible {
                continue;
            }
            let id = gpu_id(&bench.sim, 0);
            let set = |length, attributes: &[(u32, u32)]| {
                assert_eq!(set_svm(&bench.sim, &bench.bound.kfd, AT, length, attributes), Ok(0));
                bench.create(&block)
            };
            assert_eq!(set(length, &[(2, id)]), Err(Errno::EINVAL), "not always mapped");
            assert_eq!(set(length - 4096, &[(5, 1 << 6)]), Err(Errno::EINVAL), "not all of it");
            assert_eq!(set(length, &[(5, 1 << 6), (4, id)]), Err(Errno::EINVAL), "no access");
            let (queue, _) = set(length, &[(3, id)]).unwrap();
            assert_eq!(broken(&bench.sim), []);
            bench.sim.unmap(AT as usize, 4096).unwrap();
            assert_eq!(broken(&bench.sim), [Rule::QueueMemoryUnmapped]);
            assert_eq!(bench.destroy(queue), Ok(0));
            bench.sim.unmap(AT as usize, 0x2000).unwrap();
            assert_eq!(broken(&bench.sim), []);
        }
    }

    #[test]
    fn the_write_pointer_is_the_firmwares_on_gfx11() {
        const AT: u64 = 0x7000_0000;
        for (profile, user, other) in [
            ("rx7900:gpus=2", Err(Errno::EPERM), Err(Errno::EINVAL)),
            ("rx6800:gpus=2", Ok(()), Ok(())),
        ] {
            let mut bench = Bench::new(profile);
            map_memory(&bench.sim, AT, 0x1000);
            let user_va = 0x4000_0000;
            let handle = alloc_user(&bench.sim, &bench.bound.kfd, user_va, AT, 0x1000).unwrap();
            let id = gpu_id(&bench.sim, 0);
            assert_eq!(map(&bench.sim, &bench.bound.kfd, handle, &[id]), Ok(0));
            let (foreign, foreign_at) = bench.buffer(1, 0x1000);
            assert_eq!(map(&bench.sim, &bench.bound.kfd, foreign, &[id]), Ok(0));
            let good = bench.request(SDMA);
            for (address, expected) in [(user_va, user), (foreign_at, other)] {
                let block = changed(&good, |block| block.write_pointer_address = address);
                assert_eq!(bench.create(&block).map(|_| ()), expected, "{profile}");
            }
            // The read pointer and the ring may be.
            let block = changed(&good, |block| block.read_pointer_address = user_va);
            assert!(bench.create(&block).is_ok());
        }
    }

    #[test]
    fn doorbells_of_the_command_processor_are_counted_up() {
        let mut bench = Bench::new("rx7900");
        let low = |made: (u32, u64)| made.1 & 0x3fff_ffff;
        let offsets = [COMPUTE, AQL, AQL].map(|kind| low(bench.add(kind).unwrap()));
        assert_eq!(offsets, [0, 8, 16]);
        assert_eq!(bench.destroy(1), Ok(0));
        assert_eq!(low(bench.add(COMPUTE).unwrap()), 8);
    }

    /// Offsets in dwords of 8 bytes, in the order of creation.
    #[test]
    fn doorbells_of_copy_engines_are_fixed() {
        for (profile, queue_type, expected) in [
            // Two engines of eight queues.
            ("mi50", SDMA, [0x100, 0x10a, 0x300, 0x30a, 0x101]),
            ("rx6800", SDMA, [0x100, 0x10a, 0x114, 0x11e, 0x300]),
            // The first two queues of each engine are the driver's.
            ("rx7900", SDMA, [0x101, 0x10b, 0x301, 0x30b, 0x102]),
            ("mi210", SDMA, [0x100, 0x10a, 0x300, 0x30a, 0x101]),
            ("mi210", QueueType::SDMA_XGMI, [0x114, 0x11e, 0x128, 0x314, 0x31e]),
            // Ranges begin at a multiple of four.
            ("mi300x:gpus=1", SDMA, [0x100, 0x10c, 0x300, 0x30c, 0x101]),
            ("mi300x:gpus=1", QueueType::SDMA_XGMI, [0x114, 0x120, 0x128, 0x134, 0x13c]),
        ] {
            let mut bench = Bench::new(profile);
            let offsets = [(); 5].map(|()| bench.add(queue_type).unwrap().1 & 0x3fff);
            assert_eq!(offsets.map(|offset| offset / 8), expected, "{profile}");
        }
        let sim = boot("mi300x:gpus=1,cpx");
        let (id, engines) = {
            let topology = sim.machine().topology();
            let gpu = topology.gpus().nth(1).unwrap().1.clone();
            let p = gpu.properties;
            (gpu.id, p.num_sdma_engines + p.num_sdma_xgmi_engines)
        };
        assert_eq!(engines, 2);
        let mut bench = Bench { bound: bind(&sim), sim, next: VA };
        let pieces = [(); 3].map(|()| bench.buffer(1, 0x1000).1);
        let block = CreateQueue {
            ring_base_address: pieces[0],
            write_pointer_address: pieces[1],
            read_pointer_address: pieces[2],
            ring_size: 0x1000,
            gpu_id: id,
            queue_type: SDMA,
            ..CreateQueue::default()
        };
        // The second partition has the engines after the first one's.
        assert_eq!(bench.create(&block).unwrap().1 & 0x3fff, 0x114 * 8);
    }

    #[test]
    fn queues_for_copies_end_with_the_engines() {
        let mut bench = Bench::new("rx7900");
        assert_eq!(bench.add(QueueType::SDMA_XGMI), Err(Errno::ENOMEM));
        let by_engine = |bench: &mut Bench, engine| {
            let block = bench.request(QueueType::SDMA_BY_ENG_ID);
            bench.create(&changed(&block, |block| block.sdma_engine_id = engine))
        };
        for _ in 0..6 {
            assert!(by_engine(&mut bench, 1).is_ok());
        }
        assert_eq!(by_engine(&mut bench, 1), Err(Errno::ENOMEM));
        for _ in 0..6 {
            assert!(bench.add(SDMA).is_ok());
        }
        assert_eq!(bench.add(SDMA), Err(Errno::ENOMEM));
        assert_eq!(bench.destroy(3), Ok(0));
        assert_eq!(by_engine(&mut bench, 0), Err(Errno::ENOMEM));
        assert!(by_engine(&mut bench, 1).is_ok());
        // Queues of other processes take slots, too.
        let other = bench.sim.machine().spawn(crate::AddressesOnly::new());
        other.process().set_memory_is_complete(true);
        let mut other = Bench { bound: bind(&other), sim: other, next: VA };
        assert_eq!(other.add(SDMA), Err(Errno::ENOMEM));
        bench.sim.process().exit();
        assert!(other.add(SDMA).is_ok());
    }

    #[test]
    fn a_gpu_has_a_limit_for_each_object() {
        for (profile, limit) in [("rx7900", 127), ("mi300x:gpus=1", 255)] {
            let mut bench = Bench::new(profile);
            let block = bench.request(AQL);
            // Nothing forbids to use buffers twice.
            let made: Vec<_> = (0..limit).map(|_| bench.create(&block)).collect();
            assert!(made.iter().all(Result::is_ok), "{profile}");
            assert_eq!(bench.create(&block), Err(Errno::ENOSPC), "{profile}");
            // Vega's and later chips keep a band to themselves, from 0x100 on.
            assert_eq!(made.last().unwrap().unwrap().1 & 0x3fff, (limit - 1) * 8);
        }
    }

    #[test]
    fn updates_change_all_four_values() {
        let mut bench = Bench::new("mi210");
        let (queue_id, _) = bench.add(AQL).unwrap();
        let ring = bench.piece(0x4000);
        let good = UpdateQueue {
            ring_base_address: ring,
            queue_id,
            ring_size: 0x4000,
            queue_percentage: 0,
            queue_priority: 15,
        };
        let expect = |change: &dyn Fn(&mut UpdateQueue), expected| {
            let mut block = good;
            change(&mut block);
            assert_eq!(bench.update(&block), expected, "{block:?}");
        };
        expect(&|block| block.queue_percentage = 101, Err(Errno::EINVAL));
        expect(&|block| block.queue_priority = 16, Err(Errno::EINVAL));
        expect(&|block| block.ring_base_address = 1 << 47, Err(Errno::EFAULT));
        expect(&|block| block.ring_size = 0x3000, Err(Errno::EINVAL));
        expect(&|block| block.queue_id = 9, Err(Errno::EFAULT));
        expect(&|block| block.ring_size = 0x2000, Err(Errno::EFAULT));
        expect(&|block| block.ring_base_address += 0x1000, Err(Errno::EFAULT));
        expect(&|_| {}, Ok(0));
        expect(&|block| block.ring_base_address = 0, Ok(0));
        assert_eq!(bench.sim.machine().leftovers().queues[0].split(": ").last().unwrap(), {
            "AQL queue with a ring of 0x4000 bytes"
        });
    }

    #[test]
    fn the_old_ring_is_free_after_an_update() {
        let mut bench = Bench::new("mi210");
        let id = gpu_id(&bench.sim, 0);
        let [(old, old_at), (new, new_at)] = [(); 2].map(|()| bench.buffer(0, 0x1000));
        let block = bench.request(SDMA);
        let block = changed(&block, |block| block.ring_base_address = old_at);
        let (queue_id, _) = bench.create(&block).unwrap();
        let update = UpdateQueue {
            ring_base_address: new_at,
            queue_id,
            ring_size: 0x1000,
            queue_percentage: 100,
            queue_priority: 0,
        };
        assert_eq!(bench.update(&update), Ok(0));
        assert_eq!(unmap(&bench.sim, &bench.bound.kfd, old, &[id]), Ok(0));
        assert_eq!(unmap(&bench.sim, &bench.bound.kfd, new, &[id]), Err(Errno::EBUSY));
        assert_eq!(bench.destroy(queue_id), Ok(0));
        assert_eq!(unmap(&bench.sim, &bench.bound.kfd, new, &[id]), Ok(0));
    }

    #[test]
    fn masks_of_compute_units() {
        for (profile, halves) in [("mi210", Ok(0)), ("rx7900", Err(Errno::EINVAL))] {
            let mut bench = Bench::new(profile);
            let (queue_id, _) = bench.add(AQL).unwrap();
            let mask = |queue_id, num_cu_mask, bytes: Option<&[u8]>| {
                let mut block = SetCuMask { queue_id, num_cu_mask, ..SetCuMask::default() };
                let array = bytes.map_or(Array::Absent, Array::In);
                ask_with(&bench.sim, &bench.bound.kfd, &mut block, &mut [array])
            };
            let all = [0xff; 256];
            assert_eq!(mask(queue_id, 0, Some(&all)), Err(Errno::EINVAL));
            assert_eq!(mask(queue_id, 33, Some(&all)), Err(Errno::EINVAL));
            assert_eq!(mask(9, 32, None), Err(Errno::EFAULT));
            assert_eq!(mask(9, 32, Some(&all)), Err(Errno::EFAULT));
            assert_eq!(mask(queue_id, 64, Some(&all)), Ok(0));
            // 128 bytes are looked at.
            assert_eq!(mask(queue_id, 2048, Some(&all[..128])), Ok(0));
            assert_eq!(mask(queue_id, 32, Some(&[0b0110, 0, 0, 0])), halves, "{profile}");
            assert_eq!(broken(&bench.sim), []);
        }
    }

    #[test]
    fn the_state_of_waves() {
        let mut bench = Bench::new("mi210");
        let (compute, _) = bench.add(AQL).unwrap();
        let (copy, _) = bench.add(SDMA).unwrap();
        map_memory(&bench.sim, 0x7000_0000, 0x1000);
        let state = |queue_id, ctl_stack_address| {
            let mut block = GetQueueWaveState {
                queue_id,
                ctl_stack_address,
                ctl_stack_used_size: 7,
                save_area_used_size: 7,
                ..Default::default()
            };
            let answer = ask(&bench.sim, &bench.bound.kfd, &mut block);
            answer.map(|_| (block.ctl_stack_used_size, block.save_area_used_size))
        };
        assert_eq!(state(9, 0x7000_0000), Err(Errno::EFAULT));
        assert_eq!(state(compute, 0x7000_0000), Err(Errno::EINVAL), "active");
        for queue_id in [compute, copy] {
            let block = UpdateQueue { queue_id, ring_size: 0x1000, ..UpdateQueue::default() };
            assert_eq!(bench.update(&block), Ok(0));
        }
        assert_eq!(state(compute, 0x7000_0000), Ok((0, 0)));
        assert_eq!(state(compute, 0), Err(Errno::EFAULT));
        assert_eq!(state(compute, 0x7000_1000), Err(Errno::EFAULT), "no memory");
        assert_eq!(state(copy, 0x7000_0000), Err(Errno::EINVAL));
    }

    #[test]
    fn one_queue_of_an_object_has_the_counters() {
        let mut bench = Bench::new("mi210");
        let [a, b] = [(); 2].map(|()| bench.add(AQL).unwrap().0);
        let gws = |queue_id, num_gws| {
            let mut block = AllocQueueGws { queue_id, num_gws, first_gws: 7, pad: 0 };
            ask(&bench.sim, &bench.bound.kfd, &mut block).map(|_| block.first_gws)
        };
        assert_eq!(gws(9, 1), Err(Errno::EINVAL));
        assert_eq!(gws(a, 0), Err(Errno::EINVAL));
        assert_eq!(gws(a, 1), Ok(0));
        assert_eq!([gws(a, 1), gws(b, 64)], [Err(Errno::EBUSY); 2]);
        assert_eq!(gws(a, 0), Ok(0));
        assert_eq!(gws(b, 64), Ok(0));
        assert_eq!(bench.destroy(b), Ok(0));
        assert_eq!(gws(a, 64), Ok(0));
        let mut bench = Bench::new("rx7900");
        let (queue_id, _) = bench.add(AQL).unwrap();
        let mut block = AllocQueueGws { queue_id, num_gws: 1, ..AllocQueueGws::default() };
        assert_eq!(ask(&bench.sim, &bench.bound.kfd, &mut block), Err(Errno::ENODEV));
    }

    #[test]
    fn queues_keep_the_runtime_and_xnack_as_they_are() {
        let mut bench = Bench::new("mi210:svm=1");
        let (queue, _) = bench.add(SDMA).unwrap();
        let runtime = || {
            let mode_mask = RuntimeEnableMode::ENABLE;
            let mut block = RuntimeEnable { mode_mask, ..RuntimeEnable::default() };
            ask(&bench.sim, &bench.bound.kfd, &mut block)
        };
        let xnack =
            |xnack_enabled| ask(&bench.sim, &bench.bound.kfd, &mut SetXnackMode { xnack_enabled });
        assert_eq!(runtime(), Err(Errno::EEXIST));
        assert_eq!([xnack(0), xnack(-1)], [Err(Errno::EBUSY), Ok(0)]);
        assert_eq!(bench.destroy(queue), Ok(0));
        assert_eq!([runtime(), xnack(1)], [Ok(0); 2]);
    }

    #[test]
    fn sysfs_tells_of_queues_until_the_process_ends() {
        let mut bench = Bench::new("mi210");
        let id = gpu_id(&bench.sim, 0);
        bench.add(AQL).unwrap();
        let (copy, _) = bench.add(SDMA).unwrap();
        bench.add(QueueType::SDMA_XGMI).unwrap();
        let pid = bench.sim.process_id();
        let read = |file: &str| {
            let path = format!("/sys/class/kfd/kfd/proc/{pid}/queues/{file}\0");
            let path = std::ffi::CStr::from_bytes_with_nul(path.as_bytes()).unwrap();
            let mut bytes = Vec::new();
            bench.sim.read_file(path, &mut bytes, 4096, EndOfFile::ShortRead)?;
            Ok(alloc::string::String::from_utf8(bytes).unwrap())
        };
        assert_eq!(read("0/size"), Ok("4096".into()));
        assert_eq!(read("0/gpuid"), Ok(format!("{id}")));
        let types = [0, 1, 2].map(|queue| read(&format!("{queue}/type")).unwrap());
        assert_eq!(types, ["0", "1", "4"]);
        assert_eq!(bench.destroy(copy), Ok(0));
        assert_eq!(read("1/type"), Err(Errno::ENOENT));
        let text = format!("{}", bench.sim.machine().leftovers());
        assert!(text.contains(", 2 queues, 1 open files\n"), "{text}");
        bench.sim.process().exit();
        assert_eq!(bench.sim.machine().leftovers().queues.len(), 0);
    }

    #[test]
    fn the_end_of_an_object_gives_its_buffers_free() {
        let sim = boot("rx7900:kernel=7.2");
        let mut bench = Bench { bound: bind(&sim), sim, next: VA };
        bench.add(AQL).unwrap();
        let Bench { sim, bound, .. } = bench;
        let machine = sim.machine().clone();
        sim.process().exit();
        drop(bound);
        assert_eq!(machine.leftovers(), crate::Leftovers::default());
    }

    #[test]
    fn all_doorbells_of_an_object_are_one_slice() {
        let mut bench = Bench::new("mi210x8:gpus=2");
        let (_, offset) = bench.add(SDMA).unwrap();
        let id = gpu_id(&bench.sim, 0);
        let mapping = |offset| MapDevice {
            placement: Placement::Anywhere,
            length: 8192,
            protection: Protection::READ | Protection::WRITE,
            offset,
        };
        let offset = offset & !0x3fff;
        assert!(Driver::map(&bench.sim, &bench.bound.kfd, mapping(offset)).is_ok());
        for _ in 0..2 {
            let kind = Flags::DOORBELL;
            let (handle, _) = alloc(&bench.sim, &bench.bound.kfd, 0, kind, 0, 8192).unwrap();
            assert_eq!(free(&bench.sim, &bench.bound.kfd, handle), Ok(0));
        }
        let memory = |gpu_id| {
            let state = bench.sim.machine().lock();
            state.objects.values().next().unwrap().gpu(gpu_id).unwrap().doorbells
        };
        assert!(memory(id).is_some());
        assert_eq!(memory(gpu_id(&bench.sim, 1)), None);
        assert_eq!(bench.sim.machine().leftovers().orphaned_bytes, 0);
        let _ = render(&bench.sim, 0);
    }

    /// Chips before gfx9: no offset in the slice, rings that are mapped twice.
    #[test]
    fn old_chips() {
        let mut profile = Profile::parse("mi50").unwrap();
        for gpu in profile.topology.nodes.iter_mut().filter_map(|node| node.gpu.as_mut()) {
            gpu.properties.gfx_target_version = 80_003;
        }
        let sim = boot_machine(&profile);
        let mut bench = Bench { bound: bind(&sim), sim, next: VA };
        let flags = Flags::GTT | Flags::AQL_QUEUE_MEM;
        let ring = 0x5000_0000;
        let (handle, _) = alloc(&bench.sim, &bench.bound.kfd, 0, flags, ring, 0x4000).unwrap();
        assert_eq!(map(&bench.sim, &bench.bound.kfd, handle, &[gpu_id(&bench.sim, 0)]), Ok(0));
        let block = bench.request(AQL);
        let block = changed(&block, |block| {
            (block.ring_base_address, block.ring_size) = (ring, 0x4000);
        });
        for number in 0..2 {
            let (id, offset) = bench.create(&block).unwrap();
            assert_eq!((id, offset & ((1 << 46) - 1)), (number, 0));
        }
        let block = changed(&block, |block| block.ring_size = 0x2000);
        assert_eq!(bench.create(&block), Err(Errno::EINVAL));
    }
}
