#!/bin/bash
# check.t - NCCLX_CHECK=1: mismatched collective calls are reported with both ranks' arguments; right programs notice
# nothing.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=120
export NCCLX_CHECK=1
going_on=(env NCCLX_ERRORS=return NCCLX_TIMEOUT=60)

for ranks in 2 3 5; do
    runs "mismatches, $ranks ranks" 0 "${going_on[@]}" ncclxrun -n $ranks "$mp/check"
    runs "a rank that finalizes, $ranks ranks" 0 "${going_on[@]}" ncclxrun -n $ranks "$mp/check" finalize
done
runs "mismatches by rendezvous" 0 env NCCLX_EAGER_LIMIT=16 "${going_on[@]}" ncclxrun -n 3 "$mp/check"

runs "a mismatch ends the job" 1 ncclxrun -n 3 "$mp/check" fatal
like "a mismatch ends the job, and says why" \
    "rank 2 called barrier\(\), rank 0 called bcast\(count 3, double, root 0\) as collective 1 on COMM_WORLD" "$err"
like "a mismatch ends the job, and names the error" "NCCLX_ERR_MISMATCH" "$err"

# The job ends with the first rank that leaves without ncclx_finalize: the one that made no call.
runs "a rank that makes no call" 1 env NCCLX_ERRORS=return NCCLX_TIMEOUT=1 ncclxrun -n 5 "$mp/check" absent
like "a rank that makes no call: its neighbour names it" "collective 1 on COMM_WORLD: rank 4 has not made this call" "$out"
like "a rank that makes no call: another one names ranks with it among them" \
    "one of the 2 ranks [0-9] to [0-9].* has not made this call" "$out"

runs "no false alarms in collectives" 0 ncclxrun -n 3 "$mp/coll"
runs "no false alarms in collectives, 4 ranks" 0 ncclxrun -n 4 "$mp/grid" -e 4 all=6144
runs "no false alarms in communicators" 0 ncclxrun -n 4 "$mp/comm"
runs "the same errors" 0 ncclxrun -n 3 "$mp/errors"
runs "no false alarms among threads" 0 ncclxrun -n 3 "$mp/threads"
for case in put passive shapes errors; do runs "no false alarms in windows: $case" 0 ncclxrun -n 3 "$mp/window" $case; done
runs "no false alarms alone" 0 "$mp/coll"
runs "no false alarms in cg" 0 ncclxrun -n 3 "$top_builddir/examples/cg" "$top_srcdir/examples/data/1138_bus.mtx"
runs "a bad value" 2 env NCCLX_CHECK=maybe ncclxrun -n 1 "$mp/check"
like "a bad value, and what would be good" "NCCLX_CHECK.*on" "$err"
done_testing
