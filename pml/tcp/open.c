/* open.c - connections come about: cards are fetched, attempts made, keys told, and one connection a pair is kept.
 * Nothing here waits: a peer that does not answer delays nobody else. */
#include "pml/tcp/tcp.h"

#include <errno.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

static const char magic[8] = "ncclx\0\0\2";
/* After a connection of ours was dropped: the peer's own should come, or it has no room. */
#define RETRY_NS UINT64_C(40000000)

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

/* ---- One socket is in use ---- */

void tcp_socket_close(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->attempt) oob_cancel(tcp->oob, channel->attempt);
    channel->attempt = 0;
    tcp_close(tcp, channel->fd);
    channel->fd = -1;
    channel->watched = 0;
    if (tcp->hot == channel) tcp->hot = NULL;
    if (tcp->alone == channel) tcp->alone = NULL;
}

void tcp_retry_not(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->retry_ns) tcp->unsettled--;
    if (channel->waits_for_room) tcp->unsettled--;
    channel->retry_ns = 0;
    channel->waits_for_room = false;
}

void tcp_retry(struct tcp_channel *channel, uint64_t ns)
{
    tcp_retry_not(channel);
    channel->retry_ns = base_clock_ns() + ns;
    channel->connection->pml->tcp->unsettled++;
}

static unsigned segment_of(int fd) /* 0: it does not say */
{
    int bytes = 0;
    socklen_t size = sizeof bytes;
    return !getsockopt(fd, IPPROTO_TCP, TCP_MAXSEG, &bytes, &size) && bytes > 0 ? (unsigned)bytes : 0;
}

/* Tells how much of the peer's stream has come, and takes the socket. */
static void greet(struct tcp_channel *channel, int fd)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    struct tcp_greeting greeting = {
        .attempts = channel->meet.attempt, .name = channel->meet.name, .come = channel->come};
    memcpy(greeting.magic, magic, sizeof magic);
    channel->fd = fd;
    channel->watched = 0;
    channel->segment = segment_of(fd);
    channel->told = channel->come;
    channel->untold = 0;
    tcp_trouble_begin_control(&tcp->trouble, &channel->luck);
    if (send(fd, &greeting, sizeof greeting, MSG_NOSIGNAL) != sizeof greeting) /* a fresh socket has room for it */
        tcp_broke(channel, strerror(errno));
    else
        tcp_watch(channel);
}

static void use(struct tcp_channel *channel)
{
    struct pml_connection *connection = channel->connection;
    tcp_retry_not(channel);
    channel->broken = false;
    channel->wanted = false;
    base_log(AREA_TCP, LOG_INFO, "connected to rank %d", connection->rank);
    tcp_pending(channel);
    if (!tcp_flush(channel) && !channel->lost) tcp_watch(channel);
    if (!channel->lost) lanes_agreed(connection, &channel->card->offer);
}

/* ---- Our attempts ---- */

static void attempt(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    int error = oob_connect(tcp->oob, (uint32_t)channel->connection->rank, channel->card->key, &channel->card->addresses,
                            channel->meet.attempt, 0, base_clock_ns(), &channel->attempt);
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
    struct tcp *tcp = channel->connection->pml->tcp;
    channel->wanted = true;
    if (channel->lost || channel->meet.state != MEET_IDLE || channel->retry_ns || channel->waits_for_room) return;
    if (!tcp_room_to_open(tcp)) {
        channel->waits_for_room = true;
        tcp->unsettled++;
        return;
    }
    (void)meet_wanted(&channel->meet);
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

/* The peer has dropped it: it has one of its own under way, or no room. */
static void dropped(struct tcp_channel *channel)
{
    tcp_socket_close(channel);
    meet_ended(&channel->meet);
    tcp_retry(channel, RETRY_NS / 2 + base_clock_ns() % RETRY_NS); /* not all at the same time */
}

void tcp_greeting(struct tcp_channel *channel)
{
    struct tcp_greeting got;
    ssize_t bytes = recv(channel->fd, &got, sizeof got, MSG_PEEK | MSG_DONTWAIT);
    if (bytes < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (bytes <= 0) {
        dropped(channel);
        return;
    }
    if (bytes < (ssize_t)sizeof got) return; /* the rest wakes us again */
    (void)!recv(channel->fd, &got, sizeof got, MSG_DONTWAIT);
    if (memcmp(got.magic, magic, sizeof magic) || got.zero || got.name != channel->meet.name ||
        !keep_resume(&channel->keep, got.come))
        tcp_lost(channel, "it does not greet as it should");
    else if (meet_greeted(&channel->meet, got.attempts) == MEET_USE)
        use(channel);
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
    if (channel && event->tag & TCP_TAG_LANE) {
        tcp_lane_accepted(channel, event->tag, event->fd);
        return;
    }
    bool talked = channel && meet_talks(&channel->meet);
    if (!channel || channel->lost || event->tag > UINT32_MAX || !tcp_room_to_accept(channel) ||
        meet_accepted(&channel->meet, (uint32_t)event->tag) == MEET_DROP) {
        base_process_close(event->fd);
        return;
    }
    channel->broken = channel->broken || talked;
    tcp_socket_close(channel);
    tcp_pending(channel);
    if (channel->card) oob_addresses_prove(&channel->card->addresses, &event->address);
    greet(channel, event->fd);
}

static void connected(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && event->tag & TCP_TAG_LANE) {
        if (!tcp_lane_connected(channel, event->id, event->fd)) base_process_close(event->fd);
        return;
    }
    if (channel && channel->attempt == event->id) channel->attempt = 0;
    if (!channel || channel->lost || event->tag != channel->meet.attempt || meet_connected(&channel->meet) == MEET_DROP) {
        base_process_close(event->fd);
        return;
    }
    if (channel->card) oob_addresses_prove(&channel->card->addresses, &event->address);
    greet(channel, event->fd);
}

/* Who has a card out, and does not answer though its system does, is busy or has no room: it is asked again, as long as
 * it takes. */
static void failed(struct tcp *tcp, const struct oob_event *event)
{
    struct tcp_channel *channel = tcp_channel_of(tcp, (int)event->peer);
    if (channel && event->tag & TCP_TAG_LANE) tcp_lane_failed(channel, event);
    if (!channel || event->tag & TCP_TAG_LANE || channel->attempt != event->id) return;
    channel->attempt = 0;
    if (!event->busy) {
        tcp_lost(channel, event->text);
        return;
    }
    base_log(AREA_TCP, LOG_WARN, "rank %d takes no connection, and may be busy: waiting (%s)", channel->connection->rank, event->text);
    meet_ended(&channel->meet);
    tcp_retry(channel, 0);
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
    if ((channel->retry_ns && now >= channel->retry_ns) || channel->waits_for_room) {
        tcp_retry_not(channel);
        if (channel->broken || channel->wanted) tcp_open(channel);
    }
}

int tcp_open_poll(struct tcp *tcp, uint64_t now)
{
    if (tcp->crowded || tcp->unsettled) tcp_room_tick(tcp, now);
    if (tcp->unsettled)
        for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) settle(tcp, channel, now);
    oob_dispatch(tcp->oob, now);
    if (unlikely(oob_was_short(tcp->oob))) tcp_room_short(tcp);
    return take_events(tcp);
}
