/* epochs.c - which operations are allowed when: fences, locks, and epochs between groups (post, start, complete, wait).
 *
 * A window starts out ready for operations. lock_all does not communicate: a target is locked when it is first used, so that an exclusive
 * lock of another rank is respected and targets that are not used cost nothing. Targets whose use needs such a step, or is wrong in this
 * epoch, are `held_back`: one flag that every operation looks at.
 *
 * post and complete are empty messages on the window's own communicator, received by start and wait.
 */
#include "osc/window.h"

enum { TAG_POST = 1, TAG_COMPLETE = 2 };

/* ---- Targets in epochs ----------------------------------------------------------------------------------------- */

bool osc_epoch_holds_back(const struct osc_window *window, int rank)
{
    return window->locked || (window->access && !window->access[rank]);
}

int osc_epoch_admit(struct osc_window *window, struct osc_target *target)
{
    if (window->access && !window->access[target->rank])
        return base_error(NCCLX_ERR_RMA_SYNC,
                          "rank %d is not in the group of ncclx_win_start: operations to it have to wait for ncclx_win_complete",
                          target->rank);
    if (target->unlocking)
        return base_error(NCCLX_ERR_RMA_SYNC, "the unlock of rank %d has failed on its way: repeat ncclx_win_unlock%s first", target->rank,
                          window->locked ? "_all" : "");
    int error = NCCLX_SUCCESS;
    if (window->locked && !target->locked) error = osc_target_lock(window, target, WINDOW_SHARED, "an operation after ncclx_win_lock_all");
    if (!error) target->held_back = false;
    return error;
}

static void hold_back(struct osc_window *window)
{
    for (struct osc_target *target = window->used; target; target = target->next)
        target->held_back = osc_epoch_holds_back(window, target->rank);
}

/* An unlock has failed, but may be on its way: operations would come behind it, and be protected by nothing. */
static void hold_back_unlocking(struct osc_target *target)
{
    if (target->unlocking) target->held_back = true;
}

static int check_no_epoch(const struct osc_window *window, const char *call)
{
    if (window->locked) return base_error(NCCLX_ERR_RMA_SYNC, "%s between lock_all and unlock_all: call ncclx_win_unlock_all first", call);
    if (window->access) return base_error(NCCLX_ERR_RMA_SYNC, "%s between start and complete: call ncclx_win_complete first", call);
    return NCCLX_SUCCESS;
}

static int check_no_lock(const struct osc_window *window, const char *call)
{
    int error = check_no_epoch(window, call);
    if (!error && window->locks) error = base_error(NCCLX_ERR_RMA_SYNC, "%s with a target locked: call ncclx_win_unlock first", call);
    return error;
}

const char *osc_epoch_name(const struct osc_window *window)
{
    if (window->locked) return "between lock_all and unlock_all";
    if (window->locks) return "between lock and unlock";
    if (window->access) return "between start and complete";
    return window->exposure ? "between post and wait" : NULL;
}

/* ---- Fence ------------------------------------------------------------------------------------------------------ */

int osc_fence(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    int error = check_no_lock(window, "fence");
    if (!error && window->exposure) error = base_error(NCCLX_ERR_RMA_SYNC, "fence between post and wait: call ncclx_win_wait first");
    if (!error) error = osc_flush_targets(window, "ncclx_win_fence");
    if (!error) error = win->comm->services->barrier(win->comm);
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

/* ---- Locks ------------------------------------------------------------------------------------------------------ */

int osc_lock(struct ncclx_win *win, int type, int rank)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    if (type != NCCLX_LOCK_SHARED && type != NCCLX_LOCK_EXCLUSIVE)
        return base_error(NCCLX_ERR_ARG, "lock type %d is neither NCCLX_LOCK_SHARED nor NCCLX_LOCK_EXCLUSIVE", type);
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = check_no_epoch(window, "lock");
    if (!error) error = osc_target_find(window, rank, &target);
    if (!error && (target->locked || target->locking))
        error = base_error(NCCLX_ERR_RMA_SYNC, "rank %d is locked already: call ncclx_win_unlock first", rank);
    return error ? error : osc_target_lock(window, target, type, "ncclx_win_lock");
}

int osc_unlock(struct ncclx_win *win, int rank)
{
    struct osc_window *window = osc_window_of(win);
    const struct ncclx_comm *comm = win->comm;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    if (rank < 0 || rank >= comm->size)
        return base_error(NCCLX_ERR_RANK, "target rank %d: the window has ranks 0 to %d", rank, comm->size - 1);
    struct osc_target *target = window->targets[rank];
    if (window->locked || !target || !target->locked) return base_error(NCCLX_ERR_RMA_SYNC, "unlock of rank %d, which is not locked", rank);
    int error = osc_target_unlock_start(window, target);
    if (!error) error = osc_flush_target(window, target, "ncclx_win_unlock");
    atomic_thread_fence(memory_order_seq_cst);
    if (error) hold_back_unlocking(target);
    else osc_target_unlock_finish(window, target);
    return error;
}

int osc_lock_all(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    int error = check_no_lock(window, "lock_all");
    if (error) return error;
    window->locked = true;
    hold_back(window);
    return NCCLX_SUCCESS;
}

int osc_unlock_all(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    int error = NCCLX_SUCCESS;
    if (!window->locked) return base_error(NCCLX_ERR_RMA_SYNC, "unlock_all without lock_all");
    for (struct osc_target *target = window->used; target && !error; target = target->next)
        if (target->locked) error = osc_target_unlock_start(window, target);
    if (!error) error = osc_flush_targets(window, "ncclx_win_unlock_all");
    for (struct osc_target *target = window->used; target; target = target->next) {
        if (error) hold_back_unlocking(target);
        else osc_target_unlock_finish(window, target);
    }
    if (error) return error;
    window->locked = false;
    hold_back(window);
    return NCCLX_SUCCESS;
}

/* ---- Groups ----------------------------------------------------------------------------------------------------- */

/* Nobody waits for it: it ends by itself. */
static int tell(struct osc_window *window, int rank, int tag)
{
    struct ncclx_request *request;
    int error = pml_isend(window->face.comm, PML_USER, NULL, 0, rank, tag, &request);
    if (error) return error;
    if (request->complete) request->kind->release(request);
    else request->detached = true;
    return NCCLX_SUCCESS;
}

/* Drops receives that are not needed any more; one that has completed is lost. */
static void drop_receives(struct ncclx_request **receives, int count)
{
    for (int i = 0; i < count; i++) {
        if (!receives[i]->complete) (void)receives[i]->kind->cancel(receives[i]);
        if (receives[i]->complete) receives[i]->kind->release(receives[i]);
        else receives[i]->detached = true;
    }
    base_free(AREA_OSC, receives);
}

static int receive_from_all(struct osc_window *window, const int *ranks, int count, int tag, struct ncclx_request ***receives)
{
    struct ncclx_request **made = base_calloc(AREA_OSC, (size_t)count + 1, sizeof(struct ncclx_request *)); /* a group may be empty */
    if (!made) return base_error(NCCLX_ERR_NO_MEM, "no memory for an epoch with %d ranks", count);
    for (int i = 0; i < count; i++) {
        int error = pml_irecv(window->face.comm, PML_USER, NULL, 0, ranks[i], tag, &made[i]);
        if (!error) continue;
        drop_receives(made, i);
        return error;
    }
    *receives = made;
    return NCCLX_SUCCESS;
}

static int wait_for_receives(struct ncclx_request **receives, int count, const char *call)
{
    int error = NCCLX_SUCCESS;
    for (int i = 0; i < count && !error; i++) error = base_request_wait(receives[i], call);
    return error;
}

int osc_post(struct ncclx_win *win, const int *ranks, int count)
{
    struct osc_window *window = osc_window_of(win);
    if (window->exposure) return base_error(NCCLX_ERR_RMA_SYNC, "post a second time: call ncclx_win_wait first");
    int error = receive_from_all(window, ranks, count, TAG_COMPLETE, &window->exposure);
    if (error) return error;
    window->exposed_to = count;
    atomic_thread_fence(memory_order_seq_cst);
    for (int i = 0; i < count && !error; i++) error = tell(window, ranks[i], TAG_POST);
    return error;
}

int osc_start(struct ncclx_win *win, const int *ranks, int count)
{
    struct osc_window *window = osc_window_of(win);
    struct ncclx_request **receives;
    int error = check_no_lock(window, "start");
    if (error) return error;
    uint8_t *access = base_calloc(AREA_OSC, (size_t)win->comm->size, sizeof *access);
    if (!access) return base_error(NCCLX_ERR_NO_MEM, "no memory for an epoch with %d ranks", count);
    error = receive_from_all(window, ranks, count, TAG_POST, &receives);
    if (!error) {
        error = wait_for_receives(receives, count, "ncclx_win_start");
        drop_receives(receives, count);
    }
    if (error) {
        base_free(AREA_OSC, access);
        return error;
    }
    for (int i = 0; i < count; i++) access[ranks[i]] = 1;
    window->access = access;
    hold_back(window);
    return NCCLX_SUCCESS;
}

int osc_complete(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    if (!window->access) return base_error(NCCLX_ERR_RMA_SYNC, "complete without start");
    int error = osc_flush_targets(window, "ncclx_win_complete");
    for (int rank = 0; rank < win->comm->size && !error; rank++)
        if (window->access[rank]) error = tell(window, rank, TAG_COMPLETE);
    if (error) return error;
    base_free(AREA_OSC, window->access);
    window->access = NULL;
    hold_back(window);
    return NCCLX_SUCCESS;
}

static void end_exposure(struct osc_window *window)
{
    drop_receives(window->exposure, window->exposed_to);
    window->exposure = NULL;
    atomic_thread_fence(memory_order_seq_cst);
}

int osc_wait(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    if (!window->exposure) return base_error(NCCLX_ERR_RMA_SYNC, "wait without post");
    int error = wait_for_receives(window->exposure, window->exposed_to, "ncclx_win_wait");
    if (!error) end_exposure(window);
    return error;
}

int osc_test(struct ncclx_win *win, bool *flag)
{
    struct osc_window *window = osc_window_of(win);
    if (!window->exposure) return base_error(NCCLX_ERR_RMA_SYNC, "test without post");
    base_progress(win->rt);
    *flag = true;
    for (int i = 0; i < window->exposed_to; i++) *flag &= window->exposure[i]->complete;
    if (*flag) end_exposure(window);
    return NCCLX_SUCCESS;
}

void osc_epochs_release(struct osc_window *window)
{
    if (window->exposure) drop_receives(window->exposure, window->exposed_to);
    base_free(AREA_OSC, window->access);
}
