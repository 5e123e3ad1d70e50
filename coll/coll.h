/* coll - collectives: schedules built by short functions, one algorithm each, and the executor that runs them.
 *
 * Owns: schedules, the algorithm tables, per-communicator tag sequence. Never: touches a transport other than
 * through pml.h. Threads: the rank's lock is held. Blocking calls give it up while they wait. Callers have checked
 * the arguments: types, ops and roots are valid, sizes in bytes do not overflow.
 */
#ifndef COLL_H
#define COLL_H

#include "pml/pml.h"

int coll_init(struct ncclx_rt *rt);
void coll_finalize(struct ncclx_rt *rt);
int coll_comm_attach(struct ncclx_comm *comm);
void coll_comm_detach(struct ncclx_comm *comm);

enum coll_name {
    COLL_BARRIER,
    COLL_BCAST,
    COLL_REDUCE,
    COLL_ALLREDUCE,
    COLL_ALLGATHER,
    COLL_ALLTOALL,
    COLL_REDUCE_SCATTER,
    COLL_REDUCE_SCATTER_BLOCK,
    COLL_ALLGATHERV,
    COLL_GATHER,
    COLL_GATHERV,
    COLL_SCATTER,
    COLL_SCATTERV,
    COLL_ALLTOALLV,
    COLL_SCAN,
    COLL_EXSCAN,
    COLL_NAMES
};

/* Where the blocks of a buffer begin, one a rank, and how long they are, in elements. displs null: one after the
 * other. counts null: the call has no such list, or none on this rank. */
struct coll_blocks {
    const size_t *counts, *displs;
};

/* The arguments of any collective; what one does not use stays zero. count is the function's count in ncclx.h. */
struct coll_args {
    enum coll_name name;
    const void *sendbuf; /* NCCLX_IN_PLACE as given */
    void *recvbuf;       /* bcast: the buffer; scatter: NCCLX_IN_PLACE as given */
    size_t count;
    struct coll_blocks send, recv; /* v-forms, and reduce_scatter's recvcounts */
    ncclx_datatype_t type;
    ncclx_op_t op;
    int root;
};

/* Runs to the end. */
int coll_run(struct ncclx_comm *comm, const struct coll_args *args);
/* Starts; the request completes by progress. */
int coll_start(struct ncclx_comm *comm, const struct coll_args *args, struct ncclx_request **request);

/* Makes a persistent request, inactive at first: its kind's start begins the collective. Lists of counts are copied. */
int coll_prepare(struct ncclx_comm *comm, const struct coll_args *args, struct ncclx_request **request);

/* On raw bytes, for the runtime and for comm->services: barrier, and all-gather of `bytes` from each rank. */
int coll_barrier(struct ncclx_comm *comm);
int coll_allgather_bytes(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes);

/* ---- NCCLX_CHECK=1: before a collective call begins, all ranks compare what they call (check.h) ---- */

/* Of its messages in PML_SYSTEM, where all lower tags are create_group's. */
#define COLL_CHECK_TAG INT32_MAX

/* Of a collective. A blocking call and a non-blocking one do not meet: they may take different algorithms. */
enum coll_form { COLL_BLOCKING, COLL_NONBLOCKING, COLL_PERSISTENT };

/* Collective calls beside the collectives. */
enum coll_other_call {
    COLL_CALL_COMM_DUP = COLL_NAMES,
    COLL_CALL_COMM_SPLIT,
    COLL_CALL_COMM_SPLIT_TYPE,
    COLL_CALL_WIN_ALLOCATE,
    COLL_CALL_WIN_CREATE,
    COLL_CALL_WIN_FENCE,
    COLL_CALL_WIN_FREE,
    COLL_CALL_FINALIZE,
    COLL_CHECKED_CALLS
};

/* The slow halves of the two below. */
int coll_check_args(struct ncclx_comm *comm, const char *function, const struct coll_args *args, enum coll_form form,
                    int error);
int coll_check_other(struct ncclx_comm *comm, const char *function, enum coll_other_call call, size_t slots, int error);

/* For calls of the program, after the arguments' own checks, whose result is `error`: a rank that returned with its
 * error alone would leave the others waiting. Returns that error, with its detail, or its code and a sentence about it on
 * the other ranks; or ERR_MISMATCH on every rank. Then nothing has begun. Waits for all ranks. */
static inline int coll_check(struct ncclx_comm *comm, const char *function, const struct coll_args *args,
                             enum coll_form form, int error)
{
    return __builtin_expect(comm->rt->check, 0) ? coll_check_args(comm, function, args, form, error) : error;
}

/* slots: of a window that is made, else 0. */
static inline int coll_check_call(struct ncclx_comm *comm, const char *function, enum coll_other_call call,
                                  size_t slots, int error)
{
    return __builtin_expect(comm->rt->check, 0) ? coll_check_other(comm, function, call, slots, error) : error;
}

/* For ncclx-info --coll: which algorithm a collective of this size takes, and why. Freed with base_free(AREA_COLL,
 * ...). */
char *coll_explain(const struct base_config *config, int ranks);

#endif
