/* type.h - element types. */
#ifndef BASE_TYPE_H
#define BASE_TYPE_H

#include "runtime/ncclx.h"

#include <stdbool.h>
#include <stdint.h>

/* Bytes of one element, or 0 when it is not a type. */
static inline size_t base_type_size(ncclx_datatype_t type)
{
    static const unsigned char size[] = {0, 1, 1, 2, 2, 4, 4, 8, 8, 4, 8, 2, 2, 1, 1, 8, 16, 8, 16};
    return (unsigned)type < sizeof size ? size[(unsigned)type] : 0;
}

/* bytes = count * size; false when that is more than any object can have. */
static inline bool base_type_bytes(size_t count, ncclx_datatype_t type, size_t *bytes)
{
    return !__builtin_mul_overflow(count, base_type_size(type), bytes) && *bytes <= PTRDIFF_MAX;
}

const char *base_type_name(ncclx_datatype_t type);

#endif
