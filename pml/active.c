/* active.c - active messages: a header and data, handed to a function of the target. */
#include "pml/internal.h"

int pml_am_register(struct ncclx_rt *rt, unsigned id, pml_am_fn function, void *arg)
{
    if (id >= AM_IDS) return base_error(NCCLX_ERR_INTERNAL, "active message %u: there are %d", id, AM_IDS);
    rt->pml->am[id].function = function;
    rt->pml->am[id].arg = arg;
    return NCCLX_SUCCESS;
}

/* Every transport carries this much in one packet: a quarter of the smallest ring, less the header. */
#define AM_DATA_MAX ((size_t)1024 - PML_AM_HEADER_MAX)

size_t pml_am_max(struct ncclx_rt *rt, int peer)
{
    struct pml_connection *connection;
    if (pml_connection_to(rt->pml, peer, &connection) || connection->payload_max < 1024) return AM_DATA_MAX;
    return connection->payload_max - PML_AM_HEADER_MAX;
}

typedef int (*post_fn)(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload);

static int post(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data, size_t bytes,
                post_fn by)
{
    struct pml_connection *connection;
    int error = pml_connection_to(rt->pml, peer, &connection);
    if (error) return error;
    if (id >= AM_IDS || header_bytes > PML_AM_HEADER_MAX || bytes > pml_am_max(rt, peer))
        return base_error(NCCLX_ERR_INTERNAL, "active message of %zu and %zu bytes is too large", header_bytes, bytes);
    struct pml_packet packet = {.kind = PROTOCOL_ACTIVE, .count = (uint16_t)header_bytes, .tag = (int)id};
    struct pml_payload payload = {.first = header, .first_bytes = header_bytes, .second = data, .second_bytes = bytes};
    connection->traffic.sent += bytes;
    return by(connection, &packet, &payload);
}

int pml_am_send(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                size_t bytes)
{
    return post(rt, peer, id, header, header_bytes, data, bytes, pml_post_copy);
}

int pml_am_answer(struct ncclx_rt *rt, int peer, unsigned id, const void *header, size_t header_bytes, const void *data,
                  size_t bytes)
{
    return post(rt, peer, id, header, header_bytes, data, bytes, pml_answer_copy);
}

void pml_peer_breach(struct ncclx_rt *rt, int peer, const char *what)
{
    struct pml_connection *connection = pml_connection_found(rt->pml, peer);
    if (connection) pml_breach(connection, what);
}
