/* SPDX-License-Identifier: MIT */
/*
 * The types of the HSA kernel-mode thunk interface for AMD GPUs.
 *
 * One header serves three generations of the interface, which share a library name but not every
 * layout. A library is built for one generation, and its callers must be compiled for the same:
 *
 *   HSAKMT_ABI_GENERATION   interface of
 *   523                     libhsakmt 5.2.3, as in Debian 12
 *   2025                    the ROCm sources of August 2025
 *   2026                    the ROCm sources of 2026
 *
 * Structures are packed to 4 bytes: a member of 8 bytes may lie at a multiple of 4. Take its value,
 * not its address. Sizes are in bytes and times in milliseconds, unless a name or a comment says
 * otherwise. "In" and "out" tell who writes a member, the caller or the library.
 */
#ifndef HSAKMTTYPES_H
#define HSAKMTTYPES_H

#include <stdbool.h>
#include <stdint.h>

#ifndef HSAKMT_ABI_GENERATION
#define HSAKMT_ABI_GENERATION 2026
#endif

#if HSAKMT_ABI_GENERATION != 523 && HSAKMT_ABI_GENERATION != 2025 && HSAKMT_ABI_GENERATION != 2026
#error "HSAKMT_ABI_GENERATION is 523, 2025 or 2026"
#endif

/* Version of the interface. */
#define HSAKMT_VERSION_MAJOR 0
#define HSAKMT_VERSION_MINOR 99

/* Calling convention of the functions; the usual one. */
#define HSAKMTAPI

#ifdef __cplusplus
extern "C" {
#endif

typedef int8_t HSAint8;
typedef uint8_t HSAuint8;
typedef int16_t HSAint16;
typedef uint16_t HSAuint16;
typedef int32_t HSAint32;
typedef uint32_t HSAuint32;
typedef int64_t HSAint64;
typedef uint64_t HSAuint64;

#pragma pack(push, 4)

/* ---------------------------------------------------------------------------------------------- */
/* Handles                                                                                        */
/* ---------------------------------------------------------------------------------------------- */

/* An opaque handle. */
typedef void *HSA_HANDLE;

/* A queue. */
typedef HSAuint64 HSA_QUEUEID;

/* An event, as the kernel numbers it. */
typedef HSAuint32 HSA_EVENTID;

/* A trace of performance counters. */
typedef HSAuint64 HSATraceId;

/* Memory that processes share through the driver; eight opaque words. */
typedef HSAuint32 HsaSharedMemoryHandle[8];

#if HSAKMT_ABI_GENERATION >= 2025
/* A struct amdgpu_device * of libdrm_amdgpu. */
typedef void *HsaAMDGPUDeviceHandle;

/* A session of PC sampling, as the kernel numbers it. */
typedef HSAuint32 HsaPcSamplingTraceId;
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* A context of the library: the primary one of the process, or a secondary one. */
typedef struct _HsaKFDContext HsaKFDContext;

/* An imported or exported buffer object. */
typedef struct _HsaMemoryObjectHandle *HsaMemoryObjectHandle;
#endif

/* No queue, no process, no node. */
#define INVALID_QUEUEID ((HSA_QUEUEID)0xFFFFFFFFFFFFFFFFULL)
#define INVALID_PID 0xFFFFFFFF
#define INVALID_NODEID 0xFFFFFFFF

/* ---------------------------------------------------------------------------------------------- */
/* Results and versions                                                                           */
/* ---------------------------------------------------------------------------------------------- */

/* Result of nearly every call. */
typedef enum _HSAKMT_STATUS {
    /* The call did what it was asked to. */
    HSAKMT_STATUS_SUCCESS = 0,
    /* A failure without a code of its own. */
    HSAKMT_STATUS_ERROR = 1,
    /* The kernel driver speaks another major version. */
    HSAKMT_STATUS_DRIVER_MISMATCH = 2,
    /* An argument is NULL, out of range or contradicts another one. */
    HSAKMT_STATUS_INVALID_PARAMETER = 3,
    /* A handle or an event names nothing. */
    HSAKMT_STATUS_INVALID_HANDLE = 4,
    /* No node has this number, or it is of the wrong kind. */
    HSAKMT_STATUS_INVALID_NODE_UNIT = 5,
    /* Host or device memory ran out. */
    HSAKMT_STATUS_NO_MEMORY = 6,
    /* The caller's buffer cannot hold the answer. */
    HSAKMT_STATUS_BUFFER_TOO_SMALL = 7,
    /* The function exists, its work does not. */
    HSAKMT_STATUS_NOT_IMPLEMENTED = 10,
    /* This kernel, device or context cannot do it. */
    HSAKMT_STATUS_NOT_SUPPORTED = 11,
    /* Somebody else has it at the moment. */
    HSAKMT_STATUS_UNAVAILABLE = 12,
    /* A hardware resource is used up. */
    HSAKMT_STATUS_OUT_OF_RESOURCES = 13,
    /* The library is not open in this process. */
    HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED = 20,
    /* Talking to the kernel driver failed. */
    HSAKMT_STATUS_KERNEL_COMMUNICATION_ERROR = 21,
    /* The library was open already; its reference count went up. */
    HSAKMT_STATUS_KERNEL_ALREADY_OPENED = 22,
    /* The address translation that HSA needs is missing. */
    HSAKMT_STATUS_HSAMMU_UNAVAILABLE = 23,
    /* A wait could not be carried out. */
    HSAKMT_STATUS_WAIT_FAILURE = 30,
    /* The time of a wait ran out. */
    HSAKMT_STATUS_WAIT_TIMEOUT = 31,
    /* The memory is registered already, with other nodes. */
    HSAKMT_STATUS_MEMORY_ALREADY_REGISTERED = 35,
    /* No allocation or registration covers this address. */
    HSAKMT_STATUS_MEMORY_NOT_REGISTERED = 36,
    /* An address or size is not aligned as the device needs it. */
    HSAKMT_STATUS_MEMORY_ALIGNMENT = 37
} HSAKMT_STATUS;

/* Version of the kernel driver's interface (linux/kfd_ioctl.h, GET_VERSION). */
typedef struct _HsaVersionInfo {
    /* Changes with every incompatible kernel interface; 1 so far. */
    HSAuint32 KernelInterfaceMajorVersion;
    /* Grows with the abilities of the kernel interface. */
    HSAuint32 KernelInterfaceMinorVersion;
} HsaVersionInfo;

#if HSAKMT_ABI_GENERATION >= 2026
/* Sizes of structures as one side of the interface was compiled with. */
typedef struct _HsaStructureSizes {
    /* Size of this structure, in bytes. */
    HSAuint16 StructureSizes;
    /* Size of HsaNodeProperties, in bytes. */
    HSAuint16 SizeOfHsaNodeProperties;
    /* Size of HsaHandleImportDesc (by its former name), in bytes. */
    HSAuint16 SizeOfHsaExternalHandleDesc;
    /* Zero. */
    HSAuint16 Reserved[5];
} HsaStructureSizes;
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Topology                                                                                       */
/* ---------------------------------------------------------------------------------------------- */

/* Words in a map of siblings. */
#define HSA_CPU_SIBLINGS 256

/* Characters in the name of a device, with the zero that ends it. */
#define HSA_PUBLIC_NAME_SIZE 64

/* All processors of a node, where one is asked for. */
#define HSA_PROCESSORID_ALL 0xFFFFFFFF

/* The machine. */
typedef struct _HsaSystemProperties {
    /* Nodes that callers may ask for; their ids are 0 to this minus one. */
    HSAuint32 NumNodes;
    /* Manufacturer of the platform, as ACPI names it. */
    HSAuint32 PlatformOem;
    /* Platform, as ACPI names it. */
    HSAuint32 PlatformId;
    /* Revision of the platform. */
    HSAuint32 PlatformRev;
} HsaSystemProperties;

/* What a node can do (sysfs capability). */
typedef union {
    HSAuint32 Value;
    struct {
        /* The node may be removed while the system runs. */
        unsigned int HotPluggable : 1;
        /* The node translates addresses with the IOMMU. */
        unsigned int HSAMMUPresent : 1;
        /* The engine also draws. */
        unsigned int SharedWithGraphics : 1;
        /* Queue sizes are powers of two. */
        unsigned int QueueSizePowerOfTwo : 1;
        /* Queue sizes are 32 bits wide. */
        unsigned int QueueSize32bit : 1;
        /* The node signals idle queues. */
        unsigned int QueueIdleEvent : 1;
        /* Addresses of the node are limited to the lower range. */
        unsigned int VALimit : 1;
        /* Address watch points exist. */
        unsigned int WatchPointsSupported : 1;
        /* Base-2 logarithm of the number of watch points. */
        unsigned int WatchPointsTotalBits : 4;
        /* 0: 4-byte doorbells of before 1.0, 1: 4-byte, 2: 8-byte. */
        unsigned int DoorbellType : 2;
        /* The ring of an AQL queue must be mapped twice in a row. */
        unsigned int AQLQueueDoubleMap : 1;
        /* The debugger interface exists. */
        unsigned int DebugTrapSupported : 1;
        /* The debugger may override the traps of launching waves. */
        unsigned int WaveLaunchTrapOverrideSupported : 1;
        /* The debugger may choose how waves launch. */
        unsigned int WaveLaunchModeSupported : 1;
        /* Memory faults can be made precise. */
        unsigned int PreciseMemoryOperationsSupported : 1;
        /* Former place of the error correction bit of SRAM. */
        unsigned int DEPRECATED_SRAM_EDCSupport : 1;
        /* Device memory corrects errors. */
        unsigned int Mem_EDCSupport : 1;
        /* Uncorrectable errors raise events. */
        unsigned int RASEventNotify : 1;
        /* Revision of the chip. */
        unsigned int ASICRevision : 4;
        /* On-chip memory corrects errors. */
        unsigned int SRAM_EDCSupport : 1;
        /* Shared virtual memory with attributes is available. */
        unsigned int SVMAPISupported : 1;
        /* The host reads device memory coherently. */
        unsigned int CoherentHostAccess : 1;
        /* The firmware is fit for the debugger interface. */
        unsigned int DebugSupportedFirmware : 1;
#if HSAKMT_ABI_GENERATION < 2025
        unsigned int Reserved : 2;
#else
        /* Arithmetic exceptions can be made precise. */
        unsigned int PreciseALUOperationsSupported : 1;
        /* One compute queue can be reset without the others. */
        unsigned int PerQueueResetSupported : 1;
#endif
    } ui32;
} HSA_CAPABILITY;

#if HSAKMT_ABI_GENERATION >= 2025
/* More of what a node can do (sysfs capability2). */
typedef union {
    HSAuint32 Value;
    struct {
        /* One SDMA queue can be reset without the others. */
        unsigned int PerSDMAQueueResetSupported : 1;
#if HSAKMT_ABI_GENERATION == 2025
        unsigned int Reserved : 31;
#endif
#if HSAKMT_ABI_GENERATION >= 2026
        /* AQL queues are emulated on PM4 queues. */
        unsigned int AqlEmulationPm4_ : 1;
        /* A retry fault stalls the wave. */
        unsigned int StallOnRetryFault : 1;
        unsigned int Reserved : 29;
#endif
    } ui32;
} HSA_CAPABILITY2;
#endif

/* Version of the instruction set, and of the firmware that runs on the compute engine. */
typedef union {
    HSAuint32 Value;
    struct {
        /* Version of the compute firmware. */
        unsigned int uCode : 10;
        /* Major version of the instruction set: 9 in gfx90a. */
        unsigned int Major : 6;
        /* Minor version of the instruction set: 0 in gfx90a. */
        unsigned int Minor : 8;
        /* Stepping of the instruction set: 10 in gfx90a. */
        unsigned int Stepping : 8;
    } ui32;
} HSA_ENGINE_ID;

/* Versions of the other firmware of a node. */
typedef union {
    HSAuint32 Value;
    __extension__ struct {
        /* Version of the SDMA firmware. */
        unsigned int uCodeSDMA : 10;
        /* Unused. */
        unsigned int uCodeRes : 10;
        unsigned int Reserved : 12;
    };
} HSA_ENGINE_VERSION;

/* What the debugger may rely on (sysfs debug_prop). */
typedef union {
    HSAuint64 Value;
    __extension__ struct {
        /* Lowest address bit of a watch mask. */
        HSAuint64 WatchAddrMaskLoBit : 4;
        /* Highest address bit of a watch mask. */
        HSAuint64 WatchAddrMaskHiBit : 6;
        /* Information on the dispatch is always in the trap registers. */
        HSAuint64 DispatchInfoAlwaysValid : 1;
        /* Watch points are shared by the processes of the device. */
        HSAuint64 AddressWatchpointShareKind : 1;
        HSAuint64 Reserved : 52;
    };
} HSA_DEBUG_PROPERTIES;

/* What a memory bank is (sysfs heap_type; values from GPU_GDS on are made by the library). */
__extension__ typedef enum _HSA_HEAPTYPE {
    /* System memory. */
    HSA_HEAPTYPE_SYSTEM = 0,
    /* Device memory that the host can reach. */
    HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC = 1,
    /* Device memory that the host cannot reach. */
    HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE = 2,
    /* Global data share. */
    HSA_HEAPTYPE_GPU_GDS = 3,
    /* Local data share. */
    HSA_HEAPTYPE_GPU_LDS = 4,
    /* Scratch aperture. */
    HSA_HEAPTYPE_GPU_SCRATCH = 5,
    /* Aperture of memory that host and devices share. */
    HSA_HEAPTYPE_DEVICE_SVM = 6,
    /* Page of registers for flushing. */
    HSA_HEAPTYPE_MMIO_REMAP = 7,
    /* Number of kinds. */
    HSA_HEAPTYPE_NUMHEAPTYPES = 8,
    /* Makes the type 32 bits wide. */
    HSA_HEAPTYPE_SIZE = 0xFFFFFFFF
} HSA_HEAPTYPE;

/* Properties of a memory bank (sysfs flags). */
typedef union {
    HSAuint32 MemoryProperty;
    struct {
        /* The bank may be removed while the system runs. */
        unsigned int HotPluggable : 1;
        /* The bank keeps its contents without power. */
        unsigned int NonVolatile : 1;
        unsigned int Reserved : 30;
    } ui32;
} HSA_MEMORYPROPERTY;

/* A memory bank of a node. */
typedef struct _HsaMemoryProperties {
    /* What the bank is. */
    HSA_HEAPTYPE HeapType;
    union {
        /* Size in bytes. */
        HSAuint64 SizeInBytes;
        struct {
            HSAuint32 SizeInBytesLow;
            HSAuint32 SizeInBytesHigh;
        } ui32;
    };
    /* Properties. */
    HSA_MEMORYPROPERTY Flags;
    /* Width of the bus, in bits. */
    HSAuint32 Width;
    /* Highest clock, in MHz. */
    HSAuint32 MemoryClockMax;
    /* First address of an aperture; 0 for banks that are none. */
    HSAuint64 VirtualBaseAddress;
} HsaMemoryProperties;

/* What a cache serves (sysfs type). */
typedef union {
    HSAuint32 Value;
    struct {
        /* Data. */
        unsigned int Data : 1;
        /* Instructions. */
        unsigned int Instruction : 1;
        /* CPU cores. */
        unsigned int CPU : 1;
        /* Compute units. */
        unsigned int HSACU : 1;
        unsigned int Reserved : 28;
    } ui32;
} HsaCacheType;

/* Which cores of a processor share something. */
typedef struct _HsaCComputeProperties {
    /* One word per core. */
    HSAuint32 SiblingMap[HSA_CPU_SIBLINGS];
} HsaCComputeProperties;

/* What joins two nodes (sysfs type). */
__extension__ typedef enum _HSA_IOLINKTYPE {
    /* Unknown. */
    HSA_IOLINKTYPE_UNDEFINED = 0,
    /* HyperTransport. */
    HSA_IOLINKTYPE_HYPERTRANSPORT = 1,
    /* PCI Express. */
    HSA_IOLINKTYPE_PCIEXPRESS = 2,
    /* AMBA. */
    HSA_IOLINKTYPE_AMBA = 3,
    /* MIPI. */
    HSA_IOLINKTYPE_MIPI = 4,
    /* QuickPath 1.1. */
    HSA_IOLINK_TYPE_QPI_1_1 = 5,
    /* Unused. */
    HSA_IOLINK_TYPE_RESERVED1 = 6,
    /* Unused. */
    HSA_IOLINK_TYPE_RESERVED2 = 7,
    /* RapidIO. */
    HSA_IOLINK_TYPE_RAPID_IO = 8,
    /* InfiniBand. */
    HSA_IOLINK_TYPE_INFINIBAND = 9,
    /* Unused. */
    HSA_IOLINK_TYPE_RESERVED3 = 10,
    /* XGMI, between GPUs and to some hosts. */
    HSA_IOLINK_TYPE_XGMI = 11,
    /* XGOP. */
    HSA_IOLINK_TYPE_XGOP = 12,
    /* GZ. */
    HSA_IOLINK_TYPE_GZ = 13,
    /* RDMA over Ethernet. */
    HSA_IOLINK_TYPE_ETHERNET_RDMA = 14,
    /* RDMA over something else. */
    HSA_IOLINK_TYPE_RDMA_OTHER = 15,
    /* Something else. */
    HSA_IOLINK_TYPE_OTHER = 16,
    /* Number of kinds. */
    HSA_IOLINKTYPE_NUMIOLINKTYPES = 17,
    /* Makes the type 32 bits wide. */
    HSA_IOLINKTYPE_SIZE = 0xFFFFFFFF
} HSA_IOLINKTYPE;

/* What a link lacks (sysfs flags). */
typedef union {
    HSAuint32 LinkProperty;
    struct {
        /* The other bits replace what the kind of link implies. */
        unsigned int Override : 1;
        /* Accesses over the link are not coherent. */
        unsigned int NonCoherent : 1;
        /* No 32-bit atomic operations. */
        unsigned int NoAtomics32bit : 1;
        /* No 64-bit atomic operations. */
        unsigned int NoAtomics64bit : 1;
        /* No direct access between devices. */
        unsigned int NoPeerToPeerDMA : 1;
        unsigned int Reserved : 27;
    } ui32;
} HSA_LINKPROPERTY;

/* Clocks of a node and of the host, read together. */
typedef struct _HsaClockCounters {
    /* Clock of the GPU, in its own ticks; 0 for a CPU node. */
    HSAuint64 GPUClockCounter;
    /* CLOCK_MONOTONIC_RAW, in ns. */
    HSAuint64 CPUClockCounter;
    /* CLOCK_BOOTTIME, in ns. */
    HSAuint64 SystemClockCounter;
    /* Ticks per second of the system clock. */
    HSAuint64 SystemClockFrequencyHz;
} HsaClockCounters;

/* How a GPU lays out tiled surfaces. The caller supplies both arrays and their lengths; the
   lengths come back as the kernel's. */
typedef struct _HsaGpuTileConfig {
    /* Array for the tile modes. */
    HSAuint32 *TileConfig;
    /* Array for the macro tile modes. */
    HSAuint32 *MacroTileConfig;
    /* Entries in TileConfig. */
    HSAuint32 NumTileConfigs;
    /* Entries in MacroTileConfig. */
    HSAuint32 NumMacroTileConfigs;
    /* Register GB_ADDR_CONFIG. */
    HSAuint32 GbAddrConfig;
    /* Memory banks. */
    HSAuint32 NumBanks;
    /* Memory ranks. */
    HSAuint32 NumRanks;
    /* Zero. */
    HSAuint32 Reserved[7];
} HsaGpuTileConfig;

/* A node. */
typedef struct _HsaNodeProperties {
    /* CPU cores; 0 on a node without a CPU. */
    HSAuint32 NumCPUCores;
    /* SIMD units; 0 on a node without a GPU. */
    HSAuint32 NumFComputeCores;
#if HSAKMT_ABI_GENERATION >= 2025
    /* Cores of a neural processor. */
    HSAuint32 NumNeuralCores;
#endif
    /* Memory banks, with those that the library adds for a GPU. */
    HSAuint32 NumMemoryBanks;
    /* Caches. */
    HSAuint32 NumCaches;
    /* Links that start here, direct and indirect. */
    HSAuint32 NumIOLinks;
    /* Lowest id of a CPU core. */
    HSAuint32 CComputeIdLo;
    /* Lowest id of a SIMD unit. */
    HSAuint32 FComputeIdLo;
    /* What the node can do. */
    HSA_CAPABILITY Capability;
#if HSAKMT_ABI_GENERATION >= 2025
    /* More of what the node can do. */
    HSA_CAPABILITY2 Capability2;
#endif
    /* Waves that a SIMD unit holds. */
    HSAuint32 MaxWavesPerSIMD;
    /* Local data share of a compute unit, in KiB. */
    HSAuint32 LDSSizeInKB;
    /* Global data share, in KiB. */
    HSAuint32 GDSSizeInKB;
    /* Lanes of a wave. */
    HSAuint32 WaveFrontSize;
    /* Shader engines. */
    HSAuint32 NumShaderBanks;
    /* Shader arrays of an engine. */
    HSAuint32 NumArrays;
    /* Compute units of a shader array. */
    HSAuint32 NumCUPerArray;
    /* SIMD units of a compute unit. */
    HSAuint32 NumSIMDPerCU;
    /* Waves of a compute unit that may have scratch memory. */
    HSAuint32 MaxSlotsScratchCU;
    /* Instruction set and compute firmware. */
    HSA_ENGINE_ID EngineId;
#if HSAKMT_ABI_GENERATION >= 2025
    /* Instruction set that the environment puts in place of EngineId; 0 without. */
    HSA_ENGINE_ID OverrideEngineId;
#endif
    /* PCI vendor; 0 on a node without a GPU. */
    HSAuint16 VendorId;
    /* PCI device; 0 on a node without a GPU. */
    HSAuint16 DeviceId;
    /* PCI bus in bits 8 to 15, device in 3 to 7, function in 0 to 2. */
    HSAuint32 LocationId;
    /* Device memory, in bytes. */
    HSAuint64 LocalMemSize;
    /* Highest clock of the GPU, in MHz. */
    HSAuint32 MaxEngineClockMhzFCompute;
    /* Highest clock of the CPU, in MHz. */
    HSAuint32 MaxEngineClockMhzCCompute;
    /* The render node is /dev/dri/renderD with this number. */
    HSAint32 DrmRenderMinor;
    /* Name for people, UTF-16, ends with a zero. */
    HSAuint16 MarketingName[HSA_PUBLIC_NAME_SIZE];
    /* Name of the chip, ASCII, ends with a zero. */
    HSAuint8 AMDName[HSA_PUBLIC_NAME_SIZE];
    /* Other firmware. */
    HSA_ENGINE_VERSION uCodeEngineVersions;
    /* What the debugger may rely on. */
    HSA_DEBUG_PROPERTIES DebugProperties;
    /* Devices with the same id, if not 0, are joined by XGMI. */
    HSAuint64 HiveID;
    /* SDMA engines for the host link. */
    HSAuint32 NumSdmaEngines;
    /* SDMA engines for XGMI links. */
    HSAuint32 NumSdmaXgmiEngines;
    /* Queues of an SDMA engine. */
    HSAuint8 NumSdmaQueuesPerEngine;
    /* Compute queues. */
    HSAuint8 NumCpQueues;
    /* Slots for global wave synchronisation. */
    HSAuint8 NumGws;
#if HSAKMT_ABI_GENERATION < 2025
    /* Zero. */
    HSAuint8 Reserved2;
#else
    /* Whether CPU and GPU share memory. */
    HSAuint8 Integrated;
#endif
    /* PCI domain. */
    HSAuint32 Domain;
    /* Serial number; 0 where there is none. */
    HSAuint64 UniqueID;
    /* Vector registers of a compute unit, in bytes. */
    HSAuint32 VGPRSizePerCU;
    /* Scalar registers of a compute unit, in bytes. */
    HSAuint32 SGPRSizePerCU;
#if HSAKMT_ABI_GENERATION < 2025
    /* Zero. */
    HSAuint8 Reserved[12];
#else
    /* Compute dies of the node. */
    HSAuint32 NumXcc;
    /* The kernel driver's id of the GPU; 0 on a node without a GPU. */
    HSAuint32 KFDGpuID;
    /* Family of the chip. */
    HSAuint32 FamilyID;
#endif
#if HSAKMT_ABI_GENERATION >= 2026
    /* Memory to save a queue, in bytes; 0 where the kernel does not tell. */
    HSAuint32 CwsrSize;
    /* Its part for the control stack, in bytes; 0 where the kernel does not tell. */
    HSAuint32 CtlStackSize;
    /* Lower half of the id that Windows gives. */
    HSAuint32 LuidLowPart;
    /* Upper half of the id that Windows gives. */
    HSAuint32 LuidHighPart;
    /* Rate of the constant clock, in kHz. */
    HSAuint64 WallClockKHz;
    /* Whether handles on the fabric between machines exist. */
    HSAuint32 FabricHandleSupported;
#endif
} HsaNodeProperties;

/* A cache of a node. */
typedef struct _HaCacheProperties {
    /* Lowest id of a processor that the cache serves. */
    HSAuint32 ProcessorIdLow;
    /* 1 is closest to the processor. */
    HSAuint32 CacheLevel;
    /* Size in KiB. */
    HSAuint32 CacheSize;
    /* Line in bytes. */
    HSAuint32 CacheLineSize;
    /* Lines of a tag. */
    HSAuint32 CacheLinesPerTag;
    /* Ways; 0 where unknown. */
    HSAuint32 CacheAssociativity;
    /* Latency in ns; 0 where unknown. */
    HSAuint32 CacheLatency;
    /* What the cache serves. */
    HsaCacheType CacheType;
    /* Which processors share the cache, from ProcessorIdLow on. */
    HSAuint32 SiblingMap[HSA_CPU_SIBLINGS];
#if HSAKMT_ABI_GENERATION >= 2026
    /* Most of the cache that may be set aside for data that persists, in bytes. */
    HSAuint32 PersistingCacheSizeMax;
#endif
} HsaCacheProperties;

/* A way from one node to another. */
typedef struct _HsaIoLinkProperties {
    /* What joins the nodes. */
    HSA_IOLINKTYPE IoLinkType;
    /* Major version of the link. */
    HSAuint32 VersionMajor;
    /* Minor version of the link. */
    HSAuint32 VersionMinor;
    /* Node where it starts. */
    HSAuint32 NodeFrom;
    /* Node where it ends. */
    HSAuint32 NodeTo;
    /* Cost of going this way. */
    HSAuint32 Weight;
    /* Least latency in ns; 0 where unknown. */
    HSAuint32 MinimumLatency;
    /* Greatest latency in ns; 0 where unknown. */
    HSAuint32 MaximumLatency;
    /* Least rate in MB/s; 0 where unknown. */
    HSAuint32 MinimumBandwidth;
    /* Greatest rate in MB/s; 0 where unknown. */
    HSAuint32 MaximumBandwidth;
    /* Transfer size that serves it best, in bytes; 0 where unknown. */
    HSAuint32 RecTransferSize;
#if HSAKMT_ABI_GENERATION >= 2025
    /* SDMA engines that serve it best, one bit each; 0 where unknown. */
    HSAuint32 RecSdmaEngIdMask;
#endif
    /* What the link lacks. */
    HSA_LINKPROPERTY Flags;
} HsaIoLinkProperties;

/* ---------------------------------------------------------------------------------------------- */
/* Memory                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* How an access is cached (HsaMemFlags.CachePolicy, hsaKmtSetMemoryPolicy). */
__extension__ typedef enum _HSA_CACHING_TYPE {
    /* Cached, coherent. */
    HSA_CACHING_CACHED = 0,
    /* Not cached. */
    HSA_CACHING_NONCACHED = 1,
    /* Writes are combined. */
    HSA_CACHING_WRITECOMBINED = 2,
    /* Unused. */
    HSA_CACHING_RESERVED = 3,
    /* Number of kinds. */
    HSA_CACHING_NUM_CACHING = 4,
    /* Makes the type 32 bits wide. */
    HSA_CACHING_SIZE = 0xFFFFFFFF
} HSA_CACHING_TYPE;

/* Smallest page that an allocation may consist of (HsaMemFlags.PageSize). */
typedef enum _HSA_PAGE_SIZE {
    /* 4 KiB. */
    HSA_PAGE_SIZE_4KB = 0,
    /* 64 KiB. */
    HSA_PAGE_SIZE_64KB = 1,
    /* 2 MiB. */
    HSA_PAGE_SIZE_2MB = 2,
    /* 1 GiB. */
    HSA_PAGE_SIZE_1GB = 3
} HSA_PAGE_SIZE;

/* What an allocation is to be. Callers pass it by value. */
typedef struct _HsaMemFlags {
    union {
        struct {
            /* Pages stay where they are; with a GPU node: its own memory. */
            unsigned int NonPaged : 1;
            /* An HSA_CACHING_TYPE. */
            unsigned int CachePolicy : 2;
            /* Devices do not write. */
            unsigned int ReadOnly : 1;
            /* An HSA_PAGE_SIZE. */
            unsigned int PageSize : 2;
            /* The host accesses the memory. */
            unsigned int HostAccess : 1;
            /* Fail rather than take memory of another kind. */
            unsigned int NoSubstitute : 1;
            /* Global data share. */
            unsigned int GDSMemory : 1;
            /* Scratch memory. */
            unsigned int Scratch : 1;
            /* Atomic operations of full scope. */
            unsigned int AtomicAccessFull : 1;
            /* Atomic operations of partial scope. */
            unsigned int AtomicAccessPartial : 1;
            /* Devices may execute the memory. */
            unsigned int ExecuteAccess : 1;
            /* Coherence at kernel boundaries only. */
            unsigned int CoarseGrain : 1;
            /* The ring of an AQL queue, mapped as this device needs it. */
            unsigned int AQLQueueMemory : 1;
            /* The address that the caller passes must be taken. */
            unsigned int FixedAddress : 1;
            /* The memory is not bound to its NUMA node. */
            unsigned int NoNUMABind : 1;
            /* Devices do not cache the memory. */
            unsigned int Uncached : 1;
#if HSAKMT_ABI_GENERATION < 2025
            unsigned int Reserved : 14;
#else
            /* Memory without an address; the result is a handle. */
            unsigned int NoAddress : 1;
            /* An address without memory. */
            unsigned int OnlyAddress : 1;
            /* Coherent even within one kernel. */
            unsigned int ExtendedCoherent : 1;
            /* System memory that the device's own tables map. */
            unsigned int GTTAccess : 1;
            /* Physically contiguous device memory, if possible. */
            unsigned int Contiguous : 1;
            /* Executable by the copy kernels of a runtime. */
            unsigned int ExecuteBlit : 1;
#endif
#if HSAKMT_ABI_GENERATION == 2025
            unsigned int Reserved : 8;
#endif
#if HSAKMT_ABI_GENERATION >= 2026
            /* The memory holds queue objects. */
            unsigned int QueueObject : 1;
            unsigned int Reserved : 7;
#endif
        } ui32;
        HSAuint32 Value;
    };
} HsaMemFlags;

#if HSAKMT_ABI_GENERATION < 2026
/* How memory is to be mapped. Callers pass it by value. */
typedef struct _HsaMemMapFlags {
    union {
        struct {
            unsigned int Reserved1 : 1;
            /* An HSA_CACHING_TYPE. */
            unsigned int CachePolicy : 2;
            /* Devices do not write. */
            unsigned int ReadOnly : 1;
            /* An HSA_PAGE_SIZE. */
            unsigned int PageSize : 2;
            /* The host accesses the memory. */
            unsigned int HostAccess : 1;
            /* Pages move to the device that maps them. */
            unsigned int Migrate : 1;
            /* Only ask whether the mapping is possible. */
            unsigned int Probe : 1;
            unsigned int Reserved : 23;
        } ui32;
        HSAuint32 Value;
    };
} HsaMemMapFlags;
#endif

#if HSAKMT_ABI_GENERATION >= 2025
/* How a handle of another library is to be registered. Callers pass it by value. */
typedef union {
    HSAuint32 Value;
    struct {
        /* An address is needed even without a list of nodes. */
        unsigned int requiresVAddr : 1;
#if HSAKMT_ABI_GENERATION >= 2026
        /* The handle is a kernel-mode thunk handle of Windows. */
        unsigned int kmtHandle : 1;
#endif
    } ui32;
} HSA_REGISTER_MEM_FLAGS;
#endif

/* What an address belongs to. */
typedef enum _HSA_POINTER_TYPE {
    /* Nothing that the library knows. */
    HSA_POINTER_UNKNOWN = 0,
    /* Memory that the library allocated. */
    HSA_POINTER_ALLOCATED = 1,
    /* Host memory that was registered. */
    HSA_POINTER_REGISTERED_USER = 2,
    /* A registered handle of a graphics library. */
    HSA_POINTER_REGISTERED_GRAPHICS = 3,
    /* Memory that another process shared. */
    HSA_POINTER_REGISTERED_SHARED = 4,
#if HSAKMT_ABI_GENERATION >= 2025
    /* A reserved address range without memory. */
    HSA_POINTER_RESERVED_ADDR = 5
#endif
} HSA_POINTER_TYPE;

/* What the library knows of an address. The library owns both arrays, see
   hsaKmtQueryPointerInfo. */
typedef struct _HsaPointerInfo {
    /* What the address belongs to. */
    HSA_POINTER_TYPE Type;
    /* Node whose memory it is. */
    HSAuint32 Node;
    /* The flags of the allocation. */
    HsaMemFlags MemFlags;
    /* First byte as the host sees it; NULL without host access. */
    void *CPUAddress;
    /* First byte as devices see it. */
    HSAuint64 GPUAddress;
    /* Size in bytes. */
    HSAuint64 SizeInBytes;
    /* Entries in RegisteredNodes. */
    HSAuint32 NRegisteredNodes;
    /* Entries in MappedNodes. */
    HSAuint32 NMappedNodes;
    /* Nodes for which the memory is registered. */
    const HSAuint32 *RegisteredNodes;
    /* Nodes that have the memory mapped. */
    const HSAuint32 *MappedNodes;
    /* What hsaKmtSetMemoryUserData attached. */
    void *UserData;
} HsaPointerInfo;

/* A range of memory of some process. */
typedef struct _HsaMemoryRange {
    /* First byte. */
    void *MemoryAddress;
    /* Size in bytes. */
    HSAuint64 SizeInBytes;
} HsaMemoryRange;

#if HSAKMT_ABI_GENERATION >= 2026
/* Direction of a direct transfer between a file and device memory. */
typedef enum _HsaAisFlags {
    /* From the file. */
    HSA_AIS_READ = 1,
    /* To the file. */
    HSA_AIS_WRITE = 2
} HsaAisFlags;

/* Access that a mapping of a buffer object gives. */
typedef enum _HsaMemoryMapFlags {
    /* None. */
    HSA_MEMORY_ACCESS_NONE = 0,
    /* Read. */
    HSA_MEMORY_ACCESS_RO = 1,
    /* Write. */
    HSA_MEMORY_ACCESS_WO = 2,
    /* Read and write. */
    HSA_MEMORY_ACCESS_RW = 3
} HsaMemoryMapFlags;

/* Kind of a handle that leaves or enters the process. */
typedef enum _HsaExternalHandleType {
    /* Global GEM name. */
    HSA_EXTERNAL_HANDLE_GEM_FLINK_NAME = 0,
    /* Handle of one render file. */
    HSA_EXTERNAL_HANDLE_KMS = 1,
    /* Descriptor of a dma-buf. */
    HSA_EXTERNAL_HANDLE_DMA_BUF = 2,
    /* Handle on the fabric between machines. */
    HSA_EXTERNAL_HANDLE_FABRIC = 3
} HsaExternalHandleType;

/* A handle on the fabric between machines. */
typedef struct _HsaFabricHandle {
    /* Opaque. */
    HSAuint64 handle[2];
} HsaFabricHandle;

/* Flags of an export; none exist. */
typedef struct _HsaHandleExportFlags {
    struct {
        /* Zero. */
        unsigned int Reserved : 32;
    } ui32;
} HsaHandleExportFlags;

/* Flags of an import. */
typedef struct _HsaHandleImportFlags {
    struct {
        /* The handle came over inter-process communication and carries a tag. */
        unsigned int IPCHandle : 1;
        /* The buffer is system memory. */
        unsigned int SysMem : 1;
        /* The tag may be set where there is none. */
        unsigned int UpdateMetadata : 1;
        unsigned int Reserved : 29;
    } ui32;
} HsaHandleImportFlags;

/* What to export. */
typedef struct _HsaHandleExportDesc {
    /* Device of the buffer. */
    HsaAMDGPUDeviceHandle device_handle;
    /* Kind of handle wanted. */
    HsaExternalHandleType type;
    /* The buffer. */
    HsaMemoryObjectHandle buf_handle;
    /* Size in bytes. */
    HSAuint64 size;
} HsaHandleExportDesc;

/* What to import. */
typedef struct _HsaHandleImportDesc {
    /* Device that imports. */
    HsaAMDGPUDeviceHandle device_handle;
    /* Kind of the handle. */
    HsaExternalHandleType type;
    union {
        /* DMA_BUF: a descriptor. */
        HSAint64 dmabuf_fd;
        /* KMS: a buffer object. */
        HsaMemoryObjectHandle buf_handle;
        /* FABRIC: a handle on the fabric. */
        HsaFabricHandle fabric;
    };
    /* Address hint. */
    void *mem;
    /* Tag of the buffer. */
    HSAuint32 metadata;
} HsaHandleImportDesc;

/* What was imported. */
typedef struct _HsaHandleImportResult {
    /* The buffer object. */
    HsaMemoryObjectHandle buf_handle;
    /* Descriptor of the dma-buf behind it. */
    int dmabuf_fd;
    /* Size of the buffer in bytes. */
    HSAuint64 alloc_size;
    /* Tag of the buffer. */
    HSAuint32 metadata;
} HsaHandleImportResult;

/* What was exported, by its kind. */
typedef struct _HsaMemoryExportResult {
    union {
        /* Descriptor of a dma-buf; the caller closes it. */
        HSAint32 dmabuf_fd;
        /* A handle on the fabric. */
        HsaFabricHandle fabric;
    };
} HsaMemoryExportResult;

/* Layout of a surface that Windows shares. */
typedef struct _HsaWddmSurfaceMetadata {
    /* Version of this structure. */
    HSAuint32 version;
    /* Swizzle mode of the surface. */
    HSAuint32 swizzle_mode;
    /* Swizzle of the tiles. */
    HSAuint32 tile_swizzle;
    /* How the surface is compressed. */
    HSAuint32 compression_mode;
    /* Largest compressed block. */
    HSAuint32 max_comp_blk;
    /* Largest uncompressed block. */
    HSAuint32 max_uncomp_blk;
} HsaWddmSurfaceMetadata;
#endif

/* An imported buffer of a graphics library. */
typedef struct _HsaGraphicsResourceInfo {
    /* Out: address of the memory, or a handle. */
    void *MemoryAddress;
    /* Out: size. */
    HSAuint64 SizeInBytes;
    /* Out: what the exporter attached. The library owns it. */
    const void *Metadata;
    /* Out: size of what the exporter attached. */
    HSAuint32 MetadataSizeInBytes;
#if HSAKMT_ABI_GENERATION < 2025
    /* Zero. */
    HSAuint32 Reserved;
#else
    /* Out: node whose memory it is. */
    HSAuint32 NodeId;
#endif
#if HSAKMT_ABI_GENERATION >= 2026
    /* In: size, where the handle does not tell (Windows). */
    HSAuint64 SizeHintInBytes;
#endif
} HsaGraphicsResourceInfo;

/* ---------------------------------------------------------------------------------------------- */
/* Shared virtual memory                                                                          */
/* ---------------------------------------------------------------------------------------------- */

/* Which attribute of a range (HSA_SVM_ATTRIBUTE.type). */
typedef enum _HSA_SVM_ATTR_TYPE {
    /* Node where the range should live. */
    HSA_SVM_ATTR_PREFERRED_LOC = 0,
    /* Node to which the range moves now. */
    HSA_SVM_ATTR_PREFETCH_LOC = 1,
    /* Node that may access the range, by migration if need be. */
    HSA_SVM_ATTR_ACCESS = 2,
    /* Node that may access the range where it is. */
    HSA_SVM_ATTR_ACCESS_IN_PLACE = 3,
    /* Node that may not access the range. */
    HSA_SVM_ATTR_NO_ACCESS = 4,
    /* Set of HSA_SVM_FLAGS to set. */
    HSA_SVM_ATTR_SET_FLAGS = 5,
    /* Set of HSA_SVM_FLAGS to clear. */
    HSA_SVM_ATTR_CLR_FLAGS = 6,
    /* Base-2 logarithm of the pages that move at once. */
    HSA_SVM_ATTR_GRANULARITY = 7
} HSA_SVM_ATTR_TYPE;

/* Bits of the flag attributes; their union is a legal value. */
typedef enum _HSA_SVM_FLAGS {
    /* The host may access the range. */
    HSA_SVM_FLAG_HOST_ACCESS = 1,
    /* The range is coherent between devices. */
    HSA_SVM_FLAG_COHERENT = 2,
    /* The range may be cached within a hive. */
    HSA_SVM_FLAG_HIVE_LOCAL = 4,
    /* Devices do not write. */
    HSA_SVM_FLAG_GPU_RO = 8,
    /* Devices may execute. */
    HSA_SVM_FLAG_GPU_EXEC = 0x10,
    /* Devices mostly read, so copies pay off. */
    HSA_SVM_FLAG_GPU_READ_MOSTLY = 0x20,
#if HSAKMT_ABI_GENERATION >= 2025
    /* The range stays mapped on devices. */
    HSA_SVM_FLAG_GPU_ALWAYS_MAPPED = 0x40,
    /* The range is coherent even within one kernel. */
    HSA_SVM_FLAG_EXT_COHERENT = 0x80
#endif
} HSA_SVM_FLAGS;

/* An attribute and its value. */
typedef struct _HSA_SVM_ATTRIBUTE {
    /* An HSA_SVM_ATTR_TYPE. */
    HSAuint32 type;
    /* A node id or a number, as the attribute demands. */
    HSAuint32 value;
} HSA_SVM_ATTRIBUTE;

/* ---------------------------------------------------------------------------------------------- */
/* Queues                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* What a queue accepts. */
__extension__ typedef enum _HSA_QUEUE_TYPE {
    /* PM4 packets. */
    HSA_QUEUE_COMPUTE = 1,
    /* SDMA packets, on an engine for the host link. */
    HSA_QUEUE_SDMA = 2,
    /* Video decoding. */
    HSA_QUEUE_MULTIMEDIA_DECODE = 3,
    /* Video encoding. */
    HSA_QUEUE_MULTIMEDIA_ENCODE = 4,
    /* SDMA packets, on an engine for XGMI links. */
    HSA_QUEUE_SDMA_XGMI = 5,
#if HSAKMT_ABI_GENERATION >= 2025
    /* SDMA packets, on the engine that the caller names. */
    HSA_QUEUE_SDMA_BY_ENG_ID = 6,
#endif
    /* PM4 packets, owned by the operating system. */
    HSA_QUEUE_COMPUTE_OS = 11,
    /* SDMA packets, owned by the operating system. */
    HSA_QUEUE_SDMA_OS = 12,
    /* Video decoding, owned by the operating system. */
    HSA_QUEUE_MULTIMEDIA_DECODE_OS = 13,
    /* Video encoding, owned by the operating system. */
    HSA_QUEUE_MULTIMEDIA_ENCODE_OS = 14,
    /* AQL packets. */
    HSA_QUEUE_COMPUTE_AQL = 21,
    /* AQL packets for SDMA. */
    HSA_QUEUE_DMA_AQL = 22,
    /* AQL packets for SDMA over XGMI. */
    HSA_QUEUE_DMA_AQL_XGMI = 23,
    /* Makes the type 32 bits wide. */
    HSA_QUEUE_TYPE_SIZE = 0xFFFFFFFF
} HSA_QUEUE_TYPE;

/* Urgency of a queue. Unlike every other enumeration it is 64 bits wide: its enumerators reach
   from -3 to 0xFFFFFFFF. */
__extension__ typedef enum _HSA_QUEUE_PRIORITY {
    /* Lowest. */
    HSA_QUEUE_PRIORITY_MINIMUM = -3,
    /* Low. */
    HSA_QUEUE_PRIORITY_LOW = -2,
    /* Below normal. */
    HSA_QUEUE_PRIORITY_BELOW_NORMAL = -1,
    /* Normal. */
    HSA_QUEUE_PRIORITY_NORMAL = 0,
    /* Above normal. */
    HSA_QUEUE_PRIORITY_ABOVE_NORMAL = 1,
    /* High. */
    HSA_QUEUE_PRIORITY_HIGH = 2,
    /* Highest. */
    HSA_QUEUE_PRIORITY_MAXIMUM = 3,
    /* One above the highest. */
    HSA_QUEUE_PRIORITY_NUM_PRIORITY = 4,
    /* Makes the type 64 bits wide. */
    HSA_QUEUE_PRIORITY_SIZE = 0xFFFFFFFF
} HSA_QUEUE_PRIORITY;

/* First bytes of the memory to which the state of a queue is saved. Debuggers and core dumps read
   it (linux/kfd_ioctl.h, kfd_context_save_area_header). */
typedef struct {
    /* Where the saved control stack begins, in bytes from this structure. */
    HSAuint32 ControlStackOffset;
    /* Size of the saved control stack in bytes. */
    HSAuint32 ControlStackSize;
    /* Where the saved waves begin, in bytes from this structure. */
    HSAuint32 WaveStateOffset;
    /* Size of the saved waves in bytes. */
    HSAuint32 WaveStateSize;
    /* Where the debugger's own memory begins, in bytes from this structure. */
    HSAuint32 DebugOffset;
    /* Size of the debugger's own memory in bytes. */
    HSAuint32 DebugSize;
    /* Where the trap handler and the kernel report why the queue stopped. */
    volatile HSAint64 *ErrorReason;
    /* The event that goes with the report. */
    HSAuint32 ErrorEventId;
    /* Zero. */
    HSAuint32 Reserved1;
} HsaUserContextSaveAreaHeader;

/* What hsaKmtReportQueue would report; no known library has that function. */
typedef struct _HsaQueueReport {
    /* Address space number. */
    HSAuint32 VMID;
    /* The ring. */
    void *QueueAddress;
    /* Size of the ring in bytes. */
    HSAuint64 QueueSize;
} HsaQueueReport;

#if HSAKMT_ABI_GENERATION >= 2026
/* Kind of a semaphore of another library. */
typedef enum _HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE {
    /* NT handle. */
    HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32 = 0,
    /* Kernel-mode thunk handle of Windows. */
    HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_WIN32_KMT = 1,
    /* File descriptor. */
    HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE_OPAQUE_FD = 2
} HSA_EXTERNAL_SEMAPHORE_HANDLE_TYPE;

/* An imported semaphore. Callers pass it by value. */
typedef struct _HSA_EXTERNAL_SEMAPHORE_HANDLE {
    /* Opaque. */
    HSAuint64 handle;
} HSA_EXTERNAL_SEMAPHORE_HANDLE;
#endif

/* The saved state of a queue that does not run. The library owns what the pointers name. */
typedef struct {
    /* Why the queue stopped. */
    HSAuint32 QueueDetailError;
    /* Kind of the queue. */
    HSAuint32 QueueTypeExtended;
    /* Bits of CUMaskInfo. */
    HSAuint32 NumCUAssigned;
    /* Compute units that serve the queue, one bit each; NULL without a mask. */
    HSAuint32 *CUMaskInfo;
    /* Saved waves. */
    HSAuint32 *UserContextSaveArea;
    /* Size of the saved waves. */
    HSAuint64 SaveAreaSizeInBytes;
    /* Top of the saved control stack. */
    HSAuint32 *ControlStackTop;
    /* Size of the saved control stack. */
    HSAuint64 ControlStackUsedInBytes;
    /* First bytes of the memory that all of this is in. */
    HsaUserContextSaveAreaHeader *SaveAreaHeader;
    /* Zero. */
    HSAuint64 Reserved2;
#if HSAKMT_ABI_GENERATION >= 2026
    /* Size of the memory that all of this is in, in bytes. */
    HSAuint64 SaveAreaAllocSize;
#endif
} HsaQueueInfo;

/* What producer and queue share. */
typedef struct _HsaQueueResource {
    /* The queue. */
    HSA_QUEUEID QueueId;
    union {
        /* Out: the doorbell, to be written as 32 or 64 bits as the device wants it. */
        HSAuint32 *Queue_DoorBell;
        HSAuint64 *Queue_DoorBell_aql;
        HSAuint64 QueueDoorBell;
    };
    union {
        /* The write pointer. In for AQL queues, out for the others. */
        HSAuint32 *Queue_write_ptr;
        HSAuint64 *Queue_write_ptr_aql;
        HSAuint64 QueueWptrValue;
    };
    union {
        /* The read pointer. In for AQL queues, out for the others. */
        HSAuint32 *Queue_read_ptr;
        HSAuint64 *Queue_read_ptr_aql;
        HSAuint64 QueueRptrValue;
    };
    /* In: where to report why the queue stopped; NULL without. */
    volatile HSAint64 *ErrorReason;
#if HSAKMT_ABI_GENERATION >= 2026
    /* Address of the progress fence (Windows). */
    HSAuint64 SdmaProgressFenceVA;
    /* Bytes to leave free after each submission (Windows). */
    HSAuint32 SdmaHwQueueEpilogueBytes;
#endif
} HsaQueueResource;

/* ---------------------------------------------------------------------------------------------- */
/* Events                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* What an event tells (linux/kfd_ioctl.h, KFD_IOC_EVENT). */
__extension__ typedef enum _HSA_EVENTTYPE {
    /* A signal, from host or device. */
    HSA_EVENTTYPE_SIGNAL = 0,
    /* A node came or went. */
    HSA_EVENTTYPE_NODECHANGE = 1,
    /* A device started or stopped. */
    HSA_EVENTTYPE_DEVICESTATECHANGE = 2,
    /* A device failed or was reset. */
    HSA_EVENTTYPE_HW_EXCEPTION = 3,
    /* Something in the system changed. */
    HSA_EVENTTYPE_SYSTEM_EVENT = 4,
    /* A signal to a debugger. */
    HSA_EVENTTYPE_DEBUG_EVENT = 5,
    /* A signal to a profiler. */
    HSA_EVENTTYPE_PROFILE_EVENT = 6,
    /* A queue stopped. */
    HSA_EVENTTYPE_QUEUE_EVENT = 7,
    /* A device accessed memory that it may not. */
    HSA_EVENTTYPE_MEMORY = 8,
    /* One above the last kind. */
    HSA_EVENTTYPE_MAXID = 9,
    /* Makes the type 32 bits wide. */
    HSA_EVENTTYPE_TYPE_SIZE = 0xFFFFFFFF
} HSA_EVENTTYPE;

/* Time-outs in ms that have a name. */
__extension__ typedef enum _HsaEventTimeout {
    /* Look and return. */
    HSA_EVENTTIMEOUT_IMMEDIATE = 0,
    /* Wait for ever. */
    HSA_EVENTTIMEOUT_INFINITE = 0xFFFFFFFF
} HsaEventTimeOut;

/* What happened to a node. */
__extension__ typedef enum _HSA_EVENTTYPE_NODECHANGE_FLAGS {
    /* It came. */
    HSA_EVENTTYPE_NODECHANGE_ADD = 0,
    /* It went. */
    HSA_EVENTTYPE_NODECHANGE_REMOVE = 1,
    /* Makes the type 32 bits wide. */
    HSA_EVENTTYPE_NODECHANGE_SIZE = 0xFFFFFFFF
} HSA_EVENTTYPE_NODECHANGE_FLAGS;

/* What happened to a device. */
__extension__ typedef enum _HSA_EVENTTYPE_DEVICESTATECHANGE_FLAGS {
    /* It started. */
    HSA_EVENTTYPE_DEVICESTATUSCHANGE_START = 0,
    /* It stopped. */
    HSA_EVENTTYPE_DEVICESTATUSCHANGE_STOP = 1,
    /* Makes the type 32 bits wide. */
    HSA_EVENTTYPE_DEVICESTATUSCHANGE_SIZE = 0xFFFFFFFF
} HSA_EVENTTYPE_DEVICESTATECHANGE_FLAGS;

/* Kind of device. */
typedef enum _HSA_DEVICE {
    /* Processor. */
    HSA_DEVICE_CPU = 0,
    /* Graphics processor. */
    HSA_DEVICE_GPU = 1,
    /* Number of kinds. */
    MAX_HSA_DEVICE = 2
} HSA_DEVICE;

/* What a memory fault ends. */
typedef enum _HSA_EVENTID_MEMORYFLAGS {
    /* Nothing. */
    HSA_EVENTID_MEMORY_RECOVERABLE = 0,
    /* The process. */
    HSA_EVENTID_MEMORY_FATAL_PROCESS = 1,
    /* The address space. */
    HSA_EVENTID_MEMORY_FATAL_VM = 2
} HSA_EVENTID_MEMORYFLAGS;

#if HSAKMT_ABI_GENERATION >= 2025
/* Why a device failed. */
typedef enum _HSA_EVENTID_HW_EXCEPTION_CAUSE {
    /* It hung. */
    HSA_EVENTID_HW_EXCEPTION_GPU_HANG = 0,
    /* It found an error that it cannot correct. */
    HSA_EVENTID_HW_EXCEPTION_ECC = 1
} HSA_EVENTID_HW_EXCEPTION_CAUSE;
#endif

/* How a device broke the rules of memory. */
typedef struct _HsaAccessAttributeFailure {
    /* No page is mapped there. */
    unsigned int NotPresent : 1;
    /* The page may not be written. */
    unsigned int ReadOnly : 1;
    /* The page may not be executed. */
    unsigned int NoExecute : 1;
    /* The page is not for the device. */
    unsigned int GpuAccess : 1;
    /* The memory has an error that it cannot correct. */
    unsigned int ECC : 1;
    /* The address may not be exact. */
    unsigned int Imprecise : 1;
    /* Kind of the error, as the kernel reports it (KFD_MEM_ERR). */
    unsigned int ErrorType : 3;
    unsigned int Reserved : 23;
} HsaAccessAttributeFailure;

/* A word that a signal event guards. */
typedef struct _HsaSyncVar {
    /* Address of the word. */
    union {
        void *UserData;
        HSAuint64 UserDataPtrValue;
    } SyncVar;
    /* Size of the word in bytes. */
    HSAuint64 SyncVarSize;
} HsaSyncVar;

/* A node came or went. */
typedef struct _HsaNodeChange {
    /* Which of both. */
    HSA_EVENTTYPE_NODECHANGE_FLAGS Flags;
} HsaNodeChange;

/* A device started or stopped. */
typedef struct _HsaDeviceStateChange {
    /* Node of the device. */
    HSAuint32 NodeId;
    /* Kind of the device. */
    HSA_DEVICE Device;
    /* Which of both. */
    HSA_EVENTTYPE_DEVICESTATECHANGE_FLAGS Flags;
} HsaDeviceStateChange;

/* A device accessed memory that it may not. */
typedef struct _HsaMemoryAccessFault {
    /* Node of the device. */
    HSAuint32 NodeId;
    /* The address, in bytes; its page, where the fault is imprecise. */
    HSAuint64 VirtualAddress;
    /* Which rule it broke. */
    HsaAccessAttributeFailure Failure;
    /* What the fault ends. */
    HSA_EVENTID_MEMORYFLAGS Flags;
} HsaMemoryAccessFault;

#if HSAKMT_ABI_GENERATION >= 2025
/* A device failed. */
typedef struct _HsaHwException {
    /* Node of the device. */
    HSAuint32 NodeId;
    /* 0: the whole device was reset, 1: one engine. */
    HSAuint32 ResetType;
    /* Whether device memory was lost. */
    HSAuint32 MemoryLost;
    /* Why. */
    HSA_EVENTID_HW_EXCEPTION_CAUSE ResetCause;
} HsaHwException;
#endif

/* Kind and report of an event, and what a device needs to raise it. */
typedef struct _HsaEventData {
    /* Kind of the event. */
    HSA_EVENTTYPE EventType;
    /* What it reports. */
    union {
        /* HSA_EVENTTYPE_SIGNAL. */
        HsaSyncVar SyncVar;
        /* HSA_EVENTTYPE_NODECHANGE. */
        HsaNodeChange NodeChangeState;
        /* HSA_EVENTTYPE_DEVICESTATECHANGE. */
        HsaDeviceStateChange DeviceState;
        /* HSA_EVENTTYPE_MEMORY. */
        HsaMemoryAccessFault MemoryAccessFault;
#if HSAKMT_ABI_GENERATION >= 2025
        /* HSA_EVENTTYPE_HW_EXCEPTION. */
        HsaHwException HwException;
#endif
    } EventData;
    /* Id of the event. */
    HSAuint64 HWData1;
    /* Address of the slot that a device writes to raise it. */
    HSAuint64 HWData2;
    /* What a device sends with its interrupt. */
    HSAuint32 HWData3;
} HsaEventData;

/* What kind of event to create. */
typedef struct _HsaEventDescriptor {
    /* Kind of the event. */
    HSA_EVENTTYPE EventType;
    /* Node of the event, where the kind has one. */
    HSAuint32 NodeId;
    /* The word that the event guards, for a signal. */
    HsaSyncVar SyncVar;
} HsaEventDescriptor;

/* An event. The library allocates and frees it. */
typedef struct _HsaEvent {
    /* Id of the event. */
    HSA_EVENTID EventId;
    /* Kind and report. */
    HsaEventData EventData;
} HsaEvent;

/* ---------------------------------------------------------------------------------------------- */
/* Debugging                                                                                      */
/* ---------------------------------------------------------------------------------------------- */

#if HSAKMT_ABI_GENERATION >= 2025
/* Bit of hsaKmtGetRuntimeCapabilities: core dumps are possible. */
#define HSA_RUNTIME_ENABLE_CAPS_SUPPORTS_CORE_DUMP_MASK 0x80000000

/* The bit of an HSA_DBG_TRAP_EXCEPTION_CODE in a set of them. */
#define HSA_EC_MASK(ecode) (1ULL << ((ecode) - 1))
#endif

/* What to do with waves (hsaKmtDbgWavefrontControl). */
__extension__ typedef enum _HSA_DBG_WAVEOP {
    /* Stop. */
    HSA_DBG_WAVEOP_HALT = 1,
    /* Go on. */
    HSA_DBG_WAVEOP_RESUME = 2,
    /* End. */
    HSA_DBG_WAVEOP_KILL = 3,
    /* Enter debug mode. */
    HSA_DBG_WAVEOP_DEBUG = 4,
    /* Enter the trap handler. */
    HSA_DBG_WAVEOP_TRAP = 5,
    /* Number of operations. */
    HSA_DBG_NUM_WAVEOP = 5,
    /* Makes the type 32 bits wide. */
    HSA_DBG_MAX_WAVEOP = 0xFFFFFFFF
} HSA_DBG_WAVEOP;

/* Which waves (hsaKmtDbgWavefrontControl). */
__extension__ typedef enum _HSA_DBG_WAVEMODE {
    /* One. */
    HSA_DBG_WAVEMODE_SINGLE = 0,
    /* All of the process. */
    HSA_DBG_WAVEMODE_BROADCAST_PROCESS = 2,
    /* All of the process on one compute unit. */
    HSA_DBG_WAVEMODE_BROADCAST_PROCESS_CU = 3,
    /* Number of modes. */
    HSA_DBG_NUM_WAVEMODE = 3,
    /* Makes the type 32 bits wide. */
    HSA_DBG_MAX_WAVEMODE = 0xFFFFFFFF
} HSA_DBG_WAVEMODE;

/* Who wrote a wave message. */
__extension__ typedef enum _HSA_DBG_WAVEMSG_TYPE {
    /* The device. */
    HSA_DBG_WAVEMSG_AUTO = 0,
    /* A program. */
    HSA_DBG_WAVEMSG_USER = 1,
    /* An error. */
    HSA_DBG_WAVEMSG_ERROR = 2,
    /* Number of kinds. */
    HSA_DBG_NUM_WAVEMSG = 3,
    /* Makes the type 32 bits wide. */
    HSA_DBG_MAX_WAVEMSG = 0xFFFFFFFF
} HSA_DBG_WAVEMSG_TYPE;

/* Which accesses a watch point catches. */
typedef enum _HSA_DBG_WATCH_MODE {
    /* Reads. */
    HSA_DBG_WATCH_READ = 0,
    /* Writes and atomic operations. */
    HSA_DBG_WATCH_NONREAD = 1,
    /* Atomic operations. */
    HSA_DBG_WATCH_ATOMIC = 2,
    /* All. */
    HSA_DBG_WATCH_ALL = 3,
    /* Number of modes. */
    HSA_DBG_WATCH_NUM = 4
} HSA_DBG_WATCH_MODE;

/* How a set of traps is applied. */
typedef enum _HSA_DBG_TRAP_OVERRIDE {
    /* Added to what is enabled. */
    HSA_DBG_TRAP_OVERRIDE_OR = 0,
    /* In place of what is enabled. */
    HSA_DBG_TRAP_OVERRIDE_REPLACE = 1,
    /* Number of ways. */
    HSA_DBG_TRAP_OVERRIDE_NUM = 2
} HSA_DBG_TRAP_OVERRIDE;

/* Bits of a set of traps; their union is a legal value. */
typedef enum _HSA_DBG_TRAP_MASK {
    /* Invalid floating-point operation. */
    HSA_DBG_TRAP_MASK_FP_INVALID = 1,
    /* Denormal floating-point operand. */
    HSA_DBG_TRAP_MASK_FP_INPUT_DENOMAL = 2,
    /* Floating-point division by zero. */
    HSA_DBG_TRAP_MASK_FP_DIVIDE_BY_ZERO = 4,
    /* Floating-point overflow. */
    HSA_DBG_TRAP_MASK_FP_OVERFLOW = 8,
    /* Floating-point underflow. */
    HSA_DBG_TRAP_MASK_FP_UNDERFLOW = 0x10,
    /* Inexact floating-point result. */
    HSA_DBG_TRAP_MASK_FP_INEXACT = 0x20,
    /* Integer division by zero. */
    HSA_DBG_TRAP_MASK_INT_DIVIDE_BY_ZERO = 0x40,
    /* Watch point. */
    HSA_DBG_TRAP_MASK_DBG_ADDRESS_WATCH = 0x80,
    /* Memory violation. */
    HSA_DBG_TRAP_MASK_DBG_MEMORY_VIOLATION = 0x100
} HSA_DBG_TRAP_MASK;

/* How waves start. */
typedef enum _HSA_DBG_WAVE_LAUNCH_MODE {
    /* Running. */
    HSA_DBG_WAVE_LAUNCH_MODE_NORMAL = 0,
    /* Halted. */
    HSA_DBG_WAVE_LAUNCH_MODE_HALT = 1,
    /* Ended at once. */
    HSA_DBG_WAVE_LAUNCH_MODE_KILL = 2,
    /* One instruction at a time. */
    HSA_DBG_WAVE_LAUNCH_MODE_SINGLE_STEP = 3,
    /* Not at all. */
    HSA_DBG_WAVE_LAUNCH_MODE_DISABLE = 4,
    /* Number of modes. */
    HSA_DBG_WAVE_LAUNCH_MODE_NUM = 5
} HSA_DBG_WAVE_LAUNCH_MODE;

/* Bits for the debugging of a node. */
typedef enum {
    /* Highest bit number. */
    HSA_DBG_NODE_CONTROL_FLAG_MAX = 1
} HSA_DBG_NODE_CONTROL;

/* What a debug event of a queue is. */
typedef enum _HSA_DEBUG_EVENT_TYPE {
    /* Nothing. */
    HSA_DEBUG_EVENT_TYPE_NONE = 0,
    /* A trap. */
    HSA_DEBUG_EVENT_TYPE_TRAP = 1,
    /* A memory fault. */
    HSA_DEBUG_EVENT_TYPE_VMFAULT = 2,
    /* Both. */
    HSA_DEBUG_EVENT_TYPE_TRAP_VMFAULT = 3
} HSA_DEBUG_EVENT_TYPE;

#if HSAKMT_ABI_GENERATION >= 2025
/* Exceptions that a debugger sees (linux/kfd_ioctl.h, kfd_dbg_trap_exception_code). */
typedef enum _HSA_DBG_TRAP_EXCEPTION_CODE {
    /* None. */
    HSA_DBG_EC_NONE = 0,
    /* A wave aborted. */
    HSA_DBG_EC_QUEUE_WAVE_ABORT = 1,
    /* A wave trapped. */
    HSA_DBG_EC_QUEUE_WAVE_TRAP = 2,
    /* A wave had an arithmetic exception. */
    HSA_DBG_EC_QUEUE_WAVE_MATH_ERROR = 3,
    /* A wave met an illegal instruction. */
    HSA_DBG_EC_QUEUE_WAVE_ILLEGAL_INSTRUCTION = 4,
    /* A wave accessed memory that it may not. */
    HSA_DBG_EC_QUEUE_WAVE_MEMORY_VIOLATION = 5,
    /* A wave left an aperture. */
    HSA_DBG_EC_QUEUE_WAVE_APERTURE_VIOLATION = 6,
    /* A dispatch packet has wrong dimensions. */
    HSA_DBG_EC_QUEUE_PACKET_DISPATCH_DIM_INVALID = 16,
    /* A dispatch packet asks for too much group memory. */
    HSA_DBG_EC_QUEUE_PACKET_DISPATCH_GROUP_SEGMENT_SIZE_INVALID = 17,
    /* A dispatch packet names no code. */
    HSA_DBG_EC_QUEUE_PACKET_DISPATCH_CODE_INVALID = 18,
    /* A packet sets reserved bits. */
    HSA_DBG_EC_QUEUE_PACKET_RESERVED = 19,
    /* A packet is not supported. */
    HSA_DBG_EC_QUEUE_PACKET_UNSUPPORTED = 20,
    /* A dispatch packet has too large a work group. */
    HSA_DBG_EC_QUEUE_PACKET_DISPATCH_WORK_GROUP_SIZE_INVALID = 21,
    /* A dispatch packet asks for too many registers. */
    HSA_DBG_EC_QUEUE_PACKET_DISPATCH_REGISTER_INVALID = 22,
    /* A vendor packet is not supported. */
    HSA_DBG_EC_QUEUE_PACKET_VENDOR_UNSUPPORTED = 23,
    /* A queue could not be preempted. */
    HSA_DBG_EC_QUEUE_PREEMPTION_ERROR = 30,
    /* A queue is new. */
    HSA_DBG_EC_QUEUE_NEW = 31,
    /* A queue went. */
    HSA_DBG_EC_DEVICE_QUEUE_DELETE = 32,
    /* A device accessed memory that it may not. */
    HSA_DBG_EC_DEVICE_MEMORY_VIOLATION = 33,
    /* A device has an error that it cannot correct. */
    HSA_DBG_EC_DEVICE_RAS_ERROR = 34,
    /* A device stopped for good. */
    HSA_DBG_EC_DEVICE_FATAL_HALT = 35,
    /* A device is new. */
    HSA_DBG_EC_DEVICE_NEW = 36,
    /* The runtime of the process started or ended. */
    HSA_DBG_EC_PROCESS_RUNTIME = 48,
    /* A device was removed. */
    HSA_DBG_EC_PROCESS_DEVICE_REMOVE = 49,
    /* One above the last code. */
    HSA_DBG_EC_MAX = 50
} HSA_DBG_TRAP_EXCEPTION_CODE;
#endif

/* A message to a wave, as GPUs of the second generation take it. */
typedef struct _HsaDbgWaveMsgAMDGen2 {
    /* The message. */
    HSAuint32 Value;
    /* Zero. */
    HSAuint32 Reserved2;
} HsaDbgWaveMsgAMDGen2;

/* A message to a wave, by the generation of the GPU. */
typedef union _HsaDbgWaveMessageAMD {
    /* The only form. */
    HsaDbgWaveMsgAMDGen2 WaveMsgInfoGen2;
} HsaDbgWaveMessageAMD;

/* A message to a wave, and the memory that goes with it. */
typedef struct _HsaDbgWaveMessage {
    /* Memory that the message refers to. */
    void *MemoryVA;
    /* The message. */
    HsaDbgWaveMessageAMD DbgWaveMsg;
} HsaDbgWaveMessage;

/* ---------------------------------------------------------------------------------------------- */
/* Performance counters and PC sampling                                                           */
/* ---------------------------------------------------------------------------------------------- */

/* A universally unique identifier: words in the byte order of the processor, then bytes. */
typedef struct _HSA_UUID {
    /* Bytes 0 to 3. */
    HSAuint32 Data1;
    /* Bytes 4 and 5. */
    HSAuint16 Data2;
    /* Bytes 6 and 7. */
    HSAuint16 Data3;
    /* Bytes 8 to 15. */
    HSAuint8 Data4[8];
} HSA_UUID;

/* Defines an identifier from its words and bytes. */
#define HSA_DEFINE_UUID(name, dw, w1, w2, b1, b2, b3, b4, b5, b6, b7, b8)                          \
    static const HSA_UUID name = {dw, w1, w2, {b1, b2, b3, b4, b5, b6, b7, b8}}

/* Colour block. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_CB,
                0x9BA429C6, 0xAF2D, 0x4B38, 0xB3, 0x49, 0x15, 0x72, 0x71, 0xBE, 0xAC, 0x6A);
/* Command processor, fetcher. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_CPF,
                0x2B0AD2B5, 0x1C43, 0x4F46, 0xA7, 0xBC, 0xE1, 0x19, 0x41, 0x1E, 0xA6, 0xC9);
/* Command processor, graphics. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_CPG,
                0x590EC94D, 0x20F0, 0x448F, 0x8D, 0xFF, 0x31, 0x6C, 0x67, 0x9D, 0xE7, 0xFF);
/* Depth block. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_DB,
                0x3D1A47FC, 0x0013, 0x4ED4, 0x83, 0x06, 0x82, 0x2C, 0xA0, 0xB7, 0xA6, 0xC2);
/* Global data share. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_GDS,
                0xF59276EC, 0x2526, 0x4BF8, 0x8E, 0xC0, 0x11, 0x8F, 0x77, 0x70, 0x0D, 0xC9);
/* Register bus manager, graphics. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_GRBM,
                0x8F00933C, 0xC33D, 0x4801, 0x97, 0xB7, 0x70, 0x07, 0xF7, 0x85, 0x73, 0xAD);
/* Register bus manager, per shader engine. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_GRBMSE,
                0x34EBD8D7, 0x7C8B, 0x4D15, 0x88, 0xFA, 0x0E, 0x4E, 0x4A, 0xF5, 0x9A, 0xC1);
/* Input assembly. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_IA,
                0x34276944, 0x4264, 0x4FCD, 0x9D, 0x6E, 0xAE, 0x26, 0x45, 0x82, 0xEC, 0x51);
/* Memory controller. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_MC,
                0x13900B57, 0x4956, 0x4D98, 0x81, 0xD0, 0x68, 0x52, 0x19, 0x37, 0xF5, 0x9C);
/* Primitive assembly, scan converter. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_PASC,
                0xB0E7FB5D, 0x0EFC, 0x4744, 0xB5, 0x16, 0x5D, 0x23, 0xDC, 0x1F, 0xD5, 0x6C);
/* Primitive assembly, setup unit. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_PASU,
                0x9A152B6A, 0x1FAD, 0x45F2, 0xA5, 0xBF, 0xF1, 0x63, 0x82, 0x6B, 0xD0, 0xCD);
/* Shader processor input. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_SPI,
                0xEDA81044, 0xD62C, 0x47EB, 0xAF, 0x89, 0x4F, 0x6F, 0xBF, 0x3B, 0x38, 0xE0);
/* Register bus manager, system. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_SRBM,
                0x9F8040E0, 0x6830, 0x4019, 0xAC, 0xC8, 0x46, 0x3C, 0x9E, 0x44, 0x5B, 0x89);
/* Sequencer. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_SQ,
                0xB5C396B6, 0xD310, 0x47E4, 0x86, 0xFC, 0x5C, 0xC3, 0x04, 0x3A, 0xF5, 0x08);
/* Shader export. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_SX,
                0xBDB8D737, 0x43CC, 0x4162, 0xBE, 0x52, 0x51, 0xCF, 0xB8, 0x47, 0xBE, 0xAF);
/* Texture addressing. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TA,
                0xC01EE43D, 0xAD92, 0x44B1, 0x8A, 0xB9, 0xBE, 0x5E, 0x69, 0x6C, 0xEE, 0xA7);
/* Texture cache arbiter. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TCA,
                0x333E393F, 0xE147, 0x4F49, 0xA6, 0xD1, 0x60, 0x91, 0x4C, 0x70, 0x86, 0xB0);
/* Texture cache, second level. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TCC,
                0x848CE855, 0xD805, 0x4566, 0xA8, 0xAB, 0x73, 0xE8, 0x84, 0xCC, 0x6B, 0xFF);
/* Texture cache, first level. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TCP,
                0xE10A013B, 0x17D4, 0x4BF5, 0xB0, 0x89, 0x42, 0x95, 0x91, 0x05, 0x9B, 0x60);
/* Texture cache, scalar. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TCS,
                0x4126245C, 0x4D96, 0x4D1A, 0x8A, 0xED, 0xA9, 0x39, 0xD4, 0xCC, 0x8E, 0xC9);
/* Texture data. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_TD,
                0x7D7C0FE4, 0xFE41, 0x4FEA, 0x92, 0xC9, 0x45, 0x44, 0xD7, 0x70, 0x6D, 0xC6);
/* Vertex grouper and tessellator. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_VGT,
                0x0B6A8CB7, 0x7A01, 0x409F, 0xA2, 0x2C, 0x30, 0x14, 0x85, 0x4F, 0x13, 0x59);
/* Work distributor. */
HSA_DEFINE_UUID(HSA_PROFILEBLOCK_AMD_WD,
                0x0E176789, 0x46ED, 0x4B02, 0x97, 0x2A, 0x91, 0x6D, 0x2F, 0xAC, 0x24, 0x4A);

/* Who may read a counter, and how. */
__extension__ typedef enum _HSA_PROFILE_TYPE {
    /* The kernel, one value at a time. */
    HSA_PROFILE_TYPE_PRIVILEGED_IMMEDIATE = 0,
    /* The kernel, as a stream. */
    HSA_PROFILE_TYPE_PRIVILEGED_STREAMING = 1,
    /* Everybody, one value at a time. */
    HSA_PROFILE_TYPE_NONPRIV_IMMEDIATE = 2,
    /* Everybody, as a stream. */
    HSA_PROFILE_TYPE_NONPRIV_STREAMING = 3,
    /* Number of kinds. */
    HSA_PROFILE_TYPE_NUM = 4,
    /* Makes the type 32 bits wide. */
    HSA_PROFILE_TYPE_SIZE = 0xFFFFFFFF
} HSA_PROFILE_TYPE;

/* Properties of a counter. */
typedef struct _HsaCounterFlags {
    union {
        struct {
            /* Counts for all processes. */
            unsigned int Global : 1;
            /* Can be set to zero. */
            unsigned int Resettable : 1;
            /* Cannot be written. */
            unsigned int ReadOnly : 1;
            /* Can be streamed. */
            unsigned int Stream : 1;
            unsigned int Reserved : 28;
        } ui32;
        HSAuint32 Value;
    };
} HsaCounterFlags;

/* A counter of a block. */
typedef struct _HsaCounter {
    /* Who may read it, and how. */
    HSA_PROFILE_TYPE Type;
    /* Number of the counter within its block. */
    HSAuint64 CounterId;
    /* Width of its value in bits. */
    HSAuint32 CounterSizeInBits;
    /* Bits of its value that count. */
    HSAuint64 CounterMask;
    /* Properties. */
    HsaCounterFlags Flags;
    /* Number of its block. */
    HSAuint32 BlockIndex;
} HsaCounter;

/* A block of counters. NumCounters counters follow; the array of one is only the first. */
typedef struct _HsaCounterBlockProperties {
    /* Which block, an HSA_PROFILEBLOCK_AMD_ identifier. */
    HSA_UUID BlockId;
    /* Counters of the block. */
    HSAuint32 NumCounters;
    /* Counters that can count at the same time. */
    HSAuint32 NumConcurrent;
    /* The counters. */
    HsaCounter Counters[1];
} HsaCounterBlockProperties;

/* All blocks of a node. NumBlocks blocks of different sizes follow; the array of one is only the
   first. */
typedef struct _HsaCounterProperties {
    /* Blocks of the node. */
    HSAuint32 NumBlocks;
    /* Blocks that can count at the same time. */
    HSAuint32 NumConcurrent;
    /* The blocks. */
    HsaCounterBlockProperties Blocks[1];
} HsaCounterProperties;

/* A registered trace. */
typedef struct _HsaPmcTraceRoot {
    /* Least size of a trace buffer in bytes. */
    HSAuint64 TraceBufferMinSizeBytes;
    /* Runs that the counters need. */
    HSAuint32 NumberOfPasses;
    /* The trace. */
    HSATraceId TraceId;
} HsaPmcTraceRoot;

#if HSAKMT_ABI_GENERATION >= 2025
/* What makes a sample. */
typedef enum _HSA_PC_SAMPLING_METHOD_KIND {
    /* The host interrupts the waves. */
    HSA_PC_SAMPLING_METHOD_KIND_HOSTTRAP_V1 = 1,
    /* The device samples by itself. */
    HSA_PC_SAMPLING_METHOD_KIND_STOCHASTIC_V1 = 2
} HSA_PC_SAMPLING_METHOD_KIND;

/* Unit of a sampling interval. */
typedef enum _HSA_PC_SAMPLING_UNITS {
    /* Microseconds. */
    HSA_PC_SAMPLING_UNIT_INTERVAL_MICROSECONDS = 0,
    /* Clock cycles. */
    HSA_PC_SAMPLING_UNIT_INTERVAL_CYCLES = 1,
    /* Instructions. */
    HSA_PC_SAMPLING_UNIT_INTERVAL_INSTRUCTIONS = 2
} HSA_PC_SAMPLING_UNIT_INTERVAL;

/* A way of sampling: what a node offers, or what a caller wants. */
typedef struct _HsaPcSamplingInfo {
    /* Interval. */
    HSAuint64 value;
    /* Least interval. */
    HSAuint64 value_min;
    /* Greatest interval. */
    HSAuint64 value_max;
    /* Bit 0: the interval must be a power of two. */
    HSAuint64 flags;
    /* What makes a sample. */
    HSA_PC_SAMPLING_METHOD_KIND method;
    /* Unit of the three intervals. */
    HSA_PC_SAMPLING_UNIT_INTERVAL units;
} HsaPcSamplingInfo;
#endif

/* ---------------------------------------------------------------------------------------------- */
/* System management events                                                                       */
/* ---------------------------------------------------------------------------------------------- */

#if HSAKMT_ABI_GENERATION >= 2025
/* Longest text of one event, with the zero that ends it. */
#define HSA_SMI_EVENT_MSG_SIZE 96

/* The bit that a reader of system management events sets for an HSA_EVENT_TYPE. */
#define HSA_SMI_EVENT_MASK_FROM_INDEX(i) (1ULL << ((i) - 1))

/* What an event is; a reader enables number n with bit n - 1. */
typedef enum _HSA_SMI_EVENT {
    /* None. */
    HSA_SMI_EVENT_NONE = 0,
    /* Memory fault. */
    HSA_SMI_EVENT_VMFAULT = 1,
    /* The clock is held back because of heat. */
    HSA_SMI_EVENT_THERMAL_THROTTLE = 2,
    /* A reset begins. */
    HSA_SMI_EVENT_GPU_PRE_RESET = 3,
    /* A reset is over. */
    HSA_SMI_EVENT_GPU_POST_RESET = 4,
    /* A range begins to move. */
    HSA_SMI_EVENT_MIGRATE_START = 5,
    /* A range has moved. */
    HSA_SMI_EVENT_MIGRATE_END = 6,
    /* A page fault is being handled. */
    HSA_SMI_EVENT_PAGE_FAULT_START = 7,
    /* A page fault was handled. */
    HSA_SMI_EVENT_PAGE_FAULT_END = 8,
    /* The queues of a process stop. */
    HSA_SMI_EVENT_QUEUE_EVICTION = 9,
    /* The queues of a process run again. */
    HSA_SMI_EVENT_QUEUE_RESTORE = 10,
    /* A range was unmapped from a device. */
    HSA_SMI_EVENT_UNMAP_FROM_GPU = 11,
    /* One above the last kind. */
    HSA_SMI_EVENT_INDEX_MAX = 12,
    /* Events of all processes, where the reader may have them. */
    HSA_SMI_EVENT_ALL_PROCESS = 64
} HSA_EVENT_TYPE;

/* Why a range moved. */
typedef enum _HSA_MIGRATE_TRIGGERS {
    /* A prefetch was asked for. */
    HSA_MIGRATE_TRIGGER_PREFETCH = 0,
    /* A device faulted. */
    HSA_MIGRATE_TRIGGER_PAGEFAULT_GPU = 1,
    /* The host faulted. */
    HSA_MIGRATE_TRIGGER_PAGEFAULT_CPU = 2,
    /* Device memory ran short. */
    HSA_MIGRATE_TRIGGER_TTM_EVICTION = 3
} HSA_MIGRATE_TRIGGERS;

/* Why queues stopped. */
typedef enum _HSA_QUEUE_EVICTION_TRIGGERS {
    /* An attributed range changed. */
    HSA_QUEUE_EVICTION_TRIGGER_SVM = 0,
    /* Registered host memory changed. */
    HSA_QUEUE_EVICTION_TRIGGER_USERPTR = 1,
    /* Device memory ran short. */
    HSA_QUEUE_EVICTION_TRIGGER_TTM = 2,
    /* The system suspends. */
    HSA_QUEUE_EVICTION_TRIGGER_SUSPEND = 3,
    /* A checkpoint is taken. */
    HSA_QUEUE_EVICTION_CRIU_CHECKPOINT = 4,
    /* A checkpoint is restored. */
    HSA_QUEUE_EVICTION_CRIU_RESTORE = 5
} HSA_QUEUE_EVICTION_TRIGGERS;

/* Why a range was unmapped from a device. */
typedef enum _HSA_SVM_UNMAP_TRIGGERS {
    /* The host's page table changed. */
    HSA_SVM_UNMAP_TRIGGER_MMU_NOTIFY = 0,
    /* A page of the host moved. */
    HSA_SVM_UNMAP_TRIGGER_MMU_NOTIFY_MIGRATE = 1,
    /* The host unmapped it. */
    HSA_SVM_UNMAP_TRIGGER_UNMAP_FROM_CPU = 2
} HSA_SVM_UNMAP_TRIGGERS;
#endif

#pragma pack(pop)

#ifdef __cplusplus
}
#endif

#endif
