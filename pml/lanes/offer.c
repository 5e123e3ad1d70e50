/* offer.c - what this process takes from each peer by lanes. Apart from the rest, which the simulator runs with an offer that is soon used up. */
#include "pml/lanes/lanes.h"

const struct lane_offer lanes_offer = {.lanes = DQPLB_MAX_LANES, .receives = 1024, .window = 4096, .notices = 128};
