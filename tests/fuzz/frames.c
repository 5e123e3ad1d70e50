/* frames.c - what ncclxrun and ncclxd send each other, read by either. */
#include "launcher/message.h"
#include "launcher/order.h"
#include "launcher/message_gpus.h"
#include "launcher/spawn.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <stdlib.h>
#include <string.h>

const char fuzz_name[] = "frames";

/* What was decoded is walked through as its users do: every text and every cpu is touched. */
static size_t touch(const char *text)
{
    return text ? strlen(text) : 0;
}

static void check_node(const struct frame *frame)
{
    struct message_node node;
    size_t sum = 0;
    if (message_read_node(frame, &node)) return;
    for (int i = 0; i < node.cpu_count; i++) sum += (size_t)node.cpus[i].os_index;
    for (int i = 0; i < node.gpu_count; i++) sum += touch(node.gpus[i].id);
    base_free(AREA_LAUNCHER, node.cpus);
    base_free(AREA_LAUNCHER, node.gpus);
    if (sum == SIZE_MAX) abort();
}

static void check_launch(const struct frame *frame)
{
    struct message_launch launch;
    size_t sum = 0;
    if (message_read_launch(frame, &launch)) return;
    for (int i = 0; i < launch.node_count; i++) sum += touch(launch.nodes[i]);
    for (int i = 0; i < launch.app_count; i++) {
        const struct message_app *app = &launch.apps[i];
        for (char **word = app->argv; *word; word++) sum += touch(*word);
        for (int j = 0; j < app->setting_count; j++) sum += touch(app->settings[j]);
        sum += touch(app->directory);
    }
    for (char **entry = launch.environment; *entry; entry++) sum += touch(*entry);
    for (int i = 0; i < launch.rank_count; i++) {
        const struct map_rank *rank = &launch.ranks[i];
        if (rank->node < 0 || rank->node >= launch.node_count || rank->app < 0 || rank->app >= launch.app_count) abort();
        sum += touch(rank->cpus);
    }
    if (launch.node < 0 || launch.node >= launch.node_count || sum == SIZE_MAX) abort();
    message_release_launch(&launch);
}

static void check_exited(const struct frame *frame)
{
    struct message_exited exited;
    if (!message_read_exited(frame, &exited) && exited.number < 0) abort();
}

static void check_spawn(const struct frame *frame)
{
    static char *environment[] = {(char *)(uintptr_t) "PATH=/bin", (char *)(uintptr_t) "A=1", NULL};
    struct spawn_request request;
    struct spawn_answer answer;
    size_t sum = 0;
    if (!spawn_read_answer(frame, &answer) && answer.job && !touch(answer.job)) abort();
    if (spawn_read_request(frame, &request)) return;
    for (int i = 0; i < request.app_count; i++) {
        const struct spawn_app *app = &request.apps[i];
        int count;
        for (char **word = app->argv; *word; word++) sum += touch(*word);
        char **settings = spawn_settle(app, environment, &count);
        if (!settings || count > app->edit_count || app->ranks < 1) abort();
        for (int j = 0; j < count; j++) sum += touch(settings[j]);
        spawn_release_settings(settings, count);
        sum += touch(app->directory);
    }
    sum += touch(request.hosts) + touch(request.map_by) + touch(request.bind_to);
    if (sum == SIZE_MAX || request.app_count < 1) abort();
    spawn_release_request(&request);
}

static void check_gpus(const struct frame *frame)
{
    struct frame_reader reader;
    int count;
    frame_read(&reader, frame);
    struct map_gpu *gpus = message_get_gpus(&reader, &count);
    for (int i = 0; i < count; i++)
        if (!touch(gpus[i].id) || gpus[i].numa < -1) abort();
    if (reader.failed && (gpus || count)) abort();
    base_free(AREA_LAUNCHER, gpus);
}

static void check_order(const struct frame *frame)
{
    struct order order, derived;
    size_t sum = 0;
    if (order_read(frame, &order)) return;
    sum += touch(order.job) + touch(order.daemon) + touch(order.directory);
    for (int i = 0; i < order.contact_count; i++) sum += touch(order.contacts[i].text);
    for (int i = 0; i < order.host_count; i++) sum += touch(order.hosts[i].name) + touch(order.hosts[i].address);
    for (char **word = order.agent; word && *word; word++) sum += touch(*word);
    for (char **entry = order.environment; entry && *entry; entry++) sum += touch(*entry);
    if (sum == SIZE_MAX) abort();
    if (!order_settle(&order, "n3") && !order_derive(&order, order.position, &derived)) {
        if (derived.host_count > order.tree.shape.count) abort();
        base_free(AREA_LAUNCHER, derived.hosts);
    }
    order_release(&order);
}

/* Whatever the header says, so that changes of the payload's length reach the readers too. */
static void check_payload(const uint8_t *data, size_t bytes)
{
    if (bytes < FRAME_HEADER_BYTES) return;
    struct frame frame = {.type = data[3], .payload = data + FRAME_HEADER_BYTES, .bytes = bytes - FRAME_HEADER_BYTES, .total = bytes};
    check_node(&frame);
    check_launch(&frame);
    check_exited(&frame);
    check_gpus(&frame);
    frame.type = MESSAGE_SPAWN;
    check_spawn(&frame);
    frame.type = ORDER_FRAME;
    check_order(&frame);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    check_payload(data, bytes);
    while (bytes) {
        struct frame frame;
        size_t wanted = frame_wanted(data, bytes);
        if (frame_parse(data, bytes, &frame)) break;
        if (!frame.total) {
            if (!wanted) abort(); /* a good beginning says how much is missing */
            break;
        }
        if (frame.total > bytes || frame.bytes > frame.total) abort();
        check_node(&frame);
        check_launch(&frame);
        check_exited(&frame);
        check_spawn(&frame);
        check_order(&frame);
        data += frame.total;
        bytes -= frame.total;
    }
    return 0;
}
