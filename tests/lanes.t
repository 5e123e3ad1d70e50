#!/bin/bash
# lanes.t - puts, signals and large messages over lanes of sockets: limits, lanes that are slow and break, and what is left of a
# peer's rights when it lies. NCCLX_TEST_LONG=1: a million signals.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=110
export NCCLX_TRANSPORTS=tcp

# windows RANKS PROGRAM CASE...
windows() {
    local ranks=$1 program=$2; shift 2
    runs "$program, $ranks ranks: $*" 0 ncclxrun -n "$ranks" "$mp/$program" "$@"
    is "$program, $ranks ranks: $*: all took part" "ok $ranks" "$out"
}

# How much is in flight.
for limits in 1:1:1000 2:3:64K 16:16:1M; do
    runs "messages, limits $limits" 0 env NCCLX_DQPLB_NODE=$limits ncclxrun -n 2 "$mp/p2p"
done
runs "limits that are none" 1 env NCCLX_DQPLB_RACK=4:4 ncclxrun -n 2 "$mp/p2p"
like "are named" 'NCCLX_DQPLB_RACK.*4:4.*lanes:outstanding:segment' "$err"
for budget in 0 1 1M; do
    NCCLX_DQPLB_BUDGET=$budget runs "messages and windows, budget $budget" 0 ncclxrun -n 3 "$mp/window" put
    NCCLX_DQPLB_BUDGET=$budget runs "collectives, budget $budget" 0 env NCCLX_DQPLB_NODE=3:8:4K ncclxrun -n 4 "$mp/coll"
done
NCCLX_DQPLB_ADAPT=off runs "a window that stays what it is" 0 ncclxrun -n 2 "$mp/p2p"
NCCLX_DQPLB_BUDGET=-1 runs "a budget that is none" 2 ncclxrun -n 2 "$mp/p2p"
like "is named" 'NCCLX_DQPLB_BUDGET' "$err"
runs "lanes are opened" 0 env NCCLX_LOG=warn,pml:info ncclxrun -n 2 "$mp/p2p"
like "the fast one" 'lane 0 to rank [01] is open' "$err"
like "and those for data" 'lane 2 to rank [01] is open' "$err"
runs "small puts" 0 env NCCLX_LOG=warn,pml:info ncclxrun -n 2 "$mp/window" signal 10
like "open the fast lane" 'lane 0 to rank [01] is open' "$err"
if [[ $err =~ lane\ [1-9] ]]; then fail "and no other" "$err"; else pass "and no other"; fi

# Many messages together, some straight into their receive; a small one that passes a large put.
runs "a burst of messages" 0 ncclxrun -n 2 "$mp/burst" order
is "comes in order" "ok 2" "$out"
runs "a burst with few bytes kept" 0 env NCCLX_UNEXPECTED_LIMIT=64K ncclxrun -n 2 "$mp/burst" order
runs "the first message of a burst" 0 ncclxrun -n 2 "$mp/burst" first "$scratch/come"
is "does not wait for others" "ok 2" "$out"
runs "a small message behind a large put" 0 ncclxrun -n 2 "$mp/behind" 128
like "passes it" '^idle [0-9.]+ behind [0-9.]+ segment [0-9.]+ ahead [0-9]+$' "$out"

# Whether a lane that broke was open later.
came_back() {
    sed -nE 's/.*rank ([0-9]+) on .* lane ([0-9]+) to rank ([0-9]+) (broke|is open).*/\1-\2-\3 \4/p' |
        awk '/broke/ { broke[$1] = 1 } /open/ && broke[$1] { back = 1 } END { print back ? "yes" : "no" }'
}

# Lanes that are slow and break, again and again: nothing is early, lost, or there twice. Messages that could do without lanes take them, too.
troubled() { # troubled TROUBLE RANKS PROGRAM...
    local trouble=$1 ranks=$2; shift 2
    runs "lanes in trouble ($trouble): $*" 0 env NCCLX_LOG=warn,pml:info NCCLX_EAGER_LIMIT=64K NCCLX_LANE_TROUBLE="$trouble" ncclxrun -n "$ranks" "$mp/$1" "${@:2}"
    like "lanes broke: $*" 'lane [0-9]+ to rank [0-9]+ broke' "$err"
    is "and came back: $*" yes "$(came_back <<<"$err")"
}
signals=15000
[ -z "${NCCLX_TEST_LONG:-}" ] || { signals=1000000; TEST_TIMEOUT=3000; }
troubled 7:50:500 2 signals $signals
troubled 8:30:300 3 signals 6000
troubled 1:50:100 2 window signal 500
troubled 2:0:30 3 window signal 300
troubled 3:100:10 3 window put
troubled 4:50:6 2 p2p
troubled 5:20:10 3 window_epochs locks 25
troubled 9:20:10 3 window_atomics values
troubled 6:50:10 3 coll
runs "trouble that is none" 1 env NCCLX_LANE_TROUBLE=much ncclxrun -n 2 "$mp/p2p"
like "is named" 'NCCLX_LANE_TROUBLE is "much"' "$err"
done_testing
