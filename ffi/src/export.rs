//! The table of exported C functions.

/// Puts the C functions over a [`Library`](crate::Library) in a static.
///
/// Each line of the table is a C function with its parameters and the method
/// that does its work.
///
/// The second argument is the generation of the library's host.
#[macro_export]
macro_rules! export {
    ($library:path, $generation:ty) => {
        $crate::exported_functions! {
            $library;
            fn hsaKmtOpenKFD() => open;
            fn hsaKmtCloseKFD() => close;
            fn hsaKmtOpenKFDCtx(pCtx: *mut *mut $crate::types::HsaKFDContext) => open_context;
            fn hsaKmtCloseKFDCtx() => close;
            fn hsaKmtOpenSecondaryKFDCtx(pCtx: *mut *mut $crate::types::HsaKFDContext)
                => open_secondary;
            fn hsaKmtCloseSecondaryKFDCtx(ctx: *mut $crate::types::HsaKFDContext)
                => close_secondary;
            fn hsaKmtGetVersion(VersionInfo: *mut $crate::types::HsaVersionInfo) => version;
            fn hsaKmtModelEnabled(enable: *mut bool) => model_enabled;
            fn hsaKmtGetClockCounters(
                NodeId: u32,
                Counters: *mut $crate::types::HsaClockCounters,
            ) => clock_counters;
            fn hsaKmtGetClockCountersPrecise(
                NodeId: u32,
                Counters: *mut $crate::types::HsaClockCounters,
            ) => clock_counters;
            fn hsaKmtGetClockCountersCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                Counters: *mut $crate::types::HsaClockCounters,
            ) => clock_counters_of;
            fn hsaKmtAcquireSystemProperties(
                SystemProperties: *mut $crate::types::HsaSystemProperties,
            ) => acquire_system;
            fn hsaKmtAcquireSystemPropertiesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                SystemProperties: *mut $crate::types::HsaSystemProperties,
            ) => acquire_system_of;
            fn hsaKmtReleaseSystemProperties() => release_system;
            fn hsaKmtReleaseSystemPropertiesCtx(ctx: *mut $crate::types::HsaKFDContext)
                => release_system_of;
            fn hsaKmtGetNodeProperties(
                NodeId: u32,
                NodeProperties: *mut <$generation as $crate::generation::Generation>::NodeProperties,
            ) => node_properties;
            fn hsaKmtGetNodePropertiesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                NodeProperties: *mut <$generation as $crate::generation::Generation>::NodeProperties,
            ) => node_properties_of;
            fn hsaKmtGetNodeMemoryProperties(
                NodeId: u32,
                NumBanks: u32,
                MemoryProperties: *mut $crate::types::HsaMemoryProperties,
            ) => memory_properties;
            fn hsaKmtGetNodeMemoryPropertiesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                NumBanks: u32,
                MemoryProperties: *mut $crate::types::HsaMemoryProperties,
            ) => memory_properties_of;
            fn hsaKmtGetNodeCacheProperties(
                NodeId: u32,
                ProcessorId: u32,
                NumCaches: u32,
                CacheProperties:
                    *mut <$generation as $crate::generation::Generation>::CacheProperties,
            ) => cache_properties;
            fn hsaKmtGetNodeCachePropertiesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                ProcessorId: u32,
                NumCaches: u32,
                CacheProperties:
                    *mut <$generation as $crate::generation::Generation>::CacheProperties,
            ) => cache_properties_of;
            fn hsaKmtGetNodeIoLinkProperties(
                NodeId: u32,
                NumIoLinks: u32,
                IoLinkProperties:
                    *mut <$generation as $crate::generation::Generation>::IoLinkProperties,
            ) => link_properties;
            fn hsaKmtGetNodeIoLinkPropertiesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                NumIoLinks: u32,
                IoLinkProperties:
                    *mut <$generation as $crate::generation::Generation>::IoLinkProperties,
            ) => link_properties_of;
            fn hsaKmtGetAMDGPUDeviceHandle(
                NodeId: u32,
                DeviceHandle: *mut $crate::types::HsaAMDGPUDeviceHandle,
            ) => primary.amdgpu_device;
            fn hsaKmtGetAMDGPUDeviceHandleCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                DeviceHandle: *mut $crate::types::HsaAMDGPUDeviceHandle,
            ) => context.amdgpu_device;
            fn hsaKmtGetAmdGPUDeviceFd(
                DeviceHandle: $crate::types::HsaAMDGPUDeviceHandle,
                fd: *mut ::core::ffi::c_int,
            ) => amdgpu_device_file;
            fn hsaKmtGetTileConfig(
                NodeId: u32,
                config: *mut $crate::types::HsaGpuTileConfig,
            ) => tile_config;
            fn hsaKmtGetTileConfigCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                config: *mut $crate::types::HsaGpuTileConfig,
            ) => tile_config_of;
            fn hsaKmtGetNodeWallclockFrequency(NodeId: u32, Frequency: *mut u64)
                => wallclock_frequency;
            fn hsaKmtSetMemoryPolicy(
                Node: u32,
                DefaultPolicy: u32,
                AlternatePolicy: u32,
                MemoryAddressAlternate: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
            ) => primary.set_memory_policy;
            fn hsaKmtSetMemoryPolicyCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Node: u32,
                DefaultPolicy: u32,
                AlternatePolicy: u32,
                MemoryAddressAlternate: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
            ) => context.set_memory_policy;
            fn hsaKmtAllocMemory(
                PreferredNode: u32,
                SizeInBytes: u64,
                MemFlags: $crate::types::HsaMemFlags,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
            ) => allocate;
            fn hsaKmtAllocMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                PreferredNode: u32,
                SizeInBytes: u64,
                MemFlags: $crate::types::HsaMemFlags,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
            ) => allocate_of;
            fn hsaKmtAllocMemoryAlign(
                PreferredNode: u32,
                SizeInBytes: u64,
                Alignment: u64,
                MemFlags: $crate::types::HsaMemFlags,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
            ) => allocate_aligned;
            fn hsaKmtAllocMemoryAlignCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                PreferredNode: u32,
                SizeInBytes: u64,
                Alignment: u64,
                MemFlags: $crate::types::HsaMemFlags,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
            ) => allocate_aligned_of;
            fn hsaKmtAllocMemoryHostGttCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                PreferredNode: u32,
                GttAnchorNode: u32,
                SizeInBytes: u64,
                MemFlags: $crate::types::HsaMemFlags,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
            ) => allocate_gtt_of;
            fn hsaKmtFreeMemory(MemoryAddress: *mut ::core::ffi::c_void, SizeInBytes: u64) => primary.free;
            fn hsaKmtFreeMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                SizeInBytes: u64,
            ) => context.free;
            fn hsaKmtAvailableMemory(Node: u32, AvailableBytes: *mut u64) => primary.available_memory;
            fn hsaKmtAvailableMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Node: u32,
                AvailableBytes: *mut u64,
            ) => context.available_memory;
            fn hsaKmtRegisterMemory(MemoryAddress: *mut ::core::ffi::c_void, MemorySizeInBytes: u64)
                => primary.register;
            fn hsaKmtRegisterMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
            ) => context.register;
            fn hsaKmtRegisterMemoryToNodes(
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => primary.register_to_nodes;
            fn hsaKmtRegisterMemoryToNodesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => context.register_to_nodes;
            fn hsaKmtRegisterMemoryWithFlags(
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                MemFlags: $crate::types::HsaMemFlags,
            ) => register_with_flags;
            fn hsaKmtRegisterMemoryWithFlagsCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                MemFlags: $crate::types::HsaMemFlags,
            ) => register_with_flags_of;
            fn hsaKmtDeregisterMemory(MemoryAddress: *mut ::core::ffi::c_void) => primary.deregister;
            fn hsaKmtDeregisterMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
            ) => context.deregister;
            fn hsaKmtMapMemoryToGPU(
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                AlternateVAGPU: *mut u64,
            ) => primary.map;
            fn hsaKmtMapMemoryToGPUCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                AlternateVAGPU: *mut u64,
            ) => context.map;
            fn hsaKmtMapMemoryToGPUNodes(
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                AlternateVAGPU: *mut u64,
                MemMapFlags: <$generation as $crate::generation::Generation>::MemMapFlags,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => map_to_nodes;
            fn hsaKmtMapMemoryToGPUNodesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                AlternateVAGPU: *mut u64,
                MemFlags: $crate::types::HsaMemFlags,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => map_to_nodes_of;
            fn hsaKmtUnmapMemoryToGPU(MemoryAddress: *mut ::core::ffi::c_void) => unmap;
            fn hsaKmtUnmapMemoryToGPUCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
            ) => unmap_of;
            fn hsaKmtMapGraphicHandle(
                NodeId: u32,
                GraphicDeviceHandle: u64,
                GraphicResourceHandle: u64,
                GraphicResourceOffset: u64,
                GraphicResourceSize: u64,
                FlatMemoryAddress: *mut u64,
            ) => map_graphic;
            fn hsaKmtUnmapGraphicHandle(NodeId: u32, FlatMemoryAddress: u64, SizeInBytes: u64)
                => unmap_graphic;
            fn hsaKmtUnmapGraphicHandleCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                FlatMemoryAddress: u64,
                SizeInBytes: u64,
            ) => unmap_graphic_of;
            fn hsaKmtQueryPointerInfo(
                Pointer: *const ::core::ffi::c_void,
                PointerInfo: *mut $crate::types::HsaPointerInfo,
            ) => primary.pointer_info;
            fn hsaKmtQueryPointerInfoCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Pointer: *const ::core::ffi::c_void,
                PointerInfo: *mut $crate::types::HsaPointerInfo,
            ) => context.pointer_info;
            fn hsaKmtSetMemoryUserData(
                Pointer: *const ::core::ffi::c_void,
                UserData: *mut ::core::ffi::c_void,
            ) => primary.set_user_data;
            fn hsaKmtSetMemoryUserDataCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Pointer: *const ::core::ffi::c_void,
                UserData: *mut ::core::ffi::c_void,
            ) => context.set_user_data;
            fn hsaKmtReplaceAsanHeaderPage(addr: *mut ::core::ffi::c_void) => swap_header_page;
            fn hsaKmtReplaceAsanHeaderPageCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                addr: *mut ::core::ffi::c_void,
            ) => swap_header_page_of;
            fn hsaKmtReturnAsanHeaderPage(addr: *mut ::core::ffi::c_void) => swap_header_page;
            fn hsaKmtReturnAsanHeaderPageCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                addr: *mut ::core::ffi::c_void,
            ) => swap_header_page_of;
            fn hsaKmtProcessVMRead(
                Pid: u32,
                LocalMemoryArray: *mut $crate::types::HsaMemoryRange,
                LocalMemoryArrayCount: u64,
                RemoteMemoryArray: *mut $crate::types::HsaMemoryRange,
                RemoteMemoryArrayCount: u64,
                SizeCopied: *mut u64,
            ) => copy_process_memory;
            fn hsaKmtProcessVMWrite(
                Pid: u32,
                LocalMemoryArray: *mut $crate::types::HsaMemoryRange,
                LocalMemoryArrayCount: u64,
                RemoteMemoryArray: *mut $crate::types::HsaMemoryRange,
                RemoteMemoryArrayCount: u64,
                SizeCopied: *mut u64,
            ) => copy_process_memory;
            fn hsaKmtCreateEvent(
                EventDesc: *mut $crate::types::HsaEventDescriptor,
                ManualReset: bool,
                IsSignaled: bool,
                Event: *mut *mut $crate::types::HsaEvent,
            ) => primary.create_event;
            fn hsaKmtCreateEventCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                EventDesc: *mut $crate::types::HsaEventDescriptor,
                ManualReset: bool,
                IsSignaled: bool,
                Event: *mut *mut $crate::types::HsaEvent,
            ) => context.create_event;
            fn hsaKmtDestroyEvent(
                Event: *mut $crate::types::HsaEvent,
            ) => primary.destroy_event;
            fn hsaKmtDestroyEventCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
            ) => context.destroy_event;
            fn hsaKmtSetEvent(
                Event: *mut $crate::types::HsaEvent,
            ) => primary.set_event;
            fn hsaKmtSetEventCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
            ) => context.set_event;
            fn hsaKmtResetEvent(
                Event: *mut $crate::types::HsaEvent,
            ) => primary.reset_event;
            fn hsaKmtResetEventCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
            ) => context.reset_event;
            fn hsaKmtQueryEventState(
                Event: *mut $crate::types::HsaEvent,
            ) => primary.query_event;
            fn hsaKmtQueryEventStateCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
            ) => context.query_event;
            fn hsaKmtWaitOnEvent(
                Event: *mut $crate::types::HsaEvent,
                Milliseconds: u32,
            ) => wait_on_event;
            fn hsaKmtWaitOnEventCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
                Milliseconds: u32,
            ) => wait_on_event_of;
            fn hsaKmtWaitOnEvent_Ext(
                Event: *mut $crate::types::HsaEvent,
                Milliseconds: u32,
                event_age: *mut u64,
            ) => wait_on_event_age;
            fn hsaKmtWaitOnEvent_ExtCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
                Milliseconds: u32,
                event_age: *mut u64,
            ) => wait_on_event_age_of;
            fn hsaKmtWaitOnMultipleEvents(
                Events: *mut *mut $crate::types::HsaEvent,
                NumEvents: u32,
                WaitOnAll: bool,
                Milliseconds: u32,
            ) => wait_on_events;
            fn hsaKmtWaitOnMultipleEventsCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Events: *mut *mut $crate::types::HsaEvent,
                NumEvents: u32,
                WaitOnAll: bool,
                Milliseconds: u32,
            ) => wait_on_events_of;
            fn hsaKmtWaitOnMultipleEvents_Ext(
                Events: *mut *mut $crate::types::HsaEvent,
                NumEvents: u32,
                WaitOnAll: bool,
                Milliseconds: u32,
                event_age: *mut u64,
            ) => wait_on_events_age;
            fn hsaKmtWaitOnMultipleEvents_ExtCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Events: *mut *mut $crate::types::HsaEvent,
                NumEvents: u32,
                WaitOnAll: bool,
                Milliseconds: u32,
                event_age: *mut u64,
            ) => wait_on_events_age_of;
            fn hsaKmtOpenSMI(
                NodeId: u32,
                fd: *mut i32,
            ) => primary.open_smi;
            fn hsaKmtOpenSMICtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                fd: *mut i32,
            ) => context.open_smi;
            fn hsaKmtExtSetEventCallback(
                Event: *mut $crate::types::HsaEvent,
                Callback: $crate::types::HsaExtEventCallback,
                User: *mut ::core::ffi::c_void,
            ) => primary.set_event_callback;
            fn hsaKmtExtSetEventCallbackCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Event: *mut $crate::types::HsaEvent,
                Callback: $crate::types::HsaExtEventCallback,
                User: *mut ::core::ffi::c_void,
            ) => context.set_event_callback;
            fn hsaKmtExtQueryDmaBufInfo(
                DmaBufFd: ::core::ffi::c_int,
                Info: *mut $crate::types::HsaExtDmaBufInfo,
            ) => primary.dma_buf_info;
            fn hsaKmtExtQueryDmaBufInfoCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                DmaBufFd: ::core::ffi::c_int,
                Info: *mut $crate::types::HsaExtDmaBufInfo,
            ) => context.dma_buf_info;
            fn hsaKmtExtCopyMemory(
                Destination: *mut ::core::ffi::c_void,
                Source: *const ::core::ffi::c_void,
                SizeInBytes: u64,
                Options: *mut $crate::types::HsaExtCopyOptions,
            ) => primary.copy_memory;
            fn hsaKmtExtCopyMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Destination: *mut ::core::ffi::c_void,
                Source: *const ::core::ffi::c_void,
                SizeInBytes: u64,
                Options: *mut $crate::types::HsaExtCopyOptions,
            ) => context.copy_memory;
            fn hsaKmtExtGetEventUse(InUse: *mut u32, Limit: *mut u32) => primary.event_use;
            fn hsaKmtExtGetEventUseCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                InUse: *mut u32,
                Limit: *mut u32,
            ) => context.event_use;
            fn hsaKmtExtPumpEvents(
                Milliseconds: u32,
                CallbacksRun: *mut u32,
            ) => primary.pump_events;
            fn hsaKmtExtPumpEventsCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                Milliseconds: u32,
                CallbacksRun: *mut u32,
            ) => context.pump_events;
            fn hsaKmtCreateQueue(
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => primary.create_queue;
            fn hsaKmtCreateQueueCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => context.create_queue;
            fn hsaKmtCreateQueueExt(
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                SdmaEngineId: u32,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => primary.create_queue_on_engine;
            fn hsaKmtCreateQueueExtCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                SdmaEngineId: u32,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => context.create_queue_on_engine;
            fn hsaKmtCreateQueueV2(
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                SdmaEngineId: u32,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                MetaDataPrefetchSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => primary.create_queue_with_metadata;
            fn hsaKmtCreateQueueV2Ctx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                Type: $crate::types::HSA_QUEUE_TYPE,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                SdmaEngineId: u32,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSizeInBytes: u64,
                MetaDataQueueSizeInBytes: u64,
                Event: *mut $crate::types::HsaEvent,
                QueueResource:
                    *mut <$generation as $crate::generation::Generation>::QueueResource,
            ) => context.create_queue_with_metadata;
            fn hsaKmtUpdateQueue(
                QueueId: $crate::types::HSA_QUEUEID,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSize: u64,
                Event: *mut $crate::types::HsaEvent,
            ) => primary.update_queue;
            fn hsaKmtUpdateQueueCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                QueueId: $crate::types::HSA_QUEUEID,
                QueuePercentage: u32,
                Priority: $crate::types::HSA_QUEUE_PRIORITY,
                QueueAddress: *mut ::core::ffi::c_void,
                QueueSize: u64,
                Event: *mut $crate::types::HsaEvent,
            ) => context.update_queue;
            fn hsaKmtDestroyQueue(
                QueueId: $crate::types::HSA_QUEUEID,
            ) => primary.destroy_queue;
            fn hsaKmtDestroyQueueCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                QueueId: $crate::types::HSA_QUEUEID,
            ) => context.destroy_queue;
            fn hsaKmtSetQueueCUMask(
                QueueId: $crate::types::HSA_QUEUEID,
                CUMaskCount: u32,
                QueueCUMask: *mut u32,
            ) => primary.set_queue_cu_mask;
            fn hsaKmtSetQueueCUMaskCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                QueueId: $crate::types::HSA_QUEUEID,
                CUMaskCount: u32,
                QueueCUMask: *mut u32,
            ) => context.set_queue_cu_mask;
            fn hsaKmtGetQueueInfo(
                QueueId: $crate::types::HSA_QUEUEID,
                QueueInfo: *mut <$generation as $crate::generation::Generation>::QueueInfo,
            ) => primary.queue_info;
            fn hsaKmtGetQueueInfoCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                QueueId: $crate::types::HSA_QUEUEID,
                QueueInfo: *mut <$generation as $crate::generation::Generation>::QueueInfo,
            ) => context.queue_info;
            fn hsaKmtSetTrapHandler(
                NodeId: u32,
                TrapHandlerBaseAddress: *mut ::core::ffi::c_void,
                TrapHandlerSizeInBytes: u64,
                TrapBufferBaseAddress: *mut ::core::ffi::c_void,
                TrapBufferSizeInBytes: u64,
            ) => primary.set_trap_handler;
            fn hsaKmtSetTrapHandlerCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                NodeId: u32,
                TrapHandlerBaseAddress: *mut ::core::ffi::c_void,
                TrapHandlerSizeInBytes: u64,
                TrapBufferBaseAddress: *mut ::core::ffi::c_void,
                TrapBufferSizeInBytes: u64,
            ) => context.set_trap_handler;
            fn hsaKmtAllocQueueGWS(
                QueueId: $crate::types::HSA_QUEUEID,
                nGWS: u32,
                firstGWS: *mut u32,
            ) => primary.allocate_queue_gws;
            fn hsaKmtAllocQueueGWSCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                QueueId: $crate::types::HSA_QUEUEID,
                nGWS: u32,
                firstGWS: *mut u32,
            ) => context.allocate_queue_gws;
            fn hsaKmtGetKernelQueueId(
                QueueId: $crate::types::HSA_QUEUEID,
                KernelInternalQueueId: *mut u32,
            ) => primary.kernel_queue_id;
            fn hsaKmtSVMSetAttr(
                start_addr: *mut ::core::ffi::c_void,
                size: u64,
                nattr: u32,
                attrs: *mut $crate::types::HSA_SVM_ATTRIBUTE,
            ) => primary.set_svm_attributes;
            fn hsaKmtSVMSetAttrCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                start_addr: *mut ::core::ffi::c_void,
                size: u64,
                nattr: u32,
                attrs: *mut $crate::types::HSA_SVM_ATTRIBUTE,
            ) => context.set_svm_attributes;
            fn hsaKmtSVMGetAttr(
                start_addr: *mut ::core::ffi::c_void,
                size: u64,
                nattr: u32,
                attrs: *mut $crate::types::HSA_SVM_ATTRIBUTE,
            ) => primary.svm_attributes;
            fn hsaKmtSVMGetAttrCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                start_addr: *mut ::core::ffi::c_void,
                size: u64,
                nattr: u32,
                attrs: *mut $crate::types::HSA_SVM_ATTRIBUTE,
            ) => context.svm_attributes;
            fn hsaKmtRegisterGraphicsHandleToNodes(
                GraphicsResourceHandle: u64,
                GraphicsResourceInfo: *mut <$generation as $crate::generation::Generation>::GraphicsResourceInfo,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => register_graphics;
            fn hsaKmtRegisterGraphicsHandleToNodesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                GraphicsResourceHandle: u64,
                GraphicsResourceInfo: *mut <$generation as $crate::generation::Generation>::GraphicsResourceInfo,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => register_graphics_of;
            fn hsaKmtRegisterGraphicsHandleToNodesExt(
                GraphicsResourceHandle: u64,
                GraphicsResourceInfo: *mut <$generation as $crate::generation::Generation>::GraphicsResourceInfo,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
                RegisterFlags: $crate::types::HSA_REGISTER_MEM_FLAGS,
            ) => register_graphics_with_flags;
            fn hsaKmtRegisterGraphicsHandleToNodesExtCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                GraphicsResourceHandle: u64,
                GraphicsResourceInfo: *mut <$generation as $crate::generation::Generation>::GraphicsResourceInfo,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
                RegisterFlags: $crate::types::HSA_REGISTER_MEM_FLAGS,
            ) => register_graphics_with_flags_of;
            fn hsaKmtExportDMABufHandle(
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                DMABufFd: *mut i32,
                Offset: *mut u64,
            ) => primary.export_dma_buf;
            fn hsaKmtExportDMABufHandleCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                MemorySizeInBytes: u64,
                DMABufFd: *mut i32,
                Offset: *mut u64,
            ) => context.export_dma_buf;
            fn hsaKmtHandleImport(
                ImportDesc: *const $crate::types::HsaHandleImportDesc,
                ImportResult: *mut $crate::types::HsaHandleImportResult,
                Flags: *mut $crate::types::HsaHandleImportFlags,
            ) => primary.import_object;
            fn hsaKmtHandleExport(
                ExportDesc: *const $crate::types::HsaHandleExportDesc,
                ExportResult: *mut $crate::types::HsaMemoryExportResult,
                Flags: *mut $crate::types::HsaHandleExportFlags,
            ) => primary.export_object;
            fn hsaKmtMemoryVaMap(
                Handle: $crate::types::HsaMemoryObjectHandle,
                offset: u64,
                size: u64,
                addr: u64,
                flags: $crate::types::HsaMemoryMapFlags,
                NodeId: u32,
            ) => primary.map_object;
            fn hsaKmtMemoryVaUnmap(
                Handle: $crate::types::HsaMemoryObjectHandle,
                offset: u64,
                size: u64,
                addr: u64,
                NodeId: u32,
            ) => primary.unmap_object;
            fn hsaKmtMemoryCpuMap(
                Handle: $crate::types::HsaMemoryObjectHandle,
                out_cpu_ptr: *mut *mut ::core::ffi::c_void,
            ) => primary.show_object;
            fn hsaKmtMemoryGetCpuAddr(
                DeviceHandle: $crate::types::HsaAMDGPUDeviceHandle,
                MemoryHandle: $crate::types::HsaMemoryObjectHandle,
                cpu_addr: *mut u64,
            ) => primary.object_offset;
            fn hsaKmtMemHandleFree(Handle: $crate::types::HsaMemoryObjectHandle)
                => primary.free_object;
            fn hsaKmtMemHandleFreePreserveMetadata(
                Handle: $crate::types::HsaMemoryObjectHandle,
            ) => primary.free_object_but_tag;
            fn hsaKmtExtGetDeviceHandle(
                NodeId: u32,
                DeviceHandle: *mut $crate::types::HsaAMDGPUDeviceHandle,
            ) => primary.own_device;
            fn hsaKmtShareMemory(
                MemoryAddress: *mut ::core::ffi::c_void,
                SizeInBytes: u64,
                SharedMemoryHandle: *mut $crate::types::HsaSharedMemoryHandle,
            ) => primary.share_memory;
            fn hsaKmtShareMemoryCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                MemoryAddress: *mut ::core::ffi::c_void,
                SizeInBytes: u64,
                SharedMemoryHandle: *mut $crate::types::HsaSharedMemoryHandle,
            ) => context.share_memory;
            fn hsaKmtRegisterSharedHandle(
                SharedMemoryHandle: *const $crate::types::HsaSharedMemoryHandle,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
                SizeInBytes: *mut u64,
            ) => register_shared;
            fn hsaKmtRegisterSharedHandleCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                SharedMemoryHandle: *const $crate::types::HsaSharedMemoryHandle,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
                SizeInBytes: *mut u64,
            ) => register_shared_of;
            fn hsaKmtRegisterSharedHandleToNodes(
                SharedMemoryHandle: *const $crate::types::HsaSharedMemoryHandle,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
                SizeInBytes: *mut u64,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => register_shared_to_nodes;
            fn hsaKmtRegisterSharedHandleToNodesCtx(
                ctx: *mut $crate::types::HsaKFDContext,
                SharedMemoryHandle: *const $crate::types::HsaSharedMemoryHandle,
                MemoryAddress: *mut *mut ::core::ffi::c_void,
                SizeInBytes: *mut u64,
                NumberOfNodes: u64,
                NodeArray: *mut u32,
            ) => register_shared_to_nodes_of;
            fn hsaKmtSetXNACKMode(enable: i32) => primary.set_xnack_mode;
            fn hsaKmtSetXNACKModeCtx(ctx: *mut $crate::types::HsaKFDContext, enable: i32)
                => context.set_xnack_mode;
            fn hsaKmtGetXNACKMode(enable: *mut i32) => primary.xnack_mode;
            fn hsaKmtGetXNACKModeCtx(ctx: *mut $crate::types::HsaKFDContext, enable: *mut i32)
                => context.xnack_mode;
        }

        /// `hsaKmtExtGetLastError`, see the C header. Not traced, so that a trace
        /// sink can call it.
        ///
        /// # Safety
        /// `Detail` is NULL or begins with its size in bytes.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hsaKmtExtGetLastError(
            Detail: *mut $crate::types::HsaExtErrorDetail,
        ) -> $crate::types::HSAKMT_STATUS {
            // SAFETY: the C caller's promise.
            unsafe { $library.last_error(Detail) }
        }

        /// `hsaKmtExtGetLastErrorCtx`, see the C header. Not traced.
        ///
        /// # Safety
        /// As `hsaKmtExtGetLastError`.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hsaKmtExtGetLastErrorCtx(
            ctx: *mut $crate::types::HsaKFDContext,
            Detail: *mut $crate::types::HsaExtErrorDetail,
        ) -> $crate::types::HSAKMT_STATUS {
            // SAFETY: the C caller's promise.
            unsafe { $library.last_error_of(ctx, Detail) }
        }

        /// `hsaKmtExtSetLogSink`, see the C header.
        ///
        /// # Safety
        /// `Sink` may be called with `User` from any thread, for as long as the process lives.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hsaKmtExtSetLogSink(
            Sink: $crate::types::HsaExtLogSink,
            User: *mut ::core::ffi::c_void,
            Level: u32,
        ) -> $crate::types::HSAKMT_STATUS {
            $library.set_log_sink(Sink, User, Level)
        }

        /// `hsaKmtExtSetTraceSink`; not traced itself.
        ///
        /// # Safety
        /// `Sink` may be called with `User` from any thread, for as long as the process lives.
        #[unsafe(no_mangle)]
        pub unsafe extern "C" fn hsaKmtExtSetTraceSink(
            Sink: $crate::types::HsaExtTraceSink,
            User: *mut ::core::ffi::c_void,
        ) -> $crate::types::HSAKMT_STATUS {
            $library.set_trace_sink(Sink, User)
        }
    };
}

/// Defines exported functions; see [`export!`].
#[doc(hidden)]
#[macro_export]
macro_rules! exported_functions {
    ($library:path; $(
        fn $name:ident($($argument:ident: $type:ty),* $(,)?) => $($method:ident).+;
    )*) => {
        /// The names of the exported functions, in the order of the table.
        pub const EXPORTED_FUNCTIONS: &[&::core::ffi::CStr] = &[$(
            $crate::c_name!($name),
        )*];

        $(
            #[doc = concat!("`", stringify!($name), "`, see the C header.")]
            ///
            /// # Safety
            /// Pointers are NULL or point to what the C header says.
            #[unsafe(no_mangle)]
            pub unsafe extern "C" fn $name($($argument: $type),*)
                -> $crate::types::HSAKMT_STATUS
            {
                $library.traced(
                    $crate::c_name!($name),
                    || [$($crate::library::Word::word($argument)),*],
                    // SAFETY: the C caller's promise.
                    #[allow(unused_unsafe, reason = "some methods trust no pointer")]
                    || unsafe {
                        $crate::call_method!($library; $($method).+; $($argument),*)
                    },
                )
            }
        )*
    };
}

/// Calls the method of a line of the table: with the primary context, with the one that
/// the first argument names, or with the arguments alone.
#[doc(hidden)]
#[macro_export]
macro_rules! call_method {
    ($library:path; primary.$method:ident; $($argument:ident),*) => {
        $library.$method($crate::library::Receiver::PRIMARY $(, $argument)*)
    };
    ($library:path; context.$method:ident; $context:ident $(, $argument:ident)*) => {
        $library.$method($crate::library::Receiver::of($context) $(, $argument)*)
    };
    ($library:path; $method:ident; $($argument:ident),*) => {
        $library.$method($($argument),*)
    };
}

/// A function's name as a C string.
#[doc(hidden)]
#[macro_export]
macro_rules! c_name {
    ($name:ident) => {
        // SAFETY: one zero, at the end.
        const {
            match ::core::ffi::CStr::from_bytes_with_nul(
                concat!(stringify!($name), "\0").as_bytes(),
            ) {
                Ok(name) => name,
                Err(_) => c"",
            }
        }
    };
}
