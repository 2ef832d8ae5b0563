/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Point charges in a .npy file. */
#define _POSIX_C_SOURCE 200809L

#include "charge_formats.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "npy_header.h"
#include "words.h"

enum
{
    c_chunk = 8192 /* numbers read at a time */
};

/* The number in these bytes. */
static double decode(const unsigned char* bytes, const npy_header* header, int must_swap)
{
    unsigned char turned[8];
    double        value;
    float         single;

    for (int i = 0; i < header->bytes; i++)
    {
        turned[i] = bytes[must_swap ? header->bytes - 1 - i : i];
    }
    if (header->bytes == 8)
    {
        memcpy(&value, turned, sizeof(value));
        return value;
    }
    memcpy(&single, turned, sizeof(single));
    return (double)single;
}

/* Puts a number where it belongs; those of other columns are not read. */
static void put(charge_file* file, int64_t row, int64_t column, double value)
{
    if (column < 3)
    {
        file->x[3 * row + column] = value;
    }
    else if (!file->is_places && column == 3)
    {
        file->q[row] = value;
    }
    else if (!file->is_places && column == 4)
    {
        file->potential[row] = value;
    }
    else if (!file->is_places)
    {
        file->field[3 * row + column - 5] = value;
    }
}

static int read_numbers(FILE* in, charge_file* file, const npy_header* header, atomic_llong* rows)
{
    const int     must_swap = header->is_big_endian != npy_is_big_endian();
    const int64_t all       = header->rows * header->columns;
    unsigned char bytes[8 * c_chunk];

    for (int64_t first = 0; first < all; first += c_chunk)
    {
        const int64_t num = all - first < c_chunk ? all - first : c_chunk;
        if (fread(bytes, (size_t)header->bytes, (size_t)num, in) != (size_t)num)
        {
            complain(file->name, 0, "%s", ferror(in) ? strerror(errno) : "is cut short");
            return -1;
        }
        for (int64_t k = 0; k < num; k++)
        {
            const int64_t at     = first + k;
            const int64_t row    = header->is_by_columns ? at % header->rows : at / header->columns;
            const int64_t column = header->is_by_columns ? at / header->rows : at % header->columns;
            const double  value  = decode(bytes + k * header->bytes, header, must_swap);
            if (!isfinite(value))
            {
                complain(file->name, row + 1, "column %lld is not finite", (long long)column + 1);
                return -1;
            }
            put(file, row, column, value);
        }
        if (rows)
        {
            atomic_store_explicit(rows, (first + num) / header->columns, memory_order_relaxed);
        }
    }
    return 0;
}

/* Whether the file has as many bytes as its header says; this comes before memory for them is asked for. */
static int check_size(FILE* in, const charge_file* file, const npy_header* header)
{
    struct stat there;
    const long  begin = ftell(in);

    if (fstat(fileno(in), &there) != 0 || !S_ISREG(there.st_mode) || begin < 0)
    {
        complain(file->name, 0, "is not a regular file, as a .npy must be");
        return -1;
    }
    const int64_t bytes  = (int64_t)there.st_size - begin;
    const int64_t in_row = header->columns * header->bytes;
    if (bytes % in_row != 0 || bytes / in_row != header->rows)
    {
        complain(file->name, 0,
                 "has %lld bytes of numbers, which are not the %lld rows of %lld bytes that its header says",
                 (long long)bytes, (long long)header->rows, (long long)in_row);
        return -1;
    }
    return 0;
}

static int read_array(FILE* in, charge_file* file, atomic_llong* rows)
{
    npy_header  header;
    char        message[128];
    const char* problem = npy_header_read(in, &header, message, sizeof(message));

    if (problem)
    {
        complain(file->name, 0, "%s", problem);
        return -1;
    }
    const int64_t columns = header.columns;
    if (columns != 4 && columns != 8 && !(file->is_places && (columns == 3 || columns == 7)))
    {
        complain(
            file->name, 0,
            file->is_places
                ? "the shape is (%lld, %lld), but the columns must be 3 x y z, 4 with q, 7 or 8 with potential fx fy fz"
                : "the shape is (%lld, %lld), but the columns must be 4 x y z q, or 8 with potential fx fy fz",
            (long long)header.rows, (long long)columns);
        return -1;
    }
    if (check_size(in, file, &header))
    {
        return -1;
    }
    if (header.rows > 0 && charge_file_reserve(file, header.rows, 0, columns == 8 && !file->is_places))
    {
        complain(file->name, 0, "out of memory");
        return -1;
    }
    file->n = header.rows;
    return read_numbers(in, file, &header, rows);
}

int charge_read_npy(const char* name, charge_file* file, atomic_llong* rows)
{
    const int is_zipped = words_end_with(name, strlen(name), ".gz");
    FILE*     in        = is_zipped ? NULL : fopen(name, "rb");

    if (!in)
    {
        complain(name, 0, "cannot be opened: %s", is_zipped ? "a .npy is not gzipped" : strerror(errno));
        return -1;
    }
    const int status = read_array(in, file, rows);
    fclose(in);
    return status;
}
