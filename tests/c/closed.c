/* SPDX-License-Identifier: MIT */
/*
 * A machine without a driver, or a library that was not opened: every call says so with the status
 * that callers rely on, and the detail says why.
 *
 * Runs on any machine without /dev/kfd, in every way to link.
 */
#include <errno.h>
#include <string.h>

#include "expect.h"
#include "hsakmt.h"
#include "hsakmt_ext.h"

int main(void)
{
    HsaExtErrorDetail detail;
    HsaVersionInfo version;
    HsaSystemProperties system;
    HsaClockCounters clocks;
    HsaNodeProperties node;

    memset(&detail, 0xa5, sizeof(detail));
    detail.Size = sizeof(detail);
    expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "no failure yet");
    expect_equal(detail.Status, HSAKMT_STATUS_SUCCESS, "the status of no failure");
    expect_equal(hsaKmtExtGetLastError(NULL), HSAKMT_STATUS_INVALID_PARAMETER, "no detail to fill");

    expect_equal(hsaKmtGetVersion(&version), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
                 "version before open");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "close before open");
    expect_equal(hsaKmtAcquireSystemProperties(&system),
                 HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "acquire before open");
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release before open");
    expect_equal(hsaKmtGetNodeProperties(0, &node), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
                 "node properties before open");
    expect_equal(hsaKmtGetClockCounters(0, &clocks), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
                 "clocks before open");

    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "open without driver");
    detail.Size = sizeof(detail);
    expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "the detail is there");
    expect_equal(detail.Status, HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "its status");
    expect_equal(detail.Errno, ENOENT, "its errno");
    expect(strcmp(detail.ObjectName, "/dev/kfd") == 0, "its object");
    expect(strcmp(detail.OperationName, "open") == 0, "its operation");
    expect(detail.Advice != NULL && strstr(detail.Advice, "amdgpu") != NULL, "its advice");
    expect(detail.Sequence > 0, "its number");

    detail.Size = 12;
    detail.Operation = 0x12345678;
    expect_equal(hsaKmtExtGetLastError(&detail), HSAKMT_STATUS_SUCCESS, "a shorter structure");
    expect_equal(detail.Operation, 0x12345678, "is not written beyond its size");

    return failures != 0;
}
