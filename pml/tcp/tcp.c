/* tcp.c - the transport over sockets: start, end, polling, sleeping. */
#include "config.h"

#include "pml/tcp/lane.h"

#include <errno.h>
#include <poll.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <time.h>
#include <unistd.h>

/* Two copies in the kernel, and one of what is kept, cost more than round trips of control packets from here on: where the
 * connection is busy with other data, sooner, as nothing then hides the last copy. */
#define EAGER_LIMIT TCP_EAGER_MAX
#define EAGER_LIMIT_BUSY ((size_t)131072)
/* Goes with the request of a larger message: takes longer than the answer. */
#define FIRST_BYTES TCP_PAYLOAD_MAX
/* Polls that find nothing between two looks at all sockets: one that something came from lately is asked each time. */
#define LOOK_EVERY 8
/* So many looks at a lane that find nothing, and it is looked at like all others. */
#define IDLE_LOOKS 64
/* A peer that so many messages in a row came from is the only one that talks. */
#define ALONE_AFTER 64
/* A receive that has waited so long, or up to twice that, makes the connection on which its peer's end is seen; and one that was not used
 * as long gives buffers back. */
#define AWAIT_NS UINT64_C(400000000)
#define OPEN_LOOK_NS UINT64_C(200000)
/* How long the end waits for peers to say that they have all they need. */
#define BYE_NS UINT64_C(1000000000)
/* A connection that broke is opened again by both sides, by the higher rank if the lower one has not done so by then. */
#define RETRY_NS UINT64_C(50000000)
/* Between two tries to connect: two that are refused in a row tell that a peer is gone, which is to be known soon. */
#define PAUSE_MOST_MS 300

/* ---- Watching sockets ---- */

void tcp_watch(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    uint32_t usual = EPOLLIN | EPOLLERR;
    uint32_t wish = (channel->heard_bye ? 0u : EPOLLIN) | (keep_unsent(&channel->keep) ? EPOLLOUT : 0u) | EPOLLERR;
    struct epoll_event event = {.events = wish, .data.ptr = channel};
    if (wish == channel->watched || channel->fd < 0) return;
    if (tcp->alone == channel && wish == usual && channel->meet.state == MEET_OPEN) return;
    (void)epoll_ctl(tcp->epoll, channel->watched ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, channel->fd, &event);
    channel->watched = wish;
    if (tcp->alone == channel) tcp->alone = NULL;
}

/* What comes by a socket in an epoll set is told to the set, too, while its receiver waits for the lock: 5 % of a round trip. A peer that
 * talks alone is looked at each time, so its socket can do without; another thread, which sleeps on the set, cannot. */
static void watch_not(struct tcp *tcp, struct tcp_channel *channel)
{
    bool may = !tcp->pml->rt->threaded && !tcp->most && !tcp->ending && channel->meet.state == MEET_OPEN &&
               channel->watched == (EPOLLIN | EPOLLERR);
    if (!may || epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, channel->fd, NULL)) return;
    channel->watched = 0;
    tcp->alone = channel;
}

static void watch_all(struct tcp *tcp)
{
    struct tcp_channel *channel = tcp->alone;
    tcp->alone = NULL;
    tcp->hot_finds = 0;
    if (channel) tcp_watch(channel);
}

/* A child that was just forked may hold the socket a moment longer, which then stays in the set. */
void tcp_close(struct tcp *tcp, int fd)
{
    if (fd < 0) return;
    (void)epoll_ctl(tcp->epoll, EPOLL_CTL_DEL, fd, NULL);
    base_process_close(fd);
}

static bool is_there(int fd)
{
    return fd >= 0 && !base_process_own_fd(fd);
}

/* Beside connections: what is not one yet, and calls of other threads. */
static bool begin_watching(struct tcp *tcp)
{
    struct epoll_event strangers = {.events = EPOLLIN, .data.ptr = NULL}, calls = {.events = EPOLLIN, .data.ptr = &tcp->call};
    tcp->call.kind = TCP_CALL;
    tcp->call.fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    tcp->epoll = epoll_create1(EPOLL_CLOEXEC);
    return is_there(tcp->epoll) && is_there(tcp->call.fd) && !epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, oob_fd(tcp->oob), &strangers) &&
           !epoll_ctl(tcp->epoll, EPOLL_CTL_ADD, tcp->call.fd, &calls);
}

void tcp_wake(const struct tcp *tcp)
{
    (void)!eventfd_write(tcp->call.fd, 1);
}

/* One call is answered by a look at everything, whatever it was for. */
static bool take_call(const struct tcp *tcp, const enum tcp_kind *kind)
{
    eventfd_t calls;
    return kind && *kind == TCP_CALL && !eventfd_read(tcp->call.fd, &calls);
}

int tcp_all_sockets(struct tcp *tcp)
{
    if (!tcp->pml->rt->threaded) watch_all(tcp); /* else all are */
    return tcp->epoll;
}

/* Sockets stay as they are, the next poll looks. */
bool tcp_block(struct tcp *tcp, uint64_t ns)
{
    struct timespec time = {.tv_sec = (time_t)(ns / BASE_NS_PER_S), .tv_nsec = (long)(ns % BASE_NS_PER_S)};
    struct pollfd all = {.fd = tcp_all_sockets(tcp), .events = POLLIN};
    return ppoll(&all, 1, &time, NULL) > 0;
}

/* ---- Start and end ---- */

/* Strangers, and attempts of peers that were given up because ours won. */
static void say(void *arg, const char *line)
{
    (void)arg;
    base_log(AREA_TCP, LOG_INFO, "%s", line);
}

static int listen_here(struct tcp *tcp)
{
    struct ncclx_rt *rt = tcp->pml->rt;
    struct oob_identity identity = {
        .job = rt->job.id, .position = (uint32_t)rt->job.rank, .positions = (uint32_t)rt->job.size, .trust = OOB_CARDS};
    struct oob_options options = {.say = say, .pause_most_ms = PAUSE_MOST_MS};
    struct tcp_card card;
    const char *range = rt->config.value[CONFIG_PORT_RANGE].text;
    if (range && *range && oob_ports_parse(range, &options.port_low, &options.port_high))
        return base_error_context(NCCLX_ERR_CONFIG, "NCCLX_PORT_RANGE");
    int error = oob_key_pair(identity.public_key, identity.private_key);
    if (!error) error = oob_create(&identity, &options, &tcp->oob);
    memcpy(card.key, identity.public_key, sizeof card.key);
    oob_wipe(&identity, sizeof identity);
    if (!error && oob_listen(tcp->oob))
        error = base_error_context(NCCLX_ERR_UNREACHABLE, options.port_low ? "NCCLX_PORT_RANGE, of which each rank of a host needs one port" : "tcp");
    if (!error && !begin_watching(tcp)) error = base_error(NCCLX_ERR_LIMIT, "no descriptor for sockets: %s", strerror(errno));
    if (!error) error = oob_addresses(tcp->oob, NULL, &card.addresses);
    if (error) return error;
    tcp_room_start(tcp);
    card.offer = lanes_offer;
    card.offer.lanes = tcp->offered = tcp_lanes_here(tcp);
    return tcp_card_publish(rt, &card);
}

int tcp_start(struct pml *pml)
{
    struct tcp *tcp = base_calloc(AREA_TCP, 1, sizeof *tcp);
    if (!tcp) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    tcp->pml = pml;
    tcp->epoll = tcp->call.fd = -1;
    tcp_pipes_init(&tcp->pipes);
    tcp->awaits = 1;
    pml->tcp = tcp;
    int error = tcp_trouble_parse(pml->rt->config.value[CONFIG_LANE_TROUBLE].text, &tcp->trouble);
    if (!error) error = listen_here(tcp);
    if (error) tcp_stop(pml);
    return error;
}

bool tcp_part(struct tcp_channel *channel)
{
    static const struct pml_packet bye = {.kind = TCP_BYE};
    static const struct pml_payload none = {0};
    channel->said_bye = channel->said_bye || tcp_send(channel, &bye, &none);
    return channel->said_bye && tcp_flush(channel) && channel->heard_bye;
}

/* Those at rest owe each other nothing; those that are about to open are opened, or the peer would miss us. */
static bool has_said_bye(struct tcp_channel *channel)
{
    enum meet_state state = channel->meet.state;
    if (channel->lost) return true;
    if (!meet_talks(&channel->meet)) return !channel->broken && (state == MEET_IDLE || state == MEET_OPENING);
    return tcp_part(channel);
}

static bool all_said_bye(struct tcp *tcp)
{
    bool all = true;
    for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) all = has_said_bye(channel) && all;
    return all;
}

static int look_at_all(struct tcp *tcp);

/* A socket that is closed with something unread in it takes back what the peer has not read yet: so both say goodbye.
 */
static void say_bye(struct tcp *tcp)
{
    uint64_t until = base_clock_ns() + BYE_NS;
    tcp->ending = true;
    watch_all(tcp);
    while (!all_said_bye(tcp) && base_clock_ns() < until && !atomic_load(&tcp->pml->rt->aborting)) {
        look_at_all(tcp);
        if (!all_said_bye(tcp)) tcp_block(tcp, 1000000);
    }
}

void tcp_stop(struct pml *pml)
{
    struct tcp *tcp = pml->tcp;
    if (!tcp) return;
    say_bye(tcp);
    for (struct tcp_channel *channel; (channel = tcp->first);) {
        tcp->first = channel->next;
        tcp_close(tcp, channel->fd);
        tcp_lanes_free(channel);
        bootstrap_fetch_leave(channel->fetch);
        base_free(AREA_TCP, channel->card);
        base_free(AREA_TCP, channel->in);
        keep_release(&channel->keep);
        if (channel->message) pml_message_put(pml, channel->message);
        base_free(AREA_TCP, channel);
    }
    if (tcp->oob) oob_destroy(tcp->oob);
    base_process_close(tcp->epoll);
    base_process_close(tcp->call.fd);
    tcp_pipes_release(&tcp->pipes);
    base_free(AREA_TCP, tcp);
    pml->tcp = NULL;
}

void tcp_lost(struct tcp_channel *channel, const char *why)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->lost) return;
    channel->lost = true;
    tcp_retry_not(channel);
    tcp_socket_close(channel);
    tcp_pending(channel);
    tcp_lanes_close(channel);
    if (!tcp->ending) base_rt_peer_lost(tcp->pml->rt, channel->connection->rank, why);
    lanes_lost(channel->connection);
}

void tcp_broke(struct tcp_channel *channel, const char *why)
{
    if (channel->lost) return;
    if (channel->heard_bye) { /* and has ended */
        tcp_lost(channel, why);
        return;
    }
    base_log(AREA_TCP, LOG_INFO, "the connection to rank %d broke: %s", channel->connection->rank, why);
    channel->broken = channel->broken || meet_talks(&channel->meet);
    tcp_socket_close(channel);
    meet_ended(&channel->meet);
    tcp_pending(channel);
    tcp_retry(channel, channel->meet.lower ? 0 : RETRY_NS);
}

/* ---- Connections ---- */

static int connect_to(struct pml *pml, struct pml_connection *connection)
{
    struct tcp *tcp = pml->tcp;
    if (!tcp) return base_error(NCCLX_ERR_UNREACHABLE, "this rank has no tcp transport");
    struct tcp_channel *channel = base_calloc(AREA_TCP, 1, sizeof *channel);
    if (!channel) return base_error(NCCLX_ERR_NO_MEM, "no memory for the connection to rank %d", connection->rank);
    int error = lanes_make(connection, &tcp_lane_transport);
    if (error) {
        base_free(AREA_TCP, channel);
        return error;
    }
    int64_t wish = pml->rt->config.value[CONFIG_EAGER_LIMIT].number;
    size_t limit = wish > 0 ? (size_t)wish : EAGER_LIMIT;
    channel->connection = connection;
    channel->fd = -1;
    channel->meet.lower = pml->rt->job.rank < connection->rank;
    channel->next = tcp->first;
    tcp->first = channel;
    connection->channel = channel;
    connection->payload_max = TCP_PAYLOAD_MAX;
    connection->lend_above = TCP_EAGER_MAX;
    connection->stream_piece = TCP_PIECE_MAX;
    connection->route.eager_limit = limit < TCP_EAGER_MAX ? limit : TCP_EAGER_MAX;
    connection->route.can_write = true; /* over lanes */
    connection->choose_above = wish > 0 ? SIZE_MAX : EAGER_LIMIT_BUSY;
    connection->announce_threshold = (wish > 0 ? connection->route.eager_limit : EAGER_LIMIT_BUSY) + 1;
    connection->probed = true;
    return NCCLX_SUCCESS;
}

/* Channels end with the transport, after their goodbyes. */
static void disconnect(struct pml *pml, struct pml_connection *connection)
{
    (void)pml, (void)connection;
}

static void choose(struct pml_connection *connection, size_t bytes)
{
    const struct keep *keep = &((const struct tcp_channel *)connection->channel)->keep;
    bool busy = keep->end - keep->acked > EAGER_LIMIT_BUSY;
    connection->route.eager_limit = busy ? EAGER_LIMIT_BUSY : EAGER_LIMIT;
    if (bytes > EAGER_LIMIT && !busy && lanes_idle(connection) && !connection->requested) connection->route.eager_limit = TCP_LONG_MAX;
    connection->route.first = busy ? 0 : FIRST_BYTES;
}

static bool eager(struct pml_connection *connection, uint64_t context, int source, int tag, const void *data,
                  size_t bytes)
{
    const struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = context, .source = source, .tag = tag};
    const struct pml_payload payload = {.first = data, .first_bytes = bytes};
    return tcp_send(connection->channel, &packet, &payload);
}

static bool lend(struct pml_connection *connection, const struct pml_packet *packet, struct pml_request *send)
{
    return tcp_lend(connection->channel, packet, send);
}

static bool post(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload)
{
    return tcp_send(connection->channel, packet, payload);
}

static int post_many(struct pml_connection *connection, const struct pml_post *first)
{
    return tcp_send_many(connection->channel, first);
}

/* Nobody but its owner reaches the memory of a process on another host. */
static void probe(struct pml_connection *connection)
{
    (void)connection;
}

static int no_copy(const struct pml_connection *connection)
{
    return base_error(NCCLX_ERR_UNSUPPORTED, "the memory of rank %d is out of reach", connection->rank);
}

static int read_from(struct pml_connection *connection, void *to, uint64_t address, size_t bytes, uint64_t name)
{
    (void)to, (void)address, (void)bytes, (void)name;
    return no_copy(connection);
}

static int write_to(struct pml_connection *connection, const void *from, uint64_t address, size_t bytes, uint64_t name)
{
    (void)from, (void)address, (void)bytes, (void)name;
    return no_copy(connection);
}

static void fail(struct pml_connection *connection, const char *why)
{
    tcp_lost(connection->channel, why);
}

/* Not behind the question whether it may rest, nor the answer. One that rests, and may have ended, hears it when somebody needs the connection
 * again. */
static bool tell(struct pml_connection *connection, enum protocol_kind kind)
{
    struct tcp_channel *channel = connection->channel;
    if (channel->lost || channel->said_bye) return true; /* nothing more comes */
    if (channel->meet.state == MEET_RESTING || channel->meet.state == MEET_LEAVING) return false;
    return tcp_say(channel, kind, 0);
}

/* ---- Progress ---- */

static int look_at_channel(struct tcp *tcp, struct tcp_channel *channel, uint32_t events)
{
    if (channel->lost) return 0;
    if (channel->meet.state == MEET_CONNECTED || channel->meet.state == MEET_KEPT) {
        tcp_greeting(channel);
        return 1;
    }
    if (events & EPOLLOUT) tcp_flush(channel);
    if (channel->meet.state == MEET_LEAVING && events & (EPOLLERR | EPOLLHUP)) tcp_rest(channel);
    if (!meet_talks(&channel->meet) || channel->lost || !(events & (EPOLLIN | EPOLLERR | EPOLLHUP))) return 0;
    if (tcp->hot != channel) watch_all(tcp);
    tcp->hot = channel;
    return tcp_receive(channel);
}

static int look_at(struct tcp *tcp, const struct epoll_event *event)
{
    const enum tcp_kind *kind = event->data.ptr;
    if (*kind == TCP_CONTROL) return look_at_channel(tcp, event->data.ptr, event->events);
    if (*kind == TCP_LANE_OUT) {
        tcp->hot_out = event->data.ptr;
        tcp->idle_out = 0;
        return tcp_out_look(event->data.ptr, event->events & EPOLLOUT);
    }
    tcp->hot_in = event->data.ptr;
    tcp->idle_in = 0;
    return tcp_in_look(event->data.ptr, event->events & EPOLLOUT);
}

/* Packets before data, which takes longer: a small message does not wait for segments of others. */
static int look_at_ready(struct tcp *tcp, const struct epoll_event *events, int count, bool *others)
{
    int found = 0;
    for (int i = 0; i < count; i++) {
        const enum tcp_kind *kind = events[i].data.ptr;
        *others = *others || !kind || take_call(tcp, kind);
        if (kind && *kind == TCP_CONTROL) found += look_at(tcp, &events[i]);
    }
    for (int i = 0; i < count; i++) {
        const enum tcp_kind *kind = events[i].data.ptr;
        if (!kind || *kind == TCP_CONTROL || *kind == TCP_CALL) continue;
        found += look_at(tcp, &events[i]);
        if (tcp->hot) found += tcp_look(tcp->hot);
    }
    return found;
}

static void awaited(struct pml_connection *connection)
{
    struct tcp_channel *channel = connection->channel;
    struct tcp *tcp = connection->pml->tcp;
    bool still = channel->awaited + 1 == tcp->awaits;
    channel->awaited = tcp->awaits;
    if (still && channel->meet.state == MEET_IDLE && tcp_room_to_spare(tcp)) tcp_open(channel);
}

static int look_at_all(struct tcp *tcp)
{
    struct epoll_event events[16];
    bool others = false;
    tcp->looks++;
    int count = epoll_wait(tcp->epoll, events, 16, 0), found = look_at_ready(tcp, events, count, &others);
    if (unlikely(tcp->trim)) tcp_room_trim(tcp);
    uint64_t now = base_clock_ns();
    if (unlikely(now - tcp->awaited_ns > AWAIT_NS) && !tcp->ending) {
        tcp->awaited_ns = now;
        tcp->awaits++;
        pml_await(tcp->pml, &transport_tcp, awaited);
        tcp_room_give_back(tcp);
    }
    if (!others && !((tcp->unsettled || tcp->crowded) && now - tcp->looked_ns > OPEN_LOOK_NS) && now < oob_deadline(tcp->oob))
        return found;
    tcp->looked_ns = now;
    return found + tcp_open_poll(tcp, now);
}

/* Sockets that something came from lately, without asking which have something. */
static int look_at_hot(struct tcp *tcp)
{
    int events = tcp->hot ? tcp_look(tcp->hot) : 0;
    if (tcp->pending && tcp->hot && tcp->hot->pending && tcp->hot->meet.state == MEET_OPEN) tcp_flush(tcp->hot);
    if (events && tcp->hot && ++tcp->hot_finds % ALONE_AFTER == 0 && !tcp->alone) watch_not(tcp, tcp->hot);
    if (tcp->hot_in) {
        int found = tcp_in_look(tcp->hot_in, false);
        tcp->idle_in = found ? 0 : tcp->idle_in + 1;
        if (tcp->idle_in > IDLE_LOOKS) tcp->hot_in = NULL;
        events += found;
    }
    if (tcp->hot_out) {
        int found = tcp_out_look(tcp->hot_out, tcp->hot_out->head != tcp->hot_out->tail);
        tcp->idle_out = found ? 0 : tcp->idle_out + 1;
        if (tcp->idle_out > IDLE_LOOKS) tcp->hot_out = NULL;
        events += found;
    }
    return events;
}

static int poll_all(struct pml *pml)
{
    struct tcp *tcp = pml->tcp;
    if (unlikely(tcp->alone != NULL) && pml->rt->threaded) watch_all(tcp);
    int events = look_at_hot(tcp);
    bool hot = tcp->hot || tcp->hot_in || tcp->hot_out;
    return hot && ++tcp->turn % LOOK_EVERY ? events : events + look_at_all(tcp);
}

void tcp_look_everywhere(struct tcp *tcp)
{
    tcp->turn = LOOK_EVERY - 1;
}

bool tcp_drained(const struct pml *pml)
{
    return !pml->tcp || !pml->tcp->pending;
}

const struct transport transport_tcp = {
    .name = "tcp",
    .connect = connect_to,
    .disconnect = disconnect,
    .choose = choose,
    .eager = eager,
    .lend = lend,
    .post = post,
    .post_many = post_many,
    .probe = probe,
    .read = read_from,
    .write = write_to,
    .fail = fail,
    .tell = tell,
    .in_flight = KEEP_MAX + KEEP_LENT_MAX + TCP_IN_BYTES, /* not acknowledged; acknowledged, and not looked at */
    .poll = poll_all,
    .hold = tcp_hold,
};
