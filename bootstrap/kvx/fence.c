/* fence.c - fences: up until all below have come, a decision at the lowest daemon that has all participants below it,
 * down the same way. Of one set of participants one fence is under way at a time; a daemon whose ranks are ahead keeps
 * their next contribution until the one before has ended, so a neighbour is never more than one generation apart. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <stdlib.h>
#include <string.h>

/* Participants, and what this daemon has to do with them. */
struct set {
    struct set *next;
    uint32_t hash;
    unsigned kind;
    size_t count;
    bool here;         /* some are hosted by this daemon */
    bool all_below;    /* all are hosted here or below: this daemon decides */
    int involved;      /* children below which there are some */
    uint64_t called;   /* fences that the participants here have called */
    uint64_t finished; /* fences that have ended */
    bool ready;        /* the next fence may go on */
    bool *child;       /* is it involved? */
    struct kvx_range ranges[];
};

struct fence {
    struct fence *next;
    struct set *set;
    uint64_t generation;
    bool called, sent, finished; /* by the participants here; to the parent; failed before it was called */
    bool announced;              /* that it cannot succeed */
    bool searched;               /* a child was asked who is missing */
    uint64_t deadline;           /* UINT64_MAX: none */
    uint64_t token;
    enum kvx_status status;
    struct kvx_failure failure;
    void *data; /* contributed here, not packed yet */
    size_t bytes;
    struct packet *frame;         /* being packed */
    struct packet *first, **last; /* what has come down, for the participants here */
    uint64_t moved;               /* bytes packed here */
    int missing;                  /* children that have not finished their contribution */
    bool child_done[];
};

/* ---- Sets ---- */

static void look_around(struct kvx *kvx, struct set *set)
{
    int total = 0, found;
    for (size_t i = 0; i < set->count; i++) total += (int)(set->ranges[i].last - set->ranges[i].first + 1);
    found = map_count_on(kvx->map, set->ranges, set->count, kvx->me);
    set->here = found > 0;
    for (int i = 0; i < kvx->child_count; i++) {
        int below = map_count_below(kvx->map, set->ranges, set->count, kvx_child(kvx->map, kvx->me, i));
        set->child[i] = below > 0;
        set->involved += below > 0;
        found += below;
    }
    set->all_below = found == total;
}

/* Finds it or makes it. Null: some of its ranks are gone. */
static int get_set(struct kvx *kvx, unsigned kind, const struct kvx_range *ranges, size_t count, struct set **out)
{
    uint32_t hash = kvx_hash(ranges, count * sizeof *ranges);
    size_t range_bytes = count * sizeof *ranges;
    struct set *set = kvx->sets;
    if (PLANTED_BUG(BUG_KVX_KIND_IGNORED)) kind = 0;
    while (set &&
           (set->hash != hash || set->kind != kind || set->count != count || memcmp(set->ranges, ranges, range_bytes)))
        set = set->next;
    *out = set;
    if (set) return NCCLX_SUCCESS;
    if (kvx->set_count >= KVX_MAX_SETS || count > KVX_MAX_RANGES)
        return base_error(NCCLX_ERR_LIMIT, "a fence over %zu runs of ranks, after %d other sets: %d and %d are allowed",
                          count, kvx->set_count, KVX_MAX_RANGES, KVX_MAX_SETS);
    enum map_presence presence = map_look_up(kvx->map, ranges, count);
    if (presence == MAP_NEVER || (presence == MAP_GONE && PLANTED_BUG(BUG_KVX_RETIRED_BROKEN)))
        return base_error(NCCLX_ERR_ARG, "a fence of ranks that are not in the job");
    if (presence == MAP_GONE) return NCCLX_SUCCESS;
    *out = set = kvx_take(kvx, sizeof *set + range_bytes + (size_t)kvx->child_count);
    if (!set) return kvx_result(kvx);
    set->hash = hash;
    set->kind = kind;
    set->count = count;
    memcpy(set->ranges, ranges, range_bytes);
    set->child = (bool *)set->ranges + range_bytes;
    look_around(kvx, set);
    set->next = kvx->sets;
    kvx->sets = set;
    kvx->set_count++;
    return NCCLX_SUCCESS;
}

/* ---- Records ---- */

static struct fence *find_fence(const struct kvx *kvx, const struct set *set, uint64_t generation)
{
    struct fence *fence = kvx->fences;
    while (fence && (fence->set != set || fence->generation != generation)) fence = fence->next;
    return fence;
}

static struct fence *get_fence(struct kvx *kvx, struct set *set, uint64_t generation)
{
    struct fence *fence = find_fence(kvx, set, generation);
    if (fence) return fence;
    fence = kvx_take(kvx, sizeof *fence + (size_t)kvx->child_count);
    if (!fence) return NULL;
    fence->set = set;
    fence->generation = generation;
    fence->failure = (struct kvx_failure){-1, -1};
    fence->deadline = UINT64_MAX;
    fence->missing = set->involved;
    fence->last = &fence->first;
    *kvx->last_fence = fence;
    kvx->last_fence = &fence->next;
    return fence;
}

static void drop_data(struct kvx *kvx, struct fence *fence)
{
    while (fence->first) {
        struct packet *next = fence->first->next;
        packet_drop(kvx, fence->first);
        fence->first = next;
    }
    fence->last = &fence->first;
    packet_drop(kvx, fence->frame);
    fence->frame = NULL;
    kvx_give(kvx, fence->data);
    fence->data = NULL;
}

static void drop_fence(struct kvx *kvx, struct fence *fence)
{
    struct fence **place = &kvx->fences;
    while (*place != fence) place = &(*place)->next;
    *place = fence->next;
    if (!fence->next) kvx->last_fence = place;
    drop_data(kvx, fence);
    kvx_give(kvx, fence);
}

/* ---- The result, in one piece ---- */

static int by_place(const void *a, const void *b)
{
    const struct wire_record *x = a, *y = b;
    if (x->daemon != y->daemon) return x->daemon < y->daemon ? -1 : 1;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* All records of the frames, into `records` when that is there. Returns how many. */
static size_t list_records(const struct fence *fence, struct kvx_range *room, struct wire_record *records)
{
    size_t count = 0;
    for (const struct packet *packet = fence->first; packet; packet = packet->next) {
        struct wire_message message;
        struct wire_record record;
        size_t at = 0;
        if (wire_decode(packet->data, packet->bytes, room, &message)) continue;
        for (; wire_next_record(&message, &at, &record); count++)
            if (records) records[count] = record;
    }
    return count;
}

/* Copies in order; what came twice is skipped. False when something is missing. */
static bool join_records(const struct wire_record *records, size_t count, unsigned char *out, size_t *bytes)
{
    uint64_t done = 0;
    *bytes = 0;
    for (size_t i = 0; i < count; i++) {
        const struct wire_record *record = &records[i];
        bool begins = i == 0 || records[i - 1].daemon != record->daemon;
        bool ends = i + 1 == count || records[i + 1].daemon != record->daemon;
        if (begins) done = 0;
        if (record->offset == done) {
            memcpy(out + *bytes, record->data, record->bytes);
            *bytes += record->bytes;
            done += record->bytes;
        }
        if (ends && done != record->total) return false;
    }
    return true;
}

static bool gather(struct kvx *kvx, struct fence *fence, struct kvx_action *action)
{
    struct kvx_range *room = base_alloc(AREA_BOOTSTRAP, KVX_MAX_RANGES * sizeof *room);
    size_t count = room ? list_records(fence, room, NULL) : 0, total = 0;
    struct wire_record *records = base_calloc(AREA_BOOTSTRAP, count + 1, sizeof *records);
    bool complete = room && records;
    if (complete) {
        list_records(fence, room, records);
        for (size_t i = 0; i < count; i++) total += records[i].bytes;
        action->data = total ? base_alloc(AREA_BOOTSTRAP, total) : NULL;
        complete = !total || action->data;
    }
    if (!complete) kvx->short_of_memory = true;
    if (complete && total) {
        qsort(records, count, sizeof *records, by_place);
        complete = join_records(records, count, action->data, &action->bytes);
    }
    base_free(AREA_BOOTSTRAP, records);
    base_free(AREA_BOOTSTRAP, room);
    return complete;
}

/* ---- The end ---- */

static void complete(struct kvx *kvx, struct fence *fence)
{
    struct kvx_action *action = kvx_act(kvx, KVX_COMPLETE);
    if (!action) return;
    action->token = fence->token;
    action->status = fence->status;
    action->failure = fence->failure;
    if (fence->status != KVX_OK || !fence->first || gather(kvx, fence, action)) return;
    base_free(AREA_BOOTSTRAP, action->data); /* the parent's frames do not make a whole */
    action->data = NULL;
    action->bytes = 0;
    action->status = KVX_FAILED;
    action->failure = (struct kvx_failure){-1, kvx->parent};
}

static void finish(struct kvx *kvx, struct fence *fence, enum kvx_status status, struct kvx_failure failure)
{
    struct set *set = fence->set;
    set->finished = fence->generation;
    fence->status = status;
    fence->failure = failure;
    fence->finished = true;
    if (fence->called) complete(kvx, fence);
    if (fence->called || !set->here)
        drop_fence(kvx, fence);
    else
        drop_data(kvx, fence); /* the ranks here have yet to call, and will be told */
    set->ready = kvx->some_ready = true;
}

/* ---- Frames ---- */

/* Down: to all who take part, and kept for the participants here. */
static void spread(struct kvx *kvx, struct fence *fence, struct packet *packet)
{
    for (int i = 0; i < kvx->child_count; i++)
        if (fence->set->child[i]) kvx_send_packet(kvx, i, packet);
    if (!fence->set->here) return;
    packet->references++;
    *fence->last = packet;
    fence->last = &packet->next;
}

static struct wire_message describe(const struct fence *fence)
{
    return (struct wire_message){.type = fence->set->all_below ? WIRE_FENCE_DOWN : WIRE_FENCE_UP,
                                 .generation = fence->generation,
                                 .kind = fence->set->kind,
                                 .failure = {-1, -1},
                                 .ranges = fence->set->ranges,
                                 .range_count = fence->set->count};
}

static size_t longest_frame(const struct kvx *kvx, const struct fence *fence)
{
    struct wire_message message = describe(fence);
    size_t least = 2 * wire_bytes(&message);
    return least > kvx->limits.frame_bytes ? least : kvx->limits.frame_bytes;
}

/* A frame with `room` for records, or the one under way made larger. */
static struct packet *enlarge(struct kvx *kvx, struct fence *fence, size_t room)
{
    struct wire_message message = describe(fence);
    struct packet *old = fence->frame, *frame;
    size_t used = old ? old->bytes : wire_bytes(&message), wanted = used + room, most = longest_frame(kvx, fence);
    if (old && wanted < 2 * old->room) wanted = 2 * old->room;
    if (wanted > most) wanted = most;
    frame = packet_take(kvx, wanted);
    if (!frame) return NULL;
    frame->bytes = used;
    if (old)
        memcpy(frame->data, old->data, used);
    else
        wire_encode(&message, frame->data);
    packet_drop(kvx, old);
    fence->frame = frame;
    return frame;
}

/* Sends the frame under way, or an empty one. */
static void flush(struct kvx *kvx, struct fence *fence, bool last)
{
    struct packet *frame = fence->frame ? fence->frame : enlarge(kvx, fence, 0);
    if (!frame) return;
    wire_patch(frame->data, frame->bytes, last);
    if (fence->set->all_below)
        spread(kvx, fence, frame);
    else
        kvx_send_packet(kvx, KVX_PARENT, frame);
    packet_drop(kvx, frame);
    fence->frame = NULL;
}

/* As much of it as fits the frame under way, which has room for some. Returns how many bytes. */
static uint32_t pack_part(struct packet *frame, const struct wire_record *record)
{
    struct wire_record part = *record;
    size_t room = frame->room - frame->bytes - WIRE_RECORD_BYTES;
    if (part.bytes > room) part.bytes = (uint32_t)room;
    wire_put_record(frame->data + frame->bytes, &part);
    memcpy(frame->data + frame->bytes + WIRE_RECORD_BYTES, part.data, part.bytes);
    frame->bytes += WIRE_RECORD_BYTES + part.bytes;
    return part.bytes;
}

static void pack(struct kvx *kvx, struct fence *fence, struct wire_record record)
{
    fence->moved += record.bytes;
    const size_t most = longest_frame(kvx, fence);
    while (record.bytes) {
        struct packet *frame = fence->frame;
        size_t wanted = WIRE_RECORD_BYTES + record.bytes;
        if (!frame || (frame->room - frame->bytes < wanted && frame->room < most)) frame = enlarge(kvx, fence, wanted);
        if (!frame) return;
        if (frame->room - frame->bytes <= WIRE_RECORD_BYTES) {
            flush(kvx, fence, false);
            continue;
        }
        uint32_t done = pack_part(frame, &record);
        record.bytes -= done;
        record.offset += done;
        record.data = (const unsigned char *)record.data + done;
        if (PLANTED_BUG(BUG_KVX_REST_DROPPED)) return;
    }
}

static void pack_own(struct kvx *kvx, struct fence *fence)
{
    const unsigned char *data = fence->data;
    for (size_t done = 0; done < fence->bytes;) {
        size_t part = fence->bytes - done < KVX_FRAME_BYTES ? fence->bytes - done : KVX_FRAME_BYTES;
        pack(kvx, fence, (struct wire_record){kvx->me, (uint32_t)part, done, fence->bytes, data + done});
        done += part;
    }
    kvx_give(kvx, fence->data);
    fence->data = NULL;
    fence->bytes = 0;
}

/* ---- Progress ---- */

static void fail(struct kvx *kvx, struct fence *fence, enum kvx_status status, struct kvx_failure failure)
{
    struct wire_message message = describe(fence);
    message.type = WIRE_FENCE_DOWN;
    message.status = status;
    message.failure = failure;
    message.last = true;
    for (int i = 0; i < kvx->child_count; i++)
        if (fence->set->child[i]) kvx_send(kvx, i, &message);
    finish(kvx, fence, status, failure);
}

/* Fails it if it cannot succeed. Only one daemon may say so, or some would end well and others not; but a daemon that
 * has lost its parent will hear of nothing any more. */
static bool fail_if_hopeless(struct kvx *kvx, struct fence *fence)
{
    struct kvx_failure who = {-1, kvx->parent};
    if (!fence->set->all_below && !kvx->orphan) return false;
    if (fence->set->all_below && fence->moved + fence->bytes > kvx->limits.fence_bytes)
        fail(kvx, fence, KVX_LIMIT, (struct kvx_failure){-1, -1});
    else if (kvx_find_victim(kvx, fence->set->ranges, fence->set->count, &who) || !fence->set->all_below)
        fail(kvx, fence, KVX_FAILED, who);
    else
        return false;
    return true;
}

/* Who decides may not know yet that there is this fence, and would never learn of it when all others below here who
 * could call are dead. */
static void announce(struct kvx *kvx, struct fence *fence)
{
    struct kvx_failure who;
    if (PLANTED_BUG(BUG_KVX_NOT_ANNOUNCED) || fence->announced || fence->sent) return;
    if (!kvx_find_victim(kvx, fence->set->ranges, fence->set->count, &who)) return;
    fence->announced = true;
    flush(kvx, fence, false);
}

/* True when it has failed. */
static bool review(struct kvx *kvx, struct fence *fence)
{
    if (fail_if_hopeless(kvx, fence)) return true;
    if (!fence->set->all_below) announce(kvx, fence);
    return false;
}

static void progress(struct kvx *kvx, struct fence *fence)
{
    struct set *set = fence->set;
    if (fence->finished || fence->sent || fence->generation != set->finished + 1) return;
    kvx_want_tick(kvx, fence->deadline);
    if (!PLANTED_BUG(BUG_KVX_DEATH_FORGOTTEN) && review(kvx, fence)) return;
    if (fence->bytes) pack_own(kvx, fence);
    int missing = PLANTED_BUG(BUG_KVX_CHILD_NOT_AWAITED) && fence->missing ? fence->missing - 1 : fence->missing;
    if ((set->here && !fence->called) || missing) return;
    flush(kvx, fence, true);
    fence->sent = true;
    if (set->all_below) finish(kvx, fence, KVX_OK, (struct kvx_failure){-1, -1});
}

/* Where a fence has ended, the next of the same participants may go on; in turn, as long as one ends at once. */
static void start_next(struct kvx *kvx)
{
    while (kvx->some_ready) {
        kvx->some_ready = false;
        for (struct set *set = kvx->sets; set; set = set->next) {
            if (!set->ready) continue;
            set->ready = false;
            struct fence *fence = find_fence(kvx, set, set->finished + 1);
            if (fence) progress(kvx, fence);
        }
    }
}

void fence_review(struct kvx *kvx)
{
    for (struct fence *fence = kvx->fences, *next; fence; fence = next) {
        next = fence->next;
        if (!fence->finished && fence->generation == fence->set->finished + 1) review(kvx, fence);
    }
    start_next(kvx);
}

/* ---- Time ---- */

/* The first child that has participants below it and has not come. */
static int first_missing(const struct kvx *kvx, const struct fence *fence)
{
    int child = 0;
    while (child < kvx->child_count && (!fence->set->child[child] || fence->child_done[child])) child++;
    return child;
}

/* Who is missing here or below: false when a child has been asked and is to answer. */
static bool search(struct kvx *kvx, struct fence *fence, struct kvx_failure *who)
{
    if (fence->set->here && !fence->called) {
        who->daemon = kvx->me;
        return true;
    }
    int child = first_missing(kvx, fence);
    who->daemon = child == kvx->child_count ? kvx->me : kvx_child(kvx->map, kvx->me, child);
    if (child == kvx->child_count || kvx->closed[child]) return true;
    if (fence->searched) return kvx->now >= fence->deadline;
    struct wire_message message = describe(fence);
    message.type = WIRE_FENCE_DOWN;
    message.status = KVX_TIMEOUT;
    kvx_send(kvx, child, &message);
    fence->searched = true;
    fence->deadline = kvx->now + KVX_SEARCH_NS;
    kvx_want_tick(kvx, fence->deadline);
    return false;
}

/* The time of some participant has passed. The daemon that decides fails the fence once it knows who is missing; others
 * tell it, or that they are not to blame. */
static void expire(struct kvx *kvx, struct fence *fence, struct kvx_failure who)
{
    if (fence->finished) return;
    if (PLANTED_BUG(BUG_KVX_EXPIRED_ALONE)) {
        fail(kvx, fence, KVX_TIMEOUT, who);
        return;
    }
    if (who.daemon < 0 && !fence->sent && !search(kvx, fence, &who)) return;
    if (fence->set->all_below) {
        fail(kvx, fence, KVX_TIMEOUT, who);
        return;
    }
    fence->deadline = UINT64_MAX;
    struct wire_message message = describe(fence);
    message.status = KVX_TIMEOUT;
    message.failure = who;
    kvx_send(kvx, KVX_PARENT, &message);
}

void fence_tick(struct kvx *kvx)
{
    const struct kvx_failure nobody = {-1, -1};
    for (struct fence *fence = kvx->fences, *next; fence; fence = next) {
        next = fence->next;
        if (fence->generation != fence->set->finished + 1) continue; /* its time is looked at when its turn has come */
        if (fence->deadline <= kvx->now)
            expire(kvx, fence, nobody);
        else
            kvx_want_tick(kvx, fence->deadline);
    }
    start_next(kvx);
}

/* ---- Calls ---- */

static int by_first(const void *a, const void *b)
{
    const struct kvx_range *x = a, *y = b;
    return x->first < y->first ? -1 : x->first > y->first;
}

/* One way to write a set. Returns the number of ranges. */
static size_t normalize(struct kvx_range *ranges, size_t count)
{
    size_t kept = 0;
    qsort(ranges, count, sizeof *ranges, by_first);
    for (size_t i = 1; i < count; i++) {
        if (ranges[i].first > ranges[kept].last + 1)
            ranges[++kept] = ranges[i];
        else if (ranges[i].last > ranges[kept].last)
            ranges[kept].last = ranges[i].last;
    }
    return kept + 1;
}

static int call(struct kvx *kvx, struct set *set, const struct kvx_fence *order)
{
    struct fence *fence = get_fence(kvx, set, set->called + 1);
    if (!fence) return kvx_result(kvx);
    set->called++;
    fence->called = true;
    fence->token = order->token;
    if (fence->finished) {
        complete(kvx, fence);
        drop_fence(kvx, fence);
        return kvx_result(kvx);
    }
    if (order->timeout_ms) fence->deadline = kvx->now + order->timeout_ms * UINT64_C(1000000);
    fence->data = order->bytes ? kvx_take(kvx, order->bytes) : NULL;
    if (fence->data) {
        memcpy(fence->data, order->data, order->bytes);
        fence->bytes = order->bytes;
    }
    progress(kvx, fence);
    start_next(kvx);
    return kvx_result(kvx);
}

static int check_fence(const struct kvx *kvx, const struct kvx_fence *fence)
{
    for (size_t i = 0; i < fence->count; i++)
        if (fence->ranges[i].first > fence->ranges[i].last || fence->ranges[i].last >= (uint32_t)kvx->map->end)
            return base_error(NCCLX_ERR_ARG, "a fence of ranks %u to %u of %d", fence->ranges[i].first,
                              fence->ranges[i].last, kvx->map->end);
    if (!fence->count) return base_error(NCCLX_ERR_ARG, "a fence of nobody");
    if (fence->kind < KVX_KINDS) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_ARG, "a fence of kind %u: there are %d", fence->kind, KVX_KINDS);
}

static int begin(struct kvx *kvx, const struct kvx_fence *order)
{
    int code = check_fence(kvx, order);
    if (code) return code;
    struct kvx_range *sorted = kvx_take(kvx, order->count * sizeof *sorted);
    if (!sorted) return kvx_result(kvx);
    memcpy(sorted, order->ranges, order->count * sizeof *sorted);
    struct set *set = NULL;
    code = get_set(kvx, order->kind, sorted, normalize(sorted, order->count), &set);
    kvx_give(kvx, sorted);
    if (!code && !set) code = base_error(NCCLX_ERR_ARG, "a fence of ranks whose job is over");
    if (!code && !set->here) code = base_error(NCCLX_ERR_ARG, "a fence of ranks that are all on other daemons");
    return code ? code : call(kvx, set, order);
}

int kvx_begin_fence(struct kvx *kvx, const struct kvx_fence *order, uint64_t now)
{
    kvx->now = now;
    return begin(kvx, order);
}

int kvx_fence(struct kvx *kvx, const struct kvx_range *ranges, size_t count, const void *data, size_t bytes,
              uint64_t token)
{
    return begin(kvx,
                 &(struct kvx_fence){.ranges = ranges, .count = count, .data = data, .bytes = bytes, .token = token});
}

/* ---- Messages ---- */

/* A child whose time has passed, or who says who is missing. */
static int receive_expired(struct kvx *kvx, int link, struct fence *fence, const struct wire_message *message)
{
    const struct kvx_failure *who = &message->failure;
    if (who->daemon >= 0 && map_route(kvx->map, kvx->me, who->daemon) != link)
        return kvx_broken(link, "it misses a daemon that is not below it");
    /* Who was missing when the child wrote this may have come since. */
    bool late = who->daemon >= 0 && fence->child_done[link];
    expire(kvx, fence, late ? (struct kvx_failure){-1, -1} : *who);
    start_next(kvx);
    return NCCLX_SUCCESS;
}

static int receive_up(struct kvx *kvx, int link, struct fence *fence, const struct wire_message *message)
{
    struct wire_record record;
    size_t at = 0;
    if (message->status == KVX_TIMEOUT) return receive_expired(kvx, link, fence, message);
    if (fence->child_done[link]) return NCCLX_SUCCESS; /* it has said that already */
    while (wire_next_record(message, &at, &record)) {
        if (record.daemon >= kvx->map->daemon_count || map_route(kvx->map, kvx->me, record.daemon) != link)
            return kvx_broken(link, "data of a daemon that is not below it");
        pack(kvx, fence, record);
    }
    if (message->last) {
        fence->child_done[link] = true;
        fence->missing--;
    }
    progress(kvx, fence);
    start_next(kvx);
    return NCCLX_SUCCESS;
}

static int receive_down(struct kvx *kvx, struct fence *fence, const struct wire_message *message, const void *bytes,
                        size_t size)
{
    bool good = message->status == KVX_OK;
    if (message->last && good && !fence->sent)
        return kvx_broken(KVX_PARENT, "a fence has ended that this daemon has not reached");
    if (!message->last && message->status == KVX_TIMEOUT) {
        /* When this has been sent meanwhile, what the parent waits for is on its way. */
        if (!fence->sent) expire(kvx, fence, (struct kvx_failure){-1, -1});
        start_next(kvx);
        return NCCLX_SUCCESS;
    }
    struct packet *packet = packet_take(kvx, size);
    if (!packet) return kvx_result(kvx);
    memcpy(packet->data, bytes, size);
    packet->bytes = size;
    spread(kvx, fence, packet);
    packet_drop(kvx, packet);
    if (message->last) finish(kvx, fence, message->status, message->failure);
    start_next(kvx);
    return NCCLX_SUCCESS;
}

int fence_receive(struct kvx *kvx, int link, const struct wire_message *message, const void *bytes, size_t size)
{
    bool up = message->type == WIRE_FENCE_UP;
    if (up != (link != KVX_PARENT)) return kvx_broken(link, "a fence on the wrong way");
    if (message->ranges[message->range_count - 1].last >= (uint32_t)kvx->map->end)
        return kvx_broken(link, "a fence of ranks that are not in the job");
    struct set *set = NULL;
    int code = get_set(kvx, message->kind, message->ranges, message->range_count, &set);
    if (code || !set) return code; /* of ranks that are gone: who called it is about to learn that, too */
    if (up ? !set->child[link] : set->all_below || (!set->here && !set->involved))
        return kvx_broken(link, "a fence that it has no part in");
    if (PLANTED_BUG(BUG_KVX_GENERATION_IGNORED) && up && message->generation <= set->finished) {
        struct fence *fence = get_fence(kvx, set, set->finished + 1);
        return fence ? receive_up(kvx, link, fence, message) : kvx_result(kvx);
    }
    if (message->generation <= set->finished) return NCCLX_SUCCESS; /* of a fence that has failed: too late */
    if (message->generation != set->finished + 1) return kvx_broken(link, "a fence before the one before has ended");
    struct fence *fence = get_fence(kvx, set, message->generation);
    if (!fence) return kvx_result(kvx);
    return up ? receive_up(kvx, link, fence, message) : receive_down(kvx, fence, message, bytes, size);
}

static bool takes_part(const struct set *set, const struct kvx_range *range)
{
    for (size_t i = 0; i < set->count; i++)
        if (set->ranges[i].first <= range->last && set->ranges[i].last >= range->first) return true;
    return false;
}

/* All daemons do this on their own, at the same place of what they hear from above: nothing is said to others. */
void fence_retire(struct kvx *kvx, const struct kvx_range *range)
{
    for (struct fence *fence = kvx->fences, *next; fence; fence = next) {
        next = fence->next;
        if (!takes_part(fence->set, range)) continue;
        fence->status = KVX_FAILED;
        fence->failure = (struct kvx_failure){(int)range->first, -1};
        if (fence->called && !PLANTED_BUG(BUG_KVX_RETIRED_WAITED)) complete(kvx, fence);
        drop_fence(kvx, fence);
    }
    for (struct set **place = &kvx->sets; *place;) {
        struct set *set = *place;
        if (!takes_part(set, range)) {
            place = &set->next;
            continue;
        }
        *place = set->next;
        kvx->set_count--;
        kvx_give(kvx, set);
    }
}

size_t fence_count(const struct kvx *kvx)
{
    size_t count = 0;
    for (const struct fence *fence = kvx->fences; fence; fence = fence->next) count += !fence->finished;
    return count;
}

void fence_release(struct kvx *kvx)
{
    while (kvx->fences) drop_fence(kvx, kvx->fences);
    while (kvx->sets) {
        struct set *next = kvx->sets->next;
        kvx_give(kvx, kvx->sets);
        kvx->sets = next;
    }
}
