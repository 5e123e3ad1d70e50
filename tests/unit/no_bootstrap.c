/* no_bootstrap.c - for programs that make their jobs themselves: there is no process manager to ask. */
#include "bootstrap/bootstrap.h"

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
