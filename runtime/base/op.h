/* op.h - reductions on a rank's own memory. */
#ifndef BASE_OP_H
#define BASE_OP_H

#include "runtime/ncclx.h"

#include <stdbool.h>
#include <stddef.h>

/* A user's operation. Predefined ones are the small handles of ncclx.h. */
struct ncclx_op {
    ncclx_op_fn_t function;
    void *user;
    int references; /* the user's handle and every collective in flight */
    bool commutative;
    bool freed;     /* the user has given the handle up */
};

static inline bool base_op_predefined(ncclx_op_t op)
{
    return (size_t)op >= (size_t)NCCLX_SUM && (size_t)op <= (size_t)NCCLX_MAXLOC;
}

/* SUCCESS, ERR_OP (not an operation) or ERR_TYPE (not for this type), with the detail recorded. */
int base_op_check(ncclx_op_t op, ncclx_datatype_t type);
bool base_op_commutative(ncclx_op_t op);
const char *base_op_name(ncclx_op_t op);
/* The bodies of ncclx_op_create, ncclx_op_free and ncclx_reduce_local. */
int base_op_create(ncclx_op_fn_t function, int commutative, void *user, ncclx_op_t *op);
int base_op_free(ncclx_op_t *op);
int base_op_reduce_local(const void *in, void *inout, size_t count, ncclx_datatype_t type, ncclx_op_t op);
void base_op_retain(ncclx_op_t op);
void base_op_release(ncclx_op_t op);

/* out[i] = a[i] op b[i]; out may be a or b. a comes from lower ranks than b. AVG adds here and divides in base_op_finish. */
void base_op_apply(ncclx_op_t op, ncclx_datatype_t type, const void *a, const void *b, void *out, size_t count);
/* Called once on a complete result of `ranks` contributions: the division of AVG; nothing for the others. */
void base_op_finish(ncclx_op_t op, ncclx_datatype_t type, void *inout, size_t count, int ranks);

#endif
