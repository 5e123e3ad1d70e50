/* runtime - the public interface on top of everything else: start and end, communicators, groups, the API boundary.
 *
 * Owns: communicators, groups, error handlers, the table of live handles. This header is private to the folder.
 * Threads: functions here are called with the rank's lock held.
 */
#ifndef RUNTIME_RUNTIME_H
#define RUNTIME_RUNTIME_H

#include "runtime/base/base.h"
#include "runtime/handles.h"

struct ncclx_errhandler {
    ncclx_errhandler_fn_t function;
    void *user;
    size_t handles; /* that the program holds */
    size_t objects; /* communicators and windows that use it */
};

/* Ordered, distinct job ranks. */
struct ncclx_group {
    int size;
    int rank; /* of the calling process, or NCCLX_UNDEFINED */
    int world[];
};

struct runtime_comm {
    ncclx_errhandler_t errhandler;
    struct ncclx_win *window; /* whose private communicator this is: no handle of the program's, its errors are the window's */
    struct ncclx_comm *next, *previous; /* of all communicators */
    size_t pending; /* requests that the program has not completed */
    bool freed;     /* by the program; ends with its last request */
};

struct runtime {
    struct handle_table handles;
    struct ncclx_comm *comms; /* all, newest first */
    uint64_t contexts_made;
    size_t detached; /* operations in progress whose handle the program gave up */
    size_t ended;    /* freed communicators whose last request has completed, not yet swept */
};

int runtime_init(struct ncclx_rt *rt);
void runtime_finalize(struct ncclx_rt *rt);

/* ---- Communicators ---- */

/* A number that no other communicator of the job ever has: the maker's job rank above bit 40, its count below. */
uint64_t runtime_new_context(struct ncclx_rt *rt);
/* world is copied; null: identity. The errhandler is retained. Local; attaches pml and coll. */
int runtime_comm_make(struct ncclx_rt *rt, uint64_t context, int rank, int size, const int *world,
                      ncclx_errhandler_t errhandler, struct ncclx_comm **out);
void runtime_comm_destroy(struct ncclx_comm *comm);
/* Ends comm now, or with the last of its requests. */
void runtime_comm_free(struct ncclx_comm *comm);
/* Destroys freed communicators whose requests have completed since. */
void runtime_comm_sweep(struct ncclx_rt *rt);
/* Collective. error: what this rank already knows to be wrong; then all members fail. */
int runtime_comm_dup(struct ncclx_comm *comm, int error, struct ncclx_comm **out);

static inline void runtime_comm_retain(struct ncclx_comm *comm)
{
    if (comm) comm->runtime->pending++;
}

static inline void runtime_comm_release(struct ncclx_comm *comm)
{
    if (!comm) return;
    if (--comm->runtime->pending == 0 && __builtin_expect(comm->runtime->freed, 0)) comm->rt->runtime->ended++;
}

/* ---- Error handlers ---- */

/* Whether it is one; predefined handlers included. */
bool runtime_errhandler_valid(const struct ncclx_rt *rt, ncclx_errhandler_t handler);
void runtime_errhandler_retain(ncclx_errhandler_t handler);
void runtime_errhandler_release(ncclx_errhandler_t handler);

/* ---- Requests ---- */

/* Hands a request that pml or coll has started to the program. */
static inline void runtime_request_publish(struct ncclx_request *request, ncclx_request_t *handle)
{
    runtime_comm_retain(request->comm);
    *handle = request;
}

#endif
