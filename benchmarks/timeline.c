/* SPDX-License-Identifier: LGPL-2.1-or-later */
/* Records when each kernel, copy and fill of a CUDA program ran, for timeline.py and free_energy.py. A program loads
 * it by itself: CUDA_INJECTION64_PATH=libgmxfmm_timeline.so GMXFMM_TIMELINE=records.txt gmx mdrun ... Each line: start
 * and end in ns, device, stream, name. */
#include <cupti.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>

enum
{
    buffer_size = 8 << 20
};

static FILE* records; /* CUPTI gives its callbacks no argument of ours */

static void request_buffer(uint8_t** buffer, size_t* size, size_t* most_records)
{
    *buffer       = malloc(buffer_size);
    *size         = *buffer ? buffer_size : 0;
    *most_records = 0;
}

static void write_records(CUcontext context, uint32_t stream, uint8_t* buffer, size_t size, size_t valid)
{
    (void)context;
    (void)stream;
    (void)size;
    CUpti_Activity* record = NULL;
    while (cuptiActivityGetNextRecord(buffer, valid, &record) == CUPTI_SUCCESS)
    {
        /* members that these have at the same place in all versions of CUPTI 13 */
        if (record->kind == CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL)
        {
            const CUpti_ActivityKernel10* k = (const CUpti_ActivityKernel10*)record;
            fprintf(records, "%llu %llu %u %u %s\n", (unsigned long long)k->start, (unsigned long long)k->end,
                    k->deviceId, k->streamId, k->name);
        }
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMCPY)
        {
            const CUpti_ActivityMemcpy6* c = (const CUpti_ActivityMemcpy6*)record;
            fprintf(records, "%llu %llu %u %u copy%d\n", (unsigned long long)c->start, (unsigned long long)c->end,
                    c->deviceId, c->streamId, c->copyKind);
        }
        else if (record->kind == CUPTI_ACTIVITY_KIND_MEMSET)
        {
            const CUpti_ActivityMemset4* f = (const CUpti_ActivityMemset4*)record;
            fprintf(records, "%llu %llu %u %u fill\n", (unsigned long long)f->start, (unsigned long long)f->end,
                    f->deviceId, f->streamId);
        }
    }
    free(buffer);
}

static void finish(void)
{
    cuptiActivityFlushAll(1);
    fclose(records);
}

/* Called by the CUDA driver. */
int InitializeInjection(void);
int InitializeInjection(void)
{
    const char* name = getenv("GMXFMM_TIMELINE");
    records          = fopen(name ? name : "timeline.txt", "w");
    if (!records)
    {
        return 0;
    }
    cuptiActivityRegisterCallbacks(request_buffer, write_records);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMCPY);
    cuptiActivityEnable(CUPTI_ACTIVITY_KIND_MEMSET);
    atexit(finish);
    return 1;
}
