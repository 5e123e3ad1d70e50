/* sync.c - when operations are complete: waiting for signals, flushes, fences, epochs. */
#include "osc/window.h"

#include <inttypes.h>
#include <stdio.h>

/* ---- Signals ------------------------------------------------------------------------------------------------- */

static bool compare_true(uint64_t seen, ncclx_compare_t compare, uint64_t value)
{
    switch (compare) {
    case NCCLX_CMP_EQ: return seen == value;
    case NCCLX_CMP_NE: return seen != value;
    case NCCLX_CMP_GT: return seen > value;
    case NCCLX_CMP_GE: return seen >= value;
    case NCCLX_CMP_LT: return seen < value;
    case NCCLX_CMP_LE: return seen <= value;
    }
    return false;
}

static int check_wait(const struct osc_window *window, size_t slot, ncclx_compare_t compare)
{
    if (slot >= window->slot_count)
        return base_error(NCCLX_ERR_RANGE, "signal slot %zu: the window has %" PRIu64 " (info key ncclx_signal_slots)", slot,
                          window->slot_count);
    if (compare < NCCLX_CMP_EQ || compare > NCCLX_CMP_LE)
        return base_error(NCCLX_ERR_ARG, "comparison %d is not one of NCCLX_CMP_*", (int)compare);
    return NCCLX_SUCCESS;
}

struct signal_wait {
    const struct osc_window *window;
    size_t slot;
    ncclx_compare_t compare;
    uint64_t value;
    uint64_t seen;
};

static bool look(struct signal_wait *signal)
{
    signal->seen = osc_slot_read(&signal->window->slots[signal->slot]);
    return compare_true(signal->seen, signal->compare, signal->value);
}

static void describe_signal(const void *arg, char *text, size_t bytes)
{
    static const char *const sign[] = {"?", "==", "!=", ">", ">=", "<", "<="};
    const struct signal_wait *signal = arg;
    const struct osc_window *window = signal->window;
    snprintf(text, bytes, "slot %zu of window %" PRIx64 " of %d ranks to be %s %" PRIu64 ", now %" PRIu64, signal->slot,
             osc_window_id(window), window->face.comm->size, sign[signal->compare], signal->value,
             osc_slot_read(&window->slots[signal->slot]));
}

static int wait_long(struct signal_wait *signal, uint64_t timeout_ns)
{
    struct ncclx_rt *rt = signal->window->face.rt;
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    base_wait_begin(&wait, rt, "ncclx_win_wait_signal", describe_signal, signal);
    if (timeout_ns != UINT64_MAX) base_wait_set_timeout(&wait, timeout_ns);
    while (!look(signal) && !error) error = base_wait_step(&wait);
    base_wait_end(&wait);
    /* A wait that is already satisfied wins over the deadline and over the job's end. */
    return look(signal) ? NCCLX_SUCCESS : error;
}

int osc_wait_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, uint64_t timeout_ns,
                    uint64_t *seen)
{
    struct signal_wait signal = {.window = osc_window_of(win), .slot = slot, .compare = compare, .value = value};
    int error = check_wait(signal.window, slot, compare);
    if (error) return error;
    if (!look(&signal)) error = wait_long(&signal, timeout_ns);
    if (seen) *seen = signal.seen;
    return error;
}

int osc_test_signal(struct ncclx_win *win, size_t slot, ncclx_compare_t compare, uint64_t value, bool *flag, uint64_t *seen)
{
    struct signal_wait signal = {.window = osc_window_of(win), .slot = slot, .compare = compare, .value = value};
    int error = check_wait(signal.window, slot, compare);
    if (error) return error;
    *flag = look(&signal);
    if (!*flag) {
        base_progress(win->rt);
        *flag = look(&signal);
    }
    if (seen) *seen = signal.seen;
    return NCCLX_SUCCESS;
}

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
