/* SPDX-License-Identifier: MIT */
/*
 * event ROUNDS: sets an event and waits for it, ROUNDS times, in a function that an instruction
 * counter can be given by name.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "hsakmt.h"

__attribute__((noinline)) int hsakmt_bench_counted(HsaEvent *event, unsigned long rounds)
{
    unsigned long round;

    for (round = 0; round < rounds; round++)
        if (hsaKmtSetEvent(event) || hsaKmtWaitOnEvent(event, HSA_EVENTTIMEOUT_INFINITE))
            return 1;
    return 0;
}

int main(int argc, char **argv)
{
    HsaSystemProperties system;
    HsaEventDescriptor descriptor;
    HsaEvent *event = NULL;

    if (argc != 2)
        return 2;
    memset(&descriptor, 0, sizeof(descriptor));
    descriptor.EventType = HSA_EVENTTYPE_SIGNAL;
    if (hsaKmtOpenKFD() || hsaKmtAcquireSystemProperties(&system) ||
        hsaKmtCreateEvent(&descriptor, 0, 0, &event))
        return 1;
    if (hsakmt_bench_counted(event, strtoul(argv[1], NULL, 10))) {
        fputs("a call failed\n", stderr);
        return 1;
    }
    return hsaKmtDestroyEvent(event) || hsaKmtReleaseSystemProperties() || hsaKmtCloseKFD();
}
