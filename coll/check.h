/* check.h - NCCLX_CHECK=1: before a collective call begins, the ranks compare what they call. The pure core.
 *
 * Each rank describes its call by a signature. Ranks exchange what they know by dissemination: in round k of log2(n), a
 * rank tells the one 2^k after it, and hears from the one 2^k before it. What a rank knows of a set of ranks is the
 * signature of its lowest rank, and that of the lowest one whose call differs from it. This is the same for every order
 * and grouping, so all ranks end with the same verdict.
 *
 * Never: communicates, allocates, waits. coll.h declares what runs it (check_run.c).
 */
#ifndef COLL_CHECK_H
#define COLL_CHECK_H

#include "coll/coll.h"

/* What must agree; parts that a call does not have are 0. Travels between ranks, all of them of one build. */
struct check_signature {
    uint64_t sequence; /* checked calls on the communicator, from 1 */
    uint64_t count;    /* of a list of counts: their sum */
    uint64_t counts;   /* of a list of counts: its checksum */
    uint64_t slots;
    int32_t rank;      /* who; not compared */
    int32_t call;      /* enum coll_name, or enum coll_other_call */
    int32_t type;
    int32_t op;        /* check_op_code */
    int32_t root;
    int32_t in_place;
    int32_t error;     /* what this rank knows to be wrong with its arguments; SUCCESS */
    int32_t form;      /* enum coll_form */
};
_Static_assert(sizeof(struct check_signature) == 64, "no padding: every byte that travels is set");

/* What is known of a set of ranks. */
struct check_view {
    struct check_signature lowest; /* of the lowest rank */
    struct check_signature other;  /* of the lowest rank that differs from it */
    uint64_t differs;              /* 1: other is set */
};

/* Users' operations are told apart by what others can know of them. */
enum { CHECK_OP_COMMUTATIVE = 64, CHECK_OP_ORDERED, CHECK_OP_INVALID };

/* The signature of a collective of `size` ranks. error: what is wrong with args, which then are not trusted. */
struct check_signature check_signature_of(const struct coll_args *args, int size, enum coll_form form, int error);
bool check_same(const struct check_signature *a, const struct check_signature *b);
void check_begin(struct check_view *view, const struct check_signature *mine);
void check_merge(struct check_view *view, const struct check_view *heard);
/* Whether a peer may have said this, on a communicator of `size` ranks. */
bool check_valid(const struct check_view *view, int size);

unsigned check_rounds(int size);
int check_send_to(int rank, int size, unsigned round);
int check_receive_from(int rank, int size, unsigned round);
/* For a rank that hears nothing in this round: the ranks *from, *from + 1, ... (modulo size), so many of them, have not
 * all made the call. */
int check_missing(int rank, int size, unsigned round, int *from);

/* "allreduce(count 5, float, sum)" */
void check_describe(const struct check_signature *signature, char *text, size_t bytes);
/* "rank 3 called allreduce(count 5, float, sum), rank 0 called bcast(count 5, float, root 0) as collective 12 on
 * COMM_WORLD" */
void check_verdict(const struct check_view *view, const char *comm_name, char *text, size_t bytes);
/* Of a communicator without a name: how the verdict calls it. */
const char *check_place(const struct check_signature *signature, const char *comm_name);
/* For tests: whether the table knows this call. */
bool check_known(int call);

#endif
