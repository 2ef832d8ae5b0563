/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Which machine a rank runs on. */
#ifndef FMM_PARALLEL_HOST_H
#define FMM_PARALLEL_HOST_H

#include <stddef.h>

/* name[size] becomes the machine's name and the identifier of its last start, which tells machines of one name apart;
 * "": not known. */
void fmm_ranks_host(char* name, size_t size);

#endif
