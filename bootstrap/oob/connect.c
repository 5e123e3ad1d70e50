/* connect.c - looking for somebody: sockets of the tries core, and what became of each. */
#include "config.h"

#include "bootstrap/oob/endpoint.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>

#define DEFAULT_LIMIT_MS 30000
#define NS_PER_MS UINT64_C(1000000)
#define SILENT (-1)
#define CUT_SHORT (-2) /* by the end of all tries */
/* Who has published a card listens as long as it lives: after so many rounds in which all addresses that tell refused, it does not. */
#define REFUSED_ROUNDS 2

/* ---- Addresses ---- */

static void add_address(struct search *search, const struct oob_address *address)
{
    if (search->tries.count < OOB_MAX_ADDRESSES) search->addresses[search->tries.count++] = *address;
}

static bool is_here(const struct oob_address *address, const struct address_here *list, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (list[i].address.family == address->family &&
            !memcmp(list[i].address.bytes, address->bytes, sizeof address->bytes))
            return true;
    return false;
}

/* A link-local address without a scope stands for one on each interface that has such addresses. */
static void add_expanded(struct search *search, struct oob_address address, const struct address_here *list,
                         size_t count)
{
    if (address.family != 6 || !address_link_local(&address) || address.scope) {
        add_address(search, &address);
        return;
    }
    for (size_t i = 0; i < count; i++) {
        if (list[i].address.family != 6 || !address_link_local(&list[i].address)) continue;
        address.scope = list[i].address.scope;
        add_address(search, &address);
    }
}

/* Those where nobody need be listening though the peer is: its system does not know us on most of its link-local ones, and ours answers at
 * those that all hosts have. */
enum { TELLS, LINK_LOCAL, HERE };

static int kind_of(const struct oob_address *address, const struct address_here *list, size_t count)
{
    if (is_here(address, list, count)) return HERE;
    return address_link_local(address) ? LINK_LOCAL : TELLS;
}

/* In the order that is given within each kind, but one that has led to the peer before is the first. */
static void add_addresses(struct search *search, const struct oob_addresses *addresses)
{
    struct address_here *list = NULL;
    size_t count = 0, given = addresses->count < OOB_MAX_ADDRESSES ? addresses->count : OOB_MAX_ADDRESSES;
    if (given > 1 || (given && address_link_local(&addresses->list[0])))
        if (address_list_here(&list, &count)) count = 0;
    if (given && addresses->proven) add_address(search, &addresses->list[0]);
    search->telling = search->tries.count;
    for (int kind = TELLS; kind <= HERE; kind++) {
        for (size_t i = addresses->proven; i < given; i++)
            if (kind_of(&addresses->list[i], list, count) == kind) add_expanded(search, addresses->list[i], list, count);
        if (kind == TELLS && !addresses->proven) search->telling = search->tries.count;
    }
    if (!search->telling) search->telling = search->tries.count;
    base_free(AREA_BOOTSTRAP, list);
}

/* ---- Ends ---- */

void search_end(struct oob *oob, struct search *search)
{
    if (search->open) line_close(&search->line);
    if (search->previous)
        search->previous->next = search->next;
    else
        oob->searches = search->next;
    if (search->next) search->next->previous = search->previous;
    endpoint_remove_item(oob, search->id);
    oob_wipe(search, sizeof *search);
    base_free(AREA_BOOTSTRAP, search);
}

static struct oob_event *add_result(struct oob *oob, struct search *search, enum oob_event_kind kind)
{
    struct oob_event *event = endpoint_add_event(oob, kind);
    if (!event) return NULL;
    event->id = search->id;
    event->peer = search->peer;
    event->tag = search->tag;
    return event;
}

static void name_peer(uint32_t peer, char *text, size_t room)
{
    if (peer == OOB_FRONT)
        snprintf(text, room, "ncclxrun");
    else
        snprintf(text, room, "number %u of the job", peer);
}

static void describe_trouble(const struct trouble *trouble, char *text, size_t room)
{
    if (trouble->error == SILENT || trouble->error == CUT_SHORT)
        snprintf(text, room, "does not answer");
    else if (trouble->error)
        snprintf(text, room, "%s", strerror(trouble->error));
    else
        snprintf(text, room, "%s", trouble->text[0] ? trouble->text : "was not tried");
}

/* Every address with its trouble, as far as there is room. */
static void give_up(struct oob *oob, struct search *search, bool gone)
{
    char name[32];
    int used;
    struct oob_event *event = add_result(oob, search, OOB_FAILED);
    if (!event) {
        search->tries.state = TRIES_READY; /* gives up again at the next dispatch */
        return;
    }
    name_peer(search->peer, name, sizeof name);
    event->code = gone ? NCCLX_ERR_PROC_FAILED : NCCLX_ERR_TIMEOUT;
    event->busy = !gone && search->taken;
    if (gone) used = snprintf(event->text, sizeof event->text, "%s does not listen any more", name);
    else used = snprintf(event->text, sizeof event->text, "%s could not be reached within %u ms", name, search->limit_ms);
    for (size_t i = 0; i < search->tries.count && used >= 0 && (size_t)used < sizeof event->text; i++) {
        char address[OOB_ADDRESS_TEXT], what[128];
        describe_trouble(&search->troubles[i], what, sizeof what);
        used += snprintf(event->text + used, sizeof event->text - (size_t)used, "%s %s: %s", i ? ";" : ":",
                         oob_address_text(&search->addresses[i], address), what);
    }
    search_end(oob, search);
}

/* The other end is who we look for, but will not have us. */
static bool refuse(struct oob *oob, struct search *search)
{
    char name[32], address[OOB_ADDRESS_TEXT], what[160];
    struct oob_event *event = add_result(oob, search, OOB_FAILED);
    if (!event) return false;
    name_peer(search->peer, name, sizeof name);
    shake_explain(&search->line.shake, what, sizeof what);
    event->code = NCCLX_ERR_UNREACHABLE;
    snprintf(event->text, sizeof event->text, "%s, at %s, %s", name, oob_address_text(&search->line.address, address),
             what);
    search_end(oob, search);
    return true;
}

/* ---- Tries ---- */

/* Returns whether a connection had come about, if no handshake. */
static bool shut(struct search *search, int error)
{
    struct trouble *trouble = &search->troubles[search->trying];
    if (!search->open) return false;
    bool taken = search->line.fd >= 0 && !search->line.connecting;
    search->taken = search->taken || taken;
    if (error != CUT_SHORT || !(trouble->error || trouble->text[0])) *trouble = (struct trouble){.error = error};
    if (!error) shake_explain(&search->line.shake, trouble->text, sizeof trouble->text);
    line_close(&search->line);
    search->open = false;
    return taken;
}

/* Families that this host does not have say nothing about the peer. */
static bool is_refusal(int error)
{
    return error == ECONNREFUSED || error == EAFNOSUPPORT || error == ENETUNREACH || error == EADDRNOTAVAIL;
}

/* Whether this round can end: all addresses that tell have been tried, and somebody's system takes connections at one, so that others lead no
 * further, or all have refused. */
static bool has_told(struct search *search, int error, bool taken)
{
    if (search->trying >= search->telling) return false;
    search->heard = search->heard || !is_refusal(error);
    search->there = search->there || taken;
    if (search->trying + 1 < search->telling) return false;
    bool told = search->there || !search->heard;
    search->refused_rounds = search->heard ? 0 : search->refused_rounds + 1;
    search->heard = search->there = false;
    return told;
}

static bool is_gone(const struct oob *oob, const struct search *search)
{
    bool refused = false;
    for (size_t i = 0; i < search->telling; i++) refused = refused || search->troubles[i].error == ECONNREFUSED;
    return refused && search->refused_rounds >= REFUSED_ROUNDS && oob->self.trust == OOB_CARDS;
}

static void next_address(struct oob *oob, struct search *search, int error, bool taken)
{
    if (has_told(search, error, taken) && oob->self.trust == OOB_CARDS)
        tries_end_round(&search->tries, oob->now, search->refused_rounds > 0);
}

static void try_failed(struct oob *oob, struct search *search, int error)
{
    bool taken = shut(search, error);
    tries_failed(&search->tries, oob->now);
    next_address(oob, search, error, taken);
}

static int open_socket(struct oob *oob, struct search *search)
{
    struct line *line = &search->line;
    struct sockaddr_storage storage;
    socklen_t length = address_to_system(&line->address, &storage);
    do {
        line->fd = endpoint_own(socket(storage.ss_family, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    } while (line->fd < 0 && (errno == EMFILE || errno == ENFILE) && listen_make_room(oob));
    oob->was_short = oob->was_short || (line->fd < 0 && (errno == EMFILE || errno == ENFILE));
    if (line->fd < 0) return errno;
    line_options(line->fd);
    line->connecting = true;
    if (connect(line->fd, (struct sockaddr *)&storage, length) && errno != EINPROGRESS && errno != EINTR) return errno;
    line->watched = EPOLLOUT;
    return endpoint_watch(oob, line->fd, search->id, EPOLLOUT, false) ? 0 : errno;
}

static void open_try(struct oob *oob, struct search *search)
{
    unsigned char random[OOB_KEY_BYTES];
    struct line *line = &search->line;
    memset(line, 0, sizeof *line);
    search->trying = search->tries.next;
    line->address = search->addresses[search->trying];
    search->open = true;
    int error = open_socket(oob, search);
    if (error) {
        try_failed(oob, search, error);
        return;
    }
    oob_random(random, sizeof random);
    shake_connect(&line->shake, &oob->self, search->peer, search->has_key ? search->peer_key : NULL, search->tag,
                  random);
    oob_wipe(random, sizeof random);
}

void search_ready(struct oob *oob, struct search *search)
{
    int error;
    struct line *line = &search->line;
    if (!search->open) return;
    switch (line_go(oob, search->id, line, &error)) {
    case LINE_GOING:
    case LINE_LEAVING:
        return;
    case LINE_DONE: {
        struct oob_event *event = add_result(oob, search, OOB_CONNECTED);
        if (!event) { /* memory is short now; perhaps not at the next try */
            try_failed(oob, search, ENOMEM);
            return;
        }
        line_hand_over(oob, line, event);
        search->open = false;
        search_end(oob, search);
        return;
    }
    case LINE_FAILED:
        if (line->shake.told && line->shake.proven && refuse(oob, search)) return;
        try_failed(oob, search, error);
    }
}

static void step(struct oob *oob, struct search *search)
{
    for (;;) {
        if (is_gone(oob, search)) {
            give_up(oob, search, true);
            return;
        }
        enum tries_action action = tries_step(&search->tries, oob->now);
        if (action == TRIES_WAIT) return;
        if (action == TRIES_OPEN) {
            open_try(oob, search);
            continue;
        }
        bool taken = shut(search, action == TRIES_CLOSE ? SILENT : CUT_SHORT);
        if (action == TRIES_CLOSE) {
            next_address(oob, search, SILENT, taken);
            continue;
        }
        give_up(oob, search, false);
        return;
    }
}

void search_tick(struct oob *oob)
{
    for (struct search *search = oob->searches, *next; search; search = next) {
        next = search->next;
        step(oob, search);
    }
}

uint64_t search_deadline(const struct oob *oob)
{
    uint64_t deadline = UINT64_MAX;
    for (const struct search *search = oob->searches; search; search = search->next) {
        uint64_t own = tries_deadline(&search->tries);
        if (own < deadline) deadline = own;
    }
    return deadline;
}

/* ---- The user's side ---- */

int oob_connect(struct oob *oob, uint32_t peer, const unsigned char *peer_key, const struct oob_addresses *addresses,
                uint64_t tag, uint32_t limit_ms, uint64_t now, uint64_t *id)
{
    struct oob_options *options = &oob->options;
    if (oob->self.trust == OOB_CARDS && !peer_key)
        return base_error(NCCLX_ERR_ARG, "the public key of number %u of the job is missing", peer);
    if (peer == oob->self.position) return base_error(NCCLX_ERR_ARG, "number %u of the job connects to itself", peer);
    struct search *search = base_calloc(AREA_BOOTSTRAP, 1, sizeof *search);
    if (!search) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a connection");
    add_addresses(search, addresses);
    search->id = endpoint_add_item(oob, (struct item){.kind = ITEM_SEARCH, .search = search});
    if (!search->tries.count || !search->id) {
        int code = search->tries.count ? NCCLX_ERR_NO_MEM : NCCLX_ERR_UNREACHABLE;
        endpoint_remove_item(oob, search->id);
        base_free(AREA_BOOTSTRAP, search);
        return base_error(code,
                          code == NCCLX_ERR_NO_MEM ? "memory is short for a connection to number %u of the job"
                                                   : "no address is known of number %u of the job",
                          peer);
    }
    search->peer = peer;
    search->tag = tag;
    search->has_key = peer_key != NULL;
    if (peer_key) memcpy(search->peer_key, peer_key, OOB_KEY_BYTES);
    search->limit_ms = limit_ms ? limit_ms : DEFAULT_LIMIT_MS;
    const struct tries_limits limits = {.try_ns = options->try_ms * NS_PER_MS,
                                        .pause_ns = options->pause_ms * NS_PER_MS,
                                        .pause_most_ns = options->pause_most_ms * NS_PER_MS,
                                        .all_ns = search->limit_ms * NS_PER_MS};
    uint64_t seed;
    oob->now = now;
    oob_random(&seed, sizeof seed);
    tries_begin(&search->tries, search->tries.count, &limits, now, seed);
    search->next = oob->searches;
    if (search->next) search->next->previous = search;
    oob->searches = search;
    *id = search->id;
    return NCCLX_SUCCESS;
}

void oob_cancel(struct oob *oob, uint64_t id)
{
    struct item *item = endpoint_item(oob, id);
    if (item && item->kind == ITEM_SEARCH) {
        search_end(oob, item->search);
        return;
    }
    for (size_t i = 0; i < oob->event_count; i++) { /* it has ended, and nobody has asked yet */
        struct oob_event *event = &oob->events[(oob->event_first + i) % oob->event_room];
        if (event->id != id || event->kind == OOB_WANT_KEY || event->kind == OOB_ACCEPTED) continue;
        base_process_close(event->fd);
        oob_wipe(event, sizeof *event);
        for (; i + 1 < oob->event_count; i++)
            oob->events[(oob->event_first + i) % oob->event_room] =
                oob->events[(oob->event_first + i + 1) % oob->event_room];
        oob->event_count--;
        return;
    }
}
