/* map.c - which daemon hosts a rank, and who is above and below whom. Daemons below one another form one run of numbers
 * a level, so that counting ranks below a daemon is counting over a few runs. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"

void kvx_map_free(struct kvx_map *map)
{
    if (!map) return;
    base_free(AREA_BOOTSTRAP, map->daemon_of_rank);
    base_free(AREA_BOOTSTRAP, map->ranks);
    base_free(AREA_BOOTSTRAP, map->first_rank);
    base_free(AREA_BOOTSTRAP, map);
}

static void sort_ranks(struct kvx_map *map)
{
    for (int rank = 0; rank < map->rank_count; rank++) map->first_rank[map->daemon_of_rank[rank] + 1]++;
    for (int daemon = 0; daemon < map->daemon_count; daemon++) map->first_rank[daemon + 1] += map->first_rank[daemon];
    for (int rank = 0; rank < map->rank_count; rank++) map->ranks[map->first_rank[map->daemon_of_rank[rank]]++] = rank;
    for (int daemon = map->daemon_count; daemon > 0; daemon--) map->first_rank[daemon] = map->first_rank[daemon - 1];
    map->first_rank[0] = 0;
}

int kvx_map_create(const int *daemon_of_rank, int rank_count, int daemon_count, int radix, struct kvx_map **out)
{
    *out = NULL;
    if (rank_count < 1 || daemon_count < 1 || radix < 1 || radix > KVX_MAX_RADIX)
        return base_error(NCCLX_ERR_ARG, "no tree of %d daemons with radix %d (1 to %d) for %d ranks", daemon_count,
                          radix, KVX_MAX_RADIX, rank_count);
    for (int rank = 0; rank < rank_count; rank++)
        if (daemon_of_rank[rank] < 0 || daemon_of_rank[rank] >= daemon_count)
            return base_error(NCCLX_ERR_ARG, "rank %d is on daemon %d of %d", rank, daemon_of_rank[rank], daemon_count);
    struct kvx_map *map = base_calloc(AREA_BOOTSTRAP, 1, sizeof *map);
    if (!map) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of daemons");
    *map = (struct kvx_map){.rank_count = rank_count, .daemon_count = daemon_count, .radix = radix};
    map->daemon_of_rank = base_calloc(AREA_BOOTSTRAP, (size_t)rank_count, sizeof *map->daemon_of_rank);
    map->ranks = base_calloc(AREA_BOOTSTRAP, (size_t)rank_count, sizeof *map->ranks);
    map->first_rank = base_calloc(AREA_BOOTSTRAP, (size_t)daemon_count + 1, sizeof *map->first_rank);
    if (!map->daemon_of_rank || !map->ranks || !map->first_rank) {
        kvx_map_free(map);
        return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", rank_count);
    }
    for (int rank = 0; rank < rank_count; rank++) map->daemon_of_rank[rank] = daemon_of_rank[rank];
    sort_ranks(map);
    *out = map;
    return NCCLX_SUCCESS;
}

int kvx_parent(const struct kvx_map *map, int daemon)
{
    return daemon ? (daemon - 1) / map->radix : -1;
}

int kvx_child_count(const struct kvx_map *map, int daemon)
{
    int64_t left = map->daemon_count - ((int64_t)daemon * map->radix + 1);
    return left < 0 ? 0 : left < map->radix ? (int)left : map->radix;
}

int kvx_child(const struct kvx_map *map, int daemon, int index)
{
    return daemon * map->radix + 1 + index;
}

bool map_is_below(const struct kvx_map *map, int top, int daemon)
{
    while (daemon > top) daemon = kvx_parent(map, daemon);
    return daemon == top;
}

int map_route(const struct kvx_map *map, int me, int daemon)
{
    if (daemon == me) return KVX_LOCAL;
    while (daemon > me) {
        int above = kvx_parent(map, daemon);
        if (above == me) return daemon - kvx_child(map, me, 0);
        daemon = above;
    }
    return KVX_PARENT;
}

bool map_contains(const struct kvx_range *ranges, size_t count, int rank)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (ranges[middle].last < (uint32_t)rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low < count && ranges[low].first <= (uint32_t)rank;
}

/* Daemons first .. last. */
static int count_run(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int first, int last)
{
    int from = map->first_rank[first], to = map->first_rank[last + 1], found = 0;
    if (ranges[0].first == 0 && ranges[0].last >= (uint32_t)(map->rank_count - 1)) return to - from;
    for (int i = from; i < to; i++) found += map_contains(ranges, count, map->ranks[i]);
    return found;
}

int map_count_on(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int daemon)
{
    return count_run(map, ranges, count, daemon, daemon);
}

int map_count_below(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int daemon)
{
    int found = 0;
    int64_t first = daemon, last = daemon, end = map->daemon_count - 1;
    while (first <= end) {
        found += count_run(map, ranges, count, (int)first, (int)(last < end ? last : end));
        first = first * map->radix + 1;
        last = last * map->radix + map->radix;
    }
    return found;
}
