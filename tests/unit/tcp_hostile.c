/* tcp_hostile.c - a peer that is who it says, and then breaks the rules of packets, lanes and acknowledgements, one
 * rule at a time: its connection ends with an error that names it, nothing that it was not granted changes, nothing
 * completes that is not complete, and another peer goes on. Rank 0 is ours, 1 the one that lies, 2 the honest one; both
 * are this program. */
#include "tests/unit/tcp_world.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cmocka.h>

#define BYTES ((size_t)256)
#define MARGIN ((size_t)64)
#define LARGE ((size_t)50000)
#define HUGE_LENGTH (UINT64_C(1) << 63)
#define CONTEXT 4
#define FREED 400 /* context of a communicator that was */

/* Memory of rank 0 that peers may write to, and around it what none may. */
struct block {
    char before[MARGIN], data[BYTES], after[MARGIN];
};

static struct tcp_world world;
static struct block window, club; /* of all ranks, of ranks 0 and 2 */
static struct block buffer[3], got[3]; /* by peer: of an announced receive with tag 1, and of a get */
static char large[LARGE], arriving[LARGE], honest[8];
static struct ncclx_request *receive[3], *sent[3], *arrives, *from_honest;
static struct pml_order *order[3];
static uint64_t window_key, club_key, get_key[3];
static int signals;

/* ---- What the peer says ---- */

static uint64_t name_of(const struct ncclx_request *request)
{
    return ((const struct pml_request *)request)->name;
}

static uint64_t address_of(const void *memory)
{
    return (uint64_t)(uintptr_t)memory;
}

static void packet_of(int rank, const struct pml_packet *packet, size_t bytes, size_t there)
{
    static const char payload[TCP_PAYLOAD_MAX] = {1};
    struct pml_packet sent_packet;
    memcpy((void *)&sent_packet, (const void *)packet, sizeof sent_packet);
    sent_packet.pass = (uint32_t)bytes;
    if (bytes) sent_packet.inline_bytes = PACKET_HAS_PAYLOAD;
    tcp_world_say(world.peer[rank].control, &sent_packet, sizeof sent_packet);
    if (there) tcp_world_say(world.peer[rank].control, payload, there);
}

#define PACKET(...) packet_of(1, &(struct pml_packet){__VA_ARGS__}, 0, 0)
#define PACKET_WITH(bytes, ...) packet_of(1, &(struct pml_packet){__VA_ARGS__}, bytes, bytes)

static void notice(unsigned what, uint64_t context, uint64_t bound, uint64_t fast_bound)
{
    PACKET(.kind = PROTOCOL_LANES, .count = (uint16_t)what, .inline_bytes = 16, .context = context,
           .u.word = {bound, fast_bound});
}

static void frame_of(int rank, const struct tcp_frame *frame, size_t there)
{
    static const char data[4096] = {1};
    tcp_world_say(world.peer[rank].to[0], frame, sizeof *frame);
    if (there) tcp_world_say(world.peer[rank].to[0], data, there);
}

static void write_to(uint64_t key, uint64_t to, uint32_t bytes)
{
    frame_of(1, &(struct tcp_frame){.kind = TCP_FRAME_WRITE, .bytes = bytes, .to = to, .key = key},
             bytes < 4096 ? bytes : 4096);
}

static void immediate(uint32_t value)
{
    frame_of(1, &(struct tcp_frame){.kind = TCP_FRAME_WRITE, .flags = TCP_HAS_IMMEDIATE, .immediate = value}, 0);
}

static void acknowledge(uint32_t life, uint64_t completed, uint64_t receives)
{
    const struct tcp_ack ack = {.kind = TCP_FRAME_ACK, .life = life, .completed = completed, .receives = receives};
    tcp_world_say(world.peer[1].from[0], &ack, sizeof ack);
}

static void look(void)
{
    tcp_world_look(&world, 1);
}

/* ---- The rules it breaks, mostly a line each ---- */
/* clang-format off */

/* ---- Writes ---- */

static void key_of_nothing(void) { write_to(window_key + 100, address_of(window.data), 8); }
static void key_of_old(void) { write_to(window_key + (UINT64_C(1) << 32), address_of(window.data), 8); }
static void key_of_another_s_receive(void) { write_to(pml_receive_key(name_of(receive[2])), address_of(buffer[2].data), 8); }
static void key_of_another_s_get(void) { write_to(get_key[2], address_of(got[2].data), 8); }
static void key_of_a_window_of_others(void) { write_to(club_key, address_of(club.data), 8); }
static void key_of_a_send(void) { write_to(pml_receive_key(name_of(sent[1])), address_of(large), 8); }
static void key_of_what_was_dropped(void)
{
    lanes_range_drop(world.world.rt[0].pml, window_key);
    write_to(window_key, address_of(window.data), 8);
}
static void before_window(void) { write_to(window_key, address_of(window.data) - 1, 8); }
static void behind_window(void) { write_to(window_key, address_of(window.after), 1); }
static void across_its_end(void) { write_to(window_key, address_of(window.after) - 7, 8); }
static void wraps_around(void) { write_to(window_key, UINT64_MAX - 3, 8); }
static void wraps_into(void) { write_to(window_key, address_of(window.data) - HUGE_LENGTH, 8); }
static void longest(void) { write_to(window_key, address_of(window.data), UINT32_MAX); }
static void before_receive(void) { write_to(pml_receive_key(name_of(receive[1])), address_of(buffer[1].data) - 1, 8); }
static void past_receive(void) { write_to(pml_receive_key(name_of(receive[1])), address_of(buffer[1].data) + 1, BYTES); }
static void receive_wraps(void) { write_to(pml_receive_key(name_of(receive[1])), 0, 8); }
static void past_get(void) { write_to(get_key[1], address_of(got[1].after) - 1, 2); }
static void nothing_at_all(void) { write_to(window_key, address_of(window.data), 0); }
static void unknown_frame(void) { frame_of(1, &(struct tcp_frame){.kind = TCP_FRAME_WRITE + 1, .bytes = 8, .to = address_of(window.data), .key = window_key}, 8); }
static void unknown_flags(void) { frame_of(1, &(struct tcp_frame){.kind = TCP_FRAME_WRITE, .flags = 2, .bytes = 8, .to = address_of(window.data), .key = window_key}, 8); }

/* The window ends between two pieces of a write to it. */
static void goes_on_after_the_end(void)
{
    const struct tcp_frame frame = {.kind = TCP_FRAME_WRITE, .bytes = BYTES, .to = address_of(window.data), .key = window_key};
    frame_of(1, &frame, 0);
    look();
    assert_false(world.peer[1].channel->lost);
    lanes_range_drop(world.world.rt[0].pml, window_key);
    tcp_world_say(world.peer[1].to[0], large, BYTES);
}

/* ---- Numbers and notices ---- */

static void number_twice(void) { immediate(1); immediate(1); }
static void number_outside(void) { immediate(lanes_offer.window); }
static void number_old(void) { immediate(0); immediate(0); }
static void number_reserved(void) { immediate(UINT32_C(1) << 24); }
static void fast_number_early(void) { immediate(DQPLB_FAST | 1); }
static void bound_never(void) { notice(LANES_SIGNAL, 1, HUGE_LENGTH, 0); }
static void fast_bound_never(void) { notice(LANES_SIGNAL, 1, 0, UINT64_MAX); }
static void notices_without_end(void)
{
    for (unsigned i = 0; i <= lanes_offer.notices; i++) notice(LANES_SIGNAL, 1, 1, 0);
}

/* ---- Receives ---- */

static void landed_unannounced(void) { notice(LANES_LANDED, name_of(receive[1]), 0, 0); } /* announced, but no message has taken it */
static void landed_unknown(void) { notice(LANES_LANDED, 12345, 0, 0); }
static void landed_another_s(void) { notice(LANES_LANDED, name_of(receive[2]), 0, 0); }
static void landed_a_send(void) { notice(LANES_LANDED, name_of(sent[1]), 0, 0); }
static void fill(uint64_t bytes, bool follows)
{
    PACKET(.kind = PROTOCOL_FILLED, .context = CONTEXT, .source = 1, .tag = 1, .inline_bytes = 24, .u.word = {name_of(receive[1]), bytes, follows});
}
static void landed_twice(void)
{
    fill(BYTES, true);
    notice(LANES_LANDED, name_of(receive[1]), 0, 0);
    look();
    assert_true(receive[1]->complete);
    notice(LANES_LANDED, name_of(receive[1]), 0, 0);
}
static void landed_in_a_stream(void)
{
    fill(BYTES, true);
    PACKET_WITH(8, .kind = PROTOCOL_DATA, .context = name_of(receive[1]));
    notice(LANES_LANDED, name_of(receive[1]), 0, 0);
}
/* The notice waits for a number, which comes on a lane while the message comes on the socket for packets. */
static void landed_while_arriving(void)
{
    notice(LANES_LANDED, name_of(arrives), 1, 0);
    packet_of(1, &(struct pml_packet){.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 2}, LARGE, 1000);
    look();
    assert_false(world.peer[1].channel->lost);
    immediate(0);
}
static void writes_while_arriving(void)
{
    packet_of(1, &(struct pml_packet){.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 2}, LARGE, 1000);
    look();
    write_to(pml_receive_key(name_of(arrives)), address_of(arriving), 8);
}
static void filled_too_long(void) { fill(HUGE_LENGTH, true); }
static void filled_twice(void) { fill(BYTES, true); fill(BYTES, true); }
static void filled_another_s(void) { PACKET(.kind = PROTOCOL_FILLED, .context = CONTEXT, .source = 1, .tag = 1, .inline_bytes = 24, .u.word = {name_of(receive[2]), 8, 1}); }
static void filled_nowhere(void) { PACKET(.kind = PROTOCOL_FILLED, .context = FREED + 4, .source = 1, .tag = 1, .inline_bytes = 24, .u.word = {name_of(receive[1]), 8, 1}); }
static void data_unasked(void) { PACKET_WITH(8, .kind = PROTOCOL_DATA, .context = name_of(receive[1])); }
static void data_of_another(void) { PACKET_WITH(8, .kind = PROTOCOL_DATA, .context = name_of(receive[2])); }
static void data_elsewhere(void) { fill(BYTES, true); PACKET_WITH(8, .kind = PROTOCOL_DATA, .context = name_of(receive[1]), .u.word[0] = UINT64_MAX - 7); }
static void data_too_long(void) { fill(8, true); PACKET_WITH(9, .kind = PROTOCOL_DATA, .context = name_of(receive[1])); }
static void data_of_nothing(void) { fill(8, true); PACKET(.kind = PROTOCOL_DATA, .context = name_of(receive[1]), .inline_bytes = PACKET_HAS_PAYLOAD); }

/* ---- Messages, sends ---- */

static void in_another_s_name(void) { PACKET(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 2, .tag = 1, .inline_bytes = 8); }
static void in_nobody_s_name(void) { PACKET(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 3, .tag = 1, .inline_bytes = 8); }
static void in_a_negative_name(void) { PACKET(.kind = PROTOCOL_REQUEST, .context = CONTEXT, .source = INT32_MIN, .tag = 1, .inline_bytes = 24); }
static void announces_as_another(void) { PACKET(.kind = PROTOCOL_ANNOUNCE, .context = CONTEXT, .source = 2, .tag = 1, .inline_bytes = 32); }
static void eager_too_long(void) { packet_of(1, &(struct pml_packet){.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 9}, TCP_EAGER_MAX + 1, 0); }
static void lent(uint8_t kind, uint64_t bytes)
{
    packet_of(1, &(struct pml_packet){.kind = kind, .context = CONTEXT, .source = 1, .tag = 9, .u.word = {bytes, TCP_LONG_MAX}}, TCP_FOLLOWS_LONG, 0);
}
static void long_too_long(void) { lent(PROTOCOL_EAGER, TCP_LONG_MAX + 1); }
static void long_too_short(void) { lent(PROTOCOL_EAGER, TCP_EAGER_MAX); }
static void long_of_another_kind(void) { lent(PROTOCOL_REQUEST, TCP_LONG_MAX); }
static void long_in_another_s_name(void) { packet_of(1, &(struct pml_packet){.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 2, .tag = 9, .u.word = {TCP_LONG_MAX}}, TCP_FOLLOWS_LONG, 0); }
static void request_with_all(void) { PACKET_WITH(64, .kind = PROTOCOL_REQUEST, .context = CONTEXT, .source = 1, .tag = 9, .u.word = {1, 64}); }
static void request_with_more(void) { PACKET_WITH(64, .kind = PROTOCOL_REQUEST, .context = CONTEXT, .source = 1, .tag = 9, .u.word = {1, 8}); }
static void active_too_long(void) { packet_of(1, &(struct pml_packet){.kind = PROTOCOL_ACTIVE}, TCP_PAYLOAD_MAX + 1, 0); }
static void piece_too_long(void) { fill(BYTES, true); packet_of(1, &(struct pml_packet){.kind = PROTOCOL_DATA, .context = name_of(receive[1])}, TCP_PIECE_MAX + 1, 0); }
static void inline_too_long(void) { PACKET(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 9, .inline_bytes = PACKET_INLINE_MAX + 1); }
static void payload_of_nothing(void) { PACKET(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 9, .inline_bytes = PACKET_HAS_PAYLOAD); }
static void finishes_unknown(void) { PACKET(.kind = PROTOCOL_FINISHED, .context = UINT64_MAX); }
static void finishes_another_s(void) { PACKET(.kind = PROTOCOL_FINISHED, .context = name_of(sent[2])); }
static void finishes_a_receive(void) { PACKET(.kind = PROTOCOL_FINISHED, .context = name_of(receive[1])); }
static void clears_another_s(void) { PACKET(.kind = PROTOCOL_CLEAR, .context = name_of(sent[2]), .inline_bytes = 16, .u.word = {1, 4096}); }
static void clears_twice(void)
{
    for (int i = 0; i < 2; i++) PACKET(.kind = PROTOCOL_CLEAR, .context = name_of(sent[1]), .inline_bytes = 16, .u.word = {1, 4096});
}
static void active_unknown(void) { PACKET(.kind = PROTOCOL_ACTIVE, .tag = AM_IDS, .inline_bytes = 8); }
static void active_without_header(void) { PACKET(.kind = PROTOCOL_ACTIVE, .tag = 3, .count = 9, .inline_bytes = 8); }
static void unknown_kind(void) { PACKET(.kind = 200); }

/* ---- What lanes say on the socket for packets ---- */

static void word_of_lanes(unsigned what, uint64_t first, uint64_t second)
{
    PACKET(.kind = PROTOCOL_LANES, .count = (uint16_t)what, .inline_bytes = 32, .u.word = {first, second});
}
static void lane_of_its_own(void)
{
    int theirs = -1;
    tcp_lane_accepted(world.peer[1].channel, tcp_lane_tag(TCP_WORLD_LANES, 1), tcp_world_pair(&theirs));
    close(theirs);
}
static void lanes_unknown(void) { word_of_lanes(99, 0, 0); }
static void answers_unasked(void) { notice(LANES_ANSWERED, get_key[1] + 1, 0, 0); }
static void answers_another_s(void) { notice(LANES_ANSWERED, get_key[2], 0, 0); }
static void answers_twice(void) { notice(LANES_ANSWERED, get_key[1], 0, 0); notice(LANES_ANSWERED, get_key[1], 0, 0); }
static void progress_too_far(void) { word_of_lanes(LANES_PROGRESS, HUGE_LENGTH, 0); }
static void applied_too_many(void) { word_of_lanes(LANES_PROGRESS, 0, 1000); }
static void closes_no_lane(void) { word_of_lanes(LANES_CLOSE, DQPLB_MAX_LANES, 1); }
static void closes_another_life(void) { word_of_lanes(LANES_CLOSE, 0, 7); }
static void closes_a_life_that_wraps(void) { word_of_lanes(LANES_CLOSE, 0, (UINT64_C(1) << 32) + 1); }
static void reports_unasked(void) { PACKET_WITH(512, .kind = PROTOCOL_LANES, .count = LANES_REPORT, .u.word = {0, 1}); }
static void slots_unasked(void) { word_of_lanes(LANES_SLOTS, 1, 4096); }
static void clears_no_chunk(void) { word_of_lanes(LANES_CLEARED, 1, 0); }
static void chunk_without_slots(void) { notice(LANES_CHUNK, name_of(receive[1]), 0, 0); }
static void asks_for_slots_twice(void) { word_of_lanes(LANES_COPY, 0, 0); word_of_lanes(LANES_COPY, 0, 0); }
static void gets(uint64_t key, uint64_t address, uint64_t bytes)
{
    PACKET(.kind = PROTOCOL_LANES, .count = LANES_GET, .inline_bytes = 32, .context = 77, .u.word = {key, address, bytes, 4096});
}
static void gets_without_key(void) { gets(12345, address_of(window.data), 8); }
static void gets_from_a_window_of_others(void) { gets(club_key, address_of(club.data), 8); }
static void gets_past_the_end(void) { gets(window_key, address_of(window.data) + 1, BYTES); }
static void gets_what_wraps(void) { gets(window_key, address_of(window.data), UINT64_MAX); }
static void gets_half_of_all(void) { gets(window_key, address_of(window.data), HUGE_LENGTH); }
static void gets_nothing(void) { gets(window_key, address_of(window.data), 0); }
static void gets_from_a_get(void) { gets(get_key[1], address_of(got[1].data), 8); }
static void gets_from_a_receive(void) { gets(pml_receive_key(name_of(receive[1])), address_of(buffer[1].data), 8); }

/* ---- Acknowledgements ---- */

static void put_large(void)
{
    const struct pml_signal signal = {.window = 4, .value = 1};
    assert_int_equal(pml_order_put(order[1], 0, large, LARGE, &signal), 0);
    assert_non_null(world.peer[1].channel->lanes->out[0]);
}
/* Its socket has room for none of these frames, so that it can have got none. */
static void acknowledges_what_was_not_sent(void)
{
    struct tcp_out *lane;
    const struct pml_signal signal = {.window = 4, .value = 1};
    assert_int_equal(pml_order_put(order[1], 0, large, 8, &signal), 0);
    lane = world.peer[1].channel->lanes->out[0];
    while (send(lane->fd, large, 1000, MSG_DONTWAIT | MSG_NOSIGNAL) > 0) continue;
    assert_int_equal(pml_order_put(order[1], 0, large, 16, &signal), 0);
    assert_true(lane->head != lane->tail);
    acknowledge(1, 2, 0);
}
static void acknowledges_all_there_is(void) { put_large(); acknowledge(1, UINT64_MAX, 0); }
static void acknowledges_half_of_all(void) { put_large(); acknowledge(1, HUGE_LENGTH, 0); }
static void acknowledges_another_life(void) { put_large(); acknowledge(2, 1, 0); }
static void acknowledges_backwards(void)
{
    put_large();
    acknowledge(1, 1, 0);
    look();
    assert_false(world.peer[1].channel->lost);
    acknowledge(1, 0, 0);
}
static void credits_overflow(void) { put_large(); acknowledge(1, 0, UINT64_MAX); }
static void credits_too_many(void) { put_large(); acknowledge(1, 0, 100000); }
static void own(unsigned kind, uint64_t come) { PACKET(.kind = (uint8_t)kind, .inline_bytes = 8, .context = world.peer[1].channel->meet.name, .u.word = {come}); }
static void packets_never_sent(void) { own(TCP_ACK, HUGE_LENGTH); }
static void packets_never_sent_in_short(void)
{
    struct pml_packet packet = {.kind = PROTOCOL_RESUME, .pass = 4000U << TCP_FOLLOWS_BITS};
    tcp_world_say(world.peer[1].control, &packet, sizeof packet);
}
static void rest_with_what_was_never_sent(void) { own(TCP_REST, UINT64_MAX); }
static void own_word_is_short(void) { PACKET(.kind = TCP_ACK, .inline_bytes = 4); }

/* ---- All of them ---- */

struct attack {
    const char *name;
    void (*run)(void);
    const char *why; /* some words of it */
};

#define SENSE "makes no sense"
#define WITHOUT_KEY "with a key that is not valid"
#define NOT_ITS_KEY "with a key that is not its own"
#define OUTSIDE "which is not in the memory of its key"
#define NO_RECEIVE "which is not in a receive that waits for it"
#define NOT_ITS "it fills a receive that is not its own"
#define ATTACK(function, why) {#function, function, why}
static const struct attack attacks[] = {
    ATTACK(key_of_nothing, WITHOUT_KEY), ATTACK(key_of_old, WITHOUT_KEY), ATTACK(key_of_another_s_receive, NO_RECEIVE),
    ATTACK(key_of_another_s_get, NOT_ITS_KEY), ATTACK(key_of_a_window_of_others, NOT_ITS_KEY), ATTACK(key_of_a_send, NO_RECEIVE), ATTACK(key_of_what_was_dropped, WITHOUT_KEY),
    ATTACK(before_window, OUTSIDE), ATTACK(behind_window, OUTSIDE), ATTACK(across_its_end, OUTSIDE), ATTACK(wraps_around, OUTSIDE),
    ATTACK(wraps_into, OUTSIDE), ATTACK(longest, OUTSIDE), ATTACK(before_receive, NO_RECEIVE), ATTACK(past_receive, NO_RECEIVE),
    ATTACK(receive_wraps, NO_RECEIVE), ATTACK(past_get, OUTSIDE), ATTACK(nothing_at_all, SENSE), ATTACK(unknown_frame, SENSE),
    ATTACK(unknown_flags, SENSE), ATTACK(goes_on_after_the_end, WITHOUT_KEY),
    ATTACK(number_twice, "has come twice"), ATTACK(number_outside, "outside the window"), ATTACK(number_old, "outside the window"),
    ATTACK(number_reserved, "an immediate that cannot be"), ATTACK(fast_number_early, "out of order"),
    ATTACK(bound_never, "bounds cannot be"), ATTACK(fast_bound_never, "bounds cannot be"), ATTACK(notices_without_end, "more notices"),
    ATTACK(landed_unannounced, NOT_ITS), ATTACK(landed_unknown, NOT_ITS), ATTACK(landed_another_s, NOT_ITS), ATTACK(landed_a_send, NOT_ITS),
    ATTACK(landed_twice, NOT_ITS), ATTACK(landed_in_a_stream, NOT_ITS), ATTACK(landed_while_arriving, NOT_ITS),
    ATTACK(writes_while_arriving, NO_RECEIVE), ATTACK(filled_too_long, "not announced"), ATTACK(filled_twice, "not announced"),
    ATTACK(filled_another_s, "not announced"), ATTACK(filled_nowhere, "that does not exist"), ATTACK(data_unasked, "no receive waits for"),
    ATTACK(data_of_another, "no receive waits for"), ATTACK(data_elsewhere, "no receive waits for"),
    ATTACK(data_too_long, "no receive waits for"), ATTACK(data_of_nothing, SENSE),
    ATTACK(in_another_s_name, "name of another"), ATTACK(in_nobody_s_name, "name of another"), ATTACK(in_a_negative_name, "name of another"),
    ATTACK(announces_as_another, "name of another"), ATTACK(eager_too_long, SENSE), ATTACK(long_too_long, SENSE),
    ATTACK(long_too_short, SENSE), ATTACK(long_of_another_kind, SENSE), ATTACK(long_in_another_s_name, "name of another"),
    ATTACK(request_with_all, "sent with the question"), ATTACK(request_with_more, "sent with the question"), ATTACK(active_too_long, SENSE), ATTACK(piece_too_long, SENSE),
    ATTACK(inline_too_long, SENSE), ATTACK(payload_of_nothing, SENSE), ATTACK(finishes_unknown, "it ended a send"),
    ATTACK(finishes_another_s, "it ended a send"), ATTACK(finishes_a_receive, "it ended a send"), ATTACK(clears_another_s, "it cleared a send"),
    ATTACK(clears_twice, "it cleared a send"), ATTACK(active_unknown, "active message"), ATTACK(active_without_header, "active message"),
    ATTACK(unknown_kind, "no known kind"),
    ATTACK(lane_of_its_own, "was not offered"), ATTACK(lanes_unknown, "not known here"), ATTACK(answers_unasked, "nobody made"), ATTACK(answers_another_s, "nobody made"),
    ATTACK(answers_twice, "nobody made"), ATTACK(progress_too_far, "farther than what was sent"),
    ATTACK(applied_too_many, "farther than what was sent"), ATTACK(closes_no_lane, "not there"), ATTACK(closes_another_life, "not there"),
    ATTACK(closes_a_life_that_wraps, "not there"), ATTACK(reports_unasked, "nobody asked for"), ATTACK(slots_unasked, "nobody asked for"),
    ATTACK(clears_no_chunk, "not got"), ATTACK(chunk_without_slots, "no such slot"), ATTACK(asks_for_slots_twice, "twice"),
    ATTACK(gets_without_key, "may not"), ATTACK(gets_from_a_window_of_others, "may not"), ATTACK(gets_past_the_end, "may not"), ATTACK(gets_what_wraps, "may not"),
    ATTACK(gets_half_of_all, "may not"), ATTACK(gets_nothing, "may not"), ATTACK(gets_from_a_get, "may not"),
    ATTACK(gets_from_a_receive, "may not"),
    ATTACK(acknowledges_what_was_not_sent, "acknowledges makes no sense"), ATTACK(acknowledges_all_there_is, "acknowledges makes no sense"),
    ATTACK(acknowledges_half_of_all, "acknowledges makes no sense"), ATTACK(acknowledges_another_life, "acknowledges makes no sense"),
    ATTACK(acknowledges_backwards, "acknowledges makes no sense"), ATTACK(credits_overflow, "credits that cannot be"),
    ATTACK(credits_too_many, "credits that cannot be"), ATTACK(packets_never_sent, SENSE), ATTACK(packets_never_sent_in_short, SENSE),
    ATTACK(rest_with_what_was_never_sent, SENSE), ATTACK(own_word_is_short, SENSE),
};
/* clang-format on */
#define ATTACKS (sizeof attacks / sizeof attacks[0])

/* ---- Before and after ---- */

static void count_signal(struct ncclx_rt *rt, int source, const struct pml_signal *signal, void *arg)
{
    (void)rt, (void)source, (void)signal, (void)arg;
    signals++;
}

static void no_message(struct ncclx_rt *rt, int source, const void *header, size_t header_bytes, const void *data,
                       size_t bytes, void *arg)
{
    (void)rt, (void)source, (void)header, (void)header_bytes, (void)data, (void)bytes, (void)arg;
    abort();
}

static void nothing_changed(void *arg)
{
    (void)arg;
}

static void begin_peer(int rank)
{
    struct ncclx_comm *comm = &world.world.comm[0];
    const struct pml_region region = {
        .access = PML_ACCESS_LANES, .address = 4096, .bytes = LARGE, .peer = rank, .key = 5};
    struct pml_region mutable_region = region;
    tcp_world_connect(&world, rank);
    assert_int_equal(pml_irecv(comm, PML_USER, buffer[rank].data, BYTES, rank, 1, &receive[rank]), 0);
    assert_int_equal(pml_isend(comm, PML_USER, large, LARGE, rank, 1, &sent[rank]), 0);
    assert_int_equal(pml_order_make(&world.world.rt[0], &mutable_region, nothing_changed, NULL, &order[rank]), 0);
    assert_int_equal(pml_order_get(order[rank], 0, got[rank].data, BYTES), 0);
    get_key[rank] = world.peer[rank].connection->lanes->first_get->name;
    lanes_agreed(world.peer[rank].connection, &lanes_offer);
    tcp_world_accept(&world, rank, 0, 1);
    tcp_world_look(&world, rank);
}

static int begin(void **state)
{
    static char *environment[] = {"NCCLX_LOG=none", "NCCLX_DQPLB_NODE=1:4:1000", NULL};
    (void)state;
    static const int members[] = {2, 0};
    memset(&window, 0x5a, sizeof window);
    memset(&club, 0x5a, sizeof club);
    memset(buffer, 0x5a, sizeof buffer);
    memset(got, 0x5a, sizeof got);
    memset(arriving, 0x5a, sizeof arriving);
    memset(honest, 0, sizeof honest);
    signals = 0;
    tcp_world_open(&world, 3, environment);
    struct ncclx_rt *rt = &world.world.rt[0];
    pml_signal_register(rt, count_signal, NULL);
    if (pml_am_register(rt, 3, no_message, NULL)) return -1;
    const struct ncclx_comm two = {.rt = rt, .rank = 1, .size = 2, .world = members};
    if (lanes_range_add(&world.world.comm[0], address_of(window.data), BYTES, &window_key)) return -1;
    if (lanes_range_add(&two, address_of(club.data), BYTES, &club_key)) return -1;
    for (int rank = 1; rank <= 2; rank++) begin_peer(rank);
    assert_int_equal(pml_irecv(&world.world.comm[0], PML_USER, arriving, LARGE, 1, 2, &arrives), 0);
    assert_int_equal(pml_irecv(&world.world.comm[0], PML_USER, honest, sizeof honest, 2, 3, &from_honest), 0);
    return 0;
}

static int end(void **state)
{
    (void)state;
    for (int rank = 1; rank <= 2; rank++) pml_order_leave(order[rank]);
    tcp_world_close(&world);
    return 0;
}

static void whole(const struct block *block)
{
    for (size_t i = 0; i < MARGIN; i++) assert_true(block->before[i] == 0x5a && block->after[i] == 0x5a);
}

static void untouched(const struct block *block)
{
    whole(block);
    for (size_t i = 0; i < BYTES; i++) assert_true(block->data[i] == 0x5a);
}

/* A message and a put of the honest peer come through. */
static void the_other_goes_on(void)
{
    const uint64_t word = UINT64_C(0x0123456789abcdef);
    struct pml_packet packet = {.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 2, .tag = 3, .inline_bytes = 8};
    const struct tcp_frame frame = {
        .kind = TCP_FRAME_WRITE, .bytes = 8, .to = address_of(got[2].data), .key = get_key[2]};
    memcpy(packet.u.data, &word, sizeof word);
    tcp_world_say(world.peer[2].control, &packet, sizeof packet);
    tcp_world_say(world.peer[2].to[0], &frame, sizeof frame);
    tcp_world_say(world.peer[2].to[0], &word, sizeof word);
    tcp_world_look(&world, 2);
    assert_false(world.peer[2].channel->lost);
    assert_true(from_honest->complete);
    assert_int_equal(from_honest->status.error, 0);
    assert_memory_equal(honest, &word, sizeof word);
    assert_memory_equal(got[2].data, &word, sizeof word);
    assert_false(receive[2]->complete || sent[2]->complete);
}

static void attack(void **state)
{
    const struct attack *attack = *state; /* the test's initial one */
    const struct ncclx_rt *rt = &world.world.rt[0];
    untouched(&buffer[2]);
    attack->run();
    /* What follows in the same piece is not believed, either. */
    PACKET(.kind = PROTOCOL_EAGER, .context = CONTEXT, .source = 1, .tag = 50, .inline_bytes = 8);
    look();
    look();
    assert_true(world.peer[1].channel->lost);
    assert_int_equal(rt->lost_peer, 1 + 1);
    if (!strstr(rt->lost_why, attack->why)) fail_msg("%s: %s", attack->name, rt->lost_why);
    assert_false(arrives->complete);
    assert_false(sent[1]->complete);
    assert_int_equal(signals, 0);
    whole(&window);
    untouched(&club);
    untouched(&buffer[2]);
    untouched(&got[2]);
    for (int i = 1; i <= 2; i++) whole(&buffer[i]);
    for (int i = 1; i <= 2; i++) whole(&got[i]);
    the_other_goes_on();
}

/* Who is told no key has to guess 32 bits of it. */
static void keys_are_no_row(void **state)
{
    (void)state;
    uint64_t key[3];
    for (int i = 0; i < 3; i++) {
        assert_int_equal(lanes_range_add(&world.world.comm[0], address_of(window.data), BYTES, &key[i]), 0);
        assert_true(key[i] >> 32 && !(key[i] & PML_RECEIVE_KEY));
        lanes_range_drop(world.world.rt[0].pml, key[i]);
    }
    assert_int_equal((uint32_t)key[1], (uint32_t)key[0]);
    assert_true(key[1] != key[0] && key[2] != key[1] && key[2] != key[0]);
    assert_true(key[2] - key[1] != key[1] - key[0]);
}

static void members_may_write(void **state)
{
    (void)state;
    const uint64_t word = UINT64_C(0x0123456789abcdef);
    const struct tcp_frame frame = {.kind = TCP_FRAME_WRITE, .bytes = 8, .to = address_of(club.data), .key = club_key};
    tcp_world_say(world.peer[2].to[0], &frame, sizeof frame);
    tcp_world_say(world.peer[2].to[0], &word, sizeof word);
    tcp_world_look(&world, 2);
    assert_false(world.peer[2].channel->lost);
    assert_memory_equal(club.data, &word, sizeof word);
    whole(&club);
}

/* What looks odd and is allowed: it hurts nobody but its sender. */

static void late_fill_is_dropped(void **state)
{
    (void)state;
    struct ncclx_comm comm = {.rt = &world.world.rt[0], .context = FREED, .rank = 0, .size = 3, .name = "freed"};
    assert_int_equal(pml_comm_attach(&comm), 0);
    pml_comm_detach(&comm);
    PACKET(.kind = PROTOCOL_FILLED, .context = FREED, .source = 1, .tag = 1, .inline_bytes = 24,
           .u.word = {12345, 8, 0});
    look();
    assert_false(world.peer[1].channel->lost);
    the_other_goes_on();
}

static void length_without_data_is_a_truncation(void **state)
{
    (void)state;
    fill(HUGE_LENGTH, false);
    look();
    assert_false(world.peer[1].channel->lost);
    assert_true(receive[1]->complete);
    assert_int_equal(receive[1]->status.error, NCCLX_ERR_TRUNCATE);
    untouched(&buffer[1]);
    the_other_goes_on();
}

/* Duplicates of signals are signals: numbers and places for notices bound them. */
static void signals_are_counted(void **state)
{
    (void)state;
    for (int i = 0; i < 3; i++) notice(LANES_SIGNAL, 1, 0, 0);
    look();
    assert_false(world.peer[1].channel->lost);
    assert_int_equal(signals, 3);
}

int main(void)
{
    static struct CMUnitTest tests[ATTACKS + 5] = {
        [ATTACKS] = cmocka_unit_test_setup_teardown(late_fill_is_dropped, begin, end),
        cmocka_unit_test_setup_teardown(length_without_data_is_a_truncation, begin, end),
        cmocka_unit_test_setup_teardown(signals_are_counted, begin, end),
        cmocka_unit_test_setup_teardown(keys_are_no_row, begin, end),
        cmocka_unit_test_setup_teardown(members_may_write, begin, end),
    };
    for (size_t i = 0; i < ATTACKS; i++)
        tests[i] = (struct CMUnitTest){attacks[i].name, attack, begin, end, (void *)(uintptr_t)&attacks[i]};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
