/* server_modex.c - values of single ranks on demand (PMIx' direct modex): asking for ranks of other nodes, and finding
 * those of this node for others.
 *
 * A value is all that a rank has committed. PMIx hands it over once the rank has committed anything; the key that is
 * wanted may come later, and nobody tells when: the value is looked at again, less and less often, until the time limit
 * of who asked. But when a fence has brought the rank's values here, a key that is not among them is not waited for. */
#include "config.h"

#include "launcher/server_calls.h"

#include "runtime/base/base.h"

#include <string.h>

#define DEFAULT_TIMEOUT_MS 60000 /* for a key that may never come, when who asks sets no limit */
#define FIRST_PAUSE_NS UINT64_C(2000000)
#define MAX_DOUBLINGS 6

/* ---- For ranks of this node ---- */

static const char *required_key(const pmix_info_t info[], size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], PMIX_REQUIRED_KEY) && info[i].value.type == PMIX_STRING)
            return info[i].value.data.string;
    return NULL;
}

pmix_status_t server_exchange_modex(struct server *server, int number, const pmix_info_t info[], size_t count,
                                    pmix_modex_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    const char *key = required_key(info, count);
    bool fresh = info_is_set(info, count, PMIX_GET_REFRESH_CACHE);
    uint32_t limit = info_timeout_ms(info, count);
    struct call *call = call_new(1, arg);
    if (!call) return PMIX_ERR_NOMEM;
    call->kind = CALL_MODEX;
    call->done.data = done;
    if (!limit) limit = DEFAULT_TIMEOUT_MS;
    exchange_enter(exchange);
    uint64_t token = call_token(call, 0), now = base_clock_ns();
    bool collected = server_has_mark(&server->jobs, number, SERVER_COLLECTED);
    if (key && *key && strlen(key) <= KVX_MAX_KEY && !collected)
        call_check_part(exchange, call, kvx_get_with(exchange->kvx, number, key, fresh, limit, now, token));
    else
        call_check_part(exchange, call, kvx_get(exchange->kvx, number, fresh || collected, limit, now, token));
    exchange_leave_with(exchange, call);
    return PMIX_SUCCESS;
}

/* ---- For other nodes ---- */

void fetch_begin(struct server_exchange *exchange, const struct kvx_action *action)
{
    size_t length = action->key ? strlen(action->key) : 0;
    struct fetch *fetch = base_calloc(AREA_LAUNCHER, 1, sizeof *fetch + length + 1);
    if (!fetch) { /* who asks gives up when its time has passed */
        (void)kvx_fetched(exchange->kvx, action->rank, action->token, KVX_NOT_FOUND, NULL, 0, base_clock_ns());
        return;
    }
    fetch->server = exchange->server;
    fetch->rank = action->rank;
    fetch->token = action->token;
    fetch->until = action->timeout_ms ? base_clock_ns() + action->timeout_ms * UINT64_C(1000000) : UINT64_MAX;
    if (length) memcpy(fetch->key, action->key, length);
    fetch->next = exchange->fetches;
    exchange->fetches = fetch;
}

/* The key, as PMIx packs it, ends with a zero. */
static bool has_key(const char *data, size_t bytes, const char *key)
{
    return !*key || (data && memmem(data, bytes, key, strlen(key) + 1));
}

/* Without the key: the value is looked at again as long as somebody waits, whom the exchange tells when time is up. */
static void try_again(struct server_exchange *exchange, struct fetch *fetch)
{
    unsigned doublings = fetch->tries < MAX_DOUBLINGS ? fetch->tries : MAX_DOUBLINGS;
    fetch->tries++;
    fetch->again = base_clock_ns() + (FIRST_PAUSE_NS << doublings);
    if (fetch->again >= fetch->until) {
        base_free(AREA_LAUNCHER, fetch);
        return;
    }
    fetch->next = exchange->unripe;
    exchange->unripe = fetch;
}

/* On PMIx' thread. */
static void on_value(pmix_status_t status, char *data, size_t bytes, void *arg)
{
    struct fetch *fetch = arg;
    struct server_exchange *exchange = fetch->server->exchange;
    bool there = status == PMIX_SUCCESS;
    exchange_enter(exchange);
    bool retired = server_node_of(&fetch->server->jobs, fetch->rank) < 0;
    if (retired || server_has_mark(&fetch->server->jobs, fetch->rank, SERVER_DEAD)) {
        base_free(AREA_LAUNCHER, fetch); /* who asks has been told */
    } else if (there && has_key(data, bytes, fetch->key)) {
        /* Memory that runs short for this shows with the next call. */
        (void)kvx_fetched(exchange->kvx, fetch->rank, fetch->token, KVX_OK, data, bytes, base_clock_ns());
        base_free(AREA_LAUNCHER, fetch);
    } else {
        try_again(exchange, fetch);
    }
    exchange_leave(exchange, true);
}

void fetch_start_all(struct fetch *fetches)
{
    while (fetches) {
        struct fetch *next = fetches->next;
        pmix_proc_t proc;
        pmix_status_t status = PMIX_ERR_NOT_FOUND;
        if (server_proc(&fetches->server->jobs, fetches->rank, &proc))
            status = PMIx_server_dmodex_request(&proc, on_value, fetches);
        if (status != PMIX_SUCCESS) on_value(status, NULL, 0, fetches);
        fetches = next;
    }
}

uint64_t fetch_review(struct server_exchange *exchange, uint64_t now)
{
    uint64_t earliest = UINT64_MAX;
    for (struct fetch **place = &exchange->unripe; *place;) {
        struct fetch *fetch = *place;
        if (fetch->again > now) {
            if (fetch->again < earliest) earliest = fetch->again;
            place = &fetch->next;
            continue;
        }
        *place = fetch->next;
        fetch->next = exchange->fetches;
        exchange->fetches = fetch;
    }
    return earliest;
}

static void release_list(struct fetch *fetch)
{
    while (fetch) {
        struct fetch *next = fetch->next;
        base_free(AREA_LAUNCHER, fetch);
        fetch = next;
    }
}

static void forget_in(struct fetch **place, int first, int count)
{
    while (*place) {
        struct fetch *fetch = *place;
        if (fetch->rank < first || fetch->rank - first >= count) {
            place = &fetch->next;
            continue;
        }
        *place = fetch->next;
        base_free(AREA_LAUNCHER, fetch);
    }
}

void fetch_forget(struct server_exchange *exchange, int first, int count)
{
    forget_in(&exchange->fetches, first, count);
    forget_in(&exchange->unripe, first, count);
}

void fetch_release(struct server_exchange *exchange)
{
    release_list(exchange->fetches);
    release_list(exchange->unripe);
}
