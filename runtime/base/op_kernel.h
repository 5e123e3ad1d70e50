/* op_kernel.h - reduction loops, one file a family of types, and the table that op.c chooses from. Private to runtime/base. */
#ifndef BASE_OP_KERNEL_H
#define BASE_OP_KERNEL_H

#include "runtime/ncclx.h"

#include <stddef.h>

/* out[i] = a[i] op b[i]; out may be a or b, else nothing overlaps; nothing needs to be aligned. */
typedef void (*op_kernel_fn)(const void *a, const void *b, void *out, size_t count);

/* Index of predefined operations in a row: NCCLX_SUM is 0. AVG has no kernel of its own. */
#define OP_INDEX(op) ((size_t)(op) - 1)
#define OP_COUNT 13

/* Null where the operation does not take the type. `type` must be a type of the family. */
op_kernel_fn op_integer_kernel(ncclx_datatype_t type, size_t op_index);
op_kernel_fn op_float_kernel(ncclx_datatype_t type, size_t op_index);
op_kernel_fn op_small_kernel(ncclx_datatype_t type, size_t op_index); /* fp16, bf16, fp8 */
op_kernel_fn op_small_kernel_portable(ncclx_datatype_t type, size_t op_index);
op_kernel_fn op_fp16_kernel(size_t op_index); /* null also where the processor has no conversions */
op_kernel_fn op_pair_kernel(ncclx_datatype_t type, size_t op_index);

/* inout[i] /= ranks, for AVG. */
void op_integer_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks);
void op_float_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks);
void op_small_divide(ncclx_datatype_t type, void *inout, size_t count, int ranks);

/* A type with any alignment, which may alias any other: users' buffers carry no promise. */
#define OP_UNALIGNED __attribute__((aligned(1), may_alias))

/* Elements at the same index only depend on each other, also when out is a or b. With -fopenmp-simd gcc and clang vectorise the loop at any -O
 * from 2 on, whatever their cost model. */
#define OP_VECTOR_LOOP _Pragma("omp simd")

/* One loop. x and y are a[i] and b[i]. */
#define OP_KERNEL(name, type, expression)                                             \
    OP_CLONES static void name(const void *a, const void *b, void *out, size_t count) \
    {                                                                                 \
        const type *first = a, *second = b;                                           \
        type *result = out;                                                           \
        OP_VECTOR_LOOP                                                                \
        for (size_t i = 0; i < count; i++) {                                          \
            const type x = first[i], y = second[i];                                   \
            result[i] = (type)(expression);                                           \
        }                                                                             \
    }

/* The compiler makes one version of each loop for each instruction set; the loader picks. Sanitizers and clang before 16 do without; gcc knows the
 * levels of x86-64 as names since 12. */
#if defined(__x86_64__) && defined(__gnu_linux__) && !defined(__clang__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#if __GNUC__ >= 12
#define OP_CLONES __attribute__((target_clones("default", "arch=x86-64-v3", "arch=x86-64-v4")))
#else
#define OP_CLONES __attribute__((target_clones("default", "avx2", "avx512bw")))
#endif
#else
#define OP_CLONES
#endif

#endif
