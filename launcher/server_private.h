/* server_private.h - shared by the files of the PMIx server only. */
#ifndef LAUNCHER_SERVER_PRIVATE_H
#define LAUNCHER_SERVER_PRIVATE_H

#include "launcher/server.h"

#include <pmix.h>
#include <pmix_server.h>
#include <pthread.h>
#include <stdatomic.h>

#define SERVER_MAX_TEXT 4096 /* of an abort or log message that is passed on */

enum server_note_kind { SERVER_ABORTED, SERVER_LOGGED };

/* Something for the daemon's thread. */
struct server_note {
    struct server_note *next;
    enum server_note_kind kind;
    int rank, code;
    char text[];
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
    int event_fd;
    pthread_mutex_t lock; /* notes */
    struct server_note *first, **last;
    struct server_exchange *exchange;
};

/* The running server: PMIx hands no argument to its upcalls. */
extern struct server *server_running;

/* The functions PMIx calls (server_upcalls.c). */
pmix_server_module_t *server_upcalls(void);
/* Fences and names (server_exchange.c). `done` may be called before these return PMIX_SUCCESS; with another status it
 * is not called. */
int server_exchange_create(const struct message_launch *launch, struct server_exchange **exchange);
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
/* Tells PMIx about the job and its ranks (server_job.c). */
int server_register_job(const struct server_options *options);
/* Queues a note; may be called on any thread. */
void server_post(struct server *server, enum server_note_kind kind, int rank, int code, const char *text, size_t bytes);
/* One sentence for a PMIx status. */
int server_error(pmix_status_t status, const char *what);

#endif
