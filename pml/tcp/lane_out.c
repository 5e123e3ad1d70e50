/* lane_out.c - the origin's end of a lane: frames go out from the program's memory, acknowledgements come in. */
#include "pml/tcp/lane.h"

#include <errno.h>
#include <netinet/in.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Frames of one system call. */
#define GATHER 32
/* At a time: others want to send, too. */
#define PUSH_BYTES ((size_t)1 << 20)
/* Longest time that opening may take. */
#define OPEN_MS 10000

static void give_pipe(struct tcp_out *lane)
{
    if (lane->pipe) tcp_pipe_give(lane->pipe);
    lane->pipe = NULL;
}

/* ---- Opening and closing ---- */

static struct tcp_out *place_for(struct tcp_channel *channel, unsigned index)
{
    struct tcp_lanes *lanes = tcp_lanes_of(channel);
    if (!lanes) return NULL;
    if (!lanes->out[index]) lanes->out[index] = base_alloc(AREA_TCP, sizeof *lanes->out[index]);
    return lanes->out[index];
}

struct tcp_out *tcp_out_make(struct tcp_channel *channel, unsigned index, uint32_t life)
{
    struct tcp_out *lane = place_for(channel, index);
    if (!lane) return NULL;
    lane->kind = TCP_LANE_OUT;
    lane->channel = channel;
    lane->index = index;
    lane->life = life;
    lane->fd = -1;
    lane->attempt = 0;
    lane->watching_out = false;
    lane->by_pages = false;
    lane->pipe = NULL;
    lane->head = lane->tail = 0;
    lane->sent = lane->in_end = 0;
    lane->completed = 0;
    tcp_trouble_begin(&channel->connection->pml->tcp->trouble, &lane->luck);
    return lane;
}

void tcp_out_open(struct pml_connection *connection, unsigned index, uint32_t life)
{
    struct tcp_channel *channel = connection->channel;
    struct tcp *tcp = connection->pml->tcp;
    struct tcp_out *lane = tcp_out_make(channel, index, life);
    if (!lane)
        lanes_broke(connection, index, "memory is short for it");
    else if (oob_connect(tcp->oob, (uint32_t)connection->rank, channel->card->key, &channel->card->addresses,
                         tcp_lane_tag(index, life), OPEN_MS, base_clock_ns(), &lane->attempt))
        lanes_broke(connection, index, base_error_detail());
}

/* Both ends have the same address: the data never leaves this host. */
static bool goes_round(int fd)
{
    struct sockaddr_storage here = {0}, there = {0};
    socklen_t here_bytes = sizeof here, there_bytes = sizeof there;
    if (getsockname(fd, (struct sockaddr *)&here, &here_bytes) || getpeername(fd, (struct sockaddr *)&there, &there_bytes) ||
        here.ss_family != there.ss_family)
        return false;
    if (here.ss_family == AF_INET)
        return ((struct sockaddr_in *)&here)->sin_addr.s_addr == ((struct sockaddr_in *)&there)->sin_addr.s_addr;
    return here.ss_family == AF_INET6 && !memcmp(&((struct sockaddr_in6 *)&here)->sin6_addr,
                                                 &((struct sockaddr_in6 *)&there)->sin6_addr, sizeof(struct in6_addr));
}

static struct tcp_out *attempted(const struct tcp_channel *channel, uint64_t attempt)
{
    for (unsigned i = 0; channel->lanes && i < DQPLB_MAX_LANES; i++) {
        struct tcp_out *lane = channel->lanes->out[i];
        if (lane && lane->attempt == attempt) return lane;
    }
    return NULL;
}

bool tcp_lane_connected(struct tcp_channel *channel, uint64_t attempt, int fd)
{
    struct tcp_out *lane = attempted(channel, attempt);
    if (!lane) return false;
    lane->attempt = 0;
    lane->fd = fd;
    lane->by_pages = goes_round(fd);
    tcp_lane_watch(channel->connection->pml->tcp, lane, fd, false);
    lanes_opened(channel->connection, lane->index);
    return true;
}

void tcp_lane_failed(struct tcp_channel *channel, const struct oob_event *event)
{
    struct tcp_out *lane = attempted(channel, event->id);
    if (!lane) return;
    lane->attempt = 0;
    if (!event->busy) {
        lanes_broke(channel->connection, lane->index, event->text);
        return;
    }
    base_log(AREA_TCP, LOG_WARN, "rank %d takes no lane, and may be busy: waiting (%s)", channel->connection->rank, event->text);
    tcp_out_open(channel->connection, lane->index, lane->life);
}

void tcp_out_close(struct pml_connection *connection, unsigned index)
{
    struct tcp_channel *channel = connection->channel;
    struct tcp *tcp = connection->pml->tcp;
    struct tcp_out *lane = channel->lanes ? channel->lanes->out[index] : NULL;
    if (!lane) return;
    if (lane->attempt) oob_cancel(tcp->oob, lane->attempt);
    lane->attempt = 0;
    tcp_close(tcp, lane->fd);
    lane->fd = -1;
    give_pipe(lane);
    lane->head = lane->tail;
    if (tcp->hot_out == lane) tcp->hot_out = NULL;
}

/* ---- Frames ---- */

void tcp_out_write(struct pml_connection *connection, unsigned index, const struct lane_write *write)
{
    struct tcp_channel *channel = connection->channel;
    struct tcp_out *lane = channel->lanes->out[index];
    lane->ring[lane->tail++ % TCP_LANE_DEPTH] =
        (struct tcp_entry){.frame = {.kind = TCP_FRAME_WRITE,
                                     .flags = write->has_immediate ? TCP_HAS_IMMEDIATE : 0,
                                     .bytes = (uint32_t)write->bytes,
                                     .immediate = write->immediate,
                                     .to = write->to,
                                     .key = write->key},
                           .from = write->from,
                           .copied = write->copied};
    channel->to_ring |= UINT64_C(1) << index;
}

static size_t add_piece(struct iovec *piece, const void *from, size_t bytes, size_t *skip)
{
    if (*skip >= bytes) {
        *skip -= bytes;
        return 0;
    }
    piece->iov_base = (char *)(uintptr_t)from + *skip;
    piece->iov_len = bytes - *skip;
    *skip = 0;
    return 1;
}

/* Frames from the head on, up to one that goes through a pipe. */
static size_t gather(const struct tcp_out *lane, struct iovec *piece)
{
    size_t pieces = 0, skip = lane->sent;
    for (uint32_t i = lane->head; i != lane->tail && i - lane->head < GATHER; i++) {
        const struct tcp_entry *entry = &lane->ring[i % TCP_LANE_DEPTH];
        if (i != lane->head && lane->by_pages && !entry->copied && entry->frame.bytes >= TCP_PIPE_LEAST) break;
        pieces += add_piece(&piece[pieces], &entry->frame, sizeof entry->frame, &skip);
        pieces += add_piece(&piece[pieces], entry->from, entry->frame.bytes, &skip);
    }
    return pieces;
}

/* The frame at the head, or what is left of it, goes through a pipe. False: it has to be copied. */
static bool fill_pipe(struct tcp_out *lane)
{
    struct tcp_pipes *pipes = &lane->channel->connection->pml->tcp->pipes;
    const struct tcp_entry *entry = &lane->ring[lane->head % TCP_LANE_DEPTH];
    size_t header = lane->sent < sizeof entry->frame ? sizeof entry->frame - lane->sent : 0;
    size_t from = header ? 0 : lane->sent - sizeof entry->frame, bytes = entry->frame.bytes - from;
    if (!lane->by_pages || entry->copied || bytes < TCP_PIPE_LEAST) return false;
    if (bytes > TCP_PIPE_MOST + TCP_PIPE_LEAST) bytes = TCP_PIPE_MOST;
    if (!lane->pipe) lane->pipe = tcp_pipe_take(pipes);
    if (!lane->pipe) return false;
    if (tcp_pipe_fill(pipes, lane->pipe, (const char *)&entry->frame + lane->sent, header, entry->from + from, bytes)) return true;
    give_pipe(lane);
    return false;
}

static ssize_t send_some(struct tcp_out *lane)
{
    struct iovec piece[2 * GATHER];
    if ((lane->pipe && lane->pipe->held) || fill_pipe(lane)) return tcp_pipe_drain(lane->pipe, lane->fd);
    struct msghdr message = {.msg_iov = piece, .msg_iovlen = gather(lane, piece)};
    return sendmsg(lane->fd, &message, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void count_sent(struct tcp_out *lane, size_t bytes)
{
    lane->sent += bytes;
    while (lane->head != lane->tail) {
        size_t whole = sizeof(struct tcp_frame) + lane->ring[lane->head % TCP_LANE_DEPTH].frame.bytes;
        if (lane->sent < whole) return;
        lane->sent -= whole;
        lane->head++;
    }
}

static void watch_out(struct tcp_out *lane, bool out)
{
    if (lane->watching_out == out) return;
    lane->watching_out = out;
    tcp_lane_watch(lane->channel->connection->pml->tcp, lane, lane->fd, out);
}

/* An end of the socket shows when it is looked at: here, somebody is in the middle of something. */
static void push(struct tcp_out *lane)
{
    size_t all = 0;
    if (lane->fd < 0) return;
    while (lane->head != lane->tail && all < PUSH_BYTES) {
        ssize_t sent = send_some(lane);
        if (sent < 0) break;
        count_sent(lane, (size_t)sent);
        all += (size_t)sent;
    }
    if (lane->head == lane->tail) give_pipe(lane);
    watch_out(lane, lane->head != lane->tail);
}

void tcp_out_ring(struct pml_connection *connection)
{
    struct tcp_channel *channel = connection->channel;
    while (channel->to_ring) {
        unsigned index = (unsigned)__builtin_ctzll(channel->to_ring);
        channel->to_ring &= channel->to_ring - 1;
        push(channel->lanes->out[index]);
    }
}

/* ---- Acknowledgements ---- */

/* False: nothing more of this lane. Frames that are still to be sent cannot be there: whoever believed that would give back
 * memory which they are sent from. */
static bool take_ack(struct tcp_out *lane, const struct tcp_ack *ack)
{
    struct pml_connection *connection = lane->channel->connection;
    uint64_t entries = ack->completed - lane->completed; /* fewer than before: a huge number */
    if (ack->kind != TCP_FRAME_ACK || ack->life != lane->life || entries > lane->head - (uint32_t)lane->completed) {
        tcp_lost(lane->channel, "what it acknowledges makes no sense");
        return false;
    }
    lane->completed = ack->completed;
    return lanes_completed(connection, lane->index, entries) &&
           (!ack->receives || lanes_credited(connection, lane->index, lane->life, ack->receives));
}

static void take_acks(struct tcp_out *lane)
{
    struct pml_connection *connection = lane->channel->connection;
    size_t at = 0;
    for (; lane->in_end - at >= sizeof(struct tcp_ack); at += sizeof(struct tcp_ack)) {
        struct tcp_ack ack;
        memcpy(&ack, lane->in + at, sizeof ack);
        if (!take_ack(lane, &ack)) return;
    }
    memmove(lane->in, lane->in + at, lane->in_end - at);
    lane->in_end -= at;
    lanes_told(connection);
}

int tcp_out_look(struct tcp_out *lane, bool room)
{
    struct tcp_trouble *trouble = &lane->channel->connection->pml->tcp->trouble;
    if (lane->fd < 0) return 0;
    if (room) push(lane);
    if (unlikely(trouble->random) && tcp_trouble_holds(trouble, &lane->luck)) return 0;
    ssize_t got = recv(lane->fd, lane->in + lane->in_end, sizeof lane->in - lane->in_end, MSG_DONTWAIT);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0 || (unlikely(trouble->random) && tcp_trouble_breaks(trouble, &lane->luck, lane->fd))) {
        lanes_broke(lane->channel->connection, lane->index, got < 0 ? strerror(errno) : "it was closed");
        return 1;
    }
    lane->in_end += (size_t)got;
    take_acks(lane);
    return 1;
}
