/* algorithms.c - ncclx-info --coll. */
#include "runtime/info/info.h"
#include "coll/coll.h"

#include <stdio.h>

int info_algorithms(const struct base_config *config, int ranks)
{
    char *text = coll_explain(config, ranks);
    if (!text) return NCCLX_ERR_CONFIG; /* or no memory: the detail says it */
    fputs(text, stdout);
    base_free(AREA_COLL, text);
    return NCCLX_SUCCESS;
}
