/* The server's fences, which PMIx asks of the host only for jobs of several nodes: called as it would, in a job of one.
 */
#include "launcher/server_private.h"

#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
/* after the headers it needs */
#include <cmocka.h>

#define RANKS 4

struct server *server_running;

static struct server server = {.job = "job", .rank_count = RANKS};
static struct map_rank ranks[RANKS];

struct result {
    int answers;
    pmix_status_t status;
    char data[100];
    size_t bytes;
};

static void on_fence(pmix_status_t status, const char *data, size_t bytes, void *arg, pmix_release_cbfunc_t release,
                     void *release_arg)
{
    struct result *result = arg;
    result->answers++;
    result->status = status;
    result->bytes = bytes;
    assert_true(bytes <= sizeof result->data);
    if (bytes) memcpy(result->data, data, bytes);
    if (release) release(release_arg);
}

bool server_post(struct server *to, enum server_note_kind kind, int rank, int code, const void *text, size_t bytes)
{
    (void)to, (void)kind, (void)rank, (void)code, (void)text, (void)bytes;
    fail_msg("a job on one node has no neighbours, and nothing to say");
    return true;
}

void server_wake_at(struct server *to, uint64_t when)
{
    (void)to, (void)when;
}

static int open_server(void **state)
{
    int positions[] = {0};
    const struct message_launch launch = {
        .node_count = 1, .positions = positions, .radix = 32, .ranks = ranks, .rank_count = RANKS};
    const struct server_options options = {.launch = &launch};
    (void)state;
    server_running = &server;
    return server_exchange_create(&server, &options);
}

static int close_server(void **state)
{
    struct base_area_usage usage;
    (void)state;
    server_exchange_free(server.exchange);
    base_area_usage(AREA_BOOTSTRAP, &usage);
    assert_int_equal(usage.bytes, 0);
    base_area_usage(AREA_LAUNCHER, &usage);
    assert_int_equal(usage.bytes, 0);
    return 0;
}

static pmix_status_t fence(const char *job, pmix_rank_t first, pmix_rank_t second, const char *data,
                           struct result *result)
{
    pmix_proc_t procs[2];
    PMIX_LOAD_PROCID(&procs[0], job, first);
    PMIX_LOAD_PROCID(&procs[1], job, second);
    *result = (struct result){.status = PMIX_SUCCESS};
    return server_exchange_fence(&server, procs, 2, data, data ? strlen(data) : 0, on_fence, result);
}

static void test_data(void **state)
{
    struct result result;
    (void)state;
    assert_int_equal(fence("job", 3, 1, "cards", &result), PMIX_SUCCESS);
    assert_int_equal(result.answers, 1);
    assert_int_equal(result.status, PMIX_SUCCESS);
    assert_int_equal(result.bytes, 5);
    assert_memory_equal(result.data, "cards", 5);
    assert_int_equal(fence("job", PMIX_RANK_WILDCARD, 1, NULL, &result), PMIX_SUCCESS);
    assert_int_equal(result.answers, 1);
    assert_int_equal(result.bytes, 0);
}

static void test_strangers(void **state)
{
    struct result result;
    (void)state;
    assert_int_equal(fence("another", 0, 1, "cards", &result), PMIX_ERR_BAD_PARAM);
    assert_int_equal(fence("job", 0, RANKS, "cards", &result), PMIX_ERR_BAD_PARAM);
    assert_int_equal(result.answers, 0);
}

static void test_death(void **state)
{
    struct result result;
    (void)state;
    server_exchange_rank_died(&server, 2);
    assert_int_equal(fence("job", PMIX_RANK_WILDCARD, PMIX_RANK_WILDCARD, "cards", &result), PMIX_SUCCESS);
    assert_int_equal(result.answers, 1);
    assert_int_equal(result.status, PMIX_ERR_PROC_ABORTED);
    assert_int_equal(result.bytes, 0);
    assert_int_equal(fence("job", 0, 1, "cards", &result), PMIX_SUCCESS);
    assert_int_equal(result.status, PMIX_SUCCESS);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_setup_teardown(test_data, open_server, close_server),
        cmocka_unit_test_setup_teardown(test_strangers, open_server, close_server),
        cmocka_unit_test_setup_teardown(test_death, open_server, close_server),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
