//! Attributes of shared virtual memory, retry faults, and what a GPU says of its
//! memory.

use alloc::vec::Vec;

use zerocopy::{FromBytes, FromZeros, IntoBytes};

use super::access::Access;
use super::gpu_set::GpuSet;
use super::register::Pages;
use crate::context::refused;
use crate::errno::Errno;
use crate::error::{self, Error, Operation, Status};
use crate::execute::execute_with_tail;
use crate::fallible::try_extend_from_slice;
use crate::process::GPUS_MAX;
use crate::seam::Platform;
use crate::uapi::gate::Feature;
use crate::uapi::kfd::{
    AvailableMemory, SetMemoryPolicy, SetXnackMode, Svm, SvmAttribute, SvmAttributeType,
    SvmLocation, SvmOp,
};

/// What stands for no node in the C interface (`INVALID_NODEID`).
const NO_NODE: u32 = u32::MAX;

/// The largest request that the library makes by itself.
#[derive(FromBytes, IntoBytes)]
#[repr(C)]
struct SetRequest {
    block: Svm,
    /// Flags to set and to clear, and the access of each GPU.
    attributes: [SvmAttribute; GPUS_MAX + 2],
}

fn block(pages: Pages, op: SvmOp, attributes: &[SvmAttribute]) -> Result<Svm, Error> {
    Ok(Svm {
        start_addr: pages.start,
        size: pages.length,
        op,
        nattr: u32::try_from(attributes.len()).map_err(|_| Error::argument(3))?,
    })
}

impl<P: Platform> Access<'_, P> {
    pub(super) fn svm(
        &self,
        pages: Pages,
        op: SvmOp,
        attributes: &[SvmAttribute],
    ) -> Result<Vec<u8>, Error> {
        let mut bytes = Vec::new();
        let size = size_of::<Svm>().saturating_add(attributes.as_bytes().len());
        bytes.try_reserve_exact(size)?;
        try_extend_from_slice(&mut bytes, block(pages, op, attributes)?.as_bytes())?;
        try_extend_from_slice(&mut bytes, attributes.as_bytes())?;
        self.send(pages, &mut bytes)?;
        Ok(bytes)
    }

    /// Sends a block with its attributes.
    fn send(&self, pages: Pages, bytes: &mut [u8]) -> Result<(), Error> {
        let object = error::Object::Address(pages.start);
        let kfd = self.channel.kfd()?;
        execute_with_tail::<P, Svm>(self.channel.platform, kfd, bytes)
            .map(drop)
            .map_err(|errno| refused::<Svm>(errno, Status::ERROR, object))
    }

    /// Sets flags of pages, and one kind of access for some GPUs, in one request.
    pub(super) fn svm_set(
        &self,
        pages: Pages,
        flags: &[SvmAttribute],
        gpus: GpuSet,
        access: Option<SvmAttributeType>,
    ) -> Result<(), Error> {
        let mut room = None;
        let ids = match access {
            Some(_) => self.memory.gpu_ids_of(gpus, &mut room),
            None => &[],
        };
        let accesses = ids.iter().map(|&gpu_id| SvmAttribute {
            r#type: access.unwrap_or(SvmAttributeType::NO_ACCESS),
            value: gpu_id,
        });
        // Without an allocation: what takes access back must not fail for want of one.
        let mut request = SetRequest::new_zeroed();
        let mut used = 0_usize;
        let attributes = flags.iter().copied().chain(accesses);
        for (to, attribute) in request.attributes.iter_mut().zip(attributes) {
            *to = attribute;
            used = used.saturating_add(1);
        }
        let used = request.attributes.get(..used).unwrap_or_default();
        let size = size_of::<Svm>().saturating_add(used.as_bytes().len());
        request.block = block(pages, SvmOp::SET_ATTR, used)?;
        self.send(pages, request.as_mut_bytes().get_mut(..size).unwrap_or_default())
    }

    /// Translates the nodes of attributes into the driver's words. In a question the
    /// value of a location says nothing: the answer takes its place.
    fn translated(
        &self,
        op: SvmOp,
        address: u64,
        size: u64,
        attributes: &[SvmAttribute],
    ) -> Result<(Pages, Vec<SvmAttribute>), Error> {
        self.needs(Feature::Svm)?;
        if self.context.is_secondary() {
            let object = error::Object::Nothing;
            return Err(Error::library(Status::NOT_SUPPORTED, Operation::LookUp, object));
        }
        let page = self.page();
        if address == 0 || address.checked_rem(page) != Some(0) {
            return Err(Error::argument(1));
        }
        if size == 0 || size.checked_rem(page) != Some(0) {
            return Err(Error::argument(2));
        }
        if attributes.len() > Svm::MAX_ATTRIBUTES {
            return Err(Error::argument(3));
        }
        let mut translated = Vec::new();
        translated.try_reserve_exact(attributes.len())?;
        try_extend_from_slice(&mut translated, attributes)?;
        for attribute in &mut translated {
            let node = attribute.value;
            let no_gpu = Error::library(
                Status::INVALID_NODE_UNIT,
                Operation::LookUp,
                error::Object::Node(node),
            );
            attribute.value = match attribute.r#type {
                SvmAttributeType::PREFERRED_LOC | SvmAttributeType::PREFETCH_LOC
                    if op == SvmOp::GET_ATTR =>
                {
                    0
                }
                SvmAttributeType::PREFERRED_LOC if node == NO_NODE => SvmLocation::UNDEFINED.0,
                SvmAttributeType::PREFERRED_LOC | SvmAttributeType::PREFETCH_LOC => {
                    self.machine(|machine| Ok(machine.node(node)?.gpu_id))?
                }
                SvmAttributeType::ACCESS
                | SvmAttributeType::ACCESS_IN_PLACE
                | SvmAttributeType::NO_ACCESS => {
                    let gpu_id = self.machine(|machine| Ok(machine.node(node)?.gpu_id))?;
                    if gpu_id == 0 {
                        return Err(no_gpu);
                    }
                    gpu_id
                }
                _ => node,
            };
        }
        Ok((Pages { start: address, length: size }, translated))
    }

    /// Sets attributes of a range.
    pub(crate) fn set_svm_attributes(
        &self,
        address: u64,
        size: u64,
        attributes: &[SvmAttribute],
    ) -> Result<(), Error> {
        let (pages, translated) = self.translated(SvmOp::SET_ATTR, address, size, attributes)?;
        self.svm(pages, SvmOp::SET_ATTR, &translated).map(drop)
    }

    /// Asks for attributes of a range; `attributes` is as it was after a failure.
    pub(crate) fn svm_attributes(
        &self,
        address: u64,
        size: u64,
        attributes: &mut [SvmAttribute],
    ) -> Result<(), Error> {
        let (pages, mut translated) =
            self.translated(SvmOp::GET_ATTR, address, size, attributes)?;
        let bytes = self.svm(pages, SvmOp::GET_ATTR, &translated)?;
        let tail = bytes.get(size_of::<Svm>()..).unwrap_or_default();
        for (attribute, bytes) in translated.iter_mut().zip(tail.chunks_exact(8)) {
            *attribute = SvmAttribute::read_from_bytes(bytes).unwrap_or(*attribute);
            let is_location = matches!(
                attribute.r#type,
                SvmAttributeType::PREFERRED_LOC | SvmAttributeType::PREFETCH_LOC
            );
            let is_access = matches!(
                attribute.r#type,
                SvmAttributeType::ACCESS
                    | SvmAttributeType::ACCESS_IN_PLACE
                    | SvmAttributeType::NO_ACCESS
            );
            attribute.value = match attribute.value {
                value if is_location && value == SvmLocation::UNDEFINED.0 => NO_NODE,
                0 if is_location => 0,
                gpu_id if is_location || is_access => {
                    let unknown = Error::library(
                        Status::INVALID_NODE_UNIT,
                        Operation::LookUp,
                        error::Object::Gpu(gpu_id),
                    );
                    self.machine(|m| m.snapshot().by_gpu_id(gpu_id).ok_or(unknown))?
                }
                value => value,
            };
        }
        for (to, from) in attributes.iter_mut().zip(translated) {
            *to = from;
        }
        Ok(())
    }

    /// Asks for the mode of retry faults, or sets it.
    fn xnack(&self, wanted: i32) -> Result<bool, Error> {
        self.needs(Feature::Svm)?;
        let mut block = SetXnackMode { xnack_enabled: wanted };
        let kfd = error::Object::Device(crate::seam::DeviceNode::Kfd);
        self.channel.execute(&mut block, &mut [], Status::ERROR, kfd).map_err(
            |error| match error.errno {
                Some(Errno::EPERM) => error.with_status(Status::NOT_SUPPORTED),
                _ => error,
            },
        )?;
        Ok(block.xnack_enabled != 0)
    }

    pub(crate) fn set_xnack_mode(&self, enabled: bool) -> Result<(), Error> {
        self.xnack(i32::from(enabled)).map(drop)
    }

    pub(crate) fn xnack_mode(&self) -> Result<bool, Error> {
        self.xnack(-1)
    }

    /// How many bytes of a GPU's memory are left.
    pub(crate) fn available(&self, node: u32) -> Result<u64, Error> {
        self.needs(Feature::AvailableMemory)?;
        let gpu_id = self.machine(|machine| machine.gpu(node).map(|gpu| gpu.gpu_id))?;
        let mut block = AvailableMemory { gpu_id, ..AvailableMemory::default() };
        self.channel.execute(&mut block, &mut [], Status::ERROR, error::Object::Gpu(gpu_id))?;
        Ok(block.available)
    }

    /// Sets the caching of a Kaveri's apertures.
    pub(crate) fn set_policy(
        &self,
        node: u32,
        policies: [u32; 2],
        base: u64,
        size: u64,
    ) -> Result<(), Error> {
        const KAVERI: (u8, u8) = (7, 0);
        let gpu = self.machine(|machine| {
            let gpu = machine.gpu(node)?;
            Ok((gpu.gpu_id, (gpu.gfx_version.major, gpu.gfx_version.minor)))
        });
        let (gpu_id, gfx) = gpu?;
        if gfx != KAVERI {
            return Err(Error::library(
                Status::NOT_IMPLEMENTED,
                Operation::LookUp,
                error::Object::Node(node),
            ));
        }
        // Cached is coherent, not cached is not: HSA_CACHING_TYPE 0 and 1.
        for (position, policy) in (2..).zip(policies) {
            if policy > 1 {
                return Err(Error::argument(position));
            }
        }
        let page = self.page();
        if base.checked_rem(page) != Some(0) {
            return Err(Error::argument(4));
        }
        if size.checked_rem(page) != Some(0) {
            return Err(Error::argument(5));
        }
        let [default, alternate] = policies;
        let mut block = SetMemoryPolicy {
            alternate_aperture_base: base,
            alternate_aperture_size: size,
            gpu_id,
            default_policy: crate::uapi::kfd::CachePolicy(default),
            alternate_policy: crate::uapi::kfd::CachePolicy(alternate),
            ..SetMemoryPolicy::default()
        };
        self.channel
            .execute(&mut block, &mut [], Status::ERROR, error::Object::Gpu(gpu_id))
            .map(drop)
    }
}
