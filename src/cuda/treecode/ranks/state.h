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

/* What ranks that are threads of a process show each other. */
struct TreecodePeer
{
    const void* send; /* on its device */
    int         device;
};

struct treecode_ranks_memory
{
    DeviceLists   lists, point_lists;     /* with clusters of others */
    DeviceBuffer  cluster, begin;         /* give_cluster; of those that are sent whole, the first of their particles */
    DeviceBuffer  send, receive;          /* numbers of a step */
    void*         host[2]       = {};     /* the same on the host, pinned, if they travel by way of it */
    size_t        host_bytes[2] = {0, 0}; /* room */
    cudaStream_t  stream        = nullptr; /* of what comes, beside local sums */
    cudaEvent_t   come          = nullptr;
    bool          threads       = false;   /* ranks are threads: they read from each other's devices */
    TreecodePeer* peers         = nullptr; /* of threads: size */
    int64_t *     offsets = nullptr, *peer_offsets = nullptr; /* size: where numbers for a peer are, and its for me */
    char*         peer_here = nullptr;                        /* size: of a call in which all meet */
    gmxfmm_status failed    = GMXFMM_OK; /* of a step, while all ranks go on to send each other what they expect */
};

/* essential.cu: see treecode_ranks_device. */
gmxfmm_status treecode_device_take_named(treecode* t);

/* parcels.cu: memory for a step. Errors: MEMORY, DEVICE. */
gmxfmm_status treecode_device_reserve_parcels(treecode* t);
/* Where ranks that are threads have what they send, and access to it. Collective. Errors: COMM. */
gmxfmm_status treecode_device_meet_peers(treecode* t);
/* What others need, made ready on the device's stream. Errors: DEVICE. */
gmxfmm_status treecode_device_pack(treecode* t);
/* Sends and receives it once it is ready; what came is, on m->stream, on its way into d->sources, and m->come behind
 * it. exchange is collective and fails with COMM alone. Errors: DEVICE. */
gmxfmm_status treecode_device_exchange(treecode* t);
gmxfmm_status treecode_device_unpack(treecode* t);

#endif
