/* lane.c - lanes as sockets: what both directions have in common, and what the driver of lanes calls. */
#include "pml/tcp/lane.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

struct tcp_lanes *tcp_lanes_of(struct tcp_channel *channel)
{
    if (!channel->lanes) channel->lanes = base_calloc(AREA_TCP, 1, sizeof *channel->lanes);
    return channel->lanes;
}

void tcp_lane_watch(struct tcp *tcp, void *lane, int fd, bool out)
{
    struct epoll_event event = {.events = EPOLLIN | (out ? EPOLLOUT : 0u), .data.ptr = lane};
    if (epoll_ctl(tcp->epoll, EPOLL_CTL_MOD, fd, &event) && errno == ENOENT)
        (void)epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, fd, &event);
}

#define TAG_LANE (UINT64_C(1) << 63)

uint64_t tcp_lane_tag(unsigned index, uint32_t life)
{
    return TAG_LANE | (uint64_t)index << 32 | life;
}

void tcp_lane_accepted(struct tcp_channel *channel, uint64_t tag, int fd)
{
    uint64_t index = (tag & ~TAG_LANE) >> 32;
    if (!(tag & TAG_LANE) || index >= DQPLB_MAX_LANES || channel->lost)
        close(fd);
    else
        tcp_in_accept(channel, (unsigned)index, (uint32_t)tag, fd);
}

/* ---- For the driver ---- */

/* A quarter of the descriptors that this process may have, were all other ranks of the job to be written to. */
static unsigned most(const struct pml_connection *connection)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY) return DQPLB_MAX_LANES;
    rlim_t lanes = limit.rlim_cur / 4 / (rlim_t)(connection->pml->rt->job.size - 1);
    return lanes < 1 ? 1 : lanes < DQPLB_MAX_LANES ? (unsigned)lanes : DQPLB_MAX_LANES;
}

static void want(struct pml_connection *connection)
{
    tcp_open(connection->channel);
}

static void fail(struct pml_connection *connection, const char *why)
{
    tcp_lost(connection->channel, why);
}

const struct lane_transport tcp_lane_transport = {
    .depth = TCP_LANE_DEPTH,
    .largest = (size_t)1 << 30,
    .most = most,
    .want = want,
    .open = tcp_out_open,
    .write = tcp_out_write,
    .ring = tcp_out_ring,
    .close = tcp_out_close,
    .fence = tcp_in_fence,
    .credit = tcp_in_credit,
    .fail = fail,
};

/* ---- The end ---- */

static void close_all(struct tcp_channel *channel)
{
    for (unsigned i = 0; i < DQPLB_MAX_LANES; i++) {
        tcp_out_close(channel->connection, i);
        tcp_in_fence(channel->connection, i);
    }
}

void tcp_lanes_close(struct tcp_channel *channel)
{
    if (channel->lanes) close_all(channel);
}

void tcp_lanes_free(struct tcp_channel *channel)
{
    if (!channel->lanes) return;
    close_all(channel);
    for (unsigned i = 0; i < DQPLB_MAX_LANES; i++) {
        base_free(AREA_TCP, channel->lanes->out[i]);
        base_free(AREA_TCP, channel->lanes->in[i]);
    }
    base_free(AREA_TCP, channel->lanes);
    channel->lanes = NULL;
}
