/* p2p.c - messages: arguments are checked here, pml does the rest. */
#include "runtime/api.h"
#include "pml/pml.h"

#include <stdio.h>

static int bad_message_arguments(const struct ncclx_comm *comm, int peer, int tag, const char *what)
{
    int error = api_check_rank(comm, peer, true, what);
    return error ? error : base_error(NCCLX_ERR_TAG, "tag %d is below 0", tag);
}

/* peer may be PROC_NULL. */
static inline int check_send(const struct ncclx_comm *comm, const void *buf, size_t count, ncclx_datatype_t type,
                             int dest, int tag, size_t *bytes)
{
    int error = api_check_elements(buf, count, type, bytes);
    if (API_UNLIKELY(error)) return error;
    if (API_UNLIKELY(((unsigned)dest >= (unsigned)comm->size && dest != NCCLX_PROC_NULL) || tag < 0))
        return bad_message_arguments(comm, dest, tag, "destination");
    return NCCLX_SUCCESS;
}

/* source may be PROC_NULL or ANY_SOURCE, tag ANY_TAG. */
static inline int check_source(const struct ncclx_comm *comm, int source, int tag)
{
    bool known = (unsigned)source < (unsigned)comm->size || source == NCCLX_ANY_SOURCE || source == NCCLX_PROC_NULL;
    if (API_UNLIKELY(!known || tag < NCCLX_ANY_TAG))
        return bad_message_arguments(comm, known ? NCCLX_PROC_NULL : source, tag, "source");
    return NCCLX_SUCCESS;
}

static inline int check_receive(const struct ncclx_comm *comm, const void *buf, size_t count, ncclx_datatype_t type,
                                int source, int tag, size_t *bytes)
{
    int error = api_check_elements(buf, count, type, bytes);
    return API_UNLIKELY(error) ? error : check_source(comm, source, tag);
}

static void set_null_status(ncclx_status_t *status)
{
    if (status) *status = (ncclx_status_t){.source = NCCLX_PROC_NULL, .tag = NCCLX_ANY_TAG};
}

/* ---- Requests of operations with PROC_NULL: complete, but a status of their own ---- */

static void release_null(struct ncclx_request *request)
{
    base_free(AREA_RUNTIME, request);
}

static void describe_null(const struct ncclx_request *request, char *text, size_t bytes)
{
    (void)request;
    snprintf(text, bytes, "receive from NCCLX_PROC_NULL");
}

/* Like a receive whose message was there before: it is complete. */
static int cancel_null(struct ncclx_request *request)
{
    (void)request;
    return NCCLX_SUCCESS;
}

static const struct base_request_kind null_receive_kind = {
    .name = "receive", .release = release_null, .cancel = cancel_null, .describe = describe_null};

static int null_receive(struct ncclx_rt *rt, struct ncclx_comm *comm, struct ncclx_request **request)
{
    *request = base_alloc(AREA_RUNTIME, sizeof **request);
    if (!*request) return base_error(NCCLX_ERR_NO_MEM, "no memory for a request");
    base_request_prepare(*request, &null_receive_kind, rt, comm);
    set_null_status(&(*request)->status);
    (*request)->complete = true;
    return NCCLX_SUCCESS;
}

/* ---- Send and receive ---- */

API_DEFINE(int, send)(const void *buf, size_t count, ncclx_datatype_t type, int dest, int tag, ncclx_comm_t comm)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (API_UNLIKELY(error)) return error;
    error = check_send(call.comm, buf, count, type, dest, tag, &bytes);
    if (API_LIKELY(!error && dest != NCCLX_PROC_NULL)) error = pml_send(call.comm, PML_USER, buf, bytes, dest, tag);
    return api_leave(&call, error);
}

API_DEFINE(int, isend)(const void *buf, size_t count, ncclx_datatype_t type, int dest, int tag, ncclx_comm_t comm,
                       ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *started;
    size_t bytes;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_LIKELY(!error)) error = check_send(call.comm, buf, count, type, dest, tag, &bytes);
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (API_UNLIKELY(dest == NCCLX_PROC_NULL)) started = base_request_done(call.rt);
    else error = pml_isend(call.comm, PML_USER, buf, bytes, dest, tag, &started);
    if (API_LIKELY(!error)) runtime_request_publish(started, request);
    return api_leave(&call, error);
}

API_DEFINE(int, recv)(void *buf, size_t count, ncclx_datatype_t type, int source, int tag, ncclx_comm_t comm,
                      ncclx_status_t *status)
{
    struct api_call call;
    size_t bytes;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (API_UNLIKELY(error)) return error;
    error = check_receive(call.comm, buf, count, type, source, tag, &bytes);
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (API_UNLIKELY(source == NCCLX_PROC_NULL)) set_null_status(status);
    else error = pml_recv(call.comm, PML_USER, buf, bytes, source, tag, status);
    return api_leave(&call, error);
}

API_DEFINE(int, irecv)(void *buf, size_t count, ncclx_datatype_t type, int source, int tag, ncclx_comm_t comm,
                       ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *started;
    size_t bytes;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (API_UNLIKELY(error)) return error;
    error = api_check_out(request, "request");
    if (API_LIKELY(!error)) error = check_receive(call.comm, buf, count, type, source, tag, &bytes);
    if (API_UNLIKELY(error)) return api_leave(&call, error);
    if (API_UNLIKELY(source == NCCLX_PROC_NULL)) error = null_receive(call.rt, call.comm, &started);
    else error = pml_irecv(call.comm, PML_USER, buf, bytes, source, tag, &started);
    if (API_LIKELY(!error)) runtime_request_publish(started, request);
    return api_leave(&call, error);
}

/* A receive that was waited for, or that nobody will wait for any more: then it is cancelled, or ends by itself. */
static void give_back(struct ncclx_request *receive)
{
    if (!receive->complete && receive->kind->cancel) receive->kind->cancel(receive);
    if (receive->complete) receive->kind->release(receive);
    else receive->detached = true;
}

/* The receive is posted first, so that two ranks which exchange large messages never wait for each other. */
static int exchange(struct ncclx_comm *comm, const void *sendbuf, size_t send_bytes, int dest, int sendtag,
                    void *recvbuf, size_t recv_bytes, int source, int recvtag, ncclx_status_t *status)
{
    struct ncclx_request *receive = NULL;
    int send_error = NCCLX_SUCCESS;
    if (source == NCCLX_PROC_NULL) {
        set_null_status(status);
    } else {
        int error = pml_irecv(comm, PML_USER, recvbuf, recv_bytes, source, recvtag, &receive);
        if (error) return error;
    }
    if (dest != NCCLX_PROC_NULL) send_error = pml_send(comm, PML_USER, sendbuf, send_bytes, dest, sendtag);
    if (!receive) return send_error;
    int error = send_error ? send_error : base_request_wait(receive, "ncclx_sendrecv");
    if (status && receive->complete) *status = receive->status;
    give_back(receive);
    return error;
}

API_DEFINE(int, sendrecv)(const void *sendbuf, size_t sendcount, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                          int dest, int sendtag, int source, int recvtag, ncclx_comm_t comm, ncclx_status_t *status)
{
    struct api_call call;
    size_t send_bytes, recv_bytes;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (API_UNLIKELY(error)) return error;
    error = check_send(call.comm, sendbuf, sendcount, type, dest, sendtag, &send_bytes);
    if (!error) error = check_receive(call.comm, recvbuf, recvcount, type, source, recvtag, &recv_bytes);
    if (!error)
        error = exchange(call.comm, sendbuf, send_bytes, dest, sendtag, recvbuf, recv_bytes, source, recvtag, status);
    return api_leave(&call, error);
}

/* ---- Probing ---- */

struct probe {
    struct ncclx_comm *comm;
    int source, tag;
};

static void describe_probe(const void *arg, char *text, size_t bytes)
{
    const struct probe *probe = arg;
    char source[32] = "any rank", tag[32] = "any tag";
    if (probe->source != NCCLX_ANY_SOURCE) snprintf(source, sizeof source, "rank %d", probe->source);
    if (probe->tag != NCCLX_ANY_TAG) snprintf(tag, sizeof tag, "tag %d", probe->tag);
    snprintf(text, bytes, "a message from %s, %s, on %s", source, tag,
             base_comm_name(probe->comm));
}

/* One look, and one more after some progress. message null: the message stays. */
static int look(const struct probe *probe, bool *found, struct ncclx_message **message, ncclx_status_t *status)
{
    int error = pml_probe(probe->comm, PML_USER, probe->source, probe->tag, found, message, status);
    if (error || *found) return error;
    if (!base_progress(probe->comm->rt)) return NCCLX_SUCCESS;
    return pml_probe(probe->comm, PML_USER, probe->source, probe->tag, found, message, status);
}

static int wait_for_message(const struct probe *probe, const char *call, ncclx_status_t *status)
{
    struct ncclx_rt *rt = probe->comm->rt;
    struct base_wait wait;
    bool found = false;
    base_wait_begin(&wait, rt, call, describe_probe, probe);
    int error = pml_probe(probe->comm, PML_USER, probe->source, probe->tag, &found, NULL, status);
    while (!found && !error) {
        if (base_progress(rt)) {
            error = base_wait_busy(&wait);
            if (!error) error = pml_probe(probe->comm, PML_USER, probe->source, probe->tag, &found, NULL, status);
        } else {
            error = base_wait_idle(&wait);
            /* Another thread may have made the progress meanwhile. */
            if (!error && rt->threaded)
                error = pml_probe(probe->comm, PML_USER, probe->source, probe->tag, &found, NULL, status);
        }
    }
    base_wait_end(&wait);
    return error;
}

API_DEFINE(int, probe)(int source, int tag, ncclx_comm_t comm, ncclx_status_t *status)
{
    struct api_call call;
    ncclx_status_t ignored;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    struct probe probe = {.comm = call.comm, .source = source, .tag = tag};
    error = check_source(call.comm, source, tag);
    if (error) return api_leave(&call, error);
    if (source == NCCLX_PROC_NULL) set_null_status(status);
    else error = wait_for_message(&probe, API_NAME, status ? status : &ignored);
    return api_leave(&call, error);
}

API_DEFINE(int, iprobe)(int source, int tag, ncclx_comm_t comm, int *flag, ncclx_status_t *status)
{
    struct api_call call;
    ncclx_status_t ignored;
    bool found = true;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    struct probe probe = {.comm = call.comm, .source = source, .tag = tag};
    error = api_check_out(flag, "flag");
    if (!error) error = check_source(call.comm, source, tag);
    if (error) return api_leave(&call, error);
    if (source == NCCLX_PROC_NULL) set_null_status(status);
    else error = look(&probe, &found, NULL, status ? status : &ignored);
    return api_leave_look(&call, error, found, flag);
}

static void publish_message(struct ncclx_rt *rt, struct ncclx_message *taken, ncclx_message_t *message)
{
    runtime_comm_retain(pml_message_comm(taken)); /* until it is received */
    handle_insert(&rt->runtime->handles, HANDLE_MESSAGE, taken);
    *message = taken;
}

API_DEFINE(int, mprobe)(int source, int tag, ncclx_comm_t comm, ncclx_message_t *message, ncclx_status_t *status)
{
    struct api_call call;
    ncclx_status_t ignored;
    struct ncclx_message *taken = NULL;
    bool found;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    struct probe probe = {.comm = call.comm, .source = source, .tag = tag};
    error = api_check_out(message, "message");
    if (!error) error = check_source(call.comm, source, tag);
    if (error) return api_leave(&call, error);
    if (source == NCCLX_PROC_NULL) {
        set_null_status(status);
        *message = NCCLX_MESSAGE_NO_PROC;
        return api_leave(&call, NCCLX_SUCCESS);
    }
    error = wait_for_message(&probe, API_NAME, status ? status : &ignored);
    if (!error) error = handle_reserve(&call.rt->runtime->handles); /* before it is taken: else it would be lost */
    if (!error) error = pml_probe(call.comm, PML_USER, source, tag, &found, &taken, status ? status : &ignored);
    if (!error) publish_message(call.rt, taken, message);
    return api_leave(&call, error);
}

API_DEFINE(int, improbe)(int source, int tag, ncclx_comm_t comm, int *flag, ncclx_message_t *message,
                         ncclx_status_t *status)
{
    struct api_call call;
    ncclx_status_t ignored;
    struct ncclx_message *taken = NULL;
    bool found = true;
    int error = api_enter_comm(&call, API_NAME, comm);
    if (error) return error;
    struct probe probe = {.comm = call.comm, .source = source, .tag = tag};
    error = api_check_out(flag, "flag");
    if (!error) error = api_check_out(message, "message");
    if (!error) error = check_source(call.comm, source, tag);
    if (!error) error = handle_reserve(&call.rt->runtime->handles);
    if (error) return api_leave(&call, error);
    *message = source == NCCLX_PROC_NULL ? NCCLX_MESSAGE_NO_PROC : NCCLX_MESSAGE_NULL;
    if (source == NCCLX_PROC_NULL) set_null_status(status);
    else error = look(&probe, &found, &taken, status ? status : &ignored);
    if (!error && taken) publish_message(call.rt, taken, message);
    return api_leave_look(&call, error, found, flag);
}

/* What mrecv and imrecv share: consumes *message and starts the receive. */
static int receive_message(struct api_call *call, void *buf, size_t count, ncclx_datatype_t type,
                           ncclx_message_t *message, struct ncclx_request **started)
{
    size_t bytes;
    int error = api_check_out(message, "message");
    if (!error) error = api_check_elements(buf, count, type, &bytes);
    if (error) return error;
    if (*message == NCCLX_MESSAGE_NO_PROC) {
        error = null_receive(call->rt, NULL, started);
    } else if (!handle_live(&call->rt->runtime->handles, HANDLE_MESSAGE, *message)) {
        error = base_error(NCCLX_ERR_REQUEST, "%p is not a message, or was received before", (void *)*message);
    } else {
        call->comm = pml_message_comm(*message);
        error = pml_imrecv(buf, bytes, *message, started);
        if (error) return error; /* it is still there */
        handle_remove(&call->rt->runtime->handles, *message);
        runtime_comm_release(call->comm);
    }
    if (!error) *message = NCCLX_MESSAGE_NULL;
    return error;
}

API_DEFINE(int, mrecv)(void *buf, size_t count, ncclx_datatype_t type, ncclx_message_t *message, ncclx_status_t *status)
{
    struct api_call call;
    struct ncclx_request *started;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = receive_message(&call, buf, count, type, message, &started);
    if (error) return api_leave(&call, error);
    error = base_request_wait(started, API_NAME);
    if (status && started->complete) *status = started->status;
    give_back(started);
    return api_leave(&call, error);
}

API_DEFINE(int, imrecv)(void *buf, size_t count, ncclx_datatype_t type, ncclx_message_t *message,
                        ncclx_request_t *request)
{
    struct api_call call;
    struct ncclx_request *started;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    error = api_check_out(request, "request");
    if (!error) error = receive_message(&call, buf, count, type, message, &started);
    if (!error) runtime_request_publish(started, request);
    return api_leave(&call, error);
}

API_DEFINE(int, status_count)(const ncclx_status_t *status, ncclx_datatype_t type, size_t *count)
{
    struct api_call call;
    int error = api_enter(&call, API_NAME);
    if (error) return error;
    size_t size = base_type_size(type);
    error = api_check_out(status, "status");
    if (!error) error = api_check_out(count, "count");
    if (!error && !size) error = api_bad_elements(NULL, 0, type);
    if (error) return api_leave(&call, error);
    *count = status->bytes / size;
    if (status->bytes % size)
        error =
            base_error(NCCLX_ERR_TYPE, "%zu bytes are not a whole number of %s", status->bytes, base_type_name(type));
    return api_leave(&call, error);
}
