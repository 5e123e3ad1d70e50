/* comm.h - the read-only view of a communicator that pml, coll and osc work with. runtime/ makes and ends them. */
#ifndef BASE_COMM_H
#define BASE_COMM_H

#include "runtime/ncclx.h"

#include <stdint.h>

struct ncclx_rt;

/* Collective services for folders that may not include coll (osc). Set by runtime/ when a communicator is made. Blocking. */
struct base_comm_services {
    int (*barrier)(struct ncclx_comm *comm);
    /* all[i * bytes] receives rank i's `mine`. */
    int (*allgather)(struct ncclx_comm *comm, const void *mine, void *all, size_t bytes);
};

struct ncclx_comm {
    struct ncclx_rt *rt;
    uint64_t context;  /* unique in the job, never reused, a multiple of 4: the low bits tell traffic spaces apart */
    int rank, size;
    const int *world;  /* job rank of each member; null when member i is job rank i */
    const struct base_comm_services *services;
    struct pml_comm *pml;         /* one opaque pointer a folder */
    struct coll_comm *coll;
    struct runtime_comm *runtime; /* group, error handler, references */
    char name[64];
};

/* For messages to people: most communicators have no name. */
static inline const char *base_comm_name(const struct ncclx_comm *comm)
{
    return comm->name[0] ? comm->name : "a communicator";
}

/* Job rank of member `rank`. */
static inline int base_comm_world(const struct ncclx_comm *comm, int rank)
{
    return comm->world ? comm->world[rank] : rank;
}

#endif
