/* cg_halo.h - brings the elements that a rank's rows need from the ranks that own them, by put_signal on a window.
 *
 * The window of each rank holds its halo twice; exchange n uses half n % 2. Each pair of neighbours keeps two counters in
 * signal slots: the receiver's "arrived" (slot: rank of the sender), raised together with the data, and the sender's "taken"
 * (slot: size + rank of the receiver), raised when the receiver has copied the data out. A sender fills a half again only when
 * its data of two exchanges before was taken, so no rank overwrites what another still reads, however far apart they run, and
 * nobody waits in the usual case.
 */
#ifndef CG_HALO_H
#define CG_HALO_H

#include "cg_system.h"

struct halo_neighbour {
    int rank;
    uint64_t first, count;   /* its elements in the halo, or in the list of elements given */
    uint64_t place, whole;   /* given: where they go in its halo, and the size of its halo */
};

struct halo {
    const struct system *system;
    ncclx_win_t window;
    double *arriving;        /* this rank's window: two halos */
    double *staged;          /* two times the elements given, in the order of `element` */
    uint64_t given;
    uint64_t *element;       /* own elements that others need */
    struct halo_neighbour *from, *to;
    int from_count, to_count;
    uint64_t exchanges;
    uint64_t puts, bytes_put; /* by this rank, to others */
};

/* Collective: neighbours tell each other what they need. */
void halo_create(struct halo *halo, const struct system *system);
/* vector: own elements, then room for the halo, which is filled. Collective between neighbours. */
void halo_exchange(struct halo *halo, double *vector);
/* Collective. */
void halo_free(struct halo *halo);

#endif
