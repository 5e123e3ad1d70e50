/* packet.c - what arrives: checked, matched or kept. */
#include "pml/lanes/lanes.h"

#include <string.h>

void pml_breach(struct pml_connection *connection, const char *what)
{
    const struct transport *transport = connection->transport;
    if (connection->reported) return;
    connection->reported = true;
    base_log(AREA_PML, LOG_ERROR, "rank %d breaks the protocol: %s; %s", connection->rank, what,
             transport->fail ? "the connection to it ends" : "its packet is dropped");
    if (transport->fail) transport->fail(connection, what);
}

/* ---- Flow ------------------------------------------------------------------------------------------------------- */

/* Ahead of what waits for room, where that is possible: or it would come too late. */
static bool tell(struct pml_connection *connection, enum protocol_kind kind)
{
    if (connection->transport->tell) return connection->transport->tell(connection, kind);
    pml_post_control(connection, &(struct pml_packet){.kind = (uint8_t)kind});
    return true;
}

/* What counts as data that nobody has asked for: not the question itself. */
static size_t travelled(enum protocol_kind kind, size_t bytes)
{
    if (bytes > PACKET_INLINE_MAX) return sizeof(struct pml_packet) + bytes;
    return kind == PROTOCOL_REQUEST ? 0 : sizeof(struct pml_packet);
}

/* May a message of so many bytes of data be kept? If not, its sender breaks the rules. */
static bool may_keep(struct pml_connection *connection, enum protocol_kind kind, size_t bytes)
{
    if (likely(protocol_kept_more(&connection->kept, kind, travelled(kind, bytes), connection->transport->in_flight))) return true;
    protocol_kept_less(&connection->kept, kind);
    pml_breach(connection, kind == PROTOCOL_REQUEST ? "it sends more messages without waiting for their receives than it may"
                                                    : "it sends data that no receive waits for, and was told to ask first");
    return false;
}

/* It is. */
static void hold_keep(struct pml_connection *connection, size_t bytes)
{
    struct pml *pml = connection->pml;
    pml->counters.unexpected++;
    if (pml->counters.unexpected > pml->counters.unexpected_peak)
        pml->counters.unexpected_peak = pml->counters.unexpected;
    if (likely(!protocol_flow_keep(&pml->flow, bytes)) || connection->kept.held || !tell(connection, PROTOCOL_HOLD)) return;
    protocol_kept_told(&connection->kept, true);
    pml->holding = true;
}

static void resume_all(struct pml *pml)
{
    int chunks = (pml->rt->job.size + CONNECTION_CHUNK - 1) / CONNECTION_CHUNK;
    pml->holding = false;
    for (int chunk = 0; chunk < chunks; chunk++) {
        for (int i = 0; pml->connection[chunk] && i < CONNECTION_CHUNK; i++) {
            struct pml_connection *connection = pml->connection[chunk][i];
            if (!connection || !connection->kept.held) continue;
            if (tell(connection, PROTOCOL_RESUME)) protocol_kept_told(&connection->kept, false);
            else pml->holding = true;
        }
    }
}

void pml_hold_release(struct pml_connection *connection, enum protocol_kind kind, size_t bytes)
{
    struct pml *pml = connection->pml;
    pml->counters.unexpected--;
    protocol_kept_less(&connection->kept, kind);
    if (protocol_flow_release(&pml->flow, bytes) && unlikely(pml->holding)) resume_all(pml);
}

/* ---- Contexts that are not known yet ------------------------------------------------------------------------------
 */

static void hold_packet(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                        const void *payload, size_t bytes)
{
    struct pml_held *held = base_alloc(AREA_PML, sizeof *held + bytes);
    if (!held) {
        base_log(AREA_PML, LOG_ERROR, "no memory for a message from rank %d: it is lost", connection->rank);
        return;
    }
    memcpy(&held->packet, packet, sizeof held->packet);
    if (!may_keep(connection, held->packet.kind, bytes)) {
        base_free(AREA_PML, held);
        return;
    }
    held->next = NULL;
    held->connection = connection;
    held->bytes = bytes;
    if (bytes) memcpy(held->data, payload, bytes);
    if (pml->last_held) pml->last_held->next = held;
    else pml->first_held = held;
    pml->last_held = held;
    hold_keep(connection, bytes);
}

static void unknown_context(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                            const void *payload, size_t bytes)
{
    if (pml_was_detached(pml, packet->context)) {
        base_log(AREA_PML, LOG_DEBUG, "late message from rank %d for a freed communicator is dropped",
                 connection->rank);
        if (packet->kind == PROTOCOL_REQUEST)
            pml_answer(connection, &(struct pml_packet){.kind = PROTOCOL_FINISHED, .context = packet->u.word[0]});
    } else if (packet->kind == PROTOCOL_FILLED) {
        pml_breach(connection, "it filled a receive on a communicator that does not exist");
    } else {
        hold_packet(pml, connection, packet, payload, bytes);
    }
}

void pml_held_deliver(struct pml *pml, struct pml_comm *comm)
{
    struct pml_held **at = &pml->first_held, *last = NULL;
    while (*at) {
        struct pml_held *held = *at;
        if ((held->packet.context & ~UINT64_C(3)) != comm->comm->context) {
            last = held;
            at = &held->next;
            continue;
        }
        *at = held->next;
        pml_packet_arrived(pml, held->connection, &held->packet, held->data, held->bytes);
        pml_hold_release(held->connection, held->packet.kind, held->bytes);
        base_free(AREA_PML, held);
    }
    pml->last_held = last;
}

void pml_held_release(struct pml *pml)
{
    while (pml->first_held) {
        struct pml_held *held = pml->first_held;
        pml->first_held = held->next;
        base_free(AREA_PML, held);
    }
    pml->last_held = NULL;
}

/* ---- Envelopes ----------------------------------------------------------------------------------------------------
 */

static void keep_it(struct pml_space_state *space, struct pml_connection *connection, enum protocol_kind kind, int source, int tag,
                    struct ncclx_message *message)
{
    message->space = space;
    message->connection = connection;
    message->kind = kind;
    match_keep(&space->match, &message->match, source, tag);
    hold_keep(connection, message->first);
}

static void keep_message(struct pml_space_state *space, struct pml_connection *connection,
                         enum protocol_kind kind, int source, int tag, const void *data, size_t first, size_t bytes,
                         uint64_t send, uint64_t address)
{
    struct pml *pml = connection->pml;
    if (!may_keep(connection, kind, first)) return;
    struct ncclx_message *message = pml_message_get(pml, first);
    if (!message) {
        protocol_kept_less(&connection->kept, kind);
        base_log(AREA_PML, LOG_ERROR,
                 "no memory for a message of %zu bytes from rank %d: it is lost; lower NCCLX_UNEXPECTED_LIMIT", bytes,
                 connection->rank);
        return;
    }
    message->bytes = bytes;
    message->first = first;
    message->send = send;
    message->address = address;
    if (first) memcpy(message->data, data, first);
    keep_it(space, connection, kind, source, tag, message);
}

/* The space and the peer that an envelope names. ERR_COMM: the space is not known here; ERR_TRANSPORT, and said so: they are not the
 * connection's. */
static int find_envelope(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                         struct pml_space_state **space, struct pml_peer **peer)
{
    uint64_t context = packet->context;
    *space = connection->last_space;
    if (unlikely(!*space || connection->last_context != context)) {
        *space = pml_space_find(pml, context);
        if (!*space) return NCCLX_ERR_COMM;
        connection->last_context = context;
        connection->last_space = *space;
    }
    if (unlikely(packet->tag < 0 || !pml_space_sender(*space, connection, packet->source, peer))) {
        pml_breach(connection, "it sent a message in the name of another rank");
        return NCCLX_ERR_TRANSPORT;
    }
    return NCCLX_SUCCESS;
}

static struct pml_request *request_of(struct match_receive *receive)
{
    return (struct pml_request *)((char *)receive - offsetof(struct pml_request, u.receive.core.match));
}

/* kind: EAGER, REQUEST or FILLED. */
static void envelope_arrived(struct pml *pml, struct pml_connection *connection, enum protocol_kind kind,
                             const struct pml_packet *packet, const void *payload, size_t bytes)
{
    struct pml_space_state *space;
    struct pml_peer *peer;
    int error = find_envelope(pml, connection, packet, &space, &peer), source = packet->source, tag = packet->tag;
    if (unlikely(error)) {
        if (error == NCCLX_ERR_COMM) unknown_context(pml, connection, packet, payload, bytes);
        return;
    }
    if (unlikely(kind == PROTOCOL_FILLED)) {
        pml_receive_filled(pml, connection, space, peer, packet);
        return;
    }
    uint64_t send = 0, address = 0;
    size_t first = bytes;
    if (kind == PROTOCOL_REQUEST) {
        send = packet->u.word[0];
        first = packet->inline_bytes == PACKET_HAS_PAYLOAD ? bytes : 0; /* else these are its words */
        bytes = packet->u.word[1];
        address = packet->u.word[2];
        if (unlikely(first && first >= bytes)) {
            pml_breach(connection, "it asked for a message that it had sent with the question");
            return;
        }
    }
    struct match_receive *receive = match_arrive(&space->match, &peer->core.match, source, tag);
    if (unlikely(!receive)) {
        keep_message(space, connection, kind, source, tag, payload, first, bytes, send, address);
        return;
    }
    pml_receive_deliver(request_of(receive), connection, kind, source, tag, payload, first, bytes, send, address);
}

/* The receive that the envelope is for, if it has room for so many bytes: it is no longer pending. */
static struct pml_request *receive_for(struct pml_connection *connection, const struct pml_packet *packet, size_t bytes)
{
    struct pml_space_state *space;
    struct pml_peer *peer;
    if (find_envelope(connection->pml, connection, packet, &space, &peer)) return NULL;
    struct match_receive *receive = match_first_receive(&space->match, packet->source, packet->tag);
    struct pml_request *request = receive ? request_of(receive) : NULL;
    if (!request || bytes > request->u.receive.core.capacity) return NULL;
    match_arrive(&space->match, &peer->core.match, packet->source, packet->tag);
    return request;
}

bool pml_request_arrives(struct pml_connection *connection, const struct pml_packet *packet, size_t first, char **to)
{
    size_t bytes = packet->u.word[1];
    struct pml_request *request = first < bytes ? receive_for(connection, packet, bytes) : NULL;
    if (request) pml_receive_requested(request, connection, packet, first, to);
    return request != NULL;
}

struct pml_request *pml_receive_arrives(struct pml_connection *connection, const struct pml_packet *packet, size_t bytes, char **to)
{
    struct pml_request *request = receive_for(connection, packet, bytes);
    if (!request) return NULL;
    protocol_arrives(&request->u.receive.core);
    request->connection = connection;
    request->base.status.source = packet->source;
    request->base.status.tag = packet->tag;
    request->base.status.bytes = bytes;
    *to = request->u.receive.buffer;
    return request;
}

struct ncclx_message *pml_message_comes(struct pml_connection *connection, size_t bytes, char **to)
{
    struct ncclx_message *message = pml_message_get(connection->pml, bytes);
    if (!message) return NULL;
    message->bytes = message->first = bytes;
    *to = message->data;
    return message;
}

/* As if it had come at once; but where it is kept, it is not copied. */
void pml_message_came(struct pml_connection *connection, const struct pml_packet *packet, struct ncclx_message *message)
{
    struct pml *pml = connection->pml;
    struct pml_space_state *space;
    struct pml_peer *peer;
    int error = find_envelope(pml, connection, packet, &space, &peer), source = packet->source, tag = packet->tag;
    if (error == NCCLX_ERR_COMM) unknown_context(pml, connection, packet, message->data, message->bytes);
    struct match_receive *receive = error ? NULL : match_arrive(&space->match, &peer->core.match, source, tag);
    if (receive)
        pml_receive_deliver(request_of(receive), connection, PROTOCOL_EAGER, source, tag, message->data, message->bytes,
                            message->bytes, 0, 0);
    bool kept = !error && !receive && may_keep(connection, PROTOCOL_EAGER, message->bytes);
    if (!kept) pml_message_put(pml, message);
    else keep_it(space, connection, PROTOCOL_EAGER, source, tag, message);
}

static void active_arrived(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                           const void *payload, size_t bytes)
{
    unsigned id = (unsigned)packet->tag;
    size_t header_bytes = packet->count;
    if (id >= AM_IDS || header_bytes > PML_AM_HEADER_MAX || header_bytes > bytes || !pml->am[id].function) {
        pml_breach(connection, "it sent an active message that nobody here takes");
        return;
    }
    connection->traffic.received += bytes - header_bytes;
    pml->am[id].function(pml->rt, connection->rank, payload, header_bytes, (const char *)payload + header_bytes,
                         bytes - header_bytes, pml->am[id].arg);
}

void pml_packet_arrived(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                        const void *payload, size_t bytes)
{
    /* Read once: the packet is in memory that the peer can still write to, and how a length is meant depends on it. */
    enum protocol_kind kind = *(const volatile uint8_t *)&packet->kind;
    switch (kind) {
    case PROTOCOL_EAGER:
    case PROTOCOL_REQUEST:
    case PROTOCOL_FILLED:
        envelope_arrived(pml, connection, kind, packet, payload, bytes);
        break;
    case PROTOCOL_CLEAR:
        pml_send_cleared(pml, connection, packet);
        break;
    case PROTOCOL_DATA:
        pml_receive_data(connection, packet, payload, bytes);
        break;
    case PROTOCOL_FINISHED:
        pml_send_finished(pml, connection, packet->context);
        break;
    case PROTOCOL_ANNOUNCE:
        pml_announced(pml, connection, packet);
        break;
    case PROTOCOL_WITHDRAW:
        pml_withdrawn_by_peer(pml, connection, packet);
        break;
    case PROTOCOL_WITHDRAWN:
        pml_receive_withdrawn(pml, connection, packet->context);
        break;
    case PROTOCOL_HOLD:
        if (!connection->route.held) pml_backlog_asks(connection);
        connection->route.held = true;
        break;
    case PROTOCOL_RESUME:
        connection->route.held = false;
        break;
    case PROTOCOL_ACTIVE:
        active_arrived(pml, connection, packet, payload, bytes);
        break;
    case PROTOCOL_LANES:
        lanes_packet_arrived(connection, packet, payload, bytes);
        break;
    default:
        pml_breach(connection, "it sent a packet of no known kind");
    }
}
