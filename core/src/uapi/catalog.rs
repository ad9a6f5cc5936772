//! Every block and record, without their types: for traces, for decoding, and
//! for the test that holds them against the kernel's headers.

use super::{BlockInfo, RecordInfo, Request, amdgpu, drm, kfd, udmabuf};

/// Makes a table of descriptions from a list of types.
macro_rules! describe {
    ($info:ident: $($type:path,)*) => {
        &[$($info::of::<$type>(),)*]
    };
}

/// Every block. Several may share a request: one for each of its operations.
pub const ALL: &[BlockInfo] = describe![BlockInfo:
    kfd::GetVersion,
    kfd::SetMemoryPolicy,
    kfd::GetClockCounters,
    kfd::GetProcessApertures,
    kfd::GetProcessAperturesNew,
    kfd::AcquireVm,
    kfd::SetTrapHandler,
    kfd::CreateProcess,
    kfd::RuntimeEnable,
    kfd::SetXnackMode,
    kfd::CreateQueue,
    kfd::DestroyQueue,
    kfd::UpdateQueue,
    kfd::SetCuMask,
    kfd::GetQueueWaveState,
    kfd::AllocQueueGws,
    kfd::CreateEvent,
    kfd::DestroyEvent,
    kfd::SetEvent,
    kfd::ResetEvent,
    kfd::WaitEvents,
    kfd::SmiEvents,
    kfd::AllocMemoryOfGpu,
    kfd::FreeMemoryOfGpu,
    kfd::MapMemoryToGpu,
    kfd::UnmapMemoryFromGpu,
    kfd::AvailableMemory,
    kfd::SetScratchBackingVa,
    kfd::GetTileConfig,
    kfd::GetDmabufInfo,
    kfd::ImportDmabuf,
    kfd::ExportDmabuf,
    kfd::Svm,
    kfd::DbgTrapEnable,
    kfd::DbgTrapDisable,
    kfd::DbgTrapSendRuntimeEvent,
    kfd::DbgTrapSetExceptionsEnabled,
    kfd::DbgTrapSetWaveLaunchOverride,
    kfd::DbgTrapSetWaveLaunchMode,
    kfd::DbgTrapSuspendQueues,
    kfd::DbgTrapResumeQueues,
    kfd::DbgTrapSetNodeAddressWatch,
    kfd::DbgTrapClearNodeAddressWatch,
    kfd::DbgTrapSetFlags,
    kfd::DbgTrapQueryDebugEvent,
    kfd::DbgTrapQueryExceptionInfo,
    kfd::DbgTrapGetQueueSnapshot,
    kfd::DbgTrapGetDeviceSnapshot,
    kfd::DbgRegister,
    kfd::DbgUnregister,
    kfd::DbgAddressWatch,
    kfd::DbgWaveControl,
    kfd::CriuOp,
    kfd::IpcImportHandle,
    kfd::IpcExportHandle,
    kfd::CrossMemoryCopy,
    kfd::ProfilerPmc,
    kfd::ProfilerVersion,
    kfd::ProfilerPtlControl,
    kfd::DkmsProfilerPmc,
    kfd::DkmsProfilerPcSample,
    kfd::DkmsProfilerVersion,
    kfd::RlcSpm,
    kfd::PcSample,
    kfd::AisOp,
    drm::Version,
    drm::GetCap,
    drm::GemClose,
    drm::PrimeHandleToFd,
    drm::PrimeFdToHandle,
    drm::SyncobjCreate,
    drm::SyncobjDestroy,
    drm::SyncobjTimelineWait,
    amdgpu::Info,
    amdgpu::InfoReadMmrReg,
    amdgpu::GemCreate,
    amdgpu::GemMmap,
    amdgpu::GemMetadata,
    amdgpu::GemOpGetGemCreateInfo,
    amdgpu::GemOpSetPlacement,
    amdgpu::GemVa,
    amdgpu::GemVaTimeline,
    amdgpu::Vm,
    amdgpu::ProcOptions,
    amdgpu::GemSvm,
    udmabuf::UdmabufCreate,
];

/// Every record.
pub const RECORDS: &[RecordInfo] = describe![RecordInfo:
    kfd::ProcessDeviceApertures,
    kfd::ContextSaveAreaHeader,
    kfd::MemoryExceptionFailure,
    kfd::MemoryExceptionData,
    kfd::HwExceptionData,
    kfd::SignalEventData,
    kfd::EventData,
    kfd::SvmAttribute,
    kfd::RuntimeInfo,
    kfd::QueueSnapshotEntry,
    kfd::DbgDeviceInfoEntry,
    kfd::CriuDeviceBucket,
    kfd::CriuBoBucket,
    kfd::MemoryRange,
    kfd::SpmBufferHeader,
    kfd::PcSampleInfo,
    kfd::AisAnswer,
    amdgpu::InfoDevice,
    amdgpu::HeapInfo,
    amdgpu::MemoryInfo,
    amdgpu::InfoVramGtt,
    amdgpu::GemCreateIn,
];

/// The blocks of a request. Direction and size do not count, as in the drivers'
/// own dispatch.
pub fn blocks(request: Request) -> impl Iterator<Item = &'static BlockInfo> {
    ALL.iter().filter(move |block| {
        (block.request.letter(), block.request.number()) == (request.letter(), request.number())
    })
}

/// The name of a request in the kernel's header, without its prefix: the words
/// that the names of its blocks have in common.
#[must_use]
pub fn request_name(request: Request) -> &'static str {
    blocks(request).map(|block| block.name).reduce(common_words).unwrap_or("unknown request")
}

/// The longest common start of two names that ends where words end in both.
fn common_words(a: &'static str, b: &'static str) -> &'static str {
    let ends = a.char_indices().filter(|&(_, c)| c == '_').map(|(at, _)| at).chain([a.len()]);
    ends.filter_map(|end| a.get(..end))
        .rfind(|start| {
            b.strip_prefix(start).is_some_and(|rest| rest.is_empty() || rest.starts_with('_'))
        })
        .unwrap_or("")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::uapi::Direction;

    #[test]
    fn names_of_requests() {
        assert_eq!(request_name(Request(0x8008_4b01)), "GET_VERSION");
        // The direction and the size are the caller's business.
        assert_eq!(request_name(Request::new(Direction::None, b'K', 0x01, 0)), "GET_VERSION");
        assert_eq!(request_name(Request(0x4020_6445)), "AMDGPU_INFO");
        assert_eq!(request_name(Request(0xc020_4b26)), "DBG_TRAP");
        assert_eq!(request_name(Request(0xc010_4b28)), "PROFILER");
        assert_eq!(request_name(Request(0xc028_4b86)), "PROFILER");
        assert_eq!(request_name(Request(0xc010_6450)), "AMDGPU_GEM_OP");
        assert_eq!(request_name(Request(0x4008_5a01)), "unknown request");
    }

    #[test]
    fn common_words_end_where_words_end() {
        assert_eq!(common_words("DBG_TRAP_ENABLE", "DBG_TRAP_SET_FLAGS"), "DBG_TRAP");
        assert_eq!(common_words("INFO", "INFO_MORE"), "INFO");
        assert_eq!(common_words("INFO_MORE", "INFO"), "INFO");
        assert_eq!(common_words("INFO_MORE", "INFO_MOREOVER"), "INFO");
        assert_eq!(common_words("A", "B"), "");
    }
}
