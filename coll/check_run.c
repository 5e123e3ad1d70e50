/* check_run.c - runs the comparison of collective calls (check.h) over pml. */
#include "coll/check.h"
#include "coll/check_counts.h"
#include "coll/operation.h"

#include <stdio.h>

/* comm->coll->check. */
struct check_run {
    uint64_t calls;
    int error; /* an earlier exchange broke off: ranks no longer agree on the number of the call */
    struct check_signature mine;
    struct check_view view, told, heard;
    struct ncclx_request *send, *receive;
    unsigned round;
    struct check_counts *counts;
};

static void describe(const void *arg, char *text, size_t bytes)
{
    const struct ncclx_comm *comm = arg;
    const struct check_run *run = comm->coll->check;
    char mine[256], who[96];
    int from, count = check_missing(comm->rank, comm->size, run->round, &from);
    check_describe(&run->mine, mine, sizeof mine);
    if (count == 1)
        snprintf(who, sizeof who, "rank %d has", from);
    else
        snprintf(who, sizeof who, "one of the %d ranks %d to %d%s has", count, from, (from + count - 1) % comm->size,
                 from + count > comm->size ? ", counted past the last," : "");
    snprintf(text, bytes, "%s as collective %llu on %s: %s not made this call", mine,
             (unsigned long long)run->mine.sequence, check_place(&run->mine, comm->name), who);
}

static void let_go(struct ncclx_request **request)
{
    struct ncclx_request *gone = *request;
    *request = NULL;
    if (!gone) return;
    if (gone->complete) {
        gone->kind->release(gone);
        return;
    }
    gone->detached = true;
    if (gone->kind->cancel) (void)gone->kind->cancel(gone); /* releases it, at once or when peers no longer name it */
}

static bool under_way(const struct check_run *run)
{
    return !run->send->complete || !run->receive->complete;
}

static int end_round(struct check_run *run, const struct ncclx_comm *comm)
{
    if (run->send->status.error) return run->send->status.error;
    if (run->receive->status.error) return run->receive->status.error;
    if (run->receive->status.bytes == sizeof run->heard && check_valid(&run->heard, comm->size)) {
        check_merge(&run->view, &run->heard);
        return NCCLX_SUCCESS;
    }
    return base_error(NCCLX_ERR_TRANSPORT, "rank %d broke the protocol of NCCLX_CHECK",
                      check_receive_from(comm->rank, comm->size, run->round));
}

static int run_round(struct ncclx_comm *comm, struct check_run *run, struct base_wait *wait)
{
    int to = check_send_to(comm->rank, comm->size, run->round);
    int from = check_receive_from(comm->rank, comm->size, run->round);
    run->told = run->view;
    int error = pml_irecv(comm, PML_SYSTEM, &run->heard, sizeof run->heard, from, COLL_CHECK_TAG, &run->receive);
    if (!error) error = pml_isend(comm, PML_SYSTEM, &run->told, sizeof run->told, to, COLL_CHECK_TAG, &run->send);
    while (!error && under_way(run)) error = base_wait_step(wait);
    if (!error) error = end_round(run, comm);
    let_go(&run->send);
    let_go(&run->receive);
    return error;
}

static int exchange(struct ncclx_comm *comm, const char *function, struct check_run *run)
{
    struct base_wait wait;
    unsigned rounds = check_rounds(comm->size);
    int error = NCCLX_SUCCESS;
    base_wait_begin(&wait, comm->rt, function, describe, comm);
    check_begin(&run->view, &run->mine);
    for (run->round = 0; run->round < rounds && !error; run->round++) error = run_round(comm, run, &wait);
    base_wait_end(&wait);
    return error;
}

static int judge(const struct ncclx_comm *comm, const struct check_run *run)
{
    const struct check_view *view = &run->view;
    char text[700];
    if (!view->differs) return NCCLX_SUCCESS;
    check_verdict(view, comm->name, text, sizeof text);
    /* A call that fails on one rank fails with its code on all, as making windows and communicators does anyway. */
    int error = view->other.error ? view->other.error : view->lowest.error;
    return base_error(error ? error : NCCLX_ERR_MISMATCH, "%s", text);
}

static int compare(struct ncclx_comm *comm, const char *function, const struct check_signature *signature)
{
    struct check_run *run = comm->coll->check;
    if (comm->size == 1) return signature->error;
    if (run->error)
        return base_error(run->error, "an earlier check of calls on %s broke off; it is of no more use",
                          base_comm_name(comm));
    run->mine = *signature;
    run->mine.rank = comm->rank;
    run->mine.sequence = ++run->calls;
    if (!signature->error) {
        run->error = exchange(comm, function, run);
        return run->error ? run->error : judge(comm, run);
    }
    char own[1024];
    snprintf(own, sizeof own, "%s", base_error_detail());
    run->error = exchange(comm, function, run);
    return base_error(signature->error, "%s", own);
}

int check_attach(struct ncclx_comm *comm)
{
    struct check_run *run = base_calloc(AREA_COLL, 1, sizeof *run);
    comm->coll->check = run;
    if (run) run->counts = check_counts_create(comm->size);
    if (run && run->counts) return NCCLX_SUCCESS;
    return base_error(NCCLX_ERR_NO_MEM, "no memory to check the collectives of %s", base_comm_name(comm));
}

void check_detach(struct coll_comm *home)
{
    if (home->check) base_free(AREA_COLL, home->check->counts);
    base_free(AREA_COLL, home->check);
}

/* After all calls were found alike. */
static int compare_counts(struct ncclx_comm *comm, const struct coll_args *args)
{
    struct check_run *run = comm->coll->check;
    char call[256], text[400];
    check_describe(&run->mine, call, sizeof call);
    snprintf(text, sizeof text, "%s as collective %llu on %s", call, (unsigned long long)run->mine.sequence,
             check_place(&run->mine, comm->name));
    int error = check_counts_compare(comm, run->counts, args, text);
    if (error != NCCLX_ERR_MISMATCH) run->error = error;
    return error;
}

int coll_check_args(struct ncclx_comm *comm, const char *function, const struct coll_args *args, enum coll_form form,
                    int error)
{
    struct check_signature signature = check_signature_of(args, comm->size, form, error);
    error = compare(comm, function, &signature);
    return error || comm->size == 1 || !check_counts_needed(args) ? error : compare_counts(comm, args);
}

int coll_check_other(struct ncclx_comm *comm, const char *function, enum coll_other_call call, size_t slots, int error)
{
    struct check_signature signature = {.call = (int32_t)call, .slots = slots, .error = error};
    return compare(comm, function, &signature);
}
