/* signals.c - signals PUTS [SEED]: in all, so many puts with signal go round the ranks, each rank to its right neighbour,
 * with plain puts before them, of sizes that take the fast lane, one lane of those for data, or all. Whoever hears of a signal finds
 * its data, and everything before it, in place; uses the memory for something else; and nothing writes there again before the
 * origin is told that it may. No signal is lost, none comes twice. Prints "ok RANKS" from rank 0. */
#include "tests/mp/window.h"

#define BUFFERS 8
#define PARTS 4 /* puts of a round, the last with the signal */
#define SLOTS 3 /* that count signals */
#define TAKEN SLOTS /* slot: rounds that the right neighbour is through with */
#define USED ((char)0xee)
#define MOST ((size_t)1 << 20)

struct round {
    size_t bytes[PARTS], total;
    unsigned slot;
};

static uint64_t seed;

/* splitmix64: both sides draw the same rounds */
static uint64_t draw(uint64_t *state)
{
    uint64_t z = (*state += UINT64_C(0x9e3779b97f4a7c15));
    z = (z ^ z >> 30) * UINT64_C(0xbf58476d1ce4e5b9);
    z = (z ^ z >> 27) * UINT64_C(0x94d049bb133111eb);
    return z ^ z >> 31;
}

static size_t draw_bytes(uint64_t *state)
{
    uint64_t kind = draw(state) % 1000;
    if (kind < 2) return 1 + draw(state) % (MOST / PARTS); /* several segments */
    if (kind < 20) return 16000 + draw(state) % 20000;     /* about where the fast lane's end */
    if (kind < 300) return draw(state) % 3 ? 8 : 0;
    return 1 + draw(state) % 600;
}

static struct round round_of(int origin, uint64_t number)
{
    uint64_t state = seed + number * UINT64_C(1000003) + (uint64_t)origin;
    struct round round = {.slot = (unsigned)(draw(&state) % SLOTS)};
    unsigned first = (unsigned)(draw(&state) % PARTS);
    for (unsigned i = first; i < PARTS; i++) round.total += round.bytes[i] = draw_bytes(&state);
    return round;
}

static unsigned char pattern(int origin, uint64_t number, size_t i)
{
    return (unsigned char)((uint64_t)origin * 31 + number * 7 + i + (i >> 8));
}

/* ---- Origin ---- */

static void send_round(ncclx_win_t win, char *staged, uint64_t number, int to)
{
    const struct round round = round_of(rank, number);
    const size_t place = (size_t)(number % BUFFERS) * MOST;
    char *from = staged + place;
    size_t at = 0;
    for (size_t i = 0; i < round.total; i++) from[i] = (char)pattern(rank, number, i);
    for (unsigned i = 0; i + 1 < PARTS; at += round.bytes[i++])
        if (round.bytes[i]) OK(ncclx_win_put(from + at, round.bytes[i], NCCLX_BYTE, to, place + at, win));
    OK(ncclx_win_put_signal(from + at, round.bytes[PARTS - 1], NCCLX_BYTE, to, place + at, win, round.slot, NCCLX_SIGNAL_ADD, 1));
}

/* ---- Target ---- */

static void take_round(char *memory, uint64_t number, int from, size_t *used)
{
    const struct round round = round_of(from, number);
    char *place = memory + (size_t)(number % BUFFERS) * MOST;
    size_t *before = &used[number % BUFFERS], wrong = 0;
    for (size_t i = 0; i < round.total; i++) wrong += (unsigned char)place[i] != pattern(from, number, i);
    if (wrong) fprintf(stderr, "rank %d: %zu of %zu bytes of round %llu are not in place\n", rank, wrong, round.total, (unsigned long long)number);
    CHECK(wrong == 0);
    for (size_t i = round.total; i < *before; i++) wrong += place[i] != USED;
    CHECK(wrong == 0); /* else something was written late, or twice */
    memset(place, USED, round.total);
    bool forgets = number / BUFFERS % 4 == 0; /* large ones are not looked at for ever */
    if (forgets || *before < round.total) *before = round.total;
}

/* What the rounds of an origin up to a number add to each slot. */
struct tally {
    uint64_t number, slot[SLOTS];
};

static void count_to(struct tally *tally, uint64_t number, int origin)
{
    while (tally->number < number) tally->slot[round_of(origin, ++tally->number).slot]++;
}

/* ---- Both ---- */

static void go_round(ncclx_win_t win, char *base, char *staged, uint64_t rounds)
{
    static const ncclx_compare_t compares[] = {NCCLX_CMP_GE, NCCLX_CMP_GT};
    const int right = (rank + 1) % size, left = (rank + size - 1) % size;
    struct tally least = {0}, most = {0};
    size_t used[BUFFERS] = {0}, which;
    uint64_t taken = 0, sent = 0, through = 0, seen;
    while (taken < rounds || through < rounds) {
        for (; sent < rounds && sent < through + BUFFERS; sent++) send_round(win, staged, sent + 1, right);
        const unsigned slot = taken < rounds ? round_of(left, taken + 1).slot : TAKEN;
        count_to(&least, taken < rounds ? taken + 1 : rounds, left);
        count_to(&most, taken + BUFFERS < rounds ? taken + BUFFERS : rounds, left);
        const size_t slots[] = {slot, TAKEN};
        const uint64_t values[] = {slot == TAKEN ? rounds : least.slot[slot], through};
        OK(ncclx_win_wait_signal_any(win, 2, slots, compares, values, -1, &which, &seen));
        if (which == 1 || slot == TAKEN) {
            through = seen;
            continue;
        }
        CHECK(seen <= most.slot[slot]); /* more than the origin may have sent by now: one came twice */
        take_round(base, ++taken, left, used);
        OK(ncclx_win_signal(left, win, TAKEN, NCCLX_SIGNAL_SET, taken));
    }
    OK(ncclx_win_fence(win)); /* nothing is under way any more */
    for (unsigned i = 0; i < SLOTS; i++) {
        OK(ncclx_win_wait_signal(win, i, NCCLX_CMP_GE, 0, -1, &seen));
        CHECK(seen == least.slot[i]);
    }
    for (size_t i = 0; i < BUFFERS; i++)
        for (size_t k = 0; k < used[i]; k++) CHECK(base[i * MOST + k] == USED);
}

int main(int argc, char **argv)
{
    char *base;
    OK(ncclx_init(&argc, &argv));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    CHECK(argc >= 2 && size >= 2);
    const uint64_t puts = strtoull(argv[1], NULL, 10), ranks = (uint64_t)size;
    seed = argc > 2 ? strtoull(argv[2], NULL, 10) : 1;
    char *staged = need(BUFFERS * MOST);
    ncclx_win_t win = allocate(BUFFERS * MOST, 1, SLOTS + 1, &base);
    go_round(win, base, staged, (puts + ranks - 1) / ranks);
    OK(ncclx_win_free(&win));
    free(staged);
    OK(ncclx_finalize());
    if (rank == 0) printf("ok %d\n", size);
    return 0;
}
