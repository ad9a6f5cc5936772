//! The driver's blocks of a queue's life, filled in without a driver.
//!
//! Only what the driver could not tell apart from something else is refused here:
//! a priority that has no level, a type that it does not know, a length beyond
//! 32 bits. All other rules are the driver's own (`kfd_chardev.c`, `kfd_queue.c`).

use super::pointers::DoorbellType;
use super::sizes::SaveArea;
use crate::uapi::kfd::{CreateQueue, MmapOffset, QueueType, UpdateQueue};

/// Doorbells of one GPU and process (`kfd_doorbell.c`,
/// KFD_MAX_NUM_OF_QUEUES_PER_PROCESS).
const DOORBELLS: u32 = 1024;

/// Why no block was made.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Refused {
    /// A priority other than -3 to 3.
    Priority,
    /// A type of queue that the interface does not have.
    Type,
    /// A ring of 4 GiB or more.
    RingSize,
}

/// Whose time a queue gets, and when.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Share {
    /// Percent of the time, 0 to 100; 0 makes the queue inactive. In bits 8 to 15 the
    /// compute die of a PM4 queue.
    pub percentage: u32,
    /// -3 to 3, `HSA_QUEUE_PRIORITY`.
    pub priority: i32,
}

/// A ring as the GPU sees it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Ring {
    /// GPU address.
    pub address: u64,
    /// Bytes. Of AQL rings that are mapped twice in a row those of both.
    pub bytes: u64,
}

/// What somebody wants of a new queue.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueRequest {
    /// What it executes.
    pub queue_type: QueueType,
    /// The kernel's id of the GPU.
    pub gpu_id: u32,
    /// Its share.
    pub share: Share,
    /// Its ring.
    pub ring: Ring,
    /// The copy engine of a [`QueueType::SDMA_BY_ENG_ID`] queue.
    pub sdma_engine: u32,
    /// Bytes of the metadata ring behind the ring; 0 for none.
    pub metadata_ring_bytes: u32,
}

/// The buffers that the library brings along. Addresses are the GPU's.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct QueueBuffers {
    /// The read pointer.
    pub read_pointer: u64,
    /// The write pointer that the hardware reads.
    pub write_pointer: u64,
    /// The end-of-pipe buffer, address and bytes.
    pub end_of_pipe: Option<(u64, u32)>,
    /// The save area, address and sizes.
    pub save_area: Option<(u64, SaveArea)>,
}

/// The level of a priority in the driver, 0 to 15.
#[must_use]
pub const fn driver_priority(priority: i32) -> Option<u32> {
    Some(match priority {
        -3 => 0,
        -2 => 3,
        -1 => 5,
        0 => 7,
        1 => 9,
        2 => 11,
        3 => 15,
        _ => return None,
    })
}

/// The block that makes a queue.
///
/// # Errors
/// [`Refused`].
pub fn create(request: &QueueRequest, buffers: &QueueBuffers) -> Result<CreateQueue, Refused> {
    if request.queue_type.0 > QueueType::SDMA_BY_ENG_ID.0 {
        return Err(Refused::Type);
    }
    let mut block = CreateQueue {
        ring_base_address: request.ring.address,
        ring_size: ring_size(request.ring)?,
        write_pointer_address: buffers.write_pointer,
        read_pointer_address: buffers.read_pointer,
        gpu_id: request.gpu_id,
        queue_type: request.queue_type,
        queue_percentage: request.share.percentage,
        queue_priority: driver_priority(request.share.priority).ok_or(Refused::Priority)?,
        sdma_engine_id: request.sdma_engine,
        metadata_ring_size: request.metadata_ring_bytes,
        ..CreateQueue::default()
    };
    if let Some((address, bytes)) = buffers.end_of_pipe {
        block.eop_buffer_address = address;
        block.eop_buffer_size = u64::from(bytes);
    }
    if let Some((address, area)) = buffers.save_area {
        block.ctx_save_restore_address = address;
        block.ctx_save_restore_size = area.per_die;
        block.ctl_stack_size = area.control_stack;
    }
    Ok(block)
}

/// The block that changes a queue: ring and share, all at once.
///
/// # Errors
/// [`Refused`].
pub fn update(queue_id: u32, ring: Ring, share: Share) -> Result<UpdateQueue, Refused> {
    Ok(UpdateQueue {
        queue_id,
        ring_base_address: ring.address,
        ring_size: ring_size(ring)?,
        queue_percentage: share.percentage,
        queue_priority: driver_priority(share.priority).ok_or(Refused::Priority)?,
    })
}

fn ring_size(ring: Ring) -> Result<u32, Refused> {
    u32::try_from(ring.bytes).map_err(|_| Refused::RingSize)
}

/// Bytes of the doorbells of one GPU and process; what is mapped is exactly that.
#[must_use]
pub const fn doorbell_slice_bytes(doorbell: DoorbellType) -> u32 {
    DOORBELLS.wrapping_mul(doorbell.bytes())
}

/// Where a queue's doorbell is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DoorbellPlace {
    /// By what the GPU's doorbells are mapped.
    pub slice: MmapOffset,
    /// Bytes from there to the queue's own.
    pub within: u32,
}

/// Where the doorbell is of a queue that the driver made with this answer. `None`
/// where the answer leads out of the doorbells.
///
/// From gfx9 on the answer says it; before, the queue's number does.
#[must_use]
pub fn doorbell_place(answer: &CreateQueue, doorbell: DoorbellType) -> Option<DoorbellPlace> {
    let bytes = doorbell.bytes();
    let offset = MmapOffset(answer.doorbell_offset);
    let within = match doorbell {
        DoorbellType::Pre1_0 | DoorbellType::V1_0 => answer.queue_id.checked_mul(bytes)?,
        DoorbellType::V2_0 => u32::try_from(offset.byte()).ok()?,
    };
    let fits = within.checked_rem(bytes) == Some(0) && within < doorbell_slice_bytes(doorbell);
    fits.then_some(DoorbellPlace { slice: offset.start(), within })
}

#[cfg(test)]
mod tests {
    use super::*;
    use core::num::NonZeroU32;

    const SHARE: Share = Share { percentage: 100, priority: 0 };
    const RING: Ring = Ring { address: 0x7f00_0000_0000, bytes: 0x1_0000 };
    const REQUEST: QueueRequest = QueueRequest {
        queue_type: QueueType::COMPUTE_AQL,
        gpu_id: 0x1234,
        share: SHARE,
        ring: RING,
        sdma_engine: 3,
        metadata_ring_bytes: 0x4_0000,
    };
    const NO_BUFFERS: QueueBuffers = QueueBuffers {
        read_pointer: 0x1000,
        write_pointer: 0x1008,
        end_of_pipe: None,
        save_area: None,
    };

    #[test]
    fn all_that_the_driver_is_told() {
        let area = SaveArea {
            control_stack: 0x3000,
            per_die: 0x20_0000,
            debug_per_die: 0x8000,
            dies: NonZeroU32::new(8).unwrap(),
        };
        let buffers = QueueBuffers {
            end_of_pipe: Some((0x2000, 0x1000)),
            save_area: Some((0x40_0000, area)),
            ..NO_BUFFERS
        };
        let expected = CreateQueue {
            ring_base_address: 0x7f00_0000_0000,
            write_pointer_address: 0x1008,
            read_pointer_address: 0x1000,
            ring_size: 0x1_0000,
            gpu_id: 0x1234,
            queue_type: QueueType::COMPUTE_AQL,
            queue_percentage: 100,
            queue_priority: 7,
            eop_buffer_address: 0x2000,
            eop_buffer_size: 0x1000,
            ctx_save_restore_address: 0x40_0000,
            ctx_save_restore_size: 0x20_0000,
            ctl_stack_size: 0x3000,
            sdma_engine_id: 3,
            metadata_ring_size: 0x4_0000,
            ..CreateQueue::default()
        };
        assert_eq!(create(&REQUEST, &buffers), Ok(expected));
        let without = create(&REQUEST, &NO_BUFFERS).unwrap();
        assert_eq!((without.eop_buffer_address, without.eop_buffer_size), (0, 0));
        assert_eq!((without.ctx_save_restore_address, without.ctl_stack_size), (0, 0));
    }

    #[test]
    fn changes() {
        let share = Share { percentage: 0, priority: -3 };
        let block = update(9, RING, share).unwrap();
        assert_eq!((block.queue_id, block.ring_size, block.queue_percentage), (9, 0x1_0000, 0));
        assert_eq!((block.ring_base_address, block.queue_priority), (RING.address, 0));
    }

    #[test]
    fn what_is_refused() {
        let large = Ring { bytes: 1 << 32, ..RING };
        let urgent = Share { priority: 4, ..SHARE };
        assert_eq!(update(0, large, SHARE).err(), Some(Refused::RingSize));
        assert_eq!(update(0, RING, urgent).err(), Some(Refused::Priority));
        for (request, why) in [
            (QueueRequest { ring: large, ..REQUEST }, Refused::RingSize),
            (QueueRequest { share: urgent, ..REQUEST }, Refused::Priority),
            (QueueRequest { queue_type: QueueType(5), ..REQUEST }, Refused::Type),
            (QueueRequest { queue_type: QueueType(u32::MAX), ..REQUEST }, Refused::Type),
        ] {
            assert_eq!(create(&request, &NO_BUFFERS).err(), Some(why));
        }
    }

    #[test]
    fn priorities() {
        let levels = [-4, -3, -2, -1, 0, 1, 2, 3, 4].map(driver_priority);
        let expected =
            [None, Some(0), Some(3), Some(5), Some(7), Some(9), Some(11), Some(15), None];
        assert_eq!(levels, expected);
    }

    #[test]
    fn doorbells() {
        assert_eq!(doorbell_slice_bytes(DoorbellType::V1_0), 4096);
        assert_eq!(doorbell_slice_bytes(DoorbellType::V2_0), 8192);
        let slice = MmapOffset::doorbell(0x1234);
        let place = |queue_id, low, doorbell| {
            let answer =
                CreateQueue { queue_id, doorbell_offset: slice.0 | low, ..CreateQueue::default() };
            let place = doorbell_place(&answer, doorbell)?;
            assert_eq!(place.slice, slice);
            Some(place.within)
        };
        assert_eq!(place(7, 0, DoorbellType::V1_0), Some(28));
        assert_eq!(place(1023, 0, DoorbellType::Pre1_0), Some(4092));
        assert_eq!(place(1024, 0, DoorbellType::Pre1_0), None);
        assert_eq!(place(u32::MAX, 0, DoorbellType::Pre1_0), None);
        assert_eq!(place(7, 0x1ff8, DoorbellType::V2_0), Some(0x1ff8));
        assert_eq!(place(7, 0x800, DoorbellType::V2_0), Some(0x800));
        assert_eq!(place(7, 0x2000, DoorbellType::V2_0), None);
        assert_eq!(place(7, 0x804, DoorbellType::V2_0), None);
        assert_eq!(place(7, 1 << 40, DoorbellType::V2_0), None);
    }
}
