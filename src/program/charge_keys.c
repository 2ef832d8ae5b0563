/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Values of the whole system, as all formats with a header read them. */
#include "charge_keys.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

enum
{
    c_mostWords = 9 /* of a box */
};

static int set_box(const text_lines* in, charge_file* file, const char* shown, char* const word[], int n)
{
    char what[64];

    if (n != 9)
    {
        complain(in->name, in->line, "%s needs 9 numbers ax ay az bx by bz cx cy cz, found %d", shown, n);
        return -1;
    }
    file->has_box = 1;
    snprintf(what, sizeof(what), "%s component", shown);
    return words_numbers(in, what, 1, word, 9, file->box);
}

/* 1, 0, or -1 for a word that is no flag: 1, T and True, 0, F and False. */
static int flag(const char* word)
{
    return strcmp(word, "1") == 0 || words_equal(word, "T") || words_equal(word, "true")    ? 1
           : strcmp(word, "0") == 0 || words_equal(word, "F") || words_equal(word, "false") ? 0
                                                                                            : -1;
}

static int set_periodic(const text_lines* in, charge_file* file, const char* shown, char* const word[], int n)
{
    int found[3] = {-1, -1, -1};

    for (int i = 0; i < n && i < 3; i++)
    {
        found[i] = flag(word[i]);
    }
    if (n != 3 || found[0] < 0 || found[1] < 0 || found[2] < 0)
    {
        complain(in->name, in->line, "%s needs three flags that are 0 or 1", shown);
        return -1;
    }
    charge_file_set_periodic(file, found);
    return 0;
}

static int set_boundary(const text_lines* in, charge_file* file, const char* shown, char* const word[], int n)
{
    const int is_vacuum = n == 1 && strcmp(word[0], "vacuum") == 0;

    if (!is_vacuum && (n != 1 || strcmp(word[0], "tinfoil") != 0))
    {
        complain(in->name, in->line, "%s is neither tinfoil nor vacuum: '%.40s'", shown, n > 0 ? word[0] : "");
        return -1;
    }
    file->boundary = is_vacuum ? GMXFMM_VACUUM : GMXFMM_TINFOIL;
    return 0;
}

static int set_kernel(const text_lines* in, charge_file* file, const char* shown, char* const word[], int n)
{
    const int is_yukawa = n == 2 && strcmp(word[0], "yukawa") == 0;

    if (!is_yukawa && (n != 1 || strcmp(word[0], "coulomb") != 0))
    {
        complain(in->name, in->line, "%s is neither coulomb nor yukawa with its kappa: '%.40s'", shown,
                 n > 0 ? word[0] : "");
        return -1;
    }
    file->kernel = is_yukawa ? GMXFMM_YUKAWA : GMXFMM_COULOMB;
    if (is_yukawa && words_numbers(in, "kappa", 1, word + 1, 1, &file->kappa))
    {
        return -1;
    }
    if (file->kappa < 0)
    {
        complain(in->name, in->line, "kappa is %g, it must not be negative", file->kappa);
        return -1;
    }
    return 0;
}

static int set_prefactor(const text_lines* in, charge_file* file, const char* shown, char* const word[], int n)
{
    if (n != 1)
    {
        complain(in->name, in->line, "%s needs one number, found %d", shown, n);
        return -1;
    }
    if (words_numbers(in, shown, 1, word, 1, &file->prefactor))
    {
        return -1;
    }
    if (file->prefactor == 0)
    {
        complain(in->name, in->line, "%s is 0", shown);
        return -1;
    }
    return 0;
}

charge_key charge_keys_find(char* text, char** value)
{
    static const struct
    {
        const char* name;
        charge_key  key;
    } keys[] = {{"box", KEY_BOX},
                {"periodic", KEY_PERIODIC},
                {"boundary", KEY_BOUNDARY},
                {"kernel", KEY_KERNEL},
                {"prefactor", KEY_PREFACTOR},
                {"columns", KEY_OTHER},
                {"reference_method", KEY_OTHER}};

    for (size_t k = 0; k < sizeof(keys) / sizeof(keys[0]); k++)
    {
        const size_t length = strlen(keys[k].name);
        size_t       i      = 0;
        while (i < length && tolower((unsigned char)text[i]) == keys[k].name[i])
        {
            i++;
        }
        char* colon = text + i;
        while (isblank((unsigned char)*colon))
        {
            colon++;
        }
        if (i == length && *colon == ':')
        {
            *value = colon + 1;
            return keys[k].key;
        }
    }
    return KEY_NONE;
}

int charge_keys_set(charge_key key, const text_lines* in, charge_file* file, const char* shown, char* value)
{
    static int (*const setters[])(const text_lines*, charge_file*, const char*, char* const word[],
                                  int n) = {set_box, set_periodic, set_boundary, set_kernel, set_prefactor};
    int64_t* const lines[] = {&file->box_line, &file->periodic_line, &file->boundary_line, &file->kernel_line,
                              &file->prefactor_line};
    char*          word[c_mostWords];

    if (key >= KEY_OTHER)
    {
        return 0;
    }
    if (*lines[key] > 0)
    {
        complain(in->name, in->line, "%s is given twice, first in line %lld", shown, (long long)*lines[key]);
        return -1;
    }
    *lines[key] = in->line;
    return setters[key](in, file, shown, word, words_split(value, word, c_mostWords));
}
