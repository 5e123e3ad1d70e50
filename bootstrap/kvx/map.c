/* map.c - which daemon hosts a rank, and who is above and below whom. Ranks come and go in groups, one a job. Daemons below one another form one run of numbers
 * a level, so that counting ranks below a daemon is counting over a few runs. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"

#include <limits.h>
#include <string.h>

static void release_group(struct map_group *group)
{
    base_free(AREA_BOOTSTRAP, group->daemon_of_rank);
    base_free(AREA_BOOTSTRAP, group->ranks);
}

void kvx_map_free(struct kvx_map *map)
{
    if (!map) return;
    for (int i = 0; i < map->group_count; i++) release_group(&map->groups[i]);
    base_free(AREA_BOOTSTRAP, map->groups);
    base_free(AREA_BOOTSTRAP, map);
}

/* The group's ranks in the order of their daemons. `next` has room for one more than there are daemons. */
static void sort_ranks(const struct kvx_map *map, struct map_group *group, int *next)
{
    for (int i = 0; i < group->count; i++) next[group->daemon_of_rank[i] + 1]++;
    for (int daemon = 0; daemon < map->daemon_count; daemon++) next[daemon + 1] += next[daemon];
    for (int i = 0; i < group->count; i++) group->ranks[next[group->daemon_of_rank[i]]++] = group->first + i;
}

/* Room for one more. */
static bool grow(struct kvx_map *map)
{
    if (map->group_count < map->group_room) return true;
    int room = map->group_room ? 2 * map->group_room : 1;
    struct map_group *groups = base_realloc(AREA_BOOTSTRAP, map->groups, (size_t)room * sizeof *groups);
    if (!groups) return false;
    map->groups = groups;
    map->group_room = room;
    return true;
}

static int fill_group(const struct kvx_map *map, struct map_group *group, const int *daemon_of_rank)
{
    int *next = base_calloc(AREA_BOOTSTRAP, (size_t)map->daemon_count + 1, sizeof *next);
    group->daemon_of_rank = base_calloc(AREA_BOOTSTRAP, (size_t)group->count, sizeof *group->daemon_of_rank);
    group->ranks = base_calloc(AREA_BOOTSTRAP, (size_t)group->count, sizeof *group->ranks);
    bool good = next && group->daemon_of_rank && group->ranks;
    if (good) {
        memcpy(group->daemon_of_rank, daemon_of_rank, (size_t)group->count * sizeof *daemon_of_rank);
        sort_ranks(map, group, next);
    } else {
        release_group(group);
    }
    base_free(AREA_BOOTSTRAP, next);
    return good ? NCCLX_SUCCESS
                : base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", group->count);
}

int kvx_map_add(struct kvx_map *map, int first, const int *daemon_of_rank, int count)
{
    if (count < 1 || first < map->end || count > INT_MAX - first)
        return base_error(NCCLX_ERR_ARG, "%d ranks from %d on: those below %d have been given out", count, first,
                          map->end);
    for (int i = 0; i < count; i++)
        if (daemon_of_rank[i] < 0 || daemon_of_rank[i] >= map->daemon_count)
            return base_error(NCCLX_ERR_ARG, "rank %d is on daemon %d of %d", first + i, daemon_of_rank[i],
                              map->daemon_count);
    struct map_group group = {.first = first, .count = count};
    if (!grow(map)) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of %d ranks", count);
    int code = fill_group(map, &group, daemon_of_rank);
    if (code) return code;
    map->groups[map->group_count++] = group;
    map->end = first + count;
    return NCCLX_SUCCESS;
}

void kvx_map_remove(struct kvx_map *map, int first)
{
    int at = 0;
    while (at < map->group_count && map->groups[at].first != first) at++;
    if (at == map->group_count) return;
    release_group(&map->groups[at]);
    map->group_count--;
    memmove(&map->groups[at], &map->groups[at + 1], (size_t)(map->group_count - at) * sizeof *map->groups);
}

int kvx_map_create(const int *daemon_of_rank, int rank_count, int daemon_count, int radix, struct kvx_map **out)
{
    *out = NULL;
    if (rank_count < 1 || daemon_count < 1 || radix < 1 || radix > KVX_MAX_RADIX)
        return base_error(NCCLX_ERR_ARG, "no tree of %d daemons with radix %d (1 to %d) for %d ranks", daemon_count,
                          radix, KVX_MAX_RADIX, rank_count);
    struct kvx_map *map = base_calloc(AREA_BOOTSTRAP, 1, sizeof *map);
    if (!map) return base_error(NCCLX_ERR_NO_MEM, "memory is short for the map of daemons");
    map->daemon_count = daemon_count;
    map->radix = radix;
    int code = kvx_map_add(map, 0, daemon_of_rank, rank_count);
    if (code)
        kvx_map_free(map);
    else
        *out = map;
    return code;
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

/* The last group that begins at or below this rank; there is one, unless the first has gone. */
static const struct map_group *group_at(const struct kvx_map *map, int rank)
{
    int low = 0, high = map->group_count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (map->groups[middle].first <= rank)
            low = middle + 1;
        else
            high = middle;
    }
    return low ? &map->groups[low - 1] : NULL;
}

int map_daemon(const struct kvx_map *map, int rank)
{
    const struct map_group *group = rank >= 0 && rank < map->end ? group_at(map, rank) : NULL;
    return group && rank - group->first < group->count ? group->daemon_of_rank[rank - group->first] : -1;
}

enum map_presence map_look_up(const struct kvx_map *map, const struct kvx_range *ranges, size_t count)
{
    for (size_t i = 0; i < count; i++)
        if (ranges[i].last >= (uint32_t)map->end) return MAP_NEVER;
    for (size_t i = 0; i < count; i++) {
        int64_t rank = ranges[i].first;
        while (rank <= ranges[i].last) {
            const struct map_group *group = group_at(map, (int)rank);
            if (!group || rank - group->first >= group->count) return MAP_GONE;
            rank = (int64_t)group->first + group->count;
        }
    }
    return MAP_HERE;
}

/* How many of the group's ranks, in the order of daemons, are on daemons below this one. */
static int count_before(const struct map_group *group, int daemon)
{
    int low = 0, high = group->count;
    while (low < high) {
        int middle = low + (high - low) / 2;
        if (group->daemon_of_rank[group->ranks[middle] - group->first] < daemon)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static int count_in_group(const struct map_group *group, const struct kvx_range *ranges, size_t count, int first,
                          int last)
{
    uint32_t begin = (uint32_t)group->first, end = begin + (uint32_t)group->count - 1;
    if (ranges[0].first > end || ranges[count - 1].last < begin) return 0;
    int from = count_before(group, first), to = count_before(group, last + 1), found = 0;
    if (ranges[0].first <= begin && ranges[0].last >= end) return to - from;
    for (int i = from; i < to; i++) found += map_contains(ranges, count, group->ranks[i]);
    return found;
}

/* Daemons first .. last. */
static int count_run(const struct kvx_map *map, const struct kvx_range *ranges, size_t count, int first, int last)
{
    int found = 0;
    for (int i = 0; i < map->group_count; i++) found += count_in_group(&map->groups[i], ranges, count, first, last);
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
