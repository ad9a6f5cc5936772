/* SPDX-License-Identifier: MIT */
/*
 * Events: created, set, waited for by one thread and by several, run out of, called back; and wrong
 * arguments. It leaves nothing behind.
 *
 * Where the answer depends on the machine, it follows what the nodes say of themselves. With
 * -DREFERENCE=1 it expects what libhsakmt 5.2.3 does. The differences are these, each intended:
 *
 * - WAIT_TIMEOUT and everything else of the calls is the same; only the extensions are ours.
 * - An event that a program cannot set and that was asked for as set is ERROR here.
 * - That no slot is left is NO_MEMORY here, ERROR there.
 */
#ifndef _GNU_SOURCE
#define _GNU_SOURCE
#endif
#include <pthread.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

#ifndef REFERENCE
#define REFERENCE 0
#endif

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

static void end_part(const char *name)
{
    expect(!wrong, name);
    wrong = 0;
}

static HSAuint32 kfd_minor, gpu, gpu_count;

static HsaEventDescriptor described(HSA_EVENTTYPE type)
{
    HsaEventDescriptor descriptor;

    memset(&descriptor, 0, sizeof(descriptor));
    descriptor.EventType = type;
    return descriptor;
}

static HsaEvent *created(HSA_EVENTTYPE type, int manual, int set)
{
    HsaEventDescriptor descriptor = described(type);
    HsaEvent *event = NULL;

    SUCCEEDS(hsaKmtCreateEvent(&descriptor, manual != 0, set != 0, &event));
    HOLDS(event != NULL);
    if (!event)
        exit(1);
    EQUAL(event->EventData.EventType, type);
    EQUAL(event->EventData.HWData1, event->EventId);
    EQUAL(event->EventData.HWData3, event->EventId);
    return event;
}

static void open_library(void)
{
    HsaVersionInfo version;
    HsaSystemProperties system;
    HsaNodeProperties node;
    HSAuint32 i;

    SUCCEEDS(hsaKmtOpenKFD());
    SUCCEEDS(hsaKmtGetVersion(&version));
    kfd_minor = version.KernelInterfaceMinorVersion;
    memset(&system, 0, sizeof(system));
    SUCCEEDS(hsaKmtAcquireSystemProperties(&system));
    gpu_count = 0;
    for (i = 0; i < system.NumNodes; i++) {
        memset(&node, 0, sizeof(node));
        SUCCEEDS(hsaKmtGetNodeProperties(i, &node));
        if (node.NumFComputeCores && !gpu_count++)
            gpu = i;
    }
}

static void close_library(void)
{
    SUCCEEDS(hsaKmtReleaseSystemProperties());
    SUCCEEDS(hsaKmtCloseKFD());
}

static void nothing_is_open(void)
{
    HsaEventDescriptor descriptor = described(HSA_EVENTTYPE_SIGNAL);
    HsaEvent event, *events[1] = {&event}, *made = NULL;

    memset(&event, 0, sizeof(event));
    FAILS(hsaKmtCreateEvent(&descriptor, 0, 0, &made), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtDestroyEvent(&event), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtSetEvent(&event), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtResetEvent(&event), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtQueryEventState(&event), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtWaitOnEvent(&event, 0), KERNEL_IO_CHANNEL_NOT_OPENED);
    FAILS(hsaKmtWaitOnMultipleEvents(events, 1, 0, 0), KERNEL_IO_CHANNEL_NOT_OPENED);
    end_part("a closed library");
}

static void arguments(void)
{
    HsaEventDescriptor descriptor = described(HSA_EVENTTYPE_MAXID);
    HsaEvent *made = (HsaEvent *)8;

    FAILS(hsaKmtCreateEvent(&descriptor, 0, 0, &made), INVALID_PARAMETER);
    FAILS(hsaKmtDestroyEvent(NULL), INVALID_HANDLE);
    FAILS(hsaKmtSetEvent(NULL), INVALID_HANDLE);
    FAILS(hsaKmtResetEvent(NULL), INVALID_HANDLE);
    FAILS(hsaKmtQueryEventState(NULL), INVALID_HANDLE);
    FAILS(hsaKmtWaitOnEvent(NULL, 0), INVALID_HANDLE);
    FAILS(hsaKmtWaitOnMultipleEvents(NULL, 1, 0, 0), INVALID_HANDLE);
#if !REFERENCE
    HsaEvent *events[2] = {NULL, NULL};

    descriptor = described(HSA_EVENTTYPE_SIGNAL);
    FAILS(hsaKmtCreateEvent(NULL, 0, 0, &made), INVALID_PARAMETER);
    HOLDS(made == NULL);
    FAILS(hsaKmtCreateEvent(&descriptor, 0, 0, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtWaitOnMultipleEvents(events, 2, 0, 0), INVALID_HANDLE);
    FAILS(hsaKmtExtSetEventCallback(NULL, NULL, NULL), INVALID_HANDLE);
#endif
#if HSAKMT_ABI_GENERATION >= 2025
    int fd;

    FAILS(hsaKmtWaitOnEvent_Ext(NULL, 0, NULL), INVALID_HANDLE);
    FAILS(hsaKmtOpenSMI(4000, &fd), INVALID_NODE_UNIT);
    if (gpu_count) {
        FAILS(hsaKmtOpenSMI(gpu, NULL), INVALID_PARAMETER);
        SUCCEEDS(hsaKmtOpenSMI(gpu, &fd));
        /* On the simulated machine the number is none of this process's. */
        if (!getenv("HSAKMT_SIM_PROFILE"))
            EQUAL(close(fd), 0);
    }
#endif
#if HSAKMT_ABI_GENERATION >= 2026
    FAILS(hsaKmtSetEventCtx(NULL, NULL), INVALID_PARAMETER);
    FAILS(hsaKmtWaitOnEventCtx(NULL, NULL, 0), INVALID_PARAMETER);
#endif
    end_part("wrong arguments");
}

static void setting(void)
{
    HsaEvent *itself = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    HsaEvent *manual = created(HSA_EVENTTYPE_SIGNAL, 1, 0);
    HsaEvent *set = created(HSA_EVENTTYPE_SIGNAL, 1, 1);
    HsaEvent *memory = created(HSA_EVENTTYPE_MEMORY, 0, 0);
    HsaEvent *both[2] = {itself, manual}, *first[3] = {set, itself, memory};

    HOLDS(itself->EventData.HWData2 && manual->EventData.HWData2 == itself->EventData.HWData2 + 8);
    FAILS(hsaKmtWaitOnEvent(itself, 0), WAIT_TIMEOUT);
    FAILS(hsaKmtWaitOnEvent(itself, 2), WAIT_TIMEOUT);
    SUCCEEDS(hsaKmtSetEvent(itself));
    SUCCEEDS(hsaKmtQueryEventState(itself));
    SUCCEEDS(hsaKmtWaitOnEvent(itself, HSA_EVENTTIMEOUT_INFINITE));
    FAILS(hsaKmtWaitOnEvent(itself, 0), WAIT_TIMEOUT);
    SUCCEEDS(hsaKmtSetEvent(manual));
    SUCCEEDS(hsaKmtWaitOnEvent(manual, HSA_EVENTTIMEOUT_INFINITE));
    SUCCEEDS(hsaKmtWaitOnEvent(manual, HSA_EVENTTIMEOUT_INFINITE));
    SUCCEEDS(hsaKmtWaitOnMultipleEvents(both, 2, 0, HSA_EVENTTIMEOUT_INFINITE));
    FAILS(hsaKmtWaitOnMultipleEvents(both, 2, 1, 2), WAIT_TIMEOUT);
    SUCCEEDS(hsaKmtSetEvent(itself));
    SUCCEEDS(hsaKmtWaitOnMultipleEvents(both, 2, 1, HSA_EVENTTIMEOUT_INFINITE));
    SUCCEEDS(hsaKmtResetEvent(manual));
    FAILS(hsaKmtWaitOnMultipleEvents(both, 2, 0, 0), WAIT_TIMEOUT);
    SUCCEEDS(hsaKmtWaitOnMultipleEvents(first, 3, 0, HSA_EVENTTIMEOUT_INFINITE));
    SUCCEEDS(hsaKmtWaitOnMultipleEvents(first, 0, 1, HSA_EVENTTIMEOUT_INFINITE));
    FAILS(hsaKmtSetEvent(memory), ERROR);
    FAILS(hsaKmtResetEvent(memory), ERROR);
    FAILS(hsaKmtWaitOnEvent(memory, 0), WAIT_TIMEOUT);
    SUCCEEDS(hsaKmtDestroyEvent(itself));
    SUCCEEDS(hsaKmtDestroyEvent(manual));
    SUCCEEDS(hsaKmtDestroyEvent(set));
    SUCCEEDS(hsaKmtDestroyEvent(memory));
    end_part("setting and waiting");
}

#if HSAKMT_ABI_GENERATION >= 2025
static void ages(void)
{
    HsaEvent *event = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    HsaEvent *other = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    HsaEvent *both[2] = {event, other};
    uint64_t age = 1, two[2] = {0, 0};

    if (kfd_minor >= 14) {
        FAILS(hsaKmtWaitOnEvent_Ext(event, 0, &age), WAIT_TIMEOUT);
        EQUAL(age, 1);
        SUCCEEDS(hsaKmtSetEvent(event));
        SUCCEEDS(hsaKmtWaitOnEvent_Ext(event, HSA_EVENTTIMEOUT_INFINITE, &age));
        EQUAL(age, 2);
        FAILS(hsaKmtWaitOnEvent_Ext(event, 0, &age), WAIT_TIMEOUT);
        EQUAL(age, 2);
        age = 1;
        SUCCEEDS(hsaKmtWaitOnEvent_Ext(event, 0, &age));
        EQUAL(age, 2);
        two[0] = 2;
        two[1] = 1;
        SUCCEEDS(hsaKmtSetEvent(other));
        SUCCEEDS(hsaKmtWaitOnMultipleEvents_Ext(both, 2, 0, HSA_EVENTTIMEOUT_INFINITE, two));
        EQUAL(two[0], 2);
        EQUAL(two[1], 2);
    }
    SUCCEEDS(hsaKmtSetEvent(event));
    SUCCEEDS(hsaKmtWaitOnEvent_Ext(event, 0, NULL));
    SUCCEEDS(hsaKmtDestroyEvent(event));
    SUCCEEDS(hsaKmtDestroyEvent(other));
    end_part("ages");
}
#endif

/* Every kind that the driver may get. */
static void kinds(void)
{
    HSAuint32 kind;

    for (kind = 0; kind < HSA_EVENTTYPE_MAXID; kind++)
        SUCCEEDS(hsaKmtDestroyEvent(created((HSA_EVENTTYPE)kind, 1, 0)));
#if !REFERENCE
    HsaEventDescriptor descriptor = described(HSA_EVENTTYPE_DEBUG_EVENT);
    HsaEvent *made = (HsaEvent *)8;

    FAILS(hsaKmtCreateEvent(&descriptor, 0, 1, &made), ERROR);
    HOLDS(made == NULL);
#endif
    end_part("every kind");
}

#define MANY 100

static void many(void)
{
    HsaEvent *events[MANY];
    HSAuint32 i;

    for (i = 0; i < MANY; i++)
        events[i] = created(HSA_EVENTTYPE_SIGNAL, 1, 0);
    for (i = 0; i < MANY; i++) {
        FAILS(hsaKmtWaitOnMultipleEvents(events, MANY, 1, 0), WAIT_TIMEOUT);
        SUCCEEDS(hsaKmtSetEvent(events[i]));
        SUCCEEDS(hsaKmtWaitOnMultipleEvents(events, i + 1, 1, HSA_EVENTTIMEOUT_INFINITE));
    }
    SUCCEEDS(hsaKmtWaitOnMultipleEvents(events, MANY, 1, HSA_EVENTTIMEOUT_INFINITE));
    for (i = 0; i < MANY; i++)
        SUCCEEDS(hsaKmtDestroyEvent(events[i]));
    end_part("many events");
}

#define MOST 5000

static void until_none_is_left(void)
{
    static HsaEvent *events[MOST];
    HsaEventDescriptor descriptor = described(HSA_EVENTTYPE_SIGNAL);
    HSAKMT_STATUS status = HSAKMT_STATUS_SUCCESS;
    HSAuint32 i, count;

    for (count = 0; count < MOST; count++) {
        status = hsaKmtCreateEvent(&descriptor, 0, 0, &events[count]);
        if (status != HSAKMT_STATUS_SUCCESS)
            break;
    }
    HOLDS(count == 4095 || count == 255);
    HOLDS(events[count] == NULL);
    EQUAL(status, REFERENCE ? HSAKMT_STATUS_ERROR : HSAKMT_STATUS_NO_MEMORY);
#if !REFERENCE
    HSAuint32 in_use = 0, limit = 0;

    SUCCEEDS(hsaKmtExtGetEventUse(&in_use, &limit));
    EQUAL(in_use, count);
    EQUAL(limit, count);
    SUCCEEDS(hsaKmtExtGetEventUse(NULL, NULL));
#endif
    SUCCEEDS(hsaKmtDestroyEvent(events[7]));
    SUCCEEDS(hsaKmtCreateEvent(&descriptor, 0, 0, &events[7]));
    for (i = 0; i < count; i++)
        SUCCEEDS(hsaKmtDestroyEvent(events[i]));
    end_part("until none is left");
}

static HsaEvent *there, *back;
#define ROUNDS 200

static void *answer(void *unused)
{
    HSAuint32 i;

    (void)unused;
    for (i = 0; i < ROUNDS; i++)
        if (hsaKmtWaitOnEvent(there, HSA_EVENTTIMEOUT_INFINITE) || hsaKmtSetEvent(back))
            return &there;
    return NULL;
}

static void two_threads(void)
{
    pthread_t thread;
    void *complaint = NULL;
    HSAuint32 i;

    there = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    back = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    EQUAL(pthread_create(&thread, NULL, answer, NULL), 0);
    for (i = 0; i < ROUNDS; i++) {
        SUCCEEDS(hsaKmtSetEvent(there));
        SUCCEEDS(hsaKmtWaitOnEvent(back, HSA_EVENTTIMEOUT_INFINITE));
    }
    EQUAL(pthread_join(thread, &complaint), 0);
    HOLDS(complaint == NULL);
    SUCCEEDS(hsaKmtDestroyEvent(there));
    SUCCEEDS(hsaKmtDestroyEvent(back));
    end_part("two threads");
}

#if !REFERENCE
static struct {
    void *user;
    HsaEvent *event;
    unsigned count;
} called;

static void callback(void *user, HsaEvent *event)
{
    called.user = user;
    called.event = event;
    called.count++;
    /* A callback may call the library. */
    SUCCEEDS(hsaKmtQueryEventState(event));
}

static void callbacks(void)
{
    HsaEvent *event = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    HSAuint32 count = 9;

    FAILS(hsaKmtExtPumpEvents(HSA_EVENTTIMEOUT_INFINITE, &count), WAIT_TIMEOUT);
    EQUAL(count, 0);
    if (kfd_minor < 14) {
        FAILS(hsaKmtExtSetEventCallback(event, callback, NULL), NOT_SUPPORTED);
    } else {
        SUCCEEDS(hsaKmtExtSetEventCallback(event, callback, &called));
        FAILS(hsaKmtExtPumpEvents(1, NULL), WAIT_TIMEOUT);
        SUCCEEDS(hsaKmtSetEvent(event));
        SUCCEEDS(hsaKmtExtPumpEvents(HSA_EVENTTIMEOUT_INFINITE, &count));
        EQUAL(count, 1);
        EQUAL(called.count, 1);
        HOLDS(called.user == &called && called.event == event);
        SUCCEEDS(hsaKmtExtSetEventCallback(event, NULL, NULL));
        SUCCEEDS(hsaKmtSetEvent(event));
        FAILS(hsaKmtExtPumpEvents(0, &count), WAIT_TIMEOUT);
        EQUAL(called.count, 1);
    }
    SUCCEEDS(hsaKmtDestroyEvent(event));
    end_part("callbacks");
}

/* What a close finds goes with it; its memory is the caller's to give back. */
static void closes(void)
{
    HsaEvent *left = created(HSA_EVENTTYPE_SIGNAL, 0, 0), *event;
    HSAuint64 slot = left->EventData.HWData2;
    HSAuint32 in_use = 9;

    close_library();
    FAILS(hsaKmtSetEvent(left), KERNEL_IO_CHANNEL_NOT_OPENED);
    open_library();
    SUCCEEDS(hsaKmtExtGetEventUse(&in_use, NULL));
    EQUAL(in_use, 0);
    event = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    EQUAL(event->EventData.HWData2, slot);
    SUCCEEDS(hsaKmtDestroyEvent(left));
    SUCCEEDS(hsaKmtSetEvent(event));
    SUCCEEDS(hsaKmtWaitOnEvent(event, 0));
    SUCCEEDS(hsaKmtDestroyEvent(event));
    end_part("a close and an open");
}

/* A forked child has none of its parent's events. */
static void forks(void)
{
    HsaEvent *mine = created(HSA_EVENTTYPE_SIGNAL, 0, 0);
    int status = -1;
    pid_t child;

    SUCCEEDS(hsaKmtSetEvent(mine));
    fflush(stdout);
    child = fork();
    if (child == 0) {
        FAILS(hsaKmtWaitOnEvent(mine, 0), KERNEL_IO_CHANNEL_NOT_OPENED);
        open_library();
        FAILS(hsaKmtSetEvent(mine), ERROR);
        SUCCEEDS(hsaKmtDestroyEvent(mine));
        mine = created(HSA_EVENTTYPE_SIGNAL, 0, 1);
        SUCCEEDS(hsaKmtWaitOnEvent(mine, HSA_EVENTTIMEOUT_INFINITE));
        SUCCEEDS(hsaKmtDestroyEvent(mine));
        close_library();
        fflush(stdout);
        _exit(wrong != 0);
    }
    HOLDS(child > 0 && waitpid(child, &status, 0) == child);
    EQUAL(status, 0);
    SUCCEEDS(hsaKmtWaitOnEvent(mine, 0));
    SUCCEEDS(hsaKmtDestroyEvent(mine));
    end_part("a forked child");
}
#endif

#if HSAKMT_ABI_GENERATION >= 2026
/* One context's events are nothing to another. */
static void contexts(void)
{
    HsaKFDContext *primary = NULL, *ctx = NULL;
    HsaEventDescriptor descriptor = described(HSA_EVENTTYPE_SIGNAL);
    HsaSystemProperties system;
    HsaEvent *event = NULL, *other = NULL, *events[1];
    uint64_t age = 1;
    HSAuint32 count = 9;
    HSAKMT_STATUS status;

    FAILS(hsaKmtOpenKFDCtx(&primary), KERNEL_ALREADY_OPENED);
    SUCCEEDS(hsaKmtCreateEventCtx(primary, &descriptor, 0, 0, &event));
    SUCCEEDS(hsaKmtSetEvent(event));
    SUCCEEDS(hsaKmtWaitOnEventCtx(primary, event, HSA_EVENTTIMEOUT_INFINITE));
    status = hsaKmtOpenSecondaryKFDCtx(&ctx);
    if (status == HSAKMT_STATUS_SUCCESS) {
        SUCCEEDS(hsaKmtAcquireSystemPropertiesCtx(ctx, &system));
        FAILS(hsaKmtSetEventCtx(ctx, event), ERROR);
        SUCCEEDS(hsaKmtCreateEventCtx(ctx, &descriptor, 0, 0, &other));
        SUCCEEDS(hsaKmtSetEventCtx(ctx, other));
        FAILS(hsaKmtWaitOnEvent(event, 0), WAIT_TIMEOUT);
        SUCCEEDS(hsaKmtWaitOnEvent_ExtCtx(ctx, other, HSA_EVENTTIMEOUT_INFINITE, &age));
        EQUAL(age, 2);
        SUCCEEDS(hsaKmtExtSetEventCallbackCtx(ctx, other, callback, NULL));
        SUCCEEDS(hsaKmtExtPumpEventsCtx(ctx, 0, &count));
        EQUAL(count, 1);
        SUCCEEDS(hsaKmtResetEventCtx(ctx, other));
        SUCCEEDS(hsaKmtQueryEventStateCtx(ctx, other));
        events[0] = other;
        FAILS(hsaKmtWaitOnMultipleEventsCtx(ctx, events, 1, 1, 0), WAIT_TIMEOUT);
        FAILS(hsaKmtWaitOnMultipleEvents_ExtCtx(ctx, events, 1, 1, 0, NULL), WAIT_TIMEOUT);
        SUCCEEDS(hsaKmtDestroyEventCtx(ctx, other));
        SUCCEEDS(hsaKmtCloseSecondaryKFDCtx(ctx));
    } else {
        EQUAL(status, HSAKMT_STATUS_NOT_SUPPORTED);
    }
    SUCCEEDS(hsaKmtDestroyEventCtx(primary, event));
    SUCCEEDS(hsaKmtCloseKFDCtx());
    end_part("contexts");
}
#endif

int main(void)
{
    nothing_is_open();
    open_library();
    arguments();
    setting();
    kinds();
    many();
    two_threads();
    until_none_is_left();
#if HSAKMT_ABI_GENERATION >= 2025
    ages();
#endif
#if !REFERENCE
    callbacks();
    closes();
    forks();
#endif
#if HSAKMT_ABI_GENERATION >= 2026
    contexts();
#endif
    close_library();
    expect_equal((unsigned)wrong, 0, "the end");
    return failures != 0;
}
