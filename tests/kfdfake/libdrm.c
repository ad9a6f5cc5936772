/* SPDX-License-Identifier: MIT */
/*
 * A libdrm_amdgpu in the process: its devices are on the files that the GPUs are bound to, before
 * and after the library is closed and opened again; what is mapped through them is where the
 * library's GPUs see it. With `mesa` as argument somebody has a device of each GPU already.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <amdgpu.h>
#include <amdgpu_drm.h>
#include <dirent.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

#define SIZE ((HSAuint64)65536)
#define KCMP_SAME_FILE 0
#define FIRST_RENDER 128
#define RENDERS 64

/* Descriptors of render nodes, and how many files they are. */
static int render_descriptors(int *files)
{
    int found[1024], count = 0, i;
    DIR *folder = opendir("/proc/self/fd");
    struct dirent *entry;

    *files = 0;
    while (folder != NULL && (entry = readdir(folder)) != NULL && count < 1024) {
        char link[64];
        char path[64];
        ssize_t length;

        snprintf(path, sizeof(path), "/proc/self/fd/%.20s", entry->d_name);
        length = readlink(path, link, sizeof(link) - 1);
        if (length <= 0)
            continue;
        link[length] = 0;
        if (strstr(link, "renderD") == NULL)
            continue;
        found[count++] = atoi(entry->d_name);
    }
    if (folder != NULL)
        closedir(folder);
    for (i = 0; i < count; i++) {
        int other;

        for (other = 0; other < i; other++)
            if (syscall(SYS_kcmp, getpid(), getpid(), KCMP_SAME_FILE, found[i], found[other]) == 0)
                break;
        *files += other == i;
    }
    return count;
}

/* Memory of the host that a GPU has mapped. */
static void *shared_memory(HSAuint32 node)
{
    HsaMemFlags flags;
    HSAuint64 alternate = 0;
    void *memory = NULL;

    flags.Value = 0;
    flags.ui32.HostAccess = 1;
    flags.ui32.ExecuteAccess = 1;
    expect_equal(hsaKmtAllocMemory(node, SIZE, flags, &memory), HSAKMT_STATUS_SUCCESS, "a ring");
    expect_equal(hsaKmtMapMemoryToGPU(memory, SIZE, &alternate), HSAKMT_STATUS_SUCCESS, "mapped");
    return memory;
}

/* Waits until a word has a value, while engines run. */
static int becomes(volatile uint32_t *word, uint32_t wanted, HSAuint32 node)
{
    HsaClockCounters counters;
    int tries;

    for (tries = 0; tries < 100000; tries++) {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == wanted)
            return 1;
        hsaKmtGetClockCounters(node, &counters);
    }
    return 0;
}

/* A copy engine of ours stores to where libdrm has mapped its buffer, and reads from there. From
   gfx9 on: pointers of 64 bits, counts from zero. */
static void gpu_reaches(HSAuint32 node, unsigned major, void *address, volatile uint32_t *cpu)
{
    uint32_t *ring = (uint32_t *)shared_memory(node), *words = (uint32_t *)shared_memory(node);
    uint64_t to = (uint64_t)(size_t)address, back = (uint64_t)(size_t)words;
    uint32_t uncached = major >= 10 ? 3u << 16 : 0, packets[64];
    HsaQueueResource resource;
    unsigned i;

    memset(&resource, 0, sizeof(resource));
    expect_equal(hsaKmtCreateQueue(node, HSA_QUEUE_SDMA, 100, HSA_QUEUE_PRIORITY_NORMAL, ring, SIZE,
                                   NULL, &resource),
                 HSAKMT_STATUS_SUCCESS, "a queue of a copy engine");
    if (resource.Queue_DoorBell == NULL)
        return;
    memset(packets, 0, sizeof(packets));
    cpu[3] = 0xc0ffee;
    /* A fence into libdrm's buffer, a copy of four bytes out of it, a fence behind that. */
    packets[0] = 5 | uncached;
    packets[1] = (uint32_t)(to + 64);
    packets[2] = (uint32_t)(to >> 32);
    packets[3] = 0x51a7e;
    packets[4] = 1;
    packets[5] = 3;
    packets[7] = (uint32_t)(to + 12);
    packets[8] = (uint32_t)(to >> 32);
    packets[9] = (uint32_t)(back + 8);
    packets[10] = (uint32_t)(back >> 32);
    packets[11] = 5 | uncached;
    packets[12] = (uint32_t)back;
    packets[13] = (uint32_t)(back >> 32);
    packets[14] = 77;
    for (i = 0; i < 64; i++)
        ring[i] = packets[i];
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((uint64_t *)resource.Queue_write_ptr_aql, 256, __ATOMIC_RELEASE);
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    __atomic_store_n((uint64_t *)resource.Queue_DoorBell_aql, 256, __ATOMIC_RELEASE);
    expect(becomes(words, 77, node), "the engine is done");
    expect_equal(cpu[16], 0x51a7e, "libdrm sees what our GPU stored");
    expect_equal(words[2], 0xc0ffee, "our GPU sees what is in libdrm's buffer");
    expect_equal(hsaKmtDestroyQueue(resource.QueueId), HSAKMT_STATUS_SUCCESS, "end the queue");
    expect_equal(hsaKmtUnmapMemoryToGPU(ring), HSAKMT_STATUS_SUCCESS, "unmap the ring");
    expect_equal(hsaKmtFreeMemory(ring, SIZE), HSAKMT_STATUS_SUCCESS, "free the ring");
    expect_equal(hsaKmtUnmapMemoryToGPU(words), HSAKMT_STATUS_SUCCESS, "unmap the words");
    expect_equal(hsaKmtFreeMemory(words, SIZE), HSAKMT_STATUS_SUCCESS, "free the words");
}

/* What libdrm maps at addresses of ours, and its buffer taken in by the library. */
static void shares(amdgpu_device_handle device, HSAuint32 node, const HsaNodeProperties *properties)
{
    struct amdgpu_bo_alloc_request request;
    amdgpu_bo_handle buffer = NULL;
    HsaGraphicsResourceInfo info;
    HsaMemFlags flags;
    HSAuint64 alternate = 0;
    uint32_t dma_buf = 0;
    void *address = NULL, *cpu = NULL;

    memset(&request, 0, sizeof(request));
    memset(&info, 0, sizeof(info));
    request.alloc_size = SIZE;
    request.phys_alignment = 4096;
    request.preferred_heap = AMDGPU_GEM_DOMAIN_GTT;
    expect(amdgpu_bo_alloc(device, &request, &buffer) == 0, "libdrm allocates");
    flags.Value = 0;
    flags.ui32.OnlyAddress = 1;
    expect_equal(hsaKmtAllocMemory(node, SIZE, flags, &address), HSAKMT_STATUS_SUCCESS,
                 "addresses of the library");
    expect(amdgpu_bo_va_op(buffer, 0, SIZE, (uint64_t)(size_t)address, 0, AMDGPU_VA_OP_MAP) == 0,
           "libdrm maps there");
    expect(amdgpu_bo_cpu_map(buffer, &cpu) == 0, "libdrm shows it to the CPU");
    if (cpu != NULL && properties->NumCPUCores == 0 && properties->EngineId.ui32.Major >= 9)
        gpu_reaches(node, properties->EngineId.ui32.Major, address, (volatile uint32_t *)cpu);
    expect(amdgpu_bo_va_op(buffer, 0, SIZE, (uint64_t)(size_t)address, 0, AMDGPU_VA_OP_UNMAP) == 0,
           "and unmaps");
    expect_equal(hsaKmtFreeMemory(address, SIZE), HSAKMT_STATUS_SUCCESS, "free the addresses");
    if (cpu != NULL)
        memset(cpu, 0x5a, SIZE);
    expect(amdgpu_bo_export(buffer, amdgpu_bo_handle_type_dma_buf_fd, &dma_buf) == 0,
           "libdrm exports");
    expect_equal(hsaKmtRegisterGraphicsHandleToNodes(dma_buf, &info, 1, &node),
                 HSAKMT_STATUS_SUCCESS, "the library takes it in");
    expect_equal(info.SizeInBytes, SIZE, "its size");
    close((int)dma_buf);
    expect_equal(hsaKmtMapMemoryToGPU(info.MemoryAddress, SIZE, &alternate), HSAKMT_STATUS_SUCCESS,
                 "it is mapped");
    expect_equal(hsaKmtUnmapMemoryToGPU(info.MemoryAddress), HSAKMT_STATUS_SUCCESS, "unmapped");
    expect_equal(hsaKmtDeregisterMemory(info.MemoryAddress), HSAKMT_STATUS_SUCCESS, "given back");
    if (cpu != NULL)
        expect(amdgpu_bo_cpu_unmap(buffer) == 0, "libdrm hides it");
    expect(amdgpu_bo_free(buffer) == 0, "libdrm frees");
}

#if HSAKMT_ABI_GENERATION >= 2026
/* A buffer object on libdrm's device, where libdrm's file shows it too. */
static void takes_handles(amdgpu_device_handle device, HSAuint32 node)
{
    HsaHandleImportDesc wanted;
    HsaHandleImportResult object;
    HsaMemFlags flags;
    HSAuint64 offset = 0;
    void *memory = NULL, *place = NULL, *shown = NULL, *mapped;
    int fd = -1;

    flags.Value = 0;
    flags.ui32.OnlyAddress = 1;
    expect_equal(hsaKmtAllocMemory(node, SIZE, flags, &place), HSAKMT_STATUS_SUCCESS, "addresses");
    flags.Value = 0;
    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = 1;
    expect_equal(hsaKmtAllocMemory(node, SIZE, flags, &memory), HSAKMT_STATUS_SUCCESS, "memory");
    expect_equal(hsaKmtExportDMABufHandle(memory, SIZE, &fd, &offset), HSAKMT_STATUS_SUCCESS,
                 "export");
    memset(&wanted, 0, sizeof(wanted));
    memset(&object, 0, sizeof(object));
    wanted.device_handle = device;
    wanted.type = HSA_EXTERNAL_HANDLE_DMA_BUF;
    wanted.dmabuf_fd = fd;
    expect_equal(hsaKmtHandleImport(&wanted, &object, NULL), HSAKMT_STATUS_SUCCESS, "import");
    close(fd);
    expect_equal(hsaKmtMemoryVaMap(object.buf_handle, 0, SIZE, (HSAuint64)(size_t)place,
                                   HSA_MEMORY_ACCESS_RW, node),
                 HSAKMT_STATUS_SUCCESS, "map");
    expect_equal(hsaKmtMemoryCpuMap(object.buf_handle, &shown), HSAKMT_STATUS_SUCCESS, "show");
    expect_equal(hsaKmtMemoryGetCpuAddr(device, object.buf_handle, &offset), HSAKMT_STATUS_SUCCESS,
                 "where in the file");
    mapped = mmap(NULL, SIZE, PROT_READ | PROT_WRITE, MAP_SHARED, amdgpu_device_get_fd(device),
                  (off_t)offset);
    expect(mapped != MAP_FAILED, "libdrm's file has it there");
    if (mapped != MAP_FAILED && shown != NULL) {
        ((volatile char *)mapped)[7] = 9;
        expect_equal((HSAuint64)((volatile char *)shown)[7], 9, "it is the same memory");
        munmap(mapped, SIZE);
    }
    expect_equal(hsaKmtMemoryVaUnmap(object.buf_handle, 0, SIZE, (HSAuint64)(size_t)place, node),
                 HSAKMT_STATUS_SUCCESS, "unmap");
    expect_equal(hsaKmtMemHandleFree(object.buf_handle), HSAKMT_STATUS_SUCCESS, "free the handle");
    expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
    expect_equal(hsaKmtFreeMemory(place, SIZE), HSAKMT_STATUS_SUCCESS, "free the addresses");
}
#endif

int main(int argc, char **argv)
{
    amdgpu_device_handle devices[RENDERS], first[RENDERS];
    int mesa = argc > 1 && strcmp(argv[1], "mesa") == 0, files = 0, descriptors = 0, round;
    HSAuint32 major, minor, node, gpus = 0;

    memset(devices, 0, sizeof(devices));
    memset(first, 0, sizeof(first));
    for (node = 0; mesa && node < RENDERS; node++) {
        char path[64];
        int fd;

        snprintf(path, sizeof(path), "/dev/dri/renderD%u", FIRST_RENDER + node);
        fd = open(path, O_RDWR | O_CLOEXEC);
        if (fd < 0)
            continue;
        if (amdgpu_device_initialize(fd, &major, &minor, &devices[node]) != 0)
            devices[node] = NULL;
        close(fd);
    }
    for (round = 0; round < 3; round++) {
        HsaSystemProperties system;
        HsaNodeProperties properties;
        HsaAMDGPUDeviceHandle device;
        int now;
#if HSAKMT_ABI_GENERATION >= 2026
        int fd;
#endif

        expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
        expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
        for (node = 0, gpus = 0; node < system.NumNodes; node++) {
            expect_equal(hsaKmtGetNodeProperties(node, &properties), HSAKMT_STATUS_SUCCESS, "node");
            device = NULL;
            if (properties.NumFComputeCores == 0) {
                expect_equal(hsaKmtGetAMDGPUDeviceHandle(node, &device),
                             HSAKMT_STATUS_INVALID_NODE_UNIT, "a CPU has no device");
                continue;
            }
            gpus++;
            expect_equal(hsaKmtGetAMDGPUDeviceHandle(node, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                         "a device to nowhere");
            expect_equal(hsaKmtGetAMDGPUDeviceHandle(node, &device), HSAKMT_STATUS_SUCCESS,
                         "a GPU's device");
            expect(device != NULL && (round == 0 || device == (void *)first[node]),
                   "it is one and the same for the process");
            first[node] = (amdgpu_device_handle)device;
#if HSAKMT_ABI_GENERATION >= 2026
            fd = -1;
            expect_equal(hsaKmtGetAmdGPUDeviceFd(device, &fd), HSAKMT_STATUS_SUCCESS, "its file");
            expect(fd == amdgpu_device_get_fd((amdgpu_device_handle)device), "is libdrm's");
            expect_equal(hsaKmtGetAmdGPUDeviceFd(&fd, &fd), HSAKMT_STATUS_INVALID_HANDLE,
                         "no device has no file");
            expect_equal(hsaKmtGetAmdGPUDeviceFd(NULL, &fd), HSAKMT_STATUS_INVALID_HANDLE,
                         "NULL neither");
#endif
            shares((amdgpu_device_handle)device, node, &properties);
#if HSAKMT_ABI_GENERATION >= 2026
            if (properties.NumCPUCores == 0)
                takes_handles((amdgpu_device_handle)device, node);
#endif
        }
        now = render_descriptors(&files);
        expect_equal((unsigned)files, gpus, "each GPU has one file");
        expect(round == 0 || now == descriptors, "descriptors are those of the first round");
        descriptors = now;
        expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
        expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    }
    return failures != 0;
}
