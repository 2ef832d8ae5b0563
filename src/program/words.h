/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Words of a line, and the numbers among them. */
#ifndef GMXFMM_WORDS_H
#define GMXFMM_WORDS_H

#include <stddef.h>
#include <stdint.h>

#include "text_lines.h"

/* Splits text at blanks in place: the number of words, of which the first `most` are kept. */
int words_split(char* text, char* word[], int most);

/* Reads n words as finite numbers. 0, or -1 after a complaint about "what 1" and so on, the first of them being
 * `first`.
 */
int words_numbers(const text_lines* in, const char* what, int first, char* const word[], int n, double* value);

/* A whole number that takes all of the word. 1 if it is one, else 0. */
int words_integer(const char* word, int64_t* value);

/* 1 if two words are the same but for capitals. */
int words_equal(const char* a, const char* b);

/* How many letters must be added, taken away, changed or swapped with the next one to turn a into b; more than 40 for
 * words of more than 40 letters. */
int words_distance(const char* a, const char* b);

/* 1 if the first `length` characters end with this, of 7 characters at most, but for capitals. */
int words_end_with(const char* word, size_t length, const char* ending);

#endif
