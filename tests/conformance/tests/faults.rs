//! Every failure of a single operation during a whole life: status and detail
//! say what happened, nothing is leaked, and the next life works.

use hsakmt_conformance::{Mode, Simulated, life, machine_under};
use hsakmt_core::errno::Errno;
use hsakmt_core::error::{Error, Status};
use hsakmt_core::process::Process;
use hsakmt_core::seam::{Fault, FaultPlan, Faulty, Selector};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Kernel, Leftovers, Machine};

const ERRNOS: [Errno; 7] = [
    Errno::EINTR,
    Errno::EAGAIN,
    Errno::ENOMEM,
    Errno::EMFILE,
    Errno::EACCES,
    Errno::ENODEV,
    Errno::EIO,
];

fn small() -> Machine {
    machine_under("rx7900:gpus=2,cus=2,cpus=1,cores=1", Kernel::V7_2)
}

/// What a process holds, but for the numbers of its descriptors: a GPU that was
/// lost for a moment is opened after the others.
fn held(machine: &Machine) -> (Vec<String>, Leftovers) {
    let mut left = hsakmt_conformance::held(machine);
    let mut open = Vec::new();
    for held in left.processes.values_mut() {
        open.extend(core::mem::take(&mut held.descriptors).into_values());
    }
    open.sort();
    (open, left)
}

type Baseline = (Vec<String>, Leftovers);

/// What a process holds after an undisturbed life.
fn baseline(mode: Mode) -> Baseline {
    let machine = small();
    let process = Process::new(machine.spawn(Linux));
    life(&process, mode).unwrap();
    held(&machine)
}

/// One life with one fault, then one without.
///
/// Returns what the first one answered, or `None` when it had fewer operations.
fn disturbed(mode: Mode, k: u64, errno: Errno, baseline: &Baseline) -> Option<Result<(), Error>> {
    let machine = small();
    let plan = FaultPlan::with(Fault::nth(Selector::Any, k, errno)).unwrap();
    let process: Process<Faulty<Simulated, &FaultPlan<'_>>> =
        Process::new(Faulty::new(machine.spawn(Linux), &plan));
    let result = life(&process, mode);
    if plan.struck() == 0 {
        return None;
    }
    plan.suspend();
    if let Err(error) = life(&process, mode) {
        panic!("{mode:?}, operation {k}, {errno}: the next life failed: {error}");
    }
    assert_eq!(held(&machine), *baseline, "{mode:?}, operation {k}, {errno}");
    machine.assert_no_violations();
    Some(result)
}

fn every_operation(mode: Mode) {
    let baseline = baseline(mode);
    for errno in ERRNOS {
        let mut failed = 0;
        let mut k = 1;
        while let Some(result) = disturbed(mode, k, errno, &baseline) {
            if let Err(error) = result {
                failed += 1;
                assert_eq!(error.errno, Some(errno), "{mode:?}, operation {k}: {error}");
                assert_ne!(error.status, Status::SUCCESS);
            }
            k += 1;
        }
        // The opens, the version, the apertures, the topology, two GPUs: far more than ten.
        assert!(failed > 10, "{mode:?}, {errno}: only {failed} of {k} faults were noticed");
    }
}

#[test]
fn in_the_primary_context() {
    every_operation(Mode::Primary);
}

#[test]
fn in_a_secondary_context() {
    every_operation(Mode::Secondary);
}

/// X4: a driver that answers EAGAIN for ever is given up after five seconds of
/// pauses; one that answers it a few times is not noticed.
#[test]
fn endless_eagain_is_an_error_in_the_end() {
    let machine = small();
    let plan =
        FaultPlan::with(Fault::always(Selector::Block("AMDGPU_INFO"), Errno::EAGAIN)).unwrap();
    let process = Process::new(Faulty::new(machine.spawn(Impatient), &plan));
    let error = life(&process, Mode::Primary).unwrap_err();
    assert_eq!(error.errno, Some(Errno::EAGAIN));
    assert!(plan.struck() > 100 && plan.struck() < 2000, "{} tries", plan.struck());
}

/// Linux that does not really sleep.
#[derive(Debug, Clone, Copy)]
struct Impatient;

impl Impatient {
    const BELOW: Linux = Linux;
}

mod impatient {
    use super::Impatient;
    use core::ffi::CStr;
    use core::ops::ControlFlow;
    use core::sync::atomic::AtomicU32;
    use hsakmt_core::errno::Errno;
    use hsakmt_core::seam::{
        Advice, Clock, EndOfFile, FileKind, Mapping, MemoryPolicy, Os, Protection, Wake,
    };

    impl Os for Impatient {
        fn sleep(&self, _: u64) {}

        fn page_size(&self) -> usize {
            Self::BELOW.page_size()
        }
        fn map(&self, mapping: Mapping) -> Result<usize, Errno> {
            Os::map(&Self::BELOW, mapping)
        }
        fn unmap(&self, address: usize, length: usize) -> Result<(), Errno> {
            Self::BELOW.unmap(address, length)
        }
        fn protect(&self, address: usize, length: usize, allow: Protection) -> Result<(), Errno> {
            Self::BELOW.protect(address, length, allow)
        }
        fn advise(&self, address: usize, length: usize, advice: Advice) -> Result<(), Errno> {
            Self::BELOW.advise(address, length, advice)
        }
        fn bind(
            &self,
            address: usize,
            length: usize,
            policy: MemoryPolicy,
            nodes: &[u64],
        ) -> Result<(), Errno> {
            Self::BELOW.bind(address, length, policy, nodes)
        }
        fn read_file(
            &self,
            path: &CStr,
            into: &mut Vec<u8>,
            limit: usize,
            end: EndOfFile,
        ) -> Result<(), Errno> {
            Self::BELOW.read_file(path, into, limit, end)
        }
        fn list_folder(
            &self,
            path: &CStr,
            visit: &mut dyn FnMut(&[u8], FileKind) -> ControlFlow<()>,
        ) -> Result<(), Errno> {
            Self::BELOW.list_folder(path, visit)
        }
        fn now(&self, clock: Clock) -> u64 {
            Self::BELOW.now(clock)
        }
        fn futex_wait(
            &self,
            word: &AtomicU32,
            expected: u32,
            timeout: Option<u64>,
        ) -> Result<Wake, Errno> {
            Self::BELOW.futex_wait(word, expected, timeout)
        }
        fn futex_wake(&self, word: &AtomicU32, count: u32) {
            Self::BELOW.futex_wake(word, count);
        }
        fn thread_id(&self) -> u32 {
            Self::BELOW.thread_id()
        }
        fn process_id(&self) -> u32 {
            Self::BELOW.process_id()
        }
        fn fork_word(&self) -> &AtomicU32 {
            unreachable!("the simulated process has its own")
        }
        fn wmb_device(&self) {}
        fn rmb_device(&self) {}
        fn flush_wc(&self) {}
    }
}
