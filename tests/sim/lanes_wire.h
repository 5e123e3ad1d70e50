/* lanes_wire.h - a transport between two ranks of one process, in virtual time: a control lane in order, and lanes that are queue pairs or
 * sockets, with delays of their own, which may not open, break and come back. */
#ifndef SIM_LANES_WIRE_H
#define SIM_LANES_WIRE_H

#include "pml/lanes/lanes.h"

#include "tests/sim/engine.h"

#define WIRE_LANES 8 /* that each side offers at most */

struct wire_nature {
    unsigned lanes; /* offered */
    unsigned depth;
    size_t largest;
    size_t eager_limit, announce_threshold;
    uint64_t delay, rate;  /* ns, and ns for 16 bytes */
    uint64_t placed_late;  /* queue pairs: so long after its acknowledgement something is placed at most; 0: sockets */
    bool breaks, refuses;  /* lanes break; some never open, and the connection may fail */
    bool fills;            /* the control lane is full now and then */
};

struct wire;

/* Connects the two. After each event, `looked` is called. Failures of the simulation are its own. */
struct wire *wire_open(struct sim *sim, struct pml *const pml[2], const struct wire_nature *nature, void (*looked)(void *arg), void *arg);
struct pml_connection *wire_connection(const struct wire *wire, int rank); /* of this rank, to the other */
/* Breaks a lane that this rank writes, if it is open. */
void wire_break(struct wire *wire, int rank, unsigned lane);
/* The connection has failed; only where lanes may be refused. */
bool wire_lost(const struct wire *wire);

#endif
