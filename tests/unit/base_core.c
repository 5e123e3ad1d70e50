/* base_core.c - memory areas, errors, info objects, types, waiting with and without threads, and forked children. */
#include "config.h"

#include "runtime/base/base.h"
#include "runtime/base/copy.h"
#include "tests/unit/capture.h"

#include <errno.h>
#include <fcntl.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cmocka.h>

static void areas_count_bytes(void **state)
{
    struct base_area_usage before, now;
    (void)state;
    base_area_usage(AREA_OSC, &before);
    char *block = base_alloc(AREA_OSC, 1000);
    base_area_usage(AREA_OSC, &now);
    assert_true(now.bytes - before.bytes >= 1000 && now.bytes - before.bytes < 1100);
    assert_int_equal(now.blocks - before.blocks, 1);
    memset(block, 7, 1000);
    block = base_realloc(AREA_OSC, block, 100000);
    assert_int_equal(block[999], 7);
    base_area_usage(AREA_OSC, &now);
    assert_true(now.bytes - before.bytes >= 100000 && now.bytes - before.bytes < 110000);
    base_free(AREA_OSC, block);
    base_free(AREA_OSC, NULL);
    base_area_account(AREA_OSC, 1 << 20);
    base_area_account(AREA_OSC, -(1 << 20));
    base_area_usage(AREA_OSC, &now);
    assert_int_equal(now.bytes, before.bytes);
    assert_int_equal(now.blocks, before.blocks);
    assert_true(now.peak >= 1 << 20);
    for (size_t bytes = 0; bytes <= 1 << 20; bytes = bytes * 5 + 1) {
        char *pages = base_alloc_pages(AREA_OSC, bytes);
        assert_non_null(pages);
        assert_int_equal((uintptr_t)pages % (uintptr_t)sysconf(_SC_PAGESIZE), 0);
        memset(pages, 7, bytes);
        assert_true(base_block_bytes(pages) >= bytes);
        base_free(AREA_OSC, pages);
    }
    char *zero = base_calloc(AREA_OSC, 3, 5);
    for (int i = 0; i < 15; i++) assert_int_equal(zero[i], 0);
    base_free(AREA_OSC, zero);
    volatile size_t huge = SIZE_MAX / 2 + 1; /* a constant would be a warning */
    assert_null(base_calloc(AREA_OSC, huge, 2));
    base_free(AREA_OSC, base_alloc(AREA_OSC, 0));
    for (int area = 0; area < AREA_COUNT; area++) assert_string_not_equal(base_area_name((enum base_area)area), "?");
}

static void errors_keep_their_sentence(void **state)
{
    (void)state;
    base_error_clear();
    assert_string_equal(base_error_detail(), "");
    assert_int_equal(base_error(NCCLX_ERR_RANK, "rank %d of %d", 5, 4), NCCLX_ERR_RANK);
    assert_string_equal(base_error_detail(), "rank 5 of 4");
    assert_int_equal(base_error_context(NCCLX_ERR_RANK, "while %s", "splitting"), NCCLX_ERR_RANK);
    assert_string_equal(base_error_detail(), "while splitting: rank 5 of 4");
    base_error(NCCLX_ERR_ARG, "again: %s", base_error_detail()); /* the argument is the old sentence */
    assert_string_equal(base_error_detail(), "again: while splitting: rank 5 of 4");
    for (int i = 0; i < 300; i++) base_error_context(NCCLX_ERR_ARG, "deeper");
    assert_int_equal(strlen(base_error_detail()), 1023);
    for (int code = 0; code <= NCCLX_ERR_LAST; code++) assert_int_equal(strncmp(base_error_string(code), "NCCLX_", 6), 0);
    assert_int_equal(strncmp(base_error_string(NCCLX_ERR_RANK), "NCCLX_ERR_RANK: ", 16), 0);
    assert_string_equal(base_error_string(-1), "not a code of ncclx");
    assert_string_equal(base_error_string(NCCLX_ERR_LAST + 1), "not a code of ncclx");
}

static void types_have_sizes_and_names(void **state)
{
    size_t bytes;
    (void)state;
    for (int type = NCCLX_INT8; type <= NCCLX_DOUBLE_PAIR; type++) {
        assert_true(base_type_size((ncclx_datatype_t)type) > 0);
        assert_string_not_equal(base_type_name((ncclx_datatype_t)type), "not a type");
    }
    assert_int_equal(base_type_size(NCCLX_DOUBLE_PAIR), 16);
    assert_int_equal(base_type_size((ncclx_datatype_t)0), 0);
    assert_int_equal(base_type_size((ncclx_datatype_t)-1), 0);
    assert_string_equal(base_type_name((ncclx_datatype_t)19), "not a type");
    assert_true(base_type_bytes(PTRDIFF_MAX / 8, NCCLX_DOUBLE, &bytes));
    assert_false(base_type_bytes(PTRDIFF_MAX / 8 + 1, NCCLX_DOUBLE, &bytes));
    assert_false(base_type_bytes(SIZE_MAX / 8 + 1, NCCLX_DOUBLE, &bytes));
}

static void info_objects_keep_order_and_limits(void **state)
{
    ncclx_info_t info, copy;
    char value[8], key[NCCLX_MAX_INFO_KEY + 1], long_text[NCCLX_MAX_INFO_VALUE + 2];
    int found;
    size_t count;
    (void)state;
    assert_int_equal(base_info_create(&info), NCCLX_SUCCESS);
    assert_int_equal(base_info_set(info, "b", "1"), NCCLX_SUCCESS);
    assert_int_equal(base_info_set(info, "a", "2"), NCCLX_SUCCESS);
    assert_int_equal(base_info_set(info, "c", ""), NCCLX_SUCCESS);
    assert_int_equal(base_info_set(info, "b", "one and more"), NCCLX_SUCCESS);
    assert_int_equal(base_info_nkeys(info, &count), NCCLX_SUCCESS);
    assert_int_equal(count, 3);
    assert_int_equal(base_info_nthkey(info, 1, key), NCCLX_SUCCESS);
    assert_string_equal(key, "a");
    assert_int_equal(base_info_get(info, "b", value, sizeof value, &found), NCCLX_SUCCESS);
    assert_int_equal(found, 1);
    assert_string_equal(value, "one and"); /* cut */
    assert_int_equal(base_info_get(info, "c", NULL, 0, &found), NCCLX_SUCCESS);
    assert_int_equal(found, 1);
    assert_int_equal(base_info_get(info, "d", NULL, 0, &found), NCCLX_SUCCESS);
    assert_int_equal(found, 0);
    assert_int_equal(base_info_dup(info, &copy), NCCLX_SUCCESS);
    assert_int_equal(base_info_delete(info, "b"), NCCLX_SUCCESS);
    assert_int_equal(base_info_delete(info, "b"), NCCLX_ERR_INFO);
    assert_int_equal(base_info_nthkey(info, 2, key), NCCLX_ERR_INFO);
    assert_string_equal(base_info_find(copy, "b"), "one and more");
    assert_null(base_info_find(info, "b"));
    assert_null(base_info_find(NCCLX_INFO_NULL, "b"));
    memset(long_text, 'x', sizeof long_text);
    long_text[NCCLX_MAX_INFO_VALUE + 1] = 0;
    assert_int_equal(base_info_set(info, "v", long_text), NCCLX_ERR_INFO);
    long_text[NCCLX_MAX_INFO_VALUE] = 0;
    assert_int_equal(base_info_set(info, "v", long_text), NCCLX_SUCCESS);
    long_text[NCCLX_MAX_INFO_KEY + 1] = 0;
    assert_int_equal(base_info_set(info, long_text, "v"), NCCLX_ERR_INFO);
    long_text[NCCLX_MAX_INFO_KEY] = 0;
    assert_int_equal(base_info_set(info, long_text, "v"), NCCLX_SUCCESS);
    assert_int_equal(base_info_set(info, "", "v"), NCCLX_ERR_INFO);
    assert_int_equal(base_info_set(info, NULL, "v"), NCCLX_ERR_INFO);
    assert_int_equal(base_info_set(NCCLX_INFO_NULL, "k", "v"), NCCLX_ERR_INFO);
    assert_int_equal(base_info_free(&info), NCCLX_SUCCESS);
    assert_int_equal(base_info_free(&info), NCCLX_ERR_INFO);
    assert_int_equal(base_info_free(&copy), NCCLX_SUCCESS);
}

/* ---- Waiting ---------------------------------------------------------------------------------------------------------- */

static char *no_environment[] = {NULL};

struct work {
    int left; /* polls that find something */
    int polls;
    struct ncclx_rt *rt;
    struct ncclx_request *request; /* completed when nothing is left */
};

static int poll_work(void *arg)
{
    struct work *work = arg;
    work->polls++;
    assert_int_equal(base_progress(work->rt), 0); /* from inside itself */
    if (!work->left) return 0;
    if (--work->left == 0 && work->request) base_request_complete(work->request, NCCLX_ERR_TRUNCATE);
    return 1;
}

static void release_request(struct ncclx_request *request)
{
    (void)request;
}

static void describe_request(const struct ncclx_request *request, char *text, size_t bytes)
{
    (void)request;
    snprintf(text, bytes, "receive from rank 3");
}

static const struct base_request_kind kind = {.name = "receive", .release = release_request, .describe = describe_request};

static void waiting_ends_with_the_operation(void **state)
{
    struct ncclx_rt rt;
    struct ncclx_request request;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    struct work work = {.left = 100, .rt = &rt, .request = &request};
    base_request_prepare(&request, &kind, &rt, NULL);
    assert_int_equal(base_rt_add_poller(&rt, poll_work, &work), NCCLX_SUCCESS);
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_TRUNCATE);
    assert_int_equal(work.polls, 100);
    assert_null(rt.waiting);
    assert_int_equal(base_request_wait(base_request_done(&rt), "ncclx_send"), NCCLX_SUCCESS);
    for (int i = 1; i < BASE_MAX_POLLERS; i++) assert_int_equal(base_rt_add_poller(&rt, poll_work, &work), NCCLX_SUCCESS);
    assert_int_equal(base_rt_add_poller(&rt, poll_work, &work), NCCLX_ERR_INTERNAL);
    for (int i = 0; i < BASE_MAX_POLLERS; i++) base_rt_remove_poller(&rt, poll_work, &work);
    assert_int_equal(rt.poller_count, 0);
    base_rt_release(&rt);
}

static void deadlines_end_a_wait(void **state)
{
    static char *environment[] = {"NCCLX_TIMEOUT=0.02", NULL};
    struct ncclx_rt rt;
    struct ncclx_request request;
    (void)state;
    for (int oversubscribed = 0; oversubscribed < 2; oversubscribed++) {
        assert_int_equal(base_rt_init(&rt, environment), NCCLX_SUCCESS);
        rt.job.oversubscribed = oversubscribed;
        base_rt_configure(&rt);
        base_request_prepare(&request, &kind, &rt, NULL);
        uint64_t start = base_clock_ns();
        assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_TIMEOUT);
        assert_true(base_clock_ns() - start >= UINT64_C(20000000));
        assert_int_equal(strncmp(base_error_detail(), "deadline passed in ncclx_recv for 0.", 36), 0);
        assert_non_null(strstr(base_error_detail(), ": receive from rank 3"));
        assert_null(rt.waiting);
        base_rt_release(&rt);
    }
}

static void end_of_the_job_ends_a_wait(void **state)
{
    struct ncclx_rt rt;
    struct ncclx_request request;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    atomic_store(&rt.aborting, true);
    base_request_prepare(&request, &kind, &rt, NULL);
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_ABORTED);
    base_rt_release(&rt);
}

static void lose_in_time(struct ncclx_rt *rt, uint64_t now)
{
    rt->watch_ns = now + BASE_NS_PER_S;
    base_rt_peer_lost(rt, 3, "its node is on fire");
}

/* Whatever ends a wait ends a loop of looks, in the same words; and what a rank looks at while it waits is looked at here, too. */
static void faults_end_looks_as_waits(void **state)
{
    struct ncclx_rt rt;
    struct ncclx_request request;
    char text[512];
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    base_request_prepare(&request, &kind, &rt, NULL);
    assert_int_equal(base_look_check(&rt, "ncclx_recv"), NCCLX_SUCCESS);
    rt.watch = lose_in_time;
    rt.watch_ns = UINT64_MAX;
    assert_int_equal(base_look_check(&rt, "ncclx_recv"), NCCLX_SUCCESS);
    rt.watch_ns = base_clock_ns() + 10000000;
    uint64_t due = rt.watch_ns;
    while (!base_look_check(&rt, "ncclx_recv")) {}
    assert_true(base_clock_ns() >= due && rt.watch_ns > due);
    assert_int_equal(base_look_check(&rt, "ncclx_recv"), NCCLX_ERR_PROC_FAILED);
    snprintf(text, sizeof text, "%s", base_error_detail());
    assert_string_equal(text, "ncclx_recv: rank 3 is lost: its node is on fire");
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_PROC_FAILED);
    assert_string_equal(base_error_detail(), text);
    atomic_store(&rt.aborting, true);
    assert_int_equal(base_look_check(&rt, "ncclx_recv"), NCCLX_ERR_ABORTED);
    base_rt_release(&rt);
}

static void own_deadline_of_a_wait(void **state)
{
    struct ncclx_rt rt;
    struct base_wait wait;
    int error = NCCLX_SUCCESS;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    base_wait_begin(&wait, &rt, "ncclx_win_wait_signal", NULL, NULL);
    base_wait_set_timeout(&wait, 1000000);
    while (!error) error = base_wait_step(&wait);
    assert_int_equal(error, NCCLX_ERR_TIMEOUT);
    base_wait_end(&wait);
    base_wait_begin(&wait, &rt, "ncclx_win_wait_signal", NULL, NULL);
    base_wait_set_timeout(&wait, UINT64_MAX); /* does not wrap around */
    for (int i = 0; i < 1000; i++) assert_int_equal(base_wait_step(&wait), NCCLX_SUCCESS);
    base_wait_end(&wait);
    base_rt_release(&rt);
}

static int poll_traffic(void *arg)
{
    (void)arg;
    return 1;
}

/* Traffic that has nothing to do with a wait does not hold up its deadline. */
static void deadlines_end_a_wait_among_traffic(void **state)
{
    struct ncclx_rt rt;
    struct ncclx_request request;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    rt.timeout_ns = 1000000;
    base_rt_add_poller(&rt, poll_traffic, NULL);
    base_request_prepare(&request, &kind, &rt, NULL);
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_TIMEOUT);
    rt.timeout_ns = 0;
    atomic_store(&rt.aborting, true);
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_ABORTED);
    base_rt_release(&rt);
}

static atomic_int times_blocked;

static void block(void *arg, uint64_t ns)
{
    struct timespec pause = {.tv_nsec = (long)ns};
    (void)arg;
    assert_true(ns > 0 && ns < BASE_NS_PER_S);
    atomic_fetch_add(&times_blocked, 1);
    nanosleep(&pause, NULL);
}

/* Idle for long, a rank sleeps nearly all the time: few polls in 200 ms. */
static void long_waits_sleep(void **state)
{
    struct ncclx_rt rt;
    struct ncclx_request request;
    struct work work = {.rt = &rt};
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    rt.spin_limit = 100;
    rt.timeout_ns = 200000000;
    rt.block = block;
    times_blocked = 0;
    base_rt_add_poller(&rt, poll_work, &work);
    base_request_prepare(&request, &kind, &rt, NULL);
    assert_int_equal(base_request_wait(&request, "ncclx_recv"), NCCLX_ERR_TIMEOUT);
    assert_true(times_blocked > 2);
    base_rt_release(&rt);
}

static void reports_name_every_wait(void **state)
{
    struct ncclx_rt rt;
    struct base_wait outer, inner;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    snprintf(rt.job.node_name, sizeof rt.job.node_name, "node7");
    base_wait_begin(&outer, &rt, "ncclx_recv", NULL, NULL);
    base_wait_begin(&inner, &rt, "ncclx_wait", NULL, NULL);
    atomic_fetch_add(&rt.dump_requested, 1);
    capture_begin();
    for (int i = 0; i < 1000; i++) base_wait_step(&inner);
    const char *text = capture_end();
    assert_int_equal(strncmp(text, "ncclx: rank 0 on node7: in ncclx_wait for ", 41), 0);
    assert_ptr_equal(strchr(text, '\n'), text + strlen(text) - 1); /* once */
    base_wait_end(&outer); /* threads end in any order */
    base_wait_end(&inner);
    assert_null(rt.waiting);
    base_rt_release(&rt);
}

/* ---- Threads ------------------------------------------------------------------------------------------------------------ */

struct crowd {
    struct ncclx_rt rt;
    atomic_bool stop;
    atomic_long turns[4];
    long inside;
};

struct member {
    struct crowd *crowd;
    int index;
};

/* Takes the lock again and again. */
static void *hog(void *arg)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;
    while (!crowd->stop) {
        base_rt_lock(&crowd->rt);
        crowd->inside++;
        base_rt_unlock(&crowd->rt);
        crowd->turns[member->index]++;
    }
    return NULL;
}

/* Waits in the library for something that does not come. */
static void *wait_for_nothing(void *arg)
{
    struct member *member = arg;
    struct crowd *crowd = member->crowd;
    struct base_wait wait;
    base_rt_lock(&crowd->rt);
    base_wait_begin(&wait, &crowd->rt, "ncclx_recv", NULL, NULL);
    while (!crowd->stop) {
        base_wait_step(&wait);
        crowd->inside++;
        crowd->turns[member->index]++;
    }
    base_wait_end(&wait);
    base_rt_unlock(&crowd->rt);
    return NULL;
}

static void threads_do_not_starve_each_other(void **state)
{
    static struct crowd crowd;
    struct member members[4];
    pthread_t threads[4];
    (void)state;
    assert_int_equal(base_rt_init(&crowd.rt, no_environment), NCCLX_SUCCESS);
    crowd.rt.threaded = true;
    for (int i = 0; i < 4; i++) {
        members[i] = (struct member){&crowd, i};
        assert_int_equal(pthread_create(&threads[i], NULL, i % 2 ? hog : wait_for_nothing, &members[i]), 0);
    }
    uint64_t limit = base_clock_ns() + 30 * BASE_NS_PER_S;
    bool all = false;
    while (!all && base_clock_ns() < limit) {
        usleep(1000);
        all = true;
        for (int i = 0; i < 4; i++) all = all && crowd.turns[i] > 200;
    }
    crowd.stop = true;
    long turns = 0;
    for (int i = 0; i < 4; i++) {
        pthread_join(threads[i], NULL);
        turns += crowd.turns[i];
    }
    assert_true(all);
    assert_int_equal(crowd.inside, turns); /* the lock was one */
    base_rt_release(&crowd.rt);
}

static int count_poll(void *arg)
{
    (*(int *)arg)++;
    return 0;
}

static void agent_polls_while_the_program_computes(void **state)
{
    struct ncclx_rt rt;
    int polls = 0, seen = 0;
    (void)state;
    assert_int_equal(base_rt_init(&rt, no_environment), NCCLX_SUCCESS);
    base_rt_add_poller(&rt, count_poll, &polls);
    assert_int_equal(base_agent_start(&rt), NCCLX_SUCCESS);
    assert_int_equal(base_agent_start(&rt), NCCLX_SUCCESS);
    assert_true(rt.threaded);
    base_rt_unlock(&rt); /* base_agent_start left it to its caller */
    for (int i = 0; i < 30000 && seen < 300; i++) { /* more than its eager rounds: sleeping, it polls on */
        usleep(1000);
        base_rt_lock(&rt);
        seen = polls;
        base_rt_unlock(&rt);
    }
    assert_true(seen >= 300);
    base_agent_stop(&rt);
    base_agent_stop(&rt);
    seen = polls;
    usleep(2000);
    assert_int_equal(polls, seen);
    base_rt_release(&rt);
}

/* ---- Fork --------------------------------------------------------------------------------------------------------------- */

static int in_child(int fd, int high, int kept, int again, const char *mapping, size_t bytes)
{
    unsigned char resident;
    if (!atomic_load(&ncclx_process.forked)) return 1;
    if (fcntl(fd, F_GETFD) >= 0 || errno != EBADF || fcntl(high, F_GETFD) >= 0 || errno != EBADF) return 2;
    if (fcntl(kept, F_GETFD) < 0 || fcntl(again, F_GETFD) < 0) return 3;
    if (mincore((void *)(uintptr_t)mapping, bytes, &resident) == 0 || errno != ENOMEM) return 4;
    base_log(AREA_BASE, LOG_DEBUG, "does not hang");
    return 0;
}

static void forked_child_holds_nothing(void **state)
{
    size_t bytes = (size_t)sysconf(_SC_PAGESIZE);
    int status, fd = open("/dev/null", O_RDONLY), kept = open("/dev/null", O_RDONLY), closed = open("/dev/null", O_RDONLY);
    int high = fcntl(fd, F_DUPFD, 200);
    char *mapping = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    (void)state;
    assert_int_equal(base_process_init(), NCCLX_SUCCESS);
    assert_int_equal(base_process_init(), NCCLX_SUCCESS);
    assert_int_equal(base_process_own_fd(closed), NCCLX_SUCCESS);
    assert_int_equal(base_process_own_fd(high), NCCLX_SUCCESS);
    assert_int_equal(base_process_own_fd(fd), NCCLX_SUCCESS);
    assert_int_equal(base_process_own_mapping(mapping, bytes), NCCLX_SUCCESS);
    base_process_close(closed);
    base_process_close(12345); /* never owned, nor open */
    base_process_close(-1);
    int again = open("/dev/null", O_RDONLY); /* the number is somebody else's now */
    assert_int_equal(again, closed);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(in_child(fd, high, kept, again, mapping, bytes));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    assert_false(atomic_load(&ncclx_process.forked)); /* the parent is as before */
    mapping[0] = 1;
    assert_true(fcntl(fd, F_GETFD) >= 0);
    base_process_disown_mapping(mapping);
    munmap(mapping, bytes);
    base_process_close(fd);
    base_process_close(high);
    close(kept);
    close(again);
}

/* From and to any place of a line, and nothing beside it. */
static void streaming_copies(void **state)
{
    (void)state;
    static char from[1024], to[1024], expected[1024];
    for (size_t i = 0; i < sizeof from; i++) from[i] = (char)(i * 7 + i / 256);
    for (size_t bytes = 0; bytes < 700; bytes += bytes < 260 ? 1 : 37) {
        for (size_t place = 0; place < 64; place += 5) {
            memset(to, 'x', sizeof to);
            memset(expected, 'x', sizeof expected);
            memcpy(expected + 64 + place, from + bytes % 64, bytes);
            base_copy_streaming(to + 64 + place, from + bytes % 64, bytes);
            assert_memory_equal(to, expected, sizeof to);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(streaming_copies),
        cmocka_unit_test(areas_count_bytes),
        cmocka_unit_test(errors_keep_their_sentence),
        cmocka_unit_test(types_have_sizes_and_names),
        cmocka_unit_test(info_objects_keep_order_and_limits),
        cmocka_unit_test(waiting_ends_with_the_operation),
        cmocka_unit_test(deadlines_end_a_wait),
        cmocka_unit_test(end_of_the_job_ends_a_wait),
        cmocka_unit_test(faults_end_looks_as_waits),
        cmocka_unit_test(own_deadline_of_a_wait),
        cmocka_unit_test(deadlines_end_a_wait_among_traffic),
        cmocka_unit_test(long_waits_sleep),
        cmocka_unit_test(reports_name_every_wait),
        cmocka_unit_test(threads_do_not_starve_each_other),
        cmocka_unit_test(agent_polls_while_the_program_computes),
        cmocka_unit_test(forked_child_holds_nothing),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
