//! Buffer objects: dma-bufs under a handle, mapped at addresses of the caller's choice.

use std::sync::atomic::{AtomicU32, Ordering};

use hsakmt_conformance::{Simulated, held, machine, process};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Status};
use hsakmt_core::execute::execute;
use hsakmt_core::memory::{
    AllocationRequest, BufferHandle, GpuRights, MemoryFlags, ObjectMapping, Tag,
};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{DeviceNode, Driver};
use hsakmt_core::uapi::amdgpu::{GemMetadata, GemMetadataOp};
use hsakmt_core::uapi::drm::PrimeFdToHandle;
use hsakmt_core::uapi::request_name;
use hsakmt_linux_shim::Linux;
use kfd_sim::GpuView;

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0";
const SIZE: u64 = 64 << 10;
const WHOLE: u64 = 0;

const VISIBLE: MemoryFlags = MemoryFlags::NON_PAGED.union(MemoryFlags::HOST_ACCESS);
const ALL: GpuRights = GpuRights { read: true, write: true };

/// A context with the first GPU.
struct Side<'a> {
    process: &'a Process<Simulated>,
    guard: Guard<'a, Simulated>,
    gpu: GpuView,
    node: u32,
    minor: u32,
}

impl<'a> Side<'a> {
    /// Of a context that is open; `secondary` is how many of those came before, if it
    /// is one.
    fn of(process: &'a Process<Simulated>, handle: ContextHandle, secondary: Option<u16>) -> Self {
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        let (node, id) = guard
            .machine(|machine| {
                let nodes = (0..).zip(machine.snapshot().nodes());
                let found = nodes.filter(|(_, node)| node.is_gpu()).map(|(id, it)| (id, it.gpu_id));
                Ok(found.collect::<Vec<_>>()[0])
            })
            .unwrap();
        let minor = guard.render_minor(node).unwrap();
        let sim = process.platform().process();
        let gpu = match secondary {
            None => sim.gpu(id),
            Some(number) => sim.gpu_in_context(number, id),
        };
        Side { process, guard, gpu, node, minor }
    }

    fn allocate(&self, flags: MemoryFlags) -> u64 {
        let node = self.node;
        let request = AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 };
        self.guard.allocate_memory(&request).unwrap()
    }

    /// Addresses without memory.
    fn addresses(&self) -> u64 {
        self.allocate(MemoryFlags::ONLY_ADDRESS)
    }

    fn free(&self, address: u64) {
        self.guard.free_memory(address, SIZE).unwrap();
    }

    fn close(&self, descriptor: u32) {
        self.process.platform().process().close(descriptor).unwrap();
    }

    /// An allocation of ours and its handle.
    fn object(&self, flags: MemoryFlags) -> (u64, BufferHandle) {
        let address = self.allocate(flags);
        let fd = self.guard.export_buffer(address, SIZE).unwrap().descriptor;
        let imported = self.guard.import_object(self.minor, fd, Tag::None).unwrap();
        assert_eq!((imported.size, imported.tag), (SIZE, 0));
        self.close(fd);
        (address, imported.handle)
    }

    fn map(&self, handle: BufferHandle, address: u64, offset: u64, rights: GpuRights) {
        let mapping = ObjectMapping { offset, size: SIZE - offset, address };
        self.guard.map_object(handle, &mapping, rights, self.node).unwrap();
    }

    fn unmap(&self, handle: BufferHandle, address: u64, offset: u64) {
        let mapping = ObjectMapping { offset, size: SIZE - offset, address };
        self.guard.unmap_object(handle, &mapping, self.node).unwrap();
    }

    fn read(&self, address: u64) -> [u8; 4] {
        let mut bytes = [0; 4];
        self.gpu.read(address, &mut bytes).unwrap();
        bytes
    }
}

fn open(process: &Process<Simulated>) {
    process.open_primary(|| Ok(Options::default())).unwrap();
    process.primary().and_then(|guard| guard.acquire_machine()).unwrap();
}

/// Runs in a primary and in a secondary context, which leave nothing behind.
fn in_each_context(profile: &str, test: impl Fn(&Side<'_>)) {
    for secondary in [false, true] {
        let machine = machine(profile);
        let process = process(&machine);
        open(&process);
        let empty = held(&machine);
        let handle = match secondary {
            false => ContextHandle::PRIMARY,
            true => process.open_secondary(Options::default()).unwrap(),
        };
        let side = Side::of(&process, handle, secondary.then_some(0));
        test(&side);
        drop(side);
        if secondary {
            process.close_secondary(handle).unwrap();
            assert_eq!(held(&machine), empty);
        }
        process.close_primary().unwrap();
        let after = held(&machine);
        let none: &[String] = &[];
        assert_eq!((&*after.gem_handles, after.syncobjs), (none, 0));
        machine.assert_no_violations();
    }
}

#[test]
fn a_buffer_is_where_the_caller_maps_it() {
    in_each_context(PROFILE, |side| {
        for flags in [VISIBLE, MemoryFlags::NON_PAGED, VISIBLE | MemoryFlags::GTT_ACCESS] {
            let (address, handle) = side.object(flags);
            side.guard.map_memory(address, SIZE).unwrap();
            let [whole, part] = [(); 2].map(|()| side.addresses());
            side.map(handle, whole, WHOLE, ALL);
            side.map(handle, part, 0x1000, GpuRights { read: true, write: false });
            side.gpu.write(address + 0x1010, &[1, 2, 3, 4]).unwrap();
            assert_eq!(side.read(whole + 0x1010), [1, 2, 3, 4]);
            assert_eq!(side.read(part + 0x10), [1, 2, 3, 4]);
            assert!(side.gpu.write(part, &[0]).is_err());
            side.gpu.write(whole, &[5; 4]).unwrap();
            assert_eq!(side.read(address), [5; 4]);
            side.unmap(handle, part, 0x1000);
            assert!(side.gpu.access(part, false).is_err());
            // The free ends the other mapping.
            side.guard.free_object(handle, false).unwrap();
            assert!(side.gpu.access(whole, false).is_err());
            side.guard.unmap_memory(address).unwrap();
            for address in [address, whole, part] {
                side.free(address);
            }
        }
    });
}

#[test]
fn contents_outlive_the_exporter() {
    in_each_context(PROFILE, |side| {
        let (address, handle) = side.object(VISIBLE);
        Linux.write_memory(address as usize, &[7; 4]).unwrap();
        side.free(address);
        let seen = side.guard.show_object(handle).unwrap();
        assert_eq!(side.guard.show_object(handle).unwrap(), seen);
        let mut bytes = [0; 4];
        Linux.read_memory(seen as usize, &mut bytes).unwrap();
        assert_eq!(bytes, [7; 4]);
        let place = side.addresses();
        side.map(handle, place, WHOLE, ALL);
        assert_eq!(side.read(place), [7; 4]);
        // Out again, and in again: the same buffer.
        let fd = side.guard.export_object(side.minor, handle).unwrap();
        let found = side.process.platform().process().descriptor(fd).unwrap();
        assert!(found.close_on_exec);
        let again = side.guard.import_object(side.minor, fd, Tag::None).unwrap();
        side.close(fd);
        assert_eq!((again.handle, again.size), (handle, SIZE));
        let offset = side.guard.object_offset(side.minor, handle).unwrap();
        assert_ne!(offset, 0);
        side.guard.free_object(handle, false).unwrap();
        assert_eq!(side.read(place), [7; 4], "there is one import left");
        side.guard.free_object(handle, false).unwrap();
        assert!(side.gpu.access(place, false).is_err());
        assert!(Linux.read_memory(seen as usize, &mut bytes).is_err());
        assert_eq!(held(&side.process.platform().machine().clone()).orphaned_bytes, 0);
        side.free(place);
    });
}

#[test]
fn what_is_left_is_closed_with_the_context() {
    in_each_context(PROFILE, |side| {
        let (address, handle) = side.object(VISIBLE);
        side.guard.show_object(handle).unwrap();
        let place = side.addresses();
        side.map(handle, place, WHOLE, ALL);
        side.free(address);
    });
}

#[test]
fn a_handle_that_names_nothing_is_told() {
    in_each_context(PROFILE, |side| {
        let (address, handle) = side.object(VISIBLE);
        let place = side.addresses();
        let mapping = ObjectMapping { offset: 0, size: SIZE, address: place };
        side.guard.free_object(handle, false).unwrap();
        // The driver gives the number to another one.
        let (other_address, other) = side.object(VISIBLE);
        assert_ne!(handle, other);
        let raw = |raw| BufferHandle::from_raw(raw);
        for wrong in [handle, raw(0), raw(1), raw(u64::MAX), raw(other.to_raw() ^ 1 << 58)] {
            let guard = &side.guard;
            let answers = [
                guard.map_object(wrong, &mapping, ALL, side.node),
                guard.unmap_object(wrong, &mapping, side.node),
                guard.show_object(wrong).map(drop),
                guard.object_offset(side.minor, wrong).map(drop),
                guard.export_object(side.minor, wrong).map(drop),
                guard.free_object(wrong, false),
                guard.free_object(wrong, true),
            ];
            for answer in answers {
                let error = answer.unwrap_err();
                assert_eq!(error.status, Status::INVALID_HANDLE);
                assert_eq!(error.object, Object::Handle(wrong.to_raw()));
            }
        }
        side.guard.free_object(other, false).unwrap();
        for address in [address, other_address, place] {
            side.free(address);
        }
    });
}

#[test]
fn what_cannot_be_is_told_with_the_drivers_reason() {
    in_each_context(PROFILE, |side| {
        let (address, handle) = side.object(VISIBLE);
        let place = side.addresses();
        let map = |offset, size, address| {
            let mapping = ObjectMapping { offset, size, address };
            side.guard.map_object(handle, &mapping, ALL, side.node).unwrap_err()
        };
        for (offset, size, address) in [
            (0, SIZE + 4096, place),
            (4096, SIZE, place),
            (1, 4096, place),
            (0, 1, place),
            (0, 0, place),
            (0, SIZE, place + 1),
            (0, SIZE, 0),
            (0, SIZE, u64::MAX),
        ] {
            let error = map(offset, size, address);
            assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::EINVAL)));
            assert_eq!(error.object, Object::Address(address));
        }
        side.map(handle, place, WHOLE, ALL);
        assert_eq!(map(0, SIZE, place).errno, Some(Errno::EINVAL), "something is there");
        let unmap = |node, address| {
            let mapping = ObjectMapping { offset: 0, size: SIZE, address };
            side.guard.unmap_object(handle, &mapping, node).unwrap_err()
        };
        assert_eq!(unmap(side.node, place + 4096).errno, Some(Errno::ENOENT));
        // A CPU, nobody, another GPU.
        for node in [0, 99, side.node + 1] {
            assert_eq!(unmap(node, place).status, Status::INVALID_NODE_UNIT, "{node}");
        }
        let other = side.guard.render_minor(side.node + 1).unwrap();
        for minor in [other, 1] {
            let errors = [
                side.guard.export_object(minor, handle).unwrap_err(),
                side.guard.object_offset(minor, handle).unwrap_err(),
            ];
            for error in errors {
                assert_eq!(error.status, Status::INVALID_HANDLE);
                assert_eq!(error.object, Object::Device(DeviceNode::Render(minor)));
            }
        }
        let import =
            |minor, fd| side.guard.import_object(minor, fd, Tag::None).map(drop).unwrap_err().error;
        assert_eq!(import(1, 0).status, Status::INVALID_HANDLE);
        let foreign = side.process.platform().process().open_foreign().unwrap();
        for (fd, errno) in [(99, Errno::EBADF), (foreign, Errno::EINVAL)] {
            let error = import(side.minor, fd);
            assert_eq!((error.status, error.errno), (Status::ERROR, Some(errno)));
        }
        side.close(foreign);
        side.guard.free_object(handle, false).unwrap();
        side.free(address);
        side.free(place);
    });
}

#[test]
fn a_tag_is_given_once_and_must_be_named() {
    in_each_context(PROFILE, |side| {
        let address = side.allocate(VISIBLE);
        let fd = side.guard.export_buffer(address, SIZE).unwrap().descriptor;
        let import = |tag| side.guard.import_object(side.minor, fd, tag);
        let free = |handle, keep| side.guard.free_object(handle, keep).unwrap();
        // None yet: any but 0 is another one.
        assert_eq!(import(Tag::Expected(7)).unwrap_err().other_tag, Some(0));
        free(import(Tag::Expected(0)).unwrap().handle, true);
        let given = import(Tag::Offered(7)).unwrap();
        assert_eq!(given.tag, 7);
        free(given.handle, true);
        // It has one now.
        let first = import(Tag::Offered(8)).unwrap();
        assert_eq!(first.tag, 7);
        free(first.handle, true);
        let failure = import(Tag::Expected(8)).unwrap_err();
        assert_eq!(failure.other_tag, Some(7));
        assert_eq!(failure.error.status, Status::INVALID_PARAMETER);
        assert_eq!(held(side.process.platform().machine()).gem_handles, [""; 0]);
        // An import that had nothing to do with tags leaves it.
        free(import(Tag::None).unwrap().handle, false);
        let found = import(Tag::Expected(7)).unwrap();
        let twice = import(Tag::Expected(7)).unwrap();
        assert_eq!((found.handle, found.tag), (twice.handle, 7));
        free(found.handle, false);
        assert_eq!(import(Tag::Expected(7)).unwrap_err().other_tag, Some(0));
        free(twice.handle, false);
        side.close(fd);
        side.free(address);
    });
}

#[test]
fn what_a_graphics_driver_noted_is_left_to_it() {
    in_each_context(PROFILE, |side| {
        let address = side.allocate(VISIBLE);
        let fd = side.guard.export_buffer(address, SIZE).unwrap().descriptor;
        let platform = side.process.platform();
        let graphics = platform.open(DeviceNode::Render(side.minor)).unwrap();
        let mut prime = PrimeFdToHandle { fd: fd as i32, ..Default::default() };
        execute(platform, &graphics, &mut prime, &mut []).unwrap();
        let mut notes = GemMetadata {
            handle: prime.handle,
            op: GemMetadataOp::SET_METADATA,
            tiling_info: 0x1234,
            data_size_bytes: 16,
            ..Default::default()
        };
        notes.data.fill(3);
        execute(platform, &graphics, &mut notes, &mut []).unwrap();
        let told = || {
            let op = GemMetadataOp::GET_METADATA;
            let mut block = GemMetadata { handle: prime.handle, op, ..Default::default() };
            execute(platform, &graphics, &mut block, &mut []).unwrap();
            (block.tiling_info, block.data_size_bytes, block.data[0], block.data[1])
        };
        let plain = side.guard.import_object(side.minor, fd, Tag::None).unwrap();
        side.guard.free_object(plain.handle, false).unwrap();
        assert_eq!(told(), (0x1234, 16, 3, 3));
        let tagged = side.guard.import_object(side.minor, fd, Tag::Offered(9)).unwrap();
        assert_eq!(tagged.tag, 3);
        side.guard.free_object(tagged.handle, true).unwrap();
        assert_eq!(told(), (0x1234, 16, 3, 3));
        drop(graphics);
        side.close(fd);
        side.free(address);
    });
}

#[test]
fn contexts_and_processes_share_by_handles() {
    let machine = machine(PROFILE);
    let (first, second) = (process(&machine), process(&machine));
    open(&first);
    open(&second);
    let handle = first.open_secondary(Options::default()).unwrap();
    {
        let ours = Side::of(&first, ContextHandle::PRIMARY, None);
        let beside = Side::of(&first, handle, Some(0));
        let theirs = Side::of(&second, ContextHandle::PRIMARY, None);
        let (address, object) = ours.object(VISIBLE);
        Linux.write_memory(address as usize, &[4; 4]).unwrap();
        let fd = ours.guard.export_object(ours.minor, object).unwrap();
        let sent = second.platform().process().receive(&first.platform().process(), fd).unwrap();
        for (side, fd) in [(&beside, fd), (&theirs, sent)] {
            let taken = side.guard.import_object(side.minor, fd, Tag::None).unwrap();
            side.close(fd);
            let place = side.addresses();
            side.map(taken.handle, place, WHOLE, ALL);
            assert_eq!(side.read(place), [4; 4]);
            side.gpu.write(place + 4, &[6; 4]).unwrap();
        }
        // One context's handle is none in another one.
        let seen = beside.guard.show_object(object).unwrap_err();
        assert_eq!(seen.status, Status::INVALID_HANDLE);
        let mut bytes = [0; 8];
        Linux.read_memory(address as usize, &mut bytes).unwrap();
        assert_eq!(bytes, [4, 4, 4, 4, 6, 6, 6, 6]);
    }
    first.close_secondary(handle).unwrap();
    first.close_primary().unwrap();
    second.close_primary().unwrap();
    let after = held(&machine);
    assert_eq!((after.gem_handles.len(), after.syncobjs), (0, 0));
    machine.assert_no_violations();
}

/// Names of the requests of a call.
fn requests(machine: &kfd_sim::Machine, call: impl FnOnce()) -> Vec<&'static str> {
    machine.keep_log(true);
    machine.take_log();
    call();
    let log = machine.take_log();
    machine.keep_log(false);
    let name = |record: kfd_sim::Record| match record.operation {
        kfd_sim::Operation::Execute(execution) => Some(request_name(execution.request)),
        _ => None,
    };
    log.into_iter().filter_map(name).collect()
}

#[test]
fn a_change_of_mappings_is_waited_for() {
    in_each_context(PROFILE, |side| {
        let machine = side.process.platform().machine().clone();
        let (address, handle) = side.object(VISIBLE);
        let place = side.addresses();
        let map = || side.map(handle, place, WHOLE, ALL);
        let change = ["AMDGPU_GEM_VA", "SYNCOBJ_TIMELINE_WAIT"];
        let first = requests(&machine, map);
        assert_eq!(first[0], "SYNCOBJ_CREATE");
        assert_eq!(first[1..], change);
        assert_eq!(requests(&machine, || side.unmap(handle, place, WHOLE)), change);
        assert_eq!(requests(&machine, map), change);
        // The handle takes its mappings along.
        let free = || side.guard.free_object(handle, false).unwrap();
        assert_eq!(requests(&machine, free), ["GEM_CLOSE"]);
        side.free(address);
        side.free(place);
    });
}

#[test]
fn kernels_without_points_of_mappings_map_all_the_same() {
    let machine = machine("rx7900:kernel=6.12,cus=2,cpus=1,cores=1");
    let process = process(&machine);
    open(&process);
    let side = Side::of(&process, ContextHandle::PRIMARY, None);
    let (address, handle) = side.object(VISIBLE);
    let place = side.addresses();
    for _ in 0..2 {
        side.map(handle, place, WHOLE, ALL);
        side.gpu.access(place, true).unwrap();
        side.unmap(handle, place, WHOLE);
    }
    side.guard.free_object(handle, false).unwrap();
    side.free(address);
    side.free(place);
    drop(side);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn kernels_without_mappings_for_compute_say_so() {
    let machine = machine("rx7900:kernel=6.1,cus=2,cpus=1,cores=1");
    let process = process(&machine);
    open(&process);
    let side = Side::of(&process, ContextHandle::PRIMARY, None);
    let mapping = ObjectMapping { offset: 0, size: SIZE, address: 1 << 32 };
    let nothing = BufferHandle::from_raw(0);
    let error = side.guard.map_object(nothing, &mapping, ALL, side.node).unwrap_err();
    assert_eq!((error.status, error.object), (Status::NOT_SUPPORTED, Object::KfdMinor(15)));
    drop(side);
    process.close_primary().unwrap();
}

/// Descriptors are open during a call at most.
#[test]
fn ten_thousand_buffers_need_few_descriptors() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    open(&process);
    let side = Side::of(&process, ContextHandle::PRIMARY, None);
    let sim = process.platform().process();
    sim.set_descriptor_limit(32);
    let before = held(&machine);
    let mut handles = Vec::new();
    for _ in 0..10_000 {
        let request = AllocationRequest {
            node: side.node,
            size: 4096,
            alignment: 0,
            flags: MemoryFlags::NON_PAGED,
            address: 0,
        };
        let address = side.guard.allocate_memory(&request).unwrap();
        let fd = side.guard.export_buffer(address, 4096).unwrap().descriptor;
        handles.push(side.guard.import_object(side.minor, fd, Tag::None).unwrap().handle);
        side.close(fd);
        side.guard.free_memory(address, 4096).unwrap();
    }
    let descriptors = |held: kfd_sim::Leftovers| {
        held.processes.into_values().map(|it| it.descriptors).collect::<Vec<_>>()
    };
    assert_eq!(descriptors(held(&machine)), descriptors(before));
    // One too many: the call says so and loses nothing.
    let spare = std::iter::from_fn(|| sim.open_foreign().ok()).collect::<Vec<_>>();
    let error = side.guard.export_object(side.minor, handles[0]).unwrap_err();
    assert_eq!((error.status, error.errno), (Status::INVALID_HANDLE, Some(Errno::EMFILE)));
    assert!(error.advice().unwrap().to_str().unwrap().contains("RLIMIT_NOFILE"));
    spare.into_iter().for_each(|fd| side.close(fd));
    side.close(side.guard.export_object(side.minor, handles[0]).unwrap());
    for handle in handles {
        side.guard.free_object(handle, false).unwrap();
    }
    assert_eq!(held(&machine).gem_handles, [""; 0]);
    drop(side);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

/// Some import and free one buffer, others map another one: nobody ever has a handle
/// that was closed under it.
#[test]
fn threads_import_map_and_free() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    open(&process);
    let side = Side::of(&process, ContextHandle::PRIMARY, None);
    let (address, stays) = side.object(VISIBLE);
    let fd = side.guard.export_object(side.minor, stays).unwrap();
    side.guard.free_object(stays, false).unwrap();
    let places = [(); 4].map(|()| side.addresses());
    let refused = AtomicU32::new(0);
    std::thread::scope(|scope| {
        for place in places {
            let (process, refused, minor, node) = (&process, &refused, side.minor, side.node);
            scope.spawn(move || {
                let guard = process.primary().unwrap();
                let mapping = ObjectMapping { offset: 0, size: SIZE, address: place };
                for _ in 0..200 {
                    let taken = guard.import_object(minor, fd, Tag::None).unwrap();
                    guard.map_object(taken.handle, &mapping, ALL, node).unwrap();
                    guard.show_object(taken.handle).unwrap();
                    guard.unmap_object(taken.handle, &mapping, node).unwrap();
                    guard.free_object(taken.handle, false).unwrap();
                    if guard.show_object(taken.handle).is_err() {
                        refused.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
    });
    println!("{} handles were gone", refused.into_inner());
    side.close(fd);
    let after = held(&machine);
    assert_eq!((after.gem_handles.len(), after.orphaned_bytes), (0, 0));
    for address in places.into_iter().chain([address]) {
        side.free(address);
    }
    drop(side);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn a_vfork_child_changes_nothing() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    open(&process);
    let side = Side::of(&process, ContextHandle::PRIMARY, None);
    let (address, handle) = side.object(VISIBLE);
    let before = held(&machine);
    let platform = process.platform();
    platform.enter_vfork_child();
    let guard = &side.guard;
    let mapping = ObjectMapping { offset: 0, size: SIZE, address: 1 << 32 };
    let answers = [
        guard.import_object(side.minor, 0, Tag::None).map(drop).map_err(|it| it.error),
        guard.map_object(handle, &mapping, ALL, side.node),
        guard.unmap_object(handle, &mapping, side.node),
        guard.show_object(handle).map(drop),
        guard.object_offset(side.minor, handle).map(drop),
        guard.export_object(side.minor, handle).map(drop),
        guard.free_object(handle, false),
    ];
    platform.leave_child();
    for answer in answers {
        assert_eq!(answer.unwrap_err().status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
    }
    assert_eq!(held(&machine).gem_handles, before.gem_handles);
    side.guard.free_object(handle, false).unwrap();
    side.free(address);
    drop(side);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}
