/* barrier.c - no rank leaves before all have come. */
#include "coll/algorithms.h"

/* Dissemination (Hensgen, Finkel and Manber 1988): in round k each rank tells the one 2^k places on all it has heard
 * of. */
void barrier_dissemination(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    unsigned round = 0;
    for (int64_t distance = 1; distance < size; distance *= 2) {
        builder_round(builder, round++);
        builder_receive_token(builder, ring_before(rank, (int)distance, size));
        builder_send_token(builder, ring_after(rank, (int)distance, size));
        builder_join(builder);
    }
}

/* Up and down a binomial tree: fewest messages, twice the steps. */
void barrier_tree(struct builder *builder)
{
    int rank = builder->problem->rank, size = builder->problem->size;
    int64_t mask = 1;
    for (; mask < size && !(rank & mask); mask *= 2)
        if (rank + mask < size) builder_receive_token(builder, (int)(rank + mask));
    builder_join(builder);
    if (rank) {
        builder_send_token(builder, (int)(rank - mask));
        builder_receive_token(builder, (int)(rank - mask));
        builder_join(builder);
    }
    while (mask /= 2)
        if (rank + mask < size) builder_send_token(builder, (int)(rank + mask));
}
