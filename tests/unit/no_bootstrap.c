/* no_bootstrap.c - for programs that make their jobs themselves: there is no process manager to ask, and all ranks are here. */
#include "bootstrap/bootstrap.h"
#include "topo/topo.h"

int bootstrap_node_segment(struct ncclx_rt *rt, int *fd)
{
    (void)rt;
    (void)fd;
    return base_error(NCCLX_ERR_BOOTSTRAP, "no process manager");
}

int bootstrap_segment_of(struct ncclx_rt *rt, int rank, int *fd)
{
    (void)rank;
    return bootstrap_node_segment(rt, fd);
}

int bootstrap_node_of(struct ncclx_rt *rt, int rank, int *node)
{
    (void)rank;
    return bootstrap_node_segment(rt, node);
}

int bootstrap_node_ranks(struct ncclx_rt *rt, int rank, const int **ranks, int *count)
{
    (void)rank;
    (void)ranks;
    return bootstrap_node_segment(rt, count);
}

int bootstrap_put(struct ncclx_rt *rt, const char *key, const void *value, size_t bytes)
{
    int none;
    (void)key;
    (void)value;
    (void)bytes;
    return bootstrap_node_segment(rt, &none);
}

int bootstrap_commit(struct ncclx_rt *rt)
{
    int none;
    return bootstrap_node_segment(rt, &none);
}

int bootstrap_fetch(struct ncclx_rt *rt, int rank, const char *key, struct bootstrap_fetch **fetch)
{
    *fetch = NULL;
    return bootstrap_put(rt, key, &rank, sizeof rank);
}

bool bootstrap_fetched(struct bootstrap_fetch *fetch, int *code, void **value, size_t *bytes)
{
    (void)fetch;
    (void)code;
    (void)value;
    (void)bytes;
    return false;
}

void bootstrap_fetch_leave(struct bootstrap_fetch *fetch)
{
    (void)fetch;
}

int topo_distance(struct ncclx_rt *rt, int rank)
{
    return rank == rt->job.rank ? NCCLX_DISTANCE_SELF : NCCLX_DISTANCE_NODE;
}
