/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Memory of the host that a process can still take. */
#ifndef FMM_AVAILABLE_H
#define FMM_AVAILABLE_H

#include <stdint.h>

/* Bytes that can be taken before Linux ends the process for want of memory: what it calls available, elsewhere all of
 * the machine's; no more than the control groups of the process leave, such as a container's. */
uint64_t fmm_available_memory(void);

/* Bytes that control groups leave: the least of the process's own and those above it. root: folder where their
 * hierarchies are mounted, groups: text of /proc/self/cgroup. UINT64_MAX: there is no limit. */
uint64_t fmm_group_memory(const char* root, const char* groups);

#endif
