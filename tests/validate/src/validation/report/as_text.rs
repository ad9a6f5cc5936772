//! Findings for people: the machine, one line a stage with its reasons below it, and
//! the verdict.

use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use super::{Heading, Verdict, Writer, word};
use crate::output::text::Printable;
use crate::validation::findings::{Count, Findings, Outcome};

pub(super) struct Text;

impl Writer for Text {
    fn begin(&mut self, heading: &Heading) -> String {
        format!("{}\n", heading.line())
    }

    fn stage(&mut self, _: usize, findings: &Findings) -> String {
        let (name, outcome) = (findings.stage.name(), findings.outcome());
        let shown = if outcome == Outcome::Failed { "FAILED" } else { word(outcome) };
        let line = format!("{name:<13}{shown:<8}{}", Printable(findings.summary.as_bytes()));
        let mut text = format!("{}\n", line.trim_end());
        for reason in &findings.failures {
            text.push_str(&format!("  - {}\n", Printable(reason.as_bytes())));
        }
        if findings.more_failures > 0 {
            text.push_str(&format!("  - and {} more failures\n", findings.more_failures));
        }
        for note in &findings.notes {
            text.push_str(&format!("  note: {}\n", Printable(note.as_bytes())));
        }
        text
    }

    fn end(&mut self, _: &Heading, verdict: &Verdict) -> String {
        let all = &verdict.findings;
        let of = |outcome| all.iter().filter(move |it| it.outcome() == outcome);
        let tenths = verdict.took / 100_000_000;
        let time = format!("{}.{} s", tenths / 10, tenths % 10);
        let failed: Vec<&str> = of(Outcome::Failed).map(|it| it.stage.name()).collect();
        let stages = Count(all.len() as u64, "stage");
        let skipped = match of(Outcome::Skipped).count() {
            0 => String::new(),
            number => format!(", {number} skipped"),
        };
        if failed.is_empty() {
            format!("passed: {stages}{skipped} in {time}\n")
        } else {
            format!("FAILED: {} of {stages}{skipped} in {time}\n", failed.join(", "))
        }
    }
}
