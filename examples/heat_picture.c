/* heat_picture.c - see heat_picture.h. */
#include "heat_picture.h"

#include <errno.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#ifdef HEAT_PNG
#include <png.h>
#endif

#define COLOURS 256
#define COLOURS_PER_BAND 16

struct colour {
    unsigned char red, green, blue;
};

/* From the bath to the heater: night, violet, crimson, orange, light. Evenly spaced. */
static const struct colour stops[] = {{6, 7, 26},    {28, 16, 78},   {88, 18, 122},  {150, 28, 112},
                                      {208, 52, 74}, {240, 102, 34}, {252, 172, 40}, {255, 246, 196}};
#define STOPS (sizeof stops / sizeof stops[0])

static unsigned char between(unsigned char a, unsigned char b, double part, double light)
{
    return (unsigned char)(light * (a + part * (b - a)) + 0.5);
}

/* Every other band of temperatures is a little darker, so that lines of equal temperature show. */
static struct colour colour_at(unsigned index)
{
    const double at = (double)index / (COLOURS - 1) * (STOPS - 1);
    const size_t stop = at < STOPS - 1 ? (size_t)at : STOPS - 2;
    const struct colour *a = &stops[stop], *b = &stops[stop + 1];
    const double part = at - (double)stop, light = index / COLOURS_PER_BAND % 2 ? 1 : 0.91;
    if (index == COLOURS - 1) return *b;
    return (struct colour){between(a->red, b->red, part, light), between(a->green, b->green, part, light),
                           between(a->blue, b->blue, part, light)};
}

unsigned char picture_colour(double temperature)
{
    if (!(temperature > 0)) return 0;
    return temperature < 1 ? (unsigned char)(temperature * COLOURS) : COLOURS - 1;
}

static bool ends_with(const char *name, const char *end)
{
    const size_t length = strlen(name), end_length = strlen(end);
    return length > end_length && !strcmp(name + length - end_length, end);
}

bool picture_name(const char *wanted, char *name, size_t bytes)
{
    const int length = snprintf(name, bytes, "%s", wanted);
    if (length < 0 || (size_t)length >= bytes) return false;
    if (ends_with(name, ".ppm")) return true;
    if (!ends_with(name, ".png")) return false;
#ifndef HEAT_PNG
    memcpy(name + length - 3, "ppm", 3);
#endif
    return true;
}

static bool write_ppm(const char *name, const unsigned char *colours, size_t nx, size_t ny, char *why, size_t why_bytes)
{
    struct colour palette[COLOURS];
    FILE *file = fopen(name, "wb");
    for (unsigned i = 0; i < COLOURS; i++) palette[i] = colour_at(i);
    bool good = file && fprintf(file, "P6\n%zu %zu\n255\n", nx, ny) > 0;
    for (size_t i = 0; i < nx * ny && good; i++) good = fwrite(&palette[colours[i]], 3, 1, file) == 1;
    if (!good) snprintf(why, why_bytes, "%s: %s", name, strerror(errno));
    if (file && fclose(file) && good) {
        snprintf(why, why_bytes, "%s: %s", name, strerror(errno));
        good = false;
    }
    return good;
}

#ifdef HEAT_PNG
static bool write_png(const char *name, const unsigned char *colours, size_t nx, size_t ny, char *why, size_t why_bytes)
{
    png_byte map[3 * COLOURS];
    png_image image;
    for (unsigned i = 0; i < COLOURS; i++) {
        const struct colour colour = colour_at(i);
        memcpy(&map[3 * i], &colour, 3);
    }
    if (nx > INT32_MAX || ny > INT32_MAX) {
        snprintf(why, why_bytes, "%s: a PNG picture of %zu x %zu cells is too large", name, nx, ny);
        return false;
    }
    memset(&image, 0, sizeof image);
    image.version = PNG_IMAGE_VERSION;
    image.width = (png_uint_32)nx;
    image.height = (png_uint_32)ny;
    image.format = PNG_FORMAT_RGB_COLORMAP;
    image.colormap_entries = COLOURS;
    if (png_image_write_to_file(&image, name, 0, colours, 0, map)) return true;
    snprintf(why, why_bytes, "%s: %s", name, image.message);
    return false;
}
#endif

bool picture_write(const char *name, const unsigned char *colours, size_t nx, size_t ny, char *why, size_t why_bytes)
{
#ifdef HEAT_PNG
    if (ends_with(name, ".png")) return write_png(name, colours, nx, ny, why, why_bytes);
#endif
    return write_ppm(name, colours, nx, ny, why, why_bytes);
}
