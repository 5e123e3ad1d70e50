/* bootstrap.c - what a process manager may say, and a job of one. */
#include "config.h"

#include "bootstrap/client.h"

#include <stdarg.h>
#include <stddef.h>
#include <poll.h>
#include <pthread.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cmocka.h>

static void lists_of_ranks(void **state)
{
    static const struct {
        const char *text;
        int size, count; /* count 0: refused */
        int first, last;
    } cases[] = {
        {"0", 1, 1, 0, 0}, {"0,1,2,3", 4, 4, 0, 3}, {"3,1", 4, 2, 1, 3}, {"7,2,5", 9, 3, 2, 7},
        {"", 4, 0, 0, 0}, {",", 4, 0, 0, 0}, {"0,", 4, 0, 0, 0}, {",0", 4, 0, 0, 0}, {"4", 4, 0, 0, 0}, {"-1", 4, 0, 0, 0}, {"0,0", 4, 0, 0, 0},
        {"1,2,1", 4, 0, 0, 0}, {"0-3", 4, 0, 0, 0}, {"0 ,1", 4, 0, 0, 0}, {" 0", 4, 0, 0, 0}, {"+1", 4, 0, 0, 0}, {"0x1", 4, 0, 0, 0},
        {"4294967296", 4, 0, 0, 0}, {"18446744073709551616", 4, 0, 0, 0}, {"0,1,2,3,0", 4, 0, 0, 0}, {"0", 0, 0, 0, 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int *ranks = NULL, count = 0;
        bool good = bootstrap_parse_ranks(cases[i].text, cases[i].size, &ranks, &count);
        if (good != (cases[i].count > 0)) fail_msg("\"%s\" of %d is %s", cases[i].text, cases[i].size, good ? "taken" : "refused");
        if (!good) continue;
        assert_int_equal(count, cases[i].count);
        assert_int_equal(ranks[0], cases[i].first);
        assert_int_equal(ranks[count - 1], cases[i].last);
        base_free(AREA_BOOTSTRAP, ranks);
    }
}

static void places_of_ranks(void **state)
{
    static const struct {
        const char *text;
        int size, count; /* count 0: refused */
        const char *last;
        int ranks; /* there */
    } cases[] = {
        {"a=0", 1, 1, "a", 1}, {"a=0-3;b=4,6;c=5", 7, 3, "c", 1}, {"n1=1;n2=0,2-3", 4, 2, "n2", 3}, {"a=0,1;fd00::1=2", 3, 2, "fd00::1", 1},
        {"", 1, 0, "", 0}, {"a", 1, 0, "", 0}, {"a=", 1, 0, "", 0}, {"=0", 1, 0, "", 0}, {"a=0", 2, 0, "", 0}, {"a=0;b=0", 1, 0, "", 0},
        {"a=0-1;b=1-2", 3, 0, "", 0}, {"a=1-0", 2, 0, "", 0}, {"a=0-", 1, 0, "", 0}, {"a=0,", 1, 0, "", 0}, {"a=-1", 1, 0, "", 0},
        {"a=0-4294967297", 2, 0, "", 0}, {"a=99999999999999999999", 2, 0, "", 0}, {"a= 0", 1, 0, "", 0}, {"a=0-+0", 1, 0, "", 0},
    };
    (void)state;
    for (size_t i = 0; i < sizeof cases / sizeof cases[0]; i++) {
        int of[8] = {-1, -1, -1, -1, -1, -1, -1, -1};
        char text[64];
        struct bootstrap_nodes nodes = {.of = of};
        snprintf(text, sizeof text, "%s", cases[i].text);
        bool good = bootstrap_parse_places(text, cases[i].size, &nodes);
        if (good != (cases[i].count > 0)) fail_msg("\"%s\" of %d is %s", cases[i].text, cases[i].size, good ? "taken" : "refused");
        if (good) {
            assert_int_equal(nodes.count, cases[i].count);
            assert_string_equal(nodes.node[nodes.count - 1].name, cases[i].last);
            assert_int_equal(nodes.node[nodes.count - 1].count, cases[i].ranks);
        }
        for (int node = 0; node < nodes.count; node++) {
            base_free(AREA_BOOTSTRAP, nodes.node[node].name);
            base_free(AREA_BOOTSTRAP, nodes.node[node].ranks);
        }
        base_free(AREA_BOOTSTRAP, nodes.node);
    }
}

static void integers_of_any_width(void **state)
{
    pmix_value_t value = {.type = PMIX_UINT16, .data.uint16 = 65535};
    uint64_t number = 0;
    (void)state;
    assert_true(bootstrap_value_number(&value, &number));
    assert_int_equal(number, 65535);
    value = (pmix_value_t){.type = PMIX_INT8, .data.int8 = 7};
    assert_true(bootstrap_value_number(&value, &number));
    assert_int_equal(number, 7);
    value = (pmix_value_t){.type = PMIX_INT, .data.integer = -1};
    assert_false(bootstrap_value_number(&value, &number));
    value = (pmix_value_t){.type = PMIX_PROC_RANK, .data.rank = 12};
    assert_true(bootstrap_value_number(&value, &number));
    assert_int_equal(number, 12);
    value = (pmix_value_t){.type = PMIX_STRING, .data.string = (char *)(uintptr_t)"12"};
    assert_false(bootstrap_value_number(&value, &number));
    assert_string_equal(bootstrap_value_text(&value), "12");
    value = (pmix_value_t){.type = PMIX_UINT32, .data.uint32 = 1};
    assert_null(bootstrap_value_text(&value));
}

static void places_of_memory(void **state)
{
    static const char *const bad[] = {
        "", "/proc/1/fd", "/proc/1/fd/", "/proc//fd/1", "/proc/0/fd/1", "/proc/-1/fd/1", "/proc/1/fd/+1", "/proc/1/fd/1/", "/proc/1/fd/1/..",
        "/proc/1/fd/1 ../x", "/proc/1/fd/1 a b", "/proc/1/fd/1 A", "/proc/self/fd/1", "/dev/shm/x", " /proc/1/fd/1", "/proc/ 1/fd/1",
        "/proc/99999999999/fd/1", "/proc/1/root/etc/passwd",
    };
    char text[128];
    const char *name;
    (void)state;
    for (size_t i = 0; i < sizeof bad / sizeof bad[0]; i++) {
        strcpy(text, bad[i]);
        if (bootstrap_segment_parse(text, &name)) fail_msg("\"%s\" is taken", bad[i]);
    }
    strcpy(text, "/proc/12/fd/7");
    assert_true(bootstrap_segment_parse(text, &name));
    assert_string_equal(name, "");
    strcpy(text, "/proc/12/fd/7 ncclx-00ff");
    assert_true(bootstrap_segment_parse(text, &name));
    assert_string_equal(text, "/proc/12/fd/7");
    assert_string_equal(name, "ncclx-00ff");
}

/* The number of a process on another host may be that of any process here. */
static void memory_of_somebody_else(void **state)
{
    char where[128];
    int fd = -1, memory = memfd_create("ncclx-right", MFD_CLOEXEC);
    (void)state;
    assert_true(memory >= 0);
    snprintf(where, sizeof where, "/proc/%d/fd/%d ncclx-right", (int)getpid(), memory);
    assert_int_equal(bootstrap_segment_open(where, 1, &fd), NCCLX_SUCCESS);
    close(fd);
    snprintf(where, sizeof where, "/proc/%d/fd/%d ncclx-wrong", (int)getpid(), memory);
    assert_int_equal(bootstrap_segment_open(where, 1, &fd), NCCLX_ERR_UNREACHABLE);
    snprintf(where, sizeof where, "/proc/%d/fd/%d", (int)getpid(), memory);
    assert_int_equal(bootstrap_segment_open(where, -1, &fd), NCCLX_SUCCESS);
    close(fd);
    close(memory);
    snprintf(where, sizeof where, "/proc/%d/fd/%d", (int)getpid(), memory);
    assert_int_equal(bootstrap_segment_open(where, -1, &fd), NCCLX_ERR_UNREACHABLE);
    FILE *file = tmpfile();
    assert_non_null(file);
    snprintf(where, sizeof where, "/proc/%d/fd/%d", (int)getpid(), fileno(file));
    assert_int_equal(bootstrap_segment_open(where, -1, &fd), NCCLX_ERR_UNREACHABLE);
    fclose(file);
}

static void forget_servers(void)
{
    static const char *const names[] = {"PMIX_NAMESPACE", "PMIX_RANK", "PMIX_SERVER_URI", "PMIX_SERVER_URI2", "PMIX_SERVER_URI3", "PMIX_SERVER_URI4",
                                        "PMIX_SERVER_URI21", "PMIX_SERVER_URI41"};
    for (size_t i = 0; i < sizeof names / sizeof names[0]; i++) unsetenv(names[i]);
}

static void job_of_one(void **state)
{
    struct ncclx_rt rt;
    void *value;
    size_t bytes;
    int fd = -1, node = -1;
    (void)state;
    forget_servers();
    setenv("PMIX_MCA_gds", "hash", 1); /* a user's setting names no server */
    assert_int_equal(base_rt_init(&rt, NULL), NCCLX_SUCCESS);
    assert_int_equal(bootstrap_init(&rt), NCCLX_SUCCESS);
    assert_false(PMIx_Initialized());
    assert_int_equal(rt.job.size, 1);
    assert_int_equal(rt.job.local_ranks[0], 0);
    assert_false(rt.job.launched);
    assert_true(rt.job.node_name[0] != 0);
    assert_int_equal(bootstrap_fence(&rt), NCCLX_SUCCESS);
    assert_int_equal(bootstrap_put(&rt, "key", "value", 5), NCCLX_SUCCESS);
    assert_int_equal(bootstrap_commit(&rt), NCCLX_SUCCESS);
    assert_int_equal(bootstrap_get(&rt, 0, "key", &value, &bytes, 10), NCCLX_ERR_BOOTSTRAP);
    assert_int_equal(bootstrap_get(&rt, 1, "key", &value, &bytes, 10), NCCLX_ERR_RANK);
    assert_int_equal(bootstrap_node_of(&rt, 0, &node), NCCLX_SUCCESS);
    assert_int_equal(node, 0);
    assert_int_equal(bootstrap_node_of(&rt, 1, &node), NCCLX_ERR_RANK);
    assert_int_equal(bootstrap_node_segment(&rt, &fd), NCCLX_SUCCESS);
    assert_int_equal(ftruncate(fd, 4096), 0);
    close(fd);
    bootstrap_abort(&rt, 3, "nobody to tell"); /* returns: the caller ends the process */
    assert_int_equal(bootstrap_finalize(&rt), NCCLX_SUCCESS);
    base_rt_release(&rt);
}

static void server_that_is_gone(void **state)
{
    static const char uri[] = "gone.0;tcp4://127.0.0.1:9";
    struct ncclx_rt rt;
    (void)state;
    setenv("PMIX_NAMESPACE", "gone", 1);
    setenv("PMIX_RANK", "0", 1);
    setenv("PMIX_SERVER_URI41", uri, 1);
    setenv("PMIX_SERVER_URI4", uri, 1);
    assert_int_equal(base_rt_init(&rt, NULL), NCCLX_SUCCESS);
    assert_int_equal(bootstrap_init(&rt), NCCLX_ERR_BOOTSTRAP);
    assert_non_null(strstr(base_error_detail(), "cannot be reached"));
    assert_null(rt.bootstrap);
    assert_int_equal(bootstrap_finalize(&rt), NCCLX_SUCCESS);
    base_rt_release(&rt);
    forget_servers();
}

/* ---- Waiting for an answer ---- */

struct waiter {
    struct ncclx_rt rt;
    struct bootstrap boot;
    struct bootstrap_call *call;
    int calls[2]; /* a pipe: whoever sleeps at its end is woken */
    int polls, answer_at, sleeps;
};

/* A peer that needs this rank so often before it lets the answer come. */
static int serve_peer(void *arg)
{
    struct waiter *waiter = arg;
    if (++waiter->polls == waiter->answer_at) bootstrap_call_answer(waiter->call, PMIX_SUCCESS, NULL);
    return 0;
}

static void sleep_until_woken(void *arg, uint64_t ns)
{
    struct waiter *waiter = arg;
    struct pollfd end = {.fd = waiter->calls[0], .events = POLLIN};
    char byte;
    (void)ns; /* nothing but a call helps */
    waiter->sleeps++;
    if (waiter->polls < waiter->answer_at) return; /* the peer has something again */
    assert_int_equal(poll(&end, 1, 30000), 1);
    assert_int_equal(read(end.fd, &byte, 1), 1);
}

static void wake(void *arg)
{
    const struct waiter *waiter = arg;
    assert_int_equal(write(waiter->calls[1], "", 1), 1);
}

static void *answer_late(void *arg)
{
    struct waiter *waiter = arg;
    usleep(50000);
    bootstrap_call_answer(waiter->call, PMIX_SUCCESS, NULL);
    return NULL;
}

static void begin_waiting(struct waiter *waiter)
{
    memset(waiter, 0, sizeof *waiter);
    assert_int_equal(base_rt_init(&waiter->rt, NULL), NCCLX_SUCCESS);
    assert_int_equal(pipe(waiter->calls), 0);
    waiter->boot.rt = &waiter->rt;
    pthread_mutex_init(&waiter->boot.lock, NULL);
    base_rt_sleep_on(&waiter->rt, sleep_until_woken, wake, waiter);
    assert_int_equal(base_rt_add_poller(&waiter->rt, serve_peer, waiter), NCCLX_SUCCESS);
    waiter->call = bootstrap_call_new(&waiter->boot);
    assert_non_null(waiter->call);
}

static void end_waiting(struct waiter *waiter)
{
    close(waiter->calls[0]);
    close(waiter->calls[1]);
    bootstrap_call_release(&waiter->boot);
    pthread_mutex_destroy(&waiter->boot.lock);
    base_rt_release(&waiter->rt);
}

/* A hundred times before its answer comes: each at once, not at the next look. */
static void peers_are_served_while_an_answer_is_awaited(void **state)
{
    struct waiter waiter;
    pmix_status_t status;
    (void)state;
    begin_waiting(&waiter);
    waiter.answer_at = 100;
    assert_int_equal(bootstrap_call_wait(waiter.call, &waiter.boot, "a test", BASE_NS_PER_S, &status, NULL), NCCLX_SUCCESS);
    assert_int_equal(status, PMIX_SUCCESS);
    assert_int_equal(waiter.polls, 100);
    end_waiting(&waiter);
}

static void answers_end_a_sleep(void **state)
{
    struct waiter waiter;
    pthread_t thread;
    pmix_status_t status;
    (void)state;
    begin_waiting(&waiter);
    assert_int_equal(pthread_create(&thread, NULL, answer_late, &waiter), 0);
    assert_int_equal(bootstrap_call_wait(waiter.call, &waiter.boot, "a test", 0, &status, NULL), NCCLX_SUCCESS);
    pthread_join(thread, NULL);
    assert_true(waiter.sleeps > 0);
    end_waiting(&waiter);
}

/* In progress already: peers' calls would go on and on, as nobody takes them. */
static void answers_awaited_in_progress(void **state)
{
    struct waiter waiter;
    pthread_t thread;
    pmix_status_t status;
    (void)state;
    begin_waiting(&waiter);
    waiter.rt.polling = true;
    assert_int_equal(pthread_create(&thread, NULL, answer_late, &waiter), 0);
    assert_int_equal(bootstrap_call_wait(waiter.call, &waiter.boot, "a test", 0, &status, NULL), NCCLX_SUCCESS);
    pthread_join(thread, NULL);
    assert_int_equal(waiter.sleeps, 0);
    assert_int_equal(waiter.polls, 0);
    end_waiting(&waiter);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lists_of_ranks),   cmocka_unit_test(places_of_ranks), cmocka_unit_test(integers_of_any_width), cmocka_unit_test(places_of_memory),
        cmocka_unit_test(memory_of_somebody_else), cmocka_unit_test(job_of_one), cmocka_unit_test(server_that_is_gone),
        cmocka_unit_test(peers_are_served_while_an_answer_is_awaited), cmocka_unit_test(answers_end_a_sleep), cmocka_unit_test(answers_awaited_in_progress),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
