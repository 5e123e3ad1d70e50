/* order.c - start orders as bytes. */
#include "config.h"

#include "launcher/order.h"

#include "runtime/base/base.h"

#include <string.h>

static void put_tree(struct frame_writer *writer, const struct tree_options *tree)
{
    frame_put_u64(writer, tree->job);
    frame_put_u32(writer, (uint32_t)tree->shape.count);
    frame_put_u32(writer, (uint32_t)tree->shape.radix);
    frame_put_u8(writer, (uint8_t)tree->start);
    frame_put_u32(writer, (uint32_t)tree->start_window);
    frame_put_u64(writer, tree->start_ns);
    frame_put_u64(writer, tree->silence_ns);
    frame_put_u64(writer, tree->end_ns);
}

/* Texts, or none at all. */
static void put_list(struct frame_writer *writer, char **texts)
{
    frame_put_u8(writer, texts != NULL);
    if (texts) frame_put_texts(writer, (const char *const *)texts, -1);
}

void order_write(struct frame_writer *writer, const struct order *order)
{
    frame_begin(writer, ORDER_FRAME);
    frame_put_text(writer, order->version);
    frame_put_text(writer, order->job);
    frame_put_bytes(writer, order->secret, sizeof order->secret);
    frame_put_u32(writer, (uint32_t)(order->position + 1));
    put_tree(writer, &order->tree);
    frame_put_u32(writer, order->port_low);
    frame_put_u32(writer, order->port_high);
    frame_put_text(writer, order->networks);
    frame_put_u32(writer, (uint32_t)order->contact_count);
    for (int i = 0; i < order->contact_count; i++) {
        frame_put_u32(writer, (uint32_t)(order->contacts[i].position + 1));
        frame_put_text(writer, order->contacts[i].text);
    }
    frame_put_u32(writer, (uint32_t)order->host_count);
    for (int i = 0; i < order->host_count; i++) {
        frame_put_u32(writer, (uint32_t)order->hosts[i].position);
        frame_put_text(writer, order->hosts[i].name);
        frame_put_text(writer, order->hosts[i].address);
    }
    frame_put_text(writer, order->daemon);
    put_list(writer, order->agent);
    put_list(writer, order->agent_environment);
    put_list(writer, order->environment);
    frame_put_text(writer, order->directory);
    frame_put_u32(writer, order->umask);
    for (int i = 0; i < ORDER_LIMITS; i++)
        for (int j = 0; j < 2; j++) frame_put_u64(writer, order->limits[i][j]);
}

/* A number below `end`. */
static int get_below(struct frame_reader *reader, uint32_t end)
{
    uint32_t value = frame_get_u32(reader);
    if (value < end) return (int)value;
    reader->failed = true;
    return 0;
}

static void read_tree(struct frame_reader *reader, struct tree_options *tree)
{
    tree->job = frame_get_u64(reader);
    tree->shape.count = get_below(reader, TREE_MAX_COUNT + 1);
    tree->shape.radix = get_below(reader, TREE_MAX_RADIX + 1);
    uint8_t start = frame_get_u8(reader);
    tree->start = (enum tree_start)start;
    tree->start_window = get_below(reader, TREE_MAX_COUNT + 1);
    tree->start_ns = frame_get_u64(reader);
    tree->silence_ns = frame_get_u64(reader);
    tree->end_ns = frame_get_u64(reader);
    if (tree->shape.count < 1 || tree->shape.radix < 1 || start > TREE_START_ONCE) reader->failed = true;
}

static void read_contacts(struct frame_reader *reader, struct order *order)
{
    uint32_t count = frame_get_count(reader, 8);
    order->contacts = base_calloc(AREA_LAUNCHER, (size_t)count + 1, sizeof *order->contacts);
    if (!order->contacts) reader->failed = true;
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        order->contacts[i].position = get_below(reader, (uint32_t)order->tree.shape.count) - 1;
        order->contacts[i].text = frame_get_text(reader);
        if (!order->contacts[i].text) reader->failed = true;
    }
    order->contact_count = (int)count;
}

static void read_hosts(struct frame_reader *reader, struct order *order)
{
    uint32_t count = frame_get_count(reader, 12);
    order->hosts = base_calloc(AREA_LAUNCHER, (size_t)count + 1, sizeof *order->hosts);
    if (!order->hosts) reader->failed = true;
    for (uint32_t i = 0; i < count && !reader->failed; i++) {
        order->hosts[i].position = get_below(reader, (uint32_t)order->tree.shape.count);
        order->hosts[i].name = frame_get_text(reader);
        order->hosts[i].address = frame_get_text(reader);
    }
    order->host_count = (int)count;
}

static char **get_list(struct frame_reader *reader)
{
    int count;
    return frame_get_u8(reader) && !reader->failed ? frame_get_texts(reader, &count) : NULL;
}

static void read_rest(struct frame_reader *reader, struct order *order)
{
    order->daemon = frame_get_text(reader);
    order->agent = get_list(reader);
    order->agent_environment = get_list(reader);
    order->environment = get_list(reader);
    order->directory = frame_get_text(reader);
    order->umask = frame_get_u32(reader) & 0777;
    for (int i = 0; i < ORDER_LIMITS; i++)
        for (int j = 0; j < 2; j++) order->limits[i][j] = frame_get_u64(reader);
}

int order_read(const struct frame *frame, struct order *order)
{
    struct frame_reader reader;
    size_t bytes;
    memset(order, 0, sizeof *order);
    order->storage = base_alloc(AREA_LAUNCHER, frame->bytes);
    if (!order->storage) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a start order");
    memcpy(order->storage, frame->payload, frame->bytes);
    struct frame copy = *frame;
    copy.payload = order->storage;
    frame_read(&reader, &copy);
    order->version = frame_get_text(&reader);
    if (frame->type == ORDER_FRAME && order->version && strcmp(order->version, PACKAGE_VERSION)) {
        int code = base_error(NCCLX_ERR_BOOTSTRAP, "this ncclxd is version %s, ncclxrun is %.100s: install one version",
                              PACKAGE_VERSION, order->version);
        order_release(order);
        return code;
    }
    order->job = frame_get_text(&reader);
    const void *secret = frame_get_bytes(&reader, &bytes);
    if (bytes == sizeof order->secret)
        memcpy(order->secret, secret, bytes);
    else
        reader.failed = true;
    int position = get_below(&reader, TREE_MAX_COUNT + 1) - 1;
    read_tree(&reader, &order->tree);
    order->position = order->tree.position = position;
    order->port_low = (uint16_t)get_below(&reader, 65536);
    order->port_high = (uint16_t)get_below(&reader, 65536);
    order->networks = frame_get_text(&reader);
    if (!reader.failed) read_contacts(&reader, order);
    if (!reader.failed) read_hosts(&reader, order);
    if (!reader.failed) read_rest(&reader, order);
    if (frame->type == ORDER_FRAME && frame_read_all(&reader) && order->version && order->job && order->daemon &&
        position < order->tree.shape.count)
        return NCCLX_SUCCESS;
    order_release(order);
    return base_error(NCCLX_ERR_TRANSPORT, "this is not a start order");
}

void order_release(struct order *order)
{
    base_free(AREA_LAUNCHER, order->contacts);
    base_free(AREA_LAUNCHER, order->hosts);
    base_free(AREA_LAUNCHER, order->agent);
    base_free(AREA_LAUNCHER, order->agent_environment);
    base_free(AREA_LAUNCHER, order->environment);
    base_free(AREA_LAUNCHER, order->storage);
    memset(order, 0, sizeof *order);
}

int order_settle(struct order *order, const char *node)
{
    for (int i = 0; i < order->host_count && order->position < 0; i++)
        if (node && order->hosts[i].address && !strcmp(order->hosts[i].address, node))
            order->position = order->hosts[i].position;
    order->tree.position = order->position;
    if (order->position >= 0) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_BOOTSTRAP, "this node, '%.100s', is not among those of the job", node ? node : "");
}

const struct order_host *order_find(const struct order *order, int position)
{
    for (int i = 0; i < order->host_count; i++)
        if (order->hosts[i].position == position) return &order->hosts[i];
    return NULL;
}

int order_derive(const struct order *order, int position, struct order *derived)
{
    const struct tree_shape *shape = &order->tree.shape;
    int below = order->tree.start == TREE_START_EACH ? tree_below_count(shape, position) : 1;
    *derived = *order;
    derived->hosts = base_calloc(AREA_LAUNCHER, (size_t)below, sizeof *derived->hosts);
    if (!derived->hosts) return base_error(NCCLX_ERR_NO_MEM, "memory is short for a start order");
    derived->position = derived->tree.position = position;
    derived->contacts = NULL;
    derived->contact_count = 0;
    derived->agent_environment = NULL;
    derived->host_count = 0;
    for (int i = 0; i < below; i++) {
        const struct order_host *host = order_find(order, tree_below(shape, position, i));
        if (host) derived->hosts[derived->host_count++] = *host;
    }
    return NCCLX_SUCCESS;
}
