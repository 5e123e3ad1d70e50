/* objects.c - the public functions on memory, types, operations and info objects: handles are checked here, base and
 * pml do the rest. */
#include "runtime/api.h"
#include "pml/pml.h"

/* ---- Memory ---- */

API_DEFINE(int, mem_alloc)(size_t bytes, ncclx_mem_kind_t kind, void **ptr)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(ptr, "ptr");
    if (!error && kind != NCCLX_MEM_HOST) error = base_error(NCCLX_ERR_ARG, "%d is not a kind of memory", (int)kind);
    if (error) return api_leave(&call, error);
    *ptr = NULL;
    return api_leave(&call, bytes ? pml_mem_alloc(call.rt, bytes, ptr) : NCCLX_SUCCESS);
}

API_DEFINE(int, mem_free)(void *ptr)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    return api_leave(&call, ptr ? pml_mem_free(call.rt, ptr) : NCCLX_SUCCESS);
}

/* ---- Types ---- */

static int check_type(ncclx_datatype_t type)
{
    return base_type_size(type) ? NCCLX_SUCCESS : api_bad_elements(NULL, 0, type);
}

API_DEFINE(int, type_size)(ncclx_datatype_t type, size_t *bytes)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = check_type(type);
    if (!error) error = api_check_out(bytes, "bytes");
    if (!error) *bytes = base_type_size(type);
    return api_leave(&call, error);
}

API_DEFINE(int, type_name)(ncclx_datatype_t type, const char **name)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = check_type(type);
    if (!error) error = api_check_out(name, "name");
    if (!error) *name = base_type_name(type);
    return api_leave(&call, error);
}

/* ---- Operations ---- */

static int check_op_handle(const struct ncclx_rt *rt, ncclx_op_t op)
{
    if (base_op_predefined(op) || handle_live(&rt->runtime->handles, HANDLE_OP, op)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_OP, "%p is not an operation; was it freed?", (void *)op);
}

API_DEFINE(int, op_create)(ncclx_op_fn_t function, int commutative, void *user, ncclx_op_t *op)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(op, "op");
    if (!error && !function) error = base_error(NCCLX_ERR_ARG, "the function is a null pointer");
    if (!error) error = handle_reserve(&call.rt->runtime->handles);
    if (!error) error = base_op_create(function, commutative, user, op);
    if (!error) handle_insert(&call.rt->runtime->handles, HANDLE_OP, *op);
    return api_leave(&call, error);
}

API_DEFINE(int, op_free)(ncclx_op_t *op)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(op, "op");
    if (!error) error = check_op_handle(call.rt, *op);
    ncclx_op_t given_up = error ? NCCLX_OP_NULL : *op;
    if (!error) error = base_op_free(op);
    if (!error) handle_remove(&call.rt->runtime->handles, given_up);
    return api_leave(&call, error);
}

API_DEFINE(int, op_commutative)(ncclx_op_t op, int *commutative)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = check_op_handle(call.rt, op);
    if (!error) error = api_check_out(commutative, "commutative");
    if (!error) *commutative = base_op_commutative(op);
    return api_leave(&call, error);
}

API_DEFINE(int, reduce_local)(const void *in, void *inout, size_t count, ncclx_datatype_t type, ncclx_op_t op)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_elements(in, count, type, &bytes);
    if (!error) error = api_check_elements(inout, count, type, &bytes);
    if (!error) error = api_check_op(call.rt, op, type);
    if (!error) error = base_op_reduce_local(in, inout, count, type, op);
    return api_leave(&call, error);
}

/* ---- Info objects ---- */

static int enter_info(struct api_call *call, const char *name, ncclx_info_t info)
{
    int error = api_enter(call, name);
    if (error || handle_live(&call->rt->runtime->handles, HANDLE_INFO, info)) return error;
    return api_leave(call, base_error(NCCLX_ERR_INFO, "%p is not an info object; was it freed?", (void *)info));
}

API_DEFINE(int, info_create)(ncclx_info_t *info)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(info, "info");
    if (!error) error = handle_reserve(&call.rt->runtime->handles);
    if (!error) error = base_info_create(info);
    if (!error) handle_insert(&call.rt->runtime->handles, HANDLE_INFO, *info);
    return api_leave(&call, error);
}

API_DEFINE(int, info_dup)(ncclx_info_t info, ncclx_info_t *out)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    if (error) return error;
    error = api_check_out(out, "out");
    if (!error) error = handle_reserve(&call.rt->runtime->handles);
    if (!error) error = base_info_dup(info, out);
    if (!error) handle_insert(&call.rt->runtime->handles, HANDLE_INFO, *out);
    return api_leave(&call, error);
}

API_DEFINE(int, info_set)(ncclx_info_t info, const char *key, const char *value)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    return error ? error : api_leave(&call, base_info_set(info, key, value));
}

API_DEFINE(int, info_get)(ncclx_info_t info, const char *key, char *value, size_t bytes, int *found)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    return error ? error : api_leave(&call, base_info_get(info, key, value, bytes, found));
}

API_DEFINE(int, info_delete)(ncclx_info_t info, const char *key)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    return error ? error : api_leave(&call, base_info_delete(info, key));
}

API_DEFINE(int, info_nkeys)(ncclx_info_t info, size_t *count)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    return error ? error : api_leave(&call, base_info_nkeys(info, count));
}

API_DEFINE(int, info_nthkey)(ncclx_info_t info, size_t n, char *key)
{
    struct api_call call;
    int error = enter_info(&call, API_NAME, info);
    return error ? error : api_leave(&call, base_info_nthkey(info, n, key));
}

API_DEFINE(int, info_free)(ncclx_info_t *info)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(info, "info");
    if (error) return api_leave(&call, error);
    ncclx_info_t given_up = *info;
    if (!handle_live(&call.rt->runtime->handles, HANDLE_INFO, given_up))
        return api_leave(&call,
                         base_error(NCCLX_ERR_INFO, "%p is not an info object; was it freed?", (void *)given_up));
    error = base_info_free(info);
    if (!error) handle_remove(&call.rt->runtime->handles, given_up);
    return api_leave(&call, error);
}
