/* grid.c - every collective, in place and not, from every root, in every form and with every sort of operands, with
 * counts of nothing, of few, of one less, as many and one more than each limit that it is told, and of a million.
 * Prints how many calls were right. Large vectors take one form and one sort of operands for each root and place, in
 * turn.
 *
 *     grid [-e N] [-p PART] [-o OPERANDS] [-m] [KIND=BYTES[,BYTES...]]...
 *     grid -r SEEDS
 *
 *     -e N      one case in N, drawn
 *     -p PART   from 0 to N - 1: draws others; all together are all
 *     -o N      operands of this sort only (coll_call.h)
 *     -m        a million elements, too
 *     -r N      N sparse random alltoallv, and no more
 *     KIND=...  limits of this collective, in the bytes by which it chooses its algorithm; "all" for all of them
 */
#include "coll_call.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define MOST_LIMITS 32
#define LARGE 20000 /* elements of a block */
#define MILLION 1000000

static size_t limits[KINDS][MOST_LIMITS];
static unsigned limit_count[KINDS];
static unsigned every = 1, part, cases, calls;
static int only = -1, million, rank, size;
static ncclx_comm_t comms[2];

static unsigned draw(unsigned number)
{
    uint32_t mixed = (number + 1) * 2654435761u;
    mixed = (mixed ^ mixed >> 15) * 2246822519u;
    return mixed ^ mixed >> 13;
}

static void try(struct call call)
{
    unsigned drawn = draw(cases++);
    if (drawn % every != part) return;
    call.comm = comms[drawn / every % 2];
    call.seed = drawn;
    call_run(&call);
    calls++;
}

static int applies(enum kind kind, int operands)
{
    return kind_takes(kind, (enum operands)operands) && (only < 0 || only == operands);
}

/* One of its forms and sorts of operands. */
static void try_one_of(struct call call, unsigned turn)
{
    unsigned sorts = 0;
    for (int operands = 0; operands < OPERANDS; operands++) sorts += applies(call.kind, operands) != 0;
    if (!sorts) return;
    unsigned wanted = turn / FORMS % sorts;
    call.form = (enum form)(turn % FORMS);
    for (int operands = 0; operands < OPERANDS; operands++) {
        if (!applies(call.kind, operands) || wanted--) continue;
        call.operands = (enum operands)operands;
        try(call);
        return;
    }
}

static void try_all(struct call call)
{
    for (int form = 0; form < FORMS; form++) {
        call.form = (enum form)form;
        try(call);
    }
}

/* operands < 0: in turn. */
static void each_root_and_place(struct call call, int operands)
{
    int roots = kind_has_root(call.kind) ? size : 1, places = call.kind == BARRIER || call.kind == BCAST ? 1 : 2;
    for (call.root = 0; call.root < roots; call.root++) {
        for (call.in_place = 0; call.in_place < places; call.in_place++) {
            if (operands < 0)
                try_one_of(call, (unsigned)(call.root * places + call.in_place + call.root / FORMS));
            else
                try_all(call);
        }
    }
}

/* The counts by which bytes come to about a limit: `step` more. */
static void at_limit(enum kind kind, enum operands operands, size_t element, size_t limit, int step)
{
    struct call call = {.kind = kind, .operands = operands, .counts = EQUAL};
    size_t of_all = element * (size_t)size, at = limit / element;
    if (kind == ALLGATHER || kind == REDUCE_SCATTER_BLOCK) at = limit / of_all;
    if (kind == ALLGATHERV || kind == REDUCE_SCATTER) call.counts = DEALT;
    if (step < 0 && at == 0) return;
    call.count = step < 0 ? at - 1 : at + (size_t)step;
    each_root_and_place(call, call.count > LARGE ? -1 : (int)operands);
}

static void one_kind(enum kind kind)
{
    static const size_t few[] = {0, 1, 7},
                        element[OPERANDS] = {[SUMS] = 8, [BYTES] = 1, [AVERAGES] = 8, [FLOATS] = 4, [ORDERED] = 16};
    for (int operands = 0; operands < OPERANDS; operands++) {
        if (!applies(kind, operands)) continue;
        for (unsigned i = 0; i < (kind == BARRIER ? 1 : sizeof few / sizeof few[0]); i++) {
            struct call call = {.kind = kind, .operands = (enum operands)operands, .count = few[i]};
            each_root_and_place(call, operands);
        }
        for (unsigned i = 0; i < limit_count[kind]; i++)
            for (int step = -1; step <= 1; step++)
                at_limit(kind, (enum operands)operands, element[operands], limits[kind][i], step);
    }
    if (!million || kind == BARRIER) return;
    int moves = !kind_reduces(kind) && (only < 0 || only == BYTES);
    struct call call = {.kind = kind, .count = MILLION, .operands = BYTES, .counts = EQUAL};
    if (moves)
        each_root_and_place(call, BYTES); /* as bytes: so much for so many ranks */
    else
        each_root_and_place(call, -1);
}

/* Nobody leaves before all have come: each counts in memory that the others see. */
static void barriers(void)
{
    _Atomic unsigned *own, *others[MOST_RANKS];
    ncclx_win_t win;
    void *base;
    struct call call = {.kind = BARRIER, .comm = comms[0], .rank = rank, .size = size};
    call_must(&call, ncclx_win_allocate(sizeof *own, 1, NCCLX_INFO_NULL, comms[0], &base, &win));
    own = base;
    *own = 0;
    for (int i = 0; i < size; i++) {
        call_must(&call, ncclx_win_shared_query(win, i, NULL, NULL, &base));
        others[i] = base;
    }
    call_must(&call, ncclx_coll_barrier(comms[0]));
    for (unsigned entered = 1; entered <= 60; entered++) {
        call.form = (enum form)(entered % FORMS);
        ++*own;
        call_run(&call);
        for (int i = 0; i < size; i++)
            if (others[i] && *others[i] < entered) call_failed(&call, "rank %d has not come", i);
    }
    call_must(&call, ncclx_win_free(&win));
}

static void sparse(unsigned seeds)
{
    static const size_t counts[] = {1, 7, 300, 5000};
    for (unsigned seed = 0; seed < seeds; seed++) {
        struct call call = {.kind = ALLTOALLV,
                            .counts = SPARSE,
                            .seed = seed,
                            .count = counts[draw(seed) % 4],
                            .in_place = draw(seed) / 4 % 2,
                            .operands = draw(seed) / 8 % 2 ? BYTES : SUMS,
                            .comm = comms[seed % 2]};
        for (int form = 0; form < FORMS; form++, calls++) {
            call.form = (enum form)form;
            call_run(&call);
        }
    }
}

/* KIND=BYTES,... */
static int read_limits(char *text)
{
    char *bytes = strchr(text, '='), *end;
    int known = 0;
    if (!bytes) return 0;
    *bytes++ = '\0';
    for (int kind = 0; kind < KINDS; kind++) {
        if (strcmp(text, "all") && strcmp(text, kind_name[kind])) continue;
        known = 1;
        for (char *at = bytes; *at && limit_count[kind] < MOST_LIMITS; at = *end ? end + 1 : end) {
            limits[kind][limit_count[kind]++] = strtoull(at, &end, 10);
            if (end == at) return 0;
        }
    }
    return known;
}

int main(int argc, char **argv)
{
    unsigned seeds = 0;
    int option;
    while ((option = getopt(argc, argv, "e:p:o:mr:")) != -1) {
        switch (option) {
        case 'e':
            every = (unsigned)atoi(optarg);
            break;
        case 'p':
            part = (unsigned)atoi(optarg);
            break;
        case 'o':
            only = atoi(optarg);
            break;
        case 'm':
            million = 1;
            break;
        case 'r':
            seeds = (unsigned)atoi(optarg);
            break;
        default:
            return 2;
        }
    }
    while (optind < argc)
        if (!read_limits(argv[optind++])) return 2;
    if (!every || part >= every || ncclx_init(NULL, NULL)) return 2;
    ncclx_comm_rank(NCCLX_COMM_WORLD, &rank);
    ncclx_comm_size(NCCLX_COMM_WORLD, &size);
    if (size > MOST_RANKS) return 2;
    calls_begin();
    comms[0] = NCCLX_COMM_WORLD;
    for (int kind = 0; kind < (seeds ? 1 : KINDS); kind++) { /* ranks in reverse, on a communicator that is new */
        if (ncclx_comm_split(NCCLX_COMM_WORLD, 0, size - rank, &comms[1])) return 2;
        if (seeds)
            sparse(seeds);
        else
            one_kind((enum kind)kind);
        if (ncclx_comm_free(&comms[1])) return 2;
    }
    if (!seeds) barriers();
    calls_end();
    if (rank == 0) printf("%u\n", calls);
    return ncclx_finalize() != NCCLX_SUCCESS;
}
