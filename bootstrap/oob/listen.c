/* listen.c - who comes: listening sockets, and strangers until they are known or gone. */
#include "config.h"

#include "bootstrap/oob/endpoint.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <inttypes.h>
#include <netinet/in.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define ACCEPT_BATCH 32 /* in one go, so that a crowd does not keep others waiting */
#define BACKLOG 4096    /* the system takes less if net.core.somaxconn says so */
#define NS_PER_MS UINT64_C(1000000)
#define LEAVING_NS (500 * NS_PER_MS)            /* for the refusal to arrive */
#define OUT_OF_DESCRIPTORS_NS (100 * NS_PER_MS) /* before the next look at the door */

/* Reasons beyond those of the handshake. */
enum { REMARK_SILENT = SHAKE_TROUBLE_COUNT, REMARK_CROWD, REMARK_BROKEN, REMARK_DESCRIPTORS };

/* ---- Lines ---- */

static void say(struct oob *oob, const char *line)
{
    if (oob->options.say)
        oob->options.say(oob->options.say_arg, line);
    else
        base_log(AREA_BOOTSTRAP, LOG_WARN, "%s", line);
}

static void remark(struct oob *oob, unsigned what, const struct oob_address *address, const char *text)
{
    char line[192], place[OOB_ADDRESS_TEXT];
    struct oob_address host = *address;
    unsigned kind = what ? what : REMARK_BROKEN;
    host.port = 0;
    oob_address_text(&host, place);
    place[strlen(place) - 2] = 0; /* ":0" */
    snprintf(line, sizeof line, "a connection from %s was dropped: it %s", place, text);
    if (remarks_add(&oob->remarks, kind, address->bytes, line, oob->now)) say(oob, line);
}

static void say_repeats(struct oob *oob, bool all)
{
    struct remark remark;
    char line[256];
    while (remarks_take(&oob->remarks, oob->now, all, &remark)) {
        if (!remark.repeats) continue;
        snprintf(line, sizeof line, "%s (%" PRIu64 " more times)",
                 remark.text[0] ? remark.text : "connections from many other addresses were dropped", remark.repeats);
        say(oob, line);
    }
}

/* ---- Strangers ---- */

static void drop(struct oob *oob, struct guest_line *guest)
{
    endpoint_remove_item(oob, guest->id);
    guests_release(&oob->guests, guest->place);
    oob->room_again = true;
    oob->guest_lines[guest->place] = NULL;
    line_close(&guest->line);
    base_free(AREA_BOOTSTRAP, guest);
}

static void explain(struct oob *oob, struct guest_line *guest, int error)
{
    char text[160];
    if (error) {
        snprintf(text, sizeof text, "broke off: %s", strerror(error));
        remark(oob, REMARK_BROKEN, &guest->line.address, text);
        return;
    }
    shake_explain(&guest->line.shake, text, sizeof text);
    remark(oob, guest->line.shake.trouble, &guest->line.address, text);
}

bool listen_make_room(struct oob *oob)
{
    int place = guests_victim(&oob->guests, oob->now);
    if (place < 0) return false;
    struct guest_line *guest = oob->guest_lines[place];
    if (oob->guest_list[place].standing != GUEST_LEAVING)
        remark(oob, REMARK_CROWD, &guest->line.address, "had not said who it is, and others wait for its place");
    drop(oob, guest);
    return true;
}

static void ask_for_key(struct oob *oob, struct guest_line *guest)
{
    if (guest->asked) return;
    struct oob_event *event = endpoint_add_event(oob, OOB_WANT_KEY);
    if (!event) {
        drop(oob, guest);
        return;
    }
    guest->asked = true;
    event->id = guest->id;
    event->peer = guest->line.shake.peer;
    event->address = guest->line.address;
}

void listen_guest(struct oob *oob, struct guest_line *guest)
{
    int error;
    struct line *line = &guest->line;
    struct oob_event *event;
    switch (line_go(oob, guest->id, line, &error)) {
    case LINE_GOING:
        if (line->shake.proven) guests_standing(&oob->guests, guest->place, GUEST_PROVEN);
        if (line->shake.state == SHAKE_WANTS_KEY) ask_for_key(oob, guest);
        return;
    case LINE_LEAVING:
        if (oob->guest_list[guest->place].standing == GUEST_LEAVING) return;
        explain(oob, guest, 0);
        guests_standing(&oob->guests, guest->place, GUEST_LEAVING);
        guests_hurry(&oob->guests, guest->place, oob->now + LEAVING_NS);
        return;
    case LINE_DONE:
        event = endpoint_add_event(oob, OOB_ACCEPTED);
        if (event) line_hand_over(oob, line, event);
        drop(oob, guest);
        return;
    case LINE_FAILED:
        if (oob->guest_list[guest->place].standing != GUEST_LEAVING) explain(oob, guest, error);
        drop(oob, guest);
    }
}

void oob_give_key(struct oob *oob, uint64_t id, const unsigned char *key)
{
    struct item *item = endpoint_item(oob, id);
    if (!item || item->kind != ITEM_GUEST) return;
    shake_give_key(&item->guest->line.shake, key);
    listen_guest(oob, item->guest);
}

/* Takes the socket. */
static void admit(struct oob *oob, int fd, const struct sockaddr_storage *from)
{
    unsigned char random[OOB_KEY_BYTES];
    struct guest_line *guest = base_calloc(AREA_BOOTSTRAP, 1, sizeof *guest);
    if (guest) guest->id = endpoint_add_item(oob, (struct item){.kind = ITEM_GUEST, .guest = guest});
    if (!guest || !guest->id || !endpoint_watch(oob, fd, guest->id, EPOLLIN, false)) {
        if (guest) endpoint_remove_item(oob, guest->id);
        base_free(AREA_BOOTSTRAP, guest);
        base_process_close(fd); /* it will come again */
        return;
    }
    guest->line.fd = fd;
    guest->line.watched = EPOLLIN;
    address_from_system((const struct sockaddr *)from, &guest->line.address);
    line_options(fd);
    uint64_t until = oob->now + oob->options.handshake_ms * NS_PER_MS;
    while ((guest->place = guests_admit(&oob->guests, oob->now, until)) < 0) listen_make_room(oob);
    oob->guest_lines[guest->place] = guest;
    oob_random(random, sizeof random);
    shake_accept(&guest->line.shake, &oob->self, random);
    oob_wipe(random, sizeof random);
    listen_guest(oob, guest); /* most have said something already */
}

/* ---- The door ---- */

/* Until a time; 0: goes on. */
static void pause_listening(struct oob *oob, uint64_t until)
{
    bool pause = until > 0;
    if (oob->listening_paused == pause) return;
    oob->listening_paused = pause;
    oob->room_again = false;
    oob->listen_again = until;
    for (size_t i = 0; i < oob->listener_count; i++)
        endpoint_watch(oob, oob->listeners[i].fd, oob->listeners[i].id, pause ? 0 : EPOLLIN, true);
}

/* Nobody is left to make room: the spare descriptor lets one in, who is sent away, so that he does not stay in front of
 * the door and wake us for ever. */
static void turn_away(struct oob *oob, struct listener *listener)
{
    static const struct oob_address nobody = {.family = 4};
    if (oob->spare >= 0) close(oob->spare);
    int fd = accept4(listener->fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (fd >= 0) close(fd);
    oob->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (remarks_add(&oob->remarks, REMARK_DESCRIPTORS, nobody.bytes, "no descriptor was free for a connection",
                    oob->now))
        say(oob, "no descriptor is free for a connection: raise the limit of open files (ulimit -n)");
    pause_listening(oob, oob->now + OUT_OF_DESCRIPTORS_NS);
}

/* Whether to go on accepting. */
static bool accept_failed(struct oob *oob, struct listener *listener, int error)
{
    if (error == EMFILE || error == ENFILE) {
        oob->was_short = true;
        if (listen_make_room(oob)) return true;
        turn_away(oob, listener);
        return false;
    }
    if (error == ENOBUFS || error == ENOMEM) {
        pause_listening(oob, oob->now + OUT_OF_DESCRIPTORS_NS);
        return false;
    }
    /* The rest is about the one who came and has gone again, see accept(2), or about nobody. */
    return error != EAGAIN && error != EWOULDBLOCK;
}

void listen_ready(struct oob *oob, struct listener *listener)
{
    if (oob->listening_paused) return;
    for (int i = 0; i < ACCEPT_BATCH; i++) {
        struct sockaddr_storage from = {0};
        socklen_t length = sizeof from;
        uint64_t room_at = guests_room_at(&oob->guests, oob->now);
        if (room_at) { /* all are about to be known: others wait outside */
            pause_listening(oob, room_at);
            return;
        }
        int fd = endpoint_own(accept4(listener->fd, (struct sockaddr *)&from, &length, SOCK_CLOEXEC | SOCK_NONBLOCK));
        if (fd >= 0)
            admit(oob, fd, &from);
        else if (!accept_failed(oob, listener, errno))
            return;
    }
}

void listen_tick(struct oob *oob)
{
    int place;
    while ((place = guests_expired(&oob->guests, oob->now)) >= 0) {
        struct guest_line *guest = oob->guest_lines[place];
        if (oob->guest_list[place].standing != GUEST_LEAVING)
            remark(oob, REMARK_SILENT, &guest->line.address, "did not say who it is in time");
        drop(oob, guest);
    }
    if (oob->listening_paused && (oob->now >= oob->listen_again || oob->room_again)) pause_listening(oob, 0);
    say_repeats(oob, false);
}

uint64_t listen_deadline(const struct oob *oob)
{
    uint64_t deadline = guests_deadline(&oob->guests), remarks = remarks_deadline(&oob->remarks);
    if (remarks < deadline) deadline = remarks;
    if (oob->listening_paused && oob->room_again) return 0;
    return oob->listening_paused && oob->listen_again < deadline ? oob->listen_again : deadline;
}

/* ---- Opening and closing it ---- */

/* One socket at this address and port, listening. -1 with errno. */
static int open_port(const struct oob_address *address, bool both)
{
    struct sockaddr_storage storage;
    socklen_t length = address_to_system(address, &storage);
    int on = 1, only = !both, fd = endpoint_own(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (fd < 0) return -1;
    setsockopt(fd, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on); /* ended connections do not keep the port */
    if (address->family == 6) setsockopt(fd, IPPROTO_IPV6, IPV6_V6ONLY, &only, sizeof only);
    if (!bind(fd, (struct sockaddr *)&storage, length) && !listen(fd, BACKLOG)) return fd;
    int error = errno;
    base_process_close(fd);
    errno = error;
    return -1;
}

/* Somewhere in the range, from a random place on, so that jobs that start together do not try the same ports. */
static int open_in_range(const struct oob *oob, struct oob_address *address, bool both)
{
    unsigned low = oob->options.port_low, count = (unsigned)oob->options.port_high - low + 1, begin;
    if (!low) {
        address->port = 0;
        return open_port(address, both);
    }
    oob_random(&begin, sizeof begin);
    for (unsigned i = 0; i < count; i++) {
        address->port = (uint16_t)(low + (begin % count + i) % count);
        int fd = open_port(address, both);
        if (fd >= 0 || (errno != EADDRINUSE && errno != EACCES)) return fd;
    }
    return -1;
}

static int add_listener(struct oob *oob, const struct oob_address *address, bool wildcard, bool both)
{
    struct listener *listener = &oob->listeners[oob->listener_count];
    struct sockaddr_storage storage;
    struct oob_address bound = {0};
    socklen_t length = sizeof storage;
    *listener = (struct listener){.address = *address, .wildcard = wildcard, .both = both};
    listener->fd = open_in_range(oob, &listener->address, both);
    if (listener->fd < 0) return errno;
    listener->id = endpoint_add_item(oob, (struct item){.kind = ITEM_LISTENER, .listener = (int)oob->listener_count});
    if (!listener->id || getsockname(listener->fd, (struct sockaddr *)&storage, &length) ||
        !endpoint_watch(oob, listener->fd, listener->id, EPOLLIN, false)) {
        int error = listener->id ? errno : ENOMEM;
        endpoint_remove_item(oob, listener->id);
        base_process_close(listener->fd);
        return error;
    }
    address_from_system((struct sockaddr *)&storage, &bound);
    listener->address.port = bound.port;
    oob->listener_count++;
    return 0;
}

/* IPv6 and IPv4 through one socket, or IPv4 alone where the other is switched off. */
static int listen_everywhere(struct oob *oob)
{
    const struct oob_address six = {.family = 6}, four = {.family = 4};
    int error = add_listener(oob, &six, true, true);
    return error == EAFNOSUPPORT || error == EADDRNOTAVAIL ? add_listener(oob, &four, true, false) : error;
}

static int listen_on_networks(struct oob *oob)
{
    struct address_here *list;
    size_t count;
    int error = EADDRNOTAVAIL;
    if (address_list_here(&list, &count)) return ENOMEM;
    for (size_t i = 0; i < count && oob->listener_count < OOB_MAX_ADDRESSES; i++)
        if (address_in_networks(&list[i], oob->options.networks))
            error = add_listener(oob, &list[i].address, false, false);
    base_free(AREA_BOOTSTRAP, list);
    return oob->listener_count ? 0 : error;
}

int oob_listen(struct oob *oob)
{
    if (oob->listener_count) return NCCLX_SUCCESS;
    const struct oob_options *options = &oob->options;
    int error = options->networks ? listen_on_networks(oob) : listen_everywhere(oob);
    if (!error) return NCCLX_SUCCESS;
    if (error == EADDRNOTAVAIL && options->networks)
        return base_error(NCCLX_ERR_UNREACHABLE, "no address of this host is of the networks %s", options->networks);
    if (options->port_low)
        return base_error(NCCLX_ERR_UNREACHABLE, "no port from %u to %u can be listened on: %s", options->port_low,
                          options->port_high, strerror(error));
    return base_error(NCCLX_ERR_UNREACHABLE, "listening for connections: %s", strerror(error));
}

void listen_close(struct oob *oob)
{
    for (size_t i = 0; i < oob->listener_count; i++) {
        endpoint_remove_item(oob, oob->listeners[i].id);
        base_process_close(oob->listeners[i].fd);
    }
    oob->listener_count = 0;
    for (size_t i = 0; oob->guest_lines && i < oob->guests.limit; i++)
        if (oob->guest_lines[i]) drop(oob, oob->guest_lines[i]);
    say_repeats(oob, true);
}

void oob_listen_end(struct oob *oob)
{
    listen_close(oob);
}

int oob_addresses(const struct oob *oob, const struct oob_address *towards, struct oob_addresses *addresses)
{
    struct address_here *list;
    struct oob_address source;
    size_t count;
    addresses->count = 0;
    int code = address_list_here(&list, &count);
    if (code) return code;
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        for (size_t j = 0; j < oob->listener_count; j++) {
            const struct listener *listener = &oob->listeners[j];
            bool reached = listener->wildcard ? listener->both || list[i].address.family == 4
                                              : address_same_host(&list[i].address, &listener->address);
            if (!reached) continue;
            list[kept] = list[i];
            list[kept++].address.port = listener->address.port;
            break;
        }
    }
    count = kept;
    static const struct oob_address far = {.family = 4, .bytes = {192, 0, 2, 1}}; /* of documentation, RFC 5737 */
    bool known = address_route(towards ? towards : &far, &source);
    address_order(list, &count, known ? &source : NULL);
    for (size_t i = 0; i < count && i < OOB_MAX_ADDRESSES; i++) addresses->list[addresses->count++] = list[i].address;
    base_free(AREA_BOOTSTRAP, list);
    if (!addresses->count) return base_error(NCCLX_ERR_UNREACHABLE, "this host has no address to be reached at");
    return NCCLX_SUCCESS;
}
