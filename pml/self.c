/* self.c - the transport from a rank to itself. Packets are delivered by progress, not inside the call that sends them:
 * completion callbacks then run where they do for any other peer. */
#include "pml/internal.h"

#include <string.h>

static int self_connect(struct pml *pml, struct pml_connection *connection)
{
    if (connection->rank != pml->rt->job.rank) return NCCLX_ERR_UNREACHABLE;
    connection->route = (struct protocol_route){.eager_limit = 4096, .can_read = true, .can_write = true};
    connection->probed = true;
    return NCCLX_SUCCESS;
}

static void self_disconnect(struct pml *pml, struct pml_connection *connection)
{
    (void)pml;
    (void)connection;
}

static bool self_eager(struct pml_connection *connection, uint64_t context, int source, int tag, const void *data,
                       size_t bytes)
{
    (void)connection;
    (void)context;
    (void)source;
    (void)tag;
    (void)data;
    (void)bytes;
    return false;
}

static bool self_post(struct pml_connection *connection, const struct pml_packet *packet,
                      const struct pml_payload *payload)
{
    struct pml *pml = connection->pml;
    if (!pml->draining || payload->second_bytes) return false;
    if (payload->first_bytes) pml_packet_arrived(pml, connection, packet, payload->first, payload->first_bytes);
    else pml_packet_arrived(pml, connection, packet, packet->u.data, 0);
    return true;
}

static int self_read(struct pml_connection *connection, void *to, uint64_t address, size_t bytes, uint64_t name)
{
    (void)connection;
    (void)name;
    memmove(to, (const void *)(uintptr_t)address, bytes);
    return NCCLX_SUCCESS;
}

static int self_write(struct pml_connection *connection, const void *from, uint64_t address, size_t bytes,
                      uint64_t name)
{
    (void)connection;
    (void)name;
    memmove((void *)(uintptr_t)address, from, bytes);
    return NCCLX_SUCCESS;
}

static int self_poll(struct pml *pml)
{
    (void)pml;
    return 0;
}

static void self_probe(struct pml_connection *connection)
{
    (void)connection;
}

const struct transport transport_self = {
    .name = "self",
    .connect = self_connect,
    .disconnect = self_disconnect,
    .eager = self_eager,
    .post = self_post,
    .probe = self_probe,
    .read = self_read,
    .write = self_write,
    .poll = self_poll,
};
