/* pml_threads.c - ranks as threads of one process, over the real rings: blocking calls, and one rank used by several
 * threads. */
#include "config.h"

#include "tests/unit/pml_world.h"

#include "pml/shm/shm.h"

#include <fcntl.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#define ROUNDS 300

static struct world world;
static const size_t sizes[] = {0, 8, 40, 64, 1000, 4096, 5000, 20000, 70000, 200000};
#define SIZES (sizeof sizes / sizeof sizes[0])

struct task {
    int rank, peer, tag;
    bool first;
    int errors;
};

static bool exchange(const struct task *task, char *out, char *in, size_t bytes, int round)
{
    struct ncclx_comm *comm = &world.comm[task->rank];
    ncclx_status_t status;
    memset(out, task->rank + round + task->tag, bytes);
    base_rt_lock(comm->rt);
    int error = task->first ? pml_send(comm, PML_USER, out, bytes, task->peer, task->tag) : 0;
    if (!error) error = pml_recv(comm, PML_USER, in, bytes, task->peer, task->tag, &status);
    if (!error && !task->first) error = pml_send(comm, PML_USER, out, bytes, task->peer, task->tag);
    base_rt_unlock(comm->rt);
    char expected = (char)(task->peer + round + task->tag);
    return !error && status.bytes == bytes &&
           (!bytes || (in[0] == expected && in[bytes - 1] == expected && in[bytes / 2] == expected));
}

static void *work(void *arg)
{
    struct task *task = arg;
    char *out = malloc(sizes[SIZES - 1]), *in = malloc(sizes[SIZES - 1]);
    if (!out || !in) task->errors++;
    for (int round = 0; round < ROUNDS && !task->errors; round++)
        if (!exchange(task, out, in, sizes[(size_t)round % SIZES], round)) task->errors++;
    free(out);
    free(in);
    return NULL;
}

static void run(struct task *tasks, int count)
{
    pthread_t thread[8];
    for (int i = 0; i < count; i++) assert_int_equal(pthread_create(&thread[i], NULL, work, &tasks[i]), 0);
    for (int i = 0; i < count; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < count; i++) assert_int_equal(tasks[i].errors, 0);
}

static void two_ranks(void **state)
{
    (void)state;
    char *plain[] = {"NCCLX_SPIN=10", NULL}, *no_copies[] = {"NCCLX_SHM_CMA=0", "NCCLX_SPIN=10", NULL},
         *spin[] = {"NCCLX_SPIN=1000", NULL};
    char **environments[] = {plain, no_copies, spin};
    for (size_t i = 0; i < sizeof environments / sizeof environments[0]; i++) {
        struct task tasks[] = {{.rank = 0, .peer = 1, .tag = 1, .first = true}, {.rank = 1, .peer = 0, .tag = 1}};
        world_open(&world, 2, environments[i]);
        run(tasks, 2);
        world_close(&world);
    }
}

/* Two threads of each rank wait at the same time, each for a message of its own. */
static void two_threads_a_rank(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_SPIN=10", NULL};
    struct task tasks[4];
    world_open(&world, 2, environment);
    for (int i = 0; i < 4; i++) {
        tasks[i] = (struct task){.rank = i % 2, .peer = 1 - i % 2, .tag = i / 2, .first = i % 2 == 0};
        world.rt[i % 2].threaded = true;
    }
    run(tasks, 4);
    world_close(&world);
}

static void *late_send(void *arg)
{
    struct ncclx_comm *comm = arg;
    struct timespec pause = {.tv_nsec = 100000000};
    int value = 5;
    nanosleep(&pause, NULL);
    return pml_send(comm, PML_USER, &value, sizeof value, 1, 1) ? comm : NULL;
}

/* The receiver is asleep by then: the message wakes it. */
static void sleeping_receiver(void **state)
{
    (void)state;
    char *environment[] = {"NCCLX_SPIN=10", NULL};
    pthread_t thread;
    void *failed;
    int value = 0;
    world_open(&world, 2, environment);
    for (int i = 0; i < 3; i++) {
        assert_int_equal(pthread_create(&thread, NULL, late_send, &world.comm[0]), 0);
        assert_int_equal(pml_recv(&world.comm[1], PML_USER, &value, sizeof value, 0, 1, NULL), 0);
        pthread_join(thread, &failed);
        assert_null(failed);
        assert_int_equal(value, 5);
    }
    world_close(&world);
}

static void *sleep_long(void *arg)
{
    struct ncclx_rt *rt = arg;
    rt->block(rt->block_arg, 20 * BASE_NS_PER_S);
    return NULL;
}

/* One of two sleeping threads gets up by itself: a message must wake the other one all the same. */
static void two_sleepers(void **state)
{
    (void)state;
    pthread_t thread;
    struct timespec pause = {.tv_nsec = 100000000};
    int value = 5;
    world_open(&world, 2, NULL);
    world.rt[1].threaded = true;
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 1), 0);
    assert_int_equal(pml_recv(&world.comm[1], PML_USER, &value, sizeof value, 0, 1, NULL), 0);
    assert_int_equal(pthread_create(&thread, NULL, sleep_long, &world.rt[1]), 0);
    nanosleep(&pause, NULL);
    world.rt[1].block(world.rt[1].block_arg, 1000000);
    uint64_t start = base_clock_ns();
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 1), 0);
    pthread_join(thread, NULL);
    assert_true(base_clock_ns() - start < 10 * BASE_NS_PER_S);
    world_close(&world);
}

static void *sleep_and_tell(void *arg)
{
    struct ncclx_rt *rt = arg;
    uint64_t start = base_clock_ns();
    rt->block(rt->block_arg, 20 * BASE_NS_PER_S);
    return base_clock_ns() - start < 10 * BASE_NS_PER_S ? rt : NULL;
}

/* Another thread brings something that no peer wakes for. */
static void woken_by_a_thread(void **state)
{
    (void)state;
    pthread_t thread;
    struct timespec pause = {.tv_nsec = 10000000};
    void *woken = NULL;
    world_open(&world, 2, NULL);
    world.rt[0].threaded = true;
    assert_int_equal(pthread_create(&thread, NULL, sleep_and_tell, &world.rt[0]), 0);
    do base_rt_wake(&world.rt[0]); /* it may not sleep yet */
    while (!nanosleep(&pause, NULL) && pthread_tryjoin_np(thread, &woken));
    assert_ptr_equal(woken, &world.rt[0]);
    base_rt_sleep_on(&world.rt[0], NULL, NULL, NULL);
    base_rt_wake(&world.rt[0]); /* nobody */
    world_close(&world);
}

struct meddler {
    struct shm_channel *channel;
    uint64_t change; /* of the word by which the pieces of a copy are claimed */
};

static struct shm_channel *channel_of(const struct ncclx_rt *rt)
{
    return rt->pml->connection[0][1 - rt->job.rank]->channel;
}

/* Changes the word once, in the middle of a copy of rank 1's. */
static void *meddle(void *arg)
{
    const struct meddler *meddler = arg;
    struct ring_help *help = &meddler->channel->writer.shared->help;
    uint64_t claim;
    do {
        claim = atomic_load(&help->claim);
        if (claim == UINT64_MAX) return NULL; /* of the test's end */
    } while ((claim >> 16 & 0xffff) >= (claim & 0xffff) ||
             !atomic_compare_exchange_weak(&help->claim, &claim, claim + meddler->change));
    return arg;
}

/* Large messages from rank 0 to rank 1, read by rank 1, until the meddler was fast enough. All arrive whole. By
 * then `over` is true. */
static void meddled_copies(uint64_t change, bool (*over)(const struct pml_connection *connection))
{
    enum { BYTES = 16 << 20 };
    char *environment[] = {"NCCLX_TIMEOUT=0.1", NULL}, *out = malloc(BYTES), *in = malloc(BYTES);
    struct ncclx_request *send, *receive;
    struct pml_connection *connection;
    struct meddler meddler = {.change = change};
    pthread_t thread;
    void *took = NULL;
    memset(out, 7, BYTES);
    world_open(&world, 2, environment);
    assert_int_equal(pml_send(&world.comm[0], PML_USER, out, 1, 1, 1), 0);
    assert_int_equal(pml_recv(&world.comm[1], PML_USER, in, 1, 0, 1, NULL), 0);
    connection = world.rt[1].pml->connection[0][0];
    meddler.channel = connection->channel;
    assert_int_equal(pthread_create(&thread, NULL, meddle, &meddler), 0);
    for (int i = 0; i < 100 && !over(connection); i++) {
        memset(in, 0, BYTES);
        assert_int_equal(pml_isend(&world.comm[0], PML_USER, out, BYTES, 1, 1, &send), 0);
        assert_int_equal(pml_irecv(&world.comm[1], PML_USER, in, BYTES, 0, 1, &receive), 0);
        assert_int_equal(world_wait(&world, receive), 0);
        assert_int_equal(world_wait(&world, send), 0);
        assert_memory_equal(in, out, BYTES);
        send->kind->release(send);
        receive->kind->release(receive);
    }
    bool was_over = over(connection);
    atomic_store(&meddler.channel->writer.shared->help.claim, UINT64_MAX);
    pthread_join(thread, &took);
    assert_true(was_over == (took != NULL));
    world_close(&world);
    free(in);
    free(out);
}

static bool is_alone(const struct pml_connection *connection)
{
    return ((const struct shm_channel *)connection->channel)->alone;
}

static bool reads_no_more(const struct pml_connection *connection)
{
    return connection->probed && !connection->route.can_read;
}

/* A helper that took a piece and is stopped: the deadline ends the wait for it, and the message comes another way. */
static void lost_helper(void **state)
{
    (void)state;
    meddled_copies(UINT64_MAX, is_alone); /* one less left for others */
}

/* A peer that counts pieces as done which nobody has copied: they are not believed, and the message comes another way. */
static void lying_helper(void **state)
{
    (void)state;
    meddled_copies(UINT64_C(1) << 16, reads_no_more);
}

/* The same for memory that is mapped: a copy whose helper is lost fails, as it may still be going on; those after it
 * are made alone. Memory of a helper that died would be copied again. */
static void lost_mapped_helper(void **state)
{
    enum { BYTES = 16 << 20 };
    char *environment[] = {"NCCLX_TIMEOUT=0.1", NULL}, *out = malloc(BYTES);
    struct pml_region_card card;
    struct pml_region *region;
    pthread_t thread;
    void *memory, *took = NULL;
    int failures = 0;
    (void)state;
    memset(out, 7, BYTES);
    world_open(&world, 2, environment);
    assert_int_equal(pml_mem_alloc(&world.rt[1], BYTES, &memory), 0);
    assert_int_equal(pml_region_card(&world.rt[1], memory, BYTES, &card), 0);
    assert_int_equal(pml_region_attach(&world.rt[0], 1, &card, &region), 0);
    struct meddler meddler = {channel_of(&world.rt[0]), UINT64_MAX};
    assert_int_equal(pthread_create(&thread, NULL, meddle, &meddler), 0);
    for (int i = 0; i < 1000 && !meddler.channel->alone; i++) {
        failures += pml_region_write(&world.rt[0], region, 0, out, BYTES) != 0;
        world_progress(&world);
    }
    bool was_alone = meddler.channel->alone;
    atomic_store(&meddler.channel->writer.shared->help.claim, UINT64_MAX);
    pthread_join(thread, &took);
    assert_true(was_alone == (took != NULL));
    assert_int_equal(failures, was_alone);
    assert_int_equal(pml_region_write(&world.rt[0], region, 0, out, BYTES), 0);
    assert_memory_equal(memory, out, BYTES);
    pml_region_detach(&world.rt[0], region);
    world_close(&world);
    free(out);
}

struct looking {
    struct ncclx_rt *rt;
    atomic_bool stop;
};

static void *look(void *arg)
{
    struct looking *looking = arg;
    while (!atomic_load(&looking->stop)) base_progress(looking->rt);
    return NULL;
}

/* Memory of a peer is written and read while its owner looks, and while it does not. */
static void serve(char **environment, bool allocated)
{
    static const size_t bytes[] = {1, 8, 40, 41, 1000, 8192, 8193, 30000, 300000, 3000000};
    static char out[3000000], in[3000000], plain[3000100];
    void *memory = plain;
    struct pml_region_card card;
    struct pml_region *region;
    pthread_t thread;
    world_open(&world, 2, environment);
    if (allocated) assert_int_equal(pml_mem_alloc(&world.rt[1], sizeof plain, &memory), 0);
    struct looking looking = {.rt = &world.rt[1]};
    assert_int_equal(pml_region_card(&world.rt[1], memory, sizeof plain, &card), 0);
    assert_int_equal(pml_region_attach(&world.rt[0], 1, &card, &region), 0);
    for (int round = 0; round < 400; round++) {
        size_t n = bytes[(size_t)round % (sizeof bytes / sizeof bytes[0])];
        bool looks = round / 100 % 2 == 0;
        memset(out, round + 1, n);
        if (round % 100 == 0 && looks) {
            atomic_store(&looking.stop, false);
            assert_int_equal(pthread_create(&thread, NULL, look, &looking), 0);
        }
        assert_int_equal(pml_region_write(&world.rt[0], region, (size_t)round % 50, out, n), 0);
        assert_int_equal(pml_region_read(&world.rt[0], region, (size_t)round % 50, in, n), 0);
        assert_memory_equal(in, out, n);
        if (round % 100 == 99 && looks) {
            atomic_store(&looking.stop, true);
            pthread_join(thread, NULL);
        }
    }
    if (region->access == PML_ACCESS_DIRECT) assert_true(channel_of(&world.rt[0])->help_asked > 0);
    pml_region_detach(&world.rt[0], region);
    pml_region_hide(&world.rt[1], &card);
    world_close(&world);
}

static void served_copies(void **state)
{
    char *no_direct[] = {"NCCLX_SHM_DIRECT=0", NULL};
    (void)state;
    serve(NULL, false);
    serve(NULL, true); /* it helps with those that are mapped here */
    serve(no_direct, true); /* the owner declines */
}

struct sleeper {
    struct shm *shm;
    int sockets;
    enum shm_woken woken;
};

static void *sleep_on_sockets(void *arg)
{
    struct sleeper *sleeper = arg;
    sleeper->woken = shm_block_on(sleeper->shm, sleeper->sockets, 20 * BASE_NS_PER_S);
    return NULL;
}

/* Two threads of a rank sleep on its sockets: a message through shared memory wakes both, and what woke them is gone then. */
static void sleepers_on_sockets(void **state)
{
    (void)state;
    int pair[2], value = 5;
    char byte;
    pthread_t thread[2];
    struct timespec pause = {.tv_nsec = 100000000};
    world_open(&world, 2, NULL);
    assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair), 0);
    struct shm *shm = world.rt[1].pml->shm;
    bell_open(shm);
    assert_true(shm->bell.out >= 0);
    world.rt[1].threaded = true;
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 1), 0);
    assert_int_equal(pml_recv(&world.comm[1], PML_USER, &value, sizeof value, 0, 1, NULL), 0);
    struct sleeper sleeper[2] = {{.shm = shm, .sockets = pair[0]}, {.shm = shm, .sockets = pair[0]}};
    for (int i = 0; i < 2; i++) assert_int_equal(pthread_create(&thread[i], NULL, sleep_on_sockets, &sleeper[i]), 0);
    nanosleep(&pause, NULL);
    assert_int_equal(pml_send(&world.comm[0], PML_USER, &value, sizeof value, 1, 1), 0);
    for (int i = 0; i < 2; i++) pthread_join(thread[i], NULL);
    for (int i = 0; i < 2; i++) assert_int_equal(sleeper[i].woken, WOKEN_BY_BELL);
    assert_int_equal(read(shm->bell.out, &byte, 1), -1);
    assert_int_equal(atomic_load(&shm->mailbox->bell), 0);
    assert_int_equal(shm_block_on(shm, pair[0], 20 * BASE_NS_PER_S), WOKEN_NOT); /* the message is there: no sleep */
    assert_int_equal(pml_recv(&world.comm[1], PML_USER, &value, sizeof value, 0, 1, NULL), 0);
    assert_int_equal(shm_block_on(shm, pair[0], 1000), WOKEN_NOT);
    assert_int_equal(write(pair[1], "", 1), 1);
    assert_int_equal(shm_block_on(shm, pair[0], 20 * BASE_NS_PER_S), WOKEN_BY_SOCKET);
    close(pair[0]);
    close(pair[1]);
    world_close(&world);
}

/* What a mailbox says of a bell may be wrong: only the very pipe is written to. */
static void bells_that_are_none(void **state)
{
    (void)state;
    int other[2];
    char byte;
    struct stat facts;
    assert_int_equal(pipe2(other, O_CLOEXEC | O_NONBLOCK), 0);
    struct shm_mailbox mailbox = {.pid = getpid(), .bell = (uint32_t)other[1] + 1};
    bell_ring(&mailbox); /* another pipe's number */
    assert_int_equal(read(other[0], &byte, 1), -1);
    assert_int_equal(fstat(other[1], &facts), 0);
    mailbox.bell_inode = facts.st_ino;
    mailbox.bell = 0;
    bell_ring(&mailbox);
    assert_int_equal(read(other[0], &byte, 1), -1);
    mailbox.bell = (uint32_t)other[1] + 1;
    bell_ring(&mailbox);
    assert_int_equal(read(other[0], &byte, 1), 1);
    close(other[0]);
    bell_ring(&mailbox); /* nobody reads it any more: no signal ends us */
    close(other[1]);
    bell_ring(&mailbox);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_ranks),
        cmocka_unit_test(two_threads_a_rank),
        cmocka_unit_test(sleeping_receiver),
        cmocka_unit_test(two_sleepers),
        cmocka_unit_test(woken_by_a_thread),
        cmocka_unit_test(sleepers_on_sockets),
        cmocka_unit_test(bells_that_are_none),
        cmocka_unit_test(lost_helper),
        cmocka_unit_test(lying_helper),
        cmocka_unit_test(lost_mapped_helper),
        cmocka_unit_test(served_copies),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
