/* notices.c - what one daemon tells all others about events and signals. The input is the link it comes over (1 byte)
 * and the notice. PMIx' own reading of what an event carries is played. */
#include "bootstrap/kvx/kvx.h"
#include "launcher/server_private.h"
#include "runtime/base/base.h"
#include "tests/fuzz/fuzz.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>

#define RANKS 8
#define CHILDREN 2

const char fuzz_name[] = "notices";

static int from;
static size_t sent;

bool server_post(struct server *server, enum server_note_kind kind, int rank, int code, const void *data, size_t bytes)
{
    (void)data, (void)bytes;
    if (kind == SERVER_SIGNAL && (server->launch->ranks[rank].node != server->launch->node || code < 1 || code >= NSIG))
        abort();
    if (kind == SERVER_SEND && (rank == from || rank < SERVER_PARENT || rank >= CHILDREN)) abort();
    if (kind != SERVER_SIGNAL && kind != SERVER_SEND) abort();
    sent += kind == SERVER_SEND;
    return true;
}

pmix_status_t PMIx_Data_load(pmix_data_buffer_t *buffer, pmix_byte_object_t *bytes)
{
    buffer->base_ptr = bytes->bytes;
    buffer->bytes_used = bytes->size;
    return PMIX_SUCCESS;
}

/* The first byte is the count; as many bytes must follow. */
pmix_status_t PMIx_Data_unpack(const pmix_proc_t *source, pmix_data_buffer_t *buffer, void *value, int32_t *count,
                               pmix_data_type_t type)
{
    (void)source;
    if (!buffer->bytes_used) return PMIX_ERR_UNPACK_READ_PAST_END_OF_BUFFER;
    if (type == PMIX_SIZE)
        *(size_t *)value = (size_t) * (unsigned char *)buffer->base_ptr * 8;
    else if (buffer->bytes_used <= (size_t)*count)
        return PMIX_ERR_UNPACK_FAILURE;
    return PMIX_SUCCESS;
}

pmix_status_t PMIx_Notify_event(pmix_status_t status, const pmix_proc_t *source, pmix_data_range_t range,
                                const pmix_info_t info[], size_t count, pmix_op_cbfunc_t done, void *arg)
{
    (void)status, (void)range;
    if (source->rank != PMIX_RANK_UNDEF && source->rank >= RANKS) abort();
    for (size_t i = 0; i < count; i++)
        if (info[i].value.type != PMIX_UNDEF) abort();
    if (count % 16 == 8) return PMIX_ERR_BAD_PARAM;
    done(PMIX_SUCCESS, arg);
    return PMIX_SUCCESS;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t bytes)
{
    struct map_rank ranks[RANKS];
    struct message_launch launch = {.node = 1, .node_count = 2, .job = "job", .ranks = ranks, .rank_count = RANKS};
    bool closed[CHILDREN + 1] = {false, false, false};
    struct server server = {.launch = &launch, .serves = true};
    struct base_area_usage usage;
    memset(ranks, 0, sizeof ranks);
    for (int i = 0; i < RANKS; i++) ranks[i].node = i % 2;
    server.link_count = CHILDREN;
    server.closed = closed;
    pthread_mutex_init(&server.lock, NULL);
    pthread_mutex_init(&server.jobs.lock, NULL);
    if (!bytes) return 0;
    from = data[0] % (CHILDREN + 1) - 1;
    sent = 0;
    if (!server_notice_is(data + 1, bytes - 1)) return 0;
    if (server_jobs_add(&server.jobs, &launch)) abort();
    bool good = server_notice_receive(&server, from, data + 1, bytes - 1) == NCCLX_SUCCESS;
    if (sent != (good ? CHILDREN : 0)) abort(); /* only what is right is passed on, and to all others */
    server_jobs_free(&server.jobs);
    base_area_usage(AREA_LAUNCHER, &usage);
    if (usage.bytes) abort();
    return 0;
}
