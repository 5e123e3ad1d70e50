/* sync.c - when operations are complete: flushes, fences, epochs. */
#include "osc/window.h"

/* ---- Flush --------------------------------------------------------------------------------------------------- */

/* Stores and kernel copies are done when their calls return; the fence orders them before, and later loads after, what follows. */
static int flush_target(struct osc_window *window, struct osc_target *target, const char *call)
{
    int error = NCCLX_SUCCESS;
    if (osc_target_needs_messages(target)) error = osc_message_flush(window, target, false, call);
    if (error) return error;
    target->put_open = target->get_open = false;
    return NCCLX_SUCCESS;
}

static int find_used(struct osc_window *window, int rank, struct osc_target **target)
{
    const struct ncclx_comm *comm = window->face.comm;
    *target = NULL;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    if (rank < 0 || rank >= comm->size)
        return base_error(NCCLX_ERR_RANK, "target rank %d: the window has ranks 0 to %d", rank, comm->size - 1);
    *target = window->targets[rank];
    return NCCLX_SUCCESS;
}

int osc_flush(struct ncclx_win *win, int rank)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    int error = find_used(window, rank, &target);
    if (!error && target) error = flush_target(window, target, "ncclx_win_flush");
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

static int flush_all(struct osc_window *window, const char *call)
{
    int error = NCCLX_SUCCESS;
    for (struct osc_target *target = window->used; target; target = target->next) /* all start before the first is waited for */
        if (osc_target_needs_messages(target)) osc_message_flush_start(window, target);
    for (struct osc_target *target = window->used; target && !error; target = target->next)
        error = flush_target(window, target, call);
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

int osc_flush_all(struct ncclx_win *win)
{
    return flush_all(osc_window_of(win), "ncclx_win_flush_all");
}

static int flush_local_target(struct osc_window *window, struct osc_target *target, const char *call)
{
    return osc_target_needs_messages(target) ? osc_message_flush(window, target, true, call) : NCCLX_SUCCESS;
}

int osc_flush_local(struct ncclx_win *win, int rank)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    int error = find_used(window, rank, &target);
    return error || !target ? error : flush_local_target(window, target, "ncclx_win_flush_local");
}

int osc_flush_local_all(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    int error = NCCLX_SUCCESS;
    for (struct osc_target *target = window->used; target && !error; target = target->next)
        error = flush_local_target(window, target, "ncclx_win_flush_local_all");
    return error;
}

/* ---- Epochs -------------------------------------------------------------------------------------------------- */

int osc_fence(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    if (window->locked)
        return base_error(NCCLX_ERR_RMA_SYNC, "fence between lock_all and unlock_all: call ncclx_win_unlock_all first");
    int error = flush_all(window, "ncclx_win_fence");
    if (!error) error = win->comm->services->barrier(win->comm);
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

int osc_lock_all(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    if (window->locked) return base_error(NCCLX_ERR_RMA_SYNC, "lock_all a second time: call ncclx_win_unlock_all first");
    window->locked = true;
    return NCCLX_SUCCESS;
}

int osc_unlock_all(struct ncclx_win *win)
{
    struct osc_window *window = osc_window_of(win);
    if (!window->locked) return base_error(NCCLX_ERR_RMA_SYNC, "unlock_all without lock_all");
    int error = flush_all(window, "ncclx_win_unlock_all");
    if (!error) window->locked = false;
    return error;
}
