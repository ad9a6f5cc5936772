/* SPDX-License-Identifier: MIT */
/*
 * hsaKmtExtCopyMemory: between memory of the process, of GPUs and of the driver, at odd offsets,
 * from 1 byte to as many MiB as the first argument says (4); overlapping ranges; refusals.
 *
 * Runs where /dev/kfd opens.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <string.h>
#include <sys/mman.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

/* Behind the largest copy. */
#define SLACK ((HSAuint64)2 << 20)

static HSAuint32 gpus[2];
static int gpu_count;

static void *allocate(HSAuint32 node, HSAuint64 size, int host_access, int device)
{
    HsaMemFlags flags;
    void *address = NULL;

    flags.Value = 0;
    flags.ui32.NonPaged = device ? 1 : 0;
    flags.ui32.HostAccess = host_access ? 1 : 0;
    flags.ui32.CoarseGrain = 1;
    if (hsaKmtAllocMemory(node, size, flags, &address) != HSAKMT_STATUS_SUCCESS)
        return NULL;
    return address;
}

/* A pattern that differs at every byte nearby and from seed to seed. */
static void fill(unsigned char *bytes, HSAuint64 size, unsigned seed)
{
    HSAuint64 at;

    for (at = 0; at < size; at++)
        bytes[at] = (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16) * 3 + seed);
}

/* Copies there and back, and tells whether the bytes came back and nothing else changed. */
static int there_and_back(unsigned char *memory, const unsigned char *pattern, unsigned char *back,
                          HSAuint64 offset, HSAuint64 size)
{
    back[size] = 0x5a;
    memset(back, 0, size);
    if (hsaKmtExtCopyMemory(memory + offset, pattern + 3, size, NULL) != HSAKMT_STATUS_SUCCESS)
        return 0;
    if (hsaKmtExtCopyMemory(back, memory + offset, size, NULL) != HSAKMT_STATUS_SUCCESS)
        return 0;
    return memcmp(back, pattern + 3, size) == 0 && back[size] == 0x5a;
}

static void sizes(const char *name, unsigned char *memory, const unsigned char *pattern,
                  unsigned char *back, HSAuint64 largest)
{
    static const HSAuint64 offsets[] = {0, 1, 4095, 4097};
    HSAuint64 size;
    unsigned each;
    int good = memory != NULL;

    for (size = 1; good && size <= largest; size = size < 70 ? size + 1 : size * 2 + 1)
        for (each = 0; good && each < (size > SLACK ? 2U : 4U); each++)
            good = there_and_back(memory, pattern, back, offsets[each], size);
    if (good)
        good = there_and_back(memory, pattern, back, 1, largest);
    expect(good, name);
}

static void refuses(unsigned char *ours)
{
    HsaExtCopyOptions options = {sizeof(HsaExtCopyOptions), HSA_EXT_COPY_BY_CPU, 77, 0};
    HsaExtErrorDetail detail;
    unsigned char *memory = (unsigned char *)allocate(0, 65536, 1, 0);

    expect(memory != NULL, "memory of the host");
    expect_equal(hsaKmtExtCopyMemory(NULL, ours, 1, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a copy to NULL");
    expect_equal(hsaKmtExtCopyMemory(ours, NULL, 1, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a copy from NULL");
    expect_equal(hsaKmtExtCopyMemory(NULL, NULL, 0, NULL), HSAKMT_STATUS_SUCCESS, "a copy of nothing");
    expect_equal(hsaKmtExtCopyMemory(memory, ours, 65537, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a copy beyond the allocation");
    expect_equal(hsaKmtExtCopyMemory(memory, ours, 8, &options), HSAKMT_STATUS_SUCCESS,
                 "a copy by the CPU");
    expect_equal(options.PathTaken, HSA_EXT_COPY_BY_CPU, "it says so");
    options.Size = 4;
    expect_equal(hsaKmtExtCopyMemory(memory, ours, 8, &options), HSAKMT_STATUS_INVALID_PARAMETER,
                 "options without a path");
    options.Size = 8;
    options.PathTaken = 77;
    expect_equal(hsaKmtExtCopyMemory(memory, ours, 8, &options), HSAKMT_STATUS_SUCCESS,
                 "options of an older caller");
    expect_equal(options.PathTaken, 77, "nothing is written beyond them");
    options.Size = sizeof(options);
    options.Path = 3;
    expect_equal(hsaKmtExtCopyMemory(memory, ours, 8, &options), HSAKMT_STATUS_INVALID_PARAMETER,
                 "an unknown path");
    if (gpu_count > 0) {
        unsigned char *hidden = (unsigned char *)allocate(gpus[0], 65536, 0, 1);

        options.Path = HSA_EXT_COPY_BY_CPU;
        expect(hidden != NULL, "video memory without host access");
        expect_equal(hsaKmtExtCopyMemory(hidden, ours, 8, &options), HSAKMT_STATUS_NOT_SUPPORTED,
                     "the CPU does not reach it");
        memset(&detail, 0, sizeof(detail));
        detail.Size = sizeof(detail);
        expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "the reason");
        expect(detail.Object == (HSAuint64)(size_t)hidden && detail.Advice != NULL,
               "names the memory and what to do");
        expect_equal(hsaKmtFreeMemory(hidden, 65536), HSAKMT_STATUS_SUCCESS, "free it");
    }
#if HSAKMT_ABI_GENERATION >= 2026
    expect_equal(hsaKmtExtCopyMemoryCtx(NULL, memory, ours, 8, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "a copy without a context");
#endif
    expect_equal(hsaKmtFreeMemory(memory, 65536), HSAKMT_STATUS_SUCCESS, "free memory of the host");
}

int main(int argc, char **argv)
{
    HSAuint64 largest = (HSAuint64)(argc > 1 ? atoi(argv[1]) : 4) << 20;
    HSAuint64 length = largest + SLACK;
    HsaSystemProperties system;
    HsaNodeProperties node;
    HSAuint32 each;
    unsigned char *pattern, *back, *memory[2] = {NULL, NULL};
    int i;

    expect_equal(hsaKmtExtCopyMemory(&each, &length, 4, NULL),
                 HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "a copy before the open");
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    for (each = 0; each < system.NumNodes && gpu_count < 2; each++) {
        if (hsaKmtGetNodeProperties(each, &node) == HSAKMT_STATUS_SUCCESS &&
            node.NumFComputeCores > 0 && node.NumCPUCores == 0)
            gpus[gpu_count++] = each;
    }
    pattern = (unsigned char *)malloc(length);
    back = (unsigned char *)malloc(length);
    expect(pattern != NULL && back != NULL, "memory of the process");
    fill(pattern, length, 17);

    for (i = 0; i < gpu_count; i++) {
        memory[i] = (unsigned char *)allocate(gpus[i], length, 1, 1);
        /* With a small BAR there is no such memory. */
        if (memory[i] != NULL)
            sizes(i == 0 ? "video memory" : "video memory of another GPU", memory[i], pattern, back,
                  largest);
    }
    if (memory[0] != NULL && memory[1] != NULL) {
        expect(hsaKmtExtCopyMemory(memory[1] + 5, memory[0] + 1, largest, NULL) ==
                       HSAKMT_STATUS_SUCCESS &&
                   hsaKmtExtCopyMemory(back, memory[1] + 5, largest, NULL) ==
                       HSAKMT_STATUS_SUCCESS &&
                   memcmp(back, pattern + 3, largest) == 0,
               "from GPU to GPU");
    }
    for (i = 0; i < 2; i++)
        if (memory[i] != NULL)
            expect_equal(hsaKmtFreeMemory(memory[i], length), HSAKMT_STATUS_SUCCESS, "free it");
    memory[0] = (unsigned char *)allocate(0, length, 1, 1);
    memory[1] = (unsigned char *)allocate(0, length, 1, 0);
    if (memory[0] != NULL)
        sizes("memory of the driver", memory[0], pattern, back, largest);
    sizes("pages of the process", memory[1], pattern, back, largest);
    if (memory[1] != NULL) {
        memcpy(memory[1], pattern, largest);
        expect(hsaKmtExtCopyMemory(memory[1] + 1, memory[1], largest, NULL) ==
                       HSAKMT_STATUS_SUCCESS &&
                   memcmp(memory[1] + 1, pattern, largest) == 0,
               "up, over itself");
        expect(hsaKmtExtCopyMemory(memory[1], memory[1] + 1, largest, NULL) ==
                       HSAKMT_STATUS_SUCCESS &&
                   memcmp(memory[1], pattern, largest) == 0,
               "down, over itself");
    }
    for (i = 0; i < 2; i++)
        if (memory[i] != NULL)
            expect_equal(hsaKmtFreeMemory(memory[i], length), HSAKMT_STATUS_SUCCESS, "free it");
    refuses(back);
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    free(pattern);
    free(back);
    return failures != 0;
}
