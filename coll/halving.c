/* halving.c - the parts of Rabenseifner's reduce and all-reduce (Thakur, Rabenseifner and Gropp 2005, section 4.5),
 * for any number of ranks. */
#include "coll/algorithms.h"

struct fold fold_of(const struct coll_problem *problem)
{
    struct fold fold = {.size = 1};
    while (fold.size <= problem->size / 2) fold.size *= 2;
    fold.extra = problem->size - fold.size;
    if (problem->rank >= 2 * fold.extra) fold.rank = problem->rank - fold.extra;
    else fold.rank = problem->rank % 2 ? problem->rank / 2 : -1;
    return fold;
}

int fold_real_rank(const struct fold *fold, int rank)
{
    return rank < fold->extra ? 2 * rank + 1 : rank + fold->extra;
}

struct span fold_in(struct builder *builder, const struct fold *fold, struct span input, struct span accumulator, struct span incoming)
{
    int rank = builder->problem->rank;
    builder_round(builder, 0);
    if (rank >= 2 * fold->extra) return input;
    if (rank % 2 == 0) {
        builder_send(builder, input, rank + 1);
        return input;
    }
    builder_receive(builder, incoming, rank - 1);
    builder_reduce(builder, incoming, input, accumulator);
    return accumulator;
}

void fold_out(struct builder *builder, const struct fold *fold, struct span result)
{
    int rank = builder->problem->rank;
    builder_round(builder, 0);
    if (rank >= 2 * fold->extra) return;
    if (rank % 2) builder_send(builder, result, rank - 1);
    else builder_receive(builder, result, rank + 1);
}

static struct span elements(const struct builder *builder, struct span whole, size_t begin, size_t end)
{
    size_t bytes = builder->problem->element_bytes;
    return span_part(whole, begin * bytes, (end - begin) * bytes);
}

struct span halving_piece(const struct builder *builder, const struct halving *halving, struct span whole, int level)
{
    return elements(builder, whole, halving->piece[level].begin, halving->piece[level].end);
}

struct span halving_sibling(const struct builder *builder, const struct halving *halving, struct span whole, int level)
{
    size_t begin = halving->piece[level].begin, end = halving->piece[level].end;
    if (halving->piece[level + 1].begin == begin) begin = halving->piece[level + 1].end;
    else end = halving->piece[level + 1].begin;
    return elements(builder, whole, begin, end);
}

void halve(struct builder *builder, const struct fold *fold, struct halving *halving, struct span input, struct span result,
           struct span incoming)
{
    struct span current = input;
    halving->piece[0].begin = 0;
    halving->piece[0].end = builder->problem->count;
    halving->levels = 0;
    for (int mask = 1; mask < fold->size; mask *= 2) {
        int level = halving->levels++, partner = fold_real_rank(fold, fold->rank ^ mask);
        bool upper = fold->rank & mask;
        size_t begin = halving->piece[level].begin, end = halving->piece[level].end, middle = begin + (end - begin) / 2;
        halving->piece[level + 1].begin = upper ? middle : begin;
        halving->piece[level + 1].end = upper ? end : middle;
        struct span mine = halving_piece(builder, halving, current, level + 1);
        struct span theirs = elements(builder, current, upper ? begin : middle, upper ? middle : end);
        struct span arrives = halving_piece(builder, halving, incoming, level + 1);
        struct span sum = halving_piece(builder, halving, result, level + 1);
        builder_round(builder, 1 + (unsigned)level);
        builder_receive(builder, arrives, partner);
        builder_send(builder, theirs, partner);
        if (upper) builder_reduce(builder, arrives, mine, sum);
        else builder_reduce(builder, mine, arrives, sum);
        current = result;
    }
}
