/* ncclx.h - the public interface of ncclx, an MPI-style runtime for GPU clusters.
 *
 * SPDX-License-Identifier: BSD-3-Clause
 *
 * Conventions that hold for every function here
 *
 *  - The result is NCCLX_SUCCESS or one of NCCLX_ERR_*. ncclx_error_detail() then says, for the calling thread, what
 *    happened, to which peer and what to do. Before an error is returned the error handler of the communicator or
 *    window runs: the default one prints the error and ends the job; see ncclx_comm_set_errhandler().
 *  - Counts and displacements are elements, in size_t: no limit at 2 or 4 GiB. Ranks are int. "bytes" says bytes.
 *  - Arguments come in one order: buffers, counts, type, operation, root or peer, tag, communicator or window, then
 *    what a form adds.
 *  - A blocking call returns when its buffers may be used again. A call that returns a request leaves its buffers to
 *    the library until the request is complete.
 *  - Unless a comment says otherwise a function may be called from any thread when NCCLX_THREAD_MULTIPLE is
 *    provided, and only between ncclx_init() and ncclx_finalize().
 *  - ncclx_X has a twin pncclx_X. ncclx_X is a weak symbol, so a profiling tool may define it and call the twin.
 */
#ifndef NCCLX_H
#define NCCLX_H

#include <stddef.h>
#include <stdint.h>

#ifdef __cplusplus
extern "C" {
#endif

#define NCCLX_VERSION_MAJOR 0
#define NCCLX_VERSION_MINOR 1
#define NCCLX_VERSION_PATCH 0

/* ---- Handles, constants ------------------------------------------------------------------------------------- */

typedef struct ncclx_comm *ncclx_comm_t;
typedef struct ncclx_group *ncclx_group_t;
typedef struct ncclx_request *ncclx_request_t;
typedef struct ncclx_message *ncclx_message_t;
typedef struct ncclx_op *ncclx_op_t;
typedef struct ncclx_win *ncclx_win_t;
typedef struct ncclx_plan *ncclx_plan_t;
typedef struct ncclx_info *ncclx_info_t;
typedef struct ncclx_errhandler *ncclx_errhandler_t;

/* Predefined handles are small numbers in pointer form: constant expressions, and the same in every version. */
#define NCCLX_COMM_NULL ((ncclx_comm_t)0)
#define NCCLX_COMM_WORLD ((ncclx_comm_t)1) /* every rank of the job */
#define NCCLX_COMM_SELF ((ncclx_comm_t)2)  /* the calling rank alone */
#define NCCLX_GROUP_NULL ((ncclx_group_t)0)
#define NCCLX_GROUP_EMPTY ((ncclx_group_t)1)
#define NCCLX_REQUEST_NULL ((ncclx_request_t)0)
#define NCCLX_MESSAGE_NULL ((ncclx_message_t)0)
#define NCCLX_MESSAGE_NO_PROC ((ncclx_message_t)1) /* matched with NCCLX_PROC_NULL */
#define NCCLX_WIN_NULL ((ncclx_win_t)0)
#define NCCLX_PLAN_NULL ((ncclx_plan_t)0)
#define NCCLX_INFO_NULL ((ncclx_info_t)0)
#define NCCLX_ERRHANDLER_NULL ((ncclx_errhandler_t)0)
#define NCCLX_ERRORS_ARE_FATAL ((ncclx_errhandler_t)1) /* print, then end the job (the default) */
#define NCCLX_ERRORS_RETURN ((ncclx_errhandler_t)2)    /* return the code to the caller */

#define NCCLX_ANY_SOURCE (-1)
#define NCCLX_PROC_NULL (-2) /* a peer that does not exist: operations with it succeed and move nothing */
#define NCCLX_ANY_TAG (-1)
#define NCCLX_TAG_UB 2147483647 /* largest tag; tags start at 0 */
#define NCCLX_UNDEFINED (-32766)
#define NCCLX_INDEX_UNDEFINED ((size_t)-1) /* "no request": waitany, testany */
#define NCCLX_NO_SLOT ((size_t)-1) /* "no signal": pieces of plans */
#define NCCLX_IN_PLACE ((void *)-1)
#define NCCLX_STATUS_IGNORE ((ncclx_status_t *)0)
#define NCCLX_STATUSES_IGNORE ((ncclx_status_t *)0)
#define NCCLX_MAX_HOST_NAME 256 /* bytes, the terminating zero included */
#define NCCLX_MAX_INFO_KEY 255
#define NCCLX_MAX_INFO_VALUE 1023

/* Result codes. The numbers are part of the ABI: new ones are added at the end. */
enum {
    NCCLX_SUCCESS = 0,
    NCCLX_ERR_ARG = 1,           /* an argument no other code describes */
    NCCLX_ERR_BUFFER = 2,        /* a null or forbidden buffer */
    NCCLX_ERR_COUNT = 3,         /* a count whose size in bytes overflows */
    NCCLX_ERR_TYPE = 4,          /* not a datatype, or not one the operation takes */
    NCCLX_ERR_OP = 5,            /* not an operation, or not one for this type */
    NCCLX_ERR_RANK = 6,          /* a rank outside the communicator */
    NCCLX_ERR_ROOT = 7,          /* a root outside the communicator */
    NCCLX_ERR_TAG = 8,           /* a tag below 0 where a value is needed */
    NCCLX_ERR_COMM = 9,          /* not a communicator */
    NCCLX_ERR_GROUP = 10,        /* not a group, or wrong members */
    NCCLX_ERR_REQUEST = 11,      /* not a request */
    NCCLX_ERR_WIN = 12,          /* not a window */
    NCCLX_ERR_INFO = 13,         /* not an info object, or a key or value out of bounds */
    NCCLX_ERR_ERRHANDLER = 14,   /* not an error handler */
    NCCLX_ERR_TRUNCATE = 15,     /* the message is larger than the receive buffer; nothing was written past its end */
    NCCLX_ERR_RANGE = 16,        /* a displacement, length or slot outside the window */
    NCCLX_ERR_RMA_SYNC = 17,     /* a window call outside an epoch, or a window freed with operations in flight */
    NCCLX_ERR_PENDING = 18,      /* in a status: neither failed nor complete */
    NCCLX_ERR_IN_STATUS = 19,    /* the statuses hold the codes */
    NCCLX_ERR_NOT_INITIALIZED = 20, /* before ncclx_init, or after ncclx_finalize */
    NCCLX_ERR_INITIALIZED = 21,  /* ncclx_init called a second time */
    NCCLX_ERR_NO_MEM = 22,       /* memory, or shared memory, is short */
    NCCLX_ERR_LIMIT = 23,        /* a limit of the system or of the library: the detail names it and the remedy */
    NCCLX_ERR_TIMEOUT = 24,      /* a deadline passed */
    NCCLX_ERR_PROC_FAILED = 25,  /* a peer has died */
    NCCLX_ERR_FORKED = 26,       /* called in a forked child, which holds nothing of the library */
    NCCLX_ERR_BOOTSTRAP = 27,    /* the process manager (PMIx server) refused or could not be reached */
    NCCLX_ERR_UNREACHABLE = 28,  /* no transport reaches the peer */
    NCCLX_ERR_TRANSPORT = 29,    /* a transport failed, or a peer broke the protocol */
    NCCLX_ERR_CONFIG = 30,       /* a bad value in the environment or in ncclx.conf */
    NCCLX_ERR_MISMATCH = 31,     /* ranks called a collective operation with different arguments */
    NCCLX_ERR_ABORTED = 32,      /* the job is being ended */
    NCCLX_ERR_UNSUPPORTED = 33,  /* documented as not available here */
    NCCLX_ERR_INTERNAL = 34,     /* a bug in ncclx; please report it */
    NCCLX_ERR_LAST = 34
};

/* Element types. Sizes in bytes in brackets. */
typedef enum ncclx_datatype {
    NCCLX_INT8 = 1,        /* [1] */
    NCCLX_UINT8 = 2,       /* [1] also bytes and characters */
    NCCLX_INT16 = 3,       /* [2] */
    NCCLX_UINT16 = 4,      /* [2] */
    NCCLX_INT32 = 5,       /* [4] */
    NCCLX_UINT32 = 6,      /* [4] */
    NCCLX_INT64 = 7,       /* [8] */
    NCCLX_UINT64 = 8,      /* [8] */
    NCCLX_FLOAT = 9,       /* [4] IEEE binary32 */
    NCCLX_DOUBLE = 10,     /* [8] IEEE binary64 */
    NCCLX_FP16 = 11,       /* [2] IEEE binary16 */
    NCCLX_BF16 = 12,       /* [2] bfloat16 */
    NCCLX_FP8_E4M3 = 13,   /* [1] OCP 8-bit float, no infinities */
    NCCLX_FP8_E5M2 = 14,   /* [1] OCP 8-bit float with infinities */
    NCCLX_INT32_PAIR = 15, /* [8]  { int32_t value; int32_t index; } for minloc, maxloc */
    NCCLX_INT64_PAIR = 16, /* [16] { int64_t value; int64_t index; } */
    NCCLX_FLOAT_PAIR = 17, /* [8]  { float value; int32_t index; } */
    NCCLX_DOUBLE_PAIR = 18 /* [16] { double value; int64_t index; } */
} ncclx_datatype_t;
#define NCCLX_BYTE NCCLX_UINT8
#define NCCLX_CHAR NCCLX_INT8

/* Predefined operations. Arithmetic and comparison ones take every type but pairs; logical and bitwise ones take
 * integers; minloc and maxloc take pairs. AVG is the sum over the ranks divided by their number. */
#define NCCLX_OP_NULL ((ncclx_op_t)0)
#define NCCLX_SUM ((ncclx_op_t)1)
#define NCCLX_PROD ((ncclx_op_t)2)
#define NCCLX_MIN ((ncclx_op_t)3)
#define NCCLX_MAX ((ncclx_op_t)4)
#define NCCLX_AVG ((ncclx_op_t)5)
#define NCCLX_LAND ((ncclx_op_t)6)
#define NCCLX_LOR ((ncclx_op_t)7)
#define NCCLX_LXOR ((ncclx_op_t)8)
#define NCCLX_BAND ((ncclx_op_t)9)
#define NCCLX_BOR ((ncclx_op_t)10)
#define NCCLX_BXOR ((ncclx_op_t)11)
#define NCCLX_MINLOC ((ncclx_op_t)12) /* ties: the lower index */
#define NCCLX_MAXLOC ((ncclx_op_t)13)
/* For ncclx_win_accumulate and its like only: the new value as it is; the old value as it was. They take every type. */
#define NCCLX_REPLACE ((ncclx_op_t)14)
#define NCCLX_NO_OP ((ncclx_op_t)15)

enum { NCCLX_LOCK_SHARED = 1, NCCLX_LOCK_EXCLUSIVE = 2 }; /* ncclx_win_lock */
enum { NCCLX_THREAD_SINGLE = 0, NCCLX_THREAD_FUNNELED = 1, NCCLX_THREAD_SERIALIZED = 2, NCCLX_THREAD_MULTIPLE = 3 };
enum { NCCLX_IDENT = 0, NCCLX_CONGRUENT = 1, NCCLX_SIMILAR = 2, NCCLX_UNEQUAL = 3 };

/* Distance classes: the smallest thing that holds both ranks. */
enum {
    NCCLX_DISTANCE_SELF = 0,
    NCCLX_DISTANCE_NODE = 1,
    NCCLX_DISTANCE_RACK = 2,
    NCCLX_DISTANCE_ZONE = 3,
    NCCLX_DISTANCE_BUILDING = 4,
    NCCLX_DISTANCE_CAMPUS = 5,
    NCCLX_DISTANCE_UNKNOWN = 6 /* treated as ZONE */
};

/* ncclx_comm_split_type: which ranks come together. */
enum { NCCLX_SPLIT_NODE = 1, NCCLX_SPLIT_RACK = 2, NCCLX_SPLIT_ZONE = 3, NCCLX_SPLIT_BUILDING = 4 };

typedef enum ncclx_mem_kind { NCCLX_MEM_HOST = 0 } ncclx_mem_kind_t;
typedef enum ncclx_signal_op { NCCLX_SIGNAL_ADD = 1, NCCLX_SIGNAL_SET = 2 } ncclx_signal_op_t;
typedef enum ncclx_compare {
    NCCLX_CMP_EQ = 1,
    NCCLX_CMP_NE = 2,
    NCCLX_CMP_GT = 3,
    NCCLX_CMP_GE = 4,
    NCCLX_CMP_LT = 5,
    NCCLX_CMP_LE = 6
} ncclx_compare_t; /* unsigned 64-bit: slot value <compare> value */

/* One piece of a put: bytes at origin, and where they go, in the target's displacement units. */
typedef struct ncclx_iov {
    const void *origin;
    size_t bytes;
    size_t target_disp;
} ncclx_iov_t;

/* One put of a plan. */
typedef struct ncclx_plan_piece {
    const void *origin;
    const size_t *count; /* elements: read whenever the plan starts */
    size_t most;         /* that *count will ever be */
    int target;
    size_t target_disp;
    size_t slot;         /* raised after the put, as by put_signal; or NCCLX_NO_SLOT */
    ncclx_signal_op_t op;
    uint64_t value;
} ncclx_plan_piece_t;

typedef struct ncclx_status {
    int source;    /* rank of the sender in the communicator */
    int tag;       /* tag of the message */
    int error;     /* code of this operation, where a call completes several */
    int cancelled; /* 1 when the receive was cancelled */
    size_t bytes;  /* bytes of the message */
} ncclx_status_t;

/* ---- Start and end ------------------------------------------------------------------------------------------ */

/* Joins the job: under ncclxrun or any PMIx server the job it started, alone a job of one rank. argc and argv may be
 * null; they are left as they are. The thread level is NCCLX_THREAD_SINGLE, or that of NCCLX_THREAD_LEVEL. There is
 * no communicator yet whose error handler could run: a failure is printed and ends the process, or is returned with
 * NCCLX_ERRORS=return. */
int ncclx_init(int *argc, char ***argv);
/* The same with a thread level; *provided (may be null) is the level in force, which is always the one required.
 * Errors: INITIALIZED, ARG (no such level), CONFIG, BOOTSTRAP. */
int ncclx_init_thread(int *argc, char ***argv, int required, int *provided);
/* The thread level in force. */
int ncclx_query_thread(int *provided);
/* Leaves the job; collective over the job. Completes what was started; communicators and windows end. A rank that exits without it ends
 * the job with an error. To be called by the thread that initialised. */
int ncclx_finalize(void);
/* 1 once init has succeeded (and still after finalize). Any thread, any time. */
int ncclx_initialized(int *flag);
/* 1 once finalize has been called. Any thread, any time. */
int ncclx_finalized(int *flag);
/* Ends every rank of the job; the launcher exits with `code` (1..255; others become 1). Does not return. Any thread. comm may be any
 * communicator: the whole job ends. */
int ncclx_abort(ncclx_comm_t comm, int code);
/* The version of the library in use. Any pointer may be null. Any thread, any time. */
int ncclx_version(int *major, int *minor, int *patch);
/* Seconds since a fixed moment in the past, monotonic, and the clock's step. Not synchronised between nodes. Any time. */
double ncclx_wtime(void);
double ncclx_wtick(void);
/* The name by which the process manager knows this node, at most `bytes` long with its zero. */
int ncclx_host_name(char *name, size_t bytes);

/* ---- Errors ------------------------------------------------------------------------------------------------- */

/* The name and meaning of a code, for example "NCCLX_ERR_RANK: ...". Never null. Any thread, any time. */
const char *ncclx_error_string(int code);
/* What the last failing call of this thread said; "" if none failed. Valid until the thread's next call. Any time. */
const char *ncclx_error_detail(void);

/* Called with the object the failing call was on (the other handle is null), the code, and the detail text. What fails
 * with a request is on the object that the request was made on; both are null when that was freed since. The failing
 * call returns the code after the function returns. */
typedef void (*ncclx_errhandler_fn_t)(ncclx_comm_t comm, ncclx_win_t win, int code, const char *detail, void *user);
int ncclx_errhandler_create(ncclx_errhandler_fn_t function, void *user, ncclx_errhandler_t *handler);
/* Gives the handle up; objects that use the handler keep it alive. Sets *handler to NCCLX_ERRHANDLER_NULL. */
int ncclx_errhandler_free(ncclx_errhandler_t *handler);
/* A new communicator or window starts with the handler of the one it was made from; COMM_WORLD and COMM_SELF start
 * with NCCLX_ERRORS_ARE_FATAL, or as NCCLX_ERRORS says. Errors with no object of their own use the handler of
 * COMM_WORLD. */
int ncclx_comm_set_errhandler(ncclx_comm_t comm, ncclx_errhandler_t handler);
int ncclx_comm_get_errhandler(ncclx_comm_t comm, ncclx_errhandler_t *handler);
int ncclx_comm_call_errhandler(ncclx_comm_t comm, int code);
int ncclx_win_set_errhandler(ncclx_win_t win, ncclx_errhandler_t handler);
int ncclx_win_get_errhandler(ncclx_win_t win, ncclx_errhandler_t *handler);

/* ---- Types and operations ----------------------------------------------------------------------------------- */

int ncclx_type_size(ncclx_datatype_t type, size_t *bytes);
/* A static string such as "bf16". */
int ncclx_type_name(ncclx_datatype_t type, const char **name);

/* A user's operation: inout[i] = in[i] op inout[i] for `count` elements; `in` comes from lower ranks. Must be associative and
 * must not call the library. */
typedef void (*ncclx_op_fn_t)(const void *in, void *inout, size_t count, ncclx_datatype_t type, void *user);
/* commutative: 1 lets the library change the order of ranks. The handle stays valid until freed; collectives in flight keep it. */
int ncclx_op_create(ncclx_op_fn_t function, int commutative, void *user, ncclx_op_t *op);
int ncclx_op_free(ncclx_op_t *op);
int ncclx_op_commutative(ncclx_op_t op, int *commutative);
/* inout[i] = in[i] op inout[i] on this rank's own memory. AVG is not allowed here: it needs a number of ranks. */
int ncclx_reduce_local(const void *in, void *inout, size_t count, ncclx_datatype_t type, ncclx_op_t op);

/* ---- Info objects: lists of (key, value) hints --------------------------------------------------------------- */

int ncclx_info_create(ncclx_info_t *info);
int ncclx_info_dup(ncclx_info_t info, ncclx_info_t *out);
int ncclx_info_set(ncclx_info_t info, const char *key, const char *value);
/* *found is 0 or 1; the value is cut to `bytes` with its zero. Pass bytes 0 and value null to ask only for presence. */
int ncclx_info_get(ncclx_info_t info, const char *key, char *value, size_t bytes, int *found);
int ncclx_info_delete(ncclx_info_t info, const char *key);
int ncclx_info_nkeys(ncclx_info_t info, size_t *count);
/* The nth key in order of insertion, from 0; key has room for NCCLX_MAX_INFO_KEY + 1 bytes. */
int ncclx_info_nthkey(ncclx_info_t info, size_t n, char *key);
int ncclx_info_free(ncclx_info_t *info);

/* ---- Groups: ordered sets of ranks of the job. Local, no communication -------------------------------------- */

int ncclx_group_size(ncclx_group_t group, int *size);
/* This process' rank in the group, or NCCLX_UNDEFINED. */
int ncclx_group_rank(ncclx_group_t group, int *rank);
/* out[i] is the rank in `to` of the process that is ranks[i] in `from`, or NCCLX_UNDEFINED. PROC_NULL stays. */
int ncclx_group_translate(ncclx_group_t from, size_t count, const int *ranks, ncclx_group_t to, int *out);
/* NCCLX_IDENT (same members, same order), NCCLX_SIMILAR (same members), NCCLX_UNEQUAL. */
int ncclx_group_compare(ncclx_group_t a, ncclx_group_t b, int *result);
int ncclx_group_union(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out);
int ncclx_group_intersection(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out);
int ncclx_group_difference(ncclx_group_t a, ncclx_group_t b, ncclx_group_t *out);
int ncclx_group_incl(ncclx_group_t group, size_t count, const int *ranks, ncclx_group_t *out);
int ncclx_group_excl(ncclx_group_t group, size_t count, const int *ranks, ncclx_group_t *out);
/* Each range is first, last, stride (not 0): first, first + stride, ... up to last. */
int ncclx_group_range_incl(ncclx_group_t group, size_t count, const int (*ranges)[3], ncclx_group_t *out);
int ncclx_group_range_excl(ncclx_group_t group, size_t count, const int (*ranges)[3], ncclx_group_t *out);
int ncclx_group_free(ncclx_group_t *group);

/* ---- Communicators ------------------------------------------------------------------------------------------ */

int ncclx_comm_rank(ncclx_comm_t comm, int *rank);
int ncclx_comm_size(ncclx_comm_t comm, int *size);
/* The members, as a group to be freed by the caller. */
int ncclx_comm_group(ncclx_comm_t comm, ncclx_group_t *group);
/* NCCLX_IDENT (same handle), CONGRUENT (same ranks in order), SIMILAR (same members), UNEQUAL. Local. */
int ncclx_comm_compare(ncclx_comm_t a, ncclx_comm_t b, int *result);
/* Collective over comm: the same members with a context of their own. */
int ncclx_comm_dup(ncclx_comm_t comm, ncclx_comm_t *out);
/* Collective over comm: one communicator for each color (>= 0, or NCCLX_UNDEFINED for none: then *out is
 * NCCLX_COMM_NULL), ranks in order of key, then of old rank. */
int ncclx_comm_split(ncclx_comm_t comm, int color, int key, ncclx_comm_t *out);
/* The same with the color taken from placement: NCCLX_SPLIT_NODE ... NCCLX_SPLIT_BUILDING, or NCCLX_UNDEFINED. */
int ncclx_comm_split_type(ncclx_comm_t comm, int type, int key, ncclx_comm_t *out);
/* Collective over the members of group only, which must be members of comm. tag, from 0 to INT_MAX - 1, tells calls
 * from several threads apart. */
int ncclx_comm_create_group(ncclx_comm_t comm, ncclx_group_t group, int tag, ncclx_comm_t *out);
/* Collective; pending operations complete first. Sets *comm to NCCLX_COMM_NULL. The predefined ones cannot be freed. */
int ncclx_comm_free(ncclx_comm_t *comm);
/* NCCLX_DISTANCE_* between the caller and `rank`. Local. */
int ncclx_comm_remote_class(ncclx_comm_t comm, int rank, int *distance_class);
/* A name for messages and traces; cut at 63 bytes. get: name has room for 64 bytes. */
int ncclx_comm_set_name(ncclx_comm_t comm, const char *name);
int ncclx_comm_get_name(ncclx_comm_t comm, char *name);

/* ---- Point to point ------------------------------------------------------------------------------------------ */

/* Sends count elements. Returns when buf may be used again, which can be before the receiver has the message. Messages between two
 * ranks on one communicator match in the order sent. NCCLX_ERR_LIMIT: 2^20 to that rank wait for its receives. */
int ncclx_send(const void *buf, size_t count, ncclx_datatype_t type, int dest, int tag, ncclx_comm_t comm);
int ncclx_isend(const void *buf, size_t count, ncclx_datatype_t type, int dest, int tag, ncclx_comm_t comm,
                ncclx_request_t *request);
/* Receives at most count elements from source (or NCCLX_ANY_SOURCE) with tag (or NCCLX_ANY_TAG). A longer message gives NCCLX_ERR_TRUNCATE
 * and changes nothing past the buffer's end. status may be NCCLX_STATUS_IGNORE. */
int ncclx_recv(void *buf, size_t count, ncclx_datatype_t type, int source, int tag, ncclx_comm_t comm,
               ncclx_status_t *status);
int ncclx_irecv(void *buf, size_t count, ncclx_datatype_t type, int source, int tag, ncclx_comm_t comm,
                ncclx_request_t *request);
/* A send and a receive at once, without deadlock. The buffers must not overlap. */
int ncclx_sendrecv(const void *sendbuf, size_t sendcount, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                   int dest, int sendtag, int source, int recvtag, ncclx_comm_t comm, ncclx_status_t *status);
/* Waits for, or looks for, a message that a receive with these arguments would match, and leaves it. Where there is none
 * (*flag 0) and a peer is lost, either is NCCLX_ERR_PROC_FAILED. */
int ncclx_probe(int source, int tag, ncclx_comm_t comm, ncclx_status_t *status);
int ncclx_iprobe(int source, int tag, ncclx_comm_t comm, int *flag, ncclx_status_t *status);
/* The same, and takes the message out: only ncclx_mrecv or ncclx_imrecv with this handle can receive it. */
int ncclx_mprobe(int source, int tag, ncclx_comm_t comm, ncclx_message_t *message, ncclx_status_t *status);
int ncclx_improbe(int source, int tag, ncclx_comm_t comm, int *flag, ncclx_message_t *message, ncclx_status_t *status);
int ncclx_mrecv(void *buf, size_t count, ncclx_datatype_t type, ncclx_message_t *message, ncclx_status_t *status);
int ncclx_imrecv(void *buf, size_t count, ncclx_datatype_t type, ncclx_message_t *message, ncclx_request_t *request);
/* Whole elements of `type` in a message, or NCCLX_ERR_TYPE with *count = bytes / size when bytes remain. */
int ncclx_status_count(const ncclx_status_t *status, ncclx_datatype_t type, size_t *count);

/* ---- Requests ----------------------------------------------------------------------------------------------- */

/* Completion frees a request and sets the handle to NCCLX_REQUEST_NULL. Null handles are complete, with an empty status. The
 * plural forms take `count` handles; on failure of one they return NCCLX_ERR_IN_STATUS and every status' error is set.
 * Once a peer is lost, or the job is being ended, a wait that is not over and a test (*flag 0) that finds nothing complete
 * return NCCLX_ERR_PROC_FAILED or NCCLX_ERR_ABORTED. What is not complete keeps its handle; the all forms give back what is. */
int ncclx_wait(ncclx_request_t *request, ncclx_status_t *status);
int ncclx_test(ncclx_request_t *request, int *flag, ncclx_status_t *status);
int ncclx_waitall(size_t count, ncclx_request_t *requests, ncclx_status_t *statuses);
int ncclx_testall(size_t count, ncclx_request_t *requests, int *flag, ncclx_status_t *statuses);
/* *index is NCCLX_INDEX_UNDEFINED when all handles are null. */
int ncclx_waitany(size_t count, ncclx_request_t *requests, size_t *index, ncclx_status_t *status);
int ncclx_testany(size_t count, ncclx_request_t *requests, size_t *index, int *flag, ncclx_status_t *status);
/* At least one (test: none or more): *done handles, their indices in indices[0..*done), statuses alike. *done is
 * NCCLX_INDEX_UNDEFINED when all handles are null. */
int ncclx_waitsome(size_t count, ncclx_request_t *requests, size_t *done, size_t *indices, ncclx_status_t *statuses);
int ncclx_testsome(size_t count, ncclx_request_t *requests, size_t *done, size_t *indices, ncclx_status_t *statuses);
/* Looks at a request without freeing it. */
int ncclx_request_get_status(ncclx_request_t request, int *flag, ncclx_status_t *status);
/* Gives the handle up; the operation completes by itself. Not for receives, whose completion could not be seen. */
int ncclx_request_free(ncclx_request_t *request);
/* Starts persistent requests that are inactive: made by an _init call, and not started since or completed. Completion
 * leaves the handle, and the request inactive; until then its buffers belong to the library. An inactive request counts
 * as a null handle in the calls above. On failure of one, startall has started those before it. */
int ncclx_start(ncclx_request_t *request);
int ncclx_startall(size_t count, ncclx_request_t *requests);
/* Marks a receive for cancelling; it still has to be completed, and status.cancelled tells. Others: NCCLX_ERR_UNSUPPORTED. */
int ncclx_cancel(ncclx_request_t *request);

/* ---- Collectives. All ranks of comm, in the same order ------------------------------------------------------- */

/* NCCLX_IN_PLACE as sendbuf (reduce, gather: at the root only): the input is in recvbuf, where the result goes
 * (all-gather, all-to-all, gather: in the rank's own place). Any count, 0 included; buffers that a rank does not use may
 * be null. Float results are the same bits on every rank.
 * The i-forms return at once; the order of calls on one communicator has to agree between ranks. The _init forms only
 * prepare: they give an inactive request, to be started by ncclx_start again and again, with the same buffers, and given
 * up with ncclx_request_free. Ranks may start several such requests in different orders.
 * Where counts differ from rank to rank, blocks of a buffer are given by lists of one number a rank: counts, and
 * displacements (from the buffer's beginning, in elements; null: one block after the other). Lists may be changed when the
 * call has returned, in all forms. Blocks that are written must not overlap. */
int ncclx_coll_barrier(ncclx_comm_t comm);
int ncclx_coll_ibarrier(ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_barrier_init(ncclx_comm_t comm, ncclx_request_t *request);
/* buf: count elements on every rank; the root's reach all. */
int ncclx_coll_bcast(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm);
int ncclx_coll_ibcast(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                      ncclx_request_t *request);
int ncclx_coll_bcast_init(void *buf, size_t count, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                          ncclx_request_t *request);
/* count elements from each rank, combined element by element into the root's recvbuf. */
int ncclx_coll_reduce(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                      int root, ncclx_comm_t comm);
int ncclx_coll_ireduce(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                       int root, ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_reduce_init(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                           int root, ncclx_comm_t comm, ncclx_request_t *request);
/* The same, into every rank's recvbuf. */
int ncclx_coll_allreduce(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                         ncclx_comm_t comm);
int ncclx_coll_iallreduce(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                          ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_allreduce_init(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                              ncclx_comm_t comm, ncclx_request_t *request);
/* size vectors, one from each rank, combined element by element; the first recvcounts[0] elements of the result go to rank
 * 0, the next recvcounts[1] to rank 1, and so on. recvcounts is the same on all ranks. In place the input is in recvbuf,
 * and the result goes to its beginning. */
int ncclx_coll_reduce_scatter(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type,
                              ncclx_op_t op, ncclx_comm_t comm);
int ncclx_coll_ireduce_scatter(const void *sendbuf, void *recvbuf, const size_t *recvcounts, ncclx_datatype_t type,
                               ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_reduce_scatter_init(const void *sendbuf, void *recvbuf, const size_t *recvcounts,
                                   ncclx_datatype_t type, ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request);
/* The same with recvcount elements for each rank: sendbuf holds size * recvcount. */
int ncclx_coll_reduce_scatter_block(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                                    ncclx_op_t op, ncclx_comm_t comm);
int ncclx_coll_ireduce_scatter_block(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                                     ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_reduce_scatter_block_init(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type,
                                         ncclx_op_t op, ncclx_comm_t comm, ncclx_request_t *request);
/* sendcount elements from each rank; recvbuf holds size * sendcount, by rank. */
int ncclx_coll_allgather(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type,
                         ncclx_comm_t comm);
int ncclx_coll_iallgather(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type,
                          ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_allgather_init(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type,
                              ncclx_comm_t comm, ncclx_request_t *request);
/* sendcount elements from each rank, which is recvcounts[rank]; those of rank i go to displs[i] of recvbuf. recvcounts is
 * the same on all ranks. */
int ncclx_coll_allgatherv(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                          const size_t *displs, ncclx_datatype_t type, ncclx_comm_t comm);
int ncclx_coll_iallgatherv(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                           const size_t *displs, ncclx_datatype_t type, ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_allgatherv_init(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                               const size_t *displs, ncclx_datatype_t type, ncclx_comm_t comm,
                               ncclx_request_t *request);
/* sendcount elements from each rank to the root, whose recvbuf holds size * sendcount, by rank. */
int ncclx_coll_gather(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root,
                      ncclx_comm_t comm);
int ncclx_coll_igather(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root,
                       ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_gather_init(const void *sendbuf, void *recvbuf, size_t sendcount, ncclx_datatype_t type, int root,
                           ncclx_comm_t comm, ncclx_request_t *request);
/* The same with recvcounts[i] elements from rank i to displs[i]; both lists are the root's alone. */
int ncclx_coll_gatherv(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                       const size_t *displs, ncclx_datatype_t type, int root, ncclx_comm_t comm);
int ncclx_coll_igatherv(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                        const size_t *displs, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                        ncclx_request_t *request);
int ncclx_coll_gatherv_init(const void *sendbuf, size_t sendcount, void *recvbuf, const size_t *recvcounts,
                            const size_t *displs, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                            ncclx_request_t *request);
/* recvcount elements to each rank from the root, whose sendbuf holds size * recvcount, by rank. NCCLX_IN_PLACE as the
 * root's recvbuf leaves its own block where it is. */
int ncclx_coll_scatter(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
                       ncclx_comm_t comm);
int ncclx_coll_iscatter(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
                        ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_scatter_init(const void *sendbuf, void *recvbuf, size_t recvcount, ncclx_datatype_t type, int root,
                            ncclx_comm_t comm, ncclx_request_t *request);
/* The same with sendcounts[i] elements to rank i from displs[i]; both lists are the root's alone. */
int ncclx_coll_scatterv(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf,
                        size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm);
int ncclx_coll_iscatterv(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf,
                         size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                         ncclx_request_t *request);
int ncclx_coll_scatterv_init(const void *sendbuf, const size_t *sendcounts, const size_t *displs, void *recvbuf,
                             size_t recvcount, ncclx_datatype_t type, int root, ncclx_comm_t comm,
                             ncclx_request_t *request);
/* count elements from each rank to each; both buffers hold size * count, by rank. */
int ncclx_coll_alltoall(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_comm_t comm);
int ncclx_coll_ialltoall(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_comm_t comm,
                         ncclx_request_t *request);
int ncclx_coll_alltoall_init(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type,
                             ncclx_comm_t comm, ncclx_request_t *request);
/* sendcounts[i] elements from sdispls[i] to rank i, and recvcounts[i] elements from rank i to rdispls[i]. In place the
 * lists for sending are ignored: recvbuf's blocks are exchanged, so two ranks give each other the same count. */
int ncclx_coll_alltoallv(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf,
                         const size_t *recvcounts, const size_t *rdispls, ncclx_datatype_t type, ncclx_comm_t comm);
int ncclx_coll_ialltoallv(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf,
                          const size_t *recvcounts, const size_t *rdispls, ncclx_datatype_t type, ncclx_comm_t comm,
                          ncclx_request_t *request);
int ncclx_coll_alltoallv_init(const void *sendbuf, const size_t *sendcounts, const size_t *sdispls, void *recvbuf,
                              const size_t *recvcounts, const size_t *rdispls, ncclx_datatype_t type,
                              ncclx_comm_t comm, ncclx_request_t *request);
/* count elements from each rank; rank i gets those of ranks 0 to i combined. Not with NCCLX_AVG. */
int ncclx_coll_scan(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                    ncclx_comm_t comm);
int ncclx_coll_iscan(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                     ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_scan_init(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                         ncclx_comm_t comm, ncclx_request_t *request);
/* The same of ranks 0 to i - 1; recvbuf of rank 0 is left as it is. */
int ncclx_coll_exscan(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                      ncclx_comm_t comm);
int ncclx_coll_iexscan(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                       ncclx_comm_t comm, ncclx_request_t *request);
int ncclx_coll_exscan_init(const void *sendbuf, void *recvbuf, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                           ncclx_comm_t comm, ncclx_request_t *request);

/* ---- Memory that peers can reach directly ------------------------------------------------------------------- */

/* Page-aligned, zeroed memory which ranks of the same node read and write with single copies and, as a window, with loads and
 * stores. It is allocated for real: a shortage is NCCLX_ERR_NO_MEM here, never a signal later. bytes 0 gives null. */
int ncclx_mem_alloc(size_t bytes, ncclx_mem_kind_t kind, void **ptr);
/* Not while a window or an operation uses it. Null is allowed. */
int ncclx_mem_free(void *ptr);

/* ---- Windows: one-sided communication ----------------------------------------------------------------------- */

/* A window is memory of each rank of comm that the others put to and get from, and a row of 64-bit signal slots of
 * each rank (info key "ncclx_signal_slots", default 64, the same on all ranks; all 0 at first). Sizes may differ, 0
 * included. disp_unit, the bytes of one displacement step (>= 1), may differ per rank: the target's counts.
 * Collective over comm: created on all ranks or on none.
 *
 * Order and completion. Puts to one target become visible in any order, until ordered by a signal, flush or fence.
 * put_signal and signal raise the slot only after their data and every earlier put of the same origin to that target
 * on the window are visible there; this needs no flush and no call by the target. flush returns when all earlier
 * operations to the target are complete in its memory, even if the target makes no call. Origin buffers of put may be
 * used again after flush, flush_local, fence, unlock_all. Origin buffers of get are filled then.
 *
 * put, get, put_signal and signal are allowed between lock_all and unlock_all or between two fences; a window starts
 * out ready for either, so that programs which synchronise by signals alone need neither. */
int ncclx_win_allocate(size_t bytes, size_t disp_unit, ncclx_info_t info, ncclx_comm_t comm, void **base,
                       ncclx_win_t *win);
int ncclx_win_create(void *base, size_t bytes, size_t disp_unit, ncclx_info_t info, ncclx_comm_t comm,
                     ncclx_win_t *win);
/* Collective. NCCLX_ERR_RMA_SYNC on all ranks, which leaves the window usable, when one has operations in flight:
 * gets or puts to a target after which came no flush, fence or unlock, nor, for puts, a signal to that target; or
 * when one is inside an epoch (lock, lock_all, start, post). */
int ncclx_win_free(ncclx_win_t *win);
/* count elements to displacement target_disp of target's window. Checked here: NCCLX_ERR_RANGE when they do not fit. */
int ncclx_win_put(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                  ncclx_win_t win);
int ncclx_win_get(void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp, ncclx_win_t win);
/* The same with a request, to be given to wait, test and their like: complete when origin may be used again (rput), or is filled (rget).
 * Beyond that they are as put and get: only a flush, fence or signal says that the data of an rput is in the target's memory. */
int ncclx_win_rput(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                   ncclx_win_t win, ncclx_request_t *request);
int ncclx_win_rget(void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp, ncclx_win_t win,
                   ncclx_request_t *request);
/* Puts `count` pieces to one target. All are checked before anything is written. The list may be used again at once;
 * the pieces' buffers are as those of put. */
int ncclx_win_put_iov(const ncclx_iov_t *pieces, size_t count, int target, ncclx_win_t win);
/* And one signal after all of them, as that of put_signal. */
int ncclx_win_put_iov_signal(const ncclx_iov_t *pieces, size_t count, int target, ncclx_win_t win, size_t slot,
                             ncclx_signal_op_t op, uint64_t value);
/* A plan is a list of puts that are made again and again. create checks every piece, for `most` elements, and copies
 * the list; it is local. start reads the counts, checks them all before anything is written (COUNT: one is above its
 * `most`), and makes the puts in order, each as put or, with a slot, put_signal: a count of 0 still raises the slot.
 * Buffers and counts are read where the pieces say. The window cannot be freed while a plan uses it (RMA_SYNC).
 * Errors of create: those of put and put_signal; of start and free: ARG (not a plan). */
int ncclx_win_plan_create(const ncclx_plan_piece_t *pieces, size_t count, ncclx_datatype_t type, ncclx_win_t win,
                          ncclx_plan_t *plan);
int ncclx_win_plan_start(ncclx_plan_t plan);
/* Sets *plan to NCCLX_PLAN_NULL. What was started goes on. */
int ncclx_win_plan_free(ncclx_plan_t *plan);
/* Atomic for each element: target element = target element op origin element, for predefined operations but AVG, and
 * NCCLX_REPLACE. No other call of this family of the same type, from whichever rank, comes between the reading and
 * the writing of an element; puts and gets may. The target makes no call. Completion as that of put. Errors: OP (a
 * user's operation, AVG, NO_OP where nothing is fetched), TYPE. */
int ncclx_win_accumulate(const void *origin, size_t count, ncclx_datatype_t type, ncclx_op_t op, int target,
                         size_t target_disp, ncclx_win_t win);
/* The same, and result receives the elements as they were before: filled when a get would be. With NCCLX_NO_OP an atomic get, origin may be
 * null. result must not overlap origin. */
int ncclx_win_get_accumulate(const void *origin, void *result, size_t count, ncclx_datatype_t type, ncclx_op_t op,
                             int target, size_t target_disp, ncclx_win_t win);
/* get_accumulate of one element. */
int ncclx_win_fetch_op(const void *origin, void *result, ncclx_datatype_t type, ncclx_op_t op, int target,
                       size_t target_disp, ncclx_win_t win);
/* One element of the target becomes *origin if it has the same bytes as *compare; *result receives what it was. origin and compare may
 * be used again at once. */
int ncclx_win_compare_swap(const void *origin, const void *compare, void *result, ncclx_datatype_t type, int target,
                           size_t target_disp, ncclx_win_t win);
/* A put whose arrival, after all earlier puts to this target, adds value to the target's slot or sets it. */
int ncclx_win_put_signal(const void *origin, size_t count, ncclx_datatype_t type, int target, size_t target_disp,
                         ncclx_win_t win, size_t slot, ncclx_signal_op_t op, uint64_t value);
int ncclx_win_signal(int target, ncclx_win_t win, size_t slot, ncclx_signal_op_t op, uint64_t value);
/* Waits until this rank's own slot compares true; *seen (may be null) is the value that did. timeout_us < 0 waits for ever, or as long as
 * NCCLX_TIMEOUT allows; NCCLX_ERR_TIMEOUT otherwise, with the last value in *seen. Data that the signal announces is then visible.
 * Once a peer is lost, a wait or a test (*flag 0) whose condition is not true is NCCLX_ERR_PROC_FAILED. */
int ncclx_win_wait_signal(ncclx_win_t win, size_t slot, ncclx_compare_t compare, uint64_t value, int64_t timeout_us,
                          uint64_t *seen);
int ncclx_win_test_signal(ncclx_win_t win, size_t slot, ncclx_compare_t compare, uint64_t value, int *flag,
                          uint64_t *seen);
/* The same on several of this rank's slots, condition i being slots[i] <compares[i]> values[i]. any: until one is
 * true; *index is the first such, *seen (may be null) its value. all: until all are true in one look; seen (may be
 * null) has room for count values. No conditions: at once, with *index NCCLX_INDEX_UNDEFINED. Without success (test:
 * *flag 0) *index is NCCLX_INDEX_UNDEFINED. */
int ncclx_win_wait_signal_any(ncclx_win_t win, size_t count, const size_t *slots, const ncclx_compare_t *compares,
                              const uint64_t *values, int64_t timeout_us, size_t *index, uint64_t *seen);
int ncclx_win_wait_signal_all(ncclx_win_t win, size_t count, const size_t *slots, const ncclx_compare_t *compares,
                              const uint64_t *values, int64_t timeout_us, uint64_t *seen);
int ncclx_win_test_signal_any(ncclx_win_t win, size_t count, const size_t *slots, const ncclx_compare_t *compares,
                              const uint64_t *values, int *flag, size_t *index, uint64_t *seen);
int ncclx_win_test_signal_all(ncclx_win_t win, size_t count, const size_t *slots, const ncclx_compare_t *compares,
                              const uint64_t *values, int *flag, uint64_t *seen);
/* Collective: every operation of every rank on the window is complete when it returns. */
int ncclx_win_fence(ncclx_win_t win);
int ncclx_win_flush(int target, ncclx_win_t win);
int ncclx_win_flush_all(ncclx_win_t win);
/* Local completion only: origin buffers may be used again. */
int ncclx_win_flush_local(int target, ncclx_win_t win);
int ncclx_win_flush_local_all(ncclx_win_t win);
/* An access epoch to all ranks, shared; does not communicate: each target is locked, shared, when it is first used. unlock_all flushes.
 * Threads of a rank share its locks, these and those of lock. */
int ncclx_win_lock_all(ncclx_win_t win);
int ncclx_win_unlock_all(ncclx_win_t win);
/* Locks target's part of the window, NCCLX_LOCK_SHARED or NCCLX_LOCK_EXCLUSIVE, against locks of other ranks; first
 * come, first served. Returns when the lock is held; the target makes no call. unlock completes all operations to the
 * target first. A lock whose deadline passes is not held. An unlock, or unlock_all, whose deadline passes may be repeated; until it succeeds,
 * operations to what may be unlocked already fail. Errors: RMA_SYNC (the target is locked by this rank, or another thread of it locks it;
 * inside lock_all or start; unlock of what is not locked; an operation after an unlock that failed). */
int ncclx_win_lock(int type, int target, ncclx_win_t win);
int ncclx_win_unlock(int target, ncclx_win_t win);
/* Epochs between groups of the window's ranks. post opens this rank's window to the group's members and does not
 * wait; start waits until all members of its group have posted, and then operations may go to these only; complete
 * completes them and tells the targets; wait waits until all members of post's group have called complete, test looks
 * whether they have (*flag 1: the epoch is over). A rank may be in both kinds at once. Errors: RMA_SYNC (wrong order;
 * locks or lock_all; an operation outside the group), GROUP, PROC_FAILED (a peer is lost; the epoch of wait and test goes on). */
int ncclx_win_post(ncclx_group_t group, ncclx_win_t win);
int ncclx_win_start(ncclx_group_t group, ncclx_win_t win);
int ncclx_win_complete(ncclx_win_t win);
int ncclx_win_wait(ncclx_win_t win);
int ncclx_win_test(ncclx_win_t win, int *flag);
/* Orders this rank's loads and stores on its own window before and after the call with those of others; makes progress. */
int ncclx_win_sync(ncclx_win_t win);
/* The size and displacement unit of rank's part, and where this rank reaches it with loads and stores: *base is null where it cannot. Any
 * pointer may be null. Local. */
int ncclx_win_shared_query(ncclx_win_t win, int rank, size_t *bytes, size_t *disp_unit, void **base);
/* The ranks of the window, as a group to be freed by the caller. */
int ncclx_win_group(ncclx_win_t win, ncclx_group_t *group);

/* ---- Profiling twins: the same functions under names that are not weak --------------------------------------- */

/* clang-format off */
extern __typeof__(ncclx_init) pncclx_init; extern __typeof__(ncclx_init_thread) pncclx_init_thread;
extern __typeof__(ncclx_query_thread) pncclx_query_thread; extern __typeof__(ncclx_finalize) pncclx_finalize;
extern __typeof__(ncclx_initialized) pncclx_initialized; extern __typeof__(ncclx_finalized) pncclx_finalized;
extern __typeof__(ncclx_abort) pncclx_abort; extern __typeof__(ncclx_version) pncclx_version;
extern __typeof__(ncclx_wtime) pncclx_wtime; extern __typeof__(ncclx_wtick) pncclx_wtick;
extern __typeof__(ncclx_host_name) pncclx_host_name; extern __typeof__(ncclx_error_string) pncclx_error_string;
extern __typeof__(ncclx_error_detail) pncclx_error_detail;
extern __typeof__(ncclx_errhandler_create) pncclx_errhandler_create;
extern __typeof__(ncclx_errhandler_free) pncclx_errhandler_free;
extern __typeof__(ncclx_comm_set_errhandler) pncclx_comm_set_errhandler;
extern __typeof__(ncclx_comm_get_errhandler) pncclx_comm_get_errhandler;
extern __typeof__(ncclx_comm_call_errhandler) pncclx_comm_call_errhandler;
extern __typeof__(ncclx_win_set_errhandler) pncclx_win_set_errhandler;
extern __typeof__(ncclx_win_get_errhandler) pncclx_win_get_errhandler;
extern __typeof__(ncclx_type_size) pncclx_type_size; extern __typeof__(ncclx_type_name) pncclx_type_name;
extern __typeof__(ncclx_op_create) pncclx_op_create; extern __typeof__(ncclx_op_free) pncclx_op_free;
extern __typeof__(ncclx_op_commutative) pncclx_op_commutative;
extern __typeof__(ncclx_reduce_local) pncclx_reduce_local; extern __typeof__(ncclx_info_create) pncclx_info_create;
extern __typeof__(ncclx_info_dup) pncclx_info_dup; extern __typeof__(ncclx_info_set) pncclx_info_set;
extern __typeof__(ncclx_info_get) pncclx_info_get; extern __typeof__(ncclx_info_delete) pncclx_info_delete;
extern __typeof__(ncclx_info_nkeys) pncclx_info_nkeys; extern __typeof__(ncclx_info_nthkey) pncclx_info_nthkey;
extern __typeof__(ncclx_info_free) pncclx_info_free; extern __typeof__(ncclx_group_size) pncclx_group_size;
extern __typeof__(ncclx_group_rank) pncclx_group_rank; extern __typeof__(ncclx_group_translate) pncclx_group_translate;
extern __typeof__(ncclx_group_compare) pncclx_group_compare; extern __typeof__(ncclx_group_union) pncclx_group_union;
extern __typeof__(ncclx_group_intersection) pncclx_group_intersection;
extern __typeof__(ncclx_group_difference) pncclx_group_difference;
extern __typeof__(ncclx_group_incl) pncclx_group_incl; extern __typeof__(ncclx_group_excl) pncclx_group_excl;
extern __typeof__(ncclx_group_range_incl) pncclx_group_range_incl;
extern __typeof__(ncclx_group_range_excl) pncclx_group_range_excl;
extern __typeof__(ncclx_group_free) pncclx_group_free; extern __typeof__(ncclx_comm_rank) pncclx_comm_rank;
extern __typeof__(ncclx_comm_size) pncclx_comm_size; extern __typeof__(ncclx_comm_group) pncclx_comm_group;
extern __typeof__(ncclx_comm_compare) pncclx_comm_compare; extern __typeof__(ncclx_comm_dup) pncclx_comm_dup;
extern __typeof__(ncclx_comm_split) pncclx_comm_split; extern __typeof__(ncclx_comm_split_type) pncclx_comm_split_type;
extern __typeof__(ncclx_comm_create_group) pncclx_comm_create_group;
extern __typeof__(ncclx_comm_free) pncclx_comm_free;
extern __typeof__(ncclx_comm_remote_class) pncclx_comm_remote_class;
extern __typeof__(ncclx_comm_set_name) pncclx_comm_set_name;
extern __typeof__(ncclx_comm_get_name) pncclx_comm_get_name; extern __typeof__(ncclx_send) pncclx_send;
extern __typeof__(ncclx_isend) pncclx_isend; extern __typeof__(ncclx_recv) pncclx_recv;
extern __typeof__(ncclx_irecv) pncclx_irecv; extern __typeof__(ncclx_sendrecv) pncclx_sendrecv;
extern __typeof__(ncclx_probe) pncclx_probe; extern __typeof__(ncclx_iprobe) pncclx_iprobe;
extern __typeof__(ncclx_mprobe) pncclx_mprobe; extern __typeof__(ncclx_improbe) pncclx_improbe;
extern __typeof__(ncclx_mrecv) pncclx_mrecv; extern __typeof__(ncclx_imrecv) pncclx_imrecv;
extern __typeof__(ncclx_status_count) pncclx_status_count; extern __typeof__(ncclx_wait) pncclx_wait;
extern __typeof__(ncclx_test) pncclx_test; extern __typeof__(ncclx_waitall) pncclx_waitall;
extern __typeof__(ncclx_testall) pncclx_testall; extern __typeof__(ncclx_waitany) pncclx_waitany;
extern __typeof__(ncclx_testany) pncclx_testany; extern __typeof__(ncclx_waitsome) pncclx_waitsome;
extern __typeof__(ncclx_testsome) pncclx_testsome;
extern __typeof__(ncclx_request_get_status) pncclx_request_get_status;
extern __typeof__(ncclx_request_free) pncclx_request_free; extern __typeof__(ncclx_start) pncclx_start;
extern __typeof__(ncclx_startall) pncclx_startall; extern __typeof__(ncclx_cancel) pncclx_cancel;
extern __typeof__(ncclx_coll_barrier) pncclx_coll_barrier; extern __typeof__(ncclx_coll_ibarrier) pncclx_coll_ibarrier;
extern __typeof__(ncclx_coll_barrier_init) pncclx_coll_barrier_init;
extern __typeof__(ncclx_coll_bcast) pncclx_coll_bcast; extern __typeof__(ncclx_coll_ibcast) pncclx_coll_ibcast;
extern __typeof__(ncclx_coll_bcast_init) pncclx_coll_bcast_init;
extern __typeof__(ncclx_coll_reduce) pncclx_coll_reduce; extern __typeof__(ncclx_coll_ireduce) pncclx_coll_ireduce;
extern __typeof__(ncclx_coll_reduce_init) pncclx_coll_reduce_init;
extern __typeof__(ncclx_coll_allreduce) pncclx_coll_allreduce;
extern __typeof__(ncclx_coll_iallreduce) pncclx_coll_iallreduce;
extern __typeof__(ncclx_coll_allreduce_init) pncclx_coll_allreduce_init;
extern __typeof__(ncclx_coll_reduce_scatter) pncclx_coll_reduce_scatter;
extern __typeof__(ncclx_coll_ireduce_scatter) pncclx_coll_ireduce_scatter;
extern __typeof__(ncclx_coll_reduce_scatter_init) pncclx_coll_reduce_scatter_init;
extern __typeof__(ncclx_coll_reduce_scatter_block) pncclx_coll_reduce_scatter_block;
extern __typeof__(ncclx_coll_ireduce_scatter_block) pncclx_coll_ireduce_scatter_block;
extern __typeof__(ncclx_coll_reduce_scatter_block_init) pncclx_coll_reduce_scatter_block_init;
extern __typeof__(ncclx_coll_allgather) pncclx_coll_allgather;
extern __typeof__(ncclx_coll_iallgather) pncclx_coll_iallgather;
extern __typeof__(ncclx_coll_allgather_init) pncclx_coll_allgather_init;
extern __typeof__(ncclx_coll_allgatherv) pncclx_coll_allgatherv;
extern __typeof__(ncclx_coll_iallgatherv) pncclx_coll_iallgatherv;
extern __typeof__(ncclx_coll_allgatherv_init) pncclx_coll_allgatherv_init;
extern __typeof__(ncclx_coll_gather) pncclx_coll_gather; extern __typeof__(ncclx_coll_igather) pncclx_coll_igather;
extern __typeof__(ncclx_coll_gather_init) pncclx_coll_gather_init;
extern __typeof__(ncclx_coll_gatherv) pncclx_coll_gatherv; extern __typeof__(ncclx_coll_igatherv) pncclx_coll_igatherv;
extern __typeof__(ncclx_coll_gatherv_init) pncclx_coll_gatherv_init;
extern __typeof__(ncclx_coll_scatter) pncclx_coll_scatter; extern __typeof__(ncclx_coll_iscatter) pncclx_coll_iscatter;
extern __typeof__(ncclx_coll_scatter_init) pncclx_coll_scatter_init;
extern __typeof__(ncclx_coll_scatterv) pncclx_coll_scatterv;
extern __typeof__(ncclx_coll_iscatterv) pncclx_coll_iscatterv;
extern __typeof__(ncclx_coll_scatterv_init) pncclx_coll_scatterv_init;
extern __typeof__(ncclx_coll_alltoall) pncclx_coll_alltoall;
extern __typeof__(ncclx_coll_ialltoall) pncclx_coll_ialltoall;
extern __typeof__(ncclx_coll_alltoall_init) pncclx_coll_alltoall_init;
extern __typeof__(ncclx_coll_alltoallv) pncclx_coll_alltoallv;
extern __typeof__(ncclx_coll_ialltoallv) pncclx_coll_ialltoallv;
extern __typeof__(ncclx_coll_alltoallv_init) pncclx_coll_alltoallv_init;
extern __typeof__(ncclx_coll_scan) pncclx_coll_scan; extern __typeof__(ncclx_coll_iscan) pncclx_coll_iscan;
extern __typeof__(ncclx_coll_scan_init) pncclx_coll_scan_init; extern __typeof__(ncclx_coll_exscan) pncclx_coll_exscan;
extern __typeof__(ncclx_coll_iexscan) pncclx_coll_iexscan;
extern __typeof__(ncclx_coll_exscan_init) pncclx_coll_exscan_init; extern __typeof__(ncclx_mem_alloc) pncclx_mem_alloc;
extern __typeof__(ncclx_mem_free) pncclx_mem_free; extern __typeof__(ncclx_win_allocate) pncclx_win_allocate;
extern __typeof__(ncclx_win_create) pncclx_win_create; extern __typeof__(ncclx_win_free) pncclx_win_free;
extern __typeof__(ncclx_win_put) pncclx_win_put; extern __typeof__(ncclx_win_get) pncclx_win_get;
extern __typeof__(ncclx_win_rput) pncclx_win_rput; extern __typeof__(ncclx_win_rget) pncclx_win_rget;
extern __typeof__(ncclx_win_put_iov) pncclx_win_put_iov;
extern __typeof__(ncclx_win_put_iov_signal) pncclx_win_put_iov_signal;
extern __typeof__(ncclx_win_plan_create) pncclx_win_plan_create;
extern __typeof__(ncclx_win_plan_start) pncclx_win_plan_start;
extern __typeof__(ncclx_win_plan_free) pncclx_win_plan_free;
extern __typeof__(ncclx_win_accumulate) pncclx_win_accumulate;
extern __typeof__(ncclx_win_get_accumulate) pncclx_win_get_accumulate;
extern __typeof__(ncclx_win_fetch_op) pncclx_win_fetch_op;
extern __typeof__(ncclx_win_compare_swap) pncclx_win_compare_swap;
extern __typeof__(ncclx_win_put_signal) pncclx_win_put_signal; extern __typeof__(ncclx_win_signal) pncclx_win_signal;
extern __typeof__(ncclx_win_wait_signal) pncclx_win_wait_signal;
extern __typeof__(ncclx_win_test_signal) pncclx_win_test_signal;
extern __typeof__(ncclx_win_wait_signal_any) pncclx_win_wait_signal_any;
extern __typeof__(ncclx_win_wait_signal_all) pncclx_win_wait_signal_all;
extern __typeof__(ncclx_win_test_signal_any) pncclx_win_test_signal_any;
extern __typeof__(ncclx_win_test_signal_all) pncclx_win_test_signal_all;
extern __typeof__(ncclx_win_fence) pncclx_win_fence; extern __typeof__(ncclx_win_flush) pncclx_win_flush;
extern __typeof__(ncclx_win_flush_all) pncclx_win_flush_all;
extern __typeof__(ncclx_win_flush_local) pncclx_win_flush_local;
extern __typeof__(ncclx_win_flush_local_all) pncclx_win_flush_local_all;
extern __typeof__(ncclx_win_lock_all) pncclx_win_lock_all;
extern __typeof__(ncclx_win_unlock_all) pncclx_win_unlock_all; extern __typeof__(ncclx_win_lock) pncclx_win_lock;
extern __typeof__(ncclx_win_unlock) pncclx_win_unlock; extern __typeof__(ncclx_win_post) pncclx_win_post;
extern __typeof__(ncclx_win_start) pncclx_win_start; extern __typeof__(ncclx_win_complete) pncclx_win_complete;
extern __typeof__(ncclx_win_wait) pncclx_win_wait; extern __typeof__(ncclx_win_test) pncclx_win_test;
extern __typeof__(ncclx_win_sync) pncclx_win_sync; extern __typeof__(ncclx_win_shared_query) pncclx_win_shared_query;
extern __typeof__(ncclx_win_group) pncclx_win_group;
/* clang-format on */

#ifdef __cplusplus
}
#endif

#endif
