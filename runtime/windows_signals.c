/* windows_signals.c - the public functions that raise signals and wait for them. */
#include "runtime/api.h"
#include "osc/osc.h"

static int check_signal_op(ncclx_signal_op_t op)
{
    if (API_LIKELY(op == NCCLX_SIGNAL_ADD || op == NCCLX_SIGNAL_SET)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_OP, "%d is not a signal operation", (int)op);
}

API_DEFINE(int, win_put_signal)(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                                ncclx_win_t win, size_t slot, ncclx_signal_op_t op, uint64_t value)
{
    struct api_call call;
    const struct osc_signal signal = {.slot = slot, .op = op, .value = value};
    size_t bytes;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_elements(origin, count, type, &bytes);
    if (API_LIKELY(!error)) error = check_signal_op(op);
    if (API_LIKELY(!error)) error = osc_put_signal(call.win, origin, bytes, target, target_disp, &signal);
    return api_leave(&call, error);
}

API_DEFINE(int, win_signal)(int target, ncclx_win_t win, size_t slot, ncclx_signal_op_t op, uint64_t value)
{
    struct api_call call;
    const struct osc_signal signal = {.slot = slot, .op = op, .value = value};
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_signal_op(op);
    if (API_LIKELY(!error)) error = osc_signal(call.win, target, &signal);
    return api_leave(&call, error);
}

static int check_pieces(const ncclx_iov_t *pieces, size_t count)
{
    if (API_LIKELY(pieces || !count)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_ARG, "pieces is a null pointer");
}

API_DEFINE(int, win_put_iov)(const ncclx_iov_t *pieces, size_t count, int target, ncclx_win_t win)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_pieces(pieces, count);
    if (API_LIKELY(!error)) error = osc_put_iov(call.win, pieces, count, target, NULL);
    return api_leave(&call, error);
}

API_DEFINE(int, win_put_iov_signal)(const ncclx_iov_t *pieces, size_t count, int target, ncclx_win_t win, size_t slot,
                                    ncclx_signal_op_t op, uint64_t value)
{
    struct api_call call;
    const struct osc_signal signal = {.slot = slot, .op = op, .value = value};
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_pieces(pieces, count);
    if (API_LIKELY(!error)) error = check_signal_op(op);
    if (API_LIKELY(!error)) error = osc_put_iov(call.win, pieces, count, target, &signal);
    return api_leave(&call, error);
}

/* ---- Waiting --------------------------------------------------------------------------------------------------- */

/* For ever: UINT64_MAX. */
static uint64_t nanoseconds(int64_t microseconds)
{
    uint64_t ns;
    if (microseconds < 0 || __builtin_mul_overflow((uint64_t)microseconds, UINT64_C(1000), &ns)) return UINT64_MAX;
    return ns;
}

static int check_compare(ncclx_compare_t compare)
{
    if (API_LIKELY(compare >= NCCLX_CMP_EQ && compare <= NCCLX_CMP_LE)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_OP, "%d is not a comparison", (int)compare);
}

API_DEFINE(int, win_wait_signal)(ncclx_win_t win, size_t slot, ncclx_compare_t compare, uint64_t value,
                                 int64_t timeout_us, uint64_t *seen)
{
    struct api_call call;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_compare(compare);
    if (API_LIKELY(!error)) error = osc_wait_signal(call.win, slot, compare, value, nanoseconds(timeout_us), seen);
    return api_leave(&call, error);
}

API_DEFINE(int, win_test_signal)(ncclx_win_t win, size_t slot, ncclx_compare_t compare, uint64_t value, int *flag,
                                 uint64_t *seen)
{
    struct api_call call;
    bool satisfied = false;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(flag, "flag");
    if (API_LIKELY(!error)) error = check_compare(compare);
    if (API_LIKELY(!error)) error = osc_test_signal(call.win, slot, compare, value, &satisfied, seen);
    return api_leave_look(&call, error, satisfied, flag);
}

static int check_conditions(const struct osc_conditions *conditions)
{
    if (conditions->count && (!conditions->slots || !conditions->compares || !conditions->values))
        return base_error(NCCLX_ERR_ARG, "slots, compares or values is a null pointer");
    int error = NCCLX_SUCCESS;
    for (size_t i = 0; i < conditions->count && !error; i++) error = check_compare(conditions->compares[i]);
    return error;
}

API_DEFINE(int, win_wait_signal_any)(ncclx_win_t win, size_t count, const size_t *slots,
                                     const ncclx_compare_t *compares, const uint64_t *values, int64_t timeout_us,
                                     size_t *index, uint64_t *seen)
{
    struct api_call call;
    const struct osc_conditions conditions = {count, slots, compares, values};
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(index, "index");
    if (!error) *index = NCCLX_INDEX_UNDEFINED;
    if (!error) error = check_conditions(&conditions);
    if (!error) error = osc_wait_any(call.win, &conditions, nanoseconds(timeout_us), index, seen);
    return api_leave(&call, error);
}

API_DEFINE(int, win_wait_signal_all)(ncclx_win_t win, size_t count, const size_t *slots,
                                     const ncclx_compare_t *compares, const uint64_t *values, int64_t timeout_us,
                                     uint64_t *seen)
{
    struct api_call call;
    const struct osc_conditions conditions = {count, slots, compares, values};
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = check_conditions(&conditions);
    if (!error) error = osc_wait_all(call.win, &conditions, nanoseconds(timeout_us), seen);
    return api_leave(&call, error);
}

API_DEFINE(int, win_test_signal_any)(ncclx_win_t win, size_t count, const size_t *slots,
                                     const ncclx_compare_t *compares, const uint64_t *values, int *flag, size_t *index,
                                     uint64_t *seen)
{
    struct api_call call;
    const struct osc_conditions conditions = {count, slots, compares, values};
    bool satisfied = false;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(index, "index");
    if (!error) *index = NCCLX_INDEX_UNDEFINED;
    if (!error) error = api_check_out(flag, "flag");
    if (!error) error = check_conditions(&conditions);
    if (!error) error = osc_test_any(call.win, &conditions, &satisfied, index, seen);
    return api_leave_look(&call, error, satisfied, flag);
}

API_DEFINE(int, win_test_signal_all)(ncclx_win_t win, size_t count, const size_t *slots,
                                     const ncclx_compare_t *compares, const uint64_t *values, int *flag, uint64_t *seen)
{
    struct api_call call;
    const struct osc_conditions conditions = {count, slots, compares, values};
    bool satisfied = false;
    int error = api_enter_win(&call, API_NAME, win);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(flag, "flag");
    if (!error) error = check_conditions(&conditions);
    if (!error) error = osc_test_all(call.win, &conditions, &satisfied, seen);
    return api_leave_look(&call, error, satisfied, flag);
}
