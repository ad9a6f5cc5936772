//! Queues: of every type on every machine, over closes, resets, hung hardware and odd
//! trees.
//!
//! # Safety
//! Command queues are closed within the context that they were opened in.

use std::cell::Cell;

use hsakmt_conformance::{
    Alteration, Altered, Mode, Simulated, held, machine, machine_under, open, process,
};
use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Operation, Status};
use hsakmt_core::event::{EventRequest, Waited};
use hsakmt_core::memory::{AllocationRequest, MemoryFlags};
use hsakmt_core::process::{Guard, Process};
use hsakmt_core::queue::command_queue::CommandQueue;
use hsakmt_core::queue::plan::{Ring, Share};
use hsakmt_core::queue::{AqlPointerAddresses, Queue, QueueOptions};
use hsakmt_core::seam::{Call, Driver, Platform};
use hsakmt_core::uapi::kfd::{EventData, EventType, QueueType};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Kernel, Machine};

const SHARE: Share = Share { percentage: 100, priority: 0 };
const RING: u64 = 0x1_0000;
const SMALL: &str = "mi300x:gpus=1,cus=2,cpus=1,cores=1";

/// The nodes of GPUs, the first of which is the least.
fn gpus<P: Platform>(guard: &Guard<'_, P>) -> Vec<u32> {
    guard
        .machine(|machine| {
            let nodes = (0..).zip(machine.snapshot().nodes());
            Ok(nodes.filter(|(_, node)| node.is_gpu()).map(|(id, _)| id).collect())
        })
        .unwrap()
}

fn allocate<P: Platform>(guard: &Guard<'_, P>, node: u32, size: u64, aql: bool) -> u64 {
    let mut flags = MemoryFlags::NON_PAGED
        | MemoryFlags::GTT_ACCESS
        | MemoryFlags::HOST_ACCESS
        | MemoryFlags::EXECUTE;
    if aql {
        flags |= MemoryFlags::AQL_QUEUE;
    }
    let request = AllocationRequest { node, size, alignment: 0, flags, address: 0 };
    let address = guard.allocate_memory(&request).unwrap();
    guard.map_memory_to_nodes(address, size, &[node]).unwrap();
    address
}

/// Ring and pointers of a queue.
#[derive(Clone, Copy)]
struct Parts {
    node: u32,
    ring: u64,
    told_bytes: u64,
    pointers: u64,
}

impl Parts {
    fn new<P: Platform>(guard: &Guard<'_, P>, node: u32, queue_type: QueueType) -> Parts {
        let major = guard.machine(|machine| Ok(machine.node(node)?.gfx_version.major)).unwrap();
        let twice = queue_type == QueueType::COMPUTE_AQL && major < 9;
        Parts {
            node,
            ring: allocate(guard, node, RING, twice),
            told_bytes: if twice { 2 * RING } else { RING },
            pointers: allocate(guard, node, 0x1000, false),
        }
    }

    fn options(&self, queue_type: QueueType) -> QueueOptions {
        QueueOptions {
            node: self.node,
            queue_type,
            share: SHARE,
            ring: Ring { address: self.ring, bytes: self.told_bytes },
            sdma_engine: 0,
            metadata_ring_bytes: 0,
            aql_pointers: Some(AqlPointerAddresses {
                read: self.pointers,
                write: self.pointers + 64,
            }),
            error_event: 0,
            error_reason: 0,
        }
    }

    fn create<P: Platform>(
        &self,
        guard: &Guard<'_, P>,
        queue_type: QueueType,
    ) -> Result<Queue, Error> {
        guard.create_queue(&self.options(queue_type))
    }

    fn free<P: Platform>(self, guard: &Guard<'_, P>) {
        for address in [self.ring, self.pointers] {
            guard.unmap_memory(address).unwrap();
            guard.free_memory(address, 0).unwrap();
        }
    }
}

/// Runs `test` in a primary context that knows the machine; nothing is left after it.
fn in_context<P: Platform>(machine: &Machine, platform: P, test: impl FnOnce(&Guard<'_, P>)) {
    let process = Process::new(platform);
    process.open_primary(|| Ok(Options::default())).unwrap();
    let guard = process.primary().unwrap();
    guard.acquire_machine().unwrap();
    let buffers = held(machine).buffers;
    test(&guard);
    drop(guard);
    process.close_primary().unwrap();
    let after = held(machine);
    assert!(after.queues.is_empty() && after.ranges.is_empty(), "{after:?}");
    // The register pages go with the close.
    assert!(after.buffers.len() <= buffers.len(), "{after:?}");
    machine.assert_no_violations();
}

/// The simulator compares every buffer with the driver's figure, to the byte (field fault
/// B54), and every type of queue is made wherever there are such engines (B60).
#[test]
fn every_type_on_every_machine() {
    for kernel in [Kernel::V6_1, Kernel::V6_12, Kernel::V7_2] {
        for profile in [
            "mi300x:gpus=2,cpus=1,cores=1",
            "mi300x:cpx,gpus=1",
            "mi210",
            "mi50",
            "rx6800",
            "rx7900",
            "rx9070",
            "apu",
            "mi50+rx7900",
        ] {
            let machine = machine_under(profile, kernel);
            in_context(&machine, machine.spawn(Linux), |guard| {
                for &node in gpus(guard).iter().take(2) {
                    let engines = guard
                        .machine(|machine| Ok(machine.node(node)?.num_sdma_xgmi_engines))
                        .unwrap();
                    for queue_type in [
                        QueueType::COMPUTE,
                        QueueType::SDMA,
                        QueueType::COMPUTE_AQL,
                        QueueType::SDMA_XGMI,
                        QueueType::SDMA_BY_ENG_ID,
                    ] {
                        let parts = Parts::new(guard, node, queue_type);
                        let made = parts.create(guard, queue_type);
                        let what = format!("{profile} {kernel:?} {queue_type:?}: {made:?}");
                        let can = match queue_type {
                            QueueType::SDMA_XGMI => engines != 0,
                            QueueType::SDMA_BY_ENG_ID => guard.version().minor >= 17,
                            _ => true,
                        };
                        assert_eq!(made.is_ok(), can, "{what}");
                        if let Ok(queue) = made {
                            guard.destroy_queue(queue.id).unwrap();
                        }
                        parts.free(guard);
                    }
                }
            });
        }
    }
}

/// One XCC's share was freed once, and the debug part forgotten (field fault B59).
#[test]
fn parts_of_eight_dies_leave_nothing() {
    for mode in Mode::ALL {
        let machine = machine("mi300x:gpus=1,cpus=1,cores=1,kernel=7.2");
        let process = process(&machine);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        let parts = Parts::new(&guard, gpus(&guard)[0], QueueType::COMPUTE_AQL);
        let mut first = None;
        for _ in 0..100 {
            let queue = parts.create(&guard, QueueType::COMPUTE_AQL).unwrap();
            guard.destroy_queue(queue.id).unwrap();
            let now = held(&machine);
            assert_eq!(*first.get_or_insert_with(|| now.clone()), now);
        }
        parts.free(&guard);
        drop(guard);
        mode.close(&process, handle).unwrap();
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}

/// A tree whose published sizes are other than the formula's, or that has none (field
/// fault B56): the published ones count where there are any.
struct Sizes(Option<(u32, u32)>);

impl Alteration for Sizes {
    fn read_file(
        &self,
        os: &impl hsakmt_core::seam::Os,
        path: &std::ffi::CStr,
        into: &mut Vec<u8>,
        (limit, end): (usize, hsakmt_core::seam::EndOfFile),
    ) -> Result<(), Errno> {
        os.read_file(path, into, limit, end)?;
        let text = String::from_utf8_lossy(into).into_owned();
        if text.contains("cwsr_size") {
            into.clear();
            for line in text.lines() {
                let line = match (line.split_once(' '), self.0) {
                    (Some(("cwsr_size" | "ctl_stack_size", _)), None) => continue,
                    (Some(("cwsr_size", _)), Some((whole, _))) => format!("cwsr_size {whole}"),
                    (Some(("ctl_stack_size", _)), Some((_, stack))) => {
                        format!("ctl_stack_size {stack}")
                    }
                    _ => line.to_owned(),
                };
                into.extend_from_slice(line.as_bytes());
                into.push(b'\n');
            }
        }
        Ok(())
    }
}

/// What CREATE_QUEUE is told: save area and control stack.
struct Told<'a>(&'a Sizes, Cell<(u32, u32)>);

impl Alteration for Told<'_> {
    fn read_file(
        &self,
        os: &impl hsakmt_core::seam::Os,
        path: &std::ffi::CStr,
        into: &mut Vec<u8>,
        limits: (usize, hsakmt_core::seam::EndOfFile),
    ) -> Result<(), Errno> {
        self.0.read_file(os, path, into, limits)
    }

    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        if call.name == "CREATE_QUEUE" {
            let word = |at: usize| u32::from_ne_bytes(call.block[at..at + 4].try_into().unwrap());
            self.1.set((word(80), word(84)));
        }
        driver.execute(device, call)
    }
}

#[test]
fn published_sizes_count() {
    // Two compute units of gfx942: 80 waves of 8 bytes, and 0x95000 bytes for each unit.
    let by_formula = (0x1000 + 2 * 0x9_5000, 0x1000);
    for published in [None, Some(by_formula), Some((0x20_0000, 0x2000)), Some((0x8000, 0x1000))] {
        let machine = machine("mi300x:cpx,gpus=1,cus=2,cpus=1,cores=1");
        let sizes = Sizes(published);
        let told = Told(&sizes, Cell::default());
        in_context(&machine, Altered::new(machine.spawn(Linux), &told), |guard| {
            let parts = Parts::new(guard, gpus(guard)[0], QueueType::COMPUTE);
            let made = parts.create(guard, QueueType::COMPUTE);
            assert_eq!(told.1.get(), published.unwrap_or(by_formula));
            // This driver's own figure is the formula's.
            let is_drivers = published.is_none_or(|sizes| sizes == by_formula);
            assert_eq!(made.is_ok(), is_drivers, "{made:?}");
            if let Err(error) = made {
                assert_eq!(error.status, Status::INVALID_PARAMETER);
            }
        });
    }
}

/// A driver that destroys a queue and tells that the hardware hung.
struct Hangs(Errno);

impl Alteration for Hangs {
    fn execute<D: Driver>(
        &self,
        driver: &D,
        device: &D::Device,
        call: &mut Call<'_, '_>,
    ) -> Result<u32, Errno> {
        let answer = driver.execute(device, call)?;
        if call.name == "DESTROY_QUEUE" { Err(self.0) } else { Ok(answer) }
    }
}

#[test]
fn a_queue_of_hung_hardware_is_gone() {
    for errno in [Errno::ETIME, Errno::EIO] {
        let machine = machine(SMALL);
        let hangs = Hangs(errno);
        in_context(&machine, Altered::new(machine.spawn(Linux), &hangs), |guard| {
            let parts = Parts::new(guard, gpus(guard)[0], QueueType::COMPUTE);
            let before = held(&machine).queues;
            let queue = parts.create(guard, QueueType::COMPUTE).unwrap();
            let error = guard.destroy_queue(queue.id).unwrap_err();
            assert_eq!((error.status, error.errno), (Status::ERROR, Some(errno)));
            assert_eq!(held(&machine).queues, before);
            let error = guard.destroy_queue(queue.id).unwrap_err();
            assert_eq!(error.status, Status::INVALID_PARAMETER);
            parts.free(guard);
        });
    }
}

#[test]
fn queues_of_before_a_reset_are_lost() {
    for kernel in [Kernel::V6_12, Kernel::V7_2] {
        let machine = machine_under(SMALL, kernel);
        let platform: Simulated = machine.spawn(Linux);
        let process = Process::new(platform);
        open(&process).unwrap();
        let guard = process.primary().unwrap();
        guard.acquire_machine().unwrap();
        let node = gpus(&guard)[0];
        let gpu_id = guard.machine(|machine| Ok(machine.node(node)?.gpu_id)).unwrap();
        let parts = Parts::new(&guard, node, QueueType::COMPUTE);
        let event = guard
            .create_event(&EventRequest {
                kind: EventType::HW_EXCEPTION,
                node,
                manual_reset: false,
                is_set: false,
                owner: 1,
            })
            .unwrap();
        let lost = parts.create(&guard, QueueType::COMPUTE).unwrap();
        assert!(guard.check_queue(lost.id).is_ok());
        process.platform().process().reset_gpu(gpu_id, false);
        let mut entry = [EventData { event_id: event.id, ..EventData::default() }];
        assert_eq!(guard.wait_for_events(&mut entry, true, 0).unwrap(), Waited::Complete);
        assert_eq!(guard.hw_exception(&entry[0].hw_exception()).unwrap().unwrap().node, node);
        let error = guard.check_queue(lost.id).unwrap_err();
        let said = (error.status, error.operation);
        assert_eq!(said, (Status::UNAVAILABLE, Operation::Submit));
        assert!(error.advice().is_some());
        assert!(guard.destroy_queue(lost.id).is_ok());
        // The next one has its doorbell mapped anew.
        let next = parts.create(&guard, QueueType::COMPUTE).unwrap();
        assert!(guard.check_queue(next.id).is_ok());
        assert_eq!(next.doorbell, lost.doorbell);
        drop(guard);
        process.close_primary().unwrap();
        machine.assert_no_violations();
    }
}

#[test]
fn a_close_ends_what_is_left() {
    for mode in Mode::ALL {
        let machine = machine("mi300x:gpus=2,cus=2,cpus=1,cores=1,kernel=7.2");
        let process = process(&machine);
        open(&process).unwrap();
        process.primary().unwrap().acquire_machine().unwrap();
        let before = held(&machine);
        let handle = mode.open(&process).unwrap();
        let guard = process.enter(handle).unwrap();
        guard.acquire_machine().unwrap();
        for node in gpus(&guard) {
            for queue_type in [QueueType::COMPUTE, QueueType::SDMA, QueueType::COMPUTE_AQL] {
                let parts = Parts::new(&guard, node, queue_type);
                parts.create(&guard, queue_type).unwrap();
            }
        }
        assert_eq!(held(&machine).queues.len(), 6);
        drop(guard);
        mode.close(&process, handle).unwrap();
        if mode == Mode::Secondary {
            assert_eq!(held(&machine), before);
        }
        process.close_primary().unwrap();
        assert_eq!(held(&machine).queues.len(), 0);
        machine.assert_no_violations();
    }
}

/// Priorities and ids that are wrong cost no request.
#[test]
fn what_is_refused_before_the_driver() {
    let machine = machine(SMALL);
    in_context(&machine, machine.spawn(Linux), |guard| {
        let parts = Parts::new(guard, gpus(guard)[0], QueueType::COMPUTE);
        let before = held(&machine);
        let good = parts.options(QueueType::COMPUTE);
        for (options, status) in [
            (QueueOptions { node: 0, ..good }, Status::INVALID_NODE_UNIT),
            (QueueOptions { node: 99, ..good }, Status::INVALID_NODE_UNIT),
            (QueueOptions { queue_type: QueueType(5), ..good }, Status::INVALID_PARAMETER),
            (
                QueueOptions { share: Share { priority: 4, ..SHARE }, ..good },
                Status::INVALID_PARAMETER,
            ),
            (
                QueueOptions { ring: Ring { bytes: 1 << 32, ..good.ring }, ..good },
                Status::INVALID_PARAMETER,
            ),
            (QueueOptions { metadata_ring_bytes: 0x1000, ..good }, Status::NOT_SUPPORTED),
        ] {
            let error = guard.create_queue(&options).unwrap_err();
            assert_eq!(error.status, status, "{options:?}");
            assert_eq!(held(&machine), before);
        }
        for id in [0, 1, u64::MAX, parts.ring] {
            let unknown = |error: Error| error.status == Status::INVALID_PARAMETER;
            assert!(guard.destroy_queue(id).is_err_and(unknown));
            assert!(guard.update_queue(id, good.ring, SHARE).is_err_and(unknown));
            assert!(guard.set_queue_cu_mask(id, &[1]).is_err_and(unknown));
            assert!(guard.queue_info(id).is_err_and(unknown));
            assert!(guard.allocate_queue_gws(id, 1).is_err_and(unknown));
            assert!(guard.kernel_queue_id(id).is_err_and(unknown));
            assert!(guard.check_queue(id).is_err_and(unknown));
        }
        parts.free(guard);
    });
}

/// A recycled doorbell kept the value of the queue before (field fault B61): the new one
/// would do its work again, or none.
#[test]
fn a_recycled_doorbell_starts_anew() {
    let machine = machine(SMALL);
    in_context(&machine, machine.spawn(Linux), |guard| {
        let node = gpus(guard)[0];
        let mut first = None;
        for queue_type in [QueueType::SDMA, QueueType::COMPUTE, QueueType::SDMA] {
            for _ in 0..3 {
                // SAFETY: closed below, in the same context.
                let mut queue = unsafe { CommandQueue::open(guard, node, queue_type, 0) }.unwrap();
                let doorbell = queue.queue().doorbell;
                if queue_type == QueueType::SDMA {
                    assert_eq!(*first.get_or_insert(doorbell), doorbell, "it is the same one");
                }
                for _ in 0..5 {
                    queue.finish(guard).unwrap();
                }
                queue.close(guard).unwrap();
            }
        }
    });
}

/// AQL rings of newer chips may have metadata behind them (KFD 1.22).
#[test]
fn a_ring_with_metadata() {
    let machine = machine("rx9070:kernel=7.2,kfd=22");
    in_context(&machine, machine.spawn(Linux), |guard| {
        let node = gpus(guard)[0];
        let mut parts = Parts::new(guard, node, QueueType::COMPUTE_AQL);
        let without = parts.ring;
        let metadata = 0x1_0000_u32;
        parts.ring = allocate(guard, node, RING + u64::from(metadata), false);
        let options =
            QueueOptions { metadata_ring_bytes: metadata, ..parts.options(QueueType::COMPUTE_AQL) };
        let queue = guard.create_queue(&options).unwrap();
        guard.destroy_queue(queue.id).unwrap();
        // Without telling, the mapping is too long.
        let error = parts.create(guard, QueueType::COMPUTE_AQL).unwrap_err();
        assert_eq!(error.status, Status::INVALID_PARAMETER);
        let odd = QueueOptions { metadata_ring_bytes: 0x800, ..options };
        assert_eq!(guard.create_queue(&odd).unwrap_err(), Error::argument(8));
        guard.unmap_memory(without).unwrap();
        guard.free_memory(without, 0).unwrap();
        parts.free(guard);
    });
}
