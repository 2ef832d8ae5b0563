/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point charges in a .pqr file: records of words between blanks or in the columns of the Protein Data Bank. */
#include "charge_formats.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "words.h"

enum
{
    c_mostWords   = 15, /* with a chain and reference values */
    c_blank       = 27, /* from here to the coordinates nothing stands in these columns */
    c_coordinates = 30, /* before the three, of c_width each, in the columns of the Protein Data Bank */
    c_width       = 8,
    c_decimals    = 3,
    c_longestAtom = 200, /* in columns */
    c_numGaps     = 6
};

/* 1 if c_width characters are one number with three decimals, and a digit before these. */
static int is_coordinate(const char* column)
{
    const int point = c_width - 1 - c_decimals;
    int       i     = 0;
    while (i < point && column[i] == ' ')
    {
        i++;
    }
    i += column[i] == '-';
    const int first = i;
    for (; i < c_width; i++)
    {
        if (i == point ? column[i] != '.' : column[i] < '0' || column[i] > '9')
        {
            return 0;
        }
    }
    return first < point;
}

/* An atom in columns, of PDB2PQR for instance, whose words may touch in large systems, "HETATM10000", "A1000",
 * "-250.000-300.000": its words with blanks between them, in copy. Other lines are returned as they are. */
static char* columns_apart(char* text, char* copy)
{
    static const int gap[c_numGaps] = {
        6, 22, c_coordinates, c_coordinates + c_width, c_coordinates + 2 * c_width, c_coordinates + 3 * c_width};
    const size_t length = strlen(text);
    int          at     = 0;

    if ((strncmp(text, "ATOM  ", 6) != 0 && strncmp(text, "HETATM", 6) != 0) || length > c_longestAtom ||
        length < (size_t)gap[c_numGaps - 1] || strncmp(text + c_blank, "   ", c_coordinates - c_blank) != 0)
    {
        return text;
    }
    for (int i = 0; i < 3; i++)
    {
        if (!is_coordinate(text + c_coordinates + c_width * i))
        {
            return text;
        }
    }
    for (int i = 0; i < c_numGaps; i++)
    {
        memcpy(copy + at + i, text + at, (size_t)(gap[i] - at));
        at           = gap[i];
        copy[at + i] = ' ';
    }
    memcpy(copy + at + c_numGaps, text + at, length - (size_t)at + 1);
    return copy;
}

/* a, b, c and the angles alpha, beta, gamma as box vectors, a along x and b in the plane of x and y. A cell of
 * 1 x 1 x 1 stands in files of molecules without one. */
static int parse_cell(const text_lines* in, charge_file* file, char* const word[], int n)
{
    const double degree = 3.14159265358979323846 / 180;
    double       v[6];

    if (n < 7)
    {
        complain(in->name, in->line, "CRYST1 needs a b c alpha beta gamma, found %d", n - 1);
        return -1;
    }
    if (file->has_box)
    {
        complain(in->name, in->line, "CRYST1 is given twice, first in line %lld", (long long)file->box_line);
        return -1;
    }
    if (words_numbers(in, "CRYST1 value", 1, word + 1, 6, v))
    {
        return -1;
    }
    if (v[0] == 1 && v[1] == 1 && v[2] == 1)
    {
        return 0;
    }
    double cosine[3];
    for (int i = 0; i < 3; i++)
    {
        cosine[i] = v[3 + i] == 90 ? 0 : cos(v[3 + i] * degree); /* no rounding of pi in the box of a brick */
    }
    const double sine   = sqrt(1 - cosine[2] * cosine[2]);
    const double across = (cosine[0] - cosine[1] * cosine[2]) / sine;
    const double up     = 1 - cosine[1] * cosine[1] - across * across;
    if (!(v[0] > 0 && v[1] > 0 && v[2] > 0 && sine > 0 && up > 0))
    {
        complain(in->name, in->line, "CRYST1 %g %g %g %g %g %g is no cell", v[0], v[1], v[2], v[3], v[4], v[5]);
        return -1;
    }
    const double box[9] = {v[0],           0, 0, v[1] * cosine[2], v[1] * sine, 0, v[2] * cosine[1], v[2] * across,
                           v[2] * sqrt(up)};
    memcpy(file->box, box, sizeof(box));
    file->has_box  = 1;
    file->box_line = in->line;
    return 0;
}

/* ATOM number name residue [chain] number x y z charge radius [potential fx fy fz] */
static int parse_atom(const text_lines* in, charge_file* file, char* word[], int n, atomic_llong* rows)
{
    double value[9];

    if (n != 10 && n != 11 && n != 14 && n != 15)
    {
        complain(in->name, in->line,
                 "an atom has 10 words, 11 with a chain, and 4 more with potential fx fy fz, found %d", n);
        return -1;
    }
    const int has_chain = n % 2;
    const int at = 5 + has_chain, num = n - at; /* 5 or 9 numbers */
    if (file->n > 0 && (num == 9) != (file->potential != NULL) && !file->is_places)
    {
        complain(in->name, in->line, "found %d numbers from x on, but the atoms before have %d", num, num == 9 ? 5 : 9);
        return -1;
    }
    if (words_numbers(in, "number", 1, word + at, num, value))
    {
        return -1;
    }
    char label[320] = "";
    int  used       = 0;
    for (int i = 0; i <= at; i++)
    {
        used += snprintf(label + used, sizeof(label) - (size_t)used, i > 0 ? " %.40s" : "%.40s",
                         word[i < at ? i : at + 4]); /* the radius is the last */
    }
    memmove(value + 4, value + 5, 4 * sizeof(double)); /* takes its place */
    return charge_file_append(file, in, value, num == 9 ? 8 : 4, rows) || charge_file_label(file, in, label) ? -1 : 0;
}

/* Whether the word begins a record of the Protein Data Bank's format that holds no charges, of version 3.3 or one
 * before it; behind names of six letters numbers may follow at once, as in "CONECT10000". */
static int is_other_record(const char* word)
{
    static const char* const names[] = {
        "HEADER", "OBSLTE", "TITLE",  "SPLIT",  "CAVEAT", "COMPND", "SOURCE", "KEYWDS", "EXPDTA", "NUMMDL",
        "MDLTYP", "AUTHOR", "REVDAT", "SPRSDE", "JRNL",   "REMARK", "DBREF",  "DBREF1", "DBREF2", "SEQADV",
        "SEQRES", "MODRES", "HET",    "HETNAM", "HETSYN", "FORMUL", "HELIX",  "SHEET",  "TURN",   "SSBOND",
        "LINK",   "HYDBND", "SLTBRG", "CISPEP", "SITE",   "CRYST1", "ORIGX1", "ORIGX2", "ORIGX3", "SCALE1",
        "SCALE2", "SCALE3", "MTRIX1", "MTRIX2", "MTRIX3", "TVECT",  "FTNOTE", "MODEL",  "ANISOU", "SIGATM",
        "SIGUIJ", "TER",    "ENDMDL", "CONECT", "MASTER", "END",    "USER"};
    for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
    {
        const size_t length = strlen(names[i]);
        if (strncmp(word, names[i], length) == 0 &&
            (word[length] == '\0' || (length == 6 && word[6] >= '0' && word[6] <= '9')))
        {
            return 1;
        }
    }
    return 0;
}

int charge_read_pqr(text_lines* in, charge_file* file, atomic_llong* rows)
{
    char* text;
    char* word[c_mostWords];
    char  columns[c_longestAtom + c_numGaps + 1];
    int   found, models = 0;

    while ((found = text_lines_next(in, &text)) > 0)
    {
        const int n       = words_split(columns_apart(text, columns), word, c_mostWords);
        int       problem = 0;
        if (n == 0 || word[0][0] == '#')
        {
            continue;
        }
        if (strcmp(word[0], "ATOM") == 0 || strcmp(word[0], "HETATM") == 0)
        {
            problem = parse_atom(in, file, word, n, rows);
        }
        else if (strcmp(word[0], "CRYST1") == 0)
        {
            problem = parse_cell(in, file, word, n < 7 ? n : 7);
        }
        else if (strcmp(word[0], "MODEL") == 0 && models++ > 0)
        {
            complain(in->name, in->line, "a second MODEL: files of one are read");
            problem = -1;
        }
        else if (!is_other_record(word[0]))
        {
            complain(in->name, in->line,
                     "%.40s is no record of a .pqr file: atoms are ATOM or HETATM, a comment REMARK", word[0]);
            problem = -1;
        }
        if (problem)
        {
            return -1;
        }
    }
    return found;
}
