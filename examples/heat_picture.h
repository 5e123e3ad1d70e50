/* heat_picture.h - temperatures as a picture: PNG where heat was built with libpng (-DHEAT_PNG), else PPM. */
#ifndef HEAT_PICTURE_H
#define HEAT_PICTURE_H

#include <stdbool.h>
#include <stddef.h>

/* The colour of a temperature from 0 to 1, as an index into the palette. */
unsigned char picture_colour(double temperature);
/* The file that `wanted` stands for: the same name, but .ppm where it ends in .png and there is no libpng. False: it ends
 * in neither, or is too long. */
bool picture_name(const char *wanted, char *name, size_t bytes);
/* Writes nx * ny colours, row by row from the top. False: why says what went wrong. */
bool picture_write(const char *name, const unsigned char *colours, size_t nx, size_t ny, char *why, size_t why_bytes);

#endif
