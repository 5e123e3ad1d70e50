/* request.h - one operation in progress. pml, coll and osc embed this as the first member of their own requests. */
#ifndef BASE_REQUEST_H
#define BASE_REQUEST_H

#include "runtime/ncclx.h"

#include <stdbool.h>

struct ncclx_rt;
struct ncclx_request;

struct base_request_kind {
    const char *name;                                   /* "receive" */
    void (*release)(struct ncclx_request *request);     /* back to its owner's pool */
    int (*cancel)(struct ncclx_request *request);       /* null: cannot be cancelled */
    int (*start)(struct ncclx_request *request);        /* persistent requests; else null */
    /* What it waits for, for the dump: "receive of 8 bytes from rank 3, tag 5, on COMM_WORLD". */
    void (*describe)(const struct ncclx_request *request, char *text, size_t bytes);
};

struct ncclx_request {
    const struct base_request_kind *kind;
    struct ncclx_rt *rt;
    struct ncclx_comm *comm; /* whose error handler answers; null: COMM_WORLD's */
    /* When set, called once at completion, under the lock, instead of anyone polling; may release the request. */
    void (*notify)(struct ncclx_request *request, void *arg);
    void *notify_arg;
    struct ncclx_request *next; /* for the owner's lists */
    bool complete;
    bool active;     /* false: a persistent request that is not started */
    bool persistent;
    bool detached;   /* the user gave the handle up: released at completion */
    bool collected;  /* taken back from the program: a handle that still names it is stale */
    ncclx_status_t status; /* status.error is the result */
};

static inline void base_request_prepare(struct ncclx_request *request, const struct base_request_kind *kind,
                                        struct ncclx_rt *rt, struct ncclx_comm *comm)
{
    *request = (struct ncclx_request){.kind = kind, .rt = rt, .comm = comm, .active = true};
    request->status.source = NCCLX_ANY_SOURCE;
    request->status.tag = NCCLX_ANY_TAG;
}

static inline void base_request_complete(struct ncclx_request *request, int error)
{
    request->status.error = error;
    request->complete = true;
    if (__builtin_expect(request->notify != NULL, 0)) request->notify(request, request->notify_arg);
    else if (__builtin_expect(request->detached, 0)) request->kind->release(request);
}

/* Drives progress until complete; the request stays. Returns the operation's error, or TIMEOUT or ABORTED of the wait itself, in which case
 * the request is still in progress. `call` names the API function for the dump. */
int base_request_wait(struct ncclx_request *request, const char *call);

/* An operation that finished inside its call: a shared, complete, successful request which needs no pool. */
struct ncclx_request *base_request_done(struct ncclx_rt *rt);

#endif
