/* daemon.h - the state of ncclxd on one node, shared by its files. */
#ifndef LAUNCHER_DAEMON_H
#define LAUNCHER_DAEMON_H

#include "launcher/child.h"
#include "launcher/child_pool.h"
#include "launcher/cpus.h"
#include "launcher/link.h"
#include "launcher/message.h"
#include "launcher/server.h"

#include <event2/buffer.h>
#include <event2/event.h>

struct daemon_rank;

/* One output of a rank, on its way to the link. */
struct daemon_stream {
    struct daemon_rank *rank;
    int fd; /* -1: closed */
    int descriptor;
    struct event *readable;
};

struct daemon_rank {
    struct daemon *daemon;
    int rank; /* of the job */
    pid_t pid;
    bool running;
    struct daemon_stream streams[2];
    int input_fd; /* where forwarded input is written; -1: none */
    struct evbuffer *input;
    struct event *writable;
};

enum daemon_phase { DAEMON_IDLE, DAEMON_RUNNING, DAEMON_TERMINATING, DAEMON_KILLING, DAEMON_DONE };

struct daemon {
    struct event_base *base;
    struct link *link;
    struct cpus cpus;
    struct server *server;
    struct child_pool *pool;
    struct message_launch launch;
    struct daemon_rank *ranks; /* of this node */
    int rank_count, running;
    int open_streams;
    enum daemon_phase phase;
    struct event *reap, *end_timer, *stop_timer, *upcalls, *guard;
    struct rlimit files; /* as the user has set it */
    const char *scratch;
    const char *node;
    int position; /* in the tree of daemons */
    int segment_fd;
    bool described; /* the topology is not this machine's: nothing is bound */
    bool alone;     /* the front end is gone */
    bool gone;      /* no process of the job is left */
    bool input_ended;
    int inputs_behind; /* targets that have not taken everything yet */
};

/* daemon.c */
/* Serves one front end over the link; returns the exit status of ncclxd. guard_fd ends when the guard dies. */
int daemon_run(int link_fd, int guard_fd, const char *scratch);
/* TERM to everything and KILL after the grace, or KILL now. */
void daemon_end(struct daemon *daemon, bool at_once);
/* The job cannot go on: its exit status and the reason. */
void daemon_refuse(struct daemon *daemon, int status, const char *text);
void daemon_trouble(struct daemon *daemon, const char *text);

/* daemon_start.c: carries a launch order out. */
void daemon_start_ranks(struct daemon *daemon);

/* daemon_streams.c: output of ranks, and forwarded input. */
int daemon_open_streams(struct daemon_rank *rank, int child_stdio[3], bool wants_input);
void daemon_pause_streams(struct daemon *daemon, bool pause);
void daemon_close_output(struct daemon *daemon, int descriptor);
void daemon_drain_streams(struct daemon *daemon);
void daemon_close_input(struct daemon_rank *rank);
void daemon_forward_input(struct daemon *daemon, const void *data, size_t bytes);

/* daemon_where.c: tells of each rank that cannot tell itself what its process does. */
void daemon_tell_where(struct daemon *daemon);

/* ncclxd_describe.c: `ncclxd --describe`, for ncclxrun --dry-run. The exit status; what is wrong goes to the reader. */
int daemon_describe(const char *description);

#endif
