/* op_pair.c - minloc and maxloc of (value, index) pairs. Of equal values the lower index wins; of NaNs, which win over numbers, too. */
#include "runtime/base/op_kernel.h"

#include <stdbool.h>
#include <stdint.h>
#include <string.h>

struct i32_pair {
    int32_t value, index;
};
struct i64_pair {
    int64_t value, index;
};
struct f32_pair {
    float value;
    int32_t index;
};
struct f64_pair {
    double value;
    int64_t index;
};

/* Elements are copied in and out: the buffers may be unaligned. x != x is true for NaN only. */
#define LOCATE(name, type, better)                                                      \
    static void name##_##type(const void *a, const void *b, void *out, size_t count)    \
    {                                                                                   \
        for (size_t i = 0; i < count; i++) {                                            \
            struct type x, y;                                                           \
            memcpy(&x, (const char *)a + i * sizeof x, sizeof x);                       \
            memcpy(&y, (const char *)b + i * sizeof y, sizeof y);                       \
            bool x_nan = x.value != x.value, y_nan = y.value != y.value;                \
            bool tie = x.value == y.value || (x_nan && y_nan);                          \
            bool first = tie ? x.index <= y.index : x_nan || (!y_nan && x.value better y.value); \
            memcpy((char *)out + i * sizeof x, first ? &x : &y, sizeof x);              \
        }                                                                               \
    }
#define FAMILY(type)        \
    LOCATE(minloc, type, <) \
    LOCATE(maxloc, type, >)

FAMILY(i32_pair)
FAMILY(i64_pair)
FAMILY(f32_pair)
FAMILY(f64_pair)

op_kernel_fn op_pair_kernel(ncclx_datatype_t type, size_t op_index)
{
    static const op_kernel_fn minloc[] = {minloc_i32_pair, minloc_i64_pair, minloc_f32_pair, minloc_f64_pair};
    static const op_kernel_fn maxloc[] = {maxloc_i32_pair, maxloc_i64_pair, maxloc_f32_pair, maxloc_f64_pair};
    if (op_index == OP_INDEX(NCCLX_MINLOC)) return minloc[type - NCCLX_INT32_PAIR];
    if (op_index == OP_INDEX(NCCLX_MAXLOC)) return maxloc[type - NCCLX_INT32_PAIR];
    return NULL;
}
