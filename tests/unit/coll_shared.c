/* coll_shared.c - shared-memory collectives with threads as ranks: many calls in a row, so that slots are used again
 * and again, with parts of every size, against a serial reference. */
#include "coll/shared.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 9
#define MOST_COUNT 150
#define CANARY 0x5C
#define CANARY_BYTES 32
#define CALLS 400

struct line {
    int64_t a, b;
};

/* Composition of x -> a x + b: associative, not commutative. */
static void compose(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    const struct line *lower = in;
    struct line *higher = inout;
    (void)type, (void)user;
    for (size_t i = 0; i < count; i++) {
        uint64_t a = (uint64_t)higher[i].a, b = (uint64_t)higher[i].b;
        higher[i].a = (int64_t)(a * (uint64_t)lower[i].a);
        higher[i].b = (int64_t)(a * (uint64_t)lower[i].b + b);
    }
}

static struct ncclx_op compose_op = {.function = compose, .references = 1, .commutative = false};

struct team {
    int size;
    unsigned slots;
    size_t data_bytes;
    char *memory;
    unsigned seed;
};

struct member {
    struct team *team;
    int rank;
    struct ncclx_rt rt;
    char *send, *recv; /* with canaries around */
    char failure[200];
};

static struct line contribution(int rank, size_t index, unsigned call)
{
    return (struct line){(int64_t)(2 * (index + (size_t)rank * 17 + call) + 1), (int64_t)(index * 31 + (size_t)rank + call)};
}

/* What every rank draws alike: the call's arguments. */
static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

static struct line reduced(int size, size_t index, unsigned call)
{
    struct line sum = contribution(0, index, call);
    for (int rank = 1; rank < size; rank++) {
        struct line next = contribution(rank, index, call);
        compose(&sum, &next, 1, NCCLX_INT64_PAIR, NULL);
        sum = next;
    }
    return sum;
}

static struct line expected(const struct coll_problem *problem, size_t index, unsigned call)
{
    size_t count = problem->count;
    switch (problem->name) {
    case COLL_BCAST: return contribution(problem->root, index, call);
    case COLL_ALLGATHER: return contribution((int)(index / count), index % count, call);
    case COLL_ALLTOALL: return contribution((int)(index / count), (size_t)problem->rank * count + index % count, call);
    default: return reduced(problem->size, index, call);
    }
}

static bool canaries_live(const char *buffer, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if (buffer[-1 - (ptrdiff_t)i] != CANARY || buffer[bytes + i] != CANARY) return false;
    return true;
}

static void fill(struct line *to, size_t count, int rank, unsigned call)
{
    for (size_t i = 0; i < count; i++) to[i] = contribution(rank, i, call);
}

static void check(struct member *member, const struct coll_problem *problem, const struct line *result, size_t count, unsigned call)
{
    if (!canaries_live((const char *)result, count * sizeof *result))
        snprintf(member->failure, sizeof member->failure, "rank %d wrote outside its buffer in call %u", member->rank, call);
    for (size_t i = 0; i < count; i++) {
        struct line wanted = expected(problem, i, call);
        if (!memcmp(&wanted, &result[i], sizeof wanted)) continue;
        snprintf(member->failure, sizeof member->failure,
                 "collective %d of %zu, call %u: rank %d of %d, element %zu is wrong", (int)problem->name,
                 problem->count, call, member->rank, problem->size, i);
        return;
    }
}

static void one_call(struct member *member, struct shared *shared, unsigned call, unsigned *common, unsigned *private)
{
    static const shared_fn run[] = {shared_barrier, shared_bcast, shared_reduce, shared_allreduce,
                                              shared_allgather, shared_alltoall};
    static const size_t counts[] = {1, 2, 3, 4, 16, 17, 100, MOST_COUNT};
    int size = member->team->size;
    struct coll_problem problem = {.name = (enum coll_name)draw(common, sizeof run / sizeof run[0]), .rank = member->rank, .size = size};
    problem.root = (int)draw(common, (unsigned)size);
    problem.count = counts[draw(common, sizeof counts / sizeof counts[0])];
    problem.in_place = draw(common, 2);
    problem.element_bytes = sizeof(struct line);
    problem.bytes = problem.count * problem.element_bytes;
    problem.type = NCCLX_INT64_PAIR;
    problem.op = &compose_op;
    if (problem.name == COLL_REDUCE && member->rank != problem.root) problem.in_place = false;
    size_t all = (size_t)size * problem.count, given = problem.name == COLL_ALLTOALL ? all : problem.count;
    size_t taken = problem.name == COLL_ALLTOALL || problem.name == COLL_ALLGATHER ? all : problem.count;
    if (problem.name == COLL_REDUCE && member->rank != problem.root) taken = 0;
    struct line *send = (struct line *)(member->send + CANARY_BYTES), *recv = (struct line *)(member->recv + CANARY_BYTES);
    memset(member->recv, CANARY, 2 * CANARY_BYTES + taken * sizeof *recv);
    fill(send, given, member->rank, call);
    if (problem.in_place || problem.name == COLL_BCAST) {
        struct line *input = problem.name == COLL_ALLGATHER ? recv + (size_t)member->rank * problem.count : recv;
        if (problem.name != COLL_BCAST || member->rank == problem.root) fill(input, given, member->rank, call);
    }
    for (unsigned i = draw(private, 4); i; i--) sched_yield();
    int error = run[problem.name](shared, &problem, send, recv);
    if (error) snprintf(member->failure, sizeof member->failure, "error %d: %s", error, base_error_detail());
    else if (problem.name != COLL_BARRIER) check(member, &problem, recv, taken, call);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct shared shared;
    unsigned common = member->team->seed, private = member->team->seed * 31 + (unsigned)member->rank;
    shared_prepare(&shared, &member->rt, member->team->memory, member->rank, member->team->size, member->team->slots,
                   member->team->data_bytes);
    shared.call = "test";
    for (unsigned call = 0; call < CALLS && !member->failure[0]; call++) one_call(member, &shared, call, &common, &private);
    return NULL;
}

static void run_team(int size, unsigned slots, size_t data_bytes, unsigned seed)
{
    struct team team = {.size = size, .slots = slots, .data_bytes = data_bytes, .seed = seed};
    static struct member members[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    size_t buffer = (size_t)size * MOST_COUNT * sizeof(struct line) + 2 * CANARY_BYTES;
    char *environment[] = {"NCCLX_TIMEOUT=20", NULL};
    team.memory = aligned_alloc(SHARED_PAGE, shared_bytes(size, slots, data_bytes));
    assert_non_null(team.memory);
    memset(team.memory, 0, shared_bytes(size, slots, data_bytes));
    for (int rank = 0; rank < size; rank++) {
        struct member *member = &members[rank];
        memset(member, 0, sizeof *member);
        member->team = &team;
        member->rank = rank;
        assert_int_equal(base_rt_init(&member->rt, environment), NCCLX_SUCCESS);
        member->rt.job.oversubscribed = true;
        base_rt_configure(&member->rt);
        member->send = malloc(buffer);
        member->recv = malloc(buffer);
        assert_true(member->send && member->recv);
    }
    for (int rank = 0; rank < size; rank++) assert_int_equal(pthread_create(&threads[rank], NULL, member_main, &members[rank]), 0);
    for (int rank = 0; rank < size; rank++) pthread_join(threads[rank], NULL);
    free(team.memory);
    for (int rank = 0; rank < size; rank++) {
        free(members[rank].send);
        free(members[rank].recv);
        base_rt_release(&members[rank].rt);
    }
    for (int rank = 0; rank < size; rank++)
        if (members[rank].failure[0]) fail_msg("%s (%d ranks, slots of %zu, seed %u)", members[rank].failure, size, data_bytes, seed);
}

static void test_all_in_parts(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST_RANKS; size++) run_team(size, 4, 192, (unsigned)size);
}

static void test_all_at_once(void **state)
{
    (void)state;
    for (int size = 2; size <= MOST_RANKS; size++) run_team(size, 8, 65536, 100u + (unsigned)size);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_in_parts), cmocka_unit_test(test_all_at_once)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
