/* cache.c - values of ranks that came by, for the next who asks; the one not used for longest makes room. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include <string.h>

static struct cached **place_of(struct kvx *kvx, int rank)
{
    struct cached **place = &kvx->cache[(unsigned)rank % BUCKETS];
    while (*place && (*place)->rank != rank) place = &(*place)->next;
    return place;
}

static void unlink_age(struct kvx *kvx, struct cached *cached)
{
    *(cached->newer ? &cached->newer->older : &kvx->newest) = cached->older;
    *(cached->older ? &cached->older->newer : &kvx->oldest) = cached->newer;
}

static void make_newest(struct kvx *kvx, struct cached *cached)
{
    cached->newer = NULL;
    cached->older = kvx->newest;
    *(kvx->newest ? &kvx->newest->newer : &kvx->oldest) = cached;
    kvx->newest = cached;
}

static void discard(struct kvx *kvx, struct cached **place)
{
    struct cached *cached = *place;
    unlink_age(kvx, cached);
    *place = cached->next;
    kvx->cached_bytes -= sizeof *cached + cached->bytes;
    kvx_give(kvx, cached);
}

const struct cached *cache_find(struct kvx *kvx, int rank)
{
    struct cached *cached = *place_of(kvx, rank);
    if (!cached) return NULL;
    unlink_age(kvx, cached);
    make_newest(kvx, cached);
    return cached;
}

void cache_keep(struct kvx *kvx, int rank, const void *data, size_t bytes)
{
    struct cached **place = place_of(kvx, rank), *cached;
    size_t cost = sizeof *cached + bytes;
    if (*place) discard(kvx, place);
    if (cost > kvx->limits.cache_bytes) return;
    while (kvx->cached_bytes + cost > kvx->limits.cache_bytes) discard(kvx, place_of(kvx, kvx->oldest->rank));
    cached = kvx_take(kvx, cost);
    if (!cached) return;
    cached->rank = rank;
    cached->bytes = bytes;
    if (bytes) memcpy(cached->data, data, bytes);
    place = place_of(kvx, rank);
    cached->next = *place;
    *place = cached;
    make_newest(kvx, cached);
    kvx->cached_bytes += cost;
}

void cache_retire(struct kvx *kvx, const struct kvx_range *range)
{
    for (struct cached *cached = kvx->newest, *older; cached; cached = older) {
        older = cached->older;
        if (map_contains(range, 1, cached->rank)) discard(kvx, place_of(kvx, cached->rank));
    }
}

void cache_release(struct kvx *kvx)
{
    while (kvx->oldest) discard(kvx, place_of(kvx, kvx->oldest->rank));
}
