#!/bin/bash
# launcher_signals.t - jobs that are ended from outside: signals to the launcher, its death, the daemon's death; and the dump of what ranks wait for.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

# start ARGUMENTS OF ncclxrun...: in the background; $launcher is its number
start() {
    new_mark
    : >"$scratch/out"; : >"$scratch/err" # the last job's would answer for this one
    TMPDIR=$mark ncclxrun "$@" >"$scratch/out" 2>"$scratch/err" </dev/null &
    launcher=$!
}
says() { [ "$(grep -c -- "$2" "$scratch/$1")" -ge "$3" ]; } # says out|err PATTERN TIMES
# ends NAME STATUS SECONDS: the launcher does so in time
ends() {
    local status
    if ! waits "$3" gone; then
        fail "$1" "still there after $3 s: $(marked_commands)"
        kill -9 "$launcher"; wait "$launcher" 2>/dev/null
        return
    fi
    wait "$launcher" 2>/dev/null; status=$?
    is "$1" "$2" "$status"
}
gone() { [ ! -e "/proc/$launcher" ] || grep -q '^State:.Z' "/proc/$launcher/status" 2>/dev/null; }
daemon() { local pid; for pid in $(marked); do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = ncclxd ] && echo "$pid"; done; }

is_stopped() { grep -qs '^State:.T' "/proc/$1/status"; }
stopped_ranks() {
    local pid
    for pid in $(marked); do [ "$(cat "/proc/$pid/comm")" = sh ] && is_stopped "$pid" && echo "$pid"; done 2>/dev/null | wc -l
}
both_are_stopped() { [ "$(stopped_ranks)" = 2 ]; }
goes_on() { ! is_stopped "$launcher"; }
daemon_is_there() { [ -n "$(daemon)" ]; }

for signal in TERM INT HUP; do
    case $signal in TERM) status=143;; INT) status=130;; HUP) status=129;; esac
    start -n 3 sh -c 'echo ready; exec sleep 60'
    waits 20 says out ready 3
    kill -$signal "$launcher"
    ends "SIG$signal ends the job" $status 20
    nothing_left "SIG$signal: nothing is left"
done

start --kill-grace 1 -n 2 sh -c 'trap "" TERM INT HUP; echo ready; while :; do sleep 1; done'
waits 20 says out ready 2
kill -TERM "$launcher"
ends "ranks that ignore SIGTERM end within the grace" 143 15
nothing_left "and leave nothing"

start --kill-grace 30 -n 2 sh -c 'trap "echo tidy; exit 0" TERM; echo ready; while :; do sleep 0.1; done'
waits 20 says out ready 2
kill -TERM "$launcher"
ends "ranks that tidy up have the grace for it" 143 20
is "and their output is shown" 2 "$(grep -c tidy "$scratch/out")"
nothing_left "and leave nothing"

start --kill-grace 30 -n 2 sh -c 'trap "" TERM INT; echo ready; while :; do sleep 1; done'
waits 20 says out ready 2
kill -INT "$launcher"
sleep 0.5
kill -INT "$launcher"
ends "a second SIGINT does not wait for the grace" 130 15
nothing_left "and leaves nothing"

start --kill-grace 1 -n 3 sh -c 'trap "" TERM; echo ready; [ $PMIX_RANK = 1 ] && exit 3; while :; do sleep 1; done'
ends "a rank that fails ends others that ignore SIGTERM" 3 20
nothing_left "and nothing is left"

start --kill-grace 1 -n 2 sh -c 'echo ready; kill -STOP $$; sleep 60'
waits 20 says out ready 2
kill -TERM "$launcher"
ends "stopped ranks end, too" 143 15
nothing_left "and leave nothing"

start -n 2 sh -c 'trap "echo heard" USR1; echo ready; while :; do sleep 0.1; done'
waits 20 says out ready 2
kill -USR1 "$launcher"
waits 20 says out heard 2
is "SIGUSR1 is passed on to every rank" 2 "$(grep -c heard "$scratch/out")"
kill -TSTP "$launcher"
if waits 20 is_stopped "$launcher"; then pass "SIGTSTP stops the launcher"; else fail "SIGTSTP stops the launcher"; fi
waits 20 both_are_stopped
is "and the ranks" 2 "$(stopped_ranks)"
kill -CONT "$launcher"
waits 20 goes_on
kill -USR1 "$launcher"
waits 20 says out heard 4
is "SIGCONT lets them go on" 4 "$(grep -c heard "$scratch/out")"
kill -TERM "$launcher"
ends "to their end" 143 20
nothing_left "and nothing is left"

# ---- Violence ------------------------------------------------------------------------------------------------------

start -n 3 sh -c 'trap "" TERM HUP PIPE; sleep 1000 & echo ready; while :; do sleep 1; done'
waits 20 says out ready 3
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
nothing_left "a launcher that is killed leaves no process, no file and no memory after 5 s"

start -n 3 "$mp/life" compute 1
waits 20 daemon_is_there
sleep 1
kill -KILL "$launcher"
wait "$launcher" 2>/dev/null
nothing_left "nor does one of ranks that use the library"

job "many ranks, started for longer than a daemon may be silent" 0 --silence-timeout 0.1 -n 512 true

start --kill-grace 1 -n 400 sleep 1000
waits 20 daemon_is_there
sleep 0.1
kill -TERM "$launcher"
ends "many ranks, ended while they are started" 143 20
nothing_left "and nothing is left"

start --silence-timeout 2 --kill-grace 1 -n 3 sh -c 'echo ready; sleep 1000'
waits 20 says out ready 3
outer=$(pgrep -P "$launcher" -x ncclxd); kill -STOP "$(pgrep -P "${outer:-0}" -x ncclxd)"
ends "ncclxd is stopped: an error" 1 20
like "which is said" "ncclxd on .* has been silent for 2 s" "$(cat "$scratch/err")"
nothing_left "and nothing is left then"

# ncclxd runs as two processes: the daemon and, above it, its guard.
for which in daemon guard both; do
    start -n 3 sh -c 'trap "" TERM HUP PIPE; sleep 1000 & echo ready; while :; do sleep 1; done'
    waits 20 says out ready 3
    outer=$(pgrep -P "$launcher" -x ncclxd); inner=$(pgrep -P "${outer:-0}" -x ncclxd)
    case $which in daemon) kill -KILL $inner;; guard) kill -KILL $outer;; both) kill -KILL $outer $inner;; esac
    if waits 20 gone; then
        wait "$launcher" 2>/dev/null; status=$?
        if [ $status -ne 0 ]; then pass "ncclxd is killed ($which): an error"; else fail "ncclxd is killed ($which): an error" "status 0"; fi
        like "which is said, with the signal" "ncclxd (on .* )?was killed" "$(cat "$scratch/err")"
    else
        fail "ncclxd is killed ($which): an error" "the launcher is still there" "$(marked_commands)"
        kill -9 "$launcher"
    fi
    nothing_left "ncclxd is killed ($which): nothing is left"
done

start -n 3 "$mp/life" receive 1
waits 20 daemon_is_there
sleep 1
kill -KILL $(daemon)
waits 20 gone
wait "$launcher" 2>/dev/null
nothing_left "ranks that wait in the library end, too, when ncclxd is killed"

start -n 2 sh -c 'setsid sh -c "trap \"\" TERM HUP; sleep 1000" & echo ready; sleep 1000'
waits 20 says out ready 2
kill -TERM "$launcher"
ends "processes in sessions of their own end with the job" 143 20
nothing_left "and are gone"

# ---- What ranks wait for -------------------------------------------------------------------------------------------

start -n 3 "$mp/life" receive 1
sleep 2
kill -QUIT "$launcher"
waits 20 says err "rank [012] on " 3
is "SIGQUIT makes every rank print what it waits for" 3 "$(grep -c 'rank [012] on ' "$scratch/err")"
like "a receive" "rank 1 on [^:]*: in ncclx_recv.*rank 1.*77" "$(grep 'rank 1 on' "$scratch/err")"
like "a barrier" "rank 0 on [^:]*: in ncclx_coll_barrier" "$(grep 'rank 0 on' "$scratch/err")"
kill -TERM "$launcher"
ends "and the job goes on until it is ended" 143 20
nothing_left "and leaves nothing"

start -n 2 "$mp/life" compute 1
sleep 2
kill -QUIT "$launcher"
waits 20 says err "rank [01] on " 2
like "a rank that computes says so" "rank 1 on [^:]*: waits for nothing" "$(grep 'rank 1 on' "$scratch/err")"
kill -TERM "$launcher"
ends "and is ended" 143 20

done_testing
