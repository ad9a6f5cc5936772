/* SPDX-License-Identifier: MIT */
/*
 * Opens and closes 2,000 times, or as often as the argument says (more than 100), in a process
 * that may have 64 descriptors. Where the driver is absent the opens fail, and leak nothing either.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>

#include "expect.h"
#include "hsakmt.h"

#define ROUNDS 2000
/* By then every lazily made thing is there. */
#define SETTLED 100

/* Pages of address space. */
static unsigned long long pages(void)
{
    unsigned long long size = 0;
    FILE *file = fopen("/proc/self/statm", "r");

    if (!file)
        return 0;
    if (fscanf(file, "%llu", &size) != 1)
        size = 0;
    fclose(file);
    return size;
}

int main(int argc, char **argv)
{
    struct rlimit limit = {64, 64};
    unsigned long long grown = 0;
    unsigned long strange = 0;
    HsaSystemProperties system;
    HSAKMT_STATUS first = HSAKMT_STATUS_SUCCESS, status;
    int round, rounds = argc > 1 ? atoi(argv[1]) : ROUNDS;

    expect(rounds > SETTLED, "rounds enough to tell growth");
    expect_equal((unsigned)setrlimit(RLIMIT_NOFILE, &limit), 0, "a limit of 64 descriptors");
    for (round = 0; round < rounds; round++) {
        status = hsaKmtOpenKFD();
        if (round == 0)
            first = status;
        strange += status != first;
        if (status == HSAKMT_STATUS_SUCCESS) {
            strange += hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS;
            strange += hsaKmtReleaseSystemProperties() != HSAKMT_STATUS_SUCCESS;
            strange += hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS;
        }
        if (round == SETTLED)
            grown = pages();
    }
    expect(first == HSAKMT_STATUS_SUCCESS || first == HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
           "the first open");
    expect_equal(strange, 0, "every life is like the first");
    expect_equal(pages(), grown, "the address space does not grow");
    return failures != 0;
}
