/* operation.h - a collective in flight: a schedule, its executor, and the messages that run it. The driver of the
 * executor's state machine. */
#ifndef COLL_OPERATION_H
#define COLL_OPERATION_H

#include "coll/executor.h"
#include "coll/segment.h"
#include "coll/select.h"

/* rt->coll */
struct coll {
    struct coll_choice choice;
    struct builder builder; /* its memory is used again */
    struct segment *left;   /* segments that this rank uses no more, but others may */
};

/* comm->coll */
struct coll_comm {
    struct coll_operation *operations; /* all of this communicator's, most recently used first */
    uint32_t sequence;                 /* schedules started, persistent ones not counted */
    uint32_t prepared;                 /* persistent ones made */
    unsigned in_flight;                /* both, from their making to their release */
    struct segments segments;
    struct check_run *check; /* with NCCLX_CHECK: check_run.c's */
};

struct coll_operation;

/* A step's message under way. */
struct operation_message {
    struct coll_operation *operation;
    uint32_t step;
    struct ncclx_request *request; /* null: none */
};

struct coll_operation {
    struct ncclx_request request; /* first: what the user waits for */
    struct coll_operation *next;
    struct coll_comm *home; /* null: the communicator has ended */
    const struct coll_algorithm *algorithm;
    struct schedule *schedule;
    size_t *blocks; /* memory of the problem's counts and displacements, or null */
    struct executor executor;
    char *buffer[BUFFER_COUNT];
    ncclx_op_t op;
    uint32_t sequence;
    unsigned outstanding; /* messages under way */
    bool in_use;          /* from start to release */
    bool driving;
    bool released;        /* the user is done with it; messages of a failed operation may still be under way */
    struct operation_message messages[]; /* one a step */
};

/* One for this problem: from those that are idle, or built. */
int operation_acquire(struct ncclx_comm *comm, const struct coll_problem *problem, struct coll_operation **operation);
/* Takes the call's buffers and begins. The request completes by progress, or has completed when this returns. */
void operation_start(struct coll_operation *operation, const struct coll_args *args);
/* Takes the call's buffers, and waits to be started by the request's kind, again and again until it is released. */
int operation_prepare(struct coll_operation *operation, const struct coll_args *args);
/* Gives up waiting: stops beginning steps. The operation goes once its messages have. */
void operation_abandon(struct coll_operation *operation, int error);
void operation_release(struct coll_operation *operation);
/* Makes, and frees, what NCCLX_CHECK needs (comm->coll->check). */
int check_attach(struct ncclx_comm *comm);
void check_detach(struct coll_comm *home);
/* coll_run by messages alone, as the making of a segment and NCCLX_CHECK need it. */
int coll_run_schedule(struct ncclx_comm *comm, const struct coll_args *args);

/* Collectives that need no message: a communicator of one rank, or nothing to move. */
bool alone_is(const struct coll_problem *problem);
void alone_run(const struct coll_problem *problem, const struct coll_args *args);
/* Not in the tables: builds what alone_run does. */
extern const struct coll_algorithm alone_algorithm;

/* The communicator ends. */
void operations_end(struct coll_comm *home);

#endif
