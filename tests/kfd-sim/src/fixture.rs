//! What the rule tests share: a process on a machine, and ways to ask it.

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::execute;
use hsakmt_core::seam::{Array, Call, DeviceNode, Driver, Mapping, Os, Placement, Protection};
use hsakmt_core::uapi::kfd::{
    AcquireVm, AllocMemoryFlags, AllocMemoryOfGpu, ExportDmabuf, FreeMemoryOfGpu, ImportDmabuf,
    MapMemoryToGpu, Svm, UnmapMemoryFromGpu,
};
use hsakmt_core::uapi::{Block, Request};

use crate::host::AddressesOnly;
use crate::machine::Machine;
use crate::platform::{SimDevice, SimPlatform};
use crate::profile::Profile;
use crate::violation::Rule;

pub(crate) type Sim = SimPlatform<AddressesOnly>;

/// A process on a fresh machine of this profile, without memory of the host.
pub(crate) fn boot(profile: &str) -> Sim {
    boot_machine(&Profile::parse(profile).unwrap())
}

pub(crate) fn boot_machine(profile: &Profile) -> Sim {
    let sim = Machine::new(profile).spawn(AddressesOnly::new());
    sim.process().set_memory_is_complete(true);
    sim
}

pub(crate) fn kfd(sim: &Sim) -> SimDevice {
    sim.open(DeviceNode::Kfd).unwrap()
}

/// The render node of the nth GPU.
pub(crate) fn render(sim: &Sim, gpu: usize) -> SimDevice {
    let minor = sim.machine().topology().gpus().nth(gpu).unwrap().1.render_minor();
    sim.open(DeviceNode::Render(minor)).unwrap()
}

/// The id of the nth GPU.
pub(crate) fn gpu_id(sim: &Sim, gpu: usize) -> u32 {
    sim.machine().topology().gpus().nth(gpu).unwrap().1.id
}

pub(crate) fn ask<B: Block>(sim: &Sim, device: &SimDevice, block: &mut B) -> Result<u32, Errno> {
    execute::execute(sim, device, block, &mut [])
}

pub(crate) fn ask_with<B: Block>(
    sim: &Sim,
    device: &SimDevice,
    block: &mut B,
    arrays: &mut [Array<'_>],
) -> Result<u32, Errno> {
    execute::execute(sim, device, block, arrays)
}

/// A request of this number and size, whatever the headers say; without arrays.
pub(crate) fn raw(
    sim: &Sim,
    device: &SimDevice,
    request: Request,
    block: &mut [u8],
) -> Result<u32, Errno> {
    let mut call = Call { request, name: "raw", fields: &[], block, slots: &[], arrays: &mut [] };
    sim.execute(device, &mut call)
}

/// ACQUIRE_VM with a device of this process.
pub(crate) fn acquire(
    sim: &Sim,
    kfd: &SimDevice,
    file: &SimDevice,
    gpu: usize,
) -> Result<u32, Errno> {
    acquire_number(sim, kfd, sim.token(file).0, gpu_id(sim, gpu))
}

pub(crate) fn acquire_number(
    sim: &Sim,
    kfd: &SimDevice,
    drm_fd: u32,
    gpu_id: u32,
) -> Result<u32, Errno> {
    ask(sim, kfd, &mut AcquireVm { drm_fd, gpu_id })
}

/// The rules broken since the last look.
pub(crate) fn broken(sim: &Sim) -> Vec<Rule> {
    sim.machine().take_violations().into_iter().map(|violation| violation.rule).collect()
}

/// The compute device and the bound render files of all GPUs.
pub(crate) struct Bound {
    pub kfd: SimDevice,
    pub files: Vec<SimDevice>,
}

/// Opens everything and acquires the VM of each GPU.
pub(crate) fn bind(sim: &Sim) -> Bound {
    let device = kfd(sim);
    let gpus = sim.machine().topology().gpus().count();
    let files: Vec<_> = (0..gpus).map(|gpu| render(sim, gpu)).collect();
    for (gpu, file) in files.iter().enumerate() {
        assert_eq!(acquire(sim, &device, file, gpu), Ok(0));
    }
    Bound { kfd: device, files }
}

/// The block of an allocation on the nth GPU.
pub(crate) fn wanted(
    sim: &Sim,
    gpu: usize,
    flags: AllocMemoryFlags,
    va_addr: u64,
    size: u64,
) -> AllocMemoryOfGpu {
    let gpu_id = gpu_id(sim, gpu);
    AllocMemoryOfGpu { va_addr, size, gpu_id, flags, ..Default::default() }
}

/// ALLOC_MEMORY_OF_GPU on the nth GPU; the handle and the offset.
pub(crate) fn alloc(
    sim: &Sim,
    kfd: &SimDevice,
    gpu: usize,
    flags: AllocMemoryFlags,
    va_addr: u64,
    size: u64,
) -> Result<(u64, u64), Errno> {
    let mut block = wanted(sim, gpu, flags, va_addr, size);
    ask(sim, kfd, &mut block)?;
    Ok((block.handle, block.mmap_offset))
}

pub(crate) fn free(sim: &Sim, kfd: &SimDevice, handle: u64) -> Result<u32, Errno> {
    ask(sim, kfd, &mut FreeMemoryOfGpu { handle })
}

/// EXPORT_DMABUF; the descriptor.
pub(crate) fn export(sim: &Sim, kfd: &SimDevice, handle: u64) -> Result<u32, Errno> {
    let mut block = ExportDmabuf { handle, ..Default::default() };
    ask(sim, kfd, &mut block).map(|_| block.dmabuf_fd)
}

/// IMPORT_DMABUF on the nth GPU; the handle.
pub(crate) fn import(
    sim: &Sim,
    kfd: &SimDevice,
    gpu: usize,
    va_addr: u64,
    dmabuf_fd: u32,
) -> Result<u64, Errno> {
    let gpu_id = gpu_id(sim, gpu);
    let mut block = ImportDmabuf { va_addr, gpu_id, dmabuf_fd, ..Default::default() };
    ask(sim, kfd, &mut block).map(|_| block.handle)
}

fn ids(gpu_ids: &[u32]) -> Vec<u8> {
    gpu_ids.iter().flat_map(|id| id.to_ne_bytes()).collect()
}

/// MAP_MEMORY_TO_GPU from the device after the first n_success on; the answer
/// with n_success.
pub(crate) fn map_from(
    sim: &Sim,
    kfd: &SimDevice,
    handle: u64,
    gpu_ids: &[u32],
    n_success: u32,
) -> (Result<u32, Errno>, u32) {
    let n_devices = gpu_ids.len() as u32;
    let mut block = MapMemoryToGpu { handle, n_devices, n_success, ..Default::default() };
    let answer = ask_with(sim, kfd, &mut block, &mut [Array::In(&ids(gpu_ids))]);
    (answer, block.n_success)
}

pub(crate) fn map(sim: &Sim, kfd: &SimDevice, handle: u64, gpu_ids: &[u32]) -> Result<u32, Errno> {
    map_from(sim, kfd, handle, gpu_ids, 0).0
}

pub(crate) fn unmap_from(
    sim: &Sim,
    kfd: &SimDevice,
    handle: u64,
    gpu_ids: &[u32],
    n_success: u32,
) -> (Result<u32, Errno>, u32) {
    let n_devices = gpu_ids.len() as u32;
    let mut block = UnmapMemoryFromGpu { handle, n_devices, n_success, ..Default::default() };
    let answer = ask_with(sim, kfd, &mut block, &mut [Array::In(&ids(gpu_ids))]);
    (answer, block.n_success)
}

pub(crate) fn unmap(
    sim: &Sim,
    kfd: &SimDevice,
    handle: u64,
    gpu_ids: &[u32],
) -> Result<u32, Errno> {
    unmap_from(sim, kfd, handle, gpu_ids, 0).0
}

/// SET_ATTR and GET_ATTR.
pub(crate) const SET: u32 = 0;
pub(crate) const GET: u32 = 1;

/// An SVM request with these attributes; the answer with the attributes after.
pub(crate) fn svm(
    sim: &Sim,
    kfd: &SimDevice,
    op: u32,
    start: u64,
    size: u64,
    attributes: &[(u32, u32)],
) -> (Result<u32, Errno>, Vec<(u32, u32)>) {
    let mut block = Vec::new();
    block.extend(start.to_ne_bytes());
    block.extend(size.to_ne_bytes());
    block.extend(op.to_ne_bytes());
    block.extend((attributes.len() as u32).to_ne_bytes());
    for (kind, value) in attributes {
        block.extend(kind.to_ne_bytes());
        block.extend(value.to_ne_bytes());
    }
    let answer = execute::execute_with_tail::<_, Svm>(sim, kfd, &mut block);
    let word = |bytes: &[u8]| u32::from_ne_bytes(bytes.try_into().unwrap());
    let after = block[24..].chunks(8).map(|pair| (word(&pair[..4]), word(&pair[4..]))).collect();
    (answer, after)
}

/// SET_ATTR.
pub(crate) fn set_svm(
    sim: &Sim,
    kfd: &SimDevice,
    start: u64,
    size: u64,
    attributes: &[(u32, u32)],
) -> Result<u32, Errno> {
    svm(sim, kfd, SET, start, size, attributes).0
}

/// Private memory that the CPU reads and writes.
pub(crate) fn anonymous(placement: Placement, length: usize) -> Mapping {
    let protection = Protection::READ | Protection::WRITE;
    Mapping { placement, length, protection, reserve: true, shared: false }
}

/// Maps such memory at an address, over what is there.
pub(crate) fn map_memory(sim: &Sim, address: u64, length: usize) {
    let mapping = anonymous(Placement::Replace(address as usize), length);
    assert_eq!(Os::map(sim, mapping), Ok(address as usize));
}

/// ALLOC_MEMORY_OF_GPU of user pages on the first GPU; the handle.
pub(crate) fn alloc_user(
    sim: &Sim,
    kfd: &SimDevice,
    va_addr: u64,
    source: u64,
    size: u64,
) -> Result<u64, Errno> {
    let flags = AllocMemoryFlags::USERPTR | AllocMemoryFlags::WRITABLE;
    let mut block = wanted(sim, 0, flags, va_addr, size);
    block.mmap_offset = source;
    ask(sim, kfd, &mut block).map(|_| block.handle)
}
