//! The calls of a context that concern queues.

use super::books::{Held, MaskView, unknown};
use super::buffers::{self, Buffers, Exceptions, QueueNode};
use super::doorbells::{self, Slice};
use super::plan::{self, QueueBuffers, QueueRequest, Refused, Ring, Share};
use super::pointers::DoorbellType;
use super::{Queue, QueueInfo, QueueOptions, Queues};
use crate::context::{Channel, Context};
use crate::errno::Errno;
use crate::error::{Error, Object, Operation, Status};
use crate::memory::Access;
use crate::process::Guard;
use crate::seam::{Array, Os, Platform};
use crate::uapi::gate::{Feature, Support, support};
use crate::uapi::kfd::{
    AllocQueueGws, CreateQueue, DestroyQueue, GetQueueWaveState, GetVersion, MmapOffset, QueueType,
    SetCuMask, SetTrapHandler,
};
use zerocopy::IntoBytes;

/// Compute units in a word of a mask.
const UNITS_PER_WORD: u32 = 32;

fn object(held: &Held) -> Object {
    Object::Handle(u64::from(held.kernel_id))
}

/// The failure of values that no block can carry; positions are those of
/// `hsaKmtCreateQueueV2`, which has all arguments.
fn refused(why: Refused) -> Error {
    Error::argument(match why {
        Refused::Type => 2,
        Refused::Priority => 4,
        Refused::RingSize => 7,
    })
}

/// The status of a queue that the driver refused to make.
fn of_create(error: Error) -> Error {
    match error.errno {
        Some(Errno::ENOMEM) => error.with_status(Status::NO_MEMORY),
        Some(Errno::EINVAL) => error.with_status(Status::INVALID_PARAMETER),
        _ => error,
    }
}

impl<P: Platform> Guard<'_, P> {
    /// Makes a queue on a GPU, with everything that it needs beside its ring.
    ///
    /// The caller's ring, and for AQL its two pointers, are mapped on the GPU, each a
    /// mapping of its own.
    ///
    /// # Errors
    /// Positions of arguments are those of `hsaKmtCreateQueueV2`.
    /// INVALID_NODE_UNIT, also for a CPU node; INVALID_PARAMETER for a type, priority or
    /// length that there is none of, and where the driver says so; NOT_SUPPORTED for a
    /// metadata ring that the driver does not know; NO_MEMORY; ERROR. Nothing is left.
    pub fn create_queue(&self, options: &QueueOptions) -> Result<Queue, Error> {
        let node = self.machine(|machine| QueueNode::of(machine, options.node))?;
        let request = QueueRequest {
            queue_type: options.queue_type,
            gpu_id: node.gpu_id,
            share: options.share,
            ring: options.ring,
            sdma_engine: options.sdma_engine,
            metadata_ring_bytes: options.metadata_ring_bytes,
        };
        let is_aql = options.queue_type == QueueType::COMPUTE_AQL;
        let pointers = options.aql_pointers.filter(|_| is_aql).unwrap_or_default();
        // What can be refused without a buffer is refused first.
        let of_caller = QueueBuffers {
            read_pointer: pointers.read,
            write_pointer: pointers.write,
            end_of_pipe: None,
            save_area: None,
        };
        plan::create(&request, &of_caller).map_err(refused)?;
        self.has_what_it_needs(options)?;

        let (channel, queues) = (self.channel(), self.context().queues());
        let os = channel.os();
        let mask = queues.reserve(os, node.units)?;
        let slice = {
            let mut list = channel.files.doorbells.acquire(os);
            doorbells::make(&channel, &mut list, &node)?
        };
        let access = self.memory();
        let exceptions = Exceptions { reason: options.error_reason, event: options.error_event };
        let own = buffers::make(
            &access,
            os,
            &node,
            options.queue_type,
            exceptions,
            self.save_areas_by_attributes(),
        )?;
        let made = self.send_create(&request, &own, of_caller, is_aql);
        let made = made.and_then(|block| {
            let doorbell = place(&block, node.doorbell, slice, node.gpu_id);
            let held = Held {
                id: own.control,
                kernel_id: block.queue_id,
                gpu_id: node.gpu_id,
                resets: slice.resets,
                buffers: own,
            };
            let entered = doorbell.and_then(|doorbell| {
                queues.enter(os, held, mask)?;
                Ok(doorbell)
            });
            if entered.is_err() {
                let _ = destroy(&channel, &held);
            }
            Ok((entered?, block.queue_id))
        });
        match made {
            Ok((doorbell, kernel_id)) => Ok(Queue {
                id: own.control,
                kernel_id,
                doorbell,
                doorbell_type: node.doorbell,
                read_pointer: if is_aql { pointers.read } else { own.read_pointer() },
                write_pointer: if is_aql { pointers.write } else { own.write_pointer() },
            }),
            Err(error) => {
                buffers::unmake(&access, &own);
                Err(error)
            }
        }
    }

    /// Refuses what the driver is too old for and would not notice.
    fn has_what_it_needs(&self, options: &QueueOptions) -> Result<(), Error> {
        let version = self.version();
        let version = GetVersion { major_version: version.major, minor_version: version.minor };
        let needs = |feature: Feature| match support(&version, feature) {
            Support::No => Err(Error::needs_kfd(feature.gate().perhaps)),
            Support::Perhaps | Support::Yes => Ok(()),
        };
        if options.queue_type == QueueType::SDMA_BY_ENG_ID {
            needs(Feature::SdmaEngineId).map_err(|error| error.with_status(Status::ERROR))?;
        }
        if options.metadata_ring_bytes != 0 {
            needs(Feature::MetadataRing)?;
            let page = u32::try_from(self.os().page_size()).unwrap_or(u32::MAX);
            if options.metadata_ring_bytes.checked_rem(page) != Some(0) {
                return Err(Error::argument(8));
            }
        }
        Ok(())
    }

    /// Whether save areas can be pages of the process.
    fn save_areas_by_attributes(&self) -> bool {
        self.context().options().svm_api
            && !self.context().is_secondary()
            && self.version().supports(Feature::SvmSaveArea)
    }

    fn send_create(
        &self,
        request: &QueueRequest,
        own: &Buffers,
        of_caller: QueueBuffers,
        is_aql: bool,
    ) -> Result<CreateQueue, Error> {
        let mut all = QueueBuffers {
            end_of_pipe: own.end_of_pipe,
            save_area: own.save.map(|save| (save.address, save.sizes)),
            ..of_caller
        };
        if !is_aql {
            (all.read_pointer, all.write_pointer) = (own.read_pointer(), own.write_pointer());
        }
        let mut block = plan::create(request, &all).map_err(refused)?;
        let gpu = Object::Gpu(request.gpu_id);
        self.channel().execute(&mut block, &mut [], Status::ERROR, gpu).map_err(of_create)?;
        Ok(block)
    }

    /// Takes a queue for one call.
    fn with_queue<R>(
        &self,
        id: u64,
        call: impl FnOnce(&Channel<'_, P>, &Held) -> Result<R, Error>,
    ) -> Result<R, Error> {
        let (channel, queues) = (self.channel(), self.context().queues());
        let held = queues.take(channel.os(), id).ok_or_else(|| unknown(id))?;
        let answer = call(&channel, &held);
        queues.give(channel.os(), id, false);
        answer
    }

    /// Gives a queue another ring and another share; a percentage or an address of 0
    /// stops it.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue or a priority or length that there is none
    /// of; ERROR with the driver's errno.
    pub fn update_queue(&self, id: u64, ring: Ring, share: Share) -> Result<(), Error> {
        self.with_queue(id, |channel, held| {
            let mut block = plan::update(held.kernel_id, ring, share).map_err(|why| {
                Error::argument(match why {
                    Refused::Priority => 3,
                    Refused::Type | Refused::RingSize => 5,
                })
            })?;
            channel.execute(&mut block, &mut [], Status::ERROR, object(held)).map(drop)
        })
    }

    /// Ends a queue and takes away what the library brought along for it.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue; ERROR with the driver's errno: the queue
    /// is as it was, but for ETIME and EIO, after which it is gone, since the driver
    /// drops it even where its hardware hangs (`kfd_device_queue_manager.c`,
    /// `destroy_queue_cpsch`).
    pub fn destroy_queue(&self, id: u64) -> Result<(), Error> {
        let queues = self.context().queues();
        end(&self.channel(), &self.memory(), queues, id).unwrap_or_else(|| Err(unknown(id)))
    }

    /// Chooses the compute units that serve a queue, one bit each.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue or no words; ERROR with the driver's errno.
    pub fn set_queue_cu_mask(&self, id: u64, words: &[u32]) -> Result<(), Error> {
        let bits = u32::try_from(words.len())
            .ok()
            .and_then(|words| words.checked_mul(UNITS_PER_WORD))
            .filter(|&bits| bits != 0)
            .ok_or(Error::argument(2))?;
        self.with_queue(id, |channel, held| {
            let mut block =
                SetCuMask { queue_id: held.kernel_id, num_cu_mask: bits, ..SetCuMask::default() };
            let arrays = &mut [Array::In(words.as_bytes())];
            channel.execute(&mut block, arrays, Status::ERROR, object(held))?;
            self.context().queues().set_mask(channel.os(), id, words);
            Ok(())
        })
    }

    /// What a stopped compute queue has saved, of its first die.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue; ERROR for one without a save area, and
    /// with the driver's errno for one that is not stopped.
    pub fn queue_info(&self, id: u64) -> Result<QueueInfo, Error> {
        self.with_queue(id, |channel, held| {
            let none = Error::library(Status::ERROR, Operation::LookUp, object(held));
            let save = held.buffers.save.ok_or(none)?;
            let mut block = GetQueueWaveState {
                ctl_stack_address: save.address,
                queue_id: held.kernel_id,
                ..GetQueueWaveState::default()
            };
            channel.execute(&mut block, &mut [], Status::ERROR, object(held))?;
            let MaskView { bits, address } =
                self.context().queues().mask(channel.os(), id).ok_or(none)?;
            let stack_end = save.address.saturating_add(u64::from(save.sizes.control_stack));
            Ok(QueueInfo {
                cu_mask_bits: bits,
                cu_mask: address,
                control_stack_top: stack_end.saturating_sub(u64::from(block.ctl_stack_used_size)),
                control_stack_used: block.ctl_stack_used_size,
                wave_state: stack_end,
                wave_state_used: block.save_area_used_size,
                save_area: save.address,
                save_area_bytes: save.length,
            })
        })
    }

    /// Gives a queue the global wave sync counters of its GPU, or takes them back with a
    /// count of 0. Returns the first counter.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue, and when there are none to take back;
    /// OUT_OF_RESOURCES while another queue has them; NOT_SUPPORTED on GPUs without;
    /// ERROR.
    pub fn allocate_queue_gws(&self, id: u64, count: u32) -> Result<u32, Error> {
        self.with_queue(id, |channel, held| {
            let mut block = AllocQueueGws {
                queue_id: held.kernel_id,
                num_gws: count,
                ..AllocQueueGws::default()
            };
            channel.execute(&mut block, &mut [], Status::ERROR, object(held)).map_err(|error| {
                match error.errno {
                    Some(Errno::EINVAL) => error.with_status(Status::INVALID_PARAMETER),
                    Some(Errno::EBUSY) => error.with_status(Status::OUT_OF_RESOURCES),
                    Some(Errno::ENODEV) => error.with_status(Status::NOT_SUPPORTED),
                    _ => error,
                }
            })?;
            Ok(block.first_gws)
        })
    }

    /// The driver's number of a queue.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue.
    pub fn kernel_queue_id(&self, id: u64) -> Result<u32, Error> {
        let queues = self.context().queues();
        queues.find(self.os(), id).map(|held| held.kernel_id).ok_or_else(|| unknown(id))
    }

    /// Installs the trap handler of the process on a GPU: GPU addresses of its code and
    /// of its data.
    ///
    /// # Errors
    /// INVALID_NODE_UNIT, also for a CPU node; ERROR with the driver's errno.
    pub fn set_trap_handler(&self, node: u32, code: u64, data: u64) -> Result<(), Error> {
        let gpu_id = self.machine(|machine| machine.gpu(node).map(|gpu| gpu.gpu_id))?;
        let mut block = SetTrapHandler { tba_addr: code, tma_addr: data, gpu_id, pad: 0 };
        self.channel().execute(&mut block, &mut [], Status::ERROR, Object::Gpu(gpu_id)).map(drop)
    }

    /// Notes that a GPU was reset: queues of before are lost, and the next queue maps
    /// the doorbells anew. Every hardware exception that a wait tells is noted.
    pub fn note_gpu_reset(&self, gpu_id: u32) {
        let channel = self.channel();
        doorbells::note_reset(&mut channel.files.doorbells.acquire(channel.os()), gpu_id);
    }

    /// How often a GPU was reset, as far as waits have told, since it had its first queue.
    pub(crate) fn gpu_resets(&self, gpu_id: u32) -> u32 {
        let channel = self.channel();
        doorbells::resets(&channel.files.doorbells.acquire(channel.os()), gpu_id)
    }

    /// Fails for a queue whose GPU was reset, as far as a wait has told. Whoever rings a
    /// doorbell asks first: the mapping may be gone, and the store would be SIGBUS.
    ///
    /// # Errors
    /// INVALID_PARAMETER for an unknown queue; UNAVAILABLE for a lost one.
    pub fn check_queue(&self, id: u64) -> Result<(), Error> {
        let (channel, queues) = (self.channel(), self.context().queues());
        let os = channel.os();
        let held = queues.find(os, id).ok_or_else(|| unknown(id))?;
        let resets = doorbells::resets(&channel.files.doorbells.acquire(os), held.gpu_id);
        if resets == held.resets {
            Ok(())
        } else {
            let gpu = Object::Gpu(held.gpu_id);
            Err(Error::library(Status::UNAVAILABLE, Operation::Submit, gpu))
        }
    }
}

/// The address of a queue's doorbell in the mapped slice.
fn place(
    answer: &CreateQueue,
    doorbell: DoorbellType,
    slice: Slice,
    gpu_id: u32,
) -> Result<u64, Error> {
    let place = plan::doorbell_place(answer, doorbell)
        .filter(|place| place.slice == MmapOffset::doorbell(gpu_id))
        .ok_or_else(|| Error::library(Status::ERROR, Operation::MapDevice, Object::Gpu(gpu_id)))?;
    Ok(slice.address.saturating_add(u64::from(place.within)))
}

fn destroy<P: Platform>(channel: &Channel<'_, P>, held: &Held) -> Result<(), Error> {
    let mut block = DestroyQueue { queue_id: held.kernel_id, pad: 0 };
    channel.execute(&mut block, &mut [], Status::ERROR, object(held)).map(drop)
}

/// Ends a queue; none when there is no such.
fn end<P: Platform>(
    channel: &Channel<'_, P>,
    access: &Access<'_, P>,
    queues: &Queues,
    id: u64,
) -> Option<Result<(), Error>> {
    let held = queues.take(channel.os(), id)?;
    let ended = destroy(channel, &held);
    let is_gone = match ended {
        Ok(()) => true,
        Err(error) => matches!(error.errno, Some(Errno::ETIME | Errno::EIO)),
    };
    if is_gone {
        // Before its id can come again with its memory.
        queues.give(channel.os(), id, true);
        buffers::unmake(access, &held.buffers);
    } else {
        queues.give(channel.os(), id, false);
    }
    Some(ended)
}

/// Ends all queues of a context that closes, and unmaps its doorbells.
pub(crate) fn end_all<P: Platform>(channel: &Channel<'_, P>, context: &Context<P>) {
    let (queues, access) = (context.queues(), Access::new(*channel, context));
    while let Some(id) = queues.any(channel.os()) {
        if let Some(Err(_)) = end(channel, &access, queues, id) {
            // The driver keeps it, and with it its memory, until the process ends.
            queues.give(channel.os(), id, true);
        }
    }
    doorbells::unmake(channel, &mut channel.files.doorbells.acquire(channel.os()));
}
