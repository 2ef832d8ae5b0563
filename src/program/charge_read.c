/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Reading of files of point charges, in any format. */
#include "charge_read.h"

#include <string.h>

#include "charge_formats.h"

static int read_lines(const char* name, charge_file* file, atomic_llong* rows)
{
    text_lines in;
    int        status;

    if (text_lines_open(&in, name))
    {
        return -1;
    }
    file->name = in.name;
    switch (file->format)
    {
    case CHARGE_XYZ:
        status = charge_read_xyz(&in, file, rows);
        break;
    case CHARGE_PQR:
        status = charge_read_pqr(&in, file, rows);
        break;
    default:
        status = charge_read_text(&in, file, rows);
    }
    text_lines_close(&in);
    return status;
}

/* Whether a file is named as other programs name theirs, which have no format here. */
static int is_foreign(const char* name)
{
    static const char* const ends[] = {".gro", ".cif", ".vasp", ".lmp", "POSCAR", "CONTCAR"};
    const size_t             length = strlen(name);
    for (size_t i = 0; i < sizeof(ends) / sizeof(ends[0]); i++)
    {
        const size_t end = strlen(ends[i]);
        if (length >= end && strcmp(name + length - end, ends[i]) == 0)
        {
            return 1;
        }
    }
    return 0;
}

static int read_any(const char* name, charge_file* file, int is_places, atomic_llong* rows)
{
    memset(file, 0, sizeof(*file));
    file->name      = name;
    file->format    = charge_format_of(name);
    file->is_places = is_places;
    file->prefactor = 1;
    if (is_foreign(name))
    {
        complain(name, 0,
                 "it is named as another program's file: gmxfmm.read in Python reads these; rename a text of rows");
        return -1;
    }
    if (file->format == CHARGE_NPY ? charge_read_npy(name, file, rows) : read_lines(name, file, rows))
    {
        return -1;
    }
    if (file->n == 0)
    {
        complain(file->name, 0, is_places ? "has no points" : "has no particles");
        return -1;
    }
    if (file->periodic_line == 0)
    {
        charge_file_set_periodic(file, (const int[3]){file->has_box, file->has_box, file->has_box});
    }
    return 0;
}

int charge_read(const char* name, charge_file* file, atomic_llong* rows)
{
    return read_any(name, file, 0, rows);
}

int charge_read_places(const char* name, charge_file* file, atomic_llong* rows)
{
    return read_any(name, file, 1, rows);
}
