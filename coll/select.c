/* select.c - the table of algorithms, and the choice among them. */
#include "coll/select.h"

#include <limits.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define ANY_SIZE SIZE_MAX
#define ON_REQUEST 0
#define ANY_RANKS INT_MAX
#define KIB ((size_t)1024)

/* Limits are where the algorithms crossed between processes of one node with two cores, for two ranks and for more;
 * between nodes start-up costs are higher and the small-message algorithms hold out longer, so that a limit of this
 * order is right there too (Thakur, Rabenseifner and Gropp 2005, figures 8 to 12). On one node, long vectors go
 * through shared slots, which copies them twice, where caches make that the faster way (tests/perf/README.md).
 *
 * Shares (most_share) keep the number of steps logarithmic where blocks are small because ranks are many: a ring of n
 * ranks takes n steps for a vector of any length. They are where n messages of 2 us each, a start-up between nodes,
 * cost what the other algorithm takes longer for the bytes at 10 GB/s: one copy more (bruck), log n vectors instead of
 * one (trees, scans), pieces on their way through a chain. */
static const struct coll_algorithm barrier_table[] = {
    {"shared", NULL, shared_barrier, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"dissemination", barrier_dissemination, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"tree", barrier_tree, NULL, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {"shared_tree", NULL, shared_barrier_tree, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm bcast_table[] = {
    {"shared", NULL, shared_bcast, 2, 2, 8 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_bcast, 3, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, 2, ANY_SIZE, COPIES, 0},
    {"binomial", bcast_binomial, NULL, 2, 2, ANY_SIZE, ANY_CASE, 0},
    {"binomial", bcast_binomial, NULL, 3, ANY_RANKS, 32 * KIB, ANY_CASE, 1 * KIB},
    {"scatter_allgather", bcast_scatter_allgather, NULL, 4, ANY_RANKS, 512 * KIB, ANY_CASE, 32 * KIB},
    {"pipeline", bcast_pipeline, NULL, 3, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"kary", bcast_kary, NULL, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {"shared_tree", NULL, shared_bcast_tree, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm reduce_table[] = {
    {"shared", NULL, shared_reduce, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"single_copy", NULL, shared_single_copy, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"binomial", reduce_binomial, NULL, 2, 2, 64 * KIB, ANY_CASE, 0},
    {"binomial", reduce_binomial, NULL, 3, ANY_RANKS, 8 * KIB, ANY_CASE, 0},
    {"rabenseifner", reduce_rabenseifner, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm allreduce_table[] = {
    {"shared", NULL, shared_allreduce, 2, 2, 8 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, 2, 1024 * KIB, COPIES, 0},
    {"shared", NULL, shared_allreduce, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"single_copy", NULL, shared_single_copy, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"recursive_doubling", allreduce_recursive_doubling, NULL, 2, 2, 512 * KIB, ANY_CASE, 0},
    {"recursive_doubling", allreduce_recursive_doubling, NULL, 3, ANY_RANKS, 4 * KIB, ANY_CASE, 0},
    {"rabenseifner", allreduce_rabenseifner, NULL, 3, ANY_RANKS, 512 * KIB, ANY_CASE, 16 * KIB},
    {"ring", allreduce_ring, NULL, 3, ANY_RANKS, ANY_SIZE, COMMUTATIVE, 0},
    {"rabenseifner", allreduce_rabenseifner, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"reduce_bcast", allreduce_reduce_bcast, NULL, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm allgather_table[] = {
    {"shared", NULL, shared_allgather, 2, 2, 8 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_allgather, 3, ANY_RANKS, 16 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, ANY_RANKS, ANY_SIZE, COPIES, 0},
    {"single_copy", NULL, shared_single_copy, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"bruck", allgather_bruck, NULL, 3, ANY_RANKS, 4 * KIB, ANY_CASE, 1 * KIB},
    {"recursive_doubling", allgather_recursive_doubling, NULL, 3, ANY_RANKS, 128 * KIB, ANY_CASE, 0},
    {"ring", allgather_ring, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"bidirectional_ring", allgather_bidirectional_ring, NULL, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm alltoall_table[] = {
    {"shared", NULL, shared_alltoall, 2, 2, 4 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_alltoall, 3, ANY_RANKS, 8 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, ANY_RANKS, ANY_SIZE, COPIES, 0},
    {"single_copy", NULL, shared_single_copy, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"bruck", alltoall_bruck, NULL, 8, ANY_RANKS, 128, ANY_CASE, 0},
    {"direct", alltoall_direct, NULL, 3, ANY_RANKS, 1024 * KIB, ANY_CASE, 0},
    {"pairwise", alltoall_pairwise, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};

static const struct coll_algorithm allgatherv_table[] = {
    {"shared", NULL, shared_allgatherv, 2, 2, 16 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_allgatherv, 3, ANY_RANKS, 4096 * KIB, ANY_CASE, 0},
    {"bruck", allgather_bruck, NULL, 3, ANY_RANKS, 4 * KIB, ANY_CASE, 1 * KIB},
    {"recursive_doubling", allgather_recursive_doubling, NULL, 3, ANY_RANKS, 128 * KIB, ANY_CASE, 0},
    {"ring", allgather_ring, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"bidirectional_ring", allgather_bidirectional_ring, NULL, 2, ANY_RANKS, ON_REQUEST, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm alltoallv_table[] = {
    {"shared", NULL, shared_alltoallv, 2, 16, ANY_SIZE, ANY_CASE, 0},
    {"direct", alltoall_direct, NULL, 2, 64, ANY_SIZE, ANY_CASE, 0},
    {"pairwise", alltoall_pairwise, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
/* Of reduce_scatter_block too. With few ranks straight messages are as good as fewer of them, and copy nothing. */
static const struct coll_algorithm reduce_scatter_table[] = {
    {"shared", NULL, shared_reduce_scatter, 2, 2, 16 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_reduce_scatter, 3, ANY_RANKS, 512 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, ANY_RANKS, ANY_SIZE, COPIES, 0},
    {"single_copy", NULL, shared_single_copy, 2, ANY_RANKS, ON_REQUEST, COPIES, 0},
    {"halving", reduce_scatter_halving, NULL, 5, ANY_RANKS, 8 * KIB, ANY_CASE, 0},
    {"direct", reduce_scatter_direct, NULL, 2, 16, ANY_SIZE, ANY_CASE, 0},
    {"halving", reduce_scatter_halving, NULL, 17, ANY_RANKS, 512 * KIB, ANY_CASE, 16 * KIB},
    {"ring", reduce_scatter_ring, NULL, 17, ANY_RANKS, ANY_SIZE, COMMUTATIVE, 0},
    {"direct", reduce_scatter_direct, NULL, 17, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm gather_table[] = {
    {"shared", NULL, shared_gather, 2, 2, 8 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_gather, 3, ANY_RANKS, 64 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, 2, 1024 * KIB, COPIES, 0},
    {"binomial", gather_binomial, NULL, 4, ANY_RANKS, 2 * KIB, ANY_CASE, 0},
    {"linear", gather_linear, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm gatherv_table[] = {
    {"shared", NULL, shared_gatherv, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"linear", gather_linear, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm scatter_table[] = {
    {"shared", NULL, shared_scatter, 2, 2, 16 * KIB, ANY_CASE, 0},
    {"shared", NULL, shared_scatter, 3, ANY_RANKS, 32 * KIB, ANY_CASE, 0},
    {"measured", NULL, shared_measured, 2, 2, 64 * KIB, COPIES, 0},
    {"binomial", scatter_binomial, NULL, 4, ANY_RANKS, 2 * KIB, ANY_CASE, 0},
    {"linear", scatter_linear, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm scatterv_table[] = {
    {"shared", NULL, shared_scatterv, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {"linear", scatter_linear, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm scan_table[] = {
    {"shared", NULL, shared_scan, 2, 16, 8 * KIB, ANY_CASE, 0},
    {"recursive_doubling", scan_recursive_doubling, NULL, 2, ANY_RANKS, 64 * KIB, ANY_CASE, 4 * KIB},
    {"pipeline", scan_pipeline, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};
static const struct coll_algorithm exscan_table[] = {
    {"shared", NULL, shared_scan, 2, 16, 8 * KIB, ANY_CASE, 0},
    {"recursive_doubling", exscan_recursive_doubling, NULL, 2, 2, ANY_SIZE, ANY_CASE, 0},
    {"recursive_doubling", exscan_recursive_doubling, NULL, 3, ANY_RANKS, 64 * KIB, ANY_CASE, 4 * KIB},
    {"pipeline", exscan_pipeline, NULL, 2, ANY_RANKS, ANY_SIZE, ANY_CASE, 0},
    {0},
};

static const struct {
    const char *text, *measure;
    const struct coll_algorithm *algorithms;
    enum base_config_id config;
} table[COLL_NAMES] = {
    [COLL_BARRIER] = {"barrier", "", barrier_table, CONFIG_COLL_BARRIER},
    [COLL_BCAST] = {"bcast", "bytes of the buffer", bcast_table, CONFIG_COLL_BCAST},
    [COLL_REDUCE] = {"reduce", "bytes of each rank's vector", reduce_table, CONFIG_COLL_REDUCE},
    [COLL_ALLREDUCE] = {"allreduce", "bytes of each rank's vector", allreduce_table, CONFIG_COLL_ALLREDUCE},
    [COLL_ALLGATHER] = {"allgather", "bytes that each rank receives", allgather_table, CONFIG_COLL_ALLGATHER},
    [COLL_ALLTOALL] = {"alltoall", "bytes from one rank to another", alltoall_table, CONFIG_COLL_ALLTOALL},
    [COLL_REDUCE_SCATTER] = {"reduce_scatter", "bytes of each rank's vector", reduce_scatter_table,
                             CONFIG_COLL_REDUCE_SCATTER},
    [COLL_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", "bytes of each rank's vector", reduce_scatter_table,
                                   CONFIG_COLL_REDUCE_SCATTER_BLOCK},
    [COLL_ALLGATHERV] = {"allgatherv", "bytes that each rank receives", allgatherv_table, CONFIG_COLL_ALLGATHERV},
    [COLL_GATHER] = {"gather", "bytes of each rank's block", gather_table, CONFIG_COLL_GATHER},
    [COLL_GATHERV] = {"gatherv", "", gatherv_table, CONFIG_COLL_GATHERV},
    [COLL_SCATTER] = {"scatter", "bytes of each rank's block", scatter_table, CONFIG_COLL_SCATTER},
    [COLL_SCATTERV] = {"scatterv", "", scatterv_table, CONFIG_COLL_SCATTERV},
    [COLL_ALLTOALLV] = {"alltoallv", "", alltoallv_table, CONFIG_COLL_ALLTOALLV},
    [COLL_SCAN] = {"scan", "bytes of each rank's vector", scan_table, CONFIG_COLL_SCAN},
    [COLL_EXSCAN] = {"exscan", "bytes of each rank's vector", exscan_table, CONFIG_COLL_EXSCAN},
};

const struct coll_algorithm *coll_algorithms(enum coll_name name)
{
    return table[name].algorithms;
}

const char *coll_name_text(enum coll_name name)
{
    return table[name].text;
}

static int find(enum coll_name name, const char *wanted, const struct coll_algorithm **found)
{
    *found = NULL;
    if (!wanted || !wanted[0] || !strcmp(wanted, "auto")) return NCCLX_SUCCESS;
    for (const struct coll_algorithm *algorithm = table[name].algorithms; algorithm->name; algorithm++) {
        if (strcmp(wanted, algorithm->name)) continue;
        *found = algorithm;
        return NCCLX_SUCCESS;
    }
    return base_error(NCCLX_ERR_CONFIG, "\"%s\" is not an algorithm of %s; ncclx-info --coll lists them", wanted,
                      table[name].text);
}

int coll_choice_read(struct coll_choice *choice, const struct base_config *config)
{
    for (int name = 0; name < COLL_NAMES; name++) {
        int error = find((enum coll_name)name, config->value[table[name].config].text, &choice->forced[name]);
        if (error) return error;
    }
    return NCCLX_SUCCESS;
}

size_t coll_measure(const struct coll_problem *problem)
{
    switch (problem->name) {
    case COLL_ALLGATHER:
    case COLL_REDUCE_SCATTER_BLOCK:
        return problem->bytes * (size_t)problem->size;
    case COLL_ALLGATHERV:
    case COLL_REDUCE_SCATTER:
        return problem->total_bytes;
    case COLL_GATHERV:
    case COLL_SCATTERV:
    case COLL_ALLTOALLV:
        return 0; /* there is nothing that all ranks know */
    default:
        return problem->bytes;
    }
}

bool coll_can(const struct coll_algorithm *algorithm, const struct coll_problem *problem)
{
    return (problem->commutative || algorithm->needs != COMMUTATIVE) && (problem->shared || !algorithm->run);
}

size_t coll_most_bytes(const struct coll_algorithm *algorithm, int ranks)
{
    size_t shares = algorithm->most_share * (size_t)ranks;
    return shares > algorithm->most_bytes ? shares : algorithm->most_bytes;
}

static bool fits(const struct coll_algorithm *algorithm, int ranks, size_t bytes)
{
    return ranks >= algorithm->least_ranks && ranks <= algorithm->most_ranks &&
           bytes <= coll_most_bytes(algorithm, ranks);
}

const struct coll_algorithm *coll_select(const struct coll_choice *choice, const struct coll_problem *problem)
{
    const struct coll_algorithm *algorithm = choice->forced[problem->name];
    size_t bytes = coll_measure(problem);
    if (algorithm && coll_can(algorithm, problem)) return algorithm;
    algorithm = table[problem->name].algorithms;
    while (!fits(algorithm, problem->size, bytes) || !coll_can(algorithm, problem)) algorithm++;
    return algorithm;
}

/* ---- The table for people -------------------------------------------------------------------------------------- */

struct text {
    char *bytes;
    size_t used, room;
    bool failed;
};

static void __attribute__((format(printf, 2, 3))) add(struct text *text, const char *format, ...)
{
    char line[256];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(line, sizeof line, format, args);
    va_end(args);
    if (length < 0 || (size_t)length >= sizeof line) length = (int)strlen(line);
    if (text->used + (size_t)length + 1 > text->room) {
        size_t room = 2 * text->room + sizeof line;
        char *moved = base_realloc(AREA_COLL, text->bytes, room);
        if (!moved) text->failed = true;
        if (!moved) return;
        text->bytes = moved;
        text->room = room;
    }
    memcpy(text->bytes + text->used, line, (size_t)length + 1);
    text->used += (size_t)length;
}

/* One line a table entry that may be chosen. *from: the sizes that the lines before leave. */
static void explain_entry(struct text *text, const struct coll_algorithm *algorithm, int ranks, size_t *from)
{
    size_t most = coll_most_bytes(algorithm, ranks);
    const char *mostly = algorithm->needs == COMMUTATIVE ? ", unless the operation is not commutative" : "";
    if (algorithm->run && most == ANY_SIZE)
        add(text, "  %-20s blocking calls of ranks that share a node; otherwise:\n", algorithm->name);
    else if (algorithm->run)
        add(text, "  %-20s up to %zu bytes, blocking calls of ranks that share a node; otherwise:\n", algorithm->name,
            most);
    else if (most != ANY_SIZE)
        add(text, "  %-20s up to %zu bytes%s\n", algorithm->name, most, mostly);
    else if (*from)
        add(text, "  %-20s above %zu bytes%s\n", algorithm->name, *from, mostly);
    else
        add(text, "  %-20s any size%s\n", algorithm->name, mostly);
    if (!algorithm->run && most != ANY_SIZE) *from = most;
}

static void explain(struct text *text, enum coll_name name, int ranks, const struct coll_algorithm *forced,
                    const char *source)
{
    size_t from = 0;
    bool settled = false; /* an earlier line takes all that is left */
    add(text, "%s%s%s\n", table[name].text, table[name].measure[0] ? ", by " : "", table[name].measure);
    if (forced) add(text, "  %-20s whenever it can do the case: asked for by %s; otherwise:\n", forced->name, source);
    for (const struct coll_algorithm *algorithm = table[name].algorithms; algorithm->name; algorithm++) {
        if (algorithm->most_bytes == ON_REQUEST)
            add(text, "  %-20s only on request\n", algorithm->name);
        else if (!settled && ranks >= algorithm->least_ranks && ranks <= algorithm->most_ranks &&
                 (algorithm->run || coll_most_bytes(algorithm, ranks) > from))
            explain_entry(text, algorithm, ranks, &from);
        else
            continue;
        settled = settled || (!algorithm->run && algorithm->needs != COMMUTATIVE && algorithm->most_bytes == ANY_SIZE);
    }
}

char *coll_explain(const struct base_config *config, int ranks)
{
    struct text text = {0};
    struct coll_choice choice;
    if (coll_choice_read(&choice, config)) return NULL;
    add(&text, "Algorithms for %d rank%s (NCCLX_COLL_* asks for another one):\n", ranks,
        ranks == 1 ? ": nothing to choose" : "s");
    for (int name = 0; name < COLL_NAMES; name++)
        explain(&text, (enum coll_name)name, ranks, choice.forced[name], base_config_table()[table[name].config].name);
    if (!text.failed) return text.bytes;
    base_free(AREA_COLL, text.bytes);
    base_error(NCCLX_ERR_NO_MEM, "no memory to list the algorithms");
    return NULL;
}
