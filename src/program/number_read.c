/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Decimal numbers by exact arithmetic of integers. */
#include "number_read.h"

#include <float.h>
#include <string.h>

#include "number_powers.h"

/* Powers of ten that a double holds exactly. */
static const double c_tenTo[] = {1e0,  1e1,  1e2,  1e3,  1e4,  1e5,  1e6,  1e7,  1e8,  1e9,  1e10, 1e11,
                                 1e12, 1e13, 1e14, 1e15, 1e16, 1e17, 1e18, 1e19, 1e20, 1e21, 1e22};

enum
{
    c_mostExact  = (int)(sizeof(c_tenTo) / sizeof(c_tenTo[0])) - 1,
    c_mostDigits = 19 /* of a number below 2^64 */
};

/* digits * 2^exponent, plus a little more where rest is not zero, rounded to nearest, halves to even. The result is far
 * from the ends of the range, and digits >= 2^62. */
static double rounded(uint64_t digits, int exponent, int rest)
{
    const int      shift = digits >> 63 ? 11 : 10; /* 53 bits are left */
    const uint64_t below = digits & (((uint64_t)1 << shift) - 1);
    const uint64_t half  = (uint64_t)1 << (shift - 1);
    uint64_t       kept  = digits >> shift;

    kept += below > half || (below == half && (rest || (kept & 1)));
    const uint64_t bits = (uint64_t)(exponent + shift + 1023) << 52;
    double         power;
    memcpy(&power, &bits, sizeof(power));
    return (double)kept * power;
}

/* digits * 10^power with |power| <= 27, digits > 0. The quotient or product of integers is exact, and rounded once. */
static double scaled(uint64_t digits, int power)
{
    const int shift = __builtin_clzll(digits);

    if (power < 0)
    {
        const uint64_t    five      = number_five_to[-power];
        const int         five_up   = __builtin_clzll(five);
        const uint64_t    divisor   = five << five_up;
        const number_wide dividend  = (number_wide)(digits << shift) << 63;
        const uint64_t    quotient  = (uint64_t)(dividend / divisor);
        const uint64_t    remainder = (uint64_t)(dividend - (number_wide)quotient * divisor);
        return rounded(quotient, five_up - shift - 63 + power, remainder != 0);
    }
    const number_wide product = (number_wide)(digits << shift) * number_five_to[power];
    uint64_t          high    = (uint64_t)(product >> 64);
    uint64_t          low     = (uint64_t)product;
    int               up      = 64;
    if (high == 0)
    {
        return rounded(low, power - shift, 0); /* power 0 */
    }
    const int empty = __builtin_clzll(high);
    if (empty > 0)
    {
        high = high << empty | low >> (64 - empty);
        low <<= empty;
        up -= empty;
    }
    return rounded(high, up - shift + power, low != 0);
}

/* The digits at text, added to *digits; *num counts them from the first that is not 0. What follows them. */
static const char* read_digits(const char* text, uint64_t* digits, int* num)
{
    uint64_t sum = *digits;

    while (sum == 0 && *text == '0')
    {
        text++;
    }
    const char* first = text;
    for (unsigned digit; (digit = (unsigned)(*text - '0')) <= 9; text++)
    {
        sum = 10 * sum + digit; /* wraps where there are too many, which the caller sees from *num */
    }
    *digits = sum;
    *num    = text - first < 1000 ? *num + (int)(text - first) : 1000;
    return text;
}

/* The exponent at text behind its e, or NULL. */
static const char* read_exponent(const char* text, int* exponent)
{
    const int is_negative = *text == '-';
    int       sum         = 0;

    text += *text == '-' || *text == '+';
    if ((unsigned)(*text - '0') > 9)
    {
        return NULL;
    }
    for (unsigned digit; (digit = (unsigned)(*text - '0')) <= 9 && sum < 1000; text++)
    {
        sum = 10 * sum + (int)digit;
    }
    *exponent += is_negative ? -sum : sum;
    return sum < 1000 ? text : NULL;
}

const char* number_read(const char* text, double* value)
{
    const int   is_negative = *text == '-';
    uint64_t    digits      = 0;
    int         num = 0, power = 0;
    const char* begin = text + (*text == '-' || *text == '+');
    const char* end   = read_digits(begin, &digits, &num);
    int         any   = end > begin;

    if (*end == '.')
    {
        const char* fraction = end + 1;
        end                  = read_digits(fraction, &digits, &num);
        any                  = any || end > fraction;
        if (end - fraction > 1000)
        {
            return NULL;
        }
        power = -(int)(end - fraction);
    }
    if (!any || num > c_mostDigits)
    {
        return NULL;
    }
    if (*end == 'e' || *end == 'E')
    {
        end = read_exponent(end + 1, &power);
        if (!end)
        {
            return NULL;
        }
    }
    else if (*end == 'x' || *end == 'X')
    {
        return NULL;
    }
    double result;
    if (digits == 0)
    {
        result = 0;
    }
#if FLT_EVAL_METHOD == 0
    else if (digits >> 53 == 0 && power <= 0 && power >= -c_mostExact)
    {
        result = (double)digits / c_tenTo[-power]; /* both exact: one rounding (Clinger 1990) */
    }
#endif
    else if (power >= -NUMBER_MOST_POWER && power <= NUMBER_MOST_POWER)
    {
        result = scaled(digits, power);
    }
    else
    {
        return NULL;
    }
    *value = is_negative ? -result : result;
    return end;
}
