/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What a rank keeps on its device beside what one rank alone has: what other ranks' trees have for it stands behind the
 * own clusters and particles (fmm/treecode/ranks/state.h), and lists of the own batches with that are lists of their
 * own. So local sums run while numbers of others are on their way, and those of remote lists are added to them.
 */
#ifndef CUDA_TREECODE_RANKS_STATE_H
#define CUDA_TREECODE_RANKS_STATE_H

extern "C"
{
#include "fmm/treecode/ranks/state.h"
}
#include "cuda/treecode/state.h"

/* What ranks show each other of their devices. */
struct TreecodeShown
{
    const void*        send; /* on this device, for threads of the process */
    int                device, process;
    char               host[128]; /* see fmm_ranks_host */
    uint64_t           mark;      /* stands in `send` when it is shown, another one for other memory; 0: no handle */
    cudaIpcMemHandle_t handle;    /* of it, for other processes */
};

/* How this rank reads what another one has for it. */
struct TreecodePeer
{
    bool        reached; /* each of the two reads from the other's device */
    const void* send;    /* its numbers for this rank */
    void*       opened;  /* its memory, by the handle with that mark */
    uint64_t    mark;
};

struct treecode_ranks_memory
{
    DeviceLists    lists, point_lists; /* with clusters of others */
    DeviceBuffer   cluster, begin;     /* give_cluster; of those that are sent whole, the first of their particles */
    DeviceBuffer   send, receive;      /* numbers of a step */
    void*          host[2]       = {}; /* the same on the host, pinned, if they travel by way of it */
    size_t         host_bytes[2] = {0, 0};  /* room */
    cudaStream_t   stream        = nullptr; /* of what comes, beside local sums */
    cudaEvent_t    come          = nullptr;
    bool           threads       = false; /* ranks are threads of a process */
    bool           staged        = false; /* numbers of some ranks travel by way of the host */
    TreecodeShown  own           = {};
    TreecodeShown* shown         = nullptr;                    /* size */
    TreecodePeer*  peers         = nullptr;                    /* size */
    int64_t *      offsets = nullptr, *peer_offsets = nullptr; /* size: where numbers for a peer are, and its for me */
    char           word      = 0;
    char*          words     = nullptr; /* size: of ranks that meet */
    unsigned       num_marks = 0;
    gmxfmm_status  failed    = GMXFMM_OK; /* of a step, while all ranks go on to send each other what they expect */
};

/* essential.cu: see treecode_ranks_device. */
gmxfmm_status treecode_device_take_named(treecode* t);

/* parcels.cu: memory for a step on the device; and on the host, for what is staged. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_device_reserve_parcels(treecode* t);
gmxfmm_status treecode_device_reserve_staging(treecode* t);
/* What others need, made ready on the device's stream. Errors: DEVICE. */
gmxfmm_status treecode_device_pack(treecode* t);
/* Sends and receives it once it is ready; what came is, on m->stream, on its way into d->sources, and m->come behind
 * it. exchange is collective and fails with COMM alone. Errors: DEVICE. */
gmxfmm_status treecode_device_exchange(treecode* t);
gmxfmm_status treecode_device_unpack(treecode* t);

/* peers.cu: how large m->send has to be; before it grows, others close it; then where each rank has what it sends, and
 * access to it, without which m->staged. The last two are collective. Errors: COMM. */
size_t        treecode_device_send_bytes(const treecode* t);
gmxfmm_status treecode_device_leave_peers(treecode* t);
gmxfmm_status treecode_device_meet_peers(treecode* t);
/* Closes what this rank has open. Not collective, as destroying a plan is not: a rank may free memory that another one
 * still has open, but does not read any more. */
void treecode_device_forget_peers(treecode* t);
/* What ranks that are reached have for this one, on m->stream. Errors: DEVICE. */
gmxfmm_status treecode_device_read_peers(treecode* t);

#endif
