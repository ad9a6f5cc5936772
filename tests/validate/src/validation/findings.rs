//! What a stage found.

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use hsakmt_core::error::Error;

use super::stage::Stage;
use crate::failure::with_advice;

/// Reasons that are listed of one stage; the others are counted.
const LISTED: usize = 16;

/// How a stage ended.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// All that was checked is whole.
    Passed,
    /// Something is broken.
    Failed,
    /// It did not run, or there was nothing to check.
    Skipped,
}

/// What one stage found.
#[derive(Debug, Clone)]
pub struct Findings {
    /// The stage.
    pub stage: Stage,
    /// One line: what was checked, or why nothing was.
    pub summary: String,
    /// Why it failed, at most so many.
    pub failures: Vec<String>,
    /// How many failures are not listed.
    pub more_failures: u64,
    /// What the reader should know and is no failure.
    pub notes: Vec<String>,
    /// Whether it did not run.
    pub skipped: bool,
    /// How long it took, in nanoseconds.
    pub took: u64,
}

impl Findings {
    /// Nothing yet.
    #[must_use]
    pub const fn new(stage: Stage) -> Findings {
        Findings {
            stage,
            summary: String::new(),
            failures: Vec::new(),
            more_failures: 0,
            notes: Vec::new(),
            skipped: false,
            took: 0,
        }
    }

    /// How the stage ended.
    #[must_use]
    pub fn outcome(&self) -> Outcome {
        match (self.failures.is_empty(), self.skipped) {
            (false, _) => Outcome::Failed,
            (true, true) => Outcome::Skipped,
            (true, false) => Outcome::Passed,
        }
    }

    /// Something is broken, and why.
    pub fn fail(&mut self, reason: impl fmt::Display) {
        if self.failures.len() < LISTED {
            self.failures.push(reason.to_string());
        } else {
            self.more_failures = self.more_failures.saturating_add(1);
        }
    }

    /// A call about a part failed.
    pub fn refused(&mut self, part: &dyn fmt::Display, error: &Error) {
        self.fail(format!("{part}: {}", Advised(error)));
    }

    /// The value of a call about a part, or its failure noted.
    pub fn expect<T>(&mut self, part: &dyn fmt::Display, result: Result<T, Error>) -> Option<T> {
        result.inspect_err(|error| self.refused(part, error)).ok()
    }

    /// Something the reader should know.
    pub fn note(&mut self, note: impl fmt::Display) {
        if self.notes.len() < LISTED {
            self.notes.push(note.to_string());
        }
    }

    /// There is nothing to check, and why.
    pub fn skip(&mut self, reason: impl fmt::Display) {
        self.skipped = true;
        self.summary = reason.to_string();
    }
}

/// An error and what to do about it.
struct Advised<'a>(&'a Error);

impl fmt::Display for Advised<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        with_advice(f, self.0)
    }
}

/// A number of things: "1 event", "2 events".
#[derive(Debug, Clone, Copy)]
pub struct Count(pub u64, pub &'static str);

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Count(number, what) = self;
        write!(f, "{number} {what}{}", if *number == 1 { "" } else { "s" })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn failures_beyond_a_number_are_counted() {
        let mut findings = Findings::new(Stage::Memory);
        assert_eq!(findings.outcome(), Outcome::Passed);
        findings.skip("no GPU");
        assert_eq!(findings.outcome(), Outcome::Skipped);
        for n in 0..20 {
            findings.fail(n);
        }
        assert_eq!(findings.outcome(), Outcome::Failed);
        assert_eq!((findings.failures.len(), findings.more_failures), (16, 4));
    }
}
