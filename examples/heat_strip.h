/* heat_strip.h - one rank's rows of the plate, and the steps in time, with halo rows put into the neighbours' windows.
 *
 * Temperatures are between 0, the bath around the plate, and 1, the heater. A step is the explicit five-point scheme: each
 * cell takes a fifth of the difference from each of its four neighbours; the cells of the heater are put back to 1.
 */
#ifndef HEAT_STRIP_H
#define HEAT_STRIP_H

#include "heat_plate.h"

#include <ncclx.h>
#include <stdint.h>

struct strip {
    struct plate plate;
    ncclx_comm_t comm;
    int rank, size;
    size_t first, rows;  /* of the plate's rows, this rank's */
    size_t stride;       /* elements from one row to the next: a cell of the bath at both ends */
    double *field[2];    /* rows + 2 rows each, in the window: the first and last are the neighbours', or the bath */
    ncclx_win_t window;
    uint64_t steps;      /* done; the present temperatures are in field[steps % 2] */
    size_t *heater;      /* columns of heated cells, row by row */
    size_t *heater_from; /* of each row, and one past the last: its first in heater */
    double *supplied;    /* by each row's heater so far */
    double *lost;        /* by each row to the bath so far */
};

/* Collective. The plate must have a row for each rank. */
void strip_create(struct strip *strip, const struct plate *plate, ncclx_comm_t comm);
void strip_free(struct strip *strip);
/* One step. Between steps a rank can be ahead of its neighbours by one. */
void strip_step(struct strip *strip);
/* The largest change of any cell of the plate in the last step, on all ranks. Collective. */
double strip_change(const struct strip *strip);
/* Row `row` of this rank's, from 0: nx temperatures. */
const double *strip_row(const struct strip *strip, size_t row);
/* The rows of any rank. */
void strip_rows_of(const struct strip *strip, int rank, size_t *first, size_t *rows);

/* Zeroed memory; ends the job when there is none. */
void *need(size_t count, size_t bytes);

#endif
