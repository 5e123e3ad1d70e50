/* tcp_world.c - see tcp_world.h. */
#include "tests/unit/tcp_world.h"

#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

static struct tcp_world *current;

int tcp_world_pair(int *theirs)
{
    int pair[2];
    if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0, pair)) abort();
    if (*theirs >= 0) close(*theirs);
    *theirs = pair[1];
    return pair[0];
}

/* In place of sockets that connect: the peer accepts at once. */
static void open_lane(struct pml_connection *connection, unsigned lane, uint32_t life)
{
    struct tcp_peer *peer = &current->peer[connection->rank];
    if (lane >= TCP_WORLD_LANES) {
        lanes_broke(connection, lane, "there are no more");
        return;
    }
    struct tcp_out *out = tcp_out_make(peer->channel, lane, life);
    if (!out) abort();
    out->fd = tcp_world_pair(&peer->from[lane]);
    lanes_opened(connection, lane);
}

void tcp_world_open(struct tcp_world *tcp_world, int size, char **environment)
{
    world_open(&tcp_world->world, size, environment);
    struct pml *pml = tcp_world->world.rt[0].pml;
    struct tcp *tcp = base_calloc(AREA_TCP, 1, sizeof *tcp);
    if (!tcp) abort();
    tcp->pml = pml;
    tcp->epoll = tcp->call.fd = -1;
    tcp->offered = TCP_WORLD_LANES;
    tcp->most = 1; /* which leaves none for attempts of ours: there is nothing to connect to */
    tcp_pipes_init(&tcp->pipes);
    pml->tcp = tcp_world->tcp = tcp; /* ends as pml ends */
    memset(tcp_world->peer, 0, sizeof tcp_world->peer);
    current = tcp_world;
}

static struct pml_connection *make_connection(struct pml *pml, int rank, struct tcp_channel *channel)
{
    static struct lane_transport transport;
    struct pml_connection *connection = base_calloc(AREA_PML, 1, sizeof *connection);
    if (!pml->connection[0]) pml->connection[0] = base_calloc(AREA_PML, CONNECTION_CHUNK, sizeof *pml->connection[0]);
    if (!connection || !pml->connection[0]) abort();
    *connection = (struct pml_connection){.pml = pml,
                                          .rank = rank,
                                          .transport = &transport_tcp,
                                          .channel = channel,
                                          .payload_max = TCP_PAYLOAD_MAX,
                                          .stream_piece = TCP_PIECE_MAX,
                                          .announce_threshold = 1,
                                          .choose_above = SIZE_MAX,
                                          .lend_above = SIZE_MAX,
                                          .probed = true,
                                          .route = {.eager_limit = 64, .can_write = true}};
    transport = tcp_lane_transport;
    transport.open = open_lane;
    if (lanes_make(connection, &transport)) abort();
    pml->connection[0][rank] = connection;
    return connection;
}

void tcp_world_connect(struct tcp_world *tcp_world, int rank)
{
    struct tcp_peer *peer = &tcp_world->peer[rank];
    struct tcp_channel *channel = base_calloc(AREA_TCP, 1, sizeof *channel);
    if (!channel) abort();
    channel->connection = make_connection(tcp_world->tcp->pml, rank, channel);
    channel->meet.state = MEET_OPEN;
    channel->meet.attempt = 1;
    channel->card = base_calloc(AREA_TCP, 1, sizeof *channel->card);
    channel->in = base_alloc(AREA_TCP, TCP_IN_BYTES);
    if (!channel->card || !channel->in) abort();
    channel->card->offer = lanes_offer;
    channel->next = tcp_world->tcp->first;
    tcp_world->tcp->first = channel;
    *peer = (struct tcp_peer){.connection = channel->connection, .channel = channel, .control = -1};
    for (unsigned i = 0; i < TCP_WORLD_LANES; i++) peer->to[i] = peer->from[i] = -1;
    channel->fd = tcp_world_pair(&peer->control);
}

void tcp_world_accept(struct tcp_world *tcp_world, int rank, unsigned lane, uint32_t life)
{
    struct tcp_peer *peer = &tcp_world->peer[rank];
    if (!peer->channel->lost) tcp_in_accept(peer->channel, lane, life, tcp_world_pair(&peer->to[lane]));
}

void tcp_world_say(int fd, const void *data, size_t bytes)
{
    if (fd >= 0) (void)!send(fd, data, bytes, MSG_NOSIGNAL | MSG_DONTWAIT);
}

static void empty(int fd)
{
    char sink[4096];
    while (fd >= 0 && recv(fd, sink, sizeof sink, MSG_DONTWAIT) > 0) continue;
}

void tcp_world_look(struct tcp_world *tcp_world, int rank)
{
    struct tcp_peer *peer = &tcp_world->peer[rank];
    struct tcp_channel *channel = peer->channel;
    if (meet_talks(&channel->meet) && !channel->lost) tcp_receive(channel);
    for (unsigned i = 0; i < TCP_WORLD_LANES && channel->lanes; i++) {
        if (channel->lanes->in[i]) tcp_in_look(channel->lanes->in[i], true);
        if (channel->lanes->out[i]) tcp_out_look(channel->lanes->out[i], true);
        empty(peer->to[i]);
        empty(peer->from[i]);
    }
    if (!channel->lost) pml_backlog_drain(peer->connection->pml);
    empty(peer->control);
}

static void close_end(int fd)
{
    if (fd >= 0) close(fd);
}

void tcp_world_close(struct tcp_world *tcp_world)
{
    for (int rank = 0; rank < WORLD_MAX; rank++) {
        struct tcp_peer *peer = &tcp_world->peer[rank];
        if (!peer->connection) continue;
        tcp_lost(peer->channel, "the end of the test");
        close_end(peer->control);
        for (unsigned i = 0; i < TCP_WORLD_LANES; i++) {
            close_end(peer->to[i]);
            close_end(peer->from[i]);
        }
    }
    world_close(&tcp_world->world);
}
