/* lane.h - lanes: what a transport that writes into the memory of a peer does for the driver of lanes (lanes/lanes.h),
 * and what it tells it.
 *
 * A lane goes one way: the origin posts writes, which are placed at the target and completed in the order posted; between
 * lanes there is no order. That is a promise of each transport and no capability that it may lack: dqplb/ rests on it, for an immediate tells
 * that what was written before it on its lane is placed. A queue pair is a lane, or a socket. What the two ends tell each other beside (notices,
 * reports) are packets of PROTOCOL_LANES, which the connection carries in order as it does all packets: the control
 * lane. Which lanes are used, and how much is in flight, is the driver's affair (dqplb/dqplb.h).
 *
 * That a transport could do atomics is no capability here, for nobody would ask. Those of one window have to be of one kind, and some of its
 * ranks share memory with the target and use their processors; and one that is posted again after its lane broke may happen twice, where a
 * write may. So window atomics are messages (osc/), done by the target's progress or agent, whatever the transport.
 *
 * Called with the rank's lock held. A transport may tell of an event in any call but `write`, `read` and `ring`. A peer that
 * breaks the rules loses its connection (transport.h, fail).
 */
#ifndef PML_LANE_H
#define PML_LANE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct pml_connection;

/* What a process takes from each peer; its card says so. */
struct lane_offer {
    unsigned lanes, receives, window, notices; /* as in struct dqplb_terms */
};

struct lane_write {
    const char *from; /* stays as it is until the completion */
    uint64_t to, key; /* address in the target's memory, and what allows to write there */
    size_t bytes;
    bool copied; /* out of `from` at once: the transport may know a way without, which is not always the faster one */
    bool has_immediate;
    uint32_t immediate;
};

/* Through which puts leave: to peers of this host, or a port of a card. */
enum lane_port { LANE_PORT_LOOPBACK, LANE_PORT_FIRST, LANE_PORTS };

struct lane_transport {
    unsigned depth; /* entries that a lane takes */
    size_t largest; /* bytes of a write */
    bool reads;     /* a completion is not placement yet: a read that has come back is */
    bool (*spares)(const struct pml_connection *connection); /* whether lanes that are open know a way without a copy */
    unsigned (*most)(const struct pml_connection *connection); /* lanes to a peer, of what all peers share; at least 1 */
    unsigned (*port)(const struct pml_connection *connection); /* enum lane_port */

    /* At the origin. */
    void (*want)(struct pml_connection *connection); /* lanes_agreed, once there is a connection */
    /* lanes_opened follows, or lanes_broke. life counts how often this lane came up, from 1. */
    void (*open)(struct pml_connection *connection, unsigned lane, uint32_t life);
    void (*write)(struct pml_connection *connection, unsigned lane, const struct lane_write *write);
    void (*read)(struct pml_connection *connection, unsigned lane); /* of anything, with a completion; null: reads is false */
    void (*ring)(struct pml_connection *connection);                /* what was posted goes out now */
    void (*close)(struct pml_connection *connection, unsigned lane); /* nothing of it is told any more */

    /* At the target. Nothing more is placed by what this lane still carries. */
    void (*fence)(struct pml_connection *connection, unsigned lane);
    void (*credit)(struct pml_connection *connection, unsigned lane, uint32_t life, uint64_t receives);
};

/* ---- What the driver is told. After false, or null, nothing more of that lane may be told ---- */

void lanes_agreed(struct pml_connection *connection, const struct lane_offer *offer);
/* The connection has ended. */
void lanes_lost(struct pml_connection *connection);

/* At the origin. */
void lanes_opened(struct pml_connection *connection, unsigned lane);
void lanes_broke(struct pml_connection *connection, unsigned lane, const char *why);
bool lanes_completed(struct pml_connection *connection, unsigned lane, uint64_t entries);
bool lanes_credited(struct pml_connection *connection, unsigned lane, uint32_t life, uint64_t receives);

/* At the target. Whether a lane that the origin has opened may be used; it takes the place of one of the same life, which
 * must not have carried anything. */
bool lanes_accept(struct pml_connection *connection, unsigned lane, uint32_t life);
/* Where a write goes, after key, bounds and access were checked; null, with a sentence, where it may not. */
char *lanes_place(struct pml_connection *connection, uint64_t key, uint64_t to, size_t bytes);
/* An immediate, and all that was written before it on its lane, has come. */
bool lanes_arrived(struct pml_connection *connection, unsigned lane, uint32_t immediate);
/* To be called after some of these: what is due is told to the peer. */
void lanes_told(struct pml_connection *connection);

#endif
