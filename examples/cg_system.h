/* cg_system.h - a sparse matrix whose rows are split over the ranks. */
#ifndef CG_SYSTEM_H
#define CG_SYSTEM_H

#include "matrix_market.h"

#include <ncclx.h>

/* Compressed sparse rows. */
struct rows {
    uint64_t count;
    uint64_t *start;  /* count + 1: entries of row i are [start[i], start[i + 1]) */
    uint64_t *column; /* ascending in each row */
    double *value;
};

/* Rank r owns rows and vector elements [bound[r], bound[r + 1]), chosen so that ranks have about the same number of nonzeros. A
 * rank may own none. */
struct system {
    ncclx_comm_t comm;
    int rank, size;
    uint64_t order, nonzeros; /* of the whole matrix */
    uint64_t *bound;          /* size + 1 */
    uint64_t own;             /* rows of this rank */
    struct rows rows;         /* its rows; columns are local: below `own` its own elements, from there on the halo's */
    uint64_t halo;            /* elements of other ranks that its rows need */
    uint64_t *halo_column;    /* `halo`: where they are in the whole vector, ascending */
    double *inverse_diagonal; /* `own` */
};

/* Collective. Rank 0 reads the file and hands each rank its rows. False on every rank when something is wrong; rank 0 has `why`. */
bool system_load(struct system *system, const char *path, ncclx_comm_t comm, char *why, size_t why_bytes);
void system_free(struct system *system);
/* result = A vector; vector holds the own elements, then the halo. */
void system_multiply(const struct system *system, const double *vector, double *result);
/* The rank that owns an element. */
int system_owner(const struct system *system, uint64_t element);

/* malloc that ends the job when memory is short; count 0 gives a block, too. */
void *need(size_t count, size_t bytes);

#endif
