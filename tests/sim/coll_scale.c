/* coll_scale.c - what collectives of short vectors, and communicators and windows made with them, cost as ranks grow:
 * the longest chain of messages, the messages and the different peers of the busiest rank. The schedules are those that
 * a rank builds; figures are asserted to be logarithmic, and printed. Up to 100,000 ranks.
 */
#include "coll/select.h"
#include "osc/window.h"
#include "runtime/group_tree.h"
#include "runtime/split_core.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct node {
    uint32_t first_successor, successor_count, waits;
    int peer; /* -1: no message */
    uint32_t round;
    bool receives;
    int depth; /* messages in the longest chain up to its end */
};

struct rank {
    struct node *nodes;
    uint32_t *successors;
    uint32_t count;
};

struct place {
    int rank;
    uint32_t node;
};

struct figures {
    int depth, messages, peers;
    bool whole; /* every step ended, every message had its other end */
};

static void *must(void *memory)
{
    if (!memory) abort();
    return memory;
}

static void keep(struct rank *rank, const struct schedule *schedule)
{
    uint32_t edges = 0;
    rank->count = schedule->step_count;
    rank->nodes = must(calloc(rank->count + 1, sizeof *rank->nodes));
    for (uint32_t i = 0; i < rank->count; i++) {
        const struct step *step = &schedule->steps[i];
        bool message = step->kind == STEP_SEND || step->kind == STEP_RECEIVE;
        rank->nodes[i] = (struct node){.first_successor = step->first_successor,
                                       .successor_count = step->successor_count,
                                       .waits = step->dependencies + (step->kind == STEP_RECEIVE),
                                       .peer = message ? step->peer : -1,
                                       .round = step->round,
                                       .receives = step->kind == STEP_RECEIVE};
        edges += step->successor_count;
    }
    rank->successors = must(calloc(edges + 1, sizeof *rank->successors));
    memcpy(rank->successors, schedule->successors, edges * sizeof *rank->successors);
}

/* The receive that a send ends in. Messages between two ranks differ in their rounds here. */
static struct node *other_end(struct rank *ranks, int from, const struct node *send, struct place *place)
{
    struct rank *to = &ranks[send->peer];
    for (uint32_t i = 0; i < to->count; i++) {
        if (!to->nodes[i].receives || to->nodes[i].peer != from || to->nodes[i].round != send->round) continue;
        *place = (struct place){send->peer, i};
        return &to->nodes[i];
    }
    return NULL;
}

struct queue {
    struct place *places;
    size_t used, room;
};

static void push(struct queue *queue, struct place place)
{
    if (queue->used == queue->room) {
        queue->room = queue->room ? 2 * queue->room : 1024;
        queue->places = must(realloc(queue->places, queue->room * sizeof *queue->places));
    }
    queue->places[queue->used++] = place;
}

static void reach(struct queue *queue, struct node *node, struct place place, int depth)
{
    if (depth > node->depth) node->depth = depth;
    if (--node->waits == 0) push(queue, place);
}

static void run(struct rank *ranks, int size, struct figures *figures)
{
    struct queue queue = {0};
    size_t ended = 0, nodes = 0;
    for (int r = 0; r < size; r++) {
        nodes += ranks[r].count;
        for (uint32_t i = 0; i < ranks[r].count; i++)
            if (!ranks[r].nodes[i].waits) push(&queue, (struct place){r, i});
    }
    while (queue.used) {
        struct place at = queue.places[--queue.used], to;
        struct rank *rank = &ranks[at.rank];
        struct node *node = &rank->nodes[at.node];
        ended++;
        if (node->depth > figures->depth) figures->depth = node->depth;
        for (uint32_t i = 0; i < node->successor_count; i++) {
            uint32_t next = rank->successors[node->first_successor + i];
            reach(&queue, &rank->nodes[next], (struct place){at.rank, next}, node->depth);
        }
        if (node->peer < 0 || node->receives) continue;
        struct node *receive = other_end(ranks, at.rank, node, &to);
        if (receive) reach(&queue, receive, to, node->depth + 1);
    }
    figures->whole = ended == nodes;
    free(queue.places);
}

static void count_messages(const struct rank *rank, struct figures *figures)
{
    int messages = 0, peers = 0;
    for (uint32_t i = 0; i < rank->count; i++) {
        bool known = rank->nodes[i].peer < 0;
        messages += !known;
        for (uint32_t k = 0; k < i && !known; k++) known = rank->nodes[k].peer == rank->nodes[i].peer;
        peers += !known;
    }
    if (messages > figures->messages) figures->messages = messages;
    if (peers > figures->peers) figures->peers = peers;
}

static struct figures measure(enum coll_name name, size_t bytes, int size, int root)
{
    static const struct coll_choice automatic;
    struct figures figures = {0};
    struct builder builder = {0};
    struct rank *ranks = must(calloc((size_t)size, sizeof *ranks));
    size_t *counts = must(calloc((size_t)size, sizeof *counts)), *displs = must(calloc((size_t)size, sizeof *displs));
    for (int r = 0; r < size; r++) {
        counts[r] = bytes;
        displs[r] = (size_t)r * bytes;
    }
    bool good = true;
    for (int r = 0; r < size; r++) {
        struct coll_problem problem = {.name = name,
                                       .rank = r,
                                       .size = size,
                                       .root = root,
                                       .count = bytes,
                                       .element_bytes = 1,
                                       .bytes = bytes,
                                       .type = NCCLX_UINT8,
                                       .op = NCCLX_MAX,
                                       .commutative = true};
        struct coll_blocks blocks = {.counts = counts, .displs = displs};
        if (name == COLL_ALLGATHERV || name == COLL_REDUCE_SCATTER) {
            problem.recv = blocks;
            problem.total_bytes = bytes * (size_t)size;
        }
        struct schedule *schedule = NULL;
        builder_begin(&builder, &problem);
        coll_select(&automatic, &problem)->build(&builder);
        if (builder_end(&builder, &schedule)) good = false;
        if (!schedule) break;
        keep(&ranks[r], schedule);
        base_free(AREA_COLL, schedule);
        count_messages(&ranks[r], &figures);
    }
    if (good) run(ranks, size, &figures);
    for (int r = 0; r < size; r++) {
        free(ranks[r].nodes);
        free(ranks[r].successors);
    }
    builder_release(&builder);
    free(ranks);
    free(counts);
    free(displs);
    return figures;
}

/* One pass over the tree of create_group, up or down. */
static struct figures measure_group_tree(int size)
{
    struct figures figures = {.whole = true};
    for (int rank = 0; rank < size; rank++) {
        int depth = 0, children = 0;
        for (int at = rank; at; at = group_tree_parent(at)) depth++;
        for (int step = 1, far = group_tree_reach(rank, size); step < far; step *= 2) {
            if (rank + step >= size) continue;
            children++;
            if (group_tree_parent(rank + step) != rank) figures.whole = false;
        }
        if (depth > figures.depth) figures.depth = depth;
        if (children + (rank > 0) > figures.messages) figures.messages = children + (rank > 0);
    }
    figures.peers = figures.messages;
    return figures;
}

static int log2_of(int size)
{
    int log = 0;
    while ((int64_t)1 << log < size) log++;
    return log;
}

static int number;

static void check(const char *what, int size, struct figures figures, int exchanges)
{
    int log = log2_of(size), most = exchanges * (2 * log + 2);
    bool good = figures.whole && figures.depth > 0 && figures.depth <= most && figures.messages <= 2 * most &&
                figures.peers <= most;
    printf("%sok %d - %s, %d ranks: a chain of %d messages, %d messages and %d peers at the busiest\n",
           good ? "" : "not ", ++number, what, size, figures.depth, figures.messages, figures.peers);
}

static struct figures sum(struct figures a, struct figures b)
{
    return (struct figures){a.depth + b.depth, a.messages + b.messages, a.peers + b.peers, a.whole && b.whole};
}

/* What comm_create.c and osc/window.c do, one exchange after another. */
static void communicators(int size)
{
    struct figures agree = measure(COLL_ALLREDUCE, 2 * sizeof(uint64_t), size, 0);
    struct figures entries = measure(COLL_ALLGATHER, sizeof(struct split_entry), size, 0);
    struct figures cards = measure(COLL_ALLGATHER, sizeof(struct osc_card), size, 0);
    struct figures verdicts = measure(COLL_ALLGATHER, sizeof(int), size, 0);
    struct figures tree = measure_group_tree(size);
    check("comm_dup", size, sum(agree, agree), 2);
    check("comm_split", size, sum(agree, sum(entries, agree)), 3);
    check("comm_create_group", size, sum(tree, sum(tree, tree)), 3);
    check("win_create", size, sum(sum(agree, agree), sum(cards, verdicts)), 4);
}

static void collectives(int size)
{
    static const struct {
        const char *what;
        enum coll_name name;
        bool few; /* a rank walks all blocks, which is little for one rank and much for a test that is all of them */
    } list[] = {{"barrier", COLL_BARRIER, false},
                {"bcast", COLL_BCAST, false},
                {"reduce", COLL_REDUCE, false},
                {"allreduce", COLL_ALLREDUCE, false},
                {"allgather", COLL_ALLGATHER, false},
                {"allgatherv", COLL_ALLGATHERV, true},
                {"reduce_scatter_block", COLL_REDUCE_SCATTER_BLOCK, true},
                {"gather", COLL_GATHER, false},
                {"scatter", COLL_SCATTER, false},
                {"scan", COLL_SCAN, false},
                {"exscan", COLL_EXSCAN, false}};
    for (size_t i = 0; i < sizeof list / sizeof list[0]; i++)
        if (!list[i].few || size <= 1000) check(list[i].what, size, measure(list[i].name, 8, size, size / 3), 1);
}

#ifdef __SANITIZE_ADDRESS__
#define MOST 4096 /* four times slower */
#else
#define MOST 100000
#endif

/* coll_scale [RANKS]: up to so many */
int main(int argc, char **argv)
{
    static const int sizes[] = {2, 3, 7, 64, 1000, 4096, 100000};
    int most = argc > 1 ? atoi(argv[1]) : MOST;
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0] && sizes[i] <= most; i++) {
        communicators(sizes[i]);
        collectives(sizes[i]);
    }
    printf("1..%d\n", number);
    return 0;
}
