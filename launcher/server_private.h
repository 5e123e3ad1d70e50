/* server_private.h - shared by the files of the PMIx server only. */
#ifndef LAUNCHER_SERVER_PRIVATE_H
#define LAUNCHER_SERVER_PRIVATE_H

#include "launcher/server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdatomic.h>

#define SERVER_MAX_TEXT 4096 /* of an abort or log message that is passed on */

enum server_note_kind { SERVER_ABORTED, SERVER_LOGGED, SERVER_SEND, SERVER_SIGNAL, SERVER_TROUBLE, SERVER_FAILED };

/* Something for the daemon's thread. */
struct server_note {
    struct server_note *next;
    enum server_note_kind kind;
    int rank, code; /* SERVER_SEND: link and nothing; SERVER_SIGNAL: of whom, and the signal */
    int asker;      /* SERVER_SIGNAL */
    size_t bytes;
    char text[]; /* SERVER_SEND: the message; or a text that ends with 0 */
};

struct server_rank {
    atomic_bool joined, left, dead;
};

struct server {
    struct server_events events;
    void *arg;
    char job[PMIX_MAX_NSLEN + 1];
    struct server_rank *ranks;
    int rank_count;
    bool serves;            /* there are ranks here: libpmix runs */
    int fd;                 /* readable when one of the next two is */
    int event_fd, timer_fd; /* there are notes; a time limit has passed */
    pthread_mutex_t lock;   /* notes */
    struct server_note *first, **last;
    bool dispatching;
    struct server_exchange *exchange;
};

/* The running server: PMIx hands no argument to its upcalls. */
extern struct server *server_running;

/* The functions PMIx calls (server_upcalls.c). */
pmix_server_module_t *server_upcalls(void);
/* Fences and names (server_exchange.c). `done` may be called before these return PMIX_SUCCESS; with another status it
 * is not called. */
int server_exchange_create(struct server *server, const struct server_options *options);
void server_exchange_free(struct server_exchange *exchange);
pmix_status_t server_exchange_fence(struct server *server, const pmix_proc_t procs[], size_t count, const void *data,
                                    size_t bytes, pmix_modex_cbfunc_t done, void *arg);
pmix_status_t server_exchange_publish(struct server *server, int rank, const pmix_info_t info[], size_t count,
                                      pmix_op_cbfunc_t done, void *arg);
/* It does not wait for names that are not there yet. */
pmix_status_t server_exchange_lookup(struct server *server, char **keys, pmix_lookup_cbfunc_t done, void *arg);
/* keys null: all that the rank has published. */
pmix_status_t server_exchange_unpublish(struct server *server, int rank, char **keys, pmix_op_cbfunc_t done, void *arg);
void server_exchange_rank_died(struct server *server, int rank);
int server_exchange_receive(struct server *server, int link, const void *data, size_t bytes);
void server_exchange_link_lost(struct server *server, int link);
void server_exchange_tick(struct server *server);
/* Tells PMIx about the job and its ranks (server_job.c). */
int server_register_job(const struct server_options *options);
/* Queues a note; may be called on any thread. False: memory is short. */
bool server_post(struct server *server, enum server_note_kind kind, int rank, int code, const void *text, size_t bytes);
/* Asks for server_exchange_tick at this time of base_clock_ns; UINT64_MAX: never. On any thread. */
void server_wake_at(struct server *server, uint64_t when);
/* One sentence for a PMIx status. */
int server_error(pmix_status_t status, const char *what);

#endif
