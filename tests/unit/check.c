/* Comparing collective calls: odd ranks anywhere, every number of ranks, hostile views, texts. Dissemination is run over a
 * table of views. */
#include "coll/check.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define MOST 70

static uint64_t state = 11;

static unsigned draw(unsigned below)
{
    state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
    return (unsigned)(state >> 33) % below;
}

static struct check_signature sample(int rank, uint64_t count)
{
    struct coll_args args = {.name = COLL_ALLREDUCE, .count = count, .type = NCCLX_FLOAT, .op = NCCLX_SUM};
    struct check_signature signature = check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS);
    signature.rank = rank;
    signature.sequence = 12;
    return signature;
}

/* As the ranks do it: a round's messages hold what was known before the round. */
static void disseminate(struct check_view *views, int size)
{
    struct check_view told[MOST];
    for (unsigned round = 0; round < check_rounds(size); round++) {
        memcpy(told, views, (size_t)size * sizeof *views);
        for (int rank = 0; rank < size; rank++) {
            int from = check_receive_from(rank, size, round);
            assert_int_equal(check_send_to(from, size, round), rank);
            assert_int_not_equal(from, rank);
            assert_true(check_valid(&told[from], size));
            check_merge(&views[rank], &told[from]);
        }
    }
}

static void all_ranks_come_to_the_same_verdict(void **unused)
{
    struct check_view views[MOST];
    uint64_t counts[MOST];
    (void)unused;
    for (int size = 2; size <= MOST; size++) {
        for (unsigned kinds = 1; kinds <= 3; kinds++) {
            int differs = 0;
            for (int rank = 0; rank < size; rank++) {
                counts[rank] = draw(8) ? 0 : draw(kinds);
                struct check_signature mine = sample(rank, counts[rank]);
                check_begin(&views[rank], &mine);
                if (!differs && counts[rank] != counts[0]) differs = rank;
            }
            disseminate(views, size);
            for (int rank = 0; rank < size; rank++) {
                assert_int_equal(views[rank].differs, differs != 0);
                assert_int_equal(views[rank].lowest.rank, 0);
                if (!differs) continue;
                assert_int_equal(views[rank].other.rank, differs);
                assert_int_equal(views[rank].other.count, counts[differs]);
            }
        }
    }
}

/* One rank alone is odd, wherever it is. */
static void one_odd_rank_is_found(void **unused)
{
    struct check_view views[MOST];
    (void)unused;
    for (int size = 2; size <= 17; size++) {
        for (int odd = 0; odd < size; odd++) {
            for (int rank = 0; rank < size; rank++) {
                struct check_signature mine = sample(rank, rank == odd);
                check_begin(&views[rank], &mine);
            }
            disseminate(views, size);
            for (int rank = 0; rank < size; rank++) {
                assert_int_equal(views[rank].differs, 1);
                assert_int_equal(views[rank].other.rank, odd ? odd : 1);
            }
        }
    }
}

/* Whoever waits for ever can name ranks with the absent one among them; its neighbour names it alone. */
static void waiting_ranks_name_the_absent_one(void **unused)
{
    (void)unused;
    for (int size = 2; size <= MOST; size++) {
        for (int absent = 0; absent < size; absent++) {
            int reached[MOST]; /* rounds that each rank has been through */
            for (int rank = 0; rank < size; rank++) reached[rank] = rank == absent ? -1 : 0;
            for (bool moved = true; moved;) {
                moved = false;
                for (int rank = 0; rank < size; rank++) {
                    if (reached[rank] < 0 || reached[rank] == (int)check_rounds(size)) continue;
                    int from = check_receive_from(rank, size, (unsigned)reached[rank]);
                    if (reached[from] < reached[rank]) continue; /* it speaks when it has been through the rounds before */
                    reached[rank]++;
                    moved = true;
                }
            }
            for (int rank = 0; rank < size; rank++) {
                if (rank == absent) continue;
                int first, count = check_missing(rank, size, (unsigned)reached[rank], &first);
                assert_true(reached[rank] < (int)check_rounds(size));
                assert_true(count >= 1 && first >= 0 && first < size);
                assert_true((absent - first + size) % size < count);
                assert_true((rank - first + size) % size >= count);
                if (rank == (absent + 1) % size) assert_true(count == 1 && first == absent);
            }
        }
    }
}

static void huge_communicators_do_not_overflow(void **unused)
{
    int from;
    (void)unused;
    assert_int_equal(check_rounds(1), 0);
    assert_int_equal(check_rounds(INT32_MAX), 31);
    assert_int_equal(check_send_to(INT32_MAX - 1, INT32_MAX, 30), (1 << 30) - 1);
    assert_int_equal(check_receive_from(0, INT32_MAX, 30), INT32_MAX - (1 << 30));
    assert_int_equal(check_missing(0, INT32_MAX, 30, &from), INT32_MAX - (1 << 30));
    assert_int_equal(from, 1);
}

static void every_part_counts(void **unused)
{
    struct check_signature a = sample(0, 5);
    (void)unused;
    for (size_t at = 0; at < sizeof a; at++) {
        struct check_signature b = a;
        ((unsigned char *)&b)[at] ^= 1;
        bool who = at / sizeof a.rank == offsetof(struct check_signature, rank) / sizeof a.rank;
        assert_int_equal(check_same(&a, &b), who);
    }
}

static void signatures_hold_what_must_agree(void **unused)
{
    struct ncclx_op own = {.commutative = true}, ordered = {.commutative = false};
    struct coll_args args = {.name = COLL_REDUCE, .count = 3, .type = NCCLX_DOUBLE, .op = &own, .root = 1,
                             .sendbuf = NCCLX_IN_PLACE};
    (void)unused;
    struct check_signature signature = check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS);
    assert_int_equal(signature.op, CHECK_OP_COMMUTATIVE);
    assert_int_equal(signature.in_place, 0); /* the root's affair */
    args.op = &ordered;
    assert_int_equal(check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS).op, CHECK_OP_ORDERED);
    args.op = (ncclx_op_t)(uintptr_t)0xdead0; /* not looked at */
    assert_int_equal(check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_ERR_OP).op, CHECK_OP_INVALID);
    args.name = COLL_BARRIER;
    signature = check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS);
    assert_true(!signature.count && !signature.type && !signature.op && !signature.root);
    const size_t counts[] = {1, 2, 3, 4}, swapped[] = {1, 3, 2, 4};
    args = (struct coll_args){.name = COLL_REDUCE_SCATTER, .recv = {counts, NULL}, .type = NCCLX_DOUBLE, .op = NCCLX_SUM};
    signature = check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS);
    assert_int_equal(signature.count, 10);
    args.recv.counts = swapped;
    struct check_signature other = check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS);
    assert_int_equal(other.count, 10);
    assert_false(check_same(&signature, &other));
    args.recv.counts = (const size_t *)(uintptr_t)8; /* not looked at */
    assert_int_equal(check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_ERR_ARG).count, 0);
    args = (struct coll_args){.name = COLL_ALLGATHER, .sendbuf = NCCLX_IN_PLACE};
    assert_int_equal(check_signature_of(&args, 4, COLL_BLOCKING, NCCLX_SUCCESS).in_place, 1);
}

static void every_call_is_known(void **unused)
{
    char text[128];
    (void)unused;
    for (int call = 0; call < COLL_CHECKED_CALLS; call++) {
        assert_true(check_known(call));
        struct check_signature signature = {.call = call};
        check_describe(&signature, text, sizeof text);
        assert_non_null(strchr(text, '('));
    }
    assert_false(check_known(-1));
    assert_false(check_known(COLL_CHECKED_CALLS));
}

static void peers_are_not_trusted(void **unused)
{
    struct check_signature first = sample(1, 5), second = sample(3, 6);
    struct check_view good, bad;
    (void)unused;
    check_begin(&good, &first);
    assert_true(check_valid(&good, 2));
    assert_false(check_valid(&good, 1));
    good.other = second;
    good.differs = 1;
    assert_true(check_valid(&good, 4));
    bad = good, bad.differs = 2;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.other.rank = 4;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.other.rank = 1;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.lowest.rank = -1;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.other.call = COLL_CHECKED_CALLS;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.lowest.call = INT32_MIN;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.lowest.error = -1;
    assert_false(check_valid(&bad, 4));
    bad = good, bad.other.error = NCCLX_ERR_LAST + 1;
    assert_false(check_valid(&bad, 4));
}

/* Valid views with any bytes in them: texts end inside their room. */
static void any_bytes_can_be_described(void **unused)
{
    char text[64];
    (void)unused;
    for (int round = 0; round < 20000; round++) {
        struct check_signature signature;
        for (size_t at = 0; at < sizeof signature; at++) ((unsigned char *)&signature)[at] = (unsigned char)draw(256);
        signature.call = (int32_t)draw(COLL_CHECKED_CALLS);
        signature.error = draw(2) ? 0 : (int32_t)draw(NCCLX_ERR_LAST + 1);
        size_t room = draw(sizeof text) + 1;
        text[room - 1] = 'x';
        check_describe(&signature, text, room);
        assert_true(strlen(text) < room);
    }
}

static void texts(void **unused)
{
    struct coll_args args = {.name = COLL_BCAST, .count = 5, .type = NCCLX_FLOAT};
    struct check_signature first = check_signature_of(&args, 4, COLL_NONBLOCKING, NCCLX_SUCCESS), second = sample(3, 5);
    struct check_view view;
    char text[512];
    (void)unused;
    first.sequence = 12;
    check_begin(&view, &first);
    struct check_view heard = {.lowest = second};
    check_merge(&view, &heard);
    check_verdict(&view, "COMM_WORLD", text, sizeof text);
    assert_string_equal(text, "rank 3 called allreduce(count 5, float, sum), rank 0 called ibcast(count 5, float, root 0) "
                              "as collective 12 on COMM_WORLD");
    args = (struct coll_args){.name = COLL_ALLTOALL, .count = 7, .type = NCCLX_BF16, .sendbuf = NCCLX_IN_PLACE};
    second = check_signature_of(&args, 4, COLL_PERSISTENT, NCCLX_ERR_BUFFER);
    check_describe(&second, text, sizeof text);
    assert_string_equal(text, "alltoall_init(count 7, bf16, in place) with wrong arguments (NCCLX_ERR_BUFFER: a null or "
                              "forbidden buffer)");
    second = (struct check_signature){.call = COLL_CALL_WIN_CREATE, .slots = 9};
    check_describe(&second, text, sizeof text);
    assert_string_equal(text, "win_create(9 signal slots)");
    assert_string_equal(check_place(&second, ""), "an unnamed communicator");
    second.call = COLL_CALL_WIN_FENCE;
    assert_string_equal(check_place(&second, ""), "a window");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(all_ranks_come_to_the_same_verdict),
        cmocka_unit_test(one_odd_rank_is_found),
        cmocka_unit_test(waiting_ranks_name_the_absent_one),
        cmocka_unit_test(huge_communicators_do_not_overflow),
        cmocka_unit_test(every_part_counts),
        cmocka_unit_test(signatures_hold_what_must_agree),
        cmocka_unit_test(every_call_is_known),
        cmocka_unit_test(peers_are_not_trusted),
        cmocka_unit_test(any_bytes_can_be_described),
        cmocka_unit_test(texts),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
