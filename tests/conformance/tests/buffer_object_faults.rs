//! Every failure of a single operation below every call about buffer objects.

use hsakmt_conformance::Mode;
use hsakmt_conformance::disturbed::{Disturbed, Run, Scenario};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::memory::{
    AllocationRequest, BufferHandle, GpuRights, MemoryFlags, ObjectMapping, Tag,
};
use hsakmt_core::process::Guard;

const ERRNOS: [Errno; 6] =
    [Errno::EINTR, Errno::ENOMEM, Errno::EMFILE, Errno::EBADF, Errno::EINVAL, Errno::ENODEV];

const MACHINE: &str = "rx7900:gpus=1,cus=2,cpus=1,cores=1,kernel=7.2,svm=0";
const NODE: u32 = 1;
const MINOR: u32 = 128;
const SIZE: u64 = 64 << 10;
const RIGHTS: GpuRights = GpuRights { read: true, write: true };

fn allocate(guard: &Guard<'_, Disturbed<'_>>, flags: MemoryFlags) -> u64 {
    let request = AllocationRequest { node: NODE, size: SIZE, alignment: 0, flags, address: 0 };
    guard.allocate_memory(&request).unwrap()
}

fn mapping(address: u64) -> ObjectMapping {
    ObjectMapping { offset: 0, size: SIZE, address }
}

/// A descriptor of a buffer, addresses, and a handle of the same buffer. A mapping was
/// there before: its timeline stays.
fn prepare(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
    let visible = MemoryFlags::NON_PAGED | MemoryFlags::HOST_ACCESS;
    let (buffer, other) = (allocate(guard, visible), allocate(guard, visible));
    let addresses = allocate(guard, MemoryFlags::ONLY_ADDRESS);
    let [fd, other] = [buffer, other].map(|it| guard.export_buffer(it, SIZE).unwrap().descriptor);
    let kept = guard.import_object(MINOR, other, Tag::None).unwrap().handle;
    guard.map_object(kept, &mapping(addresses), RIGHTS, NODE).unwrap();
    guard.unmap_object(kept, &mapping(addresses), NODE).unwrap();
    // The object's own dma-buf comes with the first export and stays with it.
    guard.export_object(MINOR, kept).unwrap();
    vec![u64::from(fd), addresses, kept.to_raw()]
}

fn scenario(run: &mut Run<'_, '_>) {
    let guard = run.guard;
    let (fd, addresses) = (run.prepared[0] as u32, run.prepared[1]);
    let kept = BufferHandle::from_raw(run.prepared[2]);
    let place = mapping(addresses);
    run.call("export", || guard.export_object(MINOR, kept));
    for (tag, keep_tag) in [(Tag::None, false), (Tag::Offered(7), true), (Tag::Expected(7), false)]
    {
        let import = || guard.import_object(MINOR, fd, tag).map_err(|failure| failure.error);
        let taken = run.call("import", import);
        run.call("import again", import);
        run.call("map", || guard.map_object(taken.handle, &place, RIGHTS, NODE));
        run.call("show", || guard.show_object(taken.handle));
        run.call("offset", || guard.object_offset(MINOR, taken.handle));
        // A wait that fails twice would not be one failure.
        run.call("unmap", || guard.unmap_object(taken.handle, &place, NODE));
        run.call("free one", || guard.free_object(taken.handle, keep_tag));
        run.call("free", || guard.free_object(taken.handle, keep_tag));
        assert!(guard.show_object(taken.handle).is_err());
    }
}

fn no_state(_: &Guard<'_, Disturbed<'_>>) -> String {
    String::new()
}

const SCENARIO: Scenario = Scenario {
    profile: MACHINE,
    options: Options::default,
    prepare,
    run: scenario,
    state: no_state,
};

#[test]
fn in_the_primary_context() {
    SCENARIO.every_operation(Mode::Primary, &ERRNOS, 20);
}

#[test]
fn in_a_secondary_context() {
    SCENARIO.every_operation(Mode::Secondary, &ERRNOS, 20);
}

/// The first change on a GPU makes its timeline, which stays whatever happens then.
#[test]
fn the_first_mapping_of_a_gpu() {
    fn first(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
        let buffer = allocate(guard, MemoryFlags::NON_PAGED);
        let addresses = allocate(guard, MemoryFlags::ONLY_ADDRESS);
        let fd = guard.export_buffer(buffer, SIZE).unwrap().descriptor;
        let handle = guard.import_object(MINOR, fd, Tag::None).unwrap().handle;
        vec![addresses, handle.to_raw()]
    }
    let run = |run: &mut Run<'_, '_>| {
        let guard = run.guard;
        let (place, handle) = (mapping(run.prepared[0]), BufferHandle::from_raw(run.prepared[1]));
        if guard.map_object(handle, &place, RIGHTS, NODE).is_err() {
            assert!(run.machine.leftovers().gem_handles[0].ends_with("mapped 0 times"));
            run.call("map", || guard.map_object(handle, &place, RIGHTS, NODE));
        }
        run.call("unmap", || guard.unmap_object(handle, &place, NODE));
    };
    let scenario = Scenario { prepare: first, run, ..SCENARIO };
    scenario.every_operation(Mode::Primary, &ERRNOS, 0);
    scenario.every_operation(Mode::Secondary, &ERRNOS, 0);
}
