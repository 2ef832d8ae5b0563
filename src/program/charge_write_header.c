/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Headers of results. */
#include "charge_write_header.h"

#include <math.h>
#include <string.h>

#include "npy_header.h"

/* Whether surroundings are part of the system: those of a slab or a wire have no effect. */
static int has_boundary(const charge_file* system)
{
    return system->periodic && !charge_file_is_partly(system);
}

void charge_write_text_header(out_file* out, const charge_results* r)
{
    const charge_file*    system  = r->system;
    const gmxfmm_options* options = r->options;

    if (system->comments)
    {
        out_file_put(out, system->comments, strlen(system->comments));
    }
    if (system->has_box)
    {
        out_file_print(out, "# box: ");
        out_file_numbers(out, system->box, 9, '\n');
    }
    out_file_print(out, "# periodic: %d %d %d\n", system->along[0], system->along[1], system->along[2]);
    if (has_boundary(system))
    {
        out_file_print(out, "# boundary: %s\n", options->boundary == GMXFMM_VACUUM ? "vacuum" : "tinfoil");
    }
    if (options->kernel == GMXFMM_YUKAWA)
    {
        out_file_print(out, "# kernel: yukawa %.17g\n", options->kappa);
    }
    if (options->prefactor != 1)
    {
        out_file_print(out, "# prefactor: %.17g\n", options->prefactor);
    }
    out_file_print(out, "# reference_method: gmxfmm\n# columns: x y z%s potential fx fy fz\n", r->at->q ? " q" : "");
}

/* Version 1 of the format, the numbers at a multiple of 64 bytes. */
void charge_write_npy_header(out_file* out, const charge_results* r)
{
    char      text[256];
    const int length = snprintf(text, sizeof(text), "{'descr': '%cf8', 'fortran_order': False, 'shape': (%lld, %d), }",
                                npy_is_big_endian() ? '>' : '<', (long long)r->at->n, r->at->q ? 8 : 7);
    const int all    = (10 + length + 1 + 63) / 64 * 64 - 10; /* with the blanks and the line's end */

    const unsigned char begin[10] = {
        0x93, 'N', 'U', 'M', 'P', 'Y', 1, 0, (unsigned char)(all & 0xff), (unsigned char)(all >> 8)};
    out_file_put(out, begin, sizeof(begin));
    out_file_print(out, "%-*s\n", all - 1, text);
}

void charge_write_xyz_header(out_file* out, const charge_results* r)
{
    const charge_file*    system  = r->system;
    const gmxfmm_options* options = r->options;

    out_file_print(out, "%lld\n", (long long)r->at->n);
    if (system->has_box)
    {
        out_file_print(out, "Lattice=\"");
        out_file_numbers(out, system->box, 9, '"');
        out_file_print(out, " ");
    }
    out_file_print(out, "Properties=species:S:1:pos:R:3%s:gmxfmm_potential:R:1:gmxfmm_field:R:3%s pbc=\"%c %c %c\"",
                   r->at->q ? ":charge:R:1" : "", r->at->q ? ":forces:R:3" : "", "FT"[system->along[0]],
                   "FT"[system->along[1]], "FT"[system->along[2]]);
    if (r->at->q)
    {
        out_file_print(out, " energy=%.17g", r->energy);
    }
    if (has_boundary(system))
    {
        out_file_print(out, " gmxfmm_boundary=%s", options->boundary == GMXFMM_VACUUM ? "vacuum" : "tinfoil");
    }
    if (options->kernel == GMXFMM_YUKAWA)
    {
        out_file_print(out, " gmxfmm_kernel=\"yukawa %.17g\"", options->kappa);
    }
    if (options->prefactor != 1)
    {
        out_file_print(out, " gmxfmm_prefactor=%.17g", options->prefactor);
    }
    out_file_print(out, "\n");
}

int charge_write_is_cell(const double box[9])
{
    return box[1] == 0 && box[2] == 0 && box[5] == 0 && box[0] > 0 && box[4] > 0 && box[8] > 0;
}

static double angle(const double* a, const double* b)
{
    const double dot = a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
    const double one = a[1] * b[2] - a[2] * b[1], two = a[2] * b[0] - a[0] * b[2], three = a[0] * b[1] - a[1] * b[0];

    return dot == 0 ? 90 : atan2(sqrt(one * one + two * two + three * three), dot) * (180 / 3.14159265358979323846);
}

void charge_write_pqr_header(out_file* out, const charge_results* r)
{
    const double* box = r->system->box;
    double        cell[6];

    out_file_print(out, "REMARK written by gmxfmm; behind the radius potential fx fy fz\n");
    if (!r->system->periodic)
    {
        return;
    }
    for (int i = 0; i < 3; i++)
    {
        const double* v = box + 3 * i;
        cell[i]         = sqrt(v[0] * v[0] + v[1] * v[1] + v[2] * v[2]);
        cell[3 + i]     = angle(box + 3 * ((i + 1) % 3), box + 3 * ((i + 2) % 3));
    }
    out_file_print(out, "CRYST1 ");
    out_file_numbers(out, cell, 6, '\n');
}
