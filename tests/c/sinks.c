/* SPDX-License-Identifier: MIT */
/*
 * The log sink and the trace sink: what they get, and that they may call the library.
 *
 * Runs where /dev/kfd opens.
 */
#include <string.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

static char mine, other;

struct messages {
    int count, wrong_user, wrong_level, with_line_end;
    unsigned long failures_found;
};

static struct messages messages;

static void log_sink(void *user, HSAuint32 level, const char *message)
{
    HsaExtErrorDetail detail;

    messages.count++;
    messages.wrong_user += user != &mine;
    messages.wrong_level += level < HSA_EXT_LOG_ERROR || level > HSA_EXT_LOG_INFO;
    messages.with_line_end += strlen(message) == 0 || strchr(message, '\n') != NULL;
    detail.Size = sizeof(detail);
    if (hsaKmtExtGetLastError(&detail) == HSAKMT_STATUS_SUCCESS)
        messages.failures_found++;
}

static void log_goes_to_the_sink(void)
{
    expect_equal(hsaKmtExtSetLogSink(log_sink, &mine, 5), HSAKMT_STATUS_INVALID_PARAMETER,
                 "5 is no level");
    expect_equal(hsaKmtExtSetLogSink(log_sink, &mine, HSA_EXT_LOG_INFO), HSAKMT_STATUS_SUCCESS,
                 "set a log sink");
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect(messages.count > 0, "the open tells something");
    expect_equal((unsigned)messages.wrong_user, 0, "with the host's pointer");
    expect_equal((unsigned)messages.wrong_level, 0, "up to the level that was asked for");
    expect_equal((unsigned)messages.with_line_end, 0, "one line without its end");
    expect_equal(messages.failures_found, (unsigned)messages.count, "a sink may ask for details");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    expect_equal(hsaKmtExtSetLogSink(NULL, NULL, 0), HSAKMT_STATUS_SUCCESS, "take it back");
    messages.count = 0;
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open without it");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    expect_equal((unsigned)messages.count, 0, "nothing is told");
}

/* A sink that comes while the library is open hears of the next failure. */
static void log_sink_after_the_open(void)
{
    HsaNodeProperties node;

    messages.count = 0;
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open without a sink");
    expect_equal(hsaKmtExtSetLogSink(log_sink, &mine, HSA_EXT_LOG_ERROR), HSAKMT_STATUS_SUCCESS,
                 "set a sink while open");
    expect_equal(hsaKmtGetNodeProperties(0, &node), HSAKMT_STATUS_INVALID_NODE_UNIT, "a failure");
    expect_equal((unsigned)messages.count, 1, "is told");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    expect_equal(hsaKmtGetNodeProperties(0, &node), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
                 "a failure without a context");
    expect_equal((unsigned)messages.count, 2, "is told, too");
    expect_equal(hsaKmtExtSetLogSink(NULL, NULL, 0), HSAKMT_STATUS_SUCCESS, "take it back");
}

struct record {
    int count;
    char function[64];
    HSAuint64 arguments[8];
    HsaExtTraceRecord last;
};

static struct record records[2];

static void trace_sink(void *user, const HsaExtTraceRecord *record)
{
    struct record *to = &records[user == &other];
    HsaExtErrorDetail detail;
    HSAuint32 i;

    /* Questions about failures are not traced, so a sink may ask at every call. */
    detail.Size = sizeof(detail);
    hsaKmtExtGetLastError(&detail);
    to->count++;
    to->last = *record;
    strncpy(to->function, record->Function, sizeof(to->function) - 1);
    for (i = 0; i < record->ArgumentCount && i < 8; i++)
        to->arguments[i] = record->Arguments[i];
    if (to->count == 1) {
        /* A record of a call that a sink makes comes before this one ends. */
        HsaVersionInfo version;
        hsaKmtGetVersion(&version);
    }
}

static void trace_goes_to_the_sink(void)
{
    HsaSystemProperties system;
    HsaMemoryProperties banks[4];
    struct record *record = &records[0];

    expect_equal(hsaKmtExtSetTraceSink(trace_sink, &mine), HSAKMT_STATUS_SUCCESS, "set a sink");
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal((unsigned)record->count, 2, "a record of the open, one of the sink's own call");
    expect(strcmp(record->function, "hsaKmtGetVersion") == 0, "the sink's call was the last");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    expect(strcmp(record->function, "hsaKmtAcquireSystemProperties") == 0, "the function's name");
    expect_equal(record->last.ArgumentCount, 1, "the number of its arguments");
    expect_equal(record->arguments[0], (HSAuint64)(uintptr_t)&system, "a pointer");
    expect(record->last.Size >= sizeof(HsaExtTraceRecord), "the size of the record");
    expect_equal(record->last.Reserved, 0, "zero");
    expect_equal(record->last.Status, HSAKMT_STATUS_SUCCESS, "the status");
    expect(record->last.DurationNs > 0, "how long it took");
    expect_equal(hsaKmtGetNodeMemoryProperties(4000000000u, 3, banks),
                 HSAKMT_STATUS_INVALID_NODE_UNIT, "a node that is not there");
    expect_equal(record->last.ArgumentCount, 3, "three arguments");
    expect_equal(record->arguments[0], 4000000000u, "the first");
    expect_equal(record->arguments[1], 3, "the second");
    expect_equal(record->arguments[2], (HSAuint64)(uintptr_t)banks, "the third");
    expect_equal(record->last.Status, HSAKMT_STATUS_INVALID_NODE_UNIT, "the status of a failure");
    expect_equal(hsaKmtExtSetTraceSink(trace_sink, &other), HSAKMT_STATUS_SUCCESS, "another sink");
    record->count = 0;
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal((unsigned)record->count, 0, "the former gets nothing");
    expect_equal((unsigned)records[1].count, 2, "the new one does");
    expect_equal(hsaKmtExtSetTraceSink(NULL, NULL), HSAKMT_STATUS_SUCCESS, "take it back");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    expect_equal((unsigned)records[1].count, 2, "nothing more is told");
}

int main(void)
{
    log_goes_to_the_sink();
    log_sink_after_the_open();
    trace_goes_to_the_sink();
    return failures != 0;
}
