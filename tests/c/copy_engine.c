/* SPDX-License-Identifier: MIT */
/*
 * hsaKmtExtCopyMemory by engines: video memory that the CPU does not reach, on one GPU, between GPUs
 * that see each other's memory and that do not, over itself, by several threads; host memory on
 * request.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <string.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

enum { LARGEST = (3 << 20) + 4097, LENGTH = 4 << 20 };

static HSAuint32 gpus[2];
static int gpu_count;
static int wrong;

static void equal(unsigned long long got, unsigned long long wanted, const char *what, int line)
{
    if (got == wanted)
        return;
    printf("# line %d: %s: got %#llx, wanted %#llx\n", line, what, got, wanted);
    __atomic_fetch_add(&wrong, 1, __ATOMIC_RELAXED);
}

#define EQUAL(got, wanted) \
    equal((unsigned long long)(got), (unsigned long long)(wanted), #got, __LINE__)
#define HOLDS(condition) equal(!!(condition), 1, #condition, __LINE__)
#define SUCCEEDS(call) EQUAL(call, HSAKMT_STATUS_SUCCESS)

static void end_part(const char *name)
{
    expect(!wrong, name);
    wrong = 0;
}

static HSAKMT_STATUS map_on(void *memory, HSAuint64 size, HSAuint64 count, HSAuint32 *nodes)
{
#if HSAKMT_ABI_GENERATION >= 2026
    HsaMemFlags flags;
#else
    HsaMemMapFlags flags;
#endif
    HSAuint64 alternate = 0;

    memset(&flags, 0, sizeof(flags));
    return hsaKmtMapMemoryToGPUNodes(memory, size, &alternate, flags, count, nodes);
}

/* Video memory that only GPUs reach. */
static unsigned char *hidden_memory(HSAuint32 node)
{
    HsaMemFlags flags;
    void *memory = NULL;

    memset(&flags, 0, sizeof(flags));
    flags.ui32.NonPaged = 1;
    flags.ui32.CoarseGrain = 1;
    SUCCEEDS(hsaKmtAllocMemory(node, LENGTH, flags, &memory));
    if (memory)
        SUCCEEDS(map_on(memory, LENGTH, 1, &node));
    return (unsigned char *)memory;
}

static void release_memory(void *memory)
{
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    SUCCEEDS(hsaKmtFreeMemory(memory, LENGTH));
}

static void fill(unsigned char *bytes, HSAuint64 size, unsigned seed)
{
    HSAuint64 at;

    for (at = 0; at < size; at++)
        bytes[at] = (unsigned char)(at * 31 + (at >> 8) * 7 + (at >> 16) * 3 + seed);
}

/* A copy by whoever can; tells who it was. */
static HSAuint32 copy(void *to, const void *from, HSAuint64 size, HSAuint32 path)
{
    HsaExtCopyOptions options;

    memset(&options, 0, sizeof(options));
    options.Size = sizeof(options);
    options.Path = path;
    SUCCEEDS(hsaKmtExtCopyMemory(to, from, size, &options));
    return options.PathTaken;
}

static void there_and_back(unsigned char *hidden, const unsigned char *pattern,
                           unsigned char *back, HSAuint64 offset, HSAuint64 size)
{
    memset(back, 0, size);
    back[size] = 0x5a;
    EQUAL(copy(hidden + offset, pattern + 3, size, HSA_EXT_COPY_BY_ANY), HSA_EXT_COPY_BY_ENGINE);
    EQUAL(copy(back, hidden + offset, size, HSA_EXT_COPY_BY_ANY), HSA_EXT_COPY_BY_ENGINE);
    EQUAL(memcmp(back, pattern + 3, size), 0);
    EQUAL(back[size], 0x5a);
}

static void holds_pattern(unsigned char *hidden, const unsigned char *pattern, unsigned char *back,
                          HSAuint64 size)
{
    memset(back, 0, size);
    copy(back, hidden, size, HSA_EXT_COPY_BY_ANY);
    EQUAL(memcmp(back, pattern, size), 0);
}

static void between(unsigned char *one, unsigned char *other, const unsigned char *pattern,
                    unsigned char *back)
{
    copy(one + 1, pattern, LARGEST, HSA_EXT_COPY_BY_ANY);
    EQUAL(copy(other + 5, one + 1, LARGEST, HSA_EXT_COPY_BY_ANY), HSA_EXT_COPY_BY_ENGINE);
    holds_pattern(other + 5, pattern, back, LARGEST);
}

struct job {
    HSAuint32 node;
    unsigned seed;
};

/* Several threads share the engines. */
static void *copies(void *argument)
{
    struct job *job = (struct job *)argument;
    unsigned char *hidden = hidden_memory(job->node);
    unsigned char *bytes = (unsigned char *)malloc(70000), *back = (unsigned char *)malloc(70000);
    int i;

    HOLDS(hidden && bytes && back);
    if (!hidden || !bytes || !back)
        return NULL;
    for (i = 0; i < 20; i++) {
        fill(bytes, 70000, job->seed + (unsigned)i);
        copy(hidden + i, bytes, 69000, HSA_EXT_COPY_BY_ANY);
        memset(back, 0, 70000);
        copy(back, hidden + i, 69000, HSA_EXT_COPY_BY_ANY);
        EQUAL(memcmp(back, bytes, 69000), 0);
    }
    release_memory(hidden);
    free(bytes);
    free(back);
    return NULL;
}

int main(void)
{
    HsaSystemProperties system;
    HsaNodeProperties properties;
    unsigned char *pattern, *back, *hidden[2] = {NULL, NULL};
    HSAuint32 node;
    int i;

    memset(&system, 0, sizeof(system));
    if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS ||
        hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS) {
        expect(0, "the library opens");
        return 1;
    }
    for (node = 0; node < system.NumNodes && gpu_count < 2; node++) {
        SUCCEEDS(hsaKmtGetNodeProperties(node, &properties));
        if (properties.NumFComputeCores && !properties.NumCPUCores)
            gpus[gpu_count++] = node;
    }
    pattern = (unsigned char *)malloc(LENGTH);
    back = (unsigned char *)malloc(LENGTH);
    if (!pattern || !back)
        return 1;
    fill(pattern, LENGTH, 17);
    for (i = 0; i < gpu_count; i++) {
        static const HSAuint64 sizes[] = {1, 2, 3, 63, 64, 65, 4095, 4097, 1 << 20, LARGEST};
        static const HSAuint64 offsets[] = {0, 1, 4095};
        unsigned size, offset;

        hidden[i] = hidden_memory(gpus[i]);
        if (!hidden[i])
            return 1;
        for (size = 0; size < sizeof(sizes) / sizeof(sizes[0]); size++)
            for (offset = 0; offset < 3; offset++)
                there_and_back(hidden[i], pattern, back, offsets[offset], sizes[size]);
        end_part(i ? "video memory of another GPU" : "video memory that the CPU does not reach");

        copy(hidden[i], pattern, LARGEST, HSA_EXT_COPY_BY_ANY);
        EQUAL(copy(hidden[i] + 4097, hidden[i], LARGEST - 4097, HSA_EXT_COPY_BY_ANY),
              HSA_EXT_COPY_BY_ENGINE);
        holds_pattern(hidden[i] + 4097, pattern, back, LARGEST - 4097);
        copy(hidden[i] + 7, hidden[i] + 4097, LARGEST - 4097, HSA_EXT_COPY_BY_ANY);
        holds_pattern(hidden[i] + 7, pattern, back, LARGEST - 4097);
        end_part("over itself, up and down");
    }
    if (gpu_count == 2) {
        /* Each GPU has its own alone: by way of the host. */
        between(hidden[0], hidden[1], pattern, back);
        between(hidden[1], hidden[0], pattern, back);
        end_part("between GPUs that do not see each other");
        if (map_on(hidden[0], LENGTH, 2, gpus) == HSAKMT_STATUS_SUCCESS) {
            between(hidden[0], hidden[1], pattern, back);
            between(hidden[1], hidden[0], pattern, back);
            end_part("between GPUs that see each other");
        }
    }
    if (gpu_count) {
        pthread_t threads[4];
        struct job jobs[4];
        void *memory = NULL;
        HsaMemFlags flags;

        for (i = 0; i < 4; i++) {
            jobs[i].node = gpus[i % gpu_count];
            jobs[i].seed = (unsigned)i * 50;
            HOLDS(!pthread_create(&threads[i], NULL, copies, &jobs[i]));
        }
        for (i = 0; i < 4; i++)
            HOLDS(!pthread_join(threads[i], NULL));
        end_part("by four threads at once");

        memset(&flags, 0, sizeof(flags));
        flags.ui32.HostAccess = 1;
        SUCCEEDS(hsaKmtAllocMemory(0, LENGTH, flags, &memory));
        if (memory) {
            SUCCEEDS(map_on(memory, LENGTH, 1, gpus));
            memcpy(memory, pattern, LARGEST);
            EQUAL(copy(hidden[0] + 9, (char *)memory, LARGEST, HSA_EXT_COPY_BY_ENGINE),
                  HSA_EXT_COPY_BY_ENGINE);
            memset(memory, 0, LARGEST);
            EQUAL(copy((char *)memory + 2, hidden[0] + 9, LARGEST, HSA_EXT_COPY_BY_ENGINE),
                  HSA_EXT_COPY_BY_ENGINE);
            EQUAL(memcmp((char *)memory + 2, pattern, LARGEST), 0);
            release_memory(memory);
        }
        end_part("host memory by an engine");
    }
    for (i = 0; i < gpu_count; i++)
        release_memory(hidden[i]);
    SUCCEEDS(hsaKmtReleaseSystemProperties());
    SUCCEEDS(hsaKmtCloseKFD());
    expect_equal((unsigned)wrong, 0, "nothing is left");
    free(pattern);
    free(back);
    return failures != 0;
}
