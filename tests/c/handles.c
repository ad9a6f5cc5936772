/* SPDX-License-Identifier: MIT */
/*
 * Buffer objects by handle: imports, mappings at addresses of the program's choice, tags, contents,
 * exports; wrong arguments; few descriptors.
 *
 * Runs where /dev/kfd opens. On the simulated machine descriptors are the machine's own, which no
 * system call knows, so nothing closes them there; mappings that a driver refuses are tried there
 * alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

#if HSAKMT_ABI_GENERATION >= 2026
#define SIZE ((HSAuint64)65536)
#define PAGE ((HSAuint64)4096)
#define SOME_TAG 7

static int simulated;
static HSAuint32 gpu, kfd_minor;
static int has_gpu;
static HsaAMDGPUDeviceHandle device;

static int start(void)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaVersionInfo version;

    if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS ||
        hsaKmtGetVersion(&version) != HSAKMT_STATUS_SUCCESS ||
        hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS)
        return -1;
    kfd_minor = version.KernelInterfaceMinorVersion;
    for (gpu = 0; gpu < system.NumNodes; gpu++) {
        if (hsaKmtGetNodeProperties(gpu, &node) != HSAKMT_STATUS_SUCCESS)
            return -1;
        /* Memory of an APU alone is the process's own, and nothing to share. */
        if (node.NumFComputeCores > 0 && node.NumCPUCores == 0) {
            has_gpu = 1;
            return 0;
        }
    }
    return 0;
}

static void *allocate(int only_address)
{
    HsaMemFlags flags;
    void *address = NULL;

    flags.Value = 0;
    if (only_address) {
        flags.ui32.OnlyAddress = 1;
    } else {
        flags.ui32.NonPaged = 1;
        flags.ui32.HostAccess = 1;
        flags.ui32.CoarseGrain = 1;
    }
    if (hsaKmtAllocMemory(gpu, SIZE, flags, &address) != HSAKMT_STATUS_SUCCESS)
        return NULL;
    return address;
}

static void release(void *address)
{
    expect_equal(hsaKmtFreeMemory(address, SIZE), HSAKMT_STATUS_SUCCESS, "free");
}

static void close_descriptor(int fd)
{
    if (!simulated)
        close(fd);
}

static int export_address(void *address)
{
    HSAuint64 offset = 1;
    int fd = -1;

    if (hsaKmtExportDMABufHandle(address, SIZE, &fd, &offset) != HSAKMT_STATUS_SUCCESS)
        return -1;
    return offset == 0 ? fd : -1;
}

static HSAKMT_STATUS import(int fd, unsigned int flags, HSAuint32 tag,
                            HsaHandleImportResult *result)
{
    HsaHandleImportDesc wanted;
    HsaHandleImportFlags how;

    memset(&wanted, 0, sizeof(wanted));
    memset(&how, 0, sizeof(how));
    memset(result, 0x55, sizeof(*result));
    wanted.device_handle = device;
    wanted.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    wanted.dmabuf_fd = fd;
    wanted.metadata = tag;
    how.ui32.IPCHandle = flags & 1;
    how.ui32.SysMem = flags >> 1 & 1;
    how.ui32.UpdateMetadata = flags >> 2 & 1;
    return hsaKmtHandleImport(&wanted, result, &how);
}

static HSAKMT_STATUS export_handle(HsaMemoryObjectHandle handle, int *fd)
{
    HsaHandleExportDesc wanted;
    HsaMemoryExportResult result;
    HsaHandleExportFlags how;
    HSAKMT_STATUS status;

    memset(&wanted, 0, sizeof(wanted));
    memset(&result, 0, sizeof(result));
    memset(&how, 0, sizeof(how));
    wanted.device_handle = device;
    wanted.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    wanted.buf_handle = handle;
    wanted.size = SIZE;
    status = hsaKmtHandleExport(&wanted, &result, &how);
    *fd = result.dmabuf_fd;
    return status;
}

static HSAKMT_STATUS map(HsaMemoryObjectHandle handle, const void *address)
{
    return hsaKmtMemoryVaMap(handle, 0, SIZE, (HSAuint64)(size_t)address, HSA_MEMORY_ACCESS_RW,
                             gpu);
}

static HSAKMT_STATUS unmap(HsaMemoryObjectHandle handle, const void *address)
{
    return hsaKmtMemoryVaUnmap(handle, 0, SIZE, (HSAuint64)(size_t)address, gpu);
}

static void shows_and_maps(void)
{
    HsaHandleImportResult object, again;
    char *memory = (char *)allocate(0), *place = (char *)allocate(1);
    void *shown = NULL, *same = NULL;
    HSAuint64 offset = 0;
    int fd;

    expect(memory != NULL && place != NULL, "memory and addresses");
    memory[5000] = 42;
    fd = export_address(memory);
    expect(fd >= 0, "export");
    expect_equal(import(fd, 0, 0, &object), HSAKMT_STATUS_SUCCESS, "import");
    close_descriptor(fd);
    expect(object.buf_handle != NULL, "a handle");
    expect_equal(object.alloc_size, SIZE, "of the whole size");
    expect_equal((HSAuint64)object.dmabuf_fd, (HSAuint64)-1, "no descriptor");
    expect_equal(object.metadata, 0, "no tag");
    expect_equal(map(object.buf_handle, place), HSAKMT_STATUS_SUCCESS, "map");
    if (simulated)
        expect_equal(map(object.buf_handle, place), HSAKMT_STATUS_ERROR, "something is there");
    expect_equal(unmap(object.buf_handle, place), HSAKMT_STATUS_SUCCESS, "unmap");
    if (simulated)
        expect_equal(unmap(object.buf_handle, place), HSAKMT_STATUS_ERROR, "nothing is there");
    expect_equal(hsaKmtMemoryVaMap(object.buf_handle, PAGE, PAGE, (HSAuint64)(size_t)place,
                                   HSA_MEMORY_ACCESS_RO, gpu),
                 HSAKMT_STATUS_SUCCESS, "map a part");
    expect_equal(hsaKmtMemoryCpuMap(object.buf_handle, &shown), HSAKMT_STATUS_SUCCESS, "show");
    expect_equal(hsaKmtMemoryCpuMap(object.buf_handle, &same), HSAKMT_STATUS_SUCCESS, "again");
    expect(shown != NULL && shown == same, "at one place");
    expect_equal((HSAuint64)((volatile char *)shown)[5000], 42, "what was written before");
    ((volatile char *)shown)[6000] = 43;
    expect_equal((HSAuint64)((volatile char *)memory)[6000], 43, "what was written there");
    expect_equal(hsaKmtMemoryGetCpuAddr(device, object.buf_handle, &offset), HSAKMT_STATUS_SUCCESS,
                 "where in the file");
    expect(offset != 0, "not at its start");
    release(memory);
    expect_equal((HSAuint64)((volatile char *)shown)[6000], 43, "the memory lives on");
    expect_equal(export_handle(object.buf_handle, &fd), HSAKMT_STATUS_SUCCESS, "export the handle");
    expect_equal(import(fd, 0, 0, &again), HSAKMT_STATUS_SUCCESS, "import it");
    close_descriptor(fd);
    expect(again.buf_handle == object.buf_handle, "it is the same one");
    expect_equal(hsaKmtMemHandleFree(again.buf_handle), HSAKMT_STATUS_SUCCESS, "free once");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_SUCCESS, "and again");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_INVALID_HANDLE,
                 "it is gone");
    expect_equal(map(object.buf_handle, place), HSAKMT_STATUS_INVALID_HANDLE, "here too");
    release(place);
}

static void has_a_tag(void)
{
    HsaHandleImportResult object;
    void *memory = allocate(0);
    int fd = export_address(memory);

    expect_equal(import(fd, 1, SOME_TAG, &object), HSAKMT_STATUS_INVALID_PARAMETER,
                 "another tag than none");
    expect_equal(object.metadata, 0, "which is told");
    expect(object.buf_handle == NULL, "nothing is imported");
    expect_equal(import(fd, 1 | 4, SOME_TAG, &object), HSAKMT_STATUS_SUCCESS, "give a tag");
    expect_equal(object.metadata, SOME_TAG, "it has it");
    expect_equal(hsaKmtMemHandleFreePreserveMetadata(object.buf_handle), HSAKMT_STATUS_SUCCESS,
                 "free and keep the tag");
    expect_equal(import(fd, 1 | 4, SOME_TAG + 1, &object), HSAKMT_STATUS_SUCCESS, "give another");
    expect_equal(object.metadata, SOME_TAG, "it has the first");
    expect_equal(hsaKmtMemHandleFreePreserveMetadata(object.buf_handle), HSAKMT_STATUS_SUCCESS,
                 "free and keep the tag");
    expect_equal(import(fd, 1 | 2 | 4, SOME_TAG + 1, &object), HSAKMT_STATUS_INVALID_PARAMETER,
                 "system memory is given none");
    expect_equal(object.metadata, SOME_TAG, "the tag is told");
    expect_equal(import(fd, 1, SOME_TAG, &object), HSAKMT_STATUS_SUCCESS, "the right tag");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_SUCCESS, "free with it");
    expect_equal(import(fd, 1, 0, &object), HSAKMT_STATUS_SUCCESS, "it has none any more");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_SUCCESS, "free");
    close_descriptor(fd);
    release(memory);
}

static void refuses(void)
{
    HsaHandleImportDesc in;
    HsaHandleImportResult object;
    HsaHandleExportDesc out;
    HsaMemoryExportResult result;
    HsaExtErrorDetail detail;
    HsaAMDGPUDeviceHandle none = NULL;
    HSAuint64 offset;
    void *memory = allocate(0), *shown;
    int fd = export_address(memory);

    expect_equal(hsaKmtExtGetDeviceHandle(gpu, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a device to nowhere");
    expect_equal(hsaKmtExtGetDeviceHandle(99, &none), HSAKMT_STATUS_INVALID_NODE_UNIT,
                 "a device of nothing");
    memset(&in, 0, sizeof(in));
    in.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    in.dmabuf_fd = fd;
    expect_equal(hsaKmtHandleImport(&in, &object, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "import without a device");
    in.device_handle = &in;
    expect_equal(hsaKmtHandleImport(&in, &object, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "import on something else");
    in.device_handle = device;
    expect_equal(hsaKmtHandleImport(NULL, &object, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "import of nothing");
    expect_equal(hsaKmtHandleImport(&in, NULL, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "import to nowhere");
    in.type = HSA_EXTERNAL_HANDLE_FABRIC;
    expect_equal(hsaKmtHandleImport(&in, &object, NULL), HSAKMT_STATUS_NOT_SUPPORTED,
                 "import from the fabric");
    in.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    in.dmabuf_fd = 9999;
    expect_equal(hsaKmtHandleImport(&in, &object, NULL), HSAKMT_STATUS_ERROR,
                 "import of no descriptor");
    memset(&detail, 0, sizeof(detail));
    detail.Size = sizeof(detail);
    hsaKmtExtGetLastError(&detail);
    expect(strcmp(detail.OperationName, "PRIME_FD_TO_HANDLE") == 0, "the detail says what");
    expect_equal((HSAuint64)detail.Errno, 9, "and why");
    in.dmabuf_fd = fd;
    expect_equal(hsaKmtHandleImport(&in, &object, NULL), HSAKMT_STATUS_SUCCESS,
                 "import without flags");
    memset(&out, 0, sizeof(out));
    out.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    out.buf_handle = object.buf_handle;
    expect_equal(hsaKmtHandleExport(&out, &result, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "export without a device");
    out.device_handle = device;
    expect_equal(hsaKmtHandleExport(NULL, &result, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "export of nothing");
    expect_equal(hsaKmtHandleExport(&out, NULL, NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "export to nowhere");
    out.type = HSA_EXTERNAL_HANDLE_FABRIC;
    expect_equal(hsaKmtHandleExport(&out, &result, NULL), HSAKMT_STATUS_NOT_SUPPORTED,
                 "export to the fabric");
    expect_equal(map(NULL, memory), HSAKMT_STATUS_ERROR, "map nothing");
    expect_equal(unmap(NULL, memory), HSAKMT_STATUS_ERROR, "unmap nothing");
    expect_equal(map(object.buf_handle, NULL), HSAKMT_STATUS_ERROR, "map at nothing");
    expect_equal(hsaKmtMemoryVaMap(object.buf_handle, 0, SIZE, 1 << 20, HSA_MEMORY_ACCESS_RW, 0),
                 HSAKMT_STATUS_INVALID_NODE_UNIT, "map on a CPU");
    expect_equal(hsaKmtMemoryVaMap(object.buf_handle, 0, SIZE, 1 << 20, (HsaMemoryMapFlags)4, gpu),
                 HSAKMT_STATUS_INVALID_PARAMETER, "unknown rights");
    expect_equal(hsaKmtMemoryCpuMap(NULL, &shown), HSAKMT_STATUS_INVALID_HANDLE, "show nothing");
    expect_equal(hsaKmtMemoryCpuMap(object.buf_handle, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "show to nobody");
    expect_equal(hsaKmtMemoryGetCpuAddr(NULL, object.buf_handle, &offset),
                 HSAKMT_STATUS_INVALID_HANDLE, "where on no device");
    expect_equal(hsaKmtMemoryGetCpuAddr(device, object.buf_handle, NULL),
                 HSAKMT_STATUS_INVALID_PARAMETER, "where to nowhere");
    expect_equal(hsaKmtMemHandleFree(NULL), HSAKMT_STATUS_INVALID_HANDLE, "free nothing");
    expect_equal(hsaKmtMemHandleFreePreserveMetadata(NULL), HSAKMT_STATUS_INVALID_HANDLE,
                 "nor with a tag");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_SUCCESS, "free");
    close_descriptor(fd);
    release(memory);
}

/* As many buffers as a process has no descriptors for. */
static void needs_few_descriptors(void)
{
    static HsaMemoryObjectHandle handles[10000];
    HsaHandleImportResult object;
    struct rlimit limit, few;
    int round, rounds = simulated ? 50 : 10000, good = 1;

    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = 32;
    setrlimit(RLIMIT_NOFILE, &few);
    for (round = 0; round < rounds && good; round++) {
        void *memory = allocate(0);
        int fd = memory == NULL ? -1 : export_address(memory);

        good = fd >= 0 && import(fd, 0, 0, &object) == HSAKMT_STATUS_SUCCESS &&
               hsaKmtFreeMemory(memory, SIZE) == HSAKMT_STATUS_SUCCESS;
        handles[round] = object.buf_handle;
        close_descriptor(fd);
    }
    expect_equal((HSAuint64)round, (HSAuint64)rounds, "buffers with 32 descriptors");
    expect(good, "each of them well");
    while (round-- > 0 && good)
        good = hsaKmtMemHandleFree(handles[round]) == HSAKMT_STATUS_SUCCESS;
    expect(good, "all are freed");
    setrlimit(RLIMIT_NOFILE, &limit);
}
#endif

int main(void)
{
#if HSAKMT_ABI_GENERATION >= 2026
    simulated = getenv("HSAKMT_SIM_PROFILE") != NULL;
    expect_equal((HSAuint64)start(), 0, "open and acquire");
    if (has_gpu) {
        expect_equal(hsaKmtExtGetDeviceHandle(gpu, &device), HSAKMT_STATUS_SUCCESS, "a device");
        if (kfd_minor >= 15) {
            shows_and_maps();
            has_a_tag();
            refuses();
            needs_few_descriptors();
        }
    }
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
#else
    expect(1, "the generation has no handles");
#endif
    return failures != 0;
}
