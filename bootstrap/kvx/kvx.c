/* kvx.c - an instance: its memory, its output, and which function an event goes to. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <string.h>

/* ---- Memory: blocks of one size are used again, others come and go ---- */

#define BLOCK_BYTES 240

union block {
    struct {
        union block *next; /* of the spare ones */
        size_t bytes;
    } head;
    max_align_t align;
};

void *kvx_take(struct kvx *kvx, size_t bytes)
{
    union block *block = bytes <= BLOCK_BYTES ? kvx->spare : NULL;
    if (block) {
        kvx->spare = block->head.next;
    } else {
        size_t room = bytes <= BLOCK_BYTES ? BLOCK_BYTES : bytes;
        block = base_alloc(AREA_BOOTSTRAP, sizeof *block + room);
        if (!block) {
            kvx->short_of_memory = true;
            return NULL;
        }
        block->head.bytes = room;
    }
    return memset(block + 1, 0, bytes);
}

void kvx_give(struct kvx *kvx, void *memory)
{
    if (!memory) return;
    union block *block = (union block *)memory - 1;
    if (block->head.bytes == BLOCK_BYTES) {
        block->head.next = kvx->spare;
        kvx->spare = block;
    } else {
        base_free(AREA_BOOTSTRAP, block);
    }
}

struct packet *packet_take(struct kvx *kvx, size_t room)
{
    struct packet *packet = kvx_take(kvx, sizeof *packet + room);
    if (!packet) return NULL;
    packet->references = 1;
    packet->room = room;
    return packet;
}

void packet_drop(struct kvx *kvx, struct packet *packet)
{
    if (packet && --packet->references == 0) kvx_give(kvx, packet);
}

/* ---- Output ---- */

static struct output *add_output(struct kvx *kvx)
{
    struct output *output = kvx_take(kvx, sizeof *output);
    if (!output) return NULL;
    output->action = (struct kvx_action){.rank = -1, .owner = -1, .failure = {-1, -1}};
    *kvx->last = output;
    kvx->last = &output->next;
    return output;
}

struct kvx_action *kvx_act(struct kvx *kvx, enum kvx_action_kind kind)
{
    struct output *output = add_output(kvx);
    if (!output) return NULL;
    output->action.kind = kind;
    return &output->action;
}

void kvx_send_packet(struct kvx *kvx, int link, struct packet *packet)
{
    bool closed = link == KVX_PARENT ? kvx->orphan : kvx->closed[link];
    struct output *output = closed ? NULL : add_output(kvx);
    if (!output) return;
    output->action.kind = KVX_SEND;
    output->action.link = link;
    output->action.message = packet->data;
    output->action.bytes = packet->bytes;
    output->packet = packet;
    packet->references++;
}

void kvx_send(struct kvx *kvx, int link, const struct wire_message *message)
{
    struct packet *packet = packet_take(kvx, wire_bytes(message));
    if (!packet) return;
    packet->bytes = packet->room;
    wire_encode(message, packet->data);
    kvx_send_packet(kvx, link, packet);
    packet_drop(kvx, packet);
}

void *kvx_copy(struct kvx *kvx, const void *data, size_t bytes)
{
    void *copy = bytes ? base_alloc(AREA_BOOTSTRAP, bytes) : NULL;
    if (bytes && !copy) kvx->short_of_memory = true;
    return copy ? memcpy(copy, data, bytes) : NULL;
}

static void end_current(struct kvx *kvx)
{
    if (!kvx->current) return;
    packet_drop(kvx, kvx->current->packet);
    kvx_give(kvx, kvx->current);
    kvx->current = NULL;
}

bool kvx_next(struct kvx *kvx, struct kvx_action *action)
{
    end_current(kvx);
    if (!kvx->first) return false;
    kvx->current = kvx->first;
    kvx->first = kvx->first->next;
    if (!kvx->first) kvx->last = &kvx->first;
    *action = kvx->current->action;
    return true;
}

int kvx_result(const struct kvx *kvx)
{
    if (!kvx->short_of_memory) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_NO_MEM, "memory is short for the exchange of keys on daemon %d: the job must end",
                      kvx->me);
}

int kvx_broken(int link, const char *what)
{
    if (link == KVX_PARENT) return base_error(NCCLX_ERR_TRANSPORT, "the parent daemon broke the protocol: %s", what);
    return base_error(NCCLX_ERR_TRANSPORT, "the daemon of child %d broke the protocol: %s", link, what);
}

void kvx_want_tick(struct kvx *kvx, uint64_t deadline)
{
    if (deadline < kvx->deadline) kvx->deadline = deadline;
}

uint64_t kvx_deadline(const struct kvx *kvx)
{
    return kvx->deadline;
}

int kvx_tick(struct kvx *kvx, uint64_t now)
{
    kvx->now = now;
    if (now < kvx->deadline) return kvx_result(kvx);
    kvx->deadline = UINT64_MAX;
    request_tick(kvx);
    fence_tick(kvx);
    return kvx_result(kvx);
}

uint32_t kvx_hash(const void *data, size_t bytes)
{
    uint32_t hash = 2166136261; /* FNV-1a */
    for (size_t i = 0; i < bytes; i++) hash = (hash ^ ((const unsigned char *)data)[i]) * 16777619;
    return hash;
}

/* ---- Who is lost ---- */

static bool concerns(const struct kvx *kvx, const struct kvx_failure *failure, const struct kvx_range *ranges,
                     size_t count)
{
    if (failure->rank >= 0) return map_contains(ranges, count, failure->rank);
    return map_count_below(kvx->map, ranges, count, failure->daemon) > 0;
}

bool kvx_find_victim(const struct kvx *kvx, const struct kvx_range *ranges, size_t count, struct kvx_failure *who)
{
    for (const struct lost *lost = kvx->lost; lost; lost = lost->next) {
        if (!concerns(kvx, &lost->failure, ranges, count)) continue;
        *who = lost->failure;
        return true;
    }
    return false;
}

/* Notes it, tells those above, and lets operations fail that need who is lost. */
static void note_lost(struct kvx *kvx, struct kvx_failure failure)
{
    struct lost **place = &kvx->lost;
    for (; *place; place = &(*place)->next)
        if ((*place)->failure.rank == failure.rank && (*place)->failure.daemon == failure.daemon) return;
    struct lost *lost = kvx_take(kvx, sizeof *lost);
    if (!lost) return;
    lost->failure = failure;
    *place = lost; /* at the end: the first to die is named */
    struct wire_message message = {.type = WIRE_LOST, .failure = failure};
    if (kvx->me == 0) {
        struct kvx_action *report = kvx_act(kvx, KVX_REPORT);
        if (report) report->failure = failure;
    } else if (!PLANTED_BUG(BUG_KVX_LOSS_NOT_TOLD)) {
        kvx_send(kvx, KVX_PARENT, &message);
    }
    fence_review(kvx);
}

int kvx_rank_died(struct kvx *kvx, int rank)
{
    const struct kvx_range one = {(uint32_t)rank, (uint32_t)rank};
    if (map_daemon(kvx->map, rank) != kvx->me)
        return base_error(NCCLX_ERR_ARG, "rank %d is none of daemon %d", rank, kvx->me);
    note_lost(kvx, (struct kvx_failure){rank, kvx->me});
    request_ranks_died(kvx, &one, kvx->me);
    return kvx_result(kvx);
}

int kvx_link_lost(struct kvx *kvx, int link)
{
    if (link < KVX_PARENT || link >= kvx->child_count || (link == KVX_PARENT && kvx->me == 0))
        return base_error(NCCLX_ERR_ARG, "daemon %d has no link %d", kvx->me, link);
    bool *closed = link == KVX_PARENT ? &kvx->orphan : &kvx->closed[link];
    if (*closed) return kvx_result(kvx);
    *closed = true;
    request_link_lost(kvx, link);
    if (link == KVX_PARENT)
        fence_review(kvx);
    else
        note_lost(kvx, (struct kvx_failure){-1, kvx_child(kvx->map, kvx->me, link)});
    return kvx_result(kvx);
}

static int receive_lost(struct kvx *kvx, int link, const struct wire_message *message)
{
    const struct kvx_failure *failure = &message->failure;
    if (link == KVX_PARENT || failure->daemon < 0 || failure->daemon >= kvx->map->daemon_count ||
        map_route(kvx->map, kvx->me, failure->daemon) != link || failure->rank >= kvx->map->end)
        return kvx_broken(link, "it reports the death of somebody who is not below it");
    int home = failure->rank < 0 ? failure->daemon : map_daemon(kvx->map, failure->rank);
    if (home < 0) return NCCLX_SUCCESS; /* its job is over, and forgotten */
    if (home != failure->daemon) return kvx_broken(link, "it reports the death of somebody who is elsewhere");
    note_lost(kvx, *failure);
    return NCCLX_SUCCESS;
}

int kvx_retire(struct kvx *kvx, int first, int count)
{
    if (first < 0 || count < 1 || count > kvx->map->end - first)
        return base_error(NCCLX_ERR_ARG, "%d ranks from %d on have not been there", count, first);
    const struct kvx_range range = {(uint32_t)first, (uint32_t)(first + count - 1)};
    fence_retire(kvx, &range);
    request_ranks_died(kvx, &range, -1);
    names_retire(kvx, &range);
    cache_retire(kvx, &range);
    for (struct lost **place = &kvx->lost; *place;) {
        struct lost *lost = *place;
        if (lost->failure.rank < 0 || !map_contains(&range, 1, lost->failure.rank)) {
            place = &lost->next;
            continue;
        }
        *place = lost->next;
        kvx_give(kvx, lost);
    }
    return kvx_result(kvx);
}

/* ---- Messages ---- */

static int dispatch(struct kvx *kvx, int link, const struct wire_message *message, const void *bytes, size_t size)
{
    switch (message->type) {
    case WIRE_FENCE_UP:
    case WIRE_FENCE_DOWN:
        return fence_receive(kvx, link, message, bytes, size);
    case WIRE_LOST:
        return receive_lost(kvx, link, message);
    case WIRE_ANSWER:
        return request_answered(kvx, link, message);
    default:
        return request_receive(kvx, link, message);
    }
}

static bool is_known(const struct kvx_map *map, const struct wire_message *message)
{
    return message->failure.rank < map->end && message->failure.daemon < map->daemon_count && message->owner >= -1 &&
           message->owner < map->end;
}

int kvx_receive(struct kvx *kvx, int link, const void *bytes, size_t size, uint64_t now)
{
    struct kvx_range room[KVX_MAX_RANGES];
    struct wire_message message;
    if (link < KVX_PARENT || link >= kvx->child_count ||
        (link == KVX_PARENT ? kvx->orphan || !kvx->me : kvx->closed[link]))
        return base_error(NCCLX_ERR_ARG, "daemon %d has no open link %d", kvx->me, link);
    kvx->now = now;
    int code = wire_decode(bytes, size, room, &message);
    if (!code && !is_known(kvx->map, &message)) code = kvx_broken(link, "it speaks of somebody who is not in the job");
    if (!code) code = dispatch(kvx, link, &message, bytes, size);
    return code ? code : kvx_result(kvx);
}

size_t kvx_pending(const struct kvx *kvx)
{
    return fence_count(kvx) + request_count(kvx);
}

/* ---- Life ---- */

int kvx_create(const struct kvx_map *map, int daemon, const struct kvx_limits *limits, struct kvx **out)
{
    *out = NULL;
    if (daemon < 0 || daemon >= map->daemon_count)
        return base_error(NCCLX_ERR_ARG, "daemon %d of %d", daemon, map->daemon_count);
    if (limits->frame_bytes < KVX_LEAST_FRAME || limits->frame_bytes > KVX_FRAME_BYTES)
        return base_error(NCCLX_ERR_ARG, "frames of %zu bytes: %d to %d are allowed", limits->frame_bytes,
                          KVX_LEAST_FRAME, KVX_FRAME_BYTES);
    struct kvx *kvx = base_calloc(AREA_BOOTSTRAP, 1, sizeof *kvx);
    if (!kvx) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the exchange of keys");
    *kvx = (struct kvx){.map = map, .limits = *limits, .me = daemon, .parent = kvx_parent(map, daemon)};
    kvx->child_count = kvx_child_count(map, daemon);
    kvx->last = &kvx->first;
    kvx->last_fence = &kvx->fences;
    kvx->deadline = UINT64_MAX;
    kvx->closed = base_calloc(AREA_BOOTSTRAP, (size_t)kvx->child_count + 1, sizeof *kvx->closed);
    if (!kvx->closed) {
        base_free(AREA_BOOTSTRAP, kvx);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the exchange of keys");
    }
    *out = kvx;
    return NCCLX_SUCCESS;
}

void kvx_destroy(struct kvx *kvx)
{
    struct kvx_action action;
    if (!kvx) return;
    while (kvx_next(kvx, &action)) base_free(AREA_BOOTSTRAP, action.data);
    fence_release(kvx);
    request_release(kvx);
    names_release(kvx);
    cache_release(kvx);
    while (kvx->lost) {
        struct lost *next = kvx->lost->next;
        kvx_give(kvx, kvx->lost);
        kvx->lost = next;
    }
    for (union block *block = kvx->spare; block;) {
        union block *next = block->head.next;
        base_free(AREA_BOOTSTRAP, block);
        block = next;
    }
    base_free(AREA_BOOTSTRAP, kvx->closed);
    base_free(AREA_BOOTSTRAP, kvx);
}
