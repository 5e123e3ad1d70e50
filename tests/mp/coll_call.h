/* coll_call.h - one call of any collective, in any of its forms: its data, what must come out of it by what one rank
 * alone computes, and canaries around and between its blocks. A failed check says which call it was, and ends the job.
 */
#ifndef TESTS_MP_COLL_CALL_H
#define TESTS_MP_COLL_CALL_H

#include <ncclx.h>

#include <stddef.h>

#define MOST_RANKS 64
#define CANARY_BYTES 64

enum kind {
    BARRIER,
    BCAST,
    REDUCE,
    ALLREDUCE,
    ALLGATHER,
    ALLTOALL,
    REDUCE_SCATTER,
    REDUCE_SCATTER_BLOCK,
    ALLGATHERV,
    GATHER,
    GATHERV,
    SCATTER,
    SCATTERV,
    ALLTOALLV,
    SCAN,
    EXSCAN,
    KINDS
};
enum form { BLOCKING, NONBLOCKING, PERSISTENT, FORMS };
/* Integers, integers whose average is wanted, floats, compositions of x -> a x + b (associative, not commutative),
 * bytes. Collectives that do not compute move integers or bytes. */
enum operands { SUMS, BYTES, AVERAGES, FLOATS, ORDERED, OPERANDS };
/* Of blocks that may differ from rank to rank: any count up to twice the call's; mostly none; equal; together as many
 * as the call's count. */
enum counts { VARIED, SPARSE, EQUAL, DEALT };

/* Blocks of a buffer, in elements; between them are gaps that nobody may write to. */
struct layout {
    int blocks;
    size_t counts[MOST_RANKS], displs[MOST_RANKS], extent;
};

struct call {
    enum kind kind;
    enum form form;
    enum operands operands;
    enum counts counts;
    size_t count;
    int root, in_place;
    unsigned seed; /* of counts */
    ncclx_comm_t comm;

    unsigned number; /* makes the data of each call its own */
    int rank, size;
    size_t element; /* bytes */
    struct layout send_layout, recv_layout;
    char *send, *recv; /* blocks, with canaries */
    ncclx_request_t request;
};

extern const char *const kind_name[KINDS];
extern unsigned call_number; /* of the next call: the same on all ranks that take part */
extern ncclx_op_t ordered_op;

int kind_reduces(enum kind kind);
int kind_has_root(enum kind kind);
/* Whether the buffers of this call hold operands of this sort at all. */
int kind_takes(enum kind kind, enum operands operands);

void call_failed(const struct call *call, const char *format, ...) __attribute__((format(printf, 2, 3), noreturn));
void call_must(const struct call *call, int code);

/* Before the first call, after the last one. */
void calls_begin(void);
void calls_end(void);

/* Buffers, and what does not apply: no root is in place elsewhere. */
void call_prepare(struct call *call);
/* Gives the next number, and its data. */
void call_fill(struct call *call);
/* Calls: the blocking form is over then. */
int call_make(struct call *call);
void call_check(const struct call *call);
void call_finish(struct call *call);
/* All of this, several starts of a persistent one. Floats: twice, with the same bits, and those of an allreduce
 * everywhere. */
void call_run(struct call *call);

#endif
