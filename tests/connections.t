#!/bin/bash
# connections.t - connections over sockets: fewer descriptors than peers, sockets that break, a peer that does not answer,
# ports.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=110
export NCCLX_TRANSPORTS=tcp

# Connections that are not used make room for others.
crowd() { # crowd RANKS DESCRIPTORS ROUNDS [NAME=VALUE...]
    local ranks=$1 limit=$2 rounds=$3; shift 3
    runs "$ranks ranks with $limit descriptors each $*" 0 \
        env NCCLX_LOG=warn,tcp:info "$@" ncclxrun -n "$ranks" bash -c "ulimit -n $limit && exec '$mp/crowd' $rounds"
    like "all took part $*" "^ok $ranks, at most [0-9]+ descriptors" "$out"
    if [[ $out =~ most\ ([0-9]+) ]] && [ "${BASH_REMATCH[1]}" -le "$limit" ]; then pass "with no more than that $*"
    else fail "with no more than that $*" "$out"; fi
    like "not all peers fit $*" "$limit descriptors, [0-9]+ used: connections to [0-9]+ of $((ranks - 1)) peers" "$err"
    like "connections rested $*" 'the connection to rank [0-9]+ rests' "$err"
}
crowd 7 32 1
if [[ $err =~ to\ rank\ [0-9]+.*\ broke: ]]; then fail "and none was taken for broken" "$err"; else pass "and none was taken for broken"; fi
crowd 4 26 1 NCCLX_LANE_TROUBLE=3:0:50:50
[ -z "${NCCLX_TEST_LONG:-}" ] || crowd 64 40 1

# Who has few descriptors is not filled by one who has many.
runs "ranks of unlike limits" 0 env NCCLX_LOG=warn,pml:info ncclxrun -n 1 bash -c "ulimit -n 30 && exec '$mp/p2p'" : -n 1 "$mp/p2p"
like "one opens a lane to the other" 'rank 1 on .* lane 0 to rank 0 is open' "$err"
unlike "and no more than that has room for" 'lane [1-9][0-9]* to rank 0 is open' "$err"

# A socket that breaks is replaced, and nothing is lost, out of order, or there twice.
broken() { # broken TROUBLE RANKS PROGRAM...
    local trouble=$1 ranks=$2; shift 2
    runs "connections that break ($trouble): $*" 0 \
        env NCCLX_LOG=warn,tcp:info NCCLX_LANE_TROUBLE="$trouble" ncclxrun -n "$ranks" "$mp/$1" "${@:2}"
    like "they broke: $*" 'the connection to rank [0-9]+ broke: as it was told to' "$err"
    like "and came back: $*" 'connected to rank [0-9]+ \([0-9]+ more times\)' "$err"
}
broken 1:0:0:20 2 p2p
broken 2:0:0:3 3 p2p
broken 7:30:20:40 2 p2p
broken 3:0:0:10 3 coll
broken 4:50:100:50 2 window signal 1000
broken 5:50:20:20 3 window put
broken 6:0:0:20 3 window_epochs locks 10
# Atomics are messages so that none of them is done twice; each counts in what they add up to.
broken 8:0:0:7 3 window_atomics shared 30
broken 9:20:50:20 2 window_atomics threads 60
broken 10:0:0:10 3 window_atomics large
runs "trouble that is none" 1 env NCCLX_LANE_TROUBLE=1:2:3:4:5 ncclxrun -n 2 "$mp/p2p"
like "is named" 'NCCLX_LANE_TROUBLE is "1:2:3:4:5"' "$err"

# Ports: as many ranks as there are ports in the range share it, one more is too many.
ports() { runs "$1" "$2" env NCCLX_LOG=warn,tcp:info "${@:3}"; }
low=$((23000 + $$ % 4000 * 2))
ports "ranks listen on ports of a range" 0 NCCLX_PORT_RANGE=$low-$((low + 7)) ncclxrun -n 4 "$mp/p2p"
ports "that of the launcher" 0 ncclxrun --port-range $low-$((low + 7)) -n 4 sh -c '[ "$NCCLX_PORT_RANGE" = '$low-$((low + 7))' ]'
ports "unless ranks are given another" 0 NCCLX_PORT_RANGE=1-2 ncclxrun --port-range $low-$((low + 7)) -n 1 sh -c '[ "$NCCLX_PORT_RANGE" = 1-2 ]'
ports "more ranks than ports" 1 NCCLX_PORT_RANGE=$low-$((low + 1)) ncclxrun -n 4 "$mp/p2p"
like "are named" "NCCLX_PORT_RANGE, of which each rank of a host needs one port: no port from $low to $((low + 1)) can be listened on" "$err"
for range in 5 0-5 5-4 1-65536 a-b 1-2-3; do
    ports "range $range" 1 NCCLX_PORT_RANGE=$range ncclxrun -n 2 "$mp/p2p"
    like "is none" "NCCLX_PORT_RANGE.*\"$range\" is no range of ports" "$err"
done

# A peer that takes no connection keeps nobody else waiting.
runs "a peer that is stopped while others connect" 0 ncclxrun -n 4 "$mp/absent"
if [[ $out =~ ^ok\ 4,\ ([0-9]+)\ ms ]] && [ "${BASH_REMATCH[1]}" -lt 3000 ]; then pass "they do not wait for it"
else fail "they do not wait for it" "$out"; fi
done_testing
