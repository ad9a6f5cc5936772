//! `--real`, on a machine whose driver is the simulator's: the program takes it
//! for the real one.

use hsakmt_core::errno::Errno;
use hsakmt_core::seam::{DeviceNode, Fault, FaultPlan, Faulty, Platform, Selector};
use kfd_sim::{AddressesOnly, Machine, Profile};
use kfd_validate::failure::ExitStatus;
use kfd_validate::output::console::Console;
use kfd_validate::program;

#[derive(Default)]
struct Kept {
    output: Vec<u8>,
    error: Vec<u8>,
}

impl Console for Kept {
    fn write_output(&mut self, bytes: &[u8]) -> Result<usize, Errno> {
        self.output.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn write_error(&mut self, bytes: &[u8]) {
        self.error.extend_from_slice(bytes);
    }
}

/// What a run of the program left behind.
struct Run {
    status: ExitStatus,
    output: String,
    error: String,
}

fn run<P: Platform>(arguments: &[&str], real: P) -> Run {
    let arguments: Vec<&[u8]> = arguments.iter().map(|argument| argument.as_bytes()).collect();
    let mut kept = Kept::default();
    let status = program::run(&arguments, real, &mut kept);
    let text = |bytes| String::from_utf8(bytes).unwrap();
    Run { status, output: text(kept.output), error: text(kept.error) }
}

impl Run {
    #[track_caller]
    fn assert_done(&self, first_line: &str) {
        assert_eq!(self.status, ExitStatus::DONE, "{}", self.error);
        assert_eq!(self.error, "");
        assert_eq!(self.output.lines().next(), Some(first_line));
    }

    /// Asserts that there is one line of complaint, and nothing else.
    #[track_caller]
    fn assert_refused(&self, status: ExitStatus) -> &str {
        assert_eq!(self.status, status, "{}", self.error);
        assert_eq!(self.output, "");
        assert!(self.error.ends_with('\n') && self.error.lines().count() == 1, "{:?}", self.error);
        &self.error
    }
}

fn machine(profile: &str) -> Machine {
    Machine::new(&Profile::parse(profile).unwrap())
}

#[test]
fn the_real_driver_is_shown_and_said() {
    let machine = machine("mi300x:gpus=2,cpus=1,cores=4");
    for arguments in [&["info", "--real"][..], &["info"]] {
        let run = run(arguments, machine.spawn(AddressesOnly::new()));
        run.assert_done("real driver, KFD 1.17");
        assert!(run.output.contains("2 x AMD Instinct MI300X"), "{}", run.output);
    }
    machine.assert_no_violations();
}

#[test]
fn discovery_opens_no_device() {
    let machine = machine("mi300x:gpus=2,cpus=1,cores=4");
    // A container with an empty /dev.
    for node in [DeviceNode::Kfd, DeviceNode::Render(128), DeviceNode::Render(129)] {
        machine.set_open_error(node, Some(Errno::ENOENT));
    }
    for arguments in [&["info", "--real", "--discover"][..], &["info", "--discover"]] {
        let run = run(arguments, machine.spawn(AddressesOnly::new()));
        run.assert_done("real driver, topology only (no device opened)");
        assert!(run.output.contains("2 x AMD Instinct MI300X"), "{}", run.output);
    }
    assert_eq!(machine.opens("/dev/"), 0);
}

#[test]
fn a_driver_that_is_missing_is_replaced_only_if_nobody_asked_for_it() {
    let machine = machine("cpu-only");
    for errno in [Errno::ENOENT, Errno::ENODEV, Errno::ENXIO] {
        machine.set_open_error(DeviceNode::Kfd, Some(errno));
        let asked = run(&["info", "--real"], machine.spawn(AddressesOnly::new()));
        let complaint = asked.assert_refused(ExitStatus::NO_MACHINE);
        assert!(complaint.contains(&format!("open /dev/kfd: {errno}")), "{complaint}");
        let unasked = run(&["info"], machine.spawn(AddressesOnly::new()));
        unasked.assert_done("simulated machine mi300x (there is no /dev/kfd here)");
    }
}

#[test]
fn a_driver_that_refuses_is_never_replaced() {
    let machine = machine("cpu-only");
    for errno in [Errno::EACCES, Errno::EPERM, Errno::EINVAL, Errno::EMFILE, Errno::ENOMEM] {
        machine.set_open_error(DeviceNode::Kfd, Some(errno));
        for arguments in [&["info", "--real"][..], &["info"]] {
            let run = run(arguments, machine.spawn(AddressesOnly::new()));
            let complaint = run.assert_refused(ExitStatus::FAILED);
            assert!(complaint.contains(&format!("open /dev/kfd: {errno}")), "{complaint}");
            assert!(complaint.contains("--discover"), "{complaint}");
        }
    }
}

#[test]
fn gpus_that_may_not_be_opened_are_told() {
    let machine = machine("mi300x:gpus=2,cpus=1,cores=4");
    machine.set_open_error(DeviceNode::Render(129), Some(Errno::ENOENT));
    let run = run(&["info", "--real"], machine.spawn(AddressesOnly::new()));
    run.assert_done("real driver, KFD 1.17");
    let hidden = "hidden, by folder of the tree: 2 (the render node does not open)";
    assert!(run.output.contains(hidden), "{}", run.output);
    assert!(run.output.contains("2 nodes: 1 CPU, 1 GPU"), "{}", run.output);
}

#[test]
fn whatever_fails_is_one_line() {
    for arguments in [&["info", "--real"][..], &["info", "--real", "--discover", "--json"]] {
        for errno in [Errno::EACCES, Errno::ENOMEM, Errno::EMFILE, Errno::ENODEV, Errno::EIO] {
            for position in 1.. {
                let fault = Fault::nth(Selector::Any, position, errno);
                let plan = FaultPlan::with(fault).unwrap();
                let machine = machine("apu:cores=1");
                let host = machine.spawn(AddressesOnly::new());
                let run = run(arguments, Faulty::new(host, &plan));
                if plan.operations() < position {
                    break;
                }
                match run.status {
                    // What only decorates may be left out.
                    ExitStatus::DONE => assert_eq!(run.error, ""),
                    status => {
                        assert!(status == ExitStatus::FAILED || status == ExitStatus::NO_MACHINE);
                        run.assert_refused(status);
                    }
                }
            }
        }
    }
}
