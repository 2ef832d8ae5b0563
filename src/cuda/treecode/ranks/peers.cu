/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * How ranks of one machine read from each other's devices what is theirs. Threads of a process know each other's memory
 * as it is; another process gets a handle of it (CUDA IPC), which it opens once. A number that each has written into
 * its memory tells whether a handle led there. Two ranks of which one cannot read from the other's device send each
 * other numbers by the communicator.
 */
#include <cstdio>
#include <cstring>

#include <unistd.h>

#include "cuda/treecode/memory.h"
#include "cuda/treecode/ranks/state.h"
extern "C"
{
#include "fmm/parallel/host.h"
}

namespace
{

enum
{
    c_block   = 2 << 20, /* bytes: smaller memory shares a block, which a handle is of, with other memory */
    c_headway = 8        /* memory that others have open grows by this part of it more, so that it seldom has to */
};

/* Copies between this device and another one need not go by way of the host where the machine can do without. */
void allowAccess(int own, int other)
{
    int can = 0;
    if (own != other && cudaDeviceCanAccessPeer(&can, own, other) == cudaSuccess && can != 0)
    {
        (void)cudaDeviceEnablePeerAccess(other, 0); /* fails if it was allowed before */
    }
    (void)cudaGetLastError();
}

/* Ranks that may be processes of one machine show each other handles. */
bool showsHandles(const treecode* t)
{
    return !t->ranks->memory->threads && !t->ranks->ranks->comm.device_memory;
}

/* The first reason why a rank of this machine is out of reach stays. */
void note(treecode* t, const char* format, int rank, const char* reason)
{
    char* to = t->ranks->note;
    if (to[0] == '\0')
    {
        snprintf(to, sizeof(t->ranks->note), format, rank, reason);
    }
}

void closePeer(treecode* t, int i)
{
    TreecodePeer* peer = &t->ranks->memory->peers[i];
    if (peer->opened != nullptr)
    {
        (void)cudaIpcCloseMemHandle(peer->opened);
        (void)cudaGetLastError();
    }
    peer->opened = nullptr;
    peer->mark   = 0;
}

/* The handle of the memory to send from, and the mark in it. Not shown: it says why. */
void makeHandle(treecode* t)
{
    treecode_ranks_memory* m     = t->ranks->memory;
    TreecodeShown*         own   = &m->own;
    const uint64_t         rank  = (uint64_t)t->ranks->ranks->comm.rank + 1;
    const uint64_t         mark  = rank << 48 | (uint64_t)(++m->num_marks & 0xffff) << 32 | (uint32_t)own->process;
    cudaError_t            error = cudaIpcGetMemHandle(&own->handle, m->send.memory);
    if (error == cudaSuccess)
    {
        error = cudaMemcpyAsync(m->send.memory, &mark, sizeof(mark), cudaMemcpyHostToDevice, m->stream);
    }
    if (error == cudaSuccess)
    {
        error = cudaStreamSynchronize(m->stream);
    }
    own->mark = error == cudaSuccess ? mark : 0;
    if (error != cudaSuccess)
    {
        (void)cudaGetLastError();
        note(t, "rank %d cannot show others its memory: %s", t->ranks->ranks->comm.rank, cudaGetErrorString(error));
    }
}

/* Whether that is a process of this machine. Threads behind a communicator of the program's own are one, which cannot
 * open its own handles. */
bool isNeighbour(const treecode_ranks_memory* m, int i)
{
    const TreecodeShown* other = &m->shown[i];
    return m->own.host[0] != '\0' && strncmp(m->own.host, other->host, sizeof(other->host)) == 0 &&
           m->own.process != other->process;
}

/* Whether memory that a neighbour shows is open. */
bool openPeer(treecode* t, int i)
{
    treecode_ranks_memory* m     = t->ranks->memory;
    const TreecodeShown*   shown = &m->shown[i];
    TreecodePeer*          peer  = &m->peers[i];
    uint64_t               seen  = 0;
    if (shown->mark == 0)
    {
        note(t, "rank %d shows no memory%s", i, "");
        return false;
    }
    if (peer->mark == shown->mark)
    {
        return true;
    }
    closePeer(t, i);
    cudaError_t error = cudaIpcOpenMemHandle(&peer->opened, shown->handle, cudaIpcMemLazyEnablePeerAccess);
    if (error != cudaSuccess)
    {
        peer->opened = nullptr;
    }
    else
    {
        error = cudaMemcpyAsync(&seen, peer->opened, sizeof(seen), cudaMemcpyDefault, m->stream);
        error = error == cudaSuccess ? cudaStreamSynchronize(m->stream) : error;
    }
    if (error != cudaSuccess || seen != shown->mark)
    {
        (void)cudaGetLastError();
        note(t, "memory of rank %d is out of reach: %s", i,
             error != cudaSuccess ? cudaGetErrorString(error) : "other numbers are there");
        closePeer(t, i);
        return false;
    }
    peer->mark = shown->mark;
    return true;
}

/* Whether this rank can read from the device of rank i. */
bool reaches(treecode* t, int i)
{
    treecode_ranks_memory* m    = t->ranks->memory;
    TreecodePeer*          peer = &m->peers[i];
    if (m->threads)
    {
        allowAccess(t->options.device_id, m->shown[i].device);
        peer->send = m->shown[i].send;
        return true;
    }
    const bool reached = isNeighbour(m, i) && openPeer(t, i);
    peer->send         = reached ? peer->opened : nullptr;
    return reached;
}

} // namespace

size_t treecode_device_send_bytes(const treecode* t)
{
    const treecode_ranks* r     = t->ranks;
    const size_t          bytes = (size_t)r->send_start[r->ranks->comm.size] * sizeof(double);
    const size_t          room  = r->memory->send.capacity;
    if (!showsHandles(t) || (bytes <= room && room > 0))
    {
        return bytes;
    }
    const size_t more = bytes + bytes / c_headway;
    return more > (size_t)c_block ? more : (size_t)c_block;
}

gmxfmm_status treecode_device_leave_peers(treecode* t)
{
    treecode_ranks_memory* m    = t->ranks->memory;
    const gmxfmm_comm*     comm = &t->ranks->ranks->comm;
    bool                   any  = false;
    if (!showsHandles(t))
    {
        return GMXFMM_OK;
    }
    const char  grows = treecode_device_send_bytes(t) > m->send.capacity;
    DeviceScope scope(t->options.device_id);
    FMM_TRY(fmm_ranks_all_gather(comm, &grows, sizeof(grows), m->words));
    for (int i = 0; i < comm->size; i++)
    {
        if (m->words[i] != 0)
        {
            closePeer(t, i);
            any = true;
        }
    }
    m->own.mark = grows ? 0 : m->own.mark;
    /* memory that another rank has open must not be freed */
    return any ? fmm_ranks_all_gather(comm, &grows, sizeof(grows), m->words) : GMXFMM_OK;
}

gmxfmm_status treecode_device_meet_peers(treecode* t)
{
    treecode_ranks*        r    = t->ranks;
    treecode_ranks_memory* m    = r->memory;
    const gmxfmm_comm*     comm = &r->ranks->comm;
    r->num_reached              = 0;
    r->note[0]                  = '\0';
    m->staged                   = showsHandles(t);
    if (!m->threads && comm->device_memory)
    {
        return GMXFMM_OK;
    }
    DeviceScope scope(t->options.device_id);
    m->own.send   = m->send.memory;
    m->own.device = t->options.device_id;
    if (showsHandles(t) && m->own.mark == 0)
    {
        m->own.process = (int)getpid();
        fmm_ranks_host(m->own.host, sizeof(m->own.host));
        makeHandle(t);
    }
    FMM_TRY(fmm_ranks_all_gather(comm, &m->own, sizeof(m->own), m->shown));
    for (int i = 0; i < comm->size; i++)
    {
        m->offsets[i] = i != comm->rank && reaches(t, i) ? r->send_start[i] : -1;
    }
    FMM_TRY(fmm_ranks_one_each(r->ranks, sizeof(int64_t), m->offsets, m->peer_offsets));
    m->staged = false;
    for (int i = 0; i < comm->size; i++)
    {
        TreecodePeer* peer = &m->peers[i];
        if (m->offsets[i] >= 0 && m->peer_offsets[i] < 0)
        {
            note(t, "this rank's memory is out of reach for rank %d%s", i, "");
        }
        peer->reached = m->offsets[i] >= 0 && m->peer_offsets[i] >= 0;
        peer->send    = peer->reached ? static_cast<const double*>(peer->send) + m->peer_offsets[i] : nullptr;
        r->num_reached += peer->reached;
        m->staged = m->staged || (i != comm->rank && !peer->reached);
    }
    return GMXFMM_OK;
}

void treecode_device_forget_peers(treecode* t)
{
    for (int i = 0; i < t->ranks->ranks->comm.size; i++)
    {
        closePeer(t, i);
    }
}

gmxfmm_status treecode_device_read_peers(treecode* t)
{
    const treecode_ranks*        r = t->ranks;
    const treecode_ranks_memory* m = r->memory;
    for (int i = 0; i < r->ranks->comm.size; i++)
    {
        const TreecodePeer* peer  = &m->peers[i];
        const size_t        bytes = (size_t)(r->receive_start[i + 1] - r->receive_start[i]) * sizeof(double);
        double*             to    = m->receive.as<double>() + r->receive_start[i];
        if (!peer->reached || bytes == 0)
        {
            continue;
        }
        if (m->threads)
        {
            FMM_CUDA(t,
                     cudaMemcpyPeerAsync(to, t->options.device_id, peer->send, m->shown[i].device, bytes, m->stream));
        }
        else
        {
            FMM_CUDA(t, cudaMemcpyAsync(to, peer->send, bytes, cudaMemcpyDefault, m->stream));
        }
    }
    return GMXFMM_OK;
}
