/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Numbers with 17 digits by exact arithmetic of integers. */
#include "number_write.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "number_powers.h"

enum
{
    c_digits   = 17,
    c_smallest = -30, /* decimal exponents of what is written here; printf does the rest */
    c_largest  = 16
};

static const uint64_t c_tenTo16 = UINT64_C(10000000000000000);

/* mantissa * 2^exponent * 10^power, rounded to nearest, halves to even; 0 <= power <= 54, mantissa < 2^53 and the
 * result below 2^63. */
static uint64_t scaled(uint64_t mantissa, int exponent, int power)
{
    /* the product with 5^power has up to 53 + 126 bits, in three words */
    const int         first   = power < NUMBER_MOST_POWER ? power : NUMBER_MOST_POWER;
    const number_wide part    = (number_wide)mantissa * number_five_to[first];
    const uint64_t    second  = number_five_to[power - first];
    const number_wide low     = (number_wide)(uint64_t)part * second;
    const number_wide high    = (number_wide)(uint64_t)(part >> 64) * second + (uint64_t)(low >> 64);
    uint64_t          word[4] = {(uint64_t)low, (uint64_t)high, (uint64_t)(high >> 64), 0};
    int               down    = -(exponent + power);

    if (down <= 0)
    {
        return word[0] << -down;
    }
    uint64_t lost = 0;
    for (down--; down >= 64; down -= 64) /* all but the bit that decides about rounding */
    {
        lost |= word[0];
        word[0] = word[1];
        word[1] = word[2];
        word[2] = 0;
    }
    uint64_t twice = word[0];
    if (down > 0)
    {
        lost |= word[0] << (64 - down);
        twice = word[0] >> down | word[1] << (64 - down);
    }
    const uint64_t result = twice >> 1;
    return result + ((twice & 1) && (lost != 0 || (result & 1)));
}

static const char c_pairs[] =
    "00010203040506070809101112131415161718192021222324252627282930313233343536373839404142434445464748"
    "49505152535455565758596061626364656667686970717273747576777879808182838485868788899091929394959697"
    "9899";

/* Eight digits, as four pairs. */
static void put_digits(char* text, uint32_t number)
{
    const uint32_t high = number / 10000, low = number % 10000;

    memcpy(text, c_pairs + 2 * (high / 100), 2);
    memcpy(text + 2, c_pairs + 2 * (high % 100), 2);
    memcpy(text + 4, c_pairs + 2 * (low / 100), 2);
    memcpy(text + 6, c_pairs + 2 * (low % 100), 2);
}

/* The 17 digits as printf lays them out: without zeros at the end, and as a plain number where that is short. */
static char* lay_out(char* text, const char digits[c_digits], int exponent)
{
    int n = c_digits; /* without zeros at the end */

    while (n > 1 && digits[n - 1] == '0')
    {
        n--;
    }
    if (exponent < -4) /* as of c_largest is never the other reason */
    {
        *text++ = digits[0];
        if (n > 1)
        {
            *text++ = '.';
            memcpy(text, digits + 1, (size_t)n - 1);
            text += n - 1;
        }
        *text++ = 'e';
        *text++ = '-';
        *text++ = (char)('0' - exponent / 10);
        *text++ = (char)('0' - exponent % 10);
        return text;
    }
    if (exponent < 0)
    {
        memcpy(text, "0.0000", 6);
        text += 1 - exponent;
        memcpy(text, digits, c_digits);
        return text + n;
    }
    memcpy(text, digits, c_digits);
    if (n <= exponent + 1)
    {
        return text + exponent + 1;
    }
    text[exponent + 1] = '.';
    memcpy(text + exponent + 2, digits + exponent + 1, (size_t)(c_digits - exponent - 1));
    return text + n + 1;
}

char* number_write(char* text, double value)
{
    uint64_t bits;
    memcpy(&bits, &value, sizeof(bits));
    const int      biased   = (int)(bits >> 52 & 0x7ff);
    const uint64_t fraction = bits & ((UINT64_C(1) << 52) - 1);

    if (bits << 1 == 0)
    {
        text[0] = '-';
        text += bits >> 63;
        *text = '0';
        return text + 1;
    }
    /* the logarithm by the straight line through powers of two, which is below it, but by 0.03 at most */
    int exponent = (int)floor((biased - 1023 + (double)fraction * 0x1p-52) * 0.30102999566398120);
    if (biased == 0 || exponent < c_smallest || exponent >= c_largest)
    {
        return text + snprintf(text, NUMBER_LONGEST, "%.17g", value);
    }
    const uint64_t mantissa = fraction | UINT64_C(1) << 52;
    uint64_t       number   = scaled(mantissa, biased - 1075, c_digits - 1 - exponent);
    if (number >= 10 * c_tenTo16)
    {
        exponent++;
        number = scaled(mantissa, biased - 1075, c_digits - 1 - exponent);
    }
    char           digits[c_digits];
    const uint64_t rest = number % c_tenTo16;
    digits[0]           = (char)('0' + number / c_tenTo16);
    put_digits(digits + 1, (uint32_t)(rest / 100000000));
    put_digits(digits + 9, (uint32_t)(rest % 100000000));
    text[0] = '-';
    return lay_out(text + (bits >> 63), digits, exponent);
}
