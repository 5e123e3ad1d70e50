/* access.c - puts, gets and signals: checks, then the target's way. */
#include "osc/window.h"

#include <inttypes.h>

int osc_bad_range(const struct osc_target *target, size_t displacement, size_t bytes)
{
    return base_error(NCCLX_ERR_RANGE,
                      "%zu bytes at displacement %zu (of %" PRIu64 " bytes each) do not fit into the %" PRIu64 " bytes of rank %d", bytes,
                      displacement, target->unit, target->bytes, target->rank);
}

int osc_check_slot(uint64_t slots, size_t slot)
{
    if (slot < slots) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_RANGE, "signal slot %zu: the window has %" PRIu64 " (info key ncclx_signal_slots)", slot, slots);
}

int osc_check_signal(const struct osc_target *target, const struct osc_signal *signal)
{
    int error = osc_check_slot(target->slot_count, signal->slot);
    if (!error && signal->op != NCCLX_SIGNAL_ADD && signal->op != NCCLX_SIGNAL_SET)
        error = base_error(NCCLX_ERR_ARG, "signal operation %d is neither NCCLX_SIGNAL_ADD nor NCCLX_SIGNAL_SET", (int)signal->op);
    return error;
}

int osc_put_bytes(struct osc_window *window, struct osc_target *target, const void *origin, size_t bytes, uint64_t offset)
{
    struct ncclx_rt *rt = window->face.rt;
    bool large = bytes >= OSC_LARGE && target->memory_region;
    if (__builtin_expect(target->memory != NULL && !large, 1)) {
        osc_copy(target->memory + offset, origin, bytes);
        if (target->memory_region) pml_count_direct(target->memory_region, bytes, 0); /* not to this rank itself */
        return NCCLX_SUCCESS;
    }
    if (target->memory || target->copied) return pml_region_write(rt, target->memory_region, offset, origin, bytes);
    if (target->order) return pml_order_put(target->order, (size_t)offset, origin, bytes, NULL);
    struct window_operation put = {.kind = WINDOW_PUT, .from = origin, .offset = offset, .bytes = bytes};
    return osc_message_submit(window, target, &put);
}

/* A smaller get's answer is one message, sooner here than data and a notice on two ways. */
#define GET_BY_LANES ((size_t)16384)

int osc_put(struct ncclx_win *win, const void *origin, size_t bytes, int rank, size_t displacement)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    uint64_t offset;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, bytes, &offset);
    if (error || bytes == 0) return error;
    target->put_open = true;
    return osc_put_bytes(window, target, origin, bytes, offset);
}

int osc_get_bytes(struct osc_window *window, struct osc_target *target, void *origin, size_t bytes, uint64_t offset)
{
    struct ncclx_rt *rt = window->face.rt;
    bool large = bytes >= OSC_LARGE && target->memory_region;
    if (target->memory && !large) {
        osc_copy(origin, target->memory + offset, bytes);
        if (target->memory_region) pml_count_direct(target->memory_region, 0, bytes);
        return NCCLX_SUCCESS;
    }
    if (target->memory || target->copied) return pml_region_read(rt, target->memory_region, offset, origin, bytes);
    if (target->order && bytes >= GET_BY_LANES) return pml_order_get(target->order, (size_t)offset, origin, bytes);
    struct window_operation get = {.kind = WINDOW_GET, .to = origin, .offset = offset, .bytes = bytes};
    return osc_message_submit(window, target, &get);
}

int osc_get(struct ncclx_win *win, void *origin, size_t bytes, int rank, size_t displacement)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    uint64_t offset;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, bytes, &offset);
    if (error || bytes == 0) return error;
    target->get_open = true;
    return osc_get_bytes(window, target, origin, bytes, offset);
}

/* A put, or nothing, and a signal behind it and all operations before. */
static int signal_by_lanes(struct osc_window *window, struct osc_target *target, const void *origin, size_t bytes, uint64_t offset,
                           const struct osc_signal *signal)
{
    const struct pml_signal sent = {.window = osc_window_id(window),
                                    .rank = window->face.comm->rank,
                                    .slot = signal->slot,
                                    .value = signal->value,
                                    .op = signal->op};
    int error = osc_message_settle(window, target, "ncclx_win_signal");
    return error ? error : pml_order_put(target->order, (size_t)offset, origin, bytes, &sent);
}

static int raise_slot(struct osc_window *window, struct osc_target *target, const struct osc_signal *signal)
{
    target->put_open = false; /* the signal orders the puts before it */
    if (target->control) {
        osc_slot_raise(&target->slots[signal->slot], signal->op, signal->value);
        if (target->sleeping && __builtin_expect(pml_sleeps(target->sleeping), 0))
            pml_wake(window->face.rt, target->peer);
        return NCCLX_SUCCESS;
    }
    if (target->order) return signal_by_lanes(window, target, NULL, 0, 0, signal);
    struct window_operation message = {
        .kind = WINDOW_SIGNAL, .has_signal = true, .signal_op = signal->op, .slot = signal->slot, .value = signal->value};
    return osc_message_submit(window, target, &message);
}

int osc_put_signal(struct ncclx_win *win, const void *origin, size_t bytes, int rank, size_t displacement, const struct osc_signal *signal)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    uint64_t offset;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, bytes, &offset);
    if (!error) error = osc_check_signal(target, signal);
    if (error) return error;
    if (target->order) {
        target->put_open = false;
        return signal_by_lanes(window, target, origin, bytes, offset, signal);
    }
    bool by_message = bytes > 0 && !target->memory && !target->copied;
    if (by_message) { /* one message where it fits, instead of two */
        struct window_operation put = {.kind = WINDOW_PUT, .from = origin, .offset = offset, .bytes = bytes, .has_signal = true,
                                       .signal_op = signal->op, .slot = signal->slot, .value = signal->value};
        target->put_open = false;
        return osc_message_submit(window, target, &put);
    }
    if (bytes) error = osc_put_bytes(window, target, origin, bytes, offset);
    return error ? error : raise_slot(window, target, signal);
}

int osc_signal(struct ncclx_win *win, int rank, const struct osc_signal *signal)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_signal(target, signal);
    return error ? error : raise_slot(window, target, signal);
}

static int check_pieces(const struct osc_target *target, const ncclx_iov_t *pieces, size_t count)
{
    uint64_t offset;
    for (size_t i = 0; i < count; i++) {
        int error = osc_check_range(target, pieces[i].target_disp, pieces[i].bytes, &offset);
        if (!error && pieces[i].bytes && (!pieces[i].origin || pieces[i].origin == NCCLX_IN_PLACE))
            error = base_error(NCCLX_ERR_BUFFER, "its buffer is null or NCCLX_IN_PLACE");
        if (error) return base_error_context(error, "piece %zu of %zu", i, count);
    }
    return NCCLX_SUCCESS;
}

int osc_put_iov(struct ncclx_win *win, const ncclx_iov_t *pieces, size_t count, int rank, const struct osc_signal *signal)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    uint64_t offset;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = check_pieces(target, pieces, count);
    if (!error && signal) error = osc_check_signal(target, signal);
    for (size_t i = 0; i < count && !error; i++) {
        if (pieces[i].bytes == 0) continue;
        target->put_open = true;
        error = osc_check_range(target, pieces[i].target_disp, pieces[i].bytes, &offset);
        if (!error) error = osc_put_bytes(window, target, pieces[i].origin, pieces[i].bytes, offset);
    }
    return error || !signal ? error : raise_slot(window, target, signal);
}
