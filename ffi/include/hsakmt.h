/* SPDX-License-Identifier: MIT */
/*
 * The HSA kernel-mode thunk interface for AMD GPUs.
 *
 * A process opens the library, asks for the topology, and then allocates and maps memory, creates
 * queues and events. Every function answers with an HSAKMT_STATUS and, unless said otherwise,
 *
 *   KERNEL_IO_CHANNEL_NOT_OPENED   if the library is not open, or not yet in a forked child;
 *   INVALID_PARAMETER              if a pointer that must not be NULL is;
 *   INVALID_NODE_UNIT              if there is no such node, or no topology yet;
 *   NOT_SUPPORTED                  if the kernel or the device cannot do it;
 *   ERROR                          if the kernel refuses for a reason without a code of its own.
 *
 * (Names of results are without HSAKMT_STATUS_ here.) A call that fails changes nothing. What the
 * library knows of the newest failure of a thread is in hsaKmtExtGetLastError (hsakmt_ext.h).
 *
 * All functions may be called by several threads at the same time. Sizes are in bytes. Nodes are
 * numbered as hsaKmtAcquireSystemProperties counts them.
 */
#ifndef HSAKMT_H
#define HSAKMT_H

#include "hsakmttypes.h"

#ifdef __cplusplus
extern "C" {
#endif

/* Of linux/kfd_ioctl.h, where a caller needs more than the address. */
struct kfd_ioctl_dbg_trap_args;
struct kfd_dbg_device_info_entry;
struct kfd_runtime_info;

/* ---------------------------------------------------------------------------------------------- */
/* Opening                                                                                        */
/* ---------------------------------------------------------------------------------------------- */

/* Opens the library, or raises its reference count: SUCCESS the first time, KERNEL_ALREADY_OPENED
   later, which counts as well. DRIVER_MISMATCH if the kernel speaks another major version. */
HSAKMT_STATUS HSAKMTAPI hsaKmtOpenKFD(void);

/* Lowers the reference count and closes the library at zero. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCloseKFD(void);

/* Tells the version of the kernel driver's interface. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetVersion(HsaVersionInfo *VersionInfo);

#if HSAKMT_ABI_GENERATION >= 2025
/* Tells whether a software model stands in for the devices. Needs no open library. */
HSAKMT_STATUS HSAKMTAPI hsaKmtModelEnabled(bool *enable);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Topology                                                                                       */
/* ---------------------------------------------------------------------------------------------- */

/* Takes a snapshot of the topology, or tells of the one that there is. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAcquireSystemProperties(HsaSystemProperties *SystemProperties);

/* Drops the snapshot. Always SUCCESS. */
HSAKMT_STATUS HSAKMTAPI hsaKmtReleaseSystemProperties(void);

/* Describes a node. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeProperties(HSAuint32 NodeId,
                                                HsaNodeProperties *NodeProperties);

/* Describes up to NumBanks memory banks of a node; entries without a bank become zero. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeMemoryProperties(HSAuint32 NodeId, HSAuint32 NumBanks,
                                                      HsaMemoryProperties *MemoryProperties);

/* Describes the first NumCaches caches of a node, whatever ProcessorId is. INVALID_PARAMETER if
   there are fewer. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeCacheProperties(HSAuint32 NodeId, HSAuint32 ProcessorId,
                                                     HSAuint32 NumCaches,
                                                     HsaCacheProperties *CacheProperties);

/* Describes the first NumIoLinks links of a node. INVALID_PARAMETER if there are fewer. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeIoLinkProperties(HSAuint32 NodeId, HSAuint32 NumIoLinks,
                                                      HsaIoLinkProperties *IoLinkProperties);

/* Tells how a GPU lays out tiled surfaces. The caller fills in its arrays and their lengths. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetTileConfig(HSAuint32 NodeId, HsaGpuTileConfig *config);

/* Reads the clocks of a node and of the host at the same moment. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetClockCounters(HSAuint32 NodeId, HsaClockCounters *Counters);

#if HSAKMT_ABI_GENERATION >= 2025
/* Tells the libdrm_amdgpu device of a GPU node, whose file has the memory of the library mapped.
   INVALID_HANDLE if the process has no libdrm_amdgpu. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetAMDGPUDeviceHandle(HSAuint32 NodeId,
                                                    HsaAMDGPUDeviceHandle *DeviceHandle);
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* As hsaKmtGetClockCounters, choosing the closest of several readings. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetClockCountersPrecise(HSAuint32 NodeId,
                                                      HsaClockCounters *Counters);

/* Tells the rate of the constant clock of a GPU node in Hz. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetNodeWallclockFrequency(HSAuint32 NodeId, uint64_t *Frequency);

/* Tells the render file of a libdrm_amdgpu device. It is libdrm's; do not close it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetAmdGPUDeviceFd(HsaAMDGPUDeviceHandle DeviceHandle, int *fd);

/* Describes a GPU for a core dump, by the kernel driver's id. Needs no open library. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetCoreDeviceInfo(HSAuint32 gpu_id,
                                                struct kfd_dbg_device_info_entry *device_info);

/* Tells for a core dump what hsaKmtRuntimeEnable registered. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetCoreRuntimeInfo(struct kfd_runtime_info *runtime_info);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Memory                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* Sets how a GPU caches memory, for a range (alternate) and for the rest (default). Only the
   first APUs do this; NOT_IMPLEMENTED elsewhere. The policies are HSA_CACHING_CACHED or
   HSA_CACHING_NONCACHED, the range consists of whole pages; else INVALID_PARAMETER. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetMemoryPolicy(HSAuint32 Node, HSAuint32 DefaultPolicy,
                                              HSAuint32 AlternatePolicy,
                                              void *MemoryAddressAlternate,
                                              HSAuint64 MemorySizeInBytes);

/* Allocates memory. MemFlags say of which kind:

     NonPaged, a GPU node     memory of that GPU; NO_MEMORY if none is left
     Scratch, a GPU node      its scratch area, of which there is one at a time, else NO_MEMORY.
                              Parts of it get memory when hsaKmtMapMemoryToGPU maps them
     otherwise                memory of the host near the node; ERROR if none is left
     NoAddress (2025)         memory of a GPU that *MemoryAddress only names
     OnlyAddress (2025)       addresses without memory; not with NoAddress

   The host reaches memory of a GPU only with HostAccess, and only if its BAR shows all of it.

   *MemoryAddress becomes the address, for the host and for all GPUs; with FixedAddress it is the
   address that is wanted, and is kept after a failure. Without, it is NULL after a failure. The
   size is a multiple of the page that MemFlags choose and is not rounded. INVALID_PARAMETER also
   for CoarseGrain with ExtendedCoherent, and for ExtendedCoherent with Uncached. NOT_SUPPORTED
   for Contiguous if the kernel has no such memory. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAllocMemory(HSAuint32 PreferredNode, HSAuint64 SizeInBytes,
                                          HsaMemFlags MemFlags, void **MemoryAddress);

/* Frees memory that hsaKmtAllocMemory or hsaKmtAllocMemoryAlign gave; of scratch memory any
   address frees all of it. Unmap it first. ERROR for NULL, since 2026 for a size of 0, or if the
   kernel still needs the memory. MEMORY_NOT_REGISTERED if no allocation begins there; SUCCESS instead where all GPUs
   have the SVM calls, because then it may be anybody's memory. */
HSAKMT_STATUS HSAKMTAPI hsaKmtFreeMemory(void *MemoryAddress, HSAuint64 SizeInBytes);

/* Makes host memory of the process accessible to all GPUs, coherent at kernel boundaries. It may
   begin and end within a page, and may overlap what is registered already; the same range
   counts. Nothing to do, and SUCCESS, where CPU and GPU share their page tables (APUs without a
   GPU node of its own). */
HSAKMT_STATUS HSAKMTAPI hsaKmtRegisterMemory(void *MemoryAddress, HSAuint64 MemorySizeInBytes);

/* Makes host memory accessible to the GPUs of a list; or makes the list the one on whose GPUs
   allocated memory is mapped. INVALID_PARAMETER if the list is empty, MEMORY_ALREADY_REGISTERED
   if the memory is registered with another one. NOT_SUPPORTED on APUs as above. Where all GPUs
   have the SVM calls, host memory becomes accessible to all of them. */
HSAKMT_STATUS HSAKMTAPI hsaKmtRegisterMemoryToNodes(void *MemoryAddress,
                                                    HSAuint64 MemorySizeInBytes,
                                                    HSAuint64 NumberOfNodes,
                                                    HSAuint32 *NodeArray);

/* Makes host memory accessible to all GPUs, with coherence as MemFlags say: CoarseGrain,
   ExtendedCoherent (not both), or neither. NOT_SUPPORTED unless MemFlags have HostAccess and
   lack NonPaged, and on APUs as above. INVALID_HANDLE if the library allocated the memory. */
HSAKMT_STATUS HSAKMTAPI hsaKmtRegisterMemoryWithFlags(void *MemoryAddress,
                                                      HSAuint64 MemorySizeInBytes,
                                                      HsaMemFlags MemFlags);

/* Takes back one registration of the memory that begins at MemoryAddress. Unmap it first.
   MEMORY_NOT_REGISTERED if there is none; SUCCESS instead on APUs as above and where all GPUs
   have the SVM calls. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDeregisterMemory(void *MemoryAddress);

/* Maps allocated or registered memory on the GPUs that it is registered with; without such a
   list memory of a GPU on that GPU and those with a link to it, other memory on all. Memory that
   is mapped stays so. *AlternateVAGPU, unless NULL, becomes the address for devices where that
   differs, else 0. ERROR for NULL. INVALID_PARAMETER for addresses without memory, for memory
   without an address, and for what the library does not know; but where all GPUs have the SVM
   calls, that becomes accessible to them. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMapMemoryToGPU(void *MemoryAddress, HSAuint64 MemorySizeInBytes,
                                             HSAuint64 *AlternateVAGPU);

/* Maps memory on exactly the GPUs of a list, and unmaps it from others; registered host memory
   stays where it is mapped. The flags mean nothing. INVALID_PARAMETER if the list is empty,
   ERROR if the memory is registered with a list that lacks one of them; else as
   hsaKmtMapMemoryToGPU. */
#if HSAKMT_ABI_GENERATION >= 2026
HSAKMT_STATUS HSAKMTAPI hsaKmtMapMemoryToGPUNodes(void *MemoryAddress, HSAuint64 MemorySizeInBytes,
                                                  HSAuint64 *AlternateVAGPU, HsaMemFlags MemFlags,
                                                  HSAuint64 NumberOfNodes, HSAuint32 *NodeArray);
#else
HSAKMT_STATUS HSAKMTAPI hsaKmtMapMemoryToGPUNodes(void *MemoryAddress, HSAuint64 MemorySizeInBytes,
                                                  HSAuint64 *AlternateVAGPU,
                                                  HsaMemMapFlags MemMapFlags,
                                                  HSAuint64 NumberOfNodes, HSAuint32 *NodeArray);
#endif

/* Unmaps memory from all GPUs. SUCCESS if it was not mapped, and for NULL. ERROR if the library
   does not know it; SUCCESS instead on APUs without a GPU node of its own, and where all GPUs
   have the SVM calls. */
HSAKMT_STATUS HSAKMTAPI hsaKmtUnmapMemoryToGPU(void *MemoryAddress);

/* Tells what an address belongs to, be it the first byte or any other. The arrays of
   *PointerInfo never change and live until the library closes; an empty one is NULL. If the
   address belongs to nothing, *PointerInfo is zero and the result ERROR; that is an answer, and
   not remembered for hsaKmtExtGetLastError. Never waits while another call is in the kernel; but
   like every call of memory it is not for a signal handler that may have interrupted one. */
HSAKMT_STATUS HSAKMTAPI hsaKmtQueryPointerInfo(const void *Pointer, HsaPointerInfo *PointerInfo);

/* Attaches a pointer to the memory that begins at Pointer; hsaKmtQueryPointerInfo tells it.
   ERROR if none begins there. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetMemoryUserData(const void *Pointer, void *UserData);

/* Copies from the memory of another process. NOT_IMPLEMENTED. */
HSAKMT_STATUS HSAKMTAPI hsaKmtProcessVMRead(HSAuint32 Pid, HsaMemoryRange *LocalMemoryArray,
                                            HSAuint64 LocalMemoryArrayCount,
                                            HsaMemoryRange *RemoteMemoryArray,
                                            HSAuint64 RemoteMemoryArrayCount,
                                            HSAuint64 *SizeCopied);

/* Copies to the memory of another process. NOT_IMPLEMENTED. */
HSAKMT_STATUS HSAKMTAPI hsaKmtProcessVMWrite(HSAuint32 Pid, HsaMemoryRange *LocalMemoryArray,
                                             HSAuint64 LocalMemoryArrayCount,
                                             HsaMemoryRange *RemoteMemoryArray,
                                             HSAuint64 RemoteMemoryArrayCount,
                                             HSAuint64 *SizeCopied);

#if HSAKMT_ABI_GENERATION >= 2025
/* As hsaKmtAllocMemory, at a multiple of Alignment: 0, or a power of two of at least the page
   that MemFlags choose, else INVALID_PARAMETER. NOT_IMPLEMENTED for scratch memory, unless it is
   0. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAllocMemoryAlign(HSAuint32 PreferredNode, HSAuint64 SizeInBytes,
                                               HSAuint64 Alignment, HsaMemFlags MemFlags,
                                               void **MemoryAddress);

/* Tells how much device memory of a GPU node is left, as the kernel estimates it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAvailableMemory(HSAuint32 Node, HSAuint64 *AvailableBytes);

/* Puts host memory in place of the first page of an allocation, for the address sanitizer.
   NOT_SUPPORTED without it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtReplaceAsanHeaderPage(void *addr);

/* Puts the first page back. NOT_SUPPORTED without the address sanitizer. */
HSAKMT_STATUS HSAKMTAPI hsaKmtReturnAsanHeaderPage(void *addr);
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* Sets aside a part of the second-level cache of a GPU node for data that persists. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetPersistingCacheSize(HSAuint32 Node, HSAuint64 CacheSize);
HSAKMT_STATUS HSAKMTAPI hsaKmtSetPersistingCacheSizeCtx(HsaKFDContext *ctx, HSAuint32 Node,
                                                        HSAuint64 CacheSize);

/* Sets how long the kernel waits with SIGBUS after a device consumed damaged memory: 0 not at all,
   0xFFFFFFFF for ever. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetSigbusDelay(HSAuint32 NodeId, HSAuint32 DelayMs);

/* Transfers between a file and device memory directly. AisFlags is one of HsaAisFlags.
   *SizeCopiedInBytes and *status are the kernel's, also after a failure. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAisReadWriteFile(void *MemoryAddress, HSAuint64 MemorySizeInBytes,
                                               HSAint32 fd, HSAint64 file_offset,
                                               HsaAisFlags AisFlags,
                                               HSAuint64 *SizeCopiedInBytes, HSAint32 *status);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Sharing memory                                                                                 */
/* ---------------------------------------------------------------------------------------------- */

/* Makes a handle by which another process may map an allocation. */
HSAKMT_STATUS HSAKMTAPI hsaKmtShareMemory(void *MemoryAddress, HSAuint64 SizeInBytes,
                                          HsaSharedMemoryHandle *SharedMemoryHandle);

/* Gives the memory of such a handle an address, for all GPUs. hsaKmtDeregisterMemory ends it. */
HSAKMT_STATUS HSAKMTAPI
hsaKmtRegisterSharedHandle(const HsaSharedMemoryHandle *SharedMemoryHandle, void **MemoryAddress,
                           HSAuint64 *SizeInBytes);

/* Gives the memory of such a handle an address, for the GPUs of a list. */
HSAKMT_STATUS HSAKMTAPI
hsaKmtRegisterSharedHandleToNodes(const HsaSharedMemoryHandle *SharedMemoryHandle,
                                  void **MemoryAddress, HSAuint64 *SizeInBytes,
                                  HSAuint64 NumberOfNodes, HSAuint32 *NodeArray);

/* Imports the dma-buf of a descriptor. Without a list of nodes its address is only a handle.
   hsaKmtDeregisterMemory ends it. */
HSAKMT_STATUS HSAKMTAPI
hsaKmtRegisterGraphicsHandleToNodes(HSAuint64 GraphicsResourceHandle,
                                    HsaGraphicsResourceInfo *GraphicsResourceInfo,
                                    HSAuint64 NumberOfNodes, HSAuint32 *NodeArray);

/* Maps a resource of a graphics library. NOT_IMPLEMENTED. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMapGraphicHandle(HSAuint32 NodeId, HSAuint64 GraphicDeviceHandle,
                                               HSAuint64 GraphicResourceHandle,
                                               HSAuint64 GraphicResourceOffset,
                                               HSAuint64 GraphicResourceSize,
                                               HSAuint64 *FlatMemoryAddress);

/* Unmaps memory, as hsaKmtUnmapMemoryToGPU. */
HSAKMT_STATUS HSAKMTAPI hsaKmtUnmapGraphicHandle(HSAuint32 NodeId, HSAuint64 FlatMemoryAddress,
                                                 HSAuint64 SizeInBytes);

#if HSAKMT_ABI_GENERATION >= 2025
/* As hsaKmtRegisterGraphicsHandleToNodes, with flags. */
HSAKMT_STATUS HSAKMTAPI
hsaKmtRegisterGraphicsHandleToNodesExt(HSAuint64 GraphicsResourceHandle,
                                       HsaGraphicsResourceInfo *GraphicsResourceInfo,
                                       HSAuint64 NumberOfNodes, HSAuint32 *NodeArray,
                                       HSA_REGISTER_MEM_FLAGS RegisterFlags);

/* Exports the allocation of a range as a dma-buf. The caller closes *DMABufFd; *Offset is where the
   range begins in it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExportDMABufHandle(void *MemoryAddress, HSAuint64 MemorySizeInBytes,
                                                 int *DMABufFd, HSAuint64 *Offset);
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* Exports all of a buffer object as a dma-buf; the descriptor, close-on-exec, is the caller's. Flags
   are not used. INVALID_HANDLE if a structure or its device is NULL, if the device is not the
   buffer object's, and if the driver refuses or descriptors run out. NOT_SUPPORTED for other kinds
   of handles, those of the fabric too. */
HSAKMT_STATUS HSAKMTAPI hsaKmtHandleExport(const HsaHandleExportDesc *ExportDesc,
                                           HsaMemoryExportResult *ExportResult,
                                           HsaHandleExportFlags *Flags);

/* Imports a dma-buf as a buffer object of a device: one of hsaKmtGetAMDGPUDeviceHandle or of
   hsaKmtExtGetDeviceHandle (hsakmt_ext.h), on the primary context. The descriptor stays the
   caller's, who may close it; none is kept, and dmabuf_fd of the result is -1. Another import of
   the same buffer gives the same handle, which must then be freed once more. A buffer that
   libdrm_amdgpu has imported on the same device must not be imported here, nor the other way round.
   With IPCHandle the tag counts, which is the first word of what is noted in the buffer: with
   UpdateMetadata and without SysMem a buffer without one is given that of ImportDesc, and the
   result tells which it has; else it must be that of ImportDesc (0: none), or the result tells the
   other one, and the call fails with INVALID_PARAMETER. Flags may be NULL.
   INVALID_HANDLE if a structure or its device is NULL or no device, and if the tag cannot be read.
   NOT_SUPPORTED for other kinds of handles. ERROR if the driver refuses. */
HSAKMT_STATUS HSAKMTAPI hsaKmtHandleImport(const HsaHandleImportDesc *ImportDesc,
                                           HsaHandleImportResult *ImportResult,
                                           HsaHandleImportFlags *Flags);

/* Takes one import of a buffer object back; the last one ends its mappings, those for the host too.
   Takes the tag away if an import with IPCHandle is among them. INVALID_HANDLE if there is none
   such; here and below also after it was freed. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemHandleFree(HsaMemoryObjectHandle Handle);

/* The same, and leaves the tag. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemHandleFreePreserveMetadata(HsaMemoryObjectHandle Handle);

/* Maps a part of a buffer object at an address of a GPU node, the one whose device it was imported
   on, and waits until it is mapped. offset, size and addr are multiples of the page size; nothing
   may be mapped there. Memory of hsaKmtAllocMemory with OnlyAddress has room for it. ERROR if Handle
   is NULL or the driver refuses; NOT_SUPPORTED before KFD 1.15; INVALID_NODE_UNIT for another node;
   INVALID_PARAMETER for unknown flags. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemoryVaMap(HsaMemoryObjectHandle Handle, HSAuint64 offset,
                                          HSAuint64 size, HSAuint64 addr, HsaMemoryMapFlags flags,
                                          HSAuint32 NodeId);

/* Unmaps what was mapped at exactly this address, and waits until it is gone. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemoryVaUnmap(HsaMemoryObjectHandle Handle, HSAuint64 offset,
                                            HSAuint64 size, HSAuint64 addr, HSAuint32 NodeId);

/* Maps all of a buffer object for the host, until it is freed. Each call tells the same address. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemoryCpuMap(HsaMemoryObjectHandle Handle, void **out_cpu_ptr);

/* Tells where in the render file of the device a buffer object is; mmap it there. */
HSAKMT_STATUS HSAKMTAPI hsaKmtMemoryGetCpuAddr(HsaAMDGPUDeviceHandle DeviceHandle,
                                               HsaMemoryObjectHandle MemoryHandle,
                                               HSAuint64 *cpu_addr);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Shared virtual memory                                                                          */
/* ---------------------------------------------------------------------------------------------- */

/* Sets attributes of a range of whole pages. Where an attribute names a device, its value is a
   node: any for a location (INVALID_NODEID as the preferred one: none), a GPU for access, else
   INVALID_NODE_UNIT. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSVMSetAttr(void *start_addr, HSAuint64 size, unsigned int nattr,
                                         HSA_SVM_ATTRIBUTE *attrs);

/* Reads attributes of a range of whole pages: the types go in, the values come out. An access
   query has the type HSA_SVM_ATTR_ACCESS and a node; its type becomes the access that the node
   has. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSVMGetAttr(void *start_addr, HSAuint64 size, unsigned int nattr,
                                         HSA_SVM_ATTRIBUTE *attrs);

/* Lets devices retry page faults (1), or not (0); a negative number changes nothing. ERROR while
   the process has queues. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetXNACKMode(HSAint32 enable);

/* Tells whether devices retry page faults: 1 or 0. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetXNACKMode(HSAint32 *enable);

/* ---------------------------------------------------------------------------------------------- */
/* Queues                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* Creates a queue on the ring at QueueAddress. Percentage is the share of the device, 0 to 100.
   For AQL the caller fills in the pointers and ErrorReason of *QueueResource. NO_MEMORY if the
   memory that a queue needs is not to be had. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCreateQueue(HSAuint32 NodeId, HSA_QUEUE_TYPE Type,
                                          HSAuint32 QueuePercentage, HSA_QUEUE_PRIORITY Priority,
                                          void *QueueAddress, HSAuint64 QueueSizeInBytes,
                                          HsaEvent *Event, HsaQueueResource *QueueResource);

/* Changes share, priority and ring of a queue. A share of 0 stops it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtUpdateQueue(HSA_QUEUEID QueueId, HSAuint32 QueuePercentage,
                                          HSA_QUEUE_PRIORITY Priority, void *QueueAddress,
                                          HSAuint64 QueueSize, HsaEvent *Event);

/* Destroys a queue. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDestroyQueue(HSA_QUEUEID QueueId);

/* Restricts a queue to compute units. CUMaskCount is the number of bits, a multiple of 32. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetQueueCUMask(HSA_QUEUEID QueueId, HSAuint32 CUMaskCount,
                                             HSAuint32 *QueueCUMask);

/* Describes the saved state of a queue that is stopped. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetQueueInfo(HSA_QUEUEID QueueId, HsaQueueInfo *QueueInfo);

/* Sets the trap handler of the process on a GPU node, and its buffer. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetTrapHandler(HSAuint32 NodeId, void *TrapHandlerBaseAddress,
                                             HSAuint64 TrapHandlerSizeInBytes,
                                             void *TrapBufferBaseAddress,
                                             HSAuint64 TrapBufferSizeInBytes);

/* Gives a queue slots for global wave synchronisation; 0 takes them back. *firstGWS, unless NULL,
   becomes the first one. OUT_OF_RESOURCES if another queue has them. */
HSAKMT_STATUS HSAKMTAPI hsaKmtAllocQueueGWS(HSA_QUEUEID QueueId, HSAuint32 nGWS,
                                            HSAuint32 *firstGWS);

/* Declared for completeness; no library has it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtReportQueue(HSA_QUEUEID QueueId, HsaQueueReport *QueueReport);

#if HSAKMT_ABI_GENERATION >= 2025
/* As hsaKmtCreateQueue, on the engine SdmaEngineId if Type is HSA_QUEUE_SDMA_BY_ENG_ID. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCreateQueueExt(HSAuint32 NodeId, HSA_QUEUE_TYPE Type,
                                             HSAuint32 QueuePercentage,
                                             HSA_QUEUE_PRIORITY Priority, HSAuint32 SdmaEngineId,
                                             void *QueueAddress, HSAuint64 QueueSizeInBytes,
                                             HsaEvent *Event, HsaQueueResource *QueueResource);
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* As hsaKmtCreateQueueExt, with a ring of metadata behind the ring; 0 without. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCreateQueueV2(HSAuint32 NodeId, HSA_QUEUE_TYPE Type,
                                            HSAuint32 QueuePercentage, HSA_QUEUE_PRIORITY Priority,
                                            HSAuint32 SdmaEngineId, void *QueueAddress,
                                            HSAuint64 QueueSizeInBytes,
                                            HSAuint64 MetaDataPrefetchSizeInBytes,
                                            HsaEvent *Event, HsaQueueResource *QueueResource);

/* Tells the kernel's number of a queue. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetKernelQueueId(HSA_QUEUEID QueueId,
                                               HSAuint32 *KernelInternalQueueId);

/* Rings the doorbell of a queue, where a caller cannot write it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtQueueRingDoorbell(HSA_QUEUEID QueueId, HSAuint64 value);

/* Semaphores of other libraries. NOT_SUPPORTED on Linux. */
HSAKMT_STATUS HSAKMTAPI hsaKmtImportExternalSemaphore(HSAuint32 NodeId, void *NtHandle,
                                                      HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE Type,
                                                      HSA_EXTERNAL_SEMAPHORE_HANDLE *OutHandle);
HSAKMT_STATUS HSAKMTAPI hsaKmtDestroyExternalSemaphore(HSA_EXTERNAL_SEMAPHORE_HANDLE Handle);
HSAKMT_STATUS HSAKMTAPI hsaKmtQueueSignalExternalSemaphore(HSA_QUEUEID QueueId,
                                                           HSA_EXTERNAL_SEMAPHORE_HANDLE Handle,
                                                           HSAuint64 Value);
HSAKMT_STATUS HSAKMTAPI hsaKmtQueueWaitExternalSemaphore(HSA_QUEUEID QueueId,
                                                         HSA_EXTERNAL_SEMAPHORE_HANDLE Handle,
                                                         HSAuint64 Value);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Events                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* Creates an event. Without ManualReset a wait that it ends resets it. *Event is the library's;
   hsaKmtDestroyEvent frees it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCreateEvent(HsaEventDescriptor *EventDesc, bool ManualReset,
                                          bool IsSignaled, HsaEvent **Event);

/* Destroys an event. INVALID_HANDLE if NULL, here and below. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDestroyEvent(HsaEvent *Event);

/* Signals an event of kind SIGNAL or DEBUG_EVENT. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSetEvent(HsaEvent *Event);

/* Takes a signal back. */
HSAKMT_STATUS HSAKMTAPI hsaKmtResetEvent(HsaEvent *Event);

/* Always SUCCESS. */
HSAKMT_STATUS HSAKMTAPI hsaKmtQueryEventState(HsaEvent *Event);

/* Waits for an event. WAIT_TIMEOUT if it did not come in time. */
HSAKMT_STATUS HSAKMTAPI hsaKmtWaitOnEvent(HsaEvent *Event, HSAuint32 Milliseconds);

/* Waits for one of several events, or for all. */
HSAKMT_STATUS HSAKMTAPI hsaKmtWaitOnMultipleEvents(HsaEvent *Events[], HSAuint32 NumEvents,
                                                   bool WaitOnAll, HSAuint32 Milliseconds);

#if HSAKMT_ABI_GENERATION >= 2025
/* As hsaKmtWaitOnEvent, for a signal that is younger than *event_age, which becomes its age. */
HSAKMT_STATUS HSAKMTAPI hsaKmtWaitOnEvent_Ext(HsaEvent *Event, HSAuint32 Milliseconds,
                                              uint64_t *event_age);

/* As hsaKmtWaitOnMultipleEvents, with the age of each event. */
HSAKMT_STATUS HSAKMTAPI hsaKmtWaitOnMultipleEvents_Ext(HsaEvent *Events[], HSAuint32 NumEvents,
                                                       bool WaitOnAll, HSAuint32 Milliseconds,
                                                       uint64_t *event_age);

/* Opens a stream of system management events of a GPU node. The caller closes *fd. */
HSAKMT_STATUS HSAKMTAPI hsaKmtOpenSMI(HSAuint32 NodeId, int *fd);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Debugging                                                                                      */
/* ---------------------------------------------------------------------------------------------- */

/* Tells the kernel and a debugger where the runtime describes itself. UNAVAILABLE if another
   runtime of the process did. */
HSAKMT_STATUS HSAKMTAPI hsaKmtRuntimeEnable(void *rDebug, bool setupTtmp);

/* Takes it back. */
HSAKMT_STATUS HSAKMTAPI hsaKmtRuntimeDisable(void);

/* The debugging interface of the first GPUs; newer kernels refuse it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgRegister(HSAuint32 NodeId);
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgUnregister(HSAuint32 NodeId);
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgWavefrontControl(HSAuint32 NodeId, HSA_DBG_WAVEOP Operand,
                                                  HSA_DBG_WAVEMODE Mode, HSAuint32 TrapId,
                                                  HsaDbgWaveMessage *DbgWaveMsgRing);
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgAddressWatch(HSAuint32 NodeId, HSAuint32 NumWatchPoints,
                                              HSA_DBG_WATCH_MODE WatchMode[],
                                              void *WatchAddress[], HSAuint64 WatchMask[],
                                              HsaEvent *WatchEvent[]);

#if HSAKMT_ABI_GENERATION < 2025
/* Tells the version of the kernel's trap interface. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetKernelDebugTrapVersionInfo(HSAuint32 *Major, HSAuint32 *Minor);
#endif

#if HSAKMT_ABI_GENERATION >= 2025
/* Tells what hsaKmtRuntimeEnable found; a set of HSA_RUNTIME_ENABLE_CAPS_ bits. */
HSAKMT_STATUS HSAKMTAPI hsaKmtGetRuntimeCapabilities(HSAuint32 *caps_mask);

/* SUCCESS if hsaKmtRuntimeEnable can work. Acquires the topology. */
HSAKMT_STATUS HSAKMTAPI hsaKmtCheckRuntimeDebugSupport(void);

/* Attaches the debugger to this process, for a core dump. The caller frees *runtime_info. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgEnable(void **runtime_info, HSAuint32 *data_size);

/* Detaches it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgDisable(void);

/* Describes the GPUs. The caller frees *data. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgGetDeviceData(void **data, HSAuint32 *n_entries,
                                               HSAuint32 *entry_size);

/* Describes the queues, and stops them if suspend_queues. The caller frees *data. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDbgGetQueueData(void **data, HSAuint32 *n_entries,
                                              HSAuint32 *entry_size, bool suspend_queues);

/* Passes a request to the kernel's debugger. *DebugReturn is the kernel's answer. Queues, unless
   NULL, stand for the queue numbers of the request. */
HSAKMT_STATUS HSAKMTAPI hsaKmtDebugTrapIoctl(struct kfd_ioctl_dbg_trap_args *args,
                                             HSA_QUEUEID *Queues, HSAuint64 *DebugReturn);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Performance counters                                                                           */
/* ---------------------------------------------------------------------------------------------- */

/* Describes the counters of a GPU node. *CounterProperties is the library's. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcGetCounterProperties(HSAuint32 NodeId,
                                                      HsaCounterProperties **CounterProperties);

/* Makes a trace of counters. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcRegisterTrace(HSAuint32 NodeId, HSAuint32 NumberOfCounters,
                                               HsaCounter *Counters, HsaPmcTraceRoot *TraceRoot);

/* Stops a trace and drops it. INVALID_HANDLE if it is none. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcUnregisterTrace(HSAuint32 NodeId, HSATraceId TraceId);

/* Claims the counters of a trace. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcAcquireTraceAccess(HSAuint32 NodeId, HSATraceId TraceId);

/* Gives them back. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcReleaseTraceAccess(HSAuint32 NodeId, HSATraceId TraceId);

/* Lets the counters run, to be read into a buffer. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcStartTrace(HSATraceId TraceId, void *TraceBuffer,
                                            HSAuint64 TraceBufferSizeBytes);

/* Reads the counters into the buffer, 8 bytes each. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcQueryTrace(HSATraceId TraceId);

/* Stops the counters. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPmcStopTrace(HSATraceId TraceId);

/* ---------------------------------------------------------------------------------------------- */
/* Streaming performance monitor                                                                  */
/* ---------------------------------------------------------------------------------------------- */

/* Claims the monitor of a GPU node. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSPMAcquire(HSAuint32 PreferredNode);

/* Gives it back. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSPMRelease(HSAuint32 PreferredNode);

/* Sets the next buffer, and waits up to *timeout ms for the previous one, of which *SizeCopied
   bytes are filled. *timeout becomes what is left. NULL as the buffer ends the stream. */
HSAKMT_STATUS HSAKMTAPI hsaKmtSPMSetDestBuffer(HSAuint32 PreferredNode, HSAuint32 SizeInBytes,
                                               HSAuint32 *timeout, HSAuint32 *SizeCopied,
                                               void *DestMemoryAddress, bool *isSPMDataLoss);

/* ---------------------------------------------------------------------------------------------- */
/* PC sampling                                                                                    */
/* ---------------------------------------------------------------------------------------------- */

#if HSAKMT_ABI_GENERATION >= 2025
/* SUCCESS if the kernel has PC sampling. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingSupport(void);

/* Lists up to sample_info_sz ways of sampling, an array of HsaPcSamplingInfo. *sz_needed becomes
   how many there are, also with BUFFER_TOO_SMALL. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingQueryCapabilities(HSAuint32 NodeId, void *sample_info,
                                                          HSAuint32 sample_info_sz,
                                                          HSAuint32 *sz_needed);

/* Makes a session. UNAVAILABLE if another way of sampling is in use. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingCreate(HSAuint32 node_id, HsaPcSamplingInfo *sample_info,
                                               HsaPcSamplingTraceId *traceId);

/* Stops a session and ends it. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingDestroy(HSAuint32 NodeId, HsaPcSamplingTraceId traceId);

/* Starts sampling. KERNEL_ALREADY_OPENED if the session samples already. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingStart(HSAuint32 NodeId, HsaPcSamplingTraceId traceId);

/* Stops sampling. KERNEL_ALREADY_OPENED if the session does not sample. */
HSAKMT_STATUS HSAKMTAPI hsaKmtPcSamplingStop(HSAuint32 NodeId, HsaPcSamplingTraceId traceId);
#endif

#ifdef __cplusplus
}
#endif

#endif
