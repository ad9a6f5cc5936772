//! Broken machines: what a validation has to find.
//!
//! A profile breaks a machine with `fault=NAME`, a test with
//! [`Machine::set_defect`]. Defects of a GPU are those of the last one, so that
//! whoever looks can also say which.

use alloc::collections::BTreeSet;
use core::fmt;

use crate::machine::{Machine, State};
use crate::sysfs;
use crate::topology::{Gpu, SaveArea, Topology};

/// Something that is broken.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
#[non_exhaustive]
pub enum Defect {
    /// `/dev/kfd` and all render nodes are EACCES.
    NoPermission,
    /// ACQUIRE_VM of the last GPU is EBUSY.
    VmBusy,
    /// Three quarters of the last GPU's VRAM cannot be had.
    VramShort,
    /// MAP_MEMORY_TO_GPU stops with ENOMEM before the last GPU, and tells how many
    /// GPUs it reached.
    MapPartial,
    /// The last GPU has no links to other GPUs, and their memory is not mapped there,
    /// nor the other way round; a GPU alone has none to the CPU.
    LinkMissing,
    /// There are slots for seven events.
    EventsExhausted,
    /// The last GPU's sizes of the save area in sysfs are not those that CREATE_QUEUE
    /// wants.
    CwsrSize,
    /// Copies of the last GPU change a bit of their last byte.
    WrongData,
    /// Copy engine 0 of the last GPU never progresses.
    StuckEngine,
    /// Interrupts of the last GPU are lost.
    LostInterrupt,
    /// Each copy of the last GPU faults at its destination.
    MemoryFault,
    /// Doorbells of the last GPU reach nobody.
    DoorbellDead,
    /// The last GPU is reset once it has executed [`Defect::PACKETS_BEFORE_RESET`]
    /// packets.
    ResetMidway,
    /// The last GPU copies [`Defect::SLOW_BYTES_PER_SECOND`].
    SlowCopy,
}

const NAMES: [(Defect, &str); 14] = [
    (Defect::NoPermission, "no-permission"),
    (Defect::VmBusy, "vm-busy"),
    (Defect::VramShort, "vram-short"),
    (Defect::MapPartial, "map-partial"),
    (Defect::LinkMissing, "link-missing"),
    (Defect::EventsExhausted, "events-exhausted"),
    (Defect::CwsrSize, "cwsr-size"),
    (Defect::WrongData, "wrong-data"),
    (Defect::StuckEngine, "stuck-engine"),
    (Defect::LostInterrupt, "lost-interrupt"),
    (Defect::MemoryFault, "memory-fault"),
    (Defect::DoorbellDead, "doorbell-dead"),
    (Defect::ResetMidway, "reset-midway"),
    (Defect::SlowCopy, "slow-copy"),
];

impl Defect {
    /// How many packets a GPU executes before [`Defect::ResetMidway`].
    pub const PACKETS_BEFORE_RESET: u64 = 6;

    /// How fast [`Defect::SlowCopy`] copies.
    pub const SLOW_BYTES_PER_SECOND: u64 = 16 << 20;

    /// All of them.
    pub fn all() -> impl Iterator<Item = Defect> {
        NAMES.iter().map(|(defect, _)| *defect)
    }

    /// Its name in profiles.
    #[must_use]
    pub fn name(self) -> &'static str {
        NAMES.iter().find(|(defect, _)| *defect == self).map_or("", |(_, name)| name)
    }

    /// The defect of this name.
    #[must_use]
    pub fn from_name(name: &str) -> Option<Defect> {
        NAMES.iter().find(|(_, known)| *known == name).map(|(defect, _)| *defect)
    }
}

impl fmt::Display for Defect {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// The slots of events that are left by [`Defect::EventsExhausted`], of which the
/// first is nobody's.
pub(crate) const EVENT_SLOTS_LEFT: u64 = 8;

/// Breaks hardware.
pub(crate) fn break_topology(topology: &mut Topology, defects: &BTreeSet<Defect>) {
    let Some(last) = topology.nodes.iter().rposition(|node| node.gpu.is_some()) else { return };
    let has = |defect| defects.contains(&defect);
    let gpus: BTreeSet<u32> = topology.gpus().map(|(node, _)| node as u32).collect();
    if let Some(gpu) = topology.nodes.get_mut(last).and_then(|node| node.gpu.as_mut()) {
        gpu.missing_vram = if has(Defect::VramShort) { gpu.vram / 4 * 3 } else { 0 };
        gpu.published_save_area = has(Defect::CwsrSize).then(|| wrong_save_area(gpu));
    }
    if has(Defect::LinkMissing) {
        let last = last as u32;
        let lost = |link: &crate::topology::Link| {
            let ends = [link.node_from, link.node_to];
            ends.contains(&last) && (gpus.len() == 1 || ends.iter().all(|end| gpus.contains(end)))
        };
        for node in &mut topology.nodes {
            node.io_links.retain(|link| !lost(link));
            node.p2p_links.retain(|link| !lost(link));
        }
    }
}

/// Another control stack than the driver has, and so another whole.
fn wrong_save_area(gpu: &Gpu) -> SaveArea {
    let right = gpu.properties.save_area(false);
    SaveArea {
        cwsr_size: right.cwsr_size + 0x1000,
        ctl_stack_size: right.ctl_stack_size + 0x1000,
        ..right
    }
}

impl State {
    pub(crate) fn has(&self, defect: Defect) -> bool {
        self.defects.contains(&defect)
    }

    /// Whether this GPU, which may be the last, has a defect.
    pub(crate) fn gpu_has(&self, gpu_id: u32, defect: Defect) -> bool {
        self.has(defect) && self.topology.gpus().last().is_some_and(|(_, gpu)| gpu.id == gpu_id)
    }
}

impl Machine {
    /// Breaks something, or mends it. A link that is gone ([`Defect::LinkMissing`])
    /// stays gone.
    pub fn set_defect(&self, defect: Defect, holds: bool) {
        let mut guard = self.lock();
        let state = &mut *guard;
        if holds {
            state.defects.insert(defect);
        } else {
            state.defects.remove(&defect);
        }
        break_topology(&mut state.topology, &state.defects);
        if defect == Defect::LinkMissing {
            sysfs::put_topology(&mut state.tree, &state.topology);
        }
    }

    /// What is broken.
    #[must_use]
    pub fn defects(&self) -> BTreeSet<Defect> {
        self.lock().defects.clone()
    }
}

#[cfg(test)]
mod tests {
    use alloc::format;

    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{DeviceNode, Driver};
    use hsakmt_core::uapi::kfd::{AllocMemoryFlags as Flags, CreateEvent, EventType};

    use super::Defect;
    use crate::fixture::{acquire, alloc, ask, bind, boot, gpu_id, kfd, map_from, render};
    use crate::profile::Profile;

    #[test]
    fn names_are_those_of_profiles() {
        for defect in Defect::all() {
            assert_eq!(Defect::from_name(defect.name()), Some(defect));
            let profile = Profile::parse(&format!("rx7900:fault={defect},gpus=2")).unwrap();
            assert!(profile.defects.iter().eq([&defect]));
        }
        let two = Profile::parse("rx7900:fault=vm-busy,fault=slow-copy").unwrap();
        assert_eq!(two.defects.len(), 2);
        assert!(Profile::parse("rx7900:fault=nothing").is_err());
    }

    #[test]
    fn opens_without_permission() {
        let sim = boot("rx7900:fault=no-permission");
        for node in [DeviceNode::Kfd, DeviceNode::Render(128)] {
            assert_eq!(sim.open(node).map(|_| ()), Err(Errno::EACCES));
        }
        sim.machine().set_defect(Defect::NoPermission, false);
        assert!(sim.open(DeviceNode::Kfd).is_ok());
    }

    #[test]
    fn a_vm_in_use() {
        let sim = boot("rx7900:gpus=2,fault=vm-busy");
        let device = kfd(&sim);
        let answers = [0, 1].map(|gpu| acquire(&sim, &device, &render(&sim, gpu), gpu));
        assert_eq!(answers, [Ok(0), Err(Errno::EBUSY)]);
    }

    #[test]
    fn less_vram_than_sysfs_says() {
        let sim = boot("mi50:gpus=2,fault=vram-short");
        let bound = bind(&sim);
        let half = 8 << 30;
        let answers = [0, 1].map(|gpu| alloc(&sim, &bound.kfd, gpu, Flags::VRAM, 0, half));
        assert_eq!(answers.map(|answer| answer.err()), [None, Some(Errno::ENOMEM)]);
    }

    #[test]
    fn a_mapping_that_stops_early() {
        let sim = boot("mi50:gpus=2,fault=map-partial");
        let bound = bind(&sim);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::GTT, 0x10_0000, 4096).unwrap();
        let ids = [gpu_id(&sim, 0), gpu_id(&sim, 1)];
        assert_eq!(map_from(&sim, &bound.kfd, handle, &ids, 0), (Err(Errno::ENOMEM), 1));
    }

    #[test]
    fn links_that_are_not_there() {
        let sim = boot("mi210x8:gpus=3,fault=link-missing");
        let topology = sim.machine().topology();
        let count = |node: usize| topology.nodes[node].io_links.len();
        let first = topology.gpus().next().unwrap().0;
        assert_eq!([first, first + 1, first + 2].map(count), [2, 2, 1]);
        let bound = bind(&sim);
        let (handle, _) = alloc(&sim, &bound.kfd, 0, Flags::VRAM, 0x10_0000, 4096).unwrap();
        let ids = [0, 1, 2].map(|gpu| gpu_id(&sim, gpu));
        assert_eq!(map_from(&sim, &bound.kfd, handle, &ids, 0), (Err(Errno::EINVAL), 2));
        let sim = boot("mi50:fault=link-missing");
        let topology = sim.machine().topology();
        assert!(topology.nodes.iter().all(|node| {
            node.io_links.iter().all(|link| link.node_from == 0 && link.node_to == 0)
        }));
    }

    #[test]
    fn few_events() {
        let sim = boot("mi50:fault=events-exhausted");
        let device = kfd(&sim);
        let create = |event_type| {
            ask(&sim, &device, &mut CreateEvent { event_type, ..CreateEvent::default() })
        };
        for _ in 0..7 {
            assert_eq!(create(EventType::SIGNAL), Ok(0));
        }
        assert_eq!(create(EventType::SIGNAL), Err(Errno::ENOSPC));
        assert_eq!(create(EventType::MEMORY), Ok(0));
    }

    #[test]
    fn sizes_that_are_not_the_drivers() {
        let published = |profile| {
            let sim = boot(profile);
            let mut bytes = alloc::vec::Vec::new();
            let path = c"/sys/class/kfd/kfd/topology/nodes/1/properties";
            let end = hsakmt_core::seam::EndOfFile::ShortRead;
            hsakmt_core::seam::Os::read_file(&sim, path, &mut bytes, 1 << 16, end).unwrap();
            let text = alloc::string::String::from_utf8(bytes).unwrap();
            let line = text.lines().find_map(|line| line.strip_prefix("ctl_stack_size "));
            line.unwrap().parse::<u64>().unwrap()
        };
        assert_eq!(published("mi50:fault=cwsr-size"), published("mi50") + 0x1000);
    }
}
