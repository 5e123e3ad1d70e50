/* traffic.c - what passed by each transport, added up over the connections when somebody asks. */
#include "pml/choice.h"

#include <inttypes.h>
#include <string.h>

static void add_chunk(struct pml_connection *const *chunk, const struct transport *transport,
                      struct pml_traffic *traffic, int *peers)
{
    for (int i = 0; i < CONNECTION_CHUNK; i++) {
        const struct pml_connection *connection = chunk[i];
        if (!connection || connection->transport != transport) continue;
        traffic->sent += connection->traffic.sent;
        traffic->received += connection->traffic.received;
        ++*peers;
    }
}

int pml_get_traffic(struct ncclx_rt *rt, const char *name, struct pml_traffic *traffic, int *peers)
{
    const struct pml *pml = rt->pml;
    const struct transport *transport = NULL;
    for (int i = 0; i < CHOICE_TRANSPORTS; i++)
        if (!strcmp(choice_transports[i]->name, name)) transport = choice_transports[i];
    if (!transport) return base_error(NCCLX_ERR_ARG, "there is no transport \"%s\"", name);
    *traffic = (struct pml_traffic){0};
    *peers = 0;
    for (int first = 0; first < rt->job.size && pml->connection; first += CONNECTION_CHUNK)
        if (pml->connection[first / CONNECTION_CHUNK])
            add_chunk(pml->connection[first / CONNECTION_CHUNK], transport, traffic, peers);
    return NCCLX_SUCCESS;
}

void pml_traffic_report(struct pml *pml)
{
    for (int i = 0; i < CHOICE_TRANSPORTS && base_log_on(AREA_PML, LOG_INFO); i++) {
        const char *name = choice_transports[i]->name;
        struct pml_traffic traffic;
        int peers;
        if (pml_get_traffic(pml->rt, name, &traffic, &peers) || !peers) continue;
        base_log(AREA_PML, LOG_INFO, "passed by %s: %" PRIu64 " bytes sent, %" PRIu64 " received, %d peers", name,
                 traffic.sent, traffic.received, peers);
    }
}
