/* endpoint.c - an endpoint: its tables, its events, and whose turn it is. */
#include "config.h"

#include "bootstrap/oob/endpoint.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/resource.h>
#include <unistd.h>

#define BATCH 64 /* events of the system in one go */
#define DEFAULT_HANDSHAKE_MS 5000
#define DEFAULT_TRY_MS 2000
#define DEFAULT_PAUSE_MS 50
#define DEFAULT_PAUSE_MOST_MS 2000
#define LEAST_STRANGERS 16
#define DEFAULT_STRANGERS 256 /* more than a place of the daemons' tree has children, which may come all at once */
#define MOST_STRANGERS 4096

/* ---- Ids ---- */

static bool grow_items(struct oob *oob)
{
    uint32_t count = oob->item_count ? oob->item_count * 2 : 64;
    struct item *items = base_realloc(AREA_BOOTSTRAP, oob->items, count * sizeof *items);
    if (!items) return false;
    for (uint32_t i = oob->item_count; i < count; i++)
        items[i] = (struct item){.use = 1, .next_free = i + 1 < count ? i + 1 : UINT32_MAX};
    oob->free_item = oob->item_count;
    oob->items = items;
    oob->item_count = count;
    return true;
}

uint64_t endpoint_add_item(struct oob *oob, struct item item)
{
    if (oob->free_item == UINT32_MAX && !grow_items(oob)) return 0;
    uint32_t index = oob->free_item;
    struct item *place = &oob->items[index];
    oob->free_item = place->next_free;
    item.use = place->use;
    *place = item;
    return (uint64_t)item.use << 32 | index;
}

struct item *endpoint_item(struct oob *oob, uint64_t id)
{
    uint32_t index = (uint32_t)id;
    if (index >= oob->item_count || oob->items[index].use != id >> 32) return NULL;
    return oob->items[index].kind == ITEM_FREE ? NULL : &oob->items[index];
}

void endpoint_remove_item(struct oob *oob, uint64_t id)
{
    struct item *item = endpoint_item(oob, id);
    if (!item) return;
    uint32_t use = item->use + 1;
    *item = (struct item){.use = use ? use : 1, .next_free = oob->free_item};
    oob->free_item = (uint32_t)id;
}

/* ---- Events ---- */

struct oob_event *endpoint_add_event(struct oob *oob, enum oob_event_kind kind)
{
    if (oob->event_count == oob->event_room) {
        size_t room = oob->event_room ? oob->event_room * 2 : 8;
        struct oob_event *events = base_calloc(AREA_BOOTSTRAP, room, sizeof *events);
        if (!events) return NULL;
        for (size_t i = 0; i < oob->event_count; i++) events[i] = oob->events[(oob->event_first + i) % oob->event_room];
        if (oob->events) oob_wipe(oob->events, oob->event_room * sizeof *events);
        base_free(AREA_BOOTSTRAP, oob->events);
        oob->events = events;
        oob->event_room = room;
        oob->event_first = 0;
    }
    struct oob_event *event = &oob->events[(oob->event_first + oob->event_count++) % oob->event_room];
    memset(event, 0, sizeof *event);
    event->kind = kind;
    event->fd = -1;
    return event;
}

bool oob_next(struct oob *oob, struct oob_event *event)
{
    if (!oob->event_count) return false;
    struct oob_event *first = &oob->events[oob->event_first];
    *event = *first;
    oob_wipe(first, sizeof *first);
    oob->event_first = (oob->event_first + 1) % oob->event_room;
    oob->event_count--;
    return true;
}

bool endpoint_watch(struct oob *oob, int fd, uint64_t id, uint32_t events, bool again)
{
    struct epoll_event event = {.events = events, .data.u64 = id};
    return epoll_ctl(oob->epoll, again ? EPOLL_CTL_MOD : EPOLL_CTL_ADD, fd, &event) == 0;
}

/* ---- Life ---- */

static void set_default(uint32_t *value, uint32_t otherwise)
{
    if (!*value) *value = otherwise;
}

/* The rest of the process needs descriptors, too. */
static uint32_t default_strangers(void)
{
    struct rlimit limit;
    if (getrlimit(RLIMIT_NOFILE, &limit) || limit.rlim_cur / 8 >= DEFAULT_STRANGERS) return DEFAULT_STRANGERS;
    return limit.rlim_cur / 8 < LEAST_STRANGERS ? LEAST_STRANGERS : (uint32_t)(limit.rlim_cur / 8);
}

static int set_options(struct oob *oob, const struct oob_options *options)
{
    struct oob_options *mine = &oob->options;
    *mine = *options;
    if (mine->networks && !*mine->networks) mine->networks = NULL;
    if (mine->port_high < mine->port_low || (mine->port_high && !mine->port_low))
        return base_error(NCCLX_ERR_ARG, "%u to %u is no range of ports", mine->port_low, mine->port_high);
    int code = address_check_networks(mine->networks);
    if (code) return code;
    if (mine->networks && !(mine->networks = base_strdup(AREA_BOOTSTRAP, mine->networks)))
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for sockets between hosts");
    set_default(&mine->handshake_ms, DEFAULT_HANDSHAKE_MS);
    set_default(&mine->try_ms, DEFAULT_TRY_MS);
    set_default(&mine->pause_ms, DEFAULT_PAUSE_MS);
    set_default(&mine->pause_most_ms, DEFAULT_PAUSE_MOST_MS);
    set_default(&mine->strangers, default_strangers());
    if (mine->strangers > MOST_STRANGERS) mine->strangers = MOST_STRANGERS;
    return NCCLX_SUCCESS;
}

int endpoint_own(int fd)
{
    if (fd < 0 || !base_process_own_fd(fd)) return fd;
    close(fd);
    errno = ENOMEM;
    return -1;
}

static int open_endpoint(struct oob *oob)
{
    size_t strangers = oob->options.strangers;
    oob->guest_list = base_calloc(AREA_BOOTSTRAP, strangers, sizeof *oob->guest_list);
    oob->guest_lines = base_calloc(AREA_BOOTSTRAP, strangers, sizeof(struct guest_line *));
    if (!oob->guest_list || !oob->guest_lines)
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for sockets between hosts");
    guests_init(&oob->guests, oob->guest_list, strangers);
    oob->epoll = endpoint_own(epoll_create1(EPOLL_CLOEXEC));
    oob->spare = open("/dev/null", O_RDONLY | O_CLOEXEC);
    if (oob->epoll < 0 || oob->spare < 0)
        return base_error(NCCLX_ERR_LIMIT, "descriptors for sockets between hosts: %s", strerror(errno));
    return NCCLX_SUCCESS;
}

int oob_create(const struct oob_identity *identity, const struct oob_options *options, struct oob **result)
{
    int code = crypto_load();
    if (code) return code;
    struct oob *oob = base_calloc(AREA_BOOTSTRAP, 1, sizeof *oob);
    *result = NULL;
    if (!oob) return base_error(NCCLX_ERR_NO_MEM, "memory is short for sockets between hosts");
    oob->epoll = oob->spare = -1;
    oob->free_item = UINT32_MAX;
    code = shake_self_set(&oob->self, identity);
    if (!code) code = set_options(oob, options);
    if (code) { /* networks are still the caller's */
        oob_wipe(&oob->self, sizeof oob->self);
        base_free(AREA_BOOTSTRAP, oob);
        return code;
    }
    code = open_endpoint(oob);
    if (code)
        oob_destroy(oob);
    else
        *result = oob;
    return code;
}

void oob_destroy(struct oob *oob)
{
    struct oob_event event;
    if (!oob) return;
    while (oob->searches) search_end(oob, oob->searches);
    listen_close(oob);
    while (oob_next(oob, &event)) base_process_close(event.fd);
    oob_wipe(&event, sizeof event);
    base_process_close(oob->epoll);
    if (oob->spare >= 0) close(oob->spare);
    base_free(AREA_BOOTSTRAP, oob->events);
    base_free(AREA_BOOTSTRAP, oob->items);
    base_free(AREA_BOOTSTRAP, oob->guest_list);
    base_free(AREA_BOOTSTRAP, oob->guest_lines);
    base_free(AREA_BOOTSTRAP, (char *)oob->options.networks);
    oob_wipe(oob, sizeof *oob);
    base_free(AREA_BOOTSTRAP, oob);
}

int oob_fd(const struct oob *oob)
{
    return oob->epoll;
}

bool oob_was_short(struct oob *oob)
{
    bool was = oob->was_short;
    oob->was_short = false;
    return was;
}

static uint64_t earlier(uint64_t a, uint64_t b)
{
    return a < b ? a : b;
}

uint64_t oob_deadline(const struct oob *oob)
{
    return oob->event_count ? 0 : earlier(listen_deadline(oob), search_deadline(oob));
}

/* Those that are known go before those that come: who has nearly proven himself should not lose his place to a crowd at
 * the door. */
static void serve(struct oob *oob, const struct epoll_event *ready, int count, bool listeners)
{
    for (int i = 0; i < count; i++) {
        struct item *item = endpoint_item(oob, ready[i].data.u64); /* null: has ended meanwhile */
        if (!item || (item->kind == ITEM_LISTENER) != listeners) continue;
        if (item->kind == ITEM_LISTENER)
            listen_ready(oob, &oob->listeners[item->listener]);
        else if (item->kind == ITEM_GUEST)
            listen_guest(oob, item->guest);
        else
            search_ready(oob, item->search);
    }
}

void oob_dispatch(struct oob *oob, uint64_t now)
{
    struct epoll_event ready[BATCH];
    oob->now = now;
    int count = epoll_wait(oob->epoll, ready, BATCH, 0); /* does not wait, so nothing interrupts it */
    serve(oob, ready, count, false);
    serve(oob, ready, count, true);
    listen_tick(oob);
    search_tick(oob);
}
