//! Engines execute packets of every generation, with the hardware's rules, and stop as
//! the driver stops them. The packets are the library's, made from the headers of the
//! driver as the simulator's decoding is; some are written out here.

use std::sync::Arc;

use hsakmt_core::execute::execute;
use hsakmt_core::queue::aql_ring::AqlPacket;
use hsakmt_core::queue::packets::aql::{self, Dispatch, Header, Wait};
use hsakmt_core::queue::packets::pm4::{self, Pm4Generation, Release};
use hsakmt_core::queue::packets::sdma::{self, CacheRequest, SdmaVersion};
use hsakmt_core::seam::{
    Array, Clock, DeviceNode, Driver, MapDevice, Mapping, Os, Placement, Protection,
};
use hsakmt_core::topology::GfxVersion;
use hsakmt_core::uapi::Block;
use hsakmt_core::uapi::kfd::{
    AcquireVm, AllocMemoryFlags as Flags, AllocMemoryOfGpu, CreateEvent, CreateQueue, DestroyQueue,
    EventData, EventType, MapMemoryToGpu, QueueType, RuntimeEnable, RuntimeEnableMode, UpdateQueue,
    WaitEvents, WaitResult,
};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Defect, Gpu, Machine, Profile, Rule, SimDevice, SimPlatform};
use zerocopy::IntoBytes;

type Sim = SimPlatform<Linux>;

const READ_WRITE: Protection = Protection::READ.union(Protection::WRITE);
const COMPUTE: QueueType = QueueType::COMPUTE;
const AQL: QueueType = QueueType::COMPUTE_AQL;
const SDMA: QueueType = QueueType::SDMA;

/// Chips of every generation of packets.
const CHIPS: [u32; 12] = [
    80_003, 90_000, 90_006, 90_008, 90_010, 90_402, 100_100, 100_300, 110_000, 110_501, 120_001,
    120_500,
];

/// Memory at a GPU's address and at one of the CPU.
#[derive(Debug, Clone, Copy)]
struct Piece {
    handle: u64,
    va: u64,
    cpu: usize,
}

impl Piece {
    fn write(&self, at: usize, bytes: &[u8]) {
        Linux.write_memory(self.cpu + at, bytes).unwrap();
    }

    fn write_words(&self, at: usize, words: &[u32]) {
        self.write(at, words.as_bytes());
    }

    fn read(&self, at: usize, length: usize) -> Vec<u8> {
        let mut bytes = vec![0; length];
        Linux.read_memory(self.cpu + at, &mut bytes).unwrap();
        bytes
    }

    fn u32(&self, at: usize) -> u32 {
        u32::from_ne_bytes(self.read(at, 4).try_into().unwrap())
    }

    fn u64(&self, at: usize) -> u64 {
        u64::from_ne_bytes(self.read(at, 8).try_into().unwrap())
    }
}

/// A process with one bound GPU, the last.
struct Bench {
    sim: Sim,
    kfd: SimDevice,
    render: SimDevice,
    gpu: Gpu,
    next: u64,
    doorbells: usize,
    page: Piece,
}

/// A queue with what a program writes.
struct Queue {
    id: u32,
    queue_type: QueueType,
    ring: Piece,
    pointers: Piece,
    save_area: Option<Piece>,
    doorbell: usize,
    /// Bytes written.
    written: u64,
    size: u64,
    wide: bool,
}

/// Where the pointers are in their page.
const WRITE_POINTER: usize = 0x38;
const READ_POINTER: usize = 0x80;
const RING: u64 = 0x1000;

impl Bench {
    fn new(profile: &str) -> Bench {
        Bench::of(&Profile::parse(profile).unwrap())
    }

    /// A machine with a chip of this version.
    fn with_chip(gfx: u32) -> Bench {
        let mut profile = Profile::parse("mi50:kernel=7.2").unwrap();
        for gpu in profile.topology.nodes.iter_mut().filter_map(|node| node.gpu.as_mut()) {
            gpu.properties.gfx_target_version = gfx;
            if gfx < 90_000 {
                gpu.properties.capability = gpu.properties.capability & !0x3000 | 0x1000;
            }
        }
        Bench::of(&profile)
    }

    fn of(profile: &Profile) -> Bench {
        let machine = Machine::new(profile);
        machine.set_host_memory(Arc::new(Linux));
        let sim = machine.spawn(Linux);
        let topology = machine.topology();
        let gpu = topology.gpus().last().unwrap().1.clone();
        let kfd = sim.open(DeviceNode::Kfd).unwrap();
        let render = sim.open(DeviceNode::Render(gpu.render_minor())).unwrap();
        let block = &mut AcquireVm { drm_fd: sim.token(&render).0, gpu_id: gpu.id };
        execute(&sim, &kfd, block, &mut []).unwrap();
        let slice = MapDevice {
            placement: Placement::Anywhere,
            length: gpu.doorbell_slice() as usize,
            protection: Protection::WRITE,
            offset: 3 << 62 | u64::from(gpu.id) << 46,
        };
        let doorbells = Driver::map(&sim, &kfd, slice).unwrap();
        let page = Piece { handle: 0, va: 0, cpu: 0 };
        let mut bench = Bench { sim, kfd, render, gpu, next: 0x1000_0000, doorbells, page };
        bench.page = bench.piece(0x8000);
        bench
    }

    fn ask<B: Block>(&self, block: &mut B) {
        execute(&self.sim, &self.kfd, block, &mut []).unwrap();
    }

    fn alloc(&mut self, size: u64, flags: Flags, source: u64) -> (u64, u64, u64) {
        let va_addr = self.next;
        self.next += size.next_multiple_of(4096) + 0x1000;
        let gpu_id = self.gpu.id;
        let mut block = AllocMemoryOfGpu {
            va_addr,
            size,
            gpu_id,
            flags,
            mmap_offset: source,
            ..Default::default()
        };
        self.ask(&mut block);
        let handle = block.handle;
        let mut map = MapMemoryToGpu { handle, n_devices: 1, ..Default::default() };
        let ids = gpu_id.to_ne_bytes();
        execute(&self.sim, &self.kfd, &mut map, &mut [Array::In(&ids)]).unwrap();
        (handle, va_addr, block.mmap_offset)
    }

    fn piece(&mut self, size: u64) -> Piece {
        let (handle, va, offset) = self.alloc(size, Flags::GTT | Flags::WRITABLE, 0);
        let mapping = MapDevice {
            placement: Placement::Anywhere,
            length: size.next_multiple_of(4096) as usize,
            protection: READ_WRITE,
            offset,
        };
        let cpu = Driver::map(&self.sim, &self.render, mapping).unwrap();
        Piece { handle, va, cpu }
    }

    fn gfx(&self) -> GfxVersion {
        GfxVersion::from_target_version(self.gpu.properties.gfx_target_version)
    }

    fn pm4(&self) -> Pm4Generation {
        Pm4Generation::of(self.gfx()).unwrap()
    }

    fn sdma(&self) -> SdmaVersion {
        SdmaVersion::of(self.gfx()).unwrap()
    }

    fn queue(&mut self, queue_type: QueueType) -> Queue {
        self.queue_of(queue_type, RING)
    }

    fn queue_of(&mut self, queue_type: QueueType, size: u64) -> Queue {
        let (ring, pointers) = (self.piece(size), self.piece(0x1000));
        if queue_type == AQL {
            for at in (0..size as usize).step_by(64) {
                ring.write_words(at, &[1]);
            }
        }
        let mut block = CreateQueue {
            ring_base_address: ring.va,
            ring_size: size as u32,
            write_pointer_address: pointers.va + WRITE_POINTER as u64,
            read_pointer_address: pointers.va + READ_POINTER as u64,
            gpu_id: self.gpu.id,
            queue_type,
            queue_percentage: 100,
            ..CreateQueue::default()
        };
        let mut save_area = None;
        if queue_type != SDMA {
            let of_7_2 = self.sim.machine().kernel().kfd_minor > 20;
            let sizes = self.gpu.properties.save_area(of_7_2);
            let dies = u64::from(self.gpu.properties.num_xcc.max(1));
            let all = ((sizes.cwsr_size + sizes.debug_size) * dies).next_multiple_of(4096);
            let area = self.piece(all);
            // The driver reads its header at the CPU's address, which is the GPU's.
            block.ctx_save_restore_address = area.va;
            block.ctx_save_restore_size = sizes.cwsr_size as u32;
            block.ctl_stack_size = sizes.ctl_stack_size as u32;
            save_area = Some(area);
        }
        self.ask(&mut block);
        let wide = self.gpu.is_gfx9_or_later();
        let place =
            if wide { block.doorbell_offset & 0x1fff } else { 4 * u64::from(block.queue_id) };
        let doorbell = self.doorbells + place as usize;
        Queue {
            id: block.queue_id,
            queue_type,
            ring,
            pointers,
            save_area,
            doorbell,
            written: 0,
            size,
            wide,
        }
    }

    /// Writes packets, the pointer and the doorbell, with barriers.
    fn submit(&self, queue: &mut Queue, packets: &[u32]) {
        self.place(queue, packets);
        self.sim.wmb_device();
        self.tell(queue);
        self.sim.wmb_device();
        self.ring(queue);
    }

    fn place(&self, queue: &mut Queue, packets: &[u32]) {
        for word in packets {
            queue.ring.write_words((queue.written % queue.size) as usize, &[*word]);
            queue.written += 4;
        }
    }

    fn pointer(&self, queue: &Queue) -> u64 {
        let written = if queue.wide { queue.written } else { queue.written % queue.size };
        match queue.queue_type {
            AQL => queue.written / 64,
            COMPUTE => written / 4,
            _ => written,
        }
    }

    fn tell(&self, queue: &Queue) {
        queue.pointers.write(WRITE_POINTER, &self.pointer(queue).to_ne_bytes());
    }

    fn ring(&self, queue: &Queue) {
        let value = self.pointer(queue) - u64::from(queue.queue_type == AQL && queue.wide);
        let width = if queue.wide { 8 } else { 4 };
        Linux.write_memory(queue.doorbell, &value.to_ne_bytes()[..width]).unwrap();
    }

    /// Lets the engines go until they rest; how many packets they executed.
    fn run(&self) -> u64 {
        let mut all = 0;
        loop {
            match self.sim.run_engines() {
                0 => return all,
                executed => all += executed,
            }
        }
    }

    fn submit_aql(&self, queue: &mut Queue, packet: &AqlPacket) {
        let mut words = vec![packet.first, packet.second];
        words.extend(packet.rest.iter().flat_map(|pair| [*pair as u32, (*pair >> 32) as u32]));
        self.submit(queue, &words);
    }

    fn event(&self, event_type: EventType) -> u32 {
        let mut block = CreateEvent { event_type, auto_reset: 1, ..CreateEvent::default() };
        if self.sim.process().events(None).is_empty() {
            block.event_page_offset = self.page.handle;
        }
        self.ask(&mut block);
        block.event_id
    }

    fn slot(&self, event: u32) -> u64 {
        self.page.va + 8 * u64::from(event)
    }

    fn wait(&self, event_id: u32) -> (WaitResult, [u64; 4]) {
        let mut data = [EventData { event_id, ..EventData::default() }];
        let mut block = WaitEvents { num_events: 1, timeout: 0, ..WaitEvents::default() };
        let arrays = &mut [Array::InOut(data.as_mut_bytes())];
        execute(&self.sim, &self.kfd, &mut block, arrays).unwrap();
        (block.wait_result, data[0].payload)
    }

    fn is_set(&self, event: u32) -> bool {
        self.wait(event).0 == WaitResult::COMPLETE
    }

    fn broken(&self) -> Vec<Rule> {
        let all = self.sim.machine().take_violations();
        all.into_iter().map(|violation| violation.rule).collect()
    }

    fn destroy(&self, queue: &Queue) {
        self.ask(&mut DestroyQueue { queue_id: queue.id, pad: 0 });
    }
}

fn copy(bench: &Bench, from: &Piece, to: &Piece, bytes: u32) -> [u32; 7] {
    sdma::copy(bench.sdma(), from.va, to.va, bytes).unwrap()
}

#[test]
fn copy_engines_of_every_generation() {
    for chip in CHIPS {
        let mut bench = Bench::with_chip(chip);
        let (from, to) = (bench.piece(0x3000), bench.piece(0x3000));
        let event = bench.event(EventType::SIGNAL);
        let mut queue = bench.queue(SDMA);
        let version = bench.sdma();
        let bytes: Vec<u8> = (0..0x2801_u32).map(|n| (n * 7) as u8).collect();
        from.write(1, &bytes);
        let mut packets = vec![0];
        packets.extend(sdma::copy(version, from.va + 1, to.va + 3, 0x2801).unwrap());
        packets.extend(sdma::write_head(version, to.va + 0x2f00, 3).unwrap());
        packets.extend([1, 2, 3]);
        packets.extend(sdma::fill(version, to.va + 0x2f40, 0x0102_0304, 12).unwrap());
        packets.extend(sdma::wait_until_equal(to.va + 0x2f00, 1).unwrap());
        if let Some(request) = sdma::cache(version, CacheRequest::Release) {
            packets.extend(request.as_ref());
        }
        // A time stamp.
        let stamp = to.va + 0x2f80;
        packets.extend([13 | 2 << 8, stamp as u32, (stamp >> 32) as u32]);
        packets.extend(sdma::fence(version, bench.slot(event), event).unwrap());
        packets.extend(sdma::trap(event));
        bench.submit(&mut queue, &packets);
        assert!(bench.run() >= 8, "{chip}");
        assert_eq!(to.read(3, bytes.len()), bytes, "{chip}");
        assert_eq!([0, 4, 8].map(|at| to.u32(0x2f00 + at)), [1, 2, 3], "{chip}");
        assert_eq!(
            [0, 4, 8, 12].map(|at| to.u32(0x2f40 + at)),
            [0x0102_0304, 0x0102_0304, 0x0102_0304, 0]
        );
        let counter = bench.gpu.render.counter_khz;
        let now = Linux.now(Clock::MonotonicRaw);
        let ticks = (u128::from(now) * u128::from(counter) / 1_000_000) as u64;
        assert!(to.u64(0x2f80) <= ticks && to.u64(0x2f80) > 0, "{chip}");
        assert!(bench.is_set(event), "{chip}");
        assert!(!bench.is_set(event), "{chip}");
        assert_eq!(queue.pointers.u64(READ_POINTER), bench.pointer(&queue), "{chip}");
        assert_eq!(bench.broken(), [], "{chip}");
    }
}

#[test]
fn command_processors_of_every_generation() {
    for chip in CHIPS {
        let mut bench = Bench::with_chip(chip);
        let (from, to) = (bench.piece(0x3000), bench.piece(0x3000));
        let (buffer, event) = (bench.piece(0x1000), bench.event(EventType::SIGNAL));
        let mut queue = bench.queue(COMPUTE);
        let g = bench.pm4();
        from.write(0, b"pm4 copies this");
        let mut called = pm4::write_head(g, to.va + 0x100, 2).unwrap().to_vec();
        called.extend([7, 8]);
        buffer.write_words(0, &called);
        let mut packets = vec![pm4::nop(1).unwrap(), pm4::nop(2).unwrap(), 0, 2 << 30];
        packets.extend(pm4::acquire(g).as_ref());
        packets.extend(pm4::copy(g, from.va, to.va + 1, 15).unwrap());
        packets.extend(pm4::fill(g, to.va + 0x40, 0xaabb_ccdd, 8).unwrap());
        packets.extend(pm4::indirect_buffer(g, buffer.va, called.len() as u32).unwrap());
        packets.extend(pm4::wait_until_equal(g, to.va + 0x104, 8).unwrap());
        packets.extend(pm4::wait_for_shaders(g));
        let qword = Release::Qword(to.va + 0x80, 0x1_0000_0002);
        packets.extend(pm4::release(g, qword, None).unwrap().as_ref());
        packets.extend(pm4::release(g, Release::Clock(to.va + 0x88), None).unwrap().as_ref());
        let slot = Release::Dword(bench.slot(event), event);
        packets.extend(pm4::release(g, slot, Some(event)).unwrap().as_ref());
        bench.submit(&mut queue, &packets);
        assert!(bench.run() >= 12, "{chip}");
        assert_eq!(to.read(1, 15), b"pm4 copies this", "{chip}");
        assert_eq!((to.u32(0x40), to.u32(0x44), to.u32(0x48)), (0xaabb_ccdd, 0xaabb_ccdd, 0));
        assert_eq!((to.u32(0x100), to.u32(0x104)), (7, 8), "{chip}");
        assert_eq!(to.u64(0x80), 0x1_0000_0002, "{chip}");
        assert!(to.u64(0x88) > 0, "{chip}");
        assert!(bench.is_set(event), "{chip}");
        assert_eq!(u64::from(queue.pointers.u32(READ_POINTER)), bench.pointer(&queue), "{chip}");
        assert_eq!(bench.broken(), [], "{chip}");
    }
}

/// `amd_signal_t`: value at 8, the slot's address at 16, the event at 24.
fn signal(piece: &Piece, at: usize, value: u64, slot: u64, event: u32) -> u64 {
    piece.write(at, &[1, value, slot, u64::from(event)].as_bytes()[..32]);
    piece.va + at as u64
}

#[test]
fn aql_queues_of_every_generation() {
    for chip in CHIPS {
        let mut bench = Bench::with_chip(chip);
        let (signals, to) = (bench.piece(0x1000), bench.piece(0x1000));
        let (buffer, event) = (bench.piece(0x1000), bench.event(EventType::SIGNAL));
        if chip < 90_000 {
            continue;
        }
        let mut queue = bench.queue(AQL);
        let [a, b] = [0, 64].map(|at| signal(&signals, at, 1, 0, 0));
        let done = signal(&signals, 128, 3, bench.slot(event), event);
        let and = aql::barrier(Header::ORDERED, Wait::All, [a, 0, b, 0, 0], done);
        let or = aql::barrier(Header::ORDERED, Wait::Any, [a, b, 0, 0, 0], done);
        bench.submit_aql(&mut queue, &or);
        bench.submit_aql(&mut queue, &and);
        assert_eq!(bench.run(), 0, "{chip}");
        signals.write(8, &0_u64.to_ne_bytes());
        assert_eq!(bench.run(), 1, "one of two is enough for the first");
        assert_eq!((signals.u64(128 + 8), bench.is_set(event)), (2, true));
        assert_eq!(queue.pointers.u64(READ_POINTER), 1);
        assert_eq!(queue.ring.u32(0) & 0xff, 1, "the place is free");
        signals.write(64 + 8, &0_u64.to_ne_bytes());
        assert_eq!(bench.run(), 1);
        let g = bench.pm4();
        let mut called = pm4::write_head(g, to.va, 1).unwrap().to_vec();
        called.push(42);
        buffer.write_words(0, &called);
        let length = called.len() as u32;
        let packet = aql::pm4_buffer(Header::ORDERED, g, buffer.va, length, done).unwrap();
        bench.submit_aql(&mut queue, &packet);
        assert_eq!(bench.run(), 2);
        assert_eq!((to.u32(0), signals.u64(128 + 8)), (42, 0));
        assert!(signals.u64(128 + 32) > 0 && signals.u64(128 + 40) >= signals.u64(128 + 32));
        assert_eq!(queue.pointers.u64(READ_POINTER), 3);
        assert_eq!(bench.broken(), [], "{chip}");
    }
}

#[test]
fn rings_wrap() {
    for chip in [80_003, 90_010, 110_000] {
        let mut bench = Bench::with_chip(chip);
        let to = bench.piece(0x1000);
        for queue_type in [SDMA, COMPUTE] {
            let mut queue = bench.queue_of(queue_type, RING);
            for number in 0..1000_u32 {
                let at = to.va + u64::from(number % 512 * 4);
                let packet: Vec<u32> = if queue_type == SDMA {
                    let mut packet = sdma::write_head(bench.sdma(), at, 1).unwrap().to_vec();
                    packet.push(number);
                    packet
                } else {
                    let mut packet = pm4::write_head(bench.pm4(), at, 1).unwrap().to_vec();
                    packet.push(number);
                    packet
                };
                bench.submit(&mut queue, &packet);
                assert_eq!(bench.run(), 1, "{chip}, {number}");
                assert_eq!(to.u32((number % 512 * 4) as usize), number, "{chip}");
            }
            bench.destroy(&queue);
        }
        assert_eq!(bench.broken(), []);
    }
}

#[test]
fn a_wait_for_an_event_lets_engines_run() {
    let mut bench = Bench::new("rx7900");
    let event = bench.event(EventType::SIGNAL);
    let mut queue = bench.queue(SDMA);
    let mut packets = sdma::fence(bench.sdma(), bench.slot(event), 1).unwrap().to_vec();
    packets.extend(sdma::trap(event));
    bench.submit(&mut queue, &packets);
    let mut data = [EventData { event_id: event, ..EventData::default() }];
    let mut block = WaitEvents { num_events: 1, timeout: u32::MAX, ..WaitEvents::default() };
    let arrays = &mut [Array::InOut(data.as_mut_bytes())];
    assert_eq!(execute(&bench.sim, &bench.kfd, &mut block, arrays), Ok(0));
    assert_eq!(block.wait_result, WaitResult::COMPLETE);
}

#[test]
fn an_interrupt_without_its_slot_sets_whatever_is_written() {
    let mut bench = Bench::new("mi210");
    let [a, b] = [(); 2].map(|()| bench.event(EventType::SIGNAL));
    let mut queue = bench.queue(SDMA);
    // The slot of one, the number of the other.
    let mut packets = sdma::fence(bench.sdma(), bench.slot(b), 0).unwrap().to_vec();
    packets.extend(sdma::trap(a));
    bench.submit(&mut queue, &packets);
    bench.run();
    assert_eq!([a, b].map(|event| bench.is_set(event)), [false, true]);
    // A number without any slot, and the number 0.
    let packets = [sdma::trap(a), sdma::trap(0)].concat();
    bench.submit(&mut queue, &packets);
    bench.run();
    assert_eq!([a, b].map(|event| bench.is_set(event)), [false; 2]);
}

#[test]
fn faults_are_events_and_the_end_of_the_queues() {
    for (write, expected) in [(true, [0, 1]), (false, [1, 0])] {
        let mut bench = Bench::new("mi210");
        let from = bench.piece(0x1000);
        let memory = bench.event(EventType::MEMORY);
        let (_, read_only, _) = bench.alloc(0x1000, Flags::GTT, 0);
        let (mut queue, mut other) = (bench.queue(SDMA), bench.queue(COMPUTE));
        let to = if write { read_only } else { 0x9_9999_9000 };
        let packet = sdma::copy(bench.sdma(), from.va, to + 8, 16).unwrap();
        bench.submit(&mut queue, &packet);
        assert_eq!(bench.run(), 0);
        let (result, payload) = bench.wait(memory);
        assert_eq!(result, WaitResult::COMPLETE);
        let flags = [payload[0] as u32, (payload[0] >> 32) as u32];
        assert_eq!((flags, payload[2]), (expected, to));
        assert_eq!(payload[3] as u32, bench.gpu.id);
        // The other queues of the process are stopped, too.
        bench.submit(&mut other, &[pm4::nop(1).unwrap()]);
        assert_eq!(bench.run(), 0);
        assert_eq!(bench.broken(), []);
    }
}

#[test]
fn a_queue_that_is_not_active_waits_for_its_update() {
    let mut bench = Bench::new("mi210");
    let mut queue = bench.queue(COMPUTE);
    let mut update = UpdateQueue {
        ring_base_address: queue.ring.va,
        queue_id: queue.id,
        ring_size: RING as u32,
        queue_percentage: 0,
        queue_priority: 0,
    };
    bench.ask(&mut update);
    bench.submit(&mut queue, &[pm4::nop(1).unwrap()]);
    assert_eq!(bench.run(), 0);
    update.queue_percentage = 100;
    bench.ask(&mut update);
    assert_eq!(bench.run(), 1);
}

#[test]
fn an_eviction_stops_queues_until_the_pages_are_back() {
    let mut bench = Bench::new("mi210");
    let anonymous = Mapping {
        placement: Placement::Anywhere,
        length: 0x2000,
        protection: READ_WRITE,
        reserve: true,
        shared: false,
    };
    let user = Os::map(&bench.sim, anonymous).unwrap();
    let flags = Flags::USERPTR | Flags::WRITABLE;
    let (_, va, _) = bench.alloc(0x2000, flags, user as u64);
    let (from, mut queue) = (bench.piece(0x1000), bench.queue(SDMA));
    from.write(0, &[9; 16]);
    let packet = sdma::copy(bench.sdma(), from.va, va + 0xffc, 16).unwrap();
    bench.submit(&mut queue, &packet);
    bench.sim.advise(user, 0x2000, hsakmt_core::seam::Advice::DontNeed).unwrap();
    assert_eq!(bench.sim.run_engines(), 0, "the pages are fetched");
    assert_eq!(bench.sim.run_engines(), 1);
    let mut bytes = [0; 16];
    Linux.read_memory(user + 0xffc, &mut bytes).unwrap();
    assert_eq!(bytes, [9; 16]);
    assert_eq!(bench.broken(), []);
}

#[test]
fn a_doorbell_without_a_barrier_is_noted() {
    for queue_type in [SDMA, COMPUTE, AQL] {
        let mut bench = Bench::new("mi210");
        let mut queue = bench.queue(queue_type);
        let packet = match queue_type {
            SDMA => vec![0; 16],
            COMPUTE => vec![pm4::nop(1).unwrap(); 16],
            _ => [vec![3], vec![0; 15]].concat(),
        };
        bench.submit(&mut queue, &packet);
        bench.run();
        assert_eq!(bench.broken(), [], "{queue_type:?}");
        bench.place(&mut queue, &packet);
        bench.tell(&queue);
        bench.ring(&queue);
        assert!(bench.run() > 0);
        assert_eq!(bench.broken(), [Rule::DoorbellWithoutBarrier], "{queue_type:?}");
        bench.sim.machine().expect_barriers(false);
        bench.place(&mut queue, &packet);
        bench.tell(&queue);
        bench.ring(&queue);
        assert!(bench.run() > 0);
        assert_eq!(bench.broken(), []);
    }
}

#[test]
fn pointers_stay_in_the_ring() {
    for value in [RING + 4, 3, 1 << 40] {
        let mut bench = Bench::new("mi210");
        let mut queue = bench.queue(SDMA);
        Linux.write_memory(queue.doorbell, &value.to_ne_bytes()).unwrap();
        assert_eq!(bench.run(), 0);
        assert_eq!(bench.broken(), [Rule::PointerOutOfRing], "{value:#x}");
        bench.submit(&mut queue, &[0]);
        assert_eq!(bench.run(), 0, "it hangs");
    }
}

#[test]
fn bad_packets_hang_and_raise_exceptions() {
    for (packet, code) in [
        (aql::barrier(Header::ORDERED, Wait::All, [0; 5], 0), None),
        (
            aql::dispatch(
                Header::ORDERED,
                &Dispatch {
                    workgroup: [64, 1, 1],
                    grid: [64, 1, 1],
                    private_bytes: 0,
                    group_bytes: 0,
                    kernel_object: 0,
                    kernel_arguments: 0,
                    completion: 0,
                },
            ),
            Some(18),
        ),
    ] {
        let mut bench = Bench::new("mi210");
        let mode_mask = RuntimeEnableMode::ENABLE;
        bench.ask(&mut RuntimeEnable { mode_mask, ..RuntimeEnable::default() });
        let event = bench.event(EventType::SIGNAL);
        let mut queue = bench.queue(AQL);
        let area = queue.save_area.unwrap();
        // The save area at its own address, as a library maps it.
        let there = MapDevice {
            placement: Placement::Free(area.va as usize),
            length: 0x1000,
            protection: READ_WRITE,
            offset: 0,
        };
        let anonymous = Mapping {
            placement: there.placement,
            length: there.length,
            protection: READ_WRITE,
            reserve: true,
            shared: false,
        };
        let at = Os::map(&bench.sim, anonymous).unwrap();
        let payload = at + 0x800;
        Linux.write_memory(at + 24, &payload.to_ne_bytes()).unwrap();
        Linux.write_memory(at + 32, &event.to_ne_bytes()).unwrap();
        bench.submit_aql(&mut queue, &packet);
        let executed = bench.run();
        let mut reasons = [0; 8];
        Linux.read_memory(payload, &mut reasons).unwrap();
        let expected = code.map_or(0, |code: u32| 1_u64 << (code - 1));
        assert_eq!(u64::from_ne_bytes(reasons), expected);
        assert_eq!(executed, u64::from(code.is_none()));
        assert_eq!(bench.is_set(event), code.is_some());
        let rules = if code.is_some() { vec![Rule::BadPacket] } else { vec![] };
        assert_eq!(bench.broken(), rules);
        Os::unmap(&bench.sim, at, 0x1000).unwrap();
    }
}

#[test]
fn a_reset_ends_queues_and_tears_doorbells() {
    for (kernel, rules) in [("6.12", vec![]), ("7.2", vec![Rule::DoorbellAfterReset])] {
        let mut bench = Bench::new(&format!("mi210:kernel={kernel}"));
        let event = bench.event(EventType::HW_EXCEPTION);
        let mut queue = bench.queue(SDMA);
        bench.submit(&mut queue, &[0]);
        assert_eq!(bench.run(), 1);
        bench.sim.process().reset_gpu(bench.gpu.id, false);
        assert!(bench.is_set(event));
        assert_eq!(bench.run(), 0);
        assert_eq!(bench.broken(), []);
        bench.submit(&mut queue, &[0]);
        assert_eq!(bench.run(), 0);
        assert_eq!(bench.broken(), rules, "{kernel}");
        bench.destroy(&queue);
    }
}

/// A copy of 64 bytes of nines, then the event.
fn copy_and_signal(bench: &mut Bench, queue: &mut Queue) -> (Piece, u32) {
    let (from, to) = (bench.piece(0x1000), bench.piece(0x1000));
    from.write(0, &[9; 64]);
    let event = bench.event(EventType::SIGNAL);
    let mut packets = copy(bench, &from, &to, 64).to_vec();
    packets.extend(sdma::fence(bench.sdma(), bench.slot(event), 1).unwrap());
    packets.extend(sdma::trap(event));
    bench.submit(queue, &packets);
    (to, event)
}

#[test]
fn defects_of_engines() {
    for (defect, executed, data, set) in [
        (None, 3, [9, 9], true),
        (Some(Defect::WrongData), 3, [9, 8], true),
        (Some(Defect::StuckEngine), 0, [0, 0], false),
        (Some(Defect::DoorbellDead), 0, [0, 0], false),
        (Some(Defect::LostInterrupt), 3, [9, 9], false),
        (Some(Defect::MemoryFault), 0, [0, 0], false),
    ] {
        let fault = defect.map_or(String::new(), |defect| format!(",fault={defect}"));
        let mut bench = Bench::new(&format!("mi210x8:gpus=2{fault}"));
        let memory = bench.event(EventType::MEMORY);
        let mut queue = bench.queue(SDMA);
        let (to, event) = copy_and_signal(&mut bench, &mut queue);
        assert_eq!(bench.run(), executed, "{defect:?}");
        assert_eq!([to.read(0, 1)[0], to.read(63, 1)[0]], data, "{defect:?}");
        assert_eq!(bench.is_set(event), set, "{defect:?}");
        assert_eq!(bench.is_set(memory), defect == Some(Defect::MemoryFault), "{defect:?}");
        assert_eq!(bench.broken(), []);
    }
}

#[test]
fn a_gpu_that_is_reset_midway() {
    let mut bench = Bench::new("mi210:fault=reset-midway");
    let event = bench.event(EventType::HW_EXCEPTION);
    let mut queue = bench.queue(SDMA);
    bench.submit(&mut queue, &[0; 20]);
    assert_eq!(bench.run(), Defect::PACKETS_BEFORE_RESET);
    assert!(bench.is_set(event));
    bench.submit(&mut queue, &[0]);
    assert_eq!(bench.run(), 0);
}

#[test]
fn a_slow_copy_takes_its_time() {
    let mut bench = Bench::new("mi210:fault=slow-copy");
    let mut queue = bench.queue(SDMA);
    let (to, event) = copy_and_signal(&mut bench, &mut queue);
    let machine = bench.sim.machine().clone();
    let began = 1 << 62;
    let needed = 64 * 1_000_000_000 / Defect::SLOW_BYTES_PER_SECOND;
    assert_eq!(machine.run_engines(began), 0);
    assert_eq!(machine.run_engines(began + needed - 1), 0);
    assert_eq!((to.u32(0), bench.is_set(event)), (0, false));
    assert_eq!(machine.run_engines(began + needed + 1), 3);
    assert_eq!(to.read(63, 1), [9]);
}

#[test]
fn engines_of_other_processes_stand_still() {
    let mut bench = Bench::new("mi210");
    let mut queue = bench.queue(SDMA);
    bench.submit(&mut queue, &[0]);
    let other = bench.sim.machine().spawn(Linux);
    assert_eq!(other.run_engines(), 0);
    let child = bench.sim.fork();
    assert_eq!(child.run_engines(), 0);
    assert_eq!(bench.sim.machine().run_engines(1), 1);
}
