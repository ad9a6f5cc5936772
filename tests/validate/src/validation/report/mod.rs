//! Findings as output: text for people, TAP for test harnesses, JSON for programs.
//! Text and TAP come stage by stage, JSON at the end.

mod as_json;
mod as_tap;
mod as_text;

use alloc::boxed::Box;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use super::findings::{Findings, Outcome};
use crate::arguments::Form;
use crate::machine::Machine;

/// What is known before the first stage.
#[derive(Debug, Clone)]
pub struct Heading {
    /// The machine.
    pub machine: Machine,
    /// Whether its driver could be opened.
    pub is_open: bool,
    /// How many stages there will be.
    pub stages: usize,
}

impl Heading {
    /// The line that says which machine it is.
    fn line(&self) -> String {
        match &self.machine {
            Machine::Real(None) => "real driver, not opened".into(),
            machine => machine.to_string(),
        }
    }
}

/// All that was found.
#[derive(Debug, Clone)]
pub struct Verdict {
    /// Of each stage, in order.
    pub findings: Vec<Findings>,
    /// Nanoseconds.
    pub took: u64,
}

/// A form of output.
pub trait Writer {
    /// What stands before the stages.
    fn begin(&mut self, heading: &Heading) -> String;
    /// What is said of a stage, whose number counts from 1.
    fn stage(&mut self, number: usize, findings: &Findings) -> String;
    /// What stands at the end.
    fn end(&mut self, heading: &Heading, verdict: &Verdict) -> String;
}

/// The writer of a form.
#[must_use]
pub fn form(form: Form) -> Box<dyn Writer> {
    match form {
        Form::Text => Box::new(as_text::Text),
        Form::Tap => Box::new(as_tap::Tap),
        Form::Json => Box::new(as_json::Json),
    }
}

/// One word for how a stage ended.
const fn word(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::Failed => "failed",
        Outcome::Skipped => "skipped",
    }
}
