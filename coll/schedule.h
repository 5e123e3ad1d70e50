/* schedule.h - a collective as a graph of steps, and the builder that the algorithms use.
 *
 * An algorithm is written as the text book writes it: one rank's sends, receives and reductions in order. The
 * builder finds out which of them really depend on each other, from the memory that each reads and writes; steps
 * that do not may run at the same time. Steps name buffers, not addresses, so one schedule serves every call with
 * the same arguments, whatever its buffers.
 *
 * Pure: no communication, no clock; memory only while a schedule is built.
 */
#ifndef COLL_SCHEDULE_H
#define COLL_SCHEDULE_H

#include "coll/coll.h"
#include "coll/span_index.h"

/* What is to be done, as this rank sees it. Everything but rank is the same on all ranks (in_place of a reduce: the
 * root's), and the blocks of gatherv, scatterv and alltoallv. */
struct coll_problem {
    enum coll_name name;
    int rank, size, root;
    size_t count; /* as in the public call; with blocks of unlike size: of the own one */
    size_t element_bytes;
    size_t bytes;                  /* count * element_bytes: one rank's contribution, or one block */
    size_t total_bytes;            /* of all blocks of an allgatherv or reduce_scatter */
    size_t passed; /* gatherv, scatterv: when not 0, the root's own block and those up to so many bytes are where they belong */
    struct coll_blocks send, recv; /* reduce_scatter: recv says how the input is divided */
    ncclx_datatype_t type;
    ncclx_op_t op;
    bool commutative;
    bool in_place;
    bool shared; /* a blocking call, on a communicator whose ranks share a node: shared.h may serve it */
};

enum schedule_buffer { BUFFER_SEND, BUFFER_RECV, BUFFER_SCRATCH, BUFFER_COUNT };

/* A piece of one of the call's buffers. */
struct span {
    size_t offset, bytes;
    enum schedule_buffer buffer;
};

enum step_kind {
    STEP_SEND,    /* a to peer */
    STEP_RECEIVE, /* out from peer */
    STEP_REDUCE,  /* out = a op b; a holds lower ranks */
    STEP_FINISH,  /* out is complete: the division of an average */
    STEP_COPY,    /* out = a */
    STEP_JOIN     /* nothing, but everything before ends before everything after begins */
};

struct step {
    enum step_kind kind;
    int peer;
    unsigned round; /* tells messages between the same two ranks apart */
    struct span a, b, out;
    uint32_t first_successor, successor_count; /* in schedule.successors: steps that wait for this one */
    uint32_t dependencies;                     /* steps that this one waits for */
};

/* Rounds that a tag can tell apart (executor.h). More may be used as long as messages of the same number modulo this
 * are received in order. */
#define SCHEDULE_ROUNDS 32768u

struct schedule {
    struct coll_problem problem;
    uint32_t step_count;
    const struct step *steps;
    const uint32_t *successors;
    size_t scratch_bytes;
    size_t memory_bytes; /* of this block, which holds the steps too */
};

/* ---- Builder: errors stick, so that an algorithm needs not look at each call ------------------------------------ */

struct edge {
    uint32_t from, to;
};

struct builder {
    const struct coll_problem *problem;
    struct step *steps;
    size_t step_count, step_room;
    struct edge *edges;
    size_t edge_count, edge_room;
    struct span_index touched; /* by the steps since the last join */
    uint32_t *linked;          /* for each step, the last one that waits for it */
    size_t linked_room;
    size_t scratch_bytes;
    size_t joined; /* steps before this one are ended by the last join */
    unsigned round;
    int error;
};

/* Starts anew; a zeroed builder may be used again and again and keeps its memory. */
void builder_begin(struct builder *builder, const struct coll_problem *problem);
/* One block, to be freed with base_free(AREA_COLL, ...). */
int builder_end(struct builder *builder, struct schedule **schedule);
void builder_release(struct builder *builder);

/* Steps of no bytes are left out, on both sides alike. */
void builder_send(struct builder *builder, struct span from, int peer);
void builder_receive(struct builder *builder, struct span to, int peer);
void builder_reduce(struct builder *builder, struct span lower, struct span higher, struct span out);
void builder_copy(struct builder *builder, struct span from, struct span to);
/* `result` holds all contributions. */
void builder_finish(struct builder *builder, struct span result);
/* Empty messages, for barriers. */
void builder_send_token(struct builder *builder, int peer);
void builder_receive_token(struct builder *builder, int peer);
/* The round of the sends and receives that follow: both ends of a message give the same, and two messages from one
 * rank to another differ in it unless they are received in the order in which they are sent. */
void builder_round(struct builder *builder, unsigned round);
void builder_join(struct builder *builder);

/* Memory of the schedule's own. */
struct span builder_scratch(struct builder *builder, size_t bytes);

/* ---- Spans ------------------------------------------------------------------------------------------------------ */

static inline struct span span_of(enum schedule_buffer buffer, size_t offset, size_t bytes)
{
    return (struct span){.offset = offset, .bytes = bytes, .buffer = buffer};
}

static inline struct span span_part(struct span whole, size_t offset, size_t bytes)
{
    return (struct span){.offset = whole.offset + offset, .bytes = bytes, .buffer = whole.buffer};
}

/* `count` things dealt to `parts` as evenly as can be: where part `index` begins. index may be `parts`: the end. */
static inline size_t split_begin(size_t count, size_t parts, size_t index)
{
    size_t more = count % parts;
    return count / parts * index + (index < more ? index : more);
}

/* The same in elements of the problem, as a piece of `whole`, which holds problem->count of them. */
static inline struct span span_split(const struct coll_problem *problem, struct span whole, size_t parts, size_t index)
{
    size_t begin = split_begin(problem->count, parts, index), end = split_begin(problem->count, parts, index + 1);
    return span_part(whole, begin * problem->element_bytes, (end - begin) * problem->element_bytes);
}

/* Block `index` of a buffer: as `blocks` says, whose displacements are known, or all of problem->bytes in a row. */
static inline struct span problem_block(const struct coll_problem *problem, const struct coll_blocks *blocks, enum schedule_buffer buffer,
                                        int index)
{
    size_t bytes = problem->element_bytes, i = (size_t)index;
    if (!blocks->counts) return span_of(buffer, i * problem->bytes, problem->bytes);
    return span_of(buffer, blocks->displs[i] * bytes, blocks->counts[i] * bytes);
}

static inline struct span problem_send_block(const struct coll_problem *problem, int index)
{
    return problem_block(problem, &problem->send, BUFFER_SEND, index);
}

static inline struct span problem_recv_block(const struct coll_problem *problem, int index)
{
    return problem_block(problem, &problem->recv, BUFFER_RECV, index);
}

/* Where this rank's contribution is: all of it for reductions and the own block for the others. */
static inline struct span problem_input(const struct coll_problem *problem)
{
    return span_of(problem->in_place ? BUFFER_RECV : BUFFER_SEND, 0, problem->bytes);
}

#endif
