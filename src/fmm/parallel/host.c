/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which machine a rank runs on. */
#define _POSIX_C_SOURCE 200809L

#include "fmm/parallel/host.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

void fmm_ranks_host(char* name, size_t size)
{
    char  host[65] = "", start[40] = "";
    FILE* file = fopen("/proc/sys/kernel/random/boot_id", "r");
    if (file != NULL)
    {
        if (fgets(start, sizeof(start), file) == NULL)
        {
            start[0] = '\0';
        }
        fclose(file);
    }
    memset(name, 0, size);
    if (gethostname(host, sizeof(host) - 1) == 0 && start[0] != '\0')
    {
        snprintf(name, size, "%s %.36s", host, start);
    }
}
