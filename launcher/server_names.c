/* server_names.c - published names: values packed by PMIx, opaque to the exchange, which keeps them at the root. */
#include "config.h"

#include "launcher/server_calls.h"

#include "runtime/base/base.h"

#include <stdlib.h>
#include <string.h>

static pmix_status_t pack_value(const pmix_value_t *value, pmix_byte_object_t *bytes)
{
    pmix_data_buffer_t buffer;
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_pack(NULL, &buffer, (void *)(uintptr_t)value, 1, PMIX_VALUE);
    if (status == PMIX_SUCCESS) status = PMIx_Data_unload(&buffer, bytes);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

static pmix_status_t unpack_value(const void *data, size_t size, pmix_value_t *value)
{
    pmix_byte_object_t bytes = {.bytes = malloc(size), .size = size};
    pmix_data_buffer_t buffer;
    int32_t count = 1;
    if (!bytes.bytes) return PMIX_ERR_NOMEM;
    memcpy(bytes.bytes, data, size);
    PMIX_DATA_BUFFER_CONSTRUCT(&buffer);
    pmix_status_t status = PMIx_Data_load(&buffer, &bytes); /* takes the bytes */
    if (status == PMIX_SUCCESS) status = PMIx_Data_unpack(NULL, &buffer, value, &count, PMIX_VALUE);
    PMIX_DATA_BUFFER_DESTRUCT(&buffer);
    return status;
}

/* ---- Publishing ---- */

static bool is_directive(const char *key)
{
    return !strncmp(key, "pmix", 4);
}

static void publish_one(struct server_exchange *exchange, struct call *call, size_t index, int number,
                        const pmix_info_t *info)
{
    pmix_byte_object_t bytes = {.bytes = NULL};
    pmix_status_t status = pack_value(&info->value, &bytes);
    uint64_t token = call_token(call, index);
    if (status == PMIX_SUCCESS)
        call_check_part(exchange, call, kvx_publish(exchange->kvx, number, info->key, bytes.bytes, bytes.size, token));
    else
        call_end_part(exchange, call, status);
    free(bytes.bytes);
}

pmix_status_t server_exchange_publish(struct server *server, int number, const pmix_info_t info[], size_t count,
                                      pmix_op_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    struct call *call = call_new(count, arg);
    if (!call) return PMIX_ERR_NOMEM;
    call->kind = CALL_CHANGE;
    call->done.change = done;
    exchange_enter(exchange);
    for (size_t i = 0; i < count; i++)
        if (!is_directive(info[i].key)) publish_one(exchange, call, i, number, &info[i]);
    exchange_leave_with(exchange, call);
    return PMIX_SUCCESS;
}

static size_t count_keys(char **keys)
{
    size_t count = 0;
    while (keys && keys[count]) count++;
    return count;
}

pmix_status_t server_exchange_unpublish(struct server *server, int number, char **keys, pmix_op_cbfunc_t done,
                                        void *arg)
{
    struct server_exchange *exchange = server->exchange;
    size_t count = keys ? count_keys(keys) : 1; /* one for all */
    struct call *call = call_new(count, arg);
    if (!call) return PMIX_ERR_NOMEM;
    call->kind = CALL_CHANGE;
    call->done.change = done;
    exchange_enter(exchange);
    for (size_t i = 0; i < count; i++)
        call_check_part(exchange, call,
                        kvx_unpublish(exchange->kvx, number, keys ? keys[i] : NULL, call_token(call, i)));
    exchange_leave_with(exchange, call);
    return PMIX_SUCCESS;
}

/* ---- Looking up ---- */

/* PMIX_WAIT says for how many; here it is for all. */
static bool waits(const pmix_info_t info[], size_t count)
{
    bool found = false;
    for (size_t i = 0; i < count; i++) found |= PMIX_CHECK_KEY(&info[i], PMIX_WAIT);
    return found;
}

pmix_status_t server_exchange_lookup(struct server *server, char **keys, const pmix_info_t info[], size_t count,
                                     pmix_lookup_cbfunc_t done, void *arg)
{
    struct server_exchange *exchange = server->exchange;
    size_t wanted = count_keys(keys);
    struct call *call = wanted ? call_new(wanted, arg) : NULL;
    if (!call) return wanted ? PMIX_ERR_NOMEM : PMIX_ERR_BAD_PARAM;
    call->kind = CALL_LOOKUP;
    call->done.lookup = done;
    PMIX_PDATA_CREATE(call->found, wanted);
    if (!call->found) {
        call_free(call);
        return PMIX_ERR_NOMEM;
    }
    for (size_t i = 0; i < wanted; i++) PMIX_LOAD_KEY(call->found[i].key, keys[i]);
    bool wait = waits(info, count);
    uint32_t limit = info_timeout_ms(info, count);
    exchange_enter(exchange);
    for (size_t i = 0; i < wanted; i++)
        call_check_part(exchange, call,
                        kvx_lookup(exchange->kvx, keys[i], wait, limit, base_clock_ns(), call_token(call, i)));
    exchange_leave_with(exchange, call);
    return PMIX_SUCCESS;
}

void names_keep(struct server *server, pmix_pdata_t *entry, const struct kvx_action *action)
{
    if (action->status != KVX_OK || action->bytes == 0) return;
    if (unpack_value(action->data, action->bytes, &entry->value) != PMIX_SUCCESS) return;
    if (!server_proc(&server->jobs, action->owner, &entry->proc)) /* its job has just ended */
        PMIX_LOAD_PROCID(&entry->proc, server->launch->job, PMIX_RANK_UNDEF);
}

/* Moves what was found to the front. */
static size_t compact(pmix_pdata_t *found, size_t count)
{
    size_t kept = 0;
    for (size_t i = 0; i < count; i++) {
        if (found[i].value.type == PMIX_UNDEF) continue;
        pmix_pdata_t entry = found[i];
        found[i] = found[kept];
        found[kept++] = entry;
    }
    return kept;
}

void names_answer(struct call *call)
{
    size_t found = compact(call->found, call->parts);
    pmix_status_t status = found == call->parts ? PMIX_SUCCESS : found ? PMIX_ERR_PARTIAL_SUCCESS : call->status;
    call->done.lookup(status, found ? call->found : NULL, found, call->arg);
    PMIX_PDATA_FREE(call->found, call->parts);
}
