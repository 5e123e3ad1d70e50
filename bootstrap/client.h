/* client.h - private to bootstrap: the PMIx client and its waits. */
#ifndef BOOTSTRAP_CLIENT_H
#define BOOTSTRAP_CLIENT_H

#include "bootstrap/bootstrap.h"

#include <pmix.h>

struct bootstrap_call;

struct bootstrap {
    struct ncclx_rt *rt;   /* null between a start that failed and the next one */
    pthread_mutex_t lock;  /* keeps rt alive while PMIx' thread looks at it */
    pmix_proc_t self;
    atomic_bool leaving; /* the server's side of the connection may go: no reason to end the job */
    pmix_info_t events;  /* of the event handlers, which PMIx reads later */
    struct bootstrap_call *left; /* calls whose waiter has left before the answer */
    bool dirty;          /* put, not yet committed */
    int segment;         /* the node's shared memory, made by this rank; -1 */
    struct bootstrap_nodes *nodes; /* null until asked for */
    struct bootstrap_watch *watch; /* null until the first long wait */
    struct bootstrap_step *step;   /* null: Slurm is not asked */
    bool joined;         /* a fence of all is over */
    bool ending;         /* in the fence of the end */
};

/* ---- One call of PMIx in flight -------------------------------------------------------------------------------
 *
 * The non-blocking form of each call is used, so that a wait sees the job's end, its deadline and a dump request. The
 * answer comes on PMIx' thread, and may come after the wait has given up, or never: such calls are kept until then. */

struct bootstrap_call *bootstrap_call_new(struct bootstrap *boot);
/* PMIx reads the description of a call until it has answered: it lives here. */
pmix_info_t *bootstrap_call_get_info(struct bootstrap_call *call, int seconds, bool refresh, size_t *count);
pmix_info_t *bootstrap_call_fence_info(struct bootstrap_call *call, bool collect, size_t *count);
/* On PMIx' thread. The value, if any, is copied. */
void bootstrap_call_answer(struct bootstrap_call *call, pmix_status_t status, const pmix_value_t *value);
/* For a call that PMIx refused to take, or answered at once: no answer will come. */
void bootstrap_call_drop(struct bootstrap_call *call);
/* Waits for the answer and ends the call. timeout_ns 0: the deadline of NCCLX_TIMEOUT, if any. *status is PMIx' answer; *value, when
 * asked for, is freed with PMIX_VALUE_RELEASE. TIMEOUT or ABORTED when no answer came. `what` names the wait in a dump. */
int bootstrap_call_wait(struct bootstrap_call *call, struct bootstrap *boot, const char *what, uint64_t timeout_ns, pmix_status_t *status,
                        pmix_value_t **value);
/* One look: false while there is no answer; else as bootstrap_call_wait ends. */
bool bootstrap_call_poll(struct bootstrap_call *call, pmix_status_t *status, pmix_value_t **value);
/* Nobody waits for it any more. */
void bootstrap_call_leave(struct bootstrap_call *call, struct bootstrap *boot);
/* After PMIx_Finalize. */
void bootstrap_call_release(struct bootstrap *boot);

/* ---- Keys of other ranks -------------------------------------------------------------------------------------- */

#define BOOTSTRAP_VALUE_MAX (1 << 20) /* of a key; anything larger did not come from us */

/* One question to the server, which has `seconds` to answer. Null: no memory. */
struct bootstrap_call *bootstrap_ask(struct bootstrap *boot, int rank, const char *key, int seconds, bool refresh);
/* A server says "not found" at once when the rank has committed other keys, and "timeout" when an earlier question ran out: neither
 * says that the key will not come. */
bool bootstrap_card_may_come(pmix_status_t status);
/* The answer's bytes, with a zero behind them, to be freed with base_free(AREA_BOOTSTRAP, ...); the card is released. */
int bootstrap_take_card(pmix_status_t status, pmix_value_t *card, int rank, const char *key, void **value, size_t *bytes);

/* ---- What the server knows ------------------------------------------------------------------------------------ */

/* Integers of any width and sign, as servers differ. False: not an integer, or negative. */
bool bootstrap_value_number(const pmix_value_t *value, uint64_t *number);
/* A text; null when it is not one. Valid as long as the value. */
const char *bootstrap_value_text(const pmix_value_t *value);
/* "0,3,4" into ascending unique ranks below `size`, to be freed by base_free(AREA_BOOTSTRAP). From outside: anything else is false. */
bool bootstrap_parse_ranks(const char *text, int size, int **ranks, int *count);
/* A value about the whole job, or, with a host, about this job on that host. Only what the server gave us at the start is looked at. */
pmix_status_t bootstrap_job_value(struct bootstrap *boot, const char *key, const char *host, pmix_value_t **value);
/* The job's ranks on a host, ascending, to be freed by base_free(AREA_BOOTSTRAP). */
int bootstrap_ranks_on(struct bootstrap *boot, const char *host, int **ranks, int *count);
/* Fills rt->job. */
int bootstrap_fill_job(struct bootstrap *boot);
int bootstrap_fill_job_of_one(struct ncclx_rt *rt);

/* ---- The node's shared memory --------------------------------------------------------------------------------- */

/* The first rank of a node makes the memory and publishes where it is, unless the launcher has done so. */
int bootstrap_segment_offer(struct bootstrap *boot);
void bootstrap_segment_release(struct bootstrap *boot);
/* Splits "/proc/PID/fd/N[ NAME]" at the blank; false for anything else. */
bool bootstrap_segment_parse(char *where, const char **name);
/* Opens the memory at such a place. holder: the rank that has it, -1 for the launcher. */
int bootstrap_segment_open(char *where, int holder, int *fd);

/* ---- Deaths of other ranks of the node, under process managers that say nothing ------------------------------ */

void bootstrap_watch_start(struct bootstrap *boot);
void bootstrap_watch_release(struct bootstrap *boot);
/* And of other nodes, as far as Slurm tells. True: there will be something to look at. */
bool bootstrap_step_start(struct bootstrap *boot);
bool bootstrap_step_look(struct bootstrap *boot, uint64_t now);
void bootstrap_step_release(struct bootstrap *boot);

/* ---- Nodes ---------------------------------------------------------------------------------------------------- */

struct bootstrap_node {
    char *name;
    int *ranks; /* ascending */
    int count;
};

struct bootstrap_nodes {
    struct bootstrap_node *node;
    int count;
    int *of; /* index of the node of each job rank */
};

/* The text of BOOTSTRAP_KEY_PLACES, which is changed on the way; nodes->of has room for the job, and says -1. False:
 * malformed, or memory is short; what is there is to be released all the same. */
bool bootstrap_parse_places(char *text, int size, struct bootstrap_nodes *nodes);
int bootstrap_nodes_get(struct bootstrap *boot, const struct bootstrap_nodes **nodes);
void bootstrap_nodes_release(struct bootstrap *boot);

#endif
