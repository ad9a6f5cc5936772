/* SPDX-License-Identifier: MIT */
/*
 * A program without any C library: its own start, its own memory functions, system calls by hand.
 *
 * Runs on any machine without /dev/kfd. Linked with -nostdlib -static.
 */
#include <stddef.h>

#include "hsakmt.h"
#include "hsakmt_ext.h"

#ifdef __cplusplus
extern "C" {
#endif

/* What the library needs of whoever it is linked to. */
void *memcpy(void *to, const void *from, size_t count)
{
    void *begin = to;

    __asm__ volatile("rep movsb" : "+D"(to), "+S"(from), "+c"(count) : : "memory");
    return begin;
}

void *memset(void *to, int byte, size_t count)
{
    void *begin = to;

    __asm__ volatile("rep stosb" : "+D"(to), "+c"(count) : "a"(byte) : "memory");
    return begin;
}

void *memmove(void *to, const void *from, size_t count)
{
    unsigned char *into = (unsigned char *)to;
    const unsigned char *out = (const unsigned char *)from;

    if (into <= out || into >= out + count)
        return memcpy(to, from, count);
    while (count--)
        *(volatile unsigned char *)(into + count) = out[count];
    return to;
}

int memcmp(const void *left, const void *right, size_t count)
{
    const unsigned char *a = (const unsigned char *)left, *b = (const unsigned char *)right;

    for (; count--; a++, b++)
        if (*a != *b)
            return *a - *b;
    return 0;
}

int bcmp(const void *left, const void *right, size_t count)
{
    return memcmp(left, right, count);
}

size_t strlen(const char *text)
{
    size_t length = 0;

    while (*(volatile const char *)(text + length))
        length++;
    return length;
}

static long system_call(long number, long first, long second, long third)
{
    long result;

    __asm__ volatile("syscall"
                     : "=a"(result)
                     : "a"(number), "D"(first), "S"(second), "d"(third)
                     : "rcx", "r11", "memory");
    return result;
}

static int failures;

static void write_text(const char *text)
{
    system_call(1, 1, (long)text, (long)strlen(text));
}

static void expect(int condition, const char *name)
{
    write_text(condition ? "ok - " : "not ok - ");
    write_text(name);
    write_text("\n");
    failures += !condition;
}

void run(void);

void run(void)
{
    HsaVersionInfo version;
    HsaExtErrorDetail detail;

    expect(hsaKmtGetVersion(&version) == HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED,
           "version before open");
    expect(hsaKmtOpenKFD() == HSAKMT_STATUS_KERNEL_IO_CHANNEL_NOT_OPENED, "open without driver");
    detail.Size = sizeof(detail);
    expect(hsaKmtExtGetLastError(&detail) == HSAKMT_STATUS_SUCCESS, "the detail is there");
    expect(detail.Errno == 2 && memcmp(detail.ObjectName, "/dev/kfd", 9) == 0, "no such file");
    system_call(231, failures != 0, 0, 0);
}

#ifdef __cplusplus
}
#endif

__asm__(".globl _start\n"
        "_start:\n"
        "    xor %ebp, %ebp\n"
        "    and $-16, %rsp\n"
        "    call run\n");
