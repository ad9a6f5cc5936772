/* SPDX-License-Identifier: MIT */
/*
 * Buffers that go from process to process: as dma-bufs, whose descriptors are passed through a
 * socket, and by the handle of hsaKmtShareMemory; wrong arguments; few descriptors.
 *
 * Runs where /dev/kfd opens. On the simulated machine descriptors are the machine's own, which no
 * system call knows: there a child inherits them instead of being sent one, nothing closes them,
 * and contents are seen through the handle alone.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

#define SIZE ((HSAuint64)65536)
/* ENOTTY */
#define UNKNOWN_REQUEST 25

/* Where a child failed is its exit status; 0 is nowhere. */
#define FAIL_IF(condition)   \
    do {                     \
        if (condition)       \
            return __LINE__; \
    } while (0)

/* C before C23 makes no pointer to a const array of one to an array. */
#define READ_ONLY(handle) ((const HsaSharedMemoryHandle *)(handle))

static int simulated;
static HSAuint32 gpu;
static int has_gpu;
static HSAuint32 kfd_minor;

/* Opens and finds the first GPU; 0 where that worked. */
static int start(void)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaVersionInfo version;

    FAIL_IF(hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtGetVersion(&version) != HSAKMT_STATUS_SUCCESS);
    kfd_minor = version.KernelInterfaceMinorVersion;
    FAIL_IF(hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS);
    for (gpu = 0; gpu < system.NumNodes; gpu++) {
        FAIL_IF(hsaKmtGetNodeProperties(gpu, &node) != HSAKMT_STATUS_SUCCESS);
        /* Memory of an APU alone is the process's own, and nothing to share. */
        if (node.NumFComputeCores > 0 && node.NumCPUCores == 0) {
            has_gpu = 1;
            return 0;
        }
    }
    return 0;
}

/* System memory of the driver that the CPU sees. */
static void *allocate(void)
{
    HsaMemFlags flags;
    void *address = NULL;

    flags.Value = 0;
    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = 1;
    flags.ui32.CoarseGrain = 1;
    if (hsaKmtAllocMemory(0, SIZE, flags, &address) != HSAKMT_STATUS_SUCCESS)
        return NULL;
    return address;
}

static int ended_well(pid_t child)
{
    int status = -1;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return 0;
    if (status != 0)
        printf("# the child ended with status %#x\n", (unsigned)status);
    return status == 0;
}

#if HSAKMT_ABI_GENERATION >= 2025
/* A program without libdrm_amdgpu, as this one, is told so. */
static void has_no_libdrm(void)
{
    HsaExtErrorDetail detail;
    HsaAMDGPUDeviceHandle device = NULL;

    if (!has_gpu)
        return;
    expect_equal(hsaKmtGetAMDGPUDeviceHandle(gpu, &device), HSAKMT_STATUS_INVALID_HANDLE,
                 "there is no device of libdrm");
    expect(device == NULL, "none is written");
    memset(&detail, 0, sizeof(detail));
    detail.Size = sizeof(detail);
    expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "why");
    expect(detail.Advice != NULL && strstr(detail.Advice, "libdrm_amdgpu") != NULL,
           "for want of libdrm_amdgpu");
    expect_equal(hsaKmtGetAMDGPUDeviceHandle(gpu, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a device to nowhere");
    expect_equal(hsaKmtGetAMDGPUDeviceHandle(1000, &device), HSAKMT_STATUS_INVALID_NODE_UNIT,
                 "a device of a node that is not there");
#if HSAKMT_ABI_GENERATION >= 2026
    {
        int fd = -1;

        expect_equal(hsaKmtGetAmdGPUDeviceFd(&fd, &fd), HSAKMT_STATUS_INVALID_HANDLE,
                     "the file of what is no device");
        expect_equal(hsaKmtGetAmdGPUDeviceFd(NULL, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                     "the file to nowhere");
    }
#endif
}
#endif

static void refuses(void)
{
    HsaGraphicsResourceInfo info;
    HsaSharedMemoryHandle handle;
    HSAuint64 size = 0;
    HSAuint32 absent = 1000;
    void *address = NULL;
    void *memory = allocate();

    memset(&info, 0, sizeof(info));
    memset(&handle, 0, sizeof(handle));
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes(0, NULL, 0, NULL),
                 HSAKMT_STATUS_INVALID_PARAMETER, "import to nowhere");
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes(900, &info, 0, NULL), HSAKMT_STATUS_ERROR,
                 "import of a descriptor that is not open");
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes((HSAuint64)-1, &info, 0, NULL),
                 HSAKMT_STATUS_ERROR, "import of no descriptor");
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes(900, &info, 1, &absent),
                 HSAKMT_STATUS_INVALID_NODE_UNIT, "import for a node that is not there");
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes(900, &info, 1, NULL),
                 HSAKMT_STATUS_INVALID_PARAMETER, "import for nodes that are nowhere");
    expect(info.MemoryAddress == NULL && info.SizeInBytes == 0, "a failed import writes nothing");
    expect_equal(hsaKmtShareMemory(memory, SIZE, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "share to nowhere");
    expect_equal(hsaKmtShareMemory((char *)memory + 4096, 4096, &handle),
                 HSAKMT_STATUS_INVALID_PARAMETER, "share a middle");
    expect_equal(hsaKmtShareMemory(memory, (HSAuint64)1 << 44, &handle),
                 HSAKMT_STATUS_INVALID_PARAMETER, "share more than pages can be counted");
    expect_equal(hsaKmtRegisterSharedHandle(NULL, &address, &size), HSAKMT_STATUS_INVALID_PARAMETER,
                 "take in nothing");
    expect_equal(hsaKmtRegisterSharedHandle(READ_ONLY(&handle), NULL, &size),
                 HSAKMT_STATUS_INVALID_PARAMETER, "take in to nowhere");
    expect_equal(hsaKmtRegisterSharedHandle(READ_ONLY(&handle), &address, &size),
                 HSAKMT_STATUS_INVALID_PARAMETER, "take in from an unknown aperture");
#if HSAKMT_ABI_GENERATION >= 2025
    {
        HSAuint64 offset = 0;
        int fd = -1;

        expect_equal(hsaKmtExportDMABufHandle(memory, SIZE, NULL, &offset),
                     HSAKMT_STATUS_INVALID_PARAMETER, "export to nowhere");
        expect_equal(hsaKmtExportDMABufHandle(memory, SIZE, &fd, NULL),
                     HSAKMT_STATUS_INVALID_PARAMETER, "export without an offset");
        if (kfd_minor >= 12) {
            expect_equal(hsaKmtExportDMABufHandle(memory, SIZE + 1, &fd, &offset),
                         HSAKMT_STATUS_INVALID_PARAMETER, "export beyond the end");
            expect_equal(hsaKmtExportDMABufHandle(&offset, 8, &fd, &offset),
                         HSAKMT_STATUS_INVALID_PARAMETER, "export what is not ours");
        }
        expect_equal((unsigned)fd, (unsigned)-1, "a failed export writes nothing");
    }
#endif
    expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
}

#if HSAKMT_ABI_GENERATION >= 2025

/* Sends one byte and a descriptor. */
static int send_descriptor(int to, int fd)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char byte = 0;
    struct iovec part;
    struct msghdr message;
    struct cmsghdr *header;

    memset(&control, 0, sizeof(control));
    memset(&message, 0, sizeof(message));
    part.iov_base = &byte;
    part.iov_len = 1;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.room;
    message.msg_controllen = sizeof(control.room);
    header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(sizeof(int));
    memcpy(CMSG_DATA(header), &fd, sizeof(fd));
    return sendmsg(to, &message, 0) == 1 ? 0 : -1;
}

static int receive_descriptor(int from)
{
    union {
        char room[CMSG_SPACE(sizeof(int))];
        struct cmsghdr align;
    } control;
    char byte;
    struct iovec part;
    struct msghdr message;
    struct cmsghdr *header;
    int fd = -1;

    memset(&message, 0, sizeof(message));
    part.iov_base = &byte;
    part.iov_len = 1;
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.room;
    message.msg_controllen = sizeof(control.room);
    if (recvmsg(from, &message, MSG_CMSG_CLOEXEC) != 1)
        return -1;
    header = CMSG_FIRSTHDR(&message);
    if (header && header->cmsg_type == SCM_RIGHTS)
        memcpy(&fd, CMSG_DATA(header), sizeof(fd));
    return fd;
}

static void close_descriptor(int fd)
{
    if (!simulated)
        close(fd);
}

static int wait_for(int fd)
{
    char byte;

    return read(fd, &byte, 1) == 1 ? 0 : -1;
}

static int tell(int fd)
{
    return write(fd, "", 1) == 1 ? 0 : -1;
}

/* The child: takes the buffer in, sees what the parent wrote, writes back. */
static int take_in(int socket, int inherited)
{
    HsaGraphicsResourceInfo info;
    HSAuint64 alternate = 0;
    volatile char *contents = NULL;
    int fd;

    FAIL_IF(start() != 0);
    fd = simulated ? inherited : receive_descriptor(socket);
    FAIL_IF(fd < 0);
    memset(&info, 0, sizeof(info));
    FAIL_IF(hsaKmtRegisterGraphicsHandleToNodes((HSAuint64)fd, &info, 1, &gpu) !=
            HSAKMT_STATUS_SUCCESS);
    FAIL_IF(info.SizeInBytes != SIZE || info.MemoryAddress == NULL);
    FAIL_IF(hsaKmtMapMemoryToGPU(info.MemoryAddress, SIZE, &alternate) != HSAKMT_STATUS_SUCCESS);
    if (!simulated) {
        void *mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

        FAIL_IF(mapped == MAP_FAILED);
        contents = (volatile char *)mapped;
        FAIL_IF(contents[5000] != 42);
        contents[6000] = 43;
    }
    close_descriptor(fd);
    FAIL_IF(tell(socket) != 0);
    /* The parent frees its own, or waits for us to go. */
    FAIL_IF(wait_for(socket) != 0);
    FAIL_IF(contents && contents[5000] != 42);
    FAIL_IF(hsaKmtUnmapMemoryToGPU(info.MemoryAddress) != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtDeregisterMemory(info.MemoryAddress) != HSAKMT_STATUS_SUCCESS);
    if (contents)
        munmap((void *)contents, SIZE);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS);
    return 0;
}

static void passes_a_descriptor(int parent_goes_first)
{
    char *memory = (char *)allocate();
    HSAuint64 offset = 1;
    int fd = -1, ends[2];
    pid_t child;

    expect(memory != NULL, "allocate");
    if (!memory)
        return;
    memory[5000] = 42;
    expect_equal(hsaKmtExportDMABufHandle(memory, SIZE, &fd, &offset), HSAKMT_STATUS_SUCCESS,
                 "export");
    expect_equal(offset, 0, "from the start");
    {
        HsaExtDmaBufInfo info;

        memset(&info, 0xff, sizeof(info));
        info.Size = sizeof(info);
        expect_equal(hsaKmtExtQueryDmaBufInfo(fd, &info), HSAKMT_STATUS_SUCCESS, "what it is");
        expect(info.SizeInBytes == SIZE && info.NodeId < 64 && info.GpuId != 0 &&
                   info.IsDeviceMemory <= 1,
               "its size and its GPU");
        info.Size = 8;
        info.SizeInBytes = 77;
        expect_equal(hsaKmtExtQueryDmaBufInfo(fd, &info), HSAKMT_STATUS_SUCCESS, "a part of that");
        expect_equal(info.SizeInBytes, 77, "nothing is written beyond it");
        expect_equal(hsaKmtExtQueryDmaBufInfo(-1, &info), HSAKMT_STATUS_INVALID_PARAMETER,
                     "no descriptor");
        expect_equal(hsaKmtExtQueryDmaBufInfo(fd, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                     "nowhere to tell");
        expect_equal(hsaKmtExtQueryDmaBufInfo(0, &info), HSAKMT_STATUS_NOT_SUPPORTED,
                     "the standard input is no buffer");
    }
    expect_equal((HSAuint64)socketpair(AF_UNIX, SOCK_STREAM, 0, ends), 0, "a socket");
    fflush(stdout);
    child = fork();
    if (child == 0) {
        close(ends[0]);
        _exit(take_in(ends[1], fd));
    }
    close(ends[1]);
    if (!simulated)
        expect_equal((HSAuint64)send_descriptor(ends[0], fd), 0, "send the descriptor");
    close_descriptor(fd);
    expect_equal((HSAuint64)wait_for(ends[0]), 0, "the child has it");
    if (!simulated)
        expect_equal((HSAuint64)memory[6000], 43, "what the child wrote");
    if (parent_goes_first)
        expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free first");
    tell(ends[0]);
    expect(ended_well(child), "the child ends well");
    if (!parent_goes_first)
        expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free last");
    close(ends[0]);
}

/* As many as a process has descriptors, many times over. */
static void needs_few_descriptors(void)
{
    HsaGraphicsResourceInfo info;
    struct rlimit limit, few;
    HSAuint64 offset;
    int round, rounds = simulated ? 100 : 1000, fd, good = 1;

    getrlimit(RLIMIT_NOFILE, &limit);
    few = limit;
    few.rlim_cur = 64;
    setrlimit(RLIMIT_NOFILE, &few);
    for (round = 0; round < rounds && good; round++) {
        void *memory = allocate();

        good = memory != NULL &&
               hsaKmtExportDMABufHandle(memory, SIZE, &fd, &offset) == HSAKMT_STATUS_SUCCESS &&
               hsaKmtRegisterGraphicsHandleToNodes((HSAuint64)fd, &info, 0, NULL) ==
                   HSAKMT_STATUS_SUCCESS;
        if (good) {
            close_descriptor(fd);
            good = hsaKmtDeregisterMemory(info.MemoryAddress) == HSAKMT_STATUS_SUCCESS &&
                   hsaKmtFreeMemory(memory, SIZE) == HSAKMT_STATUS_SUCCESS;
        }
    }
    setrlimit(RLIMIT_NOFILE, &limit);
    expect_equal((HSAuint64)round, (HSAuint64)rounds, "rounds with 64 descriptors");
    expect(good, "each of them well");
}

static void is_a_name_or_a_place(void)
{
    HsaGraphicsResourceInfo info;
    HsaPointerInfo pointer;
    HSA_REGISTER_MEM_FLAGS flags;
    HSAuint64 offset = 0, alternate = 0;
    void *memory = allocate();
    int fd = -1;

    expect_equal(hsaKmtExportDMABufHandle(memory, SIZE, &fd, &offset), HSAKMT_STATUS_SUCCESS,
                 "export");
    memset(&info, 0, sizeof(info));
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes((HSAuint64)fd, &info, 0, NULL),
                 HSAKMT_STATUS_SUCCESS, "import without a place");
    expect_equal(info.MetadataSizeInBytes, 0, "nothing attached");
    expect_equal(hsaKmtMapMemoryToGPU(info.MemoryAddress, SIZE, &alternate),
                 HSAKMT_STATUS_INVALID_PARAMETER, "a name is not mapped");
    expect_equal(hsaKmtDeregisterMemory(info.MemoryAddress), HSAKMT_STATUS_SUCCESS, "deregister");
    flags.Value = 0;
    flags.ui32.requiresVAddr = 1;
    expect_equal(hsaKmtRegisterGraphicsHandleToNodesExt((HSAuint64)fd, &info, 0, NULL, flags),
                 HSAKMT_STATUS_SUCCESS, "import with a place");
    expect_equal(hsaKmtMapMemoryToGPU(info.MemoryAddress, SIZE, &alternate), HSAKMT_STATUS_SUCCESS,
                 "which is mapped");
    expect_equal(hsaKmtQueryPointerInfo(info.MemoryAddress, &pointer), HSAKMT_STATUS_SUCCESS,
                 "ask about it");
    expect_equal(pointer.Type, HSA_POINTER_REGISTERED_GRAPHICS, "a buffer of graphics");
    expect_equal(pointer.SizeInBytes, SIZE, "of its size");
    expect_equal(hsaKmtDeregisterMemory(info.MemoryAddress), HSAKMT_STATUS_SUCCESS, "deregister");
    close_descriptor(fd);
    expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
}

#endif

#if HSAKMT_ABI_GENERATION >= 2026
static void goes_to_another_context(void)
{
    HsaKFDContext *primary = NULL, *secondary = NULL;
    HsaGraphicsResourceInfo info;
    HsaSystemProperties system;
    HSAuint64 offset = 0, alternate = 0;
    void *memory = allocate();
    int fd = -1;

    expect_equal(hsaKmtOpenKFDCtx(&primary), HSAKMT_STATUS_KERNEL_ALREADY_OPENED, "the primary");
    if (hsaKmtOpenSecondaryKFDCtx(&secondary) == HSAKMT_STATUS_SUCCESS) {
        expect_equal(hsaKmtAcquireSystemPropertiesCtx(secondary, &system), HSAKMT_STATUS_SUCCESS,
                     "acquire");
        expect_equal(hsaKmtExportDMABufHandleCtx(primary, memory, SIZE, &fd, &offset),
                     HSAKMT_STATUS_SUCCESS, "export of the primary");
        expect_equal(hsaKmtRegisterGraphicsHandleToNodesCtx(secondary, (HSAuint64)fd, &info, 1,
                                                            &gpu),
                     HSAKMT_STATUS_SUCCESS, "import of the secondary");
        close_descriptor(fd);
        expect_equal(hsaKmtMapMemoryToGPUCtx(secondary, info.MemoryAddress, SIZE, &alternate),
                     HSAKMT_STATUS_SUCCESS, "mapped there");
        expect_equal(hsaKmtUnmapMemoryToGPUCtx(secondary, info.MemoryAddress),
                     HSAKMT_STATUS_SUCCESS, "unmapped there");
        expect_equal(hsaKmtDeregisterMemoryCtx(secondary, info.MemoryAddress),
                     HSAKMT_STATUS_SUCCESS, "deregistered there");
        expect_equal(hsaKmtCloseSecondaryKFDCtx(secondary), HSAKMT_STATUS_SUCCESS, "close it");
    }
    expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close the second opening");
}
#endif

/* The child: takes the memory in by its handle. */
static int take_in_shared(const HsaSharedMemoryHandle *handle)
{
    HSAuint64 size = 0, alternate = 0;
    void *address = NULL;
    volatile char *contents;

    FAIL_IF(start() != 0);
    FAIL_IF(hsaKmtRegisterSharedHandleToNodes(handle, &address, &size, 1, &gpu) !=
            HSAKMT_STATUS_SUCCESS);
    FAIL_IF(size != SIZE);
    FAIL_IF(hsaKmtMapMemoryToGPU(address, SIZE, &alternate) != HSAKMT_STATUS_SUCCESS);
    contents = (volatile char *)address;
    FAIL_IF(contents[5000] != 42);
    contents[6000] = 43;
    FAIL_IF(hsaKmtUnmapMemoryToGPU(address) != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtDeregisterMemory(address) != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS);
    return 0;
}

static void shares_by_handle(void)
{
    HsaSharedMemoryHandle handle;
    HsaExtErrorDetail detail;
    char *memory = (char *)allocate();
    HSAKMT_STATUS status;
    pid_t child;

    memset(&handle, 0, sizeof(handle));
    memory[5000] = 42;
    status = hsaKmtShareMemory(memory, SIZE, &handle);
    if (status == HSAKMT_STATUS_SUCCESS) {
        fflush(stdout);
        child = fork();
        if (child == 0)
            _exit(take_in_shared(READ_ONLY(&handle)));
        expect(ended_well(child), "a child takes the memory in by its handle");
        expect_equal((HSAuint64)memory[6000], 43, "what the child wrote");
    } else {
        expect_equal(status, HSAKMT_STATUS_ERROR, "this driver shares nothing by number");
        detail.Size = sizeof(detail);
        hsaKmtExtGetLastError(&detail);
        expect_equal((HSAuint64)detail.Errno, UNKNOWN_REQUEST, "which the detail says");
    }
    expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
}

int main(void)
{
    simulated = getenv("HSAKMT_SIM_PROFILE") != NULL;
    expect_equal((HSAuint64)start(), 0, "open and acquire");
    if (has_gpu) {
        refuses();
        shares_by_handle();
#if HSAKMT_ABI_GENERATION >= 2025
        has_no_libdrm();
        if (kfd_minor >= 12) {
            is_a_name_or_a_place();
            passes_a_descriptor(0);
            passes_a_descriptor(1);
            needs_few_descriptors();
#if HSAKMT_ABI_GENERATION >= 2026
            goes_to_another_context();
#endif
        }
#endif
    }
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    return failures != 0;
}
