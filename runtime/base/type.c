/* type.c - names of the element types. */
#include "runtime/base/type.h"

const char *base_type_name(ncclx_datatype_t type)
{
    static const char *const name[] = {
        [NCCLX_INT8] = "int8",
        [NCCLX_UINT8] = "uint8",
        [NCCLX_INT16] = "int16",
        [NCCLX_UINT16] = "uint16",
        [NCCLX_INT32] = "int32",
        [NCCLX_UINT32] = "uint32",
        [NCCLX_INT64] = "int64",
        [NCCLX_UINT64] = "uint64",
        [NCCLX_FLOAT] = "float",
        [NCCLX_DOUBLE] = "double",
        [NCCLX_FP16] = "fp16",
        [NCCLX_BF16] = "bf16",
        [NCCLX_FP8_E4M3] = "fp8_e4m3",
        [NCCLX_FP8_E5M2] = "fp8_e5m2",
        [NCCLX_INT32_PAIR] = "int32_pair",
        [NCCLX_INT64_PAIR] = "int64_pair",
        [NCCLX_FLOAT_PAIR] = "float_pair",
        [NCCLX_DOUBLE_PAIR] = "double_pair",
    };
    return (unsigned)type < sizeof name / sizeof name[0] && name[type] ? name[type] : "not a type";
}
