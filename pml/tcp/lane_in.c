/* lane_in.c - the target's end of a lane: what comes goes where it belongs, and is acknowledged. Everything that comes is
 * checked before it is believed. */
#include "pml/tcp/lane.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/uio.h>
#include <unistd.h>

/* Read at a time: packets are looked for in between. */
#define READ_MOST ((size_t)262144)

/* ---- Opening and closing ---- */

static bool has_carried(const struct tcp_in *lane)
{
    return lane->completed || lane->placing || lane->in_begin != lane->in_end;
}

static struct tcp_in *make(struct tcp_channel *channel, unsigned index)
{
    struct tcp_lanes *lanes = tcp_lanes_of(channel);
    if (!lanes) return NULL;
    if (!lanes->in[index]) {
        lanes->in[index] = base_calloc(AREA_TCP, 1, sizeof *lanes->in[index]);
        if (lanes->in[index]) lanes->in[index]->fd = -1;
    }
    return lanes->in[index];
}

void tcp_in_accept(struct tcp_channel *channel, unsigned index, uint32_t life, int fd)
{
    struct pml_connection *connection = channel->connection;
    struct tcp_in *lane = make(channel, index);
    bool used = lane && lane->life == life && has_carried(lane);
    if (!lane || used || !lanes_accept(connection, index, life)) {
        base_process_close(fd);
        return;
    }
    tcp_in_fence(connection, index);
    lane->kind = TCP_LANE_IN;
    lane->channel = channel;
    lane->index = index;
    lane->life = life;
    lane->fd = fd;
    lane->placing = lane->watching_out = false;
    lane->left = 0;
    lane->completed = lane->told = lane->receives = 0;
    lane->ack_begin = lane->ack_end = 0;
    lane->in_begin = lane->in_end = 0;
    tcp_trouble_begin(&connection->pml->tcp->trouble, &lane->luck);
    tcp_lane_watch(connection->pml->tcp, lane, fd, false);
}

void tcp_in_fence(struct pml_connection *connection, unsigned index)
{
    struct tcp_channel *channel = connection->channel;
    struct tcp *tcp = connection->pml->tcp;
    struct tcp_in *lane = channel->lanes ? channel->lanes->in[index] : NULL;
    if (!lane) return;
    tcp_close(tcp, lane->fd);
    lane->fd = -1;
    if (tcp->hot_in == lane) tcp->hot_in = NULL;
}

/* ---- Acknowledgements ---- */

static void watch_out(struct tcp_in *lane, bool out)
{
    if (lane->watching_out == out) return;
    lane->watching_out = out;
    tcp_lane_watch(lane->channel->connection->pml->tcp, lane, lane->fd, out);
}

/* False: the socket is full, or at its end, which shows when it is looked at. */
static bool send_rest(struct tcp_in *lane)
{
    ssize_t sent = send(lane->fd, lane->ack + lane->ack_begin, lane->ack_end - lane->ack_begin, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent > 0) lane->ack_begin += (size_t)sent;
    return lane->ack_begin == lane->ack_end;
}

static void acknowledge(struct tcp_in *lane)
{
    if (lane->fd < 0 || (lane->ack_begin != lane->ack_end && !send_rest(lane))) return;
    if (lane->completed != lane->told || lane->receives) {
        const struct tcp_ack ack = {
            .kind = TCP_FRAME_ACK, .life = lane->life, .completed = lane->completed, .receives = lane->receives};
        memcpy(lane->ack, &ack, sizeof ack);
        lane->ack_begin = 0;
        lane->ack_end = sizeof ack;
        lane->told = lane->completed;
        lane->receives = 0;
        send_rest(lane);
    }
    watch_out(lane, lane->ack_begin != lane->ack_end);
}

/* It travels with the next acknowledgement, which is due whenever a credit is. */
void tcp_in_credit(struct pml_connection *connection, unsigned index, uint32_t life, uint64_t receives)
{
    const struct tcp_channel *channel = connection->channel;
    struct tcp_in *lane = channel->lanes ? channel->lanes->in[index] : NULL;
    if (!lane || lane->fd < 0 || lane->life != life) return;
    lane->receives = receives;
    acknowledge(lane);
}

/* ---- Frames ---- */

static bool break_off(struct tcp_in *lane)
{
    tcp_lost(lane->channel, "what it sends on a lane makes no sense");
    return false;
}

/* What others look at while it is written: an aligned word is there as a whole. */
static void place_small(char *to, const char *from, size_t bytes)
{
    uint64_t word8;
    uint32_t word4;
    if (bytes == 8 && (uintptr_t)to % 8 == 0) {
        memcpy(&word8, from, 8);
        __atomic_store_n((uint64_t *)(void *)to, word8, __ATOMIC_RELAXED);
    } else if (bytes == 4 && (uintptr_t)to % 4 == 0) {
        memcpy(&word4, from, 4);
        __atomic_store_n((uint32_t *)(void *)to, word4, __ATOMIC_RELAXED);
    } else {
        memcpy(to, from, bytes);
    }
}

/* The next bytes of the frame, which are in the buffer. */
static void place(struct tcp_in *lane, size_t bytes, bool small)
{
    const char *from = lane->in + lane->in_begin;
    if (small) place_small(lane->to, from, bytes);
    else memcpy(lane->to, from, bytes);
    lane->in_begin += bytes;
    lane->to += bytes;
    lane->left -= bytes;
}

static bool begin_frame(struct tcp_in *lane)
{
    struct tcp_frame *frame = &lane->frame;
    memcpy(frame, lane->in + lane->in_begin, sizeof *frame);
    bool empty_for_nothing = !frame->bytes && !(frame->flags & TCP_HAS_IMMEDIATE);
    if (frame->kind != TCP_FRAME_WRITE || frame->flags & ~TCP_HAS_IMMEDIATE || frame->zero || empty_for_nothing)
        return break_off(lane);
    lane->in_begin += sizeof *frame;
    lane->placing = true;
    lane->left = frame->bytes;
    lane->to = frame->bytes ? lanes_place(lane->channel->connection, frame->key, frame->to, frame->bytes) : NULL;
    return lane->to || !frame->bytes;
}

static bool end_frame(struct tcp_in *lane)
{
    lane->placing = false;
    lane->completed++;
    return !(lane->frame.flags & TCP_HAS_IMMEDIATE) ||
           lanes_arrived(lane->channel->connection, lane->index, lane->frame.immediate);
}

/* Puts into place what is in the buffer. False: the connection has ended. */
static bool take_frames(struct tcp_in *lane)
{
    for (;;) {
        size_t have = lane->in_end - lane->in_begin;
        if (!lane->placing) {
            if (have < sizeof lane->frame) return true;
            if (!begin_frame(lane)) return false;
            have -= sizeof lane->frame;
        }
        bool small = lane->frame.bytes <= TCP_WHOLE_BYTES;
        if (small && have < lane->left) return true;
        size_t now = have < lane->left ? have : lane->left;
        if (now) place(lane, now, small);
        if (lane->left) return true;
        if (!end_frame(lane)) return false;
    }
}

static void make_room(struct tcp_in *lane)
{
    if (lane->in_begin == lane->in_end) {
        lane->in_begin = lane->in_end = 0;
    } else if (lane->in_end > sizeof lane->in / 2) {
        memmove(lane->in, lane->in + lane->in_begin, lane->in_end - lane->in_begin);
        lane->in_end -= lane->in_begin;
        lane->in_begin = 0;
    }
}

/* What was granted when the frame began may have ended meanwhile. */
static bool still_granted(const struct tcp_in *lane)
{
    const struct tcp_frame *frame = &lane->frame;
    return !lane->left || lanes_place(lane->channel->connection, frame->key, frame->to + (frame->bytes - lane->left), lane->left);
}

/* The rest of a large frame goes to its place, what follows into the buffer. */
static ssize_t read_some(struct tcp_in *lane)
{
    struct iovec piece[2];
    int pieces = 0;
    bool direct = lane->placing && lane->frame.bytes > TCP_WHOLE_BYTES;
    if (direct) piece[pieces++] = (struct iovec){.iov_base = lane->to, .iov_len = lane->left < READ_MOST ? lane->left : READ_MOST};
    if (!direct || lane->left <= READ_MOST) piece[pieces++] = (struct iovec){.iov_base = lane->in + lane->in_end, .iov_len = sizeof lane->in - lane->in_end};
    ssize_t got = readv(lane->fd, piece, pieces);
    if (got <= 0) return got;
    size_t placed = direct ? ((size_t)got < lane->left ? (size_t)got : lane->left) : 0;
    if (placed) lane->to += placed;
    lane->left -= placed;
    lane->in_end += (size_t)got - placed;
    return got;
}

int tcp_in_look(struct tcp_in *lane, bool room)
{
    if (lane->fd < 0) return 0;
    struct pml_connection *connection = lane->channel->connection;
    struct tcp_trouble *trouble = &connection->pml->tcp->trouble;
    if (unlikely(trouble->random) && tcp_trouble_holds(trouble, &lane->luck)) return 0;
    if (room) acknowledge(lane);
    if (lane->placing && !still_granted(lane)) return 1;
    bool begins = !lane->placing;
    ssize_t got = read_some(lane);
    if (got < 0 && (errno == EAGAIN || errno == EINTR)) return 0;
    if (got <= 0) { /* the origin will say so on the control lane, and ask what has come */
        tcp_in_fence(connection, lane->index);
        return 1;
    }
    if (!take_frames(lane)) return 1;
    /* Its beginning is here: so is more, as a rule. */
    bool more = begins && lane->placing && lane->frame.bytes > sizeof lane->in;
    if (more && read_some(lane) > 0 && !take_frames(lane)) return 1;
    if (unlikely(trouble->random) && tcp_trouble_breaks(trouble, &lane->luck, lane->fd)) {
        tcp_in_fence(connection, lane->index);
        lanes_told(connection);
        return 1;
    }
    make_room(lane);
    acknowledge(lane);
    lanes_told(connection);
    return 1;
}
