/* SPDX-License-Identifier: MIT */
/*
 * Open, count, close, reopen; secondary contexts; the API trace.
 *
 * Runs where /dev/kfd opens: on the simulated machine, or under an emulation of the driver.
 */
#include <string.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"
#if HSAKMT_ABI_GENERATION >= 2026
#include "hsakmtctx.h"
#endif

static int records;
static char last_function[64];
static HSAKMT_STATUS last_status;
static HSAuint32 last_arguments;

static void sink(void *user, const HsaExtTraceRecord *record)
{
    (void)user;
    records++;
    strncpy(last_function, record->Function, sizeof(last_function) - 1);
    last_status = record->Status;
    last_arguments = record->ArgumentCount;
}

static void counts_openings(void)
{
    HsaVersionInfo version = {0, 0};

    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "first open");
    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_KERNEL_ALREADY_OPENED, "second open");
    expect_equal(hsaKmtGetVersion(&version), HSAKMT_STATUS_SUCCESS, "version");
    expect_equal(version.KernelInterfaceMajorVersion, 1, "major version");
    expect_equal(hsaKmtGetVersion(NULL), HSAKMT_STATUS_INVALID_PARAMETER, "version to nowhere");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "first close");
    expect_equal(hsaKmtGetVersion(&version), HSAKMT_STATUS_SUCCESS, "still open");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "second close");
    expect_equal(hsaKmtGetVersion(&version), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "closed");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "third close");
}

static void reads_the_machine(void)
{
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaClockCounters clocks;
    HSAuint32 i;
    int cycle;

    for (cycle = 0; cycle < 3; cycle++) {
        memset(&system, 0, sizeof(system));
        expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
        expect_equal(hsaKmtGetNodeProperties(0, &node), HSAKMT_STATUS_INVALID_NODE_UNIT,
                     "node properties before acquire");
        expect_equal(hsaKmtAcquireSystemProperties(NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                     "acquire to nowhere");
        expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
        expect(system.NumNodes > 0, "there are nodes");
        for (i = 0; i < system.NumNodes; i++) {
            if (hsaKmtGetNodeProperties(i, &node) != HSAKMT_STATUS_SUCCESS)
                break;
            if (hsaKmtGetClockCounters(i, &clocks) != HSAKMT_STATUS_SUCCESS)
                break;
        }
        expect_equal(i, system.NumNodes, "every node answers");
        expect_equal(hsaKmtGetNodeProperties(system.NumNodes, &node),
                     HSAKMT_STATUS_INVALID_NODE_UNIT, "one node too many");
        expect_equal(hsaKmtGetNodeProperties(0, NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                     "node properties to nowhere");
        expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
        expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    }
}

static void traces_calls(void)
{
    HsaVersionInfo version;

    expect_equal(hsaKmtExtSetTraceSink(sink, NULL), HSAKMT_STATUS_SUCCESS, "set a trace sink");
    hsaKmtGetVersion(&version);
    expect_equal(records, 1, "one call, one record");
    expect(strcmp(last_function, "hsaKmtGetVersion") == 0, "with its name");
    expect_equal(last_arguments, 1, "its arguments");
    expect_equal(last_status, HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "its status");
    expect_equal(hsaKmtExtSetTraceSink(NULL, NULL), HSAKMT_STATUS_SUCCESS, "take the sink back");
    hsaKmtGetVersion(&version);
    expect_equal(records, 1, "no record without a sink");
}

#if HSAKMT_ABI_GENERATION >= 2026
static void has_secondary_contexts(void)
{
    HsaKFDContext *primary = NULL, *secondary = NULL, *other = NULL;
    HsaExtErrorDetail detail;
    HsaSystemProperties system;
    HSAKMT_STATUS status;

    expect_equal(hsaKmtOpenSecondaryKFDCtx(&secondary), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
                 "a secondary context without a primary one");
    expect_equal(hsaKmtOpenKFDCtx(NULL), HSAKMT_STATUS_INVALID_PARAMETER, "open to nowhere");
    expect_equal(hsaKmtOpenKFDCtx(&primary), HSAKMT_STATUS_SUCCESS, "open with context");
    expect(primary != NULL, "the primary context");
    expect_equal(hsaKmtOpenKFDCtx(&other), HSAKMT_STATUS_KERNEL_ALREADY_OPENED, "open it again");
    expect(other == primary, "the same primary context");
    expect_equal(hsaKmtCloseSecondaryKFDCtx(primary), HSAKMT_STATUS_INVALID_PARAMETER,
                 "the primary context is not a secondary one");
    expect_equal(hsaKmtCloseSecondaryKFDCtx(NULL), HSAKMT_STATUS_INVALID_PARAMETER,
                 "no context to close");
    status = hsaKmtOpenSecondaryKFDCtx(&secondary);
    if (status == HSAKMT_STATUS_NOT_SUPPORTED) {
        expect(secondary == NULL, "no secondary context on this kernel");
    } else {
        expect_equal(status, HSAKMT_STATUS_SUCCESS, "open a secondary context");
        expect(secondary != NULL && secondary != primary, "the secondary context");
        expect_equal(hsaKmtAcquireSystemPropertiesCtx(secondary, &system), HSAKMT_STATUS_SUCCESS,
                     "acquire there");
        expect_equal(hsaKmtReleaseSystemPropertiesCtx(secondary), HSAKMT_STATUS_SUCCESS,
                     "release there");
        expect_equal(hsaKmtCloseSecondaryKFDCtx(secondary), HSAKMT_STATUS_SUCCESS, "close it");
        expect_equal(hsaKmtCloseSecondaryKFDCtx(secondary), HSAKMT_STATUS_INVALID_PARAMETER,
                     "close it twice");
        expect_equal(hsaKmtAcquireSystemPropertiesCtx(secondary, &system),
                     HSAKMT_STATUS_INVALID_PARAMETER, "use it after its close");
        detail.Size = sizeof(detail);
        expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "why");
        expect_equal(detail.Status, HSAKMT_STATUS_INVALID_PARAMETER, "the last status");
    }
    expect_equal(hsaKmtCloseKFDCtx(), HSAKMT_STATUS_SUCCESS, "close");
    expect_equal(hsaKmtCloseKFDCtx(), HSAKMT_STATUS_SUCCESS, "close the second opening");
}
#endif

int main(void)
{
    counts_openings();
    reads_the_machine();
    traces_calls();
#if HSAKMT_ABI_GENERATION >= 2026
    has_secondary_contexts();
#endif
    return failures != 0;
}
