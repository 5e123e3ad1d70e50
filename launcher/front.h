/* front.h - the state of ncclxrun, shared by its files. */
#ifndef LAUNCHER_FRONT_H
#define LAUNCHER_FRONT_H

#include "launcher/blame.h"
#include "launcher/hosts.h"
#include "launcher/input.h"
#include "launcher/jobs.h"
#include "launcher/message.h"
#include "launcher/options.h"
#include "launcher/order.h"
#include "launcher/output.h"
#include "launcher/spawn.h"
#include "launcher/wiring.h"

#include <event2/event.h>
#include <sys/types.h>

#define FRONT_EXIT_USAGE 2
#define FRONT_EXIT_TIMEOUT 124

struct front_progress;

/* What the front knows of a job. */
struct front_job {
    struct job *job; /* null: nothing is launched */
    char name[160];
    char label[16]; /* before the numbers of its ranks: "" of the user's, "1." of the first that a rank asked for */
    struct message_app *apps; /* its programs */
    int app_count;
    struct map map;
    pid_t *pids; /* of the ranks, 0 before they start */
    int started;
    struct spawn_request request; /* of one that a rank asked for */
    enum spawn_status status;     /* why it could not start */
};

struct front {
    struct options options;
    struct hosts hosts; /* in the order of the list; at least one */
    bool allocation;    /* all are of the allocation of Slurm that we are in */
    char job[128];
    struct order order; /* from which those of all daemons are made */
    bool local_root;    /* position 0 is on this host, as a child */
    struct event_base *base;
    struct wiring *wiring;
    struct output *output;
    struct input *input;
    struct front_progress *progress;
    struct front_job user; /* the job that the user has asked for */
    struct jobs *jobs;
    struct map_node *nodes; /* of the job, in the order of the hosts */
    struct front_node *places; /* by position */
    int node_count;
    struct front_kind *kinds;
    pid_t daemon; /* of this host */
    struct blame blame;
    bool launched, done, daemon_lost, daemon_ended, ending;
    bool end_told; /* to the daemons */
    bool closed[3];   /* outputs that nobody reads any more, by descriptor */
    int end_requests; /* signals of the user that end the job */
    struct event *signals, *timeout, *patience, *teller;
};

/* What a position is in the job, and what its daemon said of it. */
struct front_node {
    int node; /* of the job */
    int file_limit, process_limit;
};

/* Nodes that are alike share their description. */
struct front_kind {
    struct front_kind *next;
    void *bytes;
    size_t count;
    struct message_node node;
};

/* front.c */
int front_run(struct front *front);
/* The user wants the end: TERM and, after the grace, KILL for all ranks, or KILL at once. */
void front_end_job(struct front *front, bool at_once);
/* With the first job. */
int front_open_output(struct front *front);
/* Tells the daemons that nobody reads this descriptor. */
void front_close_output(struct front *front, int descriptor);
/* A line on standard error. */
void front_say(const char *format, ...) __attribute__((format(printf, 1, 2)));
/* One cause decides the exit status and is told: see blame.h. */
void front_blame(struct front *front, enum blame_kind kind, int status, const char *text);
/* The same, and ends the job. */
void front_blame_job(struct front *front, enum blame_kind kind, int status, const char *text);
/* Both of what concerns nobody else (BLAME_OTHER). */
void front_fail(struct front *front, int status, const char *text);
void front_fail_job(struct front *front, int status, const char *text);
/* The end has begun: a reader of our output that has stopped does not hold it up for long. */
void front_await_end(struct front *front);
/* Ends the loop once all output is written. */
void front_finish(struct front *front);
/* To all daemons. */
void front_send(struct front *front, struct frame_writer *writer);
void front_send_empty(struct front *front, uint8_t type);

/* front_frames.c: what daemons say of ranks. */
int front_take_frame(void *front, int link, const struct frame *frame);

/* front_hosts.c: the hosts of the job, from --hostfile, --host, Slurm's allocation, or this machine alone. */
int front_choose_hosts(struct front *front);

/* front_map.c: the map of a job's ranks over these nodes, in job->map, and what is to be displayed of it. */
int front_map_ranks(struct front *front, const struct map_node *nodes, int node_count);
/* The same for a job that a rank asked for: beside those that run. */
int front_map_spawned(struct front *front, struct front_job *job);
/* How many ranks run, or are about to, on each node. Null: memory is short. */
int *front_count_taken(const struct front *front);
/* Prints what `what` (bits of enum options_display) says. */
void front_display(const struct front_job *job, const struct map_node *nodes, unsigned what, bool on_stdout);

/* front_dry.c: maps and displays, and starts nothing. The exit status. */
int front_dry_run(struct front *front);

/* front_tree.c: the daemons of the hosts, up to the point where all are there. */
int front_place_hosts(struct front *front);
int front_open_tree(struct front *front);

/* front_launch.c: from what is known of the nodes to the launch order. */
/* NCCLX_ERR_CONFIG: a bad value of an NCCLX_* variable, before anything is started. */
int front_check_variables(const struct front *front);
int front_launch(struct front *front);
/* The user's programs, in front->user. */
int front_list_programs(struct front *front);
/* A job whose ranks are mapped: makes it known here, and to all daemons. */
int front_launch_job(struct front *front, struct front_job *job);
/* Do the ranks that run and those of this map fit into each node's limits? */
int front_check_limits(const struct front *front, const struct front_job *job);
/* Variables of ncclx that ranks of this program will read. */
int front_check_settings(const char *const *settings, int count);

/* front_jobs.c: the jobs, from their start to their end. */
/* Does what follows from what has happened. */
void front_review_jobs(struct front *front);
/* Of a rank of any job. */
struct front_job *front_job_of(const struct front *front, int number);
const char *front_node_name(const struct front *front, int number);
/* "rank 3", "rank 3 of NAME". */
const char *front_rank_name(const struct front *front, int number);
void front_release_job(struct front_job *job);

/* front_spawn.c: a job that a rank asks for. */
int front_spawn(struct front *front, const struct frame *frame);
void front_answer(struct front *front, const struct front_job *job, enum spawn_status status);

/* front_daemon.c: starts and ends the daemon of this host. */
int front_find_daemon(const struct front *front, char *path, size_t bytes);
int front_start_daemon(void *front, int *link_fd);
/* What the user's environment may tell daemons; ranks get all of it by message. Null: memory is short. */
char **front_daemon_environment(void);
/* The signal that has ended it, or 0. Leaves it to be waited for. */
int front_daemon_signal(const struct front *front);
/* Tells the wiring when it has ended. */
void front_watch_daemon(struct front *front);
/* Waits for it; when it died before its time, ends what it left. */
void front_end_daemon(struct front *front);

/* front_signals.c */
/* Says which ranks run, and lets them or their daemons say what they do. */
void front_ask_where(struct front *front);
int front_open_signals(struct front *front);

#endif
