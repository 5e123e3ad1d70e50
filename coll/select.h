/* select.h - which algorithm serves a collective. The choice depends only on what all ranks share, so all of them
 * make the same. */
#ifndef COLL_SELECT_H
#define COLL_SELECT_H

#include "coll/algorithms.h"
#include "coll/shared.h"

enum coll_needs {
    ANY_CASE,
    COMMUTATIVE, /* takes operands in another order than that of ranks */
    COPIES       /* run: shared->copy */
};

struct coll_algorithm {
    const char *name; /* as in NCCLX_COLL_* */
    algorithm_fn build;
    shared_fn run; /* instead of build: not a schedule, but loads and stores among ranks of a node; needs problem->shared */
    /* Chosen by itself for so many ranks and at most so many bytes (coll_measure); most_bytes 0: only on request. */
    int least_ranks, most_ranks;
    size_t most_bytes;
    enum coll_needs needs;
    /* Of those before one whose messages are as many as the ranks: chosen up to so many bytes for each rank, too, since
     * what a message costs comes before its bytes there. 0: most_bytes alone. */
    size_t most_share;
};

size_t coll_most_bytes(const struct coll_algorithm *algorithm, int ranks);

/* The algorithms of a collective, in order of preference; ends with a null name. The first that fits is taken. */
const struct coll_algorithm *coll_algorithms(enum coll_name name);
const char *coll_name_text(enum coll_name name);

/* NCCLX_COLL_*: forced[name] is the algorithm asked for, or null. */
struct coll_choice {
    const struct coll_algorithm *forced[COLL_NAMES];
};
int coll_choice_read(struct coll_choice *choice, const struct base_config *config);

/* The bytes by which algorithms are told apart, which all ranks know: one rank's vector (bcast, reductions, scans), what
 * each rank receives (allgather, allgatherv), one block (alltoall, gather, scatter), or 0. */
size_t coll_measure(const struct coll_problem *problem);
bool coll_can(const struct coll_algorithm *algorithm, const struct coll_problem *problem);
/* One that was asked for but cannot do the case (coll_can) gives way to the automatic choice. Never null. */
const struct coll_algorithm *coll_select(const struct coll_choice *choice, const struct coll_problem *problem);

#endif
