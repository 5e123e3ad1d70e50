/* tree.c - what places in the tree of daemons tell each other, read by one in the middle of a start and by the front.
 * The input is: which (1 byte: front or daemon; from the link above, from below, or a new connection), type (1 byte),
 * length (2 bytes), payload; and so on. */
#include "launcher/tree_private.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "tree";

#define COUNT 7
#define RADIX 2

struct subject {
    struct tree *tree;
    int reports, finished;
};

/* What it says can be read, over links that there are; and one report, one end. */
static void pump(struct subject *subject)
{
    struct tree_action action;
    size_t sum = 0;
    while (tree_next(subject->tree, &action)) {
        struct frame frame;
        if (subject->finished) abort();
        if (action.kind == TREE_SEND && (frame_parse(action.data, action.bytes, &frame) || frame.total != action.bytes))
            abort();
        if (action.kind == TREE_SEND && (action.link < TREE_PARENT || action.link >= RADIX)) abort();
        if (action.kind == TREE_NODE && (action.position < 0 || action.position >= COUNT)) abort();
        if (action.kind == TREE_NODE) sum += strlen(action.node);
        for (size_t i = 0; i < action.bytes; i++) sum += ((const unsigned char *)action.data)[i];
        if (action.kind == TREE_REPORT) {
            char text[300];
            tree_explain(subject->tree, &action.failure, "host", text, sizeof text);
            sum += strlen(text);
            subject->reports++;
        }
        subject->finished += action.kind == TREE_FINISHED;
    }
    if (subject->reports > 1 || sum == SIZE_MAX) abort();
}

static struct subject begin(int position, enum tree_start start)
{
    const struct tree_self self = {.version = "1", .node = "n", .description = "d", .description_bytes = 1};
    const struct tree_options options = {.shape = {COUNT, RADIX},
                                         .position = position,
                                         .job = 1,
                                         .start = start,
                                         .start_ns = BASE_NS_PER_S,
                                         .silence_ns = BASE_NS_PER_S,
                                         .end_ns = BASE_NS_PER_S};
    struct subject subject = {NULL, 0, 0};
    if (tree_create(&options, &self, 0, &subject.tree) || tree_begin(subject.tree, 0)) abort();
    if (position != TREE_FRONT && tree_parent_up(subject.tree, 0)) abort();
    for (int i = 0; i < tree_child_count(&options.shape, position); i++) {
        struct tree_hello hello = {1, "1", COUNT, RADIX, tree_child(&options.shape, position, i)};
        struct frame_writer writer;
        struct frame frame;
        int link;
        tree_write_hello(&writer, &hello);
        if (frame_finish(&writer) || frame_parse(writer.data, writer.used, &frame)) abort();
        if ((i == 0 || position == TREE_FRONT) && tree_greet(subject.tree, &frame, 0, &link)) abort();
        frame_release(&writer);
    }
    pump(&subject);
    return subject;
}

static void take(struct subject *subject, int link, const struct frame *frame, uint64_t now)
{
    int greeted;
    if (link == RADIX)
        tree_greet(subject->tree, frame, now, &greeted);
    else if (tree_is_open(subject->tree, link) && tree_receive(subject->tree, link, frame, now))
        abort();
    pump(subject);
    if (tree_tick(subject->tree, now)) abort();
    pump(subject);
}

/* Whatever was said: within the bound all is over. */
static void end(struct subject *subject, uint64_t now)
{
    if (tree_end(subject->tree, true, now)) abort();
    pump(subject);
    for (int i = 0; i < 1000 && !subject->finished; i++) {
        if (tree_tick(subject->tree, now += BASE_NS_PER_S / 8)) abort();
        pump(subject);
    }
    if (!subject->finished) abort();
    tree_destroy(subject->tree);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct subject daemon = begin(1, TREE_START_EACH), front = begin(TREE_FRONT, TREE_START_FRONT);
    struct base_area_usage usage;
    uint64_t now = 0;
    while (bytes >= 4) {
        size_t length = (size_t)data[2] | (size_t)data[3] << 8;
        struct frame frame = {.type = data[1], .payload = data + 4, .bytes = length < bytes - 4 ? length : bytes - 4};
        bool to_front = data[0] & 128;
        now += 1000000;
        if (to_front)
            take(&front, data[0] & 1 ? RADIX : 0, &frame, now);
        else
            take(&daemon, data[0] % (RADIX + 2) - 1, &frame, now);
        data += 4 + frame.bytes;
        bytes -= 4 + frame.bytes;
    }
    end(&daemon, now);
    end(&front, now);
    base_area_usage(AREA_LAUNCHER, &usage);
    if (usage.bytes) abort();
    return 0;
}
