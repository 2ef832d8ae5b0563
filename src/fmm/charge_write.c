/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Writing of point-charge files. */
#define _POSIX_C_SOURCE 200809L

#include "charge_file.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "text_lines.h"

static void write_header(FILE* out, const charge_file* file, gmxfmm_boundary boundary)
{
    if (file->comments)
    {
        fputs(file->comments, out);
    }
    if (file->box_line > 0)
    {
        fputs("# box:", out);
        for (int i = 0; i < 9; i++)
        {
            fprintf(out, " %.17g", file->box[i]);
        }
        fputc('\n', out);
    }
    fputs(file->periodic ? "# periodic: 1 1 1\n" : "# periodic: 0 0 0\n", out);
    if (file->periodic)
    {
        fprintf(out, "# boundary: %s\n", boundary == GMXFMM_VACUUM ? "vacuum" : "tinfoil");
    }
    fputs("# reference_method: gmxfmm\n# columns: x y z q potential fx fy fz\n", out);
}

static void write_rows(FILE* out, const charge_file* file, const double* potential, const double* field)
{
    for (int64_t i = 0; i < file->n; i++)
    {
        const double* x = file->x + 3 * i;
        const double* e = field + 3 * i;
        fprintf(out, "%.17g %.17g %.17g %.17g %.17g %.17g %.17g %.17g\n", x[0], x[1], x[2], file->q[i], potential[i],
                e[0], e[1], e[2]);
    }
}

/* A new file beside name: its stream and, in *path, its name (to be freed). */
static FILE* open_beside(const char* name, char** path)
{
    const size_t size = strlen(name) + 32;
    int          file = -1;

    *path = (char*)malloc(size);
    for (int attempt = 0; *path && file < 0 && attempt < 100; attempt++)
    {
        snprintf(*path, size, "%s.%ld-%d", name, (long)getpid(), attempt);
        /* not mkstemp, which takes the rights of group and others away from the result */
        file = open(*path, O_WRONLY | O_CREAT | O_EXCL, 0666);
        if (file < 0 && errno != EEXIST)
        {
            break;
        }
    }
    FILE* out = file < 0 ? NULL : fdopen(file, "w");
    if (!out)
    {
        free(*path);
        *path = NULL;
    }
    return out;
}

int charge_file_write(
    const char* name, const charge_file* file, gmxfmm_boundary boundary, const double* potential, const double* field)
{
    struct stat there;
    char*       beside = NULL;
    /* what is not a regular file (a pipe, a device, a link) is written in place: renaming would replace it */
    const int in_place = lstat(name, &there) == 0 && !S_ISREG(there.st_mode);

    errno     = 0;
    FILE* out = in_place ? fopen(name, "w") : open_beside(name, &beside);
    if (!out)
    {
        complain(name, 0, "cannot be written: %s", strerror(errno));
        return -1;
    }
    write_header(out, file, boundary);
    write_rows(out, file, potential, field);
    int failed = ferror(out) != 0;
    failed     = fclose(out) != 0 || failed;
    if (!failed && beside)
    {
        failed = rename(beside, name) != 0;
    }
    if (failed)
    {
        const int cause = errno;
        if (beside)
        {
            remove(beside);
        }
        complain(name, 0, "cannot be written: %s", strerror(cause));
    }
    free(beside);
    return failed ? -1 : 0;
}
