#!/bin/bash
# launcher_many.t [RANKS...] - many ranks on one machine: all meet, and what a rank and the daemon take of memory is told.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
TEST_TIMEOUT=500
[ $# -gt 0 ] || set -- 128 ${NCCLX_TEST_LONG:+1024}

for ranks; do
    for what in pmix ncclx; do
        [ $what = pmix ] || [ $ranks -le 128 ] || [ -n "${NCCLX_TEST_LONG-}" ] || continue
        begin=$EPOCHREALTIME
        job "$ranks ranks of $what" 0 -n $ranks "$mp/memory" $what
        is "each of them once" $ranks "$(sed -n "s/^rank \([0-9]*\) of $ranks: .*/\1/p" <<<"$out" | sort -u | wc -l)"
        awk -v what=$what -v ranks=$ranks -v begin=$begin -v end=$EPOCHREALTIME '/^rank/ { sum += $5; if ($5 > most) most = $5 } /^daemon/ { daemon = $2 }
            END { printf "# %d ranks of %s: %d KiB a rank, %d at most, the daemon %d KiB; %.1f s\n", ranks, what, sum / ranks, most, daemon, end - begin }' <<<"$out"
    done
done

done_testing
