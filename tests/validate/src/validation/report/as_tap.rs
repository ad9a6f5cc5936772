//! Findings for test harnesses, by the Test Anything Protocol without its version line:
//! the first line is a comment that says which machine it is.

use alloc::format;
use alloc::string::String;

use super::{Heading, Verdict, Writer};
use crate::output::text::Printable;
use crate::validation::findings::{Findings, Outcome};

pub(super) struct Tap;

impl Writer for Tap {
    fn begin(&mut self, heading: &Heading) -> String {
        format!("# {}\n1..{}\n", heading.line(), heading.stages)
    }

    fn stage(&mut self, number: usize, findings: &Findings) -> String {
        let name = findings.stage.name();
        // A number sign would begin a directive.
        let summary = format!("{}", Printable(findings.summary.as_bytes())).replace('#', "_");
        let mut text = match (findings.outcome(), summary.is_empty()) {
            (Outcome::Passed, true) => format!("ok {number} - {name}\n"),
            (Outcome::Passed, false) => format!("ok {number} - {name}: {summary}\n"),
            (Outcome::Skipped, _) => format!("ok {number} - {name} # SKIP {summary}\n"),
            (Outcome::Failed, _) => format!("not ok {number} - {name}\n"),
        };
        for reason in &findings.failures {
            text.push_str(&format!("# {}\n", Printable(reason.as_bytes())));
        }
        if findings.more_failures > 0 {
            text.push_str(&format!("# and {} more failures\n", findings.more_failures));
        }
        for note in &findings.notes {
            text.push_str(&format!("# note: {}\n", Printable(note.as_bytes())));
        }
        text
    }

    fn end(&mut self, _: &Heading, _: &Verdict) -> String {
        String::new()
    }
}
