/* protocol.c - transitions of the message protocols that are not on the shortest path. */
#include "pml/protocol.h"

static bool tag_accepts(int wanted, int tag)
{
    return wanted == NCCLX_ANY_TAG || wanted == tag;
}

static struct protocol_announcement *unlink_at(struct protocol_announcement **at)
{
    struct protocol_announcement *announcement = *at;
    *at = announcement->next;
    announcement->next = NULL;
    return announcement;
}

struct protocol_announcement *protocol_use(struct protocol_peer *peer, int tag)
{
    for (struct protocol_announcement **at = &peer->announced; *at; at = &(*at)->next)
        if (tag_accepts((*at)->tag, tag)) return unlink_at(at);
    return NULL;
}

bool protocol_announced(struct protocol_peer *peer, struct protocol_announcement *announcement, uint32_t count)
{
    uint32_t uncounted =
        peer->sent - count; /* a peer that claims to have seen more than was sent gets a huge number here */
    if (PLANTED_BUG(BUG_ANNOUNCEMENT_KEPT)) uncounted = 0;
    if (uncounted > PROTOCOL_RECENT) return false;
    for (uint32_t i = 1; i <= uncounted; i++)
        if (tag_accepts(announcement->tag, peer->recent[(peer->sent - i) % PROTOCOL_RECENT])) return false;
    struct protocol_announcement **at = &peer->announced;
    while (*at) at = &(*at)->next;
    announcement->next = NULL;
    *at = announcement;
    return true;
}

struct protocol_announcement *protocol_withdrawn(struct protocol_peer *peer, uint64_t receive)
{
    if (PLANTED_BUG(BUG_WITHDRAWN_UNSEEN)) return NULL;
    for (struct protocol_announcement **at = &peer->announced; *at; at = &(*at)->next)
        if ((*at)->receive == receive) return unlink_at(at);
    return NULL;
}

void protocol_requested(struct protocol_send *send, size_t bytes, size_t first)
{
    *send = (struct protocol_send){.stream = {.bytes = bytes, .moved = first, .first = first}, .state = STATE_REQUESTED};
}

bool protocol_finished(struct protocol_send *send)
{
    if (send->state != STATE_REQUESTED) return false;
    send->state = STATE_DONE;
    return true;
}

bool protocol_cleared(struct protocol_send *send, uint64_t receive)
{
    if (send->state != STATE_REQUESTED || !send->stream.bytes) return false;
    send->state = STATE_STREAMING;
    send->receive = receive;
    return true;
}

size_t protocol_stream_next(struct protocol_send *send, size_t room)
{
    uint64_t left = send->stream.bytes - send->stream.moved;
    size_t bytes = left < room ? (size_t)left : room;
    send->stream.moved += bytes;
    if (send->stream.moved == send->stream.bytes) send->state = STATE_DONE;
    return bytes;
}

struct protocol_action protocol_deliver(struct protocol_receive *receive, const struct protocol_route *route,
                                        enum protocol_kind kind, size_t bytes, size_t first)
{
    bool rendezvous = kind == PROTOCOL_REQUEST;
    if (bytes > receive->capacity) {
        receive->state = STATE_DONE;
        return (struct protocol_action){.control = rendezvous ? PROTOCOL_FINISHED : PROTOCOL_NONE,
                                        .copy = first && PLANTED_BUG(BUG_FIRST_OF_TRUNCATED) ? COPY_FIRST : COPY_NOTHING,
                                        .complete = true,
                                        .error = NCCLX_ERR_TRUNCATE};
    }
    receive->state = STATE_DONE;
    if (!rendezvous) return (struct protocol_action){.copy = bytes ? COPY_EAGER : COPY_NOTHING, .complete = true};
    if (!bytes) return (struct protocol_action){.control = PROTOCOL_FINISHED, .complete = true};
    if (route->can_read)
        return (struct protocol_action){
            .copy = COPY_READ, .control = PLANTED_BUG(BUG_FINISHED_BEFORE_COPY) ? PROTOCOL_FINISHED : PROTOCOL_NONE};
    receive->state = STATE_STREAMING;
    receive->stream = (struct protocol_stream){.bytes = bytes, .moved = first, .first = first};
    if (PLANTED_BUG(BUG_FIRST_NOT_COUNTED)) receive->stream.moved = 0;
    return (struct protocol_action){.control = PROTOCOL_CLEAR, .copy = first ? COPY_FIRST : COPY_NOTHING};
}

struct protocol_action protocol_copied(struct protocol_receive *receive)
{
    receive->state = STATE_DONE;
    return (struct protocol_action){
        .control = PLANTED_BUG(BUG_FINISHED_BEFORE_COPY) ? PROTOCOL_NONE : PROTOCOL_FINISHED, .complete = true};
}

struct protocol_action protocol_data(struct protocol_receive *receive, uint64_t offset, size_t bytes)
{
    struct protocol_stream *stream = &receive->stream;
    if (receive->state != STATE_STREAMING || offset != stream->moved || bytes > stream->bytes - stream->moved)
        return (struct protocol_action){.error = NCCLX_ERR_TRANSPORT};
    stream->moved += bytes;
    bool complete = stream->moved == stream->bytes;
    if (complete) receive->state = STATE_DONE;
    return (struct protocol_action){.copy = COPY_EAGER, .complete = complete};
}

struct protocol_action protocol_filled(struct protocol_peer *peer, struct protocol_receive *receive, int source,
                                       int tag, size_t bytes, bool follows)
{
    bool announced = receive->state == STATE_ANNOUNCED || receive->state == STATE_WITHDRAWING;
    if (!announced || !receive->match.pending || !match_accepts(&receive->match, source, tag) ||
        (follows && bytes > receive->capacity))
        return (struct protocol_action){.error = NCCLX_ERR_TRANSPORT};
    peer->match.seen++;
    if (!(PLANTED_BUG(BUG_FILLING_STAYS_PENDING) && follows)) match_unpend(&peer->match, &receive->match);
    if (follows) {
        receive->state = STATE_STREAMING;
        receive->stream = (struct protocol_stream){.bytes = bytes};
        return (struct protocol_action){.copy = COPY_NOTHING};
    }
    receive->state = STATE_DONE;
    return (struct protocol_action){.complete = true,
                                    .error = bytes > receive->capacity ? NCCLX_ERR_TRUNCATE : NCCLX_SUCCESS};
}

struct protocol_action protocol_landed(struct protocol_receive *receive)
{
    if (receive->state != STATE_STREAMING || receive->stream.moved != receive->stream.first)
        return (struct protocol_action){.error = NCCLX_ERR_TRANSPORT};
    receive->state = STATE_DONE;
    return (struct protocol_action){.complete = true};
}

size_t protocol_grants(const struct protocol_receive *receive)
{
    if (receive->state == STATE_STREAMING) return receive->stream.bytes;
    bool announced = receive->state == STATE_ANNOUNCED || receive->state == STATE_WITHDRAWING;
    return announced && receive->match.pending ? receive->capacity : 0;
}

enum protocol_cancel protocol_cancel(struct protocol_peer *peer, struct protocol_receive *receive)
{
    if (!receive->match.pending || receive->state == STATE_WITHDRAWING) return CANCEL_TOO_LATE;
    if (receive->state == STATE_ANNOUNCED) {
        receive->state = STATE_WITHDRAWING;
        return CANCEL_WITHDRAW;
    }
    match_cancel(peer ? &peer->match : NULL, &receive->match);
    receive->state = STATE_DONE;
    return CANCEL_DONE;
}

bool protocol_cancelled(struct protocol_peer *peer, struct protocol_receive *receive)
{
    if (receive->state != STATE_WITHDRAWING || !receive->match.pending) return false;
    match_cancel(&peer->match, &receive->match);
    receive->state = STATE_DONE;
    return true;
}
