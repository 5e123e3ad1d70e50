#!/bin/bash
# hosts_data.t - messages, collectives, windows and programs between hosts: a rank on each, with sockets between all of them, or two, with
# sockets between hosts and shared memory on each.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
. "$(dirname "${BASH_SOURCE[0]}")/every.sh"
hosts 4
export NCCLX_SPIN=0 # no host knows that the others share its cores
TEST_TIMEOUT=150
examples=$top_builddir/examples
data=$top_srcdir/examples/data/1138_bus.mtx
apart="-H h1:1,h2:1,h3:1,h4:1" together="-H h1:2,h2:2,h3:2,h4:2"

# between NAME HOSTS PASSED COMMAND...: PASSED is how many took part, and by what bytes passed
between() {
    local name=$1 hosts=$2 passed=$3; shift 3
    # shellcheck disable=SC2086 # a list of words
    job "$name" 0 $hosts -x NCCLX_LOG=warn,tcp:info,pml:info "$@"
    is "$name: that many took part, and so it passed" "$passed" "$(passed)"
}
# windows PROGRAM CASE...: on eight ranks, two a host
windows() {
    local program=$1; shift
    between "$program $*, 8 ranks" "$together" "8 ranks shm tcp" "$mp/$program" "$@"
    is "$program $*, 8 ranks: all took part" "ok 8" "$out"
}

between "messages, a rank a host" "$apart" "4 ranks tcp" "$mp/p2p"
is "each of the four is connected to the others by sockets" 12 "$(grep -c 'tcp: info: connected to rank' <<<"$err")"
a_rank_a_host() { job "$1" "$2" -n "$3" -H h1:1,h2:1,h3:1,h4:1 "${@:4}"; }
every a_rank_a_host tcp all
partings a_rank_a_host tcp

windows window signal 300
between "messages, two ranks a host" "$together" "8 ranks shm tcp" "$mp/p2p"
between "communicators, two ranks a host" "$together" "8 ranks shm tcp" "$mp/comm"
windows window shapes
windows window_atomics shared 2
windows window_epochs locks 5
windows window_forms plans 3
between "more ranks on one host than on the others" "-H h1:3,h2:1,h3:2" "6 ranks shm tcp" "$mp/p2p"
job "the same without a log" 0 -H h1:3,h2:1,h3:2 "$mp/p2p"
is "says nothing" "" "$out$err"

# The same answer as on one host, bit by bit where sums are taken in the same order.
answer() { sed -n 's/^\(iterations\|residual\|error\) *//p' <<<"$out"; }
export NCCLX_COLL_ALLREDUCE=recursive_doubling
between "cg on one host" "-H h1:4" "4 ranks shm" "$examples/cg" "$data"
alone=$(answer)
between "cg on four" "$apart" "4 ranks tcp" "$examples/cg" "$data"
is "cg comes to the same" "$alone" "$(answer)"
unset NCCLX_COLL_ALLREDUCE

plate=(--size 90 61 --steps 400)
between "heat on one host" "-H h1:4" "4 ranks shm" "$examples/heat" "${plate[@]}" --out "$scratch/alone.ppm"
alone=$(grep ^fingerprint <<<"$out")
between "heat on four" "$apart" "4 ranks tcp" "$examples/heat" "${plate[@]}" --out "$scratch/apart.ppm"
is "heat has the same bits" "$alone" "$(grep ^fingerprint <<<"$out")"
if cmp "$scratch/alone.ppm" "$scratch/apart.ppm"; then pass "and the same picture"; else fail "and the same picture"; fi

done_testing
