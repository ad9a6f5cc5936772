//! A context: everything that one user of one kernel process object has.

mod channel;
mod clocks;
mod machine;
mod options;
mod render;
mod render_files;
mod reserve;
mod tile;

pub use channel::Version;
pub use clocks::ClockCounters;
pub use machine::Machine;
pub(crate) use machine::no_such_node;
pub use options::{GpuSelection, Options, UdmabufPolicy};
pub use render_files::RenderFiles;
pub use tile::{TILE_MODES_MAX, TileConfig};

pub(crate) use channel::{Channel, refused};
use machine::MachineCell;

pub(crate) use clocks::clock_counters;
pub(crate) use reserve::reserve_within;
pub(crate) use tile::tile_config;

use crate::copy::Copiers;
use crate::errno::Errno;
use crate::error::{Error, Failures, Object, Operation, Status};
use crate::event::{Events, destroy_all};
use crate::execute::execute;
use crate::memory::{Access, Memory};
use crate::process::{Descriptors, Files, Opened};
use crate::queue::{Queues, end_all};
use crate::seam::{DeviceNode, Platform};
use crate::uapi::kfd::{CreateProcess, GetVersion};

/// Whose devices a context uses.
pub(crate) enum Kind<P: Platform> {
    /// The process's: they outlive the context.
    Primary,
    /// Its own: they are closed with it.
    Secondary(Files<P>),
}

/// The aggregate root of all state between an open and a close.
pub(crate) struct Context<P: Platform> {
    kind: Kind<P>,
    options: Options,
    version: Version,
    failures: Failures,
    machine: MachineCell,
    memory: Memory,
    events: Events,
    queues: Queues,
    copiers: Copiers,
}

impl<P: Platform> Context<P> {
    /// Opens the primary context over the devices that the process keeps.
    pub(crate) fn open_primary(
        platform: &P,
        files: &Files<P>,
        descriptors: &Descriptors,
        options: Options,
    ) -> Result<Context<P>, Error> {
        let version = match files.kfd() {
            Some(_) => {
                let channel = Channel::new(platform, files, descriptors);
                let mut block = GetVersion::default();
                channel.execute(
                    &mut block,
                    &mut [],
                    Status::ERROR,
                    Object::Device(DeviceNode::Kfd),
                )?;
                accept(block)?
            }
            None => {
                let opened = open_kfd(platform, descriptors)?;
                let version = version_of(platform, &opened)?;
                files.keep_kfd(opened);
                version
            }
        };
        let memory = Memory::new(0, &options)?;
        Ok(Context {
            kind: Kind::Primary,
            options,
            version,
            failures: Failures::new(),
            machine: MachineCell::default(),
            memory,
            events: Events::default(),
            queues: Queues::default(),
            copiers: Copiers::default(),
        })
    }

    /// Opens a secondary context in a slot of the process: a kernel process object
    /// of its own.
    pub(crate) fn open_secondary(
        platform: &P,
        descriptors: &Descriptors,
        options: Options,
        slot: usize,
    ) -> Result<Context<P>, Error> {
        let memory = Memory::new(slot, &options)?;
        let opened = open_kfd(platform, descriptors)?;
        let version = version_of(platform, &opened)?;
        let device = opened.device().ok_or(Error::not_open())?;
        execute(platform, device, &mut CreateProcess::default(), &mut []).map_err(|errno| {
            let status = match errno {
                Errno::ENOTTY | Errno::EINVAL => Status::NOT_SUPPORTED,
                Errno::ENOMEM => Status::NO_MEMORY,
                _ => Status::ERROR,
            };
            refused::<CreateProcess>(errno, status, Object::Device(DeviceNode::Kfd))
        })?;
        let files = Files::new();
        files.keep_kfd(opened);
        Ok(Context {
            kind: Kind::Secondary(files),
            options,
            version,
            failures: Failures::new(),
            machine: MachineCell::default(),
            memory,
            events: Events::default(),
            queues: Queues::default(),
            copiers: Copiers::default(),
        })
    }

    /// Where the context's calls go.
    #[inline]
    pub(crate) fn channel<'a>(
        &'a self,
        platform: &'a P,
        residue: &'a Files<P>,
        descriptors: &'a Descriptors,
    ) -> Channel<'a, P> {
        let files = match &self.kind {
            Kind::Primary => residue,
            Kind::Secondary(files) => files,
        };
        Channel::new(platform, files, descriptors)
    }

    pub(crate) fn version(&self) -> Version {
        self.version
    }

    pub(crate) fn options(&self) -> &Options {
        &self.options
    }

    pub(crate) fn machine(&self) -> &MachineCell {
        &self.machine
    }

    pub(crate) fn memory(&self) -> &Memory {
        &self.memory
    }

    pub(crate) fn events(&self) -> &Events {
        &self.events
    }

    pub(crate) fn queues(&self) -> &Queues {
        &self.queues
    }

    pub(crate) fn copiers(&self) -> &Copiers {
        &self.copiers
    }

    pub(crate) fn is_secondary(&self) -> bool {
        matches!(self.kind, Kind::Secondary(_))
    }

    pub(crate) fn failures(&self) -> &Failures {
        &self.failures
    }

    /// Makes every call that waits come back.
    pub(crate) fn shut_down(&self, platform: &P, residue: &Files<P>, descriptors: &Descriptors) {
        destroy_all(&self.channel(platform, residue, descriptors), &self.events);
    }

    /// Gives back all that is not the process's.
    pub(crate) fn close(self, platform: &P, residue: &Files<P>, descriptors: &Descriptors) {
        let channel = self.channel(platform, residue, descriptors);
        self.copiers.forget(channel.os());
        end_all(&channel, &self);
        destroy_all(&channel, &self.events);
        let memory = Access::new(channel, &self);
        memory.close_objects();
        memory.free_all();
        self.machine.release(channel);
        match self.kind {
            Kind::Primary => {}
            Kind::Secondary(files) => files.close(platform, descriptors),
        }
    }
}

/// The status of a refused open of `/dev/kfd`: callers of the reference expect
/// NOT_OPENED whatever the reason; only memory is told apart.
fn status_of_open(errno: Errno) -> Status {
    match errno {
        Errno::ENOMEM => Status::NO_MEMORY,
        _ => Status::KERNEL_IO_CHANNEL_NOT_OPENED,
    }
}

fn open_kfd<'a, P: Platform>(
    platform: &'a P,
    descriptors: &'a Descriptors,
) -> Result<Opened<'a, P>, Error> {
    Opened::open(platform, descriptors, DeviceNode::Kfd, status_of_open)
}

fn version_of<P: Platform>(platform: &P, opened: &Opened<'_, P>) -> Result<Version, Error> {
    let device = opened.device().ok_or(Error::not_open())?;
    let mut block = GetVersion::default();
    execute(platform, device, &mut block, &mut []).map_err(|errno| {
        refused::<GetVersion>(errno, Status::ERROR, Object::Device(DeviceNode::Kfd))
    })?;
    accept(block)
}

fn accept(block: GetVersion) -> Result<Version, Error> {
    if block.major_version != 1 {
        return Err(Error::library(
            Status::DRIVER_MISMATCH,
            Operation::CheckVersion,
            Object::Device(DeviceNode::Kfd),
        ));
    }
    Ok(Version { major: block.major_version, minor: block.minor_version })
}
