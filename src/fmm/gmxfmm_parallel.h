/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gmxfmm on several ranks: processes, or threads of one, share the particles of a system and its work.
 *
 * A plan of gmxfmm_create_parallel takes the calls of any other. create, set_*, assign and execute are collective: all
 * ranks make them, in the same order. Each rank gives any number of particles and gets results of these, in its own
 * order. It does not matter which rank has which. Energies are totals, with the same bits on all ranks. What fails on
 * one rank fails on all, with the same status and text, which name the rank. Other calls concern the caller's rank
 * alone.
 *
 * Where theta, degree or leaf is automatic, rank 0 chooses at the first assign as a plan of one rank does. It takes a
 * sample of 131,072 particles where there are more. Then the error of the ranks' own trees and lists is measured, in
 * potential and field, at 2048 targets of all (1024 of more than 250,000). Above 0.8 of the accuracy a higher degree is
 * tried, or a smaller theta where only that is automatic, up to four times. gmxfmm_info.measured_error has the last
 * error, the same on all ranks, also where it is above the accuracy. Each measurement takes a step and the direct sums
 * of the rank's particles at those targets. With all three given there is none.
 *
 * The program gives the library a communicator. gmxfmm_mpi.h makes one from MPI's, gmxfmm_threads_* one for threads.
 */
#ifndef GMXFMM_PARALLEL_H
#define GMXFMM_PARALLEL_H

#include "gmxfmm_measure.h"

/* What two ranks send each other in one exchange: both have one parcel with the other as a peer, or none. */
typedef struct
{
    int         peer; /* another rank */
    const void* send;
    size_t      send_bytes; /* 0: nothing */
    void*       receive;
    size_t      receive_bytes; /* what the peer sends */
} gmxfmm_parcel;

/* Functions return 0, or another number if they failed. Then destroy the plan. All ranks call them, one after the other
 * in the same order, from the thread that called the library. */
typedef struct
{
    int   rank, size; /* 0 <= rank < size */
    void* context;    /* first argument of the functions */
    /* receive[size * bytes] becomes what all ranks send, in their order. */
    int (*all_gather)(void* context, const void* send, size_t bytes, void* receive);
    /* Sends and receives n parcels, with n different peers; n may be 0. What is sent may be overwritten, and what came
     * may be read, when it returns. */
    int (*exchange)(void* context, int n, const gmxfmm_parcel* m);
    int device_memory; /* 1: exchange takes addresses of devices, too, if the plan's device is one; the same on all
                          ranks */
} gmxfmm_comm;

/* As gmxfmm_create, makes a plan for about num_particles particles on this rank. It copies comm, whose context must
 * outlive the plan. Options must be the same on all ranks, but for num_threads and what names a device. Ranks may share
 * a device. A communicator of one rank is as none. Two methods have ranks:
 *
 * - The treecode (Vaughn, Wilson & Krasny 2020, section 3.2). On CUDA results go to arrays of the host.
 * - The FMM on CPUs by cells of one level (m2l = fft or auto), in a box that is periodic along all vectors. There are
 *   no targets and no charge derivatives. Each rank computes the results in a range of cells, and its part of the
 *   convolution. It is sent the particles in and near these cells. Ranges follow the measured work of the ranks.
 *   Results have the bits of one rank that has all particles in the order of their numbers. The model chooses automatic
 *   order and cells, at the first assign.
 *
 * Errors: as gmxfmm_create; NULL and OPTION for a communicator that is none, which other ranks do not hear of; COMM. */
GMXFMM_API gmxfmm_status gmxfmm_create_parallel(gmxfmm_plan**         plan,
                                                const gmxfmm_options* options,
                                                const gmxfmm_comm*    comm,
                                                int64_t               num_particles,
                                                const double*         box,
                                                char*                 message,
                                                size_t                message_size);

/* As gmxfmm_create_measured, on the ranks of a communicator. The call is collective. Each rank has a system of its own
 * particles, as many as it likes. *chosen is the same on all ranks, and may be NULL. METHOD_AUTO means the treecode.
 * Automatic options are chosen as by gmxfmm_assign here. The error is measured whatever is given. Errors: as
 * gmxfmm_create_parallel, gmxfmm_assign and gmxfmm_execute; OPTION: the accuracy asked for is missed. */
GMXFMM_API gmxfmm_status gmxfmm_create_parallel_measured(gmxfmm_plan**         plan,
                                                         const gmxfmm_options* options,
                                                         const gmxfmm_comm*    comm,
                                                         const gmxfmm_system*  system,
                                                         gmxfmm_measurement*   chosen,
                                                         char*                 message,
                                                         size_t                message_size);

/* Sets the numbers of this rank's particles in the whole system of an FMM on several ranks, id[n], after set_charges.
 * They go from 0 to the number of particles of all ranks less one, each on one rank. Exclusions are rows of this rank's
 * particles, and name partners on any rank by these numbers. So do messages. Cells have particles in their order.
 * Without ids, or after charges of another number, numbers follow the order of ranks. The call is collective, and
 * assign comes after it. Errors: NULL; ORDER (before set_charges); UNSUPPORTED (a plan of one rank, or a treecode);
 * MEMORY; COMM. For wrong numbers assign returns OPTION. */
GMXFMM_API gmxfmm_status gmxfmm_set_ids(gmxfmm_plan* plan, const int* id);

/* What this rank has of a plan's particles. Seconds are those of all its assignments and steps so far, beside those of
 * gmxfmm_info. Waiting for other ranks counts. */
typedef struct gmxfmm_ranks_info
{
    int64_t num_particles, num_targets;  /* whose owner it is */
    int64_t num_imported;                /* particles of others that it meets one by one */
    size_t  bytes_sent, bytes_received;  /* of clusters and particles, each step */
    double  time_bisection, time_travel; /* finding the owners of particles; sending them there, and results back */
    double  time_tree, time_lists;       /* own tree; lists with all trees */
    double  time_exchange;               /* of clusters and particles; on GPUs beside local sums */
    /* An FMM has these, too: cells whose results the rank computes, and messages that it sends in a step. Seconds of
     * its steps are outside of exchanges, or in those of positions, multipoles and locals, spectra, results, and sums.
     */
    int     num_cells;
    int64_t messages;
    double  time_work, time_positions, time_expansions, time_spectra, time_results, time_sums;
    /* At the last assignment, the number of ranks from whose GPUs this one reads, as they read from its own. These are
     * threads of the process, or processes of the same machine by CUDA IPC. The others send by exchange. */
    int         num_reached;
    const char* reached_note; /* why it does not read from one of the same machine, until the next assignment; or "" */
} gmxfmm_ranks_info;

/* Not collective. All zero, and no note, for a plan of one rank. Errors: NULL. */
GMXFMM_API gmxfmm_status gmxfmm_get_ranks_info(const gmxfmm_plan* plan, gmxfmm_ranks_info* info);
GMXFMM_API void          gmxfmm_reset_ranks_times(gmxfmm_plan* plan);

/* What threads of a process share when each is a rank. */
typedef struct gmxfmm_threads gmxfmm_threads;

/* For `size` threads. Errors: NULL, OPTION (size < 1), MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_threads_create(gmxfmm_threads** threads, int size);

/* The communicator of the thread that is this rank, 0..size-1. Waiting threads sleep until all ranks have made their
 * call. So a thread that leaves has to end the process. */
GMXFMM_API gmxfmm_comm gmxfmm_threads_comm(gmxfmm_threads* threads, int rank);

/* Frees it, after all plans of its communicators; NULL is allowed. */
GMXFMM_API void gmxfmm_threads_destroy(gmxfmm_threads* threads);

#endif
