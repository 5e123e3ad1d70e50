/* access.c - puts, gets and signals: checks, then the target's way. */
#include "osc/window.h"

#include <inttypes.h>

int osc_check_range(const struct osc_target *target, size_t displacement, size_t bytes, uint64_t *offset)
{
    if (!__builtin_mul_overflow((uint64_t)displacement, target->unit, offset) && window_within(*offset, bytes, target->bytes))
        return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_RANGE,
                      "%zu bytes at displacement %zu (of %" PRIu64 " bytes each) do not fit into the %" PRIu64 " bytes of rank %d", bytes,
                      displacement, target->unit, target->bytes, target->rank);
}

static int check_signal(const struct osc_target *target, size_t slot, ncclx_signal_op_t op)
{
    if (slot >= target->slot_count)
        return base_error(NCCLX_ERR_RANGE, "signal slot %zu: the window has %" PRIu64 " (info key ncclx_signal_slots)", slot,
                          target->slot_count);
    if (op != NCCLX_SIGNAL_ADD && op != NCCLX_SIGNAL_SET)
        return base_error(NCCLX_ERR_ARG, "signal operation %d is neither NCCLX_SIGNAL_ADD nor NCCLX_SIGNAL_SET", (int)op);
    return NCCLX_SUCCESS;
}

static int put_bytes(struct osc_window *window, struct osc_target *target, const void *origin, size_t bytes, uint64_t offset)
{
    struct ncclx_rt *rt = window->face.rt;
    if (__builtin_expect(target->memory != NULL, 1)) {
        osc_copy(target->memory + offset, origin, bytes);
        if (target->memory_region) pml_count_direct(rt, bytes, 0); /* not to this rank itself */
        return NCCLX_SUCCESS;
    }
    if (target->copied) return pml_region_write(rt, target->memory_region, offset, origin, bytes);
    struct window_operation put = {.kind = WINDOW_PUT, .from = origin, .offset = offset, .bytes = bytes};
    return osc_message_submit(window, target, &put);
}

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
    return put_bytes(window, target, origin, bytes, offset);
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
    if (target->memory) {
        osc_copy(origin, target->memory + offset, bytes);
        if (target->memory_region) pml_count_direct(win->rt, 0, bytes);
        return NCCLX_SUCCESS;
    }
    if (target->copied) return pml_region_read(win->rt, target->memory_region, offset, origin, bytes);
    struct window_operation get = {.kind = WINDOW_GET, .to = origin, .offset = offset, .bytes = bytes};
    return osc_message_submit(window, target, &get);
}

static int raise_slot(struct osc_window *window, struct osc_target *target, size_t slot, ncclx_signal_op_t op, uint64_t value)
{
    target->put_open = false; /* the signal orders the puts before it */
    if (target->slots) {
        osc_slot_raise(&target->slots[slot], op, value);
        return NCCLX_SUCCESS;
    }
    struct window_operation signal = {
        .kind = WINDOW_SIGNAL, .has_signal = true, .signal_op = op, .slot = slot, .value = value};
    return osc_message_submit(window, target, &signal);
}

int osc_put_signal(struct ncclx_win *win, const void *origin, size_t bytes, int rank, size_t displacement, size_t slot,
                   ncclx_signal_op_t op, uint64_t value)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    uint64_t offset;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, bytes, &offset);
    if (!error) error = check_signal(target, slot, op);
    if (error) return error;
    bool by_message = bytes > 0 && !target->memory && !target->copied;
    if (by_message) { /* one message where it fits, instead of two */
        struct window_operation put = {.kind = WINDOW_PUT, .from = origin, .offset = offset, .bytes = bytes, .has_signal = true,
                                       .signal_op = op, .slot = slot, .value = value};
        target->put_open = false;
        return osc_message_submit(window, target, &put);
    }
    if (bytes) error = put_bytes(window, target, origin, bytes, offset);
    return error ? error : raise_slot(window, target, slot, op, value);
}

int osc_signal(struct ncclx_win *win, int rank, size_t slot, ncclx_signal_op_t op, uint64_t value)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = check_signal(target, slot, op);
    return error ? error : raise_slot(window, target, slot, op, value);
}
