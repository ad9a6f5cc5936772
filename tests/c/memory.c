/* SPDX-License-Identifier: MIT */
/*
 * Memory: allocated, mapped, registered, asked about, given back; on every GPU of the machine that
 * it finds, and wrong arguments. It leaves nothing behind.
 *
 * Where the answer depends on the machine, it follows what the nodes say of themselves. With
 * -DREFERENCE=1 it expects what libhsakmt 5.2.3 does, so that an expectation that this library
 * alone fulfils is seen. The differences are these, each intended:
 *
 * - ProcessVMRead and ProcessVMWrite are implemented in 5.2.3; later versions and this library
 *   answer NOT_IMPLEMENTED.
 * - QueryPointerInfo and SetMemoryUserData of a closed library: 5.2.3 crashes.
 * - Mapping an unknown address: 5.2.3 answers ERROR, later versions and this library
 *   INVALID_PARAMETER.
 * - *AlternateVAGPU of MapMemoryToGPUNodes: 5.2.3 writes it for user pointers only, this library
 *   always.
 * - RegisterMemoryWithFlags of allocated memory: 5.2.3 accepts it, later versions and this library
 *   answer INVALID_HANDLE.
 * - RegisterMemoryToNodes that fails with MEMORY_ALREADY_REGISTERED: 5.2.3 counts a reference, so
 *   that one more deregistration is needed; here a failed call changes nothing.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

#ifndef REFERENCE
#define REFERENCE 0
#endif

#define KIB ((HSAuint64)1 << 10)
#define MIB ((HSAuint64)1 << 20)
#define NODES_MAX 256

/* ---------------------------------------------------------------------------------------------- */
/* Expectations: a part is one test, and shows each expectation that failed.                      */
/* ---------------------------------------------------------------------------------------------- */

static int wrong;

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

static void end_part(const char *name, HSAuint32 node)
{
    char line[128];

    snprintf(line, sizeof(line), "node %u: %s", node, name);
    expect(!wrong, line);
    wrong = 0;
}

/* ---------------------------------------------------------------------------------------------- */
/* The machine                                                                                    */
/* ---------------------------------------------------------------------------------------------- */

static HSAuint32 node_count;
static HSAuint32 gpus[NODES_MAX], gpu_count;
/* A node with a CPU. */
static HSAuint32 cpu_node;
/* Whether there is a GPU with memory and address space of its own. */
static int discrete;
/* Whether every GPU has the SVM calls. */
static int svm;
/* Whether these serve memory that nobody registered. */
static int unregistered;
static HSAuint32 kfd_minor;
static HSAuint64 page;

/* Unknown addresses are no error where any address may be good. */
static HSAKMT_STATUS when_unknown(HSAKMT_STATUS otherwise)
{
    return unregistered || !discrete ? HSAKMT_STATUS_SUCCESS : otherwise;
}

static HSAKMT_STATUS free_of_unknown(void)
{
    return unregistered ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_MEMORY_NOT_REGISTERED;
}

static void read_machine(void)
{
    HsaVersionInfo version;
    HsaSystemProperties system;
    HsaNodeProperties node;
    HSAuint32 i;

    SUCCEEDS(hsaKmtGetVersion(&version));
    kfd_minor = version.KernelInterfaceMinorVersion;
    page = (HSAuint64)sysconf(_SC_PAGESIZE);
    memset(&system, 0, sizeof(system));
    SUCCEEDS(hsaKmtAcquireSystemProperties(&system));
    node_count = system.NumNodes;
    cpu_node = node_count;
    svm = 1;
    for (i = 0; i < node_count; i++) {
        memset(&node, 0, sizeof(node));
        SUCCEEDS(hsaKmtGetNodeProperties(i, &node));
        if (node.NumCPUCores && cpu_node == node_count)
            cpu_node = i;
        if (!node.NumFComputeCores || gpu_count == NODES_MAX)
            continue;
        gpus[gpu_count++] = i;
        if (!node.NumCPUCores)
            discrete = 1;
        if (!node.Capability.ui32.SVMAPISupported)
            svm = 0;
    }
    if (!gpu_count)
        svm = 0;
    unregistered = svm && HSAKMT_ABI_GENERATION >= 2025;
    printf("# %u nodes, %u GPUs, %s, %s, KFD 1.%u\n", node_count, gpu_count,
           discrete ? "discrete" : "not discrete", svm ? "SVM" : "no SVM", kfd_minor);
}

/* Bytes of a node's memory of a kind. */
static HSAuint64 bank_size(HSAuint32 node, HSA_HEAPTYPE heap)
{
    HsaMemoryProperties banks[16];
    HsaNodeProperties properties;
    HSAuint64 size = 0;
    HSAuint32 i, count;

    SUCCEEDS(hsaKmtGetNodeProperties(node, &properties));
    count = properties.NumMemoryBanks < 16 ? properties.NumMemoryBanks : 16;
    memset(banks, 0, sizeof(banks));
    if (count)
        SUCCEEDS(hsaKmtGetNodeMemoryProperties(node, count, banks));
    for (i = 0; i < count; i++)
        if (banks[i].HeapType == heap)
            size += banks[i].SizeInBytes;
    return size;
}

/* The GPUs that map memory of a GPU unless told otherwise: itself, and those with a link to it. */
static HSAuint32 peers_of(HSAuint32 gpu, HSAuint32 *peers)
{
    HsaIoLinkProperties links[NODES_MAX];
    HsaNodeProperties node;
    HSAuint32 i, link, count = 0;

    for (i = 0; i < gpu_count; i++) {
        int reaches = gpus[i] == gpu;

        SUCCEEDS(hsaKmtGetNodeProperties(gpus[i], &node));
        if (!reaches && node.NumIOLinks && node.NumIOLinks <= NODES_MAX) {
            SUCCEEDS(hsaKmtGetNodeIoLinkProperties(gpus[i], node.NumIOLinks, links));
            for (link = 0; link < node.NumIOLinks; link++)
                reaches |= links[link].NodeTo == gpu;
        }
        if (reaches)
            peers[count++] = gpus[i];
    }
    return count;
}

/* ---------------------------------------------------------------------------------------------- */
/* Memory                                                                                         */
/* ---------------------------------------------------------------------------------------------- */

static HsaMemFlags no_flags(void)
{
    HsaMemFlags flags;

    memset(&flags, 0, sizeof(flags));
    return flags;
}

/* Memory of a GPU. */
static HsaMemFlags video(int host_access)
{
    HsaMemFlags flags = no_flags();

    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = host_access != 0;
    flags.ui32.CoarseGrain = 1;
    return flags;
}

/* Memory of a CPU, paged or not. */
static HsaMemFlags host(int paged)
{
    HsaMemFlags flags = no_flags();

    flags.ui32.HostAccess = 1;
    flags.ui32.NonPaged = !paged;
    return flags;
}

static HSAKMT_STATUS map_to_nodes(void *memory, HSAuint64 size, HSAuint64 *alternate,
                                  HSAuint64 count, HSAuint32 *nodes)
{
#if HSAKMT_ABI_GENERATION >= 2026
    HsaMemFlags flags;
#else
    HsaMemMapFlags flags;
#endif

    memset(&flags, 0, sizeof(flags));
    return hsaKmtMapMemoryToGPUNodes(memory, size, alternate, flags, count, nodes);
}

/* The word that belongs at an offset. */
static uint32_t word_at(HSAuint64 offset)
{
    return (uint32_t)(offset * 2654435761u) ^ 0x5a5a5a5au;
}

/* Writes and reads a word at the start of each page, and the last one. */
static void use(void *memory, HSAuint64 size)
{
    volatile uint32_t *words = (volatile uint32_t *)memory;
    HSAuint64 offset, bad = 0;

    for (offset = 0; offset < size; offset += 4 * KIB)
        words[offset / 4] = word_at(offset);
    words[size / 4 - 1] = word_at(size);
    for (offset = 0; offset < size; offset += 4 * KIB)
        bad += words[offset / 4] != word_at(offset);
    bad += words[size / 4 - 1] != word_at(size);
    EQUAL(bad, 0);
}

/* Whether a list of nodes has the same nodes as another, each once. */
static int same_nodes(const HSAuint32 *got, HSAuint32 got_count, const HSAuint32 *wanted,
                      HSAuint32 wanted_count)
{
    HSAuint32 i, j;

    if (got_count != wanted_count || (got_count && !got))
        return 0;
    for (i = 0; i < wanted_count; i++) {
        int found = 0;

        for (j = 0; j < got_count; j++)
            found += got[j] == wanted[i];
        if (found != 1)
            return 0;
    }
    return 1;
}

/* An object as QueryPointerInfo is to tell it. */
struct object {
    HSA_POINTER_TYPE type;
    HSAuint32 node;
    HsaMemFlags flags;
    void *cpu;
    HSAuint64 gpu;
    HSAuint64 size;
    const HSAuint32 *registered;
    HSAuint32 registered_count;
    const HSAuint32 *mapped;
    HSAuint32 mapped_count;
    void *user_data;
};

static struct object allocated(void *memory, HSAuint32 node, HSAuint64 size, HsaMemFlags flags)
{
    struct object object;

    memset(&object, 0, sizeof(object));
    object.type = HSA_POINTER_ALLOCATED;
    object.node = node;
    object.flags = flags;
    object.cpu = flags.ui32.HostAccess ? memory : NULL;
    object.gpu = (HSAuint64)(uintptr_t)memory;
    object.size = size;
    return object;
}

static void tells_at(const struct object *object, const void *address, int line)
{
    HsaPointerInfo info;
    int before = wrong;

    memset(&info, 0xa5, sizeof(info));
    SUCCEEDS(hsaKmtQueryPointerInfo(address, &info));
    EQUAL(info.Type, object->type);
    EQUAL(info.Node, object->node);
    EQUAL(info.MemFlags.Value, object->flags.Value);
    /* Without host access its first byte has an address, which may or may not be told. */
    if (object->cpu || object->type != HSA_POINTER_ALLOCATED || info.CPUAddress)
        EQUAL(info.CPUAddress, object->cpu ? object->cpu : info.CPUAddress);
    EQUAL(info.GPUAddress, object->gpu);
    /* The ring of a queue has twice as many addresses as it has bytes. */
    if (!object->flags.ui32.AQLQueueMemory || info.SizeInBytes != 2 * object->size)
        EQUAL(info.SizeInBytes, object->size);
    HOLDS(same_nodes(info.RegisteredNodes, info.NRegisteredNodes, object->registered,
                     object->registered_count));
    HOLDS(same_nodes(info.MappedNodes, info.NMappedNodes, object->mapped, object->mapped_count));
    EQUAL(info.UserData, object->user_data);
    if (wrong != before)
        printf("# asked at line %d\n", line);
}

/* Asks at the first byte, in the middle and at the last byte. */
static void tells(const struct object *object, void *memory, HSAuint64 size, int line)
{
    tells_at(object, memory, line);
    tells_at(object, (char *)memory + size / 2, line);
    tells_at(object, (char *)memory + size - 1, line);
}

#define TELLS(object, memory, size) tells(object, memory, size, __LINE__)

static void unknown(const void *address, int line)
{
    HsaPointerInfo info, zero;
    int before = wrong;

    memset(&info, 0xa5, sizeof(info));
    memset(&zero, 0, sizeof(zero));
    FAILS(hsaKmtQueryPointerInfo(address, &info), ERROR);
    HOLDS(memcmp(&info, &zero, sizeof(info)) == 0);
    if (wrong != before)
        printf("# asked at line %d\n", line);
}

#define UNKNOWN(address) unknown(address, __LINE__)

/* What can be done to every kind of memory, and what it looks like after each step. */
static void lives(HSAuint32 node, HSAuint64 size, HsaMemFlags flags, const HSAuint32 *peers,
                  HSAuint32 peer_count, int line)
{
    struct object object;
    HSAuint64 alternate = 0xa5;
    void *memory = NULL;
    int before = wrong, data = 0;

    SUCCEEDS(hsaKmtAllocMemory(node, size, flags, &memory));
    HOLDS(memory != NULL);
    if (!memory) {
        printf("# size %#llx, called at line %d\n", (unsigned long long)size, line);
        return;
    }
    EQUAL((uintptr_t)memory % page, 0);
    if (flags.ui32.HostAccess && !flags.ui32.ReadOnly)
        use(memory, size);
    object = allocated(memory, node, size, flags);
    if (discrete)
        TELLS(&object, memory, size);

    SUCCEEDS(hsaKmtSetMemoryUserData(memory, &data));
    object.user_data = &data;
    if (discrete)
        TELLS(&object, memory, size);

    SUCCEEDS(hsaKmtMapMemoryToGPU(memory, size, &alternate));
    if (discrete) {
        EQUAL(alternate, 0);
        object.mapped = peers;
        object.mapped_count = peer_count;
        TELLS(&object, memory, size);
    }
    SUCCEEDS(hsaKmtMapMemoryToGPU(memory, size, NULL));
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    object.mapped = NULL;
    object.mapped_count = 0;
    if (discrete)
        TELLS(&object, memory, size);
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    SUCCEEDS(hsaKmtFreeMemory(memory, size));
    UNKNOWN(memory);
    UNKNOWN((char *)memory + size - 1);
    EQUAL(hsaKmtFreeMemory(memory, size), free_of_unknown());
    if (wrong != before)
        printf("# size %#llx, flags %#x, called at line %d\n", (unsigned long long)size,
               flags.Value, line);
}

#define LIVES(node, size, flags, peers, count) lives(node, size, flags, peers, count, __LINE__)

static const HSAuint64 sizes[] = {4 << 10, 64 << 10, (2 << 20) + (4 << 10), 64 << 20};
#define SIZES (sizeof(sizes) / sizeof(sizes[0]))

/* ---------------------------------------------------------------------------------------------- */
/* Kinds of memory                                                                                */
/* ---------------------------------------------------------------------------------------------- */

static void has_video_memory(HSAuint32 gpu)
{
    HSAuint32 peers[NODES_MAX], peer_count = peers_of(gpu, peers);
    HsaMemFlags flags;
    size_t i;

    for (i = 0; i < SIZES; i++)
        LIVES(gpu, sizes[i], video(0), peers, peer_count);
    flags = video(0);
    flags.ui32.ExecuteAccess = 1;
    LIVES(gpu, 64 * KIB, flags, peers, peer_count);
    flags = video(0);
    flags.ui32.ReadOnly = 1;
    LIVES(gpu, 64 * KIB, flags, peers, peer_count);
    flags = video(0);
    flags.ui32.Uncached = 1;
    flags.ui32.CoarseGrain = 0;
    LIVES(gpu, 64 * KIB, flags, peers, peer_count);
    flags = video(0);
    flags.ui32.NoSubstitute = 1;
    LIVES(gpu, 64 * KIB, flags, peers, peer_count);
    flags = video(0);
    flags.ui32.PageSize = HSA_PAGE_SIZE_64KB;
    LIVES(gpu, 128 * KIB, flags, peers, peer_count);
    end_part("video memory", gpu);

    if (!bank_size(gpu, HSA_HEAPTYPE_FRAME_BUFFER_PUBLIC) ||
        bank_size(gpu, HSA_HEAPTYPE_FRAME_BUFFER_PRIVATE)) {
        printf("# node %u: the host does not reach all of its memory\n", gpu);
        return;
    }
    for (i = 0; i < SIZES; i++)
        LIVES(gpu, sizes[i], video(1), peers, peer_count);
    end_part("video memory with host access", gpu);
}

static void has_host_memory(HSAuint32 node)
{
    HsaMemFlags flags;
    size_t i;
    int paged;

    for (paged = 0; paged < 2; paged++) {
        for (i = 0; i < SIZES; i++)
            LIVES(node, sizes[i], host(paged), gpus, gpu_count);
        flags = host(paged);
        flags.ui32.CoarseGrain = 1;
        LIVES(node, 64 * KIB, flags, gpus, gpu_count);
        flags = host(paged);
        flags.ui32.ExecuteAccess = 1;
        LIVES(node, 64 * KIB, flags, gpus, gpu_count);
        flags = host(paged);
        flags.ui32.Uncached = 1;
        LIVES(node, 64 * KIB, flags, gpus, gpu_count);
        flags = host(paged);
        flags.ui32.NoNUMABind = 1;
        LIVES(node, 64 * KIB, flags, gpus, gpu_count);
        flags = host(paged);
        flags.ui32.ReadOnly = 1;
        LIVES(node, 64 * KIB, flags, gpus, gpu_count);
        end_part(paged ? "paged memory of the host" : "memory of the host", node);
    }
    if (!discrete)
        return;
    flags = host(0);
    flags.ui32.AQLQueueMemory = 1;
    flags.ui32.ExecuteAccess = 1;
    LIVES(node, 4 * KIB, flags, gpus, gpu_count);
    LIVES(node, 256 * KIB, flags, gpus, gpu_count);
    end_part("the ring of a queue", node);
}

static void has_scratch_memory(HSAuint32 gpu)
{
    HsaMemFlags flags = no_flags();
    HSAuint64 size = 4 * MIB, part = 64 * KIB;
    void *scratch = NULL, *second = NULL;
    char *inside;
    int round;

    flags.ui32.Scratch = 1;
    flags.ui32.HostAccess = 1;
    for (round = 0; round < 2; round++) {
        scratch = NULL;
        SUCCEEDS(hsaKmtAllocMemory(gpu, size, flags, &scratch));
        HOLDS(scratch != NULL);
        if (!scratch)
            break;
        FAILS(hsaKmtAllocMemory(gpu, size, flags, &second), NO_MEMORY);
        inside = (char *)scratch + part;
        SUCCEEDS(hsaKmtMapMemoryToGPU(inside, part, NULL));
        SUCCEEDS(hsaKmtUnmapMemoryToGPU(inside));
        SUCCEEDS(hsaKmtMapMemoryToGPU(inside, 2 * part, NULL));
        SUCCEEDS(hsaKmtUnmapMemoryToGPU(inside));
        SUCCEEDS(hsaKmtFreeMemory(scratch, size));
    }
    end_part("scratch memory", gpu);
}

#if HSAKMT_ABI_GENERATION >= 2025
static void aligns(HSAuint32 gpu)
{
    static const HSAuint64 alignments[] = {4 << 10, 64 << 10, 2 << 20, 16 << 20};
    void *memory;
    size_t i;

    for (i = 0; i < sizeof(alignments) / sizeof(alignments[0]); i++) {
        memory = NULL;
        SUCCEEDS(hsaKmtAllocMemoryAlign(gpu, 64 * KIB, alignments[i], video(0), &memory));
        HOLDS(memory != NULL);
        EQUAL((uintptr_t)memory % alignments[i], 0);
        SUCCEEDS(hsaKmtFreeMemory(memory, 64 * KIB));
        if (!discrete)
            continue;
        memory = NULL;
        SUCCEEDS(hsaKmtAllocMemoryAlign(cpu_node, 64 * KIB, alignments[i], host(1), &memory));
        HOLDS(memory != NULL);
        EQUAL((uintptr_t)memory % alignments[i], 0);
        use(memory, 64 * KIB);
        SUCCEEDS(hsaKmtFreeMemory(memory, 64 * KIB));
    }
    end_part("alignment", gpu);
}

static void has_driver_memory(HSAuint32 gpu)
{
    HsaMemFlags flags = host(0);

    flags.ui32.GTTAccess = 1;
    if (discrete) {
        void *memory = NULL;
        HSAuint64 alternate;

        SUCCEEDS(hsaKmtAllocMemory(gpu, 64 * KIB, flags, &memory));
        HOLDS(memory != NULL);
        if (memory) {
            use(memory, 64 * KIB);
            SUCCEEDS(hsaKmtMapMemoryToGPU(memory, 64 * KIB, &alternate));
            SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
            SUCCEEDS(hsaKmtFreeMemory(memory, 64 * KIB));
        }
        end_part("system memory of the driver", gpu);
    }

    flags = video(0);
    flags.ui32.Contiguous = 1;
    if (kfd_minor >= 16) {
        HSAuint32 peers[NODES_MAX], peer_count = peers_of(gpu, peers);

        LIVES(gpu, 2 * MIB, flags, peers, peer_count);
    } else {
        void *memory = NULL;

        FAILS(hsaKmtAllocMemory(gpu, 2 * MIB, flags, &memory), NOT_SUPPORTED);
    }
    end_part("contiguous memory", gpu);
}

static void separates_memory_and_addresses(HSAuint32 gpu)
{
    HsaMemFlags flags = video(0);
    void *name = NULL, *address = NULL, *memory, *taken;
    HsaPointerInfo info;

    flags.ui32.NoAddress = 1;
    SUCCEEDS(hsaKmtAllocMemory(gpu, 64 * KIB, flags, &name));
    HOLDS(name != NULL);
    FAILS(hsaKmtMapMemoryToGPU(name, 64 * KIB, NULL), INVALID_PARAMETER);
    FAILS(map_to_nodes(name, 64 * KIB, NULL, 1, &gpu), INVALID_PARAMETER);
    SUCCEEDS(hsaKmtFreeMemory(name, 64 * KIB));
    UNKNOWN(name);
    end_part("memory without an address", gpu);

    flags = no_flags();
    flags.ui32.OnlyAddress = 1;
    SUCCEEDS(hsaKmtAllocMemoryAlign(cpu_node, 4 * MIB, 2 * MIB, flags, &address));
    HOLDS(address != NULL);
    EQUAL((uintptr_t)address % (2 * MIB), 0);
    SUCCEEDS(hsaKmtQueryPointerInfo(address, &info));
    EQUAL(info.Type, HSA_POINTER_RESERVED_ADDR);
    EQUAL(info.Node, 0);
    EQUAL(info.GPUAddress, address);
    EQUAL(info.SizeInBytes, 4 * MIB);
    EQUAL(info.NMappedNodes, 0);
    FAILS(hsaKmtMapMemoryToGPU(address, 4 * MIB, NULL), INVALID_PARAMETER);
    FAILS(map_to_nodes(address, 4 * MIB, NULL, 1, &gpu), INVALID_PARAMETER);

    /* What is taken is refused, and the address stays with the caller. */
    flags.ui32.FixedAddress = 1;
    taken = address;
    FAILS(hsaKmtAllocMemoryAlign(cpu_node, 4 * MIB, 0, flags, &taken), ERROR);
    EQUAL(taken, address);
    flags = video(0);
    flags.ui32.FixedAddress = 1;
    FAILS(hsaKmtAllocMemory(gpu, 64 * KIB, flags, &taken), NO_MEMORY);
    EQUAL(taken, address);

    SUCCEEDS(hsaKmtFreeMemory(address, 4 * MIB));
    UNKNOWN(address);
    memory = address;
    SUCCEEDS(hsaKmtAllocMemory(gpu, 64 * KIB, flags, &memory));
    EQUAL(memory, address);
    SUCCEEDS(hsaKmtMapMemoryToGPU(memory, 64 * KIB, NULL));
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    SUCCEEDS(hsaKmtFreeMemory(memory, 64 * KIB));
    flags = no_flags();
    flags.ui32.OnlyAddress = 1;
    flags.ui32.FixedAddress = 1;
    SUCCEEDS(hsaKmtAllocMemoryAlign(cpu_node, 4 * MIB, 0, flags, &address));
    EQUAL(address, memory);
    SUCCEEDS(hsaKmtFreeMemory(address, 4 * MIB));
    end_part("addresses without memory, fixed addresses", gpu);
}

static void counts_what_is_left(HSAuint32 gpu)
{
    HSAuint64 before = 0, during = 0, after = 0;
    void *memory = NULL;

    if (kfd_minor < 9) {
        FAILS(hsaKmtAvailableMemory(gpu, &before), NOT_SUPPORTED);
    } else {
        SUCCEEDS(hsaKmtAvailableMemory(gpu, &before));
        HOLDS(before > 64 * MIB);
        SUCCEEDS(hsaKmtAllocMemory(gpu, 64 * MIB, video(0), &memory));
        SUCCEEDS(hsaKmtAvailableMemory(gpu, &during));
        EQUAL(before - during, 64 * MIB);
        SUCCEEDS(hsaKmtFreeMemory(memory, 64 * MIB));
        SUCCEEDS(hsaKmtAvailableMemory(gpu, &after));
        EQUAL(after, before);
        FAILS(hsaKmtAvailableMemory(node_count, &after), INVALID_NODE_UNIT);
    }
    end_part("available memory", gpu);
}
#endif

/* ---------------------------------------------------------------------------------------------- */
/* Mapping                                                                                        */
/* ---------------------------------------------------------------------------------------------- */

static void maps_on_nodes(void)
{
    HSAuint32 first[1], last[1], both[2];
    HSAuint64 alternate = 0xa5;
    struct object object;
    HSAuint32 absent = node_count;
    void *memory = NULL;

    first[0] = both[0] = gpus[0];
    last[0] = both[1] = gpus[gpu_count - 1];
    SUCCEEDS(hsaKmtAllocMemory(cpu_node, 64 * KIB, host(0), &memory));
    if (!memory)
        return;
    object = allocated(memory, cpu_node, 64 * KIB, host(0));

    SUCCEEDS(map_to_nodes(memory, 64 * KIB, &alternate, 1, first));
    if (!REFERENCE)
        EQUAL(alternate, 0);
    object.mapped = first;
    object.mapped_count = 1;
    TELLS(&object, memory, 64 * KIB);
    SUCCEEDS(map_to_nodes(memory, 64 * KIB, NULL, 1, first));
    TELLS(&object, memory, 64 * KIB);
    if (gpu_count > 1) {
        SUCCEEDS(map_to_nodes(memory, 64 * KIB, NULL, 1, last));
        object.mapped = last;
        TELLS(&object, memory, 64 * KIB);
        SUCCEEDS(map_to_nodes(memory, 64 * KIB, NULL, 2, both));
        object.mapped = both;
        object.mapped_count = 2;
        TELLS(&object, memory, 64 * KIB);
    }
    FAILS(map_to_nodes(memory, 64 * KIB, NULL, 0, first), INVALID_PARAMETER);
    FAILS(map_to_nodes(memory, 64 * KIB, NULL, 1, NULL), INVALID_PARAMETER);
    FAILS(map_to_nodes(memory, 64 * KIB, NULL, 1, &absent), INVALID_NODE_UNIT);
    TELLS(&object, memory, 64 * KIB);
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    object.mapped = NULL;
    object.mapped_count = 0;
    TELLS(&object, memory, 64 * KIB);
    end_part("mapped on some nodes", gpus[0]);

    /* Registered for one node, the memory is mapped on no other. */
    SUCCEEDS(hsaKmtRegisterMemoryToNodes(memory, 64 * KIB, 1, first));
    object.registered = first;
    object.registered_count = 1;
    TELLS(&object, memory, 64 * KIB);
    SUCCEEDS(hsaKmtMapMemoryToGPU(memory, 64 * KIB, &alternate));
    object.mapped = first;
    object.mapped_count = 1;
    TELLS(&object, memory, 64 * KIB);
    if (gpu_count > 1) {
        FAILS(map_to_nodes(memory, 64 * KIB, NULL, 1, last), ERROR);
        FAILS(hsaKmtRegisterMemoryToNodes(memory, 64 * KIB, 2, both), MEMORY_ALREADY_REGISTERED);
        TELLS(&object, memory, 64 * KIB);
    }
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    SUCCEEDS(hsaKmtDeregisterMemory(memory));
    object.registered = object.mapped = NULL;
    object.registered_count = object.mapped_count = 0;
    TELLS(&object, memory, 64 * KIB);
    FAILS(hsaKmtDeregisterMemory(memory), MEMORY_NOT_REGISTERED);
    SUCCEEDS(hsaKmtFreeMemory(memory, 64 * KIB));
    UNKNOWN(memory);
    end_part("allocated memory that is registered for a node", gpus[0]);
}

/* ---------------------------------------------------------------------------------------------- */
/* Registration                                                                                   */
/* ---------------------------------------------------------------------------------------------- */

/* Registered memory as it is told at an address, but for the address by which GPUs know it. */
static struct object registered(const void *address, void *memory, HSAuint64 size)
{
    HsaPointerInfo info;
    struct object object;

    memset(&info, 0, sizeof(info));
    memset(&object, 0, sizeof(object));
    SUCCEEDS(hsaKmtQueryPointerInfo(address, &info));
    HOLDS(info.GPUAddress != 0);
    EQUAL(info.GPUAddress % page, (uintptr_t)memory % page);
    object.type = HSA_POINTER_REGISTERED_USER;
    object.node = info.Node;
    object.flags = info.MemFlags;
    object.cpu = memory;
    object.gpu = info.GPUAddress;
    object.size = size;
    return object;
}

static void registers(void *memory, HSAuint64 size, int line)
{
    HSAuint64 alternate = 0xa5;
    struct object object;
    int before = wrong;

    memset(&object, 0, sizeof(object));
    SUCCEEDS(hsaKmtRegisterMemory(memory, size));
    if (!unregistered && discrete) {
        object = registered(memory, memory, size);
        TELLS(&object, memory, size);
    }
    SUCCEEDS(hsaKmtMapMemoryToGPU(memory, size, &alternate));
    if (!unregistered && discrete) {
        EQUAL(alternate, object.gpu);
        object.mapped = gpus;
        object.mapped_count = gpu_count;
        TELLS(&object, memory, size);
    } else if (unregistered) {
        HOLDS(alternate == 0 || alternate == (HSAuint64)(uintptr_t)memory);
    }
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(memory));
    if (!unregistered && discrete) {
        object.mapped = NULL;
        object.mapped_count = 0;
        TELLS(&object, memory, size);
    }
    SUCCEEDS(hsaKmtDeregisterMemory(memory));
    UNKNOWN(memory);
    EQUAL(hsaKmtDeregisterMemory(memory), when_unknown(HSAKMT_STATUS_MEMORY_NOT_REGISTERED));
    if (wrong != before)
        printf("# called at line %d\n", line);
}

#define REGISTERS(memory, size) registers(memory, size, __LINE__)

static void registers_host_memory(void)
{
    HSAuint64 size = 64 * KIB, big = 8 * MIB;
    HSAuint32 absent = node_count;
    HsaMemFlags flags;
    void *inside = NULL;
    char *mapped, *heap;

    mapped = (char *)mmap(NULL, big, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    heap = (char *)malloc(size);
    HOLDS(mapped != (char *)MAP_FAILED && heap != NULL);
    if (mapped == (char *)MAP_FAILED || !heap)
        return;
    memset(mapped, 0x11, big);
    memset(heap, 0x22, size);

    REGISTERS(mapped, page);
    REGISTERS(mapped, big);
    REGISTERS(mapped + 3 * page + 24, 100);
    REGISTERS(mapped + 3 * page + 24, 5 * page);
    REGISTERS(heap, size);
    REGISTERS(heap + 1, size - 1);
    end_part("registration of host memory", gpus[0]);

    if (!unregistered && discrete) {
        struct object outer, tail;
        HSAuint64 alternate = 0;

        /* Twice the same counts. */
        SUCCEEDS(hsaKmtRegisterMemory(mapped, big));
        SUCCEEDS(hsaKmtRegisterMemory(mapped, big));
        outer = registered(mapped, mapped, big);
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
        TELLS(&outer, mapped, big);

        /* One within it: which of the two is told there is not promised. */
        SUCCEEDS(hsaKmtRegisterMemory(mapped + 4 * page, 2 * page));
        SUCCEEDS(hsaKmtMapMemoryToGPU(mapped + 4 * page, 2 * page, &alternate));
        HOLDS(alternate != 0 && alternate % page == 0);
        tells_at(&outer, mapped, __LINE__);
        tells_at(&outer, mapped + 6 * page, __LINE__);
        SUCCEEDS(hsaKmtUnmapMemoryToGPU(mapped + 4 * page));
        SUCCEEDS(hsaKmtDeregisterMemory(mapped + 4 * page));
        TELLS(&outer, mapped, big);
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
        UNKNOWN(mapped);

        /* One over the end of another. */
        SUCCEEDS(hsaKmtRegisterMemory(mapped, 4 * page));
        SUCCEEDS(hsaKmtRegisterMemory(mapped + 2 * page, 4 * page));
        outer = registered(mapped, mapped, 4 * page);
        tail = registered(mapped + 5 * page, mapped + 2 * page, 4 * page);
        tells_at(&outer, mapped + page, __LINE__);
        tells_at(&tail, mapped + 4 * page, __LINE__);
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
        UNKNOWN(mapped);
        TELLS(&tail, mapped + 2 * page, 4 * page);
        SUCCEEDS(hsaKmtDeregisterMemory(mapped + 2 * page));
        UNKNOWN(mapped + 2 * page);
        end_part("nested and overlapping registrations", gpus[0]);

        SUCCEEDS(hsaKmtRegisterMemoryToNodes(mapped, big, 1, gpus));
        outer = registered(mapped, mapped, big);
        outer.registered = gpus;
        outer.registered_count = 1;
        TELLS(&outer, mapped, big);
        SUCCEEDS(hsaKmtMapMemoryToGPU(mapped, big, NULL));
        outer.mapped = gpus;
        outer.mapped_count = 1;
        TELLS(&outer, mapped, big);
        SUCCEEDS(hsaKmtUnmapMemoryToGPU(mapped));
        if (gpu_count > 1 && !REFERENCE)
            FAILS(hsaKmtRegisterMemoryToNodes(mapped, big, 2, gpus), MEMORY_ALREADY_REGISTERED);
        SUCCEEDS(hsaKmtRegisterMemoryToNodes(mapped, big, 1, gpus));
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
        UNKNOWN(mapped);
    } else {
        EQUAL(hsaKmtRegisterMemoryToNodes(mapped, big, 1, gpus),
              discrete ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_NOT_SUPPORTED);
        SUCCEEDS(hsaKmtDeregisterMemory(mapped));
    }
    if (discrete) {
        FAILS(hsaKmtRegisterMemoryToNodes(mapped, big, 0, gpus), INVALID_PARAMETER);
        FAILS(hsaKmtRegisterMemoryToNodes(mapped, big, 1, NULL), INVALID_PARAMETER);
        FAILS(hsaKmtRegisterMemoryToNodes(mapped, big, 1, &absent), INVALID_NODE_UNIT);
    }
    end_part("registration for nodes", gpus[0]);

    EQUAL(hsaKmtRegisterMemoryWithFlags(mapped, big, host(1)),
          discrete ? HSAKMT_STATUS_SUCCESS : HSAKMT_STATUS_NOT_SUPPORTED);
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(mapped));
    EQUAL(hsaKmtDeregisterMemory(mapped), HSAKMT_STATUS_SUCCESS);
    if (discrete) {
        FAILS(hsaKmtRegisterMemoryWithFlags(mapped, big, no_flags()), NOT_SUPPORTED);
        FAILS(hsaKmtRegisterMemoryWithFlags(mapped, big, host(0)), NOT_SUPPORTED);
        SUCCEEDS(hsaKmtAllocMemory(gpus[0], size, video(0), &inside));
        if (!REFERENCE)
            FAILS(hsaKmtRegisterMemoryWithFlags(inside, size, host(1)), INVALID_HANDLE);
        SUCCEEDS(hsaKmtFreeMemory(inside, size));
#if HSAKMT_ABI_GENERATION >= 2025
        flags = host(1);
        flags.ui32.ExtendedCoherent = 1;
        flags.ui32.CoarseGrain = 1;
        FAILS(hsaKmtRegisterMemoryWithFlags(mapped, big, flags), INVALID_PARAMETER);
#endif
    }
    (void)flags;
    end_part("registration with flags", gpus[0]);

    munmap(mapped, big);
    free(heap);
}

/* ---------------------------------------------------------------------------------------------- */
/* Attributes                                                                                     */
/* ---------------------------------------------------------------------------------------------- */

static void has_attributes(void)
{
    HSA_SVM_ATTRIBUTE attributes[2];
    HSAint32 mode = -2;
    HSAKMT_STATUS status = hsaKmtGetXNACKMode(&mode);
    void *memory;

    HOLDS(status == HSAKMT_STATUS_SUCCESS || status == HSAKMT_STATUS_NOT_SUPPORTED);
    if (status == HSAKMT_STATUS_SUCCESS) {
        HOLDS(mode == 0 || mode == 1);
        SUCCEEDS(hsaKmtSetXNACKMode(mode));
    } else {
        EQUAL(mode, -2);
    }
    memory = mmap(NULL, 4 * page, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    attributes[0].type = HSA_SVM_ATTR_PREFERRED_LOC;
    attributes[0].value = gpus[0];
    attributes[1].type = HSA_SVM_ATTR_ACCESS;
    attributes[1].value = gpus[0];
    FAILS(hsaKmtSVMSetAttr(NULL, page, 2, attributes), INVALID_PARAMETER);
    FAILS(hsaKmtSVMSetAttr(memory, 0, 2, attributes), INVALID_PARAMETER);
    FAILS(hsaKmtSVMSetAttr((char *)memory + 8, page, 2, attributes), INVALID_PARAMETER);
    FAILS(hsaKmtSVMSetAttr(memory, page + 8, 2, attributes), INVALID_PARAMETER);
    FAILS(hsaKmtSVMGetAttr(NULL, page, 2, attributes), INVALID_PARAMETER);
    FAILS(hsaKmtSVMGetAttr(memory, page + 8, 2, attributes), INVALID_PARAMETER);
    if (svm) {
        SUCCEEDS(hsaKmtSVMSetAttr(memory, 4 * page, 2, attributes));
        attributes[0].value = 77;
        SUCCEEDS(hsaKmtSVMGetAttr(memory, 4 * page, 2, attributes));
        EQUAL(attributes[0].type, HSA_SVM_ATTR_PREFERRED_LOC);
        EQUAL(attributes[0].value, gpus[0]);
        EQUAL(attributes[1].type, HSA_SVM_ATTR_ACCESS);
        EQUAL(attributes[1].value, gpus[0]);
        attributes[0].type = HSA_SVM_ATTR_NO_ACCESS;
        attributes[0].value = gpus[0];
        SUCCEEDS(hsaKmtSVMSetAttr(memory, 4 * page, 1, attributes));
        attributes[1].type = HSA_SVM_ATTR_ACCESS;
        attributes[1].value = gpus[0];
        SUCCEEDS(hsaKmtSVMGetAttr(memory, 4 * page, 1, &attributes[1]));
        EQUAL(attributes[1].type, HSA_SVM_ATTR_NO_ACCESS);
        EQUAL(attributes[1].value, gpus[0]);
        attributes[0].type = HSA_SVM_ATTR_ACCESS;
        attributes[0].value = node_count;
        FAILS(hsaKmtSVMSetAttr(memory, 4 * page, 1, attributes), INVALID_NODE_UNIT);
    }
    munmap(memory, 4 * page);
    end_part("attributes, retry faults", gpus[0]);
}

/* ---------------------------------------------------------------------------------------------- */
/* Wrong arguments                                                                                */
/* ---------------------------------------------------------------------------------------------- */

static void needs_an_open_library(HSAKMT_STATUS status)
{
    HSAuint32 node = 0;
    HSAuint64 number;
    HSAint32 mode;
    HsaPointerInfo info;
    HSA_SVM_ATTRIBUTE attribute = {HSA_SVM_ATTR_GRANULARITY, 9};
    char bytes[8];
    void *memory = bytes;

    EQUAL(hsaKmtAllocMemory(0, 4 * KIB, host(1), &memory), status);
    EQUAL(hsaKmtFreeMemory(bytes, 4 * KIB), status);
    EQUAL(hsaKmtMapMemoryToGPU(bytes, 4 * KIB, &number), status);
    EQUAL(map_to_nodes(bytes, 4 * KIB, &number, 1, &node), status);
    EQUAL(hsaKmtUnmapMemoryToGPU(bytes), status);
    EQUAL(hsaKmtUnmapGraphicHandle(0, (HSAuint64)(uintptr_t)bytes, 8), status);
    EQUAL(hsaKmtRegisterMemory(bytes, 8), status);
    EQUAL(hsaKmtRegisterMemoryToNodes(bytes, 8, 1, &node), status);
    EQUAL(hsaKmtRegisterMemoryWithFlags(bytes, 8, host(1)), status);
    EQUAL(hsaKmtDeregisterMemory(bytes), status);
    if (!REFERENCE) {
        EQUAL(hsaKmtQueryPointerInfo(bytes, &info), status);
        EQUAL(hsaKmtSetMemoryUserData(bytes, bytes), status);
    }
    EQUAL(hsaKmtSetMemoryPolicy(0, HSA_CACHING_CACHED, HSA_CACHING_CACHED, NULL, 0), status);
    EQUAL(hsaKmtSVMSetAttr(bytes, 4 * KIB, 1, &attribute), status);
    EQUAL(hsaKmtSVMGetAttr(bytes, 4 * KIB, 1, &attribute), status);
    EQUAL(hsaKmtGetXNACKMode(&mode), status);
    EQUAL(hsaKmtSetXNACKMode(0), status);
#if HSAKMT_ABI_GENERATION >= 2025
    EQUAL(hsaKmtAllocMemoryAlign(0, 4 * KIB, 0, host(1), &memory), status);
    EQUAL(hsaKmtAvailableMemory(0, &number), status);
#endif
    end_part("nothing works while the library is closed", 0);
}

static void does_without_some_functions(void)
{
    HSAuint64 number = 0xa5;
    HsaMemoryRange range;

    memset(&range, 0, sizeof(range));
    FAILS(hsaKmtMapGraphicHandle(0, 1, 2, 3, 4, &number), NOT_IMPLEMENTED);
    if (!REFERENCE) {
        FAILS(hsaKmtProcessVMRead(1, &range, 1, &range, 1, &number), NOT_IMPLEMENTED);
        FAILS(hsaKmtProcessVMWrite(1, &range, 1, &range, 1, &number), NOT_IMPLEMENTED);
    }
#if HSAKMT_ABI_GENERATION >= 2025
    FAILS(hsaKmtReplaceAsanHeaderPage(&number), NOT_SUPPORTED);
    FAILS(hsaKmtReturnAsanHeaderPage(&number), NOT_SUPPORTED);
#endif
    end_part("functions that do nothing", 0);
}

static void refuses_wrong_arguments(void)
{
    HSAuint64 alternate = 0xa5;
    HsaMemFlags flags;
    HsaPointerInfo info;
    char bytes[64];
    void *memory;
    HSAuint32 node = gpu_count ? gpus[0] : cpu_node;

    memory = bytes;
    FAILS(hsaKmtAllocMemory(node_count, 4 * KIB, video(0), &memory), INVALID_NODE_UNIT);
    FAILS(hsaKmtAllocMemory(0xffffffff, 4 * KIB, video(0), &memory), INVALID_NODE_UNIT);
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, video(0), NULL), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemory(node, 0, video(0), &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemory(node, 4 * KIB + 1, video(0), &memory), INVALID_PARAMETER);
    flags = video(0);
    flags.ui32.PageSize = HSA_PAGE_SIZE_64KB;
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, flags, &memory), INVALID_PARAMETER);
    flags.ui32.PageSize = HSA_PAGE_SIZE_2MB;
    FAILS(hsaKmtAllocMemory(node, MIB, flags, &memory), INVALID_PARAMETER);
#if HSAKMT_ABI_GENERATION >= 2025
    flags = video(0);
    flags.ui32.FixedAddress = 1;
    memory = NULL;
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, flags, &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, flags, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemoryAlign(node, 64 * KIB, 12 * KIB, video(0), &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemoryAlign(node, 64 * KIB, 2 * KIB, video(0), &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemoryAlign(node, 64 * KIB, 64 * KIB, video(0), NULL), INVALID_PARAMETER);
    flags = video(0);
    flags.ui32.ExtendedCoherent = 1;
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, flags, &memory), INVALID_PARAMETER);
    flags.ui32.CoarseGrain = 0;
    flags.ui32.Uncached = 1;
    FAILS(hsaKmtAllocMemory(node, 4 * KIB, flags, &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAvailableMemory(node, NULL), INVALID_PARAMETER);
    flags = no_flags();
    flags.ui32.Scratch = 1;
    if (gpu_count)
        FAILS(hsaKmtAllocMemoryAlign(node, 64 * KIB, 64 * KIB, flags, &memory), NOT_IMPLEMENTED);
#endif
    end_part("allocations with wrong arguments", node);

    FAILS(hsaKmtFreeMemory(NULL, 4 * KIB), ERROR);
#if HSAKMT_ABI_GENERATION >= 2026
    FAILS(hsaKmtFreeMemory(bytes, 0), ERROR);
#endif
    FAILS(hsaKmtMapMemoryToGPU(NULL, 4 * KIB, &alternate), ERROR);
    FAILS(map_to_nodes(NULL, 4 * KIB, &alternate, 1, &node), ERROR);
    SUCCEEDS(hsaKmtUnmapMemoryToGPU(NULL));
    SUCCEEDS(hsaKmtUnmapGraphicHandle(node, 0, 0));
    FAILS(hsaKmtQueryPointerInfo(bytes, NULL), INVALID_PARAMETER);
    memset(&info, 0, sizeof(info));
    UNKNOWN(NULL);
    UNKNOWN(bytes);
    FAILS(hsaKmtSetMemoryUserData(bytes, bytes), ERROR);
    if (gpu_count) {
        EQUAL(hsaKmtFreeMemory(bytes, 4 * KIB), free_of_unknown());
        EQUAL(hsaKmtUnmapMemoryToGPU(bytes), when_unknown(HSAKMT_STATUS_ERROR));
        EQUAL(hsaKmtDeregisterMemory(bytes), when_unknown(HSAKMT_STATUS_MEMORY_NOT_REGISTERED));
        if (!unregistered && discrete) {
            EQUAL(hsaKmtMapMemoryToGPU(bytes, 8, &alternate),
                  REFERENCE ? HSAKMT_STATUS_ERROR : HSAKMT_STATUS_INVALID_PARAMETER);
            EQUAL(alternate, 0);
        }
        FAILS(hsaKmtSetMemoryPolicy(node, HSA_CACHING_CACHED, HSA_CACHING_CACHED, NULL, 0),
              NOT_IMPLEMENTED);
    }
    end_part("other calls with wrong arguments", node);
}

/* ---------------------------------------------------------------------------------------------- */
/* Contexts                                                                                       */
/* ---------------------------------------------------------------------------------------------- */

#if HSAKMT_ABI_GENERATION >= 2026
/* The same objects by either name; no context is an argument that is wrong. */
static void takes_a_context(HSAuint32 gpu)
{
    HsaKFDContext *context = NULL;
    HSAuint64 number = 0;
    HsaPointerInfo info;
    HSA_SVM_ATTRIBUTE attribute = {HSA_SVM_ATTR_GRANULARITY, 9};
    HSAint32 mode;
    void *memory = NULL, *other = NULL;
    char bytes[8];

    FAILS(hsaKmtOpenKFDCtx(&context), KERNEL_ALREADY_OPENED);
    SUCCEEDS(hsaKmtAllocMemoryCtx(context, gpu, 64 * KIB, video(0), &memory));
    SUCCEEDS(hsaKmtAllocMemoryAlignCtx(context, gpu, 64 * KIB, 64 * KIB, video(0), &other));
    HOLDS(memory && other && memory != other);
    SUCCEEDS(hsaKmtSetMemoryUserDataCtx(context, memory, bytes));
    SUCCEEDS(hsaKmtQueryPointerInfo(memory, &info));
    EQUAL(info.UserData, bytes);
    SUCCEEDS(hsaKmtMapMemoryToGPUCtx(context, memory, 64 * KIB, &number));
    SUCCEEDS(hsaKmtQueryPointerInfoCtx(context, memory, &info));
    HOLDS(info.NMappedNodes >= 1 || !discrete);
    SUCCEEDS(hsaKmtMapMemoryToGPUNodesCtx(context, memory, 64 * KIB, &number, no_flags(), 1, &gpu));
    SUCCEEDS(hsaKmtUnmapGraphicHandleCtx(context, gpu, (HSAuint64)(uintptr_t)memory, 64 * KIB));
    SUCCEEDS(hsaKmtUnmapMemoryToGPUCtx(context, memory));
    if (kfd_minor >= 9)
        SUCCEEDS(hsaKmtAvailableMemoryCtx(context, gpu, &number));
    SUCCEEDS(hsaKmtFreeMemoryCtx(context, memory, 64 * KIB));
    SUCCEEDS(hsaKmtFreeMemory(other, 64 * KIB));
    FAILS(hsaKmtQueryPointerInfoCtx(context, memory, &info), ERROR);
    FAILS(hsaKmtReplaceAsanHeaderPageCtx(context, bytes), NOT_SUPPORTED);
    FAILS(hsaKmtReturnAsanHeaderPageCtx(context, bytes), NOT_SUPPORTED);
    FAILS(hsaKmtSetMemoryPolicyCtx(context, gpu, HSA_CACHING_CACHED, HSA_CACHING_CACHED, NULL, 0),
          NOT_IMPLEMENTED);
    end_part("memory of a context", gpu);

    FAILS(hsaKmtAllocMemoryCtx(NULL, gpu, 64 * KIB, video(0), &memory), INVALID_PARAMETER);
    FAILS(hsaKmtAllocMemoryAlignCtx(NULL, gpu, 64 * KIB, 0, video(0), &memory), INVALID_PARAMETER);
    FAILS(hsaKmtFreeMemoryCtx(NULL, bytes, 8), INVALID_PARAMETER);
    FAILS(hsaKmtAvailableMemoryCtx(NULL, gpu, &number), INVALID_PARAMETER);
    FAILS(hsaKmtMapMemoryToGPUCtx(NULL, bytes, 8, &number), INVALID_PARAMETER);
    FAILS(hsaKmtMapMemoryToGPUNodesCtx(NULL, bytes, 8, &number, no_flags(), 1, &gpu),
          INVALID_PARAMETER);
    FAILS(hsaKmtUnmapMemoryToGPUCtx(NULL, bytes), INVALID_PARAMETER);
    FAILS(hsaKmtUnmapGraphicHandleCtx(NULL, gpu, 8, 8), INVALID_PARAMETER);
    FAILS(hsaKmtRegisterMemoryCtx(NULL, bytes, 8), INVALID_PARAMETER);
    FAILS(hsaKmtRegisterMemoryToNodesCtx(NULL, bytes, 8, 1, &gpu), INVALID_PARAMETER);
    FAILS(hsaKmtRegisterMemoryWithFlagsCtx(NULL, bytes, 8, host(1)), INVALID_PARAMETER);
    FAILS(hsaKmtDeregisterMemoryCtx(NULL, bytes), INVALID_PARAMETER);
    FAILS(hsaKmtQueryPointerInfoCtx(NULL, bytes, &info), INVALID_PARAMETER);
    FAILS(hsaKmtSetMemoryUserDataCtx(NULL, bytes, bytes), INVALID_PARAMETER);
    FAILS(hsaKmtReplaceAsanHeaderPageCtx(NULL, bytes), INVALID_PARAMETER);
    FAILS(hsaKmtReturnAsanHeaderPageCtx(NULL, bytes), INVALID_PARAMETER);
    FAILS(hsaKmtSetMemoryPolicyCtx(NULL, gpu, 0, 0, NULL, 0), INVALID_PARAMETER);
    FAILS(hsaKmtSVMSetAttrCtx(NULL, bytes, 8, 1, &attribute), INVALID_PARAMETER);
    FAILS(hsaKmtSVMGetAttrCtx(NULL, bytes, 8, 1, &attribute), INVALID_PARAMETER);
    FAILS(hsaKmtSetXNACKModeCtx(NULL, 0), INVALID_PARAMETER);
    FAILS(hsaKmtGetXNACKModeCtx(NULL, &mode), INVALID_PARAMETER);
    end_part("memory of no context", gpu);
    SUCCEEDS(hsaKmtCloseKFDCtx());
}

/* Memory of a secondary context is nobody else's, and goes when it closes. */
static void keeps_contexts_apart(HSAuint32 gpu)
{
    HsaKFDContext *context = NULL;
    HsaSystemProperties system;
    HsaPointerInfo info;
    HSA_SVM_ATTRIBUTE attribute = {HSA_SVM_ATTR_GRANULARITY, 9};
    void *memory[2] = {NULL, NULL}, *ours = NULL;
    int i;

    if (hsaKmtOpenSecondaryKFDCtx(&context) == HSAKMT_STATUS_NOT_SUPPORTED) {
        printf("# no secondary contexts\n");
        return;
    }
    HOLDS(context != NULL);
    FAILS(hsaKmtAllocMemoryCtx(context, gpu, 64 * KIB, video(0), &memory[0]), INVALID_NODE_UNIT);
    SUCCEEDS(hsaKmtAcquireSystemPropertiesCtx(context, &system));
    SUCCEEDS(hsaKmtAllocMemoryCtx(context, gpu, 64 * KIB, video(0), &memory[0]));
    SUCCEEDS(hsaKmtAllocMemoryCtx(context, cpu_node, 64 * KIB, host(1), &memory[1]));
    SUCCEEDS(hsaKmtAllocMemory(gpu, 64 * KIB, video(0), &ours));
    HOLDS(memory[0] && memory[1] && ours);
    if (memory[1])
        use(memory[1], 64 * KIB);
    for (i = 0; i < 2; i++) {
        SUCCEEDS(hsaKmtMapMemoryToGPUCtx(context, memory[i], 64 * KIB, NULL));
        SUCCEEDS(hsaKmtQueryPointerInfoCtx(context, memory[i], &info));
        EQUAL(info.GPUAddress, memory[i]);
        UNKNOWN(memory[i]);
    }
    FAILS(hsaKmtQueryPointerInfoCtx(context, ours, &info), ERROR);
    FAILS(hsaKmtSVMSetAttrCtx(context, memory[1], 64 * KIB, 1, &attribute), NOT_SUPPORTED);
    FAILS(hsaKmtRegisterMemoryCtx(context, &system, sizeof(system)), NOT_SUPPORTED);
    FAILS(hsaKmtFreeMemoryCtx(context, memory[0], 0), ERROR);
    SUCCEEDS(hsaKmtUnmapMemoryToGPUCtx(context, memory[0]));
    SUCCEEDS(hsaKmtFreeMemoryCtx(context, memory[0], 64 * KIB));
    FAILS(hsaKmtFreeMemoryCtx(context, memory[0], 64 * KIB), MEMORY_NOT_REGISTERED);
    SUCCEEDS(hsaKmtCloseSecondaryKFDCtx(context));
    FAILS(hsaKmtFreeMemoryCtx(context, memory[1], 64 * KIB), INVALID_PARAMETER);
    SUCCEEDS(hsaKmtFreeMemory(ours, 64 * KIB));
    end_part("memory of a secondary context", gpu);
}
#endif

int main(void)
{
    HSAuint32 i;
    void *memory = NULL;

    does_without_some_functions();
    needs_an_open_library(HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal(hsaKmtAllocMemory(0, 4 * KIB, host(1), &memory), HSAKMT_STATUS_INVALID_NODE_UNIT,
                 "no node before acquire");
    read_machine();
    end_part("the machine", 0);
    does_without_some_functions();
    refuses_wrong_arguments();
    for (i = 0; i < gpu_count && i < 4; i++) {
        has_video_memory(gpus[i]);
        has_scratch_memory(gpus[i]);
#if HSAKMT_ABI_GENERATION >= 2025
        aligns(gpus[i]);
        has_driver_memory(gpus[i]);
        if (discrete)
            separates_memory_and_addresses(gpus[i]);
        counts_what_is_left(gpus[i]);
#endif
    }
    if (gpu_count) {
        has_host_memory(cpu_node);
        if (discrete)
            maps_on_nodes();
        registers_host_memory();
        has_attributes();
#if HSAKMT_ABI_GENERATION >= 2026
        takes_a_context(gpus[0]);
        if (discrete)
            keeps_contexts_apart(gpus[0]);
#endif
    }
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    return failures != 0;
}
