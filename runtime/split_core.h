/* split_core.h - ncclx_comm_split as a pure function: what every member said -> the caller's new group.
 *
 * All members evaluate the same entries and so agree, with one exchange: the members of a color, their order, the
 * context id (the one that the group's first member proposed), and whether anyone failed.
 */
#ifndef RUNTIME_SPLIT_CORE_H
#define RUNTIME_SPLIT_CORE_H

#include <stddef.h>
#include <stdint.h>

/* What one member tells the others. */
struct split_entry {
    uint64_t context; /* a fresh one, used when the member comes first in its group */
    int32_t color;    /* >= 0, or NCCLX_UNDEFINED */
    int32_t key;
    int32_t error;    /* what the member knows to be wrong on its side: then nobody gets a communicator */
    int32_t reserved; /* 0 */
};

struct split_result {
    int size;         /* 0: color is NCCLX_UNDEFINED, or someone failed */
    int rank;         /* in the new group */
    uint64_t context;
    int error;        /* of the lowest member that failed */
    int failed;       /* that member */
};

/* members has room for `count` old ranks: those of the new group, in order. `rank` is the caller's old rank. Entries
 * come from peers: any bytes are allowed. O(count) and one sort of the members. */
void split_core(const struct split_entry *entries, int count, int rank, int *members, struct split_result *result);

#endif
