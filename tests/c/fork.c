/* SPDX-License-Identifier: MIT */
/*
 * Children: of fork, of fork while other threads are in the library, of children; of vfork and of
 * clone, with and without shared memory.
 *
 * Runs where /dev/kfd opens. The argument is the number of forks beside busy threads, 2000 unless
 * given.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <dirent.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"

#define THREADS 3
#define CHAIN 50

/* Where a child failed is its exit status; 0 is nowhere. */
#define FAIL_IF(condition)   \
    do {                     \
        if (condition)       \
            return __LINE__; \
    } while (0)

/* The open descriptors, without the one that looks. */
static int descriptors(void)
{
    DIR *folder = opendir("/proc/self/fd");
    int count = -1;

    if (!folder)
        return -1;
    while (readdir(folder))
        count++;
    closedir(folder);
    return count - 2;
}

/* Opens, reads every node, closes. Calls nothing that a lock of the C library could block. */
static int live(void)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaClockCounters clocks;
    HSAuint32 i;

    FAIL_IF(hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(system.NumNodes == 0);
    for (i = 0; i < system.NumNodes; i++) {
        FAIL_IF(hsaKmtGetNodeProperties(i, &node) != HSAKMT_STATUS_SUCCESS);
        FAIL_IF(hsaKmtGetClockCounters(i, &clocks) != HSAKMT_STATUS_SUCCESS);
    }
    FAIL_IF(hsaKmtReleaseSystemProperties() != HSAKMT_STATUS_SUCCESS);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS);
    return 0;
}

/* What a forked child sees of a library that its parent may have open: nothing, until it opens. */
static int live_as_forked(void)
{
    HsaVersionInfo version;
    HsaSystemProperties system;
    HsaNodeProperties node;

    FAIL_IF(hsaKmtGetVersion(&version) != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    FAIL_IF(hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    FAIL_IF(hsaKmtGetNodeProperties(0, &node) != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    return live();
}

/* What a child sees that shares its parent's memory: it may change nothing. */
static int live_as_guest(void)
{
    HsaSystemProperties system;

    FAIL_IF(hsaKmtOpenKFD() != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    FAIL_IF(hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED);
    return 0;
}

/* The line where a child failed, 0 for nowhere. */
static int line_of(pid_t child)
{
    int status;

    if (child < 0 || waitpid(child, &status, 0) != child)
        return -1;
    if (WIFSIGNALED(status))
        return 1000000 + WTERMSIG(status);
    return WEXITSTATUS(status);
}

/* Exit statuses are bytes; lines of this file may not be. */
static int byte(int line)
{
    return line == 0 ? 0 : (line & 0xff) ? (line & 0xff) : 255;
}

static void forked_child(int opened)
{
    int before = descriptors(), line;
    pid_t child = fork();

    if (child == 0) {
        line = live_as_forked();
        if (line == 0 && opened && descriptors() != before)
            line = __LINE__;
        _exit(byte(line));
    }
    expect_equal((unsigned)line_of(child), 0, "a forked child opens anew");
    expect_equal((unsigned)descriptors(), (unsigned)before, "its parent's descriptors are the same");
}

/* fork as the kernel has it, without what a C library does about it. */
static void raw_forked_child(void)
{
    pid_t child = (pid_t)syscall(SYS_clone, (long)SIGCHLD, 0L, 0L, 0L, 0L);

    if (child == 0)
        _exit(byte(live_as_forked()));
    expect_equal((unsigned)line_of(child), 0, "a cloned child with its own memory opens anew");
}

static int live_in_chain(int left)
{
    pid_t child;
    int line = live();

    if (line || left == 0)
        return line;
    FAIL_IF(hsaKmtOpenKFD() != HSAKMT_STATUS_SUCCESS);
    child = fork();
    if (child == 0)
        _exit(byte(live_in_chain(left - 1)));
    line = line_of(child);
    FAIL_IF(hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS);
    return line;
}

static void chain_of_children(void)
{
    pid_t child = fork();

    if (child == 0)
        _exit(byte(live_in_chain(CHAIN)));
    expect_equal((unsigned)line_of(child), 0, "a chain of children, each of the one before");
}

/* Apart, so that nothing of the caller lives in registers across the vfork. */
__attribute__((noinline)) static pid_t start_guest(void)
{
    pid_t child = vfork();

    if (child == 0)
        _exit(byte(live_as_guest()));
    return child;
}

static void vforked_child(void)
{
    HsaSystemProperties system;

    expect_equal((unsigned)line_of(start_guest()), 0, "a vforked child changes nothing");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS,
                 "and its parent goes on");
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "and on");
}

static int guest(void *unused)
{
    (void)unused;
    return byte(live_as_guest());
}

static void cloned_guest(void)
{
    static char stack[1 << 18] __attribute__((aligned(64)));
    HsaSystemProperties system;
    pid_t child = clone(guest, stack + sizeof(stack), CLONE_VM | SIGCHLD, NULL);

    expect_equal((unsigned)line_of(child), 0, "a cloned child with shared memory changes nothing");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS,
                 "and its parent goes on");
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "and on");
}

/* Whether the threads shall end; whether they shall rest until the next round. */
static int stop, rest;
static unsigned long calls, wrong;
static pthread_barrier_t begin, end;

/* One call or a few of each kind; the number of answers that were wrong. */
static unsigned long call_library(long kind)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaClockCounters clocks;
    unsigned long failed = 0;

    switch (kind) {
    case 0:
        failed += hsaKmtOpenKFD() != HSAKMT_STATUS_KERNEL_ALREADY_OPENED;
        failed += hsaKmtCloseKFD() != HSAKMT_STATUS_SUCCESS;
        break;
    case 1:
        failed += hsaKmtAcquireSystemProperties(&system) != HSAKMT_STATUS_SUCCESS;
        failed += hsaKmtGetClockCounters(0, &clocks) != HSAKMT_STATUS_SUCCESS;
        break;
    default:
        failed += hsaKmtGetNodeProperties(0, &node) != HSAKMT_STATUS_SUCCESS;
        failed += hsaKmtGetNodeProperties(99, &node) != HSAKMT_STATUS_INVALID_NODE_UNIT;
        break;
    }
    return failed;
}

static void *be_busy(void *kind)
{
    unsigned long failed = 0;

    for (;;) {
        pthread_barrier_wait(&begin);
        if (__atomic_load_n(&stop, __ATOMIC_RELAXED))
            break;
        while (!__atomic_load_n(&rest, __ATOMIC_RELAXED)) {
            failed += call_library(*(const long *)kind);
            __atomic_fetch_add(&calls, 1, __ATOMIC_RELAXED);
        }
        pthread_barrier_wait(&end);
    }
    __atomic_fetch_add(&wrong, failed, __ATOMIC_RELAXED);
    return NULL;
}

/* In each round the threads are somewhere in the library when the child is forked, and rest while
   it runs. */
static void children_beside_threads(long rounds)
{
    static long kinds[THREADS];
    pthread_t threads[THREADS];
    HsaSystemProperties system;
    long i, failed = 0;
    int before;

    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    before = descriptors();
    pthread_barrier_init(&begin, NULL, THREADS + 1);
    pthread_barrier_init(&end, NULL, THREADS + 1);
    for (i = 0; i < THREADS; i++) {
        kinds[i] = i;
        if (pthread_create(&threads[i], NULL, be_busy, &kinds[i]))
            exit(2);
    }
    for (i = 0; i < rounds; i++) {
        unsigned long enough = calls + (unsigned long)(i % 4);
        pid_t child;
        int line;

        rest = 0;
        pthread_barrier_wait(&begin);
        while (__atomic_load_n(&calls, __ATOMIC_RELAXED) < enough)
            sched_yield();
        child = fork();
        if (child == 0)
            _exit(byte(live_as_forked()));
        __atomic_store_n(&rest, 1, __ATOMIC_RELAXED);
        line = line_of(child);
        if (line) {
            printf("# round %ld: %d\n", i, line);
            failed++;
        }
        pthread_barrier_wait(&end);
    }
    stop = 1;
    pthread_barrier_wait(&begin);
    for (i = 0; i < THREADS; i++)
        pthread_join(threads[i], NULL);
    expect_equal((unsigned long)failed, 0, "children that were forked beside busy threads work");
    expect_equal(wrong, 0, "and so do the threads");
    expect_equal((unsigned)descriptors(), (unsigned)before, "and no descriptor is left behind");
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
}

int main(int argc, char **argv)
{
    HsaSystemProperties system;

    forked_child(0);
    raw_forked_child();
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    forked_child(1);
    raw_forked_child();
    vforked_child();
    cloned_guest();
    chain_of_children();
    children_beside_threads(argc > 1 ? atol(argv[1]) : 2000);
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    return failures != 0;
}
