/* lanes.h - the driver of lanes: runs dqplb's core, one sender and one target for each connection, on what lane.h offers.
 * For the rest of pml.
 *
 * Puts come in, from messages (send.c) and from orders (pml.h, pml_order_*), and end with a call. What the peer is told
 * travels in packets of PROTOCOL_LANES, whose `count` says what it is:
 *
 *   notice of a put: 0, 1 its bounds; tag its order
 *     LANDED    context: name of the receive whose data it was
 *     ANSWERED  context: name of the get whose data it was
 *     SIGNAL    context: the window, source: rank in it, 2 value, 3 slot, 4 operation
 *     CHUNK     context: name of the receive that the chunk is for, 2 offset, 3 bytes
 *   GET         context: name of the get, 0 key, 1 address, 2 bytes wanted, 3 address they go to
 *   PROGRESS    0 number expected, 1 notices applied
 *   CLOSE       0 lane, 1 life
 *   REPORT      0 lane, 1 life, 2 and 3 numbers expected; payload: bitmap of those that came early
 *   COPY        asks for slots that chunks may be written to
 *   SLOTS       0 key, 1 address, 2 slots, 3 bytes of each
 *   CLEARED     0 chunks copied out of them so far
 */
#ifndef PML_LANES_LANES_H
#define PML_LANES_LANES_H

#include "pml/dqplb/dqplb.h"
#include "pml/internal.h"
#include "pml/lane.h"

enum lanes_packet {
    LANES_LANDED = 1,
    LANES_ANSWERED,
    LANES_SIGNAL,
    LANES_GET,
    LANES_PROGRESS,
    LANES_CLOSE,
    LANES_REPORT,
    LANES_CHUNK,
    LANES_COPY,
    LANES_SLOTS,
    LANES_CLEARED
};

/* What this process takes from each peer. */
extern const struct lane_offer lanes_offer;

/* Checks NCCLX_DQPLB_*. */
int lanes_start(struct pml *pml);
void lanes_stop(struct pml *pml);
/* Gives the connection lanes; nothing is opened, and little allocated, before it is used. */
int lanes_make(struct pml_connection *connection, const struct lane_transport *transport);
void lanes_free(struct pml_connection *connection);
/* Whether no put, flush or get is under way. */
bool lanes_drained(const struct pml *pml);
/* Alike, over this connection. */
bool lanes_idle(const struct pml_connection *connection);
/* Closes lanes of ours that nothing is under way on. True: none is open. */
bool lanes_rest(struct pml_connection *connection);
/* Nothing can come from this lane of the peer's before it opens it again. */
bool lanes_fenced(const struct pml_connection *connection, unsigned lane);
void lanes_packet_arrived(struct pml_connection *connection, const struct pml_packet *packet, const void *payload,
                          size_t bytes);

/* Adds what its lanes hold here, beside what the transport does. */
void lanes_hold(const struct pml_connection *connection, struct pml_holdings *holdings);

/* Prepares to write a send's data into the receive that the peer granted, at `to`; null: that is not possible. And does it:
 * pml_send_landed says when it is there. */
struct lanes_put;
struct lanes_put *lanes_send_make(struct pml_connection *connection, struct pml_request *request, uint64_t receive,
                                  uint64_t to);
void lanes_send(struct pml_connection *connection, struct lanes_put *put);

/* The same by the copy protocol: the send is complete when the last of its data is in a slot. */
void lanes_copy_send(struct pml_connection *connection, struct pml_request *request);

/* Memory that the members of comm may write to and read from, by key. */
int lanes_range_add(const struct ncclx_comm *comm, uint64_t address, uint64_t bytes, uint64_t *key);
void lanes_range_drop(struct pml *pml, uint64_t key);

#endif
