/* request.c - waiting for one request, and the shared request of operations that finish at once. */
#include "runtime/base/base.h"

#include <string.h>

static void keep(struct ncclx_request *request)
{
    request->collected = false; /* shared: lives as long as the rank */
}

static void describe_done(const struct ncclx_request *request, char *text, size_t bytes)
{
    (void)request;
    if (bytes) text[0] = 0;
}

static const struct base_request_kind done_kind = {.name = "completed operation", .release = keep, .describe = describe_done};

struct ncclx_request *base_request_done(struct ncclx_rt *rt)
{
    if (!rt->done.kind) {
        base_request_prepare(&rt->done, &done_kind, rt, NULL);
        rt->done.complete = true;
    }
    return &rt->done;
}

static void describe(const void *arg, char *text, size_t bytes)
{
    const struct ncclx_request *request = arg;
    request->kind->describe(request, text, bytes);
}

int base_request_wait(struct ncclx_request *request, const char *call)
{
    struct ncclx_rt *rt = request->rt;
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    base_wait_begin(&wait, rt, call, describe, request);
    while (!request->complete && !error) {
        if (base_progress(rt)) error = base_wait_busy(&wait);
        else if (!request->complete) error = base_wait_idle(&wait);
    }
    base_wait_end(&wait);
    return request->complete ? request->status.error : error; /* complete at last wins over the deadline */
}
