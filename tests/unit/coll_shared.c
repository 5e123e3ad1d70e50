/* coll_shared.c - shared-memory collectives with threads as ranks: many calls in a row, so that slots are used again
 * and again, with parts of every size, against a serial reference. */
#include "coll/shared.h"
#include "tests/sim/coll_data.h"

#include <pthread.h>
#include <sched.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#define MOST_RANKS 75
#define MOST_COUNT 150
#define CANARY 0x5C
#define CANARY_BYTES 32

struct team {
    int size;
    unsigned slots;
    size_t data_bytes;
    char *memory;
    unsigned seed, calls;
    bool trees; /* nothing else */
    _Atomic unsigned arrivals; /* at barriers */
};

struct member {
    struct team *team;
    int rank;
    struct ncclx_rt rt;
    char *send, *recv; /* with canaries around */
    unsigned declined; /* calls, which must be the same on all ranks */
    unsigned barriers; /* calls */
    char failure[200];
};

/* What every rank draws alike: the call's arguments. */
static unsigned draw(unsigned *state, unsigned below)
{
    *state = *state * 1103515245u + 12345u;
    return (*state >> 16) % below;
}

static bool canaries_live(const char *buffer, size_t bytes)
{
    for (size_t i = 0; i < CANARY_BYTES; i++)
        if (buffer[-1 - (ptrdiff_t)i] != CANARY || buffer[bytes + i] != CANARY) return false;
    return true;
}

static void fill(char *to, const struct coll_world_case *c, int size, int rank, unsigned call)
{
    size_t bytes = base_type_size(coll_data_type(c));
    struct coll_layout layout;
    coll_data_input_layout(c, size, rank, &layout);
    for (int block = 0; block < layout.blocks; block++)
        for (size_t i = 0; i < layout.counts[block]; i++)
            coll_data_input(c, rank, block, i, call, to + (layout.displs[block] + i) * bytes);
    coll_layout_free(&layout);
}

static void check(struct member *member, const struct coll_world_case *c, const char *result,
                  const struct coll_layout *layout, unsigned call)
{
    size_t bytes = base_type_size(coll_data_type(c));
    if (!canaries_live(result, layout->extent * bytes))
        snprintf(member->failure, sizeof member->failure, "rank %d wrote outside its buffer in call %u", member->rank, call);
    for (int block = 0; block < layout->blocks; block++) {
        for (size_t i = 0; i < layout->counts[block]; i++) {
            char wanted[16];
            coll_data_expected(c, member->team->size, member->rank, block, i, call, wanted);
            if (!memcmp(wanted, result + (layout->displs[block] + i) * bytes, bytes)) continue;
            snprintf(member->failure, sizeof member->failure,
                     "collective %d of %zu%s, call %u: rank %d of %d, block %d, element %zu is wrong", (int)c->name, c->count,
                     c->in_place ? " in place" : "", call, member->rank, member->team->size, block, i);
            return;
        }
    }
}

static const struct {
    enum coll_name name;
    shared_fn run;
} collectives[] = {
    {COLL_BARRIER, shared_barrier},
    {COLL_BCAST, shared_bcast},
    {COLL_REDUCE, shared_reduce},
    {COLL_ALLREDUCE, shared_allreduce},
    {COLL_ALLGATHER, shared_allgather},
    {COLL_ALLTOALL, shared_alltoall},
    {COLL_REDUCE_SCATTER, shared_reduce_scatter},
    {COLL_REDUCE_SCATTER_BLOCK, shared_reduce_scatter},
    {COLL_ALLGATHERV, shared_allgatherv},
    {COLL_GATHER, shared_gather},
    {COLL_SCATTER, shared_scatter},
    {COLL_ALLTOALLV, shared_alltoallv},
    {COLL_GATHERV, shared_gatherv},
    {COLL_SCATTERV, shared_scatterv},
    {COLL_SCAN, shared_scan},
    {COLL_EXSCAN, shared_scan},
    {COLL_REDUCE, shared_single_copy},
    {COLL_ALLREDUCE, shared_single_copy},
    {COLL_ALLGATHER, shared_single_copy},
    {COLL_ALLTOALL, shared_single_copy},
    {COLL_REDUCE_SCATTER, shared_single_copy},
    {COLL_REDUCE_SCATTER_BLOCK, shared_single_copy},
    {COLL_REDUCE, shared_measured},
    {COLL_ALLREDUCE, shared_measured},
    {COLL_ALLGATHER, shared_measured},
    {COLL_ALLTOALL, shared_measured},
    {COLL_REDUCE_SCATTER, shared_measured},
    {COLL_REDUCE_SCATTER_BLOCK, shared_measured},
    {COLL_BCAST, shared_measured},
    {COLL_GATHER, shared_measured},
    {COLL_SCATTER, shared_measured},
#define TREES 2 /* at the end */
    {COLL_BARRIER, shared_barrier_tree},
    {COLL_BCAST, shared_bcast_tree},
};

/* Threads share their memory. */
static int copy(struct shared *shared, int rank, bool write, void *here, uint64_t there, size_t bytes)
{
    (void)shared, (void)rank;
    if (write) memcpy((void *)(uintptr_t)there, here, bytes);
    else memcpy(here, (void *)(uintptr_t)there, bytes);
    return NCCLX_SUCCESS;
}

static struct coll_world_case draw_case(unsigned *common, int size, bool trees, shared_fn *run)
{
    static const size_t counts[] = {1, 2, 3, 4, 16, 17, 100, MOST_COUNT};
    unsigned all = sizeof collectives / sizeof collectives[0];
    unsigned which = trees ? all - TREES + draw(common, TREES) : draw(common, all);
    struct coll_world_case c = {.name = collectives[which].name, .ordered = true};
    c.root = (int)draw(common, (unsigned)size);
    c.count = counts[draw(common, sizeof counts / sizeof counts[0])];
    c.in_place = draw(common, 2);
    c.seed = draw(common, 1000);
    *run = collectives[which].run;
    return c;
}

/* Lists are those of `send` and `recv`, which the caller keeps. Displacements are left out where blocks are in a row. */
static struct coll_problem problem_of(const struct coll_world_case *c, int size, int rank, struct coll_layout *send,
                                      struct coll_layout *recv)
{
    struct coll_problem problem = {
        .name = c->name,
        .rank = rank,
        .size = size,
        .root = c->root,
        .count = coll_data_count(c, rank),
        .element_bytes = base_type_size(coll_data_type(c)),
        .type = coll_data_type(c),
        .op = coll_data_op(c),
        .in_place = coll_data_in_place(c, rank),
    };
    problem.bytes = problem.count * problem.element_bytes;
    problem.total_bytes = coll_data_total(c, size) * problem.element_bytes;
    if (c->name == COLL_ALLTOALLV) problem.send = (struct coll_blocks){send->counts, send->displs};
    bool root = rank == c->root;
    if (c->name == COLL_SCATTERV && root) problem.send = (struct coll_blocks){send->counts, send->displs};
    if (c->name == COLL_GATHERV && root) problem.recv = (struct coll_blocks){recv->counts, recv->displs};
    if (c->name == COLL_ALLTOALLV || c->name == COLL_ALLGATHERV) problem.recv = (struct coll_blocks){recv->counts, recv->displs};
    if (c->name == COLL_REDUCE_SCATTER) problem.recv = (struct coll_blocks){send->counts, NULL};
    return problem;
}

static bool may_decline(shared_fn run, enum coll_name name)
{
    if (name == COLL_ALLTOALLV) return true;
    if (run == shared_single_copy) return name == COLL_ALLTOALL;
    return run == shared_measured && (name == COLL_BCAST || name == COLL_GATHER || name == COLL_SCATTER);
}

static void one_call(struct member *member, struct shared *shared, unsigned call, unsigned *common, unsigned *private)
{
    shared_fn run;
    int size = member->team->size, rank = member->rank;
    struct coll_world_case c = draw_case(common, size, member->team->trees, &run);
    struct coll_layout send, recv;
    coll_data_layout(&c, size, rank, SIDE_RECV, &recv);
    if (c.name == COLL_REDUCE_SCATTER) coll_data_division(&c, size, &send);
    else coll_data_layout(&c, size, rank, SIDE_SEND, &send);
    struct coll_problem problem = problem_of(&c, size, rank, &send, &recv);
    bool in_recv = problem.in_place && c.name != COLL_SCATTER && c.name != COLL_SCATTERV;
    char *from = member->send + CANARY_BYTES, *to = member->recv + CANARY_BYTES;
    memset(member->recv, CANARY, 2 * CANARY_BYTES + recv.extent * problem.element_bytes);
    fill(in_recv ? to : from, &c, size, rank, call);
    for (unsigned i = draw(private, 4); i; i--) sched_yield();
    if (draw(private, 4) == 0) choice_init(&shared_pace_of(shared, &problem)->choice, SHARED_WAYS, draw(private, SHARED_WAYS)); /* of rank 0's, any */
    if (c.name == COLL_BARRIER) atomic_fetch_add(&member->team->arrivals, 1);
    int error = run(shared, &problem, from, to);
    shared_measured_end(shared);
    if (c.name == COLL_BARRIER && atomic_load(&member->team->arrivals) < ++member->barriers * (unsigned)size)
        snprintf(member->failure, sizeof member->failure, "rank %d left the barrier of call %u before all had come", rank, call);
    bool lists = run == shared_gatherv || run == shared_scatterv; /* each rank for itself leaves blocks to messages */
    if (error == SHARED_DECLINED && may_decline(run, c.name)) member->declined++;
    else if (error && !(lists && error == SHARED_DECLINED)) snprintf(member->failure, sizeof member->failure, "error %d: %s", error, base_error_detail());
    else if (!error && c.name != COLL_BARRIER) check(member, &c, to, &recv, call);
    coll_layout_free(&send);
    coll_layout_free(&recv);
}

static void *member_main(void *arg)
{
    struct member *member = arg;
    struct shared shared;
    unsigned common = member->team->seed, private = member->team->seed * 31 + (unsigned)member->rank;
    shared_prepare(&shared, &member->rt, member->team->memory, member->rank, member->team->size, member->team->slots,
                   member->team->data_bytes);
    shared.call = "test";
    shared.copy = copy;
    for (unsigned call = 0; call < member->team->calls && !member->failure[0]; call++) one_call(member, &shared, call, &common, &private);
    return NULL;
}

static void run_team(struct team team)
{
    int size = team.size;
    static struct member members[MOST_RANKS];
    pthread_t threads[MOST_RANKS];
    size_t buffer = ((size_t)size * (2 * MOST_COUNT + 1) + 16) * 16 + 2 * CANARY_BYTES;
    char *environment[] = {"NCCLX_TIMEOUT=20", NULL};
    team.memory = aligned_alloc(SHARED_PAGE, shared_bytes(size, team.slots, team.data_bytes));
    assert_non_null(team.memory);
    memset(team.memory, 0, shared_bytes(size, team.slots, team.data_bytes));
    for (int rank = 0; rank < size; rank++) {
        struct member *member = &members[rank];
        memset(member, 0, sizeof *member);
        member->team = &team;
        member->rank = rank;
        assert_int_equal(base_rt_init(&member->rt, environment), NCCLX_SUCCESS);
        member->rt.job.oversubscribed = true;
        member->rt.job.local_size = size; /* so they spread over the cores, too */
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
        if (members[rank].failure[0]) fail_msg("%s (%d ranks, slots of %zu, seed %u)", members[rank].failure, size, team.data_bytes, team.seed);
    for (int rank = 0; rank < size; rank++) assert_int_equal(members[rank].declined, members[0].declined);
}

static void test_all_in_parts(void **state)
{
    (void)state;
    for (int size = 2; size <= 9; size++) run_team((struct team){.size = size, .slots = 4, .data_bytes = 192, .seed = (unsigned)size, .calls = 400});
}

static void test_all_at_once(void **state)
{
    (void)state;
    for (int size = 2; size <= 9; size++) run_team((struct team){.size = size, .slots = 8, .data_bytes = 65536, .seed = 100u + (unsigned)size, .calls = 400});
}

/* Of one, two and three levels, complete and not. */
static void test_trees(void **state)
{
    (void)state;
    static const int sizes[] = {2, 9, 10, 17, 18, 73, 75};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        run_team((struct team){.size = sizes[i], .slots = 4, .data_bytes = 192, .seed = 200u + (unsigned)i, .calls = 200, .trees = true});
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_all_in_parts), cmocka_unit_test(test_all_at_once), cmocka_unit_test(test_trees)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
