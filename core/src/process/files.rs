//! The open devices of one kernel process object, and how they are opened.

use alloc::vec::Vec;

use super::descriptors::Descriptors;
use super::mmio::{self, MmioPage};
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::event::EventPage;
use crate::lock::Lock;
use crate::queue::{Doorbells, abandon_doorbells};
use crate::seam::{DeviceNode, DeviceToken, Driver, Platform};
use crate::set_once::SetOnce;

/// A device of the platform's driver.
pub(crate) type Device<P> = <<P as Platform>::Driver as Driver>::Device;

/// The kernel's limit of GPUs in one process object (kfd_priv.h, MAX_GPU_INSTANCE).
pub(crate) const GPUS_MAX: usize = 64;

/// A device that was just opened: closed again when dropped, unless kept.
pub(crate) struct Opened<'a, P: Platform> {
    platform: &'a P,
    descriptors: &'a Descriptors,
    node: DeviceNode,
    device: Option<Device<P>>,
}

impl<'a, P: Platform> Opened<'a, P> {
    /// Opens a device and notes it in the list that a forked child closes.
    pub(crate) fn open(
        platform: &'a P,
        descriptors: &'a Descriptors,
        node: DeviceNode,
        status: impl FnOnce(Errno) -> Status,
    ) -> Result<Opened<'a, P>, Error> {
        let device = platform.driver().open(node).map_err(|errno| {
            Error::system(status(errno), Operation::OpenDevice, errno, Object::Device(node))
        })?;
        descriptors.note(node, platform.driver().token(&device))?;
        Ok(Opened { platform, descriptors, node, device: Some(device) })
    }

    /// Takes a device that is open already, and ours from here on.
    pub(crate) fn adopt(
        platform: &'a P,
        descriptors: &'a Descriptors,
        node: DeviceNode,
        token: DeviceToken,
    ) -> Result<Opened<'a, P>, Error> {
        let device = platform.driver().adopt(token);
        descriptors.note(node, token)?;
        Ok(Opened { platform, descriptors, node, device: Some(device) })
    }

    pub(crate) fn device(&self) -> Option<&Device<P>> {
        self.device.as_ref()
    }

    /// Gives the device to whoever keeps it open; it stays in the list.
    pub(crate) fn keep(mut self) -> Option<Device<P>> {
        self.device.take()
    }
}

impl<P: Platform> Drop for Opened<'_, P> {
    fn drop(&mut self) {
        if let Some(device) = self.device.take() {
            close(self.platform, self.descriptors, self.node, device);
        }
    }
}

fn close<P: Platform>(
    platform: &P,
    descriptors: &Descriptors,
    node: DeviceNode,
    device: Device<P>,
) {
    descriptors.strike(node, platform.driver().token(&device));
    drop(device);
}

/// A render node whose address space is bound to the process object, for good.
pub(crate) struct Render<P: Platform> {
    pub(crate) minor: u32,
    pub(crate) device: Device<P>,
}

/// The devices of one kernel process object: `/dev/kfd`, and one render node for
/// each GPU whose VM was acquired.
///
/// A bound render node stays open: the kernel keeps its file as the GPU's one
/// address space (kfd_process.c, `kfd_process_device_init_vm`), and no other
/// file could ever take its place.
pub(crate) struct Files<P: Platform> {
    kfd: SetOnce<Device<P>>,
    renders: [SetOnce<Render<P>>; GPUS_MAX],
    /// The register pages of the GPUs. Lock order: after a context's `acquiring`.
    mmio: Lock<Vec<MmioPage>>,
    /// The event page, which the driver takes once.
    pub(crate) events: EventPage,
    /// The doorbells of each GPU that had a queue. Held while they are mapped, once for
    /// each GPU. Lock order: before the books of queues.
    pub(crate) doorbells: Lock<Vec<Doorbells>>,
}

impl<P: Platform> Files<P> {
    pub(crate) const fn new() -> Files<P> {
        Files {
            kfd: SetOnce::new(),
            renders: [const { SetOnce::new() }; GPUS_MAX],
            mmio: Lock::new(Vec::new()),
            events: EventPage::new(),
            doorbells: Lock::new(Vec::new()),
        }
    }

    pub(crate) fn kfd(&self) -> Option<&Device<P>> {
        self.kfd.get()
    }

    /// Keeps an opened `/dev/kfd`. The caller holds the lock that orders opens.
    pub(crate) fn keep_kfd(&self, opened: Opened<'_, P>) {
        if self.kfd.get().is_none() {
            if let Some(device) = opened.keep() {
                let _ = self.kfd.set(device);
            }
        }
    }

    /// The bound render node with this minor.
    pub(crate) fn render(&self, minor: u32) -> Option<&Render<P>> {
        self.renders.iter().map_while(SetOnce::get).find(|render| render.minor == minor)
    }

    /// The place of the bound render node with this minor, which it keeps.
    pub(crate) fn render_place(&self, minor: u32) -> Option<u8> {
        let mut renders = (0_u8..).zip(self.renders.iter().map_while(SetOnce::get));
        renders.find(|(_, render)| render.minor == minor).map(|(place, _)| place)
    }

    /// The bound render node at a place.
    pub(crate) fn render_at(&self, place: u8) -> Option<&Render<P>> {
        self.renders.get(usize::from(place))?.get()
    }

    /// Keeps a render node whose VM was just bound. The caller holds the lock of
    /// the topology and has seen room (`has_room`).
    pub(crate) fn keep_render(&self, minor: u32, opened: Opened<'_, P>) {
        if let Some(cell) = self.renders.iter().find(|cell| cell.get().is_none()) {
            if let Some(device) = opened.keep() {
                let _ = cell.set(Render { minor, device });
            }
        }
    }

    /// The register pages of the process object's GPUs.
    pub(crate) fn mmio(&self) -> &Lock<Vec<MmioPage>> {
        &self.mmio
    }

    /// Whether another render node can be kept.
    pub(crate) fn has_room(&self) -> bool {
        self.renders.iter().any(|cell| cell.get().is_none())
    }

    /// Closes everything, render nodes first.
    pub(crate) fn close(mut self, platform: &P, descriptors: &Descriptors) {
        // A mapping made through the descriptor would keep the process object alive.
        mmio::abandon(platform, self.mmio.get_mut());
        self.events.abandon(platform);
        abandon_doorbells(platform, self.doorbells.get_mut());
        for cell in &mut self.renders {
            if let Some(render) = cell.take() {
                close(platform, descriptors, DeviceNode::Render(render.minor), render.device);
            }
        }
        if let Some(kfd) = self.kfd.take() {
            close(platform, descriptors, DeviceNode::Kfd, kfd);
        }
    }
}
