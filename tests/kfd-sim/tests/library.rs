//! The library's core on the simulated machine.

use hsakmt_core::context::Options;
use hsakmt_core::process::Process;
use kfd_sim::{AddressesOnly, Machine, Profile};

fn walk(text: &str) {
    let machine = Machine::new(&Profile::parse(text).unwrap());
    let platform = machine.spawn(AddressesOnly::new());
    let library = Process::new(platform.clone());
    let mut held = Vec::new();
    for _ in 0..2 {
        library.open_primary(|| Ok(Options::default())).unwrap();
        let guard = library.primary().unwrap();
        guard.acquire_machine().map_err(|e| format!("{text}: {e:?}")).unwrap();
        guard.release_machine().unwrap();
        drop(guard);
        library.close_primary().unwrap();
        held.push(machine.leftovers());
    }
    assert_eq!(held[0], held[1]);
    machine.assert_no_violations();
}

#[test]
fn opens_and_closes_on_every_profile() {
    for name in Profile::names() {
        walk(name);
    }
    walk("mi300x:cpx");
}
