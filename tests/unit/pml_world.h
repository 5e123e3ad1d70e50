/* pml_world.h - several ranks in one process, on one real node segment, without a process manager. */
#ifndef PML_WORLD_H
#define PML_WORLD_H

#include "pml/internal.h"
#include "runtime/base/base.h"

#define WORLD_MAX 8

struct world {
    int size;
    struct ncclx_rt rt[WORLD_MAX];
    struct ncclx_comm comm[WORLD_MAX]; /* all ranks, context 4 */
};

/* environment: as for main, ended by null; or null for none. */
void world_open(struct world *world, int size, char **environment);
/* The same without the segment: they reach each other only as the test connects them. */
void world_open_apart(struct world *world, int size, char **environment);
void world_close(struct world *world);
/* One round of progress of every rank. */
void world_progress(struct world *world);
/* Rounds until the request is complete; at most so many that only a bug lets it fail. Returns its error. */
int world_wait(struct world *world, struct ncclx_request *request);

#endif
