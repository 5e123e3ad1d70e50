/* op_small.c - reductions of fp16, bf16 and 8-bit floats. Each element is widened to float, reduced there and rounded to nearest even once:
 * float has more than twice the digits and two more, so sums and products are what the exact result rounds to (but for products of bf16 so small
 * that a float underflows). */
#include "runtime/base/op_kernel.h"
#include "runtime/base/small_float.h"

typedef uint16_t OP_UNALIGNED u16;
typedef uint8_t OP_UNALIGNED u8;

#define SMALL(name, type, to_float, from_float, expression)                           \
    OP_CLONES static void name(const void *a, const void *b, void *out, size_t count) \
    {                                                                                 \
        const type *first = a, *second = b;                                           \
        type *result = out;                                                           \
        OP_VECTOR_LOOP                                                                \
        for (size_t i = 0; i < count; i++) {                                          \
            const float x = to_float(first[i]), y = to_float(second[i]);              \
            result[i] = from_float(expression);                                       \
        }                                                                             \
    }
#define FAMILY(name, type)                                                                                               \
    SMALL(sum_##name, type, small_##name##_to_float, small_float_to_##name, x + y)                                       \
    SMALL(prod_##name, type, small_##name##_to_float, small_float_to_##name, x *y)                                       \
    SMALL(min_##name, type, small_##name##_to_float, small_float_to_##name, ((x < y) | (x != x)) ? x : y)                  \
    SMALL(max_##name, type, small_##name##_to_float, small_float_to_##name, ((x > y) | (x != x)) ? x : y)                  \
    static void divide_##name(void *inout, size_t count, float ranks)                                                    \
    {                                                                                                                    \
        type *value = inout;                                                                                             \
        for (size_t i = 0; i < count; i++) value[i] = small_float_to_##name(small_##name##_to_float(value[i]) / ranks);  \
    }

FAMILY(fp16, u16)
FAMILY(bf16, u16)
FAMILY(e4m3, u8)
FAMILY(e5m2, u8)

#define ROW(name) {sum_##name, prod_##name, min_##name, max_##name}

op_kernel_fn op_small_kernel_portable(ncclx_datatype_t type, size_t op_index)
{
    static const op_kernel_fn kernel[][OP_COUNT] = {ROW(fp16), ROW(bf16), ROW(e4m3), ROW(e5m2)};
    return kernel[type - NCCLX_FP16][op_index];
}

op_kernel_fn op_small_kernel(ncclx_datatype_t type, size_t op_index)
{
    op_kernel_fn native = type == NCCLX_FP16 ? op_fp16_kernel(op_index) : NULL;
    return native ? native : op_small_kernel_portable(type, op_index);
}

void op_small_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks)
{
    switch (type) {
    case NCCLX_FP16: divide_fp16(inout, count, (float)ranks); break;
    case NCCLX_BF16: divide_bf16(inout, count, (float)ranks); break;
    case NCCLX_FP8_E4M3: divide_e4m3(inout, count, (float)ranks); break;
    case NCCLX_FP8_E5M2: divide_e5m2(inout, count, (float)ranks); break;
    default: break;
    }
}
