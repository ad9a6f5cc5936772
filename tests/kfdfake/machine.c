/* SPDX-License-Identifier: MIT */
/*
 * Shows every property of every node, one object of JSON in a line; then lives again, and in a
 * forked child. What fails is told on standard error, and the exit status is its line.
 *
 * Compiles against the headers of every generation, and runs with any library of that generation.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "hsakmt.h"

#define CHECK(call)                                                             \
    do {                                                                        \
        HSAKMT_STATUS status_ = (call);                                         \
        if (status_ != HSAKMT_STATUS_SUCCESS) {                                 \
            fprintf(stderr, "%s: status %d, line %d\n", #call, (int)status_, __LINE__); \
            exit(1);                                                            \
        }                                                                       \
    } while (0)

#define NUMBER(name, value) printf(",\"%s\":%" PRIu64, name, (uint64_t)(value))

/* Whether the first life is over: the others are lived without a word. */
static int silent;

static void show_node(HSAuint32 id, const HsaNodeProperties *node)
{
    printf("{\"node\":%u,\"status\":0", id);
    NUMBER("NumCPUCores", node->NumCPUCores);
    NUMBER("NumFComputeCores", node->NumFComputeCores);
    NUMBER("NumMemoryBanks", node->NumMemoryBanks);
    NUMBER("NumCaches", node->NumCaches);
    NUMBER("NumIOLinks", node->NumIOLinks);
    NUMBER("CComputeIdLo", node->CComputeIdLo);
    NUMBER("FComputeIdLo", node->FComputeIdLo);
    NUMBER("Capability.Value", node->Capability.Value);
    NUMBER("MaxWavesPerSIMD", node->MaxWavesPerSIMD);
    NUMBER("LDSSizeInKB", node->LDSSizeInKB);
    NUMBER("GDSSizeInKB", node->GDSSizeInKB);
    NUMBER("WaveFrontSize", node->WaveFrontSize);
    NUMBER("NumShaderBanks", node->NumShaderBanks);
    NUMBER("NumArrays", node->NumArrays);
    NUMBER("NumCUPerArray", node->NumCUPerArray);
    NUMBER("NumSIMDPerCU", node->NumSIMDPerCU);
    NUMBER("MaxSlotsScratchCU", node->MaxSlotsScratchCU);
    NUMBER("EngineId.Value", node->EngineId.Value);
#if HSAKMT_ABI_GENERATION >= 2025
    NUMBER("OverrideEngineId.Value", node->OverrideEngineId.Value);
#endif
    NUMBER("VendorId", node->VendorId);
    NUMBER("DeviceId", node->DeviceId);
    NUMBER("LocationId", node->LocationId);
    NUMBER("LocalMemSize", node->LocalMemSize);
    NUMBER("MaxEngineClockMhzFCompute", node->MaxEngineClockMhzFCompute);
    NUMBER("MaxEngineClockMhzCCompute", node->MaxEngineClockMhzCCompute);
    NUMBER("DrmRenderMinor", node->DrmRenderMinor);
    NUMBER("DebugProperties.Value", node->DebugProperties.Value);
    NUMBER("HiveID", node->HiveID);
    NUMBER("NumSdmaEngines", node->NumSdmaEngines);
    NUMBER("NumSdmaXgmiEngines", node->NumSdmaXgmiEngines);
    NUMBER("NumSdmaQueuesPerEngine", node->NumSdmaQueuesPerEngine);
    NUMBER("NumCpQueues", node->NumCpQueues);
    NUMBER("NumGws", node->NumGws);
#if HSAKMT_ABI_GENERATION >= 2025
    NUMBER("Integrated", node->Integrated);
#endif
    NUMBER("Domain", node->Domain);
    NUMBER("UniqueID", node->UniqueID);
    NUMBER("VGPRSizePerCU", node->VGPRSizePerCU);
    NUMBER("SGPRSizePerCU", node->SGPRSizePerCU);
#if HSAKMT_ABI_GENERATION >= 2025
    NUMBER("NumXcc", node->NumXcc);
    NUMBER("KFDGpuID", node->KFDGpuID);
    NUMBER("FamilyID", node->FamilyID);
#endif
    printf(",\"AMDName\":\"%.*s\"}\n", (int)sizeof(node->AMDName), (const char *)node->AMDName);
}

static void show_name(HSAuint32 id, const HsaNodeProperties *node)
{
    int i;

    printf("{\"node\":%u,\"MarketingName\":\"", id);
    for (i = 0; i < HSA_PUBLIC_NAME_SIZE && node->MarketingName[i]; i++)
        putchar(node->MarketingName[i] < 128 ? node->MarketingName[i] : '?');
    printf("\"}\n");
}

static void read_banks(HSAuint32 id, HSAuint32 count)
{
    HsaMemoryProperties *banks = (HsaMemoryProperties *)calloc(count + 1, sizeof(*banks)), *bank;
    HSAuint32 i;

    if (count)
        CHECK(hsaKmtGetNodeMemoryProperties(id, count, banks));
    for (i = 0; i < count && !silent; i++) {
        bank = &banks[i];
        printf("{\"node\":%u,\"bank\":%u,\"s\":0", id, i);
        NUMBER("heap", bank->HeapType);
        NUMBER("size", bank->SizeInBytes);
        NUMBER("flags", bank->Flags.MemoryProperty);
        NUMBER("width", bank->Width);
        NUMBER("clk", bank->MemoryClockMax);
        NUMBER("va", bank->VirtualBaseAddress != 0);
        printf("}\n");
    }
    free(banks);
}

static void read_caches(HSAuint32 id, HSAuint32 processor, HSAuint32 count, const char *kind)
{
    HsaCacheProperties *caches = (HsaCacheProperties *)calloc(count + 1, sizeof(*caches)), *cache;
    HSAuint32 i, word;

    if (count)
        CHECK(hsaKmtGetNodeCacheProperties(id, processor, count, caches));
    for (i = 0; i < count && !silent; i++) {
        uint64_t sum = 1469598103934665603u;

        cache = &caches[i];
        for (word = 0; word < HSA_CPU_SIBLINGS; word++)
            sum = (sum ^ cache->SiblingMap[word]) * 1099511628211u;
        printf("{\"node\":%u,\"%s\":%u,\"s\":0", id, kind, i);
        NUMBER("proc", cache->ProcessorIdLow);
        NUMBER("level", cache->CacheLevel);
        NUMBER("size", cache->CacheSize);
        NUMBER("line", cache->CacheLineSize);
        NUMBER("lpt", cache->CacheLinesPerTag);
        NUMBER("assoc", cache->CacheAssociativity);
        NUMBER("lat", cache->CacheLatency);
        NUMBER("type", cache->CacheType.Value);
        NUMBER("sib", sum);
        printf("}\n");
    }
    free(caches);
}

static void read_links(HSAuint32 id, HSAuint32 count)
{
    HsaIoLinkProperties *links = (HsaIoLinkProperties *)calloc(count + 1, sizeof(*links)), *link;
    HSAuint32 i;

    if (count)
        CHECK(hsaKmtGetNodeIoLinkProperties(id, count, links));
    for (i = 0; i < count && !silent; i++) {
        link = &links[i];
        printf("{\"node\":%u,\"link\":%u,\"s\":0", id, i);
        NUMBER("type", link->IoLinkType);
        NUMBER("from", link->NodeFrom);
        NUMBER("to", link->NodeTo);
        NUMBER("w", link->Weight);
        NUMBER("minlat", link->MinimumLatency);
        NUMBER("maxlat", link->MaximumLatency);
        NUMBER("minbw", link->MinimumBandwidth);
        NUMBER("maxbw", link->MaximumBandwidth);
        NUMBER("rec", link->RecTransferSize);
#if HSAKMT_ABI_GENERATION >= 2025
        NUMBER("sdma", link->RecSdmaEngIdMask);
#endif
        NUMBER("flags", link->Flags.LinkProperty);
        printf("}\n");
    }
    free(links);
}

static void live(void)
{
    HsaVersionInfo version;
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaClockCounters clocks[2];
    HSAuint32 id;

    CHECK(hsaKmtOpenKFD());
    CHECK(hsaKmtGetVersion(&version));
    CHECK(hsaKmtAcquireSystemProperties(&system));
    if (!silent)
        printf("{\"NumNodes\":%u,\"PlatformOem\":%u,\"PlatformId\":%u,\"PlatformRev\":%u}\n",
               system.NumNodes, system.PlatformOem, system.PlatformId, system.PlatformRev);
    for (id = 0; id < system.NumNodes; id++) {
        memset(&node, 0xa5, sizeof(node));
        CHECK(hsaKmtGetNodeProperties(id, &node));
        if (!silent)
            show_node(id, &node);
        read_banks(id, node.NumMemoryBanks);
        read_caches(id, node.NumFComputeCores ? node.FComputeIdLo : node.CComputeIdLo,
                    node.NumCaches, node.NumFComputeCores ? "cache" : "cpu_cache");
        read_links(id, node.NumIOLinks);
        if (!silent)
            show_name(id, &node);
        CHECK(hsaKmtGetClockCounters(id, &clocks[0]));
        CHECK(hsaKmtGetClockCounters(id, &clocks[1]));
        if (clocks[1].SystemClockCounter < clocks[0].SystemClockCounter ||
            clocks[1].GPUClockCounter < clocks[0].GPUClockCounter) {
            fprintf(stderr, "clocks of node %u run backwards\n", id);
            exit(1);
        }
    }
    CHECK(hsaKmtReleaseSystemProperties());
    CHECK(hsaKmtCloseKFD());
}

int main(void)
{
    int status = 0;
    pid_t child;

    live();
    fflush(stdout);
    silent = 1;
    live();
    CHECK(hsaKmtOpenKFD());
    child = fork();
    if (child == 0) {
        live();
        _exit(0);
    }
    if (child < 0 || waitpid(child, &status, 0) != child || status != 0) {
        fprintf(stderr, "the child ended with status %#x\n", (unsigned)status);
        return 1;
    }
    CHECK(hsaKmtCloseKFD());
    return 0;
}
