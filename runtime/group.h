/* group.h - groups as pure functions on ordered lists of distinct job ranks. Private to runtime/; unit tests see it. */
#ifndef RUNTIME_GROUP_H
#define RUNTIME_GROUP_H

#include "runtime/runtime.h"

/* world[size], copied; null: 0 ... size - 1. self is the caller's job rank. Null without memory. Freed with
 * base_free(AREA_RUNTIME, ...). */
struct ncclx_group *group_make(const int *world, int size, int self);

/* Finds members by job rank in constant time. */
struct group_index {
    uint64_t mask;
    int *place; /* member + 1, or 0 */
    const struct ncclx_group *group;
};
int group_index_build(struct group_index *index, const struct ncclx_group *group);
/* The member with this job rank, or -1. */
int group_index_find(const struct group_index *index, int world);
void group_index_release(struct group_index *index);

/* Each makes *out, or returns an error with its detail. */
int group_union(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out);
int group_intersection(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out);
int group_difference(const struct ncclx_group *a, const struct ncclx_group *b, int self, struct ncclx_group **out);
int group_incl(const struct ncclx_group *group, size_t count, const int *ranks, int self, struct ncclx_group **out);
int group_excl(const struct ncclx_group *group, size_t count, const int *ranks, int self, struct ncclx_group **out);
/* The ranks that the ranges name, for incl and excl; *ranks is freed with base_free(AREA_RUNTIME, ...). */
int group_expand(const struct ncclx_group *group, size_t count, const int (*ranges)[3], size_t *expanded, int **ranks);
int group_translate(const struct ncclx_group *from, size_t count, const int *ranks, const struct ncclx_group *to,
                    int *out);
int group_compare(const struct ncclx_group *a, const struct ncclx_group *b, int *result);

#endif
