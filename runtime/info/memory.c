/* memory.c - ncclx-info --memory. */
#include "runtime/info/info.h"

#include <inttypes.h>
#include <stdio.h>

static void print_areas(void)
{
    struct base_area_usage usage, sum = {0};
    printf("%-12s %12s %12s %8s\n", "area", "bytes", "most bytes", "blocks");
    for (int area = 0; area < AREA_COUNT; area++) {
        base_area_usage((enum base_area)area, &usage);
        printf("%-12s %12" PRIu64 " %12" PRIu64 " %8" PRIu64 "\n", base_area_name((enum base_area)area), usage.bytes, usage.peak, usage.blocks);
        sum.bytes += usage.bytes;
        sum.blocks += usage.blocks;
    }
    printf("%-12s %12" PRIu64 " %12s %8" PRIu64 "\n", "all", sum.bytes, "", sum.blocks);
}

int info_memory(void)
{
    int ranks;
    int error = ncclx_init(NULL, NULL);
    if (error) return error;
    error = ncclx_comm_size(NCCLX_COMM_WORLD, &ranks);
    if (!error) {
        printf("memory of a rank after ncclx_init, in a job of %d:\n", ranks);
        print_areas();
    }
    int end_error = ncclx_finalize();
    return error ? error : end_error;
}
