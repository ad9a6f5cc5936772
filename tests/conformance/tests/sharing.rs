//! Buffers that go from context to context and from process to process.

use std::sync::Arc;

use hsakmt_conformance::{Simulated, held, machine, process};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Object, Status};
use hsakmt_core::execute::execute;
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind, SharedHandle};
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{Copied, CopyAudit, Counted, Counters, DeviceNode, Driver, Platform};
use hsakmt_core::uapi::amdgpu::{GemMetadata, GemMetadataOp};
use hsakmt_core::uapi::drm::PrimeFdToHandle;
use hsakmt_linux_shim::Linux;
use kfd_sim::{GpuView, Machine};

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0";
const SIZE: u64 = 64 << 10;

const VRAM: MemoryFlags = MemoryFlags::NON_PAGED;
const VISIBLE: MemoryFlags = VRAM.union(MemoryFlags::HOST_ACCESS);
const UNADDRESSED: MemoryFlags = VRAM.union(MemoryFlags::NO_ADDRESS);
const GTT: MemoryFlags = VISIBLE.union(MemoryFlags::GTT_ACCESS);

fn request(node: u32, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size: SIZE, alignment: 0, flags, address: 0 }
}

fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

/// The kernel's id of the GPU of a node.
fn gpu_id<P: Platform>(guard: &Guard<'_, P>, node: u32) -> u32 {
    guard.machine(|machine| Ok(machine.snapshot().nodes()[node as usize].gpu_id)).unwrap()
}

fn open(process: &Process<Simulated>) -> Guard<'_, Simulated> {
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    guard
}

fn close_descriptor(process: &Process<Simulated>, descriptor: u32) {
    process.platform().process().close(descriptor).unwrap();
}

fn read(address: u64) -> [u8; 4] {
    let mut bytes = [0; 4];
    Linux.read_memory(address as usize, &mut bytes).unwrap();
    bytes
}

fn write(address: u64, bytes: [u8; 4]) {
    Linux.write_memory(address as usize, &bytes).unwrap();
}

fn gpu_read(gpu: &GpuView, address: u64) -> [u8; 4] {
    let mut bytes = [0; 4];
    gpu.read(address, &mut bytes).unwrap();
    bytes
}

/// One side of a shared buffer.
struct Side<'a> {
    guard: &'a Guard<'a, Simulated>,
    gpu: GpuView,
    node: u32,
}

/// A buffer of `from` is known in `to` too; either may write first and go first.
fn shared(
    machine: &Machine,
    from: &Side<'_>,
    to: &Side<'_>,
    pass: impl Fn(u32) -> u32,
    close: impl Fn(u32, u32),
) {
    for flags in [VRAM, VISIBLE, GTT] {
        for exporter_first in [true, false] {
            let before = held(machine);
            let what = format!("{flags:?}, {exporter_first}");
            let address = from.guard.allocate_memory(&request(from.node, flags)).unwrap();
            from.guard.map_memory(address, SIZE).unwrap();
            let exported = from.guard.export_buffer(address + 4096, 4096).unwrap();
            assert_eq!(exported.offset, 4096, "{what}");
            let received = pass(exported.descriptor);
            let imported = to.guard.import_buffer(received, Some(&[to.node]), false).unwrap();
            close(exported.descriptor, received);
            assert_eq!(imported.size, SIZE, "{what}");
            to.guard.map_memory(imported.address, SIZE).unwrap();
            // Whoever writes, the other sees it.
            from.gpu.write(address + 100, &[1, 2, 3, 4]).unwrap();
            assert_eq!(gpu_read(&to.gpu, imported.address + 100), [1, 2, 3, 4], "{what}");
            to.gpu.write(imported.address + 8000, &[5, 6, 7, 8]).unwrap();
            assert_eq!(gpu_read(&from.gpu, address + 8000), [5, 6, 7, 8], "{what}");
            if flags.contains(MemoryFlags::HOST_ACCESS) {
                assert_eq!(read(address + 8000), [5, 6, 7, 8], "{what}");
                write(address + 16, [9; 4]);
                assert_eq!(gpu_read(&to.gpu, imported.address + 16), [9; 4], "{what}");
            }
            let free = || {
                from.guard.unmap_memory(address).unwrap();
                from.guard.free_memory(address, SIZE).unwrap();
            };
            let deregister = || to.guard.deregister_memory(imported.address).unwrap();
            if exporter_first {
                free();
                assert_eq!(gpu_read(&to.gpu, imported.address + 100), [1, 2, 3, 4], "{what}");
                deregister();
            } else {
                deregister();
                assert_eq!(gpu_read(&from.gpu, address + 8000), [5, 6, 7, 8], "{what}");
                free();
            }
            let after = held(machine);
            let rest =
                |held: &kfd_sim::Leftovers| (held.buffers.clone(), held.orphaned_bytes, held.files);
            assert_eq!(rest(&before), rest(&after), "{what}");
        }
    }
    machine.assert_no_violations();
}

#[test]
fn a_primary_and_a_secondary_context_share() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    let primary = open(&process);
    let handle = process.open_secondary(Options::default()).unwrap();
    let secondary = process.enter(handle).unwrap();
    secondary.acquire_machine().unwrap();
    let node = gpus(&primary)[0];
    let id = gpu_id(&primary, node);
    let sim = process.platform().process();
    let one = Side { guard: &primary, gpu: sim.gpu(id), node };
    let other = Side { guard: &secondary, gpu: sim.gpu_in_context(0, id), node };
    let close = |exported, _| close_descriptor(&process, exported);
    shared(&machine, &one, &other, |descriptor| descriptor, close);
    shared(&machine, &other, &one, |descriptor| descriptor, close);
    drop((primary, secondary));
    process.close_secondary(handle).unwrap();
    process.close_primary().unwrap();
}

#[test]
fn two_processes_share() {
    let machine = machine(PROFILE);
    let (first, second) = (process(&machine), process(&machine));
    let (ours, theirs) = (open(&first), open(&second));
    let node = gpus(&ours)[0];
    let id = gpu_id(&ours, node);
    let (from, to) = (first.platform().process(), second.platform().process());
    let one = Side { guard: &ours, gpu: from.gpu(id), node };
    let other = Side { guard: &theirs, gpu: to.gpu(id), node };
    shared(
        &machine,
        &one,
        &other,
        |descriptor| to.receive(&from, descriptor).unwrap(),
        |exported, received| {
            close_descriptor(&first, exported);
            close_descriptor(&second, received);
        },
    );
    // A process that is gone with all it had leaves what others took in.
    let address = ours.allocate_memory(&request(node, VISIBLE)).unwrap();
    write(address, [3; 4]);
    let exported = ours.export_buffer(address, SIZE).unwrap();
    let received = to.receive(&from, exported.descriptor).unwrap();
    from.exit();
    let imported = theirs.import_buffer(received, None, true).unwrap();
    theirs.map_memory(imported.address, SIZE).unwrap();
    assert_eq!(gpu_read(&other.gpu, imported.address), [3; 4]);
}

/// Runs in a primary context, which leaves nothing behind.
fn in_primary(profile: &str, test: impl FnOnce(&Process<Simulated>, &Guard<'_, Simulated>, u32)) {
    let machine = machine(profile);
    let process = process(&machine);
    let guard = open(&process);
    let node = gpus(&guard)[0];
    let buffers = held(&machine).buffers;
    test(&process, &guard, node);
    assert_eq!(held(&machine).buffers, buffers);
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn an_import_is_what_a_pointer_is_asked_for() {
    in_primary(PROFILE, |process, guard, node| {
        let nodes = gpus(guard);
        for (flags, kind) in [(VISIBLE, VISIBLE), (GTT, VRAM | MemoryFlags::GTT_ACCESS)] {
            let address = guard.allocate_memory(&request(node, flags)).unwrap();
            let fd = guard.export_buffer(address, SIZE).unwrap().descriptor;
            let imported = guard.import_buffer(fd, Some(&nodes[..1]), false).unwrap();
            close_descriptor(process, fd);
            assert_eq!(imported.address % (256 << 10), 0);
            assert_eq!((imported.node, imported.metadata, imported.metadata_size), (node, 0, 0));
            let info = guard.pointer_info(imported.address + 5000).unwrap();
            assert_eq!(info.kind, PointerKind::RegisteredGraphics);
            assert_eq!((info.cpu_address, info.gpu_address), (0, imported.address));
            assert_eq!((info.size, info.node), (SIZE, node));
            assert_eq!(info.flags, kind | MemoryFlags::COARSE_GRAIN);
            assert_eq!((info.registered, info.mapped), (&nodes[..1], &[][..]));
            // Not where it was not registered for.
            let elsewhere = guard.map_memory_to_nodes(imported.address, SIZE, &nodes[1..]);
            assert_eq!(elsewhere.unwrap_err().status, Status::ERROR);
            guard.map_memory(imported.address, SIZE).unwrap();
            assert_eq!(guard.pointer_info(imported.address).unwrap().mapped, &nodes[..1]);
            guard.set_user_data(imported.address, 7).unwrap();
            assert_eq!(guard.pointer_info(imported.address).unwrap().user_data, 7);
            guard.deregister_memory(imported.address).unwrap();
            assert!(guard.pointer_info(imported.address).is_err());
            guard.free_memory(address, SIZE).unwrap();
        }
    });
}

#[test]
fn a_buffer_without_an_address_goes_out_and_comes_in() {
    in_primary(PROFILE, |process, guard, node| {
        let name = guard.allocate_memory(&request(node, UNADDRESSED)).unwrap();
        let first = guard.export_buffer(name, SIZE).unwrap();
        assert_eq!(first.offset, 0);
        // Taken in without a place, it is a name that can go out again.
        let imported = guard.import_buffer(first.descriptor, None, false).unwrap();
        assert!(imported.address >= 1 << 56);
        let again = guard.export_buffer(imported.address + 4096, SIZE - 4096).unwrap();
        assert_eq!(again.offset, 4096);
        let file = |number| process.platform().process().descriptor(number).unwrap();
        assert_eq!(file(first.descriptor).file, file(again.descriptor).file);
        assert!(file(again.descriptor).close_on_exec);
        let map = guard.map_memory(imported.address, SIZE).unwrap_err();
        assert_eq!(map.status, Status::INVALID_PARAMETER);
        // With an address it can be mapped.
        let placed = guard.import_buffer(again.descriptor, None, true).unwrap();
        guard.map_memory(placed.address, SIZE).unwrap();
        for descriptor in [first.descriptor, again.descriptor] {
            close_descriptor(process, descriptor);
        }
        guard.deregister_memory(imported.address).unwrap();
        guard.deregister_memory(placed.address).unwrap();
        guard.free_memory(name, SIZE).unwrap();
    });
}

#[test]
fn what_an_exporter_attached_is_there_until_the_end() {
    in_primary(PROFILE, |process, guard, node| {
        let platform = process.platform();
        let graphics = platform.open(DeviceNode::Render(128)).unwrap();
        for length in [1_u32, 63, 64, 65, 256] {
            let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
            let fd = guard.export_buffer(address, SIZE).unwrap().descriptor;
            let mut prime = PrimeFdToHandle { fd: fd as i32, ..Default::default() };
            execute(platform, &graphics, &mut prime, &mut []).unwrap();
            let mut notes = GemMetadata {
                handle: prime.handle,
                op: GemMetadataOp::SET_METADATA,
                data_size_bytes: length,
                ..Default::default()
            };
            notes.data.fill(0x5a5a_5a5a);
            execute(platform, &graphics, &mut notes, &mut []).unwrap();
            let one = guard.import_buffer(fd, None, false).unwrap();
            let other = guard.import_buffer(fd, None, true).unwrap();
            close_descriptor(process, fd);
            guard.deregister_memory(one.address).unwrap();
            assert_eq!(other.metadata_size, length);
            let mut bytes = vec![0; length as usize];
            Linux.read_memory(other.metadata as usize, &mut bytes).unwrap();
            assert!(bytes.iter().all(|&byte| byte == 0x5a));
            guard.deregister_memory(other.address).unwrap();
            guard.free_memory(address, SIZE).unwrap();
        }
        drop(graphics);
    });
}

#[test]
fn ranges_and_kinds_that_cannot_go_out_are_told() {
    in_primary(PROFILE, |_, guard, node| {
        let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
        for (from, size) in [
            (address, SIZE + 1),
            (address + SIZE - 1, 2),
            (address, 0),
            (address, u64::MAX),
            (64 << 10, 4096),
        ] {
            let error = guard.export_buffer(from, size).unwrap_err();
            assert_eq!(error.status, Status::INVALID_PARAMETER, "{from:#x} {size:#x}");
        }
        guard.free_memory(address, SIZE).unwrap();
        let paged = guard.allocate_memory(&request(node, MemoryFlags::HOST_ACCESS)).unwrap();
        let error = guard.export_buffer(paged, SIZE).unwrap_err();
        assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::EPERM)));
        assert!(error.advice().unwrap().to_str().unwrap().contains("GTTAccess"));
        guard.free_memory(paged, SIZE).unwrap();
        let only = MemoryFlags::ONLY_ADDRESS;
        let reserved = guard.allocate_memory(&request(node, only)).unwrap();
        assert_eq!(guard.export_buffer(reserved, SIZE).unwrap_err().status, Status::ERROR);
        guard.free_memory(reserved, SIZE).unwrap();
    });
    in_primary("rx7900:kernel=6.1", |_, guard, node| {
        let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
        let error = guard.export_buffer(address, SIZE).unwrap_err();
        assert_eq!((error.status, error.object), (Status::NOT_SUPPORTED, Object::KfdMinor(12)));
        guard.free_memory(address, SIZE).unwrap();
    });
}

#[test]
fn descriptors_that_are_no_buffers_are_told_from_a_process_that_is_not_open() {
    in_primary(PROFILE, |process, guard, _| {
        let foreign = process.platform().process().open_foreign().unwrap();
        for (descriptor, errno) in
            [(99, Errno::EBADF), (u32::MAX, Errno::EBADF), (foreign, Errno::EINVAL)]
        {
            let error = guard.import_buffer(descriptor, None, true).unwrap_err();
            assert_eq!((error.status, error.errno), (Status::ERROR, Some(errno)));
            assert!(error.advice().is_some());
            let error = guard.buffer_info(descriptor).unwrap_err();
            assert_eq!((error.status, error.errno), (Status::NOT_SUPPORTED, Some(errno)));
        }
        let node = guard.import_buffer(99, Some(&[1000]), true).unwrap_err();
        assert_eq!(node.status, Status::INVALID_NODE_UNIT);
        close_descriptor(process, foreign);
        process.platform().enter_vfork_child();
        let child = guard.import_buffer(99, None, true).unwrap_err();
        assert_eq!(child.status, Status::KERNEL_IO_CHANNEL_NOT_OPENED);
        process.platform().leave_child();
        process.platform().machine().take_violations();
    });
}

#[test]
fn buffers_of_gpus_that_were_left_out_are_refused_and_system_memory_is_not() {
    let machine = machine(PROFILE);
    let (first, second) = (process(&machine), process(&machine));
    let ours = open(&first);
    let nodes = gpus(&ours);
    let ids: Vec<u32> = nodes.iter().map(|&node| gpu_id(&ours, node)).collect();
    let selection = hsakmt_core::context::GpuSelection::Only(vec![ids[1]]);
    second.open_primary(|| Ok(Options { gpus: selection, ..Options::default() })).unwrap();
    let theirs = second.primary().unwrap();
    theirs.acquire_machine().unwrap();
    let (from, to) = (first.platform().process(), second.platform().process());
    let pass = |flags| {
        let address = ours.allocate_memory(&request(nodes[0], flags)).unwrap();
        let fd = ours.export_buffer(address, SIZE).unwrap().descriptor;
        to.receive(&from, fd).unwrap()
    };
    let error = theirs.import_buffer(pass(VRAM), None, true).unwrap_err();
    assert_eq!((error.status, error.object), (Status::ERROR, Object::Gpu(ids[0])));
    let imported = theirs.import_buffer(pass(GTT), None, true).unwrap();
    theirs.map_memory(imported.address, SIZE).unwrap();
    to.gpu_access(ids[1], imported.address, true).unwrap();
}

/// The descriptor limit of the soaks.
const DESCRIPTORS: u32 = 32;

#[test]
fn ten_thousand_buffers_go_out_and_come_in_with_32_descriptors() {
    in_primary("rx7900:cus=2,cpus=1,cores=1,kernel=7.2", |process, guard, node| {
        let sim = process.platform().process();
        sim.set_descriptor_limit(DESCRIPTORS);
        let live: Vec<(u64, u64)> = (0..10_000)
            .map(|_| {
                let request = AllocationRequest { size: 4096, ..request(node, VRAM) };
                let address = guard.allocate_memory(&request).unwrap();
                let fd = guard.export_buffer(address, 4096).unwrap().descriptor;
                let imported = guard.import_buffer(fd, None, false).unwrap();
                close_descriptor(process, fd);
                (address, imported.address)
            })
            .collect();
        assert!(sim.descriptors().len() < 8);
        for (address, imported) in live {
            guard.free_memory(address, 4096).unwrap();
            guard.deregister_memory(imported).unwrap();
        }
    });
}

#[test]
fn who_runs_out_of_descriptors_is_told_and_loses_nothing() {
    in_primary(PROFILE, |process, guard, node| {
        let sim = process.platform().process();
        sim.set_descriptor_limit(DESCRIPTORS);
        let address = guard.allocate_memory(&request(node, VISIBLE)).unwrap();
        write(address, [6; 4]);
        let mut descriptors = vec![];
        let error = loop {
            match guard.export_buffer(address, SIZE) {
                Ok(exported) => descriptors.push(exported.descriptor),
                Err(error) => break error,
            }
        };
        assert!(descriptors.len() > 10);
        assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::EMFILE)));
        assert_eq!(error.object, Object::Address(address));
        assert!(error.advice().unwrap().to_str().unwrap().contains("RLIMIT_NOFILE"));
        // An import needs none, and one that is closed is enough to go on.
        let imported = guard.import_buffer(descriptors[0], None, true).unwrap();
        guard.map_memory(imported.address, SIZE).unwrap();
        assert_eq!(gpu_read(&sim.gpu(gpu_id(guard, node)), imported.address), [6; 4]);
        close_descriptor(process, descriptors.pop().unwrap());
        descriptors.push(guard.export_buffer(address, SIZE).unwrap().descriptor);
        for descriptor in descriptors {
            close_descriptor(process, descriptor);
        }
        guard.deregister_memory(imported.address).unwrap();
        guard.free_memory(address, SIZE).unwrap();
    });
}

#[test]
fn a_forked_child_shares_nothing_until_it_opens() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    let guard = open(&process);
    let node = gpus(&guard)[0];
    let address = guard.allocate_memory(&request(node, VISIBLE)).unwrap();
    write(address, [4; 4]);
    let fd = guard.export_buffer(address, SIZE).unwrap().descriptor;
    drop(guard);
    let sim = process.platform();
    sim.enter_fork_child();
    assert!(process.primary().is_err());
    // What it inherited is a descriptor, with which it gets at the contents.
    let child = open(&process);
    let imported = child.import_buffer(fd, None, true).unwrap();
    child.map_memory(imported.address, SIZE).unwrap();
    assert_eq!(gpu_read(&sim.process().gpu(gpu_id(&child, node)), imported.address), [4; 4]);
}

/// A process that shares by number.
const NUMBERED: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1,p2p=1,kernel=7.2,svm=0,ipc=1";

#[test]
fn processes_share_by_number_where_the_driver_can() {
    let machine = machine(NUMBERED);
    let (first, second) = (process(&machine), process(&machine));
    let (ours, theirs) = (open(&first), open(&second));
    let nodes = gpus(&ours);
    let (node, id) = (nodes[0], gpu_id(&ours, nodes[0]));
    let before = held(&machine).buffers;
    for flags in [VRAM, VISIBLE, GTT, UNADDRESSED] {
        let address = ours.allocate_memory(&request(node, flags)).unwrap();
        let handle = ours.share_memory(address, SIZE).unwrap();
        assert_eq!(ours.share_memory(address, 1).unwrap(), handle);
        assert_eq!((handle.0[6], handle.0[7]), (16, id));
        let named = flags == UNADDRESSED;
        assert_eq!(handle.0[4], if named { 5 } else { 1 });
        let taken = theirs.import_shared_memory(&handle, Some(&nodes[..1])).unwrap();
        assert_eq!(taken.size, SIZE);
        let info = theirs.pointer_info(taken.address).unwrap();
        assert_eq!((info.kind, info.flags), (PointerKind::RegisteredShared, flags));
        assert_eq!(info.registered, &nodes[..1]);
        if !named {
            ours.map_memory(address, SIZE).unwrap();
            first.platform().process().gpu(id).write(address, &[8; 4]).unwrap();
            theirs.map_memory(taken.address, SIZE).unwrap();
            assert_eq!(gpu_read(&second.platform().process().gpu(id), taken.address), [8; 4]);
            if flags.contains(MemoryFlags::HOST_ACCESS) {
                assert_eq!(read(taken.address), [8; 4]);
                write(taken.address + 4, [1; 4]);
                assert_eq!(read(address + 4), [1; 4]);
            }
            ours.unmap_memory(address).unwrap();
        }
        ours.free_memory(address, SIZE).unwrap();
        theirs.deregister_memory(taken.address).unwrap();
        let gone = theirs.import_shared_memory(&handle, None).unwrap_err();
        assert_eq!((gone.status, gone.errno), (Status::ERROR, Some(Errno::EINVAL)));
    }
    assert_eq!(held(&machine).buffers, before);
    machine.assert_no_violations();
}

#[test]
fn handles_and_sizes_that_share_nothing_are_refused_before_the_driver_is_asked() {
    in_primary(NUMBERED, |process, guard, node| {
        let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
        for (at, size) in [
            (address + 4096, SIZE),
            (address, 0),
            (address, SIZE + 1),
            (address, 1 << 44),
            (address, u64::MAX),
            (1 << 20, 4096),
        ] {
            let error = guard.share_memory(at, size).unwrap_err();
            assert_eq!(error.status, Status::INVALID_PARAMETER, "{at:#x}, {size:#x}");
        }
        let SharedHandle(words) = guard.share_memory(address, SIZE).unwrap();
        let with = |at: usize, word| {
            let mut words = words;
            words[at] = word;
            guard.import_shared_memory(&SharedHandle(words), None).unwrap_err()
        };
        for source in [0, 4, 6, u32::MAX] {
            assert_eq!(with(4, source).status, Status::INVALID_PARAMETER);
        }
        assert_eq!(with(6, 0).status, Status::INVALID_PARAMETER);
        assert_eq!((with(7, 1).status, with(7, 1).object), (Status::ERROR, Object::Gpu(1)));
        assert_eq!(with(0, 12_345).errno, Some(Errno::EINVAL));
        // Nearly 16 TiB: the pages are counted in 32 bits, the bytes are not.
        let mut large = words;
        large[6] = u32::MAX;
        let taken = guard.import_shared_memory(&SharedHandle(large), None).unwrap();
        assert_eq!(taken.size, u64::from(u32::MAX) << 12);
        guard.deregister_memory(taken.address).unwrap();
        assert!(process.platform().machine().violations().is_empty());
        guard.free_memory(address, SIZE).unwrap();
    });
}

#[test]
fn a_driver_without_numbers_is_told() {
    in_primary(PROFILE, |_, guard, node| {
        let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
        let errors = [
            guard.share_memory(address, SIZE).unwrap_err(),
            guard
                .import_shared_memory(
                    &SharedHandle([1, 2, 3, 4, 1, 0, 16, gpu_id(guard, node)]),
                    None,
                )
                .unwrap_err(),
        ];
        for error in errors {
            assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::ENOTTY)));
            assert!(error.advice().unwrap().to_str().unwrap().contains("not supported"));
        }
        guard.free_memory(address, SIZE).unwrap();
    });
}

#[test]
fn no_pointer_goes_to_the_driver_and_no_answer_is_lost() {
    // A driver in another address space: what it writes comes back.
    let machine = machine(PROFILE);
    let audit = CopyAudit::new();
    let process = Process::new(Copied::new(machine.spawn(Linux), &audit));
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.enter(ContextHandle::PRIMARY).unwrap();
    guard.acquire_machine().unwrap();
    let node = gpus(&guard)[0];
    let address = guard.allocate_memory(&request(node, VRAM)).unwrap();
    let exported = guard.export_buffer(address + 100, 1).unwrap();
    let imported = guard.import_buffer(exported.descriptor, None, true).unwrap();
    assert_eq!((exported.offset, imported.size), (100, SIZE));
    let info = guard.buffer_info(exported.descriptor).unwrap();
    assert_eq!((info.size, info.is_device_memory), (SIZE, true));
    assert_eq!(info.gpu_id, gpu_id(&guard, node));
    assert_eq!(audit.violations(), 0);
}

#[test]
fn each_call_is_the_requests_it_needs() {
    let machine = machine(PROFILE);
    let counters = Arc::new(Counters::new());
    let process: Process<Counted<Simulated, Arc<Counters>>> =
        Process::new(Counted::new(machine.spawn(Linux), Arc::clone(&counters)));
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.enter(ContextHandle::PRIMARY).unwrap();
    guard.acquire_machine().unwrap();
    let node = gpus(&guard)[0];
    let address = guard.allocate_memory(&request(node, UNADDRESSED)).unwrap();
    let count = |call: &mut dyn FnMut()| {
        let start = counters.snapshot();
        call();
        counters.snapshot().since(&start).system_calls()
    };
    let mut descriptor = 0;
    let exports = count(&mut || {
        descriptor = guard.export_buffer(address, SIZE).unwrap().descriptor;
    });
    let mut imported = 0;
    let imports = count(&mut || {
        imported = guard.import_buffer(descriptor, None, false).unwrap().address;
    });
    let ends = count(&mut || guard.deregister_memory(imported).unwrap());
    assert_eq!((exports, imports, ends), (1, 2, 1));
}
