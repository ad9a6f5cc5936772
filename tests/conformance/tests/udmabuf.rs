//! Memory of an APU that udmabuf makes: the three policies, what each step's failure
//! leaves, and what is given back (B45: no way back where none was wanted).

use hsakmt_conformance::disturbed::{Disturbed, Run, Scenario};
use hsakmt_conformance::{Mode, Simulated, held, machine, process};
use hsakmt_core::context::{Options, UdmabufPolicy};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Object, Operation, Status};
use hsakmt_core::log::{Level, Logger};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags, PointerKind};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::seam::{DeviceNode, FaultPlan, Faulty, Platform};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Machine, Operation as Logged, Record};

const APU: &str = "apu:cores=1,kernel=7.2,udmabuf=64M";
const WITHOUT: &str = "apu:cores=1,kernel=7.2";
const SIZE: u64 = 64 << 10;

const VRAM: MemoryFlags = MemoryFlags::NON_PAGED.union(MemoryFlags::COARSE_GRAIN);
const VISIBLE: MemoryFlags = VRAM.union(MemoryFlags::HOST_ACCESS);

fn options(udmabuf: UdmabufPolicy) -> Options {
    Options { udmabuf, ..Options::default() }
}

fn open<P: Platform>(process: &Process<P>, options: Options) -> Guard<'_, P> {
    process.open_primary(|| Ok(options)).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    guard
}

fn gpu_node<P: Platform>(guard: &Guard<'_, P>) -> (u32, u32) {
    guard
        .machine(|machine| {
            let mut nodes = (0..).zip(machine.snapshot().nodes());
            let found = nodes.find(|(_, node)| node.is_gpu()).unwrap();
            Ok((found.0, found.1.gpu_id))
        })
        .unwrap()
}

fn request(node: u32, size: u64, flags: MemoryFlags) -> AllocationRequest {
    AllocationRequest { node, size, alignment: 0, flags, address: 0 }
}

fn free<P: Platform>(guard: &Guard<'_, P>, address: u64) -> Result<(), Error> {
    guard.free_memory(address, 0)
}

/// How often the driver was asked for a buffer, for a dma-buf over a file, and for a
/// buffer of that.
fn asked(machine: &Machine) -> [usize; 3] {
    let log = machine.take_log();
    ["ALLOC_MEMORY_OF_GPU", "UDMABUF_CREATE", "IMPORT_DMABUF"].map(|name| {
        let is = |record: &&Record| match &record.operation {
            Logged::Execute(execution) => execution.name == name,
            _ => false,
        };
        log.iter().filter(is).count()
    })
}

/// Allocates under a policy and frees again; what the driver was asked for.
fn allocate(
    profile: &str,
    policy: UdmabufPolicy,
    size: u64,
    flags: MemoryFlags,
) -> (Result<(), Error>, [usize; 3]) {
    let machine = machine(profile);
    let process = process(&machine);
    let guard = open(&process, options(policy));
    let (node, _) = gpu_node(&guard);
    // Regions of addresses stay.
    free(&guard, guard.allocate_memory(&request(0, SIZE, flags)).unwrap()).unwrap();
    let regions = guard.allocate_memory(&request(node, 4096, MemoryFlags::ONLY_ADDRESS)).unwrap();
    let before = held(&machine);
    machine.keep_log(true);
    let allocated = guard.allocate_memory(&request(node, size, flags));
    machine.keep_log(false);
    let asked = asked(&machine);
    let answer = allocated.map(|address| free(&guard, address).unwrap());
    assert_eq!(held(&machine), before, "{profile} {policy:?}");
    free(&guard, regions).unwrap();
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
    (answer, asked)
}

const DRIVERS: [usize; 3] = [1, 0, 0];
const UDMABUFS: [usize; 3] = [0, 1, 1];

#[test]
fn each_policy_with_the_device_and_without_it() {
    use UdmabufPolicy::{Off, Prefer, Require};
    for flags in [VRAM, VISIBLE] {
        assert_eq!(allocate(APU, Off, SIZE, flags), (Ok(()), DRIVERS));
        assert_eq!(allocate(WITHOUT, Off, SIZE, flags), (Ok(()), DRIVERS));
        assert_eq!(allocate(APU, Prefer, SIZE, flags), (Ok(()), UDMABUFS));
        assert_eq!(allocate(WITHOUT, Prefer, SIZE, flags), (Ok(()), DRIVERS));
        assert_eq!(allocate(APU, Require, SIZE, flags), (Ok(()), UDMABUFS));
        let (refused, asked) = allocate(WITHOUT, Require, SIZE, flags);
        let error = refused.unwrap_err();
        assert_eq!((error.status, error.errno), (Status::NOT_SUPPORTED, Some(Errno::ENOENT)));
        assert_eq!(error.operation, Operation::OpenDevice);
        assert_eq!(error.object, Object::Device(DeviceNode::Udmabuf));
        assert!(error.advice().unwrap().to_str().unwrap().contains("HSA_USE_UDMABUF"));
        assert_eq!(asked, [0; 3]);
    }
}

/// The module's limit, and a driver that takes no dma-bufs of others.
#[test]
fn what_udmabuf_or_the_driver_refuses_is_told_or_made_otherwise() {
    let limited = "apu:cores=1,kernel=7.2,udmabuf=1M";
    let old = "apu:cores=1,kernel=6.1,udmabuf=64M";
    for (profile, size, operation, word, tried) in [
        (limited, 2 << 20, "UDMABUF_CREATE", "size_limit_mb", [0, 1, 0]),
        (old, SIZE, "IMPORT_DMABUF", "6.8", UDMABUFS),
    ] {
        let (refused, asked) = allocate(profile, UdmabufPolicy::Require, size, VISIBLE);
        let error = refused.unwrap_err();
        assert_eq!((error.status, error.errno), (Status::ERROR, Some(Errno::EINVAL)));
        assert_eq!(error.operation.to_string(), operation);
        assert!(error.advice().unwrap().to_str().unwrap().contains(word), "{error}");
        assert_eq!(asked, tried);
        let fallen_back = [1, tried[1], tried[2]];
        assert_eq!(allocate(profile, UdmabufPolicy::Prefer, size, VISIBLE), (Ok(()), fallen_back));
    }
}

/// What an imported buffer cannot be is refused before anything is asked for.
#[test]
fn memory_that_udmabuf_cannot_make() {
    for flag in [
        MemoryFlags::NO_ADDRESS,
        MemoryFlags::UNCACHED,
        MemoryFlags::AQL_QUEUE,
        MemoryFlags::EXTENDED_COHERENT,
    ] {
        let flags = MemoryFlags::NON_PAGED | flag;
        let machine = machine(APU);
        for (policy, expected) in
            [(UdmabufPolicy::Prefer, None), (UdmabufPolicy::Require, Some(Status::NOT_SUPPORTED))]
        {
            let process = process(&machine);
            let guard = open(&process, options(policy));
            let (node, _) = gpu_node(&guard);
            machine.keep_log(true);
            let answer = guard.allocate_memory(&request(node, SIZE, flags));
            machine.keep_log(false);
            assert_eq!(answer.as_ref().err().map(|error| error.status), expected, "{flag:?}");
            assert_eq!(asked(&machine)[1], 0);
            drop(guard);
            process.close_primary().unwrap();
        }
        machine.assert_no_violations();
    }
}

/// B45: where udmabuf is required, exhaustion is NO_MEMORY and there is no second
/// attempt; where it is preferred there is one.
#[test]
fn exhaustion_is_told_where_udmabuf_is_required() {
    for plan in ["memory_file#*=ENOMEM", "UDMABUF_CREATE#*=ENOMEM", "IMPORT_DMABUF#*=ENOMEM"] {
        for (policy, buffers) in [(UdmabufPolicy::Require, 0), (UdmabufPolicy::Prefer, 1)] {
            let machine = machine(APU);
            let plan = FaultPlan::parse(plan).unwrap();
            let process: Process<Disturbed<'_>> =
                Process::new(Faulty::new(machine.spawn(Linux), &plan));
            let guard = open(&process, options(policy));
            let (node, _) = gpu_node(&guard);
            machine.keep_log(true);
            let answer = guard.allocate_memory(&request(node, SIZE, VISIBLE));
            assert_eq!((plan.struck(), asked(&machine)[0]), (1, buffers));
            match answer {
                Ok(address) => free(&guard, address).unwrap(),
                Err(error) => {
                    assert_eq!(
                        (error.status, error.errno),
                        (Status::NO_MEMORY, Some(Errno::ENOMEM))
                    );
                }
            }
            drop(guard);
            process.close_primary().unwrap();
            machine.assert_no_violations();
        }
    }
}

/// The CPU and the GPU see the same bytes, and nothing but the mapping and the buffer
/// stays between the calls.
#[test]
fn both_sides_see_the_memory_and_no_descriptor_stays() {
    let machine = machine(APU);
    let process: Process<Simulated> = process(&machine);
    let guard = open(&process, options(UdmabufPolicy::Require));
    let (node, gpu_id) = gpu_node(&guard);
    let descriptors = process.platform().process().descriptors();
    let address = guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap();
    assert_eq!(process.platform().process().descriptors(), descriptors);
    guard.map_memory(address, SIZE).unwrap();
    let gpu = process.platform().process().gpu(gpu_id);

    Linux.write_memory(address as usize + 4096, b"from the CPU").unwrap();
    let mut bytes = [0; 12];
    gpu.read(address + 4096, &mut bytes).unwrap();
    assert_eq!(&bytes, b"from the CPU");
    gpu.write(address + SIZE - 12, b"from the GPU").unwrap();
    Linux.read_memory((address + SIZE) as usize - 12, &mut bytes).unwrap();
    assert_eq!(&bytes, b"from the GPU");

    let info = guard.pointer_info(address + 5).unwrap();
    assert_eq!((info.kind, info.node), (PointerKind::Allocated, node));
    assert_eq!((info.gpu_address, info.cpu_address, info.size), (address, address, SIZE));
    let exported = guard.export_buffer(address + 4096, 4096).unwrap();
    assert_eq!(exported.offset, 4096);
    process.platform().process().close(exported.descriptor).unwrap();
    guard.unmap_memory(address).unwrap();
    free(&guard, address).unwrap();
    // The next one is of zeros.
    let again = guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap();
    Linux.read_memory(again as usize + 4096, &mut bytes).unwrap();
    assert_eq!(bytes, [0; 12]);
    free(&guard, again).unwrap();
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

/// A thousand alive need no descriptor but those of the one being made; the one that
/// finds none says so.
#[test]
fn descriptors_are_needed_one_allocation_at_a_time() {
    let machine = machine(APU);
    let process: Process<Simulated> = process(&machine);
    let guard = open(&process, options(UdmabufPolicy::Require));
    let (node, _) = gpu_node(&guard);
    let open_now = process.platform().process().descriptors().len() as u32;
    let first = guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap();
    let before = held(&machine);
    for room in 0..3 {
        process.platform().process().set_descriptor_limit(3 + open_now + room);
        let error = guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap_err();
        assert_eq!(error.errno, Some(Errno::EMFILE), "{room}: {error}");
        assert!(error.advice().unwrap().to_str().unwrap().contains("RLIMIT_NOFILE"));
        assert_eq!(held(&machine), before);
    }
    process.platform().process().set_descriptor_limit(3 + open_now + 3);
    let round = || {
        let many: Vec<u64> = (0..1000)
            .map(|_| guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap())
            .collect();
        for address in many {
            free(&guard, address).unwrap();
        }
        held(&machine)
    };
    // The first one reserves addresses, which stay.
    let once = round();
    assert_eq!((&once.buffers, once.files), (&before.buffers, before.files));
    assert_eq!(round(), once);
    free(&guard, first).unwrap();
    drop(guard);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

/// Where it goes: fixed addresses, sizes of more than a huge page and of their own
/// mapping, memory that the CPU does not see with a debugger and without.
#[test]
fn every_kind_of_address_is_given_back() {
    for debugger_access in [false, true] {
        let machine = machine("apu:cores=1,kernel=7.2,udmabuf=4G");
        let process: Process<Simulated> = process(&machine);
        let options = Options { debugger_access, ..options(UdmabufPolicy::Require) };
        let guard = open(&process, options);
        let (node, _) = gpu_node(&guard);
        let wanted = guard.allocate_memory(&request(node, SIZE, VRAM)).unwrap();
        let before = held(&machine);
        for size in [4096, 3 << 20, 1 << 30] {
            for flags in [VRAM, VISIBLE] {
                let address = guard.allocate_memory(&request(node, size, flags)).unwrap();
                guard.map_memory(address, size).unwrap();
                guard.unmap_memory(address).unwrap();
                free(&guard, address).unwrap();
            }
        }
        assert_eq!(held(&machine).buffers, before.buffers);
        assert_eq!(held(&machine).files, before.files);
        free(&guard, wanted).unwrap();
        let flags = VISIBLE | MemoryFlags::FIXED_ADDRESS;
        let fixed = AllocationRequest { address: wanted, ..request(node, SIZE, flags) };
        assert_eq!(guard.allocate_memory(&fixed), Ok(wanted));
        assert!(guard.allocate_memory(&fixed).is_err());
        // The close frees what was not.
        drop(guard);
        process.close_primary().unwrap();
        let left = held(&machine);
        assert!(left.buffers.is_empty() && left.orphaned_bytes == 0, "{left}");
        machine.assert_no_violations();
    }
}

/// GPUs with memory of their own, and the host's memory, are as ever.
#[test]
fn what_is_no_memory_of_an_apu_is_as_ever() {
    let discrete = "rx7900:cus=2,cores=1,kernel=7.2,udmabuf=64M";
    assert_eq!(allocate(discrete, UdmabufPolicy::Require, SIZE, VISIBLE), (Ok(()), DRIVERS));
    let gtt = VISIBLE | MemoryFlags::GTT_ACCESS;
    let (answer, [_, created, imported]) = allocate(APU, UdmabufPolicy::Require, SIZE, gtt);
    assert_eq!((answer, created, imported), (Ok(()), 0, 0));
}

const ERRNOS: [Errno; 5] =
    [Errno::EINTR, Errno::ENOMEM, Errno::EINVAL, Errno::EMFILE, Errno::EPERM];

fn prepare(guard: &Guard<'_, Disturbed<'_>>) -> Vec<u64> {
    let (node, _) = gpu_node(guard);
    free(guard, guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap()).unwrap();
    vec![u64::from(node)]
}

fn scenario(run: &mut Run<'_, '_>) {
    let (guard, node) = (run.guard, run.prepared[0] as u32);
    for flags in [VISIBLE, VRAM] {
        let asked = request(node, SIZE, flags);
        let address = run.call("allocate", || guard.allocate_memory(&asked));
        run.call("map", || guard.map_memory(address, SIZE));
        run.call("unmap", || guard.unmap_memory(address));
        run.call("free", || free(guard, address));
    }
}

fn no_state(_: &Guard<'_, Disturbed<'_>>) -> String {
    String::new()
}

#[test]
fn every_failure_of_one_step_leaves_nothing() {
    for (options, least) in [
        (required as fn() -> Options, 10),
        // What fails there is made otherwise.
        (preferred, 6),
    ] {
        let scenario = Scenario { profile: APU, options, prepare, run: scenario, state: no_state };
        scenario.every_operation(Mode::Primary, &ERRNOS, least);
        scenario.every_operation(Mode::Secondary, &ERRNOS, least);
    }
}

fn required() -> Options {
    options(UdmabufPolicy::Require)
}

fn preferred() -> Options {
    options(UdmabufPolicy::Prefer)
}

/// A way back that was taken is told, as a warning; a success is not.
#[test]
fn a_way_back_is_told() {
    use std::sync::Mutex;
    static LINES: Mutex<Vec<(Level, String)>> = Mutex::new(Vec::new());
    fn take(level: Level, message: core::fmt::Arguments<'_>, _: usize) {
        LINES.lock().unwrap().push((level, message.to_string()));
    }
    let said = |profile: &str| {
        let machine = machine(profile);
        let process: Process<Simulated> = process(&machine);
        let logger = Logger::new(Level::Info, take, 0);
        let guard = open(&process, Options { logger, ..preferred() });
        let (node, _) = gpu_node(&guard);
        LINES.lock().unwrap().clear();
        let address = guard.allocate_memory(&request(node, SIZE, VISIBLE)).unwrap();
        free(&guard, address).unwrap();
        drop(guard);
        process.close_primary().unwrap();
        core::mem::take(&mut *LINES.lock().unwrap())
    };
    assert_eq!(said(APU), []);
    let lines = said(WITHOUT);
    assert_eq!(lines.len(), 1, "{lines:?}");
    assert_eq!(lines[0].0, Level::Warning);
    assert!(lines[0].1.contains("without udmabuf") && lines[0].1.contains("ENOENT"), "{lines:?}");
}
