/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * The functions of CUDA's row in the table of backends (backend.c, fmm/backend.h). All return a status and leave the
 * cause in the plan's message.
 */
#ifndef FMM_DEVICE_H
#define FMM_DEVICE_H

#include "fmm/gmxfmm.h"

#ifdef __cplusplus
extern "C"
{
#endif

    /* Whether device number id can be used, otherwise the cause in message. Errors: DEVICE (none there, too old). */
    gmxfmm_status fmm_device_check(int id, char* message, size_t size);

    /* Streams, events and the memory that depends on options alone, on a device that was checked. Errors: DEVICE,
     * MEMORY. */
    gmxfmm_status fmm_device_create(gmxfmm_plan* plan);
    void          fmm_device_destroy(gmxfmm_plan* plan);

    /* The charges of the plan, and room for its particles. */
    gmxfmm_status fmm_device_set_charges(gmxfmm_plan* plan);

    /* Room for dipoles, or none of them any more; the dipoles of the plan. Errors: UNSUPPORTED (several devices). */
    gmxfmm_status fmm_device_set_dipoles(gmxfmm_plan* plan);
    gmxfmm_status fmm_device_take_dipoles(gmxfmm_plan* plan);

    /* Places of the plan's targets, x on the host or the device, and room for them. */
    gmxfmm_status fmm_device_set_targets(gmxfmm_plan* plan, const void* x);

    /* The list of excluded pairs, start[n + 1] and list, checked; both NULL if there are none. */
    gmxfmm_status fmm_device_set_exclusions(gmxfmm_plan* plan, const int* start, const int* list, int64_t n);

    /* The derivatives of charges of the plan. */
    gmxfmm_status fmm_device_set_charge_derivatives(gmxfmm_plan* plan);

    /* Arrays of cells and frequencies, and transforms, for the plan's grid; or operators of the octree, and those for
     * the grid of roots. */
    gmxfmm_status fmm_device_set_grid(gmxfmm_plan* plan);

    /* What lattice sums need for the present shape; spectra are computed by the next step. */
    gmxfmm_status fmm_device_set_shape(gmxfmm_plan* plan);

    /* Whether captured graphs will have the new box, too, which then is enqueued on the caller's stream, with its
     * interpolated spectra, or spectra begin to be computed. Errors: DEVICE. */
    gmxfmm_status fmm_device_graphs_follow(gmxfmm_plan* plan, void* stream, int* follow);
    gmxfmm_status fmm_device_enqueue_box(gmxfmm_plan* plan, void* stream);

    /* If *x, num numbers of the array type, is on a device, copies it to memory of the plan on the host, valid until
     * the next call, and makes *x its address. */
    gmxfmm_status fmm_device_on_host(gmxfmm_plan* plan, const void** x, size_t num);

    /* Widens low..high by particles, at *x, and targets. *x, on the host or a device, becomes an address on the plan's
     * device, which assign need not copy. Errors: POSITION, MEMORY, DEVICE. */
    gmxfmm_status fmm_device_extent(gmxfmm_plan* plan, const void** x, double* low, double* high);

    /* Sorts particles into cells; x on the host or a device. Errors: POSITION, MEMORY, DEVICE. */
    gmxfmm_status fmm_device_assign(gmxfmm_plan* plan, const void* x);

    /* The same on the caller's stream, without waiting but where cells_hold does; x on the plan's device. Errors:
     * ORDER, UNSUPPORTED (a slab), DEVICE. */
    gmxfmm_status fmm_device_enqueue_assign(gmxfmm_plan* plan, const void* x, void* stream);
    int           fmm_device_cells_hold(const gmxfmm_plan* plan);

    /* The same in parts, into arrays of its own until the last. Errors: as there, MEMORY. */
    gmxfmm_status
    fmm_device_enqueue_assign_part(gmxfmm_plan* plan, gmxfmm_assign_part part, const void* x, void* stream);

    /* One step with arrays of the host, synchronous. */
    gmxfmm_status fmm_device_execute(gmxfmm_plan* plan, const void* x, gmxfmm_output* output);
    gmxfmm_status fmm_device_time_steps(gmxfmm_plan* plan, const void* x, int num, double* seconds);

    /* As gmxfmm_time_stages, and gmxfmm_enqueue_charges, checked. */
    gmxfmm_status fmm_device_time_stages(
        gmxfmm_plan* plan, const void* x, unsigned stages, int repeats, void* stream, double* seconds);
    gmxfmm_status
    fmm_device_enqueue_charges(gmxfmm_plan* plan, int64_t count, const int* index, const void* q, void* stream);

    /* As gmxfmm_set_first_share, checked but for devices that are left out. Errors: UNSUPPORTED. */
    gmxfmm_status fmm_device_set_first_share(gmxfmm_plan* plan, double share);

    /* One step with arrays of the device, on the caller's stream. */
    gmxfmm_status
    fmm_device_enqueue(gmxfmm_plan* plan, const void* x, const gmxfmm_device_output* output, void* stream);

    /* Both steps of derivatives along a way, checked, and what is made of them. Errors: UNSUPPORTED (several devices),
     * ORDER, MEMORY, DEVICE. */
    gmxfmm_status
    fmm_device_enqueue_along(gmxfmm_plan* plan, const void* x, const gmxfmm_device_along* along, void* stream);

    /* Whether one device has all of the plan. */
    int fmm_device_has_one(const gmxfmm_plan* plan);

    /* Leaves of an octree; devices, and their shares of the near field. */
    void fmm_device_get_info(const gmxfmm_plan* plan, gmxfmm_info* info);

#ifdef __cplusplus
}
#endif

#endif
