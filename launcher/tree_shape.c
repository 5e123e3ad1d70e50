/* tree_shape.c - who stands above and below whom. The positions below one another form one run of numbers a level. */
#include "config.h"

#include "launcher/tree.h"

int tree_above(const struct tree_shape *shape, int position)
{
    return position > 0 ? (position - 1) / shape->radix : TREE_FRONT;
}

int tree_child_count(const struct tree_shape *shape, int position)
{
    if (position == TREE_FRONT) return 1;
    int64_t left = shape->count - ((int64_t)position * shape->radix + 1);
    return left < 0 ? 0 : left < shape->radix ? (int)left : shape->radix;
}

int tree_child(const struct tree_shape *shape, int position, int index)
{
    return position == TREE_FRONT ? 0 : position * shape->radix + 1 + index;
}

/* Positions first .. first + size - 1 are one level below a position; `size` is 0 when there are none. */
struct run {
    int64_t first, size;
};

static struct run first_run(const struct tree_shape *shape, int position)
{
    return position == TREE_FRONT ? (struct run){0, shape->count > 0} : (struct run){position, 1};
}

static struct run next_run(const struct tree_shape *shape, struct run run)
{
    struct run next = {run.first * shape->radix + 1, run.size * shape->radix};
    if (next.first + next.size > shape->count) next.size = shape->count - next.first;
    return next.size > 0 ? next : (struct run){0, 0};
}

int tree_below_count(const struct tree_shape *shape, int position)
{
    int64_t count = 0;
    for (struct run run = first_run(shape, position); run.size; run = next_run(shape, run)) count += run.size;
    return (int)count;
}

int tree_below(const struct tree_shape *shape, int position, int index)
{
    struct run run = first_run(shape, position);
    for (; run.size && index >= run.size; run = next_run(shape, run)) index -= (int)run.size;
    return (int)run.first + index;
}

int tree_height(const struct tree_shape *shape, int position)
{
    int height = -1;
    for (struct run run = first_run(shape, position); run.size; run = next_run(shape, run)) height++;
    return height + (position == TREE_FRONT);
}

int tree_link_to(const struct tree_shape *shape, int position, int other)
{
    if (other == TREE_FRONT) return TREE_PARENT;
    if (position == TREE_FRONT) return 0;
    while (other > position) {
        int above = tree_above(shape, other);
        if (above == position) return other - tree_child(shape, position, 0);
        other = above;
    }
    return TREE_PARENT;
}

struct tree_way tree_way(const struct tree_shape *shape, int position, int to)
{
    if (to == position) return (struct tree_way){.here = true};
    if (to == TREE_EVERYBODY)
        return (struct tree_way){.here = position != TREE_FRONT, .link_count = tree_child_count(shape, position)};
    int link = tree_link_to(shape, position, to);
    return link == TREE_PARENT ? (struct tree_way){.up = true} : (struct tree_way){.first = link, .link_count = 1};
}
