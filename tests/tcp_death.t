#!/bin/bash
# tcp_death.t - a peer behind a socket that dies, in each phase of the connection: whoever waits for it, or looks again and again, is told
# which rank it was, within two seconds; and one that stops ends no call before NCCLX_TIMEOUT does.
. "$(dirname "$0")/lib.sh"
mp=$top_builddir/tests/mp
TEST_TIMEOUT=60
export NCCLX_TRANSPORTS=tcp NCCLX_ERRORS=return

polls="test testall testany testsome get_status test-collective iprobe improbe test_signal test_signal_any test_signal_all win_test"
for how in connecting authenticated connected receiving sending signal fence collective $polls; do
    hour=$(awk '{ print $1 + 2 }' /proc/uptime)
    NCCLX_LOG=warn,tcp:info runs "rank 1 is killed: $how" 137 ncclxrun -n 2 --kill-grace 5 "$mp/death" $how "$hour"
    like "$how: the call names it" '^NCCLX_ERR_PROC_FAILED.*rank 1 is lost' "$out"
    if [[ $out =~ after\ (-?[0-9]+)\ ms ]] && [ "${BASH_REMATCH[1]}" -ge 0 ] && [ "${BASH_REMATCH[1]}" -lt 2000 ]; then pass "$how: in time"
    else fail "$how: in time" "$out"; fi
    like "$how: the launcher names it, too" 'rank 1 .*(killed|signal)' "$err"
done

# On a busy machine rank 0 may end of the closed connection long before the one that was killed is gone. Here a child of rank 1 sees to
# that, which holds none of its sockets.
hour=$(awk '{ print $1 + 2 }' /proc/uptime)
runs "rank 1 is killed, and the launcher sees that last" 137 ncclxrun -n 2 --kill-grace 8 "$mp/death" collective "$hour" late
like "the call that waits names it" '^NCCLX_ERR_PROC_FAILED.*rank 1 is lost' "$out"
like "in time, though a child of it lives on" 'after 1?[0-9]{1,3} ms' "$out"
like "and so does the launcher" '^ncclxrun: rank 1 [^;]* was killed by signal 9' "$err"

# Its parent goes on, so that the launcher does not know: the receive has to find out by itself.
hour=$(awk '{ print $1 + 2 }' /proc/uptime)
runs "rank 1 is killed, whom rank 0 has no connection to, and the launcher does not see it" 3 \
    ncclxrun -n 2 bash -c '"$0" unknown "$1"; code=$?; [ $code != 137 ] || sleep 4; exit $((code % 137))' "$mp/death" "$hour"
like "the receive names it" '^NCCLX_ERR_PROC_FAILED.*rank 1 is lost: number 1 of the job does not listen any more' "$out"
if [[ $out =~ after\ (-?[0-9]+)\ ms ]] && [ "${BASH_REMATCH[1]}" -ge 0 ] && [ "${BASH_REMATCH[1]}" -lt 2000 ]; then pass "in time"
else fail "in time" "$out"; fi

NCCLX_TIMEOUT=0.2 runs "one that stops ends no call before its time is over" 42 ncclxrun -n 2 "$mp/deadline" messages
done_testing
