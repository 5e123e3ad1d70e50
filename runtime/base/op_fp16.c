/* op_fp16.c - reductions of fp16 with the processor's conversions (F16C), several times as fast as op_small.c and with the same bits. */
#include "runtime/base/op_kernel.h"

#if defined(__x86_64__)
#include <immintrin.h>
#include <string.h>

#define F16C __attribute__((target("avx,f16c")))
#define LANES 8
#define TO_NEAREST (_MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC)

static inline F16C __m256 add(__m256 x, __m256 y)
{
    return _mm256_add_ps(x, y);
}

static inline F16C __m256 multiply(__m256 x, __m256 y)
{
    return _mm256_mul_ps(x, y);
}

/* x where `comparison` holds or x is a NaN, else y. */
#define CHOOSE(name, comparison)                                                                                     \
    static inline F16C __m256 name(__m256 x, __m256 y)                                                               \
    {                                                                                                                \
        return _mm256_blendv_ps(y, x, _mm256_or_ps(_mm256_cmp_ps(x, y, comparison), _mm256_cmp_ps(x, x, _CMP_UNORD_Q))); \
    }
CHOOSE(lower, _CMP_LT_OQ)
CHOOSE(higher, _CMP_GT_OQ)

static inline F16C __m256 widen(const char *from)
{
    return _mm256_cvtph_ps(_mm_loadu_si128((const __m128i_u *)from));
}

static inline F16C void narrow(char *to, __m256 values)
{
    _mm_storeu_si128((__m128i_u *)to, _mm256_cvtps_ph(values, TO_NEAREST));
}

/* The last, incomplete vector goes through buffers, so that every element meets the same instructions. */
#define KERNEL(name, operation)                                                                   \
    static F16C void name(const void *a, const void *b, void *out, size_t count)                  \
    {                                                                                             \
        const size_t whole = count / LANES * LANES * sizeof(short), rest = count % LANES * sizeof(short); \
        const char *first = a, *second = b;                                                       \
        char *result = out, x[LANES * sizeof(short)] = {0}, y[LANES * sizeof(short)] = {0};       \
        for (size_t at = 0; at < whole; at += LANES * sizeof(short))                              \
            narrow(result + at, operation(widen(first + at), widen(second + at)));                \
        if (!rest) return;                                                                        \
        memcpy(x, first + whole, rest);                                                           \
        memcpy(y, second + whole, rest);                                                          \
        narrow(x, operation(widen(x), widen(y)));                                                 \
        memcpy(result + whole, x, rest);                                                          \
    }
KERNEL(sum, add)
KERNEL(prod, multiply)
KERNEL(min, lower)
KERNEL(max, higher)

op_kernel_fn op_fp16_kernel(size_t op_index)
{
    static const op_kernel_fn kernel[OP_COUNT] = {sum, prod, min, max};
    return __builtin_cpu_supports("avx2") ? kernel[op_index] : NULL; /* no processor has AVX2 without F16C, and clang 14 cannot ask for that */
}
#else
op_kernel_fn op_fp16_kernel(size_t op_index)
{
    (void)op_index;
    return NULL;
}
#endif
