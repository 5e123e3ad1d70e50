/* error.c - the detail sentence, one a thread, in a fixed buffer: reporting an error never needs memory. */
#include "runtime/base/error.h"

#include "runtime/ncclx.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define DETAIL_BYTES 1024

static __thread char detail[DETAIL_BYTES];

int base_error(int code, const char *format, ...)
{
    char text[DETAIL_BYTES]; /* the arguments may point into the old sentence */
    va_list args;
    va_start(args, format);
    vsnprintf(text, sizeof text, format, args);
    va_end(args);
    memcpy(detail, text, sizeof detail);
    return code;
}

int base_error_context(int code, const char *format, ...)
{
    char text[DETAIL_BYTES];
    va_list args;
    va_start(args, format);
    int length = vsnprintf(text, sizeof text, format, args);
    va_end(args);
    if (length >= 0 && (size_t)length < sizeof text)
        snprintf(text + length, sizeof text - (size_t)length, ": %s", detail);
    memcpy(detail, text, sizeof detail);
    return code;
}

const char *base_error_detail(void)
{
    return detail;
}

void base_error_clear(void)
{
    detail[0] = 0;
}

const char *base_error_string(int code)
{
    static const char *const text[NCCLX_ERR_LAST + 1] = {
        [NCCLX_SUCCESS] = "NCCLX_SUCCESS: no error",
        [NCCLX_ERR_ARG] = "NCCLX_ERR_ARG: an argument no other code describes",
        [NCCLX_ERR_BUFFER] = "NCCLX_ERR_BUFFER: a null or forbidden buffer",
        [NCCLX_ERR_COUNT] = "NCCLX_ERR_COUNT: a count whose size in bytes overflows",
        [NCCLX_ERR_TYPE] = "NCCLX_ERR_TYPE: not a datatype, or not one the operation takes",
        [NCCLX_ERR_OP] = "NCCLX_ERR_OP: not an operation, or not one for this type",
        [NCCLX_ERR_RANK] = "NCCLX_ERR_RANK: a rank outside the communicator",
        [NCCLX_ERR_ROOT] = "NCCLX_ERR_ROOT: a root outside the communicator",
        [NCCLX_ERR_TAG] = "NCCLX_ERR_TAG: a tag below 0 where a value is needed",
        [NCCLX_ERR_COMM] = "NCCLX_ERR_COMM: not a communicator",
        [NCCLX_ERR_GROUP] = "NCCLX_ERR_GROUP: not a group, or wrong members",
        [NCCLX_ERR_REQUEST] = "NCCLX_ERR_REQUEST: not a request",
        [NCCLX_ERR_WIN] = "NCCLX_ERR_WIN: not a window",
        [NCCLX_ERR_INFO] = "NCCLX_ERR_INFO: not an info object, or a key or value out of bounds",
        [NCCLX_ERR_ERRHANDLER] = "NCCLX_ERR_ERRHANDLER: not an error handler",
        [NCCLX_ERR_TRUNCATE] = "NCCLX_ERR_TRUNCATE: the message is larger than the receive buffer; nothing was written past its end",
        [NCCLX_ERR_RANGE] = "NCCLX_ERR_RANGE: a displacement, length or slot outside the window",
        [NCCLX_ERR_RMA_SYNC] = "NCCLX_ERR_RMA_SYNC: a window call outside an epoch, or a window freed with operations in flight",
        [NCCLX_ERR_PENDING] = "NCCLX_ERR_PENDING: in a status: neither failed nor complete",
        [NCCLX_ERR_IN_STATUS] = "NCCLX_ERR_IN_STATUS: the statuses hold the codes",
        [NCCLX_ERR_NOT_INITIALIZED] = "NCCLX_ERR_NOT_INITIALIZED: before ncclx_init, or after ncclx_finalize",
        [NCCLX_ERR_INITIALIZED] = "NCCLX_ERR_INITIALIZED: ncclx_init called a second time",
        [NCCLX_ERR_NO_MEM] = "NCCLX_ERR_NO_MEM: memory, or shared memory, is short",
        [NCCLX_ERR_LIMIT] = "NCCLX_ERR_LIMIT: a limit of the system or of the library: the detail names it and the remedy",
        [NCCLX_ERR_TIMEOUT] = "NCCLX_ERR_TIMEOUT: a deadline passed",
        [NCCLX_ERR_PROC_FAILED] = "NCCLX_ERR_PROC_FAILED: a peer has died",
        [NCCLX_ERR_FORKED] = "NCCLX_ERR_FORKED: called in a forked child, which holds nothing of the library",
        [NCCLX_ERR_BOOTSTRAP] = "NCCLX_ERR_BOOTSTRAP: the process manager (PMIx server) refused or could not be reached",
        [NCCLX_ERR_UNREACHABLE] = "NCCLX_ERR_UNREACHABLE: no transport reaches the peer",
        [NCCLX_ERR_TRANSPORT] = "NCCLX_ERR_TRANSPORT: a transport failed, or a peer broke the protocol",
        [NCCLX_ERR_CONFIG] = "NCCLX_ERR_CONFIG: a bad value in the environment or in ncclx.conf",
        [NCCLX_ERR_MISMATCH] = "NCCLX_ERR_MISMATCH: ranks called a collective operation with different arguments",
        [NCCLX_ERR_ABORTED] = "NCCLX_ERR_ABORTED: the job is being ended",
        [NCCLX_ERR_UNSUPPORTED] = "NCCLX_ERR_UNSUPPORTED: documented as not available here",
        [NCCLX_ERR_INTERNAL] = "NCCLX_ERR_INTERNAL: a bug in ncclx; please report it",
    };
    return code >= 0 && code <= NCCLX_ERR_LAST && text[code] ? text[code] : "not a code of ncclx";
}
