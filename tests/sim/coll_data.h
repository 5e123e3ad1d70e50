/* coll_data.h - what ranks give to a collective of coll_world.h, where it lies in their buffers, and what must come out. */
#ifndef SIM_COLL_DATA_H
#define SIM_COLL_DATA_H

#include "tests/sim/coll_world.h"

/* Blocks of a buffer, in elements; between them are gaps that nobody may write to. */
struct coll_layout {
    int blocks;
    size_t *counts, *displs; /* one a block */
    size_t extent;           /* of the buffer */
};

enum coll_side { SIDE_SEND, SIDE_RECV };

bool coll_data_reduces(enum coll_name name);
bool coll_data_in_place(const struct coll_world_case *c, int rank);
ncclx_datatype_t coll_data_type(const struct coll_world_case *c);
ncclx_op_t coll_data_op(const struct coll_world_case *c);
/* Elements of the own block: problem->count. */
size_t coll_data_count(const struct coll_world_case *c, int rank);
/* Elements of all blocks of an allgatherv or reduce_scatter. */
size_t coll_data_total(const struct coll_world_case *c, int size);

/* Of a rank's buffer; freed by coll_layout_free. */
void coll_data_layout(const struct coll_world_case *c, int size, int rank, enum coll_side side, struct coll_layout *layout);
/* Where the input lies, in recvbuf when the rank is in place. */
void coll_data_input_layout(const struct coll_world_case *c, int size, int rank, struct coll_layout *layout);
/* How a reduce_scatter's input is divided. */
void coll_data_division(const struct coll_world_case *c, int size, struct coll_layout *layout);
void coll_layout_free(struct coll_layout *layout);

/* An element of the input, different for each start; and what the result must hold, computed serially. */
void coll_data_input(const struct coll_world_case *c, int rank, int block, size_t index, unsigned start, void *out);
void coll_data_expected(const struct coll_world_case *c, int size, int rank, int block, size_t index, unsigned start, void *out);

#endif
