/* lists.c - lists of cpus, from the launcher or a user, and lists of ranks and places of shared memory, from a PMIx server. */
#include "bootstrap/client.h"
#include "tests/fuzz/fuzz.h"
#include "topo/cpulist.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "lists";

#define JOB_SIZE 1000

static void check_cpus(const char *text)
{
    hwloc_bitmap_t set = hwloc_bitmap_alloc();
    if (!set) return;
    if (topo_cpulist_parse(text, set) && hwloc_bitmap_iszero(set)) abort();
    hwloc_bitmap_free(set);
}

static void check_ranks(const char *text)
{
    int *ranks = NULL, count = 0;
    if (!bootstrap_parse_ranks(text, JOB_SIZE, &ranks, &count)) return;
    for (int i = 0; i < count; i++)
        if (ranks[i] < 0 || ranks[i] >= JOB_SIZE || (i && ranks[i] <= ranks[i - 1])) abort();
    base_free(AREA_BOOTSTRAP, ranks);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    const char *name;
    char *text = malloc(bytes + 1);
    if (!text) return 0;
    memcpy(text, data, bytes);
    text[bytes] = 0;
    check_cpus(text);
    check_ranks(text);
    if (bootstrap_segment_parse(text, &name) && !*text) abort();
    free(text);
    return 0;
}
