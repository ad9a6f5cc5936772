//! What the books say of an address. No system call, and never behind one: the
//! lock of the books is not held across any.

use core::sync::atomic::Ordering;

use super::access::Access;
use super::books::Memory;
use super::gpu_set::GpuSet;
use super::object::{Kind, State};
use super::{PointerInfo, PointerKind};
use crate::error::{self, Error, Operation, Status};
use crate::process::Guard;
use crate::seam::{Os, Platform};

/// What the books say of an address, with sets of GPUs instead of arrays.
pub(super) struct Found {
    pub(super) info: PointerInfo<'static>,
    pub(super) registered: GpuSet,
    pub(super) mapped: GpuSet,
}

impl Memory {
    /// What an address belongs to.
    #[inline(always)]
    pub(super) fn look_up<O: Os>(&self, os: &O, address: u64) -> Option<Found> {
        let books = self.lock(os);
        let registered =
            if books.users.len() == 0 { None } else { books.registered_around(address) };
        let (key, object) = match registered {
            Some(place) => books.objects.at(place)?,
            None => books.objects.containing(address).map(|(_, key, object)| (key, object))?,
        };
        if object.state == State::Reserved || matches!(object.kind, Kind::ScratchPart) {
            return None;
        }
        let mut info = PointerInfo {
            kind: PointerKind::Allocated,
            node: object.node,
            flags: object.flags,
            cpu_address: key,
            gpu_address: key,
            size: object.size,
            registered: &[],
            mapped: &[],
            user_data: object.user_data,
        };
        match object.kind {
            Kind::Registered { address, size } => {
                let page_offset = address & (os.page_size() as u64).wrapping_sub(1);
                info.kind = PointerKind::RegisteredUser;
                info.cpu_address = address;
                info.gpu_address = key.saturating_add(page_offset);
                info.size = size;
            }
            Kind::Addresses => {
                info.kind = PointerKind::ReservedAddress;
                info.cpu_address = 0;
            }
            Kind::Graphics => {
                info.kind = PointerKind::RegisteredGraphics;
                info.cpu_address = 0;
            }
            // The CPU sees it where GPUs do, if at all: but the reference says 0.
            Kind::Shared => {
                info.kind = PointerKind::RegisteredShared;
                info.cpu_address = 0;
            }
            _ => {}
        }
        let registered = object.registered.unwrap_or(GpuSet::NONE);
        Some(Found { info, registered, mapped: object.mapped })
    }
}

impl<'a, P: Platform> Access<'a, P> {
    /// The public ids of some GPUs, in an array that lives as long as the context.
    #[inline(never)]
    fn interned(&self, gpus: GpuSet) -> Result<&'a [u32], Error> {
        let memory = self.memory;
        let generation = memory.generation.load(Ordering::Relaxed);
        if let Some(nodes) = memory.node_sets.find(gpus, generation) {
            return Ok(nodes);
        }
        let making = memory.making_sets.acquire(self.os());
        if memory.node_sets.find(gpus, generation).is_none() {
            self.machine(|machine| {
                let node = |place: u8| machine.gpus().get(usize::from(place))?.node;
                memory.node_sets.add(gpus, generation, gpus.places().filter_map(node))
            })?;
        }
        drop(making);
        Ok(memory.node_sets.find(gpus, generation).unwrap_or_default())
    }

    /// Attaches a number of the caller to what begins at an address.
    pub(crate) fn set_user_data(&self, address: u64, data: u64) -> Result<(), Error> {
        let unknown =
            || Error::library(Status::ERROR, Operation::LookUp, error::Object::Address(address));
        let page = self.page();
        let mut books = self.memory.lock(self.os());
        let place = match books.user_at(address, 0) {
            Some((_, super::books::User::Pinned(key))) => books.objects.find(key),
            _ => books.starting_at(address, page),
        };
        let place = place.filter(|&place| {
            books.objects.at(place).is_some_and(|(key, object)| {
                matches!(object.kind, Kind::Registered { .. }) || key == address
            })
        });
        let object = place.and_then(|place| books.objects.value_mut(place)).ok_or_else(unknown)?;
        object.user_data = data;
        Ok(())
    }
}

impl<P: Platform> Guard<'_, P> {
    /// The public ids of some GPUs, in an array that lives as long as the context.
    #[inline(always)]
    pub(super) fn nodes_of(&self, gpus: GpuSet) -> Result<&[u32], Error> {
        if gpus.is_empty() {
            return Ok(&[]);
        }
        let memory = self.memory_books();
        match memory.node_sets.first(gpus, memory.generation.load(Ordering::Relaxed)) {
            Some(nodes) => Ok(nodes),
            None => self.memory().interned(gpus),
        }
    }
}
