/* server_private.h - shared by the files of the PMIx server only. */
#ifndef LAUNCHER_SERVER_PRIVATE_H
#define LAUNCHER_SERVER_PRIVATE_H

#include "bootstrap/kvx/kvx.h"
#include "launcher/server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>

#define SERVER_MAX_TEXT 4096 /* of an abort or log message that is passed on */

enum server_note_kind {
    SERVER_ABORTED,
    SERVER_LOGGED,
    SERVER_SEND,
    SERVER_SIGNAL,
    SERVER_SPAWN,
    SERVER_TROUBLE,
    SERVER_FAILED
};

/* Something for the daemon's thread. */
struct server_note {
    struct server_note *next;
    enum server_note_kind kind;
    int rank, code; /* a number; SERVER_SEND: the link and nothing; SERVER_SIGNAL: whom, and the signal */
    size_t bytes;
    char text[]; /* SERVER_SEND, SERVER_SPAWN: the message; or a text that ends with 0 */
};

/* ---- server_jobs.c ---- */

enum server_mark {
    SERVER_JOINED = 1, /* it has connected */
    SERVER_LEFT = 2,   /* and said goodbye since */
    SERVER_DEAD = 4,
    SERVER_COLLECTED = 8 /* a fence has brought its values here */
};

struct server_jobs {
    pthread_mutex_t lock;
    struct server_job *first;
    int end; /* numbers below it have been given out */
};

/* The daemon's thread. */
int server_jobs_add(struct server_jobs *jobs, const struct message_launch *launch);
void server_jobs_remove(struct server_jobs *jobs, int first);
void server_jobs_free(struct server_jobs *jobs);
/* The one after this; null: the first. */
const struct message_launch *server_jobs_next(const struct server_jobs *jobs, const struct message_launch *launch);

/* Any thread. -1 and false: not among them. */
int server_number(struct server_jobs *jobs, const pmix_proc_t *proc);
bool server_proc(struct server_jobs *jobs, int number, pmix_proc_t *proc);
int server_node_of(struct server_jobs *jobs, int number);
void server_set_mark(struct server_jobs *jobs, int number, enum server_mark mark, bool set);
bool server_has_mark(struct server_jobs *jobs, int number, enum server_mark mark);
void server_set_marks(struct server_jobs *jobs, const struct kvx_range *range, enum server_mark mark);
/* The numbers of these; null when one of them is not there, or memory is short. */
struct kvx_range *server_ranges(struct server_jobs *jobs, const pmix_proc_t procs[], size_t count);
/* All of this range, below `end`, that are there. With the lock: it may only post notes. */
typedef void (*server_visit_fn)(void *arg, int number, int node);
void server_visit(struct server_jobs *jobs, const struct kvx_range *range, server_visit_fn visit, void *arg);

/* ---- The server ---- */

struct server {
    struct server_events events;
    void *arg;
    struct server_jobs jobs;
    const struct message_launch *launch; /* the first job's: nodes, and their places in the tree */
    const char *scratch;
    void *topology;
    bool serves;            /* there have been ranks here: libpmix runs */
    int fd;                 /* readable when one of the next two is */
    int event_fd, timer_fd; /* there are notes; a time limit has passed */
    pthread_mutex_t lock;   /* notes */
    struct server_note *first, **last;
    bool dispatching;
    struct server_exchange *exchange;
    struct server_spawns *spawns;
    int link_count; /* children */
    bool *closed;   /* of each link: 0 the parent, then the children; behind the lock */
};

/* The running server: PMIx hands no argument to its upcalls. */
extern struct server *server_running;

/* The functions PMIx calls (server_upcalls.c). */
pmix_server_module_t *server_upcalls(void);

/* ---- server_exchange.c, server_modex.c, server_names.c: what PMIx asks for, on its thread. `done` may be called
 * before these return PMIX_SUCCESS; with another status it is not called. */

enum server_meeting { SERVER_FENCE, SERVER_CONNECT, SERVER_DISCONNECT };

struct server_participants {
    const pmix_proc_t *procs;
    size_t count;
    const pmix_info_t *info; /* directives: a time limit, whether values are collected */
    size_t info_count;
};

/* What PMIx hands over with PMIx_Spawn. */
struct server_spawn_call {
    const pmix_info_t *info;
    size_t info_count;
    const pmix_app_t *apps;
    size_t app_count;
    pmix_spawn_cbfunc_t done;
    void *arg;
};

int server_exchange_create(struct server *server);
void server_exchange_free(struct server_exchange *exchange);
pmix_status_t server_exchange_fence(struct server *server, const struct server_participants *who, const void *data,
                                    size_t bytes, pmix_modex_cbfunc_t done, void *arg);
/* Ends when all have come: kinds do not mix. */
pmix_status_t server_exchange_meet(struct server *server, enum server_meeting kind,
                                   const struct server_participants *who, pmix_op_cbfunc_t done, void *arg);
/* All that a rank of another node has committed. */
pmix_status_t server_exchange_modex(struct server *server, int number, const pmix_info_t info[], size_t count,
                                    pmix_modex_cbfunc_t done, void *arg);
pmix_status_t server_exchange_publish(struct server *server, int number, const pmix_info_t info[], size_t count,
                                      pmix_op_cbfunc_t done, void *arg);
pmix_status_t server_exchange_lookup(struct server *server, char **keys, const pmix_info_t info[], size_t count,
                                     pmix_lookup_cbfunc_t done, void *arg);
/* keys null: all that the rank has published. */
pmix_status_t server_exchange_unpublish(struct server *server, int number, char **keys, pmix_op_cbfunc_t done,
                                        void *arg);

/* On the daemon's thread. */
int server_exchange_add(struct server *server, const struct message_launch *launch);
void server_exchange_retire(struct server *server, const struct message_launch *launch);
void server_exchange_rank_died(struct server *server, int number);
int server_exchange_receive(struct server *server, int link, const void *data, size_t bytes);
void server_exchange_link_lost(struct server *server, int link);
void server_exchange_tick(struct server *server);

/* ---- server_notices.c: what is told to all daemons ---- */

/* A signal for these ranks. */
pmix_status_t server_notice_signal(struct server *server, const pmix_proc_t procs[], size_t count, int number);
/* An event that a rank of this node has raised. */
pmix_status_t server_notice_event(struct server *server, pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[], size_t count);
/* Is it ours to read, and not the exchange's? */
bool server_notice_is(const void *data, size_t bytes);
int server_notice_receive(struct server *server, int link, const void *data, size_t bytes);
void server_notice_link_lost(struct server *server, int link);

/* ---- server_spawn.c: other jobs that ranks ask for ---- */

struct server_spawns *server_spawns_create(void);
void server_spawns_free(struct server_spawns *spawns);
/* On PMIx' thread. The answer always comes by `done`. */
pmix_status_t server_spawn(struct server *server, int caller, const struct server_spawn_call *call);

/* ---- server_job.c ---- */

/* Tells PMIx about a job and its ranks. `segment` null: none of them is here. */
int server_register_job(struct server *server, const struct message_launch *launch, const char *segment);
/* Tells who asked for it, if he wants to hear of its end; PMIx forgets it. */
void server_deregister_job(struct server *server, const struct message_launch *launch);
/* Queues a note; may be called on any thread. False: memory is short. */
bool server_post(struct server *server, enum server_note_kind kind, int rank, int code, const void *text, size_t bytes);
/* Asks for server_exchange_tick at this time of base_clock_ns; UINT64_MAX: never. On any thread. */
void server_wake_at(struct server *server, uint64_t when);
/* One sentence for a PMIx status. */
int server_error(pmix_status_t status, const char *what);

#endif
