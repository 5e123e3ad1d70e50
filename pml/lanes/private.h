/* private.h - shared by the files of the driver of lanes. */
#ifndef PML_LANES_PRIVATE_H
#define PML_LANES_PRIVATE_H

#include "pml/lanes/lanes.h"
#include "pml/lanes/ways.h"

#include <string.h>

/* A put under way. */
struct lanes_put {
    struct dqplb_put core; /* first */
    struct lanes_put *next; /* free */
    struct pml_packet notice;
    struct pml_request *request; /* a send's */
    struct pml_order *order;     /* or a window's; neither: the answer to a get, or a chunk */
    unsigned slot;               /* of a chunk, + 1; else 0 */
    bool copied;                 /* its writes are (lane.h) */
};

struct lanes_flush {
    struct dqplb_flush core; /* first */
    struct lanes_flush *next; /* free */
    struct pml_order *order;
};

/* What one window and one of its targets have in common. Lives as long as something of it is under way. */
struct pml_order {
    struct dqplb_order core;
    struct lanes *lanes;
    uint64_t flushes, flushed;
    uint64_t gets, got;
    unsigned under_way;
    uint32_t id;
    int error;
    uint64_t key, address; /* of the target's memory */
    void (*changed)(void *arg); /* null: the window has ended */
    void *arg;
};

/* Of this process: memory that peers may reach by key, and who may: one peer, members, or (both null) all of the job. */
struct lanes_range {
    uint64_t address, bytes;
    uint32_t generation, next_free;
    bool used, writes_only;              /* of a get, or for chunks: nobody reads it */
    const struct pml_connection *only;
    uint64_t *members; /* bitmap of job ranks */
};

struct lanes_get {
    struct lanes_get *next; /* of its connection; free */
    struct pml_order *order;
    uint64_t name;
    uint64_t address, bytes; /* there */
};

struct lanes_state {
    struct dqplb_limits limits[NCCLX_DISTANCE_UNKNOWN + 1]; /* of classes */
    struct lanes_range *range;
    uint32_t ranges, free_range; /* the latter: index + 1 */
    uint32_t random[64];         /* for generations; the last of them are used */
    unsigned randoms_left;
    struct lanes_put *free_puts;
    struct lanes_flush *free_flushes;
    struct lanes_get *free_gets;
    uint64_t under_way; /* puts, flushes and gets */
    struct dqplb_budget budget[LANE_PORTS];
    bool waking; /* those that wait for a budget, in turn */
};

/* A lane of ours. */
enum lanes_door {
    DOOR_CLOSED,
    DOOR_OPENING,
    DOOR_READY,     /* open, but what it held in its last life is still moving */
    DOOR_OPEN,
    DOOR_REPORTING  /* broken; the peer was asked what it has */
};

/* What notices name as their order; windows' follow. */
enum { LANES_ORDER_NONE, LANES_ORDER_ANSWERS, LANES_ORDER_CHUNKS };

/* What this process writes to the peer. */
struct lanes_origin {
    struct dqplb_sender sender;
    struct lanes *lanes;
    struct dqplb_order messages; /* puts that belong to no window: nobody flushes them */
    struct dqplb_order answers;
    unsigned wanted;             /* lanes 0 .. wanted - 1 */
    uint32_t orders;             /* ids given out */
    uint64_t under_way;          /* puts and flushes */
    bool agreed, driving, again;
    struct lanes_ways ways;
    struct {
        uint8_t door;
        uint8_t failures; /* since something was completed on it */
    } lane[DQPLB_MAX_LANES];
};

struct lanes_notice {
    struct pml_packet packet;
    uint32_t next_free; /* index + 1 */
};

/* What the peer writes here. */
struct lanes_target {
    struct dqplb_tracker tracker;
    uint64_t fenced; /* lanes that nothing can come from */
    uint32_t free_notice;
    struct lanes_notice notice[];
};

struct lanes {
    struct pml_connection *connection;
    const struct lane_transport *transport;
    struct lanes_origin *origin; /* made on first use, as is the other */
    struct lanes_target *target;
    bool lost;
    bool has_offer;
    struct lane_offer offer; /* of the peer */
    struct lanes_copy *copy; /* made on first use */
    struct lanes_get *first_get, *last_get; /* under way; answers come in this order */
    struct lanes_get *unasked;              /* the first that the peer was not asked for; null: none */
    unsigned gets, asked;
    unsigned answering;                     /* gets of the peer's, of whose data it was not told yet */
};

/* origin.c */
int lanes_origin_of(struct lanes *lanes, struct lanes_origin **origin);
/* A put with room for its notice, to be handed to lanes_submit; null: memory is short. */
struct lanes_put *lanes_put_get(struct pml *pml);
void lanes_submit(struct lanes *lanes, struct dqplb_order *order, struct lanes_put *put);
/* The core has something to do: it needs a connection. */
void lanes_begin(struct lanes *lanes);
/* Says and does what the core wants. */
void lanes_drive(struct lanes *lanes);
void lanes_origin_agree(struct lanes *lanes);
void lanes_origin_fail(struct lanes *lanes);
void lanes_origin_free(struct lanes *lanes);
/* A lane that was up is so no longer: what of it has come? */
void lanes_ask_for_report(struct lanes *lanes, unsigned lane);
void lanes_report_arrived(struct lanes *lanes, const struct pml_packet *packet, const void *payload, size_t bytes);

/* copy.c */
void lanes_copy_placed(struct lanes *lanes, unsigned slot);
void lanes_copy_asked(struct lanes *lanes);
void lanes_copy_slots_arrived(struct lanes *lanes, const struct pml_packet *packet);
void lanes_copy_cleared(struct lanes *lanes, uint64_t taken);
void lanes_chunk_arrived(struct lanes *lanes, const struct pml_packet *packet);
void lanes_copy_free(struct lanes *lanes);
uint64_t lanes_copy_bytes(const struct lanes *lanes);

/* target.c */
void lanes_target_free(struct lanes *lanes);
void lanes_notice_arrived(struct lanes *lanes, const struct pml_packet *packet);
void lanes_close_arrived(struct lanes *lanes, const struct pml_packet *packet);

/* ranges.c */
struct lanes_range *lanes_range_find(struct pml *pml, uint64_t key);
/* For one peer, which may write there and not read. */
int lanes_range_take(const struct pml_connection *only, void *memory, uint64_t bytes, uint64_t *key);
bool lanes_range_holds(const struct lanes_range *range, uint64_t address, uint64_t bytes);
bool lanes_range_allows(const struct lanes_range *range, const struct pml_connection *connection);
void lanes_ranges_release(struct lanes_state *state);

/* orders.c */
void lanes_order_put_ended(struct pml_order *order, int code);
void lanes_order_flushed(struct lanes_flush *flush, int code);
void lanes_order_left(struct pml_order *order);
void lanes_order_changed(struct pml_order *order);

/* gets.c */
void lanes_get_arrived(struct lanes *lanes, const struct pml_packet *packet);
void lanes_get_ended(struct lanes *lanes, uint64_t name);
void lanes_gets_fail(struct lanes *lanes);

static inline bool lanes_breach(struct lanes *lanes, const char *why)
{
    lanes->connection->transport->fail(lanes->connection, why);
    return false;
}

#endif
