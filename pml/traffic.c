/* traffic.c - what passed by each transport, added up over the connections when somebody asks. */
#include "pml/allowed.h"

#include <inttypes.h>

int pml_get_traffic(struct ncclx_rt *rt, const char *name, struct pml_traffic *traffic, int *peers)
{
    const struct pml *pml = rt->pml;
    const struct transport *transport;
    int error = transport_named(name, &transport);
    if (error) return error;
    *traffic = (struct pml_traffic){0};
    *peers = 0;
    for (int rank = 0; rank < rt->job.size; rank++) {
        const struct pml_connection *connection = pml_connection_found(pml, rank);
        if (!connection || connection->transport != transport) continue;
        traffic->sent += connection->traffic.sent;
        traffic->received += connection->traffic.received;
        ++*peers;
    }
    return NCCLX_SUCCESS;
}

void pml_traffic_report(struct pml *pml)
{
    for (int i = 0; i < ALL_TRANSPORTS && base_log_on(AREA_PML, LOG_INFO); i++) {
        const char *name = all_transports[i]->name;
        struct pml_traffic traffic;
        int peers;
        if (pml_get_traffic(pml->rt, name, &traffic, &peers) || !peers) continue;
        base_log(AREA_PML, LOG_INFO, "passed by %s: %" PRIu64 " bytes sent, %" PRIu64 " received, %d peers", name,
                 traffic.sent, traffic.received, peers);
    }
}
