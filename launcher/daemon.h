/* daemon.h - the state of ncclxd on one node, shared by its files. */
#ifndef LAUNCHER_DAEMON_H
#define LAUNCHER_DAEMON_H

#include "launcher/child.h"
#include "launcher/child_pool.h"
#include "launcher/cpus.h"
#include "launcher/message.h"
#include "launcher/order.h"
#include "launcher/server.h"
#include "launcher/wiring.h"

#include <event2/buffer.h>
#include <event2/event.h>

struct daemon_job;
struct daemon_rank;
struct daemon_start;

/* One output of a rank, on its way to the place above. */
struct daemon_stream {
    struct daemon_rank *rank;
    int fd; /* -1: closed */
    int descriptor;
    struct event *readable;
};

struct daemon_rank {
    struct daemon_job *job;
    int rank;  /* of the job */
    pid_t pid; /* 0: it was not started */
    bool running;
    bool was_dying; /* when the ranks here were told to end */
    struct daemon_stream streams[2];
    int input_fd; /* where forwarded input is written; -1: none */
    struct evbuffer *input;
    struct event *writable;
};

/* What this node has of a job. */
struct daemon_job {
    struct daemon_job *next;
    struct daemon *daemon;
    struct message_launch launch;
    struct daemon_rank *ranks; /* of this node */
    int rank_count;
    struct daemon_start *start; /* ranks are being started; null: all are, or no more will be */
    int segment_fd;             /* the memory that they share; -1: none */
    bool cancelled;             /* it could not start everywhere: its ranks are killed, and that is no failure */
};

enum daemon_phase { DAEMON_IDLE, DAEMON_RUNNING, DAEMON_TERMINATING, DAEMON_KILLING, DAEMON_DONE };

struct daemon {
    struct event_base *base;
    const struct order *order;
    struct wiring *wiring;
    pid_t parent; /* the front, on its host */
    struct cpus cpus;
    struct server *server;
    struct child_pool *pool;
    struct daemon_job *jobs;    /* from the first on, which stays */
    int running;                /* ranks of all jobs */
    bool complete;              /* no more jobs come */
    struct evbuffer *held;      /* orders that wait until no job is being started */
    int open_streams;
    enum daemon_phase phase;
    struct event *reap, *end_timer, *stop_timer, *upcalls, *guard;
    struct rlimit files; /* as the user has set it */
    const char *scratch;
    const char *node;
    bool described; /* the topology is not this machine's: nothing is bound */
    const char *lost_directory; /* why the user's directory cannot be entered here; null: it was */
    bool paused;    /* ranks are not read from: the link up is full */
    bool alone;     /* the front end is gone */
    bool gone;      /* no process of the job is left */
    bool ended;     /* and the tree knows */
    bool unreachable, unguarded;
    bool input_ended;
    bool input_read; /* somebody takes the last piece */
    int inputs_behind; /* targets, here and below, that have not taken everything yet */
};

/* daemon.c */
struct daemon_options {
    const struct order *order;
    int parent_fd; /* the link to the front, on its host; -1: the place above is connected to */
    pid_t parent;  /* the front, then */
    int guard_fd;  /* ends when the guard dies */
    const char *scratch;
    const char *lost_directory;
};
/* Serves its place in the tree; returns the exit status of ncclxd. */
int daemon_run(const struct daemon_options *options);
/* TERM to everything and KILL after the grace, or KILL now. */
void daemon_end(struct daemon *daemon, bool at_once);
/* Nothing can go on: the exit status and the reason. */
void daemon_refuse(struct daemon *daemon, int status, const char *text);
/* The number of a rank. */
int daemon_number(const struct daemon_rank *rank);
/* Null: there is none of this node. */
struct daemon_rank *daemon_find_rank(struct daemon *daemon, int number);
struct daemon_job *daemon_find_job(struct daemon *daemon, int first);
/* With the first job. */
int daemon_start_server(struct daemon *daemon, const struct message_launch *launch, const char *segment);
void daemon_trouble(struct daemon *daemon, const char *text);
/* On standard error, which the agent brings to the place above. */
void daemon_say(const char *text);
/* Up, to the front. */
void daemon_send(struct daemon *daemon, struct frame_writer *writer);
/* No process is left and nothing is left to read. */
void daemon_job_over(struct daemon *daemon);

/* daemon_frames.c: what comes over the links. */
extern const struct wiring_events daemon_wiring_events;
/* Takes a message of the own server to that of a neighbour. */
void daemon_send_to_server(void *daemon, int link, const void *data, size_t bytes);

/* A start is over: what was held back meanwhile, unless there is another. */
void daemon_take_held(struct daemon *daemon);
bool daemon_starts(const struct daemon *daemon);

/* daemon_end.c: the processes of the job, from their start to their end. */
int daemon_watch_children(struct daemon *daemon);
void daemon_signal_ranks(struct daemon *daemon, int number);
/* Reports the ranks that a signal has ended, whether or not we have been told of them yet. */
void daemon_take_deaths(struct daemon *daemon);
/* Is this the end? Looked at soon, when children have ended meanwhile. */
void daemon_look_for_end(struct daemon *daemon);

/* daemon_job.c: jobs, from the launch order to the end. */
int daemon_launch(struct daemon *daemon, const struct frame *frame);
/* The PMIx server knows it from now on. */
int daemon_tell_server(struct daemon_job *job);
/* It cannot start here: exit status and reason. What runs of it is killed. */
void daemon_fail_job(struct daemon_job *job, int status, const char *text);
/* Kills what runs of it. */
void daemon_cancel_job(struct daemon_job *job);
int daemon_cancel(struct daemon *daemon, const struct frame *frame);
int daemon_retire(struct daemon *daemon, const struct frame *frame);

/* daemon_start.c: carries a launch order out. */
void daemon_start_ranks(struct daemon_job *job);
/* No more ranks than have been started. */
void daemon_stop_start(struct daemon_job *job);
void daemon_stop_starts(struct daemon *daemon);

/* daemon_streams.c: output of ranks, and forwarded input. */
int daemon_open_streams(struct daemon_rank *rank, int child_stdio[3], bool wants_input);
/* Stops reading from ranks, and from those below, while the link up is full. */
void daemon_pause_streams(struct daemon *daemon, bool pause);
void daemon_close_output(struct daemon *daemon, int descriptor);
void daemon_drain_streams(struct daemon *daemon);
/* What is left open of a rank, without a word. */
void daemon_close_streams(struct daemon_rank *rank);
void daemon_close_input(struct daemon_rank *rank);
void daemon_forward_input(struct daemon *daemon, const void *data, size_t bytes);
/* One of those that take input, here or below, has taken all. */
void daemon_input_taken(struct daemon *daemon);

/* daemon_where.c: tells of each rank that cannot tell itself what its process does. */
void daemon_tell_where(struct daemon *daemon);

/* ncclxd_describe.c: `ncclxd --describe`, for ncclxrun --dry-run. The exit status; what is wrong goes to the reader. */
int daemon_describe(const char *description);

#endif
