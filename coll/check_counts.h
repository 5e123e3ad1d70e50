/* check_counts.h - see check_counts.c. */
#ifndef COLL_CHECK_COUNTS_H
#define COLL_CHECK_COUNTS_H

#include "coll/coll.h"

struct check_counts; /* one a communicator, freed with base_free(AREA_COLL, ...); null: no memory */
struct check_counts *check_counts_create(int size);
bool check_counts_needed(const struct coll_args *args);
/* On all ranks alike: SUCCESS, or ERR_MISMATCH about the first pair whose counts differ. call: for the sentence. */
int check_counts_compare(struct ncclx_comm *comm, struct check_counts *counts, const struct coll_args *args,
                         const char *call);

#endif
