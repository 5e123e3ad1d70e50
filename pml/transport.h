/* transport.h - what a transport does for pml: carries packets to one peer in order, copies between two processes'
 * memory, makes memory shareable.
 *
 * A transport owns its part of a connection and hands in what arrives through pml_packet_arrived(). It never matches,
 * never waits, and never calls base_progress. Called with the rank's lock held.
 */
#ifndef PML_TRANSPORT_H
#define PML_TRANSPORT_H

#include "pml/packet.h"
#include "pml/pml.h"
#include "pml/protocol.h"

struct pml;
struct pml_connection;
struct pml_post;
struct pml_request;

struct transport {
    const char *name;
    /* Finds by trying whether it reaches the peer, and makes connection->channel. ERR_UNREACHABLE: another may try. May give
     * the lock up to wait for what the peer has published: a connection that has a transport then is left as it is. */
    int (*connect)(struct pml *pml, struct pml_connection *connection);
    void (*disconnect)(struct pml *pml, struct pml_connection *connection);
    /* Before a message of more than connection->choose_above bytes: sets route.eager_limit and route.first for this one. */
    void (*choose)(struct pml_connection *connection, size_t bytes);
    /* Sends what is eager, or any packet (its payload fields are the transport's to fill). False: full, and nothing
     * happened. */
    bool (*eager)(struct pml_connection *connection, uint64_t context, int source, int tag, const void *data,
                  size_t bytes);
    /* Null, or sends an eager message of more than connection->lend_above bytes without a copy: the send's memory stays as it is until
     * pml_send_landed says that it is there. */
    bool (*lend)(struct pml_connection *connection, const struct pml_packet *packet, struct pml_request *send);
    bool (*post)(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload);
    /* Null, or sends the first posts of a list, as many as it can, with what one call costs. Returns how many are on their way, and their
     * data no longer needed: 0: full. */
    int (*post_many)(struct pml_connection *connection, const struct pml_post *first);
    /* Tries whether single copies work; sets route.can_read and can_write. Called once, before the first. */
    void (*probe)(struct pml_connection *connection);
    /* Single copies with the peer's memory, complete on return. name: of the peer's request which the copy is for, so
     * that it can help; 0: none. */
    int (*read)(struct pml_connection *connection, void *to, uint64_t address, size_t bytes, uint64_t name);
    int (*write)(struct pml_connection *connection, const void *from, uint64_t address, size_t bytes, uint64_t name);
    /* The peer breaks the rules: the connection ends, with all that was under way. Null: it goes on, without that packet. */
    void (*fail)(struct pml_connection *connection, const char *why);
    /* Null, or sends HOLD or RESUME ahead of what waits for room. False: not now; it is told again when there is reason to. Once it is true, the
     * peer, unless it breaks the rules, has heard of it before it sends `in_flight` more bytes (0: nobody knows). */
    bool (*tell)(struct pml_connection *connection, enum protocol_kind kind);
    size_t in_flight;
    /* Takes what has arrived from all peers; the number of packets. */
    int (*poll)(struct pml *pml);
    /* Null, or adds what the connection holds, beside its struct pml_connection. */
    void (*hold)(const struct pml_connection *connection, struct pml_holdings *holdings);
};

/* Both come from a peer and are gone when it returns. */
void pml_packet_arrived(struct pml *pml, struct pml_connection *connection, const struct pml_packet *packet,
                        const void *payload, size_t bytes);
/* For transports that bring the data of streams to its place themselves: where the `bytes` of a DATA packet go, and whether they are
 * the last of the receive; pml_receive_landed completes it, once they are there. Null: nobody waits for them. */
struct pml_request *pml_receive_place(struct pml_connection *connection, const struct pml_packet *packet, size_t bytes,
                                      char **to, bool *last);
void pml_receive_landed(struct pml_request *request);
/* The same for the `bytes` of an EAGER packet. Null: no receive waits for it, or a smaller one: it has to be handed in whole. */
struct pml_request *pml_receive_arrives(struct pml_connection *connection, const struct pml_packet *packet, size_t bytes, char **to);
/* Memory for an EAGER message that nobody waits for, null when it is short; and once the message is there. */
struct ncclx_message *pml_message_comes(struct pml_connection *connection, size_t bytes, char **to);
void pml_message_came(struct pml_connection *connection, const struct pml_packet *packet, struct ncclx_message *message);
/* The same for the first bytes of a REQUEST, which bring nothing to its end. False: alike. */
bool pml_request_arrives(struct pml_connection *connection, const struct pml_packet *packet, size_t first, char **to);
/* The buffer of a request that this peer names: of a send that waits for its receiver, or of an announced receive.
 * False: no such request (any more). */
bool pml_request_buffer(struct pml_connection *connection, uint64_t name, bool is_send, void **buffer, size_t *bytes);
/* The connection that packets from this job rank belong to; made on first use. */
int pml_connection_from(struct pml *pml, int rank, const struct transport *transport,
                        struct pml_connection **connection);

#endif
