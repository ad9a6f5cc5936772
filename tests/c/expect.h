/* SPDX-License-Identifier: MIT */
/* What the C test programs share: one line for each test, a count of failures. */
#ifndef EXPECT_H
#define EXPECT_H

#include <stdio.h>
#include <stdlib.h>

static int failures;

/* Tells whether a condition held, with the test's name. */
static void expect(int condition, const char *name)
{
    printf("%s - %s\n", condition ? "ok" : "not ok", name);
    fflush(stdout);
    if (!condition)
        failures++;
}

/* The same for two numbers, which are shown when they differ. */
static void expect_equal(unsigned long long got, unsigned long long wanted, const char *name)
{
    if (got != wanted)
        printf("# got %llu, wanted %llu\n", got, wanted);
    expect(got == wanted, name);
}

#endif
