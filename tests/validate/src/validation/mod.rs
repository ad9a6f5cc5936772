//! `kfd-validate` without a command: the full validation of a machine.
//!
//! A validation is a row of [`stage`]s. Each leaves [`findings`]: one line of what was
//! checked, and a reason for each failure that names the broken part (GPU by its node,
//! heap, link, event) and the system's answer. [`stages`] hold what each does with the
//! [`subject`]; [`report`] writes the findings as text, TAP or JSON. Accesses to memory
//! are in [`pattern`] alone.
//!
//! The first failing foundation (open, topology) makes later stages impossible: they are
//! skipped and say so. Any other failure leaves them their turn. [`exceptions`] of GPUs
//! fail the stage in which they come, whatever that was about.

pub mod aql;
pub mod engines;
pub mod exceptions;
pub mod findings;
pub mod pattern;
pub mod report;
pub mod stage;
pub mod stages;
pub mod subject;

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use hsakmt_core::context::{GpuSelection, Options};
use hsakmt_core::error::Error;
use hsakmt_core::process::Process;
use hsakmt_core::seam::{Clock, Os, Platform};
use hsakmt_core::topology::{Settings, Unopened, read_snapshot};

use crate::arguments::{GpuName, Misuse, Source, Validation};
use crate::failure::{ExitStatus, Failure, means_no_machine};
use crate::machine::{DEFAULT_PROFILE, Machine};
use crate::output::console::{Console, print};
use crate::signals;
use crate::simulation::Simulation;
use exceptions::Exceptions;
use findings::{Findings, Outcome};
use report::{Heading, Verdict};
use stage::Stage;
use subject::{Limits, Subject};

/// Milliseconds in which an engine has to make progress: its work here takes far less.
pub(crate) const ENGINE_PATIENCE: u32 = 500;

/// Seconds of grace for a call that is under way when the time is up.
const GRACE: u32 = 5;

/// Validates the machine that is wanted; how it went is printed stage by stage.
///
/// # Errors
/// Why no validation began, or why its output could not be written.
pub fn validate<P: Platform>(
    wanted: &Validation,
    real: P,
    console: &mut dyn Console,
) -> Result<ExitStatus, Failure> {
    match &wanted.source {
        Source::Simulated(profile) => simulated(wanted, profile, None, console),
        Source::Real | Source::Unsaid => {
            let asked = wanted.source == Source::Real;
            let process = Process::new(real);
            match open(wanted, &process)? {
                Err(error) if means_no_machine(&error) && asked => Err(Failure::Real(error)),
                Err(error) if means_no_machine(&error) => {
                    simulated(wanted, DEFAULT_PROFILE, Some("/dev/kfd"), console)
                }
                opened => {
                    let version = process.primary().ok().map(|guard| guard.version());
                    run(wanted, &process, opened, Machine::Real(version), console)
                }
            }
        }
        Source::Tree(_) => Err(Failure::Misuse(Misuse::OnlyInfo("--tree"))),
    }
}

fn simulated(
    wanted: &Validation,
    profile: &str,
    instead_of: Option<&'static str>,
    console: &mut dyn Console,
) -> Result<ExitStatus, Failure> {
    let simulation = Simulation::new(profile)?;
    let process = Process::new(simulation.platform());
    let opened = open(wanted, &process)?;
    let driver = process.primary().ok().map(|guard| guard.version());
    let machine = Machine::Simulated { profile: profile.into(), driver, instead_of };
    let status = run(wanted, &process, opened, machine, console)?;
    let violations = simulation.machine().violations();
    match violations.first() {
        None => Ok(status),
        Some(first) => Err(Failure::RulesBroken(violations.len(), first.to_string())),
    }
}

/// Opens the library for the GPUs that are wanted.
fn open<P: Platform>(
    wanted: &Validation,
    process: &Process<P>,
) -> Result<Result<(), Error>, Failure> {
    let gpus = match &wanted.gpus {
        None => GpuSelection::All,
        Some(names) => GpuSelection::Only(ids(names, process)?),
    };
    let options =
        || Ok(Options { gpus, engine_patience_ms: ENGINE_PATIENCE, ..Options::default() });
    Ok(process.open_primary(options).map(drop))
}

/// The kernel's ids of GPUs by node or id. Without a topology there are none, and
/// opening says why.
fn ids<P: Platform>(names: &[GpuName], process: &Process<P>) -> Result<Vec<u32>, Failure> {
    let os = process.platform().os();
    let Ok(snapshot) = read_snapshot(os, &Settings::KERNEL, &mut Unopened) else {
        return Ok(Vec::new());
    };
    let nodes = snapshot.nodes();
    let known = |name: &GpuName| {
        let found = nodes.iter().find(|node| {
            node.is_gpu()
                && match *name {
                    GpuName::Node(number) => node.sysfs_node == number,
                    GpuName::Id(gpu_id) => node.gpu_id == gpu_id,
                }
        });
        found.map(|node| node.gpu_id).ok_or(Failure::Misuse(Misuse::NoSuchGpu(*name)))
    };
    names.iter().map(known).collect()
}

/// Runs the stages on an open library, or says why it is not.
fn run<P: Platform>(
    wanted: &Validation,
    process: &Process<P>,
    opened: Result<(), Error>,
    machine: Machine,
    console: &mut dyn Console,
) -> Result<ExitStatus, Failure> {
    let os = process.platform().os();
    let began = os.now(Clock::Monotonic);
    let budget = u64::from(wanted.timeout).saturating_mul(1_000_000_000);
    let limits = Limits { quick: wanted.quick, deadline: began.saturating_add(budget) };
    signals::end_at(wanted.timeout.saturating_add(GRACE));
    let stages: Vec<Stage> = Stage::ALL.into_iter().filter(|stage| wanted.runs(*stage)).collect();
    let is_open = opened.is_ok();
    let heading = Heading { machine, is_open, stages: stages.len() };
    let mut form = report::form(wanted.form);
    let show_progress = console.error_is_terminal();
    let mut verdict = Verdict { findings: Vec::new(), took: 0 };
    let mut opened = Some(opened);
    let mut missing: Option<String> = None;
    let mut foundation = Foundation { nodes: Vec::new(), hidden: Vec::new(), gpus: Vec::new() };
    let mut exceptions = Exceptions::UNTOLD;
    let result = put(console, &form.begin(&heading)).and_then(|()| {
        for (number, &stage) in (1..).zip(&stages) {
            signals::set_alarm_message(stage.hung());
            let mut findings = Findings::new(stage);
            let start = os.now(Clock::Monotonic);
            match (&missing, stage, opened.take()) {
                (Some(reason), _, _) => findings.skip(reason),
                (None, Stage::Open, Some(Err(error))) => {
                    findings.refused(&"the compute driver", &error);
                }
                (None, Stage::Open, _) => {
                    findings.summary = "/dev/kfd".into();
                    if let Ok(guard) = process.primary() {
                        exceptions = Exceptions::watch(&guard, &mut findings);
                    }
                }
                (None, _, _) => {
                    let mut subject = Subject {
                        process,
                        limits,
                        nodes: core::mem::take(&mut foundation.nodes),
                        hidden: core::mem::take(&mut foundation.hidden),
                        gpus: core::mem::take(&mut foundation.gpus),
                        progress: if show_progress { Some(&mut *console) } else { None },
                        last_progress: 0,
                    };
                    if subject.has_time(&mut findings, &format_args!("stage {}", stage.name())) {
                        perform(stage, &mut subject, &mut findings);
                    }
                    subject.clear_progress();
                    let Subject { nodes, hidden, gpus, .. } = subject;
                    foundation = Foundation { nodes, hidden, gpus };
                }
            }
            let usable =
                if stage == Stage::Topology { !foundation.nodes.is_empty() } else { is_open };
            if stage.is_foundation() && !usable && missing.is_none() {
                missing = Some(format!("stage {} failed", stage.name()));
            }
            if let Ok(guard) = process.primary() {
                exceptions.look(&guard, &foundation.gpus, &mut findings);
                if number == stages.len() {
                    core::mem::replace(&mut exceptions, Exceptions::UNTOLD)
                        .end(&guard, &mut findings);
                }
            }
            findings.took = os.now(Clock::Monotonic).saturating_sub(start);
            put(console, &form.stage(number, &findings))?;
            verdict.findings.push(findings);
        }
        Ok(())
    });
    let closed = process.close_primary();
    signals::end_at(0);
    result?;
    if let (true, Err(error)) = (is_open, closed) {
        if let Some(last) = verdict.findings.last_mut() {
            last.refused(&"closing the library", &error);
        }
    }
    verdict.took = os.now(Clock::Monotonic).saturating_sub(began);
    put(console, &form.end(&heading, &verdict))?;
    let failed = verdict.findings.iter().any(|it| it.outcome() == Outcome::Failed);
    Ok(if failed { ExitStatus::FAILED } else { ExitStatus::DONE })
}

/// What the stage of the topology found, for the later ones.
struct Foundation {
    nodes: Vec<hsakmt_core::topology::Node>,
    hidden: Vec<hsakmt_core::topology::HiddenNode>,
    gpus: Vec<subject::Gpu>,
}

fn put(console: &mut dyn Console, text: &str) -> Result<(), Failure> {
    print(console, text.as_bytes()).map_err(Failure::Output)
}

fn perform<P: Platform>(stage: Stage, subject: &mut Subject<'_, P>, findings: &mut Findings) {
    match stage {
        Stage::Open => {}
        Stage::Version => stages::version::run(subject, findings),
        Stage::Topology => stages::topology::run(subject, findings),
        Stage::Memory => stages::memory::run(subject, findings),
        Stage::Registration => stages::registration::run(subject, findings),
        Stage::Sharing => stages::sharing::run(subject, findings),
        Stage::Events => stages::events::run(subject, findings),
        Stage::Queues => stages::queues::run(subject, findings),
        Stage::Copy => stages::copy::run(subject, findings),
    }
}
