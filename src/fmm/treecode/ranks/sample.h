/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Samples of particles, which depend on where they are and not on who has them. */
#ifndef TREECODE_RANKS_SAMPLE_H
#define TREECODE_RANKS_SAMPLE_H

#include <stdint.h>
#include <string.h>

/* A number in [0, 1) that looks random, of a place: those below a number are a
 * sample. Particles at one place are in it or not together (splitmix64: Steele, Lea & Flood 2014). */
static inline double treecode_draw(const double x[3])
{
    uint64_t z = 0;
    for (int d = 0; d < 3; d++)
    {
        uint64_t bits;
        memcpy(&bits, &x[d], sizeof(bits));
        z = (z ^ bits) + 0x9e3779b97f4a7c15U;
        z = (z ^ (z >> 30)) * 0xbf58476d1ce4e5b9U;
        z = (z ^ (z >> 27)) * 0x94d049bb133111ebU;
        z ^= z >> 31;
    }
    return (double)(z >> 11) * 0x1p-53;
}

#endif
