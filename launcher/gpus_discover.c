/* gpus_discover.c - the GPUs of the node that ncclxd is on; see gpus.h. */
#include "launcher/gpus.h"

#include "runtime/base/base.h"

#include <stdlib.h>

struct map_gpu *gpus_discover(const struct topo_node *node, int *count)
{
    const char *list = getenv("CUDA_VISIBLE_DEVICES");
    static int numa[GPUS_MAX];
    int found = topo_node_gpus(node, numa, GPUS_MAX);
    if (list && topo_node_is_this(node)) return gpus_parse(list, numa, found, count);
    struct map_gpu *gpus = gpus_make(NULL, 0, found, 0);
    *count = gpus ? found : 0;
    for (int i = 0; i < *count; i++) gpus[i].numa = numa[i];
    return gpus;
}
