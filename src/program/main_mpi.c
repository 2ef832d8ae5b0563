/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The program gmxfmm-mpi: gmxfmm on the ranks of MPI. */
#define _POSIX_C_SOURCE 200809L

#include <signal.h>
#include <stdio.h>
#include <string.h>

#include "gmxfmm_mpi.h"
#include "main_ranks.h"
#include "main_run.h"

int main(int count, char* arguments[])
{
    main_ranks ranks;
    int        status = 0, level;

    signal(SIGXFSZ, SIG_IGN); /* a file over the limit of the shell is then a failed write, with a message */
    MPI_Init_thread(&count, &arguments, MPI_THREAD_FUNNELED, &level);
    memset(&ranks, 0, sizeof(ranks));
    if (gmxfmm_mpi_create(&ranks.comm, MPI_COMM_WORLD) != MPI_SUCCESS)
    {
        fprintf(stderr, "gmxfmm-mpi: MPI has no communicator for the library\n");
        MPI_Abort(MPI_COMM_WORLD, MAIN_FAILURE);
    }
    if (ranks.comm.rank == 0)
    {
        status = main_run(count, arguments, ranks.comm.size > 1 ? &ranks : NULL);
        if (ranks.comm.size > 1 && !ranks.told)
        {
            const main_task nothing = {0};
            main_ranks_tell(&ranks, &nothing);
        }
    }
    else
    {
        main_ranks_follow(&ranks);
    }
    gmxfmm_mpi_destroy(&ranks.comm);
    MPI_Finalize();
    return status;
}
