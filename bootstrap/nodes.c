/* nodes.c - the nodes of the job and the ranks on each, asked for by those who need more than their own node. */
#include "bootstrap/client.h"

#include <stdlib.h>
#include <string.h>

static void release(struct bootstrap_nodes *nodes)
{
    if (!nodes) return;
    for (int i = 0; i < nodes->count; i++) {
        base_free(AREA_BOOTSTRAP, nodes->node[i].name);
        base_free(AREA_BOOTSTRAP, nodes->node[i].ranks);
    }
    base_free(AREA_BOOTSTRAP, nodes->node);
    base_free(AREA_BOOTSTRAP, nodes->of);
    base_free(AREA_BOOTSTRAP, nodes);
}

void bootstrap_nodes_release(struct bootstrap *boot)
{
    release(boot->nodes);
    boot->nodes = NULL;
}

/* "n1,n2": the job's order of nodes. */
static char *node_list(struct bootstrap *boot)
{
    pmix_value_t *value;
    char *list = NULL, *mine;
    if (bootstrap_job_value(boot, PMIX_NODE_LIST, NULL, &value) == PMIX_SUCCESS) {
        const char *text = bootstrap_value_text(value);
        mine = text ? base_strdup(AREA_BOOTSTRAP, text) : NULL;
        PMIX_VALUE_RELEASE(value);
        if (mine) return mine;
    }
    if (PMIx_Resolve_nodes(boot->self.nspace, &list) != PMIX_SUCCESS || !list) return NULL;
    mine = base_strdup(AREA_BOOTSTRAP, list);
    free(list);
    return mine;
}

static int add_node(struct bootstrap *boot, struct bootstrap_nodes *nodes, const char *name)
{
    if (nodes->count == boot->rt->job.size)
        return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server names more nodes than job %s has ranks", boot->rt->job.id);
    struct bootstrap_node *more = base_realloc(AREA_BOOTSTRAP, nodes->node, (size_t)(nodes->count + 1) * sizeof *more);
    if (!more) return base_error(NCCLX_ERR_NO_MEM, "no memory for the list of nodes");
    nodes->node = more;
    struct bootstrap_node *node = &more[nodes->count];
    *node = (struct bootstrap_node){.name = base_strdup(AREA_BOOTSTRAP, name)};
    if (!node->name) return base_error(NCCLX_ERR_NO_MEM, "no memory for the list of nodes");
    nodes->count++;
    int error = bootstrap_ranks_on(boot, name, &node->ranks, &node->count);
    for (int i = 0; !error && i < node->count; i++) {
        int *of = &nodes->of[node->ranks[i]];
        if (*of >= 0)
            error = base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server places rank %d on node %s and on node %s", node->ranks[i],
                               nodes->node[*of].name, name);
        *of = nodes->count - 1;
    }
    return error;
}

/* ---- Under ncclxrun: all in one text ---- */

/* A number below `end` at *text, which moves on; or -1. */
static int take_number(const char **text, int end)
{
    char *rest;
    long number = **text >= '0' && **text <= '9' ? strtol(*text, &rest, 10) : -1;
    if (number < 0 || number >= end) return -1;
    *text = rest;
    return (int)number;
}

/* "0-3,8": false when it is not, or goes beyond the job, or names a rank a second time. */
static bool parse_ranges(const char *text, int size, int index, struct bootstrap_nodes *nodes)
{
    struct bootstrap_node *node = &nodes->node[index];
    for (;; text++) {
        int first = take_number(&text, size), last = first;
        if (*text == '-') {
            text++;
            last = take_number(&text, size);
        }
        if (first < 0 || first > last) return false;
        int *ranks = base_realloc(AREA_BOOTSTRAP, node->ranks, ((size_t)node->count + (size_t)(last - first) + 1) * sizeof *ranks);
        if (!ranks) return false;
        node->ranks = ranks;
        for (int rank = first; rank <= last; rank++) {
            if (nodes->of[rank] >= 0) return false;
            nodes->of[rank] = index;
            ranks[node->count++] = rank;
        }
        if (!*text) return true;
        if (*text != ',') return false;
    }
}

bool bootstrap_parse_places(char *text, int size, struct bootstrap_nodes *nodes)
{
    size_t places = 1;
    for (const char *c = text; *c; c++) places += *c == ';';
    nodes->node = base_calloc(AREA_BOOTSTRAP, places, sizeof *nodes->node);
    if (!nodes->node) return false;
    for (char *rest, *entry = strtok_r(text, ";", &rest); entry; entry = strtok_r(NULL, ";", &rest)) {
        char *ranks = strchr(entry, '=');
        if (!ranks || ranks == entry) return false;
        *ranks++ = 0;
        struct bootstrap_node *node = &nodes->node[nodes->count];
        node->name = base_strdup(AREA_BOOTSTRAP, entry);
        if (!node->name) return false;
        nodes->count++;
        if (!parse_ranges(ranks, size, nodes->count - 1, nodes)) return false;
    }
    for (int rank = 0; rank < size; rank++)
        if (nodes->of[rank] < 0) return false;
    return true;
}

/* False: there is no such text, and nothing has happened. */
static bool fill_from_places(struct bootstrap *boot, struct bootstrap_nodes *nodes, int *error)
{
    const struct base_job *job = &boot->rt->job;
    pmix_value_t *value;
    if (bootstrap_job_value(boot, BOOTSTRAP_KEY_PLACES, NULL, &value) != PMIX_SUCCESS) return false;
    const char *text = bootstrap_value_text(value);
    char *copy = text ? base_strdup(AREA_BOOTSTRAP, text) : NULL;
    nodes->of = base_calloc(AREA_BOOTSTRAP, (size_t)job->size, sizeof *nodes->of);
    if (nodes->of) memset(nodes->of, -1, (size_t)job->size * sizeof *nodes->of);
    *error = NCCLX_SUCCESS;
    if (!copy || !nodes->of || !bootstrap_parse_places(copy, job->size, nodes))
        *error = base_error(NCCLX_ERR_BOOTSTRAP, "the launcher does not say on which nodes the ranks of job %s run", job->id);
    base_free(AREA_BOOTSTRAP, copy);
    PMIX_VALUE_RELEASE(value);
    return true;
}

/* ---- Under any server ---- */

static int fill(struct bootstrap *boot, struct bootstrap_nodes *nodes)
{
    const struct base_job *job = &boot->rt->job;
    int error = NCCLX_SUCCESS;
    if (fill_from_places(boot, nodes, &error)) return error;
    char *rest, *list = node_list(boot);
    nodes->of = base_calloc(AREA_BOOTSTRAP, (size_t)job->size, sizeof *nodes->of);
    if (!list || !nodes->of) {
        base_free(AREA_BOOTSTRAP, list);
        return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server does not name the nodes of job %s", job->id);
    }
    memset(nodes->of, -1, (size_t)job->size * sizeof *nodes->of);
    for (char *name = strtok_r(list, ",", &rest); name && !error; name = strtok_r(NULL, ",", &rest)) error = add_node(boot, nodes, name);
    base_free(AREA_BOOTSTRAP, list);
    for (int rank = 0; !error && rank < job->size; rank++)
        if (nodes->of[rank] < 0) error = base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server does not say on which node rank %d runs", rank);
    return error;
}

int bootstrap_nodes_get(struct bootstrap *boot, const struct bootstrap_nodes **nodes)
{
    if (!boot->nodes) {
        struct bootstrap_nodes *made = base_calloc(AREA_BOOTSTRAP, 1, sizeof *made);
        if (!made) return base_error(NCCLX_ERR_NO_MEM, "no memory for the list of nodes");
        int error = fill(boot, made);
        if (error) {
            release(made);
            return error;
        }
        boot->nodes = made;
    }
    *nodes = boot->nodes;
    return NCCLX_SUCCESS;
}

int bootstrap_node_of(struct ncclx_rt *rt, int rank, int *node)
{
    const struct bootstrap_nodes *nodes;
    if (rank < 0 || rank >= rt->job.size) return base_error(NCCLX_ERR_RANK, "node of rank %d: the job has %d ranks", rank, rt->job.size);
    *node = 0;
    if (rt->job.local_size == rt->job.size) return NCCLX_SUCCESS;
    int error = bootstrap_nodes_get(rt->bootstrap, &nodes);
    if (!error) *node = nodes->of[rank];
    return error;
}

int bootstrap_node_ranks(struct ncclx_rt *rt, int rank, const int **ranks, int *count)
{
    const struct bootstrap_nodes *nodes;
    int node;
    *ranks = rt->job.local_ranks;
    *count = rt->job.local_size;
    if (base_job_local_index(&rt->job, rank) >= 0) return NCCLX_SUCCESS;
    int error = bootstrap_node_of(rt, rank, &node);
    if (!error) error = bootstrap_nodes_get(rt->bootstrap, &nodes);
    if (error) return error;
    *ranks = nodes->node[node].ranks;
    *count = nodes->node[node].count;
    return NCCLX_SUCCESS;
}
