/* job.c - what the server says about the job, and the job of one when there is no server. */
#include "config.h"

#include "bootstrap/client.h"

#include <errno.h>
#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

bool bootstrap_value_number(const pmix_value_t *value, uint64_t *number)
{
    int64_t number_signed;
    switch (value->type) {
    case PMIX_BOOL: *number = value->data.flag; return true;
    case PMIX_BYTE: *number = value->data.byte; return true;
    case PMIX_SIZE: *number = value->data.size; return true;
    case PMIX_UINT: *number = value->data.uint; return true;
    case PMIX_UINT8: *number = value->data.uint8; return true;
    case PMIX_UINT16: *number = value->data.uint16; return true;
    case PMIX_UINT32: *number = value->data.uint32; return true;
    case PMIX_UINT64: *number = value->data.uint64; return true;
    case PMIX_PROC_RANK: *number = value->data.rank; return true;
    case PMIX_INT: number_signed = value->data.integer; break;
    case PMIX_INT8: number_signed = value->data.int8; break;
    case PMIX_INT16: number_signed = value->data.int16; break;
    case PMIX_INT32: number_signed = value->data.int32; break;
    case PMIX_INT64: number_signed = value->data.int64; break;
    default: return false;
    }
    *number = (uint64_t)number_signed;
    return number_signed >= 0;
}

const char *bootstrap_value_text(const pmix_value_t *value)
{
    return value->type == PMIX_STRING ? value->data.string : NULL;
}

static int by_number(const void *a, const void *b)
{
    int left = *(const int *)a, right = *(const int *)b;
    return (left > right) - (left < right);
}

/* False when one of them stands there twice. */
static bool sort_ranks(int *ranks, size_t count)
{
    qsort(ranks, count, sizeof *ranks, by_number);
    for (size_t i = 1; i < count; i++)
        if (ranks[i] == ranks[i - 1]) return false;
    return true;
}

bool bootstrap_parse_ranks(const char *text, int size, int **ranks, int *count)
{
    size_t commas = 0, used = 0;
    for (const char *c = text; *c; c++) commas += *c == ',';
    if (size < 1 || commas >= (size_t)size) return false;
    int *list = base_calloc(AREA_BOOTSTRAP, commas + 1, sizeof *list);
    if (!list) return false;
    for (const char *c = text;; c++) {
        char *end = NULL;
        errno = 0;
        unsigned long rank = *c >= '0' && *c <= '9' ? strtoul(c, &end, 10) : ULONG_MAX;
        if (errno || rank >= (unsigned long)size || (*end != ',' && *end)) goto bad;
        list[used++] = (int)rank;
        c = end;
        if (!*c) break;
    }
    if (!sort_ranks(list, used)) goto bad;
    *ranks = list;
    *count = (int)used;
    return true;
bad:
    base_free(AREA_BOOTSTRAP, list);
    return false;
}

static pmix_status_t rank_value(struct bootstrap *boot, pmix_rank_t rank, const char *key, const char *host, pmix_value_t **value)
{
    pmix_proc_t proc;
    pmix_info_t info[3];
    bool yes = true;
    PMIX_LOAD_PROCID(&proc, boot->self.nspace, rank);
    PMIX_INFO_LOAD(&info[0], PMIX_OPTIONAL, &yes, PMIX_BOOL);
    if (host) {
        PMIX_INFO_LOAD(&info[1], PMIX_NODE_INFO, &yes, PMIX_BOOL);
        PMIX_INFO_LOAD(&info[2], PMIX_HOSTNAME, host, PMIX_STRING);
    }
    pmix_status_t status = PMIx_Get(&proc, key, info, host ? 3 : 1, value);
    PMIX_INFO_DESTRUCT(&info[0]);
    if (host) PMIX_INFO_DESTRUCT(&info[2]);
    return status;
}

pmix_status_t bootstrap_job_value(struct bootstrap *boot, const char *key, const char *host, pmix_value_t **value)
{
    return rank_value(boot, PMIX_RANK_WILDCARD, key, host, value);
}

static bool job_number(struct bootstrap *boot, pmix_rank_t rank, const char *key, const char *host, uint64_t *number)
{
    pmix_value_t *value;
    if (rank_value(boot, rank, key, host, &value) != PMIX_SUCCESS) return false;
    bool good = bootstrap_value_number(value, number);
    PMIX_VALUE_RELEASE(value);
    return good;
}

static void host_name(char *name, size_t bytes)
{
    if (gethostname(name, bytes)) snprintf(name, bytes, "localhost");
    name[bytes - 1] = 0;
}

/* The name of this node as the server has it, which may not be the host's: several nodes can be one host. */
static void fill_node_name(struct bootstrap *boot, struct base_job *job)
{
    pmix_value_t *value;
    const char *text = NULL, *slurm = getenv("SLURMD_NODENAME");
    pmix_status_t status = rank_value(boot, boot->self.rank, PMIX_HOSTNAME, NULL, &value);
    if (status == PMIX_SUCCESS) text = bootstrap_value_text(value);
    if (text && *text) snprintf(job->node_name, sizeof job->node_name, "%s", text);
    else if (slurm && *slurm) snprintf(job->node_name, sizeof job->node_name, "%s", slurm);
    else host_name(job->node_name, sizeof job->node_name);
    if (status == PMIX_SUCCESS) PMIX_VALUE_RELEASE(value);
}

static bool ranks_from_key(struct bootstrap *boot, const char *host, int **ranks, int *count)
{
    pmix_value_t *value;
    if (bootstrap_job_value(boot, PMIX_LOCAL_PEERS, host, &value) != PMIX_SUCCESS) return false;
    const char *text = bootstrap_value_text(value);
    bool good = text && bootstrap_parse_ranks(text, boot->rt->job.size, ranks, count);
    PMIX_VALUE_RELEASE(value);
    return good;
}

static bool ranks_from_server(struct bootstrap *boot, const char *host, int **ranks, int *count)
{
    pmix_proc_t *procs = NULL;
    size_t found = 0, used = 0, size = (size_t)boot->rt->job.size;
    if (PMIx_Resolve_peers(host, boot->self.nspace, &procs, &found) != PMIX_SUCCESS) return false;
    int *list = found && found <= size ? base_calloc(AREA_BOOTSTRAP, found, sizeof *list) : NULL;
    for (; list && used < found && procs[used].rank < size; used++) list[used] = (int)procs[used].rank;
    PMIX_PROC_FREE(procs, found);
    if (!list || used != found || !sort_ranks(list, found)) {
        base_free(AREA_BOOTSTRAP, list);
        return false;
    }
    *ranks = list;
    *count = (int)found;
    return true;
}

int bootstrap_ranks_on(struct bootstrap *boot, const char *host, int **ranks, int *count)
{
    if (ranks_from_key(boot, host, ranks, count) || ranks_from_server(boot, host, ranks, count)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server does not say which ranks of job %s run on node %s", boot->rt->job.id, host);
}

static int fill_local_ranks(struct bootstrap *boot, struct base_job *job)
{
    if (!ranks_from_key(boot, NULL, &job->local_ranks, &job->local_size)) {
        int error = bootstrap_ranks_on(boot, job->node_name, &job->local_ranks, &job->local_size);
        if (error) return error;
    }
    job->local_rank = base_job_local_index(job, job->rank);
    if (job->local_rank >= 0) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server does not count rank %d among the ranks of its own node %s", job->rank,
                      job->node_name);
}

/* Other process managers do not tell whether ranks share cores. A rank may be bound to a part of what the node's ranks have together;
 * what Slurm gave the step on this node is then the better figure. In doubt a rank yields: on a core of its own that costs little. */
static bool guess_oversubscribed(const struct base_job *job)
{
    cpu_set_t allowed;
    const char *slurm = getenv("SLURM_CPUS_ON_NODE");
    long cpus = sysconf(_SC_NPROCESSORS_ONLN);
    long step = slurm ? strtol(slurm, NULL, 10) : 0;
    if (step > 0 && step < cpus) cpus = step;
    if (step <= 0 && !sched_getaffinity(0, sizeof allowed, &allowed)) cpus = CPU_COUNT(&allowed);
    return job->local_size > cpus;
}

static int check_launcher(struct bootstrap *boot, struct base_job *job)
{
    pmix_value_t *value;
    int error = NCCLX_SUCCESS;
    if (bootstrap_job_value(boot, BOOTSTRAP_KEY_LAUNCHER, NULL, &value) != PMIX_SUCCESS) return NCCLX_SUCCESS;
    const char *version = bootstrap_value_text(value);
    job->own_launcher = true;
    if (!version || strcmp(version, PACKAGE_VERSION))
        error = base_error(NCCLX_ERR_BOOTSTRAP,
                           "this program uses ncclx %s, but ncclxrun %s started it: use the ncclxrun of the same version", PACKAGE_VERSION,
                           version ? version : "of another kind");
    PMIX_VALUE_RELEASE(value);
    return error;
}

int bootstrap_fill_job(struct bootstrap *boot)
{
    struct base_job *job = &boot->rt->job;
    uint64_t number;
    snprintf(job->id, sizeof job->id, "%.*s", (int)sizeof job->id - 1, boot->self.nspace);
    job->launched = true;
    if (!job_number(boot, PMIX_RANK_WILDCARD, PMIX_JOB_SIZE, NULL, &number) || number < 1 || number > INT_MAX)
        return base_error(NCCLX_ERR_BOOTSTRAP,
                          "the PMIx server does not say how many ranks job %s has; did an earlier program of this rank leave the job "
                          "already? A rank can join once", job->id);
    job->size = (int)number;
    if (boot->self.rank >= (pmix_rank_t)job->size)
        return base_error(NCCLX_ERR_BOOTSTRAP, "the PMIx server calls this rank %u of %d", (unsigned)boot->self.rank, job->size);
    job->rank = (int)boot->self.rank;
    job->app = job_number(boot, boot->self.rank, PMIX_APPNUM, NULL, &number) && number <= INT_MAX ? (int)number : 0;
    job->spawned = job_number(boot, PMIX_RANK_WILDCARD, PMIX_SPAWNED, NULL, &number) && number;
    fill_node_name(boot, job);
    int error = check_launcher(boot, job);
    if (!error) error = fill_local_ranks(boot, job);
    if (error) return error;
    if (job_number(boot, PMIX_RANK_WILDCARD, BOOTSTRAP_KEY_OVERSUBSCRIBED, job->node_name, &number)) job->oversubscribed = number != 0;
    else job->oversubscribed = guess_oversubscribed(job);
    return NCCLX_SUCCESS;
}

int bootstrap_fill_job_of_one(struct ncclx_rt *rt)
{
    struct base_job *job = &rt->job;
    job->local_ranks = base_calloc(AREA_BOOTSTRAP, 1, sizeof *job->local_ranks);
    if (!job->local_ranks) return base_error(NCCLX_ERR_NO_MEM, "no memory for the description of the job");
    job->rank = job->local_rank = job->app = 0;
    job->size = job->local_size = 1;
    snprintf(job->id, sizeof job->id, "alone-%ld", (long)getpid());
    host_name(job->node_name, sizeof job->node_name);
    return NCCLX_SUCCESS;
}
