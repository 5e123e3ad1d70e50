/* private.h - shared by the files of the exchange only. */
#ifndef BOOTSTRAP_KVX_PRIVATE_H
#define BOOTSTRAP_KVX_PRIVATE_H

#include "bootstrap/kvx/wire.h"

#define KVX_LOCAL (-2) /* a link that is none: this daemon itself */
#define NAME_BUCKETS 64
#define BUCKETS 1021 /* of ranks, which are often multiples of something: a prime */

/* ---- map.c ---- */

/* The ranks of one job. */
struct map_group {
    int first, count;
    int *daemon_of_rank; /* from the first on */
    int *ranks;          /* in the order of daemons */
};

struct kvx_map {
    int daemon_count, radix;
    int end; /* ranks below it are there, or have been */
    struct map_group *groups; /* those that are there, ascending */
    int group_count, group_room;
};

enum map_presence { MAP_HERE, MAP_GONE, MAP_NEVER };

bool map_is_below(const struct kvx_map *map, int top, int daemon); /* or the same */
/* The child of `me` below which the daemon is, KVX_LOCAL for `me` itself, KVX_PARENT when it is not below. */
int map_route(const struct kvx_map *map, int me, int daemon);
/* The daemon of a rank; -1 when it is not there. */
int map_daemon(const struct kvx_map *map, int rank);
/* Are all of these there? Else: have all been, or some never? */
enum map_presence map_look_up(const struct kvx_map *map, const struct kvx_range *ranges, size_t count);
bool map_contains(const struct kvx_range *ranges, size_t count, int rank);
/* How many of these ranks are on the daemon; and there or below. */
int map_count_on(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int daemon);
int map_count_below(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int daemon);

/* ---- kvx.c: memory, output ---- */

/* Bytes that several actions and a fence may hold. */
struct packet {
    struct packet *next; /* in the list of the fence that gathers */
    unsigned references;
    size_t bytes, room;
    unsigned char data[];
};

struct output {
    struct output *next;
    struct kvx_action action;
    struct packet *packet;
};

struct lost {
    struct lost *next;
    struct kvx_failure failure;
};

struct cached {
    struct cached *next, *newer, *older;
    int rank;
    size_t bytes;
    unsigned char data[];
};

struct kvx {
    const struct kvx_map *map;
    struct kvx_limits limits;
    int me, parent, child_count;
    bool *closed; /* children whose link is lost */
    bool orphan;  /* the parent's link is lost */
    bool short_of_memory;
    struct lost *lost; /* ranks and daemons at or below this one */
    struct output *first, **last, *current;
    void *spare; /* blocks to use again */
    struct set *sets;
    int set_count;
    bool some_ready; /* sets of which the next fence may go on */
    struct fence *fences, **last_fence;
    struct request *requests[BUCKETS];
    uint64_t last_request, deadline, now;
    struct name *names[NAME_BUCKETS];
    size_t published_bytes;
    struct cached *cache[BUCKETS], *newest, *oldest;
    size_t cached_bytes;
};

/* Zeroed; null sets short_of_memory. */
void *kvx_take(struct kvx *kvx, size_t bytes);
void kvx_give(struct kvx *kvx, void *block);

struct packet *packet_take(struct kvx *kvx, size_t room);
void packet_drop(struct kvx *kvx, struct packet *packet); /* gives one reference back; null is fine */
void kvx_send_packet(struct kvx *kvx, int link, struct packet *packet);
void kvx_send(struct kvx *kvx, int link, const struct wire_message *message);
/* Null when memory is short. */
struct kvx_action *kvx_act(struct kvx *kvx, enum kvx_action_kind kind);
/* Copies for the driver; null when there is nothing or memory is short. */
void *kvx_copy(struct kvx *kvx, const void *data, size_t bytes);
/* NCCLX_SUCCESS, or that memory has run short. */
int kvx_result(const struct kvx *kvx);
int kvx_broken(int link, const char *what);
/* kvx_tick is to come by then. */
void kvx_want_tick(struct kvx *kvx, uint64_t deadline);
/* Has somebody at or below this daemon died whom these ranks include? */
bool kvx_find_victim(const struct kvx *kvx, const struct kvx_range *ranges, size_t count, struct kvx_failure *who);
uint32_t kvx_hash(const void *data, size_t bytes);

/* ---- fence.c ---- */

int fence_receive(struct kvx *kvx, int link, const struct wire_message *message, const void *bytes, size_t size);
/* Somebody died, or a link closed: what cannot succeed any more fails. */
void fence_review(struct kvx *kvx);
/* Sees to those whose time has passed, and asks for a tick when the next one's has. */
void fence_tick(struct kvx *kvx);
/* Those that these ranks take part in fail, and are forgotten with their participants. */
void fence_retire(struct kvx *kvx, const struct kvx_range *range);
size_t fence_count(const struct kvx *kvx);
void fence_release(struct kvx *kvx);

/* ---- request.c ---- */

/* Who asked. */
struct waiter {
    struct waiter *next;
    int link;          /* or KVX_LOCAL */
    uint64_t token;    /* the driver's, or the child's number of its request */
    uint32_t subject;  /* the child's */
    uint64_t deadline; /* UINT64_MAX: none */
};

/* Something that was asked for and is not answered yet. */
struct request {
    struct request *next;
    uint64_t id;
    enum wire_type type;
    uint32_t subject;
    bool flag;
    int via; /* where the answer comes from; KVX_LOCAL: the driver, or the names kept here */
    struct waiter *waiters;
    size_t key_bytes;
    char key[];
};

struct answer {
    enum kvx_status status;
    struct kvx_failure failure;
    int owner;
    const void *data;
    size_t bytes;
};

int request_receive(struct kvx *kvx, int link, const struct wire_message *message);
int request_answered(struct kvx *kvx, int link, const struct wire_message *message);
void request_answer(struct kvx *kvx, const struct waiter *waiter, const struct answer *answer);
/* Answers all who wait for it and forgets it. `place` is where it hangs. */
void request_finish(struct kvx *kvx, struct request **place, const struct answer *answer);
void request_link_lost(struct kvx *kvx, int link);
void request_tick(struct kvx *kvx);
/* Nobody waits any more for values of these ranks of `daemon` (-1: of several). */
void request_ranks_died(struct kvx *kvx, const struct kvx_range *range, int daemon);
size_t request_count(const struct kvx *kvx);
void request_release(struct kvx *kvx);

/* ---- names.c: the root's ---- */

/* True when the answer is there. */
bool names_serve(struct kvx *kvx, const struct wire_message *message, struct answer *answer);
void names_retire(struct kvx *kvx, const struct kvx_range *range);
void names_release(struct kvx *kvx);

/* ---- cache.c ---- */

const struct cached *cache_find(struct kvx *kvx, int rank);
void cache_keep(struct kvx *kvx, int rank, const void *data, size_t bytes);
void cache_retire(struct kvx *kvx, const struct kvx_range *range);
void cache_release(struct kvx *kvx);

#endif
