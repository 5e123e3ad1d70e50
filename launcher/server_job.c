/* server_job.c - what PMIx is told about the job and its ranks before they start. Kept short: registration is the
 * largest cost of a start, and what is the same on every rank is said once, for the job. */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/bootstrap.h"
#include "runtime/base/base.h"

#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define RANK_TEXT_BYTES 9   /* digits of a rank (MAP_MAX_RANKS), and what is between two */
#define TELL_ALL_RANKS 1024 /* of a job of which libpmix is told everything of every rank */

/* Operations that PMIx completes on its thread. */
struct pending {
    pthread_mutex_t lock;
    pthread_cond_t done;
    int count;
    pmix_status_t status;
};

static void on_done(pmix_status_t status, void *arg)
{
    struct pending *pending = arg;
    pthread_mutex_lock(&pending->lock);
    if (status != PMIX_SUCCESS && status != PMIX_OPERATION_SUCCEEDED) pending->status = status;
    pending->count--;
    pthread_cond_signal(&pending->done);
    pthread_mutex_unlock(&pending->lock);
}

static void await(struct pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    while (pending->count > 0) pthread_cond_wait(&pending->done, &pending->lock);
    pthread_mutex_unlock(&pending->lock);
}

static void add_pending(struct pending *pending)
{
    pthread_mutex_lock(&pending->lock);
    pending->count++;
    pthread_mutex_unlock(&pending->lock);
}

/* What a call that starts an operation returned: anything but SUCCESS means that no callback comes. */
static void settle(struct pending *pending, pmix_status_t status)
{
    if (status != PMIX_SUCCESS) on_done(status, pending);
}

/* Ranks by node, in the order of nodes: those of node n are rank[first[n]] .. rank[first[n + 1] - 1]. */
struct roster {
    int *first, *rank;
};

static void release_roster(struct roster *roster)
{
    base_free(AREA_LAUNCHER, roster->first);
    base_free(AREA_LAUNCHER, roster->rank);
}

static int make_roster(const struct message_launch *launch, struct roster *roster)
{
    roster->first = base_calloc(AREA_LAUNCHER, (size_t)launch->node_count + 2, sizeof *roster->first);
    roster->rank = base_calloc(AREA_LAUNCHER, (size_t)launch->rank_count + 1, sizeof *roster->rank);
    if (!roster->first || !roster->rank) {
        release_roster(roster);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of the job");
    }
    int *next = roster->first + 1; /* of each node, while it is filled; then the first of the one after it */
    for (int i = 0; i < launch->rank_count; i++) next[launch->ranks[i].node + 1]++;
    for (int node = 0; node < launch->node_count; node++) next[node + 1] += next[node];
    for (int i = 0; i < launch->rank_count; i++) roster->rank[next[launch->ranks[i].node]++] = i;
    return NCCLX_SUCCESS;
}

static int count_on(const struct roster *roster, int node)
{
    return roster->first[node + 1] - roster->first[node];
}

/* Writes into `out` what `format` says, and moves it on. */
__attribute__((format(printf, 2, 3))) static void write_on(char **out, const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    *out += vsprintf(*out, format, arguments);
    va_end(arguments);
}

/* Whether the map that libpmix gets has this node. */
static bool is_mapped(const struct message_launch *launch, int node)
{
    return node == launch->node || launch->node_count <= SERVER_MAP_NODES;
}

/* The names of the nodes, and the ranks of each node, as PMIx wants them: "a,b" and "0,1;2,3". It knows no node without
 * ranks. */
static void write_lists(const struct message_launch *launch, const struct roster *roster, char *names, char *ranks)
{
    const char *more_names = "", *more_ranks = "";
    for (int node = 0; node < launch->node_count; node++) {
        if (count_on(roster, node) == 0 || !is_mapped(launch, node)) continue;
        write_on(&names, "%s%s", more_names, launch->nodes[node]);
        for (int i = roster->first[node]; i < roster->first[node + 1]; i++)
            write_on(&ranks, "%s%d", i == roster->first[node] ? more_ranks : ",", roster->rank[i]);
        more_names = ",";
        more_ranks = ";";
    }
}

/* The same of all nodes in one text of ours, with ranges: "a=0-1;b=2-3,7". */
static void write_places(const struct message_launch *launch, const struct roster *roster, char *out)
{
    const char *more = "";
    for (int node = 0; node < launch->node_count; node++) {
        const int *rank = roster->rank + roster->first[node];
        int count = count_on(roster, node);
        for (int i = 0, last; i < count; i = last + 1) {
            for (last = i; last + 1 < count && rank[last + 1] == rank[last] + 1;) last++;
            if (i == 0)
                write_on(&out, "%s%s=%d", more, launch->nodes[node], rank[i]);
            else
                write_on(&out, ",%d", rank[i]);
            if (last > i) write_on(&out, "-%d", rank[last]);
        }
        if (count) more = ";";
    }
}

struct lists {
    char *nodes, *ranks, *places;
};

static void release_lists(struct lists *lists)
{
    base_free(AREA_LAUNCHER, lists->nodes);
    base_free(AREA_LAUNCHER, lists->ranks);
    base_free(AREA_LAUNCHER, lists->places);
}

static int make_lists(const struct message_launch *launch, const struct roster *roster, struct lists *lists)
{
    size_t names = 1, ranks = (size_t)launch->rank_count * RANK_TEXT_BYTES + 1;
    for (int i = 0; i < launch->node_count; i++) names += strlen(launch->nodes[i]) + 2;
    *lists = (struct lists){base_calloc(AREA_LAUNCHER, names, 1), base_calloc(AREA_LAUNCHER, ranks, 1),
                            base_calloc(AREA_LAUNCHER, names + ranks, 1)};
    if (lists->nodes && lists->ranks && lists->places) {
        write_lists(launch, roster, lists->nodes, lists->ranks);
        write_places(launch, roster, lists->places);
        return NCCLX_SUCCESS;
    }
    release_lists(lists);
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of the job");
}

/* A growing list of facts. */
struct facts {
    pmix_info_t *list;
    size_t count;
};

static void add_fact(struct facts *facts, const char *key, const void *value, pmix_data_type_t type)
{
    PMIX_INFO_LOAD(&facts->list[facts->count], key, value, type);
    facts->count++;
}

static void add_text(struct facts *facts, const char *key, const char *value)
{
    add_fact(facts, key, value, PMIX_STRING);
}

static void add_number(struct facts *facts, const char *key, uint32_t value)
{
    add_fact(facts, key, &value, PMIX_UINT32);
}

/* Hands a list of facts over as one array. */
static void add_array(struct facts *facts, const char *key, pmix_info_t *list, size_t count)
{
    pmix_data_array_t array = {.type = PMIX_INFO, .size = count, .array = list};
    add_fact(facts, key, &array, PMIX_DATA_ARRAY); /* copies */
}

/* PMIX_RANK comes first in the array, or the values are not filed under the rank. */
static void add_rank(struct facts *facts, const struct message_launch *launch, const pmix_proc_t *parent, int rank)
{
    pmix_info_t list[7];
    struct facts own = {.list = list};
    const struct map_rank *mapped = &launch->ranks[rank];
    pmix_rank_t number = (pmix_rank_t)rank;
    uint16_t local = (uint16_t)mapped->local_rank;
    add_fact(&own, PMIX_RANK, &number, PMIX_PROC_RANK);
    add_number(&own, PMIX_APPNUM, (uint32_t)mapped->app);
    add_fact(&own, PMIX_LOCAL_RANK, &local, PMIX_UINT16);
    add_fact(&own, PMIX_NODE_RANK, &local, PMIX_UINT16);
    add_fact(&own, PMIX_GLOBAL_RANK, &number, PMIX_PROC_RANK);
    add_fact(&own, PMIX_NODEID, &(uint32_t){(uint32_t)mapped->node}, PMIX_UINT32);
    if (parent && mapped->node == launch->node) add_fact(&own, PMIX_PARENT_ID, parent, PMIX_PROC);
    add_array(facts, PMIX_PROC_INFO_ARRAY, list, own.count);
    for (size_t i = 0; i < own.count; i++) PMIX_INFO_DESTRUCT(&list[i]);
}

/* All that is said of a rank whose node is not in the map: a client does not start without an entry for every rank. */
static void add_far_rank(struct facts *facts, const struct message_launch *launch, int rank)
{
    pmix_info_t list[2];
    struct facts own = {.list = list};
    pmix_rank_t number = (pmix_rank_t)rank;
    add_fact(&own, PMIX_RANK, &number, PMIX_PROC_RANK);
    add_text(&own, PMIX_HOSTNAME, launch->nodes[launch->ranks[rank].node]);
    add_array(facts, PMIX_PROC_INFO_ARRAY, list, own.count);
    for (size_t i = 0; i < own.count; i++) PMIX_INFO_DESTRUCT(&list[i]);
}

static void add_node(struct facts *facts, const struct message_launch *launch, int node, int ranks)
{
    pmix_info_t list[4];
    struct facts own = {.list = list};
    add_text(&own, PMIX_HOSTNAME, launch->nodes[node]);
    add_number(&own, PMIX_NODEID, (uint32_t)node);
    add_number(&own, PMIX_NODE_SIZE, (uint32_t)ranks);
    add_fact(&own, BOOTSTRAP_KEY_OVERSUBSCRIBED, &launch->oversubscribed[node], PMIX_BOOL);
    add_array(facts, PMIX_NODE_INFO_ARRAY, list, own.count);
    for (size_t i = 0; i < own.count; i++) PMIX_INFO_DESTRUCT(&list[i]);
}

/* Asked of the job; libpmix looks there for no rank, which gets it once more. */
static void add_parent(struct facts *facts, const pmix_proc_t *parent)
{
    bool yes = true;
    if (!parent) return;
    add_fact(facts, PMIX_PARENT_ID, parent, PMIX_PROC);
    add_fact(facts, PMIX_SPAWNED, &yes, PMIX_BOOL);
}

static void add_job(struct facts *facts, struct server *server, const struct message_launch *launch,
                    const char *segment, int ranks_here)
{
    const char *temporary = getenv("TMPDIR");
    add_text(facts, PMIX_JOBID, launch->job);
    add_number(facts, PMIX_UNIV_SIZE, (uint32_t)launch->rank_count);
    add_number(facts, PMIX_MAX_PROCS, (uint32_t)launch->rank_count);
    add_number(facts, PMIX_JOB_SIZE, (uint32_t)launch->rank_count);
    add_number(facts, PMIX_JOB_NUM_APPS, (uint32_t)launch->app_count);
    add_number(facts, PMIX_NODE_SIZE, (uint32_t)ranks_here);
    add_number(facts, PMIX_LOCAL_SIZE, (uint32_t)ranks_here);
    add_text(facts, PMIX_TMPDIR, temporary && *temporary == '/' ? temporary : "/tmp");
    add_text(facts, PMIX_NSDIR, server->scratch);
    add_text(facts, BOOTSTRAP_KEY_LAUNCHER, PACKAGE_VERSION);
    /* True of this node; a job-level value may differ from server to server, and costs ranks one look-up. */
    if (segment) add_text(facts, BOOTSTRAP_KEY_SEGMENT, segment);
    add_fact(facts, BOOTSTRAP_KEY_OVERSUBSCRIBED, &launch->oversubscribed[launch->node], PMIX_BOOL);
}

/* The maps as PMIx' regular expressions. */
static int add_maps(struct facts *facts, const struct message_launch *launch, const struct roster *roster)
{
    struct lists lists;
    char *node_map = NULL, *rank_map = NULL;
    int code = make_lists(launch, roster, &lists);
    if (code) return code;
    pmix_status_t status = PMIx_generate_regex(lists.nodes, &node_map);
    if (status == PMIX_SUCCESS) status = PMIx_generate_ppn(lists.ranks, &rank_map);
    if (status == PMIX_SUCCESS) {
        add_fact(facts, PMIX_NODE_MAP, node_map, PMIX_REGEX);
        add_fact(facts, PMIX_PROC_MAP, rank_map, PMIX_REGEX);
        add_text(facts, BOOTSTRAP_KEY_PLACES, lists.places);
    }
    free(node_map);
    free(rank_map);
    release_lists(&lists);
    return status == PMIX_SUCCESS ? NCCLX_SUCCESS : server_error(status, "write the map of the job");
}

static void register_clients(const struct message_launch *launch, const struct roster *roster, struct pending *pending)
{
    for (int i = roster->first[launch->node]; i < roster->first[launch->node + 1]; i++) {
        pmix_proc_t proc;
        PMIX_LOAD_PROCID(&proc, launch->job, (pmix_rank_t)roster->rank[i]);
        add_pending(pending);
        settle(pending, PMIx_server_register_client(&proc, geteuid(), getegid(), NULL, on_done, pending));
    }
}

/* What is said of each rank and each node of a large job takes seconds and half a gigabyte on every one of its nodes.
 * There the facts are of this node only; of the others libpmix knows, from the map, who runs where. Beyond
 * SERVER_MAP_NODES the map has this node only: PMIx 4.2.2 looks for each node in a list, when the job is registered and
 * again in every rank that starts. For 98,304 ranks on 12,288 nodes that took 3.0 s here and 0.6 s of each rank, now
 * 0.5 s and nothing. Our own ranks read BOOTSTRAP_KEY_PLACES. */
static bool is_told_of(const struct message_launch *launch, int node)
{
    return node == launch->node || launch->rank_count <= TELL_ALL_RANKS;
}

static void add_ranks(struct facts *facts, const struct message_launch *launch, const pmix_proc_t *parent)
{
    for (int rank = 0; rank < launch->rank_count; rank++) {
        int node = launch->ranks[rank].node;
        if (!is_mapped(launch, node))
            add_far_rank(facts, launch, rank);
        else if (is_told_of(launch, node))
            add_rank(facts, launch, parent, rank);
    }
}

static int count_nodes(const struct message_launch *launch, const struct roster *roster)
{
    int count = 0;
    for (int node = 0; node < launch->node_count; node++) count += count_on(roster, node) > 0;
    return count;
}

static int register_all(struct server *server, const struct message_launch *launch, const char *segment,
                        const struct roster *roster, struct facts *facts)
{
    struct pending pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    int here = count_on(roster, launch->node), code = add_maps(facts, launch, roster);
    pmix_proc_t asked,
        *parent = server_proc(&server->jobs, launch->parent, &asked) ? &asked : NULL; /* none: the user */
    if (code) return code;
    add_job(facts, server, launch, segment, here);
    add_parent(facts, parent);
    add_number(facts, PMIX_NUM_NODES, (uint32_t)count_nodes(launch, roster));
    for (int node = 0; node < launch->node_count; node++)
        if (is_told_of(launch, node) && is_mapped(launch, node) && count_on(roster, node) > 0)
            add_node(facts, launch, node, count_on(roster, node));
    add_ranks(facts, launch, parent);
    add_pending(&pending);
    settle(&pending, PMIx_server_register_nspace(launch->job, here, facts->list, facts->count, on_done, &pending));
    register_clients(launch, roster, &pending);
    await(&pending); /* the facts must stay until the callbacks came */
    return pending.status == PMIX_SUCCESS ? NCCLX_SUCCESS : server_error(pending.status, "register the job");
}

int server_register_job(struct server *server, const struct message_launch *launch, const char *segment)
{
    size_t room = (size_t)launch->rank_count + (size_t)launch->node_count + 24;
    struct facts facts = {.count = 0};
    struct roster roster;
    int code = make_roster(launch, &roster);
    if (code) return code;
    PMIX_INFO_CREATE(facts.list, room);
    code = facts.list ? register_all(server, launch, segment, &roster, &facts)
                      : base_error(NCCLX_ERR_NO_MEM, "memory is short for the description of the job");
    PMIX_INFO_FREE(facts.list, room);
    release_roster(&roster);
    return code;
}

/* To the rank that has asked for the job, as PMIX_NOTIFY_COMPLETION wants it. */
static void tell_end(const struct message_launch *launch, const pmix_proc_t *parent, struct pending *pending)
{
    pmix_proc_t job;
    pmix_info_t list[3];
    struct facts facts = {.list = list};
    bool yes = true;
    PMIX_LOAD_PROCID(&job, launch->job, PMIX_RANK_WILDCARD);
    add_fact(&facts, PMIX_EVENT_CUSTOM_RANGE, parent, PMIX_PROC);
    add_fact(&facts, PMIX_EVENT_AFFECTED_PROC, &job, PMIX_PROC);
    add_fact(&facts, PMIX_EVENT_NON_DEFAULT, &yes, PMIX_BOOL);
    add_pending(pending);
    settle(pending,
           PMIx_Notify_event(PMIX_EVENT_JOB_END, &job, PMIX_RANGE_CUSTOM, list, facts.count, on_done, pending));
    await(pending);
    for (size_t i = 0; i < facts.count; i++) PMIX_INFO_DESTRUCT(&list[i]);
}

void server_deregister_job(struct server *server, const struct message_launch *launch)
{
    struct pending pending = {.lock = PTHREAD_MUTEX_INITIALIZER, .done = PTHREAD_COND_INITIALIZER};
    pmix_proc_t parent;
    bool here = launch->notify && server_node_of(&server->jobs, launch->parent) == launch->node;
    if (here && server_proc(&server->jobs, launch->parent, &parent)) tell_end(launch, &parent, &pending);
    add_pending(&pending);
    PMIx_server_deregister_nspace(launch->job, on_done, &pending);
    await(&pending);
}
