#!/bin/bash
# launcher.t - how a job ends: exit status, who is named, and that nothing is left.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
TEST_TIMEOUT=60
host=$(uname -n)

# ---- Programs that know nothing of ncclx ---------------------------------------------------------------------------

job "four ranks that succeed" 0 -n 4 true
is "say nothing" "" "$out$err"
job "a rank's exit status is the job's" 3 -n 2 sh -c '[ $PMIX_RANK = 1 ] && exit 3; sleep 60'
like "the rank, its host and the cause are named" "rank 1 .*$host.*3" "$err"
is "and nothing on standard output" "" "$out"
job "the first rank that fails counts" 5 -n 4 sh -c 'case $PMIX_RANK in 2) exit 5;; 3) sleep 3; exit 6;; *) sleep 60;; esac'
like "and is the one named" "rank 2 " "$err"
job "255 stays 255" 255 -n 1 sh -c 'exit 255'
job "a segmentation fault is 139" 139 -n 3 sh -c '[ $PMIX_RANK = 1 ] && kill -SEGV $$; sleep 60'
like "and named" "rank 1 .*(SIGSEGV|[Ss]egmentation)" "$err"
job "a killed rank is 137" 137 -n 3 sh -c '[ $PMIX_RANK = 2 ] && kill -KILL $$; sleep 60'
like "and named" "rank 2 .*(SIGKILL|[Kk]illed)" "$err"
job "a program that is not there is 127" 127 -n 2 "$scratch/none/such"
like "and named" "$scratch/none/such" "$err"
is "once" 1 "$(printf '%s\n' "$err" | grep -c none/such)"
job "a name that is not in PATH is 127" 127 -n 2 no-such-program-here
like "and named" "no-such-program-here" "$err"
echo text >"$scratch/text"
job "a file that cannot be executed is 126" 126 -n 2 "$scratch/text"
like "and named" "$scratch/text" "$err"
job "a directory is 126" 126 -n 2 "$scratch"
like "and called one" "$scratch' on .*: Is a directory" "$err"
printf '#!/no/such/interpreter\n' >"$scratch/script"
chmod +x "$scratch/script"
job "a script without its interpreter fails" 127 -n 2 "$scratch/script"
like "and is named, with the reason" "$scratch/script.*interpreter" "$err"
job "also seen from where the ranks start" 127 -n 2 --wdir "$scratch" ./script
like "with the reason" "interpreter" "$err"
new_mark
out=$( (ulimit -f 0; TMPDIR=$mark exec ncclxrun -n 2 true) 2>&1 | cat)
like "a limit that kills the daemon is told by its signal" "ncclxd on .* was killed by signal 25 \(SIGXFSZ\)" "$out"
nothing_left "and nothing is left"
echo echo >"$scratch/lines"; chmod +x "$scratch/lines"
job "a script without a first line for its interpreter fails" 126 -n 2 "$scratch/lines"
like "and says what is missing" "Exec format error.*#!" "$err"
job "--quiet only ends with the status" 3 --quiet -n 2 sh -c 'exit 3'
is "without a word" "" "$err"
job "the time limit is 124" 124 --timeout 0.5 --kill-grace 1 -n 2 sleep 60
like "and is said" "0\.5|time" "$err"
job "a job within its time limit" 0 --timeout 60 -n 2 true

job "grandchildren end with a failing rank" 3 -n 2 sh -c 'sleep 1000 & sh -c "sleep 1000 & sleep 1000" & [ $PMIX_RANK = 0 ] && exit 3; wait'
job "and with ranks that succeed" 0 -n 2 sh -c 'sleep 1000 >/dev/null 2>&1 & exit 0'
job "a rank that makes a session of its own takes it along" 3 -n 2 sh -c 'setsid sleep 1000 >/dev/null 2>&1 & sleep 0.2; exit 3'

# ---- Several programs ----------------------------------------------------------------------------------------------

job "two programs" 0 -n 1 sh -c 'echo first $PMIX_RANK' : -n 2 sh -c 'echo second $PMIX_RANK'
is "have ranks in the order they stand" "first 0,second 1,second 2" "$(sort <<<"$out" | paste -sd,)"
job "the second program's status" 4 -n 2 sleep 60 : -n 1 sh -c 'exit 4'
like "with its rank" "rank 2 " "$err"
job "a second program that is not there" 127 -n 1 sleep 60 : -n 1 no-such-program-here
job "options belong to the program they stand before" 0 -n 1 -x A=1 sh -c 'echo 0 $A' : -n 1 --wdir / sh -c 'echo "1 $A$PWD"'
is "and to no other" "0 1,1 /" "$(sort <<<"$out" | paste -sd,)"

# ---- Programs of ncclx ---------------------------------------------------------------------------------------------

job "ranks meet" 0 -n 5 "$mp/life"
is "each once" "rank 0 of 5,rank 1 of 5,rank 2 of 5,rank 3 of 5,rank 4 of 5" "$(sort <<<"$out" | paste -sd,)"
job "one rank" 0 -n 1 "$mp/life"
job "programs of one job meet" 0 -n 1 "$mp/life" : -n 2 "$mp/life" nothing
is "as one" "rank 0 of 3,rank 1 of 3,rank 2 of 3" "$(sort <<<"$out" | paste -sd,)"
job "ncclx_abort gives the code" 7 -n 3 "$mp/life" abort 1 7
like "and names the rank" "rank 1 " "$err"
job "also after the rank has closed all descriptors, the library's included" 7 -n 3 "$mp/life" close-and-abort 1 7
job "an error ends the job" 1 -n 3 "$mp/life" error 2
like "names the rank" "rank 2" "$err"
like "and says what was wrong" "1000000" "$err"
for when in before-init before-barrier after-barrier after-finalize; do
    case $when in before-barrier) action=exit;; *) action=exit-$when;; esac
    job "a rank that fails $when" 9 -n 3 "$mp/life" $action 1 9
    like "is named ($when)" "rank 1 " "$err"
done
job "a rank killed before init" 137 -n 3 "$mp/life" signal-before-init 1 9
like "is named" "rank 1 " "$err"
job "a rank killed after init" 137 -n 3 "$mp/life" signal 1 9
like "is named" "rank 1 " "$err"
job "a crash" 139 -n 3 -x ASAN_OPTIONS=handle_segv=0 "$mp/life" signal 2 11 # a sanitizer would end it with a status of its own
like "is named" "rank 2 " "$err"
job "leaving without finalize is an error" 1 -n 3 "$mp/life" return-without-finalize 1 0
like "that names the rank" "rank 1 .*finalize" "$err"

# ---- Again and again: a status that gets lost, a start that hangs --------------------------------------------------

repeat() { # repeat TIMES STATUS ARGUMENTS...: prints how often it ended otherwise
    local times=$1 want=$2 bad=0 i status; shift 2
    for ((i = 0; i < times; i++)); do
        TMPDIR=$mark timeout -k 5 60 ncclxrun --quiet "$@" </dev/null >/dev/null 2>&1; status=$?
        [ $status = $want ] || { bad=$((bad + 1)); echo "$i: status $status" >&2; }
    done
    echo $bad
}
new_mark
{ repeat 250 3 -n 2 sh -c 'exit 3' >"$scratch/a" 2>"$scratch/a.err" & repeat 250 3 -n 2 sh -c 'exit 3' >"$scratch/b" 2>"$scratch/b.err"; wait; }
is "500 times exit 3 is 500 times 3" "0 0" "$(cat "$scratch/a" "$scratch/b" | paste -sd' ')"
nothing_left "500 jobs leave nothing"
times=${TEST_LAUNCHES:-200}
new_mark
is "$times times 64 ranks of true" 0 "$(repeat $times 0 -n 64 true 2>"$scratch/c.err")"
diag $(cat "$scratch"/[abc].err | head -5)
nothing_left "and nothing is left"

done_testing
