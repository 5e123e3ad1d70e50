/* region.c - memory of a peer: described by a card, reached by loads and stores, by single copies, or only by messages.
 */
#include "config.h"

#include "pml/lanes/lanes.h"
#include "pml/memory.h"
#include "pml/shm/help.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

/* The words of a card. */
enum { CARD_KIND, CARD_ADDRESS, CARD_BYTES, CARD_PROCESS, CARD_OFFSET, CARD_TOKEN, CARD_TOKEN_2, CARD_FILE_BYTES, CARD_KEY };
#define CARD_PLAIN UINT64_C(0x6e63636c78010001)     /* private memory */
#define CARD_SHAREABLE UINT64_C(0x6e63636c78010002) /* of pml_mem_alloc */

struct region {
    struct pml_region base;
    struct pml_connection *connection;
    char *mapping;
    size_t mapping_bytes;
};

/* ---- Memory of this rank ------------------------------------------------------------------------------------------ */

static int expose(struct pml *pml, uint64_t address, size_t bytes)
{
    struct pml_exposed *exposed = base_alloc(AREA_PML, sizeof *exposed);
    if (!exposed) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    *exposed = (struct pml_exposed){.next = pml->exposed, .address = address, .bytes = bytes};
    pml->exposed = exposed;
    return NCCLX_SUCCESS;
}

static struct pml_exposed *unlink_exposed(struct pml_exposed **at)
{
    struct pml_exposed *exposed = *at;
    *at = exposed->next;
    return exposed;
}

void pml_region_hide(struct ncclx_rt *rt, const struct pml_region_card *card)
{
    lanes_range_drop(rt->pml, card->word[CARD_KEY]);
    if (card->word[CARD_KIND] != CARD_PLAIN) return;
    for (struct pml_exposed **at = &rt->pml->exposed; *at; at = &(*at)->next) {
        if ((*at)->address != card->word[CARD_ADDRESS] || (*at)->bytes != card->word[CARD_BYTES]) continue;
        base_free(AREA_PML, unlink_exposed(at));
        return;
    }
}

/* What was used last comes first: a program uses few windows at a time. */
bool pml_exposes(struct pml *pml, uint64_t address, size_t bytes)
{
    for (struct pml_exposed **at = &pml->exposed; *at; at = &(*at)->next) {
        uint64_t offset = address - (*at)->address; /* below its beginning: a huge number */
        if (offset > (*at)->bytes || bytes > (*at)->bytes - offset) continue;
        if (at == &pml->exposed) return true;
        struct pml_exposed *found = unlink_exposed(at);
        found->next = pml->exposed;
        pml->exposed = found;
        return true;
    }
    return false;
}

void pml_exposed_release(struct pml *pml)
{
    while (pml->exposed) base_free(AREA_PML, unlink_exposed(&pml->exposed));
}

int pml_region_card(struct ncclx_rt *rt, void *base, size_t bytes, struct pml_region_card *card)
{
    const struct pml_memory *block = bytes ? pml_memory_find(rt->pml, base, bytes) : NULL;
    memset(card, 0, sizeof *card);
    card->word[CARD_KIND] = block ? CARD_SHAREABLE : CARD_PLAIN;
    card->word[CARD_ADDRESS] = (uint64_t)(uintptr_t)base;
    card->word[CARD_BYTES] = bytes;
    if (!block) return bytes ? expose(rt->pml, card->word[CARD_ADDRESS], bytes) : NCCLX_SUCCESS;
    card->word[CARD_PROCESS] = (uint64_t)(uint32_t)getpid() << 32 | (uint32_t)block->fd;
    card->word[CARD_OFFSET] = (uint64_t)((char *)base - block->start);
    card->word[CARD_TOKEN] = block->token[0];
    card->word[CARD_TOKEN_2] = block->token[1];
    card->word[CARD_FILE_BYTES] = block->file_bytes;
    return NCCLX_SUCCESS;
}

int pml_region_open(const struct ncclx_comm *comm, struct pml_region_card *card, size_t bytes)
{
    if (!comm->rt->pml->tcp || !bytes) return NCCLX_SUCCESS;
    return lanes_range_add(comm, card->word[CARD_ADDRESS], bytes, &card->word[CARD_KEY]);
}

/* ---- Memory of a peer ---------------------------------------------------------------------------------------------- */

bool pml_region_shareable(const struct pml_region_card *card)
{
    return card->word[CARD_KIND] == CARD_SHAREABLE;
}

static int lies(int peer, const char *what)
{
    return base_error(NCCLX_ERR_TRANSPORT, "rank %d describes memory that it does not have: %s", peer, what);
}

/* The file must be what the card says and must not be able to shrink under us. */
static bool file_is(int fd, uint64_t file_bytes)
{
    struct stat facts;
    if (fstat(fd, &facts) || !S_ISREG(facts.st_mode) || facts.st_size < 0 || (uint64_t)facts.st_size != file_bytes)
        return false;
    int seals = fcntl(fd, F_GET_SEALS);
    return seals >= 0 && (seals & F_SEAL_SHRINK);
}

/* Maps the peer's block. SUCCESS without a mapping: the system does not let us, another way may work. */
static int map_block(struct region *region, const struct pml_region_card *card)
{
    uint64_t file_bytes = card->word[CARD_FILE_BYTES], offset = card->word[CARD_OFFSET];
    if (file_bytes < sizeof(struct pml_memory_trailer) || file_bytes > (uint64_t)1 << 62 || file_bytes % 4096 ||
        offset > file_bytes - 4096 || region->base.bytes > file_bytes - 4096 - offset)
        return lies(region->base.peer, "its parts do not fit together");
    char path[64];
    snprintf(path, sizeof path, "/proc/%u/fd/%u", (unsigned)(card->word[CARD_PROCESS] >> 32),
             (unsigned)card->word[CARD_PROCESS]);
    int fd = open(path, O_RDWR | O_CLOEXEC | O_NONBLOCK);
    if (fd < 0) return NCCLX_SUCCESS;
    void *mapping = MAP_FAILED;
    if (file_is(fd, file_bytes))
        mapping = mmap(NULL, file_bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_POPULATE, fd, 0);
    close(fd);
    if (mapping == MAP_FAILED) return NCCLX_SUCCESS;
    struct pml_memory_trailer *trailer = (struct pml_memory_trailer *)((char *)mapping + file_bytes - 4096);
    if (trailer->token[0] != card->word[CARD_TOKEN] || trailer->token[1] != card->word[CARD_TOKEN_2] ||
        atomic_load(&trailer->freed)) {
        munmap(mapping, file_bytes); /* another process' file of that number, or memory freed since */
        return lies(region->base.peer, "the memory was freed, or never was");
    }
    int error = base_process_own_mapping(mapping, file_bytes);
    if (error) {
        munmap(mapping, file_bytes);
        return error;
    }
    region->mapping = mapping;
    region->mapping_bytes = file_bytes;
    region->base.pointer = region->mapping + offset;
    region->base.access = PML_ACCESS_DIRECT;
    return NCCLX_SUCCESS;
}

static int find_access(struct ncclx_rt *rt, struct region *region, const struct pml_region_card *card)
{
    region->base.access = PML_ACCESS_MESSAGE;
    if (region->base.peer == rt->job.rank) {
        region->base.pointer = (char *)(uintptr_t)region->base.address;
        region->base.access = PML_ACCESS_DIRECT;
        return NCCLX_SUCCESS;
    }
    int error = pml_connection_to(rt->pml, region->base.peer, &region->connection);
    if (error) return error;
    if (card->word[CARD_KIND] == CARD_SHAREABLE && region->connection->transport == &transport_shm &&
        rt->config.value[CONFIG_SHM_DIRECT].number) {
        error = map_block(region, card);
        if (error || region->mapping) return error;
    }
    pml_connection_probe(region->connection);
    if (region->connection->route.can_read && region->connection->route.can_write)
        region->base.access = PML_ACCESS_COPY;
    else if (region->connection->lanes && region->base.key && !region->connection->copies)
        region->base.access = PML_ACCESS_LANES;
    return NCCLX_SUCCESS;
}

int pml_region_attach(struct ncclx_rt *rt, int peer, const struct pml_region_card *card, struct pml_region **out)
{
    uint64_t kind = card->word[CARD_KIND], end;
    if ((kind != CARD_PLAIN && kind != CARD_SHAREABLE) ||
        __builtin_add_overflow(card->word[CARD_ADDRESS], card->word[CARD_BYTES], &end))
        return lies(peer, "not a card of this version");
    struct region *region = base_calloc(AREA_PML, 1, sizeof *region);
    if (!region) return base_error(NCCLX_ERR_NO_MEM, "no memory");
    region->base.peer = peer;
    region->base.address = card->word[CARD_ADDRESS];
    region->base.bytes = card->word[CARD_BYTES];
    region->base.key = card->word[CARD_KEY];
    int error = find_access(rt, region, card);
    if (error) base_free(AREA_PML, region);
    else *out = &region->base;
    return error;
}

void pml_region_detach(struct ncclx_rt *rt, struct pml_region *base)
{
    struct region *region = (struct region *)base;
    (void)rt;
    if (!region) return;
    if (region->mapping) {
        base_process_disown_mapping(region->mapping);
        munmap(region->mapping, region->mapping_bytes);
    }
    base_free(AREA_PML, region);
}

/* To or from memory that is mapped here. Large copies are the other side's work, too. */
static int copy_direct(const struct region *region, bool write, size_t offset, char *here, size_t bytes)
{
    char *mapped = region->base.pointer + offset;
    if (bytes < HELP_MAPPED_BYTES || !region->mapping) {
        memmove(write ? mapped : here, write ? here : mapped, bytes);
        return NCCLX_SUCCESS;
    }
    int failed = help_copy_mapped(region->connection->channel, write, here, region->base.address + offset, mapped, bytes);
    if (!failed) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_TRANSPORT, "a copy shared with rank %d failed: %s", region->base.peer, strerror(failed));
}

/* This rank's own memory has no connection. */
void pml_count_direct(struct pml_region *base, size_t put_bytes, size_t get_bytes)
{
    struct pml_connection *connection = ((struct region *)base)->connection;
    if (!connection) return;
    connection->traffic.sent += put_bytes;
    connection->traffic.received += get_bytes;
}

int pml_region_write(struct ncclx_rt *rt, struct pml_region *base, size_t offset, const void *from, size_t bytes)
{
    const struct region *region = (struct region *)base;
    (void)rt;
    pml_count_direct(base, bytes, 0);
    if (base->access == PML_ACCESS_DIRECT) return copy_direct(region, true, offset, (char *)(uintptr_t)from, bytes);
    if (base->access == PML_ACCESS_COPY)
        return region->connection->transport->write(region->connection, from, base->address + offset, bytes, 0);
    return base_error(NCCLX_ERR_INTERNAL, "memory of rank %d is not reached by copies", base->peer);
}

int pml_region_read(struct ncclx_rt *rt, struct pml_region *base, size_t offset, void *to, size_t bytes)
{
    const struct region *region = (struct region *)base;
    (void)rt;
    pml_count_direct(base, 0, bytes);
    if (base->access == PML_ACCESS_DIRECT) return copy_direct(region, false, offset, to, bytes);
    if (base->access == PML_ACCESS_COPY)
        return region->connection->transport->read(region->connection, to, base->address + offset, bytes, 0);
    return base_error(NCCLX_ERR_INTERNAL, "memory of rank %d is not reached by copies", base->peer);
}

/* ---- Memory that a peer told of for the length of a call ------------------------------------------------------------ */

bool pml_peer_copies(struct ncclx_rt *rt, int peer)
{
    struct pml_connection *connection;
    if (peer == rt->job.rank) return true;
    if (pml_connection_to(rt->pml, peer, &connection)) return false;
    pml_connection_probe(connection);
    return connection->route.can_read && connection->route.can_write;
}

int pml_peer_copy(struct ncclx_rt *rt, int peer, bool write, void *here, uint64_t there, size_t bytes)
{
    struct pml_connection *connection;
    int error = pml_connection_to(rt->pml, peer, &connection);
    if (error) return error;
    if (write) connection->traffic.sent += bytes;
    else connection->traffic.received += bytes;
    return write ? connection->transport->write(connection, here, there, bytes, 0)
                 : connection->transport->read(connection, here, there, bytes, 0);
}
