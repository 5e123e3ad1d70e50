/* requests.c - puts and gets with a request of their own. Only messages are ever in progress when their call returns. */
#include "osc/window.h"

#include <stdio.h>

static void release(struct ncclx_request *request)
{
    base_free(AREA_OSC, request);
}

static void describe(const struct ncclx_request *request, char *text, size_t bytes)
{
    const struct osc_request *own = (const struct osc_request *)request;
    snprintf(text, bytes, "%s of %zu bytes %s rank %d of a window", own->is_put ? "put" : "get", own->bytes, own->is_put ? "to" : "from",
             own->rank);
}

static const struct base_request_kind request_kind = {.name = "window operation", .release = release, .describe = describe};

void osc_requests_advance(struct osc_target *target)
{
    struct osc_request *first;
    while ((first = target->requests) && (osc_message_failed(target) || osc_message_reached(target, &first->goal, true))) {
        target->requests = first->next;
        base_request_complete(&first->base, osc_message_failed(target));
    }
}

/* Only the end of the library leaves any. */
void osc_requests_drop(struct osc_target *target)
{
    struct osc_request *first;
    while ((first = target->requests)) {
        target->requests = first->next;
        base_free(AREA_OSC, first);
    }
}

static void append(struct osc_target *target, struct osc_request *request)
{
    if (target->requests) target->last_request->next = request;
    else target->requests = request;
    target->last_request = request;
}

struct access {
    const void *from;
    void *to;
    size_t bytes;
    uint64_t offset;
};

static int start(struct osc_window *window, struct osc_target *target, const struct access *access)
{
    if (!access->to) {
        target->put_open = true;
        return osc_put_bytes(window, target, access->from, access->bytes, access->offset);
    }
    target->get_open = true;
    return osc_get_bytes(window, target, access->to, access->bytes, access->offset);
}

static int start_with_request(struct osc_window *window, struct osc_target *target, const struct access *access, struct ncclx_request **out)
{
    struct ncclx_rt *rt = window->face.rt;
    struct osc_request *request = base_alloc(AREA_OSC, sizeof *request);
    if (!request) return base_error(NCCLX_ERR_NO_MEM, "no memory for a request");
    base_request_prepare(&request->base, &request_kind, rt, window->face.comm);
    request->next = NULL;
    request->is_put = !access->to;
    request->rank = target->rank;
    request->bytes = access->bytes;
    int error = start(window, target, access);
    if (error) {
        base_free(AREA_OSC, request);
        return error;
    }
    error = osc_message_goal(target, &request->goal);
    if (error) {
        base_free(AREA_OSC, request);
        return error;
    }
    append(target, request);
    osc_requests_advance(target);
    *out = &request->base;
    return NCCLX_SUCCESS;
}

static int access_target(struct ncclx_win *win, struct access *access, int rank, size_t displacement, struct ncclx_request **request)
{
    struct osc_window *window = osc_window_of(win);
    struct osc_target *target;
    *request = base_request_done(win->rt);
    if (rank == NCCLX_PROC_NULL) return NCCLX_SUCCESS;
    int error = osc_target_find(window, rank, &target);
    if (!error) error = osc_check_range(target, displacement, access->bytes, &access->offset);
    if (error || access->bytes == 0) return error;
    if (!target->memory && !target->copied) return start_with_request(window, target, access, request);
    return start(window, target, access);
}

int osc_rput(struct ncclx_win *win, const void *origin, size_t bytes, int target, size_t displacement, struct ncclx_request **request)
{
    struct access access = {.from = origin, .bytes = bytes};
    return access_target(win, &access, target, displacement, request);
}

int osc_rget(struct ncclx_win *win, void *origin, size_t bytes, int target, size_t displacement, struct ncclx_request **request)
{
    struct access access = {.to = origin, .bytes = bytes};
    return access_target(win, &access, target, displacement, request);
}
