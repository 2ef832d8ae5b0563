/* SPDX-License-Identifier: LGPL-2.1-or-later */
/*
 * What lists name, each step, in the order of fmm/treecode/ranks/parcels.c: gathered on the device of the rank that has
 * it, and spread on that of the rank that needs it. Between them it travels by one of three ways: read from the device
 * of the other rank where that can be reached (peers.cu); by a communicator that takes addresses of devices; or by way
 * of the host.
 */
#include <new>
#include <vector>

#include "cuda/treecode/memory.h"
#include "cuda/treecode/ranks/state.h"
#include "cuda/treecode/stages.h"
#include "cuda/treecode/tiles.h"

namespace
{

enum
{
    c_threads  = 128,
    c_box      = 6, /* numbers of a box */
    c_particle = 4  /* and of a particle */
};

__global__ void __launch_bounds__(c_threads) packBoxes(TreecodeTree tree, const int* cluster, int num, double* to)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i < c_box * num)
    {
        const size_t from = 3 * (size_t)cluster[i / c_box];
        const int    d    = i % c_box;
        to[i]             = d < 3 ? tree.low[from + d] : tree.high[from + d - 3];
    }
}

/* A block a cluster. */
__global__ void __launch_bounds__(c_threads) packCharges(const int* cluster, int size, const double* charge, double* to)
{
    const double* from = charge + (size_t)cluster[blockIdx.x] * (size_t)size;
    for (int k = (int)threadIdx.x; k < size; k += c_threads)
    {
        to[(size_t)blockIdx.x * (size_t)size + k] = from[k];
    }
}

/* A block a cluster, whose particles go to place[cluster] and on. */
__global__ void __launch_bounds__(c_threads)
    packParticles(TreecodeTree tree, const int* cluster, const int64_t* place, const double* q, double* to)
{
    const int c = cluster[blockIdx.x], begin = tree.begin[c], count = tree.end[c] - begin;
    double*   first = to + c_particle * place[blockIdx.x];
    for (int k = (int)threadIdx.x; k < count; k += c_threads)
    {
        for (int d = 0; d < 3; d++)
        {
            first[(size_t)c_particle * k + d] = tree.x[d][begin + k];
        }
        first[(size_t)c_particle * k + 3] = q[begin + k];
    }
}

__global__ void __launch_bounds__(c_threads) unpackBoxes(const double* from, int num, double* low, double* high)
{
    const int i = (int)(blockIdx.x * c_threads + threadIdx.x);
    if (i < c_box * num)
    {
        const int c = i / c_box, d = i % c_box;
        (d < 3 ? low : high)[3 * (size_t)c + d % 3] = from[i];
    }
}

__global__ void __launch_bounds__(c_threads)
    unpackParticles(const double* from, int64_t num, double* x, double* y, double* z, double* q)
{
    const int64_t i = (int64_t)blockIdx.x * c_threads + threadIdx.x;
    if (i < num)
    {
        x[i] = from[c_particle * i];
        y[i] = from[c_particle * i + 1];
        z[i] = from[c_particle * i + 2];
        q[i] = from[c_particle * i + 3];
    }
}

/* Pinned memory of the host. */
gmxfmm_status reserveHost(treecode* t, int which, size_t bytes)
{
    treecode_ranks_memory* m = t->ranks->memory;
    if (bytes <= m->host_bytes[which])
    {
        return GMXFMM_OK;
    }
    FMM_CUDA(t, cudaFreeHost(m->host[which]));
    m->host[which]       = nullptr;
    m->host_bytes[which] = 0;
    FMM_CUDA(t, cudaMallocHost(&m->host[which], bytes));
    m->host_bytes[which] = bytes;
    return GMXFMM_OK;
}

/* What ranks that are not reached send or get, start[size + 1] in its array, goes from or to the same place of the
 * host's array: numbers that are next to each other at once. */
gmxfmm_status
copyStaged(treecode* t, const int64_t* start, double* to, const double* from, cudaMemcpyKind kind, cudaStream_t stream)
{
    const treecode_ranks_memory* m   = t->ranks->memory;
    const int                    num = t->ranks->ranks->comm.size;
    for (int i = 0, end = 0; i < num && m->staged; i = end)
    {
        for (end = i + 1; end < num && m->peers[end].reached == m->peers[i].reached;)
        {
            end++;
        }
        const size_t bytes = (size_t)(start[end] - start[i]) * sizeof(double);
        if (!m->peers[i].reached && bytes > 0)
        {
            FMM_CUDA(t, cudaMemcpyAsync(to + start[i], from + start[i], bytes, kind, stream));
        }
    }
    return GMXFMM_OK;
}

/* Where the particles of clusters that are sent whole begin among those of a rank. */
gmxfmm_status uploadGiven(treecode* t)
{
    const treecode_ranks*  r   = t->ranks;
    treecode_ranks_memory* m   = r->memory;
    const int              num = r->ranks->comm.size;
    const size_t           all = (size_t)r->give_start[num];
    std::vector<int64_t>   begin(all);
    for (int i = 0; i < num; i++)
    {
        int64_t sum = 0;
        for (int64_t k = r->give_start[i + 1] - r->give[i].whole; k < r->give_start[i + 1]; k++)
        {
            const size_t c   = (size_t)r->give_cluster[k];
            begin[(size_t)k] = sum;
            sum += t->sources.end[c] - t->sources.begin[c];
        }
    }
    FMM_TRY(treecode_upload(t, &m->cluster, r->give_cluster, all * sizeof(int)));
    FMM_TRY(treecode_upload(t, &m->begin, begin.data(), all * sizeof(int64_t)));
    FMM_CUDA(t, cudaStreamSynchronize(t->device->stream)); /* the host's arrays may go */
    return GMXFMM_OK;
}

gmxfmm_status reserve(treecode* t)
{
    const treecode_ranks*  r = t->ranks;
    treecode_ranks_memory* m = r->memory;
    FMM_TRY(uploadGiven(t));
    FMM_TRY(treecode_grow(t, &m->send, treecode_device_send_bytes(t)));
    return treecode_grow(t, &m->receive, (size_t)r->receive_start[r->ranks->comm.size] * sizeof(double));
}

size_t bytesOf(const treecode_ranks_memory* m)
{
    size_t bytes = m->send.capacity + m->receive.capacity + m->cluster.capacity + m->begin.capacity + m->host_bytes[0] +
                   m->host_bytes[1];
    for (const DeviceLists* l : {&m->lists, &m->point_lists})
    {
        for (const DeviceBuffer* b : {&l->cluster, &l->begin, &l->end, &l->approximated_start, &l->direct_start,
                                      &l->approximated, &l->direct, &l->tile})
        {
            bytes += b->capacity;
        }
    }
    return bytes;
}

/* What rank i needs. */
gmxfmm_status packFor(treecode* t, int i)
{
    const treecode_ranks*        r       = t->ranks;
    const treecode_ranks_memory* m       = r->memory;
    treecode_device*             d       = t->device;
    const TreecodeTree           tree    = d->sources.view();
    const treecode_named*        give    = &r->give[i];
    const int64_t                boxes   = give->points + give->others;
    const size_t                 points  = treecode_cube(t->options.degree);
    const int*                   cluster = m->cluster.as<int>() + r->give_start[i];
    double*                      to      = m->send.as<double>() + r->send_start[i];
    if (boxes > 0)
    {
        packBoxes<<<treecode_blocks(c_box * boxes, c_threads), c_threads, 0, d->stream>>>(tree, cluster, (int)boxes,
                                                                                          to);
        FMM_CUDA(t, cudaGetLastError());
    }
    to += c_box * boxes;
    if (give->points > 0)
    {
        packCharges<<<(unsigned)give->points, c_threads, 0, d->stream>>>(cluster, (int)points, d->charge.as<double>(),
                                                                         to);
        FMM_CUDA(t, cudaGetLastError());
    }
    to += points * (size_t)give->points;
    if (give->whole > 0)
    {
        packParticles<<<(unsigned)give->whole, c_threads, 0, d->stream>>>(
            tree, cluster + boxes, m->begin.as<int64_t>() + r->give_start[i] + boxes, d->sorted_q.as<double>(), to);
        FMM_CUDA(t, cudaGetLastError());
    }
    return GMXFMM_OK;
}

/* What came of rank i; points_before, others_before: clusters of lower ranks. */
gmxfmm_status unpackOf(treecode* t, int i, int64_t points_before, int64_t others_before)
{
    const treecode_ranks*        r        = t->ranks;
    const treecode_ranks_memory* m        = r->memory;
    treecode_device*             d        = t->device;
    const treecode_named*        take     = &r->take[i];
    const size_t                 points   = treecode_cube(t->options.degree);
    const size_t                 first[2] = {(size_t)(d->sources.num + points_before),
                                             (size_t)(d->sources.num + t->num_points + others_before)};
    const int64_t                boxes[2] = {take->points, take->others};
    const double*                from     = m->receive.as<double>() + r->receive_start[i];
    const int64_t                num      = r->particles_start[i + 1] - r->particles_start[i];
    const size_t                 at       = (size_t)(t->n + r->particles_start[i]);
    for (int k = 0; k < 2; k++)
    {
        if (boxes[k] > 0)
        {
            unpackBoxes<<<treecode_blocks(c_box * boxes[k], c_threads), c_threads, 0, m->stream>>>(
                from, (int)boxes[k], d->sources.low.as<double>() + 3 * first[k],
                d->sources.high.as<double>() + 3 * first[k]);
            FMM_CUDA(t, cudaGetLastError());
        }
        from += c_box * boxes[k];
    }
    if (take->points > 0)
    {
        FMM_CUDA(t,
                 cudaMemcpyAsync(d->charge.as<double>() + first[0] * points, from,
                                 (size_t)take->points * points * sizeof(double), cudaMemcpyDeviceToDevice, m->stream));
    }
    from += (size_t)take->points * points;
    if (num > 0)
    {
        unpackParticles<<<treecode_blocks(num, c_threads), c_threads, 0, m->stream>>>(
            from, num, d->sources.x[0].as<double>() + at, d->sources.x[1].as<double>() + at,
            d->sources.x[2].as<double>() + at, d->sorted_q.as<double>() + at);
        FMM_CUDA(t, cudaGetLastError());
    }
    return GMXFMM_OK;
}

} // namespace

gmxfmm_status treecode_device_reserve_parcels(treecode* t)
{
    DeviceScope scope(t->options.device_id);
    try
    {
        return reserve(t);
    }
    catch (const std::bad_alloc&)
    {
        return treecode_no_memory(t);
    }
}

gmxfmm_status treecode_device_reserve_staging(treecode* t)
{
    treecode_ranks*        r   = t->ranks;
    treecode_ranks_memory* m   = r->memory;
    const int              num = r->ranks->comm.size;
    DeviceScope            scope(t->options.device_id);
    if (m->staged)
    {
        FMM_TRY(reserveHost(t, 0, (size_t)r->send_start[num] * sizeof(double)));
        FMM_TRY(reserveHost(t, 1, (size_t)r->receive_start[num] * sizeof(double)));
    }
    r->bytes = bytesOf(m);
    return GMXFMM_OK;
}

gmxfmm_status treecode_device_pack(treecode* t)
{
    const treecode_ranks*  r = t->ranks;
    treecode_ranks_memory* m = r->memory;
    DeviceScope            scope(t->options.device_id);
    for (int i = 0; i < r->ranks->comm.size; i++)
    {
        FMM_TRY(packFor(t, i));
    }
    return copyStaged(t, r->send_start, static_cast<double*>(m->host[0]), m->send.as<double>(), cudaMemcpyDeviceToHost,
                      t->device->stream);
}

gmxfmm_status treecode_device_exchange(treecode* t)
{
    const treecode_ranks*  r       = t->ranks;
    treecode_ranks_memory* m       = r->memory;
    const gmxfmm_comm*     comm    = &r->ranks->comm;
    const double*          send    = m->staged ? static_cast<const double*>(m->host[0]) : m->send.as<double>();
    double*                receive = m->staged ? static_cast<double*>(m->host[1]) : m->receive.as<double>();
    int                    num     = 0;
    for (int i = 0; i < comm->size; i++)
    {
        const size_t sent     = (size_t)(r->send_start[i + 1] - r->send_start[i]) * sizeof(double);
        const size_t received = (size_t)(r->receive_start[i + 1] - r->receive_start[i]) * sizeof(double);
        if (i == comm->rank || sent + received == 0)
        {
            continue;
        }
        /* a word to and from each rank that is reached: what that sends is ready once it has come */
        r->ranks->parcels[num++] =
            m->peers[i].reached
                ? gmxfmm_parcel{i, &m->word, sizeof(m->word), &m->words[i], sizeof(m->words[i])}
                : gmxfmm_parcel{i, send + r->send_start[i], sent, receive + r->receive_start[i], received};
    }
    return fmm_ranks_send_parcels(r->ranks, num);
}

gmxfmm_status treecode_device_unpack(treecode* t)
{
    const treecode_ranks*  r      = t->ranks;
    treecode_ranks_memory* m      = r->memory;
    int64_t                points = 0, others = 0;
    DeviceScope            scope(t->options.device_id);
    FMM_TRY(treecode_device_read_peers(t));
    FMM_TRY(copyStaged(t, r->receive_start, m->receive.as<double>(), static_cast<const double*>(m->host[1]),
                       cudaMemcpyHostToDevice, m->stream));
    for (int i = 0; i < r->ranks->comm.size; i++)
    {
        FMM_TRY(unpackOf(t, i, points, others));
        points += r->take[i].points;
        others += r->take[i].others;
    }
    FMM_CUDA(t, cudaEventRecord(m->come, m->stream));
    return GMXFMM_OK;
}
