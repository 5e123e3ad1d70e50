/* ways.c - see ways.h. */
#include "pml/lanes/ways.h"

static struct choice *choice_of(struct lanes_ways *ways, uint64_t bytes)
{
    unsigned class = 0;
    for (uint64_t most = 2 * WAYS_LEAST; bytes >= most && class < WAYS_CLASSES - 1; most *= 2) class++;
    return &ways->choice[class];
}

enum lanes_way ways_begin(struct lanes_ways *ways, const void *put, uint64_t bytes, bool spares, uint64_t now_ns)
{
    struct choice *choice = choice_of(ways, bytes);
    unsigned count = spares ? WAYS : WAY_WHOLE; /* where all are copied, whole ones are, too */
    if (choice->ways != count) choice_init(choice, count, WAY_SPREAD);
    ways->timed = put;
    ways->begun = now_ns;
    ways->bytes = bytes;
    ways->way = (enum lanes_way)choice_next(choice);
    return ways->way;
}

void ways_end(struct lanes_ways *ways, const void *put, uint64_t now_ns)
{
    if (ways->timed != put) return;
    ways->timed = NULL;
    choice_learn(choice_of(ways, ways->bytes), ways->way, (now_ns - ways->begun) * WAYS_LEAST / ways->bytes);
}
