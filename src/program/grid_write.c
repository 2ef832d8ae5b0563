/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Potentials on a grid: OpenDX and Gaussian cube. */
#include "grid_write.h"

#include <ctype.h>
#include <string.h>

#include "out_file.h"
#include "words.h"

/* Of one bohr, by CODATA 2018. */
#define ANGSTROM 0.529177210903

static int is_cube(const char* name)
{
    const size_t whole = strlen(name);

    return words_end_with(name, words_end_with(name, whole, ".gz") ? whole - 3 : whole, ".cube");
}

int grid_write_is_grid(const char* name)
{
    const size_t whole = strlen(name);

    return is_cube(name) || words_end_with(name, words_end_with(name, whole, ".gz") ? whole - 3 : whole, ".dx");
}

/* The number of an element in the periodic table; 0: none has this symbol. */
static int number_of_element(const char* symbol, size_t length)
{
    static const char table[] = "H HeLiBeB C N O F NeNaMgAlSiP S ClArK CaScTiV CrMnFeCoNiCuZnGaGeAsSeBrKrRbSrY ZrNbMoTc"
                                "RuRhPdAgCdInSnSbTeI XeCsBaLaCePrNdPmSmEuGdTbDyHoErTmYbLuHfTaW ReOsIrPtAuHgTlPbBiPoAtRn"
                                "FrRaAcThPaU NpPuAmCmBkCfEsFmMdNoLrRfDbSgBhHsMtDsRgCnNhFlMcLvTsOg";

    if (length < 1 || length > 2)
    {
        return 0;
    }
    const int first = toupper((unsigned char)symbol[0]), second = length == 2 ? tolower((unsigned char)symbol[1]) : ' ';
    for (int i = 0; table[2 * i]; i++)
    {
        if (table[2 * i] == first && table[2 * i + 1] == second)
        {
            return i + 1;
        }
    }
    return 0;
}

/* The element of an .xyz is its species. An atom of a .pqr has the one with its first letter, so that CA is a carbon;
 * one that is called as its residue is an ion, and a second letter that is small belongs to the element. */
static int element_of(const charge_file* file, const char* label)
{
    if (!label || file->format != CHARGE_PQR)
    {
        return label ? number_of_element(label, strcspn(label, " ")) : 0;
    }
    const char* name = label;
    for (int i = 0; i < 2 && *name; i++)
    {
        name += strcspn(name, " ");
        name += *name == ' ';
    }
    const size_t length  = strcspn(name, " ");
    const char*  residue = name + length + (name[length] == ' ');
    if (length <= 2 && strcspn(residue, " ") == length && strncmp(name, residue, length) == 0)
    {
        return number_of_element(name, length);
    }
    name += strspn(name, "0123456789");
    return number_of_element(name, name[0] && islower((unsigned char)name[1]) ? 2 : 1);
}

static void write_unit(out_file* out, const charge_results* r, const char* unit)
{
    if (unit)
    {
        out_file_print(out, "potential in %s/e", unit);
        return;
    }
    out_file_print(out, "potential in charge/length");
    if (r->options->prefactor != 1)
    {
        out_file_print(out, " times %.17g", r->options->prefactor);
    }
}

static void write_dx_header(out_file* out, const target_grid* grid, const charge_results* r, const char* unit)
{
    const long long n[3] = {grid->count[0], grid->count[1], grid->count[2]};

    out_file_print(out, "# written by gmxfmm: ");
    write_unit(out, r, unit);
    out_file_print(out, ", lengths as in the file of charges\n");
    out_file_print(out, "object 1 class gridpositions counts %lld %lld %lld\norigin ", n[0], n[1], n[2]);
    out_file_numbers(out, grid->origin, 3, '\n');
    for (int d = 0; d < 3; d++)
    {
        out_file_print(out, "delta ");
        out_file_numbers(out, grid->step + 3 * d, 3, '\n');
    }
    out_file_print(out, "object 2 class gridconnections counts %lld %lld %lld\n", n[0], n[1], n[2]);
    out_file_print(out, "object 3 class array type double rank 0 items %lld data follows\n", (long long)grid->n);
}

static void write_dx_end(out_file* out)
{
    out_file_print(out, "attribute \"dep\" string \"positions\"\n"
                        "object \"regular positions regular connections\" class field\n"
                        "component \"positions\" value 1\n"
                        "component \"connections\" value 2\n"
                        "component \"data\" value 3\n");
}

static void write_cube_row(out_file* out, long long number, const double* x)
{
    out_file_print(out, "%5lld %12.6f %12.6f %12.6f\n", number, x[0] / ANGSTROM, x[1] / ANGSTROM, x[2] / ANGSTROM);
}

static void write_cube_header(out_file* out, const target_grid* grid, const charge_results* r, const char* unit)
{
    const charge_file* system = r->system;
    const char*        label  = system->labels;

    out_file_print(out, "written by gmxfmm: ");
    write_unit(out, r, unit);
    out_file_print(out, "\nlengths in bohr, those of the file of charges being in Angstrom; z is the fastest\n");
    write_cube_row(out, system->n, grid->origin);
    for (int d = 0; d < 3; d++)
    {
        write_cube_row(out, grid->count[d], grid->step + 3 * d);
    }
    for (int64_t i = 0; i < system->n && !out_file_is_over(out); i++)
    {
        const double* x = system->x + 3 * i;
        out_file_print(out, "%5d %12.6f %12.6f %12.6f %12.6f\n", element_of(system, label), system->q[i],
                       x[0] / ANGSTROM, x[1] / ANGSTROM, x[2] / ANGSTROM);
        label = label ? label + strlen(label) + 1 : NULL;
    }
}

/* Values with z the fastest: three a line of a .dx, six of a .cube, whose rows along z begin lines. */
static void write_values(out_file*             out,
                         const target_grid*    grid,
                         const charge_results* r,
                         const double*         at_charges,
                         int                   cube,
                         atomic_llong*         rows)
{
    const int64_t in_line = cube ? 6 : 3;
    int64_t       next    = 0;

    for (int64_t p = 0; p < grid->n && !out_file_is_over(out); p++)
    {
        const int     is_charge = next < grid->num_at_charge && grid->at_charge[next].point == p;
        const double  value     = is_charge ? at_charges[grid->at_charge[next].charge] : r->potential[p - next];
        const int64_t in_row    = cube ? p % grid->count[2] : p;
        const int     is_end = (in_row + 1) % in_line == 0 || (cube ? in_row + 1 == grid->count[2] : p + 1 == grid->n);
        next += is_charge;
        if (cube)
        {
            out_file_print(out, " %12.5E%s", value, is_end ? "\n" : "");
        }
        else
        {
            out_file_numbers(out, &value, 1, is_end ? '\n' : ' ');
        }
        if (rows)
        {
            atomic_store_explicit(rows, p + 1, memory_order_relaxed);
        }
    }
}

int grid_write(const char*           name,
               int                   overwrite,
               const target_grid*    grid,
               const charge_results* r,
               const double*         at_charges,
               const char*           unit,
               atomic_llong*         rows)
{
    const int cube = is_cube(name);
    out_file  out;

    if (out_file_open(&out, name, overwrite))
    {
        return -1;
    }
    (cube ? write_cube_header : write_dx_header)(&out, grid, r, unit);
    write_values(&out, grid, r, at_charges, cube, rows);
    if (!cube)
    {
        write_dx_end(&out);
    }
    return out_file_close(&out);
}
