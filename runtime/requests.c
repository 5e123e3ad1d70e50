/* requests.c - completing operations: wait and test in all their forms; starting persistent ones. */
#include "runtime/api.h"

#include <stdio.h>

static const ncclx_status_t empty_status = {.source = NCCLX_ANY_SOURCE, .tag = NCCLX_ANY_TAG};

static inline bool is_idle(const struct ncclx_request *request)
{
    return !request || !request->active;
}

static inline void set_status(ncclx_status_t *status, const ncclx_status_t *value)
{
    if (status) *status = *value;
}

/* Requests are kept for later operations, so one that was taken back can be told from one in use until it serves again. */
static inline int result_of(const struct ncclx_request *request)
{
    return API_UNLIKELY(request->collected) ? NCCLX_ERR_REQUEST : request->status.error;
}

static int drop_stale(ncclx_request_t *handle, ncclx_status_t *status)
{
    *handle = NCCLX_REQUEST_NULL;
    set_status(status, &empty_status);
    if (status) status->error = NCCLX_ERR_REQUEST;
    return NCCLX_ERR_REQUEST;
}

/* Takes a complete request from the program: its result, and *handle null (a persistent one becomes inactive). */
static inline int collect(ncclx_request_t *handle, ncclx_status_t *status)
{
    struct ncclx_request *request = *handle;
    if (API_UNLIKELY(request->collected)) return drop_stale(handle, status);
    int error = request->status.error;
    set_status(status, &request->status);
    if (API_UNLIKELY(request->persistent)) {
        request->active = false;
        return error;
    }
    *handle = NCCLX_REQUEST_NULL;
    request->collected = true;
    runtime_comm_release(request->comm);
    request->kind->release(request);
    return error;
}

static int stale(const struct ncclx_request *request)
{
    return base_error(NCCLX_ERR_REQUEST, "request %p was completed or freed before: is the handle a copy?", (const void *)request);
}

/* The failure of an operation may have been found long ago, or by another thread: the sentence is made anew. */
static int operation_failed(const struct ncclx_request *request)
{
    char what[256] = "";
    if (request->collected) return stale(request);
    request->kind->describe(request, what, sizeof what);
    if (request->status.error == NCCLX_ERR_TRUNCATE)
        return base_error(NCCLX_ERR_TRUNCATE, "%s failed: the message has %zu bytes", what, request->status.bytes);
    return base_error(request->status.error, "%s failed: %s", what, base_error_string(request->status.error));
}

static void note_failure(struct api_call *call, const struct ncclx_request *request)
{
    operation_failed(request);
    call->comm = request->collected ? NULL : request->comm;
}

/* As collect, with the detail recorded and the communicator noted whose handler answers. */
static int collect_with_detail(struct api_call *call, ncclx_request_t *handle, ncclx_status_t *status)
{
    if (API_UNLIKELY(result_of(*handle))) note_failure(call, *handle);
    return collect(handle, status);
}

/* One round of progress unless the request is complete. */
static inline bool is_complete_now(struct ncclx_rt *rt, const struct ncclx_request *request)
{
    if (!request->complete) base_progress(rt);
    return request->complete;
}

API_DEFINE(int, wait)(ncclx_request_t *request, ncclx_status_t *status)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (is_idle(*request)) {
        set_status(status, &empty_status);
        return api_leave(&call, NCCLX_SUCCESS);
    }
    if (!(*request)->complete) {
        error = base_request_wait(*request, API_NAME);
        if (API_UNLIKELY(!(*request)->complete)) {
            call.comm = (*request)->comm;
            return api_leave(&call, error);
        }
    }
    return api_leave(&call, collect_with_detail(&call, request, status));
}

API_DEFINE(int, test)(ncclx_request_t *request, int *flag, ncclx_status_t *status)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (!error) error = api_check_out(flag, "flag");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (is_idle(*request)) {
        *flag = 1;
        set_status(status, &empty_status);
        return api_leave(&call, NCCLX_SUCCESS);
    }
    if (!is_complete_now(call.rt, *request)) {
        call.comm = (*request)->comm;
        return api_leave_look(&call, NCCLX_SUCCESS, false, flag);
    }
    *flag = 1;
    return api_leave(&call, collect_with_detail(&call, request, status));
}

API_DEFINE(int, request_get_status)(ncclx_request_t request, int *flag, ncclx_status_t *status)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(flag, "flag");
    if (!error && !is_idle(request) && request->collected) error = stale(request);
    if (error) return api_leave(&call, error);
    bool complete = is_idle(request) || is_complete_now(call.rt, request);
    if (complete) set_status(status, is_idle(request) ? &empty_status : &request->status);
    else call.comm = request->comm;
    return api_leave_look(&call, NCCLX_SUCCESS, complete, flag);
}

/* ---- Arrays ---- */

struct request_list {
    size_t count;
    ncclx_request_t *requests;
};

static int enter_list(struct api_call *call, const char *name, size_t count, ncclx_request_t *requests)
{
    int error = api_enter(call, name);
    if (API_UNLIKELY(error)) return error;
    if (API_UNLIKELY(count && !requests))
        return api_leave(call, base_error(NCCLX_ERR_ARG, "requests is a null pointer"));
    return NCCLX_SUCCESS;
}

static size_t count_active(const struct request_list *list)
{
    size_t active = 0;
    for (size_t i = 0; i < list->count; i++) active += !is_idle(list->requests[i]);
    return active;
}

static size_t count_incomplete(const struct request_list *list)
{
    size_t incomplete = 0;
    for (size_t i = 0; i < list->count; i++) incomplete += !is_idle(list->requests[i]) && !list->requests[i]->complete;
    return incomplete;
}

/* The first complete one at or after `from`, or list->count. */
static size_t next_complete(const struct request_list *list, size_t from)
{
    while (from < list->count && (is_idle(list->requests[from]) || !list->requests[from]->complete)) from++;
    return from;
}

static void describe_list(const void *arg, char *text, size_t bytes)
{
    const struct request_list *list = arg;
    char what[256] = "";
    size_t at = 0;
    while (at < list->count && (is_idle(list->requests[at]) || list->requests[at]->complete)) at++;
    if (at < list->count) list->requests[at]->kind->describe(list->requests[at], what, sizeof what);
    snprintf(text, bytes, "%zu of %zu requests, first %s", count_incomplete(list), list->count, what);
}

/* Collects a complete request of a list. *failed counts failures; the first one decides the handler. */
static void collect_one(struct api_call *call, ncclx_request_t *handle, ncclx_status_t *status, size_t index,
                        size_t *failed)
{
    if (API_UNLIKELY(result_of(*handle)) && (*failed)++ == 0) {
        note_failure(call, *handle);
        base_error_context(NCCLX_ERR_IN_STATUS, "request %zu", index);
    }
    collect(handle, status);
}

static ncclx_status_t *status_at(ncclx_status_t *statuses, size_t index)
{
    return statuses ? &statuses[index] : NULL;
}

/* Collects what is complete; what is not gets ERR_PENDING. */
static int collect_all(struct api_call *call, const struct request_list *list, ncclx_status_t *statuses)
{
    size_t failed = 0;
    for (size_t i = 0; i < list->count; i++) {
        ncclx_status_t *status = status_at(statuses, i);
        if (is_idle(list->requests[i])) {
            set_status(status, &empty_status);
        } else if (list->requests[i]->complete) {
            collect_one(call, &list->requests[i], status, i, &failed);
        } else if (status) {
            *status = empty_status;
            status->error = NCCLX_ERR_PENDING;
        }
    }
    return failed ? NCCLX_ERR_IN_STATUS : NCCLX_SUCCESS;
}

/* In order: while one is waited for, the others make progress too. */
static int wait_each(const struct request_list *list)
{
    for (size_t i = 0; i < list->count; i++) {
        struct ncclx_request *request = list->requests[i];
        if (is_idle(request) || request->complete) continue;
        int error = base_request_wait(request, "ncclx_waitall");
        if (!request->complete) return error;
    }
    return NCCLX_SUCCESS;
}

/* The same where a wait or a test has ended without them all: why it did comes before what failed earlier. */
static int collect_after(int gave_up, struct api_call *call, const struct request_list *list, ncclx_status_t *statuses)
{
    char detail[1024];
    snprintf(detail, sizeof detail, "%s", base_error_detail());
    collect_all(call, list, statuses);
    return base_error(gave_up, "%s", detail);
}

API_DEFINE(int, waitall)(size_t count, ncclx_request_t *requests, ncclx_status_t *statuses)
{
    struct api_call call;
    struct request_list list = {.count = count, .requests = requests};
    int error = enter_list(&call, API_NAME, count, requests);
    if (API_UNLIKELY(error)) return error;
    int gave_up = wait_each(&list);
    return api_leave(&call, API_UNLIKELY(gave_up) ? collect_after(gave_up, &call, &list, statuses) : collect_all(&call, &list, statuses));
}

API_DEFINE(int, testall)(size_t count, ncclx_request_t *requests, int *flag, ncclx_status_t *statuses)
{
    struct api_call call;
    struct request_list list = {.count = count, .requests = requests};
    int error = enter_list(&call, API_NAME, count, requests);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(flag, "flag");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (count_incomplete(&list)) base_progress(call.rt);
    *flag = count_incomplete(&list) == 0;
    if (*flag) return api_leave(&call, collect_all(&call, &list, statuses));
    error = base_look_check(call.rt, API_NAME);
    return api_leave(&call, API_UNLIKELY(error) ? collect_after(error, &call, &list, statuses) : NCCLX_SUCCESS);
}

/* Drives progress until one is complete: its index. The list holds active requests. */
static int wait_for_any(struct ncclx_rt *rt, const struct request_list *list, const char *call, size_t *index)
{
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    *index = next_complete(list, 0);
    if (*index < list->count) return NCCLX_SUCCESS;
    base_wait_begin(&wait, rt, call, describe_list, list);
    while ((*index = next_complete(list, 0)) == list->count && !error) {
        if (base_progress(rt)) error = base_wait_busy(&wait);
        else error = base_wait_idle(&wait);
    }
    base_wait_end(&wait);
    return *index < list->count ? NCCLX_SUCCESS : error;
}

API_DEFINE(int, waitany)(size_t count, ncclx_request_t *requests, size_t *index, ncclx_status_t *status)
{
    struct api_call call;
    struct request_list list = {.count = count, .requests = requests};
    int error = enter_list(&call, API_NAME, count, requests);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(index, "index");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (!count_active(&list)) {
        *index = NCCLX_INDEX_UNDEFINED;
        set_status(status, &empty_status);
        return api_leave(&call, NCCLX_SUCCESS);
    }
    size_t found;
    error = wait_for_any(call.rt, &list, API_NAME, &found);
    if (error) return api_leave(&call, error);
    *index = found;
    return api_leave(&call, collect_with_detail(&call, &requests[found], status));
}

API_DEFINE(int, testany)(size_t count, ncclx_request_t *requests, size_t *index, int *flag, ncclx_status_t *status)
{
    struct api_call call;
    struct request_list list = {.count = count, .requests = requests};
    int error = enter_list(&call, API_NAME, count, requests);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(index, "index");
    if (!error) error = api_check_out(flag, "flag");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    *index = NCCLX_INDEX_UNDEFINED;
    *flag = !count_active(&list);
    if (*flag) {
        set_status(status, &empty_status);
        return api_leave(&call, NCCLX_SUCCESS);
    }
    size_t found = next_complete(&list, 0);
    if (found == count && base_progress(call.rt)) found = next_complete(&list, 0);
    if (found == count) return api_leave_look(&call, NCCLX_SUCCESS, false, flag);
    *index = found;
    *flag = 1;
    return api_leave(&call, collect_with_detail(&call, &requests[found], status));
}

static int collect_some(struct api_call *call, const struct request_list *list, size_t *done, size_t *indices,
                        ncclx_status_t *statuses)
{
    size_t failed = 0;
    *done = 0;
    for (size_t i = next_complete(list, 0); i < list->count; i = next_complete(list, i + 1)) {
        indices[*done] = i;
        collect_one(call, &list->requests[i], status_at(statuses, *done), i, &failed);
        (*done)++;
    }
    return failed ? NCCLX_ERR_IN_STATUS : NCCLX_SUCCESS;
}

static int some(const char *name, bool block, size_t count, ncclx_request_t *requests, size_t *done, size_t *indices,
                ncclx_status_t *statuses)
{
    struct api_call call;
    struct request_list list = {.count = count, .requests = requests};
    size_t first;
    int error = enter_list(&call, name, count, requests);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(done, "done");
    if (!error && count) error = api_check_out(indices, "indices");
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (!count_active(&list)) {
        *done = NCCLX_INDEX_UNDEFINED;
        return api_leave(&call, NCCLX_SUCCESS);
    }
    if (block) error = wait_for_any(call.rt, &list, name, &first);
    else if (next_complete(&list, 0) == count) base_progress(call.rt);
    if (error) return api_leave(&call, error);
    error = collect_some(&call, &list, done, indices, statuses);
    return api_leave(&call, *done ? error : base_look_check(call.rt, name));
}

API_DEFINE(int, waitsome)(size_t count, ncclx_request_t *requests, size_t *done, size_t *indices,
                          ncclx_status_t *statuses)
{
    return some(API_NAME, true, count, requests, done, indices, statuses);
}

API_DEFINE(int, testsome)(size_t count, ncclx_request_t *requests, size_t *done, size_t *indices,
                          ncclx_status_t *statuses)
{
    return some(API_NAME, false, count, requests, done, indices, statuses);
}

/* ---- Giving up ---- */

/* At the completion of an operation whose handle the program gave up. Runs inside progress, under the lock. */
static void finish_given_up(struct ncclx_request *request, void *arg)
{
    struct ncclx_rt *rt = arg;
    rt->runtime->detached--;
    request->collected = true;
    runtime_comm_release(request->comm);
    request->kind->release(request);
}

static int check_request(const ncclx_request_t *request)
{
    int error = api_check_out(request, "request");
    if (!error && !*request) error = base_error(NCCLX_ERR_REQUEST, "the request is NCCLX_REQUEST_NULL");
    if (!error && ((*request)->collected || (*request)->detached)) error = stale(*request);
    return error;
}

API_DEFINE(int, request_free)(ncclx_request_t *request)
{
    struct api_call call;
    ncclx_status_t ignored;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = check_request(request);
    if (error) return api_leave(&call, error);
    call.comm = (*request)->comm;
    if ((*request)->kind->cancel) /* what can be cancelled is a receive */
        return api_leave(&call,
                         base_error(NCCLX_ERR_REQUEST,
                                    "a receive has to be completed: nobody could know when its buffer is filled"));
    if ((*request)->complete || !(*request)->active) {
        (*request)->persistent = false;
        collect(request, &ignored);
        return api_leave(&call, NCCLX_SUCCESS);
    }
    (*request)->detached = true;
    (*request)->notify = finish_given_up;
    (*request)->notify_arg = call.rt;
    call.rt->runtime->detached++;
    *request = NCCLX_REQUEST_NULL;
    return api_leave(&call, NCCLX_SUCCESS);
}

/* ---- Persistent requests ---- */

static int start(ncclx_request_t *request)
{
    int error = check_request(request);
    if (API_UNLIKELY(error)) return error;
    if (API_UNLIKELY(!(*request)->persistent))
        return base_error(NCCLX_ERR_REQUEST, "a %s has begun with its call: only persistent requests are started", (*request)->kind->name);
    if (API_UNLIKELY((*request)->active))
        return base_error(NCCLX_ERR_REQUEST, "the request was started already: complete it first, as with ncclx_wait");
    return (*request)->kind->start(*request);
}

API_DEFINE(int, start)(ncclx_request_t *request)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (API_UNLIKELY(error)) return error;
    error = start(request);
    if (API_UNLIKELY(error) && request && *request) call.comm = (*request)->comm;
    return api_leave(&call, error);
}

API_DEFINE(int, startall)(size_t count, ncclx_request_t *requests)
{
    struct api_call call;
    int error = enter_list(&call, API_NAME, count, requests);
    if (API_UNLIKELY(error)) return error;
    for (size_t i = 0; i < count && !error; i++) {
        error = start(&requests[i]);
        if (API_LIKELY(!error)) continue;
        base_error_context(error, "request %zu", i);
        if (requests[i]) call.comm = requests[i]->comm;
    }
    return api_leave(&call, error);
}

API_DEFINE(int, cancel)(ncclx_request_t *request)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = check_request(request);
    if (error) return api_leave(&call, error);
    call.comm = (*request)->comm;
    if (!(*request)->kind->cancel)
        return api_leave(&call, base_error(NCCLX_ERR_UNSUPPORTED, "a %s cannot be cancelled", (*request)->kind->name));
    if (!(*request)->complete) error = (*request)->kind->cancel(*request);
    return api_leave(&call, error);
}
