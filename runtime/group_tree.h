/* group_tree.h - the binomial tree of a group, rank 0 at its root, over which create_group speaks: the children of a rank are those at
 * distances 1, 2, 4 ... below group_tree_reach() that the group has. */
#ifndef RUNTIME_GROUP_TREE_H
#define RUNTIME_GROUP_TREE_H

static inline int group_tree_parent(int rank)
{
    return rank & (rank - 1); /* without its lowest bit */
}

/* The first power of two that is no longer the distance of a child. */
static inline int group_tree_reach(int rank, int size)
{
    int reach = 1;
    while (reach < size && !(rank & reach)) reach *= 2;
    return reach;
}

#endif
