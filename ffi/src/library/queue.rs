//! Queues: made, changed, ended.
//!
//! # Safety
//! Everything that the caller passes is touched only through `caller_memory`. Rings,
//! their pointers and trap handlers are numbers here and never followed.
#![allow(unsafe_code)]

use alloc::vec::Vec;
use core::ffi::c_void;

use hsakmt_core::error::{Error, Object, Status};
use hsakmt_core::process::Guard;
use hsakmt_core::queue::plan::{Ring, Share};
use hsakmt_core::queue::{AqlPointerAddresses, QueueOptions};
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::kfd::QueueType;

use super::receiver::Receiver;
use super::{Host, Library};
use crate::generation::address::address_of;
use crate::generation::internal::{QueueInfo, QueueResource};
use crate::generation::{Decode, Encode, Generation, caller_memory};
use crate::types::{HSA_QUEUE_PRIORITY, HSA_QUEUE_TYPE, HSA_QUEUEID, HSAKMT_STATUS, HsaEvent};

/// What the driver calls a type of queue. Others than these no driver makes.
fn queue_type(wanted: HSA_QUEUE_TYPE) -> Result<QueueType, Error> {
    Ok(match wanted {
        HSA_QUEUE_TYPE::COMPUTE => QueueType::COMPUTE,
        HSA_QUEUE_TYPE::SDMA => QueueType::SDMA,
        HSA_QUEUE_TYPE::COMPUTE_AQL => QueueType::COMPUTE_AQL,
        HSA_QUEUE_TYPE::SDMA_XGMI => QueueType::SDMA_XGMI,
        HSA_QUEUE_TYPE::SDMA_BY_ENG_ID => QueueType::SDMA_BY_ENG_ID,
        _ => return Err(Error::argument(2)),
    })
}

/// A share; `position` is that of the priority.
fn share(percentage: u32, priority: HSA_QUEUE_PRIORITY, position: u32) -> Result<Share, Error> {
    let priority = i32::try_from(priority.0).map_err(|_| Error::argument(position))?;
    Ok(Share { percentage, priority })
}

/// Which of the functions that make a queue: each has more arguments than the one before.
#[derive(Clone, Copy)]
enum Form {
    Plain,
    WithEngine,
    WithMetadata,
}

impl Form {
    /// Where the argument with this position in `hsaKmtCreateQueueV2` is here.
    fn position(self, full: u32) -> u32 {
        let engine = u32::from(full > 5);
        let metadata = u32::from(full > 8);
        full.saturating_sub(match self {
            Form::Plain => engine.saturating_add(metadata),
            Form::WithEngine => metadata,
            Form::WithMetadata => 0,
        })
    }

    fn placed(self, error: Error) -> Error {
        match error.object {
            Object::Argument(full) => {
                Error { object: Object::Argument(self.position(full)), ..error }
            }
            _ => error,
        }
    }
}

/// What all functions that make a queue are told.
#[derive(Clone, Copy)]
struct Wanted<R> {
    form: Form,
    node: u32,
    kind: HSA_QUEUE_TYPE,
    percentage: u32,
    priority: HSA_QUEUE_PRIORITY,
    sdma_engine: u32,
    ring: Ring,
    metadata_bytes: u64,
    event: *mut HsaEvent,
    resource: *mut R,
}

impl<H: Host> Library<H> {
    /// `hsaKmtCreateQueue`, `hsaKmtCreateQueueCtx`
    ///
    /// # Safety
    /// `event` is NULL or an event, `resource` NULL or readable and writable.
    #[allow(clippy::too_many_arguments, reason = "the C function has them")]
    pub unsafe fn create_queue(
        &self,
        receiver: Receiver,
        node: u32,
        kind: HSA_QUEUE_TYPE,
        percentage: u32,
        priority: HSA_QUEUE_PRIORITY,
        address: *mut c_void,
        bytes: u64,
        event: *mut HsaEvent,
        resource: *mut <H::Generation as Generation>::QueueResource,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if kind == HSA_QUEUE_TYPE::SDMA_BY_ENG_ID {
                // There is no argument for the engine.
                return Err(Error::argument(2).with_status(Status::ERROR));
            }
            let ring = Ring { address: address_of(address), bytes };
            let wanted = Wanted {
                form: Form::Plain,
                node,
                kind,
                percentage,
                priority,
                sdma_engine: 0,
                ring,
                metadata_bytes: 0,
                event,
                resource,
            };
            // SAFETY: the caller's promise.
            unsafe { create::<H>(guard, &wanted) }
        })
    }

    /// `hsaKmtCreateQueueExt`, `hsaKmtCreateQueueExtCtx`
    ///
    /// # Safety
    /// As [`Library::create_queue`].
    #[allow(clippy::too_many_arguments, reason = "the C function has them")]
    pub unsafe fn create_queue_on_engine(
        &self,
        receiver: Receiver,
        node: u32,
        kind: HSA_QUEUE_TYPE,
        percentage: u32,
        priority: HSA_QUEUE_PRIORITY,
        sdma_engine: u32,
        address: *mut c_void,
        bytes: u64,
        event: *mut HsaEvent,
        resource: *mut <H::Generation as Generation>::QueueResource,
    ) -> HSAKMT_STATUS {
        let wanted = Wanted {
            form: Form::WithEngine,
            node,
            kind,
            percentage,
            priority,
            sdma_engine,
            ring: Ring { address: address_of(address), bytes },
            metadata_bytes: 0,
            event,
            resource,
        };
        // SAFETY: the caller's promise.
        self.on(receiver, |guard| unsafe { create::<H>(guard, &wanted) })
    }

    /// `hsaKmtCreateQueueV2`, `hsaKmtCreateQueueV2Ctx`
    ///
    /// # Safety
    /// As [`Library::create_queue`].
    #[allow(clippy::too_many_arguments, reason = "the C function has them")]
    pub unsafe fn create_queue_with_metadata(
        &self,
        receiver: Receiver,
        node: u32,
        kind: HSA_QUEUE_TYPE,
        percentage: u32,
        priority: HSA_QUEUE_PRIORITY,
        sdma_engine: u32,
        address: *mut c_void,
        bytes: u64,
        metadata_bytes: u64,
        event: *mut HsaEvent,
        resource: *mut <H::Generation as Generation>::QueueResource,
    ) -> HSAKMT_STATUS {
        let wanted = Wanted {
            form: Form::WithMetadata,
            node,
            kind,
            percentage,
            priority,
            sdma_engine,
            ring: Ring { address: address_of(address), bytes },
            metadata_bytes,
            event,
            resource,
        };
        // SAFETY: the caller's promise.
        self.on(receiver, |guard| unsafe { create::<H>(guard, &wanted) })
    }

    /// `hsaKmtUpdateQueue`, `hsaKmtUpdateQueueCtx`. The event is not used.
    #[allow(clippy::too_many_arguments, reason = "the C function has them")]
    pub fn update_queue(
        &self,
        receiver: Receiver,
        queue: HSA_QUEUEID,
        percentage: u32,
        priority: HSA_QUEUE_PRIORITY,
        address: *mut c_void,
        bytes: u64,
        _event: *mut HsaEvent,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            let share = share(percentage, priority, 3)?;
            guard.update_queue(queue, Ring { address: address_of(address), bytes }, share)
        })
    }

    /// `hsaKmtDestroyQueue`, `hsaKmtDestroyQueueCtx`
    pub fn destroy_queue(&self, receiver: Receiver, queue: HSA_QUEUEID) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.destroy_queue(queue))
    }

    /// `hsaKmtSetQueueCUMask`, `hsaKmtSetQueueCUMaskCtx`
    ///
    /// # Safety
    /// `mask` is NULL or has as many bits to read.
    pub unsafe fn set_queue_cu_mask(
        &self,
        receiver: Receiver,
        queue: HSA_QUEUEID,
        bits: u32,
        mask: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if bits == 0 || bits & 31 != 0 {
                return Err(Error::argument(2));
            }
            if mask.is_null() {
                return Err(Error::argument(3));
            }
            // More than 1024 the driver cuts off, and nobody has.
            let count = (bits >> 5).min(32) as usize;
            let mut words = Vec::new();
            words.try_reserve_exact(count)?;
            words.resize(count, 0);
            // SAFETY: the caller's promise.
            unsafe { caller_memory::read_array(mask, &mut words) }
                .map_err(|_| Error::argument(3))?;
            guard.set_queue_cu_mask(queue, &words)
        })
    }

    /// `hsaKmtGetQueueInfo`, `hsaKmtGetQueueInfoCtx`
    ///
    /// # Safety
    /// `info` is NULL or writable.
    pub unsafe fn queue_info(
        &self,
        receiver: Receiver,
        queue: HSA_QUEUEID,
        info: *mut <H::Generation as Generation>::QueueInfo,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            if info.is_null() {
                return Err(Error::argument(2));
            }
            let found = guard.queue_info(queue)?;
            let internal = QueueInfo {
                queue_detail_error: 0,
                queue_type_extended: 0,
                num_cu_assigned: found.cu_mask_bits,
                cu_mask_info: found.cu_mask,
                user_context_save_area: found.wave_state,
                save_area_size_in_bytes: u64::from(found.wave_state_used),
                control_stack_top: found.control_stack_top,
                control_stack_used_in_bytes: u64::from(found.control_stack_used),
                save_area_header: found.save_area,
                save_area_alloc_size: found.save_area_bytes,
            };
            // SAFETY: the caller's promise.
            Ok(unsafe { caller_memory::write(info, Encode::encode(&internal)) }?)
        })
    }

    /// `hsaKmtSetTrapHandler`, `hsaKmtSetTrapHandlerCtx`. The driver asks for no sizes.
    pub fn set_trap_handler(
        &self,
        receiver: Receiver,
        node: u32,
        code: *mut c_void,
        _code_bytes: u64,
        data: *mut c_void,
        _data_bytes: u64,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| guard.set_trap_handler(node, address_of(code), address_of(data)))
    }

    /// `hsaKmtAllocQueueGWS`, `hsaKmtAllocQueueGWSCtx`
    ///
    /// # Safety
    /// `first` is NULL or writable.
    pub unsafe fn allocate_queue_gws(
        &self,
        receiver: Receiver,
        queue: HSA_QUEUEID,
        count: u32,
        first: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            let found = guard.allocate_queue_gws(queue, count)?;
            if !first.is_null() {
                // SAFETY: the caller's promise.
                unsafe { caller_memory::write(first, found) }?;
            }
            Ok(())
        })
    }

    /// `hsaKmtGetKernelQueueId`
    ///
    /// # Safety
    /// `id` is NULL or writable.
    pub unsafe fn kernel_queue_id(
        &self,
        receiver: Receiver,
        queue: HSA_QUEUEID,
        id: *mut u32,
    ) -> HSAKMT_STATUS {
        self.on(receiver, |guard| {
            let found = guard.kernel_queue_id(queue)?;
            // SAFETY: the caller's promise.
            unsafe { caller_memory::write(id, found) }.map_err(|_| Error::argument(2))
        })
    }
}

/// Makes a queue and tells what the caller needs of it.
///
/// # Safety
/// Pointers are NULL or what [`Library::create_queue`] says.
unsafe fn create<H: Host>(
    guard: &Guard<'_, impl Platform>,
    wanted: &Wanted<<H::Generation as Generation>::QueueResource>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    unsafe { create_in_full::<H>(guard, wanted) }.map_err(|error| wanted.form.placed(error))
}

/// The same; positions of arguments are those of `hsaKmtCreateQueueV2`.
///
/// # Safety
/// As [`create`].
unsafe fn create_in_full<H: Host>(
    guard: &Guard<'_, impl Platform>,
    wanted: &Wanted<<H::Generation as Generation>::QueueResource>,
) -> Result<(), Error> {
    // SAFETY: the caller's promise.
    let given = unsafe { caller_memory::read(wanted.resource) }.map_err(|_| Error::argument(10))?;
    let mut resource: QueueResource = given.decode();
    let error_event = if wanted.event.is_null() {
        0
    } else {
        // SAFETY: an event by the caller's promise; the field is within it.
        unsafe { caller_memory::read(&raw const (*wanted.event).EventId) }?
    };
    guard.machine(|machine| machine.gpu(wanted.node).map(drop))?;
    let queue_type = queue_type(wanted.kind)?;
    let is_aql = queue_type == QueueType::COMPUTE_AQL;
    let options = QueueOptions {
        node: wanted.node,
        queue_type,
        share: share(wanted.percentage, wanted.priority, 4)?,
        ring: wanted.ring,
        sdma_engine: wanted.sdma_engine,
        metadata_ring_bytes: u32::try_from(wanted.metadata_bytes)
            .map_err(|_| Error::argument(8))?,
        aql_pointers: is_aql.then_some(AqlPointerAddresses {
            read: resource.read_pointer,
            write: resource.write_pointer,
        }),
        error_event,
        error_reason: resource.error_reason,
    };
    let queue = guard.create_queue(&options)?;
    resource.queue_id = queue.id;
    resource.doorbell = queue.doorbell;
    (resource.read_pointer, resource.write_pointer) = (queue.read_pointer, queue.write_pointer);
    // SAFETY: the caller's promise; not NULL, as the read above found.
    Ok(unsafe { caller_memory::write(wanted.resource, Encode::encode(&resource)) }?)
}
