/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Powers of five that fit into 63 bits, and products of 128 bits: for decimal numbers in exact arithmetic. */
#ifndef GMXFMM_NUMBER_POWERS_H
#define GMXFMM_NUMBER_POWERS_H

#include <stdint.h>

__extension__ typedef unsigned __int128 number_wide; /* of every 64-bit machine's GCC and Clang */

enum
{
    NUMBER_MOST_POWER = 27
};

/* 5^0 to 5^27 */
static const uint64_t number_five_to[NUMBER_MOST_POWER + 1] = {1u,
                                                               5u,
                                                               25u,
                                                               125u,
                                                               625u,
                                                               3125u,
                                                               15625u,
                                                               78125u,
                                                               390625u,
                                                               1953125u,
                                                               9765625u,
                                                               48828125u,
                                                               244140625u,
                                                               1220703125u,
                                                               6103515625u,
                                                               30517578125u,
                                                               152587890625u,
                                                               762939453125u,
                                                               3814697265625u,
                                                               19073486328125u,
                                                               95367431640625u,
                                                               476837158203125u,
                                                               2384185791015625u,
                                                               11920928955078125u,
                                                               59604644775390625u,
                                                               298023223876953125u,
                                                               1490116119384765625u,
                                                               7450580596923828125u};

#endif
