/* pml.c - start and end, connections, counters. */
#include "bootstrap/bootstrap.h"
#include "pml/allowed.h"
#include "pml/lanes/lanes.h"
#include "pml/shm/shm.h"
#include "pml/tcp/tcp.h"

#include <string.h>
#include <unistd.h>

enum { CHOSE_COPY = 1 }; /* of CONFIG_PROTOCOL */

/* A look at sockets is a system call, at shared memory some loads: so many of these to one of those. */
#define TCP_EVERY 8

static int poll_tcp(struct pml *pml)
{
    enum pml_slept slept = pml_slept(pml);
    if (slept) tcp_look_everywhere(pml->tcp);
    else if (pml->shm && pml->shm->readers && ++pml->turn % TCP_EVERY) return 0;
    int events = transport_tcp.poll(pml);
    if (events) pml->rests_on_tcp = true;
    else if (slept == SLEPT_UNTIL_CALLED) pml->rests_on_tcp = false;
    if (events || slept == SLEPT_UNTIL_CALLED) pml->called_in_vain = !events;
    return events;
}

int pml_poll(void *arg)
{
    struct pml *pml = arg;
    pml->polls++;
    int events = pml->shm ? transport_shm.poll(pml) : 0;
    if (unlikely(pml->tcp != NULL)) {
        if (events) pml->rests_on_tcp = false;
        else events = poll_tcp(pml);
    }
    if (unlikely(pml->busy != NULL)) events += pml_backlog_drain(pml);
    return events;
}

static int connection_chunks(const struct pml *pml)
{
    return (pml->rt->job.size + CONNECTION_CHUNK - 1) / CONNECTION_CHUNK;
}

/* Ranks of other nodes may still be under the same kernel, which shm finds out by trying; the sockets are there in case. */
static bool wants_tcp(const struct pml *pml)
{
    const struct ncclx_rt *rt = pml->rt;
    return rt->bootstrap && rt->job.size > 1 && allowed_with_some(rt, &transport_tcp) &&
           (rt->job.local_size < rt->job.size || !allowed_with_all(rt, &transport_shm) || !pml->shm);
}

int pml_init_on(struct ncclx_rt *rt, int segment)
{
    struct pml *pml = base_calloc(AREA_PML, 1, sizeof *pml);
    if (!pml) {
        if (segment >= 0) close(segment);
        return base_error(NCCLX_ERR_NO_MEM, "no memory");
    }
    rt->pml = pml;
    pml->rt = rt;
    pml->flow.limit = (uint64_t)rt->config.value[CONFIG_UNEXPECTED_LIMIT].number;
    pml->announce_threshold = SIZE_MAX;
    int error = shm_start(pml, segment);
    if (!error) error = lanes_start(pml);
    if (!error) error = allowed_check(rt);
    if (!error && wants_tcp(pml) && pml->shm && allowed_with_some(rt, &transport_shm)) bell_open(pml->shm);
    if (!error && wants_tcp(pml)) error = tcp_start(pml);
    if (!error) pml->connection = base_calloc(AREA_PML, (size_t)connection_chunks(pml), sizeof *pml->connection);
    if (!error && !pml->connection)
        error = base_error(NCCLX_ERR_NO_MEM, "no memory for a job of %d ranks", rt->job.size);
    if (!error) error = base_rt_add_poller(rt, pml_poll, pml);
    if (!error) pml_rest_start(pml);
    if (error) pml_finalize(rt);
    return error;
}

int pml_init(struct ncclx_rt *rt)
{
    int segment = -1;
    if (rt->job.size > 1) {
        int error = bootstrap_node_segment(rt, &segment);
        if (error) return error;
    }
    return pml_init_on(rt, segment);
}

static void connection_release(struct pml *pml, struct pml_connection *connection)
{
    struct pml_post *post;
    while ((post = connection->first_post)) {
        connection->first_post = post->next;
        if (post->request) continue;
        base_free(AREA_PML, (void *)(uintptr_t)post->payload.first);
        base_free(AREA_PML, post);
    }
    lanes_free(connection);
    if (connection->transport) connection->transport->disconnect(pml, connection);
    base_free(AREA_PML, connection);
}

void pml_finalize(struct ncclx_rt *rt)
{
    struct pml *pml = rt->pml;
    if (!pml) return;
    base_rt_remove_poller(rt, pml_poll, pml);
    base_rt_sleep_on(rt, NULL, NULL, NULL);
    pml_traffic_report(pml);
    pml_held_release(pml);
    tcp_stop(pml); /* its channels need their connections */
    for (int i = 0; pml->connection && i < connection_chunks(pml); i++) {
        for (int j = 0; pml->connection[i] && j < CONNECTION_CHUNK; j++)
            if (pml->connection[i][j]) connection_release(pml, pml->connection[i][j]);
        base_free(AREA_PML, pml->connection[i]);
    }
    base_free(AREA_PML, pml->connection);
    lanes_stop(pml);
    shm_stop(pml);
    pml_memory_release(pml);
    pml_exposed_release(pml);
    pml_pool_release(pml);
    base_free(AREA_PML, pml);
    rt->pml = NULL;
}

bool pml_drained(struct ncclx_rt *rt)
{
    return !rt->pml->busy && tcp_drained(rt->pml) && lanes_drained(rt->pml);
}

/* ---- Connections ---------------------------------------------------------------------------------------------------
 */

static struct pml_connection **connection_place(struct pml *pml, int rank)
{
    struct pml_connection ***chunk = &pml->connection[rank / CONNECTION_CHUNK];
    if (!*chunk) *chunk = base_calloc(AREA_PML, CONNECTION_CHUNK, sizeof **chunk);
    return *chunk ? &(*chunk)[rank % CONNECTION_CHUNK] : NULL;
}

struct pml_connection *pml_connection_found(const struct pml *pml, int rank)
{
    struct pml_connection **chunk = pml->connection ? pml->connection[rank / CONNECTION_CHUNK] : NULL;
    struct pml_connection *connection = chunk ? chunk[rank % CONNECTION_CHUNK] : NULL;
    return connection && connection->transport ? connection : NULL;
}

static int connection_make(struct pml *pml, int rank, struct pml_connection **connection)
{
    struct pml_connection **place = connection_place(pml, rank);
    if (!place) return base_error(NCCLX_ERR_NO_MEM, "no memory for the connection to rank %d", rank);
    if (!*place) {
        *place = base_calloc(AREA_PML, 1, sizeof **place);
        if (!*place) return base_error(NCCLX_ERR_NO_MEM, "no memory for the connection to rank %d", rank);
        (*place)->pml = pml;
        (*place)->rank = rank;
        (*place)->announce_threshold = pml->announce_threshold;
        (*place)->choose_above = (*place)->lend_above = SIZE_MAX;
    }
    *connection = *place;
    return NCCLX_SUCCESS;
}

/* NCCLX_PROTOCOL=copy: nobody reaches into the other's memory, and no receive tells its address. */
static void copy_only(struct pml_connection *connection)
{
    connection->copies = connection->probed = true;
    connection->route.can_read = connection->route.can_write = false;
    connection->choose_above = SIZE_MAX; /* the way is given */
    connection->announce_threshold = SIZE_MAX;
}

/* While one call waits for what the peer has published, progress or another thread may connect. */
static int connect_by(struct pml *pml, struct pml_connection *connection, const struct transport *transport)
{
    int error = transport->connect(pml, connection);
    if (connection->transport) return NCCLX_SUCCESS;
    if (error) return error;
    connection->transport = transport;
    if (pml->rt->config.value[CONFIG_PROTOCOL].number == CHOSE_COPY && transport != &transport_self) copy_only(connection);
    return NCCLX_SUCCESS;
}

int pml_connection_to(struct pml *pml, int rank, struct pml_connection **connection)
{
    struct pml_connection **chunk = pml->connection[rank / CONNECTION_CHUNK];
    if (likely(chunk && chunk[rank % CONNECTION_CHUNK] && chunk[rank % CONNECTION_CHUNK]->transport)) {
        *connection = chunk[rank % CONNECTION_CHUNK];
        return NCCLX_SUCCESS;
    }
    struct pml_connection *made;
    int error = connection_make(pml, rank, &made);
    if (error) return error;
    error = base_error(NCCLX_ERR_UNREACHABLE, "no transport reaches rank %d", rank);
    for (int i = 0; i < ALL_TRANSPORTS && error == NCCLX_ERR_UNREACHABLE; i++)
        if (allowed_with(pml->rt, all_transports[i], rank)) error = connect_by(pml, made, all_transports[i]);
    if (!error) *connection = made;
    return error;
}

int pml_connection_from(struct pml *pml, int rank, const struct transport *transport,
                        struct pml_connection **connection)
{
    int error = connection_make(pml, rank, connection);
    if (error || (*connection)->transport) return error;
    return connect_by(pml, *connection, transport);
}

void pml_connection_probe(struct pml_connection *connection)
{
    if (likely(connection->probed)) return;
    connection->probed = true;
    connection->transport->probe(connection);
}

/* ---- Sleepers -------------------------------------------------------------------------------------------------- */

const _Atomic uint32_t *pml_sleeper(struct ncclx_rt *rt, int peer)
{
    const struct shm_mailbox *mailbox = shm_mailbox_of(rt->pml, peer);
    return mailbox ? &mailbox->sleeping : NULL;
}

void pml_wake(struct ncclx_rt *rt, int peer)
{
    struct shm_mailbox *mailbox = shm_mailbox_of(rt->pml, peer);
    if (mailbox) shm_wake(mailbox);
}

/* ---- Facts ----------------------------------------------------------------------------------------------------------
 */

void pml_get_counters(struct ncclx_rt *rt, struct pml_counters *counters)
{
    *counters = rt->pml->counters;
}

const char *pml_transport_name(struct ncclx_rt *rt, int peer)
{
    const struct pml *pml = rt->pml;
    if (peer < 0 || peer >= rt->job.size) return NULL;
    const struct pml_connection *connection = pml_connection_found(pml, peer);
    return connection ? connection->transport->name : NULL;
}
