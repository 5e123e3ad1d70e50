/* backlog.c - what waits because a transport is full: packets in the order they were sent, and sends that stream their
 * data. */
#include "pml/internal.h"

#include <stdlib.h>
#include <string.h>
#include <time.h>

static void make_busy(struct pml_connection *connection)
{
    if (connection->queued) return;
    connection->queued = true;
    connection->next_busy = connection->pml->busy;
    connection->pml->busy = connection;
}

void pml_backlog_append(struct pml_connection *connection, struct pml_post *post)
{
    post->next = NULL;
    if (connection->last_post) connection->last_post->next = post;
    else connection->first_post = post;
    connection->last_post = post;
    connection->posts++;
    make_busy(connection);
}

void pml_stream_append(struct pml_connection *connection, struct pml_request *request)
{
    request->next = NULL;
    if (connection->last_stream) connection->last_stream->next = request;
    else connection->first_stream = request;
    connection->last_stream = request;
    make_busy(connection);
}

static int post_copy(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload, bool answers)
{
    if (pml_connection_clear(connection) && connection->transport->post(connection, packet, payload))
        return NCCLX_SUCCESS;
    size_t bytes = payload->first_bytes + payload->second_bytes;
    struct pml_post *post = pml_post_get(connection->pml);
    char *copy = NULL;
    if (post && bytes) copy = base_alloc(AREA_PML, bytes);
    if (!post || (bytes && !copy)) {
        if (post) pml_post_put(connection->pml, post);
        return base_error(NCCLX_ERR_NO_MEM, "no memory for %zu bytes that wait to be sent to rank %d", bytes,
                          connection->rank);
    }
    memcpy(&post->packet, packet, sizeof *packet);
    if (payload->first_bytes) memcpy(copy, payload->first, payload->first_bytes);
    if (payload->second_bytes) memcpy(copy + payload->first_bytes, payload->second, payload->second_bytes);
    post->payload = (struct pml_payload){.first = copy, .first_bytes = bytes};
    post->request = NULL;
    post->answer = answers ? sizeof *post + bytes : 0;
    connection->answers += post->answer;
    pml_backlog_append(connection, post);
    return NCCLX_SUCCESS;
}

int pml_post_copy(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload)
{
    return post_copy(connection, packet, payload, false);
}

static bool takes_answers(struct pml_connection *connection)
{
    if (likely(connection->answers <= PML_ANSWERS_MAX)) return true;
    pml_breach(connection, "it asks for more and more, and takes no answers");
    return false;
}

int pml_answer_copy(struct pml_connection *connection, const struct pml_packet *packet, const struct pml_payload *payload)
{
    if (takes_answers(connection)) return post_copy(connection, packet, payload, true);
    return base_error(NCCLX_ERR_TRANSPORT, "rank %d takes no answers", connection->rank);
}

/* The first of those that wait is on its way. */
static void post_ended(struct pml_connection *connection)
{
    struct pml_post *post = connection->first_post;
    connection->first_post = post->next;
    connection->posts--;
    if (!post->next) connection->last_post = NULL;
    if (post->request) {
        if (likely(post->packet.kind == PROTOCOL_EAGER)) base_request_complete(&post->request->base, NCCLX_SUCCESS);
    } else {
        connection->answers -= post->answer;
        if (post->payload.first) base_free(AREA_PML, (void *)(uintptr_t)post->payload.first);
        pml_post_put(connection->pml, post);
    }
}

static int post_some(struct pml_connection *connection)
{
    const struct pml_post *post = connection->first_post;
    if (connection->transport->post_many) return connection->transport->post_many(connection, post);
    return connection->transport->post(connection, &post->packet, &post->payload);
}

static int drain_posts(struct pml_connection *connection)
{
    int events = 0, posted;
    while (connection->first_post && (posted = post_some(connection)) > 0) {
        events += posted;
        while (posted-- > 0) post_ended(connection);
    }
    return events;
}

void pml_backlog_push(struct pml_connection *connection)
{
    drain_posts(connection);
}

/* How long a control packet waits while memory is short and the transport full. */
#define CONTROL_WAIT_NS (30 * BASE_NS_PER_S)

/* Control packets must not be lost, and there is nobody to give an error to: without memory to keep one, the rank stays here until
 * its peer has made room or others have freed memory. The job cannot go on where neither happens. */
static void post_control(struct pml_connection *connection, const struct pml_packet *packet, bool answers)
{
    const struct pml_payload none = {0};
    const struct timespec pause = {.tv_nsec = 100000};
    uint64_t deadline = 0;
    while (unlikely(post_copy(connection, packet, &none, answers))) {
        uint64_t now = base_clock_ns();
        if (!deadline) {
            deadline = now + CONTROL_WAIT_NS;
            base_log(AREA_PML, LOG_WARN, "no memory for a control packet to rank %d: waiting", connection->rank);
        } else if (now > deadline) {
            base_log(AREA_PML, LOG_ERROR, "no memory for a control packet to rank %d", connection->rank);
            abort();
        }
        drain_posts(connection);
        nanosleep(&pause, NULL);
    }
}

void pml_post_control(struct pml_connection *connection, const struct pml_packet *packet)
{
    post_control(connection, packet, false);
}

void pml_answer(struct pml_connection *connection, const struct pml_packet *packet)
{
    if (takes_answers(connection)) post_control(connection, packet, true);
}

void pml_backlog_asks(struct pml_connection *connection)
{
    struct pml_post *post, *last = NULL;
    for (struct pml_post **at = &connection->first_post; (post = *at);) {
        if (!post->request || post->packet.kind != PROTOCOL_EAGER || pml_send_asks(post->request)) {
            last = post;
            at = &post->next;
            continue;
        }
        *at = post->next;
        connection->posts--;
    }
    connection->last_post = last;
}

static int drain_streams(struct pml_connection *connection)
{
    int events = 0;
    struct pml_request *request;
    while ((request = connection->first_stream)) {
        struct protocol_send *send = &request->u.send.core;
        uint64_t offset = send->stream.moved;
        struct pml_packet packet = {.kind = PROTOCOL_DATA, .context = send->receive, .u.word[0] = offset};
        size_t room = connection->stream_piece;
        struct protocol_send before = *send;
        size_t bytes = protocol_stream_next(send, room);
        struct pml_payload payload = {.first = (const char *)request->u.send.buffer + offset, .first_bytes = bytes};
        if (!connection->transport->post(connection, &packet, &payload)) {
            *send = before;
            break;
        }
        events++;
        if (send->state != STATE_DONE) continue;
        connection->first_stream = request->next;
        if (!request->next) connection->last_stream = NULL;
        base_request_complete(&request->base, NCCLX_SUCCESS);
    }
    return events;
}

int pml_backlog_drain(struct pml *pml)
{
    int events = 0;
    struct pml_connection *connection = pml->busy;
    pml->busy = NULL;
    pml->draining = true;
    while (connection) {
        struct pml_connection *next = connection->next_busy;
        connection->queued = false;
        events += drain_posts(connection);
        if (pml_connection_clear(connection)) events += drain_streams(connection);
        if (connection->first_post || connection->first_stream) make_busy(connection);
        connection = next;
    }
    pml->draining = false;
    return events;
}
