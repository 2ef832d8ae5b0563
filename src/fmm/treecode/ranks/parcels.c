/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* What lists name, each step: boxes of clusters, modified charges, particles. A rank sends another one array of
 * numbers: low and high of all clusters; charges of those with points; x, y, z, q of particles. */
#include <stdlib.h>
#include <string.h>

#include "fmm/treecode/ranks/state.h"

enum
{
    c_box      = 6, /* numbers of a box */
    c_particle = 4  /* and of a particle */
};

static int64_t points_of(const treecode* t)
{
    const int64_t edge = t->options.degree + 1;
    return edge * edge * edge;
}

/* The numbers that go with so many clusters. */
static int64_t numbers(const treecode* t, const treecode_named* named, int64_t particles)
{
    return c_box * (named->points + named->others) + points_of(t) * named->points + c_particle * particles;
}

int64_t treecode_ranks_particles_for(const treecode* t, int i)
{
    const treecode_ranks* r     = t->ranks;
    const int*            whole = r->give_cluster + r->give_start[i] + r->give[i].points + r->give[i].others;
    int64_t               sum   = 0;
    for (int64_t k = 0; k < r->give[i].whole; k++)
    {
        sum += t->sources.end[whole[k]] - t->sources.begin[whole[k]];
    }
    return sum;
}

void treecode_ranks_count(treecode* t)
{
    treecode_ranks* r = t->ranks;
    for (int i = 0; i < r->ranks->comm.size; i++)
    {
        r->send_start[i + 1] = r->send_start[i] + numbers(t, &r->give[i], treecode_ranks_particles_for(t, i));
        r->receive_start[i + 1] =
            r->receive_start[i] + numbers(t, &r->take[i], r->particles_start[i + 1] - r->particles_start[i]);
    }
}

gmxfmm_status treecode_ranks_reserve(treecode* t)
{
    treecode_ranks* r   = t->ranks;
    const int       num = r->ranks->comm.size;
    treecode_ranks_count(t);
    const size_t sent = (size_t)r->send_start[num], received = (size_t)r->receive_start[num];
    r->send    = malloc((sent + 1) * sizeof(double));
    r->receive = malloc((received + 1) * sizeof(double));
    r->bytes   = (sent + received) * sizeof(double) + (size_t)(r->take_start[num] + r->give_start[num]) * sizeof(int) +
               (size_t)t->imported * (3 * sizeof(double) + sizeof(int64_t));
    return r->send != NULL && r->receive != NULL ? GMXFMM_OK : treecode_no_memory(t);
}

static void pack(const treecode* t, int i)
{
    const treecode_ranks*    r       = t->ranks;
    const treecode_clusters* s       = &t->sources;
    const int*               cluster = r->give_cluster + r->give_start[i];
    const int64_t            boxes = r->give[i].points + r->give[i].others, all = boxes + r->give[i].whole;
    const size_t             points = (size_t)points_of(t);
    double*                  to     = r->send + r->send_start[i];
    for (int64_t k = 0; k < boxes; k++, to += c_box)
    {
        memcpy(to, s->low + 3 * (size_t)cluster[k], 3 * sizeof(double));
        memcpy(to + 3, s->high + 3 * (size_t)cluster[k], 3 * sizeof(double));
    }
    for (int64_t k = 0; k < r->give[i].points; k++, to += points)
    {
        memcpy(to, t->charge + (size_t)cluster[k] * points, points * sizeof(double));
    }
    for (int64_t k = boxes; k < all; k++)
    {
        for (int64_t p = s->begin[cluster[k]]; p < s->end[cluster[k]]; p++, to += c_particle)
        {
            to[0] = s->x[0][p];
            to[1] = s->x[1][p];
            to[2] = s->x[2][p];
            to[3] = t->sorted_q[p];
        }
    }
}

/* points_before, others_before: clusters of lower ranks. */
static void unpack(treecode* t, int i, int64_t points_before, int64_t others_before)
{
    const treecode_ranks* r      = t->ranks;
    treecode_clusters*    s      = &t->sources;
    const size_t          points = (size_t)points_of(t);
    const size_t  first = (size_t)(s->num + points_before), other = (size_t)(s->num + t->num_points + others_before);
    const double* from = r->receive + r->receive_start[i];
    for (int64_t k = 0; k < r->take[i].points + r->take[i].others; k++, from += c_box)
    {
        const size_t c = k < r->take[i].points ? first + (size_t)k : other + (size_t)(k - r->take[i].points);
        memcpy(s->low + 3 * c, from, 3 * sizeof(double));
        memcpy(s->high + 3 * c, from + 3, 3 * sizeof(double));
    }
    memcpy(t->charge + first * points, from, (size_t)r->take[i].points * points * sizeof(double));
    from += (size_t)r->take[i].points * points;
    for (int64_t p = t->n + r->particles_start[i]; p < t->n + r->particles_start[i + 1]; p++, from += c_particle)
    {
        s->x[0][p]     = from[0];
        s->x[1][p]     = from[1];
        s->x[2][p]     = from[2];
        t->sorted_q[p] = from[3];
        t->uncharged |= from[3] == 0;
    }
}

gmxfmm_status treecode_ranks_exchange(treecode* t)
{
    treecode_ranks* r   = t->ranks;
    const int       num = r->ranks->comm.size;
#pragma omp parallel for schedule(dynamic) num_threads(t->options.num_threads)
    for (int i = 0; i < num; i++)
    {
        pack(t, i);
    }
    const gmxfmm_status status =
        fmm_ranks_some_each(r->ranks, sizeof(double), r->send, r->send_start, r->receive, r->receive_start);
    int64_t points = 0, others = 0;
    for (int i = 0; i < num && status == GMXFMM_OK; i++)
    {
        unpack(t, i, points, others);
        points += r->take[i].points;
        others += r->take[i].others;
    }
    return status;
}
