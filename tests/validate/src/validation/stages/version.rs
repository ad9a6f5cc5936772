//! The version of the driver's interface, and what a kernel of that version lacks.

use alloc::format;
use alloc::vec::Vec;

use hsakmt_core::context::Version;
use hsakmt_core::seam::Platform;
use hsakmt_core::uapi::gate::Feature;

use crate::validation::findings::Findings;
use crate::validation::subject::Subject;

/// What later stages would use, and what it is called.
const FEATURES: [(Feature, &str); 4] = [
    (Feature::SmiEvents, "the file of a GPU's events"),
    (Feature::AvailableMemory, "the amount of memory that is left"),
    (Feature::ExportDmabuf, "giving buffers out"),
    (Feature::EventAge, "the age of events"),
];

/// Says which version it is.
pub fn run<P: Platform>(subject: &mut Subject<'_, P>, findings: &mut Findings) {
    let Some(guard) = findings.expect(&"library", subject.enter()) else { return };
    let version = guard.version();
    let Version { major, minor } = version;
    findings.summary = format!("KFD {major}.{minor}");
    let lacking: Vec<&str> =
        FEATURES.iter().filter(|(it, _)| !version.supports(*it)).map(|(_, what)| *what).collect();
    if !lacking.is_empty() {
        findings.note(format!("this kernel lacks: {}", lacking.join(", ")));
    }
}
