/* SPDX-License-Identifier: MIT */
/*
 * Video memory without host access: whether a debugger can read it through /proc/PID/mem is a
 * matter of HSAKMT_DEBUGGER_ACCESS, which is on unless it says 0.
 */
#define _POSIX_C_SOURCE 200809L
#include <fcntl.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "expect.h"
#include "hsakmt.h"

#define SIZE 65536

/* Whether a file is mapped at an address, with which rights. */
static int file_at(const void *address, char rights[5])
{
    unsigned long start, end, inode;
    char line[512], there[5];
    int found = 0;
    FILE *maps = fopen("/proc/self/maps", "r");

    while (maps && fgets(line, sizeof(line), maps))
        if (sscanf(line, "%lx-%lx %4s %*s %*s %lu", &start, &end, there, &inode) == 4 &&
            start <= (uintptr_t)address && (uintptr_t)address < end) {
            memcpy(rights, there, sizeof(there));
            found = inode != 0;
        }
    if (maps)
        fclose(maps);
    return found;
}

int main(void)
{
    const char *setting = getenv("HSAKMT_DEBUGGER_ACCESS");
    int access = !setting || strcmp(setting, "0");
    HsaSystemProperties system;
    HsaNodeProperties node;
    HsaMemFlags flags;
    HSAuint32 id;

    expect_equal(hsaKmtOpenKFD(), HSAKMT_STATUS_SUCCESS, "open");
    expect_equal(hsaKmtAcquireSystemProperties(&system), HSAKMT_STATUS_SUCCESS, "acquire");
    memset(&flags, 0, sizeof(flags));
    flags.ui32.NonPaged = 1;
    for (id = 0; id < system.NumNodes; id++) {
        static unsigned char bytes[SIZE];
        char rights[5] = "";
        void *memory = NULL;
        int mem;

        if (hsaKmtGetNodeProperties(id, &node) || !node.NumFComputeCores || node.NumCPUCores)
            continue;
        expect_equal(hsaKmtAllocMemory(id, SIZE, flags, &memory), HSAKMT_STATUS_SUCCESS, "allocate");
        expect_equal(file_at(memory, rights), access, "the render node is mapped for debuggers");
        expect_equal(strncmp(rights, "---", 3), 0, "the program itself has no rights there");
        if (access) {
            mem = open("/proc/self/mem", O_RDONLY);
            expect_equal(pread(mem, bytes, SIZE, (off_t)(uintptr_t)memory), SIZE,
                         "all of it can be read through /proc/self/mem");
            close(mem);
        }
        expect_equal(hsaKmtFreeMemory(memory, SIZE), HSAKMT_STATUS_SUCCESS, "free");
        expect_equal(file_at(memory, rights), 0, "nothing is mapped there afterwards");
    }
    expect_equal(hsaKmtReleaseSystemProperties(), HSAKMT_STATUS_SUCCESS, "release");
    expect_equal(hsaKmtCloseKFD(), HSAKMT_STATUS_SUCCESS, "close");
    return failures != 0;
}
