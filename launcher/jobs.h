/* jobs.h - the jobs of one ncclxrun: the user's, and those that ranks have asked for (PMIx_Spawn). Which of their ranks
 * run, which have ended, and what follows from that.
 *
 * Every rank has a number, by which ncclxrun and its daemons know it: the first job's begin at 0, those of a later one
 * behind all that have been given out. No number is used twice.
 *
 * A job comes up when every daemon has said that it knows it and has started its part. When one daemon cannot, the job
 * is cancelled: what runs of it is killed, and when all daemons have answered and all that ran has ended, it is over. A
 * job that came up is over when its ranks have ended and their output has. It is then forgotten everywhere, but for the
 * first, whose map of nodes the others stand on.
 *
 * Pure: events go in by the functions below, actions come out of jobs_next, to be called after each event until it
 * returns false. What comes from daemons is checked here: a function returns false for what cannot be. */
#ifndef LAUNCHER_JOBS_H
#define LAUNCHER_JOBS_H

#include <stdbool.h>

#define JOBS_MAX_NUMBER (1 << 30)
#define JOBS_MAX 1024 /* at a time */

struct jobs;

struct job {
    struct job *next;
    int index; /* 0: the first */
    int first, count;
    int parent; /* the number of the rank that asked for it, -1: none */
    bool up, cancelled, over;
    int left;   /* ranks that have not ended */
    void *data; /* the caller's */
    /* the rest is jobs.c's */
    int daemons; /* that have not answered */
    int open;    /* ends that have not come: of each rank, and of its two outputs */
    bool told_cancelled;
    unsigned char *marks; /* of each rank */
};

enum jobs_action_kind {
    JOBS_UP,       /* it runs, and every daemon knows it */
    JOBS_CANCEL,   /* it cannot start: kill what runs of it */
    JOBS_OVER,     /* all of it has ended: forget it, then call jobs_forget (not for the first) */
    JOBS_COMPLETE, /* no rank is left, of any job. Comes once; no job comes after it */
};

struct jobs_action {
    enum jobs_action_kind kind;
    struct job *job; /* of JOBS_COMPLETE: null */
};

/* Of a tree of so many daemons. Null when memory is short. */
struct jobs *jobs_create(int daemons);
void jobs_destroy(struct jobs *jobs);
/* Null: too many jobs, no numbers left, all is complete, or memory is short; the detail is recorded. */
struct job *jobs_add(struct jobs *jobs, int count, int parent, void *data);
void jobs_forget(struct jobs *jobs, struct job *job);
/* The job of a rank; null: there is none. */
struct job *jobs_of(const struct jobs *jobs, int number);
/* The job whose numbers begin here. */
struct job *jobs_find(const struct jobs *jobs, int first);
/* All there are, from the first on. */
struct job *jobs_first(const struct jobs *jobs);
int jobs_count(const struct jobs *jobs);
int jobs_left(const struct jobs *jobs); /* ranks of all jobs that have not ended */
bool jobs_runs(const struct job *job, int number);
bool jobs_has_ended(const struct job *job, int number);

bool jobs_started(struct jobs *jobs, int number);
/* It will not be started. */
bool jobs_unstarted(struct jobs *jobs, int number);
/* One daemon has started all that it will start of this job. */
bool jobs_answered(struct jobs *jobs, int first);
bool jobs_failed(struct jobs *jobs, int first);
bool jobs_exited(struct jobs *jobs, int number);
/* Descriptor 1 or 2 of a rank has ended; -1: of all ranks, nobody reads it any more. */
bool jobs_output_ended(struct jobs *jobs, int number, int descriptor);

bool jobs_next(struct jobs *jobs, struct jobs_action *action);

#endif
