/* SPDX-License-Identifier: MIT */
/*
 * What this library adds to the HSA kernel-mode thunk interface.
 *
 * The names begin with hsaKmtExt, HsaExt or HSA_EXT. A structure that grows begins with its size: a
 * caller sets it to sizeof, and nothing beyond it is written. But for sharing, copies and events,
 * these functions need no open library, and may be called at any time by any thread, from a
 * callback too.
 */
#ifndef HSAKMT_EXT_H
#define HSAKMT_EXT_H

#include "hsakmt.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Failures                                                                                       */
/* ---------------------------------------------------------------------------------------------- */

/* Characters of the names in HsaExtErrorDetail, with the zero that ends them. */
#define HSA_EXT_OPERATION_NAME_SIZE 48
#define HSA_EXT_OBJECT_NAME_SIZE 96

/* A failed call, as precisely as the library knows it. */
typedef struct _HsaExtErrorDetail {
    /* In: sizeof(HsaExtErrorDetail). */
    HSAuint32 Size;
    /* What the call returned. */
    HSAKMT_STATUS Status;
    /* The errno of the kernel; 0 if no system call failed. */
    HSAint32 Errno;
    /* Number of the operation that failed. */
    HSAuint32 Operation;
    /* Address, handle or number of the object; 0 without. */
    HSAuint64 Object;
    /* What can be done about it; NULL without. Lives as long as the process. */
    const char *Advice;
    /* Name of the operation; empty without. */
    char OperationName[HSA_EXT_OPERATION_NAME_SIZE];
    /* Path or name of the object, cut to fit; empty without. */
    char ObjectName[HSA_EXT_OBJECT_NAME_SIZE];
    /* Number of this failure since the process started. */
    HSAuint64 Sequence;
} HsaExtErrorDetail;

/* Tells the newest failure of the calling thread on the primary context or on none, or the Status
   HSAKMT_STATUS_SUCCESS if it has none. HSAKMT_STATUS_INVALID_PARAMETER if Detail is NULL or its size is below 4. The library
   remembers the last failures of all threads together, so an old one may be gone. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtGetLastError(HsaExtErrorDetail *Detail);

#if HSAKMT_ABI_GENERATION >= 2026
/* Tells the newest failure of the calling thread on one context.
   HSAKMT_STATUS_INVALID_PARAMETER also if ctx is NULL. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtGetLastErrorCtx(HsaKFDContext *ctx, HsaExtErrorDetail *Detail);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Sharing                                                                                        */
/* ---------------------------------------------------------------------------------------------- */

/* What the driver says of a dma-buf. */
typedef struct _HsaExtDmaBufInfo {
    /* In: sizeof(HsaExtDmaBufInfo). */
    HSAuint32 Size;
    /* The node of the GPU whose memory it is, or through which the driver has it; 0xffffffff for a
       GPU that is not in use. */
    HSAuint32 NodeId;
    /* Size of the buffer in bytes. */
    HSAuint64 SizeInBytes;
    /* The kernel's id of that GPU. */
    HSAuint32 GpuId;
    /* 1 for memory of the GPU, 0 for system memory. */
    HSAuint32 IsDeviceMemory;
} HsaExtDmaBufInfo;

/* Tells what a dma-buf is; its descriptor stays the caller's. The reference has a function for it,
   hsaKmtQueryDmaBufInfo, which no library exports and no header declares. NOT_SUPPORTED for what is
   no dma-buf of a GPU driver. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtQueryDmaBufInfo(int DmaBufFd, HsaExtDmaBufInfo *Info);

#if HSAKMT_ABI_GENERATION >= 2026
/* The same on one context. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtQueryDmaBufInfoCtx(HsaKFDContext *ctx, int DmaBufFd,
                                                    HsaExtDmaBufInfo *Info);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Copies                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* Who copies memory. */
typedef enum _HsaExtCopyPath {
    /* Whoever can, the CPU first. */
    HSA_EXT_COPY_BY_ANY = 0,
    /* The calling thread. */
    HSA_EXT_COPY_BY_CPU = 1,
    /* An engine of a GPU. */
    HSA_EXT_COPY_BY_ENGINE = 2
} HsaExtCopyPath;

/* How memory is to be copied. */
typedef struct _HsaExtCopyOptions {
    /* In: sizeof(HsaExtCopyOptions). */
    HSAuint32 Size;
    /* In: an HsaExtCopyPath. */
    HSAuint32 Path;
    /* Out, if the call succeeds: who copied. */
    HSAuint32 PathTaken;
    /* Zero. */
    HSAuint32 Reserved;
} HsaExtCopyOptions;

/* Copies bytes between memory of the process and memory that the library allocated, registered or
   took in, at any addresses; the ranges may overlap. Each lies within one allocation, or within
   memory of the process alone. When the call returns, what is started on a GPU sees the copy, and
   a copy out of video memory has what GPUs wrote before the call. Options may be NULL.
   INVALID_PARAMETER for a range that leaves its allocation or that is addresses without memory,
   NOT_SUPPORTED for memory that the path does not reach: the CPU reaches video memory with
   HostAccess, an engine what is mapped on one of the GPUs; where no GPU has both ranges, they are
   copied by way of system memory. Nothing is copied then. UNAVAILABLE if a GPU is reset
   meanwhile, ERROR if an engine stands still. As with memmove the caller keeps both ranges allocated until
   the call returns. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtCopyMemory(void *Destination, const void *Source,
                                            HSAuint64 SizeInBytes, HsaExtCopyOptions *Options);

#if HSAKMT_ABI_GENERATION >= 2026
/* The same on one context. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtCopyMemoryCtx(HsaKFDContext *ctx, void *Destination,
                                               const void *Source, HSAuint64 SizeInBytes,
                                               HsaExtCopyOptions *Options);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Devices                                                                                        */
/* ---------------------------------------------------------------------------------------------- */

#if HSAKMT_ABI_GENERATION >= 2026
/* Tells the device of a GPU node of the primary context for hsaKmtHandleImport,
   hsaKmtHandleExport and hsaKmtMemoryGetCpuAddr, also where the process has no libdrm_amdgpu. It is
   a number of this library's, and no device of libdrm_amdgpu. It holds for as long as the process.
   INVALID_NODE_UNIT for a CPU node. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtGetDeviceHandle(HSAuint32 NodeId,
                                                 HsaAMDGPUDeviceHandle *DeviceHandle);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Events                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

/* How many events of kinds SIGNAL and DEBUG_EVENT there are, and how many there can be: 4095, or 255
   with an old kernel; 0 before the first. Either may be NULL. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtGetEventUse(HSAuint32 *InUse, HSAuint32 *Limit);

/* Runs on the thread that pumps. It may call any function of this interface; the event may be
   destroyed by then if another thread destroys events while this one pumps. */
typedef void (*HsaExtEventCallback)(void *User, HsaEvent *Event);

/* Gives an event of kind SIGNAL, MEMORY or HW_EXCEPTION a callback, in place of the one that it has;
   NULL takes it away. It counts from the next hsaKmtExtPumpEvents. Whatever else waits for an event
   with a callback takes turns from it. INVALID_HANDLE if Event is NULL or of another context,
   NOT_SUPPORTED before KFD 1.14. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtSetEventCallback(HsaEvent *Event, HsaExtEventCallback Callback,
                                                  void *User);

/* Waits until an event with a callback is set, and runs the callbacks that are due: one that resets
   itself once for each time that it was seen set (also before it had the callback), one that does
   not in each pump until it is reset. Of several threads that pump, one runs a callback.
   *CallbacksRun, if not NULL, is how many ran. WAIT_TIMEOUT if none, at once where no event has a
   callback. HSA_EVENTTIMEOUT_INFINITE waits for ever. The library must be open. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtPumpEvents(HSAuint32 Milliseconds, HSAuint32 *CallbacksRun);

#if HSAKMT_ABI_GENERATION >= 2026
/* The same on one context. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtGetEventUseCtx(HsaKFDContext *ctx, HSAuint32 *InUse,
                                                HSAuint32 *Limit);
HSAKMT_STATUS HSAKMTAPI hsaKmtExtSetEventCallbackCtx(HsaKFDContext *ctx, HsaEvent *Event,
                                                     HsaExtEventCallback Callback, void *User);
HSAKMT_STATUS HSAKMTAPI hsaKmtExtPumpEventsCtx(HsaKFDContext *ctx, HSAuint32 Milliseconds,
                                               HSAuint32 *CallbacksRun);
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Log                                                                                            */
/* ---------------------------------------------------------------------------------------------- */

/* Importance of a message; the numbers are those of the environment variable HSAKMT_DEBUG_LEVEL. */
typedef enum _HsaExtLogLevel {
    /* Something failed. */
    HSA_EXT_LOG_ERROR = 3,
    /* Something is odd. */
    HSA_EXT_LOG_WARNING = 4,
    /* Something of interest happened. */
    HSA_EXT_LOG_INFO = 6,
    /* Everything else. */
    HSA_EXT_LOG_DEBUG = 7
} HsaExtLogLevel;

/* Receives a message, one line without its end, that lives during the call. Any thread that is in
   the library may call it, also two at the same time. */
typedef void (*HsaExtLogSink)(void *User, HSAuint32 Level, const char *Message);

/* Sends messages up to a level to Sink with User, in place of standard error; NULL takes it back.
   A call of the former sink may still be under way when this returns. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtSetLogSink(HsaExtLogSink Sink, void *User, HSAuint32 Level);

/* ---------------------------------------------------------------------------------------------- */
/* Trace of calls                                                                                 */
/* ---------------------------------------------------------------------------------------------- */

/* A finished call of a function of this interface. */
typedef struct _HsaExtTraceRecord {
    /* Size of the structure as the library has it, at least that of the caller's header. */
    HSAuint32 Size;
    /* Entries in Arguments. */
    HSAuint32 ArgumentCount;
    /* Name of the function. Lives as long as the process. */
    const char *Function;
    /* The arguments in order, each widened to 64 bits. Lives during the call of the sink. */
    const HSAuint64 *Arguments;
    /* What the function returned. */
    HSAKMT_STATUS Status;
    /* Zero. */
    HSAuint32 Reserved;
    /* How long the function took, in ns. */
    HSAuint64 DurationNs;
} HsaExtTraceRecord;

/* Receives a record that lives during the call. The thread of the traced call calls it. */
typedef void (*HsaExtTraceSink)(void *User, const HsaExtTraceRecord *Record);

/* Sends a record of each finished call to Sink with User; NULL ends it.
   A call of the former sink may still be under way when this returns. */
HSAKMT_STATUS HSAKMTAPI hsaKmtExtSetTraceSink(HsaExtTraceSink Sink, void *User);

#ifdef __cplusplus
}
#endif

#endif
