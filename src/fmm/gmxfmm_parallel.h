/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * gmxfmm on several ranks: processes, or threads of one, that share the particles of a system and its work.
 *
 * A plan of gmxfmm_create_parallel takes the calls of any other. create, set_*, assign and execute are collective: all
 * ranks make them, in the same order. Each gives particles, as many as it likes, and gets results of these, in its own
 * order: it does not matter how they were dealt. Energies are totals, the same bits on all ranks. What fails on one
 * rank fails on all, with the same status and text, which name the rank. Other calls concern the caller's rank alone.
 *
 * Where theta, degree or leaf is automatic rank 0 chooses at the first assign as a plan of one rank does, of more than
 * 131,072 particles by a sample of as many. Then the error of what the ranks' own trees and lists give is measured at
 * 2048 targets of all, 1024 of more than 250,000, in potential and field; above 0.8 of the accuracy a higher degree
 * or, where only theta is automatic, a smaller theta is tried, up to four times. What it is then is
 * gmxfmm_info.measured_error, the same on all ranks, also where it is above the accuracy. Each measurement takes a step
 * and the direct sums of the rank's particles at those targets; with all three given there is none.
 *
 * The library knows ranks by a communicator that the program fills: gmxfmm_mpi.h makes one of MPI's, gmxfmm_threads_*
 * one of threads.
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

/* Functions return 0, or another number if they failed: then the plan is of no more use than to be destroyed. All ranks
 * call them, one after the other in the same order, from the thread that called the library. */
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

/* As gmxfmm_create, a plan for about num_particles particles on this rank. comm is copied, its context must outlive the
 * plan. Options must be the same on all ranks, but for num_threads and what names a device: ranks may share one. A
 * communicator of one rank is as none. Offered are
 *
 * - the treecode (Vaughn, Wilson & Krasny 2020, section 3.2), on CUDA with results to arrays of the host;
 * - the FMM on CPUs by cells of one level (m2l = fft or auto), in a box that is periodic along all vectors, without
 *   targets and charge derivatives. Each rank computes the results in a range of cells, whose particles and those of
 *   near cells are sent to it, and its part of the convolution; ranges follow the work that ranks were measured to do.
 *   Results have the bits of one rank that has all particles in the order of their numbers. Order and cells that
 * options leave automatic are chosen at the first assign, by the model.
 *
 * Errors: as gmxfmm_create; NULL and OPTION of a communicator that is none, which other ranks do not hear of; COMM. */
GMXFMM_API gmxfmm_status gmxfmm_create_parallel(gmxfmm_plan**         plan,
                                                const gmxfmm_options* options,
                                                const gmxfmm_comm*    comm,
                                                int64_t               num_particles,
                                                const double*         box,
                                                char*                 message,
                                                size_t                message_size);

/* As gmxfmm_create_measured on the ranks of a communicator: collective, each rank with a system of its own particles,
 * as many as it likes, and with *chosen, which may be NULL, the same on all. The treecode is what METHOD_AUTO means.
 * What is automatic is chosen, and the error measured and told, as gmxfmm_assign does here; it is measured whatever is
 * given. Errors: as gmxfmm_create_parallel, gmxfmm_assign and gmxfmm_execute; OPTION: the accuracy asked for is missed.
 */
GMXFMM_API gmxfmm_status gmxfmm_create_parallel_measured(gmxfmm_plan**         plan,
                                                         const gmxfmm_options* options,
                                                         const gmxfmm_comm*    comm,
                                                         const gmxfmm_system*  system,
                                                         gmxfmm_measurement*   chosen,
                                                         char*                 message,
                                                         size_t                message_size);

/* Numbers of this rank's particles in the whole system of an FMM on several ranks, id[n], after set_charges: 0, 1, ...
 * to the number of particles of all ranks less one, each on one rank. Exclusions, which are rows of this rank's
 * particles, name partners by these, on whatever rank they are, and so do messages. Cells have particles in their
 * order. Without ids, or after charges of another number, numbers follow the order of ranks. Collective; assign comes
 * behind it. Errors: NULL; ORDER (before set_charges); UNSUPPORTED (a plan of one rank, or a treecode); MEMORY; COMM;
 * of numbers that are not these assign returns OPTION. */
GMXFMM_API gmxfmm_status gmxfmm_set_ids(gmxfmm_plan* plan, const int* id);

/* What this rank has of a plan's particles, and seconds of all its assignments and steps so far beside those of
 * gmxfmm_info. Waiting for other ranks counts. */
typedef struct gmxfmm_ranks_info
{
    int64_t num_particles, num_targets;  /* whose owner it is */
    int64_t num_imported;                /* particles of others that it meets one by one */
    size_t  bytes_sent, bytes_received;  /* of clusters and particles, each step */
    double  time_bisection, time_travel; /* finding the owners of particles; sending them there, and results back */
    double  time_tree, time_lists;       /* own tree; lists with all trees */
    double  time_exchange;               /* of clusters and particles; on GPUs beside local sums */
    /* Of the FMM: cells whose results the rank computes, messages that it sends in a step, and seconds of steps outside
     * of exchanges and in those of positions, multipoles and locals, spectra, results, and sums over all ranks. */
    int     num_cells;
    int64_t messages;
    double  time_work, time_positions, time_expansions, time_spectra, time_results, time_sums;
    /* On GPUs, of the last assignment: ranks from whose GPUs this one reads, as they from its own: threads of the
     * process, or processes of the same machine by CUDA IPC. The others send by exchange. */
    int         num_reached;
    const char* reached_note; /* why one of the same machine is none of them, until the next assignment; or "" */
} gmxfmm_ranks_info;

/* Not collective. All zero, and no note, for a plan of one rank. Errors: NULL. */
GMXFMM_API gmxfmm_status gmxfmm_get_ranks_info(const gmxfmm_plan* plan, gmxfmm_ranks_info* info);
GMXFMM_API void          gmxfmm_reset_ranks_times(gmxfmm_plan* plan);

/* What threads of a process that are ranks have in common. */
typedef struct gmxfmm_threads gmxfmm_threads;

/* For `size` threads. Errors: NULL, OPTION (size < 1), MEMORY. */
GMXFMM_API gmxfmm_status gmxfmm_threads_create(gmxfmm_threads** threads, int size);

/* The communicator of the thread that is this rank, 0..size-1. Waiting threads sleep, without an end if one of the
 * ranks makes no call any more: a thread that leaves has to take the process with it, as a signal that kills one does.
 * (MPI ends a job of which a rank was killed.) */
GMXFMM_API gmxfmm_comm gmxfmm_threads_comm(gmxfmm_threads* threads, int rank);

/* When all plans of its communicators were destroyed; NULL is allowed. */
GMXFMM_API void gmxfmm_threads_destroy(gmxfmm_threads* threads);

#endif
