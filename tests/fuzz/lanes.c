/* lanes.c - everything that a peer may send over sockets: packets, frames of lanes and acknowledgements, in any order and
 * with any content. Rank 0 has memory that the peer may write to, an announced receive, a send, a put and a
 * get under way; the peer is this program, on the other ends of socket pairs. Nothing but what was granted may change. */
#include "tests/fuzz/fuzz.h"
#include "tests/unit/tcp_world.h"

#include <stdlib.h>

const char fuzz_name[] = "lanes";

#define BYTES 256
#define MARGIN 64
#define LARGE 50000
#define LANES TCP_WORLD_LANES

static struct tcp_world world;
static struct tcp_peer *const peer = &world.peer[1];
static char window[MARGIN + BYTES + MARGIN], buffer[MARGIN + BYTES + MARGIN], got[MARGIN + BYTES + MARGIN], large[LARGE];
static struct pml_connection *connection;
static struct tcp_channel *channel;
static uint64_t key, get_key, receive, send_name;

/* One step of the peer. */
struct record {
    uint8_t what, a, b, c;
    uint32_t bytes;
    uint64_t x, y;
};

static void hear_signal(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg)
{
    (void)rt, (void)signal, (void)arg;
    if (source != 1) abort();
}

static void nothing(void *arg)
{
    (void)arg;
}

/* ---- What the peer sends ---- */

static uint64_t choose_key(uint8_t which, uint64_t other)
{
    const uint64_t keys[] = {key, pml_receive_key(receive), get_key, other};
    return keys[which % 4];
}

static uint64_t choose_place(uint8_t which, uint64_t offset)
{
    char *const places[] = {window + MARGIN, buffer + MARGIN, got + MARGIN};
    return which % 4 == 3 ? offset : (uint64_t)(uintptr_t)places[which % 4] + (offset & 0x80 ? -(offset & 0x7f) : offset & 0x1ff);
}

static void say_frame(const struct record *record)
{
    static const char data[2 * BYTES] = {1};
    struct tcp_frame frame = {.kind = record->c & 0x80 ? record->c : TCP_FRAME_WRITE,
                              .flags = record->b >> 2 & 3,
                              .bytes = record->bytes % (BYTES + 20),
                              .immediate = (uint32_t)record->y,
                              .to = choose_place(record->b, record->x),
                              .key = choose_key(record->a >> 1, record->y)};
    if (record->c & 0x40) frame.bytes = record->bytes;
    tcp_world_say(peer->to[record->a % LANES], &frame, sizeof frame);
    tcp_world_say(peer->to[record->a % LANES], data, frame.bytes < sizeof data ? frame.bytes : record->b);
}

static void say_packet(const struct record *record)
{
    const uint64_t names[] = {receive, send_name, get_key, record->y};
    bool own = record->c & 0x20, ours = !(record->b & 0x80);
    struct pml_packet packet = {.kind = own ? TCP_BYE + record->b % 6 : record->b & 0x80 ? record->b % 20 : PROTOCOL_LANES,
                                .count = record->a % 16,
                                .inline_bytes = own ? 8 : 40,
                                .context = names[(ours ? record->b : record->a) % 4],
                                .source = 1,
                                .tag = record->c % 4,
                                .u.word = {record->x % 8, record->y % 8, record->y, record->x, record->bytes}};
    static const char payload[4096];
    uint32_t bytes = !ours && record->a & 8 ? record->bytes % 5000 : 0;
    if (!ours) packet.u.word[1] = record->y;
    if (!ours && record->a & 0x40) packet.u.word[0] = names[record->c & 3];
    if (ours && packet.count == LANES_GET) packet.u.word[0] = choose_key(record->b >> 2, record->y);
    if (ours && packet.count == LANES_GET) packet.u.word[1] = choose_place(record->b >> 4, record->x);
    if (record->a >> 2 & 1 && packet.kind != PROTOCOL_LANES) packet.context = 4;
    if (packet.count == LANES_REPORT && packet.kind == PROTOCOL_LANES) bytes = record->c & 0x40 ? record->bytes % 5000 : 512;
    if (bytes) packet.inline_bytes = PACKET_HAS_PAYLOAD;
    if (own) packet.context = channel->meet.name;
    packet.pass = bytes | (record->a & 0x80 ? (record->bytes & 7) << TCP_FOLLOWS_BITS : 0);
    tcp_world_say(peer->control, &packet, sizeof packet);
    uint32_t there = record->c & 0x10 ? bytes / 2 : bytes; /* the rest may be what comes next */
    if (there) tcp_world_say(peer->control, payload, there < sizeof payload ? there : sizeof payload);
}

static void say_ack(const struct record *record)
{
    const struct tcp_ack ack = {.kind = record->c & 0x80 ? record->c : TCP_FRAME_ACK,
                                .life = record->b % 4,
                                .completed = record->x % 8,
                                .receives = record->y % 2048};
    tcp_world_say(peer->from[record->a % LANES], &ack, sizeof ack);
}

/* The socket breaks; on the next the peer greets as it likes. */
static void break_off(const struct record *record)
{
    struct tcp_greeting greeting = {.magic = "ncclx\0\0\2", .attempts = record->a, .name = 2, .come = channel->keep.acked};
    if (channel->lost) return;
    tcp_broke(channel, "the test says so");
    if (channel->lost || channel->meet.state != MEET_IDLE) return;
    channel->meet.state = record->b & 1 ? MEET_KEPT : MEET_CONNECTED;
    channel->meet.name = greeting.name;
    channel->fd = tcp_world_pair(&peer->control);
    if (!channel->in) channel->in = base_alloc(AREA_TCP, TCP_IN_BYTES);
    if (!channel->in) abort();
    if (record->b & 2) greeting.come += record->bytes;
    if (record->b & 4) greeting.name = record->x;
    if (record->b & 8) greeting.magic[record->c % 8]++;
    tcp_world_say(peer->control, &greeting, record->b & 16 ? record->c % sizeof greeting : sizeof greeting);
    tcp_greeting(channel);
}

static void ask_for_rest(void)
{
    if (channel->lost || meet_rest(&channel->meet) != MEET_ASK) return;
    tcp_say(channel, TCP_REST, channel->meet.name);
}

static void step(const struct record *record)
{
    switch (record->what % 8) {
    case 0:
    case 1:
        say_frame(record);
        break;
    case 2:
        say_packet(record);
        break;
    case 3:
        say_ack(record);
        break;
    case 4:
        tcp_world_accept(&world, 1, record->a % LANES, record->b % 4);
        break;
    case 6:
        break_off(record);
        break;
    case 7:
        ask_for_rest();
        break;
    case 5:
        tcp_world_say(record->b & 1 ? peer->to[record->a % LANES] : record->b & 2 ? peer->control : peer->from[record->a % LANES], record,
            record->c % sizeof *record);
        break;
    }
}

/* ---- One run ---- */

static void check_margins(const char *block)
{
    for (int i = 0; i < MARGIN; i++)
        if (block[i] != 0x5a || block[MARGIN + BYTES + i] != 0x5a) abort();
}

static void start(struct pml_order **order)
{
    struct ncclx_request *request[2];
    struct pml_region region = {.access = PML_ACCESS_LANES, .address = 4096, .bytes = BYTES, .peer = 1, .key = 5};
    if (lanes_range_add(&world.world.comm[0], (uint64_t)(uintptr_t)window + MARGIN, BYTES, &key)) abort();
    if (pml_irecv(&world.world.comm[0], PML_USER, buffer + MARGIN, BYTES, 1, 1, &request[0])) abort();
    if (pml_isend(&world.world.comm[0], PML_USER, large, LARGE, 1, 1, &request[1])) abort();
    receive = ((struct pml_request *)request[0])->name;
    send_name = ((struct pml_request *)request[1])->name;
    if (pml_order_make(&world.world.rt[0], &region, nothing, NULL, order)) abort();
    if (pml_order_get(*order, 0, got + MARGIN, BYTES)) abort();
    get_key = connection->lanes->first_get->name;
    lanes_agreed(connection, &lanes_offer);
    const struct pml_signal signal = {.window = 4, .value = 1};
    if (pml_order_put(*order, 0, large, BYTES, NULL) || pml_order_put(*order, 0, large, LARGE, &signal)) abort();
    for (unsigned i = 0; i < LANES; i++) tcp_world_accept(&world, 1, i, 1);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    static char *environment[] = {
        "NCCLX_LOG=none", "NCCLX_DQPLB_NODE=1:4:1000", "NCCLX_COPY_SLOTS=2", "NCCLX_COPY_CHUNK=1K", "NCCLX_UNEXPECTED_LIMIT=1K", NULL};
    struct pml_order *order;
    memset(window, 0x5a, sizeof window);
    memset(buffer, 0x5a, sizeof buffer);
    memset(got, 0x5a, sizeof got);
    tcp_world_open(&world, 2, environment);
    tcp_world_connect(&world, 1);
    connection = peer->connection;
    channel = peer->channel;
    connection->copies = bytes && data[0] & 0x40; /* what is cleared goes through slots */
    pml_signal_register(&world.world.rt[0], hear_signal, NULL);
    start(&order);
    for (; bytes >= sizeof(struct record) && !channel->lost; bytes -= sizeof(struct record), data += sizeof(struct record)) {
        struct record record;
        memcpy(&record, data, sizeof record);
        step(&record);
        if (!(record.c & 1)) tcp_world_look(&world, 1);
    }
    tcp_world_look(&world, 1);
    check_margins(window);
    check_margins(buffer);
    check_margins(got);
    tcp_lost(channel, "the end of the test");
    pml_order_leave(order);
    tcp_world_close(&world);
    return 0;
}
