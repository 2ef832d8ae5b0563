/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* The treecode on the ranks of an MPI against sums over all pairs, and an error of one rank on all. */
#include "gmxfmm_mpi.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

enum
{
    c_num    = 4000,
    c_sample = 40 /* each of so many is compared */
};

/* Particle i of all: any rank can make it. Numbers of a linear congruence (Knuth, MMIX). */
static void particle(int i, double x[3], double* q)
{
    unsigned long long state = 1 + (unsigned long long)i;
    double             number[4];
    for (int k = 0; k < 8; k++)
    {
        state         = state * 6364136223846793005ULL + 1442695040888963407ULL;
        number[k % 4] = (double)(state >> 40) / 8388608 - 1;
    }
    memcpy(x, number, 3 * sizeof(*x));
    *q = number[3];
}

static double exact(int i)
{
    double x[3], y[3], q, sum = 0;
    particle(i, x, &q);
    for (int j = 0; j < c_num; j++)
    {
        particle(j, y, &q);
        sum += i != j ? q / sqrt(pow(x[0] - y[0], 2) + pow(x[1] - y[1], 2) + pow(x[2] - y[2], 2)) : 0;
    }
    return sum;
}

static int failed(const char* what, gmxfmm_status status, const char* message)
{
    printf("%s: %s: %s\n", what, gmxfmm_status_text(status), message);
    return 1;
}

/* One traversal; number of failures. */
static int solve(const gmxfmm_comm* comm, gmxfmm_traversal traversal)
{
    static double  x[3 * c_num], q[c_num], phi[c_num];
    char           message[512] = "";
    gmxfmm_options o;
    gmxfmm_plan*   plan = NULL;
    gmxfmm_output  out  = {.size = sizeof(out), .potential = phi, .want_energy = 1};
    int            n    = 0;
    double         sums[3], all[3], lowest, highest;
    for (int i = comm->rank; i < c_num; i += comm->size)
    {
        particle(i, x + 3 * n, q + n);
        n++;
    }
    gmxfmm_default_options(&o);
    o.method             = GMXFMM_TREECODE;
    o.boundary           = GMXFMM_OPEN;
    o.precision          = GMXFMM_DOUBLE;
    o.traversal          = traversal;
    o.num_threads        = 1;
    gmxfmm_status status = gmxfmm_create_parallel(&plan, &o, comm, n, NULL, message, sizeof(message));
    if (status != GMXFMM_OK)
    {
        return failed("create", status, message);
    }
    status = gmxfmm_set_charges(plan, n, q);
    status = status == GMXFMM_OK ? gmxfmm_assign(plan, x) : status;
    status = status == GMXFMM_OK ? gmxfmm_execute(plan, x, &out) : status;
    if (status != GMXFMM_OK)
    {
        return failed("a step", status, gmxfmm_message(plan));
    }
    memset(sums, 0, sizeof(sums));
    for (int k = 0; k < n; k++)
    {
        const int i = comm->rank + k * comm->size;
        sums[2] += 0.5 * q[k] * phi[k];
        if (i % c_sample == 0)
        {
            const double potential = exact(i);
            sums[0] += pow(phi[k] - potential, 2);
            sums[1] += pow(potential, 2);
        }
    }
    MPI_Allreduce(sums, all, 3, MPI_DOUBLE, MPI_SUM, MPI_COMM_WORLD);
    MPI_Allreduce(&out.energy_far, &lowest, 1, MPI_DOUBLE, MPI_MIN, MPI_COMM_WORLD);
    MPI_Allreduce(&out.energy_far, &highest, 1, MPI_DOUBLE, MPI_MAX, MPI_COMM_WORLD);
    const double error = sqrt(all[0] / all[1]);
    int          bad   = 0;
    if (!(error < o.accuracy))
    {
        printf("the error is %g, more than %g\n", error, o.accuracy);
        bad++;
    }
    if (lowest != highest || !(fabs(all[2] - lowest) < 1e-10 * fabs(lowest))) /* sums in another order */
    {
        printf("energies are %.17g to %.17g, 1/2 sum q phi is %.17g\n", lowest, highest, all[2]);
        bad++;
    }
    /* not a number on the last rank */
    char text[64];
    snprintf(text, sizeof(text), "rank %d: the position of particle 1 ", comm->size - 1);
    x[3]   = comm->rank == comm->size - 1 ? NAN : x[3];
    status = gmxfmm_execute(plan, x, &out);
    if (comm->size > 1 && (status != GMXFMM_ERROR_POSITION || strstr(gmxfmm_message(plan), text) == NULL))
    {
        bad += failed("a position that is not finite", status, gmxfmm_message(plan));
    }
    gmxfmm_destroy(plan);
    return bad;
}

int main(int argc, char** argv)
{
    gmxfmm_comm comm;
    int         bad, all;
    MPI_Init(&argc, &argv);
    if (gmxfmm_mpi_create(&comm, MPI_COMM_WORLD) != MPI_SUCCESS)
    {
        printf("gmxfmm_mpi_create failed\n");
        MPI_Abort(MPI_COMM_WORLD, 1);
    }
    bad = solve(&comm, GMXFMM_PARTICLE) + solve(&comm, GMXFMM_DUAL);
    gmxfmm_mpi_destroy(&comm);
    MPI_Allreduce(&bad, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    MPI_Finalize();
    return all != 0;
}
