/* messages.c - drives window_core over active messages: where neither loads and stores nor kernel copies reach a target. */
#include "osc/window.h"

#include <inttypes.h>
#include <stdio.h>
#include <string.h>

/* ---- Origin -------------------------------------------------------------------------------------------------- */

static struct window_operation *take_operation(struct osc *osc)
{
    struct window_operation *operation = osc->free_operations;
    if (!operation) return base_alloc(AREA_OSC, sizeof *operation);
    osc->free_operations = operation->next;
    return operation;
}

static void give_operation(struct osc *osc, struct window_operation *operation)
{
    operation->next = osc->free_operations;
    osc->free_operations = operation;
}

void osc_message_drop(struct osc_window *window, struct osc_target *target)
{
    while (target->origin.head) {
        struct window_operation *operation = target->origin.head;
        target->origin.head = operation->next;
        give_operation(window->face.rt->osc, operation);
    }
}

void osc_operations_release(struct osc *osc)
{
    while (osc->free_operations) {
        struct window_operation *operation = osc->free_operations;
        osc->free_operations = operation->next;
        base_free(AREA_OSC, operation);
    }
}

/* Sends what the core lets out. */
static int pump(struct osc_window *window, struct osc_target *target)
{
    struct ncclx_rt *rt = window->face.rt;
    struct window_message message;
    while (!target->error && window_origin_next(&target->origin, &message)) {
        target->error = pml_am_send(rt, target->peer, OSC_AM_ID, &message.header, sizeof message.header, message.data,
                                    (size_t)message.bytes);
        if (message.finished) give_operation(rt->osc, message.finished);
    }
    if (target->requests) osc_requests_advance(target);
    return target->error;
}

int osc_message_submit(struct osc_window *window, struct osc_target *target, const struct window_operation *model)
{
    struct osc *osc = window->face.rt->osc;
    if (target->error) return base_error(target->error, "an earlier operation to rank %d of the window failed", target->rank);
    struct window_operation *operation = take_operation(osc);
    if (!operation) return base_error(NCCLX_ERR_NO_MEM, "no memory for a window operation to rank %d", target->rank);
    *operation = *model;
    window_origin_submit(&target->origin, operation);
    return pump(window, target);
}

void osc_message_flush_start(struct osc_window *window, struct osc_target *target)
{
    (void)window_origin_flush(&target->origin);
    (void)pump(window, target);
}

static void describe_flush(const void *arg, char *text, size_t bytes)
{
    const struct osc_target *target = arg;
    snprintf(text, bytes, "rank %d has acknowledged %" PRIu64 " of %" PRIu64 " window messages, operations %s", target->rank,
             target->origin.acked, target->origin.last, target->origin.head ? "queued" : "all sent");
}

int osc_message_goal(struct osc_target *target, struct osc_goal *goal)
{
    goal->messages = window_origin_goal(&target->origin);
    return target->order ? pml_order_flush(target->order, &goal->lanes) : NCCLX_SUCCESS;
}

bool osc_message_reached(const struct osc_target *target, const struct osc_goal *goal, bool here)
{
    if (target->order && !pml_order_reached(target->order, &goal->lanes)) return false;
    return here ? window_origin_reached_here(&target->origin, goal->messages) : window_origin_reached(&target->origin, goal->messages);
}

int osc_message_flush(struct osc_window *window, struct osc_target *target, bool here, const char *call)
{
    struct ncclx_rt *rt = window->face.rt;
    struct osc_goal goal;
    int error = osc_message_goal(target, &goal);
    if (!error && !here) (void)window_origin_flush(&target->origin);
    if (!error) error = pump(window, target);
    if (error || osc_message_reached(target, &goal, here)) return error ? error : osc_message_failed(target);
    struct base_wait wait;
    base_wait_begin(&wait, rt, call, describe_flush, target);
    while (!error && !osc_message_failed(target) && !osc_message_reached(target, &goal, here)) error = base_wait_step(&wait);
    base_wait_end(&wait);
    int failed = osc_message_failed(target);
    if (error || !failed) return error;
    if (failed == NCCLX_ERR_PROC_FAILED) return base_error(failed, "%s: rank %d is lost", call, target->peer);
    return base_error(failed, "the way to rank %d of the window failed", target->rank);
}

int osc_message_settle(struct osc_window *window, struct osc_target *target, const char *call)
{
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    if (__builtin_expect(!target->origin.head, 1)) return NCCLX_SUCCESS;
    base_wait_begin(&wait, window->face.rt, call, describe_flush, target);
    while (!error && !osc_message_failed(target) && target->origin.head) error = base_wait_step(&wait);
    base_wait_end(&wait);
    return error;
}

/* ---- Target -------------------------------------------------------------------------------------------------- */

static struct osc_incoming *incoming(struct osc_window *window, int rank)
{
    if (!window->incoming[rank]) window->incoming[rank] = base_calloc(AREA_OSC, 1, sizeof *window->incoming[rank]);
    return window->incoming[rank];
}

static void answer(struct osc_window *window, int peer, struct window_header *header, const void *data, size_t bytes)
{
    header->rank = window->face.comm->rank;
    header->bytes = bytes;
    header->flags = 0;
    header->slot = header->value = 0;
    if (pml_am_answer(window->face.rt, peer, OSC_AM_ID, header, sizeof *header, data, bytes))
        base_log(AREA_OSC, LOG_WARN, "rank %d could not be answered: %s", peer, base_error_detail());
}

void osc_message_granted(struct osc_window *window, int rank, uint64_t sequence)
{
    struct window_header header = {
        .window = osc_window_id(window), .sequence = sequence, .kind = WINDOW_LOCKED, .version = WINDOW_VERSION};
    answer(window, base_comm_world(window->face.comm, rank), &header, NULL, 0);
}

void osc_message_ask_for_agent(struct osc_window *window, struct osc_target *target)
{
    struct window_header header = {
        .window = osc_window_id(window), .rank = window->face.comm->rank, .kind = WINDOW_AGENT, .version = WINDOW_VERSION};
    base_log(AREA_OSC, LOG_INFO, "rank %d of a window is not reached as others are: operations to it may wait for its next call",
             target->rank);
    target->error = pml_am_send(window->face.rt, target->peer, OSC_AM_ID, &header, sizeof header, NULL, 0);
}

static void send_data(struct osc_window *window, int peer, const struct window_header *request)
{
    struct window_header header = *request;
    header.kind = WINDOW_DATA;
    header.offset = 0;
    answer(window, peer, &header, window->base + request->offset, (size_t)request->bytes);
}

/* Elements changed at a time; their old values are sent before the next ones change. */
#define COMBINE_BYTES ((size_t)512)

static void combine(struct osc_window *window, int peer, const struct window_header *request, const struct osc_atomic *atomic,
                    const char *operands, bool read)
{
    _Alignas(16) char old[COMBINE_BYTES];
    struct window_header header = *request;
    header.kind = WINDOW_DATA;
    for (uint64_t done = 0; done < request->bytes;) {
        size_t bytes = request->bytes - done < sizeof old ? (size_t)(request->bytes - done) : sizeof old;
        osc_atomic_run(atomic, window->base + request->offset + done, operands, read ? old : NULL, bytes / atomic->size,
                       &window->control->elements, window->plain);
        header.offset = done;
        if (read) answer(window, peer, &header, old, bytes);
        if (operands) operands += bytes;
        done += bytes;
    }
}

/* What the header's type and operation mean; an element of 0 bytes where they mean nothing. */
static void read_elements(const struct window_header *header, struct osc_atomic *atomic, struct window_limits *limits)
{
    if (header->kind != WINDOW_FETCH && header->kind != WINDOW_ACCUMULATE) return;
    if (osc_atomic_make((ncclx_datatype_t)header->type, header->op, atomic)) return;
    limits->element = (unsigned)atomic->size;
    limits->operands = osc_atomic_operands(atomic);
}

static void handle_request(struct osc_window *window, int peer, const struct window_header *header, const void *data,
                           size_t bytes)
{
    struct ncclx_rt *rt = window->face.rt;
    struct window_limits limits = {.bytes = window->bytes, .slots = window->slot_count, .piece = pml_am_max(rt, peer)};
    struct window_request request;
    struct osc_atomic atomic;
    struct osc_incoming *from = incoming(window, header->rank);
    if (!from) {
        pml_peer_breach(rt, peer, "memory is short for its messages of a window");
        return;
    }
    read_elements(header, &atomic, &limits);
    if (window_target_receive(&from->core, header, bytes, &limits, &request)) {
        pml_peer_breach(rt, peer, "its message of a window is out of order or out of the window's bounds");
        return;
    }
    if (request.write) osc_copy(window->base + header->offset, data, bytes);
    if (request.signal) osc_slot_raise(&window->slots[header->slot], header->signal_op, header->value);
    if (request.combine) combine(window, peer, header, &atomic, bytes ? data : NULL, request.read);
    else if (request.read) send_data(window, peer, header);
    if (request.unlock) osc_unlock_for(from);
    if (request.lock && osc_lock_for(window, from, header->rank, header->op))
        base_log(AREA_OSC, LOG_ERROR, "rank %d will never get its lock: %s", peer, base_error_detail());
    if (request.acknowledge) {
        struct window_header reply = *header;
        reply.kind = WINDOW_ACK;
        reply.offset = 0;
        answer(window, peer, &reply, NULL, 0);
    }
}

static void handle_answer(struct osc_window *window, int peer, const struct window_header *header, const void *data,
                          size_t bytes)
{
    struct osc_target *target = window->targets[header->rank];
    char *to = NULL;
    if (!target || !osc_target_needs_messages(target) || window_origin_receive(&target->origin, header, bytes, &to)) {
        pml_peer_breach(window->face.rt, peer, "its message of a window answers nothing that was asked");
        return;
    }
    if (to) osc_copy(to, data, bytes);
    if (header->kind == WINDOW_LOCKED) osc_target_lock_came(window, target);
    (void)pump(window, target); /* a failure stays in target->error, for the next call */
}

static bool is_answer(const struct window_header *header)
{
    return header->kind == WINDOW_ACK || header->kind == WINDOW_DATA || header->kind == WINDOW_LOCKED || header->kind == WINDOW_GONE;
}

/* Windows are known here before others can speak of them, and end together with all operations: but for ranks of which one has failed to make
 * a window, or has left it at its end, and whose peers must not wait for ever. */
static void tell_gone(struct ncclx_rt *rt, int peer, const struct window_header *header)
{
    const struct window_header gone = {.window = header->window, .rank = -1, .kind = WINDOW_GONE, .version = WINDOW_VERSION};
    if (is_answer(header)) return; /* late */
    base_log(AREA_OSC, LOG_INFO, "rank %d sends a message of a window that is not known here", peer);
    if (pml_am_answer(rt, peer, OSC_AM_ID, &gone, sizeof gone, NULL, 0))
        base_log(AREA_OSC, LOG_WARN, "rank %d could not be answered: %s", peer, base_error_detail());
}

static void window_gone(struct osc_window *window, int peer)
{
    struct osc_target *target = window->used;
    while (target && (target->peer != peer || !osc_target_needs_messages(target))) target = target->next;
    if (!target) {
        pml_peer_breach(window->face.rt, peer, "its message of a window answers nothing that was asked");
        return;
    }
    if (!target->error) target->error = base_error(NCCLX_ERR_WIN, "rank %d has no such window any more", target->rank);
    (void)pump(window, target); /* ends requests */
}

static bool is_member(const struct osc_window *window, int rank, int source)
{
    const struct ncclx_comm *comm = window->face.comm;
    return rank >= 0 && rank < comm->size && base_comm_world(comm, rank) == source && rank != comm->rank;
}

void osc_signal_arrived(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg)
{
    struct osc *osc = arg;
    struct osc_window *window = osc_window_find(osc, signal->window);
    if (!window) /* nobody waited for it, and the window has ended: a flush of its put does not wait for it, either */
        base_log(AREA_OSC, LOG_DEBUG, "late signal of rank %d for a window that has ended is dropped", source);
    else if (!is_member(window, signal->rank, source))
        pml_peer_breach(rt, source, "it signals in a window that it has no part in");
    else if (signal->slot >= window->slot_count || (signal->op != NCCLX_SIGNAL_ADD && signal->op != NCCLX_SIGNAL_SET))
        pml_peer_breach(rt, source, "its signal makes no sense");
    else
        osc_slot_raise(&window->slots[signal->slot], (ncclx_signal_op_t)signal->op, signal->value);
}

void osc_message_arrived(struct ncclx_rt *rt, int source, const void *bytes_of_header, size_t header_bytes, const void *data,
                         size_t bytes, void *arg)
{
    struct osc *osc = arg;
    struct window_header header;
    memset(&header, 0, sizeof header);
    if (header_bytes == sizeof header) memcpy(&header, bytes_of_header, sizeof header);
    if (header.version != WINDOW_VERSION) {
        pml_peer_breach(rt, source, "its message of a window is none of this version");
        return;
    }
    struct osc_window *window = osc_window_find(osc, header.window);
    if (!window) {
        tell_gone(rt, source, &header);
        return;
    }
    if (header.kind == WINDOW_GONE) {
        window_gone(window, source);
        return;
    }
    if (!is_member(window, header.rank, source)) {
        pml_peer_breach(rt, source, "its message of a window names another sender");
        return;
    }
    if (header.kind == WINDOW_AGENT) {
        osc_window_answer(window);
        return;
    }
    if (is_answer(&header)) handle_answer(window, source, &header, data, bytes);
    else handle_request(window, source, &header, data, bytes);
}
