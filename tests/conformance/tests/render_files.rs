//! Render files that somebody else in the process has: GPUs are bound to those that are
//! offered, and to our own where the driver refuses them.

use std::sync::Mutex;

use hsakmt_conformance::{Simulated, machine, process};
use hsakmt_core::context::{Options, RenderFiles};
use hsakmt_core::process::Process;
use hsakmt_core::seam::{DeviceNode, DeviceToken, Driver, Platform};

const PROFILE: &str = "rx7900:gpus=2,cus=2,cpus=1,cores=1";

/// Offers what a test has put in, by render node, and notes what it was asked.
#[derive(Debug, Default)]
struct Offers {
    files: Mutex<Vec<(u32, DeviceToken)>>,
    asked: Mutex<Vec<(u32, DeviceToken)>>,
    refused: Mutex<Vec<u32>>,
}

impl RenderFiles for Offers {
    fn offer(&self, render_minor: u32, opened: DeviceToken) -> Option<DeviceToken> {
        self.asked.lock().unwrap().push((render_minor, opened));
        let mut files = self.files.lock().unwrap();
        let at = files.iter().position(|(minor, _)| *minor == render_minor)?;
        Some(files.remove(at).1)
    }

    fn refused(&self, render_minor: u32) {
        self.refused.lock().unwrap().push(render_minor);
    }
}

fn offers() -> &'static Offers {
    Box::leak(Box::default())
}

/// Opens a device that nobody owns for now.
fn loose(process: &Process<Simulated>, node: DeviceNode) -> DeviceToken {
    let driver = process.platform().driver();
    driver.release(driver.open(node).unwrap())
}

/// Numbers of the open render nodes.
fn renders(process: &Process<Simulated>) -> Vec<(u32, DeviceNode)> {
    let open = process.platform().process().descriptors();
    let renders = open.into_iter().filter_map(|(number, node)| Some((number, node?)));
    renders.filter(|(_, node)| matches!(node, DeviceNode::Render(_))).collect()
}

fn acquire(process: &Process<Simulated>, offers: &'static Offers) {
    process
        .open_primary(|| Ok(Options { render_files: Some(offers), ..Options::default() }))
        .unwrap();
    process.primary().unwrap().acquire_machine().unwrap();
}

#[test]
fn gpus_are_bound_to_what_is_offered() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    let offers = offers();
    let theirs = loose(&process, DeviceNode::Render(128));
    offers.files.lock().unwrap().push((128, theirs));
    acquire(&process, offers);
    // Its file is open, the one that was opened for it is not; the other GPU has ours.
    let open = renders(&process);
    assert_eq!(open.len(), 2);
    assert!(open.contains(&(theirs.0, DeviceNode::Render(128))));
    let asked: Vec<u32> = offers.asked.lock().unwrap().iter().map(|(minor, _)| *minor).collect();
    assert_eq!(asked, [128, 129]);
    assert!(offers.refused.lock().unwrap().is_empty());
    // Once for the process: a reopened library finds the bindings as they are.
    for _ in 0..20 {
        process.primary().unwrap().release_machine().unwrap();
        process.close_primary().unwrap();
        acquire(&process, offers);
        assert_eq!(renders(&process), open);
    }
    assert_eq!(offers.asked.lock().unwrap().len(), 2);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn what_the_driver_refuses_is_not_kept() {
    let machine = machine(PROFILE);
    let process = process(&machine);
    let offers = offers();
    let theirs = loose(&process, DeviceNode::Kfd);
    offers.files.lock().unwrap().push((129, theirs));
    acquire(&process, offers);
    assert_eq!(*offers.refused.lock().unwrap(), [129]);
    let open = process.platform().process().descriptors();
    assert!(open.iter().all(|(number, _)| *number != theirs.0), "it is closed");
    assert_eq!(renders(&process).len(), 2);
    process.close_primary().unwrap();
    machine.assert_no_violations();
}

#[test]
fn a_secondary_context_has_its_own_files() {
    let machine = machine(&format!("{PROFILE},kernel=7.2"));
    let process = process(&machine);
    let offers = offers();
    acquire(&process, offers);
    let asked = offers.asked.lock().unwrap().len();
    let handle = process.open_secondary(Options::default()).unwrap();
    process.enter(handle).unwrap().acquire_machine().unwrap();
    assert_eq!(offers.asked.lock().unwrap().len(), asked);
    process.close_secondary(handle).unwrap();
    process.close_primary().unwrap();
    machine.assert_no_violations();
}
