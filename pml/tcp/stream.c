/* stream.c - packets to and from a socket. What comes from a peer is checked before it is believed. Bytes count as come
 * once they are read: a socket that breaks leaves what was read, and the next goes on behind it. */
#include "pml/tcp/tcp.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HEADER sizeof(struct pml_packet)
/* Packets, and their bytes, of one system call. */
#define MANY 64
#define MANY_BYTES ((size_t)131072)
/* Payloads up to this are copied to the others; of many, not to fill the caches. */
#define JOIN_ONE ((size_t)4096)
#define JOIN_MANY ((size_t)256)
/* Read at a time before it is known what it is: 16 KiB and what precedes them. More is copied twice; of less, small packets take more
 * system calls. */
#define READ_AHEAD ((size_t)17408)

/* Words of packets travel in the packet; data that fits, too. What follows is counted in `pass`, which is free on a
 * socket, beside what has come from the other side. */
static uint32_t pass_of(const struct pml_packet *packet)
{
    return atomic_load_explicit(&packet->pass, memory_order_relaxed);
}

static size_t follows(const struct pml_packet *packet)
{
    return pass_of(packet) & TCP_FOLLOWS_LONG;
}

static void set_pass(struct tcp_channel *channel, struct pml_packet *packet, size_t bytes)
{
    uint32_t pass = (uint32_t)bytes | keep_code(channel->come) << TCP_FOLLOWS_BITS;
    atomic_store_explicit(&packet->pass, pass, memory_order_relaxed);
}

/* ---- Out ---- */

void tcp_pending(struct tcp_channel *channel)
{
    bool pending = !channel->lost && (channel->broken || (channel->fd >= 0 && keep_unsent(&channel->keep)));
    if (pending == channel->pending) return;
    channel->pending = pending;
    channel->connection->pml->tcp->pending += pending ? 1 : -1;
}

/* The peer has told what has come. */
static void settle_loan(struct tcp_channel *channel)
{
    struct pml_request *send = channel->lender;
    if (likely(!send) || channel->keep.lent) return;
    channel->lender = NULL;
    pml_send_landed(send, NCCLX_SUCCESS);
}

static void count_used(struct tcp_channel *channel)
{
    channel->used = channel->connection->pml->tcp->looks;
}

bool tcp_flush(struct tcp_channel *channel)
{
    if (!keep_unsent(&channel->keep)) return true;
    if ((!meet_talks(&channel->meet) && channel->meet.state != MEET_LEAVING) || channel->lost) return false;
    ssize_t sent;
    do {
        struct iovec piece[2];
        struct msghdr message = {.msg_iov = piece, .msg_iovlen = (size_t)keep_next(&channel->keep, piece)};
        sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
        if (sent < 0 && errno != EAGAIN && errno != EINTR) {
            tcp_broke(channel, strerror(errno));
            return false;
        }
        if (sent > 0) channel->keep.sent += (uint64_t)sent;
    } while (sent > 0 && keep_unsent(&channel->keep));
    tcp_pending(channel);
    tcp_watch(channel);
    if (keep_unsent(&channel->keep)) return false;
    if (channel->meet.state == MEET_LEAVING) tcp_rest(channel);
    return true;
}

/* So much of what is kept is under way, and tells the peer what has come. */
static void told(struct tcp_channel *channel, size_t sent)
{
    channel->keep.sent += sent;
    channel->told = channel->come;
    channel->untold = 0;
    count_used(channel);
    if (likely(!keep_unsent(&channel->keep))) return;
    tcp_pending(channel);
    tcp_watch(channel);
}

/* Everything is kept until the peer has it. */
static void keep_all(struct tcp_channel *channel, const struct iovec *piece, int pieces, size_t sent)
{
    for (int i = 0; i < pieces; i++) keep_add(&channel->keep, piece[i].iov_base, piece[i].iov_len);
    told(channel, sent);
}

/* What one call sends. The kernel takes longer to gather pieces than a copy of what is small takes. */
struct gather {
    struct iovec *piece;
    int pieces;
    char *at;    /* free memory, behind the last piece unless that is the program's */
    size_t join; /* payloads up to this are copied */
};

static void append(struct gather *gather, const void *from, size_t bytes)
{
    struct iovec *last = gather->pieces ? &gather->piece[gather->pieces - 1] : NULL;
    memcpy(gather->at, from, bytes);
    if (last && (char *)last->iov_base + last->iov_len == gather->at) last->iov_len += bytes;
    else gather->piece[gather->pieces++] = (struct iovec){.iov_base = gather->at, .iov_len = bytes};
    gather->at += bytes;
}

static void append_payload(struct gather *gather, const void *from, size_t bytes)
{
    if (!bytes) return;
    if (bytes <= gather->join) append(gather, from, bytes);
    else gather->piece[gather->pieces++] = (struct iovec){.iov_base = (void *)(uintptr_t)from, .iov_len = bytes};
}

/* Does the payload travel in the packet? */
static bool fits(const struct pml_packet *packet, size_t bytes)
{
    return bytes <= PACKET_INLINE_MAX && (packet->kind == PROTOCOL_EAGER || packet->kind == PROTOCOL_ACTIVE);
}

static size_t wire_bytes(const struct pml_packet *packet, const struct pml_payload *payload)
{
    size_t bytes = payload->first_bytes + payload->second_bytes;
    return HEADER + (fits(packet, bytes) ? 0 : bytes);
}

/* One packet: its header, and its payload; 3 pieces at most. */
static void lay_out(struct tcp_channel *channel, const struct pml_packet *packet, const struct pml_payload *payload,
                    struct gather *gather)
{
    struct pml_packet header;
    size_t bytes = payload->first_bytes + payload->second_bytes;
    bool inside = fits(packet, bytes);
    memcpy((void *)&header, (const void *)packet, HEADER);
    if (bytes) header.inline_bytes = inside ? (uint8_t)bytes : PACKET_HAS_PAYLOAD;
    if (inside && payload->first_bytes) memcpy(header.u.data, payload->first, payload->first_bytes);
    if (inside && payload->second_bytes) memcpy(header.u.data + payload->first_bytes, payload->second, payload->second_bytes);
    set_pass(channel, &header, inside ? 0 : bytes);
    append(gather, &header, HEADER);
    if (inside) return;
    append_payload(gather, payload->first, payload->first_bytes);
    append_payload(gather, payload->second, payload->second_bytes);
}

/* There is a connection, with nothing in the way of what comes next. */
static bool is_clear(struct tcp_channel *channel)
{
    if (unlikely(channel->meet.state != MEET_OPEN || channel->lost)) {
        tcp_open(channel);
        return false;
    }
    return likely(!keep_unsent(&channel->keep)) || tcp_flush(channel);
}

/* All of the pieces, for which there is room, or nothing. */
static bool send_pieces(struct tcp_channel *channel, struct iovec *piece, int pieces)
{
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = (size_t)pieces};
    ssize_t sent = pieces == 1 ? send(channel->fd, piece->iov_base, piece->iov_len, MSG_NOSIGNAL | MSG_DONTWAIT)
                               : sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) tcp_broke(channel, strerror(errno));
        return false;
    }
    keep_all(channel, piece, pieces, (size_t)sent);
    return true;
}

bool tcp_send(struct tcp_channel *channel, const struct pml_packet *packet, const struct pml_payload *payload)
{
    char memory[HEADER + 2 * JOIN_ONE];
    struct iovec piece[3];
    struct gather gather = {.piece = piece, .at = memory, .join = JOIN_ONE};
    if (unlikely(channel->said_bye)) return true; /* nobody needs it any more */
    if (!is_clear(channel)) return false;
    if (unlikely(!keep_room(&channel->keep, wire_bytes(packet, payload)))) return false; /* until the peer acknowledges some */
    lay_out(channel, packet, payload, &gather);
    return send_pieces(channel, piece, gather.pieces);
}

int tcp_send_many(struct tcp_channel *channel, const struct pml_post *post)
{
    char memory[MANY * (HEADER + 2 * JOIN_MANY)];
    struct iovec piece[3 * MANY];
    struct gather gather = {.piece = piece, .at = memory, .join = JOIN_MANY};
    int posts = 0;
    size_t total = 0;
    if (unlikely(channel->said_bye)) return 1;
    if (!is_clear(channel)) return 0;
    for (; post && posts < MANY; post = post->next, posts++) {
        size_t bytes = wire_bytes(&post->packet, &post->payload);
        if ((posts && total + bytes > MANY_BYTES) || !keep_room(&channel->keep, total + bytes)) break;
        lay_out(channel, &post->packet, &post->payload, &gather);
        total += bytes;
    }
    return posts && send_pieces(channel, piece, gather.pieces) ? posts : 0;
}

bool tcp_lend(struct tcp_channel *channel, const struct pml_packet *packet, struct pml_request *send)
{
    struct pml_packet header;
    struct keep *keep = &channel->keep;
    struct iovec piece[2] = {{.iov_base = (void *)&header, .iov_len = HEADER},
                             {.iov_base = (void *)(uintptr_t)send->u.send.buffer, .iov_len = send->u.send.bytes}};
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = 2};
    if (channel->said_bye || channel->lender || !is_clear(channel) || !keep_room(keep, HEADER)) return false;
    memcpy((void *)&header, (const void *)packet, HEADER);
    header.inline_bytes = PACKET_HAS_PAYLOAD;
    header.u.word[0] = send->u.send.bytes;
    set_pass(channel, &header, TCP_FOLLOWS_LONG);
    ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) tcp_broke(channel, strerror(errno));
    if (sent < 0) return false;
    channel->lender = send;
    keep_add(keep, &header, HEADER);
    keep_lend(keep, piece[1].iov_base, piece[1].iov_len);
    told(channel, (size_t)sent);
    return true;
}

bool tcp_say(struct tcp_channel *channel, unsigned kind, uint64_t name)
{
    struct pml_packet packet = {
        .kind = (uint8_t)kind, .inline_bytes = sizeof(uint64_t), .context = name, .u.word = {channel->come}};
    set_pass(channel, &packet, 0);
    if (!keep_grow(&channel->keep, HEADER, KEEP_MAX)) {
        tcp_lost(channel, "it acknowledges nothing, or memory is short");
        return false;
    }
    keep_add(&channel->keep, &packet, HEADER);
    channel->told = channel->come;
    channel->untold = 0;
    tcp_pending(channel);
    tcp_flush(channel);
    return !channel->lost;
}

/* ---- In ---- */

/* The last byte is there. */
static void landed(struct tcp_channel *channel)
{
    struct ncclx_message *message = channel->message;
    if (channel->receive) pml_receive_landed(channel->receive);
    channel->receive = NULL;
    channel->message = NULL;
    channel->to = NULL;
    if (message) pml_message_came(channel->connection, &channel->envelope, message);
    if (channel->is_long) tcp_say(channel, TCP_ACK, 0); /* its sender waits for it */
    channel->is_long = false;
}

/* `bytes` of a packet go to `to`: what has come already is moved, the rest will go there directly. */
static void begin_placing(struct tcp_channel *channel, char *to, size_t bytes, struct pml_request *receive)
{
    size_t have = channel->in_end - channel->in_begin, now = have < bytes ? have : bytes;
    memcpy(to, channel->in + channel->in_begin, now);
    channel->in_begin += now;
    channel->to = to + now;
    channel->left = bytes - now;
    channel->receive = receive;
    if (!channel->left) landed(channel);
}

/* The data of a stream. False: the peer breaks the rules. */
static bool begin_stream(struct tcp_channel *channel, const struct pml_packet *packet, size_t bytes)
{
    bool last;
    char *to;
    struct pml_request *request = pml_receive_place(channel->connection, packet, bytes, &to, &last);
    if (!request) return false;
    begin_placing(channel, to, bytes, last ? request : NULL);
    return true;
}

/* An eager message of which more has to come. False: there is no place for it yet, and it is taken whole. */
static bool begin_eager(struct tcp_channel *channel, const struct pml_packet *packet, size_t bytes)
{
    char *to;
    struct pml_request *request = pml_receive_arrives(channel->connection, packet, bytes, &to);
    if (!request) return false;
    channel->in_begin += HEADER;
    begin_placing(channel, to, bytes, request);
    return true;
}

/* A long one, which has a place of its own where no receive waits for it. False: the connection cannot go on. */
static bool begin_long(struct tcp_channel *channel, const struct pml_packet *packet)
{
    char *to;
    uint64_t bytes = packet->u.word[0];
    if (packet->kind != PROTOCOL_EAGER || packet->inline_bytes != PACKET_HAS_PAYLOAD || bytes <= TCP_EAGER_MAX || bytes > TCP_LONG_MAX)
        return false;
    channel->is_long = true;
    if (begin_eager(channel, packet, (size_t)bytes)) return true;
    channel->message = pml_message_comes(channel->connection, (size_t)bytes, &to);
    if (!channel->message) return false;
    memcpy((void *)&channel->envelope, (const void *)packet, HEADER);
    channel->in_begin += HEADER;
    begin_placing(channel, to, (size_t)bytes, NULL);
    return true;
}

/* The same for a request and what comes with it. */
static bool begin_request(struct tcp_channel *channel, const struct pml_packet *packet, size_t bytes)
{
    char *to;
    if (!pml_request_arrives(channel->connection, packet, bytes, &to)) return false;
    channel->in_begin += HEADER;
    begin_placing(channel, to, bytes, NULL);
    return true;
}

static bool begin(struct tcp_channel *channel, const struct pml_packet *packet, size_t bytes)
{
    if (packet->kind == PROTOCOL_EAGER) return begin_eager(channel, packet, bytes);
    return packet->kind == PROTOCOL_REQUEST && begin_request(channel, packet, bytes);
}

/* What the peer says about the connection. False: it breaks the rules. */
static bool own_arrived(struct tcp_channel *channel, const struct pml_packet *packet)
{
    enum tcp_own kind = packet->kind;
    if (kind == TCP_BYE) {
        channel->heard_bye = true;
        if (meet_answered(&channel->meet, channel->meet.name, false) == MEET_USE) tcp_pending(channel); /* nor an answer */
        return true;
    }
    if (packet->inline_bytes != sizeof(uint64_t) || !keep_acknowledge(&channel->keep, packet->u.word[0])) return false;
    settle_loan(channel);
    if (kind != TCP_ACK) tcp_rest_arrived(channel, kind, packet->context);
    return true;
}

/* Takes what is complete. Returns packets; -1: the peer breaks the rules. */
static int take_packets(struct tcp_channel *channel)
{
    struct pml_connection *connection = channel->connection;
    int events = 0;
    channel->missing = 0;
    while (!channel->left && channel->in_end - channel->in_begin >= HEADER) {
        struct pml_packet packet;
        const char *at = channel->in + channel->in_begin;
        memcpy((void *)&packet, at, HEADER);
        size_t bytes = follows(&packet);
        if (unlikely(!keep_acknowledge_code(&channel->keep, pass_of(&packet) >> TCP_FOLLOWS_BITS))) return -1;
        settle_loan(channel);
        if (bytes == TCP_FOLLOWS_LONG) {
            if (!begin_long(channel, &packet)) return -1;
            events++;
            if (channel->lost) return events;
            continue;
        }
        if (packet.kind == PROTOCOL_DATA) {
            if (packet.inline_bytes != PACKET_HAS_PAYLOAD || !bytes || bytes > TCP_PIECE_MAX) return -1;
            channel->in_begin += HEADER;
            if (!begin_stream(channel, &packet, bytes)) return -1;
            events++;
            continue;
        }
        if (bytes ? packet.inline_bytes != PACKET_HAS_PAYLOAD || bytes > (packet.kind == PROTOCOL_EAGER ? TCP_EAGER_MAX : TCP_PAYLOAD_MAX)
                  : packet.inline_bytes > PACKET_INLINE_MAX)
            return -1;
        if (channel->in_end - channel->in_begin < HEADER + bytes) {
            if (!begin(channel, &packet, bytes)) {
                channel->missing = HEADER + bytes - (channel->in_end - channel->in_begin);
                break;
            }
            events++;
            continue;
        }
        channel->in_begin += HEADER + bytes;
        events++;
        if (packet.kind >= TCP_BYE && packet.kind <= TCP_REST_NO) {
            if (bytes || !own_arrived(channel, &packet)) return -1;
            if (!channel->in) return events; /* it rests */
        } else if (bytes) {
            pml_packet_arrived(connection->pml, connection, &packet, at + HEADER, bytes);
        } else {
            pml_packet_arrived(connection->pml, connection, &packet, packet.u.data, packet.inline_bytes);
        }
        if (unlikely(channel->lost)) return events; /* of what it said: the rest is not believed either */
    }
    if (channel->in_begin == channel->in_end) {
        channel->in_begin = channel->in_end = 0;
    } else if (channel->in_begin && channel->in_end > TCP_IN_BYTES / 2) { /* so that there is always room for more */
        memmove(channel->in, channel->in + channel->in_begin, channel->in_end - channel->in_begin);
        channel->in_end -= channel->in_begin;
        channel->in_begin = 0;
    }
    return events;
}

/* So that a peer that only sends can forget what has come. One that reads nothing has as many of these to come as there is room for. */
static void acknowledge(struct tcp_channel *channel)
{
    bool due = channel->untold >= TCP_ACKNOWLEDGE_PACKETS || channel->come - channel->told >= TCP_ACKNOWLEDGE;
    if (likely(!due) || channel->is_long || channel->meet.state != MEET_OPEN || channel->lost) return;
    if (keep_room_to_acknowledge(&channel->keep, HEADER)) tcp_say(channel, TCP_ACK, 0);
}

/* Of a channel that was idle, once there is something. */
static bool make_buffer(struct tcp_channel *channel)
{
    char byte;
    if (recv(channel->fd, &byte, 1, MSG_PEEK | MSG_DONTWAIT) < 0 && (errno == EAGAIN || errno == EINTR)) return false;
    channel->in = base_alloc_pages(AREA_TCP, TCP_IN_BYTES);
    if (!channel->in) tcp_lost(channel, "memory is short for what it sends");
    return channel->in;
}

/* One read: to the place of what is under way, and ahead. Returns packets and other events, 0: nothing is there. */
static int receive_some(struct tcp_channel *channel)
{
    size_t ahead = channel->missing + READ_AHEAD, room = TCP_IN_BYTES - channel->in_end;
    struct iovec piece[2] = {{.iov_base = channel->to, .iov_len = channel->left}};
    int pieces = channel->left ? 1 : 0;
    if (unlikely(!channel->in) && !make_buffer(channel)) return 0;
    piece[pieces++] = (struct iovec){.iov_base = channel->in + channel->in_end, .iov_len = ahead < room ? ahead : room};
    ssize_t got = pieces == 1 ? recv(channel->fd, piece[0].iov_base, piece[0].iov_len, MSG_DONTWAIT)
                              : readv(channel->fd, piece, pieces);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) {
        tcp_broke(channel, got ? strerror(errno) : "it has closed the connection");
        return 1;
    }
    channel->last_read = (size_t)got;
    size_t direct = (size_t)got < channel->left ? (size_t)got : channel->left;
    channel->come += (uint64_t)got;
    channel->to += direct;
    channel->left -= direct;
    channel->in_end += (size_t)got - direct;
    count_used(channel);
    if (channel->to && !channel->left) landed(channel);
    if (unlikely(channel->lost)) return 1;
    int events = take_packets(channel);
    if (events < 0) tcp_lost(channel, "what it sends makes no sense");
    else if (channel->heard_bye && channel->fd >= 0) tcp_watch(channel); /* nothing more comes */
    channel->untold += events > 0 ? (unsigned)events : 0;
    acknowledge(channel);
    struct tcp_trouble *trouble = &channel->connection->pml->tcp->trouble;
    if (unlikely(trouble->random) && channel->fd >= 0 && !channel->heard_bye &&
        tcp_trouble_breaks(trouble, &channel->luck, channel->fd))
        tcp_broke(channel, "as it was told to");
    return events > 0 ? events : 1;
}

int tcp_receive(struct tcp_channel *channel)
{
    if (channel->heard_bye || channel->lost) return 0;
    int events = receive_some(channel);
    bool more = events && (channel->left || channel->missing); /* the rest of what has begun is there, as a rule */
    return more && channel->fd >= 0 && !channel->broken && !channel->heard_bye ? events + receive_some(channel) : events;
}

/* More than one segment is acknowledged at once. A process that reads over and over holds its socket, and the kernel leaves the
 * acknowledgement to it, before it has the bytes; one that asks first finds them while the sender's core still does that: 2 KiB
 * between two namespaces take 0.94 of the time. Of more than two segments, 1.04 (EPYC and Xeon, Linux 6.18; tests/perf/README.md). */
static bool asks_first(const struct tcp_channel *channel)
{
    size_t last = channel->last_read;
    return last > channel->segment && last <= 2 * (size_t)channel->segment && last <= READ_AHEAD && !channel->left &&
           channel->in_begin == channel->in_end;
}

int tcp_look(struct tcp_channel *channel)
{
    struct pollfd socket = {.fd = channel->fd, .events = POLLIN};
    return asks_first(channel) && !poll(&socket, 1, 0) ? 0 : tcp_receive(channel);
}
