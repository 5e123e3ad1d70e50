/* op.c - which operation takes which type, and users' operations. */
#include "runtime/base/op.h"

#include "runtime/base/area.h"
#include "runtime/base/error.h"
#include "runtime/base/op_kernel.h"
#include "runtime/base/type.h"

#include <string.h>

/* Bytes that a user's operation gets at once when its result may not go where its operands are. */
#define SCRATCH_BYTES 4096

static op_kernel_fn kernel_of(ncclx_op_t op, ncclx_datatype_t type)
{
    size_t index = OP_INDEX(op == NCCLX_AVG ? NCCLX_SUM : op);
    if (type >= NCCLX_INT8 && type <= NCCLX_UINT64) return op_integer_kernel(type, index);
    if (type == NCCLX_FLOAT || type == NCCLX_DOUBLE) return op_float_kernel(type, index);
    if (type >= NCCLX_FP16 && type <= NCCLX_FP8_E5M2) return op_small_kernel(type, index);
    if (type >= NCCLX_INT32_PAIR && type <= NCCLX_DOUBLE_PAIR) return op_pair_kernel(type, index);
    return NULL;
}

int base_op_check(ncclx_op_t op, ncclx_datatype_t type)
{
    if (!base_type_size(type)) return base_error(NCCLX_ERR_TYPE, "%d is not a datatype", (int)type);
    if (op == NCCLX_OP_NULL) return base_error(NCCLX_ERR_OP, "the operation is NCCLX_OP_NULL");
    if (op == NCCLX_REPLACE || op == NCCLX_NO_OP)
        return base_error(NCCLX_ERR_OP, "%s is for windows only: ncclx_win_accumulate and its like", base_op_name(op));
    if (!base_op_predefined(op)) {
        if (op->freed) return base_error(NCCLX_ERR_OP, "the operation has been freed");
        return NCCLX_SUCCESS;
    }
    if (kernel_of(op, type)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_TYPE, "%s does not take %s", base_op_name(op), base_type_name(type));
}

bool base_op_commutative(ncclx_op_t op)
{
    return base_op_predefined(op) || op->commutative;
}

const char *base_op_name(ncclx_op_t op)
{
    static const char *const name[] = {"null", "sum", "prod", "min", "max", "avg", "land", "lor", "lxor", "band", "bor", "bxor", "minloc", "maxloc",
                                       "replace", "no_op"};
    return (size_t)op < sizeof name / sizeof name[0] ? name[(size_t)op] : "user's operation";
}

int base_op_create(ncclx_op_fn_t function, int commutative, void *user, ncclx_op_t *op)
{
    if (!op) return base_error(NCCLX_ERR_ARG, "nowhere to put the operation: a null pointer");
    if (!function) return base_error(NCCLX_ERR_ARG, "the function of the operation is a null pointer");
    struct ncclx_op *made = base_alloc(AREA_BASE, sizeof *made);
    if (!made) return base_error(NCCLX_ERR_NO_MEM, "no memory for an operation");
    *made = (struct ncclx_op){.function = function, .user = user, .references = 1, .commutative = commutative != 0};
    *op = made;
    return NCCLX_SUCCESS;
}

int base_op_free(ncclx_op_t *op)
{
    if (!op || *op == NCCLX_OP_NULL) return base_error(NCCLX_ERR_OP, "the operation is NCCLX_OP_NULL");
    if (base_op_predefined(*op)) return base_error(NCCLX_ERR_OP, "%s is predefined and cannot be freed", base_op_name(*op));
    (*op)->freed = true;
    base_op_release(*op);
    *op = NCCLX_OP_NULL;
    return NCCLX_SUCCESS;
}

int base_op_reduce_local(const void *in, void *inout, size_t count, ncclx_datatype_t type, ncclx_op_t op)
{
    size_t bytes;
    int error = base_op_check(op, type);
    if (error) return error;
    if (op == NCCLX_AVG) return base_error(NCCLX_ERR_OP, "avg needs a number of ranks: not allowed in ncclx_reduce_local");
    if (!base_type_bytes(count, type, &bytes)) return base_error(NCCLX_ERR_COUNT, "%zu elements of %s overflow", count, base_type_name(type));
    if (!count) return NCCLX_SUCCESS;
    if (!in || !inout || in == NCCLX_IN_PLACE || inout == NCCLX_IN_PLACE)
        return base_error(NCCLX_ERR_BUFFER, "ncclx_reduce_local takes two buffers, neither null nor NCCLX_IN_PLACE");
    base_op_apply(op, type, in, inout, inout, count);
    return NCCLX_SUCCESS;
}

void base_op_retain(ncclx_op_t op)
{
    if (!base_op_predefined(op)) op->references++;
}

void base_op_release(ncclx_op_t op)
{
    if (base_op_predefined(op) || --op->references) return;
    base_free(AREA_BASE, op);
}

/* A user's function computes inout = in op inout. When out is a, b is copied aside in pieces, so that out is written last. */
static void apply_user(const struct ncclx_op *op, ncclx_datatype_t type, const char *a, const char *b, char *out, size_t count)
{
    _Alignas(16) char scratch[SCRATCH_BYTES];
    size_t size = base_type_size(type);
    if (out != a) {
        if (out != b) memcpy(out, b, count * size);
        if (count) op->function(a, out, count, type, op->user);
        return;
    }
    for (size_t piece; count; count -= piece, a += piece * size, b += piece * size, out += piece * size) {
        piece = count < SCRATCH_BYTES / size ? count : SCRATCH_BYTES / size;
        memcpy(scratch, b, piece * size);
        op->function(a, scratch, piece, type, op->user);
        memcpy(out, scratch, piece * size);
    }
}

void base_op_apply(ncclx_op_t op, ncclx_datatype_t type, const void *a, const void *b, void *out, size_t count)
{
    if (base_op_predefined(op)) kernel_of(op, type)(a, b, out, count);
    else apply_user(op, type, a, b, out, count);
}

void base_op_finish(ncclx_op_t op, ncclx_datatype_t type, void *inout, size_t count, int ranks)
{
    if (op != NCCLX_AVG) return;
    if (type <= NCCLX_UINT64) op_integer_divide(type, inout, count, ranks);
    else if (type <= NCCLX_DOUBLE) op_float_divide(type, inout, count, ranks);
    else op_small_divide(type, inout, count, ranks);
}
