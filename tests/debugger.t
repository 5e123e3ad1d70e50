#!/bin/bash
# debugger.t - the ways to a debugger that ncclxrun(1) shows, with gdb in batch mode.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
TEST_TIMEOUT=120
command -v gdb >/dev/null || skip_all "gdb is not installed"
life=$mp/life
if [ -x "$mp/.libs/life" ]; then # libtool's script in front of it is no program for a debugger
    life=$mp/.libs/life
    export LD_LIBRARY_PATH=$top_builddir/.libs
fi
gdb -batch -ex run --args true >"$scratch/out" 2>&1 || true
grep -q 'exited normally' "$scratch/out" || skip_all "gdb cannot run programs here: $(tail -1 "$scratch/out")"
export DEBUGINFOD_URLS= # it would ask the network for symbols

job "gdb in the place of each rank" 0 -n 3 gdb -batch -ex run -ex 'print 6*7' --args "$life"
is "runs each" 3 "$(grep -c 'exited normally' <<<"$out$err")"
is "and each is in the debugger's hands" 3 "$(grep -c '= 42' <<<"$out$err")"
like "ranks are one job" "rank 2 of 3" "$out"
job "a breakpoint in one of them" 0 -n 1 "$life" : -n 1 gdb -batch -ex 'set breakpoint pending on' -ex 'break ncclx_finalize' -ex run -ex backtrace -ex continue --args "$life"
like "is reached" "#0 .*ncclx_finalize" "$out$err"

# In the background, as a user would: errors in $scratch/err, status in $status after `finish`.
start() { new_mark; TMPDIR=$mark timeout -k 5 60 ncclxrun "$@" >"$scratch/out" 2>"$scratch/err" </dev/null & launcher=$!; }
finish() { wait "$launcher"; is "$1" "$2" $?; nothing_left "$1: nothing is left"; }
says() { grep -qE "$1" "$scratch/err"; }
# debug PID COMMAND...: attaches, and leaves the process alone again.
debug() {
    local pid=$1 arguments=(); shift
    for command; do arguments+=(-ex "$command"); done
    timeout -k 5 60 gdb -batch -p "$pid" "${arguments[@]}" >"$scratch/gdb" 2>&1 </dev/null
}

start -n 2 -x NCCLX_DEBUG_WAIT=1 "$life"
waits 20 says "rank 1 on .* waits for a debugger: gdb -p [0-9]+"
is "a rank that is to waits, and only that" 1 "$(grep -c 'waits for a debugger' "$scratch/err")"
sleep 0.5
if kill -0 "$launcher"; then pass "the job waits with it"; else fail "the job waits with it"; fi
debug "$(sed -n 's/.*gdb -p //p' "$scratch/err")" 'break ncclx_finalize' continue backtrace delete
like "and goes on when the debugger lets it" "#0 .*ncclx_finalize.*#1 .*main" "$(tr '\n' ' ' <"$scratch/gdb")"
finish "to its end" 0

start -n 2 -x NCCLX_DEBUG_WAIT=all "$life"
waits 20 says "rank 0 on .* waits" && waits 20 says "rank 1 on .* waits"
is "all wait" 2 "$(grep -c 'waits for a debugger' "$scratch/err")"
kill -TERM "$launcher"
finish "and end with the job" 143
job "a list that is none" 1 -n 2 -x NCCLX_DEBUG_WAIT=1- "$life"
like "is named" 'NCCLX_DEBUG_WAIT is "1-"; valid is all, or a list' "$err"
job "ranks that are not there" 0 -n 2 -x NCCLX_DEBUG_WAIT=2,5-7 "$life"

start -n 2 --display pids "$life" compute 1
waits 20 says "rank 1 on .* is process [0-9]+"
is "the process of each rank is told" 2 "$(grep -c 'rank [01] on .* is process [0-9]* (.*life)' "$scratch/err")"
debug "$(sed -n 's/.*rank 0 on .* is process \([0-9]*\).*/\1/p' "$scratch/err")" backtrace
like "and can be attached to" "main" "$(cat "$scratch/gdb")"
debug "$(pgrep -P "$launcher" -x ncclxrun)" 'print MPIR_proctable_size' 'print MPIR_proctable[1]' 'print MPIR_debug_state'
like "a parallel debugger finds them in the launcher's memory" "= 2.*host_name = .*\"$(uname -n)\".*executable_name = .*life\".*pid = $(sed -n 's/.*rank 1 on .* is process \([0-9]*\).*/\1/p' "$scratch/err")}.*= 1" \
    "$(tr '\n' ' ' <"$scratch/gdb")"
kill -TERM "$launcher"
finish "while it runs" 143

# Started by such a debugger, the launcher has ranks wait for it.
new_mark
cat >"$scratch/alive" <<EOS
sleep 2
for at in \$(grep -lzsxF "TMPDIR=$mark" /proc/[0-9]*/environ); do readlink "\${at%environ}exe"; done | grep -cx "$(realpath "$life")" | sed 's/^/alive: /'
EOS
TMPDIR=$mark timeout -k 5 60 gdb -batch -ex 'break main' -ex run -ex 'set var MPIR_being_debugged = 1' -ex 'break MPIR_Breakpoint' -ex continue \
    -ex 'print *MPIR_proctable@MPIR_proctable_size' -ex "shell sh '$scratch/alive'" -ex kill --args "$top_builddir/launcher/ncclxrun" -n 2 "$life" >"$scratch/out" 2>&1 </dev/null
like "a launcher in a debugger stops when all ranks run" "Breakpoint 2, .*MPIR_Breakpoint.*pid = [0-9]+}.*pid = [0-9]+}" "$(tr '\n' ' ' <"$scratch/out")"
is "and they wait for it" "alive: 2" "$(grep alive: "$scratch/out")"
nothing_left "and nothing is left when it is killed"
done_testing
