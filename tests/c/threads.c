/* SPDX-License-Identifier: MIT */
/*
 * Eight threads that fail differently each read their own last error.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

#define THREADS 8
#define ROUNDS 2000

static unsigned long wrong[THREADS];
static pthread_barrier_t start;

static void *fail(void *argument)
{
    unsigned long mine = (unsigned long)argument;
    HsaNodeProperties node;
    HsaExtErrorDetail detail;
    HSAuint64 before = 0;
    int round;

    detail.Size = sizeof(detail);
    pthread_barrier_wait(&start);
    for (round = 0; round < ROUNDS; round++) {
        HSAuint32 absent = (HSAuint32)(1000 + mine * ROUNDS + (unsigned long)round);
        if (hsaKmtGetNodeProperties(absent, &node) != HSAKMT_STATUS_INVALID_NODE_UNIT ||
            hsaKmtExtGetLastError(&detail) != HSAKMT_STATUS_SUCCESS ||
            detail.Status != HSAKMT_STATUS_INVALID_NODE_UNIT || detail.Object != absent ||
            detail.Sequence <= before)
            wrong[mine]++;
        before = detail.Sequence;
    }
    return NULL;
}

int main(void)
{
    pthread_t threads[THREADS];
    HsaSystemProperties system;
    unsigned long i, all = 0;

    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    pthread_barrier_init(&start, NULL, THREADS);
    for (i = 0; i < THREADS; i++)
        pthread_create(&threads[i], NULL, fail, (void *)i);
    for (i = 0; i < THREADS; i++) {
        pthread_join(threads[i], NULL);
        all += wrong[i];
    }
    expect_equal(all, 0, "each thread reads its own failures");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    return failures != 0;
}
