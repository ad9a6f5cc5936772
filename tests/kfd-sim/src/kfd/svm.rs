//! SVM: kernel-rules section 2, "SVM and XNACK" (kfd_chardev.c, kfd_svm.c).

use alloc::vec::Vec;

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::Protection;

use super::dispatch::Request;
use super::{KfdObject, Kind};
use crate::address_space::AddressSpace;
use crate::machine::State;
use crate::svm_ranges::{ALWAYS_MAPPED, Attributes, UNDEFINED, longest_range};

const PAGE: u64 = 4096;
/// Bytes of the block before the attributes, and of an attribute.
const HEAD: usize = 24;
const ATTRIBUTE: usize = 8;

/// Operations.
const SET: u32 = 0;
const GET: u32 = 1;

/// Types of attributes.
const PREFERRED: u32 = 0;
const PREFETCH: u32 = 1;
const ACCESS: u32 = 2;
const IN_PLACE: u32 = 3;
const NO_ACCESS: u32 = 4;
const SET_FLAGS: u32 = 5;
const CLEAR_FLAGS: u32 = 6;
const GRANULARITY: u32 = 7;

/// Names by type, for the log.
pub(crate) const NAMES: [&str; 8] = [
    "PREFERRED_LOC",
    "PREFETCH_LOC",
    "ACCESS",
    "ACCESS_IN_PLACE",
    "NO_ACCESS",
    "SET_FLAGS",
    "CLR_FLAGS",
    "GRANULARITY",
];
const HIGHEST_GRANULARITY: u32 = 63;

/// Type and value.
type Attribute = (u32, u32);

impl KfdObject {
    /// The bit of a GPU in the sets of [`Attributes`].
    pub(crate) fn svm_bit(&self, gpu_id: u32) -> Option<u64> {
        let place = self.records.iter().position(|record| record.gpu_id == gpu_id)?;
        1_u64.checked_shl(place as u32)
    }

    /// The attributes of a range that nobody set any of.
    pub(crate) fn new_svm_attributes(&self, state: &State) -> Attributes {
        let capable = |gpu_id| state.topology.gpu(gpu_id).is_some_and(|gpu| gpu.svm_capable);
        let all = self.records.iter().filter(|record| self.xnack && capable(record.gpu_id));
        Attributes::new(all.filter_map(|record| self.svm_bit(record.gpu_id)).sum())
    }

    /// Whether a range is in the page tables before any GPU accesses it.
    pub(super) fn maps_at_once(&self, attributes: &Attributes) -> bool {
        self.stops_for(attributes) && attributes.accessible() != 0
    }

    /// Whether the queues stop while a range has no pages: with XNACK on they would
    /// fault and wait.
    pub(super) fn stops_for(&self, attributes: &Attributes) -> bool {
        !self.xnack || attributes.flags & ALWAYS_MAPPED != 0
    }
}

/// start_addr at 0, size at 8, op u32 at 16, nattr u32 at 20; then the attributes,
/// type u32 and value u32 each.
///
/// In this order: more attributes than the request is long EINVAL; built without
/// SVM EPERM; a secondary context EOPNOTSUPP; not whole pages, or none, EINVAL;
/// the operation EINVAL.
pub(super) fn call(request: &mut Request<'_, '_, '_>) -> Result<u32, Errno> {
    let arguments = &request.arguments;
    let (start, size) = (arguments.u64(0), arguments.u64(8));
    let (operation, count) = (arguments.u32(16), arguments.u32(20) as usize);
    // kernel-truth, "svm_nattr_over_size": before the option of the build.
    if count > (arguments.0.len() - HEAD) / ATTRIBUTE {
        return Err(Errno::EINVAL);
    }
    if !request.state.kernel.svm {
        return Err(Errno::EPERM);
    }
    if matches!(request.object()?.kind, Kind::Secondary(_)) {
        return Err(Errno::EOPNOTSUPP);
    }
    if start % PAGE != 0 || size % PAGE != 0 || start == 0 || size == 0 {
        return Err(Errno::EINVAL);
    }
    let place = |n: usize| HEAD + n * ATTRIBUTE;
    let attributes: Vec<Attribute> = (0..count)
        .map(|n| (request.arguments.u32(place(n)), request.arguments.u32(place(n) + 4)))
        .collect();
    match operation {
        SET => set(request, start, size, &attributes),
        GET => {
            let answers = get(request, start, size, &attributes)?;
            for (n, (kind, value)) in answers.into_iter().enumerate() {
                request.arguments.put_u32(place(n), kind);
                request.arguments.put_u32(place(n) + 4, value);
            }
            Ok(0)
        }
        _ => Err(Errno::EINVAL),
    }
}

/// A GPU of the object that can do SVM.
fn bit_of(request: &Request<'_, '_, '_>, gpu_id: u32) -> Result<u64, Errno> {
    let bit = request.object()?.svm_bit(gpu_id).ok_or(Errno::EINVAL)?;
    let gpu = request.state.topology.gpu(gpu_id).ok_or(Errno::EINVAL)?;
    if gpu.svm_capable { Ok(bit) } else { Err(Errno::EINVAL) }
}

fn check_attribute(request: &Request<'_, '_, '_>, (kind, value): Attribute) -> Result<(), Errno> {
    match kind {
        PREFERRED if value == 0 || value == UNDEFINED => Ok(()),
        PREFETCH if value == 0 => Ok(()),
        PREFERRED | PREFETCH | ACCESS | IN_PLACE | NO_ACCESS => bit_of(request, value).map(|_| ()),
        SET_FLAGS | CLEAR_FLAGS | GRANULARITY => Ok(()),
        _ => Err(Errno::EINVAL),
    }
}

/// The address range: wrap EOVERFLOW (6.12); a page without memory, or of a
/// device, EFAULT; a mapping in any VM of the object EADDRINUSE. Returns its end.
fn check_range(
    request: &Request<'_, '_, '_>,
    start: u64,
    size: u64,
    wraps: Errno,
) -> Result<u64, Errno> {
    let object = request.object()?;
    let end = start.checked_add(size).ok_or(wraps)?;
    let space = request.state.spaces.get(&object.space).ok_or(Errno::EFAULT)?;
    if end > 1 << 47 || !space.is_memory(start as usize, end as usize) {
        return Err(Errno::EFAULT);
    }
    let mut vms = object.bound_files().filter_map(|file| request.state.vms.get(&file));
    if vms.any(|vm| vm.overlaps(start, end)) {
        return Err(Errno::EADDRINUSE);
    }
    Ok(end)
}

/// SET_ATTR. Attributes are applied to all ranges or none; what is mapped after
/// that may fail, with the attributes applied.
fn set(
    request: &mut Request<'_, '_, '_>,
    start: u64,
    size: u64,
    attributes: &[Attribute],
) -> Result<u32, Errno> {
    for &attribute in attributes {
        check_attribute(request, attribute)?;
    }
    let object = request.object()?;
    if object.bound_files().next().is_none() {
        return Err(Errno::EINVAL);
    }
    let overflow = request.state.kernel.names_svm_overflow();
    let wraps = if overflow { Errno::EOVERFLOW } else { Errno::EFAULT };
    let end = check_range(request, start, size, wraps)?;
    let object = request.object()?;
    let fresh = object.new_svm_attributes(request.state);
    let new: u64 = object.svm.gaps(start, end).iter().map(|(from, to)| to - from).sum();
    let longest = longest_range(request.state.topology.gpus().map(|(_, gpu)| gpu.vram));
    if !object.xnack {
        request.state.memory.take_system(&request.state.topology, new)?;
    }
    let id = request.id;
    let State { objects, spaces, .. } = &mut *request.state;
    let object = objects.get_mut(&id).ok_or(Errno::EBADF)?;
    let values: Vec<(u32, u32, u64)> = attributes
        .iter()
        .map(|&(kind, value)| (kind, value, object.svm_bit(value).unwrap_or(0)))
        .collect();
    object.svm.split(start, end);
    object.svm.fill((start, end), longest, fresh, true);
    for (_, range) in object.svm.overlapping_mut(start, end) {
        range.registered = true;
        for &(kind, value, bit) in &values {
            apply(&mut range.attributes, kind, value, bit);
        }
    }
    let space = spaces.get(&object.space).ok_or(Errno::EFAULT)?;
    map_ranges(object, space, start, end)?;
    Ok(0)
}

fn apply(attributes: &mut Attributes, kind: u32, value: u32, bit: u64) {
    match kind {
        PREFERRED => attributes.preferred = value,
        PREFETCH => attributes.prefetched = value,
        ACCESS | IN_PLACE | NO_ACCESS => {
            attributes.access &= !bit;
            attributes.in_place &= !bit;
            attributes.access |= if kind == ACCESS { bit } else { 0 };
            attributes.in_place |= if kind == IN_PLACE { bit } else { 0 };
        }
        SET_FLAGS => attributes.flags |= value,
        CLEAR_FLAGS => attributes.flags &= !value,
        GRANULARITY => attributes.granularity = value.min(HIGHEST_GRANULARITY) as u8,
        _ => {}
    }
}

/// Maps what is to be mapped at once: EFAULT for pages that the CPU may not read.
pub(super) fn map_ranges(
    object: &mut KfdObject,
    space: &AddressSpace,
    start: u64,
    end: u64,
) -> Result<(), Errno> {
    let mut wanted = Vec::new();
    for (at, range) in object.svm.overlapping(start, end) {
        wanted.push((at, at + range.length, object.maps_at_once(&range.attributes)));
    }
    for (from, to, at_once) in wanted {
        let readable = space.allows(from as usize, to as usize, Protection::READ);
        for (_, range) in object.svm.overlapping_mut(from, to) {
            range.mapped = at_once && readable;
        }
        if at_once && !readable {
            return Err(Errno::EFAULT);
        }
    }
    Ok(())
}

/// GET_ATTR: the address range first, then the types. Where there is no range at
/// all, the answer is what a new one would have.
fn get(
    request: &Request<'_, '_, '_>,
    start: u64,
    size: u64,
    asked: &[Attribute],
) -> Result<Vec<Attribute>, Errno> {
    let end = check_range(request, start, size, Errno::EFAULT)?;
    for &(kind, value) in asked {
        match kind {
            ACCESS => {
                bit_of(request, value)?;
            }
            IN_PLACE | NO_ACCESS => return Err(Errno::EINVAL),
            PREFERRED | PREFETCH | SET_FLAGS | CLEAR_FLAGS | GRANULARITY => {}
            _ => return Err(Errno::EINVAL),
        }
    }
    let object = request.object()?;
    let mut found: Vec<Attributes> =
        object.svm.overlapping(start, end).map(|(_, range)| range.attributes).collect();
    if found.is_empty() {
        found.push(object.new_svm_attributes(request.state));
    }
    let same = |location: fn(&Attributes) -> u32| {
        let first = found.first().map_or(UNDEFINED, location);
        if found.iter().all(|one| location(one) == first) { first } else { UNDEFINED }
    };
    let all = |bit: u64, set: fn(&Attributes) -> u64| found.iter().all(|one| set(one) & bit != 0);
    let answer = |&(kind, value): &Attribute| match kind {
        PREFERRED => (kind, same(|one| one.preferred)),
        PREFETCH => (kind, same(|one| one.prefetched)),
        SET_FLAGS => (kind, found.iter().fold(u32::MAX, |flags, one| flags & one.flags)),
        CLEAR_FLAGS => (kind, !found.iter().fold(0, |flags, one| flags | one.flags)),
        GRANULARITY => {
            (kind, u32::from(found.iter().map(|one| one.granularity).min().unwrap_or(0)))
        }
        _ => {
            let bit = object.svm_bit(value).unwrap_or(0);
            let has = match () {
                () if all(bit, |one| one.access) => ACCESS,
                () if all(bit, |one| one.in_place) => IN_PLACE,
                () => NO_ACCESS,
            };
            (has, value)
        }
    };
    Ok(asked.iter().map(answer).collect())
}

#[cfg(test)]
mod tests {
    use alloc::format;
    use alloc::vec;
    use alloc::vec::Vec;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{Driver, MapDevice, Os, Placement, Protection};
    use hsakmt_core::uapi::kfd::{AllocMemoryFlags as Flags, CreateProcess, SetXnackMode};
    use hsakmt_core::uapi::{Direction, Request};

    use super::{
        ACCESS, CLEAR_FLAGS, GRANULARITY, IN_PLACE, NO_ACCESS, PREFERRED, PREFETCH, SET_FLAGS,
        UNDEFINED,
    };
    use crate::fixture::{
        Bound, GET, SET, Sim, alloc, alloc_user, anonymous, ask, bind, boot, boot_machine, broken,
        free, gpu_id, kfd, map, map_memory, raw, set_svm, svm, unmap,
    };
    use crate::profile::Profile;
    use crate::violation::Rule;

    const AT: u64 = 0x7000_0000;

    /// Two GPUs in a hive, bound, with 64 KiB of memory.
    fn start(options: &str) -> (Sim, Bound) {
        let sim = boot(&format!("mi210x8:gpus=2,svm=1{options}"));
        let bound = bind(&sim);
        map_memory(&sim, AT, 0x1_0000);
        (sim, bound)
    }

    fn listed(sim: &Sim) -> Vec<(u64, u64)> {
        sim.process().svm_ranges().iter().map(|range| (range.start - AT, range.length)).collect()
    }

    fn xnack(sim: &Sim, bound: &Bound, mode: i32) -> Result<u32, Errno> {
        ask(sim, &bound.kfd, &mut SetXnackMode { xnack_enabled: mode })
    }

    #[test]
    fn errors_of_the_request_come_in_order() {
        let short = |sim: &Sim, device: &_| {
            let mut block = vec![0; 24];
            block[20] = 1;
            let request = Request::new(Direction::ReadWrite, b'K', 0x20, 24);
            raw(sim, device, request, &mut block)
        };
        let without = boot("rx7900");
        let device = kfd(&without);
        // The length of the request comes before the option of the build.
        assert_eq!(short(&without, &device), Err(Errno::EINVAL));
        for op in [0, 1, 99] {
            assert_eq!(svm(&without, &device, op, 1, 0, &[]).0, Err(Errno::EPERM));
        }
        let (sim, bound) = start("");
        assert_eq!(short(&sim, &bound.kfd), Err(Errno::EINVAL));
        for (op, start, size) in [
            (SET, 0, 4096),
            (SET, AT, 0),
            (SET, AT + 1, 4096),
            (SET, AT, 100),
            (GET, 0, 4096),
            (2, AT, 4096),
        ] {
            assert_eq!(svm(&sim, &bound.kfd, op, start, size, &[]).0, Err(Errno::EINVAL));
        }
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 4096, &[]), Ok(0));
        assert_eq!(broken(&sim), []);
    }

    #[test]
    fn a_secondary_context_has_no_svm() {
        let sim = boot("rx7900:kernel=7.2");
        let device = kfd(&sim);
        assert_eq!(ask(&sim, &device, &mut CreateProcess::default()), Ok(0));
        // Before the address is looked at.
        assert_eq!(svm(&sim, &device, 99, 1, 0, &[]).0, Err(Errno::EOPNOTSUPP));
        let off = boot("rx7900:kernel=7.2,svm=0");
        assert_eq!(svm(&off, &kfd(&off), SET, AT, 4096, &[]).0, Err(Errno::EPERM));
    }

    #[test]
    fn most_attributes_fit_a_request() {
        let (sim, bound) = start("");
        let many = vec![(SET_FLAGS, 0); 2044];
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 4096, &many), Ok(0));
    }

    #[test]
    fn attributes_are_looked_at_before_vms_and_addresses() {
        let sim = boot("mi210x8:gpus=2,svm=1");
        let device = kfd(&sim);
        let id = gpu_id(&sim, 1);
        // Nothing is mapped and no VM acquired.
        let set = |attribute| set_svm(&sim, &device, AT, 4096, &[attribute]);
        // No VM is EINVAL as well, and comes before the addresses.
        assert_eq!(set((SET_FLAGS, 0)), Err(Errno::EINVAL));
        let file = crate::fixture::render(&sim, 0);
        assert_eq!(crate::fixture::acquire(&sim, &device, &file, 0), Ok(0));
        for (attribute, expected) in [
            ((PREFERRED, 0), Errno::EFAULT),
            ((PREFERRED, UNDEFINED), Errno::EFAULT),
            ((PREFERRED, id), Errno::EFAULT),
            ((PREFERRED, 7), Errno::EINVAL),
            ((PREFETCH, 0), Errno::EFAULT),
            ((PREFETCH, UNDEFINED), Errno::EINVAL),
            ((PREFETCH, id), Errno::EFAULT),
            ((ACCESS, id), Errno::EFAULT),
            ((ACCESS, 0), Errno::EINVAL),
            ((IN_PLACE, UNDEFINED), Errno::EINVAL),
            ((NO_ACCESS, 1), Errno::EINVAL),
            ((SET_FLAGS, u32::MAX), Errno::EFAULT),
            ((GRANULARITY, u32::MAX), Errno::EFAULT),
            ((8, 0), Errno::EINVAL),
        ] {
            assert_eq!(set(attribute), Err(expected), "{attribute:?}");
        }
    }

    #[test]
    fn a_gpu_that_cannot_do_svm_is_unknown() {
        let mut profile = Profile::parse("mi210x8:gpus=2,svm=1").unwrap();
        profile
            .topology
            .nodes
            .iter_mut()
            .filter_map(|node| node.gpu.as_mut())
            .next()
            .unwrap()
            .svm_capable = false;
        let sim = boot_machine(&profile);
        let bound = bind(&sim);
        map_memory(&sim, AT, 4096);
        let set = |gpu| set_svm(&sim, &bound.kfd, AT, 4096, &[(ACCESS, gpu_id(&sim, gpu))]);
        assert_eq!([set(0), set(1)], [Err(Errno::EINVAL), Ok(0)]);
        // With XNACK on a new range is open to the other alone.
        assert_eq!(xnack(&sim, &bound, 1), Ok(0));
        map_memory(&sim, AT, 4096);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 4096, &[]), Ok(0));
        assert_eq!(sim.process().svm_ranges()[0].access, [gpu_id(&sim, 1)]);
    }

    #[test]
    fn every_page_is_memory_of_the_process() {
        let (sim, bound) = start("");
        let both = |start, size| [SET, GET].map(|op| svm(&sim, &bound.kfd, op, start, size, &[]).0);
        assert_eq!(both(AT, 0x1_1000), [Err(Errno::EFAULT); 2]);
        assert_eq!(both(AT - 0x1000, 0x2000), [Err(Errno::EFAULT); 2]);
        sim.unmap(AT as usize + 0x2000, 0x1000).unwrap();
        assert_eq!(both(AT, 0x1_0000), [Err(Errno::EFAULT); 2]);
        // Closed memory is memory.
        sim.protect(AT as usize + 0x4000, 0x1000, Protection::empty()).unwrap();
        assert_eq!(both(AT + 0x3000, 0xd000), [Ok(0); 2]);
        // That of a device is not.
        let (_, offset) = alloc(&sim, &bound.kfd, 0, Flags::GTT, 0, 4096).unwrap();
        let mapping = MapDevice {
            placement: Placement::Replace(AT as usize),
            length: 4096,
            protection: Protection::READ | Protection::WRITE,
            offset,
        };
        Driver::map(&sim, &bound.files[0], mapping).unwrap();
        assert_eq!(both(AT, 4096), [Err(Errno::EFAULT); 2]);
        assert_eq!(both(AT + 0x1000, 4096), [Ok(0); 2]);
        assert_eq!(both(1 << 47, 4096), [Err(Errno::EFAULT); 2]);
    }

    #[test]
    fn a_range_that_wraps_has_its_own_errno_in_6_12() {
        for (kernel, errno) in
            [("6.1", Errno::EFAULT), ("6.12", Errno::EOVERFLOW), ("7.2", Errno::EFAULT)]
        {
            let (sim, bound) = start(&format!(",kernel={kernel}"));
            assert_eq!(set_svm(&sim, &bound.kfd, AT, !0xfff, &[]), Err(errno), "{kernel}");
        }
    }

    #[test]
    fn addresses_belong_to_ranges_or_to_buffers() {
        let (sim, bound) = start("");
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        let at = |offset| alloc(&sim, &bound.kfd, 0, Flags::GTT, AT + offset, 0x2000);
        let (handle, _) = at(0x2000).unwrap();
        // What is not mapped does not count; the VM of any GPU does.
        assert_eq!(set_svm(&sim, &bound.kfd, AT + 0x3000, 0x1000, &[]), Ok(0));
        sim.unmap(AT as usize, 0x1_0000).unwrap();
        map_memory(&sim, AT, 0x1_0000);
        assert_eq!(map(&sim, &bound.kfd, handle, &ids[1..]), Ok(0));
        for op in [SET, GET] {
            for (offset, size, expected) in [
                (0, 0x2000, Ok(0)),
                (0, 0x3000, Err(Errno::EADDRINUSE)),
                (0x3000, 0x4000, Err(Errno::EADDRINUSE)),
                (0x4000, 0x1000, Ok(0)),
            ] {
                assert_eq!(svm(&sim, &bound.kfd, op, AT + offset, size, &[]).0, expected);
            }
        }
        // The other way.
        for (offset, expected) in [
            (0, Err(Errno::EADDRINUSE)),
            (0x1000, Err(Errno::EADDRINUSE)),
            (0x1fff, Err(Errno::EADDRINUSE)),
            (0x2000, Ok(())),
            (0x3000, Err(Errno::EADDRINUSE)),
            (0x5000, Ok(())),
        ] {
            assert_eq!(at(offset).map(|_| ()), expected, "{offset:#x}");
        }
        assert_eq!(unmap(&sim, &bound.kfd, handle, &ids[1..]), Ok(0));
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1_0000, &[]), Ok(0));
    }

    #[test]
    fn addresses_in_use_come_before_the_gpu() {
        use hsakmt_core::uapi::kfd::AllocMemoryOfGpu;
        let (sim, bound) = start("");
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1000, &[]), Ok(0));
        let ask = |flags, va_addr, size| {
            let mut block = AllocMemoryOfGpu { va_addr, size, flags, ..Default::default() };
            ask(&sim, &bound.kfd, &mut block)
        };
        assert_eq!(ask(Flags::GTT, AT, 0), Err(Errno::EINVAL));
        assert_eq!(ask(Flags::GTT, AT, 4096), Err(Errno::EADDRINUSE));
        assert_eq!(ask(Flags::VRAM, AT, 4096), Err(Errno::EADDRINUSE));
        // VRAM without an address is not looked at, anything else is.
        assert_eq!(ask(Flags::VRAM, 0, AT + 1), Err(Errno::EINVAL));
        assert_eq!(ask(Flags::GTT, 0, AT + 1), Err(Errno::EADDRINUSE));
    }

    #[test]
    fn user_pages_have_no_range_since_6_12() {
        for (kernel, expected) in
            [("6.1", Ok(())), ("6.12", Err(Errno::EADDRINUSE)), ("7.2", Err(Errno::EADDRINUSE))]
        {
            let (sim, bound) = start(&format!(",kernel={kernel}"));
            assert_eq!(set_svm(&sim, &bound.kfd, AT + 0x1000, 0x1000, &[]), Ok(0));
            let user = |source| alloc_user(&sim, &bound.kfd, 0x10_0000, source, 0x2000);
            assert_eq!(user(AT).map(|_| ()), expected, "{kernel}");
            assert_eq!(user(AT + 0x2000).map(|_| ()), Ok(()), "{kernel}");
        }
    }

    #[test]
    fn ranges_are_split_at_borders_and_gaps_filled() {
        let (sim, bound) = start("");
        let id = gpu_id(&sim, 0);
        let set = |offset, size, attribute| {
            assert_eq!(set_svm(&sim, &bound.kfd, AT + offset, size, &[attribute]), Ok(0));
        };
        set(0x1000, 0x3000, (ACCESS, id));
        set(0x6000, 0x1000, (IN_PLACE, id));
        set(0x2000, 0x6000, (SET_FLAGS, 0x10));
        assert_eq!(
            listed(&sim),
            [
                (0x1000, 0x1000),
                (0x2000, 0x2000),
                (0x4000, 0x2000),
                (0x6000, 0x1000),
                (0x7000, 0x1000)
            ]
        );
        let ranges = sim.process().svm_ranges();
        let told: Vec<_> = ranges
            .iter()
            .map(|range| (range.flags, range.access.len(), range.in_place.len()))
            .collect();
        assert_eq!(told, [(3, 1, 0), (0x13, 1, 0), (0x13, 0, 0), (0x13, 0, 1), (0x13, 0, 0)]);
        // No merging back.
        set(0x1000, 0x7000, (NO_ACCESS, id));
        assert_eq!(listed(&sim).len(), 5);
        assert!(ranges.iter().all(|range| range.registered));
        assert_eq!(
            sim.machine().leftovers().ranges[0],
            format!(
                "process {}: 0x1000 bytes of SVM, registered, open to 0 GPUs",
                sim.process().pid()
            )
        );
    }

    #[test]
    fn a_new_range_has_defaults_by_the_mode() {
        for (mode, access) in [(0, NO_ACCESS), (1, ACCESS)] {
            let (sim, bound) = start("");
            assert_eq!(xnack(&sim, &bound, mode), Ok(0));
            let id = gpu_id(&sim, 1);
            let asked = [
                (PREFERRED, 9),
                (PREFETCH, 9),
                (ACCESS, id),
                (SET_FLAGS, 9),
                (CLEAR_FLAGS, 9),
                (GRANULARITY, 9),
            ];
            let expected = vec![
                (PREFERRED, UNDEFINED),
                (PREFETCH, UNDEFINED),
                (access, id),
                (SET_FLAGS, 3),
                (CLEAR_FLAGS, !3),
                (GRANULARITY, 9),
            ];
            // The same before there is one.
            let get = || svm(&sim, &bound.kfd, GET, AT, 0x4000, &asked);
            assert_eq!(get(), (Ok(0), expected.clone()));
            assert_eq!(listed(&sim), []);
            assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x4000, &[]), Ok(0));
            assert_eq!(get(), (Ok(0), expected));
            assert_eq!(listed(&sim), [(0, 0x4000)]);
        }
    }

    #[test]
    fn answers_are_what_all_ranges_have() {
        let (sim, bound) = start("");
        let [a, b] = [0, 1].map(|gpu| gpu_id(&sim, gpu));
        let set = |offset, attributes: &[_]| {
            assert_eq!(set_svm(&sim, &bound.kfd, AT + offset, 0x1000, attributes), Ok(0));
        };
        set(0, &[(ACCESS, a), (IN_PLACE, b), (PREFERRED, a), (PREFETCH, 0), (GRANULARITY, 99)]);
        set(0x1000, &[(ACCESS, a), (ACCESS, b), (PREFERRED, a), (PREFETCH, a), (GRANULARITY, 5)]);
        set(0x2000, &[(IN_PLACE, a), (PREFERRED, b), (SET_FLAGS, 0x14), (CLEAR_FLAGS, 2)]);
        let get = |offset, size, asked: &[_]| {
            let (answer, after) = svm(&sim, &bound.kfd, GET, AT + offset, size, asked);
            assert_eq!(answer, Ok(0));
            after
        };
        let access = [(ACCESS, a), (ACCESS, b)];
        assert_eq!(get(0, 0x1000, &access), [(ACCESS, a), (IN_PLACE, b)]);
        assert_eq!(get(0, 0x2000, &access), [(ACCESS, a), (NO_ACCESS, b)]);
        assert_eq!(get(0, 0x3000, &access), [(NO_ACCESS, a), (NO_ACCESS, b)]);
        assert_eq!(get(0x2000, 0x1000, &access), [(IN_PLACE, a), (NO_ACCESS, b)]);
        let places = [(PREFERRED, 0), (PREFETCH, 0), (GRANULARITY, 0)];
        assert_eq!(get(0, 0x1000, &places), [(PREFERRED, a), (PREFETCH, 0), (GRANULARITY, 63)]);
        assert_eq!(
            get(0, 0x2000, &places),
            [(PREFERRED, a), (PREFETCH, UNDEFINED), (GRANULARITY, 5)]
        );
        assert_eq!(get(0, 0x3000, &places)[0], (PREFERRED, UNDEFINED));
        let flags = [(SET_FLAGS, 0), (CLEAR_FLAGS, 0)];
        assert_eq!(get(0x2000, 0x1000, &flags), [(SET_FLAGS, 0x15), (CLEAR_FLAGS, !0x15)]);
        assert_eq!(get(0, 0x3000, &flags), [(SET_FLAGS, 1), (CLEAR_FLAGS, !0x17)]);
    }

    #[test]
    fn questions_have_their_own_types_after_the_addresses() {
        let (sim, bound) = start("");
        let id = gpu_id(&sim, 0);
        for (kind, value) in
            [(IN_PLACE, id), (NO_ACCESS, id), (ACCESS, 0), (ACCESS, UNDEFINED), (8, 0)]
        {
            let ask = |start| svm(&sim, &bound.kfd, GET, start, 0x1000, &[(kind, value)]);
            assert_eq!(ask(AT), (Err(Errno::EINVAL), vec![(kind, value)]));
            assert_eq!(ask(AT - 0x1000).0, Err(Errno::EFAULT));
        }
        // No VM is needed.
        let sim = boot("rx7900:svm=1");
        map_memory(&sim, AT, 4096);
        assert_eq!(svm(&sim, &kfd(&sim), GET, AT, 4096, &[(PREFERRED, 0)]).0, Ok(0));
        assert_eq!(set_svm(&sim, &kfd(&sim), AT, 4096, &[]), Err(Errno::EINVAL));
    }

    #[test]
    fn attributes_stay_when_the_mapping_fails() {
        let (sim, bound) = start("");
        let id = gpu_id(&sim, 0);
        sim.protect(AT as usize + 0x1000, 0x1000, Protection::empty()).unwrap();
        let access = [(ACCESS, id)];
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &access), Err(Errno::EFAULT));
        assert_eq!(svm(&sim, &bound.kfd, GET, AT, 0x2000, &access), (Ok(0), access.to_vec()));
        // With XNACK on pages are looked at when a GPU comes to them.
        let (sim, bound) = start("");
        assert_eq!(xnack(&sim, &bound, 1), Ok(0));
        sim.protect(AT as usize, 0x1000, Protection::empty()).unwrap();
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &access), Ok(0));
        // Unless it is to be mapped at all times.
        let always = [(SET_FLAGS, 1 << 6)];
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x2000, &always), Err(Errno::EFAULT));
        assert_eq!(set_svm(&sim, &bound.kfd, AT + 0x1000, 0x1000, &always), Ok(0));
        assert!(sim.process().svm_ranges()[1].mapped);
    }

    #[test]
    fn unmapped_parts_go_without_a_call() {
        let (sim, bound) = start("");
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x8000, &[]), Ok(0));
        sim.unmap(AT as usize + 0x2000, 0x1000).unwrap();
        assert_eq!(listed(&sim), [(0, 0x2000), (0x3000, 0x5000)]);
        // So do parts that are mapped over.
        map_memory(&sim, AT + 0x6000, 0x4000);
        assert_eq!(listed(&sim), [(0, 0x2000), (0x3000, 0x3000)]);
        // Other changes take nothing.
        sim.protect(AT as usize, 0x1000, Protection::empty()).unwrap();
        assert_eq!(listed(&sim).len(), 2);
        sim.process().exit();
        assert_eq!(sim.machine().leftovers(), crate::Leftovers::default());
    }

    #[test]
    fn a_forked_child_has_no_ranges() {
        let (sim, bound) = start("");
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 0x1000, &[]), Ok(0));
        sim.enter_fork_child();
        assert_eq!(sim.process().svm_ranges(), []);
        sim.unmap(AT as usize, 0x1000).unwrap();
        sim.leave_child();
        assert_eq!(listed(&sim), [(0, 0x1000)]);
    }

    #[test]
    fn ranges_are_system_memory_with_xnack_off() {
        // Of 2 GiB half.
        let sim = boot("mi210:svm=1,ram=2G");
        let bound = bind(&sim);
        let half = 1 << 30;
        map_memory(&sim, AT, 2 << 30);
        let set = |offset, size| set_svm(&sim, &bound.kfd, AT + offset, size, &[]);
        let most = half - 8192;
        assert_eq!(set(0, most + 0x1000), Err(Errno::ENOMEM));
        assert_eq!(listed(&sim), []);
        assert_eq!(set(0, most), Ok(0));
        // What has a range is not new.
        assert_eq!(set(0, most), Ok(0));
        assert_eq!(set(most, 0x1000), Err(Errno::ENOMEM));
        let (flags, va) = (Flags::GTT, 0x10_0000);
        assert_eq!(alloc(&sim, &bound.kfd, 0, flags, va, 4096), Err(Errno::ENOMEM));
        sim.unmap(AT as usize, 0x2000).unwrap();
        assert_eq!(set(most, 0x1000), Ok(0));
        let (handle, _) = alloc(&sim, &bound.kfd, 0, flags, va, 4096).unwrap();
        // Not so with XNACK on, and all at once when it goes off.
        assert_eq!(xnack(&sim, &bound, 1), Ok(0));
        assert_eq!(set(most, 0x10_0000), Ok(0));
        assert_eq!(xnack(&sim, &bound, 0), Err(Errno::ENOMEM));
        assert_eq!(xnack(&sim, &bound, -1), Ok(0));
        sim.unmap((AT + most) as usize, 0x10_0000).unwrap();
        assert_eq!(xnack(&sim, &bound, 0), Ok(0));
        assert_eq!(free(&sim, &bound.kfd, handle), Ok(0));
        let other = sim.machine().spawn(crate::AddressesOnly::new());
        sim.process().exit();
        let others = bind(&other);
        assert!(alloc(&other, &others.kfd, 0, flags, va, most).is_ok());
    }

    #[test]
    fn long_ranges_come_in_pieces() {
        let (sim, bound) = start(",vram=16G");
        let at = 0x1_3fff_f000;
        map_memory(&sim, at, 1 << 30);
        assert_eq!(set_svm(&sim, &bound.kfd, at, 1 << 30, &[]), Ok(0));
        let lengths: Vec<u64> =
            sim.process().svm_ranges().iter().map(|range| range.length).collect();
        assert_eq!(lengths, [0x1000, 512 << 20, (512 << 20) - 0x1000]);
    }

    #[test]
    fn attributes_are_in_the_log() {
        use alloc::string::ToString;
        let (sim, bound) = start("");
        let id = gpu_id(&sim, 0);
        sim.machine().take_log();
        svm(&sim, &bound.kfd, SET, AT, 4096, &[(IN_PLACE, id), (SET_FLAGS, 1)]).0.unwrap();
        svm(&sim, &bound.kfd, GET, AT, 4096, &[(ACCESS, id), (99, 1)]).0.unwrap_err();
        svm(&sim, &bound.kfd, GET, AT, 4096, &[(ACCESS, id)]).0.unwrap();
        let lines: Vec<_> =
            sim.machine().log().iter().map(|record| record.operation.to_string()).collect();
        let ending = |line: usize| lines[line].split_once(" [").unwrap().1;
        assert_eq!(ending(0), format!("ACCESS_IN_PLACE {id:#x}, SET_FLAGS 0x1]"));
        assert_eq!(ending(1), format!("ACCESS {id:#x}, 0x63 0x1]"));
        assert_eq!(ending(2), format!("ACCESS {id:#x} -> ACCESS_IN_PLACE {id:#x}]"));
        let crate::Operation::Execute(call) = &sim.machine().log()[2].operation else { panic!() };
        assert_eq!(call.svm_attributes_sent(), [(ACCESS, id)]);
        assert_eq!(call.svm_attributes_returned(), [(IN_PLACE, id)]);
    }

    #[test]
    fn memory_of_the_host_counts_unless_told_otherwise() {
        let sim = boot("mi210:svm=1");
        let bound = bind(&sim);
        sim.process().set_memory_is_complete(false);
        assert_eq!(set_svm(&sim, &bound.kfd, AT, 4096, &[(ACCESS, gpu_id(&sim, 0))]), Ok(0));
        assert!(Os::map(&sim, anonymous(Placement::Free(AT as usize), 4096)).is_ok());
        sim.process().set_memory_is_complete(true);
        let result = set_svm(&sim, &bound.kfd, AT + 4096, 4096, &[]);
        assert_eq!((result, broken(&sim)), (Err(Errno::EFAULT), Vec::<Rule>::new()));
    }
}
