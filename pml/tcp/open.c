/* open.c - connections come about: cards are fetched, attempts made, keys told, and one connection a pair is kept.
 * Nothing here waits: a peer that does not answer delays nobody else. */
#include "pml/tcp/tcp.h"

#include <errno.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

/* What the one that was connected to says first on the connection that it keeps. */
static const char greeting[8] = "ncclx\0\0\1";
/* After a connection of ours was dropped, the peer's own should come. */
#define RETRY_NS UINT64_C(50000000)

struct tcp_channel *tcp_channel_of(struct tcp *tcp, int rank)
{
    struct pml_connection *connection;
    if (rank < 0 || rank >= tcp->pml->rt->job.size || rank == tcp->pml->rt->job.rank) return NULL;
    if (pml_connection_from(tcp->pml, rank, &transport_tcp, &connection)) {
        base_log(AREA_TCP, LOG_WARN, "%s", base_error_detail());
        return NULL;
    }
    return connection->transport == &transport_tcp ? connection->channel : NULL;
}

/* ---- One connection is in use ---- */

static void close_own(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->attempt) oob_cancel(tcp->oob, channel->attempt);
    channel->attempt = 0;
    if (channel->fd >= 0) close(channel->fd); /* which takes it out of the epoll set, too */
    channel->fd = -1;
    channel->watching_out = false;
}

static void use(struct tcp_channel *channel)
{
    if (channel->retry_ns) channel->connection->pml->tcp->unsettled--;
    channel->retry_ns = 0;
    channel->in = base_alloc(AREA_TCP, TCP_IN_BYTES);
    if (!channel->in) tcp_lost(channel, "memory is short for what it sends");
    base_log(AREA_TCP, LOG_INFO, "connected to rank %d", channel->connection->rank);
    if (!channel->lost) lanes_agreed(channel->connection, &channel->card->offer);
}

static void keep(struct tcp_channel *channel, int fd)
{
    channel->fd = fd;
    use(channel);
    /* A fresh socket takes 8 bytes. */
    if (!channel->lost && send(fd, greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting)
        tcp_lost(channel, strerror(errno));
    else if (!channel->lost)
        tcp_watch(channel);
}

/* ---- Our attempts ---- */

static void attempt(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    int error = oob_connect(tcp->oob, (uint32_t)channel->connection->rank, channel->card->key,
                            &channel->card->addresses, 0, 0, base_clock_ns(), &channel->attempt);
    if (error) tcp_lost(channel, base_error_detail());
}

/* Asks for the peer's card, unless it is here or asked for. */
static void need_card(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->card || channel->fetch) return;
    if (bootstrap_fetch(tcp->pml->rt, channel->connection->rank, TCP_CARD_KEY, &channel->fetch))
        tcp_lost(channel, base_error_detail());
    else
        tcp->unsettled++;
}

void tcp_open(struct tcp_channel *channel)
{
    if (channel->lost || meet_wanted(&channel->meet) != MEET_START) return;
    need_card(channel);
    if (channel->card) attempt(channel);
}

static void card_came(struct tcp_channel *channel, int code, void *value, size_t bytes)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    struct tcp_card *card = code ? NULL : base_calloc(AREA_TCP, 1, sizeof *card);
    if (!code && !card) code = base_error(NCCLX_ERR_NO_MEM, "no memory for a card");
    if (!code) code = tcp_card_parse(value, bytes, card);
    if (code) {
        base_free(AREA_TCP, card);
        card = NULL;
    }
    for (unsigned i = 0; i < channel->asker_count; i++)
        oob_give_key(tcp->oob, channel->askers[i], card ? card->key : NULL);
    channel->asker_count = 0;
    if (!card) {
        tcp_lost(channel, base_error_detail());
        return;
    }
    channel->card = card;
    if (channel->meet.state == MEET_OPENING && !channel->attempt) attempt(channel);
}

void tcp_greeting(struct tcp_channel *channel)
{
    char got[sizeof greeting];
    ssize_t bytes = recv(channel->fd, got, sizeof got, MSG_PEEK | MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (bytes > 0 && bytes < (ssize_t)sizeof got && !memcmp(got, greeting, (size_t)bytes)) return;
    if (bytes <= 0) {
        close_own(channel);
        meet_dropped(&channel->meet);
        if (!channel->retry_ns) channel->connection->pml->tcp->unsettled++;
        channel->retry_ns = base_clock_ns() + RETRY_NS;
        return;
    }
    if (memcmp(got, greeting, sizeof got)) {
        tcp_lost(channel, "it does not greet as it should");
        return;
    }
    (void)!recv(channel->fd, got, sizeof got, MSG_DONTWAIT);
    if (meet_greeted(&channel->meet) == MEET_USE) use(channel);
}

/* ---- Events of the sockets that are not ours yet ---- */

static void asked_for_key(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && channel->card) {
        oob_give_key(tcp->oob, event->id, channel->card->key);
    } else if (channel && !channel->lost && channel->asker_count < TCP_ASKERS) {
        channel->askers[channel->asker_count++] = event->id;
        need_card(channel);
    } else {
        oob_give_key(tcp->oob, event->id, NULL);
    }
}

static void accepted(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && event->tag) {
        tcp_lane_accepted(channel, event->tag, event->fd);
        return;
    }
    enum meet_action action = channel && !channel->lost ? meet_accepted(&channel->meet) : MEET_DROP;
    if (action == MEET_DROP) {
        close(event->fd);
        return;
    }
    close_own(channel);
    keep(channel, event->fd);
}

static void connected(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && event->tag) {
        if (!tcp_lane_connected(channel, event->id, event->fd)) close(event->fd);
        return;
    }
    if (channel && channel->attempt == event->id) channel->attempt = 0;
    if (!channel || channel->lost || meet_connected(&channel->meet) == MEET_DROP) {
        close(event->fd);
        return;
    }
    channel->fd = event->fd;
    tcp_watch(channel);
}

static void failed(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && event->tag) tcp_lane_failed(channel, event->id, event->text);
    if (!channel || event->tag || channel->attempt != event->id) return;
    channel->attempt = 0;
    tcp_lost(channel, event->text);
}

static int take_events(struct tcp *tcp)
{
    struct oob_event event;
    int events = 0;
    for (; oob_next(tcp->oob, &event); events++) {
        if (event.kind == OOB_WANT_KEY) asked_for_key(tcp, &event);
        if (event.kind == OOB_ACCEPTED) accepted(tcp, &event);
        if (event.kind == OOB_CONNECTED) connected(tcp, &event);
        if (event.kind == OOB_FAILED) failed(tcp, &event);
        oob_wipe(&event.keys, sizeof event.keys); /* data travels in the open */
    }
    return events;
}

static void settle(struct tcp *tcp, struct tcp_channel *channel, uint64_t now)
{
    int code;
    void *value = NULL;
    size_t bytes = 0;
    if (channel->fetch && bootstrap_fetched(channel->fetch, &code, &value, &bytes)) {
        channel->fetch = NULL;
        tcp->unsettled--;
        card_came(channel, code, value, bytes);
        base_free(AREA_BOOTSTRAP, value);
    }
    if (channel->retry_ns && now >= channel->retry_ns) {
        channel->retry_ns = 0;
        tcp->unsettled--;
        tcp_open(channel);
    }
}

int tcp_open_poll(struct tcp *tcp, uint64_t now)
{
    if (tcp->unsettled)
        for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) settle(tcp, channel, now);
    oob_dispatch(tcp->oob, now);
    return take_events(tcp);
}
