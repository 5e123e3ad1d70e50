/* lists.c - lists of cpus, from the launcher or a user; lists of ranks, places of them and of shared memory, from a PMIx server; limits and ports,
 * from a user. */
#include "bootstrap/client.h"
#include "bootstrap/oob/oob.h"
#include "pml/dqplb/dqplb.h"
#include "pml/tcp/trouble.h"
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

/* Changes the text. Each rank is at one place. */
static void check_places(char *text)
{
    struct bootstrap_nodes nodes = {.of = malloc(JOB_SIZE * sizeof(int))};
    int sum = 0;
    if (!nodes.of) return;
    for (int i = 0; i < JOB_SIZE; i++) nodes.of[i] = -1;
    bool good = bootstrap_parse_places(text, JOB_SIZE, &nodes);
    for (int i = 0; i < nodes.count; i++) {
        for (int j = 0; j < nodes.node[i].count; j++)
            if (nodes.of[nodes.node[i].ranks[j]] != i) abort();
        sum += nodes.node[i].count;
        base_free(AREA_BOOTSTRAP, nodes.node[i].ranks);
        base_free(AREA_BOOTSTRAP, nodes.node[i].name);
    }
    if (sum > JOB_SIZE || (good && sum != JOB_SIZE)) abort();
    base_free(AREA_BOOTSTRAP, nodes.node);
    free(nodes.of);
}

static void check_settings(const char *text)
{
    struct dqplb_limits limits;
    struct tcp_trouble trouble;
    uint16_t low, high;
    if (!dqplb_limits_parse(text, &limits) && (limits.lanes < 1 || limits.outstanding < 1 || limits.segment < 1)) abort();
    if (!oob_ports_parse(text, &low, &high) && (low < 1 || low > high)) abort();
    (void)tcp_trouble_parse(text, &trouble);
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
    check_settings(text);
    if (bootstrap_segment_parse(text, &name) && !*text) abort();
    memcpy(text, data, bytes); /* that one changes it, too */
    check_places(text);
    free(text);
    return 0;
}
