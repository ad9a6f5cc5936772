//! What the rule tests share: a process on a machine, and ways to ask it.

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::execute;
use hsakmt_core::seam::{Array, Call, DeviceNode, Driver};
use hsakmt_core::uapi::kfd::AcquireVm;
use hsakmt_core::uapi::{Block, Request};

use crate::host::AddressesOnly;
use crate::machine::Machine;
use crate::platform::{SimDevice, SimPlatform};
use crate::profile::Profile;
use crate::violation::Rule;

pub(crate) type Sim = SimPlatform<AddressesOnly>;

/// A process on a fresh machine of this profile.
pub(crate) fn boot(profile: &str) -> Sim {
    Machine::new(&Profile::parse(profile).unwrap()).spawn(AddressesOnly::new())
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
