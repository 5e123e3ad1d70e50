/* room.c - where the process may have fewer descriptors than it has peers: connections that were not used for longest and
 * carry nothing make room for others, by agreement with the peer (meet.h), and open again when they are needed.
 *
 * Each connection has one lane in either direction then, and is counted with them, so that one that is open can always go on. Half of the
 * places may be taken by attempts of ours: the other half is for peers, or all would wait for each other. A peer that
 * comes when there is no room is sent away, and comes again.
 *
 * Buffers of connections are there while they are used, however many descriptors there are. */
#include "pml/tcp/tcp.h"

#include "pml/lanes/lanes.h"

#include <string.h>
#include <sys/resource.h>

/* Descriptors for handshakes, and for what the program opens later. */
#define RESERVE 6
#define LEAST 2
/* Asked at a time. */
#define ASKED_MOST 8
/* A peer that has said no is not asked again before. */
#define REFUSED_NS UINT64_C(20000000)
/* In use, where that cannot be seen. */
#define DESCRIPTORS_GUESSED 32

void tcp_room_start(struct tcp *tcp)
{
    struct rlimit limit;
    unsigned peers = (unsigned)tcp->pml->rt->job.size - 1, used = base_process_descriptors(DESCRIPTORS_GUESSED) + RESERVE;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur == RLIM_INFINITY) return;
    rlim_t left = limit.rlim_cur > used ? limit.rlim_cur - used : 0, most = left / (1 + 2);
    if (left / (1 + 2 * tcp_lanes_most(limit.rlim_cur, peers)) >= peers) return;
    tcp->most = most < LEAST ? LEAST : (unsigned)most;
    base_log(AREA_TCP, LOG_INFO, "%llu descriptors, %u used: connections to %u of %u peers at a time", (unsigned long long)limit.rlim_cur,
             used, tcp->most, peers);
}

/* ---- Is there room? ---- */

struct count {
    unsigned all, ours, waiting, asked; /* with a socket or an attempt; attempts; that want one; about to rest */
};

static struct count count_all(const struct tcp *tcp)
{
    struct count count = {0, 0, 0, 0};
    for (const struct tcp_channel *channel = tcp->first; channel; channel = channel->next) {
        enum meet_state state = channel->meet.state;
        count.all += state != MEET_IDLE && !channel->lost;
        count.ours += (state == MEET_OPENING || state == MEET_CONNECTED) && !channel->lost;
        count.asked += state == MEET_RESTING || state == MEET_LEAVING;
        count.waiting += channel->waits_for_room;
    }
    return count;
}

bool tcp_room_to_open(struct tcp *tcp)
{
    if (likely(!tcp->most)) return true;
    struct count count = count_all(tcp);
    tcp->crowded = tcp->crowded || count.all >= tcp->most;
    return count.all < tcp->most && count.ours < tcp->most / 2;
}

bool tcp_room_to_spare(const struct tcp *tcp)
{
    return !tcp->most || count_all(tcp).all + 1 < tcp->most;
}

bool tcp_room_to_accept(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (likely(!tcp->most) || channel->meet.state != MEET_IDLE || count_all(tcp).all < tcp->most) return true;
    tcp->crowded = tcp->sent_away = true;
    return false;
}

/* ---- Who makes room ---- */

static bool is_quiet(const struct tcp_channel *channel)
{
    const struct pml_connection *connection = channel->connection;
    return !connection->first_post && !connection->first_stream && !keep_unsent(&channel->keep) && !channel->left && !channel->lender &&
           lanes_idle(connection);
}

static struct tcp_channel *choose(const struct tcp *tcp, uint64_t now)
{
    struct tcp_channel *best = NULL;
    for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) {
        if (channel->meet.state != MEET_OPEN || channel->lost || channel->heard_bye || !is_quiet(channel)) continue;
        if (channel->refused_ns && now - channel->refused_ns < REFUSED_NS) continue;
        if (!best || tcp->looks - channel->used > tcp->looks - best->used) best = channel;
    }
    return best;
}

/* Its lanes first; then, with the answer, itself. */
static void ask(struct tcp_channel *channel, uint64_t now)
{
    if (!lanes_rest(channel->connection)) channel->refused_ns = now - REFUSED_NS / 2;
    else if (meet_rest(&channel->meet) == MEET_ASK) tcp_say(channel, TCP_REST, channel->meet.name);
}

void tcp_room_short(struct tcp *tcp)
{
    unsigned all = count_all(tcp).all;
    tcp->most = all > LEAST ? all - 1 : LEAST;
    tcp->crowded = tcp->sent_away = true; /* a peer, or an attempt of ours */
}

/* A peer that has said goodbye ends, and answers no more: what leads to it can go once it has heard ours. */
static void part(struct tcp *tcp)
{
    for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) {
        bool over = channel->heard_bye && !channel->lost && meet_talks(&channel->meet) && is_quiet(channel);
        if (!over || !tcp_part(channel)) continue;
        tcp_lanes_close(channel);
        lanes_lost(channel->connection); /* nobody opens them again */
        tcp_rest(channel);
    }
}

void tcp_room_tick(struct tcp *tcp, uint64_t now)
{
    struct tcp_channel *channel;
    if (!tcp->most) return;
    if (tcp->crowded) part(tcp);
    struct count count = count_all(tcp);
    unsigned wanted = count.all + count.waiting + tcp->sent_away - count.asked;
    if (count.all < tcp->most) tcp->sent_away = false;
    tcp->crowded = wanted > tcp->most;
    for (unsigned i = count.asked; i < ASKED_MOST && wanted > tcp->most && (channel = choose(tcp, now)); i++, wanted--)
        ask(channel, now);
}

/* ---- Resting ---- */

void tcp_room_trim(struct tcp *tcp)
{
    tcp->trim = false;
    for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next)
        if (channel->meet.state == MEET_IDLE) tcp_lanes_trim(channel);
}

static void drop_buffer(struct tcp_channel *channel)
{
    base_free(AREA_TCP, channel->in);
    channel->in = NULL;
    channel->in_begin = channel->in_end = 0;
}

void tcp_room_give_back(struct tcp *tcp)
{
    for (struct tcp_channel *channel = tcp->first; channel; channel = channel->next) {
        bool idle = (int)(channel->used - tcp->idle_looks) < 0;
        if (!idle) continue;
        if (channel->in && channel->in_begin == channel->in_end && !channel->left) drop_buffer(channel);
        keep_trim(&channel->keep);
    }
    tcp->idle_looks = tcp->looks;
}

void tcp_rest(struct tcp_channel *channel)
{
    struct tcp *tcp = channel->connection->pml->tcp;
    if (channel->in_begin != channel->in_end) {
        tcp_lost(channel, "it goes on after it has asked for rest");
        return;
    }
    tcp_socket_close(channel);
    meet_ended(&channel->meet);
    drop_buffer(channel);
    keep_trim(&channel->keep);
    tcp->trim = true;
    tcp_pending(channel);
    base_log(AREA_TCP, LOG_INFO, "the connection to rank %d rests", channel->connection->rank);
}

void tcp_rest_arrived(struct tcp_channel *channel, enum tcp_own kind, uint64_t name)
{
    enum meet_action action;
    if (kind == TCP_REST) action = meet_asked(&channel->meet, name, is_quiet(channel) && lanes_rest(channel->connection));
    else action = meet_answered(&channel->meet, name, kind == TCP_REST_YES);
    if (action == MEET_YES) tcp_say(channel, TCP_REST_YES, name);
    if (action == MEET_NO) tcp_say(channel, TCP_REST_NO, name);
    if (action == MEET_CLOSE) tcp_rest(channel);
    if (action == MEET_USE) channel->refused_ns = base_clock_ns();
}
