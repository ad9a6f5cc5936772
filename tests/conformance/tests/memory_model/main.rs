//! Random sequences of memory calls against a naive model of what they promise,
//! on machines of several shapes, through the Rust calls and through the C functions
//! in both forms. At random steps the process forks: the child finds nothing open,
//! opens anew and lives a life of its own, and the parent goes on. In the end the
//! machine is empty.

mod c_calls;
mod caller;
mod model;
mod rust_calls;

use c_calls::{CFunctions, Form};
use hsakmt_conformance::Mode;
use model::{Sequence, run};
use rust_calls::RustCalls;

#[test]
fn one_gpu_without_the_svm_calls() {
    let caller = RustCalls::new("rx7900:svm=0", Mode::Primary);
    run(caller, &Sequence { steps: 100_000, forks: 100, seed: 0x1234_5678_9abc_def1 });
}

#[test]
fn gpus_that_reach_each_other() {
    let caller = RustCalls::new("mi300x:gpus=4,svm=0", Mode::Primary);
    run(caller, &Sequence { steps: 100_000, forks: 40, seed: 0x2545_f491_4f6c_dd1d });
}

#[test]
fn gpus_that_do_not_reach_each_other() {
    let caller = RustCalls::new("rx6800:gpus=3,svm=0,p2p=0", Mode::Primary);
    run(caller, &Sequence { steps: 30_000, forks: 30, seed: 0x9e37_79b9_7f4a_7c15 });
}

#[test]
fn a_secondary_context() {
    let caller = RustCalls::new("mi300x:gpus=2,kernel=7.2", Mode::Secondary);
    run(caller, &Sequence { steps: 100_000, forks: 40, seed: 0x0123_4567_89ab_cdef });
}

#[test]
fn the_c_functions_without_a_context() {
    let caller = CFunctions::new(Form::Legacy);
    run(caller, &Sequence { steps: 100_000, forks: 60, seed: 0xfedc_ba98_7654_3210 });
}

#[test]
fn the_c_functions_with_the_primary_context() {
    let caller = CFunctions::new(Form::Primary);
    run(caller, &Sequence { steps: 100_000, forks: 60, seed: 0x0f1e_2d3c_4b5a_6978 });
}

#[test]
fn the_c_functions_with_a_secondary_context() {
    let caller = CFunctions::new(Form::Secondary);
    run(caller, &Sequence { steps: 100_000, forks: 60, seed: 0x8796_a5b4_c3d2_e1f0 });
}
