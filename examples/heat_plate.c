/* heat_plate.c - see heat_plate.h. */
#include "heat_plate.h"

#include <math.h>

/* The word, in units of the height of an "x", y upwards from the line on which it stands. */
#define WORD_WIDTH 4.94
#define WORD_HEIGHT 1.6
#define TUBE_RADIUS 0.06
/* Parts of the plate that the word takes at most. */
#define MOST_WIDTH 0.74
#define MOST_HEIGHT 0.5

struct point {
    double x, y;
};

struct line {
    struct point from, to;
};

/* The part of a circle within `half` radians of the direction `middle`. */
struct arc {
    struct point centre;
    double radius, middle, half;
};

#define PI 3.14159265358979323846
static const struct line lines[] = {
    {{0, 0}, {0, 1}}, {{0.9, 0}, {0.9, 0.55}},     /* n */
    {{3.64, 0}, {3.64, 1.6}},                      /* l */
    {{4.04, 0}, {4.94, 1}}, {{4.04, 1}, {4.94, 0}} /* x */
};
static const struct arc arcs[] = {
    {{0.45, 0.55}, 0.45, PI / 2, PI / 2}, /* n */
    {{1.75, 0.5}, 0.5, PI, PI * 13 / 18}, /* c */
    {{2.92, 0.5}, 0.5, PI, PI * 13 / 18}, /* c */
};

static double distance(struct point a, struct point b)
{
    return hypot(a.x - b.x, a.y - b.y);
}

static double distance_to_line(struct point p, const struct line *line)
{
    const double dx = line->to.x - line->from.x, dy = line->to.y - line->from.y;
    double part = ((p.x - line->from.x) * dx + (p.y - line->from.y) * dy) / (dx * dx + dy * dy);
    part = fmin(fmax(part, 0), 1);
    return distance(p, (struct point){line->from.x + part * dx, line->from.y + part * dy});
}

static struct point end_of(const struct arc *arc, double angle)
{
    return (struct point){arc->centre.x + arc->radius * cos(angle), arc->centre.y + arc->radius * sin(angle)};
}

static double distance_to_arc(struct point p, const struct arc *arc)
{
    const double angle = atan2(p.y - arc->centre.y, p.x - arc->centre.x);
    if (fabs(remainder(angle - arc->middle, 2 * PI)) <= arc->half)
        return fabs(distance(p, arc->centre) - arc->radius);
    return fmin(distance(p, end_of(arc, arc->middle - arc->half)), distance(p, end_of(arc, arc->middle + arc->half)));
}

bool plate_heated(const struct plate *plate, size_t x, size_t y)
{
    const double nx = (double)plate->nx, ny = (double)plate->ny;
    const double unit = fmin(MOST_WIDTH * nx / WORD_WIDTH, MOST_HEIGHT * ny / WORD_HEIGHT);
    const struct point p = {((double)x + 0.5 - nx / 2) / unit + WORD_WIDTH / 2,
                            (ny / 2 - (double)y - 0.5) / unit + WORD_HEIGHT / 2};
    for (size_t i = 0; i < sizeof lines / sizeof lines[0]; i++)
        if (distance_to_line(p, &lines[i]) <= TUBE_RADIUS) return true;
    for (size_t i = 0; i < sizeof arcs / sizeof arcs[0]; i++)
        if (distance_to_arc(p, &arcs[i]) <= TUBE_RADIUS) return true;
    return false;
}
