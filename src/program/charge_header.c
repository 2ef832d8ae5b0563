/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Header lines of a file of charges. */
#include "charge_header.h"

#include <ctype.h>
#include <stddef.h>
#include <string.h>

#include "words.h"

#define LONGEST 32 /* longer than any word below */

/* What stands around words and numbers: "4, 0, 0" and "(4 0 0)" are numbers, too. */
#define BETWEEN " \t\r,;()[]{}\"'"

/* Words without blanks and punctuation ("unit cell", "unit_cell"). A description of a crystal may say "lattice: fcc":
 * some words are headers only before a number. */
static const struct
{
    const char* word;
    const char* key;
    int         numbers; /* at least so many must follow */
} words[] = {{"box", "box", 0},
             {"boxlength", "box", 1},
             {"boxsize", "box", 1},
             {"boxvectors", "box", 1},
             {"simulationbox", "box", 1},
             {"cell", "box", 1},
             {"cellvectors", "box", 1},
             {"unitcell", "box", 1},
             {"lattice", "box", 1},
             {"latticevectors", "box", 1},
             {"periodic", "periodic", 0},
             {"periodicity", "periodic", 0},
             {"periodicboundaryconditions", "periodic", 0},
             {"pbc", "periodic", 0},
             {"boundary", "boundary", 0},
             {"boundaries", "boundary", 0},
             {"boundarycondition", "boundary", 0},
             {"boundaryconditions", "boundary", 0},
             {"kernel", "kernel", 0}};

/* Words at a distance from these count, too. Much is like a word of three letters (OX, bow), but three numbers after it
 * are a box. */
static const struct
{
    const char* key;
    int         numbers;
} keys[] = {{"box", 3}, {"periodic", 0}, {"boundary", 0}, {"kernel", 0}};

/* 4, -4, .4, -.4 and whatever follows: 4nm, 4x4x4 */
static int begins_number(const char* text)
{
    text += *text == '+' || *text == '-';
    text += *text == '.';
    return isdigit((unsigned char)*text) != 0;
}

static int count_numbers(const char* text)
{
    int n = 0;

    for (text += strspn(text, BETWEEN); *text; text += strspn(text, BETWEEN))
    {
        n += begins_number(text);
        text += strcspn(text, BETWEEN);
    }
    return n;
}

/* Letters and digits of text up to end, small, and without what stands in brackets, as in "box (nm)"; cut at LONGEST.
 */
static void plain_word(const char* text, const char* end, char word[LONGEST + 1])
{
    int n = 0, inside = 0;

    for (; text < end && n < LONGEST; text++)
    {
        inside += (*text == '(' || *text == '[') - (*text == ')' || *text == ']');
        if (inside == 0 && isalnum((unsigned char)*text))
        {
            word[n++] = (char)tolower((unsigned char)*text);
        }
    }
    word[n] = '\0';
}

/* The key that a word before ':' or '=' stands for. */
static const char* key_like(const char* word, int numbers)
{
    for (size_t k = 0; k < sizeof(words) / sizeof(words[0]); k++)
    {
        if (numbers >= words[k].numbers && strcmp(word, words[k].word) == 0)
        {
            return words[k].key;
        }
    }
    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
    {
        if (numbers >= keys[k].numbers && words_distance(word, keys[k].key) <= (strlen(word) >= 7 ? 2 : 1))
        {
            return keys[k].key;
        }
    }
    return NULL;
}

/* What follows a key without ':', or NULL. */
static const char* value_after(const char* text, const char* key)
{
    while (*key && tolower((unsigned char)*text) == *key)
    {
        text++;
        key++;
    }
    return !*key && strspn(text, BETWEEN) > 0 ? text + strspn(text, BETWEEN) : NULL;
}

static int is_one_of(const char* text, const char* first, const char* second)
{
    const size_t length = strcspn(text, BETWEEN);

    return (length == strlen(first) && strncmp(text, first, length) == 0) ||
           (length == strlen(second) && strncmp(text, second, length) == 0);
}

const char* charge_header_meant(const char* text, int* length)
{
    const char* box      = value_after(text, "box");
    const char* periodic = value_after(text, "periodic");
    const char* boundary = value_after(text, "boundary");
    const char* end      = text + strcspn(text, ":=");
    char        word[LONGEST + 1];

    *length = (int)strcspn(text, BETWEEN ":=");
    if (box && begins_number(box))
    {
        return "box";
    }
    if (periodic && is_one_of(periodic, "0", "1"))
    {
        return "periodic";
    }
    if (boundary && is_one_of(boundary, "tinfoil", "vacuum"))
    {
        return "boundary";
    }
    if (!*end || *text == '#') /* a second # is a header that somebody put aside */
    {
        return NULL;
    }
    *length = (int)(end + 1 - text);
    plain_word(text, end, word);
    return key_like(word, count_numbers(end + 1));
}
