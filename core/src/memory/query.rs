//! What the books say of an address. No system call, and never behind one: the
//! lock of the books is not held across any.

use core::sync::atomic::Ordering;

use super::access::Access;
use super::gpu_set::GpuSet;
use super::object::{Kind, Object, State};
use super::{PointerInfo, PointerKind};
use crate::error::{self, Error, Operation, Status};
use crate::seam::Platform;

/// What an object says of itself, without arrays.
struct Found {
    info: PointerInfo<'static>,
    registered: GpuSet,
    mapped: GpuSet,
}

fn found(key: u64, object: &Object, page: u64) -> Found {
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
            info.kind = PointerKind::RegisteredUser;
            info.cpu_address = address;
            info.gpu_address = key.saturating_add(address & page.wrapping_sub(1));
            info.size = size;
        }
        Kind::Addresses => {
            info.kind = PointerKind::ReservedAddress;
            info.cpu_address = 0;
        }
        _ => {}
    }
    Found { info, registered: object.registered.unwrap_or(GpuSet::NONE), mapped: object.mapped }
}

impl<'a, P: Platform> Access<'a, P> {
    /// What an address belongs to.
    pub(crate) fn pointer_info(&self, address: u64) -> Result<PointerInfo<'a>, Error> {
        let page = self.page();
        let unknown =
            || Error::library(Status::ERROR, Operation::LookUp, error::Object::Address(address));
        let books = self.memory.lock(self.os());
        let object = books.around(address).and_then(|place| books.objects.at(place));
        let object = object.filter(|(_, object)| {
            object.state != State::Reserved && object.kind != Kind::ScratchPart
        });
        let Some((key, object)) = object else { return Err(unknown()) };
        let Found { info, registered, mapped } = found(key, object, page);
        drop(books);
        Ok(PointerInfo {
            registered: self.nodes_of(registered)?,
            mapped: self.nodes_of(mapped)?,
            ..info
        })
    }

    /// The public ids of some GPUs, in an array that lives as long as the context.
    #[inline]
    fn nodes_of(&self, gpus: GpuSet) -> Result<&'a [u32], Error> {
        if gpus.is_empty() { Ok(&[]) } else { self.interned(gpus) }
    }

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
