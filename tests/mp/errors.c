/* Every wrong argument gets its code, and a sentence; error handlers: return, the program's own, inherited, replaced,
 * freed. Any number of ranks. */
#include "check.h"

#include <stdint.h>
#include <string.h>

#define WORLD NCCLX_COMM_WORLD
#define HUGE_COUNT (SIZE_MAX / 4) /* overflows with any type of 8 bytes */
#define NO_TYPE ((ncclx_datatype_t)99)
#define BAD(call, code) do { FAILS(call, code); CHECK(ncclx_error_detail()[0]); } while (0)

static int rank, size;
static int value;
static int64_t wide;
static char freed_memory[64]; /* stands for a handle that is none */

static void bad_messages(void)
{
    ncclx_request_t r = NCCLX_REQUEST_NULL;
    ncclx_message_t m = (ncclx_message_t)(void *)freed_memory;
    ncclx_status_t s = {.bytes = 3};
    size_t count;
    int flag;
    BAD(ncclx_send(&value, 1, NCCLX_INT32, 0, 0, NCCLX_COMM_NULL), NCCLX_ERR_COMM);
    BAD(ncclx_send(&value, 1, NCCLX_INT32, 0, 0, (ncclx_comm_t)(void *)freed_memory), NCCLX_ERR_COMM);
    BAD(ncclx_send(&value, 1, NCCLX_INT32, size, 0, WORLD), NCCLX_ERR_RANK);
    BAD(ncclx_send(&value, 1, NCCLX_INT32, NCCLX_ANY_SOURCE, 0, WORLD), NCCLX_ERR_RANK);
    BAD(ncclx_send(&value, 1, NCCLX_INT32, 0, -1, WORLD), NCCLX_ERR_TAG);
    BAD(ncclx_send(&value, 1, NO_TYPE, 0, 0, WORLD), NCCLX_ERR_TYPE);
    BAD(ncclx_send(NULL, 1, NCCLX_INT32, 0, 0, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_send(NCCLX_IN_PLACE, 1, NCCLX_INT32, 0, 0, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_send(&wide, HUGE_COUNT, NCCLX_INT64, 0, 0, WORLD), NCCLX_ERR_COUNT);
    BAD(ncclx_send(&wide, SIZE_MAX, NCCLX_INT8, 0, 0, WORLD), NCCLX_ERR_COUNT); /* fits a size_t, no object */
    BAD(ncclx_isend(&value, 1, NCCLX_INT32, size, 0, WORLD, &r), NCCLX_ERR_RANK);
    BAD(ncclx_isend(&value, 1, NCCLX_INT32, 0, 0, WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_recv(&value, 1, NCCLX_INT32, -3, 0, WORLD, &s), NCCLX_ERR_RANK);
    BAD(ncclx_recv(&value, 1, NCCLX_INT32, size, 0, WORLD, &s), NCCLX_ERR_RANK);
    BAD(ncclx_recv(&value, 1, NCCLX_INT32, 0, -2, WORLD, &s), NCCLX_ERR_TAG);
    BAD(ncclx_recv(NULL, 1, NCCLX_INT32, 0, 0, WORLD, &s), NCCLX_ERR_BUFFER);
    BAD(ncclx_irecv(&value, 1, NO_TYPE, 0, 0, WORLD, &r), NCCLX_ERR_TYPE);
    BAD(ncclx_irecv(&value, 1, NCCLX_INT32, 0, 0, WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_sendrecv(&value, 1, &flag, 1, NCCLX_INT32, size, 0, 0, 0, WORLD, &s), NCCLX_ERR_RANK);
    BAD(ncclx_sendrecv(&value, 1, &flag, 1, NCCLX_INT32, 0, 0, size, 0, WORLD, &s), NCCLX_ERR_RANK);
    BAD(ncclx_sendrecv(&value, 1, NULL, 1, NCCLX_INT32, 0, 0, 0, 0, WORLD, &s), NCCLX_ERR_BUFFER);
    BAD(ncclx_probe(size, 0, WORLD, &s), NCCLX_ERR_RANK);
    BAD(ncclx_iprobe(0, 0, WORLD, NULL, &s), NCCLX_ERR_ARG);
    BAD(ncclx_mprobe(0, -2, WORLD, &m, &s), NCCLX_ERR_TAG);
    BAD(ncclx_improbe(0, 0, WORLD, &flag, NULL, &s), NCCLX_ERR_ARG);
    BAD(ncclx_mrecv(&value, 1, NCCLX_INT32, &m, &s), NCCLX_ERR_REQUEST);
    m = NCCLX_MESSAGE_NULL;
    BAD(ncclx_imrecv(&value, 1, NCCLX_INT32, &m, &r), NCCLX_ERR_REQUEST);
    BAD(ncclx_status_count(&s, NCCLX_INT16, &count), NCCLX_ERR_TYPE);
    CHECK(count == 1);
    BAD(ncclx_status_count(&s, NO_TYPE, &count), NCCLX_ERR_TYPE);
    BAD(ncclx_status_count(NULL, NCCLX_INT16, &count), NCCLX_ERR_ARG);
    CHECK(r == NCCLX_REQUEST_NULL);
}

static void bad_requests(void)
{
    ncclx_request_t r = NCCLX_REQUEST_NULL;
    size_t n;
    int flag;
    BAD(ncclx_wait(NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_test(&r, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_waitall(1, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_testall(1, &r, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_waitany(1, &r, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_testany(1, &r, NULL, &flag, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_waitsome(1, &r, &n, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_testsome(1, &r, NULL, &n, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_request_get_status(r, NULL, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_request_free(&r), NCCLX_ERR_REQUEST);
    BAD(ncclx_cancel(&r), NCCLX_ERR_REQUEST);
    OK(ncclx_irecv(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, 0, WORLD, &r));
    BAD(ncclx_request_free(&r), NCCLX_ERR_REQUEST); /* as any receive */
    OK(ncclx_wait(&r, NULL));
}

/* A copied handle whose request was completed is found out, and does the next operations no harm. */
static void stale_requests(void)
{
    ncclx_request_t r, copy, twice[2], next[2];
    ncclx_status_t s[2];
    int sent[2] = {10, 20}, got[2] = {0, 0}, flag;
    size_t index;
    OK(ncclx_irecv(got, 1, NCCLX_INT32, rank, 70, WORLD, &r));
    twice[0] = twice[1] = copy = r;
    OK(ncclx_send(sent, 1, NCCLX_INT32, rank, 70, WORLD));
    OK(ncclx_wait(&r, NULL));
    BAD(ncclx_request_get_status(copy, &flag, NULL), NCCLX_ERR_REQUEST);
    BAD(ncclx_cancel(&copy), NCCLX_ERR_REQUEST);
    BAD(ncclx_request_free(&copy), NCCLX_ERR_REQUEST);
    BAD(ncclx_waitany(1, twice, &index, s), NCCLX_ERR_REQUEST);
    CHECK(index == 0 && twice[0] == NCCLX_REQUEST_NULL);
    BAD(ncclx_test(&twice[1], &flag, s), NCCLX_ERR_REQUEST);
    BAD(ncclx_wait(&copy, s), NCCLX_ERR_REQUEST);
    CHECK(copy == NCCLX_REQUEST_NULL && s[0].error == NCCLX_ERR_REQUEST);
    OK(ncclx_irecv(got, 1, NCCLX_INT32, rank, 71, WORLD, &twice[0]));
    twice[1] = twice[0];
    OK(ncclx_send(sent, 1, NCCLX_INT32, rank, 71, WORLD));
    BAD(ncclx_waitall(2, twice, s), NCCLX_ERR_IN_STATUS);
    CHECK(s[0].error == NCCLX_SUCCESS && s[1].error == NCCLX_ERR_REQUEST);
    for (int i = 0; i < 2; i++) OK(ncclx_irecv(&got[i], 1, NCCLX_INT32, rank, 72 + i, WORLD, &next[i]));
    CHECK(next[0] != next[1]);
    for (int i = 0; i < 2; i++) OK(ncclx_send(&sent[i], 1, NCCLX_INT32, rank, 72 + i, WORLD));
    OK(ncclx_waitall(2, next, NULL));
    CHECK(got[0] == 10 && got[1] == 20);
}

/* Wrong on every rank alike, so that nobody waits. */
static void bad_collectives(void)
{
    ncclx_request_t r = NCCLX_REQUEST_NULL;
    int64_t *all = calloc((size_t)size * 2, sizeof *all);
    BAD(ncclx_coll_barrier(NCCLX_COMM_NULL), NCCLX_ERR_COMM);
    BAD(ncclx_coll_ibarrier(WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_coll_bcast(&value, 1, NCCLX_INT32, size, WORLD), NCCLX_ERR_ROOT);
    BAD(ncclx_coll_bcast(&value, 1, NCCLX_INT32, -1, WORLD), NCCLX_ERR_ROOT);
    BAD(ncclx_coll_bcast(NCCLX_IN_PLACE, 1, NCCLX_INT32, 0, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_bcast(NULL, 1, NCCLX_INT32, 0, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_ibcast(&value, 1, NO_TYPE, 0, WORLD, &r), NCCLX_ERR_TYPE);
    BAD(ncclx_coll_reduce(&wide, all, 1, NCCLX_INT64, NCCLX_OP_NULL, 0, WORLD), NCCLX_ERR_OP);
    BAD(ncclx_coll_reduce(&wide, all, 1, NCCLX_INT64, NCCLX_SUM, size, WORLD), NCCLX_ERR_ROOT);
    BAD(ncclx_coll_reduce(rank ? NCCLX_IN_PLACE : all, all, 1, NCCLX_INT64, NCCLX_SUM, 0, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_ireduce(&wide, all, 1, NCCLX_DOUBLE, NCCLX_BAND, 0, WORLD, &r), NCCLX_ERR_TYPE);
    BAD(ncclx_coll_allreduce(all, all, 1, NCCLX_INT64, NCCLX_SUM, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_allreduce(NULL, all, 1, NCCLX_INT64, NCCLX_SUM, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_allreduce(&wide, NCCLX_IN_PLACE, 1, NCCLX_INT64, NCCLX_SUM, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_allreduce(&wide, all, HUGE_COUNT, NCCLX_INT64, NCCLX_SUM, WORLD), NCCLX_ERR_COUNT);
    BAD(ncclx_coll_allreduce(&wide, all, 1, NCCLX_INT64, (ncclx_op_t)(void *)freed_memory, WORLD), NCCLX_ERR_OP);
    BAD(ncclx_coll_allreduce(&wide, all, 1, NCCLX_INT64, NCCLX_MINLOC, WORLD), NCCLX_ERR_TYPE);
    BAD(ncclx_coll_iallreduce(&wide, all, 1, NCCLX_INT64, NCCLX_SUM, WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_coll_allgather(all + rank, all, 1, NCCLX_INT64, WORLD), NCCLX_ERR_BUFFER); /* inside recvbuf */
    BAD(ncclx_coll_allgather(&wide, NULL, 1, NCCLX_INT64, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_allgather(&wide, all, SIZE_MAX / 8, NCCLX_INT64, (size > 1 ? WORLD : NCCLX_COMM_NULL)),
        size > 1 ? NCCLX_ERR_COUNT : NCCLX_ERR_COMM); /* one rank's part fits an address, the whole does not */
    BAD(ncclx_coll_iallgather(&wide, all, 1, NO_TYPE, WORLD, &r), NCCLX_ERR_TYPE);
    BAD(ncclx_coll_alltoall(all, all, 1, NCCLX_INT64, WORLD), NCCLX_ERR_BUFFER);
    BAD(ncclx_coll_ialltoall(NULL, all, 1, NCCLX_INT64, WORLD, &r), NCCLX_ERR_BUFFER);
    CHECK(r == NCCLX_REQUEST_NULL);
    free(all);
}

static void bad_groups(void)
{
    ncclx_group_t all, out = NCCLX_GROUP_NULL, none = NCCLX_GROUP_NULL;
    int ranks[2] = {0, size}, twice[2] = {0, 0}, result;
    const int range[1][3] = {{0, size, 1}};
    OK(ncclx_comm_group(WORLD, &all));
    BAD(ncclx_group_size(NCCLX_GROUP_NULL, &value), NCCLX_ERR_GROUP);
    BAD(ncclx_group_rank((ncclx_group_t)(void *)freed_memory, &value), NCCLX_ERR_GROUP);
    BAD(ncclx_group_size(all, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_group_incl(all, 2, ranks, &out), NCCLX_ERR_RANK);
    BAD(ncclx_group_incl(all, 2, twice, &out), NCCLX_ERR_RANK);
    BAD(ncclx_group_excl(all, 1, NULL, &out), NCCLX_ERR_ARG);
    BAD(ncclx_group_range_incl(all, 1, range, &out), NCCLX_ERR_RANK);
    BAD(ncclx_group_range_excl(all, 1, range, &out), NCCLX_ERR_RANK);
    BAD(ncclx_group_translate(all, 2, ranks, all, twice), NCCLX_ERR_RANK);
    BAD(ncclx_group_compare(all, none, &result), NCCLX_ERR_GROUP);
    BAD(ncclx_group_union(all, all, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_group_free(&none), NCCLX_ERR_GROUP);
    OK(ncclx_group_incl(all, 0, NULL, &out));
    CHECK(out == NCCLX_GROUP_EMPTY);
    OK(ncclx_group_rank(out, &result));
    CHECK(result == NCCLX_UNDEFINED);
    OK(ncclx_group_free(&out));
    CHECK(out == NCCLX_GROUP_NULL);
    ncclx_group_t stale = all;
    OK(ncclx_group_free(&all));
    BAD(ncclx_group_size(stale, &value), NCCLX_ERR_GROUP);
}

static void bad_communicators(void)
{
    ncclx_comm_t world = WORLD, self = NCCLX_COMM_SELF, out = NCCLX_COMM_NULL, none = NCCLX_COMM_NULL;
    ncclx_group_t all, others;
    ncclx_errhandler_t handler = NCCLX_ERRHANDLER_NULL;
    OK(ncclx_comm_group(WORLD, &all));
    BAD(ncclx_comm_rank(NCCLX_COMM_NULL, &value), NCCLX_ERR_COMM);
    BAD(ncclx_comm_size(WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_comm_free(&world), NCCLX_ERR_COMM);
    BAD(ncclx_comm_free(&self), NCCLX_ERR_COMM);
    BAD(ncclx_comm_free(&none), NCCLX_ERR_COMM);
    BAD(ncclx_comm_free(NULL), NCCLX_ERR_ARG);
    BAD(ncclx_comm_dup(NCCLX_COMM_NULL, &out), NCCLX_ERR_COMM);
    BAD(ncclx_comm_dup(WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_comm_split(WORLD, 0, 0, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_comm_split_type(WORLD, 17, 0, &out), NCCLX_ERR_ARG);
    BAD(ncclx_comm_split(WORLD, rank == size - 1 ? -1 : 0, 0, &out),
        NCCLX_ERR_ARG); /* one rank is wrong: all hear of it */
    BAD(ncclx_comm_create_group(WORLD, NCCLX_GROUP_EMPTY, 0, &out), NCCLX_ERR_GROUP);
    BAD(ncclx_comm_create_group(WORLD, NCCLX_GROUP_NULL, 0, &out), NCCLX_ERR_GROUP);
    BAD(ncclx_comm_create_group(WORLD, all, -1, &out), NCCLX_ERR_TAG);
    BAD(ncclx_comm_create_group(WORLD, all, INT32_MAX, &out), NCCLX_ERR_TAG);
    BAD(ncclx_comm_create_group(NCCLX_COMM_SELF, all, 0, size > 1 ? &out : NULL),
        size > 1 ? NCCLX_ERR_GROUP : NCCLX_ERR_ARG);
    OK(ncclx_group_excl(all, 1, &rank, &others));
    BAD(ncclx_comm_create_group(WORLD, others, 0, &out), NCCLX_ERR_GROUP);
    BAD(ncclx_comm_remote_class(WORLD, size, &value), NCCLX_ERR_RANK);
    BAD(ncclx_comm_compare(WORLD, NCCLX_COMM_NULL, &value), NCCLX_ERR_COMM);
    BAD(ncclx_comm_set_name(WORLD, NULL), NCCLX_ERR_ARG);
    BAD(ncclx_comm_set_errhandler(WORLD, NCCLX_ERRHANDLER_NULL), NCCLX_ERR_ERRHANDLER);
    BAD(ncclx_errhandler_create(NULL, NULL, &handler), NCCLX_ERR_ARG);
    BAD(ncclx_errhandler_free(&handler), NCCLX_ERR_ERRHANDLER);
    BAD(ncclx_comm_call_errhandler(WORLD, NCCLX_ERR_LAST + 1), NCCLX_ERR_ARG);
    CHECK(out == NCCLX_COMM_NULL);
    OK(ncclx_group_free(&others));
    OK(ncclx_group_free(&all));
}

static void bad_objects(void)
{
    ncclx_info_t info, no_info = NCCLX_INFO_NULL;
    ncclx_op_t op = NCCLX_SUM;
    const char *name;
    size_t bytes;
    void *memory;
    BAD(ncclx_type_size(NO_TYPE, &bytes), NCCLX_ERR_TYPE);
    BAD(ncclx_type_name((ncclx_datatype_t)0, &name), NCCLX_ERR_TYPE);
    BAD(ncclx_op_create(NULL, 1, NULL, &op), NCCLX_ERR_ARG);
    BAD(ncclx_op_free(&op), NCCLX_ERR_OP);
    op = (ncclx_op_t)(void *)freed_memory;
    BAD(ncclx_op_free(&op), NCCLX_ERR_OP);
    BAD(ncclx_op_commutative(NCCLX_OP_NULL, &value), NCCLX_ERR_OP);
    BAD(ncclx_reduce_local(&wide, &wide, 1, NCCLX_INT64, NCCLX_AVG), NCCLX_ERR_OP);
    BAD(ncclx_mem_alloc(64, (ncclx_mem_kind_t)9, &memory), NCCLX_ERR_ARG);
    BAD(ncclx_mem_free(freed_memory), NCCLX_ERR_ARG);
    BAD(ncclx_info_set(NCCLX_INFO_NULL, "a", "b"), NCCLX_ERR_INFO);
    BAD(ncclx_info_free(&no_info), NCCLX_ERR_INFO);
    OK(ncclx_info_create(&info));
    BAD(ncclx_info_set(info, "", "b"), NCCLX_ERR_INFO);
    ncclx_info_t stale = info;
    OK(ncclx_info_free(&info));
    BAD(ncclx_info_set(stale, "a", "b"), NCCLX_ERR_INFO);
    BAD(ncclx_host_name(NULL, 5), NCCLX_ERR_ARG);
    BAD(ncclx_init(NULL, NULL), NCCLX_ERR_INITIALIZED);
}

static void bad_windows(void)
{
    ncclx_win_t win = NCCLX_WIN_NULL, none = NCCLX_WIN_NULL;
    ncclx_info_t info;
    uint64_t seen;
    void *base = NULL;
    OK(ncclx_info_create(&info));
    OK(ncclx_info_set(info, "ncclx_signal_slots", "many"));
    BAD(ncclx_win_allocate(64, 1, info, WORLD, &base, &win), NCCLX_ERR_INFO);
    OK(ncclx_info_set(info, "ncclx_signal_slots", "8"));
    BAD(ncclx_win_allocate(64, 0, info, WORLD, &base, &win), NCCLX_ERR_ARG);
    BAD(ncclx_win_allocate(64, rank == 0 ? 0 : 1, info, WORLD, &base, &win),
        NCCLX_ERR_ARG); /* one rank is wrong: all hear of it */
    BAD(ncclx_win_allocate(64, 1, info, WORLD, NULL, &win), NCCLX_ERR_ARG);
    BAD(ncclx_win_create(NULL, 64, 1, info, WORLD, &win), NCCLX_ERR_BUFFER);
    BAD(ncclx_win_create(&wide, 8, 1, (ncclx_info_t)(void *)freed_memory, WORLD, &win), NCCLX_ERR_INFO);
    BAD(ncclx_win_free(&none), NCCLX_ERR_WIN);
    CHECK(win == NCCLX_WIN_NULL);
    OK(ncclx_win_allocate(64, 8, info, WORLD, &base, &win));
    BAD(ncclx_win_put(&wide, 1, NCCLX_INT64, size, 0, win), NCCLX_ERR_RANK);
    BAD(ncclx_win_put(&wide, 1, NCCLX_INT64, 0, 8, win), NCCLX_ERR_RANGE);
    BAD(ncclx_win_put(&wide, 1, NCCLX_INT64, 0, SIZE_MAX, win), NCCLX_ERR_RANGE);
    BAD(ncclx_win_put(&wide, HUGE_COUNT, NCCLX_INT64, 0, 0, win), NCCLX_ERR_COUNT);
    BAD(ncclx_win_put(&wide, 1, NO_TYPE, 0, 0, win), NCCLX_ERR_TYPE);
    BAD(ncclx_win_get(NULL, 1, NCCLX_INT64, 0, 0, win), NCCLX_ERR_BUFFER);
    BAD(ncclx_win_put_signal(&wide, 1, NCCLX_INT64, 0, 0, win, 8, NCCLX_SIGNAL_ADD, 1), NCCLX_ERR_RANGE);
    BAD(ncclx_win_signal(0, win, 0, (ncclx_signal_op_t)9, 1), NCCLX_ERR_OP);
    BAD(ncclx_win_wait_signal(win, 8, NCCLX_CMP_EQ, 0, -1, &seen), NCCLX_ERR_RANGE);
    BAD(ncclx_win_wait_signal(win, 0, (ncclx_compare_t)0, 0, -1, &seen), NCCLX_ERR_OP);
    BAD(ncclx_win_wait_signal(win, 0, NCCLX_CMP_GT, 0, 1000, &seen), NCCLX_ERR_TIMEOUT);
    BAD(ncclx_win_test_signal(win, 0, NCCLX_CMP_GT, 0, NULL, &seen), NCCLX_ERR_ARG);
    BAD(ncclx_win_flush(size, win), NCCLX_ERR_RANK);
    ncclx_win_t stale = win;
    OK(ncclx_win_free(&win));
    BAD(ncclx_win_fence(stale), NCCLX_ERR_WIN);
    BAD(ncclx_win_put(&wide, 1, NCCLX_INT64, 0, 0, stale), NCCLX_ERR_WIN);
    OK(ncclx_info_free(&info));
}

/* ---- Handlers ---- */

static struct {
    int calls, code;
    ncclx_comm_t comm;
    ncclx_win_t win;
    char detail[200];
} seen;

static void note(ncclx_comm_t comm, ncclx_win_t win, int code, const char *detail, void *user)
{
    int ignored;
    CHECK(user == &seen);
    seen.calls++;
    seen.code = code;
    seen.comm = comm;
    seen.win = win;
    snprintf(seen.detail, sizeof seen.detail, "%s", detail);
    ncclx_comm_rank(NCCLX_COMM_SELF, &ignored); /* a handler may call the library */
}

static void the_programs_own_handler(void)
{
    ncclx_errhandler_t handler, got;
    ncclx_comm_t comm, child;
    ncclx_request_t request;
    ncclx_win_t win;
    void *base;
    OK(ncclx_errhandler_create(note, &seen, &handler));
    OK(ncclx_comm_dup(WORLD, &comm));
    OK(ncclx_comm_set_errhandler(comm, handler));
    OK(ncclx_errhandler_free(&handler));
    CHECK(handler == NCCLX_ERRHANDLER_NULL);
    FAILS(ncclx_send(&value, 1, NCCLX_INT32, size + 5, 0, comm), NCCLX_ERR_RANK);
    CHECK(seen.calls == 1 && seen.code == NCCLX_ERR_RANK && seen.comm == comm && !seen.win &&
          strcmp(seen.detail, ncclx_error_detail()) == 0);
    OK(ncclx_comm_dup(comm, &child)); /* inherits */
    FAILS(ncclx_coll_bcast(&value, 1, NCCLX_INT32, -5, child), NCCLX_ERR_ROOT);
    CHECK(seen.calls == 2 && seen.comm == child);
    OK(ncclx_win_allocate(8, 1, NCCLX_INFO_NULL, comm, &base, &win));
    FAILS(ncclx_win_put(&value, 1, NCCLX_INT32, 0, 100, win), NCCLX_ERR_RANGE);
    CHECK(seen.calls == 3 && seen.win == win && seen.comm == NCCLX_COMM_NULL);
    OK(ncclx_win_set_errhandler(win, NCCLX_ERRORS_RETURN));
    FAILS(ncclx_win_put(&value, 1, NCCLX_INT32, 0, 100, win), NCCLX_ERR_RANGE);
    OK(ncclx_win_get_errhandler(win, &got));
    CHECK(got == NCCLX_ERRORS_RETURN && seen.calls == 3);
    OK(ncclx_win_free(&win));
    OK(ncclx_comm_call_errhandler(comm, NCCLX_ERR_LIMIT));
    CHECK(seen.calls == 4 && seen.code == NCCLX_ERR_LIMIT);
    OK(ncclx_comm_get_errhandler(comm, &got)); /* a handle of its own again */
    OK(ncclx_comm_free(&comm));
    OK(ncclx_comm_set_errhandler(child, NCCLX_ERRORS_RETURN));
    OK(ncclx_comm_set_errhandler(child, got));
    OK(ncclx_errhandler_free(&got));
    OK(ncclx_comm_call_errhandler(child, NCCLX_ERR_LIMIT));
    CHECK(seen.calls == 5);
    OK(ncclx_irecv(&value, 1, NCCLX_INT32, rank, 0, child, &request));
    OK(ncclx_comm_free(&child));
    FAILS(ncclx_request_free(&request), NCCLX_ERR_REQUEST);
    CHECK(seen.calls == 6 && seen.comm == NCCLX_COMM_NULL && !seen.win); /* no handle any more */
    OK(ncclx_cancel(&request));
    OK(ncclx_wait(&request, NULL));
}

int main(void)
{
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(WORLD, &rank));
    OK(ncclx_comm_size(WORLD, &size));
    OK(ncclx_comm_set_errhandler(WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_SELF, NCCLX_ERRORS_RETURN));
    bad_messages();
    bad_requests();
    stale_requests();
    bad_collectives();
    bad_groups();
    bad_communicators();
    bad_objects();
    bad_windows();
    the_programs_own_handler();
    OK(ncclx_finalize());
    return 0;
}
