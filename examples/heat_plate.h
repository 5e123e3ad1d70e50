/* heat_plate.h - the plate of heat.c: where the heater lies on it. */
#ifndef HEAT_PLATE_H
#define HEAT_PLATE_H

#include <stdbool.h>
#include <stddef.h>

/* Cells; (0, 0) is at the top left. */
struct plate {
    size_t nx, ny;
};

/* The heater is a tube in the shape of the word "ncclx", as large as fits on the plate. */
bool plate_heated(const struct plate *plate, size_t x, size_t y);

#endif
