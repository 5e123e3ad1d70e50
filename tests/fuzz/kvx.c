/* kvx.c - what daemons tell each other about fences and keys, read by one in the middle of a tree with operations of
 * its own under way. The input is: link (1 byte: parent, child 0, child 1), length (2 bytes), message; and so on. */
#include "bootstrap/kvx/wire.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "kvx";

#define DAEMONS 7
#define RANKS 14
#define ME 1 /* radix 2: the parent is 0, the children are 3 and 4 */

static int ended;

static void pump(struct kvx *kvx)
{
    static struct kvx_range room[KVX_MAX_RANGES];
    struct kvx_action action;
    while (kvx_next(kvx, &action)) {
        struct wire_message message;
        if (action.kind == KVX_SEND && wire_decode(action.message, action.bytes, room, &message)) abort();
        if (action.kind == KVX_SEND && (action.link < KVX_PARENT || action.link > 1)) abort();
        if (action.kind == KVX_COMPLETE) ended++;
        if (action.bytes && action.kind == KVX_COMPLETE && !action.data) abort();
        base_free(AREA_BOOTSTRAP, action.data);
    }
}

static struct kvx *begin(struct kvx_map **map)
{
    const struct kvx_limits limits = {
        .frame_bytes = KVX_LEAST_FRAME, .fence_bytes = 4096, .cache_bytes = 512, .published_bytes = 512};
    const struct kvx_range all = {0, RANKS - 1}, below[] = {{2, 3}, {6, 7}};
    int home[RANKS];
    struct kvx *kvx;
    for (int i = 0; i < RANKS; i++) home[i] = i / 2;
    if (kvx_map_create(home, RANKS, DAEMONS, 2, map) || kvx_create(*map, ME, &limits, &kvx)) abort();
    if (kvx_fence(kvx, &all, 1, "data", 4, 1) || kvx_fence(kvx, below, 2, "more", 4, 2)) abort();
    if (kvx_fence(kvx, &all, 1, NULL, 0, 3) || kvx_get(kvx, 6, false, 5, 0, 4)) abort();
    if (kvx_get(kvx, 0, true, 0, 0, 5) || kvx_lookup(kvx, "name", true, 0, 0, 6)) abort();
    const struct kvx_fence limited = {
        .kind = 1, .ranges = below, .count = 2, .data = "late", .bytes = 4, .timeout_ms = 3, .token = 7};
    if (kvx_begin_fence(kvx, &limited, 0) || kvx_get_with(kvx, 8, "key", false, 4, 0, 8)) abort();
    pump(kvx);
    return kvx;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct kvx_map *map;
    struct kvx *kvx = begin(&map);
    struct base_area_usage usage;
    bool closed[3] = {false, false, false};
    uint64_t now = 0;
    ended = 0;
    while (bytes >= 3) {
        int link = data[0] % 3;
        size_t length = (size_t)data[1] | (size_t)data[2] << 8;
        data += 3;
        bytes -= 3;
        if (length > bytes) length = bytes;
        if (!closed[link] && kvx_receive(kvx, link - 1, data, length, now += 1000000)) {
            closed[link] = true;
            if (kvx_link_lost(kvx, link - 1)) abort();
        }
        pump(kvx);
        if (kvx_tick(kvx, now)) abort();
        data += length;
        bytes -= length;
    }
    for (int link = 0; link < 3; link++)
        if (kvx_link_lost(kvx, link - 1)) abort();
    pump(kvx);
    if (ended != 8) abort(); /* whatever was said: with all links lost everything has ended */
    kvx_destroy(kvx);
    kvx_map_free(map);
    base_area_usage(AREA_BOOTSTRAP, &usage);
    if (usage.bytes) abort();
    return 0;
}
