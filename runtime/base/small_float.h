/* small_float.h - fp16, bf16 and 8-bit floats to float and back, rounding to nearest even, without a branch a loop could not vectorise.
 * NaNs stay NaNs (made quiet, with the payload bits that fit); numbers too large become infinity, or NaN in e4m3, which has no infinity. */
#ifndef BASE_SMALL_FLOAT_H
#define BASE_SMALL_FLOAT_H

#include <stdint.h>
#include <string.h>

static inline float small_from_bits(uint32_t bits)
{
    float value;
    memcpy(&value, &bits, sizeof value);
    return value;
}

static inline uint32_t small_to_bits(float value)
{
    uint32_t bits;
    memcpy(&bits, &value, sizeof bits);
    return bits;
}

/* ---- bfloat16: the upper half of a float ---------------------------------------------------------------------- */

static inline float small_bf16_to_float(uint16_t half)
{
    return small_from_bits((uint32_t)half << 16);
}

static inline uint16_t small_float_to_bf16(float value)
{
    uint32_t bits = small_to_bits(value);
    uint32_t rounded = bits + 0x7fff + (bits >> 16 & 1); /* carries into the exponent, and there into infinity */
    uint32_t nan = bits | 0x400000;
    return (uint16_t)(((bits & 0x7fffffff) > 0x7f800000 ? nan : rounded) >> 16);
}

/* ---- Formats with fewer exponent bits: fp16 (5, 10 mantissa bits), e5m2 (5, 2), e4m3 (4, 3) --------------------- */

/* The integer arithmetic below never makes a subnormal float, so flush-to-zero modes do not matter. `exponent_bits`, `mantissa_bits` are constants. */

static inline float small_to_float(uint32_t small, int exponent_bits, int mantissa_bits, int has_infinity)
{
    const int shift = 23 - mantissa_bits;
    const uint32_t small_bias = (1u << (exponent_bits - 1)) - 1, rebias = (127 - small_bias) << 23;
    const uint32_t top = ((1u << exponent_bits) - 1) << mantissa_bits;
    uint32_t sign = (small >> (exponent_bits + mantissa_bits)) << 31;
    uint32_t magnitude = small & ((1u << (exponent_bits + mantissa_bits)) - 1);
    uint32_t normal = (magnitude << shift) + rebias;
    /* A subnormal is its mantissa times a power of two: exact in float. */
    uint32_t subnormal = small_to_bits((float)(int32_t)magnitude * small_from_bits((127 - small_bias + 1 - (uint32_t)mantissa_bits) << 23));
    uint32_t special = 0x7f800000 | (magnitude & ~top) << shift | ((magnitude & ~top) ? 0x400000u : 0);
    uint32_t bits = magnitude < (1u << mantissa_bits) ? subnormal : normal;
    if (has_infinity) bits = magnitude >= top ? special : bits;
    else bits = magnitude == (top | ((1u << mantissa_bits) - 1)) ? 0x7fc00000 : bits;
    return small_from_bits(sign | bits);
}

static inline uint32_t small_from_float(float value, int exponent_bits, int mantissa_bits, int has_infinity)
{
    const int shift = 23 - mantissa_bits;
    const uint32_t small_bias = (1u << (exponent_bits - 1)) - 1, rebias = (127 - small_bias) << 23;
    const uint32_t top = ((1u << exponent_bits) - 1) << mantissa_bits, all = top | ((1u << mantissa_bits) - 1);
    uint32_t bits = small_to_bits(value), magnitude = bits & 0x7fffffff;
    uint32_t sign = bits >> 31 << (exponent_bits + mantissa_bits);
    uint32_t normal = (magnitude - rebias + ((1u << (shift - 1)) - 1) + (magnitude >> shift & 1)) >> shift;
    /* Adding a float whose last bit weighs one subnormal step makes the processor round to such steps. */
    uint32_t step = (127 - small_bias + 1 - (uint32_t)mantissa_bits + 23) << 23;
    uint32_t subnormal = small_to_bits(small_from_bits(magnitude) + small_from_bits(step)) - step;
    uint32_t overflow = has_infinity ? top : all;
    uint32_t result = magnitude < rebias + (1u << 23) ? subnormal : normal;
    /* What rounds to the overflow pattern or beyond it: compare after rounding; large inputs wrap in `normal`, so they are compared before. */
    result = ((magnitude >= (128u << 23) + rebias) | (result >= overflow)) ? overflow : result;
    uint32_t nan = has_infinity ? top | 1u << (mantissa_bits - 1) | (magnitude >> shift & ((1u << mantissa_bits) - 1)) : all;
    return sign | (magnitude > 0x7f800000 ? nan : result);
}

static inline float small_fp16_to_float(uint16_t half)
{
    return small_to_float(half, 5, 10, 1);
}

static inline uint16_t small_float_to_fp16(float value)
{
    return (uint16_t)small_from_float(value, 5, 10, 1);
}

static inline float small_e5m2_to_float(uint8_t small)
{
    return small_to_float(small, 5, 2, 1);
}

static inline uint8_t small_float_to_e5m2(float value)
{
    return (uint8_t)small_from_float(value, 5, 2, 1);
}

static inline float small_e4m3_to_float(uint8_t small)
{
    return small_to_float(small, 4, 3, 0);
}

static inline uint8_t small_float_to_e4m3(float value)
{
    return (uint8_t)small_from_float(value, 4, 3, 0);
}

#endif
