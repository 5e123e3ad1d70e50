/* server_exchange.c - fences and published names of the PMIx server, on the exchange of keys between daemons
 * (bootstrap/kvx).
 *
 * PMIx' thread makes the calls, the daemon's reports deaths; the exchange is behind a lock. Answers are given to PMIx
 * without the lock: those of fences on either thread, which PMIx allows, all others on its own, which it needs. */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/kvx/kvx.h"
#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>

struct call;

/* One operation of the exchange: a call has one for each name. */
struct part {
    struct call *call;
    size_t index;
};

/* What PMIx has asked for. */
struct call {
    struct call *next; /* among those that have ended */
    enum { CALL_FENCE, CALL_LOOKUP, CALL_CHANGE } kind;
    union {
        pmix_modex_cbfunc_t fence;
        pmix_lookup_cbfunc_t lookup;
        pmix_op_cbfunc_t change;
    } done;
    void *arg;
    pmix_status_t status; /* the first that is no success */
    size_t left;          /* parts under way, and one while they are being made */
    void *data;           /* of a fence */
    size_t bytes;
    pmix_pdata_t *found; /* of a look-up: one for each part */
    size_t parts;
    struct part part[];
};

struct server_exchange {
    struct server *server;
    pthread_mutex_t lock;
    struct kvx_map *map;
    struct kvx *kvx;
    struct call *ended;
    uint64_t wake; /* when the tick is asked for */
    bool told;     /* that memory is short */
};

/* ---- Life ---- */

void server_exchange_free(struct server_exchange *exchange)
{
    if (!exchange) return;
    kvx_destroy(exchange->kvx);
    kvx_map_free(exchange->map);
    base_free(AREA_LAUNCHER, exchange);
}

/* The daemon of each rank, by its place in the tree. */
static int make_map(const struct server_options *options, struct kvx_map **map)
{
    const struct message_launch *launch = options->launch;
    int *daemons = base_calloc(AREA_LAUNCHER, (size_t)launch->rank_count, sizeof *daemons);
    if (!daemons) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    for (int i = 0; i < launch->rank_count; i++) daemons[i] = launch->positions[launch->ranks[i].node];
    int code = kvx_map_create(daemons, launch->rank_count, launch->node_count, launch->radix, map);
    base_free(AREA_LAUNCHER, daemons);
    return code;
}

int server_exchange_create(struct server *server, const struct server_options *options)
{
    const struct kvx_limits limits = {.frame_bytes = KVX_FRAME_BYTES,
                                      .fence_bytes = (size_t)1 << 30,
                                      .cache_bytes = (size_t)16 << 20,
                                      .published_bytes = (size_t)64 << 20};
    struct server_exchange *exchange = base_calloc(AREA_LAUNCHER, 1, sizeof *exchange);
    if (!exchange) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    exchange->server = server;
    exchange->wake = UINT64_MAX;
    pthread_mutex_init(&exchange->lock, NULL);
    int code = make_map(options, &exchange->map);
    int position = options->launch->positions[options->launch->node];
    if (!code) code = kvx_create(exchange->map, position, &limits, &exchange->kvx);
    if (code)
        server_exchange_free(exchange);
    else
        server->exchange = exchange;
    return code;
}

/* ---- Calls ---- */

static struct call *new_call(size_t parts, void *arg)
{
    struct call *call = base_calloc(AREA_LAUNCHER, 1, sizeof *call + parts * sizeof call->part[0]);
    if (!call) return NULL;
    call->arg = arg;
    call->status = PMIX_SUCCESS;
    call->left = 1;
    call->parts = parts;
    for (size_t i = 0; i < parts; i++) call->part[i] = (struct part){call, i};
    return call;
}

static uint64_t token_of(struct call *call, size_t index)
{
    call->left++;
    return (uint64_t)(uintptr_t)&call->part[index];
}

static void end_part(struct server_exchange *exchange, struct call *call, pmix_status_t status)
{
    if (status != PMIX_SUCCESS && call->status == PMIX_SUCCESS) call->status = status;
    if (--call->left) return;
    call->next = exchange->ended;
    exchange->ended = call;
}

/* What the exchange refuses to take ends at once. */
static void check_part(struct server_exchange *exchange, struct call *call, int code)
{
    if (code == NCCLX_SUCCESS) return;
    pmix_status_t status = PMIX_ERR_BAD_PARAM;
    if (code == NCCLX_ERR_LIMIT) status = PMIX_ERR_OUT_OF_RESOURCE;
    if (code == NCCLX_ERR_NO_MEM) status = PMIX_ERR_NOMEM;
    end_part(exchange, call, status);
}

static pmix_status_t status_of(enum kvx_status status)
{
    switch (status) {
    case KVX_OK:
        return PMIX_SUCCESS;
    case KVX_NOT_FOUND:
        return PMIX_ERR_NOT_FOUND;
    case KVX_DUPLICATE:
        return PMIX_ERR_DUPLICATE_KEY;
    case KVX_TIMEOUT:
        return PMIX_ERR_TIMEOUT;
    case KVX_FAILED:
        return PMIX_ERR_PROC_ABORTED;
    default:
        return PMIX_ERR_OUT_OF_RESOURCE;
    }
}

/* ---- Values: packed by PMIx, opaque to the exchange ---- */

static pmix_status_t pack_value(const pmix_value_t *value, pmix_byte_object_t *bytes)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_pack(NULL, &buffer, (void *)(uintptr_t)value, 1, PMIX_VALUE);
    if (status == PMIX_SUCCESS) status = PMIx_Data_unload(&buffer, bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

static pmix_status_t unpack_value(const void *data, size_t size, pmix_value_t *value)
{
    pmix_byte_object_t bytes = {.bytes = malloc(size), .size = size};
    pmix_data_buffer_t buffer;
    int32_t count = 1;
    if (!bytes.bytes) return PMIX_ERR_NOMEM;
    memcpy(bytes.bytes, data, size);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &bytes); /* takes the bytes */
    if (status == PMIX_SUCCESS) status = PMIx_Data_unpack(NULL, &buffer, value, &count, PMIX_VALUE);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

/* ---- Ends ---- */

static void keep_found(pmix_pdata_t *entry, const struct kvx_action *action)
{
    if (action->status != KVX_OK || action->bytes == 0) return;
    if (unpack_value(action->data, action->bytes, &entry->value) != PMIX_SUCCESS) return;
    PMIX_LOAD_PROCID(&entry->proc, server_running->job, (pmix_rank_t)action->owner);
}

static void end_operation(struct server_exchange *exchange, const struct kvx_action *action)
{
    struct part *part = (struct part *)(uintptr_t)action->token;
    struct call *call = part->call;
    pmix_status_t status = status_of(action->status);
    if (call->kind == CALL_FENCE) {
        call->data = action->data;
        call->bytes = action->bytes;
    } else {
        if (call->kind == CALL_LOOKUP) keep_found(&call->found[part->index], action);
        base_free(AREA_BOOTSTRAP, action->data);
    }
    end_part(exchange, call, status);
}

/* What neighbours must hear is lost: nothing that they wait for can be relied on. */
static void give_up(struct server_exchange *exchange)
{
    static const char text[] = "memory is short for the exchange of keys between nodes";
    if (exchange->told) return;
    exchange->told = true;
    server_post(exchange->server, SERVER_FAILED, -1, 0, text, sizeof text - 1);
}

static void drain(struct server_exchange *exchange)
{
    struct server *server = exchange->server;
    struct kvx_action action;
    while (kvx_next(exchange->kvx, &action)) {
        if (action.kind == KVX_COMPLETE)
            end_operation(exchange, &action);
        else if (action.kind == KVX_SEND &&
                 !server_post(server, SERVER_SEND, action.link, 0, action.message, action.bytes))
            give_up(exchange);
    }
    uint64_t wake = kvx_deadline(exchange->kvx);
    if (wake != exchange->wake) server_wake_at(server, wake);
    exchange->wake = wake;
}

static void release_data(void *data)
{
    base_free(AREA_BOOTSTRAP, data);
}

/* Moves what was found to the front. */
static size_t compact(pmix_pdata_t *found, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (found[i].value.type == PMIX_UNDEF) continue;
        pmix_pdata_t entry = found[i];
        found[i] = found[kept];
        found[kept++] = entry;
    }
    return kept;
}

static void answer_lookup(struct call *call)
{
    size_t found = compact(call->found, call->parts);
    pmix_status_t status = found == call->parts ? PMIX_SUCCESS : found ? PMIX_ERR_PARTIAL_SUCCESS : call->status;
    call->done.lookup(status, found ? call->found : NULL, found, call->arg);
    PMIX_PDATA_FREE(call->found, call->parts);
}

static void answer(struct call *call)
{
    if (call->kind == CALL_FENCE)
        call->done.fence(call->status, call->data, call->bytes, call->arg, release_data, call->data);
    else if (call->kind == CALL_LOOKUP)
        answer_lookup(call);
    else
        call->done.change(call->status, call->arg);
    base_free(AREA_LAUNCHER, call);
}

/* Gives the lock back, then PMIx what has ended. */
static void leave(struct server_exchange *exchange)
{
    drain(exchange);
    struct call *call = exchange->ended;
    exchange->ended = NULL;
    pthread_mutex_unlock(&exchange->lock);
    while (call) {
        struct call *next = call->next;
        answer(call);
        call = next;
    }
}

/* All parts are made. */
static void leave_with(struct server_exchange *exchange, struct call *call)
{
    end_part(exchange, call, PMIX_SUCCESS);
    leave(exchange);
}

/* ---- What PMIx asks ---- */

/* Null when one of them is not in the job. */
static struct kvx_range *ranges_of(const struct server *server, const pmix_proc_t procs[], size_t count)
{
    struct kvx_range *ranges = base_calloc(AREA_LAUNCHER, count + 1, sizeof *ranges);
    for (size_t i = 0; ranges && i < count; i++) {
        bool all = procs[i].rank == PMIX_RANK_WILDCARD;
        if (strncmp(procs[i].nspace, server->job, PMIX_MAX_NSLEN) ||
            (!all && procs[i].rank >= (pmix_rank_t)server->rank_count)) {
            base_free(AREA_LAUNCHER, ranges);
            return NULL;
        }
        ranges[i].first = all ? 0 : procs[i].rank;
        ranges[i].last = all ? (uint32_t)server->rank_count - 1 : procs[i].rank;
    }
    return ranges;
}

pmix_status_t server_exchange_fence(struct server *server, const pmix_proc_t procs[], size_t count, const void *data,
                                    size_t bytes, pmix_modex_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    struct kvx_range *ranges = ranges_of(server, procs, count);
    struct call *call = ranges ? new_call(1, arg) : NULL;
    if (call) {
        call->kind = CALL_FENCE;
        call->done.fence = done;
        pthread_mutex_lock(&exchange->lock);
        check_part(exchange, call, kvx_fence(exchange->kvx, ranges, count, data, bytes, token_of(call, 0)));
        leave_with(exchange, call);
    }
    base_free(AREA_LAUNCHER, ranges);
    if (!ranges) return PMIX_ERR_BAD_PARAM;
    return call ? PMIX_SUCCESS : PMIX_ERR_NOMEM;
}

static bool is_directive(const char *key)
{
    return !strncmp(key, "pmix", 4);
}

static void publish_one(struct server_exchange *exchange, struct call *call, size_t index, int rank,
                        const pmix_info_t *info)
{
    pmix_byte_object_t bytes = {.bytes = NULL};
    pmix_status_t status = pack_value(&info->value, &bytes);
    uint64_t token = token_of(call, index);
    if (status == PMIX_SUCCESS)
        check_part(exchange, call, kvx_publish(exchange->kvx, rank, info->key, bytes.bytes, bytes.size, token));
    else
        end_part(exchange, call, status);
    free(bytes.bytes);
}

pmix_status_t server_exchange_publish(struct server *server, int rank, const pmix_info_t info[], size_t count,
                                      pmix_op_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    struct call *call = new_call(count, arg);
    if (!call) return PMIX_ERR_NOMEM;
    call->kind = CALL_CHANGE;
    call->done.change = done;
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < count; i++)
        if (!is_directive(info[i].key)) publish_one(exchange, call, i, rank, &info[i]);
    leave_with(exchange, call);
    return PMIX_SUCCESS;
}

static size_t count_keys(char **keys)
{
    size_t count = 0;
    while (keys && keys[count]) count++;
    return count;
}

pmix_status_t server_exchange_lookup(struct server *server, char **keys, pmix_lookup_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    size_t wanted = count_keys(keys);
    struct call *call = wanted ? new_call(wanted, arg) : NULL;
    if (!call) return wanted ? PMIX_ERR_NOMEM : PMIX_ERR_BAD_PARAM;
    call->kind = CALL_LOOKUP;
    call->done.lookup = done;
    PMIX_PDATA_CREATE(call->found, wanted);
    if (!call->found) {
        base_free(AREA_LAUNCHER, call);
        return PMIX_ERR_NOMEM;
    }
    for (size_t i = 0; i < wanted; i++) PMIX_LOAD_KEY(call->found[i].key, keys[i]);
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < wanted; i++)
        check_part(exchange, call, kvx_lookup(exchange->kvx, keys[i], false, 0, 0, token_of(call, i)));
    leave_with(exchange, call);
    return PMIX_SUCCESS;
}

pmix_status_t server_exchange_unpublish(struct server *server, int rank, char **keys, pmix_op_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    size_t count = keys ? count_keys(keys) : 1; /* one for all */
    struct call *call = new_call(count, arg);
    if (!call) return PMIX_ERR_NOMEM;
    call->kind = CALL_CHANGE;
    call->done.change = done;
    pthread_mutex_lock(&exchange->lock);
    for (size_t i = 0; i < count; i++)
        check_part(exchange, call, kvx_unpublish(exchange->kvx, rank, keys ? keys[i] : NULL, token_of(call, i)));
    leave_with(exchange, call);
    return PMIX_SUCCESS;
}

/* ---- What the daemon reports ---- */

/* A code of the exchange that the daemon can do nothing about. */
static void leave_after(struct server_exchange *exchange, int code)
{
    if (code == NCCLX_ERR_NO_MEM) give_up(exchange);
    leave(exchange);
}

void server_exchange_rank_died(struct server *server, int rank)
{
    struct server_exchange *exchange = server->exchange;
    pthread_mutex_lock(&exchange->lock);
    leave_after(exchange, kvx_rank_died(exchange->kvx, rank));
}

int server_exchange_receive(struct server *server, int link, const void *data, size_t bytes)
{
    struct server_exchange *exchange = server->exchange;
    pthread_mutex_lock(&exchange->lock);
    int code = kvx_receive(exchange->kvx, link, data, bytes, base_clock_ns());
    leave_after(exchange, code);
    return code;
}

void server_exchange_link_lost(struct server *server, int link)
{
    struct server_exchange *exchange = server->exchange;
    pthread_mutex_lock(&exchange->lock);
    leave_after(exchange, kvx_link_lost(exchange->kvx, link));
}

void server_exchange_tick(struct server *server)
{
    struct server_exchange *exchange = server->exchange;
    pthread_mutex_lock(&exchange->lock);
    leave_after(exchange, kvx_tick(exchange->kvx, base_clock_ns()));
}
