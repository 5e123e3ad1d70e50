/* front.h - the state of ncclxrun, shared by its files. */
#ifndef LAUNCHER_FRONT_H
#define LAUNCHER_FRONT_H

#include "launcher/hosts.h"
#include "launcher/input.h"
#include "launcher/link.h"
#include "launcher/message.h"
#include "launcher/options.h"
#include "launcher/output.h"

#include <event2/event.h>
#include <sys/types.h>

#define FRONT_EXIT_USAGE 2
#define FRONT_EXIT_TIMEOUT 124

struct front_progress;

struct front {
    struct options options;
    struct hosts hosts; /* in the order of the list; at least one */
    char job[128];
    struct event_base *base;
    struct link *link;
    struct output *output;
    struct input *input;
    struct front_progress *progress;
    struct map map;
    struct map_node node; /* in this release there is one */
    struct map_cpu *cpus;
    char scratch[256]; /* the daemon's private directory, once it is known */
    pid_t daemon;
    pid_t *pids; /* of the ranks, 0 before they start */
    int running; /* ranks */
    int status;  /* of the job; -1: nothing has failed */
    bool launched, done, daemon_lost, ending;
    int end_requests; /* signals of the user that end the job */
    struct event *signals, *timeout, *patience;
};

/* front.c */
int front_run(struct front *front);
/* The user wants the end: TERM and, after the grace, KILL for all ranks, or KILL at once. */
void front_end_job(struct front *front, bool at_once);
/* Once the number of ranks is known. */
int front_open_output(struct front *front);
/* A line on standard error. */
void front_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* The first cause decides the exit status and is told; later ones are not. */
void front_fail(struct front *front, int status, const char *text);

/* front_hosts.c: the hosts of the job, from --hostfile, --host, Slurm's allocation, or this machine alone. */
int front_choose_hosts(struct front *front);

/* front_map.c: the map of the ranks over these nodes, in front->map, and what is to be displayed of it. */
int front_map_ranks(struct front *front, const struct map_node *nodes, int node_count);
/* Prints what `what` (bits of enum options_display) says. */
void front_display(struct front *front, const struct map_node *nodes, int node_count, unsigned what, bool on_stdout);

/* front_dry.c: maps and displays, and starts nothing. The exit status. */
int front_dry_run(struct front *front);

/* front_launch.c: from the daemon's description of its node to the launch order. */
/* NCCLX_ERR_CONFIG: a bad value of an NCCLX_* variable, before anything is started. */
int front_check_variables(const struct front *front);
int front_launch(struct front *front, const struct message_hello *hello);

/* front_daemon.c: starts and ends the daemon's process. */
int front_find_daemon(const struct front *front, char *path, size_t bytes);
int front_start_daemon(struct front *front, int *link_fd);
/* The signal that has ended it, or 0. Leaves it to be waited for. */
int front_daemon_signal(const struct front *front);
/* Waits for it; when it died before its time, ends what it left. */
void front_end_daemon(struct front *front);

/* front_signals.c */
/* Says which ranks run, and lets them or their daemons say what they do. */
void front_ask_where(struct front *front);
int front_open_signals(struct front *front);

#endif
