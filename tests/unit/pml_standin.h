/* pml_standin.h - the functions of pml that osc calls, defined by a test instead, so that the linker does not take the
 * real ones: ranks share one address space, and every way to reach memory can be chosen. What osc may not do aborts. */
#ifndef TESTS_UNIT_PML_STANDIN_H
#define TESTS_UNIT_PML_STANDIN_H

#include "osc/window.h"

#define PML_STANDIN_AM_MAX 100

struct pml_standin {
    enum pml_access shareable, plain; /* how memory of pml_mem_alloc, and other memory, is reached */
    pml_am_fn arrived;                /* osc's, once it is registered */
    /* Takes an active message, within bounds. */
    void (*send)(struct ncclx_rt *rt, int peer, const void *header, size_t header_bytes, const void *data,
                 size_t bytes);
    atomic_int breaches; /* said of peers */
    pml_signal_fn signalled; /* osc's, once it is registered */
    /* Takes a signal; null: memory is not reached by lanes. */
    void (*send_signal)(struct ncclx_rt *rt, int peer, const struct pml_signal *signal);
    atomic_uint regions_open;
    /* Called while memory of a peer is attached, where the real ones may give the lock up; may be null. */
    void (*attaching)(struct ncclx_rt *rt, int peer);
};

extern struct pml_standin pml_standin;

#endif
