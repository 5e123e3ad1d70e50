/* topology.c - ncclx-info --topo. */
#include "runtime/info/info.h"
#include "topo/topo.h"

#include <stdio.h>
#include <stdlib.h>

static int draw_node(void)
{
    struct topo_node *node;
    int error = topo_node_discover(&node);
    if (error) return error;
    char *drawing = topo_node_describe(node);
    if (drawing) printf("this node, as far as this process may use it:\n%s", drawing);
    else error = base_error(NCCLX_ERR_NO_MEM, "no memory to draw the node");
    base_free(AREA_TOPO, drawing);
    topo_node_release(node);
    return error;
}

static bool is_at(int rank, int size, int distance)
{
    int found = -1;
    return rank < size && !ncclx_comm_remote_class(NCCLX_COMM_WORLD, rank, &found) && found == distance;
}

/* "node 3 ranks: 1-2 5", or nothing. */
static void print_class(int size, int distance)
{
    int count = 0;
    for (int rank = 0; rank < size; rank++) count += is_at(rank, size, distance);
    if (!count) return;
    printf("  %-10s %d rank%s:", topo_distance_name(distance), count, count == 1 ? "" : "s");
    for (int rank = 0; rank < size; rank++) {
        int first = rank;
        if (!is_at(rank, size, distance)) continue;
        while (is_at(rank + 1, size, distance)) rank++;
        if (first == rank) printf(" %d", first);
        else printf(" %d-%d", first, rank);
    }
    putchar('\n');
}

static int print_classes(void)
{
    int rank, size;
    int error = ncclx_init(NULL, NULL);
    if (error) return error;
    error = ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    if (!error) error = ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    if (!error) printf("the ranks of this job, by their distance from rank %d:\n", rank);
    for (int distance = NCCLX_DISTANCE_SELF; !error && distance <= NCCLX_DISTANCE_UNKNOWN; distance++)
        print_class(size, distance);
    int end_error = ncclx_finalize();
    return error ? error : end_error;
}

int info_topology(void)
{
    int error = draw_node();
    return error || !getenv("PMIX_NAMESPACE") ? error : print_classes();
}
