//! What needs which minor version of the compute driver's interface.
//!
//! The numbers are those of the kernel's `kfd_ioctl.h`. Between 1.19 and 1.22 the
//! out-of-tree driver gave the same numbers to other things, so there the version
//! alone does not tell: [`support`] says [`Support::Perhaps`], the caller tries,
//! and an EINVAL or ENOTTY is the answer. A minor newer than this table has all
//! of it.

use super::Request;
use super::block::Block;
use super::kfd::{DkmsProfilerVersion, GetVersion, ProfilerVersion};

/// Something a driver may not have yet.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Feature {
    /// [`super::kfd::SmiEvents`].
    SmiEvents,
    /// [`super::kfd::Svm`] and [`super::kfd::SetXnackMode`], if built into the driver.
    Svm,
    /// [`super::kfd::SvmAttributeType::CLR_FLAGS`] as a question.
    SvmQueryClearFlags,
    /// [`super::kfd::CriuOp`].
    Criu,
    /// [`super::kfd::AvailableMemory`].
    AvailableMemory,
    /// [`super::kfd::SmiEvent::MIGRATE_START`] and later.
    SmiProfilerEvents,
    /// A context save area in SVM, [`super::kfd::SvmFlags::GPU_ALWAYS_MAPPED`].
    SvmSaveArea,
    /// [`super::kfd::ExportDmabuf`].
    ExportDmabuf,
    /// [`super::kfd::RuntimeEnable`] and [`super::kfd::DbgTrapOp`].
    RuntimeAndDebugger,
    /// [`super::kfd::SignalEventData`].
    EventAge,
    /// [`super::amdgpu::GemVa`] on a VM bound to a compute process.
    ComputeGemVa,
    /// [`super::kfd::AllocMemoryFlags::CONTIGUOUS_BEST_EFFORT`].
    Contiguous,
    /// [`super::kfd::PcSample`], if the driver is the out-of-tree one.
    PcSampling,
    /// [`super::kfd::QueueType::SDMA_BY_ENG_ID`].
    SdmaEngineId,
    /// [`super::kfd::SetMemoryPolicy::misc_process_flag`].
    ProcessFlags,
    /// [`super::kfd::CreateProcess`].
    SecondaryContexts,
    /// A trap handler that may use expert scheduling.
    TrapExpertScheduling,
    /// [`super::kfd::DbgTrapFlags::LDS_OUT_OF_ADDR_RANGE`].
    LdsOutOfRangeTrap,
    /// [`super::kfd::CreateQueue::metadata_ring_size`].
    MetadataRing,
    /// [`super::kfd::ProfilerVersion`] and its like, number 0x28.
    Profiler,
}

/// One line of the table.
#[derive(Debug, Clone, Copy)]
pub struct Gate {
    /// What.
    pub feature: Feature,
    /// The minor of major 1 from which on a driver has it.
    pub minor: u32,
    /// The minor from which on some driver has it; the same for most.
    pub perhaps: u32,
    /// What to call it in the detail of an error.
    pub name: &'static str,
}

const fn gate(feature: Feature, minor: u32, name: &'static str) -> Gate {
    Gate { feature, minor, perhaps: minor, name }
}

const fn disputed(feature: Feature, minor: u32, perhaps: u32, name: &'static str) -> Gate {
    Gate { feature, minor, perhaps, name }
}

/// The table, by minor.
pub const GATES: &[Gate] = &[
    gate(Feature::SmiEvents, 3, "SMI events"),
    gate(Feature::Svm, 5, "shared virtual memory"),
    gate(Feature::SvmQueryClearFlags, 6, "query of cleared SVM flags"),
    gate(Feature::Criu, 7, "checkpoint and restore"),
    gate(Feature::AvailableMemory, 9, "available memory"),
    gate(Feature::SmiProfilerEvents, 10, "SMI profiler events"),
    gate(Feature::SvmSaveArea, 11, "context save area in SVM"),
    gate(Feature::ExportDmabuf, 12, "dma-buf export"),
    gate(Feature::RuntimeAndDebugger, 13, "runtime enable and debugger"),
    gate(Feature::EventAge, 14, "event age"),
    gate(Feature::ComputeGemVa, 15, "GEM_VA on compute VMs"),
    gate(Feature::Contiguous, 16, "contiguous VRAM"),
    gate(Feature::PcSampling, 16, "sampling of program counters"),
    gate(Feature::SdmaEngineId, 17, "SDMA queue by engine id"),
    gate(Feature::ProcessFlags, 18, "memory policy flags"),
    gate(Feature::SecondaryContexts, 19, "secondary contexts"),
    disputed(Feature::TrapExpertScheduling, 20, 19, "expert scheduling in trap handlers"),
    disputed(Feature::LdsOutOfRangeTrap, 21, 19, "trap on LDS out of range"),
    disputed(Feature::MetadataRing, 22, 19, "queue metadata ring"),
    gate(Feature::Profiler, 23, "profiler"),
];

/// Whether a driver has a feature.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Support {
    /// No.
    No,
    /// Some drivers of this version have it, some do not: try.
    Perhaps,
    /// Yes.
    Yes,
}

impl Feature {
    /// Its line in the table.
    #[must_use]
    pub const fn gate(self) -> Gate {
        let mut rest = GATES;
        while let [gate, tail @ ..] = rest {
            if gate.feature as u8 == self as u8 {
                return *gate;
            }
            rest = tail;
        }
        // Unreachable: a test finds every feature in the table.
        disputed(self, u32::MAX, u32::MAX, "unknown feature")
    }
}

/// Whether a driver of `version` has `feature`. A major other than 1 has none.
#[must_use]
pub const fn support(version: &GetVersion, feature: Feature) -> Support {
    let gate = feature.gate();
    if version.major_version != 1 || version.minor_version < gate.perhaps {
        Support::No
    } else if version.minor_version < gate.minor {
        Support::Perhaps
    } else {
        Support::Yes
    }
}

/// Whether a driver of `version` has `feature` for certain.
#[must_use]
pub const fn supports(version: &GetVersion, feature: Feature) -> bool {
    matches!(support(version, feature), Support::Yes)
}

/// The PROFILER request to send to a driver of `version`: 0x28 with 16 bytes, or
/// before it existed the out-of-tree driver's 0x86 with 40.
#[must_use]
pub const fn profiler(version: &GetVersion) -> Request {
    if supports(version, Feature::Profiler) {
        ProfilerVersion::REQUEST
    } else {
        DkmsProfilerVersion::REQUEST
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NEWEST: u32 = 23;

    fn version(minor_version: u32) -> GetVersion {
        GetVersion { major_version: 1, minor_version }
    }

    #[test]
    fn what_each_minor_adds() {
        use Feature::*;
        let added: &[(u32, &[Feature])] = &[
            (0, &[]),
            (1, &[]),
            (2, &[]),
            (3, &[SmiEvents]),
            (4, &[]),
            (5, &[Svm]),
            (6, &[SvmQueryClearFlags]),
            (7, &[Criu]),
            (8, &[]),
            (9, &[AvailableMemory]),
            (10, &[SmiProfilerEvents]),
            (11, &[SvmSaveArea]),
            (12, &[ExportDmabuf]),
            (13, &[RuntimeAndDebugger]),
            (14, &[EventAge]),
            (15, &[ComputeGemVa]),
            (16, &[Contiguous, PcSampling]),
            (17, &[SdmaEngineId]),
            (18, &[ProcessFlags]),
            (19, &[SecondaryContexts]),
            (20, &[TrapExpertScheduling]),
            (21, &[LdsOutOfRangeTrap]),
            (22, &[MetadataRing]),
            (23, &[Profiler]),
            (24, &[]),
            (25, &[]),
            (26, &[]),
            (27, &[]),
            (28, &[]),
        ];
        assert_eq!(added.last().map(|(minor, _)| *minor), Some(NEWEST + 5));
        assert_eq!(added.iter().map(|(_, features)| features.len()).sum::<usize>(), GATES.len());
        for &(minor, _) in added {
            for &(first, features) in added {
                for &feature in features {
                    assert_eq!(
                        supports(&version(minor), feature),
                        minor >= first,
                        "{feature:?} in 1.{minor}"
                    );
                }
            }
        }
    }

    #[test]
    fn disputed_minors() {
        for minor in 0..=NEWEST + 5 {
            for gate in GATES {
                let perhaps = matches!(minor, 19..=21)
                    && matches!(
                        (gate.feature, minor),
                        (Feature::TrapExpertScheduling, 19)
                            | (Feature::LdsOutOfRangeTrap, 19..=20)
                            | (Feature::MetadataRing, 19..=21)
                    );
                let got = support(&version(minor), gate.feature);
                assert_eq!(got == Support::Perhaps, perhaps, "{:?} in 1.{minor}", gate.feature);
            }
        }
    }

    #[test]
    fn the_profiler_moved() {
        for minor in 0..=NEWEST + 5 {
            let request = profiler(&version(minor));
            let expected = if minor < 23 { (0x86, 40) } else { (0x28, 16) };
            assert_eq!((request.number(), request.size()), expected, "1.{minor}");
        }
    }

    #[test]
    fn every_feature_is_in_the_table_once_and_in_order() {
        for pair in GATES.windows(2) {
            assert!(pair[0].minor <= pair[1].minor);
        }
        for (at, gate) in GATES.iter().enumerate() {
            assert_eq!(gate.feature as usize, at, "{:?}", gate.feature);
            assert!(gate.perhaps <= gate.minor);
            assert_eq!(gate.feature.gate().name, gate.name);
        }
        assert_eq!(Feature::Profiler as usize + 1, GATES.len(), "the last feature");
    }

    #[test]
    fn another_major_has_nothing() {
        for major_version in [0, 2, u32::MAX] {
            let version = GetVersion { major_version, minor_version: u32::MAX };
            assert!(!supports(&version, Feature::SmiEvents));
        }
        assert!(supports(&version(u32::MAX), Feature::Profiler));
    }
}
