/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Positions, boxes and results between the caller's axes and the plan's. */
#include "fmm/frame.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "fmm/math/strain.h"
#include "fmm/memory.h"
#include "fmm/numbers.h"
#include "fmm/status.h"

static double dot(const double* a, const double* b)
{
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2];
}

static void cross(const double* a, const double* b, double* c)
{
    for (int d = 0; d < 3; d++)
    {
        c[d] = a[(d + 1) % 3] * b[(d + 2) % 3] - a[(d + 2) % 3] * b[(d + 1) % 3];
    }
}

/* The axis whose component of n is largest. */
static int longest_axis(const double* n)
{
    const int first = fabs(n[1]) > fabs(n[0]) ? 1 : 0;
    return fabs(n[2]) > fabs(n[first]) ? 2 : first;
}

/* Axes with z along n, x as near as can be to the next of the caller's: they turn as n does, and are the caller's in
 * another order where n is along one of these. */
static void set_axes(const double* n, double* axes)
{
    const int z = longest_axis(n), next = (z + 1) % 3;
    memset(axes, 0, 9 * sizeof(*axes));
    if (n[next] == 0 && n[(z + 2) % 3] == 0)
    {
        for (int d = 0; d < 3; d++)
        {
            axes[3 * d + (z + 1 + d) % 3] = 1;
        }
        return;
    }
    double x[3];
    for (int d = 0; d < 3; d++)
    {
        x[d]        = (d == next ? 1 : 0) - n[next] * n[d] / dot(n, n);
        axes[6 + d] = n[d] / sqrt(dot(n, n));
    }
    for (int d = 0; d < 3; d++)
    {
        axes[d] = x[d] / sqrt(dot(x, x));
    }
    cross(axes + 6, axes, axes + 3);
}

/* z along the one periodic vector. */
static void set_wire(fmm_frame* frame, const int* periodic, const double* box, double* own)
{
    const int along = periodic[0] ? 0 : periodic[1] ? 1 : 2;
    double    n[3];
    for (int d = 0; d < 3; d++)
    {
        frame->order[d] = (along + 1 + d) % 3;
        n[d]            = box[3 * along + d];
    }
    const int longest = longest_axis(n);
    for (int d = 0; d < 3; d++)
    {
        n[d] = box[3 * along + longest] < 0 ? -box[3 * along + d] : box[3 * along + d];
    }
    set_axes(n, frame->axes);
    frame->turned = frame->axes[0] != 1 || frame->axes[4] != 1;
    memset(own, 0, 9 * sizeof(*own));
    own[0] = own[4] = own[8] = sqrt(dot(n, n));
}

fmm_frame fmm_frame_of(const int* periodic, const double* box, double* own)
{
    fmm_frame frame = {.order = {0, 1, 2}, .axes = {1, 0, 0, 0, 1, 0, 0, 0, 1}};
    double    n[3];
    memcpy(own, box, 9 * sizeof(*own));
    if (fmm_is_wire(periodic))
    {
        set_wire(&frame, periodic, box, own);
    }
    if (!fmm_is_slab(periodic))
    {
        return frame;
    }
    const int open = !periodic[0] ? 0 : !periodic[1] ? 1 : 2;
    for (int d = 0; d < 3; d++)
    {
        frame.order[d] = (open + 1 + d) % 3;
    }
    cross(box + 3 * frame.order[0], box + 3 * frame.order[1], n);
    if (n[longest_axis(n)] < 0)
    {
        const int first = frame.order[0];
        frame.order[0]  = frame.order[1];
        frame.order[1]  = first;
        n[0]            = -n[0];
        n[1]            = -n[1];
        n[2]            = -n[2];
    }
    set_axes(n, frame.axes);
    frame.turned = frame.axes[0] != 1 || frame.axes[4] != 1;
    for (int i = 0; i < 6; i++)
    {
        own[i] = i % 3 == 2 ? 0 : dot(box + 3 * frame.order[i / 3], frame.axes + 3 * (i % 3));
    }
    frame.height = fabs(dot(box + 3 * open, frame.axes + 6));
    own[6] = own[7] = 0;
    own[8]          = sqrt(own[0] * own[4] - own[1] * own[3]);
    return frame;
}

/* Components of a vector along the rows of axes, or with back = 1 the sum of rows with these components. */
static void turn(const double* axes, int back, const double* from, double* to)
{
    for (int d = 0; d < 3; d++)
    {
        to[d] = back ? from[0] * axes[d] + from[1] * axes[3 + d] + from[2] * axes[6 + d] : dot(axes + 3 * d, from);
    }
}

static void turn_arrays(const gmxfmm_plan* plan,
                        const double*      axes,
                        gmxfmm_precision   type,
                        int                back,
                        const void*        from,
                        void*              to,
                        size_t             num)
{
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (size_t i = 0; i < num; i++)
    {
        double x[3], y[3];
        for (size_t d = 0; d < 3; d++)
        {
            x[d] = fmm_number_of(from, type, (int64_t)(3 * i + d));
        }
        turn(axes, back, x, y);
        for (size_t d = 0; d < 3 && type == GMXFMM_DOUBLE; d++)
        {
            ((double*)to)[3 * i + d] = y[d];
        }
        for (size_t d = 0; d < 3 && type == GMXFMM_SINGLE; d++)
        {
            ((float*)to)[3 * i + d] = (float)y[d];
        }
    }
}

/* Room for num places, if they are to be turned. */
static gmxfmm_status reserve(gmxfmm_plan* plan, size_t num)
{
    const size_t word = fmm_word_of(plan->options.array_type);
    return !plan->frame.turned || fmm_grow(plan, &plan->frame.x, &plan->frame.capacity, 3 * num * word)
               ? GMXFMM_OK
               : fmm_fail(plan, GMXFMM_ERROR_MEMORY, "out of memory for %zu particles", num);
}

gmxfmm_status fmm_frame_take(gmxfmm_plan* plan, const fmm_frame* frame)
{
    const fmm_frame before = plan->frame;
    plan->frame            = *frame;
    plan->frame.x          = before.x;
    plan->frame.capacity   = before.capacity;
    return reserve(plan, (size_t)plan->particles.n);
}

void fmm_frame_order(const gmxfmm_plan* plan, int* numbers)
{
    const int given[3] = {numbers[0], numbers[1], numbers[2]};
    for (int d = 0; d < 3; d++)
    {
        numbers[d] = given[plan->frame.order[d]];
    }
}

void fmm_frame_order_back(const gmxfmm_plan* plan, int* numbers)
{
    const int own[3] = {numbers[0], numbers[1], numbers[2]};
    for (int d = 0; d < 3; d++)
    {
        numbers[plan->frame.order[d]] = own[d];
    }
}

gmxfmm_status fmm_frame_positions(gmxfmm_plan* plan, const void** x, size_t num)
{
    const gmxfmm_status status = reserve(plan, num);
    if (status == GMXFMM_OK && plan->frame.turned)
    {
        turn_arrays(plan, plan->frame.axes, plan->options.array_type, 0, *x, plan->frame.x, num);
        *x = plan->frame.x;
    }
    return status;
}

void fmm_frame_targets(const gmxfmm_plan* plan, const double* before, double* x, size_t num)
{
    if (before != NULL)
    {
        turn_arrays(plan, before, GMXFMM_DOUBLE, 1, x, x, num);
    }
    if (before != NULL || plan->frame.turned)
    {
        turn_arrays(plan, plan->frame.axes, GMXFMM_DOUBLE, 0, x, x, num);
    }
}

/* Into the caller's axes. */
static void turn_tensor(const double* axes, double* tensor)
{
    double half[9], turned[9];
    for (int d = 0; d < 3; d++)
    {
        const double column[3] = {tensor[d], tensor[3 + d], tensor[6 + d]};
        turn(axes, 1, column, half + 3 * d);
    }
    for (int d = 0; d < 3; d++)
    {
        const double row[3] = {half[d], half[3 + d], half[6 + d]};
        turn(axes, 1, row, turned + 3 * d);
    }
    memcpy(tensor, turned, sizeof(turned));
}

/* The same of num tensors in six numbers each. */
static void turn_symmetric(const gmxfmm_plan* plan, void* array, size_t num)
{
    const int is_double = plan->options.array_type == GMXFMM_DOUBLE;
#pragma omp parallel for schedule(static) num_threads(plan->num_threads)
    for (size_t i = 0; i < num; i++)
    {
        double full[9];
        for (int k = 0; k < 6; k++)
        {
            const size_t at = 6 * i + (size_t)k;
            const double v  = fmm_number_of(array, plan->options.array_type, (int64_t)at);
            full[3 * fmm_tensor_row(k) + fmm_tensor_column(k)] = v;
            full[3 * fmm_tensor_column(k) + fmm_tensor_row(k)] = v;
        }
        turn_tensor(plan->frame.axes, full);
        for (int k = 0; k < 6; k++)
        {
            const double v = full[3 * fmm_tensor_row(k) + fmm_tensor_column(k)];
            if (is_double)
            {
                ((double*)array)[6 * i + (size_t)k] = v;
            }
            else
            {
                ((float*)array)[6 * i + (size_t)k] = (float)v;
            }
        }
    }
}

void fmm_frame_results(const gmxfmm_plan* plan, gmxfmm_output* output, size_t num)
{
    void* const array[3] = {output->force, output->field, output->torque};
    for (int i = 0; i < 3 && plan->frame.turned; i++)
    {
        if (array[i] != NULL)
        {
            turn_arrays(plan, plan->frame.axes, plan->options.array_type, 1, array[i], array[i], num);
        }
    }
    if (output->want_virial && plan->frame.turned)
    {
        turn_tensor(plan->frame.axes, output->virial);
    }
    if (output->field_gradient != NULL && plan->frame.turned)
    {
        turn_symmetric(plan, output->field_gradient, num);
    }
}

void fmm_frame_free(gmxfmm_plan* plan)
{
    free(plan->frame.x);
    plan->bytes -= plan->frame.capacity;
    plan->frame.x        = NULL;
    plan->frame.capacity = 0;
}
