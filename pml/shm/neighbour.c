/* neighbour.c - segments of "other" nodes. A process manager may run several nodes under one kernel; whether one is, is
 * found by trying to open its segment. */
#include "bootstrap/bootstrap.h"
#include "pml/shm/shm.h"

#include <unistd.h>

/* Each node alone had cores enough for its ranks; all of them on one machine may not. */
static void count_ranks(struct shm *shm)
{
    struct ncclx_rt *rt = shm->pml->rt;
    long ranks = shm->segment.ranks;
    for (struct shm_neighbour *neighbour = shm->neighbours; neighbour; neighbour = neighbour->next)
        ranks += neighbour->segment.ranks;
    if (rt->job.oversubscribed || ranks <= sysconf(_SC_NPROCESSORS_ONLN)) return;
    rt->job.oversubscribed = true;
    base_rt_configure(rt);
}

static struct shm_segment *neighbour_of(struct shm *shm, int node)
{
    for (struct shm_neighbour *neighbour = shm->neighbours; neighbour; neighbour = neighbour->next)
        if (neighbour->node == node) return &neighbour->segment;
    return NULL;
}

static int neighbour_open(struct shm *shm, int rank, int node, int ranks, struct shm_segment **segment)
{
    struct ncclx_rt *rt = shm->pml->rt;
    int fd;
    int error = bootstrap_segment_of(rt, rank, &fd);
    if (error == NCCLX_ERR_UNREACHABLE || error == NCCLX_ERR_TIMEOUT)
        return base_error_context(NCCLX_ERR_UNREACHABLE, "rank %d is on another machine", rank);
    if (error) return error;
    *segment = neighbour_of(shm, node);
    if (*segment) { /* it was opened while this call waited for the key */
        close(fd);
        return NCCLX_SUCCESS;
    }
    struct shm_neighbour *neighbour = base_calloc(AREA_SHM, 1, sizeof *neighbour);
    if (!neighbour) return base_error(NCCLX_ERR_NO_MEM, "no memory for node %d", node);
    error = shm_segment_open(&neighbour->segment, fd, ranks, rt->job.size,
                             (size_t)rt->config.value[CONFIG_SHM_RING].number);
    if (error) {
        base_free(AREA_SHM, neighbour);
        return error;
    }
    neighbour->node = node;
    neighbour->next = shm->neighbours;
    shm->neighbours = neighbour;
    *segment = &neighbour->segment;
    count_ranks(shm);
    return NCCLX_SUCCESS;
}

int shm_segment_of(struct shm *shm, int rank, struct shm_segment **segment, int *index)
{
    struct ncclx_rt *rt = shm->pml->rt;
    const int *ranks;
    int node, count;
    *index = base_job_local_index(&rt->job, rank);
    *segment = &shm->segment;
    if (*index >= 0) return NCCLX_SUCCESS;
    int error = bootstrap_node_of(rt, rank, &node);
    if (!error) error = bootstrap_node_ranks(rt, rank, &ranks, &count);
    if (error) return error;
    for (*index = 0; *index < count && ranks[*index] != rank;) ++*index;
    if (*index == count) return base_error(NCCLX_ERR_BOOTSTRAP, "rank %d is not among the ranks of its node", rank);
    *segment = neighbour_of(shm, node);
    if (*segment) return NCCLX_SUCCESS;
    return neighbour_open(shm, rank, node, count, segment);
}

void shm_neighbours_close(struct shm *shm)
{
    while (shm->neighbours) {
        struct shm_neighbour *neighbour = shm->neighbours;
        shm->neighbours = neighbour->next;
        shm_segment_close(&neighbour->segment);
        base_free(AREA_SHM, neighbour);
    }
}
