/* job.h - what a rank knows of its job. bootstrap fills it; everyone reads it. */
#ifndef BASE_JOB_H
#define BASE_JOB_H

#include <stdbool.h>

struct base_job {
    char id[256];         /* the PMIx namespace */
    char node_name[256];  /* this node as the process manager calls it; gethostname() may be the same on two nodes */
    int rank, size;       /* of COMM_WORLD */
    int local_rank;       /* index of this rank in local_ranks */
    int local_size;       /* ranks on this node */
    int *local_ranks;     /* their job ranks, ascending */
    int app;              /* index of this rank's program in a job of several (MPMD), from 0 */
    bool launched;        /* false: a job of one without a process manager */
    bool spawned;         /* ranks of another job have asked for it, beside which its ranks must be told apart */
    bool own_launcher;    /* ncclxd is the PMIx server */
    bool oversubscribed;  /* more ranks than cores they may use on this node: waiting ranks yield at once */
};

/* Index of a job rank among the ranks of this node, or -1 when it is on another. */
static inline int base_job_local_index(const struct base_job *job, int rank)
{
    int low = 0, high = job->local_size - 1;
    if (high >= 0 && job->local_ranks[high] - job->local_ranks[0] == high) { /* consecutive: the usual case */
        int index = rank - job->local_ranks[0];
        return index >= 0 && index <= high ? index : -1;
    }
    while (low <= high) {
        int middle = low + (high - low) / 2;
        if (job->local_ranks[middle] == rank) return middle;
        if (job->local_ranks[middle] < rank) low = middle + 1;
        else high = middle - 1;
    }
    return -1;
}

#endif
