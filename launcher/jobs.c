/* jobs.c - see jobs.h. */
#include "config.h"

#include "launcher/jobs.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#define MARK_STARTED 1
#define MARK_EXITED 2
#define MARK_OUTPUT(descriptor) (2 << (descriptor)) /* 4 and 8: that output has ended */
#define MARK_UNSTARTED 16
#define ENDS_PER_RANK 3

struct jobs {
    struct job *first, **last;
    int count, daemons, end, next_index;
    int left;
    unsigned closed; /* outputs of all that nobody reads, as marks */
    bool complete, told_complete;
};

struct jobs *jobs_create(int daemons)
{
    struct jobs *jobs = base_calloc(AREA_LAUNCHER, 1, sizeof *jobs);
    if (!jobs) return NULL;
    jobs->last = &jobs->first;
    jobs->daemons = daemons;
    return jobs;
}

static void release(struct job *job)
{
    base_free(AREA_LAUNCHER, job->marks);
    base_free(AREA_LAUNCHER, job);
}

void jobs_destroy(struct jobs *jobs)
{
    if (!jobs) return;
    while (jobs->first) {
        struct job *next = jobs->first->next;
        release(jobs->first);
        jobs->first = next;
    }
    base_free(AREA_LAUNCHER, jobs);
}

struct job *jobs_add(struct jobs *jobs, int count, int parent, void *data)
{
    if (jobs->complete) {
        base_error(NCCLX_ERR_ARG, "all ranks have ended");
        return NULL;
    }
    if (jobs->count >= JOBS_MAX || count < 1 || count > JOBS_MAX_NUMBER - jobs->end) {
        base_error(NCCLX_ERR_LIMIT, "%d jobs run and %d ranks have been started: at most %d and %d", jobs->count,
                   jobs->end, JOBS_MAX, JOBS_MAX_NUMBER);
        return NULL;
    }
    struct job *job = base_calloc(AREA_LAUNCHER, 1, sizeof *job);
    unsigned char *marks = base_calloc(AREA_LAUNCHER, (size_t)count, 1);
    if (!job || !marks) {
        base_free(AREA_LAUNCHER, job);
        base_free(AREA_LAUNCHER, marks);
        base_error(NCCLX_ERR_NO_MEM, "memory is short for a job of %d ranks", count);
        return NULL;
    }
    *job = (struct job){.index = jobs->next_index++,
                        .first = jobs->end,
                        .count = count,
                        .parent = parent,
                        .left = count,
                        .data = data,
                        .daemons = jobs->daemons,
                        .open = count * ENDS_PER_RANK,
                        .marks = marks};
    for (int i = 0; i < count && jobs->closed; i++) {
        marks[i] = (unsigned char)jobs->closed;
        job->open -= __builtin_popcount(jobs->closed);
    }
    jobs->end += count;
    jobs->left += count;
    jobs->count++;
    *jobs->last = job;
    jobs->last = &job->next;
    return job;
}

void jobs_forget(struct jobs *jobs, struct job *job)
{
    struct job **place = &jobs->first;
    while (*place != job) place = &(*place)->next;
    *place = job->next;
    if (!job->next) jobs->last = place;
    jobs->count--;
    release(job);
}

struct job *jobs_of(const struct jobs *jobs, int number)
{
    struct job *job = jobs->first;
    while (job && (number < job->first || number - job->first >= job->count)) job = job->next;
    return job;
}

struct job *jobs_find(const struct jobs *jobs, int first)
{
    struct job *job = jobs_of(jobs, first);
    return job && job->first == first ? job : NULL;
}

struct job *jobs_first(const struct jobs *jobs)
{
    return jobs->first;
}

int jobs_count(const struct jobs *jobs)
{
    return jobs->count;
}

int jobs_left(const struct jobs *jobs)
{
    return jobs->left;
}

bool jobs_runs(const struct job *job, int number)
{
    return (job->marks[number - job->first] & (MARK_STARTED | MARK_EXITED)) == MARK_STARTED;
}

bool jobs_has_ended(const struct job *job, int number)
{
    return job->marks[number - job->first] & MARK_EXITED;
}

/* ---- Events ----------------------------------------------------------------------------------------------------- */

/* Sets these marks, which stand for ends; those that are new count. */
static void note_ends(struct job *job, int number, unsigned ends)
{
    unsigned char *marks = &job->marks[number - job->first];
    job->open -= __builtin_popcount(ends & ~(unsigned)*marks);
    *marks = (unsigned char)(*marks | ends);
}

static void note_left(struct jobs *jobs, struct job *job)
{
    job->left--;
    jobs->left--;
}

bool jobs_started(struct jobs *jobs, int number)
{
    struct job *job = jobs_of(jobs, number);
    if (!job || job->marks[number - job->first] & (MARK_STARTED | MARK_UNSTARTED)) return false;
    job->marks[number - job->first] |= MARK_STARTED;
    return true;
}

bool jobs_unstarted(struct jobs *jobs, int number)
{
    struct job *job = jobs_of(jobs, number);
    if (!job || job->marks[number - job->first] & (MARK_STARTED | MARK_UNSTARTED)) return false;
    job->marks[number - job->first] |= MARK_UNSTARTED;
    if (!PLANTED_BUG(BUG_JOBS_UNSTARTED_FORGOTTEN)) {
        note_ends(job, number, MARK_EXITED | MARK_OUTPUT(1) | MARK_OUTPUT(2));
        note_left(jobs, job);
    }
    job->cancelled = true;
    return true;
}

bool jobs_answered(struct jobs *jobs, int first)
{
    struct job *job = jobs_find(jobs, first);
    if (!job || job->daemons == 0) return false;
    job->daemons--;
    return true;
}

bool jobs_failed(struct jobs *jobs, int first)
{
    struct job *job = jobs_find(jobs, first);
    if (!job || job->up) return false;
    job->cancelled = true;
    return true;
}

bool jobs_exited(struct jobs *jobs, int number)
{
    struct job *job = jobs_of(jobs, number);
    if (!job || !jobs_runs(job, number)) return false;
    note_ends(job, number, MARK_EXITED);
    note_left(jobs, job);
    return true;
}

bool jobs_output_ended(struct jobs *jobs, int number, int descriptor)
{
    unsigned mark = (unsigned)MARK_OUTPUT(descriptor);
    if (number >= 0) {
        struct job *job = jobs_of(jobs, number);
        if (job) note_ends(job, number, mark);
        return job != NULL;
    }
    jobs->closed |= mark;
    for (struct job *job = jobs->first; job; job = job->next)
        for (int i = 0; i < job->count; i++) note_ends(job, job->first + i, mark);
    return true;
}

/* ---- Actions ---------------------------------------------------------------------------------------------------- */

/* A cancelled job is over only when no daemon can start anything of it any more. */
static bool is_over(const struct job *job)
{
    return job->daemons == 0 && (job->open == 0 || (PLANTED_BUG(BUG_JOBS_OVER_EARLY) && job->left == 0));
}

static bool act(struct job *job, struct jobs_action *action)
{
    action->job = job;
    if (job->cancelled && !job->told_cancelled) {
        job->told_cancelled = true;
        action->kind = JOBS_CANCEL;
        return true;
    }
    bool known = job->daemons == 0 || PLANTED_BUG(BUG_JOBS_UP_EARLY);
    if (!job->up && !job->cancelled && known) {
        job->up = true;
        action->kind = JOBS_UP;
        return true;
    }
    if (job->over || !is_over(job)) return false;
    job->over = true;
    action->kind = JOBS_OVER;
    return true;
}

bool jobs_next(struct jobs *jobs, struct jobs_action *action)
{
    for (struct job *job = jobs->first; job; job = job->next)
        if (act(job, action)) return true;
    if (jobs->told_complete || !jobs->first || jobs->left > 0) return false;
    for (const struct job *job = jobs->first; job; job = job->next)
        if (job->daemons > 0) return false;
    jobs->complete = jobs->told_complete = true;
    *action = (struct jobs_action){.kind = JOBS_COMPLETE};
    return true;
}
