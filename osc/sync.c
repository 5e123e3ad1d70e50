/* sync.c - when operations are complete: flushes. */
#include "osc/window.h"

/* ---- Flush --------------------------------------------------------------------------------------------------- */

/* Stores and kernel copies are done when their calls return; the fence orders them before, and later loads after, what follows. */
int osc_flush_target(struct osc_window *window, struct osc_target *target, const char *call)
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
    if (!error && target) error = osc_flush_target(window, target, "ncclx_win_flush");
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

int osc_flush_targets(struct osc_window *window, const char *call)
{
    int error = NCCLX_SUCCESS;
    for (struct osc_target *target = window->used; target; target = target->next) /* all start before the first is waited for */
        if (osc_target_needs_messages(target)) osc_message_flush_start(window, target);
    for (struct osc_target *target = window->used; target && !error; target = target->next)
        error = osc_flush_target(window, target, call);
    atomic_thread_fence(memory_order_seq_cst);
    return error;
}

int osc_flush_all(struct ncclx_win *win)
{
    return osc_flush_targets(osc_window_of(win), "ncclx_win_flush_all");
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

int osc_sync(struct ncclx_win *win)
{
    base_progress(win->rt);
    atomic_thread_fence(memory_order_seq_cst);
    return NCCLX_SUCCESS;
}
