/* kvx.h - the tree-structured key-value exchange between the daemons of a job: fences (with or without data) and other
 * meetings of the same kind, values of ranks on demand, and published names.
 *
 * Owns: nothing but its own memory. Never: a socket, a clock, a thread, a type of PMIx. One instance is one daemon;
 * daemon 0 is the root, and the parent of daemon d is (d - 1) / radix. Events go in by the functions below, actions
 * come out of kvx_next. Whoever drives it (ncclxd, the simulator) carries messages between neighbours, each way in
 * order, and calls from one thread at a time.
 *
 * How it works. A fence goes up: a daemon speaks to its parent once all that it hosts and all children below which
 * there are participants have come; the lowest daemon that has all participants below it decides, alone, how the fence
 * ends, and says so down the same way. A message carries the participants and the generation: the how-manieth fence of
 * these participants it is. So nothing that comes late can be taken for something newer. Data is packed into frames on
 * the way up and streams down as it comes. When the time of a participant has passed the question who is missing goes
 * up and, from where somebody is, down; the answer goes to the daemon that decides. A get goes to the daemon of the
 * rank and back; equal ones are merged, and daemons on the way keep copies. Names are kept by the root.
 *
 * Memory of one daemon, beyond what is kept by request (published names, cached values: see kvx_limits):
 *   - a fence in flight: a record, and with data one frame (KVX_FRAME_BYTES); where participants are hosted also the
 *     result, for a moment twice, because it is handed over in one piece;
 *   - a set of participants seen once: a record, for its generation, until one of them is retired;
 *   - a get or lookup in flight: a record, no data.
 * Blocks of up to 240 bytes are used again: a fence without data allocates nothing once one like it has ended.
 *
 * Back pressure is the driver's: it may stop reading from children while the link to the parent is full, but must
 * always read from the parent when the links to its children take data. Then nothing can lock up.
 */
#ifndef BOOTSTRAP_KVX_H
#define BOOTSTRAP_KVX_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define KVX_MAX_RADIX 256
#define KVX_MAX_RANGES 4000                    /* of the participants of a fence */
#define KVX_MAX_SETS 4096                      /* different sets of participants, and kinds, in the life of a daemon */
#define KVX_KINDS 8                            /* of fences */
#define KVX_FRAME_BYTES 65536                  /* longest message of a fence: participants and data */
#define KVX_LEAST_FRAME 512                    /* least that may be set */
#define KVX_MAX_KEY 511                        /* characters of a name */
#define KVX_MAX_VALUE ((size_t)16 << 20)       /* of a rank or a name */
#define KVX_MAX_MESSAGE (KVX_MAX_VALUE + 1024) /* longest message */
#define KVX_PARENT (-1)                        /* a link; children are 0, 1, ... */
#define KVX_SEARCH_NS UINT64_C(1000000000)     /* for an answer who is missing, from one daemon to the next */

enum kvx_status {
    KVX_OK,
    KVX_NOT_FOUND, /* no such name */
    KVX_DUPLICATE, /* the name is taken */
    KVX_TIMEOUT,   /* the time passed; of a fence: the failure's daemon has not come, or somebody below it */
    KVX_FAILED,    /* a rank or a daemon that is needed has died: the failure says which */
    KVX_LIMIT,     /* more data than the limits allow */
    KVX_STATUS_COUNT
};

/* Who has died, or is missing. */
struct kvx_failure {
    int rank;   /* -1: not one rank but a daemon, with all below it */
    int daemon; /* -1: nobody has died */
};

/* Ranks first .. last. */
struct kvx_range {
    uint32_t first, last;
};

struct kvx_limits {
    size_t frame_bytes; /* of a fence's message with data: KVX_LEAST_FRAME to KVX_FRAME_BYTES. Participants that take
                         * more than half of that make the frames larger */
    size_t fence_bytes; /* of all data of one fence */
    size_t cache_bytes; /* of values of ranks that are kept for the next get */
    size_t published_bytes; /* of all names, at the root */
};

/* ---- Where everybody is: made once, may serve many instances ---- */

struct kvx_map;

/* daemon_of_rank is copied. NCCLX_ERR_ARG, NCCLX_ERR_NO_MEM. */
int kvx_map_create(const int *daemon_of_rank, int rank_count, int daemon_count, int radix, struct kvx_map **map);
void kvx_map_free(struct kvx_map *map);
/* More ranks, of another job: first .. first + count - 1, above all that have been there before. The same on all daemons,
 * at the same place of what each hears from the one above it. */
int kvx_map_add(struct kvx_map *map, int first, const int *daemon_of_rank, int count);
/* Those that were added together go; kvx_retire first. Their numbers are never used again. */
void kvx_map_remove(struct kvx_map *map, int first);
int kvx_child_count(const struct kvx_map *map, int daemon);
int kvx_child(const struct kvx_map *map, int daemon, int index);
int kvx_parent(const struct kvx_map *map, int daemon); /* -1 for the root */

/* ---- An instance ---- */

struct kvx;

int kvx_create(const struct kvx_map *map, int daemon, const struct kvx_limits *limits, struct kvx **kvx);
void kvx_destroy(struct kvx *kvx);

/* ---- Events. All return NCCLX_SUCCESS, or:
 *   NCCLX_ERR_NO_MEM     memory is short: the instance can no longer keep its promises, end the job;
 *   NCCLX_ERR_ARG        arguments that make no sense;
 *   NCCLX_ERR_LIMIT      a constant above is exceeded;
 *   NCCLX_ERR_TRANSPORT  (kvx_receive) a neighbour broke the protocol: close the link and report it lost.
 * The token comes back with the action that ends the operation. `now` counts nanoseconds and never goes back. ---- */

/* All participants on this daemon have called, with this data (or none) between them. Ranges in any order. The result
 * is everybody's data, in the order of daemons. Fences of different kinds have nothing to do with each other. */
struct kvx_fence {
    unsigned kind; /* 0 .. KVX_KINDS - 1, the driver's */
    const struct kvx_range *ranges;
    size_t count;
    const void *data;
    size_t bytes;
    uint32_t timeout_ms; /* 0: no limit. The shortest of all daemons counts, for all */
    uint64_t token;
};
int kvx_begin_fence(struct kvx *kvx, const struct kvx_fence *fence, uint64_t now);
/* Of kind 0, without a limit. */
int kvx_fence(struct kvx *kvx, const struct kvx_range *ranges, size_t count, const void *data, size_t bytes,
              uint64_t token);
/* The value of a rank. A copy that some daemon has kept will do, unless fresh: then the rank's daemon is asked, after
 * this call. timeout_ms 0: no limit. */
int kvx_get(struct kvx *kvx, int rank, bool fresh, uint32_t timeout_ms, uint64_t now, uint64_t token);
/* The value once it has the text `key`, with the zero at its end, in it. */
int kvx_get_with(struct kvx *kvx, int rank, const char *key, bool fresh, uint32_t timeout_ms, uint64_t now,
                 uint64_t token);
/* Answers KVX_FETCH. KVX_OK or KVX_NOT_FOUND. Unknown tokens are those of operations that have ended meanwhile. */
int kvx_fetched(struct kvx *kvx, int rank, uint64_t token, enum kvx_status status, const void *data, size_t bytes,
                uint64_t now);
int kvx_publish(struct kvx *kvx, int owner, const char *name, const void *value, size_t bytes, uint64_t token);
/* wait: until it is published, or the time has passed. */
int kvx_lookup(struct kvx *kvx, const char *name, bool wait, uint32_t timeout_ms, uint64_t now, uint64_t token);
/* Only the owner can. Null: all that it has published. */
int kvx_unpublish(struct kvx *kvx, int owner, const char *name, uint64_t token);

int kvx_receive(struct kvx *kvx, int link, const void *message, size_t bytes, uint64_t now);
/* The link has closed, or its daemon is known to be dead. Nothing may be received from it any more. */
int kvx_link_lost(struct kvx *kvx, int link);
/* A rank of this daemon is dead. */
int kvx_rank_died(struct kvx *kvx, int rank);
/* These ranks, all that were added together, have ended everywhere: forgets them, their values and names. What waits for
 * them fails. Comes to every daemon at the same place of what it hears from the one above it; what still comes of these
 * ranks from below is dropped. */
int kvx_retire(struct kvx *kvx, int first, int count);
int kvx_tick(struct kvx *kvx, uint64_t now);
/* When kvx_tick is wanted; UINT64_MAX: never. */
uint64_t kvx_deadline(const struct kvx *kvx);

/* Fences and requests that this daemon takes part in, or passes on, and that have not ended. */
size_t kvx_pending(const struct kvx *kvx);

/* ---- Actions ---- */

enum kvx_action_kind {
    KVX_SEND,     /* message, bytes: to link; valid until the next kvx_next */
    KVX_COMPLETE, /* the operation of token has ended with status, failure, owner (of a name) and data */
    KVX_FETCH,    /* find the value of rank, with key in it if that is not null, within timeout_ms if that is not 0,
                   * and call kvx_fetched with token */
    KVX_REPORT    /* (root) failure: tell the user */
};

struct kvx_action {
    enum kvx_action_kind kind;
    int link, rank, owner;
    uint64_t token;
    enum kvx_status status;
    struct kvx_failure failure;
    const void *message;
    const char *key; /* valid until the next kvx_next */
    uint32_t timeout_ms;
    void *data; /* the driver's, to be freed with base_free(AREA_BOOTSTRAP, ...); may be null */
    size_t bytes;
};

/* To be called after each event until it returns false. */
bool kvx_next(struct kvx *kvx, struct kvx_action *action);

#endif
