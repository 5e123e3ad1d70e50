/* check.c - signatures of collective calls: what has to agree, what differs, and how to say so. */
#include "coll/check.h"

#include <stdarg.h>
#include <stdio.h>

enum part { COUNT = 1, TYPE = 2, OP = 4, ROOT = 8, IN_PLACE = 16, SLOTS = 32, COUNTS = 64 };

/* What has to be the same on all ranks. In place is the root's affair where there is one; lists of counts that differ by
 * right are check_counts.c's affair. */
static const struct {
    const char *text;
    unsigned parts;
} calls[COLL_CHECKED_CALLS] = {
    [COLL_BARRIER] = {"barrier", 0},
    [COLL_BCAST] = {"bcast", COUNT | TYPE | ROOT},
    [COLL_REDUCE] = {"reduce", COUNT | TYPE | OP | ROOT},
    [COLL_ALLREDUCE] = {"allreduce", COUNT | TYPE | OP | IN_PLACE},
    [COLL_ALLGATHER] = {"allgather", COUNT | TYPE | IN_PLACE},
    [COLL_ALLTOALL] = {"alltoall", COUNT | TYPE | IN_PLACE},
    [COLL_REDUCE_SCATTER] = {"reduce_scatter", COUNTS | TYPE | OP | IN_PLACE},
    [COLL_REDUCE_SCATTER_BLOCK] = {"reduce_scatter_block", COUNT | TYPE | OP | IN_PLACE},
    [COLL_ALLGATHERV] = {"allgatherv", COUNTS | TYPE | IN_PLACE},
    [COLL_GATHER] = {"gather", COUNT | TYPE | ROOT},
    [COLL_GATHERV] = {"gatherv", TYPE | ROOT},
    [COLL_SCATTER] = {"scatter", COUNT | TYPE | ROOT},
    [COLL_SCATTERV] = {"scatterv", TYPE | ROOT},
    [COLL_ALLTOALLV] = {"alltoallv", TYPE | IN_PLACE},
    [COLL_SCAN] = {"scan", COUNT | TYPE | OP | IN_PLACE},
    [COLL_EXSCAN] = {"exscan", COUNT | TYPE | OP | IN_PLACE},
    [COLL_CALL_COMM_DUP] = {"comm_dup", 0},
    [COLL_CALL_COMM_SPLIT] = {"comm_split", 0},
    [COLL_CALL_COMM_SPLIT_TYPE] = {"comm_split_type", 0},
    [COLL_CALL_WIN_ALLOCATE] = {"win_allocate", SLOTS},
    [COLL_CALL_WIN_CREATE] = {"win_create", SLOTS},
    [COLL_CALL_WIN_FENCE] = {"win_fence", 0},
    [COLL_CALL_WIN_FREE] = {"win_free", 0},
    [COLL_CALL_FINALIZE] = {"finalize", 0},
};

bool check_known(int call)
{
    return call >= 0 && call < COLL_CHECKED_CALLS && calls[call].text;
}

/* ---- Signatures -------------------------------------------------------------------------------------------------- */

/* Handles of users' operations differ between ranks. With an error the handle may be anything. */
static int32_t op_code(ncclx_op_t op, int error)
{
    if (op == NCCLX_OP_NULL) return 0;
    if (base_op_predefined(op)) return (int32_t)(size_t)op;
    if (error) return CHECK_OP_INVALID;
    return base_op_commutative(op) ? CHECK_OP_COMMUTATIVE : CHECK_OP_ORDERED;
}

/* FNV-1a, a count at a time. */
static void sum_up(struct check_signature *signature, const size_t *counts, int size)
{
    signature->counts = UINT64_C(14695981039346656037);
    for (int i = 0; i < size; i++) {
        signature->count += counts[i];
        signature->counts = (signature->counts ^ counts[i]) * UINT64_C(1099511628211);
    }
}

struct check_signature check_signature_of(const struct coll_args *args, int size, enum coll_form form, int error)
{
    unsigned parts = calls[args->name].parts;
    struct check_signature signature = {.call = (int32_t)args->name, .form = (int32_t)form, .error = error};
    if (parts & COUNT) signature.count = args->count;
    if (parts & COUNTS && !error) sum_up(&signature, args->recv.counts, size);
    if (parts & TYPE) signature.type = (int32_t)args->type;
    if (parts & OP) signature.op = op_code(args->op, error);
    if (parts & ROOT) signature.root = args->root;
    if (parts & IN_PLACE) signature.in_place = args->sendbuf == NCCLX_IN_PLACE;
    return signature;
}

bool check_same(const struct check_signature *a, const struct check_signature *b)
{
    return a->sequence == b->sequence && a->call == b->call && a->form == b->form && a->count == b->count && a->counts == b->counts &&
           a->type == b->type && a->op == b->op && a->root == b->root && a->in_place == b->in_place &&
           a->slots == b->slots && a->error == b->error;
}

/* ---- What is known ----------------------------------------------------------------------------------------------- */

void check_begin(struct check_view *view, const struct check_signature *mine)
{
    *view = (struct check_view){.lowest = *mine};
}

/* Takes the signature of a rank into a view whose lowest rank is no higher. */
static void consider(struct check_view *view, const struct check_signature *signature)
{
    if (check_same(signature, &view->lowest)) return;
    if (view->differs && view->other.rank <= signature->rank) return;
    view->other = *signature;
    view->differs = 1;
}

void check_merge(struct check_view *view, const struct check_view *heard)
{
    struct check_view old = *view;
    bool lower = heard->lowest.rank < old.lowest.rank;
    const struct check_view *low = lower ? heard : &old, *high = lower ? &old : heard;
    *view = *low;
    consider(view, &high->lowest);
    if (high->differs) consider(view, &high->other);
}

static bool signature_valid(const struct check_signature *signature, int size)
{
    return signature->rank >= 0 && signature->rank < size && check_known(signature->call) && signature->error >= 0 &&
           signature->error <= NCCLX_ERR_LAST;
}

bool check_valid(const struct check_view *view, int size)
{
    if (view->differs > 1 || !signature_valid(&view->lowest, size)) return false;
    return !view->differs || (signature_valid(&view->other, size) && view->other.rank > view->lowest.rank);
}

/* ---- Who tells whom ---------------------------------------------------------------------------------------------- */

unsigned check_rounds(int size)
{
    unsigned rounds = 0;
    while (INT64_C(1) << rounds < size) rounds++;
    return rounds;
}

int check_send_to(int rank, int size, unsigned round)
{
    return (int)((rank + (INT64_C(1) << round)) % size);
}

int check_receive_from(int rank, int size, unsigned round)
{
    return (int)((rank + size - (INT64_C(1) << round)) % size);
}

/* The one that is waited for speaks in round k once it has heard of the 2^k ranks that end with it. Those after it have
 * been heard of. */
int check_missing(int rank, int size, unsigned round, int *from)
{
    int64_t span = INT64_C(1) << round, count = span < size - span ? span : size - span;
    *from = (int)((rank + 2 * (int64_t)size - span - count + 1) % size);
    return (int)count;
}

/* ---- Text -------------------------------------------------------------------------------------------------------- */

static void __attribute__((format(printf, 4, 5)))
append(char *text, size_t bytes, size_t *length, const char *format, ...)
{
    va_list args;
    if (*length >= bytes) return;
    va_start(args, format);
    int added = vsnprintf(text + *length, bytes - *length, format, args);
    va_end(args);
    if (added > 0) *length += (size_t)added;
}

static const char *op_text(int32_t op)
{
    if (op == CHECK_OP_COMMUTATIVE) return "a user's commutative operation";
    if (op == CHECK_OP_ORDERED) return "a user's operation that is not commutative";
    if (op < 0 || op > (int32_t)(size_t)NCCLX_MAXLOC) return "no operation";
    return base_op_name((ncclx_op_t)(size_t)op);
}

void check_describe(const struct check_signature *signature, char *text, size_t bytes)
{
    unsigned parts = calls[signature->call].parts;
    const char *between = "";
    size_t length = 0;
    append(text, bytes, &length, "%s%s%s(", signature->form == COLL_NONBLOCKING ? "i" : "", calls[signature->call].text,
           signature->form == COLL_PERSISTENT ? "_init" : "");
    if (parts & COUNT) append(text, bytes, &length, "count %llu", (unsigned long long)signature->count), between = ", ";
    if (parts & COUNTS)
        append(text, bytes, &length, "counts of %llu in all, checksum %08x", (unsigned long long)signature->count,
               (unsigned)(signature->counts ^ signature->counts >> 32)), between = ", ";
    if (parts & TYPE) append(text, bytes, &length, "%s%s", between, base_type_name((ncclx_datatype_t)signature->type));
    if (parts & OP) append(text, bytes, &length, ", %s", op_text(signature->op));
    if (parts & ROOT) append(text, bytes, &length, ", root %d", signature->root);
    if (signature->in_place) append(text, bytes, &length, ", in place");
    if (parts & SLOTS && !signature->error) append(text, bytes, &length, "%llu signal slots", (unsigned long long)signature->slots);
    append(text, bytes, &length, ")");
    if (!signature->error) return;
    append(text, bytes, &length, " with wrong arguments (%s)", base_error_string(signature->error));
}

const char *check_place(const struct check_signature *signature, const char *comm_name)
{
    if (comm_name[0]) return comm_name;
    bool window = signature->call == COLL_CALL_WIN_FENCE || signature->call == COLL_CALL_WIN_FREE;
    return window ? "a window" : "an unnamed communicator";
}

void check_verdict(const struct check_view *view, const char *comm_name, char *text, size_t bytes)
{
    char other[256], lowest[256];
    check_describe(&view->other, other, sizeof other);
    check_describe(&view->lowest, lowest, sizeof lowest);
    snprintf(text, bytes, "rank %d called %s, rank %d called %s as collective %llu on %s", view->other.rank, other,
             view->lowest.rank, lowest, (unsigned long long)view->lowest.sequence,
             check_place(&view->lowest, comm_name));
}
