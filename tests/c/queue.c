/* SPDX-License-Identifier: MIT */
/*
 * Queues of every type on every GPU: made, used, changed, stopped, ended; and wrong arguments. It
 * leaves nothing behind.
 *
 * Packets are the fewest that show that ring, pointers, doorbell and buffers are right: PM4 writes a
 * word, SDMA a fence, AQL is a barrier with a completion signal. Engines run while the program asks
 * for clocks; with the argument "spin" it only looks at memory.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <time.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

static int wrong;
static int spins;

static void equal(unsigned long long got, unsigned long long wanted, const char *what, int line)
{
    if (got == wanted)
        return;
    printf("# line %d: %s: got %#llx, wanted %#llx\n", line, what, got, wanted);
    wrong++;
}

#define EQUAL(got, wanted) \
    equal((unsigned long long)(got), (unsigned long long)(wanted), #got, __LINE__)
#define HOLDS(condition) equal(!!(condition), 1, #condition, __LINE__)
#define SUCCEEDS(call) EQUAL(call, HSAKMT_STATUS_SUCCESS)
#define FAILS(call, status) EQUAL(call, HSAKMT_STATUS_##status)

static void end_part(const char *name)
{
    expect(!wrong, name);
    wrong = 0;
}

enum { RING = 64 * 1024, PAGE = 4096, NODES = 80 };

struct gpu {
    HSAuint32 node;
    unsigned major, minor;
    unsigned doorbell_type;
    unsigned xgmi_engines;
    unsigned has_gws;
};

static struct gpu gpus[NODES];
static unsigned gpu_count;
static HSAuint32 kfd_minor;

/* Host memory that a GPU has mapped. */
static void *shared_memory(const struct gpu *gpu, size_t size, int aql)
{
    HSAuint32 nodes[1];
    HSAuint64 alternate = 0;
#if HSAKMT_ABI_GENERATION >= 2026
    HsaMemFlags map_flags;
#else
    HsaMemMapFlags map_flags;
#endif
    HsaMemFlags flags;
    void *memory = NULL;

    memset(&flags, 0, sizeof(flags));
    memset(&map_flags, 0, sizeof(map_flags));
    nodes[0] = gpu->node;
    flags.ui32.HostAccess = 1;
    flags.ui32.ExecuteAccess = 1;
    /* From gfx11 on the driver takes no write pointer in pages of the process. Of a GPU within the
       CPU's node it would be video memory. */
    flags.ui32.NonPaged = gpus[0].node != 0;
    flags.ui32.PageSize = HSA_PAGE_SIZE_4KB;
    flags.ui32.AQLQueueMemory = aql;
    /* Nor one in memory of the driver that it has made for another GPU: that of node 0 is the first
       GPU's. */
    SUCCEEDS(hsaKmtAllocMemory(gpu->major >= 11 && gpu != gpus ? gpu->node : 0, size, flags,
                               &memory));
    if (!memory)
        return NULL;
    memset(memory, 0, size);
    /* Within the CPU's node a GPU sees all memory. */
    if (gpu->node == 0)
        SUCCEEDS(hsaKmtMapMemoryToGPU(memory, size, &alternate));
    else
        SUCCEEDS(hsaKmtMapMemoryToGPUNodes(memory, size, &alternate, map_flags, 1, nodes));
    return memory;
}

static void release_memory(void *memory, size_t size)
{
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    SUCCEEDS(hsaKmtFreeMemory(memory, size));
}

/* Asks for clocks until a word has a value, or it takes too long. */
static int becomes(volatile uint64_t *word, uint64_t wanted)
{
    struct timespec begin, now;
    HsaClockCounters counters;

    clock_gettime(CLOCK_MONOTONIC, &begin);
    do {
        if (__atomic_load_n(word, __ATOMIC_ACQUIRE) == wanted)
            return 1;
        if (!spins)
            hsaKmtGetClockCounters(gpus[0].node, &counters);
        clock_gettime(CLOCK_MONOTONIC, &now);
    } while (now.tv_sec - begin.tv_sec < 20);
    printf("# the word is %#llx, not %#llx\n", (unsigned long long)*word,
           (unsigned long long)wanted);
    return 0;
}

static void ring_doorbell(const struct gpu *gpu, const HsaQueueResource *resource, uint64_t value)
{
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (gpu->doorbell_type >= 2)
        __atomic_store_n((uint64_t *)resource->Queue_DoorBell_aql, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)resource->Queue_DoorBell, (uint32_t)value, __ATOMIC_RELEASE);
}

static void set_write_pointer(const struct gpu *gpu, const HsaQueueResource *resource,
                              uint64_t value)
{
    if (gpu->doorbell_type >= 2)
        __atomic_store_n((uint64_t *)resource->Queue_write_ptr_aql, value, __ATOMIC_RELEASE);
    else
        __atomic_store_n((uint32_t *)resource->Queue_write_ptr, (uint32_t)value, __ATOMIC_RELEASE);
}

/* Submits the few dwords that write a word, at the start of a new ring. */
static void submit_command(const struct gpu *gpu, const HsaQueueResource *resource, uint32_t *ring,
                           int is_sdma, volatile uint64_t *word, uint32_t value)
{
    uintptr_t address = (uintptr_t)word;
    unsigned dwords = 0;
    uint64_t written;

    if (is_sdma) {
        /* SDMA_OP_FENCE; from gfx10 on uncached. Early engines take 64 dwords at least. */
        ring[dwords++] = 5 | (gpu->major >= 10 ? 3u << 16 : 0);
        ring[dwords++] = (uint32_t)address;
        ring[dwords++] = (uint32_t)(address >> 32);
        ring[dwords++] = value;
        while (dwords < 64)
            ring[dwords++] = 0;
        written = dwords * 4;
    } else {
        /* PACKET3_WRITE_DATA to memory, confirmed; padding in PM4 no-operations. */
        ring[dwords++] = 3u << 30 | 3u << 16 | 0x37u << 8;
        ring[dwords++] = 5u << 8 | 1u << 20;
        ring[dwords++] = (uint32_t)address;
        ring[dwords++] = (uint32_t)(address >> 32);
        ring[dwords++] = value;
        written = dwords;
    }
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    set_write_pointer(gpu, resource, written);
    ring_doorbell(gpu, resource, written);
}

struct signal {
    int64_t kind;
    volatile uint64_t value;
    uint64_t mailbox;
    uint32_t event, reserved;
    uint64_t more[4];
};

/* Submits a barrier without dependencies and with a completion signal. */
static void submit_barrier(const struct gpu *gpu, const HsaQueueResource *resource, uint32_t *ring,
                           struct signal *signal)
{
    uint16_t header = 3 | 1u << 8 | 2u << 9 | 2u << 11;
    uint32_t *packet = ring;

    memset(signal, 0, sizeof(*signal));
    signal->kind = 1;
    signal->value = 1;
    memset(packet, 0, 64);
    packet[14] = (uint32_t)(uintptr_t)signal;
    packet[15] = (uint32_t)((uintptr_t)signal >> 32);
    __atomic_store_n((uint16_t *)packet, header, __ATOMIC_RELEASE);
    set_write_pointer(gpu, resource, 1);
    /* gfx9 and later: the index of the packet. gfx8: the number of packets. Before: dwords. */
    ring_doorbell(gpu, resource, gpu->doorbell_type >= 2 ? 0 : gpu->doorbell_type == 1 ? 1 : 16);
}

static const char *type_name(HSA_QUEUE_TYPE type)
{
    switch (type) {
    case HSA_QUEUE_COMPUTE:
        return "PM4";
    case HSA_QUEUE_COMPUTE_AQL:
        return "AQL";
    case HSA_QUEUE_SDMA:
        return "SDMA";
    default:
        return "SDMA for XGMI";
    }
}

/* What a caller needs beside the queue. */
struct parts {
    uint32_t *ring;
    size_t ring_bytes;
    uint64_t *read_pointer, *write_pointer;
    uint64_t *words;
    HSAint64 *reason;
};

static struct parts make_parts(const struct gpu *gpu, HSA_QUEUE_TYPE type)
{
    int twice = type == HSA_QUEUE_COMPUTE_AQL && gpu->major < 9;
    struct parts parts;

    memset(&parts, 0, sizeof(parts));
    parts.ring_bytes = RING;
    parts.ring = (uint32_t *)shared_memory(gpu, RING, twice);
    parts.words = (uint64_t *)shared_memory(gpu, PAGE, 0);
    parts.reason = (HSAint64 *)(void *)(parts.words + 256);
    if (type == HSA_QUEUE_COMPUTE_AQL) {
        size_t i;

        parts.read_pointer = (uint64_t *)shared_memory(gpu, PAGE, 0);
        parts.write_pointer = (uint64_t *)shared_memory(gpu, PAGE, 0);
        /* Places without a packet are invalid ones. */
        for (i = 0; i < RING / 4; i += 16)
            parts.ring[i] = 1;
    }
    return parts;
}

static void release_parts(struct parts *parts)
{
    release_memory(parts->ring, parts->ring_bytes);
    release_memory(parts->words, PAGE);
    if (parts->read_pointer) {
        release_memory(parts->read_pointer, PAGE);
        release_memory(parts->write_pointer, PAGE);
    }
}

static HsaQueueResource resource_of(const struct parts *parts)
{
    HsaQueueResource resource;

    memset(&resource, 0, sizeof(resource));
    resource.Queue_read_ptr_aql = parts->read_pointer;
    resource.Queue_write_ptr_aql = parts->write_pointer;
    resource.ErrorReason = parts->reason;
    return resource;
}

/* The bytes that the driver is told of a ring: those of both halves where it is mapped twice. */
static HSAuint64 told_bytes(const struct gpu *gpu, HSA_QUEUE_TYPE type)
{
    return type == HSA_QUEUE_COMPUTE_AQL && gpu->major < 9 ? 2 * RING : RING;
}

static HSAKMT_STATUS make_queue(const struct gpu *gpu, HSA_QUEUE_TYPE type, struct parts *parts,
                                HsaEvent *event, HsaQueueResource *resource)
{
    return hsaKmtCreateQueue(gpu->node, type, 100, HSA_QUEUE_PRIORITY_NORMAL, parts->ring,
                             told_bytes(gpu, type), event, resource);
}

static void use_queue(const struct gpu *gpu, HSA_QUEUE_TYPE type)
{
    struct parts parts = make_parts(gpu, type);
    HsaQueueResource resource = resource_of(&parts);
    int is_compute = type == HSA_QUEUE_COMPUTE || type == HSA_QUEUE_COMPUTE_AQL;
    HsaQueueInfo info;
    HSAuint32 mask[32], first = 7;
    HSAKMT_STATUS status;
    char name[80];

    SUCCEEDS(make_queue(gpu, type, &parts, NULL, &resource));
    if (!resource.Queue_DoorBell) {
        release_parts(&parts);
        end_part("a queue is made");
        return;
    }
    HOLDS(resource.QueueId != 0 && resource.Queue_DoorBell && resource.Queue_write_ptr &&
          resource.Queue_read_ptr);
    if (type == HSA_QUEUE_COMPUTE_AQL)
        HOLDS(resource.Queue_write_ptr_aql == parts.write_pointer &&
              resource.Queue_read_ptr_aql == parts.read_pointer);
    else
        HOLDS(*resource.Queue_write_ptr == 0 && *resource.Queue_read_ptr == 0);
    if (type == HSA_QUEUE_COMPUTE_AQL) {
        struct signal *signal = (struct signal *)(void *)parts.words;

        submit_barrier(gpu, &resource, parts.ring, signal);
        HOLDS(becomes(&signal->value, 0));
    } else {
        submit_command(gpu, &resource, parts.ring, !is_compute, parts.words, 0x51a7e);
        HOLDS(becomes(parts.words, 0x51a7e));
    }
    snprintf(name, sizeof(name), "node %u: a queue of %s executes", gpu->node, type_name(type));
    end_part(name);

#if HSAKMT_ABI_GENERATION >= 2026
    {
        HSAuint32 kernel_id = ~0u;

        SUCCEEDS(hsaKmtGetKernelQueueId(resource.QueueId, &kernel_id));
        HOLDS(kernel_id < 1024);
        FAILS(hsaKmtGetKernelQueueId(0, &kernel_id), INVALID_PARAMETER);
        FAILS(hsaKmtGetKernelQueueId(resource.QueueId, NULL), INVALID_PARAMETER);
    }
#endif
    memset(&info, 0xff, sizeof(info));
    if (is_compute && gpu->major >= 8) {
        memset(mask, 0xff, sizeof(mask));
        SUCCEEDS(hsaKmtSetQueueCUMask(resource.QueueId, 32, mask));
    }
    /* A ring that is mapped twice the driver does not find again when the queue is changed. */
    if (is_compute && gpu->major >= 8 && told_bytes(gpu, type) == RING) {
        /* The driver refuses while the queue is active. */
        FAILS(hsaKmtGetQueueInfo(resource.QueueId, &info), ERROR);
        SUCCEEDS(hsaKmtUpdateQueue(resource.QueueId, 0, HSA_QUEUE_PRIORITY_LOW, parts.ring,
                                   told_bytes(gpu, type), NULL));
        SUCCEEDS(hsaKmtGetQueueInfo(resource.QueueId, &info));
        HOLDS(info.SaveAreaHeader != NULL && info.CUMaskInfo != NULL);
        EQUAL(info.NumCUAssigned, 32);
        if (info.CUMaskInfo)
            EQUAL(info.CUMaskInfo[0], 0xffffffffu);
        if (info.SaveAreaHeader) {
            HsaUserContextSaveAreaHeader *header = info.SaveAreaHeader;
            char *area = (char *)header;

            HOLDS(header->ErrorReason == parts.reason);
            HOLDS(header->DebugSize != 0 && header->DebugOffset != 0);
            HOLDS((char *)info.UserContextSaveArea > area);
            HOLDS((char *)info.ControlStackTop + info.ControlStackUsedInBytes ==
                  (char *)info.UserContextSaveArea);
        }
        SUCCEEDS(hsaKmtUpdateQueue(resource.QueueId, 100, HSA_QUEUE_PRIORITY_HIGH, parts.ring,
                                   told_bytes(gpu, type), NULL));
        status = hsaKmtAllocQueueGWS(resource.QueueId, 1, &first);
        HOLDS(status == HSAKMT_STATUS_SUCCESS || status == HSAKMT_STATUS_NOT_SUPPORTED);
        if (status == HSAKMT_STATUS_SUCCESS) {
            EQUAL(first, 0);
            SUCCEEDS(hsaKmtAllocQueueGWS(resource.QueueId, 0, NULL));
        }
    } else if (!is_compute) {
        FAILS(hsaKmtGetQueueInfo(resource.QueueId, &info), ERROR);
    }
    FAILS(hsaKmtGetQueueInfo(resource.QueueId, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtSetQueueCUMask(resource.QueueId, 0, mask), INVALID_PARAMETER);
    FAILS(hsaKmtSetQueueCUMask(resource.QueueId, 33, mask), INVALID_PARAMETER);
    FAILS(hsaKmtSetQueueCUMask(resource.QueueId, 32, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtUpdateQueue(resource.QueueId, 100, (HSA_QUEUE_PRIORITY)4, parts.ring, RING, NULL),
          INVALID_PARAMETER);
    FAILS(hsaKmtUpdateQueue(resource.QueueId, 101, HSA_QUEUE_PRIORITY_NORMAL, parts.ring, RING,
                            NULL), ERROR);
    SUCCEEDS(hsaKmtDestroyQueue(resource.QueueId));
    FAILS(hsaKmtDestroyQueue(resource.QueueId), INVALID_PARAMETER);
    FAILS(hsaKmtUpdateQueue(resource.QueueId, 100, HSA_QUEUE_PRIORITY_NORMAL, parts.ring, RING,
                            NULL), INVALID_PARAMETER);
    release_parts(&parts);
    snprintf(name, sizeof(name), "node %u: a queue of %s is changed, stopped and ended", gpu->node,
             type_name(type));
    end_part(name);
}

/* The position of the argument that the newest failure was about; 0 if it was about no argument. */
static HSAuint64 wrong_argument(void)
{
    HsaExtErrorDetail detail;

    memset(&detail, 0, sizeof(detail));
    detail.Size = sizeof(detail);
    SUCCEEDS(hsaKmtExtGetLastError(&detail));
    return detail.Operation == 2 ? detail.Object : 0;
}

static void wrong_arguments(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_COMPUTE);
    HsaQueueResource resource = resource_of(&parts), before = resource;
    HSAuint32 type;

    FAILS(make_queue(gpu, HSA_QUEUE_COMPUTE, &parts, NULL, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueue(0, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, parts.ring, RING,
                            NULL, &resource), INVALID_NODE_UNIT);
    FAILS(hsaKmtCreateQueue(1000, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, parts.ring,
                            RING, NULL, &resource), INVALID_NODE_UNIT);
    /* Every number that is no type of ours (field fault B60: those above were refused, too). */
    for (type = 0; type < 40; type++) {
        switch (type) {
        case HSA_QUEUE_COMPUTE:
        case HSA_QUEUE_SDMA:
        case HSA_QUEUE_SDMA_XGMI:
        case HSA_QUEUE_COMPUTE_AQL:
            continue;
        default:
            break;
        }
        EQUAL(hsaKmtCreateQueue(gpu->node, (HSA_QUEUE_TYPE)type, 100, HSA_QUEUE_PRIORITY_NORMAL,
                                parts.ring, RING, NULL, &resource),
              type == 6 ? HSAKMT_STATUS_ERROR : HSAKMT_STATUS_INVALID_PARAMETER);
    }
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, (HSA_QUEUE_PRIORITY)4, parts.ring,
                            RING, NULL, &resource), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, (HSA_QUEUE_PRIORITY)-4, parts.ring,
                            RING, NULL, &resource), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 101, HSA_QUEUE_PRIORITY_NORMAL,
                            parts.ring, RING, NULL, &resource), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL,
                            parts.ring, RING / 2 + 1, NULL, &resource), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL,
                            parts.ring, (HSAuint64)1 << 32, NULL, &resource), INVALID_PARAMETER);
    /* A ring that is half of a mapping, where the driver looks (field fault B54 is the same of save
       areas). */
    if (kfd_minor >= 17) {
        FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL,
                                parts.ring, RING / 2, NULL, &resource), INVALID_PARAMETER);
        EQUAL(wrong_argument(), 0);
    }
    EQUAL(memcmp(&resource, &before, sizeof(resource)), 0);
    /* The reason names the argument where it is in the function that was called. */
    FAILS(hsaKmtCreateQueue(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL,
                            parts.ring, (HSAuint64)1 << 32, NULL, &resource), INVALID_PARAMETER);
    EQUAL(wrong_argument(), 6);
    FAILS(make_queue(gpu, HSA_QUEUE_COMPUTE, &parts, NULL, NULL), INVALID_PARAMETER);
    EQUAL(wrong_argument(), 8);
#if HSAKMT_ABI_GENERATION >= 2025
    FAILS(hsaKmtCreateQueueExt(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, 0,
                               parts.ring, (HSAuint64)1 << 32, NULL, &resource),
          INVALID_PARAMETER);
    EQUAL(wrong_argument(), 7);
    FAILS(hsaKmtCreateQueueExt(gpu->node, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, 0,
                               parts.ring, RING, NULL, NULL), INVALID_PARAMETER);
    EQUAL(wrong_argument(), 9);
#endif
    FAILS(hsaKmtDestroyQueue(0), INVALID_PARAMETER);
    FAILS(hsaKmtDestroyQueue(~(HSA_QUEUEID)0), INVALID_PARAMETER);
    FAILS(hsaKmtUpdateQueue(0, 100, HSA_QUEUE_PRIORITY_NORMAL, parts.ring, RING, NULL),
          INVALID_PARAMETER);
    FAILS(hsaKmtSetTrapHandler(0, parts.ring, RING, parts.words, PAGE), INVALID_NODE_UNIT);
    SUCCEEDS(hsaKmtSetTrapHandler(gpu->node, parts.ring, RING, parts.words, PAGE));
    release_parts(&parts);
    end_part("wrong arguments have their answers and leave nothing");
}

/* Of parts with several dies nothing is left behind either (field fault B59). */
static void made_and_ended_again(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_COMPUTE_AQL);
    HSA_QUEUEID ids[8];
    void *doorbell = NULL;
    int i, k;

    for (i = 0; i < 50; i++) {
        for (k = 0; k < 8; k++) {
            HsaQueueResource resource = resource_of(&parts);

            SUCCEEDS(make_queue(gpu, HSA_QUEUE_COMPUTE_AQL, &parts, NULL, &resource));
            ids[k] = resource.QueueId;
            if (k == 0) {
                HOLDS(!doorbell || doorbell == (void *)resource.Queue_DoorBell);
                doorbell = resource.Queue_DoorBell;
            }
        }
        for (k = 0; k < 8; k++)
            SUCCEEDS(hsaKmtDestroyQueue(ids[k]));
    }
    release_parts(&parts);
    end_part("queues are made and ended 400 times, their doorbells given anew");
}

static HsaQueueResource raced;

static void *destroy(void *argument)
{
    (void)argument;
    return (void *)(uintptr_t)hsaKmtDestroyQueue(raced.QueueId);
}

static void ended_by_several_threads(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_COMPUTE);
    pthread_t threads[4];
    int i, k, ended;

    for (i = 0; i < 100; i++) {
        raced = resource_of(&parts);
        SUCCEEDS(make_queue(gpu, HSA_QUEUE_COMPUTE, &parts, NULL, &raced));
        for (k = 0; k < 4; k++)
            HOLDS(!pthread_create(&threads[k], NULL, destroy, NULL));
        for (ended = k = 0; k < 4; k++) {
            void *status;

            HOLDS(!pthread_join(threads[k], &status));
            ended += (uintptr_t)status == HSAKMT_STATUS_SUCCESS;
        }
        EQUAL(ended, 1);
    }
    release_parts(&parts);
    end_part("of several threads one ends the queue");
}

#if HSAKMT_ABI_GENERATION >= 2025
static void engines_by_number(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_SDMA);
    HsaQueueResource resource = resource_of(&parts);
    HSAKMT_STATUS status;

    status = hsaKmtCreateQueueExt(gpu->node, HSA_QUEUE_SDMA_BY_ENG_ID, 100,
                                  HSA_QUEUE_PRIORITY_NORMAL, 0, parts.ring, RING, NULL, &resource);
    if (kfd_minor >= 17) {
        EQUAL(status, HSAKMT_STATUS_SUCCESS);
        submit_command(gpu, &resource, parts.ring, 1, parts.words, 0xe0);
        HOLDS(becomes(parts.words, 0xe0));
        SUCCEEDS(hsaKmtDestroyQueue(resource.QueueId));
        resource = resource_of(&parts);
        FAILS(hsaKmtCreateQueueExt(gpu->node, HSA_QUEUE_SDMA_BY_ENG_ID, 100,
                                   HSA_QUEUE_PRIORITY_NORMAL, 1000, parts.ring, RING, NULL,
                                   &resource), INVALID_PARAMETER);
    } else {
        EQUAL(status, HSAKMT_STATUS_ERROR);
    }
    release_parts(&parts);
    end_part("a copy engine is chosen by its number");
}
#endif

#if HSAKMT_ABI_GENERATION >= 2026
static void in_a_context(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_COMPUTE_AQL);
    HsaQueueResource resource = resource_of(&parts);
    HsaKFDContext *primary = NULL, *secondary = NULL;

    FAILS(hsaKmtOpenKFDCtx(&primary), KERNEL_ALREADY_OPENED);
    SUCCEEDS(hsaKmtCreateQueueCtx(primary, gpu->node, HSA_QUEUE_COMPUTE_AQL, 100,
                                  HSA_QUEUE_PRIORITY_NORMAL, parts.ring,
                                  told_bytes(gpu, HSA_QUEUE_COMPUTE_AQL), NULL, &resource));
    if (hsaKmtOpenSecondaryKFDCtx(&secondary) == HSAKMT_STATUS_SUCCESS) {
        /* A queue of one context is none of another. */
        FAILS(hsaKmtDestroyQueueCtx(secondary, resource.QueueId), INVALID_PARAMETER);
        SUCCEEDS(hsaKmtCloseSecondaryKFDCtx(secondary));
    }
    SUCCEEDS(hsaKmtDestroyQueueCtx(primary, resource.QueueId));
    SUCCEEDS(hsaKmtCloseKFD());
    FAILS(hsaKmtDestroyQueueCtx(NULL, resource.QueueId), INVALID_PARAMETER);
    FAILS(hsaKmtCreateQueueV2(gpu->node, HSA_QUEUE_COMPUTE_AQL, 100, HSA_QUEUE_PRIORITY_NORMAL, 0,
                              parts.ring, told_bytes(gpu, HSA_QUEUE_COMPUTE_AQL), 12, NULL,
                              &resource),
          NOT_SUPPORTED + (kfd_minor >= 19 ? HSAKMT_STATUS_INVALID_PARAMETER -
                                                 HSAKMT_STATUS_NOT_SUPPORTED : 0));
    release_parts(&parts);
    end_part("queues belong to their context");
}
#endif

/* Queues that are left are ended by the close. */
static void left_behind(const struct gpu *gpu)
{
    struct parts parts = make_parts(gpu, HSA_QUEUE_COMPUTE);
    HsaQueueResource resource = resource_of(&parts);

    SUCCEEDS(make_queue(gpu, HSA_QUEUE_COMPUTE, &parts, NULL, &resource));
}

int main(int argc, char **argv)
{
    HsaSystemProperties system;
    HsaVersionInfo version;
    HSAuint32 node;
    unsigned i;

    spins = argc > 1 && !strcmp(argv[1], "spin");
    memset(&system, 0, sizeof(system));
    FAILS(hsaKmtDestroyQueue(1), KERNEL_IO_CHANNEL_NOT_OPENED);
    if (hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS ||
        hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS) {
        expect(0, "the library opens");
        return 1;
    }
    SUCCEEDS(hsaKmtGetVersion(&version));
    kfd_minor = version.KernelInterfaceMinorVersion;
    for (node = 0; node < system.NumNodes; node++) {
        HsaNodeProperties properties;

        SUCCEEDS(hsaKmtGetNodeProperties(node, &properties));
        if (!properties.NumFComputeCores || gpu_count == NODES)
            continue;
        gpus[gpu_count].node = node;
        gpus[gpu_count].major = properties.EngineId.ui32.Major;
        gpus[gpu_count].minor = properties.EngineId.ui32.Minor;
        gpus[gpu_count].doorbell_type = properties.Capability.ui32.DoorbellType;
        gpus[gpu_count].xgmi_engines = properties.NumSdmaXgmiEngines;
        gpu_count++;
    }
    for (i = 0; i < gpu_count && i < 3; i++) {
        use_queue(&gpus[i], HSA_QUEUE_COMPUTE);
        use_queue(&gpus[i], HSA_QUEUE_COMPUTE_AQL);
        use_queue(&gpus[i], HSA_QUEUE_SDMA);
        if (gpus[i].xgmi_engines)
            use_queue(&gpus[i], HSA_QUEUE_SDMA_XGMI);
    }
    if (gpu_count) {
        wrong_arguments(&gpus[gpu_count - 1]);
        made_and_ended_again(&gpus[gpu_count - 1]);
        ended_by_several_threads(&gpus[0]);
#if HSAKMT_ABI_GENERATION >= 2025
        engines_by_number(&gpus[0]);
#endif
#if HSAKMT_ABI_GENERATION >= 2026
        in_a_context(&gpus[0]);
#endif
        left_behind(&gpus[0]);
    } else {
        HsaQueueResource resource;

        memset(&resource, 0, sizeof(resource));
        FAILS(hsaKmtCreateQueue(0, HSA_QUEUE_COMPUTE, 100, HSA_QUEUE_PRIORITY_NORMAL, &resource,
                                RING, NULL, &resource), INVALID_NODE_UNIT);
        end_part("without a GPU there is no queue");
    }
    SUCCEEDS(hsaKmtReleaseSystemProperties());
    SUCCEEDS(hsaKmtCloseKFD());
    expect_equal((unsigned)wrong, 0, "the close ends what is left");
    return failures != 0;
}
