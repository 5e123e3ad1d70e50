/* The exchange of several servers, connected in memory: called as PMIx would, with messages delivered in random order
 * (each way between two neighbours in order). PMIx' side is played here: what ranks have committed, and its thread. */
#include "launcher/server_calls.h"

#include "runtime/base/base.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
/* after the headers it needs */
#include <cmocka.h>

#define NODES 5
#define RANKS 10
#define RADIX 2

/* Ranks are dealt one by one, and the nodes stand in the tree in another order than in the job. */
static int positions[NODES] = {3, 0, 4, 1, 2};
static const char *names[NODES] = {"a", "b", "c", "d", "e"};
static struct map_rank ranks[RANKS];
static struct message_launch launches[NODES];
static struct server servers[NODES]; /* by position */

struct message {
    struct message *next;
    int from, to, link; /* positions; the receiver's link */
    size_t bytes;
    unsigned char data[];
};

static struct message *messages, **last_message = &messages;
static char troubles[1000];
static uint64_t wake[NODES];
static const char *committed[RANKS]; /* null: nothing yet */
static unsigned seed;

/* ---- What the exchange stands on ---- */

static int position_of(const struct server *server)
{
    return (int)(server - servers);
}

bool server_post(struct server *server, enum server_note_kind kind, int link, int code, const void *data, size_t bytes)
{
    int from = position_of(server);
    (void)code;
    if (kind == SERVER_TROUBLE) {
        strncat(troubles, data, sizeof troubles - strlen(troubles) - 2);
        strcat(troubles, "\n");
        return true;
    }
    assert_int_equal(kind, SERVER_SEND);
    struct message *message = malloc(sizeof *message + bytes);
    assert_non_null(message);
    int to = link == SERVER_PARENT ? (from - 1) / RADIX : from * RADIX + 1 + link;
    *message = (struct message){.from = from, .to = to, .bytes = bytes};
    message->link = link == SERVER_PARENT ? from - (to * RADIX + 1) : SERVER_PARENT;
    memcpy(message->data, data, bytes);
    *last_message = message;
    last_message = &message->next;
    return true;
}

void server_wake_at(struct server *server, uint64_t when)
{
    wake[position_of(server)] = when;
}

pmix_status_t PMIx_server_dmodex_request(const pmix_proc_t *proc, pmix_dmodex_response_fn_t done, void *arg)
{
    const char *value = committed[proc->rank];
    if (!value) return PMIX_ERR_NOT_FOUND; /* PMIx would wait: here it is asked again */
    done(PMIX_SUCCESS, (char *)(uintptr_t)value, strlen(value) + 1, arg);
    return PMIX_SUCCESS;
}

void PMIx_server_deregister_client(const pmix_proc_t *proc, pmix_op_cbfunc_t done, void *arg)
{
    (void)proc;
    done(PMIX_SUCCESS, arg);
}

/* PMIx packs when it is initialized only. Here a value is its text. */
pmix_status_t PMIx_Data_pack(const pmix_proc_t *target, pmix_data_buffer_t *buffer, void *value, int32_t count,
                             pmix_data_type_t type)
{
    (void)target, (void)count, (void)type;
    buffer->base_ptr = strdup(((pmix_value_t *)value)->data.string);
    buffer->bytes_used = strlen(buffer->base_ptr) + 1;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_unload(pmix_data_buffer_t *buffer, pmix_byte_object_t *bytes)
{
    *bytes = (pmix_byte_object_t){.bytes = buffer->base_ptr, .size = buffer->bytes_used};
    buffer->base_ptr = NULL;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_load(pmix_data_buffer_t *buffer, pmix_byte_object_t *bytes)
{
    buffer->base_ptr = bytes->bytes;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Data_unpack(const pmix_proc_t *source, pmix_data_buffer_t *buffer, void *value, int32_t *count,
                               pmix_data_type_t type)
{
    (void)source, (void)count, (void)type;
    PMIX_VALUE_LOAD((pmix_value_t *)value, buffer->base_ptr, PMIX_STRING);
    return PMIX_SUCCESS;
}

/* ---- The world ---- */

static int node_at(int position)
{
    for (int node = 0; node < NODES; node++)
        if (positions[node] == position) return node;
    return -1;
}

static struct server *server_of(int rank)
{
    return &servers[positions[rank % NODES]];
}

static int open_world(void **state)
{
    (void)state;
    memset(wake, 255, sizeof wake);
    memset(committed, 0, sizeof committed);
    troubles[0] = 0;
    for (int rank = 0; rank < RANKS; rank++) ranks[rank].node = rank % NODES;
    for (int p = 0; p < NODES; p++) {
        launches[p] = (struct message_launch){.job = "job",
                                              .nodes = names,
                                              .positions = positions,
                                              .node_count = NODES,
                                              .node = node_at(p),
                                              .radix = RADIX,
                                              .ranks = ranks,
                                              .rank_count = RANKS};
        servers[p] = (struct server){.launch = &launches[p]};
        pthread_mutex_init(&servers[p].jobs.lock, NULL);
        if (server_jobs_add(&servers[p].jobs, &launches[p]) || server_exchange_create(&servers[p])) return -1;
    }
    return 0;
}

static int close_world(void **state)
{
    struct base_area_usage usage;
    (void)state;
    while (messages) {
        struct message *next = messages->next;
        free(messages);
        messages = next;
    }
    last_message = &messages;
    for (int p = 0; p < NODES; p++) {
        if (servers[p].exchange) server_exchange_free(servers[p].exchange);
        server_jobs_free(&servers[p].jobs);
    }
    base_area_usage(AREA_BOOTSTRAP, &usage);
    assert_int_equal(usage.bytes, 0);
    base_area_usage(AREA_LAUNCHER, &usage);
    assert_int_equal(usage.bytes, 0);
    return 0;
}

/* The place of one message that may be next: the first of its way. */
static struct message **choose(void)
{
    size_t count = 0, wanted;
    for (struct message *message = messages; message; message = message->next) count++;
    wanted = (size_t)rand_r(&seed) % count;
    struct message **place = &messages;
    while (wanted--) place = &(*place)->next;
    for (struct message **first = &messages; *first != *place; first = &(*first)->next)
        if ((*first)->from == (*place)->from && (*first)->to == (*place)->to) return first;
    return place;
}

static void deliver_all(void)
{
    while (messages) {
        struct message **place = choose(), *message = *place;
        *place = message->next;
        if (!*place) last_message = place;
        struct server *to = &servers[message->to];
        if (to->exchange && servers[message->from].exchange)
            assert_int_equal(server_exchange_receive(to, message->link, message->data, message->bytes), 0);
        free(message);
    }
}

/* Lets time pass until nothing is awaited, or this many ticks. */
static void run(int ticks)
{
    deliver_all();
    while (ticks-- > 0) {
        uint64_t earliest = UINT64_MAX;
        for (int p = 0; p < NODES; p++)
            if (servers[p].exchange && wake[p] < earliest) earliest = wake[p];
        if (earliest == UINT64_MAX) return;
        while (base_clock_ns() < earliest) usleep(200);
        for (int p = 0; p < NODES; p++)
            if (servers[p].exchange && wake[p] <= earliest) server_exchange_tick(&servers[p]);
        deliver_all();
    }
}

static void crash(int position)
{
    server_exchange_free(servers[position].exchange);
    servers[position].exchange = NULL;
    for (int p = 0; p < NODES; p++) {
        if (p && (p - 1) / RADIX == position) server_exchange_link_lost(&servers[p], SERVER_PARENT);
        if (position && (position - 1) / RADIX == p) server_exchange_link_lost(&servers[p], position - (p * RADIX + 1));
    }
}

/* ---- What PMIx would ask ---- */

struct result {
    int answers;
    pmix_status_t status;
    char data[200];
    size_t bytes;
};

static void on_data(pmix_status_t status, const char *data, size_t bytes, void *arg, pmix_release_cbfunc_t release,
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

static void on_change(pmix_status_t status, void *arg)
{
    struct result *result = arg;
    result->answers++;
    result->status = status;
}

static void on_found(pmix_status_t status, pmix_pdata_t found[], size_t count, void *arg)
{
    struct result *result = arg;
    result->answers++;
    result->status = status;
    if (count) snprintf(result->data, sizeof result->data, "%u %s", found[0].proc.rank, found[0].value.data.string);
}

/* The ranks first, first + step, ... as processes of PMIx. */
static size_t list(pmix_proc_t *procs, int first, int step)
{
    size_t count = 0;
    for (int rank = first; rank < RANKS; rank += step, count++)
        PMIX_LOAD_PROCID(&procs[count], "job", (pmix_rank_t)rank);
    return count;
}

static pmix_status_t fence(int position, int first, int step, const char *data, int timeout, struct result *result)
{
    pmix_proc_t procs[RANKS];
    pmix_info_t info[2];
    bool collect = data != NULL;
    struct server_participants who = {procs, list(procs, first, step), info, timeout ? 2 : 1};
    *result = (struct result){.status = 1};
    PMIX_INFO_LOAD(&info[0], PMIX_COLLECT_DATA, &collect, PMIX_BOOL);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &timeout, PMIX_INT);
    return server_exchange_fence(&servers[position], &who, data, data ? strlen(data) : 0, on_data, result);
}

static pmix_status_t meet(int position, enum server_meeting kind, struct result *result)
{
    pmix_proc_t procs[RANKS];
    struct server_participants who = {procs, list(procs, 0, 1), NULL, 0};
    *result = (struct result){.status = 1};
    return server_exchange_meet(&servers[position], kind, &who, on_change, result);
}

static void get(int asker, int rank, const char *key, int timeout, struct result *result)
{
    pmix_info_t info[2];
    PMIX_INFO_LOAD(&info[0], PMIX_REQUIRED_KEY, key, PMIX_STRING);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &timeout, PMIX_INT);
    *result = (struct result){.status = 1};
    assert_int_equal(server_exchange_modex(server_of(asker), rank, info, timeout ? 2 : 1, on_data, result),
                     PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info[0]);
}

/* ---- Tests ---- */

static void test_fences(void **state)
{
    struct result results[NODES];
    (void)state;
    for (seed = 1; seed < 50; seed++) {
        for (int p = 0; p < NODES; p++) {
            char data[] = {(char)('0' + p), 0};
            assert_int_equal(fence(p, 0, 1, data, 0, &results[p]), PMIX_SUCCESS);
            if (p < NODES - 1) run(0);
            if (p == 0) assert_int_equal(results[p].answers, 0);
        }
        run(0);
        for (int p = 0; p < NODES; p++) {
            assert_int_equal(results[p].answers, 1);
            assert_int_equal(results[p].status, PMIX_SUCCESS);
            assert_int_equal(results[p].bytes, NODES);
            assert_memory_equal(results[p].data, "01234", NODES);
        }
    }
}

/* A fence and a connection of the same ranks under way together are two things. */
static void test_kinds(void **state)
{
    struct result fences[NODES], connects[NODES], disconnects[NODES];
    (void)state;
    for (int p = 0; p < NODES; p++) {
        assert_int_equal(p % 2 ? fence(p, 0, 1, NULL, 0, &fences[p]) : meet(p, SERVER_CONNECT, &connects[p]),
                         PMIX_SUCCESS);
        assert_int_equal(meet(p, SERVER_DISCONNECT, &disconnects[p]), PMIX_SUCCESS);
    }
    run(0);
    for (int p = 0; p < NODES; p++) {
        assert_int_equal((p % 2 ? fences : connects)[p].answers, 0);
        assert_int_equal(disconnects[p].status, PMIX_SUCCESS);
        assert_int_equal(p % 2 ? meet(p, SERVER_CONNECT, &connects[p]) : fence(p, 0, 1, NULL, 0, &fences[p]),
                         PMIX_SUCCESS);
    }
    run(0);
    for (int p = 0; p < NODES; p++) {
        assert_int_equal(fences[p].status, PMIX_SUCCESS);
        assert_int_equal(connects[p].status, PMIX_SUCCESS);
    }
}

static void test_strangers(void **state)
{
    struct result result = {.answers = 0};
    pmix_proc_t proc;
    const struct server_participants who = {&proc, 1, NULL, 0};
    (void)state;
    PMIX_LOAD_PROCID(&proc, "another", 0);
    assert_int_equal(server_exchange_fence(&servers[0], &who, NULL, 0, on_data, &result), PMIX_ERR_BAD_PARAM);
    PMIX_LOAD_PROCID(&proc, "job", RANKS);
    assert_int_equal(server_exchange_fence(&servers[0], &who, NULL, 0, on_data, &result), PMIX_ERR_BAD_PARAM);
    assert_int_equal(result.answers, 0);
}

static void test_death(void **state)
{
    struct result results[NODES];
    (void)state;
    for (int p = 0; p < NODES; p++)
        if (server_of(7) != &servers[p]) fence(p, 0, 1, NULL, 0, &results[p]);
    run(0);
    server_exchange_rank_died(server_of(7), 7);
    run(0);
    for (int p = 0; p < NODES; p++) {
        if (server_of(7) == &servers[p]) continue;
        assert_int_equal(results[p].answers, 1);
        assert_int_equal(results[p].status, PMIX_ERR_PROC_ABORTED);
    }
    struct result pair[NODES]; /* without it: even ranks */
    for (int p = 0; p < NODES; p++) assert_int_equal(fence(p, 0, 2, NULL, 0, &pair[p]), PMIX_SUCCESS);
    run(0);
    for (int p = 0; p < NODES; p++) assert_int_equal(pair[p].status, PMIX_SUCCESS);
}

static void test_lost_daemon(void **state)
{
    struct result results[NODES], got;
    (void)state;
    for (int p = 0; p < NODES; p++)
        if (p != 1) fence(p, 0, 1, "x", 0, &results[p]);
    get(0, 8, "key", 0, &got); /* of a rank below the one that is lost: nodes a and d are at 3 and 1 */
    run(0);
    crash(1);
    run(0);
    for (int p = 0; p < NODES; p++) {
        if (p == 1) continue;
        assert_int_equal(results[p].answers, 1);
        assert_int_equal(results[p].status, PMIX_ERR_PROC_ABORTED);
    }
    assert_int_equal(got.answers, 1);
    assert_int_equal(got.status, PMIX_ERR_PROC_ABORTED);
}

/* The one that does not come is found, and told once. */
static void test_late(void **state)
{
    struct result results[NODES];
    (void)state;
    for (int missing = 0; missing < NODES; missing += 2) {
        troubles[0] = 0;
        for (int p = 0; p < NODES; p++)
            if (p != missing)
                assert_int_equal(fence(p, 0, 1, NULL, p == (missing + 1) % NODES, &results[p]), PMIX_SUCCESS);
        run(4);
        for (int p = 0; p < NODES; p++)
            if (p != missing) assert_int_equal(results[p].status, PMIX_ERR_TIMEOUT);
        char expected[200];
        snprintf(expected, sizeof expected, "a fence of ranks has reached its time limit: ranks on %s have not come\n",
                 names[node_at(missing)]);
        assert_string_equal(troubles, expected);
        assert_int_equal(fence(missing, 0, 1, NULL, 0, &results[missing]), PMIX_SUCCESS);
        run(0);
        assert_int_equal(results[missing].status, PMIX_ERR_TIMEOUT);
    }
}

static void test_values(void **state)
{
    struct result result, other;
    (void)state;
    get(0, 3, "card", 5, &result);
    get(1, 3, "late", 5, &other);
    run(1);
    assert_int_equal(result.answers, 0);
    committed[3] = "card";
    run(4);
    assert_int_equal(result.status, PMIX_SUCCESS);
    assert_string_equal(result.data, "card");
    assert_int_equal(other.answers, 0); /* the first value has no such key */
    committed[3] = "and late";
    run(8);
    assert_int_equal(other.status, PMIX_SUCCESS);
    assert_string_equal(other.data, "and late");
    get(2, 3, "never", 1, &result);
    run(100);
    assert_int_equal(result.status, PMIX_ERR_TIMEOUT);
    server_exchange_rank_died(server_of(3), 3);
    get(2, 3, "nothing", 0, &result);
    run(0);
    assert_int_equal(result.status, PMIX_ERR_PROC_ABORTED);
}

/* After a fence with values nothing is waited for that was not among them. */
static void test_absent_value(void **state)
{
    struct result results[NODES], result;
    (void)state;
    committed[4] = "card";
    for (int p = 0; p < NODES; p++) assert_int_equal(fence(p, 0, 1, "v", 0, &results[p]), PMIX_SUCCESS);
    run(0);
    get(0, 4, "absent", 0, &result);
    run(0);
    assert_int_equal(result.answers, 1);
    assert_int_equal(result.status, PMIX_SUCCESS); /* PMIx looks into it, and finds nothing */
    assert_string_equal(result.data, "card");
}

static void publish(int rank, const char *name, const char *value, struct result *result)
{
    pmix_info_t info;
    PMIX_INFO_LOAD(&info, name, value, PMIX_STRING);
    *result = (struct result){.status = 1};
    assert_int_equal(server_exchange_publish(server_of(rank), rank, &info, 1, on_change, result), PMIX_SUCCESS);
    PMIX_INFO_DESTRUCT(&info);
}

static void look_up(int rank, const char *name, int timeout, struct result *result)
{
    char *keys[] = {(char *)(uintptr_t)name, NULL};
    pmix_info_t info[2];
    int all = -1;
    PMIX_INFO_LOAD(&info[0], PMIX_WAIT, &all, PMIX_INT);
    PMIX_INFO_LOAD(&info[1], PMIX_TIMEOUT, &timeout, PMIX_INT);
    *result = (struct result){.status = 1};
    assert_int_equal(server_exchange_lookup(server_of(rank), keys, info, timeout ? 2 : 0, on_found, result),
                     PMIX_SUCCESS);
}

static void test_names(void **state)
{
    struct result first, second, found, none;
    (void)state;
    look_up(0, "name", 0, &none);
    look_up(3, "name", 20, &found);
    run(0);
    assert_int_equal(none.status, PMIX_ERR_NOT_FOUND);
    assert_int_equal(found.answers, 0);
    publish(9, "name", "value", &first);
    run(0);
    assert_int_equal(first.status, PMIX_SUCCESS);
    assert_int_equal(found.status, PMIX_SUCCESS);
    assert_string_equal(found.data, "9 value");
    publish(2, "name", "other", &second);
    look_up(5, "missing", 1, &none);
    run(3);
    assert_int_equal(second.status, PMIX_ERR_DUPLICATE_KEY);
    assert_int_equal(none.status, PMIX_ERR_TIMEOUT);
    assert_int_equal(server_exchange_unpublish(server_of(9), 9, NULL, on_change, &first), PMIX_SUCCESS);
    run(0);
    look_up(0, "name", 0, &none);
    run(0);
    assert_int_equal(none.status, PMIX_ERR_NOT_FOUND);
}

int main(void)
{
#define TEST(name) cmocka_unit_test_setup_teardown(name, open_world, close_world)
    const struct CMUnitTest tests[] = {TEST(test_fences), TEST(test_kinds),        TEST(test_strangers),
                                       TEST(test_death),  TEST(test_lost_daemon),  TEST(test_late),
                                       TEST(test_values), TEST(test_absent_value), TEST(test_names)};
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
