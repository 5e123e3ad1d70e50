/* wiring.c - what tree.c decides, on real links, processes and time. */
#include "config.h"

#include "launcher/wiring.h"

#include "launcher/link.h"
#include "launcher/pulse.h"
#include "launcher/starter.h"
#include "runtime/base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#define WIRING_NAMELESS (-2)  /* a link whose other end has not greeted yet */
#define WIRING_LAST_MS 200    /* for what is queued on a link that is given up */
#define WIRING_FINISH_MS 1000 /* and at the end */
#define WIRING_PARTING_NS (BASE_NS_PER_S)
#define WIRING_CONTACT_BYTES TREE_MAX_CONTACT

struct connection {
    struct wiring *wiring;
    struct link *link;
    int name;     /* of the link */
    int position; /* whom the other end has proven to be */
    bool leaves;  /* its end is no surprise */
};

/* A connection that has closed, while the agent of its daemon is awaited for a moment: how that ends tells why. */
struct parting {
    struct parting *next;
    int name, position;
    bool surprise;
    uint64_t until;
    char why[256];
};

struct wiring {
    struct event_base *base;
    const struct order *order;
    struct wiring_events events;
    void *arg;
    bool local_root;
    int near; /* the link within this host; WIRING_NAMELESS: none */
    struct pulse pulse;
    struct tree *tree;
    struct oob *oob; /* null: nobody to connect to, or to be connected by */
    struct starter *starter;
    char contact[WIRING_CONTACT_BYTES]; /* where this place listens */
    struct connection **links;          /* by name: the one above, then those below */
    int below;
    struct event *timer, *sockets;
    struct parting *partings;
    unsigned char *notes; /* with a starter, by position: enum note */
    bool pumping, failed, ending;
};

enum note { NOTE_WAS_THERE = 1, NOTE_AGENT_FAILED = 2, NOTE_SWEPT = 4 };

static void take_note(struct wiring *wiring, int position, enum note note)
{
    if (wiring->notes && position >= 0) wiring->notes[position] |= (unsigned char)note;
}

static int position_of(const struct wiring *wiring, int link)
{
    const struct tree_options *tree = &wiring->order->tree;
    return link == TREE_PARENT ? tree_above(&tree->shape, tree->position)
                               : tree_child(&tree->shape, tree->position, link);
}

/* ---- Links ------------------------------------------------------------------------------------------------------ */

static void pump(struct wiring *wiring, int code);
static void arm(struct wiring *wiring);

static void forget(struct connection *connection)
{
    struct wiring *wiring = connection->wiring;
    if (connection->name != WIRING_NAMELESS) wiring->links[connection->name + 1] = NULL;
    link_close(connection->link);
    base_free(AREA_LAUNCHER, connection);
}

/* Everybody is in: the door is closed, and strangers find none. */
static void close_door(struct wiring *wiring)
{
    for (int i = 0; i < wiring->below; i++)
        if (!wiring->links[i + 1]) return;
    if (wiring->oob) oob_listen_end(wiring->oob);
}

static int greet(struct connection *connection, const struct frame *frame)
{
    struct wiring *wiring = connection->wiring;
    int name, code = tree_greet(wiring->tree, frame, base_clock_ns(), &name);
    if (code) return code;
    if (connection->position >= 0 && position_of(wiring, name) != connection->position) {
        tree_link_closed(wiring->tree, name, "it is not who it says it is", base_clock_ns());
        code = base_error(NCCLX_ERR_TRANSPORT, "a daemon greeted as another");
    } else {
        connection->name = name;
        connection->position = position_of(wiring, name);
        wiring->links[name + 1] = connection;
        if (wiring->starter) starter_greeted(wiring->starter, connection->position);
        take_note(wiring, connection->position, NOTE_WAS_THERE);
        close_door(wiring);
    }
    pump(wiring, NCCLX_SUCCESS);
    return code;
}

static int on_frame(void *arg, const struct frame *frame)
{
    struct connection *connection = arg;
    struct wiring *wiring = connection->wiring;
    if (connection->name == WIRING_NAMELESS) return greet(connection, frame);
    if (tree_is_frame(frame->type)) {
        connection->leaves |= frame->type == TREE_FRAME_ENDED;
        pump(wiring, tree_receive(wiring->tree, connection->name, frame, base_clock_ns()));
        return NCCLX_SUCCESS;
    }
    tree_heard(wiring->tree, connection->name, base_clock_ns());
    return wiring->events.frame(wiring->arg, connection->name, frame);
}

static void on_drained(void *arg)
{
    struct connection *connection = arg;
    if (connection->name != WIRING_NAMELESS)
        connection->wiring->events.drained(connection->wiring->arg, connection->name);
}

/* Cleans up after a daemon that another place, too, may find lost. */
static void sweep(struct wiring *wiring, int position)
{
    bool own = wiring->local_root && position == 0; /* ncclxrun does that itself */
    if (position < 0 || own || !wiring->notes || wiring->notes[position] & NOTE_SWEPT) return;
    take_note(wiring, position, NOTE_SWEPT);
    starter_sweep(wiring->starter, position);
}

/* The report goes up before anybody else hears of it: what ranks then say of their failed fences comes behind it. */
static void part(struct wiring *wiring, struct parting *parting)
{
    int code = tree_link_closed(wiring->tree, parting->name, *parting->why ? parting->why : NULL, base_clock_ns());
    int name = parting->name,
        lost = parting->surprise && wiring->order->tree.start == TREE_START_EACH ? parting->position : -1;
    base_free(AREA_LAUNCHER, parting);
    pump(wiring, code);
    wiring->events.closed(wiring->arg, name);
    sweep(wiring, lost);
}

/* Of this position, or of all whose time is over. */
static void end_partings(struct wiring *wiring, int position, uint64_t now)
{
    for (struct parting **at = &wiring->partings; *at;) {
        struct parting *parting = *at;
        if (parting->position != position && parting->until > now) {
            at = &parting->next;
            continue;
        }
        *at = parting->next;
        part(wiring, parting);
        at = &wiring->partings; /* that may have changed the list */
    }
}

static void on_closed(void *arg, const char *message)
{
    struct connection *connection = arg;
    struct wiring *wiring = connection->wiring;
    int name = connection->name;
    bool await = !connection->leaves && name >= 0 && wiring->starter && starter_runs(wiring->starter, connection->position);
    struct parting *parting = base_calloc(AREA_LAUNCHER, 1, sizeof *parting);
    wiring->ending |= await;
    if (parting) {
        *parting = (struct parting){
            .name = name, .position = connection->position, .surprise = name >= 0 && !connection->leaves};
        parting->until = base_clock_ns() + (await ? WIRING_PARTING_NS : 0);
        snprintf(parting->why, sizeof parting->why, "%s", message ? message : "");
    }
    forget(connection);
    if (name == WIRING_NAMELESS) {
        base_free(AREA_LAUNCHER, parting);
        return;
    }
    if (!parting) {
        pump(wiring, NCCLX_ERR_NO_MEM);
    } else if (await) {
        tree_link_closing(wiring->tree, name, base_clock_ns());
        parting->next = wiring->partings;
        wiring->partings = parting;
        arm(wiring);
    } else {
        part(wiring, parting);
    }
}

/* Null when memory is short; the descriptor is then closed. */
static struct connection *connect_link(struct wiring *wiring, int fd, const struct oob_keys *keys, int name,
                                       int position)
{
    static const struct link_events events = {.frame = on_frame, .drained = on_drained, .closed = on_closed};
    struct connection *connection = base_calloc(AREA_LAUNCHER, 1, sizeof *connection);
    if (connection) {
        *connection = (struct connection){.wiring = wiring, .name = name, .position = position};
        connection->link = link_open(wiring->base, fd, keys, &events, connection);
    }
    if (!connection || !connection->link) {
        base_free(AREA_LAUNCHER, connection);
        close(fd);
        return NULL;
    }
    if (name != WIRING_NAMELESS) wiring->links[name + 1] = connection;
    return connection;
}

/* ---- Sockets ---------------------------------------------------------------------------------------------------- */

static void on_oob_event(struct wiring *wiring, struct oob_event *event)
{
    switch (event->kind) {
    case OOB_ACCEPTED:
        connect_link(wiring, event->fd, &event->keys, WIRING_NAMELESS, (int)event->peer);
        break;
    case OOB_CONNECTED:
        if (connect_link(wiring, event->fd, &event->keys, TREE_PARENT, (int)event->peer))
            pump(wiring, tree_parent_up(wiring->tree, base_clock_ns()));
        break;
    case OOB_FAILED:
        wiring->events.unreachable(wiring->arg, event->text);
        break;
    default:
        break;
    }
    oob_wipe(&event->keys, sizeof event->keys);
}

static void arm(struct wiring *wiring)
{
    uint64_t now = base_clock_ns(), at = tree_deadline(wiring->tree);
    uint64_t sockets = wiring->oob ? oob_deadline(wiring->oob) : UINT64_MAX;
    if (sockets < at) at = sockets;
    for (const struct parting *parting = wiring->partings; parting; parting = parting->next)
        if (parting->until < at) at = parting->until;
    if (at == UINT64_MAX) {
        event_del(wiring->timer);
        return;
    }
    uint64_t wait_us = at > now ? (at - now + 999) / 1000 : 0;
    struct timeval delay = {.tv_sec = (time_t)(wait_us / 1000000), .tv_usec = (suseconds_t)(wait_us % 1000000)};
    event_add(wiring->timer, &delay);
}

static void take_oob_events(struct wiring *wiring)
{
    struct oob_event event;
    while (oob_next(wiring->oob, &event)) on_oob_event(wiring, &event);
}

static void on_sockets(evutil_socket_t fd, short what, void *arg)
{
    struct wiring *wiring = arg;
    (void)fd, (void)what;
    oob_dispatch(wiring->oob, base_clock_ns());
    take_oob_events(wiring);
    arm(wiring);
}

/* A neighbour on this host that is busy, or gets no core, has not fallen silent. */
static void feel_pulse(struct wiring *wiring)
{
    if (wiring->near == WIRING_NAMELESS || !tree_is_open(wiring->tree, wiring->near)) return;
    pid_t neighbour = wiring->events.neighbour(wiring->arg);
    if (neighbour > 0 && pulse_felt(&wiring->pulse, neighbour))
        tree_heard(wiring->tree, wiring->near, base_clock_ns());
}

static void on_timer(evutil_socket_t fd, short what, void *arg)
{
    struct wiring *wiring = arg;
    if (wiring->oob) on_sockets(fd, what, arg);
    end_partings(wiring, WIRING_NAMELESS, base_clock_ns());
    feel_pulse(wiring);
    pump(wiring, tree_tick(wiring->tree, base_clock_ns()));
}

static void on_stranger(void *arg, const char *line)
{
    struct wiring *wiring = arg;
    const struct order_host *host = order_find(wiring->order, wiring->order->tree.position);
    char text[600];
    snprintf(text, sizeof text, "%.255s%s%s", host && host->name ? host->name : "", host && host->name ? ": " : "",
             line);
    wiring->events.say(wiring->arg, text);
}

static int open_sockets(struct wiring *wiring, bool listens)
{
    const struct order *order = wiring->order;
    int position = order->tree.position, code;
    struct oob_identity identity = {.job = order->job,
                                    .position = position == TREE_FRONT ? OOB_FRONT : (uint32_t)position,
                                    .positions = (uint32_t)order->tree.shape.count,
                                    .trust = OOB_SECRET};
    struct oob_options options = {.port_low = order->port_low,
                                  .port_high = order->port_high,
                                  .networks = order->networks,
                                  .say = on_stranger,
                                  .say_arg = wiring};
    memcpy(identity.secret, order->secret, sizeof identity.secret);
    code = oob_create(&identity, &options, &wiring->oob);
    oob_wipe(identity.secret, sizeof identity.secret);
    if (code) return code;
    wiring->sockets = event_new(wiring->base, oob_fd(wiring->oob), EV_READ | EV_PERSIST, on_sockets, wiring);
    if (!wiring->sockets || event_add(wiring->sockets, NULL))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    if (!listens) return NCCLX_SUCCESS;
    struct oob_addresses addresses;
    if ((code = oob_listen(wiring->oob)) || (code = oob_addresses(wiring->oob, NULL, &addresses))) return code;
    oob_addresses_format(&addresses, wiring->contact, sizeof wiring->contact);
    return NCCLX_SUCCESS;
}

/* Goes to the place above, by the addresses in the order. */
static int connect_above(struct wiring *wiring)
{
    const struct order *order = wiring->order;
    int above = position_of(wiring, TREE_PARENT), code;
    struct oob_addresses addresses;
    uint64_t id;
    for (int i = 0; i < order->contact_count; i++) {
        if (order->contacts[i].position != above) continue;
        if ((code = oob_addresses_parse(order->contacts[i].text, &addresses))) return code;
        code = oob_connect(wiring->oob, above == TREE_FRONT ? OOB_FRONT : (uint32_t)above, NULL, &addresses, 0,
                           (uint32_t)(order->tree.start_ns / 1000000), base_clock_ns(), &id);
        arm(wiring);
        return code;
    }
    return base_error(NCCLX_ERR_BOOTSTRAP, "the start order does not say where to connect to");
}

/* ---- Agents ----------------------------------------------------------------------------------------------------- */

static void on_started(void *arg, int position)
{
    struct wiring *wiring = arg;
    pump(wiring, tree_agent_started(wiring->tree, position, base_clock_ns()));
}

static void on_start_failed(void *arg, int position, const char *why)
{
    struct wiring *wiring = arg;
    pump(wiring, tree_agent_failed(wiring->tree, position, why, base_clock_ns()));
}

static void on_agent_ended(void *arg, int position, int status, const char *output)
{
    struct wiring *wiring = arg;
    if (status) take_note(wiring, position, NOTE_AGENT_FAILED);
    pump(wiring, tree_agent_ended(wiring->tree, position, status, *output ? output : NULL, base_clock_ns()));
    end_partings(wiring, position, 0);
}

static void on_line(void *arg, int position, const char *text)
{
    struct wiring *wiring = arg;
    const struct order_host *host = position < 0 ? NULL : order_find(wiring->order, position);
    char line[2400];
    if (wiring->ending) return; /* how an agent ends is no news then */
    snprintf(line, sizeof line, "%.300s%s%s", host && host->name ? host->name : "", host ? ": " : "", text);
    wiring->events.say(wiring->arg, line);
}

static void start(struct wiring *wiring, const struct tree_action *action)
{
    char contact[WIRING_CONTACT_BYTES + 1];
    int fd;
    if (wiring->local_root && action->position == 0) {
        if (wiring->events.start_local(wiring->arg, &fd))
            on_start_failed(wiring, 0, base_error_detail());
        else if (connect_link(wiring, fd, NULL, WIRING_NAMELESS, 0))
            on_started(wiring, 0);
        return;
    }
    snprintf(contact, sizeof contact, "%s", wiring->contact);
    if (action->data && action->bytes < sizeof contact) {
        memcpy(contact, action->data, action->bytes);
        contact[action->bytes] = 0;
    }
    starter_start(wiring->starter, action->position, contact);
}

/* ---- What the tree wants ---------------------------------------------------------------------------------------- */

/* An agent that has failed after its daemon had come up: that may have been killed during the end, when nobody takes
 * its leave for a loss. Not before all ranks are gone, because the daemon may also be well. */
static void sweep_suspects(struct wiring *wiring)
{
    for (int i = 0; wiring->notes && !wiring->order->slurm && i < wiring->order->tree.shape.count; i++)
        if ((wiring->notes[i] & ~NOTE_SWEPT) == (NOTE_WAS_THERE | NOTE_AGENT_FAILED)) sweep(wiring, i);
}

static void finish(struct wiring *wiring)
{
    sweep_suspects(wiring);
    wiring_flush(wiring, WIRING_FINISH_MS);
    wiring->events.finished(wiring->arg);
}

/* A daemon that is lost may have left something. */
static void sweep_lost(struct wiring *wiring, int position, enum tree_cause cause)
{
    bool was_there = cause == TREE_CAUSE_CLOSED || cause == TREE_CAUSE_SILENT;
    if (was_there) sweep(wiring, position);
}

static void close_named(struct wiring *wiring, int name)
{
    struct connection *connection = wiring->links[name + 1];
    if (!connection) return;
    if (!connection->leaves && name >= 0 && wiring->order->tree.start == TREE_START_EACH)
        sweep_lost(wiring, connection->position, TREE_CAUSE_SILENT);
    link_flush(connection->link, WIRING_LAST_MS);
    forget(connection);
    wiring->events.closed(wiring->arg, name);
}

static void send_own(struct connection *connection, const struct tree_action *action)
{
    struct frame frame;
    if (!connection) return;
    connection->leaves |= !frame_parse(action->data, action->bytes, &frame) && frame.type == TREE_FRAME_END;
    link_send_whole(connection->link, action->data, action->bytes);
}

static void act(struct wiring *wiring, const struct tree_action *action)
{
    const struct wiring_events *events = &wiring->events;
    switch (action->kind) {
    case TREE_START:
        start(wiring, action);
        break;
    case TREE_STOP_AGENT:
        if (wiring->starter) starter_stop(wiring->starter, action->position);
        break;
    case TREE_SEND:
        send_own(wiring->links[action->link + 1], action);
        break;
    case TREE_CLOSE:
        close_named(wiring, action->link);
        break;
    case TREE_NODE:
        take_note(wiring, action->position, NOTE_WAS_THERE);
        events->node(wiring->arg, action->position, action->node, action->data, action->bytes);
        break;
    case TREE_READY:
        events->ready(wiring->arg);
        break;
    case TREE_REPORT:
        wiring->ending = true;
        if (wiring->order->tree.start != TREE_START_EACH) sweep_lost(wiring, action->failure.position, action->failure.cause);
        events->report(wiring->arg, &action->failure);
        break;
    case TREE_END_LOCAL:
        wiring->ending = true;
        events->end_local(wiring->arg, action->at_once, action->orphan);
        break;
    case TREE_ALL_ENDED:
        events->all_ended(wiring->arg);
        break;
    case TREE_FINISHED:
        finish(wiring);
        break;
    }
}

/* After every event: code is what it has returned. Handlers may bring further ones, which the outermost call acts on.
 */
static void pump(struct wiring *wiring, int code)
{
    struct tree_action action;
    if (code == NCCLX_ERR_NO_MEM && !wiring->failed) {
        wiring->failed = true;
        wiring->events.say(wiring->arg, base_error_detail());
        wiring->events.finished(wiring->arg);
    }
    if (wiring->pumping || wiring->failed) return;
    wiring->pumping = true;
    while (tree_next(wiring->tree, &action)) act(wiring, &action);
    wiring->pumping = false;
    arm(wiring);
}

/* ---- Life ------------------------------------------------------------------------------------------------------- */

static int open_all(struct wiring *wiring, const struct wiring_options *options)
{
    static const struct starter_events starter_events = {
        .started = on_started, .failed = on_start_failed, .ended = on_agent_ended, .line = on_line};
    const struct tree_options *shape = &options->order->tree;
    bool connects = shape->position != TREE_FRONT && options->parent_fd < 0;
    bool listens = wiring->below > 0 && !options->local_root;
    bool starts = shape->position == TREE_FRONT ? !options->local_root || shape->start != TREE_START_EACH
                                                : shape->start == TREE_START_EACH && wiring->below > 0;
    struct tree_self self = options->self;
    int code;
    wiring->links = base_calloc(AREA_LAUNCHER, (size_t)wiring->below + 1, sizeof *wiring->links);
    wiring->timer = evtimer_new(wiring->base, on_timer, wiring);
    if (!wiring->links || !wiring->timer) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    if ((connects || listens) && (code = open_sockets(wiring, listens))) return code;
    int hosts = shape->start == TREE_START_EACH ? wiring->below : shape->shape.count;
    if (starts && !(wiring->starter = starter_open(wiring->base, options->order, hosts, &starter_events, wiring)))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting daemons");
    if (starts && !(wiring->notes = base_calloc(AREA_LAUNCHER, (size_t)shape->shape.count, 1)))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for starting daemons");
    self.contact = wiring->contact;
    self.contact_bytes = strlen(wiring->contact);
    if ((code = tree_create(shape, &self, base_clock_ns(), &wiring->tree))) return code;
    if (connects && (code = connect_above(wiring))) return code;
    if (options->parent_fd >= 0 && !connect_link(wiring, options->parent_fd, NULL, TREE_PARENT, -1))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the link to ncclxrun");
    return NCCLX_SUCCESS;
}

int wiring_open(const struct wiring_options *options, const struct wiring_events *events, void *arg,
                struct wiring **out)
{
    const struct tree_options *shape = &options->order->tree;
    struct wiring *wiring = base_calloc(AREA_LAUNCHER, 1, sizeof *wiring);
    *out = wiring;
    if (!wiring) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the event loop");
    wiring->base = options->base;
    wiring->order = options->order;
    wiring->events = *events;
    wiring->arg = arg;
    wiring->local_root = options->local_root;
    wiring->near = options->parent_fd >= 0 ? TREE_PARENT : options->local_root ? 0 : WIRING_NAMELESS;
    wiring->below = tree_child_count(&shape->shape, shape->position);
    int code = open_all(wiring, options);
    if (code) return code;
    code = tree_begin(wiring->tree, base_clock_ns());
    if (!code && options->parent_fd >= 0) code = tree_parent_up(wiring->tree, base_clock_ns());
    pump(wiring, code);
    return code;
}

void wiring_close(struct wiring *wiring, int patience_ms)
{
    if (!wiring) return;
    for (int i = 0; wiring->links && i <= wiring->below; i++)
        if (wiring->links[i]) forget(wiring->links[i]);
    starter_close(wiring->starter, patience_ms);
    for (struct parting *parting = wiring->partings, *next; parting; parting = next) {
        next = parting->next;
        base_free(AREA_LAUNCHER, parting);
    }
    oob_destroy(wiring->oob);
    tree_destroy(wiring->tree);
    if (wiring->timer) event_free(wiring->timer);
    if (wiring->sockets) event_free(wiring->sockets);
    base_free(AREA_LAUNCHER, wiring->notes);
    base_free(AREA_LAUNCHER, wiring->links);
    base_free(AREA_LAUNCHER, wiring);
}

/* ---- Frames of the user ----------------------------------------------------------------------------------------- */

static struct link *link_of(const struct wiring *wiring, int link)
{
    const struct connection *connection = wiring->links[link + 1];
    return connection ? connection->link : NULL;
}

void wiring_send(struct wiring *wiring, int link, struct frame_writer *writer)
{
    if (!link_of(wiring, link)) {
        frame_release(writer);
        return;
    }
    tree_sent(wiring->tree, link, base_clock_ns());
    link_send(link_of(wiring, link), writer);
}

void wiring_send_empty(struct wiring *wiring, int link, uint8_t type)
{
    struct frame_writer writer;
    frame_begin(&writer, type);
    wiring_send(wiring, link, &writer);
}

void wiring_pass(struct wiring *wiring, int link, const struct frame *frame)
{
    if (!link_of(wiring, link)) return;
    tree_sent(wiring->tree, link, base_clock_ns());
    link_send_whole(link_of(wiring, link), frame->payload - FRAME_HEADER_BYTES, frame->total);
}

void wiring_spread(struct wiring *wiring, const struct frame *frame)
{
    for (int i = 0; i < wiring->below; i++) wiring_pass(wiring, i, frame);
}

int wiring_below(const struct wiring *wiring)
{
    return wiring->below;
}

bool wiring_full(const struct wiring *wiring, int link)
{
    const struct link *of = link_of(wiring, link);
    return of && link_unsent(of) > LINK_HIGH_WATER;
}

bool wiring_full_below(const struct wiring *wiring)
{
    for (int i = 0; i < wiring->below; i++)
        if (wiring_full(wiring, i)) return true;
    return false;
}

static void hold(struct wiring *wiring, int link, bool hold)
{
    if (!link_of(wiring, link)) return;
    tree_hold(wiring->tree, link, hold, base_clock_ns());
    link_pause(link_of(wiring, link), hold);
}

void wiring_hold_above(struct wiring *wiring, bool holds)
{
    hold(wiring, TREE_PARENT, holds);
}

void wiring_hold_below(struct wiring *wiring, bool holds)
{
    for (int i = 0; i < wiring->below; i++) hold(wiring, i, holds);
}

void wiring_flush(struct wiring *wiring, int timeout_ms)
{
    for (int i = TREE_PARENT; i < wiring->below; i++)
        if (link_of(wiring, i)) link_flush(link_of(wiring, i), timeout_ms);
}

/* ---- Events of the user ----------------------------------------------------------------------------------------- */

void wiring_refuse(struct wiring *wiring, const char *why)
{
    pump(wiring, tree_refuse(wiring->tree, why, base_clock_ns()));
}

void wiring_local_ended(struct wiring *wiring)
{
    pump(wiring, tree_local_ended(wiring->tree, base_clock_ns()));
}

void wiring_end(struct wiring *wiring, bool at_once)
{
    pump(wiring, tree_end(wiring->tree, at_once, base_clock_ns()));
}

void wiring_suspend(struct wiring *wiring)
{
    pump(wiring, tree_suspend(wiring->tree, base_clock_ns()));
}

const struct tree *wiring_tree(const struct wiring *wiring)
{
    return wiring->tree;
}

bool wiring_reaped(struct wiring *wiring, pid_t pid, int status)
{
    return wiring->starter && starter_reaped(wiring->starter, pid, status);
}

void wiring_reap(struct wiring *wiring)
{
    if (wiring->starter) starter_reap(wiring->starter);
}

int wiring_agents(const struct wiring *wiring)
{
    return wiring->starter ? starter_count(wiring->starter) : 0;
}

void wiring_list_agents(const struct wiring *wiring, pid_t *pids)
{
    if (wiring->starter) starter_list(wiring->starter, pids);
}

void wiring_local_died(struct wiring *wiring, int status)
{
    on_agent_ended(wiring, 0, status, "");
}
