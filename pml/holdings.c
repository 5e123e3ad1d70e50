/* holdings.c - what connections hold, added up when somebody asks. */
#include "pml/allowed.h"

static void add(const struct pml_connection *connection, struct pml_holdings *holdings)
{
    holdings->peers++;
    holdings->bytes[PML_MEMORY_STATE] += base_block_bytes(connection);
    for (const struct pml_post *post = connection->first_post; post; post = post->next) {
        if (post->request) continue; /* the program's data */
        holdings->bytes[PML_MEMORY_WAITING] += base_block_bytes(post) + base_block_bytes(post->payload.first);
    }
    if (connection->transport->hold) connection->transport->hold(connection, holdings);
}

int pml_get_holdings(struct ncclx_rt *rt, const char *name, int peer, struct pml_holdings *holdings)
{
    const struct transport *transport;
    int error = transport_named(name, &transport);
    if (error) return error;
    *holdings = (struct pml_holdings){.peers = 0};
    int last = peer < 0 ? rt->job.size - 1 : peer;
    for (int rank = peer < 0 ? 0 : peer; rank <= last; rank++) {
        const struct pml_connection *connection = pml_connection_found(rt->pml, rank);
        if (connection && connection->transport == transport) add(connection, holdings);
    }
    return NCCLX_SUCCESS;
}
