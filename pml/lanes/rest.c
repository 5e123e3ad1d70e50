/* rest.c - lanes that nothing is under way on are closed when the transport is short of sockets; they open again with the
 * next put. */
#include "pml/lanes/private.h"

bool lanes_idle(const struct pml_connection *connection)
{
    const struct lanes *lanes = connection->lanes;
    const struct lanes_origin *origin = lanes->origin;
    return !lanes->gets && !(origin && (origin->under_way || (dqplb_holds(&origin->sender) && !PLANTED_BUG(BUG_LANES_MARKER_RESTED))));
}

bool lanes_fenced(const struct pml_connection *connection, unsigned lane)
{
    const struct lanes_target *target = connection->lanes->target;
    return !target || target->fenced >> lane & 1;
}

/* As if it had broken, with nothing on it: the target fences it, and says so. */
static void close_lane(struct lanes *lanes, unsigned index)
{
    lanes->transport->close(lanes->connection, index);
    lanes->origin->lane[index].door = DOOR_REPORTING;
    dqplb_lane_failed(&lanes->origin->sender, index);
    lanes_ask_for_report(lanes, index);
}

bool lanes_rest(struct pml_connection *connection)
{
    struct lanes *lanes = connection->lanes;
    struct lanes_origin *origin = lanes->origin;
    bool all = true;
    if (!lanes_idle(connection)) return false;
    for (unsigned i = 0; origin && i < origin->wanted && i < origin->sender.terms.lanes; i++) {
        if (origin->lane[i].door == DOOR_OPEN) close_lane(lanes, i);
        all = all && origin->lane[i].door == DOOR_CLOSED;
    }
    return all;
}
