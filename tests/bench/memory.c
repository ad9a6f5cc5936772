/* SPDX-License-Identifier: MIT */
/*
 * memory MODE ALIVE ROUNDS: runs ROUNDS rounds with ALIVE allocations alive, in a function that an
 * instruction counter can be given by name.
 * Of those, 3,000 have memory, because the emulation of the drivers keeps a file open for each;
 * the others are addresses alone, of the same regions and in the same books.
 *
 * MODE "cycle": allocates 4 KiB of video memory, maps, unmaps, frees it; "visible": the same with
 * host access; "query": asks hsaKmtQueryPointerInfo; "mapped": the same of mapped memory.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hsakmt.h"

#define WITH_MEMORY 3000

static HSAuint32 gpu;
static HsaMemFlags flags, addresses;
static void **alive;
static unsigned long alive_count;

static int cycle(void)
{
    HSAuint64 other;
    void *memory = NULL;

    return hsaKmtAllocMemory(gpu, 4096, flags, &memory) ||
           hsaKmtMapMemoryToGPU(memory, 4096, &other) || hsaKmtUnmapMemoryToGPU(memory) ||
           hsaKmtFreeMemory(memory, 4096);
}

static int query(unsigned long round)
{
    HsaPointerInfo info;

    return hsaKmtQueryPointerInfo((char *)alive[round * 7919 % alive_count] + 8, &info);
}

__attribute__((noinline)) int hsakmt_bench_counted(int queries, unsigned long rounds)
{
    unsigned long round;

    for (round = 0; round < rounds; round++)
        if (queries ? query(round) : cycle())
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HSAuint64 other;
    unsigned long i, rounds;
    int queries, mapped;

    if (argc != 4)
        return 2;
    mapped = !strcmp(argv[1], "mapped");
    queries = mapped || !strcmp(argv[1], "query");
    flags.Value = addresses.Value = 0;
    addresses.ui32.OnlyAddress = 1;
    flags.ui32.NonPaged = 1;
    flags.ui32.HostAccess = !strcmp(argv[1], "visible");
    alive_count = strtoul(argv[2], NULL, 10);
    rounds = strtoul(argv[3], NULL, 10);
    alive = calloc(alive_count + 1, sizeof(*alive));
    if (!alive || hsaKmtOpenKFD() || hsaKmtAcquireSystemProperties(&system))
        return 1;
    for (gpu = 0; gpu < system.NumNodes; gpu++)
        if (!hsaKmtGetNodeProperties(gpu, &node) && node.NumFComputeCores)
            break;
    for (i = 0; i < alive_count; i++)
        if (hsaKmtAllocMemory(gpu, 4096, i < WITH_MEMORY ? flags : addresses, &alive[i]) ||
            (mapped && hsaKmtMapMemoryToGPU(alive[i], 4096, &other)))
            return 1;
    /* What is made once is made. */
    if (queries ? query(0) : cycle())
        return 1;
    if (hsakmt_bench_counted(queries, rounds)) {
        fputs("a call failed\n", stderr);
        return 1;
    }
    for (i = 0; i < alive_count; i++)
        if ((mapped && hsaKmtUnmapMemoryToGPU(alive[i])) || hsaKmtFreeMemory(alive[i], 4096))
            return 1;
    free(alive);
    return hsaKmtReleaseSystemProperties() || hsaKmtCloseKFD();
}
