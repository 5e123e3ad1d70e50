/* server_jobs.c - the jobs that the PMIx server knows: from numbers of ranks to processes of PMIx and back, and what is
 * known of each rank. The table is changed on the daemon's thread and read on PMIx', behind a lock of its own, which is
 * taken last. */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/kvx/kvx.h"
#include "runtime/base/base.h"

#include <string.h>

struct server_job {
    struct server_job *next; /* by numbers */
    const struct message_launch *launch;
    unsigned char marks[]; /* enum server_mark, of each rank */
};

int server_jobs_add(struct server_jobs *jobs, const struct message_launch *launch)
{
    struct server_job *job =
        base_calloc(AREA_LAUNCHER, 1, sizeof *job + (size_t)launch->rank_count * sizeof job->marks[0]);
    if (!job) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    job->launch = launch;
    pthread_mutex_lock(&jobs->lock);
    struct server_job **place = &jobs->first;
    while (*place) place = &(*place)->next;
    *place = job;
    jobs->end = launch->first + launch->rank_count;
    pthread_mutex_unlock(&jobs->lock);
    return NCCLX_SUCCESS;
}

void server_jobs_remove(struct server_jobs *jobs, int first)
{
    pthread_mutex_lock(&jobs->lock);
    struct server_job **place = &jobs->first, *job;
    while (*place && (*place)->launch->first != first) place = &(*place)->next;
    job = *place;
    if (job) *place = job->next;
    pthread_mutex_unlock(&jobs->lock);
    base_free(AREA_LAUNCHER, job);
}

void server_jobs_free(struct server_jobs *jobs)
{
    while (jobs->first) server_jobs_remove(jobs, jobs->first->launch->first);
}

const struct message_launch *server_jobs_next(const struct server_jobs *jobs, const struct message_launch *launch)
{
    const struct server_job *job = jobs->first;
    while (job && launch && job->launch->first <= launch->first) job = job->next;
    return job ? job->launch : NULL;
}

/* ---- With the lock ---- */

static struct server_job *find(const struct server_jobs *jobs, int number)
{
    struct server_job *job = jobs->first;
    while (job && (number < job->launch->first || number - job->launch->first >= job->launch->rank_count))
        job = job->next;
    return job;
}

static struct server_job *find_name(const struct server_jobs *jobs, const char *name)
{
    struct server_job *job = jobs->first;
    while (job && strncmp(job->launch->job, name, PMIX_MAX_NSLEN)) job = job->next;
    return job;
}

/* False: not among them. */
static bool range_of(const struct server_jobs *jobs, const pmix_proc_t *proc, struct kvx_range *range)
{
    const struct server_job *job = find_name(jobs, proc->nspace);
    bool all = proc->rank == PMIX_RANK_WILDCARD;
    if (!job || (!all && proc->rank >= (pmix_rank_t)job->launch->rank_count)) return false;
    uint32_t first = (uint32_t)job->launch->first, last = first + (uint32_t)job->launch->rank_count - 1;
    *range = all ? (struct kvx_range){first, last} : (struct kvx_range){first + proc->rank, first + proc->rank};
    return true;
}

/* ---- For everybody ---- */

int server_number(struct server_jobs *jobs, const pmix_proc_t *proc)
{
    struct kvx_range range;
    pthread_mutex_lock(&jobs->lock);
    bool found = proc->rank != PMIX_RANK_WILDCARD && range_of(jobs, proc, &range);
    pthread_mutex_unlock(&jobs->lock);
    return found ? (int)range.first : -1;
}

bool server_proc(struct server_jobs *jobs, int number, pmix_proc_t *proc)
{
    pthread_mutex_lock(&jobs->lock);
    const struct server_job *job = find(jobs, number);
    if (job) PMIX_LOAD_PROCID(proc, job->launch->job, (pmix_rank_t)(number - job->launch->first));
    pthread_mutex_unlock(&jobs->lock);
    return job != NULL;
}

int server_node_of(struct server_jobs *jobs, int number)
{
    pthread_mutex_lock(&jobs->lock);
    const struct server_job *job = find(jobs, number);
    int node = job ? job->launch->ranks[number - job->launch->first].node : -1;
    pthread_mutex_unlock(&jobs->lock);
    return node;
}

void server_set_mark(struct server_jobs *jobs, int number, enum server_mark mark, bool set)
{
    pthread_mutex_lock(&jobs->lock);
    struct server_job *job = find(jobs, number);
    unsigned char *marks = job ? &job->marks[number - job->launch->first] : NULL;
    if (marks) *marks = (unsigned char)(set ? *marks | mark : *marks & ~mark);
    pthread_mutex_unlock(&jobs->lock);
}

bool server_has_mark(struct server_jobs *jobs, int number, enum server_mark mark)
{
    pthread_mutex_lock(&jobs->lock);
    const struct server_job *job = find(jobs, number);
    bool has = job && job->marks[number - job->launch->first] & mark;
    pthread_mutex_unlock(&jobs->lock);
    return has;
}

void server_set_marks(struct server_jobs *jobs, const struct kvx_range *range, enum server_mark mark)
{
    pthread_mutex_lock(&jobs->lock);
    for (struct server_job *job = jobs->first; job; job = job->next) {
        int from = (int)range->first - job->launch->first, to = (int)range->last - job->launch->first;
        for (int i = from < 0 ? 0 : from; i <= to && i < job->launch->rank_count; i++)
            job->marks[i] |= (unsigned char)mark;
    }
    pthread_mutex_unlock(&jobs->lock);
}

struct kvx_range *server_ranges(struct server_jobs *jobs, const pmix_proc_t procs[], size_t count)
{
    struct kvx_range *ranges = base_calloc(AREA_LAUNCHER, count + 1, sizeof *ranges);
    bool good = ranges != NULL;
    pthread_mutex_lock(&jobs->lock);
    for (size_t i = 0; i < count && good; i++) good = range_of(jobs, &procs[i], &ranges[i]);
    pthread_mutex_unlock(&jobs->lock);
    if (good) return ranges;
    base_free(AREA_LAUNCHER, ranges);
    return NULL;
}

void server_visit(struct server_jobs *jobs, const struct kvx_range *range, server_visit_fn visit, void *arg)
{
    pthread_mutex_lock(&jobs->lock);
    for (const struct server_job *job = jobs->first; job; job = job->next) {
        const struct message_launch *launch = job->launch;
        int from = (int)range->first - launch->first, to = (int)range->last - launch->first;
        for (int i = from < 0 ? 0 : from; i <= to && i < launch->rank_count; i++)
            visit(arg, launch->first + i, launch->ranks[i].node);
    }
    pthread_mutex_unlock(&jobs->lock);
}
