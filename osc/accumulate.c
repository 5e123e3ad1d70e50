/* accumulate.c - atomic operations on elements of a target: checks, then the target's way (atomic.h). */
#include "osc/window.h"

#include <string.h>

/* One operation on `count` elements of a target. */
struct accumulate {
    struct osc_atomic atomic;
    const void *operands; /* null: none are needed */
    void *result;         /* null: not wanted */
    size_t count;
    uint64_t offset; /* in the target's window */
};

/* Kernel copies in both directions under the element lock, which everybody takes for such memory. */
#define CHUNK_BYTES ((size_t)4096)

static int run_chunk_by_copies(struct ncclx_rt *rt, struct osc_target *target, const struct accumulate *operation,
                               size_t done, size_t count)
{
    _Alignas(16) char old[CHUNK_BYTES];
    const struct osc_atomic *atomic = &operation->atomic;
    size_t from = done * atomic->size, bytes = count * atomic->size;
    const char *operands = operation->operands;
    osc_element_lock(&target->control->elements);
    int error = pml_region_read(rt, target->memory_region, operation->offset + from, old, bytes);
    if (!error && operation->result) memcpy((char *)operation->result + from, old, bytes);
    if (!error && atomic->op != OSC_NO_OP) {
        osc_atomic_combine(atomic, old, operands + from, old, count);
        error = pml_region_write(rt, target->memory_region, operation->offset + from, old, bytes);
    }
    osc_element_unlock(&target->control->elements);
    return error;
}

static int run_by_copies(struct ncclx_rt *rt, struct osc_target *target, const struct accumulate *operation)
{
    size_t most = CHUNK_BYTES / operation->atomic.size;
    int error = NCCLX_SUCCESS;
    for (size_t done = 0, now; done < operation->count && !error; done += now) {
        now = operation->count - done < most ? operation->count - done : most;
        error = run_chunk_by_copies(rt, target, operation, done, now);
    }
    return error;
}

static int send_operation(struct osc_window *window, struct osc_target *target, const struct accumulate *operation)
{
    const struct osc_atomic *atomic = &operation->atomic;
    struct window_operation message = {
        .kind = operation->result ? WINDOW_FETCH : WINDOW_ACCUMULATE,
        .from = operation->operands,
        .to = operation->result,
        .type = (uint8_t)atomic->type,
        .op = (uint8_t)atomic->op,
        .element = (unsigned)atomic->size,
        .operands = osc_atomic_operands(atomic),
        .offset = operation->offset,
        .bytes = operation->count * atomic->size,
    };
    if (atomic->op == OSC_COMPARE_SWAP) { /* both operands, put together by the caller, who does not keep them */
        memcpy(message.small, operation->operands, 2 * atomic->size);
        message.from = NULL;
    }
    return osc_message_submit(window, target, &message);
}

static int run(struct osc_window *window, struct osc_target *target, const struct accumulate *operation)
{
    const struct osc_atomic *atomic = &operation->atomic;
    struct ncclx_rt *rt = window->face.rt;
    size_t bytes = operation->count * atomic->size;
    target->put_open = true;
    if (operation->result) target->get_open = true;
    if (osc_target_needs_messages(target)) return send_operation(window, target, operation);
    if (!target->memory) return run_by_copies(rt, target, operation);
    osc_atomic_run(atomic, target->memory + operation->offset, operation->operands, operation->result, operation->count,
                   &target->control->elements, target->plain);
    if (target->memory_region) pml_count_direct(target->memory_region, bytes, operation->result ? bytes : 0);
    return NCCLX_SUCCESS;
}

/* Everything is checked before anything happens; the type first, because it gives the size. */
static int start(struct osc_window *window, struct accumulate *operation, ncclx_datatype_t type, size_t op, int rank, size_t displacement)
{
    struct osc_target *target;
    int error = osc_atomic_make(type, op, &operation->atomic);
    if (error || rank == NCCLX_PROC_NULL) return error;
    error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, operation->count * operation->atomic.size, &operation->offset);
    if (error || operation->count == 0) return error;
    return run(window, target, operation);
}

/* OSC_COMPARE_SWAP is no operation of the program's. */
static size_t public_op(ncclx_op_t op)
{
    return (size_t)op > OSC_NO_OP ? SIZE_MAX : (size_t)op;
}

int osc_accumulate(struct ncclx_win *win, const void *origin, size_t count, ncclx_datatype_t type, ncclx_op_t op, int target,
                   size_t displacement)
{
    struct accumulate operation = {.operands = origin, .count = count};
    if (op == NCCLX_NO_OP) return base_error(NCCLX_ERR_OP, "no_op changes nothing and brings nothing back: use ncclx_win_get_accumulate");
    return start(osc_window_of(win), &operation, type, public_op(op), target, displacement);
}

int osc_get_accumulate(struct ncclx_win *win, const void *origin, void *result, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                       int target, size_t displacement)
{
    struct accumulate operation = {.operands = op == NCCLX_NO_OP ? NULL : origin, .result = result, .count = count};
    return start(osc_window_of(win), &operation, type, public_op(op), target, displacement);
}

int osc_compare_swap(struct ncclx_win *win, const void *origin, const void *compare, void *result, ncclx_datatype_t type, int target,
                     size_t displacement)
{
    char operands[2 * WINDOW_ELEMENT_MAX];
    size_t size = base_type_size(type); /* 0 is found below */
    memcpy(operands, origin, size);
    memcpy(operands + size, compare, size);
    struct accumulate operation = {.operands = operands, .result = result, .count = 1};
    return start(osc_window_of(win), &operation, type, OSC_COMPARE_SWAP, target, displacement);
}
