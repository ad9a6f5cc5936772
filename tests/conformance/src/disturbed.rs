//! Every failure of a single operation below every call of a scenario: the call says so,
//! nothing has changed, and the same call works next.

use core::fmt::Debug;

use hsakmt_core::context::Options;
use hsakmt_core::errno::Errno;
use hsakmt_core::error::Error;
use hsakmt_core::process::{ContextHandle, Guard, Process};
use hsakmt_core::seam::{Fault, FaultPlan, Faulty, Selector};
use hsakmt_linux_shim::Linux;
use kfd_sim::{Leftovers, Machine};

use crate::{Mode, Simulated, held, machine};

/// A simulated process whose operations fail as a plan says.
pub type Disturbed<'p> = Faulty<Simulated, &'p FaultPlan<'static>>;

/// What beside the machine must be as before.
pub type State = fn(&Guard<'_, Disturbed<'_>>) -> String;

/// A run of a scenario under one fault.
pub struct Run<'a, 'p> {
    /// The context.
    pub guard: &'a Guard<'a, Disturbed<'p>>,
    /// The machine.
    pub machine: &'a Machine,
    /// What was prepared.
    pub prepared: Vec<u64>,
    plan: &'a FaultPlan<'static>,
    state: State,
    failures: u32,
    what: String,
}

impl Run<'_, '_> {
    /// Makes a call that may be disturbed. After a failure nothing has changed, and the
    /// call works when it is made again.
    ///
    /// # Panics
    /// When that is not so, or it fails without a fault.
    pub fn call<R: Debug>(&mut self, name: &str, call: impl Fn() -> Result<R, Error>) -> R {
        let (before, state) = (held(self.machine), (self.state)(self.guard));
        let struck = self.plan.struck();
        match call() {
            Ok(answer) => answer,
            Err(error) => {
                let what = format!("{}, {name}: {error}", self.what);
                assert!(self.plan.struck() > struck, "{what}: without a fault");
                assert_eq!(held(self.machine), before, "{what}");
                assert_eq!((self.state)(self.guard), state, "{what}");
                self.failures += 1;
                call().unwrap_or_else(|error| panic!("{what}; and again: {error}"))
            }
        }
    }

    /// Makes a call that may be disturbed and that ends something even where it fails:
    /// `is_ended` tells of a failure whether it has.
    ///
    /// # Panics
    /// When it has not ended and does not end when it is called again.
    pub fn end(
        &mut self,
        name: &str,
        call: impl Fn() -> Result<(), Error>,
        is_ended: impl Fn(&Error) -> bool,
    ) {
        let struck = self.plan.struck();
        if let Err(error) = call() {
            let what = format!("{}, {name}: {error}", self.what);
            assert!(self.plan.struck() > struck, "{what}: without a fault");
            self.failures += 1;
            if !is_ended(&error) {
                call().unwrap_or_else(|error| panic!("{what}; and again: {error}"));
            }
        }
    }
}

/// The same without descriptors of dma-bufs, which are the caller's when a context gave
/// them out. Several may be of one file, so where there are any the files are not counted.
fn without_dma_bufs(mut held: Leftovers, files: usize) -> Leftovers {
    for process in held.processes.values_mut() {
        let all = process.descriptors.len();
        process.descriptors.retain(|_, what| what != "dma-buf");
        if process.descriptors.len() < all {
            held.files = files;
        }
    }
    held
}

/// A scenario, and what it runs on.
#[derive(Clone, Copy)]
pub struct Scenario {
    /// The machine.
    pub profile: &'static str,
    /// How the context is to behave.
    pub options: fn() -> Options,
    /// What is done before faults begin; addresses that the run needs.
    pub prepare: fn(&Guard<'_, Disturbed<'_>>) -> Vec<u64>,
    /// What is done under faults.
    pub run: fn(&mut Run<'_, '_>),
    /// What beside the machine must be as before after a failure.
    pub state: State,
}

impl Scenario {
    /// Runs the scenario with its k-th operation failing; `None` when it has fewer.
    fn disturbed(&self, mode: Mode, k: u64, errno: Errno) -> Option<u32> {
        let machine = machine(self.profile);
        let plan = FaultPlan::with(Fault::nth(Selector::Any, k, errno)).expect("a plan");
        plan.suspend();
        let process: Process<Disturbed<'_>> =
            Process::new(Faulty::new(machine.spawn(Linux), &plan));
        process.open_primary(|| Ok((self.options)())).expect("open");
        process.primary().and_then(|guard| guard.acquire_machine()).expect("acquire");
        let before = held(&machine);
        let handle = match mode {
            Mode::Primary => ContextHandle::PRIMARY,
            Mode::Secondary => process.open_secondary((self.options)()).expect("secondary"),
        };
        let guard = process.enter(handle).expect("enter");
        guard.acquire_machine().expect("acquire");
        let prepared = (self.prepare)(&guard);
        let what = format!("{} {mode:?}, operation {k}, {errno}", self.profile);
        let mut run = Run {
            guard: &guard,
            machine: &machine,
            prepared,
            plan: &plan,
            state: self.state,
            failures: 0,
            what,
        };
        plan.resume();
        (self.run)(&mut run);
        let failures = run.failures;
        plan.suspend();
        drop(guard);
        if mode == Mode::Secondary {
            process.close_secondary(handle).expect("close");
            let after = without_dma_bufs(held(&machine), before.files);
            assert_eq!(after, before, "{} {mode:?}, {k}, {errno}", self.profile);
        }
        process.close_primary().expect("close");
        machine.assert_no_violations();
        (plan.struck() != 0).then_some(failures)
    }

    /// Runs it with each operation failing in turn, with each errno. At least so many
    /// calls fail, but of an interruption, which is restarted.
    ///
    /// # Panics
    /// When a rule of this module is broken.
    pub fn every_operation(&self, mode: Mode, errnos: &[Errno], least: u32) {
        for &errno in errnos {
            let mut failed = 0;
            let mut k = 1;
            while let Some(failures) = self.disturbed(mode, k, errno) {
                failed += failures;
                k += 1;
            }
            println!("{} {mode:?} {errno}: {k} operations, {failed} failures", self.profile);
            let restarted = errno == Errno::EINTR;
            assert!(
                failed >= least || restarted && k > u64::from(least),
                "{errno}: {failed} of {k}"
            );
        }
    }
}
