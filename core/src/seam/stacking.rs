//! The wrappers around each other, in every order.

extern crate std;

use alloc::string::String;
use alloc::string::ToString;
use alloc::sync::Arc;
use alloc::vec::Vec;
use std::sync::Mutex;

use super::fake::{Fake, assert_transparent, execute_version, exercise};
use super::{
    Copied, CopyAudit, Counted, Counters, Counts, Driver, FaultPlan, Faulty, Journal,
    OperationKind, Os, Pair, Platform, TraceEvent, Traced,
};
use crate::errno::Errno;

type Sink = std::boxed::Box<dyn Fn(&TraceEvent<'_>) + Send + Sync>;

/// What the four wrappers of one stack report to.
#[derive(Clone)]
struct Reports {
    lines: Arc<Mutex<Vec<String>>>,
    journal: Arc<Journal<Sink, fn() -> u32>>,
    counters: Arc<Counters>,
    plan: Arc<FaultPlan<'static>>,
    audit: Arc<CopyAudit>,
}

impl Reports {
    fn new(faults: &'static str) -> Reports {
        let lines = Arc::new(Mutex::new(Vec::new()));
        let written = Arc::clone(&lines);
        let sink: Sink = std::boxed::Box::new(move |event| {
            // Addresses of futex words differ from run to run.
            if !event.operation.kind().name().starts_with("futex") {
                written.lock().unwrap().push(event.to_string());
            }
        });
        Reports {
            lines,
            journal: Arc::new(Journal::new(sink, || 7)),
            counters: Arc::new(Counters::new()),
            plan: Arc::new(FaultPlan::parse(faults).unwrap()),
            audit: Arc::new(CopyAudit::new()),
        }
    }

    fn lines(&self) -> Vec<String> {
        self.lines.lock().unwrap().clone()
    }

    fn counts(&self) -> Counts {
        self.counters.snapshot()
    }
}

/// Puts wrappers around `$inner`, the innermost first.
macro_rules! stack {
    ($reports:expr, $inner:expr;) => { $inner };
    ($reports:expr, $inner:expr; traced $($outer:ident)*) => {
        stack!($reports, Traced::new($inner, Arc::clone(&$reports.journal)); $($outer)*)
    };
    ($reports:expr, $inner:expr; counted $($outer:ident)*) => {
        stack!($reports, Counted::new($inner, Arc::clone(&$reports.counters)); $($outer)*)
    };
    ($reports:expr, $inner:expr; faulty $($outer:ident)*) => {
        stack!($reports, Faulty::new($inner, Arc::clone(&$reports.plan)); $($outer)*)
    };
    ($reports:expr, $inner:expr; copied $($outer:ident)*) => {
        stack!($reports, Copied::new($inner, Arc::clone(&$reports.audit)); $($outer)*)
    };
}

/// Runs `$check` for each order of the wrappers, given the order and a function
/// that makes the stack.
macro_rules! in_every_order {
    ($check:ident) => {
        in_every_order!($check:
            (traced counted faulty copied) (traced counted copied faulty)
            (traced faulty counted copied) (traced faulty copied counted)
            (traced copied counted faulty) (traced copied faulty counted)
            (counted traced faulty copied) (counted traced copied faulty)
            (counted faulty traced copied) (counted faulty copied traced)
            (counted copied traced faulty) (counted copied faulty traced)
            (faulty traced counted copied) (faulty traced copied counted)
            (faulty counted traced copied) (faulty counted copied traced)
            (faulty copied traced counted) (faulty copied counted traced)
            (copied traced counted faulty) (copied traced faulty counted)
            (copied counted traced faulty) (copied counted faulty traced)
            (copied faulty traced counted) (copied faulty counted traced));
    };
    ($check:ident: $(($($order:ident)*))*) => {
        $($check(
            &[$(stringify!($order)),*],
            |reports: &Reports, fake: Fake| {
                let pair = Pair { os: fake.clone(), driver: fake };
                stack!(reports, pair; $($order)*)
            },
        );)*
    };
}

fn reports_agree<W: Platform + Os + Driver>(order: &[&str], make: impl Fn(&Reports, Fake) -> W) {
    assert_transparent(|fake| make(&Reports::new(""), fake));

    let alone = Reports::new("");
    let fake = Fake::new();
    let traced = stack!(alone, &fake; traced);
    exercise(&traced, &traced);
    let counted = stack!(alone, &fake; counted);
    exercise(&counted, &counted);
    let faulty = stack!(alone, &fake; faulty);
    exercise(&faulty, &faulty);
    let copied = stack!(alone, &fake; copied);
    exercise(&copied, &copied);

    let together = Reports::new("");
    let stack = make(&together, Fake::new());
    exercise(stack.os(), stack.driver());
    // The four lone runs opened other devices than the one run of the stack, but
    // the first of them, the traced one, the same.
    assert_eq!(together.lines(), alone.lines(), "{order:?}");
    for &kind in OperationKind::ALL {
        // Whoever observes closing asks for the token at the opening.
        if kind != OperationKind::Token {
            assert_eq!(together.counts().of(kind), alone.counts().of(kind), "{order:?} {kind}");
        }
    }
    assert_eq!(together.counts().system_calls(), alone.counts().system_calls());
    assert_eq!(together.plan.operations(), alone.plan.operations());
    assert_eq!(together.audit.calls(), alone.audit.calls());
    assert_eq!(together.audit.violations(), 0);
}

#[test]
fn every_order_is_transparent_and_every_report_as_if_alone() {
    in_every_order!(reports_agree);
}

fn faults_stop_at_their_place<W: Platform>(order: &[&str], make: impl Fn(&Reports, Fake) -> W) {
    let reports = Reports::new("GET_VERSION#1=EIO");
    let fake = Fake::new();
    let stack = make(&reports, fake.clone());
    let driver = stack.driver();
    let device = driver.open(super::DeviceNode::Kfd).unwrap();
    assert_eq!(execute_version(driver, &device).0, Err(Errno::EIO), "{order:?}");
    assert_eq!(execute_version(driver, &device).0, Ok(0), "{order:?}");
    drop(device);

    let place = |name| order.iter().position(|wrapper| *wrapper == name).unwrap();
    let seen = |name| if place(name) > place("faulty") { 2 } else { 1 };
    assert_eq!(reports.counts().ioctls(), seen("counted"), "{order:?}");
    assert_eq!(reports.audit.calls(), seen("copied"), "{order:?}");
    let traced = reports.lines().iter().filter(|line| line.contains("ioctl")).count();
    assert_eq!(traced as u64, seen("traced"), "{order:?}");
    assert_eq!(reports.plan.operations(), 3);
    assert_eq!(fake.calls().len(), 3, "open, one block, close");
}

#[test]
fn outer_wrappers_see_faults_and_inner_ones_do_not() {
    in_every_order!(faults_stop_at_their_place);
}

#[test]
fn a_stack_wraps_any_platform_by_reference() {
    let reports = Reports::new("");
    let machine = Pair { os: Fake::new(), driver: Fake::new() };
    let stack = stack!(reports, Pair::of(&machine); copied faulty counted traced);
    let device = stack.driver().open(super::DeviceNode::Kfd).unwrap();
    stack.os().wmb_device();
    drop(device);
    assert_eq!(machine.driver.calls(), ["open /dev/kfd", "close 0"]);
    assert_eq!(machine.os.calls(), ["wmb_device"]);
    let numbers: Vec<_> =
        reports.lines().iter().map(|line| line.split(' ').next().unwrap().to_string()).collect();
    assert_eq!(numbers, ["#1", "#2", "#3"]);
}

#[test]
fn stacks_can_be_shared_by_threads() {
    fn shared<T: Send + Sync>(_: &T) {}
    let reports = Reports::new("");
    let pair = Pair { os: Fake::new(), driver: Fake::new() };
    let stack = stack!(reports, pair; copied faulty counted traced);
    shared(&stack);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| (0..100).for_each(|_| stack.os().wmb_device()));
        }
    });
    assert_eq!(reports.counts().of(OperationKind::WmbDevice), 400);
    let mut numbers: Vec<u64> = reports
        .lines()
        .iter()
        .map(|line| line[1..].split(' ').next().unwrap().parse().unwrap())
        .collect();
    numbers.sort_unstable();
    assert_eq!(numbers, (1..=400).collect::<Vec<_>>());
}
