/* lane.c - lanes as sockets: what both directions have in common, and what the driver of lanes calls. */
#include "pml/tcp/lane.h"

#include "topo/topo.h"

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

uint64_t tcp_lane_tag(unsigned index, uint32_t life)
{
    return TCP_TAG_LANE | (uint64_t)index << 32 | life;
}

void tcp_lane_accepted(struct tcp_channel *channel, uint64_t tag, int fd)
{
    uint64_t index = (tag & ~TCP_TAG_LANE) >> 32;
    if (!channel->lost && index < channel->connection->pml->tcp->offered) {
        tcp_in_accept(channel, (unsigned)index, (uint32_t)tag, fd);
        return;
    }
    base_process_close(fd);
    tcp_lost(channel, "it opens a lane that was not offered");
}

/* ---- For the driver ---- */

unsigned tcp_lanes_most(uint64_t descriptors, unsigned peers)
{
    uint64_t lanes = descriptors / 4 / peers;
    return lanes < 1 ? 1 : lanes < DQPLB_MAX_LANES ? (unsigned)lanes : DQPLB_MAX_LANES;
}

unsigned tcp_lanes_here(const struct tcp *tcp)
{
    struct rlimit limit;
    if (tcp->most) return 1;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY) return DQPLB_MAX_LANES;
    return tcp_lanes_most(limit.rlim_cur, (unsigned)tcp->pml->rt->job.size - 1);
}

static unsigned most(const struct pml_connection *connection)
{
    return tcp_lanes_here(connection->pml->tcp);
}

/* Sockets go through whichever card the system chooses: they count as one. */
static unsigned port(const struct pml_connection *connection)
{
    bool here = topo_distance(connection->pml->rt, connection->rank) <= NCCLX_DISTANCE_NODE;
    return here ? LANE_PORT_LOOPBACK : LANE_PORT_FIRST;
}

static bool spares(const struct pml_connection *connection)
{
    const struct tcp_channel *channel = connection->channel;
    const struct tcp_out *lane = channel->lanes ? channel->lanes->out[0] : NULL;
    return lane && lane->by_pages && !connection->pml->tcp->pipes.useless;
}

static void want(struct pml_connection *connection)
{
    tcp_open(connection->channel);
}

const struct lane_transport tcp_lane_transport = {
    .depth = TCP_LANE_DEPTH,
    .largest = (size_t)1 << 30,
    .spares = spares,
    .most = most,
    .port = port,
    .want = want,
    .open = tcp_out_open,
    .write = tcp_out_write,
    .ring = tcp_out_ring,
    .close = tcp_out_close,
    .fence = tcp_in_fence,
    .credit = tcp_in_credit,
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

void tcp_lanes_trim(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    struct tcp_lanes *lanes = channel->lanes;
    for (unsigned i = 0; lanes && i < DQPLB_MAX_LANES; i++) {
        struct tcp_out *out = lanes->out[i];
        struct tcp_in *in = lanes->in[i];
        if (out && out->fd < 0 && !out->attempt && !(channel->to_ring >> i & 1)) {
            if (tcp->hot_out == out) tcp->hot_out = NULL;
            base_free(AREA_TCP, out);
            lanes->out[i] = NULL;
        }
        if (in && in->fd < 0 && lanes_fenced(channel->connection, i)) {
            if (tcp->hot_in == in) tcp->hot_in = NULL;
            base_free(AREA_TCP, in);
            lanes->in[i] = NULL;
        }
    }
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
