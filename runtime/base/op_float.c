/* op_float.c - reductions of float and double. A NaN on either side is kept by every operation. */
#include "runtime/base/op_kernel.h"

typedef float OP_UNALIGNED f32;
typedef double OP_UNALIGNED f64;

/* Of equal values (0 and -0) min and max take y. */
#define FAMILY(type)                                        \
    OP_KERNEL(sum_##type, type, x + y)                      \
    OP_KERNEL(prod_##type, type, x *y)                      \
    OP_KERNEL(min_##type, type, ((x < y) | (x != x)) ? x : y) \
    OP_KERNEL(max_##type, type, ((x > y) | (x != x)) ? x : y)

FAMILY(f32)
FAMILY(f64)

op_kernel_fn op_float_kernel(ncclx_datatype_t type, size_t op_index)
{
    static const op_kernel_fn kernel[][OP_COUNT] = {{sum_f32, prod_f32, min_f32, max_f32}, {sum_f64, prod_f64, min_f64, max_f64}};
    return kernel[type - NCCLX_FLOAT][op_index];
}

void op_float_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks)
{
    if (type == NCCLX_FLOAT) {
        f32 *value = inout;
        for (size_t i = 0; i < count; i++) value[i] = (float)(value[i] / (double)ranks); /* ranks may not fit a float */
    } else {
        f64 *value = inout;
        for (size_t i = 0; i < count; i++) value[i] /= ranks;
    }
}
