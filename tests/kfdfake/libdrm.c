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

/* What libdrm maps at addresses of ours, and its buffer taken in by the library. */
static void shares(amdgpu_device_handle device, HSAuint32 node)
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
    expect(amdgpu_bo_va_op(buffer, 0, SIZE, (uint64_t)(size_t)address, 0, AMDGPU_VA_OP_UNMAP) == 0,
           "and unmaps");
    expect_equal(hsaKmtFreeMemory(address, SIZE), HSAKMT_STATUS_SUCCESS, "free the addresses");
    expect(amdgpu_bo_cpu_map(buffer, &cpu) == 0, "libdrm shows it to the CPU");
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
        int fd, now;

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
            fd = -1;
#if HSAKMT_ABI_GENERATION >= 2026
            expect_equal(hsaKmtGetAmdGPUDeviceFd(device, &fd), HSAKMT_STATUS_SUCCESS, "its file");
            expect(fd == amdgpu_device_get_fd((amdgpu_device_handle)device), "is libdrm's");
            expect_equal(hsaKmtGetAmdGPUDeviceFd(&fd, &fd), HSAKMT_STATUS_INVALID_HANDLE,
                         "no device has no file");
            expect_equal(hsaKmtGetAmdGPUDeviceFd(NULL, &fd), HSAKMT_STATUS_INVALID_HANDLE,
                         "NULL neither");
#endif
            shares((amdgpu_device_handle)device, node);
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
