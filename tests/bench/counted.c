/* SPDX-License-Identifier: MIT */
/*
 * Opens, acquires and asks for every property, in a function that an instruction counter can be
 * given by name. The numbers of nodes, banks, caches and links go to standard output.
 */
#include <stdio.h>
#include <stdlib.h>

#include "hsakmt.h"

/* The most banks, caches or links of a node. */
#define ENTRIES 1024

static HsaMemoryProperties banks[ENTRIES];
static HsaCacheProperties caches[ENTRIES];
static HsaIoLinkProperties links[ENTRIES];

/* How many there were. */
static unsigned nodes_seen, banks_seen, caches_seen, links_seen;

__attribute__((noinline)) int hsakmt_bench_counted(void)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HSAuint32 id;

    if (hsaKmtOpenKFD() || hsaKmtAcquireSystemProperties(&system))
        return 1;
    for (id = 0; id < system.NumNodes; id++) {
        if (hsaKmtGetNodeProperties(id, &node) || node.NumMemoryBanks > ENTRIES ||
            node.NumCaches > ENTRIES || node.NumIOLinks > ENTRIES ||
            hsaKmtGetNodeMemoryProperties(id, node.NumMemoryBanks, banks) ||
            hsaKmtGetNodeCacheProperties(id, 0, node.NumCaches, caches) ||
            hsaKmtGetNodeIoLinkProperties(id, node.NumIOLinks, links))
            return 1;
        nodes_seen++;
        banks_seen += node.NumMemoryBanks;
        caches_seen += node.NumCaches;
        links_seen += node.NumIOLinks;
    }
    return 0;
}

int main(void)
{
    if (hsakmt_bench_counted()) {
        fputs("a call failed\n", stderr);
        return 1;
    }
    printf("%u nodes, %u banks, %u caches, %u links\n", nodes_seen, banks_seen, caches_seen,
           links_seen);
    return hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS;
}
