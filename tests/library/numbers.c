/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program's numbers: read to the bits of strtod and written to the characters of printf, and that by the fast way
 * wherever it should be taken. */
#include <float.h>
#include <math.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "program/number_read.h"
#include "program/number_write.h"

static long failures;

static void check(int holds, const char* what, const char* text)
{
    if (!holds && failures++ < 10)
    {
        printf("FAILED: %s: '%s'\n", what, text);
    }
}

/* A number that is read here is strtod's, and ends where that ends. */
static void check_read(const char* text, int is_fast)
{
    char*        expected_end;
    double       value    = 0;
    const double expected = strtod(text, &expected_end);
    const char*  end      = number_read(text, &value);

    check(end != NULL || !is_fast, "is left to strtod", text);
    check(end == NULL || (end == expected_end && memcmp(&value, &expected, sizeof(value)) == 0), "is read wrongly",
          text);
}

static void check_written(double value)
{
    char expected[64], text[NUMBER_LONGEST];

    snprintf(expected, sizeof(expected), "%.17g", value);
    *number_write(text, value) = '\0';
    check(strcmp(text, expected) == 0, "is written wrongly", expected);
}

/* xorshift64 (Marsaglia 2003) */
static uint64_t next(uint64_t* state)
{
    *state ^= *state << 13;
    *state ^= *state >> 7;
    *state ^= *state << 17;
    return *state;
}

/* Numbers of many kinds: any bits, uniform ones, scaled, short decimal ones, short binary ones (whose 17 digits may end
 * half-way), powers of ten and their neighbours. */
static double some_number(uint64_t* state, int kind)
{
    const uint64_t bits    = next(state);
    const double   uniform = (double)(bits >> 11) * 0x1p-53;
    double         any;

    switch (kind % 6)
    {
    case 0:
        memcpy(&any, &bits, sizeof(any));
        return any;
    case 1:
        return 100 * uniform;
    case 2:
        return ldexp(uniform, -(int)(bits % 90));
    case 3:
        return (double)((int64_t)(bits % 2000001) - 1000000) / 1000;
    case 4:
        return ldexp((double)(bits % 4096), -(int)(bits >> 58));
    default:
        any = pow(10, (int)(bits % 40) - 20);
        return bits >> 62 == 0 ? nextafter(any, 0) : bits >> 62 == 1 ? nextafter(any, DBL_MAX) : any;
    }
}

int main(void)
{
    static const char* const formats[] = {"%.17g", "%.15g", "%.6f", "%.3f", "%.19g", "%.12e", "%.18e", "%g"};
    static const char* const fast[]    = {"0",
                                          "-0",
                                          "+1",
                                          "1.",
                                          ".5",
                                          "-.5e3",
                                          "1e5",
                                          "1E+5",
                                          "1e-05",
                                          "000000000000000000000001.50",
                                          "0.000000000000000000000001",
                                          "9007199254740993",
                                          "9007199254740993.0",
                                          "9007199254740992.5e-3",
                                          "1e22",
                                          "1e23",
                                          "1e27",
                                          "1e-27",
                                          "8.5e-26",
                                          "4503599627370496.5",
                                          "4503599627370497.5",
                                          "123456789012345678",
                                          "0e99",
                                          "1 2",
                                          "1,5",
                                          "1\t",
                                          "1\r"};
    static const char* const slow[]    = {"",
                                          ".",
                                          "-",
                                          "+",
                                          "e5",
                                          "x",
                                          "nan",
                                          "inf",
                                          "-infinity",
                                          "0x10",
                                          "0X1p3",
                                          "1e",
                                          "1e+",
                                          "1e400",
                                          "1e-400",
                                          "1e99999999999",
                                          "4.9e-324",
                                          "1.7976931348623157e308",
                                          "123456789012345678901",
                                          "--1",
                                          " 1"};
    char                     text[400];
    uint64_t                 state = 88172645463325252u;

    for (size_t i = 0; i < sizeof(fast) / sizeof(fast[0]); i++)
    {
        check_read(fast[i], 1);
    }
    for (size_t i = 0; i < sizeof(slow) / sizeof(slow[0]); i++)
    {
        check_read(slow[i], 0);
    }
    for (int i = 0; i < 1000000; i++)
    {
        const double value = some_number(&state, i);
        check_written(value);
        check_written(-value);
        snprintf(text, sizeof(text), formats[next(&state) % 8], i % 2 ? value : -value);
        check_read(text, 0);
        if (i % 6 == 1)
        {
            snprintf(text, sizeof(text), "%.17g", value);
            check_read(text, 1);
        }
    }
    printf("numbers: %ld failures\n", failures);
    return failures > 0;
}
