/* coll_world.h - ranks that run schedules over a network of the test's own, in whatever order the test wants its
 * events to happen.
 *
 * The network is as unkind as pml may be: a receive buffer is garbage from the moment it is posted, data of a long
 * message is read from the sender only when it is matched, messages between two ranks keep their order and nothing
 * else does.
 */
#ifndef SIM_COLL_WORLD_H
#define SIM_COLL_WORLD_H

#include "coll/executor.h"
#include "coll/select.h"

#include <stdbool.h>

struct coll_world_case {
    enum coll_name name;
    const struct coll_algorithm *algorithm;
    int root;
    size_t count;  /* where counts differ, about the mean of them */
    unsigned seed; /* of counts that differ */
    bool in_place;
    bool ordered; /* reductions: with an operation that is not commutative; else sum */
    bool average; /* with NCCLX_AVG */
    bool single;  /* sums of float, whose bits show the order of operands: all ranks must agree to the bit */
    unsigned starts; /* how often it runs; the second time from the same schedules */
};

struct coll_world_event {
    enum { WORLD_START, WORLD_ARRIVE, WORLD_END } kind;
    int rank, peer; /* ARRIVE: at rank, from peer */
    int which;      /* START, END: the collective */
    uint32_t step;  /* END */
};

struct coll_world;

/* The test's part: to call coll_world_happen(world, event) some time later, and chance (0 .. below - 1). */
struct coll_world_host {
    void (*later)(void *arg, struct coll_world_event event);
    uint64_t (*random)(void *arg, uint64_t below);
    void (*fail)(void *arg, const char *text);
    void *arg;
};

#define COLL_WORLD_MOST 4 /* collectives at the same time */

/* Builds every rank's schedules and hands out the first events. Null: failed, and host->fail was told. */
struct coll_world *coll_world_create(int size, const struct coll_world_case *cases, int count, const struct coll_world_host *host);
void coll_world_happen(struct coll_world *world, struct coll_world_event event);
/* When no event is left: all collectives have ended everywhere, with the right results. */
void coll_world_check(struct coll_world *world);
void coll_world_destroy(struct coll_world *world);

#endif
