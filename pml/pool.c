/* pool.c - requests, unexpected messages and waiting packets: kept on free lists, so that a steady program allocates
 * nothing. */
#include "pml/internal.h"

#include <string.h>

#define SLAB_LIMIT (UINT32_MAX / REQUEST_SLAB)

int pml_request_get_slow(struct pml *pml, struct pml_request **request)
{
    if (pml->slabs == pml->slabs_room) {
        uint32_t room = pml->slabs_room ? 2 * pml->slabs_room : 16;
        if (room > SLAB_LIMIT)
            return base_error(NCCLX_ERR_LIMIT, "more than %u requests at a time",
                              (unsigned)(SLAB_LIMIT / 2 * REQUEST_SLAB));
        struct pml_request **grown = base_realloc(AREA_PML, pml->slab, room * sizeof *grown);
        if (!grown) return base_error(NCCLX_ERR_NO_MEM, "no memory for requests");
        pml->slab = grown;
        pml->slabs_room = room;
    }
    struct pml_request *slab = base_calloc(AREA_PML, REQUEST_SLAB, sizeof *slab);
    if (!slab) return base_error(NCCLX_ERR_NO_MEM, "no memory for requests");
    pml->slab[pml->slabs] = slab;
    for (uint32_t i = REQUEST_SLAB; i-- > 0;) {
        slab[i].name = (UINT64_C(1) << 32) | (pml->slabs * REQUEST_SLAB + i);
        slab[i].next = pml->free_requests;
        pml->free_requests = &slab[i];
    }
    pml->slabs++;
    return pml_request_get(pml, request);
}

struct pml_request *pml_request_named(struct pml *pml, uint64_t name, bool is_send)
{
    uint32_t index = (uint32_t)name;
    if (index / REQUEST_SLAB >= pml->slabs) return NULL;
    struct pml_request *request = &pml->slab[index / REQUEST_SLAB][index % REQUEST_SLAB];
    return request->in_use && request->name == name && request->is_send == is_send ? request : NULL;
}

bool pml_request_buffer(struct pml_connection *connection, uint64_t name, bool is_send, void **buffer, size_t *bytes)
{
    struct pml_request *request = pml_request_named(connection->pml, name, is_send);
    if (!request) return false;
    if (is_send) {
        *buffer = (void *)(uintptr_t)request->u.send.buffer;
        *bytes = request->u.send.bytes;
        return request->connection == connection && request->u.send.core.state == STATE_REQUESTED;
    }
    *buffer = request->u.receive.buffer;
    *bytes = request->u.receive.core.capacity;
    enum protocol_state state = request->u.receive.core.state;
    return request->peer && request->peer->connection == connection && request->u.receive.core.match.pending &&
           (state == STATE_ANNOUNCED || state == STATE_WITHDRAWING);
}

/* Data sizes of the classes of unexpected messages; larger ones come from malloc. A class keeps so many. */
static const size_t class_bytes[MESSAGE_CLASSES] = {64, 512, 4096, 16384};
static const unsigned class_keeps[MESSAGE_CLASSES] = {1024, 256, 64, 64};

struct ncclx_message *pml_message_get(struct pml *pml, size_t data_bytes)
{
    unsigned size_class = 0;
    while (size_class < MESSAGE_CLASSES && data_bytes > class_bytes[size_class]) size_class++;
    struct ncclx_message *message = size_class < MESSAGE_CLASSES ? pml->free_messages[size_class] : NULL;
    if (message) {
        pml->free_messages[size_class] = message->next;
        pml->free_message_count[size_class]--;
    } else {
        message = base_alloc(AREA_PML,
                             sizeof *message + (size_class < MESSAGE_CLASSES ? class_bytes[size_class] : data_bytes));
        if (!message) return NULL;
    }
    message->size_class = size_class;
    return message;
}

void pml_message_put(struct pml *pml, struct ncclx_message *message)
{
    unsigned size_class = message->size_class;
    if (size_class < MESSAGE_CLASSES && pml->free_message_count[size_class] < class_keeps[size_class]) {
        message->next = pml->free_messages[size_class];
        pml->free_messages[size_class] = message;
        pml->free_message_count[size_class]++;
    } else {
        base_free(AREA_PML, message);
    }
}

struct pml_post *pml_post_get(struct pml *pml)
{
    struct pml_post *post = pml->free_posts;
    if (post) pml->free_posts = post->next;
    else post = base_alloc(AREA_PML, sizeof *post);
    return post;
}

void pml_post_put(struct pml *pml, struct pml_post *post)
{
    post->next = pml->free_posts;
    pml->free_posts = post;
}

void pml_pool_release(struct pml *pml)
{
    for (uint32_t i = 0; i < pml->slabs; i++) base_free(AREA_PML, pml->slab[i]);
    base_free(AREA_PML, pml->slab);
    for (unsigned i = 0; i < MESSAGE_CLASSES; i++) {
        while (pml->free_messages[i]) {
            struct ncclx_message *message = pml->free_messages[i];
            pml->free_messages[i] = message->next;
            base_free(AREA_PML, message);
        }
    }
    while (pml->free_posts) {
        struct pml_post *post = pml->free_posts;
        pml->free_posts = post->next;
        base_free(AREA_PML, post);
    }
    while (pml->free_announcements) {
        struct protocol_announcement *announcement = pml->free_announcements;
        pml->free_announcements = announcement->next;
        base_free(AREA_PML, announcement);
    }
}
