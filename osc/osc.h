/* osc - windows: puts, gets, signals and their synchronisation.
 *
 * Owns: windows and their slots. Never: touches a transport other than through pml.h, or a collective other than through comm->services.
 * Threads: the rank's lock is held. Blocking calls give it up while they wait.
 */
#ifndef OSC_H
#define OSC_H

#include "pml/pml.h"

int osc_init(struct ncclx_rt *rt);
/* Ends windows that the program left; reports them in the log. */
void osc_finalize(struct ncclx_rt *rt);

/* The part of a window that the API boundary needs. */
struct ncclx_win {
    struct ncclx_rt *rt;
    struct ncclx_comm *comm; /* a private duplicate, made and freed by runtime/; its error handler is the window's */
};

/* Local: what making a window over a communicator of that size needs. Its failure can still be told to the other ranks. */
int osc_win_reserve(struct ncclx_comm *comm, struct ncclx_win **win);
void osc_win_abandon(struct ncclx_win *win); /* null is allowed */
/* Collective over comm, which the window keeps; win is reserved, and gone on error. base null: the window allocates,
 * *allocated is its memory. slots: the checked info key. */
int osc_win_create(struct ncclx_win *win, struct ncclx_comm *comm, void *base, size_t bytes, size_t disp_unit, size_t slots,
                   void **allocated);
/* Collective. ERR_RMA_SYNC with operations in flight: the window stays. Else it is gone, and comm is the caller's again. */
int osc_win_free(struct ncclx_win *win);

/* *base is where this rank reaches rank's memory with loads and stores; null where it cannot. */
int osc_shared_query(struct ncclx_win *win, int rank, size_t *bytes, size_t *disp_unit, void **base);

/* target may be NCCLX_PROC_NULL; ranks, slots and ranges are checked here. */
int osc_put(struct ncclx_win *win, const void *origin, size_t bytes, int target, size_t target_disp);
int osc_get(struct ncclx_win *win, void *origin, size_t bytes, int target, size_t target_disp);
struct osc_signal {
    size_t slot;
    ncclx_signal_op_t op;
    uint64_t value;
};
int osc_put_signal(struct ncclx_win *win, const void *origin, size_t bytes, int target, size_t target_disp,
                   const struct osc_signal *signal);
/* All pieces and the signal (null: none) are checked before anything is written. */
int osc_put_iov(struct ncclx_win *win, const ncclx_iov_t *pieces, size_t count, int target, const struct osc_signal *signal);
/* Complete when the origin's buffer is free, or filled. */
int osc_rput(struct ncclx_win *win, const void *origin, size_t bytes, int target, size_t target_disp, struct ncclx_request **request);
int osc_rget(struct ncclx_win *win, void *origin, size_t bytes, int target, size_t target_disp, struct ncclx_request **request);
/* Pointers are checked by the caller; types and operations here. origin: not used with NCCLX_NO_OP. */
int osc_accumulate(struct ncclx_win *win, const void *origin, size_t count, ncclx_datatype_t type, ncclx_op_t op, int target,
                   size_t target_disp);
int osc_get_accumulate(struct ncclx_win *win, const void *origin, void *result, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                       int target, size_t target_disp);
int osc_compare_swap(struct ncclx_win *win, const void *origin, const void *compare, void *result, ncclx_datatype_t type, int target,
                     size_t target_disp);
int osc_signal(struct ncclx_win *win, int target, const struct osc_signal *signal);
/* timeout_ns: UINT64_MAX for ever (NCCLX_TIMEOUT applies), 0 one look. */
int osc_wait_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, uint64_t timeout_ns,
                    uint64_t *seen);
int osc_test_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, bool *flag,
                    uint64_t *seen);
/* Several slots: conditions that a wait or test looks at together. */
struct osc_conditions {
    size_t count;
    const size_t *slots;
    const ncclx_compare_t *compares;
    const uint64_t *values;
};
/* *index: the first that is true. all: every one in one look; seen (may be null): count values. */
int osc_wait_any(struct ncclx_win *win, const struct osc_conditions *conditions, uint64_t timeout_ns, size_t *index, uint64_t *seen);
int osc_wait_all(struct ncclx_win *win, const struct osc_conditions *conditions, uint64_t timeout_ns, uint64_t *seen);
int osc_test_any(struct ncclx_win *win, const struct osc_conditions *conditions, bool *flag, size_t *index, uint64_t *seen);
int osc_test_all(struct ncclx_win *win, const struct osc_conditions *conditions, bool *flag, uint64_t *seen);
/* A plan ends with osc_plan_free, or with its window. */
int osc_plan_create(struct ncclx_win *win, const ncclx_plan_piece_t *pieces, size_t count, ncclx_datatype_t type, struct ncclx_plan **plan);
int osc_plan_start(struct ncclx_plan *plan);
void osc_plan_free(struct ncclx_plan *plan);
struct ncclx_win *osc_plan_win(struct ncclx_plan *plan);
int osc_fence(struct ncclx_win *win);
int osc_flush(struct ncclx_win *win, int target);
int osc_flush_all(struct ncclx_win *win);
int osc_flush_local(struct ncclx_win *win, int target);
int osc_flush_local_all(struct ncclx_win *win);
/* ERR_RMA_SYNC where the epochs of this rank do not allow a call. type: NCCLX_LOCK_*. An unlock that fails may be repeated; until then,
 * operations that may come behind it fail. */
int osc_lock(struct ncclx_win *win, int type, int target);
int osc_unlock(struct ncclx_win *win, int target);
int osc_lock_all(struct ncclx_win *win);
int osc_unlock_all(struct ncclx_win *win);
/* Different ranks of the window. */
int osc_post(struct ncclx_win *win, const int *ranks, int count);
int osc_start(struct ncclx_win *win, const int *ranks, int count);
int osc_complete(struct ncclx_win *win);
int osc_wait(struct ncclx_win *win);
int osc_test(struct ncclx_win *win, bool *flag);
int osc_sync(struct ncclx_win *win);

#endif
