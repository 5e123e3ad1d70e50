/* op_integer.c - reductions of integers. Sums and products wrap, as unsigned arithmetic does. */
#include "runtime/base/op_kernel.h"

#include <stdint.h>

typedef int8_t OP_UNALIGNED i8;
typedef uint8_t OP_UNALIGNED u8;
typedef int16_t OP_UNALIGNED i16;
typedef uint16_t OP_UNALIGNED u16;
typedef int32_t OP_UNALIGNED i32;
typedef uint32_t OP_UNALIGNED u32;
typedef int64_t OP_UNALIGNED i64;
typedef uint64_t OP_UNALIGNED u64;

/* Operations whose bits do not depend on the sign are those of the unsigned type. 16-bit products would be promoted to int and overflow it. */
#define SIGNLESS(type)                                      \
    OP_KERNEL(sum_##type, type, x + y)                      \
    OP_KERNEL(prod_##type, type, (uint64_t)x * (uint64_t)y) \
    OP_KERNEL(land_##type, type, (x != 0) & (y != 0))       \
    OP_KERNEL(lor_##type, type, (x | y) != 0)               \
    OP_KERNEL(lxor_##type, type, (x != 0) ^ (y != 0))       \
    OP_KERNEL(band_##type, type, x & y)                     \
    OP_KERNEL(bor_##type, type, x | y)                      \
    OP_KERNEL(bxor_##type, type, x ^ y)
#define ORDERED(type)                        \
    OP_KERNEL(min_##type, type, x < y ? x : y) \
    OP_KERNEL(max_##type, type, x > y ? x : y)

SIGNLESS(u8)
SIGNLESS(u16)
SIGNLESS(u32)
SIGNLESS(u64)
ORDERED(i8)
ORDERED(u8)
ORDERED(i16)
ORDERED(u16)
ORDERED(i32)
ORDERED(u32)
ORDERED(i64)
ORDERED(u64)

#define ROW(ordered, signless)                                                                                       \
    {                                                                                                                \
        sum_##signless, prod_##signless, min_##ordered, max_##ordered, NULL, land_##signless, lor_##signless,        \
            lxor_##signless, band_##signless, bor_##signless, bxor_##signless, NULL, NULL                            \
    }

op_kernel_fn op_integer_kernel(ncclx_datatype_t type, size_t op_index)
{
    static const op_kernel_fn kernel[][OP_COUNT] = {ROW(i8, u8),   ROW(u8, u8),   ROW(i16, u16), ROW(u16, u16),
                                                    ROW(i32, u32), ROW(u32, u32), ROW(i64, u64), ROW(u64, u64)};
    return kernel[type - NCCLX_INT8][op_index];
}

#define DIVIDE(type, wide)                                                     \
    static void divide_##type(void *inout, size_t count, wide ranks)           \
    {                                                                          \
        type *value = inout;                                                   \
        for (size_t i = 0; i < count; i++) value[i] = (type)(value[i] / ranks); \
    }

DIVIDE(i8, int32_t)
DIVIDE(u8, int32_t)
DIVIDE(i16, int32_t)
DIVIDE(u16, int32_t)
DIVIDE(i32, int32_t)
DIVIDE(u32, uint32_t)
DIVIDE(i64, int64_t)
DIVIDE(u64, uint64_t)

void op_integer_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks)
{
    switch (type) {
    case NCCLX_INT8: divide_i8(inout, count, ranks); break;
    case NCCLX_UINT8: divide_u8(inout, count, ranks); break;
    case NCCLX_INT16: divide_i16(inout, count, ranks); break;
    case NCCLX_UINT16: divide_u16(inout, count, ranks); break;
    case NCCLX_INT32: divide_i32(inout, count, ranks); break;
    case NCCLX_UINT32: divide_u32(inout, count, (uint32_t)ranks); break;
    case NCCLX_INT64: divide_i64(inout, count, ranks); break;
    case NCCLX_UINT64: divide_u64(inout, count, (uint64_t)ranks); break;
    default: break;
    }
}
