#!/bin/bash
# oob.t - authenticated sockets between hosts that all have one address in common, several families, and cables that are cut.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"

hosts 2 --agent

peer=$top_builddir/tests/unit/oob_peer
mkfifo "$scratch/input" && exec 9<>"$scratch/input"

# Where the kernel would send from comes first; what is behind names plays no part.
like "the address towards another host comes first" '^(10\.99\.0\.1|\[fd99::1\]):' "$(on h1 "$peer" addresses h2)"
like "by IPv4" '^10\.99\.0\.1:' "$(on h1 "$peer" addresses 10.99.0.2)"
like "by IPv6" '^\[fd99::1\]:' "$(on h1 "$peer" addresses fd99::2)"
like "towards an inner network its own" '^172\.17\.0\.1:' "$(on h1 "$peer" addresses 172.17.0.9)"
like "towards this host the loopback" '^127\.0\.0\.1:' "$(on h1 "$peer" addresses 127.0.0.1)"
on h1 ip route add default via 10.99.0.2
like "towards nobody in particular the default route's" '^10\.99\.0\.1:' "$(on h1 "$peer" addresses)"
like "the others follow, link-local ones last" '10\.99\.0\.1:.*\[fd99::1\]:.*\[fe80:' "$(on h1 "$peer" addresses)"

# Numbers 0 on h1 and 5 on h2 listen at the same port.
on h1 "$peer" listen 0 4700 <&9 >"$scratch/h1.out" 2>"$scratch/h1.err" & listener=$!
on h2 "$peer" listen 5 4700 <&9 >"$scratch/h2.out" 2>"$scratch/h2.err" &
waits 10 test -s "$scratch/h1.out" && waits 10 test -s "$scratch/h2.out" || fail "both listen"

from_h2() { # from_h2 NAME STATUS EXPECTED MILLISECONDS ADDRESSES
    runs "$1" "$2" on h2 "$peer" connect 1 0 "$4" "$5"
    like "$1: $3" "$3" "$out"
}
from_h2 "an address that this host has, too, is tried last" 0 '^connected over 10\.99\.0\.1:4700$' 20000 \
    172.17.0.1:4700,10.99.0.1:4700
is "so the listener there does not see anybody" "" "$(cat "$scratch/h2.err")"
like "the right one knows who came" '^accepted 1 from 10\.99\.0\.2:' "$(tail -n 1 "$scratch/h1.out")"
from_h2 "alone, it leads to the wrong host" 1 '172\.17\.0\.1:4700: is of this job, but not the one that was looked for' 500 172.17.0.1:4700
like "who says so" 'looks for somebody else' "$(cat "$scratch/h2.err")"
is "in one line, however often" 1 "$(wc -l <"$scratch/h2.err")"
runs "another host's address that is not the right one" 0 on h1 "$peer" connect 2 0 20000 10.99.0.2:4700,10.99.0.1:4700
like "is left for the next" '^connected over 10\.99\.0\.1:4700$' "$out"
from_h2 "an address where nobody listens" 0 '^connected over \[fd99::1\]:4700$' 20000 172.17.0.1:4701,[fd99::1]:4700
from_h2 "an address that nobody has" 0 '^connected over 10\.99\.0\.1:4700$' 20000 10.99.7.7:4700,10.99.0.1:4700
from_h2 "a network without a route" 0 '^connected over 10\.99\.0\.1:4700$' 20000 192.0.2.1:4700,10.99.0.1:4700
local_address=$(on h1 ip -6 -o address show dev net0 scope link | sed -n 's/.* \(fe80[^/]*\).*/\1/p')
from_h2 "a link-local address, of whichever card" 0 "^connected over \[$local_address%[0-9]*\]:4700\$" 30000 "[$local_address]:4700"
is "nobody was taken for a stranger" "" "$(cat "$scratch/h1.err")"

cut h1
from_h2 "nobody answers" 1 'number 0 of the job could not be reached within 3000 ms: 10\.99\.0\.1:4700: (does not answer|No route to host)' \
    3000 10.99.0.1:4700
on h2 "$peer" connect 1 0 30000 10.99.0.1:4700 >"$scratch/late" 2>&1 & connector=$!
sleep 1
mend h1
wait $connector
is "until the cable is mended" 0 $?
like "then the host is found" 'connected over 10\.99\.0\.1:4700' "$(cat "$scratch/late")"

process=$(pgrep -P $listener) # nsenter's child
kill -STOP "$process"
from_h2 "a process that was stopped" 1 '10\.99\.0\.1:4700: does not answer' 2500 10.99.0.1:4700
kill -CONT "$process"
from_h2 "and that goes on" 0 '^connected' 20000 10.99.0.1:4700
is "nobody was let in twice" 7 "$(grep -c '^accepted 1' "$scratch/h1.out")"
done_testing
