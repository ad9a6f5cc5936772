//! Findings for programs: one object.

use alloc::string::String;

use super::{Heading, Verdict, Writer, word};
use crate::output::json::{self, Object};
use crate::validation::findings::{Findings, Outcome};

pub(super) struct Json;

impl Writer for Json {
    fn begin(&mut self, _: &Heading) -> String {
        String::new()
    }

    fn stage(&mut self, _: usize, _: &Findings) -> String {
        String::new()
    }

    fn end(&mut self, heading: &Heading, verdict: &Verdict) -> String {
        let mut text = String::new();
        let machine = &heading.machine;
        json::document(&mut text, |o| {
            o.field("machine").string(heading.line());
            o.field("source").on_one_line().object(|o| {
                o.field("kind").string(machine.kind());
                o.field("name").string(machine.name());
            });
            match machine.driver() {
                Some(version) => o.field("driver").on_one_line().object(|o| {
                    o.field("major").number(version.major);
                    o.field("minor").number(version.minor);
                }),
                None => o.field("driver").null(),
            }
            let failed = verdict.findings.iter().any(|it| it.outcome() == Outcome::Failed);
            o.field("passed").boolean(!failed);
            o.field("microseconds").number(verdict.took / 1000);
            o.field("stages").array(|a| {
                for findings in &verdict.findings {
                    a.item().object(|o| stage(o, findings));
                }
            });
        });
        text
    }
}

fn stage(o: &mut Object<'_>, findings: &Findings) {
    o.field("stage").string(findings.stage.name());
    o.field("outcome").string(word(findings.outcome()));
    o.field("summary").string(&findings.summary);
    o.field("microseconds").number(findings.took / 1000);
    for (name, list) in [("failures", &findings.failures), ("notes", &findings.notes)] {
        o.field(name).array(|a| {
            for line in list {
                a.item().string(line);
            }
        });
    }
    o.field("more_failures").number(findings.more_failures);
}
