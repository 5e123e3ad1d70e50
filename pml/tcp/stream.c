/* stream.c - packets to and from a socket. What comes from a peer is checked before it is believed. */
#include "pml/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>

#define HEADER sizeof(struct pml_packet)

/* Words of packets travel in the packet; data that fits, too. What follows is counted in `pass`, which is free on a
 * socket. */
static size_t follows(const struct pml_packet *packet)
{
    return atomic_load_explicit(&packet->pass, memory_order_relaxed);
}

/* ---- Out ---- */

static void set_pending(struct tcp_channel *channel, bool pending)
{
    channel->connection->pml->tcp->pending += pending ? 1 : -1;
}

bool tcp_flush(struct tcp_channel *channel)
{
    if (channel->out_begin == channel->out_end) return true;
    ssize_t sent = send(channel->fd, channel->out + channel->out_begin, channel->out_end - channel->out_begin,
                        MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && errno != EAGAIN && errno != EINTR) {
        tcp_lost(channel, strerror(errno));
        return false;
    }
    if (sent > 0) channel->out_begin += (size_t)sent;
    if (channel->out_begin < channel->out_end) return false;
    channel->out_begin = channel->out_end = 0;
    set_pending(channel, false);
    tcp_watch(channel);
    return true;
}

/* Keeps what did not go out, from byte `sent` on. */
static bool keep_rest(struct tcp_channel *channel, const struct iovec *piece, int pieces, size_t sent)
{
    if (!channel->out) channel->out = base_alloc(AREA_TCP, TCP_OUT_BYTES);
    if (!channel->out) {
        tcp_lost(channel, "memory is short for what did not fit the socket");
        return false;
    }
    for (int i = 0; i < pieces; i++) {
        size_t skip = sent < piece[i].iov_len ? sent : piece[i].iov_len;
        sent -= skip;
        if (skip == piece[i].iov_len) continue;
        memcpy(channel->out + channel->out_end, (const char *)piece[i].iov_base + skip, piece[i].iov_len - skip);
        channel->out_end += piece[i].iov_len - skip;
    }
    set_pending(channel, true);
    tcp_watch(channel);
    return true;
}

bool tcp_send(struct tcp_channel *channel, const struct pml_packet *packet, const struct pml_payload *payload)
{
    struct pml_packet header;
    size_t bytes = payload->first_bytes + payload->second_bytes;
    if (unlikely(channel->meet.state != MEET_OPEN || channel->lost)) {
        tcp_open(channel);
        return false;
    }
    if (unlikely(channel->out_end) && !tcp_flush(channel)) return false;
    memcpy((void *)&header, (const void *)packet, HEADER);
    struct iovec piece[3] = {{.iov_base = &header, .iov_len = HEADER}};
    int pieces = 1;
    atomic_store_explicit(&header.pass, 0, memory_order_relaxed);
    bool fits = bytes <= PACKET_INLINE_MAX && (packet->kind == PROTOCOL_EAGER || packet->kind == PROTOCOL_ACTIVE);
    if (bytes && fits) {
        header.inline_bytes = (uint8_t)bytes;
        if (payload->first_bytes) memcpy(header.u.data, payload->first, payload->first_bytes);
        if (payload->second_bytes) memcpy(header.u.data + payload->first_bytes, payload->second, payload->second_bytes);
    } else if (bytes) {
        header.inline_bytes = PACKET_HAS_PAYLOAD;
        atomic_store_explicit(&header.pass, (uint32_t)bytes, memory_order_relaxed);
        if (payload->first_bytes)
            piece[pieces++] =
                (struct iovec){.iov_base = (void *)(uintptr_t)payload->first, .iov_len = payload->first_bytes};
        if (payload->second_bytes)
            piece[pieces++] =
                (struct iovec){.iov_base = (void *)(uintptr_t)payload->second, .iov_len = payload->second_bytes};
    }
    size_t total = HEADER + follows(&header);
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = (size_t)pieces};
    ssize_t sent = sendmsg(channel->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0) {
        if (errno != EAGAIN && errno != EINTR) tcp_lost(channel, strerror(errno));
        return false;
    }
    return (size_t)sent == total || keep_rest(channel, piece, pieces, (size_t)sent);
}

/* ---- In ---- */

/* The receive's last byte is there. */
static void landed(struct tcp_channel *channel)
{
    if (channel->receive) pml_receive_landed(channel->receive);
    channel->receive = NULL;
    channel->to = NULL;
}

/* The data of a stream: what has come already is moved, the rest will go there directly. False: the peer breaks the
 * rules. */
static bool begin_stream(struct tcp_channel *channel, const struct pml_packet *packet, size_t bytes)
{
    bool last;
    struct pml_request *request = pml_receive_place(channel->connection, packet, bytes, &channel->to, &last);
    if (!request) return false;
    size_t have = channel->in_end - channel->in_begin, now = have < bytes ? have : bytes;
    memcpy(channel->to, channel->in + channel->in_begin, now);
    channel->in_begin += now;
    channel->to += now;
    channel->left = bytes - now;
    channel->receive = last ? request : NULL;
    if (!channel->left) landed(channel);
    return true;
}

/* Takes what is complete. Returns packets; -1: the peer breaks the rules. */
static int take_packets(struct tcp_channel *channel)
{
    struct pml_connection *connection = channel->connection;
    int events = 0;
    while (!channel->left && channel->in_end - channel->in_begin >= HEADER) {
        struct pml_packet packet;
        const char *at = channel->in + channel->in_begin;
        memcpy((void *)&packet, at, HEADER);
        size_t bytes = follows(&packet);
        if (packet.kind == PROTOCOL_DATA) {
            if (packet.inline_bytes != PACKET_HAS_PAYLOAD || !bytes || bytes > TCP_PIECE_MAX) return -1;
            channel->in_begin += HEADER;
            if (!begin_stream(channel, &packet, bytes)) return -1;
            events++;
            continue;
        }
        if (bytes ? packet.inline_bytes != PACKET_HAS_PAYLOAD || bytes > TCP_PAYLOAD_MAX
                  : packet.inline_bytes > PACKET_INLINE_MAX)
            return -1;
        if (channel->in_end - channel->in_begin < HEADER + bytes) break;
        channel->in_begin += HEADER + bytes;
        events++;
        if (packet.kind == TCP_BYE)
            channel->heard_bye = true;
        else if (bytes)
            pml_packet_arrived(connection->pml, connection, &packet, at + HEADER, bytes);
        else
            pml_packet_arrived(connection->pml, connection, &packet, packet.u.data, packet.inline_bytes);
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

static void ended(struct tcp_channel *channel, const char *why)
{
    if (!channel->heard_bye && !channel->said_bye) {
        tcp_lost(channel, why);
        return;
    }
    channel->heard_bye = true;
    tcp_watch(channel); /* nothing more comes */
}

int tcp_receive(struct tcp_channel *channel)
{
    if (channel->heard_bye || channel->lost) return 0;
    struct iovec piece[2] = {{.iov_base = channel->to, .iov_len = channel->left}};
    int pieces = channel->left ? 1 : 0;
    piece[pieces++] =
        (struct iovec){.iov_base = channel->in + channel->in_end, .iov_len = TCP_IN_BYTES - channel->in_end};
    ssize_t got = pieces == 1 ? recv(channel->fd, piece[0].iov_base, piece[0].iov_len, MSG_DONTWAIT)
                              : readv(channel->fd, piece, pieces);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) {
        ended(channel, got ? strerror(errno) : "it has closed the connection");
        return 1;
    }
    size_t direct = (size_t)got < channel->left ? (size_t)got : channel->left;
    channel->to += direct;
    channel->left -= direct;
    channel->in_end += (size_t)got - direct;
    if (channel->to && !channel->left) landed(channel);
    int events = take_packets(channel);
    if (events < 0) tcp_lost(channel, "what it sends makes no sense");
    return events > 0 ? events : 1;
}
