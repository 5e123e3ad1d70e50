/* server_notices.c - what one daemon tells all others: events that ranks raise, and signals that they ask for. A notice
 * goes to all neighbours, and each passes it on to all but the one it came from: in a tree everybody gets it once, and
 * notices of one daemon in order.
 *
 * As bytes it is a frame (launcher/frame.h):
 *   NOTICE_SIGNAL  u32 signal, u32 count, each u32 first rank, u32 last rank
 *   NOTICE_EVENT   u32 code, u32 rank that raised it (or all ones), u32 range, bytes: its data as PMIx packs them */
#include "config.h"

#include "launcher/server_private.h"

#include "bootstrap/kvx/kvx.h"
#include "launcher/frame.h"
#include "runtime/base/base.h"

#include <limits.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define NOTICE_SIGNAL 1
#define NOTICE_EVENT 2
#define MAX_INFO 1024 /* pieces of data of an event */

/* ---- On the way ---- */

static void spread(struct server *server, int from, const void *data, size_t bytes)
{
    bool open[KVX_MAX_RADIX + 1];
    pthread_mutex_lock(&server->lock);
    for (int link = SERVER_PARENT; link < server->link_count; link++) open[link + 1] = !server->closed[link + 1];
    pthread_mutex_unlock(&server->lock);
    for (int link = SERVER_PARENT; link < server->link_count; link++)
        if (link != from && open[link + 1]) server_post(server, SERVER_SEND, link, 0, data, bytes);
}

void server_notice_link_lost(struct server *server, int link)
{
    if (link < SERVER_PARENT || link >= server->link_count) return;
    pthread_mutex_lock(&server->lock);
    server->closed[link + 1] = true;
    pthread_mutex_unlock(&server->lock);
}

bool server_notice_is(const void *data, size_t bytes)
{
    return bytes > 0 && *(const char *)data == 'N'; /* messages of the exchange begin with K */
}

static pmix_status_t send_to_all(struct server *server, struct frame_writer *writer)
{
    int code = frame_finish(writer);
    if (!code && writer->used > SERVER_MAX_MESSAGE) code = NCCLX_ERR_LIMIT;
    if (!code) spread(server, INT_MAX, writer->data, writer->used);
    frame_release(writer);
    return code ? PMIX_ERR_OUT_OF_RESOURCE : PMIX_SUCCESS;
}

/* ---- Signals ---- */

struct signalled {
    struct server *server;
    int signal;
};

static void signal_one(void *arg, int number, int node)
{
    const struct signalled *signalled = arg;
    struct server *server = signalled->server;
    if (node == server->launch->node) server_post(server, SERVER_SIGNAL, number, signalled->signal, NULL, 0);
}

/* Those of this node. */
static void signal_here(struct server *server, const struct kvx_range *ranges, size_t count, int number)
{
    struct signalled signalled = {server, number};
    for (size_t i = 0; i < count; i++) server_visit(&server->jobs, &ranges[i], signal_one, &signalled);
}

pmix_status_t server_notice_signal(struct server *server, const pmix_proc_t procs[], size_t count, int number)
{
    struct kvx_range *ranges = server_ranges(&server->jobs, procs, count);
    struct frame_writer writer;
    if (!ranges) return PMIX_ERR_BAD_PARAM;
    signal_here(server, ranges, count, number);
    frame_begin(&writer, NOTICE_SIGNAL);
    frame_put_u32(&writer, (uint32_t)number);
    frame_put_u32(&writer, (uint32_t)count);
    for (size_t i = 0; i < count; i++) {
        frame_put_u32(&writer, ranges[i].first);
        frame_put_u32(&writer, ranges[i].last);
    }
    base_free(AREA_LAUNCHER, ranges);
    return send_to_all(server, &writer);
}

static bool receive_signal(struct server *server, struct frame_reader *reader)
{
    uint32_t number = frame_get_u32(reader), count = frame_get_count(reader, 8);
    struct kvx_range *ranges = base_calloc(AREA_LAUNCHER, (size_t)count + 1, sizeof *ranges);
    bool good = ranges && number > 0 && number < NSIG;
    for (uint32_t i = 0; i < count && good; i++) {
        ranges[i] = (struct kvx_range){frame_get_u32(reader), 0};
        ranges[i].last = frame_get_u32(reader);
        good = ranges[i].first <= ranges[i].last && ranges[i].last < (uint32_t)server->jobs.end;
    }
    good = good && frame_read_all(reader);
    if (good) signal_here(server, ranges, count, (int)number);
    base_free(AREA_LAUNCHER, ranges);
    return good;
}

/* ---- Events ---- */

pmix_status_t server_notice_event(struct server *server, pmix_status_t code, const pmix_proc_t *source,
                                  pmix_data_range_t range, pmix_info_t info[], size_t count)
{
    int number = source ? server_number(&server->jobs, source) : -1;
    pmix_byte_object_t packed = {.bytes = NULL};
    pmix_data_buffer_t buffer;
    struct frame_writer writer;
    if (count > MAX_INFO) return PMIX_ERR_OUT_OF_RESOURCE;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_pack(NULL, &buffer, &count, 1, PMIX_SIZE);
    if (status == PMIX_SUCCESS && count) status = PMIx_Data_pack(NULL, &buffer, info, (int32_t)count, PMIX_INFO);
    if (status == PMIX_SUCCESS) status = PMIx_Data_unload(&buffer, &packed);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    if (status == PMIX_SUCCESS) {
        frame_begin(&writer, NOTICE_EVENT);
        frame_put_u32(&writer, (uint32_t)code);
        frame_put_u32(&writer, (uint32_t)number);
        frame_put_u32(&writer, range);
        frame_put_bytes(&writer, packed.bytes, packed.size);
        status = send_to_all(server, &writer);
    }
    free(packed.bytes);
    return status;
}

/* What PMIx is told reads its arguments until it calls back. */
struct event {
    pmix_proc_t source;
    pmix_info_t *info;
    size_t count;
};

static void release_event(struct event *event)
{
    if (event->info) PMIX_INFO_FREE(event->info, event->count);
    base_free(AREA_LAUNCHER, event);
}

static void on_told(pmix_status_t status, void *arg)
{
    (void)status;
    release_event(arg);
}

static bool unpack_info(struct event *event, const void *data, size_t bytes)
{
    pmix_byte_object_t packed = {.bytes = malloc(bytes + 1), .size = bytes};
    pmix_data_buffer_t buffer;
    int32_t one = 1;
    size_t count = 0;
    if (!packed.bytes) return false;
    memcpy(packed.bytes, data, bytes);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &packed); /* takes the bytes */
    if (status == PMIX_SUCCESS) status = PMIx_Data_unpack(NULL, &buffer, &count, &one, PMIX_SIZE);
    if (status == PMIX_SUCCESS && count > MAX_INFO) status = PMIX_ERR_BAD_PARAM;
    if (status == PMIX_SUCCESS && count) {
        int32_t wanted = (int32_t)count;
        PMIX_INFO_CREATE(event->info, count);
        event->count = count;
        status = event->info ? PMIx_Data_unpack(NULL, &buffer, event->info, &wanted, PMIX_INFO) : PMIX_ERR_NOMEM;
    }
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status == PMIX_SUCCESS;
}

static bool receive_event(struct server *server, struct frame_reader *reader)
{
    pmix_status_t code = (pmix_status_t)frame_get_u32(reader);
    uint32_t number = frame_get_u32(reader), range = frame_get_u32(reader);
    size_t bytes;
    const void *data = frame_get_bytes(reader, &bytes);
    if (!frame_read_all(reader) || range > UINT8_MAX || (number != UINT32_MAX && number >= (uint32_t)server->jobs.end))
        return false;
    struct event *event = server->serves ? base_calloc(AREA_LAUNCHER, 1, sizeof *event) : NULL;
    if (!event) return true; /* nobody is here to be told */
    if (number == UINT32_MAX || !server_proc(&server->jobs, (int)number, &event->source))
        PMIX_LOAD_PROCID(&event->source, server->launch->job, PMIX_RANK_UNDEF);
    bool good = unpack_info(event, data, bytes);
    pmix_status_t status = good ? PMIx_Notify_event(code, &event->source, (pmix_data_range_t)range, event->info,
                                                    event->count, on_told, event)
                                : PMIX_ERR_BAD_PARAM;
    if (status != PMIX_SUCCESS) release_event(event);
    return good;
}

int server_notice_receive(struct server *server, int link, const void *data, size_t bytes)
{
    struct frame frame;
    struct frame_reader reader;
    bool good = frame_parse(data, bytes, &frame) == NCCLX_SUCCESS && frame.total == bytes;
    if (good) {
        frame_read(&reader, &frame);
        if (frame.type == NOTICE_SIGNAL)
            good = receive_signal(server, &reader);
        else
            good = frame.type == NOTICE_EVENT && receive_event(server, &reader);
    }
    if (!good) return base_error(NCCLX_ERR_TRANSPORT, "a notice of %zu bytes between daemons is malformed", bytes);
    spread(server, link, data, bytes);
    return NCCLX_SUCCESS;
}
