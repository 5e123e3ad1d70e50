/* names.c - published names, at the root. */
#include "config.h"

#include "bootstrap/kvx/private.h"

#include "runtime/base/base.h"
#include "runtime/base/planted.h"

#include <string.h>

struct name {
    struct name *next;
    int owner;
    const void *value;
    size_t key_bytes, bytes;
    char key[]; /* then the value */
};

static struct name **find_name(struct kvx *kvx, const char *key, size_t bytes)
{
    struct name **place = &kvx->names[kvx_hash(key, bytes) % NAME_BUCKETS];
    while (*place && ((*place)->key_bytes != bytes || memcmp((*place)->key, key, bytes))) place = &(*place)->next;
    return place;
}

static void answer_with(const struct name *name, struct answer *answer)
{
    *answer = (struct answer){KVX_OK, {-1, -1}, name->owner, name->value, name->bytes};
}

/* Those who wait for it get it. */
static void announce(struct kvx *kvx, const struct name *name)
{
    struct answer answer;
    answer_with(name, &answer);
    for (int i = 0; i < NAME_BUCKETS; i++) {
        for (struct request **place = &kvx->requests[i]; *place;) {
            struct request *request = *place;
            if (request->type == WIRE_LOOKUP && request->key_bytes == name->key_bytes &&
                !memcmp(request->key, name->key, name->key_bytes))
                request_finish(kvx, place, &answer);
            else
                place = &request->next;
        }
    }
}

static enum kvx_status publish(struct kvx *kvx, const struct wire_message *message)
{
    struct name **place = find_name(kvx, message->key, message->key_bytes);
    size_t bytes = message->key_bytes + message->body_bytes;
    if (*place) return KVX_DUPLICATE;
    if (bytes > kvx->limits.published_bytes - kvx->published_bytes) return KVX_LIMIT;
    struct name *name = kvx_take(kvx, sizeof *name + bytes);
    if (!name) return KVX_LIMIT;
    name->owner = message->owner;
    name->key_bytes = message->key_bytes;
    name->bytes = message->body_bytes;
    memcpy(name->key, message->key, message->key_bytes);
    name->value = name->key + message->key_bytes;
    if (message->body_bytes) memcpy(name->key + message->key_bytes, message->body, message->body_bytes);
    *place = name;
    kvx->published_bytes += bytes;
    if (!PLANTED_BUG(BUG_KVX_LOOKUP_NOT_WOKEN)) announce(kvx, name);
    return KVX_OK;
}

static void remove_name(struct kvx *kvx, struct name **place)
{
    struct name *name = *place;
    *place = name->next;
    kvx->published_bytes -= name->key_bytes + name->bytes;
    kvx_give(kvx, name);
}

static enum kvx_status unpublish(struct kvx *kvx, const struct wire_message *message)
{
    bool all = message->key_bytes == 0, found = false;
    for (int i = 0; i < NAME_BUCKETS; i++) {
        for (struct name **place = &kvx->names[i]; *place;) {
            const struct name *name = *place;
            bool named =
                all || (name->key_bytes == message->key_bytes && !memcmp(name->key, message->key, name->key_bytes));
            if (!named || name->owner != message->owner) {
                place = &(*place)->next;
                continue;
            }
            remove_name(kvx, place);
            found = true;
        }
    }
    return found || all ? KVX_OK : KVX_NOT_FOUND;
}

bool names_serve(struct kvx *kvx, const struct wire_message *message, struct answer *answer)
{
    *answer = (struct answer){.failure = {-1, -1}, .owner = -1};
    if (message->type == WIRE_PUBLISH) {
        bool gone = message->owner >= 0 && map_daemon(kvx->map, message->owner) < 0;
        answer->status = gone ? KVX_FAILED : publish(kvx, message);
        return true;
    }
    if (message->type == WIRE_UNPUBLISH) {
        answer->status = unpublish(kvx, message);
        return true;
    }
    const struct name *name = *find_name(kvx, message->key, message->key_bytes);
    if (name)
        answer_with(name, answer);
    else
        answer->status = KVX_NOT_FOUND;
    return name || !message->flag;
}

void names_retire(struct kvx *kvx, const struct kvx_range *range)
{
    for (int i = 0; i < NAME_BUCKETS; i++) {
        for (struct name **place = &kvx->names[i]; *place;) {
            if ((*place)->owner >= 0 && map_contains(range, 1, (*place)->owner))
                remove_name(kvx, place);
            else
                place = &(*place)->next;
        }
    }
}

void names_release(struct kvx *kvx)
{
    for (int i = 0; i < NAME_BUCKETS; i++)
        while (kvx->names[i]) remove_name(kvx, &kvx->names[i]);
}
