/* Point-to-point and every form of wait, test and probe: null and finished requests, failures, order, cancelling,
 * giving up. */
#include "check.h"

#include <malloc.h>
#include <string.h>

#define TAG 4
#define LARGE (1 << 20) /* bytes: past any eager limit */

static int rank, size, next, previous;

static void send_to_next(int value, int tag)
{
    OK(ncclx_send(&value, 1, NCCLX_INT32, next, tag, NCCLX_COMM_WORLD));
}

static ncclx_request_t receive_from_previous(int *value, int tag)
{
    ncclx_request_t request;
    OK(ncclx_irecv(value, 1, NCCLX_INT32, previous, tag, NCCLX_COMM_WORLD, &request));
    return request;
}

static int is_empty(const ncclx_status_t *status)
{
    return status->source == NCCLX_ANY_SOURCE && status->tag == NCCLX_ANY_TAG && status->error == NCCLX_SUCCESS &&
           status->bytes == 0 && !status->cancelled;
}

static void null_requests_are_complete(void)
{
    ncclx_request_t requests[3] = {NCCLX_REQUEST_NULL, NCCLX_REQUEST_NULL, NCCLX_REQUEST_NULL};
    ncclx_status_t status[3];
    size_t index = 7, done = 7, indices[3];
    int flag = 0;
    OK(ncclx_wait(&requests[0], &status[0]));
    CHECK(is_empty(&status[0]));
    OK(ncclx_test(&requests[0], &flag, &status[0]));
    CHECK(flag && is_empty(&status[0]));
    OK(ncclx_waitall(3, requests, status));
    CHECK(is_empty(&status[2]));
    OK(ncclx_waitall(0, NULL, NULL));
    OK(ncclx_testall(3, requests, &flag, status));
    CHECK(flag == 1);
    OK(ncclx_waitany(3, requests, &index, status));
    CHECK(index == NCCLX_INDEX_UNDEFINED && is_empty(&status[0]));
    OK(ncclx_testany(3, requests, &index, &flag, status));
    CHECK(index == NCCLX_INDEX_UNDEFINED && flag == 1);
    OK(ncclx_waitsome(3, requests, &done, indices, status));
    CHECK(done == NCCLX_INDEX_UNDEFINED);
    OK(ncclx_testsome(3, requests, &done, indices, status));
    CHECK(done == NCCLX_INDEX_UNDEFINED);
    OK(ncclx_request_get_status(NCCLX_REQUEST_NULL, &flag, status));
    CHECK(flag == 1);
}

static void nobody_is_a_peer(void)
{
    ncclx_request_t requests[2];
    ncclx_message_t message;
    ncclx_status_t status;
    int value = 3, flag = 0;
    OK(ncclx_send(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD));
    OK(ncclx_recv(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &status));
    CHECK(value == 3 && status.source == NCCLX_PROC_NULL && status.tag == NCCLX_ANY_TAG && status.bytes == 0);
    OK(ncclx_isend(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &requests[0]));
    OK(ncclx_irecv(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &requests[1]));
    OK(ncclx_wait(&requests[1], &status));
    CHECK(requests[1] == NCCLX_REQUEST_NULL && status.source == NCCLX_PROC_NULL);
    OK(ncclx_wait(&requests[0], &status));
    OK(ncclx_irecv(&value, 1, NCCLX_INT32, NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &requests[1]));
    OK(ncclx_cancel(&requests[1])); /* too late: it is complete */
    OK(ncclx_wait(&requests[1], &status));
    CHECK(status.source == NCCLX_PROC_NULL && !status.cancelled);
    OK(ncclx_probe(NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &status));
    CHECK(status.source == NCCLX_PROC_NULL);
    OK(ncclx_iprobe(NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &flag, NCCLX_STATUS_IGNORE));
    CHECK(flag == 1);
    OK(ncclx_mprobe(NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &message, NCCLX_STATUS_IGNORE));
    CHECK(message == NCCLX_MESSAGE_NO_PROC);
    OK(ncclx_mrecv(&value, 1, NCCLX_INT32, &message, &status));
    CHECK(message == NCCLX_MESSAGE_NULL && status.source == NCCLX_PROC_NULL);
    OK(ncclx_mprobe(NCCLX_PROC_NULL, TAG, NCCLX_COMM_WORLD, &message, NCCLX_STATUS_IGNORE));
    OK(ncclx_imrecv(&value, 1, NCCLX_INT32, &message, &requests[0]));
    OK(ncclx_cancel(&requests[0]));
    OK(ncclx_wait(&requests[0], &status));
    CHECK(status.source == NCCLX_PROC_NULL && !status.cancelled);
}

static void waits_of_one(void)
{
    ncclx_status_t status;
    int got = -1, flag = 0;
    ncclx_request_t request = receive_from_previous(&got, TAG);
    OK(ncclx_test(&request, &flag, &status));
    if (size > 1) OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    send_to_next(rank, TAG);
    while (!flag) OK(ncclx_request_get_status(request, &flag, &status));
    CHECK(request != NCCLX_REQUEST_NULL && got == previous && status.source == previous);
    OK(ncclx_wait(&request, &status));
    CHECK(request == NCCLX_REQUEST_NULL && status.source == previous && status.tag == TAG &&
          status.bytes == sizeof got);
    request = receive_from_previous(&got, TAG);
    send_to_next(rank + 1, TAG);
    for (flag = 0; !flag;) OK(ncclx_test(&request, &flag, NCCLX_STATUS_IGNORE));
    CHECK(request == NCCLX_REQUEST_NULL && got == previous + 1);
}

/* Receives are completed in the order in which their messages are sent, which is the reverse of their posting. */
static void waits_of_any_and_some(void)
{
    enum { COUNT = 6 };
    ncclx_request_t requests[COUNT + 1];
    ncclx_status_t status[COUNT + 1];
    int got[COUNT], flag;
    size_t index, done, indices[COUNT + 1], total = 0;
    requests[COUNT] = NCCLX_REQUEST_NULL;
    for (int i = 0; i < COUNT; i++) requests[i] = receive_from_previous(&got[i], i);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    OK(ncclx_testany(COUNT + 1, requests, &index, &flag, status));
    CHECK(!flag && index == NCCLX_INDEX_UNDEFINED);
    OK(ncclx_testsome(COUNT + 1, requests, &done, indices, status));
    CHECK(done == 0);
    OK(ncclx_testall(COUNT + 1, requests, &flag, status));
    CHECK(!flag && requests[0]);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD)); /* nobody has sent before all have looked */
    send_to_next(5, 5);
    OK(ncclx_waitany(COUNT + 1, requests, &index, status));
    CHECK(index == 5 && got[5] == 5 && requests[5] == NCCLX_REQUEST_NULL && status[0].tag == 5);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD)); /* nor sent more before all have taken the first; and so on */
    for (int i = COUNT - 2; i >= 1; i--) send_to_next(i, i);
    while (total < COUNT - 2) {
        OK(ncclx_waitsome(COUNT + 1, requests, &done, indices, status));
        CHECK(done >= 1 && done <= COUNT - 2 - total);
        for (size_t i = 0; i < done; i++)
            CHECK(status[i].tag == (int)indices[i] && requests[indices[i]] == NCCLX_REQUEST_NULL);
        total += done;
    }
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    send_to_next(0, 0);
    for (flag = 0; !flag;) OK(ncclx_testall(COUNT + 1, requests, &flag, status));
    CHECK(status[0].tag == 0 && is_empty(&status[COUNT]) && got[0] == 0);
}

/* One receive of three is too small: its status says so, the others succeed. */
static void failures_are_in_the_status(void)
{
    ncclx_request_t requests[3];
    ncclx_status_t status[3];
    int got[3] = {-1, -1, -1}, two[2] = {8, 9};
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    for (int i = 0; i < 3; i++) requests[i] = receive_from_previous(&got[i], i);
    send_to_next(7, 0);
    OK(ncclx_send(two, 2, NCCLX_INT32, next, 1, NCCLX_COMM_WORLD));
    send_to_next(7, 2);
    FAILS(ncclx_waitall(3, requests, status), NCCLX_ERR_IN_STATUS);
    CHECK(strstr(ncclx_error_detail(), "request 1"));
    CHECK(status[0].error == NCCLX_SUCCESS && status[1].error == NCCLX_ERR_TRUNCATE &&
          status[2].error == NCCLX_SUCCESS);
    CHECK(!requests[0] && !requests[1] && !requests[2]);
    requests[0] = receive_from_previous(&got[0], 0);
    OK(ncclx_send(two, 2, NCCLX_INT32, next, 0, NCCLX_COMM_WORLD));
    FAILS(ncclx_wait(&requests[0], status), NCCLX_ERR_TRUNCATE);
    CHECK(strstr(ncclx_error_detail(), "the message has 8 bytes"));
    CHECK(requests[0] == NCCLX_REQUEST_NULL && got[0] != 9 && status[0].source == previous);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    requests[0] = receive_from_previous(&got[0], 0);
    FAILS(ncclx_request_free(&requests[0]), NCCLX_ERR_REQUEST);
    send_to_next(7, 0);
    OK(ncclx_wait(&requests[0], status));
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL));
}

static void cancelling(void)
{
    ncclx_request_t request;
    ncclx_status_t status;
    int got = -1;
    OK(ncclx_irecv(&got, 1, NCCLX_INT32, previous, 76, NCCLX_COMM_WORLD, &request));
    OK(ncclx_cancel(&request));
    OK(ncclx_wait(&request, &status));
    CHECK(status.cancelled == 1 && got == -1);
    request = receive_from_previous(&got, 77);
    send_to_next(rank, 77);
    OK(ncclx_wait(&request, &status));
    CHECK(!status.cancelled && got == previous);
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_RETURN));
    OK(ncclx_isend(&rank, 1, NCCLX_INT32, next, 78, NCCLX_COMM_WORLD, &request));
    FAILS(ncclx_cancel(&request), NCCLX_ERR_UNSUPPORTED);
    OK(ncclx_comm_set_errhandler(NCCLX_COMM_WORLD, NCCLX_ERRORS_ARE_FATAL));
    OK(ncclx_recv(&got, 1, NCCLX_INT32, previous, 78, NCCLX_COMM_WORLD, &status));
    OK(ncclx_wait(&request, NCCLX_STATUS_IGNORE));
}

/* Sends whose request is given up still arrive, even when the program goes on to finalize. */
static void giving_up(const char *large)
{
    ncclx_request_t request;
    OK(ncclx_isend(large, LARGE, NCCLX_CHAR, next, 90, NCCLX_COMM_WORLD, &request));
    OK(ncclx_request_free(&request));
    CHECK(request == NCCLX_REQUEST_NULL);
}

static void receive_given_up(char *large)
{
    OK(ncclx_recv(large, LARGE, NCCLX_CHAR, previous, 90, NCCLX_COMM_WORLD, NCCLX_STATUS_IGNORE));
    CHECK(large[0] == 1 && large[LARGE - 1] == 1);
}

static void probing(void)
{
    ncclx_message_t message;
    ncclx_request_t request;
    ncclx_status_t status;
    double got[3] = {0};
    const double sent[3] = {1.5, 2.5, 3.5};
    size_t count;
    int flag = 1;
    OK(ncclx_iprobe(NCCLX_ANY_SOURCE, 60, NCCLX_COMM_WORLD, &flag, &status));
    CHECK(!flag);
    OK(ncclx_improbe(previous, 60, NCCLX_COMM_WORLD, &flag, &message, &status));
    CHECK(!flag && message == NCCLX_MESSAGE_NULL);
    OK(ncclx_coll_barrier(NCCLX_COMM_WORLD));
    for (int i = 0; i < 3; i++)
        OK(ncclx_isend(sent, (size_t)i + 1, NCCLX_DOUBLE, next, 60, NCCLX_COMM_WORLD, &request)),
            OK(ncclx_wait(&request, NULL));
    OK(ncclx_probe(NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &status));
    OK(ncclx_status_count(&status, NCCLX_DOUBLE, &count));
    CHECK(status.source == previous && status.tag == 60 && count == 1);
    OK(ncclx_mprobe(NCCLX_ANY_SOURCE, 60, NCCLX_COMM_WORLD, &message, &status));
    CHECK(status.bytes == sizeof(double));
    OK(ncclx_recv(got, 3, NCCLX_DOUBLE, NCCLX_ANY_SOURCE, NCCLX_ANY_TAG, NCCLX_COMM_WORLD, &status));
    CHECK(status.bytes == 2 * sizeof(double) && got[1] == 2.5); /* the first message was taken out */
    OK(ncclx_mrecv(got, 3, NCCLX_DOUBLE, &message, &status));
    CHECK(status.bytes == sizeof(double) && message == NCCLX_MESSAGE_NULL);
    for (flag = 0; !flag;) OK(ncclx_improbe(previous, 60, NCCLX_COMM_WORLD, &flag, &message, NCCLX_STATUS_IGNORE));
    OK(ncclx_imrecv(got, 3, NCCLX_DOUBLE, &message, &request));
    OK(ncclx_wait(&request, &status));
    CHECK(got[2] == 3.5 && status.bytes == sizeof got);
}

static void large_exchanges(char *large, char *other)
{
    ncclx_status_t status;
    memset(large, 1, LARGE);
    memset(other, 0, LARGE);
    OK(ncclx_sendrecv(large, LARGE, other, LARGE, NCCLX_CHAR, next, TAG, previous, TAG, NCCLX_COMM_WORLD, &status));
    CHECK(other[0] == 1 && other[LARGE - 1] == 1 && status.bytes == LARGE);
}

/* Memory in use, in bytes; 0 where a sanitizer has a malloc of its own. */
static size_t in_use(void)
{
#ifdef __SANITIZE_ADDRESS__
    return 0;
#else
    return mallinfo2().uordblks;
#endif
}

/* Requests that are taken back serve again, and a communicator freed before its last request goes with that. */
static void nothing_is_kept(void)
{
    enum { ROUNDS = 300 };
    size_t before = 0;
    for (int round = 0; round < 2 * ROUNDS; round++) {
        ncclx_comm_t copy;
        ncclx_request_t requests[2];
        int out = round, in = -1;
        if (round == ROUNDS) before = in_use();
        OK(ncclx_comm_dup(NCCLX_COMM_WORLD, &copy));
        OK(ncclx_irecv(&in, 1, NCCLX_INT32, previous, 0, copy, &requests[0]));
        OK(ncclx_isend(&out, 1, NCCLX_INT32, next, 0, copy, &requests[1]));
        OK(ncclx_comm_free(&copy));
        OK(ncclx_waitall(2, requests, NCCLX_STATUSES_IGNORE));
        CHECK(in == round);
    }
    CHECK(in_use() < before + ROUNDS * 100);
}

int main(void)
{
    char *large = malloc(LARGE), *other = malloc(LARGE);
    OK(ncclx_init(NULL, NULL));
    OK(ncclx_comm_rank(NCCLX_COMM_WORLD, &rank));
    OK(ncclx_comm_size(NCCLX_COMM_WORLD, &size));
    next = (rank + 1) % size;
    previous = (rank + size - 1) % size;
    null_requests_are_complete();
    nobody_is_a_peer();
    waits_of_one();
    waits_of_any_and_some();
    failures_are_in_the_status();
    cancelling();
    probing();
    large_exchanges(large, other);
    giving_up(large);
    receive_given_up(other);
    giving_up(large);
    memset(other, 0, LARGE);
    receive_given_up(other);
    nothing_is_kept();
    OK(ncclx_finalize());
    free(large);
    free(other);
    return 0;
}
