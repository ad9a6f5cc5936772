//! The library's core on the simulated machine, without memory behind it.

use hsakmt_core::context::Options;
use hsakmt_core::process::Process;
use hsakmt_core::seam::DeviceNode;
use kfd_sim::{AddressesOnly, Leftovers, Machine, Profile, SimPlatform};

type Library = Process<SimPlatform<AddressesOnly>>;

/// Opens, acquires the machine, releases it and closes; what is held then.
fn cycle(library: &Library) -> Leftovers {
    library.open_primary(|| Ok(Options::default())).unwrap();
    let guard = library.primary().unwrap();
    guard.acquire_machine().unwrap();
    guard.release_machine().unwrap();
    drop(guard);
    library.close_primary().unwrap();
    library.platform().machine().leftovers()
}

fn boot(text: &str) -> (Machine, Library) {
    let machine = Machine::new(&Profile::parse(text).unwrap());
    let library = Process::new(machine.spawn(AddressesOnly::new()));
    (machine, library)
}

#[test]
fn every_profile_opens_and_a_second_cycle_holds_no_more() {
    for name in Profile::names().chain(["mi300x:cpx,gpus=1", "mi300x:gpus=1,kernel=7.2"]) {
        let (machine, library) = boot(name);
        assert_eq!(cycle(&library), cycle(&library), "{name}");
        machine.assert_no_violations();
    }
}

#[test]
fn every_kernel_and_minor_opens() {
    for kernel in ["6.1", "6.12", "7.2"] {
        for minor in 1..=28 {
            let (machine, library) = boot(&format!("apu:cores=1,kernel={kernel},kfd={minor}"));
            cycle(&library);
            machine.assert_no_violations();
        }
    }
}

#[test]
fn a_chain_of_forked_children_holds_no_more() {
    let (machine, library) = boot("apu:cores=1");
    cycle(&library);
    let held = library.platform().process().descriptors();
    for _ in 0..50 {
        library.platform().enter_fork_child();
        cycle(&library);
        assert_eq!(library.platform().process().descriptors(), held);
    }
    machine.assert_no_violations();
}

#[test]
fn hidden_gpus_are_not_opened() {
    let (machine, library) = boot("mi210x8:gpus=2,cores=1");
    library.platform().process().hide(DeviceNode::Render(128), true);
    cycle(&library);
    assert_eq!(machine.opens("/dev/dri/renderD128"), 0);
    assert_eq!(machine.opens("/dev/dri/renderD129"), 1);
    machine.assert_no_violations();
}
