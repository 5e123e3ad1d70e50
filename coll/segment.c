/* segment.c - making, and ending, the memory of shared collectives. */
#include "coll/segment.h"

#include "coll/operation.h"

/* A communicator's segment is made at its so many-th call that would use it: one that is used once or twice is not
 * worth it. */
#define CALLS_BEFORE 4
#define SMALL_BYTES ((size_t)2 * SHARED_PAGE - SHARED_APART)
#define SMALL_SLOTS 16 /* all of two ranks' stay in a first-level cache */
#define LARGE_SLOTS 8
/* Of a few ranks, which may take turns on a core: whoever is ahead has to let the others run less often. */
#define MANY_SLOTS 64
#define FEW_RANKS 8
/* A rank that ends waits so long for others to leave its segments: they are on their way out too, unless they have
 * died. */
#define LEAVE_NS (2 * BASE_NS_PER_S)

struct segment_header {
    _Alignas(SHARED_PAGE) _Atomic uint64_t left; /* ranks that will not look at it any more */
};

struct segment {
    struct segment *next; /* those that this rank has left, in rt->coll->left */
    struct segment_header *header;
    void *own;                 /* rank 0: the memory */
    struct pml_region *region; /* others: the way to it */
    struct shared shared;
};

bool segments_possible(struct ncclx_comm *comm)
{
    struct segments *segments = &comm->coll->segments;
    if (__builtin_expect(segments->state != SEGMENTS_UNKNOWN, 1)) return segments->state == SEGMENTS_POSSIBLE;
    bool possible = comm->size <= SHARED_MOST_RANKS;
    for (int rank = 0; rank < comm->size && possible; rank++)
        possible = base_job_local_index(&comm->rt->job, base_comm_world(comm, rank)) >= 0;
    segments->state = possible ? SEGMENTS_POSSIBLE : SEGMENTS_IMPOSSIBLE;
    return possible;
}

static size_t data_bytes(const struct ncclx_comm *comm, enum segment_level level)
{
    /* Between two ranks, all slots together shall fit into a second-level cache; with more, which may have to take turns
     * on the cores, waiting less often counts. The memory goes with the square of the ranks that pass blocks. */
    if (level == SEGMENT_SMALL) return SMALL_BYTES;
    size_t kib = comm->size == 2 ? 32 : comm->size <= 8 ? 128 : comm->size <= 16 ? 64 : 16;
    return kib << 10;
}

static unsigned slots_of(const struct ncclx_comm *comm, enum segment_level level)
{
    if (level == SEGMENT_LARGE) return LARGE_SLOTS;
    return comm->size > 2 && comm->size <= FEW_RANKS ? MANY_SLOTS : SMALL_SLOTS;
}

/* ---- Making ----------------------------------------------------------------------------------------------------- */

struct offer {
    struct pml_region_card card;
    uint64_t good;
};

static void end_segment(struct ncclx_rt *rt, struct segment *segment)
{
    if (segment->region) pml_region_detach(rt, segment->region);
    if (segment->own) pml_mem_free(rt, segment->own);
    base_free(AREA_COLL, segment);
}

/* Rank 0: makes the memory. */
static void make_memory(struct ncclx_comm *comm, struct segment *segment, size_t bytes, struct offer *offer)
{
    if (pml_mem_alloc(comm->rt, bytes, &segment->own)) return;
    segment->header = segment->own;
    offer->good = !pml_region_card(comm->rt, segment->own, bytes, &offer->card);
}

static bool reach_memory(struct ncclx_comm *comm, struct segment *segment, size_t bytes, const struct offer *offer)
{
    if (comm->rank == 0) return offer->good;
    if (!offer->good || pml_region_attach(comm->rt, base_comm_world(comm, 0), &offer->card, &segment->region)) return false;
    if (segment->region->access != PML_ACCESS_DIRECT || segment->region->bytes < bytes) return false;
    segment->header = (struct segment_header *)segment->region->pointer;
    return true;
}

static bool copies_with_all(struct ncclx_comm *comm)
{
    bool possible = true;
    for (int rank = 0; rank < comm->size && possible; rank++) possible = pml_peer_copies(comm->rt, base_comm_world(comm, rank));
    return possible;
}

static int copy(struct shared *shared, int rank, bool write, void *here, uint64_t there, size_t bytes)
{
    struct ncclx_comm *comm = shared->copy_arg;
    return pml_peer_copy(comm->rt, base_comm_world(comm, rank), write, here, there, bytes);
}

/* What a rank can do with the others; the least of all ranks holds. */
enum { CAN_NOTHING, CAN_SHARE, CAN_COPY };

static int agree(struct ncclx_comm *comm, uint8_t mine, uint8_t *all)
{
    *all = mine;
    struct coll_args args = {.name = COLL_ALLREDUCE, .sendbuf = NCCLX_IN_PLACE, .recvbuf = all, .count = 1,
                             .type = NCCLX_UINT8, .op = NCCLX_MIN};
    return coll_run_schedule(comm, &args);
}

/* Every rank takes part in every step, whatever failed before, so that all end with the same answer. */
static int make(struct ncclx_comm *comm, enum segment_level level)
{
    struct segments *segments = &comm->coll->segments;
    unsigned slots = slots_of(comm, level);
    size_t data = data_bytes(comm, level), bytes = sizeof(struct segment_header) + shared_bytes(comm->size, slots, data);
    struct segment *segment = base_calloc(AREA_COLL, 1, sizeof *segment);
    struct offer offer = {.good = 0};
    uint8_t mine = CAN_NOTHING, all = CAN_NOTHING;
    if (segment && comm->rank == 0) make_memory(comm, segment, bytes, &offer);
    struct coll_args args = {.name = COLL_BCAST, .recvbuf = &offer, .count = sizeof offer, .type = NCCLX_UINT8};
    int error = coll_run_schedule(comm, &args);
    if (!error && segment && reach_memory(comm, segment, bytes, &offer))
        mine = level == SEGMENT_LARGE && copies_with_all(comm) ? CAN_COPY : CAN_SHARE;
    if (!error) error = agree(comm, mine, &all);
    if (error || !all) {
        segments->state = SEGMENTS_IMPOSSIBLE;
        base_log(AREA_COLL, LOG_DEBUG, "no shared memory for the collectives of %s: messages serve them", base_comm_name(comm));
        if (segment) end_segment(comm->rt, segment);
        return error;
    }
    shared_prepare(&segment->shared, comm->rt, (char *)(segment->header + 1), comm->rank, comm->size, slots, data);
    segment->shared.copy = all == CAN_COPY ? copy : NULL;
    segment->shared.copy_arg = comm;
    segments->segment[level] = segment;
    return NCCLX_SUCCESS;
}

int segments_get(struct ncclx_comm *comm, size_t bytes, bool at_once, struct shared **shared)
{
    struct segments *segments = &comm->coll->segments;
    enum segment_level level = bytes <= SMALL_BYTES ? SEGMENT_SMALL : SEGMENT_LARGE;
    struct segment *segment = segments->segment[level];
    *shared = segment ? &segment->shared : NULL;
    if (__builtin_expect(segment != NULL, 1)) return NCCLX_SUCCESS;
    if (++segments->calls[level] < CALLS_BEFORE && !at_once) return NCCLX_SUCCESS;
    int error = make(comm, level);
    if (segments->segment[level]) *shared = &segments->segment[level]->shared;
    return error;
}

/* ---- Ending ----------------------------------------------------------------------------------------------------- */

/* Rank 0's memory ends when all others have left: they may still be reading the results of the last call. */
static bool may_end(const struct segment *segment)
{
    uint64_t others = (uint64_t)segment->shared.size - 1;
    return !segment->own || atomic_load_explicit(&segment->header->left, memory_order_acquire) >= others;
}

void segments_reap(struct ncclx_rt *rt, bool at_end)
{
    struct base_wait wait;
    base_wait_begin(&wait, rt, "ncclx_finalize", NULL, NULL);
    base_wait_set_timeout(&wait, LEAVE_NS);
    bool again = true;
    while (again) {
        for (struct segment **link = &rt->coll->left; *link;) {
            struct segment *segment = *link;
            if (may_end(segment)) {
                *link = segment->next;
                end_segment(rt, segment);
            } else {
                link = &segment->next;
            }
        }
        again = at_end && rt->coll->left && (base_progress(rt) || !base_wait_idle(&wait));
    }
    base_wait_end(&wait);
    while (at_end && rt->coll->left) {
        struct segment *segment = rt->coll->left;
        rt->coll->left = segment->next;
        base_free(AREA_COLL, segment); /* not the memory: a rank that was stopped for so long may still look at it */
    }
}

void segments_end(struct ncclx_comm *comm)
{
    for (int level = 0; level < SEGMENT_LEVELS; level++) {
        struct segment *segment = comm->coll->segments.segment[level];
        if (!segment) continue;
        comm->coll->segments.segment[level] = NULL;
        if (!segment->own) atomic_fetch_add_explicit(&segment->header->left, 1, memory_order_acq_rel);
        segment->next = comm->rt->coll->left;
        comm->rt->coll->left = segment;
    }
    if (comm->rt->coll->left) segments_reap(comm->rt, false);
}
