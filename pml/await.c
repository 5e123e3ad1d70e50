/* await.c - peers from which a receive waits for a message: whoever knows of no connection to one would not see it die. */
#include "pml/internal.h"

static void look_at_space(const struct pml_space_state *space, const struct transport *transport,
                          void (*awaited)(struct pml_connection *connection))
{
    unsigned chunks = ((unsigned)space->comm->size + PEER_CHUNK - 1) / PEER_CHUNK;
    for (unsigned i = 0; i < chunks; i++) {
        for (unsigned j = 0; space->chunk[i] && j < PEER_CHUNK; j++) {
            const struct pml_peer *peer = &space->chunk[i][j];
            if (peer->core.match.exact && peer->connection && peer->connection->transport == transport)
                awaited(peer->connection);
        }
    }
}

void pml_await(const struct pml *pml, const struct transport *transport,
               void (*awaited)(struct pml_connection *connection))
{
    for (int bin = 0; bin < COMM_BINS; bin++)
        for (const struct pml_comm *comm = pml->comm[bin]; comm; comm = comm->next)
            for (unsigned i = 0; i < PML_SPACES; i++) look_at_space(&comm->space[i], transport, awaited);
}
