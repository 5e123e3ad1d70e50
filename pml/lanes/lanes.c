/* lanes.c - the driver's beginning and end, and the packets that it gets. */
#include "pml/lanes/private.h"

/* Their defaults are graded by the round trip relative to a rack's (1, 7, 15, 30, after the published fabric): each about
 * doubles what is in flight. The published ones are 16 lanes of 128 segments of 512 KiB, and 1 MiB for all that is farther
 * than a zone. */
static const struct {
    enum base_config_id id;
    int distance;
} limits_by_class[] = {{CONFIG_DQPLB_NODE, NCCLX_DISTANCE_NODE},
                       {CONFIG_DQPLB_RACK, NCCLX_DISTANCE_RACK},
                       {CONFIG_DQPLB_ZONE, NCCLX_DISTANCE_ZONE},
                       {CONFIG_DQPLB_BUILDING, NCCLX_DISTANCE_BUILDING},
                       {CONFIG_DQPLB_CAMPUS, NCCLX_DISTANCE_CAMPUS}};

static int read_limits(struct pml *pml)
{
    struct lanes_state *state = pml->lanes;
    for (size_t i = 0; i < sizeof limits_by_class / sizeof limits_by_class[0]; i++) {
        const char *text = pml->rt->config.value[limits_by_class[i].id].text;
        if (dqplb_limits_parse(text, &state->limits[limits_by_class[i].distance]))
            return base_error_context(NCCLX_ERR_CONFIG, "%s", base_config_table()[limits_by_class[i].id].name);
    }
    state->limits[NCCLX_DISTANCE_SELF] = state->limits[NCCLX_DISTANCE_NODE];
    state->limits[NCCLX_DISTANCE_UNKNOWN] = state->limits[NCCLX_DISTANCE_ZONE];
    return NCCLX_SUCCESS;
}

int lanes_start(struct pml *pml)
{
    pml->lanes = base_calloc(AREA_PML, 1, sizeof *pml->lanes);
    if (!pml->lanes) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    uint64_t budget = (uint64_t)pml->rt->config.value[CONFIG_DQPLB_BUDGET].number;
    for (unsigned port = 0; port < LANE_PORTS; port++) pml->lanes->budget[port].bytes = budget_part(budget, pml->rt->job.local_size);
    return read_limits(pml);
}

void lanes_stop(struct pml *pml)
{
    struct lanes_state *state = pml->lanes;
    if (!state) return;
    while (state->free_puts) {
        struct lanes_put *put = state->free_puts;
        state->free_puts = put->next;
        base_free(AREA_PML, put);
    }
    while (state->free_flushes) {
        struct lanes_flush *flush = state->free_flushes;
        state->free_flushes = flush->next;
        base_free(AREA_PML, flush);
    }
    while (state->free_gets) {
        struct lanes_get *get = state->free_gets;
        state->free_gets = get->next;
        base_free(AREA_PML, get);
    }
    lanes_ranges_release(state);
    base_free(AREA_PML, state);
    pml->lanes = NULL;
}

bool lanes_drained(const struct pml *pml)
{
    return !pml->lanes->under_way;
}

/* ---- Of a connection ---- */

int lanes_make(struct pml_connection *connection, const struct lane_transport *transport)
{
    struct lanes *lanes = base_calloc(AREA_PML, 1, sizeof *lanes);
    if (!lanes) return base_error(NCCLX_ERR_NO_MEM, "no memory for the connection to rank %d", connection->rank);
    lanes->connection = connection;
    lanes->transport = transport;
    connection->lanes = lanes;
    return NCCLX_SUCCESS;
}

void lanes_agreed(struct pml_connection *connection, const struct lane_offer *offer)
{
    connection->lanes->offer = *offer;
    connection->lanes->has_offer = true;
    lanes_origin_agree(connection->lanes);
}

void lanes_lost(struct pml_connection *connection)
{
    struct lanes *lanes = connection->lanes;
    if (lanes->lost) return;
    lanes->lost = true;
    if (!PLANTED_BUG(BUG_LANES_GETS_LEFT)) lanes_gets_fail(lanes);
    lanes_origin_fail(lanes);
}

void lanes_free(struct pml_connection *connection)
{
    struct lanes *lanes = connection->lanes;
    if (!lanes) return;
    lanes_lost(connection);
    lanes_origin_free(lanes);
    lanes_target_free(lanes);
    lanes_copy_free(lanes);
    base_free(AREA_PML, lanes);
    connection->lanes = NULL;
}

static void progress_arrived(struct lanes *lanes, const struct pml_packet *packet)
{
    if (!lanes->origin || dqplb_progressed(&lanes->origin->sender, packet->u.word[0], packet->u.word[1]))
        lanes_breach(lanes, lanes->origin ? base_error_detail() : "it has got what was never sent");
    else
        lanes_drive(lanes);
}

void lanes_packet_arrived(struct pml_connection *connection, const struct pml_packet *packet, const void *payload,
                          size_t bytes)
{
    struct lanes *lanes = connection->lanes;
    if (!lanes) {
        pml_breach(connection, "it speaks of lanes, and there are none");
        return;
    }
    switch (packet->count) {
    case LANES_LANDED:
    case LANES_ANSWERED:
    case LANES_SIGNAL:
    case LANES_CHUNK:
        lanes_notice_arrived(lanes, packet);
        break;
    case LANES_GET:
        lanes_get_arrived(lanes, packet);
        break;
    case LANES_PROGRESS:
        progress_arrived(lanes, packet);
        break;
    case LANES_CLOSE:
        lanes_close_arrived(lanes, packet);
        break;
    case LANES_REPORT:
        lanes_report_arrived(lanes, packet, payload, bytes);
        break;
    case LANES_COPY:
        lanes_copy_asked(lanes);
        break;
    case LANES_SLOTS:
        lanes_copy_slots_arrived(lanes, packet);
        break;
    case LANES_CLEARED:
        lanes_copy_cleared(lanes, packet->u.word[0]);
        break;
    default:
        lanes_breach(lanes, "it says something about lanes that is not known here");
    }
}
