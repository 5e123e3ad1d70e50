#!/bin/bash
# copy.t - NCCLX_PROTOCOL=copy: whatever is sent and put arrives, whichever way it takes, with the fewest and smallest buffers, over
# lanes that break, beside ranks that choose otherwise; and who dies is named.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=60
export NCCLX_PROTOCOL=copy

# What passes over sockets.
export NCCLX_TRANSPORTS=tcp
runs "messages" 0 env NCCLX_LOG=warn,pml:info ncclxrun -n 2 "$mp/p2p"
like "are copied" 'large messages to rank [01] are copied, through 8 slots of 524288 bytes here and 8 there' "$err"
like "over the lanes for data" 'lane [1-9] to rank [01] is open' "$err"
runs "by default" 0 env -u NCCLX_PROTOCOL NCCLX_LOG=warn,pml:info ncclxrun -n 2 "$mp/p2p"
unlike "they are not" 'are copied' "$err"
runs "three ranks" 0 ncclxrun -n 3 "$mp/p2p"
runs "one slot" 0 env NCCLX_COPY_SLOTS=1 NCCLX_COPY_CHUNK=16K ncclxrun -n 2 "$mp/p2p"
runs "chunks that need several segments" 0 env NCCLX_COPY_CHUNK=1M NCCLX_DQPLB_NODE=3:2:100000 ncclxrun -n 3 "$mp/p2p"
runs "one rank copies, the other does not" 0 ncclxrun -n 1 env NCCLX_LOG=warn,pml:info NCCLX_COPY_CHUNK=5000 "$mp/p2p" : \
    -n 1 env NCCLX_PROTOCOL=zero-copy NCCLX_LOG=warn,pml:info "$mp/p2p"
like "and each sends as it chose" 'messages to rank 1 are copied' "$err"
unlike "both" 'messages to rank 0 are copied' "$err"
runs "ranks with slots of unlike size" 0 ncclxrun -n 1 env NCCLX_COPY_SLOTS=3 NCCLX_COPY_CHUNK=5000 "$mp/p2p" : -n 1 "$mp/p2p"
runs "requests" 0 ncclxrun -n 2 "$mp/requests"
runs "collectives" 0 ncclxrun -n 3 "$mp/coll"
for case in put "signal 300" shapes passive; do
    runs "windows: $case" 0 ncclxrun -n 3 "$mp/window" $case
    is "windows: $case: all took part" "ok 3" "$out"
done
runs "lanes that break" 0 env NCCLX_LOG=warn,pml:info NCCLX_LANE_TROUBLE=4:50:10 ncclxrun -n 2 "$mp/p2p"
like "did" 'lane [0-9]+ to rank [0-9]+ broke' "$err"

# Who dies is named.
for how in receiving sending; do
    hour=$(awk '{ print $1 + 1 }' /proc/uptime)
    NCCLX_ERRORS=return runs "rank 1 is killed: $how" 137 ncclxrun -n 2 --kill-grace 5 "$mp/death" $how "$hour"
    like "$how: the call that waits names it" '^NCCLX_ERR_PROC_FAILED.*rank 1 is lost' "$out"
done

# Who stops in the middle of a message ends no call before its time is over, and then it does.
for how in receiving sending; do
    hour=$(awk '{ print $1 + 1 }' /proc/uptime)
    NCCLX_ERRORS=return NCCLX_TIMEOUT=1 runs "rank 1 stops: $how" 3 ncclxrun -n 2 --kill-grace 0 "$mp/death" $how "$hour" stop
    like "$how: the call that waits ends" '^NCCLX_ERR_TIMEOUT.*deadline passed in ncclx_wait .* 268435456 bytes' "$out"
    like "$how: when its time is over" 'after ([0-9]{1,3}|1[0-9]{3}) ms' "$out"
done

# What passes through shared memory.
unset NCCLX_TRANSPORTS
for ranks in 2 3; do runs "messages on one node, $ranks ranks" 0 ncclxrun -n $ranks "$mp/p2p"; done
runs "collectives on one node" 0 ncclxrun -n 3 "$mp/coll"
for case in put "signal 300"; do runs "windows on one node: $case" 0 ncclxrun -n 3 "$mp/window" $case; done

runs "a protocol that is none" 2 env NCCLX_PROTOCOL=carrier ncclxrun -n 2 "$mp/p2p"
like "is named, with those that are" 'NCCLX_PROTOCOL is "carrier"; valid is one of zero-copy, copy' "$err"
runs "slots that are none" 2 env NCCLX_COPY_SLOTS=0 ncclxrun -n 2 "$mp/p2p"
like "are named" 'NCCLX_COPY_SLOTS is "0"' "$err"
done_testing
