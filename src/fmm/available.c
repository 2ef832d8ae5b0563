/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the host that a process can still take: cgroups(7), Linux's cgroup-v2 and cgroup-v1/memory. */
#include "fmm/available.h"

#include <stdio.h>
#include <string.h>
#include <unistd.h>

enum
{
    c_text = 4096 /* longest path, and most of /proc/self/cgroup that is read: it has some 15 short lines */
};

/* Version 2 has one hierarchy for all controllers, version 1 one for memory. */
typedef struct
{
    const char *controllers, *folder, *limit, *usage, *cache;
} hierarchy;

static const hierarchy c_hierarchies[] = {
    {"", "", "memory.max", "memory.current", "inactive_file "},
    {"memory", "/memory", "memory.limit_in_bytes", "memory.usage_in_bytes", "total_inactive_file "}};

/* The number behind `key` at the start of a line of a file, or the file's first number without a key; `otherwise` if
 * there is none. */
static uint64_t number_in(const char* folder, const char* name, const char* key, uint64_t otherwise)
{
    char   path[c_text + 64], line[256];
    size_t length = strlen(key);
    snprintf(path, sizeof(path), "%s/%s", folder, name);
    FILE*    file   = fopen(path, "r");
    uint64_t number = otherwise;
    while (file != NULL && fgets(line, sizeof(line), file) != NULL)
    {
        unsigned long long found = 0;
        if (strncmp(line, key, length) == 0 && sscanf(line + length, "%llu", &found) == 1)
        {
            number = found;
            break;
        }
    }
    if (file != NULL)
    {
        fclose(file);
    }
    return number;
}

/* What a group leaves of its limit. Files that were read, and not lately, count as used, but are given up for memory
 * that is asked for. */
static uint64_t left_in(const char* folder, const hierarchy* h)
{
    const uint64_t limit = number_in(folder, h->limit, "", UINT64_MAX);
    const uint64_t usage = number_in(folder, h->usage, "", 0), cache = number_in(folder, "memory.stat", h->cache, 0);
    const uint64_t used = usage > cache ? usage - cache : 0;
    return limit == UINT64_MAX ? limit : limit > used ? limit - used : 0;
}

/* Whether a list like "cpu,memory" has that name; an empty list has the empty name alone. */
static int has(const char* list, size_t length, const char* name)
{
    const size_t size = strlen(name);
    for (size_t at = 0; at <= length; at += strcspn(list + at, ",:") + 1)
    {
        if (strcspn(list + at, ",:") == size && strncmp(list + at, name, size) == 0)
        {
            return 1;
        }
    }
    return 0;
}

/* The process's group in a hierarchy, from lines "number:controllers:path"; length 0: the root, as where there is no
 * such line, or a group outside of what a container sees, as "/../..". */
static const char* group_in(const hierarchy* h, const char* groups, int* length)
{
    *length = 0;
    for (const char* line = groups; *line != '\0'; line += strcspn(line, "\n"), line += *line == '\n')
    {
        const char* list = strchr(line, ':');
        const char* path = list != NULL ? strchr(list + 1, ':') : NULL;
        if (path != NULL && has(list + 1, (size_t)(path - list - 1), h->controllers))
        {
            *length = strncmp(path + 1, "/..", 3) == 0 ? 0 : (int)strcspn(path + 1, "\n");
            return path + 1;
        }
    }
    return "";
}

uint64_t fmm_group_memory(const char* root, const char* groups)
{
    uint64_t least = UINT64_MAX;
    for (size_t i = 0; i < sizeof(c_hierarchies) / sizeof(c_hierarchies[0]); i++)
    {
        const hierarchy* h = &c_hierarchies[i];
        char             folder[c_text];
        int              length;
        const char*      group = group_in(h, groups, &length);
        const size_t     top   = strlen(root) + strlen(h->folder);
        snprintf(folder, sizeof(folder), "%s%s%.*s", root, h->folder, length, group);
        for (char* end = folder + strlen(folder); end != NULL; end = strrchr(folder, '/'))
        {
            *end                = '\0';
            const uint64_t left = strlen(folder) >= top ? left_in(folder, h) : UINT64_MAX;
            least               = left < least ? left : least;
        }
    }
    return least;
}

uint64_t fmm_available_memory(void)
{
    const uint64_t all       = (uint64_t)sysconf(_SC_PHYS_PAGES) * (uint64_t)sysconf(_SC_PAGESIZE);
    const uint64_t available = number_in("/proc", "meminfo", "MemAvailable:", all / 1024) * 1024;
    char           groups[c_text];
    FILE*          file = fopen("/proc/self/cgroup", "r");
    const size_t   size = file != NULL ? fread(groups, 1, sizeof(groups) - 1, file) : 0;
    groups[size]        = '\0';
    if (file != NULL)
    {
        fclose(file);
    }
    const uint64_t left = fmm_group_memory("/sys/fs/cgroup", groups);
    return available < left ? available : left;
}
