#!/bin/bash
# spawn.t - jobs that ranks ask for with PMIx_Spawn, on one host and on four in a chain. All of these are this machine: the agent runs what it is
# told right here, the daemons and what they say to each other are real.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
spawn=$mp/spawn
hello=$top_builddir/examples/hello
chain="--rsh-agent $top_srcdir/tests/agent -H a,b,c,d --tree-radix 1 --map-by node"

# both NAME STATUS ARGUMENTS OF spawn...: by ranks of one host, and of four
both() {
    local name=$1 want=$2; shift 2
    job "$name, one host" "$want" -n 2 "$spawn" "$@"
    job "$name, four hosts" "$want" $chain -n 5 "$spawn" "$@"
}
lines() { grep -c "$1" <<<"$out"; }

# ---- What a rank gets -------------------------------------------------------------------------------------------------------

counts="1 3 7 16"
is_sanitized && counts="3 16"
for n in $counts; do
    both "$n ranks have a world of their own" 0 run $n "$hello"
    is "all of them" $n "$(lines "hello from rank [0-9]* of $n on")"
done
both "parents and 1 child meet, twice" 0 meet 1
both "parents and 7 children meet, twice" 0 meet 7
both "spawned ranks spawn" 0 nest 3 2
is "to the last" 2 "$(lines "depth 0")"
both "nine jobs in a row, and their ends are told" 0 many 9 2 true
job "a job goes on when its parents have ended" 0 -n 2 "$spawn" start 2 sh -c 'sleep 0.5; echo late'
is "and is heard" 2 "$(lines late)"
job "nobody waits for the answer" 0 -n 2 "$spawn" later 2 sh -c 'sleep 0.5; echo late'
is "all the same" 2 "$(lines late)"
job "several jobs at a time" 0 -n 2 "$spawn" start 2 sleep 1 + start 2 sh -c 'echo second' + run 3 sh -c 'echo third'
is "second and third" "2 3" "$(lines second) $(lines third)"

job "two programs, with variables and folders" 0 -n 1 "$spawn" pair
is "each has its own" "first 0 one $PWD
first 1 one $PWD
second 2 two words /" "$(sort <<<"$out")"

# with KEY VALUE PROGRAM...: the output of a job with this directive
with() { new_mark; env TMPDIR="$mark" timeout 60 ncclxrun -n 2 "$spawn" with "$1" "$2" 1 "${@:3}" 2>"$scratch/err" </dev/null; }
is "a variable is set" "x=y" "$(with pmix.envar.set NAME=x=y sh -c 'echo $NAME')"
is "and added to, before" "/z:$PATH" "$(PATH=$PATH with pmix.envar.prepnd PATH=/z sh -c 'echo ${PATH}')"
is "and behind" "old:new" "$(NAME=old with pmix.envar.appnd NAME=new sh -c 'echo $NAME')"
is "but not when it is there" "old" "$(NAME=old with pmix.envar.add NAME=new sh -c 'echo $NAME')"
is "and left out" "none" "$(NAME=old with pmix.envar.unset NAME sh -c 'echo ${NAME-none}')"
is "a folder" "/usr" "$(with pmix.wdir /usr pwd)"
is "what is not known is left out" "here" "$(with pmix.nonsense 1 echo here)"
is "unless it is required" "NOT-SUPPORTED" "$(with '!pmix.nonsense' 1 echo here)"
is "no hosts are added" "NOT-SUPPORTED" "$(with pmix.addhost other echo here)"
like "which is explained" "rank 0: PMIx_Spawn: pmix.addhost is not possible" "$(<"$scratch/err")"
is "a host that is none of ours" "JOB FAILED TO MAP" "$(with pmix.host other echo here)"
is "a place that is none" "BAD-PARAM" "$(with pmix.mapby nowhere echo here)"
job "hosts are chosen" 0 $chain -n 3 "$spawn" with pmix.host b,d 4 sh -c 'echo $PMIX_HOSTNAME'
is "among those there are" "b b d d" "$(sort <<<"$out" | paste -sd ' ')"

# ---- Output -----------------------------------------------------------------------------------------------------------------

job "lines tell the job" 0 --tag-output -n 2 "$spawn" start 2 sh -c 'echo one' + run 1 sh -c 'echo two >&2'
is "by its number, then the rank" "[0]<stdout> spawned
[1.0]<stdout> one
[1.1]<stdout> one" "$(sort <<<"$out")"
is "on standard error too" "[2.0]<stderr> two" "$err"
job "files, too" 0 --output "$scratch/files" -n 1 "$spawn" run 2 sh -c 'echo $PMIX_RANK'
is "tell the job" "0 1" "$(cat "$scratch/files/rank.1.0.out" "$scratch/files/rank.1.1.out" | paste -sd ' ')"
job "two megabytes come whole" 0 -n 1 "$spawn" run 2 sh -c 'head -c 1000000 /dev/zero | tr "\0" "x"; echo'
is "to the last byte" 2000002 "$(wc -c <"$scratch/out")"
new_mark
env TMPDIR="$mark" timeout 60 ncclxrun -n 1 "$spawn" start 2 yes 2>/dev/null | head -1 >"$scratch/first"
nothing_left "a reader that has enough ends it all"
runs "--timeout tells where all ranks are" 124 ncclxrun --timeout 1 -n 2 "$spawn" hold 2 sleep 100
like "by their processes" "4 of 4 ranks are running:.*rank 0 is process [0-9]*.*rank 1.1 is process" "$err"
like "and what they do" "rank 1 of ncclx-[^ ]*\.1 on .* not in the library: process [0-9]* \(sleep\)" "$err"

# ---- Failures ---------------------------------------------------------------------------------------------------------------

both "a program that is missing is the parent's affair" 0 refused "EXECUTABLE NOT FOUND" 3 /nonexistent + run 2 true
like "and the user hears of it" "ncclxrun: rank 0 on .*: PMIx_Spawn: cannot run '/nonexistent' on" "$err"
both "a file that is no program, too" 0 refused "APPLICATION NOT EXECUTABLE" 2 /etc/passwd + run 2 true
job "more ranks than slots, when that is forbidden" 0 --no-oversubscribe -H localhost:3 -n 2 "$spawn" \
    refused "INSUFFICIENT RESOURCES" 2 true + run 1 true
job "requests without end" 0 --quiet -n 2 "$spawn" flood 300 true
like "are bounded, and answered" "^(2[0-9][0-9]|300) jobs$" "$out"
job "requests that make no sense" 0 -n 2 "$spawn" hostile

both "a spawned rank that fails ends everything" 3 hold 3 sh -c '[ $PMIX_RANK = 1 ] && exit 3; sleep 100'
like "and is named with its job" "rank 1 of ncclx-[^ ]*\.1 on [^ ]* \(pid [0-9]*\) exited with status 3; ending the other" "$err"
both "also when its parents have ended" 5 start 2 sh -c 'sleep 0.7; exit 5'
both "one that is killed" 139 hold 2 sh -c 'sleep 0.2; kill -SEGV $$'
like "is named" "rank [01] of ncclx-[^ ]*\.1 on .*killed by signal 11" "$err"
job "one that aborts" 99 $chain -n 2 "$spawn" hold 5 "$spawn" refused NONE 1 true
like "as well" "rank 0 of ncclx-[^ ]*\.1 on .* aborted the job with code 99" "$err"
job "a parent that fails ends its children" 7 -n 2 sh -c '[ $PMIX_RANK = 1 ] && { sleep 0.5; exit 7; }; exec '"$spawn"' hold 2 sleep 100'

# ---- Nothing grows ----------------------------------------------------------------------------------------------------------

# What a job holds after so many others: descriptors of the daemon (its guard holds less), and files of libpmix, which itself keeps one of
# a page, and an entry in its index, for each namespace that there has been.
held() {
    local pid
    for pid in $(marked); do
        case $(cat "/proc/$pid/comm") in
        ncclxd) ls "/proc/$pid/fd" | wc -l >>"$scratch/descriptors" ;;
        ncclxrun) find "/dev/shm/ncclx-$pid-"* -type f | grep -cv 'smlockseg\|initial' >"$scratch/held" ;;
        esac
    done
    echo "$(sort -n "$scratch/descriptors" | tail -1) $(<"$scratch/held")"
    rm "$scratch/descriptors"
}
held_after() {
    env TMPDIR="$mark" timeout 60 ncclxrun -n 1 "$spawn" many "$1" 2 "$hello" + start 1 sh -c 'echo now; sleep 100' >"$scratch/out" 2>&1 </dev/null &
    waits 60 grep -q now "$scratch/out"
    held
    kill %%; wait %% 2>/dev/null
}
new_mark
if is_sanitized; then
    skip "20 jobs leave as much as 2" "the other build shows it"
else
    few=$(held_after 2); many=$(held_after 20)
    is "20 jobs leave as much as 2: descriptors, files" "$few" "$many"
    nothing_left "and nothing in the end"
fi

done_testing
