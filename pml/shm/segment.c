/* segment.c - the shared memory of a node: layout, mapping, allocation of the parts that are used. */
#include "config.h"

#include "pml/shm/segment.h"

#include "runtime/base/base.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

/* First page: what all ranks agree on. */
struct header {
    _Atomic uint64_t ring_payload; /* with LAYOUT added, so that another version is noticed */
};
#define LAYOUT UINT64_C(0x6e03000000000000)
#define LAYOUT_MASK UINT64_C(0xffff000000000000)

#define RING_PAYLOAD_MIN ((size_t)4096)
/* All pairs of a node together get about this much, so that 64 ranks that all talk to each other do not need gigabytes.
 */
#define ALL_RINGS_BYTES ((size_t)256 << 20)

static size_t whole_pages(size_t bytes)
{
    return (bytes + SEGMENT_PAGE - 1) & ~(size_t)(SEGMENT_PAGE - 1);
}

static size_t choose_payload(size_t wish, int ranks)
{
    size_t share = ALL_RINGS_BYTES / ((size_t)ranks * (size_t)ranks);
    if (share < 8 * RING_PAYLOAD_MIN) share = 8 * RING_PAYLOAD_MIN;
    if (wish > share) wish = share;
    size_t payload = RING_PAYLOAD_MIN;
    while (payload * 2 <= wish) payload *= 2;
    return payload;
}

/* Allocates pages for real. A file grows by it and never shrinks, whoever comes first. */
static int allocate(int fd, size_t offset, size_t bytes)
{
    int failed;
    do failed = fallocate(fd, 0, (off_t)offset, (off_t)bytes) ? errno : 0;
    while (failed == EINTR);
    if (!failed) return NCCLX_SUCCESS;
    int code = failed == ENOSPC || failed == ENOMEM || failed == EDQUOT ? NCCLX_ERR_NO_MEM : NCCLX_ERR_TRANSPORT;
    return base_error(code,
                      "cannot allocate %zu bytes of shared memory for the ranks of this node: %s; run fewer ranks "
                      "here, or give the job more memory",
                      bytes, strerror(failed));
}

static int check_file_limit(size_t bytes)
{
    struct rlimit limit; /* growing a file past it would raise SIGXFSZ */
    if (getrlimit(RLIMIT_FSIZE, &limit) || limit.rlim_cur == RLIM_INFINITY || limit.rlim_cur >= bytes)
        return NCCLX_SUCCESS;
    return base_error(
        NCCLX_ERR_LIMIT,
        "the limit on file size (ulimit -f, %llu bytes) is below the %zu bytes of the node's shared segment: raise it",
        (unsigned long long)limit.rlim_cur, bytes);
}

static int agree(struct shm_segment *segment, struct header *header, size_t wish)
{
    uint64_t mine = LAYOUT | choose_payload(wish, segment->ranks), theirs = 0;
    if (!atomic_compare_exchange_strong(&header->ring_payload, &theirs, mine)) mine = theirs;
    segment->ring_payload = (size_t)(mine & ~LAYOUT_MASK);
    if ((mine & LAYOUT_MASK) == LAYOUT && segment->ring_payload >= RING_PAYLOAD_MIN &&
        (segment->ring_payload & (segment->ring_payload - 1)) == 0 && segment->ring_payload <= (size_t)1 << 30)
        return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_TRANSPORT, "the node's shared segment was laid out by another version of the library");
}

int shm_segment_open(struct shm_segment *segment, int fd, int ranks, int senders, size_t ring_payload)
{
    *segment = (struct shm_segment){.fd = fd, .ranks = ranks, .senders = senders};
    int error = NCCLX_SUCCESS;
    if (ranks > SEGMENT_RANKS_MAX)
        error = base_error(NCCLX_ERR_LIMIT, "%d ranks on one node: at most %d are supported", ranks, SEGMENT_RANKS_MAX);
    if (!error) error = allocate(fd, 0, SEGMENT_PAGE);
    if (!error) {
        struct header *header = mmap(NULL, SEGMENT_PAGE, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
        if (header == MAP_FAILED)
            error = base_error(NCCLX_ERR_NO_MEM, "cannot map the node's shared segment: %s", strerror(errno));
        else error = agree(segment, header, ring_payload);
        if (header != MAP_FAILED) munmap(header, SEGMENT_PAGE);
    }
    if (!error) {
        segment->mailbox_bytes =
            whole_pages(sizeof(struct shm_mailbox) + ((size_t)senders + 63) / 64 * sizeof(uint64_t));
        segment->ring_stride = whole_pages(ring_bytes(segment->ring_payload));
        segment->bytes =
            2 * SEGMENT_PAGE + (size_t)ranks * (segment->mailbox_bytes + (size_t)senders * segment->ring_stride);
        error = check_file_limit(segment->bytes);
    }
    if (!error) error = allocate(fd, segment->bytes - SEGMENT_PAGE, SEGMENT_PAGE);
    if (!error) {
        void *base = mmap(NULL, segment->bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_NORESERVE, fd, 0);
        if (base == MAP_FAILED)
            error = base_error(NCCLX_ERR_NO_MEM, "cannot map the %zu bytes of the node's shared segment: %s",
                               segment->bytes, strerror(errno));
        else segment->base = base;
    }
    if (!error) error = base_process_own_fd(fd);
    if (!error) error = base_process_own_mapping(segment->base, segment->bytes);
    if (error) shm_segment_close(segment);
    return error;
}

void shm_segment_close(struct shm_segment *segment)
{
    if (segment->base) {
        base_process_disown_mapping(segment->base);
        munmap(segment->base, segment->bytes);
    }
    base_process_close(segment->fd);
    segment->base = NULL;
    segment->fd = -1;
}

int shm_segment_mailbox(struct shm_segment *segment, int index, struct shm_mailbox **mailbox)
{
    size_t offset = SEGMENT_PAGE + (size_t)index * segment->mailbox_bytes;
    *mailbox = (struct shm_mailbox *)(segment->base + offset);
    return allocate(segment->fd, offset, segment->mailbox_bytes);
}

int shm_segment_ring(struct shm_segment *segment, int from, int to, struct ring_shared **ring)
{
    size_t number = (size_t)to * (size_t)segment->senders + (size_t)from;
    size_t offset = SEGMENT_PAGE + (size_t)segment->ranks * segment->mailbox_bytes + number * segment->ring_stride;
    *ring = (struct ring_shared *)(segment->base + offset);
    return allocate(segment->fd, offset, segment->ring_stride);
}

void shm_segment_populate(struct ring_shared *ring, size_t payload_bytes)
{
#ifdef MADV_POPULATE_WRITE
    (void)madvise(ring, whole_pages(ring_bytes(payload_bytes)), MADV_POPULATE_WRITE); /* else each page when it is touched */
#else
    (void)ring, (void)payload_bytes;
#endif
}
