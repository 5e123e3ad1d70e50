/* algorithms.h - the algorithms: each builds one rank's steps of builder->problem, for any number of ranks from 2
 * up, any root and any count. */
#ifndef COLL_ALGORITHMS_H
#define COLL_ALGORITHMS_H

#include "coll/schedule.h"

typedef void (*algorithm_fn)(struct builder *builder);

void barrier_dissemination(struct builder *builder);
void barrier_tree(struct builder *builder);

void bcast_binomial(struct builder *builder);
void bcast_scatter_allgather(struct builder *builder);
void bcast_pipeline(struct builder *builder);
void bcast_kary(struct builder *builder);

void reduce_binomial(struct builder *builder);
void reduce_rabenseifner(struct builder *builder);

void allreduce_recursive_doubling(struct builder *builder);
void allreduce_rabenseifner(struct builder *builder);
void allreduce_ring(struct builder *builder);
void allreduce_reduce_bcast(struct builder *builder);

/* Those for all-gather serve all-gatherv too; so do pairwise and direct for all-to-all(v). */
void allgather_ring(struct builder *builder);
void allgather_bidirectional_ring(struct builder *builder);
void allgather_bruck(struct builder *builder);
void allgather_recursive_doubling(struct builder *builder);

void alltoall_pairwise(struct builder *builder);
void alltoall_bruck(struct builder *builder);
void alltoall_direct(struct builder *builder);

/* For reduce_scatter and reduce_scatter_block. */
void reduce_scatter_direct(struct builder *builder);
void reduce_scatter_ring(struct builder *builder);
void reduce_scatter_halving(struct builder *builder);

void gather_binomial(struct builder *builder);
void gather_linear(struct builder *builder); /* and gatherv */
void scatter_binomial(struct builder *builder);
void scatter_linear(struct builder *builder); /* and scatterv */

void scan_recursive_doubling(struct builder *builder);
void scan_pipeline(struct builder *builder);
void exscan_recursive_doubling(struct builder *builder);
void exscan_pipeline(struct builder *builder);

/* ---- Parts that several of them share --------------------------------------------------------------------------- */

/* The rank `distance` places after (before) rank on a ring of `size`; 0 <= distance <= size. */
static inline int ring_after(int rank, int distance, int size)
{
    return (int)(((int64_t)rank + distance) % size);
}

static inline int ring_before(int rank, int distance, int size)
{
    return (int)(((int64_t)rank - distance + size) % size);
}

/* Pipelines send a vector in so many pieces. */
size_t pipeline_pieces(const struct coll_problem *problem);

/* buf from `root` to all along a binomial tree. Messages of round `round`. */
void bcast_tree(struct builder *builder, struct span buf, int root, unsigned round);
/* Contributions `input` along a binomial tree, round 0, to rank `first`, which ends with the result in
 * `accumulator`; other inner nodes use theirs for partial results. Keeps the order of ranks if first is 0. */
void reduce_tree(struct builder *builder, struct span input, struct span accumulator, int first);

/* A group of a power of two of ranks, in rank order: the first 2 * extra ranks form pairs, of which the odd one acts
 * for both (Thakur, Rabenseifner and Gropp 2005, section 4.5). */
struct fold {
    int size;  /* of the group */
    int extra; /* ranks left out */
    int rank;  /* this rank in the group; -1: left out */
};
struct fold fold_of(const struct coll_problem *problem);
int fold_real_rank(const struct fold *fold, int rank);
/* Round 0: the ranks left out hand their contribution to their neighbour. Returns where the rank's partial result
 * is. */
struct span fold_in(struct builder *builder, const struct fold *fold, struct span input, struct span accumulator, struct span incoming);
/* Round 0, the other way: they get the result. */
void fold_out(struct builder *builder, const struct fold *fold, struct span result);

/* Vector halving with distance doubling: the reduce-scatter half of Rabenseifner's algorithms. piece[k] is what this
 * rank works on after k steps, in elements; piece[levels] of `result` is complete in the end. Uses rounds 1 to
 * levels. Keeps the order of ranks. */
#define HALVING_LEVELS 31
struct halving {
    int levels;
    struct {
        size_t begin, end;
    } piece[HALVING_LEVELS + 1];
};
void halve(struct builder *builder, const struct fold *fold, struct halving *halving, struct span input, struct span result,
           struct span incoming);
struct span halving_piece(const struct builder *builder, const struct halving *halving, struct span whole, int level);
/* The other half of piece[level], which the partner of step `level` holds. */
struct span halving_sibling(const struct builder *builder, const struct halving *halving, struct span whole, int level);

#endif
