/* server_calls.h - what PMIx has asked for and waits to be answered: shared by the files that stand on the exchange of
 * keys. */
#ifndef LAUNCHER_SERVER_CALLS_H
#define LAUNCHER_SERVER_CALLS_H

#include "launcher/server_private.h"

struct call;

/* One operation of the exchange: a call has one for each name. */
struct part {
    struct call *call;
    size_t index;
};

/* A call is answered when all its parts have ended. */
struct call {
    struct call *next; /* among those that have ended */
    enum { CALL_FENCE, CALL_MODEX, CALL_LOOKUP, CALL_CHANGE, CALL_MEET } kind;
    union {
        pmix_modex_cbfunc_t data; /* of a fence or a direct modex: these may be answered on any thread */
        pmix_lookup_cbfunc_t lookup;
        pmix_op_cbfunc_t change;
    } done;
    void *arg;
    pmix_status_t status; /* the first that is no success */
    size_t left;          /* parts under way, and one while they are being made */
    void *data;           /* of a fence or a direct modex */
    size_t bytes;
    struct kvx_range *ranges; /* of a fence or a meeting */
    size_t count;
    bool collects;
    uint32_t timeout_ms;
    pmix_pdata_t *found; /* of a look-up: one for each part */
    size_t parts;
    struct part part[];
};

/* A rank of this node whose value another node wants (server_modex.c). */
struct fetch {
    struct fetch *next;
    struct server *server;
    int rank;
    uint64_t token, again, until; /* when it is looked for again, and until when */
    unsigned tries;
    char key[]; /* which the value must have; empty: any will do */
};

struct server_exchange {
    struct server *server;
    const struct message_launch *launch; /* the first job's */
    pthread_mutex_t lock;
    struct kvx_map *map;
    struct kvx *kvx;
    struct call *ended;
    struct fetch *fetches; /* PMIx is to be asked */
    struct fetch *unripe;  /* that had no such key, until their time comes again */
    uint64_t wake;         /* when the tick is asked for */
    bool told;             /* that memory is short */
};

struct call *call_new(size_t parts, void *arg);
/* For one that was never begun. */
void call_free(struct call *call);
uint64_t call_token(struct call *call, size_t index);
/* With the lock. */
void call_end_part(struct server_exchange *exchange, struct call *call, pmix_status_t status);
/* What the exchange refuses to take ends at once. */
void call_check_part(struct server_exchange *exchange, struct call *call, int code);

void exchange_enter(struct server_exchange *exchange);
/* Gives the lock back, then PMIx what has ended. */
void exchange_leave(struct server_exchange *exchange, bool on_pmix_thread);
/* All parts are made; on PMIx' thread. */
void exchange_leave_with(struct server_exchange *exchange, struct call *call);

/* The value of PMIX_TIMEOUT in milliseconds; 0: none is given. */
uint32_t info_timeout_ms(const pmix_info_t info[], size_t count);
/* Is it there, and true? */
bool info_is_set(const pmix_info_t info[], size_t count, const char *key);

/* server_modex.c */
void fetch_begin(struct server_exchange *exchange, const struct kvx_action *action);
/* Those whose time has come are to be asked for again. Returns when the next one's comes. */
uint64_t fetch_review(struct server_exchange *exchange, uint64_t now);
/* Without the lock. */
void fetch_start_all(struct fetch *fetches);
/* Of these ranks nothing is looked for any more. */
void fetch_forget(struct server_exchange *exchange, int first, int count);
void fetch_release(struct server_exchange *exchange);

/* server_names.c */
void names_keep(struct server *server, pmix_pdata_t *entry, const struct kvx_action *action);
void names_answer(struct call *call);

#endif
