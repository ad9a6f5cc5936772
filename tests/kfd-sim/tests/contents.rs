//! Whatever shows a piece of memory shows the same contents: mappings of the CPU, in
//! any process and context, and GPUs.

use std::sync::Arc;

use hsakmt_core::execute::execute;
use hsakmt_core::seam::{
    Array, DeviceNode, DeviceToken, Driver, MapDevice, Mapping, Os, Placement, Protection,
};
use hsakmt_core::uapi::Block;
use hsakmt_core::uapi::kfd::{
    AcquireVm, AllocMemoryFlags as Flags, AllocMemoryOfGpu, CreateProcess, ExportDmabuf,
    FreeMemoryOfGpu, ImportDmabuf, MapMemoryToGpu,
};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Fault, Machine, Profile, SimDevice, SimPlatform};

type Sim = SimPlatform<Linux>;

const SIZE: usize = 0x4000;
const VA: u64 = 0x4000_0000;
const BOTH: Protection = Protection::READ.union(Protection::WRITE);

fn boot(profile: &str) -> Sim {
    let machine = Machine::new(&Profile::parse(profile).unwrap());
    machine.set_host_memory(Arc::new(Linux));
    machine.spawn(Linux)
}

/// The devices of one process object on the first GPU.
struct Opened<'s> {
    sim: &'s Sim,
    kfd: SimDevice,
    render: SimDevice,
    gpu_id: u32,
}

impl<'s> Opened<'s> {
    fn new(sim: &'s Sim, secondary: bool) -> Opened<'s> {
        let kfd = sim.open(DeviceNode::Kfd).unwrap();
        if secondary {
            execute(sim, &kfd, &mut CreateProcess::default(), &mut []).unwrap();
        }
        let render = sim.open(DeviceNode::Render(128)).unwrap();
        let gpu_id = sim.machine().topology().gpus().next().unwrap().1.id;
        let drm_fd = sim.token(&render).0;
        execute(sim, &kfd, &mut AcquireVm { drm_fd, gpu_id }, &mut []).unwrap();
        Opened { sim, kfd, render, gpu_id }
    }

    fn ask<B: Block>(&self, block: &mut B) {
        execute(self.sim, &self.kfd, block, &mut []).unwrap();
    }

    fn alloc(&self, flags: Flags, va_addr: u64, source: u64) -> (u64, u64) {
        let (size, gpu_id) = (SIZE as u64, self.gpu_id);
        let flags = flags | Flags::WRITABLE;
        let mut block = AllocMemoryOfGpu {
            va_addr,
            size,
            gpu_id,
            flags,
            mmap_offset: source,
            ..Default::default()
        };
        self.ask(&mut block);
        (block.handle, block.mmap_offset)
    }

    fn map_to_gpu(&self, handle: u64) {
        let mut block = MapMemoryToGpu { handle, n_devices: 1, ..Default::default() };
        let devices = self.gpu_id.to_ne_bytes();
        let arrays = &mut [Array::In(&devices)];
        execute(self.sim, &self.kfd, &mut block, arrays).unwrap();
    }

    fn show(&self, offset: u64, protection: Protection) -> usize {
        map(self.sim, &self.render, offset, SIZE, protection)
    }
}

fn map(sim: &Sim, device: &SimDevice, offset: u64, length: usize, protection: Protection) -> usize {
    let mapping = MapDevice { placement: Placement::Anywhere, length, protection, offset };
    Driver::map(sim, device, mapping).unwrap()
}

fn read(address: usize) -> [u8; 3] {
    let mut bytes = [0; 3];
    Linux.read_memory(address, &mut bytes).unwrap();
    bytes
}

fn write(address: usize, bytes: [u8; 3]) {
    Linux.write_memory(address, &bytes).unwrap();
}

#[test]
fn two_mappings_of_a_buffer_and_the_gpu_see_the_same() {
    let sim = boot("rx7900");
    let opened = Opened::new(&sim, false);
    let gpu = sim.process().gpu(opened.gpu_id);
    for (number, flags) in [(1, Flags::VRAM), (2, Flags::GTT)] {
        let va = VA * number;
        let (handle, offset) = opened.alloc(flags, va, 0);
        opened.map_to_gpu(handle);
        // Across two pages, before any CPU has looked.
        gpu.write(va + 0xfff, &[1, 2, 3]).unwrap();
        let [one, other] = [0; 2].map(|_| opened.show(offset, BOTH));
        assert_eq!((read(one + 0xfff), read(other + 0xfff)), ([1, 2, 3], [1, 2, 3]));
        write(one + 0x2000, [4, 5, 6]);
        let mut bytes = [0; 3];
        gpu.read(va + 0x2000, &mut bytes).unwrap();
        assert_eq!((read(other + 0x2000), bytes), ([4, 5, 6], [4, 5, 6]));
        assert_eq!(gpu.read(va + 0x3fff, &mut bytes), Err(Fault::NotMapped));
        // A mapping gone is no contents gone.
        sim.unmap(one, SIZE).unwrap();
        sim.unmap(other, SIZE).unwrap();
        assert_eq!(read(opened.show(offset, BOTH) + 0xfff), [1, 2, 3]);
    }
    sim.machine().assert_no_violations();
}

#[test]
fn a_mapping_without_rights_shows_the_contents_when_it_gets_some() {
    let sim = boot("rx7900");
    let opened = Opened::new(&sim, false);
    let (_, offset) = opened.alloc(Flags::VRAM, 0, 0);
    let blank = opened.show(offset, Protection::empty());
    write(opened.show(offset, BOTH) + 0x2000, [7, 8, 9]);
    sim.protect(blank + 0x2000, 0x1000, Protection::READ).unwrap();
    assert_eq!(read(blank + 0x2000), [7, 8, 9]);
    assert!(Linux.read_memory(blank + 0x1000, &mut [0]).is_err());
    assert!(Linux.write_memory(blank + 0x2000, &[0]).is_err());
    sim.protect(blank, SIZE, BOTH).unwrap();
    assert_eq!((read(blank), read(blank + 0x2000)), ([0; 3], [7, 8, 9]));
}

#[test]
fn memory_begins_with_zeros_and_what_is_freed_is_given_back() {
    let sim = boot("rx7900");
    let opened = Opened::new(&sim, false);
    for _ in 0..3 {
        let (handle, offset) = opened.alloc(Flags::VRAM, 0, 0);
        let address = opened.show(offset, BOTH);
        assert_eq!(read(address), [0; 3]);
        write(address, [1; 3]);
        sim.unmap(address, SIZE).unwrap();
        opened.ask(&mut FreeMemoryOfGpu { handle });
    }
}

#[test]
fn user_pages_are_the_processes_own() {
    let sim = boot("rx7900");
    let opened = Opened::new(&sim, false);
    let source = Os::map(
        &sim,
        Mapping {
            placement: Placement::Anywhere,
            length: SIZE,
            protection: BOTH,
            reserve: true,
            shared: false,
        },
    )
    .unwrap();
    let (handle, _) = opened.alloc(Flags::USERPTR, VA, source as u64);
    opened.map_to_gpu(handle);
    write(source + 0x1000, [3; 3]);
    let mut bytes = [0; 3];
    sim.process().gpu(opened.gpu_id).read(VA + 0x1000, &mut bytes).unwrap();
    assert_eq!(bytes, [3; 3]);
}

/// A buffer goes by dma-buf from one process object to another, and either may
/// write first.
fn shared_between(ours: &Opened<'_>, theirs: &Opened<'_>, context: Option<u16>) {
    let process = theirs.sim.process();
    let gpu = match context {
        Some(context) => process.gpu_in_context(context, theirs.gpu_id),
        None => process.gpu(theirs.gpu_id),
    };
    for (number, flags) in [(1, Flags::VRAM), (2, Flags::GTT)] {
        let (handle, offset) = ours.alloc(flags, 0, 0);
        let address = ours.show(offset, BOTH);
        write(address + 0x1000, [1, 2, 3]);
        let mut export = ExportDmabuf { handle, ..Default::default() };
        ours.ask(&mut export);
        let dmabuf_fd = match context {
            Some(_) => export.dmabuf_fd,
            None => process.receive(&ours.sim.process(), export.dmabuf_fd).unwrap(),
        };
        let (va_addr, gpu_id) = (VA * number, theirs.gpu_id);
        let mut import = ImportDmabuf { va_addr, gpu_id, dmabuf_fd, ..Default::default() };
        theirs.ask(&mut import);
        theirs.map_to_gpu(import.handle);
        let mut bytes = [0; 3];
        gpu.read(va_addr + 0x1000, &mut bytes).unwrap();
        assert_eq!(bytes, [1, 2, 3]);
        let device = theirs.sim.adopt(DeviceToken(dmabuf_fd));
        let part = map(theirs.sim, &device, 0x1000, 0x1000, BOTH);
        assert_eq!(read(part), [1, 2, 3]);
        gpu.write(va_addr + 0x2000, &[4, 5, 6]).unwrap();
        assert_eq!(read(address + 0x2000), [4, 5, 6]);
        // The first side goes; the other has all of it.
        ours.sim.unmap(address, SIZE).unwrap();
        ours.ask(&mut FreeMemoryOfGpu { handle });
        gpu.read(va_addr + 0x2000, &mut bytes).unwrap();
        assert_eq!((bytes, read(part)), ([4, 5, 6], [1, 2, 3]));
    }
    ours.sim.machine().assert_no_violations();
}

#[test]
fn two_processes_share_a_buffer() {
    let sim = boot("rx7900");
    let other = sim.machine().spawn(Linux);
    shared_between(&Opened::new(&sim, false), &Opened::new(&other, false), None);
}

#[test]
fn two_contexts_share_a_buffer() {
    let sim = boot("rx7900:kernel=7.2");
    shared_between(&Opened::new(&sim, false), &Opened::new(&sim, true), Some(0));
}
