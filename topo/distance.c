/* distance.c - how far a peer is. */
#include "topo/topo.h"

/* Placement beyond the node has no source yet, and the node's inside is looked at by those who need it: a rank keeps no state. */
int topo_init(struct ncclx_rt *rt)
{
    rt->topo = NULL;
    return NCCLX_SUCCESS;
}

void topo_finalize(struct ncclx_rt *rt)
{
    rt->topo = NULL;
}

int topo_distance(struct ncclx_rt *rt, int rank)
{
    if (rank == rt->job.rank) return NCCLX_DISTANCE_SELF;
    if (base_job_local_index(&rt->job, rank) >= 0) return NCCLX_DISTANCE_NODE;
    return NCCLX_DISTANCE_UNKNOWN;
}

const char *topo_distance_name(int distance)
{
    static const char *const names[] = {
        [NCCLX_DISTANCE_SELF] = "self", [NCCLX_DISTANCE_NODE] = "node", [NCCLX_DISTANCE_RACK] = "rack",
        [NCCLX_DISTANCE_ZONE] = "zone", [NCCLX_DISTANCE_BUILDING] = "building", [NCCLX_DISTANCE_CAMPUS] = "campus",
        [NCCLX_DISTANCE_UNKNOWN] = "unknown",
    };
    return distance >= 0 && (size_t)distance < sizeof names / sizeof names[0] ? names[distance] : "none";
}
