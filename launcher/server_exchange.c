/* server_exchange.c - the PMIx server on the exchange of keys between daemons (bootstrap/kvx): calls and their answers,
 * fences and other meetings of ranks.
 *
 * PMIx' thread makes the calls; the daemon's thread brings messages of neighbours, deaths and the time. The exchange is
 * behind a lock. Answers are given to PMIx without the lock: those that carry data on any thread, which PMIx allows,
 * all others on its own, which it needs. */
#include "config.h"

#include "launcher/server_calls.h"

#include "runtime/base/base.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

/* ---- Life ---- */

void server_exchange_free(struct server_exchange *exchange)
{
    if (!exchange) return;
    fetch_release(exchange);
    kvx_destroy(exchange->kvx);
    kvx_map_free(exchange->map);
    base_free(AREA_LAUNCHER, exchange);
}

/* The daemon of each rank, by its place in the tree. Null: memory is short. */
static int *list_daemons(const struct message_launch *launch)
{
    int *daemons = base_calloc(AREA_LAUNCHER, (size_t)launch->rank_count, sizeof *daemons);
    for (int i = 0; daemons && i < launch->rank_count; i++) daemons[i] = launch->positions[launch->ranks[i].node];
    return daemons;
}

static int make_map(const struct message_launch *launch, struct kvx_map **map)
{
    int *daemons = list_daemons(launch);
    if (!daemons) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    int code = kvx_map_create(daemons, launch->rank_count, launch->node_count, launch->radix, map);
    base_free(AREA_LAUNCHER, daemons);
    return code;
}

int server_exchange_create(struct server *server)
{
    const struct message_launch *launch = server->launch;
    const struct kvx_limits limits = {.frame_bytes = KVX_FRAME_BYTES,
                                      .fence_bytes = (size_t)1 << 30,
                                      .cache_bytes = (size_t)16 << 20,
                                      .published_bytes = (size_t)64 << 20};
    struct server_exchange *exchange = base_calloc(AREA_LAUNCHER, 1, sizeof *exchange);
    if (!exchange) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    exchange->server = server;
    exchange->launch = launch;
    exchange->wake = UINT64_MAX;
    pthread_mutex_init(&exchange->lock, NULL);
    int code = make_map(launch, &exchange->map);
    if (!code) code = kvx_create(exchange->map, launch->positions[launch->node], &limits, &exchange->kvx);
    if (code)
        server_exchange_free(exchange);
    else
        server->exchange = exchange;
    return code;
}

/* ---- Calls ---- */

struct call *call_new(size_t parts, void *arg)
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

void call_free(struct call *call)
{
    if (!call) return;
    base_free(AREA_LAUNCHER, call->ranges);
    base_free(AREA_LAUNCHER, call);
}

uint64_t call_token(struct call *call, size_t index)
{
    call->left++;
    return (uint64_t)(uintptr_t)&call->part[index];
}

void call_end_part(struct server_exchange *exchange, struct call *call, pmix_status_t status)
{
    if (status != PMIX_SUCCESS && call->status == PMIX_SUCCESS) call->status = status;
    if (--call->left) return;
    call->next = exchange->ended;
    exchange->ended = call;
}

void call_check_part(struct server_exchange *exchange, struct call *call, int code)
{
    if (code == NCCLX_SUCCESS) return;
    pmix_status_t status = PMIX_ERR_BAD_PARAM;
    if (code == NCCLX_ERR_LIMIT) status = PMIX_ERR_OUT_OF_RESOURCE;
    if (code == NCCLX_ERR_NO_MEM) status = PMIX_ERR_NOMEM;
    call_end_part(exchange, call, status);
}

uint32_t info_timeout_ms(const pmix_info_t info[], size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const pmix_value_t *value = &info[i].value;
        int64_t seconds = 0;
        if (!PMIX_CHECK_KEY(&info[i], PMIX_TIMEOUT)) continue;
        if (value->type == PMIX_INT) seconds = value->data.integer;
        if (value->type == PMIX_UINT32) seconds = value->data.uint32;
        if (seconds > 0) return seconds > UINT32_MAX / 1000 ? UINT32_MAX : (uint32_t)seconds * 1000;
    }
    return 0;
}

bool info_is_set(const pmix_info_t info[], size_t count, const char *key)
{
    for (size_t i = 0; i < count; i++)
        if (PMIX_CHECK_KEY(&info[i], key)) return PMIX_INFO_TRUE(&info[i]);
    return false;
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

/* ---- Fences that fail ---- */

/* The lowest participant that is not on the node which is missing. */
struct speaker {
    int missing; /* the node */
    int number, node;
};

static void look_at(void *arg, int number, int node)
{
    struct speaker *speaker = arg;
    if (node == speaker->missing || number >= speaker->number) return;
    speaker->number = number;
    speaker->node = node;
}

static int node_at(const struct server_exchange *exchange, int position)
{
    const struct message_launch *launch = exchange->launch;
    for (int node = 0; node < launch->node_count; node++)
        if (launch->positions[node] == position) return node;
    return -1;
}

/* One daemon speaks for all: that of this participant. */
static bool speaks(const struct server_exchange *exchange, const struct call *call, int missing)
{
    struct speaker speaker = {.missing = missing, .number = INT32_MAX, .node = -1};
    for (size_t i = 0; i < call->count; i++) server_visit(&exchange->server->jobs, &call->ranges[i], look_at, &speaker);
    return speaker.node == exchange->launch->node;
}

static void tell_missing(const struct server_exchange *exchange, const struct call *call, int missing)
{
    char text[600];
    int node = missing < 0 ? -1 : node_at(exchange, missing);
    if (node < 0 || !speaks(exchange, call, node)) return;
    int length = snprintf(text, sizeof text, "a fence of ranks has reached its time limit: ranks on %s have not come",
                          exchange->launch->nodes[node]);
    server_post(exchange->server, SERVER_TROUBLE, -1, 0, text, (size_t)length);
}

/* ---- Ends ---- */

static void note_collected(struct server_exchange *exchange, const struct call *call)
{
    for (size_t i = 0; i < call->count; i++)
        server_set_marks(&exchange->server->jobs, &call->ranges[i], SERVER_COLLECTED);
}

static void end_operation(struct server_exchange *exchange, const struct kvx_action *action)
{
    struct part *part = (struct part *)(uintptr_t)action->token;
    struct call *call = part->call;
    if (call->kind == CALL_FENCE || call->kind == CALL_MODEX) {
        call->data = action->data;
        call->bytes = action->bytes;
    } else {
        if (call->kind == CALL_LOOKUP) names_keep(exchange->server, &call->found[part->index], action);
        base_free(AREA_BOOTSTRAP, action->data);
    }
    if (call->ranges && action->status == KVX_TIMEOUT) tell_missing(exchange, call, action->failure.daemon);
    if (call->collects && action->status == KVX_OK) note_collected(exchange, call);
    call_end_part(exchange, call, status_of(action->status));
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
        else if (action.kind == KVX_FETCH)
            fetch_begin(exchange, &action);
        else if (action.kind == KVX_SEND &&
                 !server_post(server, SERVER_SEND, action.link, 0, action.message, action.bytes))
            give_up(exchange);
    }
    uint64_t wake = fetch_review(exchange, base_clock_ns()), deadline = kvx_deadline(exchange->kvx);
    if (deadline < wake) wake = deadline;
    if (wake != exchange->wake) server_wake_at(server, wake);
    exchange->wake = wake;
}

static void release_data(void *data)
{
    base_free(AREA_BOOTSTRAP, data);
}

static void answer(struct call *call)
{
    if (call->kind == CALL_FENCE || call->kind == CALL_MODEX)
        call->done.data(call->status, call->data, call->bytes, call->arg, release_data, call->data);
    else if (call->kind == CALL_LOOKUP)
        names_answer(call);
    else
        call->done.change(call->status, call->arg);
    call_free(call);
}

static void on_pmix_thread(pmix_status_t status, void *arg)
{
    (void)status;
    answer(arg);
}

/* PMIx calls back on its thread once it has forgotten a rank that it never knew. */
static void answer_on_pmix_thread(struct call *call)
{
    pmix_proc_t nobody;
    PMIX_LOAD_PROCID(&nobody, "ncclxd.nobody", 0);
    PMIx_server_deregister_client(&nobody, on_pmix_thread, call);
}

void exchange_enter(struct server_exchange *exchange)
{
    pthread_mutex_lock(&exchange->lock);
}

void exchange_leave(struct server_exchange *exchange, bool on_its_thread)
{
    drain(exchange);
    struct call *call = exchange->ended;
    struct fetch *fetches = exchange->fetches;
    exchange->ended = NULL;
    exchange->fetches = NULL;
    pthread_mutex_unlock(&exchange->lock);
    while (call) {
        struct call *next = call->next;
        if (on_its_thread || call->kind == CALL_FENCE || call->kind == CALL_MODEX)
            answer(call);
        else
            answer_on_pmix_thread(call);
        call = next;
    }
    fetch_start_all(fetches);
}

void exchange_leave_with(struct server_exchange *exchange, struct call *call)
{
    call_end_part(exchange, call, PMIX_SUCCESS);
    exchange_leave(exchange, true);
}

/* ---- Meetings ---- */

static pmix_status_t meet(struct server *server, enum server_meeting kind, const struct server_participants *who,
                          struct call *call, const void *data, size_t bytes)
{
    struct server_exchange *exchange = server->exchange;
    if (!call) return PMIX_ERR_NOMEM;
    call->count = who->count;
    call->ranges = server_ranges(&server->jobs, who->procs, who->count);
    if (!call->ranges) {
        call_free(call);
        return PMIX_ERR_BAD_PARAM;
    }
    exchange_enter(exchange);
    const struct kvx_fence fence = {.kind = kind,
                                    .ranges = call->ranges,
                                    .count = who->count,
                                    .data = data,
                                    .bytes = bytes,
                                    .timeout_ms = info_timeout_ms(who->info, who->info_count),
                                    .token = call_token(call, 0)};
    call_check_part(exchange, call, kvx_begin_fence(exchange->kvx, &fence, base_clock_ns()));
    exchange_leave_with(exchange, call);
    return PMIX_SUCCESS;
}

pmix_status_t server_exchange_fence(struct server *server, const struct server_participants *who, const void *data,
                                    size_t bytes, pmix_modex_cbfunc_t done, void *arg)
{
    struct call *call = call_new(1, arg);
    if (call) {
        call->kind = CALL_FENCE;
        call->done.data = done;
        call->collects = info_is_set(who->info, who->info_count, PMIX_COLLECT_DATA);
    }
    return meet(server, SERVER_FENCE, who, call, data, bytes);
}

pmix_status_t server_exchange_meet(struct server *server, enum server_meeting kind,
                                   const struct server_participants *who, pmix_op_cbfunc_t done, void *arg)
{
    struct call *call = call_new(1, arg);
    if (call) {
        call->kind = CALL_MEET;
        call->done.change = done;
    }
    return meet(server, kind, who, call, NULL, 0);
}

/* ---- What the daemon reports ---- */

/* A code of the exchange that the daemon can do nothing about. */
static void leave_after(struct server_exchange *exchange, int code)
{
    if (code == NCCLX_ERR_NO_MEM) give_up(exchange);
    exchange_leave(exchange, false);
}

int server_exchange_add(struct server *server, const struct message_launch *launch)
{
    int *daemons = list_daemons(launch);
    if (!daemons) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the PMIx server");
    exchange_enter(server->exchange);
    int code = kvx_map_add(server->exchange->map, launch->first, daemons, launch->rank_count);
    exchange_leave(server->exchange, false);
    base_free(AREA_LAUNCHER, daemons);
    return code;
}

void server_exchange_retire(struct server *server, const struct message_launch *launch)
{
    struct server_exchange *exchange = server->exchange;
    exchange_enter(exchange);
    fetch_forget(exchange, launch->first, launch->rank_count);
    int code = kvx_retire(exchange->kvx, launch->first, launch->rank_count);
    kvx_map_remove(exchange->map, launch->first);
    leave_after(exchange, code);
}

void server_exchange_rank_died(struct server *server, int number)
{
    exchange_enter(server->exchange);
    leave_after(server->exchange, kvx_rank_died(server->exchange->kvx, number));
}

int server_exchange_receive(struct server *server, int link, const void *data, size_t bytes)
{
    exchange_enter(server->exchange);
    int code = kvx_receive(server->exchange->kvx, link, data, bytes, base_clock_ns());
    leave_after(server->exchange, code);
    return code;
}

void server_exchange_link_lost(struct server *server, int link)
{
    exchange_enter(server->exchange);
    leave_after(server->exchange, kvx_link_lost(server->exchange->kvx, link));
}

void server_exchange_tick(struct server *server)
{
    exchange_enter(server->exchange);
    leave_after(server->exchange, kvx_tick(server->exchange->kvx, base_clock_ns()));
}
