/* group.c - the algebra of groups, in linear time through a hash of members, so that groups of 100,000 ranks are no
 * burden. */
#include "runtime/group.h"

#include <string.h>

static int no_memory(size_t members)
{
    return base_error(NCCLX_ERR_NO_MEM, "no memory for a group of %zu ranks", members);
}

/* Room for `size` members, to be filled in. */
static struct ncclx_group *group_room(size_t size)
{
    struct ncclx_group *group = size <= INT32_MAX ? base_alloc(AREA_RUNTIME, sizeof *group + size * sizeof(int)) : NULL;
    if (group) *group = (struct ncclx_group){.size = 0, .rank = NCCLX_UNDEFINED};
    return group;
}

static inline void append(struct ncclx_group *group, int world, int self)
{
    if (world == self) group->rank = group->size;
    group->world[group->size++] = world;
}

struct ncclx_group *group_make(const int *world, int size, int self)
{
    struct ncclx_group *group = group_room((size_t)size);
    for (int i = 0; group && i < size; i++) append(group, world ? world[i] : i, self);
    return group;
}

static inline uint64_t place_of(const struct group_index *index, int world)
{
    return ((uint64_t)(unsigned)world * UINT64_C(0x9e3779b97f4a7c15) >> 32) & index->mask;
}

int group_index_build(struct group_index *index, const struct ncclx_group *group)
{
    uint64_t places = 4;
    while (places < 2 * (uint64_t)group->size) places *= 2;
    *index = (struct group_index){.mask = places - 1, .group = group};
    index->place = base_calloc(AREA_RUNTIME, places, sizeof *index->place);
    if (!index->place) return no_memory((size_t)group->size);
    for (int i = 0; i < group->size; i++) {
        uint64_t at = place_of(index, group->world[i]);
        while (index->place[at]) at = (at + 1) & index->mask;
        index->place[at] = i + 1;
    }
    return NCCLX_SUCCESS;
}

int group_index_find(const struct group_index *index, int world)
{
    for (uint64_t at = place_of(index, world); index->place[at]; at = (at + 1) & index->mask)
        if (index->group->world[index->place[at] - 1] == world) return index->place[at] - 1;
    return -1;
}

void group_index_release(struct group_index *index)
{
    base_free(AREA_RUNTIME, index->place);
    index->place = NULL;
}

/* Appends to *out the members of `from` that are (wanted) or are not (!wanted) in `other`. */
static int append_filtered(struct ncclx_group *out, const struct ncclx_group *from, const struct ncclx_group *other,
                           bool wanted, int self)
{
    struct group_index index;
    int error = group_index_build(&index, other);
    if (error) return error;
    for (int i = 0; i < from->size; i++)
        if ((group_index_find(&index, from->world[i]) >= 0) == wanted) append(out, from->world[i], self);
    group_index_release(&index);
    return NCCLX_SUCCESS;
}

static int filtered(const struct ncclx_group *a, const struct ncclx_group *b, bool wanted, int self,
                    struct ncclx_group **out)
{
    struct ncclx_group *group = group_room((size_t)a->size);
    if (!group) return no_memory((size_t)a->size);
    int error = append_filtered(group, a, b, wanted, self);
    if (error) base_free(AREA_RUNTIME, group);
    else *out = group;
    return error;
}

int group_union(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out)
{
    size_t most = (size_t)a->size + (size_t)b->size;
    struct ncclx_group *group = group_room(most);
    if (!group) return no_memory(most);
    for (int i = 0; i < a->size; i++) append(group, a->world[i], self);
    int error = append_filtered(group, b, a, false, self);
    if (error) base_free(AREA_RUNTIME, group);
    else *out = group;
    return error;
}

int group_intersection(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out)
{
    return filtered(a, b, true, self, out);
}

int group_difference(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out)
{
    return filtered(a, b, false, self, out);
}

/* Marks the members that `ranks` names: ERR_RANK when one is outside or named twice. *marks is one byte a member. */
static int mark(const struct ncclx_group *group, size_t count, const int *ranks, unsigned char **marks)
{
    *marks = base_calloc(AREA_RUNTIME, (size_t)group->size + 1, 1);
    if (!*marks) return no_memory((size_t)group->size);
    for (size_t i = 0; i < count; i++) {
        int error = NCCLX_SUCCESS;
        if (ranks[i] < 0 || ranks[i] >= group->size)
            error = base_error(NCCLX_ERR_RANK, "ranks[%zu] = %d is not in the group, which has %d members", i, ranks[i],
                               group->size);
        else if ((*marks)[ranks[i]]++)
            error = base_error(NCCLX_ERR_RANK, "ranks[%zu] = %d is named twice", i, ranks[i]);
        if (!error) continue;
        base_free(AREA_RUNTIME, *marks);
        return error;
    }
    return NCCLX_SUCCESS;
}

int group_incl(const struct ncclx_group *group, size_t count, const int *ranks, int self, struct ncclx_group **out)
{
    unsigned char *marks;
    int error = mark(group, count, ranks, &marks);
    if (error) return error;
    base_free(AREA_RUNTIME, marks);
    *out = group_room(count);
    if (!*out) return no_memory(count);
    for (size_t i = 0; i < count; i++) append(*out, group->world[ranks[i]], self);
    return NCCLX_SUCCESS;
}

int group_excl(const struct ncclx_group *group, size_t count, const int *ranks, int self, struct ncclx_group **out)
{
    unsigned char *marks;
    int error = mark(group, count, ranks, &marks);
    if (error) return error;
    *out = group_room((size_t)group->size);
    if (!*out) error = no_memory((size_t)group->size);
    for (int i = 0; !error && i < group->size; i++)
        if (!marks[i]) append(*out, group->world[i], self);
    base_free(AREA_RUNTIME, marks);
    return error;
}

/* Ranks in a range, none when it leads away from its end; -1 when it is none: stride 0, or ends outside the group. */
static int64_t range_length(const struct ncclx_group *group, const int range[3])
{
    int64_t first = range[0], last = range[1], stride = range[2];
    if (!stride || first < 0 || first >= group->size) return -1;
    if (last != first && (last > first) != (stride > 0)) return 0;
    int64_t length = (last - first) / stride + 1;
    int64_t end = first + (length - 1) * stride;
    return end < 0 || end >= group->size ? -1 : length;
}

int group_expand(const struct ncclx_group *group, size_t count, const int (*ranges)[3], size_t *expanded, int **ranks)
{
    size_t total = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t length = range_length(group, ranges[i]);
        if (length < 0)
            return base_error(NCCLX_ERR_RANK, "range %zu (%d to %d, stride %d) does not fit a group of %d", i,
                              ranges[i][0], ranges[i][1], ranges[i][2], group->size);
        total += (size_t)length;
        if (total > (size_t)group->size) return base_error(NCCLX_ERR_RANK, "the ranges name a rank twice");
    }
    int *list = base_alloc(AREA_RUNTIME, (total + 1) * sizeof *list);
    if (!list) return no_memory(total);
    size_t at = 0;
    for (size_t i = 0; i < count; i++) {
        int64_t length = range_length(group, ranges[i]);
        for (int64_t k = 0; k < length; k++) list[at++] = (int)(ranges[i][0] + k * ranges[i][2]);
    }
    *expanded = total;
    *ranks = list;
    return NCCLX_SUCCESS;
}

int group_translate(const struct ncclx_group *from, size_t count, const int *ranks, const struct ncclx_group *to,
                    int *out)
{
    struct group_index index;
    for (size_t i = 0; i < count; i++)
        if (ranks[i] != NCCLX_PROC_NULL && (ranks[i] < 0 || ranks[i] >= from->size))
            return base_error(NCCLX_ERR_RANK, "ranks[%zu] = %d is not in the group, which has %d members", i, ranks[i],
                              from->size);
    int error = group_index_build(&index, to);
    if (error) return error;
    for (size_t i = 0; i < count; i++) {
        int member = ranks[i] == NCCLX_PROC_NULL ? NCCLX_PROC_NULL : group_index_find(&index, from->world[ranks[i]]);
        out[i] = member == -1 ? NCCLX_UNDEFINED : member;
    }
    group_index_release(&index);
    return NCCLX_SUCCESS;
}

int group_compare(const struct ncclx_group *a, const struct ncclx_group *b, int *result)
{
    struct group_index index;
    *result = NCCLX_UNEQUAL;
    if (a->size != b->size) return NCCLX_SUCCESS;
    if (memcmp(a->world, b->world, (size_t)a->size * sizeof(int)) == 0) {
        *result = NCCLX_IDENT;
        return NCCLX_SUCCESS;
    }
    int error = group_index_build(&index, b);
    if (error) return error;
    int common = 0;
    while (common < a->size && group_index_find(&index, a->world[common]) >= 0) common++;
    if (common == a->size) *result = NCCLX_SIMILAR; /* members are distinct, so as many common ones mean the same set */
    group_index_release(&index);
    return NCCLX_SUCCESS;
}
