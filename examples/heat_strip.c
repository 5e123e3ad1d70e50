/* heat_strip.c - see heat_strip.h.
 *
 * Halos without races: the two fields take turns. In step s a rank reads field s % 2, and puts its new outer rows into the
 * neighbours' field (s + 1) % 2. The neighbour last read that halo row for its own outer row of step s - 1, which it put
 * here, with a signal, only afterwards; and this rank has waited for that signal. So one signal a step and neighbour is
 * enough, and no rank waits for more than its neighbours.
 */
#include "heat_strip.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#define EXCHANGED 0.2 /* of the difference, with each neighbour: the scheme is stable up to 1/4 */

/* Slots of the window: halo rows that have come from the rank above, and from the one below. */
enum { FROM_ABOVE, FROM_BELOW };

void *need(size_t count, size_t bytes)
{
    void *memory = calloc(count ? count : 1, bytes);
    if (memory) return memory;
    fprintf(stderr, "heat: no memory for %zu times %zu bytes\n", count, bytes);
    ncclx_abort(NCCLX_COMM_WORLD, 1);
    return NULL;
}

/* ---- Layout -------------------------------------------------------------------------------------------------- */

void strip_rows_of(const struct strip *strip, int rank, size_t *first, size_t *rows)
{
    const size_t size = (size_t)strip->size, r = (size_t)rank, share = strip->plate.ny / size, more = strip->plate.ny % size;
    *first = r * share + (r < more ? r : more);
    *rows = share + (r < more);
}

/* Where row `row`, from 0 for the upper halo, of field `turn` begins in the window of a rank with `rows` rows. */
static size_t place(const struct strip *strip, size_t rows, unsigned turn, size_t row)
{
    return (turn * (rows + 2) + row) * strip->stride;
}

static double *row_at(const struct strip *strip, unsigned turn, size_t row)
{
    return strip->field[turn] + row * strip->stride;
}

const double *strip_row(const struct strip *strip, size_t row)
{
    return row_at(strip, strip->steps % 2, row + 1) + 1;
}

/* ---- Create -------------------------------------------------------------------------------------------------- */

/* Heaters are hot from the start, all else is as cold as the bath. Halo rows are known without being told. */
static void set_first_field(struct strip *strip)
{
    const struct plate *plate = &strip->plate;
    for (size_t row = 0; row < strip->rows + 2; row++) {
        const size_t y = strip->first + row - 1; /* wraps around above the plate, to no row of it */
        for (size_t x = 0; x < plate->nx && y < plate->ny; x++)
            if (plate_heated(plate, x, y)) row_at(strip, 0, row)[x + 1] = 1;
    }
}

static void find_heaters(struct strip *strip)
{
    size_t count = 0;
    strip->heater_from = need(strip->rows + 1, sizeof *strip->heater_from);
    for (size_t row = 0; row < strip->rows; row++)
        for (size_t x = 0; x < strip->plate.nx; x++) count += row_at(strip, 0, row + 1)[x + 1] > 0;
    strip->heater = need(count, sizeof *strip->heater);
    count = 0;
    for (size_t row = 0; row < strip->rows; row++) {
        for (size_t x = 1; x <= strip->plate.nx; x++)
            if (row_at(strip, 0, row + 1)[x] > 0) strip->heater[count++] = x;
        strip->heater_from[row + 1] = count;
    }
}

void strip_create(struct strip *strip, const struct plate *plate, ncclx_comm_t comm)
{
    void *memory;
    *strip = (struct strip){.plate = *plate, .comm = comm, .stride = plate->nx + 2};
    ncclx_comm_rank(comm, &strip->rank);
    ncclx_comm_size(comm, &strip->size);
    strip_rows_of(strip, strip->rank, &strip->first, &strip->rows);
    const size_t elements = place(strip, strip->rows, 2, 0);
    ncclx_win_allocate(elements * sizeof(double), sizeof(double), NCCLX_INFO_NULL, comm, &memory, &strip->window);
    strip->field[0] = memory;
    strip->field[1] = strip->field[0] + place(strip, strip->rows, 1, 0);
    for (size_t i = 0; i < elements; i++) strip->field[0][i] = 0;
    set_first_field(strip);
    find_heaters(strip);
    strip->supplied = need(strip->rows, sizeof(double));
    strip->lost = need(strip->rows, sizeof(double));
    ncclx_win_fence(strip->window); /* nobody puts into a field that its rank has yet to clear */
}

void strip_free(struct strip *strip)
{
    ncclx_win_free(&strip->window);
    free(strip->heater);
    free(strip->heater_from);
    free(strip->supplied);
    free(strip->lost);
}

/* ---- Steps --------------------------------------------------------------------------------------------------- */

/* The same operations in the same order for every cell, on whichever rank: results do not depend on how many there are. */
static void spread(const double *restrict above, const double *restrict here, const double *restrict below,
                   double *restrict next, size_t stride)
{
    for (size_t x = 1; x < stride - 1; x++)
        next[x] = here[x] + EXCHANGED * ((above[x] + below[x]) + (here[x - 1] + here[x + 1]) - 4 * here[x]);
}

static double row_sum(const double *row, size_t nx)
{
    double sum = 0;
    for (size_t x = 0; x < nx; x++) sum += row[x];
    return sum;
}

/* What the row, before the step, gives to the bath on the sides where it has one. */
static double row_loss(const struct strip *strip, size_t row, const double *here)
{
    const size_t y = strip->first + row, nx = strip->plate.nx;
    double loss = here[1] + here[nx];
    if (y == 0) loss += row_sum(here + 1, nx);
    if (y == strip->plate.ny - 1) loss += row_sum(here + 1, nx);
    return EXCHANGED * loss;
}

static void step_row(struct strip *strip, size_t row)
{
    const unsigned old = strip->steps % 2;
    const double *here = row_at(strip, old, row + 1);
    double *next = row_at(strip, !old, row + 1);
    spread(here - strip->stride, here, here + strip->stride, next, strip->stride);
    strip->lost[row] += row_loss(strip, row, here);
    for (size_t i = strip->heater_from[row]; i < strip->heater_from[row + 1]; i++) {
        strip->supplied[row] += 1 - next[strip->heater[i]];
        next[strip->heater[i]] = 1;
    }
}

/* The new row goes into the halo of the rank above or below. */
static void give(struct strip *strip, size_t row, int to)
{
    const unsigned turn = !(strip->steps % 2);
    const bool up = to < strip->rank;
    size_t first, rows;
    if (to < 0 || to >= strip->size) return;
    strip_rows_of(strip, to, &first, &rows);
    ncclx_win_put_signal(row_at(strip, turn, row + 1) + 1, strip->plate.nx, NCCLX_DOUBLE, to,
                         place(strip, rows, turn, up ? rows + 1 : 0) + 1, strip->window, up ? FROM_BELOW : FROM_ABOVE,
                         NCCLX_SIGNAL_ADD, 1);
}

static void await_halo(const struct strip *strip, int from, size_t slot)
{
    if (from < 0 || from >= strip->size) return;
    ncclx_win_wait_signal(strip->window, slot, NCCLX_CMP_GE, strip->steps + 1, -1, NULL);
}

void strip_step(struct strip *strip)
{
    const size_t last = strip->rows - 1;
    ncclx_win_flush_local_all(strip->window); /* the rows put two steps ago are about to be written again */
    step_row(strip, 0);
    give(strip, 0, strip->rank - 1);
    if (last) step_row(strip, last);
    give(strip, last, strip->rank + 1);
    for (size_t row = 1; row < last; row++) step_row(strip, row); /* while the halos travel */
    await_halo(strip, strip->rank - 1, FROM_ABOVE);
    await_halo(strip, strip->rank + 1, FROM_BELOW);
    strip->steps++;
}

double strip_change(const struct strip *strip)
{
    double change = 0;
    for (size_t row = 1; row <= strip->rows; row++)
        for (size_t x = 1; x <= strip->plate.nx; x++)
            change = fmax(change, fabs(row_at(strip, 0, row)[x] - row_at(strip, 1, row)[x]));
    ncclx_coll_allreduce(NCCLX_IN_PLACE, &change, 1, NCCLX_DOUBLE, NCCLX_MAX, strip->comm);
    return change;
}
