/* receive.c - receiving messages, and looking for them. */
#include "pml/internal.h"

#include <stdio.h>
#include <string.h>

static void complete(struct pml_request *request, int error)
{
    request->base.rt->pml->counters.messages_received++;
    request->connection->traffic.received += error ? 0 : request->base.status.bytes;
    base_request_complete(&request->base, error);
}

static int truncated(const struct pml_request *request)
{
    return base_error(
        NCCLX_ERR_TRUNCATE,
        "message of %zu bytes from rank %d, tag %d, on %s is larger than the receive's buffer of %zu bytes",
        request->base.status.bytes, request->base.status.source, request->base.status.tag, base_comm_name(request->space->comm),
        request->u.receive.core.capacity);
}

static void release(struct ncclx_request *base)
{
    pml_request_put(base->rt->pml, (struct pml_request *)base);
}

static void describe(const struct ncclx_request *base, char *text, size_t bytes)
{
    const struct pml_request *request = (const struct pml_request *)base;
    const struct match_receive *receive = &request->u.receive.core.match;
    char source[32] = "any source", tag[32] = "any tag";
    if (receive->source != NCCLX_ANY_SOURCE) snprintf(source, sizeof source, "rank %d", receive->source);
    if (receive->tag != NCCLX_ANY_TAG) snprintf(tag, sizeof tag, "tag %d", receive->tag);
    snprintf(text, bytes, "receive of at most %zu bytes from %s, %s, on %s", request->u.receive.core.capacity, source,
             tag, base_comm_name(base->comm));
}

static void finish_cancelled(struct pml_request *request)
{
    request->base.status.cancelled = 1;
    base_request_complete(&request->base, NCCLX_SUCCESS);
}

static int cancel(struct ncclx_request *base)
{
    struct pml_request *request = (struct pml_request *)base;
    if (base->complete) return NCCLX_SUCCESS;
    switch (protocol_cancel(request->peer ? &request->peer->core : NULL, &request->u.receive.core)) {
    case CANCEL_DONE:
        finish_cancelled(request);
        break;
    case CANCEL_WITHDRAW: {
        struct pml_packet packet = {.kind = PROTOCOL_WITHDRAW,
                                    .context = request->space->context,
                                    .source = request->space->comm->rank,
                                    .inline_bytes = sizeof(uint64_t),
                                    .u.word[0] = request->name};
        pml_post_control(request->peer->connection, &packet);
        break;
    }
    case CANCEL_TOO_LATE:
        break;
    }
    return NCCLX_SUCCESS;
}

static const struct base_request_kind receive_kind = {
    .name = "receive", .release = release, .cancel = cancel, .describe = describe};

static int prepare(struct pml_space_state *space, void *buf, size_t bytes, int source, int tag,
                   struct pml_request **out)
{
    struct pml_request *request;
    int error = pml_request_get(space->comm->rt->pml, &request);
    if (unlikely(error)) return error;
    base_request_prepare(&request->base, &receive_kind, space->comm->rt, space->comm);
    request->space = space;
    request->peer = NULL;
    request->connection = NULL;
    request->is_send = false;
    request->u.receive.buffer = buf;
    request->u.receive.core.capacity = bytes;
    request->u.receive.core.state = STATE_IDLE;
    request->u.receive.core.match.source = source;
    request->u.receive.core.match.tag = tag;
    request->u.receive.core.match.pending = false;
    *out = request;
    return NCCLX_SUCCESS;
}

/* ---- A receive and its message have met ------------------------------------------------------------------------ */

static void act(struct pml_request *request, struct protocol_action action, const void *data, size_t first, uint64_t send,
                uint64_t address)
{
    size_t bytes = request->base.status.bytes;
    struct pml_connection *connection = request->connection;
    if (action.control == PROTOCOL_CLEAR) {
        struct pml_packet packet = {
            .kind = PROTOCOL_CLEAR, .inline_bytes = 2 * sizeof(uint64_t), .context = send,
            .u.word = {request->name, (uint64_t)(uintptr_t)request->u.receive.buffer}};
        pml_post_control(connection, &packet);
    } else if (action.control != PROTOCOL_NONE) {
        pml_post_control(connection, &(struct pml_packet){.kind = (uint8_t)action.control, .context = send});
    }
    if (action.copy == COPY_EAGER || action.copy == COPY_FIRST) {
        if (data) base_copy_shared(request->u.receive.buffer, data, action.copy == COPY_FIRST ? first : bytes);
    } else if (action.copy == COPY_READ) {
        if (connection->transport->read(connection, request->u.receive.buffer, address, bytes, send)) {
            connection->route.can_read = false; /* allowed a moment ago: take the other way */
            action = protocol_deliver(&request->u.receive.core, &connection->route, PROTOCOL_REQUEST, bytes, first);
        } else {
            action = protocol_copied(&request->u.receive.core);
        }
        act(request, action, data, first, send, address);
        return;
    }
    if (action.complete) complete(request, action.error == NCCLX_ERR_TRUNCATE ? truncated(request) : action.error);
}

void pml_receive_deliver(struct pml_request *request, struct pml_connection *connection, enum protocol_kind kind,
                         int source, int tag, const void *data, size_t first, size_t bytes, uint64_t send, uint64_t address)
{
    request->connection = connection;
    request->base.status.source = source;
    request->base.status.tag = tag;
    request->base.status.bytes = bytes;
    if (likely(kind == PROTOCOL_EAGER &&
               bytes <= request->u.receive.core.capacity)) { /* the same as protocol_deliver says, in short */
        if (bytes) base_copy_shared(request->u.receive.buffer, data, bytes);
        complete(request, NCCLX_SUCCESS);
        return;
    }
    if (kind == PROTOCOL_REQUEST) pml_connection_probe(connection);
    struct protocol_action action = protocol_deliver(&request->u.receive.core, &connection->route, kind, bytes, first);
    act(request, action, data, first, send, address);
}

void pml_receive_requested(struct pml_request *request, struct pml_connection *connection, const struct pml_packet *packet,
                           size_t first, char **to)
{
    *to = request->u.receive.buffer;
    pml_receive_deliver(request, connection, PROTOCOL_REQUEST, packet->source, packet->tag, NULL, first, packet->u.word[1],
                        packet->u.word[0], packet->u.word[2]);
}

struct pml_request *pml_receive_place(struct pml_connection *connection, const struct pml_packet *packet, size_t bytes,
                                      char **to, bool *last)
{
    struct pml_request *request = pml_request_named(connection->pml, packet->context, false);
    uint64_t offset = packet->u.word[0];
    struct protocol_action action = {.error = NCCLX_ERR_TRANSPORT};
    if (request && request->connection == connection) action = protocol_data(&request->u.receive.core, offset, bytes);
    if (action.error) {
        pml_breach(connection, "it sent data that no receive waits for");
        return NULL;
    }
    *to = (char *)request->u.receive.buffer + offset;
    *last = action.complete;
    return request;
}

void pml_receive_landed(struct pml_request *request)
{
    request->u.receive.core.state = STATE_DONE;
    complete(request, NCCLX_SUCCESS);
}

void pml_receive_data(struct pml_connection *connection, const struct pml_packet *packet, const void *data, size_t bytes)
{
    char *to;
    bool last;
    struct pml_request *request = pml_receive_place(connection, packet, bytes, &to, &last);
    if (!request) return;
    if (bytes) base_copy_shared(to, data, bytes);
    if (last) pml_receive_landed(request);
}

void pml_receive_filled(struct pml *pml, struct pml_connection *connection, struct pml_space_state *space,
                        struct pml_peer *peer, const struct pml_packet *packet)
{
    struct pml_request *request = pml_request_named(pml, packet->u.word[0], false);
    size_t bytes = packet->u.word[1];
    struct protocol_action action = {.error = NCCLX_ERR_TRANSPORT};
    if (request && request->space == space && request->peer == peer)
        action = protocol_filled(&peer->core, &request->u.receive.core, packet->source, packet->tag, bytes,
                                 packet->u.word[2] != 0);
    if (action.error == NCCLX_ERR_TRANSPORT) {
        pml_breach(connection, "it filled a receive that is not announced");
        return;
    }
    request->base.status.source = packet->source;
    request->base.status.tag = packet->tag;
    request->base.status.bytes = bytes;
    request->connection = connection;
    if (action.complete) complete(request, action.error ? truncated(request) : NCCLX_SUCCESS); /* else the data follows */
}

char *pml_receive_granted(struct pml_connection *connection, uint64_t key, uint64_t to, size_t bytes)
{
    struct pml_request *request = pml_request_named(connection->pml, key & ~PML_RECEIVE_KEY, false);
    if (!request) return NULL;
    uint64_t offset = to - (uint64_t)(uintptr_t)request->u.receive.buffer; /* below: a huge number */
    size_t granted = protocol_grants(&request->u.receive.core);
    bool streams = request->u.receive.core.state == STATE_STREAMING;
    const struct pml_connection *from = streams ? request->connection : request->peer ? request->peer->connection : NULL;
    if (from != connection || offset > granted || bytes > granted - offset) return NULL;
    return (char *)request->u.receive.buffer + offset;
}

bool pml_receive_landed_by(struct pml_connection *connection, uint64_t name)
{
    struct pml_request *request = pml_request_named(connection->pml, name, false);
    if (!request || request->connection != connection || !protocol_landed(&request->u.receive.core).complete)
        return false;
    complete(request, NCCLX_SUCCESS);
    return true;
}

void pml_receive_withdrawn(struct pml *pml, struct pml_connection *connection, uint64_t name)
{
    struct pml_request *request = pml_request_named(pml, name, false);
    if (!request || !request->peer || request->peer->connection != connection) return; /* a message was faster */
    if (protocol_cancelled(&request->peer->core, &request->u.receive.core)) finish_cancelled(request);
}

void pml_receive_end(struct match_receive *receive)
{
    struct pml_request *request =
        (struct pml_request *)((char *)receive - offsetof(struct pml_request, u.receive.core.match));
    match_cancel(request->peer ? &request->peer->core.match : NULL, receive);
    request->u.receive.core.state = STATE_DONE;
    request->peer = NULL; /* of the communicator */
    base_request_complete(&request->base, base_error(NCCLX_ERR_COMM, "%s ended before a receive on it was complete",
                                                     base_comm_name(request->base.comm)));
}

/* ---- Receiving -------------------------------------------------------------------------------------------------- */

static void take_message(struct pml_request *request, struct ncclx_message *message)
{
    pml_receive_deliver(request, message->connection, message->kind, message->match.source, message->match.tag,
                        message->data, message->first, message->bytes, message->send, message->address);
    pml_hold_release(message->connection, message->kind, message->first);
    pml_message_put(request->base.rt->pml, message);
}

static void announce(struct pml_request *request, uint32_t count)
{
    struct pml_packet packet = {.kind = PROTOCOL_ANNOUNCE,
                                .context = request->space->context,
                                .source = request->space->comm->rank,
                                .tag = request->u.receive.core.match.tag,
                                .inline_bytes = 4 * sizeof(uint64_t),
                                .u.word = {request->name, request->u.receive.core.capacity,
                                           (uint64_t)(uintptr_t)request->u.receive.buffer, count}};
    request->u.receive.core.state = STATE_ANNOUNCED;
    pml_post_control(request->peer->connection, &packet);
}

static int start(struct pml_space_state *space, void *buf, size_t bytes, int source, int tag, struct pml_request **out)
{
    struct pml_request *request;
    int error = prepare(space, buf, bytes, source, tag, &request);
    if (unlikely(error)) return error;
    *out = request;
    /* Before the look for messages: making a connection may wait, and let messages in meanwhile. */
    struct pml_peer *peer = NULL;
    if (source != NCCLX_ANY_SOURCE) error = pml_space_peer(space, source, &peer);
    if (unlikely(error)) {
        release(&request->base);
        return error;
    }
    struct match_envelope *envelope = match_find(&space->match, source, tag);
    if (envelope) {
        match_take(envelope);
        take_message(request, (struct ncclx_message *)envelope);
        return NCCLX_SUCCESS;
    }
    uint32_t count = 0;
    bool announces = false;
    request->peer = peer;
    if (peer)
        announces = protocol_announces(&space->match, &peer->core, &request->u.receive.core, peer->connection->announce_threshold,
                                       &count);
    match_post(&space->match, request->peer ? &request->peer->core.match : NULL, &request->u.receive.core.match);
    if (unlikely(announces)) announce(request, count);
    return NCCLX_SUCCESS;
}

static void give_up(struct pml_request *request)
{
    if (request->base.complete) {
        release(&request->base);
        return;
    }
    request->base.detached = true;
    (void)cancel(&request->base); /* releases it, at once or when peers no longer name it */
}

int pml_recv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag,
             ncclx_status_t *status)
{
    struct pml_request *request;
    int error = start(&comm->pml->space[space], buf, bytes, source, tag, &request);
    if (unlikely(error)) return error;
    if (!request->base.complete) pml_spin(comm->pml->pml, request);
    error = request->base.complete ? request->base.status.error : base_request_wait(&request->base, "ncclx_recv");
    if (status) *status = request->base.status;
    if (likely(request->base.complete)) release(&request->base);
    else give_up(request);
    return error;
}

int pml_irecv(struct ncclx_comm *comm, enum pml_space space, void *buf, size_t bytes, int source, int tag,
              struct ncclx_request **request)
{
    struct pml_request *made;
    int error = start(&comm->pml->space[space], buf, bytes, source, tag, &made);
    if (unlikely(error)) return error;
    *request = &made->base;
    return NCCLX_SUCCESS;
}

/* ---- Looking ---------------------------------------------------------------------------------------------------- */

int pml_probe(struct ncclx_comm *comm, enum pml_space space, int source, int tag, bool *found,
              struct ncclx_message **message, ncclx_status_t *status)
{
    struct pml_space_state *state = &comm->pml->space[space];
    struct match_envelope *envelope = match_find(&state->match, source, tag);
    if (!envelope) {
        base_progress(comm->rt);
        envelope = match_find(&state->match, source, tag);
    }
    *found = envelope != NULL;
    if (!envelope) return NCCLX_SUCCESS;
    struct ncclx_message *look = (struct ncclx_message *)envelope;
    if (status)
        *status = (ncclx_status_t){
            .source = envelope->source, .tag = envelope->tag, .error = NCCLX_SUCCESS, .bytes = look->bytes};
    if (message) {
        match_take(envelope);
        *message = look;
    }
    return NCCLX_SUCCESS;
}

int pml_imrecv(void *buf, size_t bytes, struct ncclx_message *message, struct ncclx_request **request)
{
    struct pml_request *made;
    int error = prepare(message->space, buf, bytes, message->match.source, message->match.tag, &made);
    if (error) return error;
    take_message(made, message);
    *request = &made->base;
    return NCCLX_SUCCESS;
}

struct ncclx_comm *pml_message_comm(const struct ncclx_message *message)
{
    return message->space->comm;
}
