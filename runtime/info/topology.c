/* topology.c - ncclx-info --topo. */
#include "runtime/info/info.h"
#include "topo/topo.h"

#include <stdio.h>

int info_topology(void)
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
