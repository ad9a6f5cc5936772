//! Writing into the caller's memory touches exactly the structure of the caller's generation.

use std::mem::size_of;

use hsakmt::generation::caller_memory;
use hsakmt::generation::{Current, Debian, Decode, Encode, Generation, Y2025, internal};
use hsakmt::types::*;
use hsakmt_abi_tests::facts;
use zerocopy::FromZeros;

const CANARY: u8 = 0xa5;
const MARGIN: usize = 2048;

/// The size of a structure in a generation, as the tables say.
fn size_of_record(generation: u32, name: &str) -> usize {
    let facts = facts();
    let mut rows = facts.records.iter().filter(|row| row.generations.has(generation));
    let row = rows.find(|row| row.name == name).unwrap_or_else(|| panic!("no {name}"));
    row.size.try_into().unwrap()
}

/// Runs `write` on an address between canaries, aligned and not, and tells which bytes changed.
///
/// The bytes that `write` writes must differ from the canary.
fn written(size: usize, write: impl Fn(*mut u8)) -> usize {
    let mut lengths = [MARGIN, MARGIN + 1].map(|start| {
        let mut memory = vec![CANARY; start + size + MARGIN];
        write(memory[start..].as_mut_ptr());
        let touched: Vec<usize> =
            (0..memory.len()).filter(|index| memory[*index] != CANARY).collect();
        let (Some(first), Some(last)) = (touched.first(), touched.last()) else { return 0 };
        assert_eq!(*first, start, "begins elsewhere");
        assert_eq!(touched.len(), last - first + 1, "leaves a gap");
        touched.len()
    });
    lengths.sort();
    assert_eq!(lengths[0], lengths[1], "alignment makes a difference");
    lengths[0]
}

/// One structure, and arrays of it, of the C name `name`.
fn writes_only_its_size<I: FromZeros, T: Encode<I>>(generation: u32, name: &str) {
    let value = T::encode(&I::new_zeroed());
    let size = size_of_record(generation, name);
    let what = format!("{generation} {name}");

    // SAFETY: `written` gives memory for more than one structure.
    let one = |at: *mut u8| unsafe { caller_memory::write(at.cast::<T>(), value) }.unwrap();
    assert_eq!(written(size, one), size, "{what}");

    // Capacity, values, and how many structures are written.
    for (capacity, values, expected) in [(3, 5, 3), (3, 3, 3), (3, 2, 2), (3, 0, 0), (0, 2, 0)] {
        let array = |at: *mut u8| {
            let values = std::iter::repeat_n(value, values);
            // SAFETY: `written` gives memory for `capacity` structures and more.
            let count = unsafe { caller_memory::write_array(at.cast::<T>(), capacity, values) };
            assert_eq!(count, Ok(expected), "{what}");
        };
        assert_eq!(written(capacity * size, array), expected * size, "{what}");
    }
}

fn every_structure_of<G: Generation>() {
    let generation = G::ABI_GENERATION;
    writes_only_its_size::<_, G::NodeProperties>(generation, "HsaNodeProperties");
    writes_only_its_size::<_, G::CacheProperties>(generation, "HsaCacheProperties");
    writes_only_its_size::<_, G::IoLinkProperties>(generation, "HsaIoLinkProperties");
    writes_only_its_size::<_, G::QueueInfo>(generation, "HsaQueueInfo");
    writes_only_its_size::<_, G::QueueResource>(generation, "HsaQueueResource");
    writes_only_its_size::<_, G::GraphicsResourceInfo>(generation, "HsaGraphicsResourceInfo");
}

#[test]
fn structures_of_5_2_3_are_not_overrun() {
    every_structure_of::<Debian>();
}

#[test]
fn structures_of_2025_are_not_overrun() {
    every_structure_of::<Y2025>();
}

#[test]
fn structures_of_2026_are_not_overrun() {
    every_structure_of::<Current>();
}

#[test]
fn zeros_cover_exactly_the_array() {
    let size = size_of_record(2026, "HsaMemoryProperties");
    for capacity in [0, 1, 7] {
        let zeros = |at: *mut u8| {
            // SAFETY: `written` gives memory for `capacity` structures and more.
            let result =
                unsafe { caller_memory::write_zeros(at.cast::<HsaMemoryProperties>(), capacity) };
            assert_eq!(result, Ok(()));
        };
        assert_eq!(written(capacity * size, zeros), capacity * size);
    }
}

#[test]
fn an_array_is_read_in_its_order_wherever_it_begins() {
    let bytes: Vec<u8> = (0..64).collect();
    for start in [0, 1, 4] {
        for length in [0, 1, 3] {
            let mut nodes = vec![0u32; length];
            // SAFETY: memory for more than `length` numbers.
            let read = unsafe {
                caller_memory::read_array(bytes[start..].as_ptr().cast::<u32>(), &mut nodes)
            };
            assert_eq!(read, Ok(()));
            let expected: Vec<u32> = bytes[start..]
                .chunks_exact(4)
                .take(length)
                .map(|number| u32::from_ne_bytes(number.try_into().unwrap()))
                .collect();
            assert_eq!(nodes, expected);
        }
    }
    // SAFETY: NULL is allowed.
    let read = unsafe { caller_memory::read_array(std::ptr::null::<u32>(), &mut []) };
    assert_eq!(read, Err(HSAKMT_STATUS::INVALID_PARAMETER));
}

#[test]
fn null_is_an_error() {
    let null = std::ptr::null_mut::<HsaSystemProperties>();
    let value = HsaSystemProperties::new_zeroed();
    let invalid = HSAKMT_STATUS::INVALID_PARAMETER;
    // SAFETY: NULL is allowed everywhere here.
    unsafe {
        assert_eq!(caller_memory::write(null, value), Err(invalid));
        assert_eq!(caller_memory::write_array(null, 0, [value]), Err(invalid));
        assert_eq!(caller_memory::write_zeros(null, 1), Err(invalid));
        assert_eq!(caller_memory::read(null), Err(invalid));
        let detail = HsaExtErrorDetail::new_zeroed();
        assert_eq!(caller_memory::write_sized(std::ptr::null_mut(), &detail), Err(invalid));
    }
}

/// Whatever size the caller claims, its size stays and no byte beyond it changes.
#[test]
fn a_sized_structure_ends_where_the_caller_says() {
    const FRONT: usize = size_of::<u32>();
    let whole = size_of::<HsaExtErrorDetail>();
    let detail = HsaExtErrorDetail::new_zeroed();
    for claimed in (0..=whole + 16).chain([u32::MAX as usize]) {
        let mut memory = vec![CANARY; whole + 32];
        let size = u32::try_from(claimed).unwrap().to_ne_bytes();
        memory[..FRONT].copy_from_slice(&size);
        let at = memory.as_mut_ptr().cast::<HsaExtErrorDetail>();
        // SAFETY: the memory is longer than the structure, and no more than that is written.
        let result = unsafe { caller_memory::write_sized(at, &detail) };

        let expected = match claimed {
            0..FRONT => Err(HSAKMT_STATUS::INVALID_PARAMETER),
            _ => Ok(()),
        };
        assert_eq!(result, expected, "{claimed}");
        assert_eq!(memory[..FRONT], size, "{claimed}");
        let end = claimed.clamp(FRONT, whole);
        assert!(memory[FRONT..end].iter().all(|byte| *byte == 0), "{claimed}");
        assert!(memory[end..].iter().all(|byte| *byte == CANARY), "{claimed}");
    }
}

#[test]
fn reading_takes_a_misaligned_structure() {
    let bytes: Vec<u8> = (0..32).collect();
    // SAFETY: five bytes in there are 16 more, and any bytes are such a structure.
    let counters =
        unsafe { caller_memory::read(bytes[5..].as_ptr().cast::<HsaSystemProperties>()) };
    assert_eq!(counters.unwrap().NumNodes, u32::from_ne_bytes([5, 6, 7, 8]));
}

#[test]
fn what_a_caller_fills_in_survives_the_internal_form() {
    fn round_trip<G: Generation>(newest: bool) {
        let resource = internal::QueueResource {
            queue_id: 1,
            doorbell: 2,
            write_pointer: 3,
            read_pointer: 4,
            error_reason: 5,
            sdma_progress_fence_va: if newest { 6 } else { 0 },
            sdma_hw_queue_epilogue_bytes: if newest { 7 } else { 0 },
        };
        assert_eq!(G::QueueResource::encode(&resource).decode(), resource);
        let info = internal::GraphicsResourceInfo {
            memory_address: 1,
            size_in_bytes: 2,
            metadata: 3,
            metadata_size_in_bytes: 4,
            node_id: if G::ABI_GENERATION == 523 { 0 } else { 5 },
            size_hint_in_bytes: if newest { 6 } else { 0 },
        };
        assert_eq!(G::GraphicsResourceInfo::encode(&info).decode(), info);
    }
    round_trip::<Debian>(false);
    round_trip::<Y2025>(false);
    round_trip::<Current>(true);
}
