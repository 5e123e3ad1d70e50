/* budget.c - who may post beyond its least window, and who comes next. */
#include "pml/dqplb/budget.h"

static void wait_for_turn(struct dqplb_share *share, uint64_t bytes)
{
    struct dqplb_budget *budget = share->budget;
    if (bytes > budget->bytes) return; /* it would never fit: its least window is all it gets */
    share->wanted = bytes;
    if (share->waiting) return;
    share->waiting = true;
    share->next = NULL;
    if (budget->last) budget->last->next = share;
    else budget->first = share;
    budget->last = share;
}

bool budget_may(struct dqplb_share *share, uint64_t bytes)
{
    struct dqplb_budget *budget = share->budget;
    if (!budget || !budget->bytes) return true;
    bool turn = !budget->first || budget->turn == share || PLANTED_BUG(BUG_BUDGET_NO_QUEUE);
    bool fits = budget->used + bytes <= budget->bytes || PLANTED_BUG(BUG_BUDGET_EXCEEDED);
    if (turn && fits) {
        budget->turn = NULL;
        return true;
    }
    if (!PLANTED_BUG(BUG_BUDGET_FORGETS)) wait_for_turn(share, bytes);
    return false;
}

struct dqplb_share *budget_next(struct dqplb_budget *budget)
{
    struct dqplb_share *share = budget->first;
    budget->turn = NULL;
    if (!share || budget->used + share->wanted > budget->bytes) return NULL;
    budget_leave(share);
    budget->turn = share;
    return share;
}

void budget_leave(struct dqplb_share *share)
{
    struct dqplb_budget *budget = share->budget;
    if (!budget) return;
    if (budget->turn == share) budget->turn = NULL;
    if (!share->waiting) return;
    share->waiting = false;
    struct dqplb_share *before = NULL, *at = budget->first;
    while (at != share) {
        before = at;
        at = at->next;
    }
    if (before) before->next = share->next;
    else budget->first = share->next;
    if (budget->last == share) budget->last = before;
}
