/* request.c - what one daemon asks and another answers: values of ranks, and names. A request goes one step at a time;
 * every daemon on the way remembers who asked, under a number of its own, and the answer finds its way back. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <string.h>

#define MILLISECOND UINT64_C(1000000)

static struct request **bucket_of(struct kvx *kvx, uint32_t subject)
{
    return &kvx->requests[subject % BUCKETS];
}

/* ---- Answers ---- */

void request_answer(struct kvx *kvx, const struct waiter *waiter, const struct answer *answer)
{
    if (waiter->link != KVX_LOCAL) {
        struct wire_message message = {.type = WIRE_ANSWER,
                                       .status = answer->status,
                                       .generation = waiter->token,
                                       .subject = waiter->subject,
                                       .failure = answer->failure,
                                       .owner = answer->owner,
                                       .body = answer->data,
                                       .body_bytes = answer->bytes};
        kvx_send(kvx, waiter->link, &message);
        return;
    }
    struct kvx_action *action = kvx_act(kvx, KVX_COMPLETE);
    if (!action) return;
    action->token = waiter->token;
    action->status = answer->status;
    action->failure = answer->failure;
    action->owner = answer->owner;
    action->data = kvx_copy(kvx, answer->data, answer->bytes);
    action->bytes = answer->bytes;
}

static struct answer plain_answer(enum kvx_status status)
{
    return (struct answer){.status = status, .failure = {-1, -1}, .owner = -1};
}

static struct answer failed_answer(int rank, int daemon)
{
    return (struct answer){.status = KVX_FAILED, .failure = {rank, daemon}, .owner = -1};
}

static void forget(struct kvx *kvx, struct request **place)
{
    struct request *request = *place;
    *place = request->next;
    while (request->waiters) {
        struct waiter *next = request->waiters->next;
        kvx_give(kvx, request->waiters);
        request->waiters = next;
    }
    kvx_give(kvx, request);
}

void request_finish(struct kvx *kvx, struct request **place, const struct answer *answer)
{
    for (struct waiter *waiter = (*place)->waiters; waiter; waiter = waiter->next) request_answer(kvx, waiter, answer);
    forget(kvx, place);
}

/* ---- Time ---- */

static uint64_t deadline_after(uint64_t now, uint32_t timeout_ms)
{
    return timeout_ms ? now + timeout_ms * MILLISECOND : UINT64_MAX;
}

/* What is left, in whole milliseconds, as messages say it: 0 for no limit. */
static uint32_t time_left(const struct kvx *kvx, const struct request *request)
{
    uint64_t last = 0;
    for (const struct waiter *waiter = request->waiters; waiter; waiter = waiter->next)
        if (waiter->deadline > last) last = waiter->deadline;
    if (last == UINT64_MAX) return 0;
    uint64_t left = last > kvx->now ? (last - kvx->now + MILLISECOND - 1) / MILLISECOND : 1;
    return left > UINT32_MAX ? UINT32_MAX : (uint32_t)left;
}

/* Tells those whose time has passed. Returns the earliest deadline of the others. */
static uint64_t expire_waiters(struct kvx *kvx, struct request *request)
{
    const struct answer timeout = plain_answer(KVX_TIMEOUT);
    uint64_t earliest = UINT64_MAX;
    for (struct waiter **place = &request->waiters; *place;) {
        struct waiter *waiter = *place;
        if (waiter->deadline > kvx->now) {
            if (waiter->deadline < earliest) earliest = waiter->deadline;
            place = &waiter->next;
            continue;
        }
        request_answer(kvx, waiter, &timeout);
        *place = waiter->next;
        kvx_give(kvx, waiter);
    }
    return earliest;
}

void request_tick(struct kvx *kvx)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct request **place = &kvx->requests[i]; *place;) {
            kvx_want_tick(kvx, expire_waiters(kvx, *place));
            if ((*place)->waiters || PLANTED_BUG(BUG_KVX_REQUEST_KEPT))
                place = &(*place)->next;
            else
                forget(kvx, place); /* should an answer come, nobody knows its number */
        }
    }
}

/* ---- Asking ---- */

static void add_waiter(struct kvx *kvx, struct request *request, const struct waiter *who)
{
    struct waiter *waiter = kvx_take(kvx, sizeof *waiter), **place = &request->waiters;
    if (!waiter) return;
    *waiter = *who;
    waiter->next = NULL;
    while (*place) place = &(*place)->next;
    *place = waiter;
    kvx_want_tick(kvx, waiter->deadline);
}

static struct request *remember(struct kvx *kvx, const struct wire_message *message, const struct waiter *who, int via)
{
    struct request *request = kvx_take(kvx, sizeof *request + message->key_bytes + 1);
    if (!request) return NULL;
    request->id = ++kvx->last_request;
    request->type = message->type;
    request->subject = message->type == WIRE_GET ? message->subject : (uint32_t)request->id;
    request->flag = message->flag;
    request->via = via;
    request->key_bytes = message->key_bytes;
    if (message->key_bytes) memcpy(request->key, message->key, message->key_bytes);
    struct request **bucket = bucket_of(kvx, request->subject);
    request->next = *bucket;
    *bucket = request;
    add_waiter(kvx, request, who);
    return request;
}

/* Passes it on; the body is there the first time only, which is enough: only gets are sent again. */
static void forward(struct kvx *kvx, const struct request *request, const struct wire_message *message)
{
    struct wire_message copy = *message;
    copy.generation = request->id;
    copy.subject = request->subject;
    copy.timeout_ms = time_left(kvx, request);
    kvx_send(kvx, request->via, &copy);
}

static bool is_lost(const struct kvx *kvx, int rank, struct kvx_failure *who)
{
    const struct kvx_range one = {(uint32_t)rank, (uint32_t)rank};
    return kvx_find_victim(kvx, &one, 1, who);
}

static bool is_same(const struct request *request, const struct wire_message *message)
{
    return request->type == WIRE_GET && request->subject == message->subject &&
           request->key_bytes == message->key_bytes &&
           (!message->key_bytes || !memcmp(request->key, message->key, message->key_bytes));
}

/* An equal get that is under way. A fresh one may have been read before this one was asked. */
static struct request *find_same(struct kvx *kvx, const struct wire_message *message)
{
    struct request *request = *bucket_of(kvx, message->subject);
    while (request && !is_same(request, message)) request = request->next;
    return request;
}

/* Is the key in the value, as a text with its end? */
static bool has_key(const struct cached *cached, const struct wire_message *message)
{
    const unsigned char *at = cached->data, *end = at + cached->bytes;
    if (!message->key_bytes) return true;
    while ((at = memmem(at, (size_t)(end - at), message->key, message->key_bytes))) {
        at += message->key_bytes;
        if (at < end && *at == 0) return true;
    }
    return false;
}

static void ask_driver(struct kvx *kvx, const struct request *request)
{
    struct kvx_action *action = kvx_act(kvx, KVX_FETCH);
    if (!action) return;
    action->rank = (int)request->subject;
    action->token = request->id;
    action->timeout_ms = time_left(kvx, request);
    action->key = request->key_bytes ? request->key : NULL;
}

static void get(struct kvx *kvx, const struct wire_message *message, const struct waiter *who)
{
    int rank = (int)message->subject, via = map_route(kvx->map, kvx->me, map_daemon(kvx->map, rank));
    bool fresh = message->flag && !PLANTED_BUG(BUG_KVX_FRESH_FROM_CACHE);
    const struct cached *cached = fresh ? NULL : cache_find(kvx, rank);
    struct answer answer = failed_answer(-1, kvx->parent);
    struct request *request = fresh ? NULL : find_same(kvx, message);
    if (cached && has_key(cached, message)) {
        answer = plain_answer(KVX_OK);
        answer.data = cached->data;
        answer.bytes = cached->bytes;
        request_answer(kvx, who, &answer);
    } else if (is_lost(kvx, rank, &answer.failure) || (via == KVX_PARENT && kvx->orphan)) {
        request_answer(kvx, who, &answer);
    } else if (request) {
        add_waiter(kvx, request, who);
    } else if ((request = remember(kvx, message, who, via))) {
        if (via == KVX_LOCAL)
            ask_driver(kvx, request);
        else
            forward(kvx, request, message);
    }
}

static void ask_root(struct kvx *kvx, const struct wire_message *message, const struct waiter *who)
{
    struct answer answer = plain_answer(KVX_OK);
    if (kvx->me == 0) {
        if (names_serve(kvx, message, &answer))
            request_answer(kvx, who, &answer);
        else
            remember(kvx, message, who, KVX_LOCAL);
        return;
    }
    if (kvx->orphan) {
        answer = failed_answer(-1, kvx->parent);
        request_answer(kvx, who, &answer);
        return;
    }
    struct request *request = remember(kvx, message, who, KVX_PARENT);
    if (request) forward(kvx, request, message);
}

static void ask(struct kvx *kvx, const struct wire_message *message, const struct waiter *who)
{
    if (message->type == WIRE_GET)
        get(kvx, message, who);
    else
        ask_root(kvx, message, who);
}

int request_receive(struct kvx *kvx, int link, const struct wire_message *message)
{
    struct waiter who = {.link = link, .token = message->generation, .subject = message->subject};
    who.deadline = deadline_after(kvx->now, message->timeout_ms);
    if (message->type == WIRE_GET) {
        const struct kvx_range one = {message->subject, message->subject};
        enum map_presence presence = map_look_up(kvx->map, &one, 1);
        if (presence == MAP_NEVER) return kvx_broken(link, "a get of a rank that is not in the job");
        if (presence == MAP_GONE) return NCCLX_SUCCESS; /* who asks is about to learn it, too */
        if (map_route(kvx->map, kvx->me, map_daemon(kvx->map, (int)message->subject)) == link)
            return kvx_broken(link, "a get that goes back where it came from");
    } else {
        if (link == KVX_PARENT) return kvx_broken(link, "names are asked for at the root");
        if (message->owner < -1 || message->owner >= kvx->map->end)
            return kvx_broken(link, "a name of a rank that is not in the job");
    }
    ask(kvx, message, &who);
    return NCCLX_SUCCESS;
}

/* ---- Being answered ---- */

static struct request **find_request(struct kvx *kvx, uint32_t subject, uint64_t id)
{
    struct request **place = bucket_of(kvx, subject);
    while (*place && ((*place)->id != id || (*place)->subject != subject)) place = &(*place)->next;
    return place;
}

/* The first who asked may have given less time than others who joined: for these it is asked again. */
static bool ask_again(struct kvx *kvx, struct request *request)
{
    if (request->type != WIRE_GET || PLANTED_BUG(BUG_KVX_TIMEOUT_SHARED)) return false;
    uint64_t earliest = expire_waiters(kvx, request);
    if (!request->waiters) return false;
    kvx_want_tick(kvx, earliest);
    struct wire_message message = {.type = WIRE_GET,
                                   .subject = request->subject,
                                   .flag = request->flag,
                                   .owner = -1,
                                   .key = request->key,
                                   .key_bytes = request->key_bytes};
    request->id = ++kvx->last_request;
    forward(kvx, request, &message);
    return true;
}

int request_answered(struct kvx *kvx, int link, const struct wire_message *message)
{
    struct request **place = find_request(kvx, message->subject, message->generation);
    struct request *request = *place;
    if (!request) return NCCLX_SUCCESS; /* nobody waits for it any more */
    if (request->via != link) return kvx_broken(link, "an answer to what it was not asked");
    if (message->status == KVX_OK && request->type == WIRE_GET)
        cache_keep(kvx, (int)request->subject, message->body, message->body_bytes);
    if (message->status == KVX_TIMEOUT && ask_again(kvx, request)) return NCCLX_SUCCESS;
    struct answer answer = {message->status, message->failure, message->owner, message->body, message->body_bytes};
    request_finish(kvx, place, &answer);
    return NCCLX_SUCCESS;
}

int kvx_fetched(struct kvx *kvx, int rank, uint64_t token, enum kvx_status status, const void *data, size_t bytes,
                uint64_t now)
{
    struct request **place = find_request(kvx, (uint32_t)rank, token);
    kvx->now = now;
    if (!*place || (*place)->via != KVX_LOCAL || (*place)->type != WIRE_GET) return kvx_result(kvx);
    struct answer answer = plain_answer(bytes > KVX_MAX_VALUE ? KVX_LIMIT : status);
    if (answer.status == KVX_OK) {
        answer.data = data;
        answer.bytes = bytes;
        cache_keep(kvx, rank, data, bytes);
    }
    request_finish(kvx, place, &answer);
    return kvx_result(kvx);
}

/* ---- Losses ---- */

static void drop_waiters(struct kvx *kvx, struct request *request, int link)
{
    for (struct waiter **place = &request->waiters; *place;) {
        struct waiter *waiter = *place;
        if (waiter->link != link) {
            place = &waiter->next;
            continue;
        }
        *place = waiter->next;
        kvx_give(kvx, waiter);
    }
}

void request_link_lost(struct kvx *kvx, int link)
{
    const struct answer failed =
        failed_answer(-1, link == KVX_PARENT ? kvx->parent : kvx_child(kvx->map, kvx->me, link));
    for (int i = 0; i < BUCKETS; i++) {
        for (struct request **place = &kvx->requests[i]; *place;) {
            drop_waiters(kvx, *place, link);
            if ((*place)->via == link)
                request_finish(kvx, place, &failed);
            else if (!(*place)->waiters)
                forget(kvx, place);
            else
                place = &(*place)->next;
        }
    }
}

void request_ranks_died(struct kvx *kvx, const struct kvx_range *range, int daemon)
{
    for (int i = 0; i < BUCKETS; i++) {
        for (struct request **place = &kvx->requests[i]; *place;) {
            const struct request *request = *place;
            const struct answer failed = failed_answer((int)request->subject, daemon);
            if (request->type == WIRE_GET && map_contains(range, 1, (int)request->subject))
                request_finish(kvx, place, &failed);
            else
                place = &(*place)->next;
        }
    }
}

size_t request_count(const struct kvx *kvx)
{
    size_t count = 0;
    for (int i = 0; i < BUCKETS; i++)
        for (const struct request *request = kvx->requests[i]; request; request = request->next) count++;
    return count;
}

void request_release(struct kvx *kvx)
{
    for (int i = 0; i < BUCKETS; i++)
        while (kvx->requests[i]) forget(kvx, &kvx->requests[i]);
}

/* ---- Calls ---- */

static int check_name(const struct kvx *kvx, int owner, const char *name)
{
    size_t length = name ? strlen(name) : 1;
    if (length < 1 || length > KVX_MAX_KEY)
        return base_error(NCCLX_ERR_LIMIT, "a name has 1 to %d characters, not %zu", KVX_MAX_KEY, length);
    if (owner < -1 || (owner >= 0 && map_daemon(kvx->map, owner) < 0))
        return base_error(NCCLX_ERR_ARG, "rank %d is in no job", owner);
    return NCCLX_SUCCESS;
}

static int ask_name(struct kvx *kvx, struct wire_message *message, const char *name, uint64_t token, uint64_t deadline)
{
    int code = check_name(kvx, message->owner, name);
    if (code) return code;
    message->key = name;
    message->key_bytes = name ? strlen(name) : 0;
    ask(kvx, message, &(struct waiter){.link = KVX_LOCAL, .token = token, .deadline = deadline});
    return kvx_result(kvx);
}

static int get_here(struct kvx *kvx, const struct wire_message *message, uint32_t timeout_ms, uint64_t now,
                    uint64_t token)
{
    if (map_daemon(kvx->map, (int)message->subject) < 0)
        return base_error(NCCLX_ERR_ARG, "rank %d is in no job", (int)message->subject);
    kvx->now = now;
    ask(kvx, message, &(struct waiter){.link = KVX_LOCAL, .token = token, .deadline = deadline_after(now, timeout_ms)});
    return kvx_result(kvx);
}

int kvx_get(struct kvx *kvx, int rank, bool fresh, uint32_t timeout_ms, uint64_t now, uint64_t token)
{
    const struct wire_message message = {.type = WIRE_GET, .subject = (uint32_t)rank, .flag = fresh, .owner = -1};
    return get_here(kvx, &message, timeout_ms, now, token);
}

int kvx_get_with(struct kvx *kvx, int rank, const char *key, bool fresh, uint32_t timeout_ms, uint64_t now,
                 uint64_t token)
{
    struct wire_message message = {
        .type = WIRE_GET, .subject = (uint32_t)rank, .flag = fresh, .owner = -1, .key = key};
    int code = check_name(kvx, -1, key);
    if (code) return code;
    message.key_bytes = strlen(key);
    return get_here(kvx, &message, timeout_ms, now, token);
}

int kvx_publish(struct kvx *kvx, int owner, const char *name, const void *value, size_t bytes, uint64_t token)
{
    struct wire_message message = {.type = WIRE_PUBLISH, .owner = owner, .body = value, .body_bytes = bytes};
    if (bytes > KVX_MAX_VALUE)
        return base_error(NCCLX_ERR_LIMIT, "a published value of %zu bytes: at most %zu are allowed", bytes,
                          KVX_MAX_VALUE);
    if (!name) return base_error(NCCLX_ERR_ARG, "a value without a name");
    return ask_name(kvx, &message, name, token, UINT64_MAX);
}

int kvx_lookup(struct kvx *kvx, const char *name, bool wait, uint32_t timeout_ms, uint64_t now, uint64_t token)
{
    struct wire_message message = {.type = WIRE_LOOKUP, .flag = wait, .owner = -1};
    if (!name) return base_error(NCCLX_ERR_ARG, "a look-up without a name");
    kvx->now = now;
    return ask_name(kvx, &message, name, token, deadline_after(now, timeout_ms));
}

int kvx_unpublish(struct kvx *kvx, int owner, const char *name, uint64_t token)
{
    struct wire_message message = {.type = WIRE_UNPUBLISH, .owner = owner};
    return ask_name(kvx, &message, name, token, UINT64_MAX);
}
