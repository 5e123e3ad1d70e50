/* base_op.c - every operation on every type against a slow reference, and the conversions of small floats, all values of them. */
#include "config.h"

#include "runtime/base/base.h"
#include "runtime/base/op_kernel.h"
#include "runtime/base/small_float.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

/* ---- The reference for small floats: values from their definition, rounding by search ---------------------------- */

struct format {
    int exponent_bits, mantissa_bits;
    bool infinity;
};

static struct format format_of(ncclx_datatype_t type)
{
    switch (type) {
    case NCCLX_FP16: return (struct format){5, 10, true};
    case NCCLX_BF16: return (struct format){8, 7, true};
    case NCCLX_FP8_E5M2: return (struct format){5, 2, true};
    default: return (struct format){4, 3, false};
    }
}

static unsigned sign_bit(struct format f)
{
    return 1u << (f.exponent_bits + f.mantissa_bits);
}

/* Of a magnitude, special codes read as if they were numbers. */
static double plain_value(struct format f, unsigned code)
{
    int exponent = (int)(code >> f.mantissa_bits), bias = (1 << (f.exponent_bits - 1)) - 1;
    double mantissa = code & ((1u << f.mantissa_bits) - 1);
    if (!exponent) return ldexp(mantissa, 1 - bias - f.mantissa_bits);
    return ldexp(mantissa + (1 << f.mantissa_bits), exponent - bias - f.mantissa_bits);
}

static unsigned first_special(struct format f)
{
    return f.infinity ? ((1u << f.exponent_bits) - 1) << f.mantissa_bits : sign_bit(f) - 1;
}

static double decode(struct format f, unsigned code)
{
    unsigned magnitude = code & (sign_bit(f) - 1), special = first_special(f);
    double value = magnitude < special ? plain_value(f, magnitude) : magnitude == special && f.infinity ? INFINITY : NAN;
    return code & sign_bit(f) ? -value : value;
}

/* Nearest code, ties to the even one; from halfway to the first special code on, that code. Not for NaN. */
static unsigned encode(struct format f, double value)
{
    double magnitude = fabs(value);
    unsigned low = 0, high = first_special(f);
    while (low < high) { /* the largest code whose value is not above */
        unsigned middle = (low + high + 1) / 2;
        if (plain_value(f, middle) <= magnitude) low = middle;
        else high = middle - 1;
    }
    unsigned code = low;
    if (low < first_special(f)) {
        double down = magnitude - plain_value(f, low), up = plain_value(f, low + 1) - magnitude;
        code = down < up || (down == up && !(low & 1)) ? low : low + 1;
    }
    return code | (signbit(value) ? sign_bit(f) : 0);
}

static unsigned convert_down(ncclx_datatype_t type, float value)
{
    switch (type) {
    case NCCLX_FP16: return small_float_to_fp16(value);
    case NCCLX_BF16: return small_float_to_bf16(value);
    case NCCLX_FP8_E5M2: return small_float_to_e5m2(value);
    default: return small_float_to_e4m3(value);
    }
}

static float convert_up(ncclx_datatype_t type, unsigned code)
{
    switch (type) {
    case NCCLX_FP16: return small_fp16_to_float((uint16_t)code);
    case NCCLX_BF16: return small_bf16_to_float((uint16_t)code);
    case NCCLX_FP8_E5M2: return small_e5m2_to_float((uint8_t)code);
    default: return small_e4m3_to_float((uint8_t)code);
    }
}

static const ncclx_datatype_t small_types[] = {NCCLX_FP16, NCCLX_BF16, NCCLX_FP8_E4M3, NCCLX_FP8_E5M2};

static void small_floats_widen(void **state)
{
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        struct format f = format_of(small_types[t]);
        for (unsigned code = 0; code < 2 * sign_bit(f); code++) {
            double expected = decode(f, code), got = convert_up(small_types[t], code);
            if (isnan(expected) ? !isnan(got) : expected != got || signbit(expected) != signbit(got))
                fail_msg("%s %#x is %g, not %g", base_type_name(small_types[t]), code, expected, got);
            if (!isnan(expected)) assert_int_equal(convert_down(small_types[t], (float)got), code);
            else assert_true(isnan(decode(f, convert_down(small_types[t], (float)got))));
        }
    }
}

/* Around every border between two codes: the border itself and its neighbours in float. */
static void small_floats_round_to_even(void **state)
{
    (void)state;
    for (size_t t = 0; t < 4; t++) {
        struct format f = format_of(small_types[t]);
        for (unsigned code = 0; code < first_special(f); code++) {
            float border = (float)((plain_value(f, code) + plain_value(f, code + 1)) / 2);
            const float values[] = {nextafterf(border, 0), border, nextafterf(border, INFINITY), -border};
            for (size_t i = 0; i < 4; i++) {
                unsigned got = convert_down(small_types[t], values[i]), expected = encode(f, values[i]);
                if (got != expected) fail_msg("%a to %s is %#x, not %#x", (double)values[i], base_type_name(small_types[t]), expected, got);
            }
        }
        const float extremes[] = {0, 1e-45f, 1e-38f, 3e38f, INFINITY, 65519, 65520, 448, 464, 465, 57344, 61440};
        for (size_t i = 0; i < sizeof extremes / sizeof extremes[0]; i++)
            assert_int_equal(convert_down(small_types[t], extremes[i]), encode(f, isinf(extremes[i]) ? 1e300 : extremes[i]));
        assert_true(isnan(convert_up(small_types[t], convert_down(small_types[t], NAN))));
        assert_true(isnan(convert_up(small_types[t], convert_down(small_types[t], -NAN))));
    }
}

/* ---- The reference for one element -------------------------------------------------------------------------------- */

static bool is_signed(ncclx_datatype_t type)
{
    return type == NCCLX_INT8 || type == NCCLX_INT16 || type == NCCLX_INT32 || type == NCCLX_INT64;
}

/* Little-endian, as every machine the library runs on. */
static uint64_t load_integer(ncclx_datatype_t type, const void *from)
{
    uint64_t value = 0;
    size_t size = base_type_size(type);
    memcpy(&value, from, size);
    if (is_signed(type) && size < 8 && value >> (8 * size - 1)) value |= ~UINT64_C(0) << (8 * size);
    return value;
}

static uint64_t integer_result(ncclx_op_t op, bool is_signed_type, uint64_t x, uint64_t y)
{
    bool less = is_signed_type ? (int64_t)x < (int64_t)y : x < y;
    switch ((size_t)op) {
    case (size_t)NCCLX_SUM:
    case (size_t)NCCLX_AVG: return x + y;
    case (size_t)NCCLX_PROD: return x * y;
    case (size_t)NCCLX_MIN: return less ? x : y;
    case (size_t)NCCLX_MAX: return less ? y : x;
    case (size_t)NCCLX_LAND: return x && y;
    case (size_t)NCCLX_LOR: return x || y;
    case (size_t)NCCLX_LXOR: return !x != !y;
    case (size_t)NCCLX_BAND: return x & y;
    case (size_t)NCCLX_BOR: return x | y;
    default: return x ^ y;
    }
}

static double float_result(ncclx_op_t op, bool single, double x, double y)
{
    switch ((size_t)op) {
    case (size_t)NCCLX_SUM:
    case (size_t)NCCLX_AVG: return single ? (double)((float)x + (float)y) : x + y;
    case (size_t)NCCLX_PROD: return single ? (double)((float)x * (float)y) : x * y;
    case (size_t)NCCLX_MIN: return isnan(x) || x < y ? x : y;
    default: return isnan(x) || x > y ? x : y;
    }
}

static double load_float(ncclx_datatype_t type, const void *from)
{
    float single;
    double value;
    uint16_t code = 0;
    if (type == NCCLX_DOUBLE) return memcpy(&value, from, 8), value;
    if (type == NCCLX_FLOAT) return memcpy(&single, from, 4), single;
    memcpy(&code, from, base_type_size(type));
    return decode(format_of(type), code);
}

struct pair {
    double value;
    int64_t index;
};

static struct pair load_pair(ncclx_datatype_t type, const char *from)
{
    int32_t narrow;
    int64_t wide;
    float single;
    struct pair pair;
    switch (type) {
    case NCCLX_INT32_PAIR: memcpy(&narrow, from, 4), pair.value = narrow; break;
    case NCCLX_INT64_PAIR: memcpy(&wide, from, 8), pair.value = (double)wide; break; /* the test's values are small */
    case NCCLX_FLOAT_PAIR: memcpy(&single, from, 4), pair.value = single; break;
    default: memcpy(&pair.value, from, 8); break;
    }
    if (base_type_size(type) == 8) memcpy(&narrow, from + 4, 4), pair.index = narrow;
    else memcpy(&pair.index, from + 8, 8);
    return pair;
}

static bool first_wins(ncclx_op_t op, struct pair x, struct pair y)
{
    if ((isnan(x.value) && isnan(y.value)) || x.value == y.value) return x.index <= y.index;
    if (isnan(x.value) || isnan(y.value)) return isnan(x.value);
    return op == NCCLX_MINLOC ? x.value < y.value : x.value > y.value;
}

static bool right(ncclx_op_t op, ncclx_datatype_t type, const void *a, const void *b, const void *got)
{
    size_t size = base_type_size(type);
    if (type <= NCCLX_UINT64) {
        uint64_t expected = integer_result(op, is_signed(type), load_integer(type, a), load_integer(type, b));
        return !memcmp(&expected, got, size);
    }
    if (type >= NCCLX_INT32_PAIR)
        return !memcmp(first_wins(op, load_pair(type, a), load_pair(type, b)) ? a : b, got, size);
    double expected = float_result(op, type != NCCLX_DOUBLE, load_float(type, a), load_float(type, b)), result = load_float(type, got);
    if (isnan(expected)) return isnan(result);
    if (type != NCCLX_FLOAT && type != NCCLX_DOUBLE) {
        struct format f = format_of(type);
        unsigned code = encode(f, isinf(expected) ? copysign(1e300, expected) : expected), stored = 0;
        memcpy(&stored, got, size);
        return code == stored;
    }
    return expected == result && signbit(expected) == signbit(result);
}

/* ---- Whole vectors -------------------------------------------------------------------------------------------------- */

static uint64_t random_state;

static uint64_t random_bits(void) /* xorshift64 */
{
    random_state ^= random_state << 13;
    random_state ^= random_state >> 7;
    random_state ^= random_state << 17;
    return random_state;
}

/* Any bits for integers and floats, NaNs and infinities among them; pairs with few values, so that ties are frequent. */
static void fill(ncclx_datatype_t type, char *buffer, size_t count)
{
    size_t size = base_type_size(type), half = size / 2;
    for (size_t i = 0; i < count * size; i++) buffer[i] = (char)random_bits();
    for (size_t i = 0; i < count && type < NCCLX_INT32_PAIR; i++) { /* zeros for logical operations, of either sign for min and max of floats */
        if (random_bits() % 4) continue;
        memset(buffer + i * size, 0, size);
        if (type > NCCLX_UINT64 && random_bits() % 2) buffer[i * size + size - 1] = (char)0x80;
    }
    for (size_t i = 0; i < count && type >= NCCLX_INT32_PAIR; i++) {
        int64_t small = (int64_t)(random_bits() % 5) - 2;
        float single = random_bits() % 8 ? (float)small : NAN;
        double value = (double)single;
        char *at = buffer + i * size;
        if (type == NCCLX_FLOAT_PAIR) memcpy(at, &single, half);
        else if (type == NCCLX_DOUBLE_PAIR) memcpy(at, &value, half);
        else memcpy(at, &small, half);
        memcpy(at + half, &(int64_t){(int64_t)(random_bits() % 3)}, half);
    }
}

#define MOST 1000
#define ROOM (MOST * 16 + 64)
static char first[ROOM], second[ROOM], result[ROOM];

enum place { APART, OVER_FIRST, OVER_SECOND, PLACES };

/* Unaligned by `offset`, with guards around the result. */
static void check_vector(ncclx_op_t op, ncclx_datatype_t type, size_t count, size_t offset, enum place place)
{
    size_t size = base_type_size(type), bytes = count * size;
    char *a = first + 16 + offset, *b = second + 16 + 2 * offset, *out = place == OVER_FIRST ? a : place == OVER_SECOND ? b : result + 16 + offset;
    char guard[16], *before = out - 16, *after = out + bytes;
    static char old_a[ROOM], old_b[ROOM];
    fill(type, a, count);
    fill(type, b, count);
    memcpy(old_a, a, bytes);
    memcpy(old_b, b, bytes);
    memset(guard, 0x5a, sizeof guard);
    memcpy(before, guard, sizeof guard);
    memcpy(after, guard, sizeof guard);
    base_op_apply(op, type, a, b, out, count);
    for (size_t i = 0; i < count; i++)
        if (!right(op, type, old_a + i * size, old_b + i * size, out + i * size))
            fail_msg("%s of %s is wrong at %zu of %zu, offset %zu, place %d", base_op_name(op), base_type_name(type), i, count, offset, place);
    assert_memory_equal(before, guard, sizeof guard);
    assert_memory_equal(after, guard, sizeof guard);
}

static void every_operation_on_every_type(void **state)
{
    static const size_t counts[] = {0, 1, 7, 15, 16, 17, 33, 1000};
    int pairs = 0;
    (void)state;
    random_state = 88172645463325252;
    for (int type = NCCLX_INT8; type <= NCCLX_DOUBLE_PAIR; type++) {
        for (size_t op = (size_t)NCCLX_SUM; op <= (size_t)NCCLX_MAXLOC; op++) {
            if (base_op_check((ncclx_op_t)op, (ncclx_datatype_t)type)) continue;
            pairs++;
            for (size_t c = 0; c < sizeof counts / sizeof counts[0]; c++)
                for (size_t offset = 0; offset < 4; offset++)
                    check_vector((ncclx_op_t)op, (ncclx_datatype_t)type, counts[c], offset, (enum place)(offset % PLACES));
        }
    }
    assert_int_equal(pairs, 8 * 11 + 6 * 5 + 4 * 2);
}

static void small_floats_of_8_bits_in_full(void **state)
{
    static const ncclx_datatype_t types[] = {NCCLX_FP8_E4M3, NCCLX_FP8_E5M2};
    static uint8_t x[65536], y[65536], z[65536];
    (void)state;
    for (size_t i = 0; i < 65536; i++) x[i] = (uint8_t)(i >> 8), y[i] = (uint8_t)i;
    for (size_t t = 0; t < 2; t++) {
        for (size_t op = (size_t)NCCLX_SUM; op <= (size_t)NCCLX_MAX; op++) {
            base_op_apply((ncclx_op_t)op, types[t], x, y, z, 65536);
            for (size_t i = 0; i < 65536; i++)
                if (!right((ncclx_op_t)op, types[t], &x[i], &y[i], &z[i]))
                    fail_msg("%s of %s %#x, %#x is not %#x", base_op_name((ncclx_op_t)op), base_type_name(types[t]), x[i], y[i], z[i]);
        }
    }
}

/* The processor's conversions and the portable ones: the same bits, for every value with partners of all magnitudes. */
static void fp16_alike_on_every_path(void **state)
{
    static uint16_t x[65536], y[65536], native[65536], portable[65536];
    (void)state;
    if (!op_fp16_kernel(0)) skip();
    for (size_t i = 0; i < 65536; i++) x[i] = (uint16_t)i;
    for (unsigned partner = 0; partner < 65536; partner += 509) {
        for (size_t i = 0; i < 65536; i++) y[i] = (uint16_t)partner;
        for (size_t op = 0; op < 4; op++) {
            op_fp16_kernel(op)(x, y, native, 65536);
            op_small_kernel_portable(NCCLX_FP16, op)(x, y, portable, 65536);
            for (size_t i = 0; i < 65536; i++) {
                bool both_nan = isnan(small_fp16_to_float(native[i])) && isnan(small_fp16_to_float(portable[i]));
                if (native[i] != portable[i] && !both_nan) fail_msg("%#zx, %#x: %#x and %#x", i, partner, native[i], portable[i]);
            }
        }
    }
}

static void average_divides_once(void **state)
{
    int8_t bytes[] = {-7, 7, 9, -9};
    uint64_t wide[] = {UINT64_MAX, 10};
    int64_t low[] = {INT64_MIN, -10};
    float single[] = {1, 3, INFINITY};
    uint16_t half[] = {0x3c00, 0x7c00, 0x7e00}; /* 1, infinity, NaN */
    (void)state;
    base_op_finish(NCCLX_AVG, NCCLX_INT8, bytes, 4, 4);
    assert_memory_equal(bytes, ((int8_t[]){-1, 1, 2, -2}), 4);
    base_op_finish(NCCLX_AVG, NCCLX_INT8, bytes, 4, 100000); /* more ranks than the type can hold */
    assert_memory_equal(bytes, ((int8_t[]){0, 0, 0, 0}), 4);
    base_op_finish(NCCLX_AVG, NCCLX_UINT64, wide, 2, 3);
    assert_true(wide[0] == UINT64_MAX / 3 && wide[1] == 3);
    base_op_finish(NCCLX_AVG, NCCLX_INT64, low, 2, 3);
    assert_true(low[0] == INT64_MIN / 3 && low[1] == -3);
    base_op_finish(NCCLX_AVG, NCCLX_FLOAT, single, 3, 3);
    assert_true(single[0] == 1.0f / 3 && single[1] == 1 && isinf(single[2]));
    base_op_finish(NCCLX_AVG, NCCLX_FP16, half, 3, 4);
    assert_true(half[0] == 0x3400 && half[1] == 0x7c00 && (half[2] & 0x7fff) > 0x7c00);
    base_op_finish(NCCLX_SUM, NCCLX_FLOAT, single, 3, 3);
    assert_true(single[1] == 1);
}

/* ---- Users' operations ---------------------------------------------------------------------------------------------- */

/* Not commutative: in - inout. */
static void subtract(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user)
{
    const int32_t *x = in;
    int32_t *y = inout;
    assert_int_equal(type, NCCLX_INT32);
    *(size_t *)user += count;
    for (size_t i = 0; i < count; i++) y[i] = x[i] - y[i];
}

static void users_operation_keeps_the_order(void **state)
{
    enum { COUNT = 5000 };
    static int32_t a[COUNT], b[COUNT], out[COUNT];
    size_t seen = 0;
    ncclx_op_t op;
    (void)state;
    assert_int_equal(base_op_create(subtract, 0, &seen, &op), NCCLX_SUCCESS);
    assert_false(base_op_commutative(op));
    assert_int_equal(base_op_check(op, NCCLX_INT32), NCCLX_SUCCESS);
    for (int place = 0; place < PLACES; place++) {
        int32_t *to = place == OVER_FIRST ? a : place == OVER_SECOND ? b : out;
        for (int32_t i = 0; i < COUNT; i++) a[i] = 3 * i, b[i] = i;
        base_op_apply(op, NCCLX_INT32, a, b, to, COUNT);
        for (int32_t i = 0; i < COUNT; i++) assert_int_equal(to[i], 2 * i);
    }
    assert_int_equal(seen, PLACES * COUNT);
    base_op_apply(op, NCCLX_INT32, a, b, a, 0);
    base_op_retain(op);
    ncclx_op_t held = op;
    assert_int_equal(base_op_free(&op), NCCLX_SUCCESS);
    assert_null(op);
    assert_int_equal(base_op_check(held, NCCLX_INT32), NCCLX_ERR_OP); /* given up, but alive for who retained it */
    base_op_release(held);
}

static void wrong_arguments_are_named(void **state)
{
    int32_t x = 1, y = 2;
    ncclx_op_t sum = NCCLX_SUM, null = NCCLX_OP_NULL, op;
    (void)state;
    assert_int_equal(base_op_check(NCCLX_BAND, NCCLX_FLOAT), NCCLX_ERR_TYPE);
    assert_string_equal(base_error_detail(), "band does not take float");
    assert_int_equal(base_op_check(NCCLX_MINLOC, NCCLX_INT32), NCCLX_ERR_TYPE);
    assert_int_equal(base_op_check(NCCLX_SUM, NCCLX_FLOAT_PAIR), NCCLX_ERR_TYPE);
    assert_int_equal(base_op_check(NCCLX_SUM, (ncclx_datatype_t)0), NCCLX_ERR_TYPE);
    assert_int_equal(base_op_check(NCCLX_SUM, (ncclx_datatype_t)99), NCCLX_ERR_TYPE);
    assert_int_equal(base_op_check(NCCLX_OP_NULL, NCCLX_INT32), NCCLX_ERR_OP);
    assert_int_equal(base_op_free(&sum), NCCLX_ERR_OP);
    assert_int_equal(base_op_free(&null), NCCLX_ERR_OP);
    assert_int_equal(base_op_create(NULL, 1, NULL, &op), NCCLX_ERR_ARG);
    assert_int_equal(base_op_create(subtract, 1, NULL, NULL), NCCLX_ERR_ARG);
    assert_int_equal(base_op_reduce_local(&x, &y, 1, NCCLX_INT32, NCCLX_AVG), NCCLX_ERR_OP);
    assert_int_equal(base_op_reduce_local(&x, NULL, 1, NCCLX_INT32, NCCLX_SUM), NCCLX_ERR_BUFFER);
    assert_int_equal(base_op_reduce_local(NCCLX_IN_PLACE, &y, 1, NCCLX_INT32, NCCLX_SUM), NCCLX_ERR_BUFFER);
    assert_int_equal(base_op_reduce_local(&x, &y, SIZE_MAX / 2, NCCLX_INT32, NCCLX_SUM), NCCLX_ERR_COUNT);
    assert_int_equal(base_op_reduce_local(NULL, NULL, 0, NCCLX_INT32, NCCLX_SUM), NCCLX_SUCCESS);
    assert_int_equal(base_op_reduce_local(&x, &y, 1, NCCLX_INT32, NCCLX_SUM), NCCLX_SUCCESS);
    assert_int_equal(y, 3);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(small_floats_widen),
        cmocka_unit_test(small_floats_round_to_even),
        cmocka_unit_test(every_operation_on_every_type),
        cmocka_unit_test(small_floats_of_8_bits_in_full),
        cmocka_unit_test(fp16_alike_on_every_path),
        cmocka_unit_test(average_divides_once),
        cmocka_unit_test(users_operation_keeps_the_order),
        cmocka_unit_test(wrong_arguments_are_named),
    };
    cmocka_set_message_output(CM_OUTPUT_TAP);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
