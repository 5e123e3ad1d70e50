/* send.c - sending messages. */
#include "pml/lanes/lanes.h"

#include <stdio.h>
#include <string.h>

/* Announcements kept of one peer; more are dropped, which is always allowed. */
#define ANNOUNCEMENTS_MAX 64

static void release(struct ncclx_request *base)
{
    pml_request_put(base->rt->pml, (struct pml_request *)base);
}

static void describe(const struct ncclx_request *base, char *text, size_t bytes)
{
    const struct pml_request *request = (const struct pml_request *)base;
    snprintf(text, bytes, "send of %zu bytes to rank %d, tag %d, on %s", request->u.send.bytes, base->status.source,
             base->status.tag, base_comm_name(base->comm));
}

static const struct base_request_kind send_kind = {.name = "send", .release = release, .describe = describe};

static int prepare(struct pml_space_state *space, struct pml_peer *peer, const void *buf, size_t bytes, int dest,
                   int tag, struct pml_request **out)
{
    struct pml_request *request;
    int error = pml_request_get(space->comm->rt->pml, &request);
    if (error) return error;
    base_request_prepare(&request->base, &send_kind, space->comm->rt, space->comm);
    request->base.status.source = dest; /* for describe; a send's status is not looked at otherwise */
    request->base.status.tag = tag;
    request->base.status.bytes = bytes;
    request->space = space;
    request->peer = peer;
    request->connection = peer->connection;
    request->is_send = true;
    request->u.send.buffer = buf;
    request->u.send.bytes = bytes;
    *out = request;
    return NCCLX_SUCCESS;
}

/* The same for data that goes as it is, with no question before it. */
static int prepare_stream(struct pml_space_state *space, struct pml_peer *peer, const void *buf, size_t bytes, int dest, int tag,
                          struct pml_request **out)
{
    int error = prepare(space, peer, buf, bytes, dest, tag, out);
    if (!error) (*out)->u.send.core = (struct protocol_send){.stream.bytes = bytes, .state = STATE_STREAMING};
    return error;
}

/* The eager way was full: the request's own node waits, with the caller's buffer. */
static void queue_eager(struct pml_request *request, int source, int tag)
{
    struct pml_post *post = &request->post;
    post->packet =
        (struct pml_packet){.kind = PROTOCOL_EAGER, .context = request->space->context, .source = source, .tag = tag};
    post->payload = (struct pml_payload){.first = request->u.send.buffer, .first_bytes = request->u.send.bytes};
    post->request = request;
    pml_backlog_append(request->connection, post);
}

/* Each that waits for its receiver takes memory there. */
static int check_requests(const struct pml_connection *connection)
{
    if (likely(connection->requested < PROTOCOL_REQUESTS_MAX)) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_LIMIT, "%u messages to rank %d wait for its receives, and no more can: let it receive some before others are sent",
                      PROTOCOL_REQUESTS_MAX, connection->rank);
}

static struct pml_packet request_packet(struct pml_request *request, int source, int tag)
{
    request->space->comm->rt->pml->counters.rendezvous++;
    request->connection->requested++;
    protocol_requested(&request->u.send.core, request->u.send.bytes, 0);
    return (struct pml_packet){.kind = PROTOCOL_REQUEST,
                               .context = request->space->context,
                               .source = source,
                               .tag = tag,
                               .inline_bytes = 3 * sizeof(uint64_t),
                               .u.word = {request->name, request->u.send.bytes, (uint64_t)(uintptr_t)request->u.send.buffer}};
}

bool pml_send_asks(struct pml_request *request)
{
    struct pml_post *post = &request->post;
    int error = check_requests(request->connection);
    request->space->comm->rt->pml->counters.eager--;
    if (error) {
        request->u.send.core.state = STATE_DONE;
        base_request_complete(&request->base, error);
        return false;
    }
    const struct pml_packet packet = request_packet(request, post->packet.source, post->packet.tag);
    memcpy(&post->packet, &packet, sizeof packet);
    post->payload = (struct pml_payload){0};
    return true;
}

static void post_filled(struct pml_space_state *space, struct pml_connection *connection, uint64_t receive,
                        size_t bytes, int tag, bool follows)
{
    struct pml_packet packet = {.kind = PROTOCOL_FILLED,
                                .context = space->context,
                                .source = space->comm->rank,
                                .tag = tag,
                                .inline_bytes = 3 * sizeof(uint64_t),
                                .u.word = {receive, bytes, follows}};
    pml_post_control(connection, &packet);
}

/* Writes into the announced buffer. Without that, the announcement is used up and the message travels by REQUEST. */
static bool fill(struct pml_space_state *space, struct pml_connection *connection,
                 const struct protocol_announcement *announcement, const void *buf, size_t bytes, int tag, bool refuse)
{
    if (!refuse && connection->transport->write(connection, buf, announcement->address, bytes, announcement->receive)) {
        connection->route.can_write = false;
        return false;
    }
    post_filled(space, connection, announcement->receive, bytes, tag, false);
    return true;
}

/* The same over lanes: the request is complete when the data is there. */
static bool fill_later(struct pml_space_state *space, struct pml_peer *peer,
                       const struct protocol_announcement *announcement, const void *buf, size_t bytes, int dest,
                       int tag, struct pml_request **out)
{
    if (prepare_stream(space, peer, buf, bytes, dest, tag, out)) return false;
    struct lanes_put *put = lanes_send_make(peer->connection, *out, announcement->receive, announcement->address);
    if (!put) {
        release(&(*out)->base);
        return false;
    }
    post_filled(space, peer->connection, announcement->receive, bytes, tag, true);
    lanes_send(peer->connection, put);
    return true;
}

void pml_send_landed(struct pml_request *request, int code)
{
    request->u.send.core.state = STATE_DONE;
    if (!code) base_request_complete(&request->base, NCCLX_SUCCESS); /* else the wait for it ends with the peer, and says why */
}

/* The request, and the first bytes with it, while nothing else waits. */
static bool post_first(struct pml_connection *connection, const struct pml_packet *packet, const void *buf, size_t bytes)
{
    const struct protocol_route *route = &connection->route;
    const struct pml_payload payload = {.first = buf, .first_bytes = route->first};
    return route->first && bytes > connection->choose_above && bytes > route->first && !route->held && !connection->copies &&
           pml_connection_clear(connection) && connection->transport->post(connection, packet, &payload);
}

static void ask(struct pml_request *request, int tag)
{
    const struct pml_packet packet = request_packet(request, request->space->comm->rank, tag);
    size_t first = request->connection->route.first, bytes = request->u.send.bytes;
    if (post_first(request->connection, &packet, request->u.send.buffer, bytes))
        protocol_requested(&request->u.send.core, bytes, first);
    else
        pml_post_control(request->connection, &packet);
}

static int start_request(struct pml_space_state *space, struct pml_peer *peer, const void *buf, size_t bytes, int dest,
                         int tag, struct pml_request **out)
{
    int error = check_requests(peer->connection);
    if (!error) error = prepare(space, peer, buf, bytes, dest, tag, out);
    if (!error) ask(*out, tag);
    return error;
}

/* Eager, and not copied: complete when it is there. */
static int start_long(struct pml_space_state *space, struct pml_peer *peer, const void *buf, size_t bytes, int dest, int tag,
                      struct pml_request **out)
{
    const struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = space->context, .source = space->comm->rank, .tag = tag};
    struct pml_connection *connection = peer->connection;
    int error = prepare_stream(space, peer, buf, bytes, dest, tag, out);
    if (error) return error;
    if (pml_connection_clear(connection) && connection->transport->lend(connection, &packet, *out)) {
        connection->pml->counters.eager++;
        return NCCLX_SUCCESS;
    }
    error = check_requests(connection);
    if (error) release(&(*out)->base);
    else ask(*out, tag);
    return error;
}

/* A program that begins many small messages to one peer, without a look at any, has them sent together where each by itself would
 * be a system call: at its next look, or when there are BURST_POSTS, or about BURST_BYTES. The first ones do not wait. */
#define BURST_ALONE 4
#define BURST_POSTS 64
#define BURST_BYTES ((size_t)65536)

static bool joins_burst(struct pml_connection *connection, size_t bytes)
{
    unsigned polls = connection->pml->polls;
    if (!connection->transport->post_many || bytes > BURST_BYTES / 2) return false;
    if (connection->burst_poll != polls) connection->burst = 0;
    connection->burst_poll = polls;
    return ++connection->burst > BURST_ALONE;
}

/* *out null: the message is on its way and the buffer is free. at_once: it does not wait for others. */
static int start(struct pml_space_state *space, const void *buf, size_t bytes, int dest, int tag, bool at_once,
                 struct pml_request **out)
{
    struct ncclx_comm *comm = space->comm;
    struct pml *pml = comm->rt->pml;
    struct protocol_announcement *announcement = NULL;
    struct pml_peer *peer;
    int error = pml_space_peer(space, dest, &peer);
    if (unlikely(error)) return error;
    struct pml_connection *connection = peer->connection;
    pml->counters.messages_sent++;
    connection->traffic.sent += bytes;
    if (unlikely(bytes > connection->choose_above)) connection->transport->choose(connection, bytes);
    enum protocol_way way = protocol_send_start(&peer->core, &connection->route, tag, bytes, &announcement);
    if (way == SEND_EAGER && unlikely(bytes > connection->lend_above)) {
        if (announcement) pml_announcement_put(connection, announcement);
        return start_long(space, peer, buf, bytes, dest, tag, out);
    }
    if (likely(way == SEND_EAGER)) {
        *out = NULL;
        pml->counters.eager++;
        if (unlikely(announcement != NULL)) pml_announcement_put(connection, announcement);
        if (likely(pml_connection_clear(connection)) && (at_once || likely(!joins_burst(connection, bytes))) &&
            likely(connection->transport->eager(connection, space->context, comm->rank, tag, buf, bytes)))
            return NCCLX_SUCCESS;
        error = prepare(space, peer, buf, bytes, dest, tag, out);
        if (!error) queue_eager(*out, comm->rank, tag);
        if (connection->posts >= BURST_POSTS || connection->posts * bytes >= BURST_BYTES) pml_backlog_push(connection);
        return error;
    }
    if (announcement) {
        bool filled = false;
        *out = NULL;
        if (way == SEND_FILL && connection->lanes)
            filled = fill_later(space, peer, announcement, buf, bytes, dest, tag, out);
        else if (way != SEND_REQUEST)
            filled = fill(space, connection, announcement, buf, bytes, tag, way == SEND_REFUSE);
        pml_announcement_put(connection, announcement);
        if (filled) {
            pml->counters.announced++;
            return NCCLX_SUCCESS;
        }
    }
    return start_request(space, peer, buf, bytes, dest, tag, out);
}

int pml_send(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag)
{
    struct pml_request *request;
    int error = start(&comm->pml->space[space], buf, bytes, dest, tag, true, &request);
    if (likely(!error && !request)) return NCCLX_SUCCESS;
    if (error) return error;
    pml_spin(comm->pml->pml, request);
    error = request->base.complete ? request->base.status.error : base_request_wait(&request->base, "ncclx_send");
    if (request->base.complete) release(&request->base);
    else request->base.detached = true; /* the wait ended early: peers may still name it */
    return error;
}

int pml_isend(struct ncclx_comm *comm, enum pml_space space, const void *buf, size_t bytes, int dest, int tag,
              struct ncclx_request **request)
{
    struct pml_request *made;
    int error = start(&comm->pml->space[space], buf, bytes, dest, tag, false, &made);
    if (unlikely(error)) return error;
    *request = made ? &made->base : base_request_done(comm->rt);
    return NCCLX_SUCCESS;
}

/* ---- What receivers answer ------------------------------------------------------------------------------------ */

void pml_send_finished(struct pml *pml, struct pml_connection *connection, uint64_t name)
{
    struct pml_request *request = pml_request_named(pml, name, true);
    if (!request || request->connection != connection || !protocol_finished(&request->u.send.core)) {
        pml_breach(connection, "it ended a send that does not wait for it");
        return;
    }
    connection->requested--;
    base_request_complete(&request->base, NCCLX_SUCCESS);
}

void pml_send_cleared(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet)
{
    struct pml_request *request = pml_request_named(pml, packet->context, true);
    uint64_t receive = packet->u.word[0];
    if (!request || request->connection != connection || !protocol_cleared(&request->u.send.core, receive)) {
        pml_breach(connection, "it cleared a send that does not wait for it");
        return;
    }
    connection->requested--;
    if (connection->lanes && connection->copies) {
        lanes_copy_send(connection, request);
        return;
    }
    struct lanes_put *put =
        connection->lanes ? lanes_send_make(connection, request, receive, packet->u.word[1]) : NULL;
    if (put) lanes_send(connection, put);
    else pml_stream_append(connection, request);
}

/* ---- Announcements of receivers ------------------------------------------------------------------------------- */

void pml_announcement_put(struct pml_connection *connection, struct protocol_announcement *announcement)
{
    struct pml *pml = connection->pml;
    announcement->next = pml->free_announcements;
    pml->free_announcements = announcement;
    connection->announcements--;
}

void pml_announced(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet)
{
    struct pml_space_state *space = pml_space_find(pml, packet->context);
    struct pml_peer *peer;
    if (!space || connection->announcements == ANNOUNCEMENTS_MAX) return; /* dropping is always right */
    if (!pml_space_sender(space, connection, packet->source, &peer)) {
        pml_breach(connection, "it announced a receive in the name of another rank");
        return;
    }
    pml_connection_probe(connection);
    if (!connection->route.can_write) return;
    struct protocol_announcement *announcement = pml->free_announcements;
    if (announcement) pml->free_announcements = announcement->next;
    else if (!(announcement = base_alloc(AREA_PML, sizeof *announcement))) return;
    connection->announcements++;
    *announcement = (struct protocol_announcement){
        .receive = packet->u.word[0], .bytes = packet->u.word[1], .address = packet->u.word[2], .tag = packet->tag};
    if (!protocol_announced(&peer->core, announcement, (uint32_t)packet->u.word[3]))
        pml_announcement_put(connection, announcement);
}

void pml_withdrawn_by_peer(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet)
{
    struct pml_space_state *space = pml_space_find(pml, packet->context);
    struct pml_peer *peer;
    if (space && pml_space_sender(space, connection, packet->source, &peer)) {
        struct protocol_announcement *announcement = protocol_withdrawn(&peer->core, packet->u.word[0]);
        if (announcement) pml_announcement_put(connection, announcement);
    }
    pml_answer(connection, &(struct pml_packet){.kind = PROTOCOL_WITHDRAWN, .context = packet->u.word[0]});
}
