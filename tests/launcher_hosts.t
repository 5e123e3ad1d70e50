#!/bin/bash
# launcher_hosts.t - jobs on several hosts. All of them are this machine: the agent runs what it is told right here, so that daemons, their
# tree and what goes through it are real, and only the network between hosts is not.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
agent=$top_srcdir/tests/agent
host=$(uname -n)
seven="-H a,b,c,d,e,f,g --tree-radix 2"

# hosts NAME STATUS ARGUMENTS...: a job whose hosts are reached through the agent
hosts() { local name=$1 want=$2; shift 2; job "$name" "$want" --rsh-agent "$agent" "$@"; }
sorted() { sort -n <<<"$out" | paste -sd,; }

# ---- What one host can ------------------------------------------------------------------------------------------------

hosts "seven hosts, three levels of daemons" 0 $seven -n 14 sh -c 'echo $PMIX_RANK $PMIX_HOSTNAME'
is "ranks are where they belong" "0 a,1 a,2 b,3 b,4 c,5 c,6 d,7 d,8 e,9 e,10 f,11 f,12 g,13 g" "$(sorted)"
hosts "this host and others" 0 -H b,localhost,c --map-by node -n 3 sh -c 'echo $PMIX_RANK $PMIX_HOSTNAME'
is "in the order of the list" "0 b,1 $host,2 c" "$(sorted)"
hosts "one host that is not this one" 0 -H far -n 1 sh -c 'echo $PMIX_HOSTNAME'
is "and is called what the user calls it" far "$out"
hosts "a user to log in as" 0 -H me@far,you@away --map-by node -n 2 sh -c 'echo $PMIX_RANK $PMIX_HOSTNAME'
is "is not part of the name" "0 far,1 away" "$(sorted)"
hosts "a chain of daemons" 0 -H a,b,c,d --tree-radix 1 --map-by node -n 4 sh -c 'echo $PMIX_RANK'
is "of four" 0,1,2,3 "$(sorted)"
hosts "all daemons started from here" 0 --no-tree-spawn $seven --map-by node -n 7 sh -c 'echo $PMIX_RANK'
is "and linked as a tree" 0,1,2,3,4,5,6 "$(sorted)"
hosts "also with this host as the first" 0 --no-tree-spawn -H "localhost,a,b,c" --tree-radix 1 --map-by node -n 4 sh -c 'echo $PMIX_RANK'
is "of four" 0,1,2,3 "$(sorted)"
hosts "daemons on ports of a range" 0 --port-range 21000-21999 $seven --map-by node -n 7 true

for i in 1 2 3; do
    hosts "more hosts than ranks need ($i)" 0 $seven -n "$i" sh -c 'echo $PMIX_RANK'
    is "start them all" "$i" "$(grep -c . <<<"$out")"
done
hosts "ranks that meet" 0 $seven -n 14 "$mp/exchange" hello
hosts "ranks that read the keys of all others" 0 $seven -n 14 "$mp/exchange" keys 1000
hosts "a rank that dies in a fence" 137 $seven -n 14 "$mp/exchange" die inside 11
like "is named" "rank 11 on f .*SIGKILL" "$err"

hosts "tagged output of many hosts" 0 $seven --tag-output -n 14 sh -c 'for i in 1 2 3 4 5 6 7 8 9; do printf "half of a line, "; echo "the other half"; done'
is "comes in whole lines" 126 "$(grep -cE '^\[[0-9]+\]<stdout> half of a line, the other half$' <<<"$out")"
hosts "much output" 0 $seven -n 14 sh -c 'head -c 1000000 /dev/zero | tr "\0" x; echo'
is "is complete" 14000014 "$(wc -c <"$scratch/out")"
new_mark
is "a slow reader gets all of it" 2800000 "$(TMPDIR=$mark ncclxrun --rsh-agent "$agent" $seven -n 14 sh -c 'head -c 200000 /dev/zero' | { sleep 1; wc -c; })"
nothing_left "and nothing is left"
for target in 0 9 13; do
    new_mark
    is "input for rank $target" 300000 "$(seq 300000 | TMPDIR=$mark ncclxrun --rsh-agent "$agent" $seven -n 14 --stdin $target sh -c 'if [ $PMIX_RANK = '$target' ]; then wc -l; fi')"
    nothing_left "input for rank $target: nothing is left"
done
new_mark
is "input for all" 14 "$(seq 100000 | TMPDIR=$mark ncclxrun --rsh-agent "$agent" $seven -n 14 --stdin all wc -l | grep -cx 100000)"
nothing_left "input for all: nothing is left"
new_mark
is "input that only some read" 100000 "$(seq 100000 | TMPDIR=$mark ncclxrun --rsh-agent "$agent" $seven -n 14 --stdin all sh -c 'if [ $PMIX_RANK = 5 ]; then wc -l; fi')"
nothing_left "and nothing is left"

# ---- What travels -----------------------------------------------------------------------------------------------------

mkdir "$scratch/wd"
there=$(cd "$scratch/wd" && ulimit -Sn 200 && umask 027 && A='x y
z' TMPDIR=$scratch/tmp ncclxrun --rsh-agent "$agent" -H a,b --map-by node -n 2 sh -c 'if [ $PMIX_RANK = 1 ]; then pwd; umask; ulimit -Sn; echo "$A"; fi')
is "directory, mask, limits and environment" "$scratch/wd 0027 200 x y z" "$(paste -sd' ' <<<"$there")"
secret=$(TMPDIR=$scratch/tmp ncclxrun --rsh-agent "$agent" -H a,b --map-by node -n 2 sh -c 'cat /proc/$PPID/cmdline; tr "\0" "\n" </proc/$PPID/environ | grep -ci secret || :' | tr '\0' ' ')
like "nothing secret in arguments or environment" "ncclxd --order ncclx-[0-9a-f-]+ *0" "$secret"

# ---- How it ends ------------------------------------------------------------------------------------------------------

hosts "a rank that fails on the lowest level" 5 $seven -n 14 sh -c '[ $PMIX_RANK = 11 ] && exit 5; exec sleep 60'
like "is named with its host" "rank 11 on f .*status 5" "$err"
is "alone" 1 "$(grep -c . <<<"$err")"
hosts "a rank that is killed" 137 $seven -n 14 sh -c '[ $PMIX_RANK = 8 ] && kill -KILL $$; exec sleep 60'
like "is named" "rank 8 on e .*SIGKILL" "$err"
hosts "a time limit" 124 --timeout 1 --kill-grace 1 $seven -n 14 sleep 60
hosts "ranks that ignore SIGTERM" 3 --kill-grace 1 $seven -n 14 sh -c 'trap "" TERM; [ $PMIX_RANK = 13 ] && exit 3; while :; do sleep 1; done'
hosts "a program that is nowhere" 127 $seven -n 14 "$scratch/none/such"
like "is named" "cannot run '.*none/such' on " "$err"
hosts "a directory that is nowhere" 2 $seven -n 14 --wdir "$scratch/none/such" true
like "is named" "cannot enter the directory '.*none/such' on " "$err"

# ---- Starts that fail -------------------------------------------------------------------------------------------------

job "no agent" 1 --rsh-agent "$scratch/none/agent" -H a,b -n 2 true
like "is named" "ncclxd on a cannot be started: .*none/agent" "$err"
job "an agent that fails" 1 --rsh-agent "sh -c 'echo no way >&2; exit 9'" -H a,b -n 2 true
like "host, status and output are shown" "ncclxd on a .*status 9: no way" "$err"
printf '#!/bin/sh\n[ "$1" = f ] && { echo "f is down"; exit 255; }\nexec "%s" "$@"\n' "$agent" >"$scratch/down"; chmod +x "$scratch/down"
job "one host of the lowest level that cannot be reached" 1 --rsh-agent "$scratch/down" $seven -n 14 true
like "is named, with what the agent printed" "ncclxd on f .*status 255: f is down" "$err"
job "no ncclxd there" 1 --rsh-agent "$agent" --prefix "$scratch/none" -H a,b -n 2 true
like "is said with host and path" "a cannot run $scratch/none/libexec/ncclxd" "$err"
is "on one line" 1 "$(grep -c . <<<"$err")"
printf '#!/bin/sh\n[ "$1" = b ] && exec sleep 60\nexec "%s" "$@"\n' "$agent" >"$scratch/hangs"; chmod +x "$scratch/hangs"
job "an agent that hangs" 1 --start-timeout 1 --rsh-agent "$scratch/hangs" -H a,b -n 2 true
like "is given up" "ncclxd on b did not connect within 1 s" "$err"
version=$(ncclxrun --version | grep -o '[0-9.]*$')
mkdir -p "$scratch/other/libexec"; sed "s/${version//./\\.}/${version//[0-9]/9}/g" "$top_builddir/launcher/ncclxd" >"$scratch/other/libexec/ncclxd"; chmod +x "$scratch/other/libexec/ncclxd"
job "another version there" 1 --rsh-agent "$agent" --prefix "$scratch/other" -H a,b -n 2 true
like "is said in one line" "ncclxd on a .*: ncclxd: this ncclxd is version ${version//[0-9]/9}, ncclxrun is $version" "$err"
is "once" 1 "$(grep -c . <<<"$err")"

# ---- Daemons that are lost --------------------------------------------------------------------------------------------

# The process of the rank's daemon: PMIX_RANK is in its environment, whatever the rank has become.
daemon_of() { local pid; for pid in $(grep -lzsx "PMIX_RANK=$1" $(marked | sed 's,.*,/proc/&/environ,') | cut -d/ -f3); do ps -o ppid= -p "$pid"; done | while read -r pid; do [ "$(cat "/proc/$pid/comm" 2>/dev/null)" = ncclxd ] && echo "$pid"; done | head -1; }
find_daemon() { inner=$(daemon_of "$1"); [ -n "$inner" ]; }
ready() { [ "$(grep -c ready "$scratch/out")" = 14 ]; }
gone() { [ ! -e "/proc/$launcher" ] || grep -q '^State:.Z' "/proc/$launcher/status" 2>/dev/null; }
# lost NAME SECONDS SIGNAL WHO...: the daemon, the guard or both of rank 10 get the signal; $err and $status
lost() {
    local name=$1 seconds=$2 signal=$3 inner guard pids= who; shift 3
    new_mark
    TMPDIR=$mark ncclxrun --rsh-agent "$agent" --silence-timeout 2 --kill-grace 1 $seven -n 14 sh -c 'setsid sleep 1000 & echo ready; exec sleep 1000' >"$scratch/out" 2>"$scratch/err" </dev/null &
    launcher=$!
    waits 30 ready; inner=
    waits 10 find_daemon 10; guard=$(ps -o ppid= -p "$inner")
    for who; do case $who in daemon) pids+=" $inner";; guard) pids+=" $guard";; launcher) pids+=" $launcher";; esac; done
    kill -"$signal" $pids
    if waits "$seconds" gone; then pass "$name: the job ends"; else fail "$name: the job ends" "$(marked_commands)"; kill -9 $launcher; fi
    wait $launcher 2>/dev/null; status=$?
    err=$(cat "$scratch/err")
    nothing_left "$name: nothing is left"
}
lost "a daemon that is killed" 8 KILL daemon
like "is named, with the signal" "ncclxd on f was killed by signal 9 \(SIGKILL\)" "$err"
is "the status tells" 1 $status
lost "its guard" 8 KILL guard
like "is named" "ncclxd.* killed" "$err"
lost "a daemon that is stopped" 15 STOP daemon
like "is named" "ncclxd on f has been silent for 2 s" "$err"
lost "a daemon and its guard" 8 KILL daemon guard
like "are named" "ncclxd on f (was killed|died)" "$err"
lost "a daemon and its guard that are stopped" 15 STOP daemon guard
like "are named" "ncclxd on f has been silent for 2 s" "$err"
lost "the launcher" 8 KILL launcher

# ---- Few descriptors --------------------------------------------------------------------------------------------------

new_mark
many=$(printf 'h%d,' {1..40}); many=${many%,}
(ulimit -n 256; TMPDIR=$mark timeout 60 ncclxrun --rsh-agent "$agent" -H "$many" --map-by node -n 40 echo here) >"$scratch/out" 2>"$scratch/err"
is "forty hosts with 256 descriptors a process" "0 40" "$? $(grep -c here "$scratch/out")"
nothing_left "and nothing is left"
# few_files LIMIT: the same, all started from here
few_files() {
    new_mark
    (ulimit -n "$1"; TMPDIR=$mark timeout 60 ncclxrun --rsh-agent "$agent" --no-tree-spawn --tree-radix 8 -H "$many" --map-by node \
        -n ${many_count:-40} sh -c 'echo here $(ulimit -n)') >"$scratch/out" 2>"$scratch/err"
}
few_files 80
is "forty hosts started from here with 80" "0 40" "$? $(grep -cx 'here 80' "$scratch/out")"
nothing_left "and nothing is left"
few_files 60
is "with 60 it is not tried" "2" $?
like "and it is said why" "starting 40 hosts from here needs 61 open files, the limit is 60" "$(cat "$scratch/err")"
nothing_left "and nothing is left"
if [ -n "${NCCLX_TEST_LONG:-}" ]; then
    many=$(printf 'h%d,' {1..200}); many=${many%,}
    many_count=200 few_files 256
    is "two hundred hosts started from here with 256" "0 200" "$? $(grep -cx 'here 256' "$scratch/out")"
    nothing_left "and nothing is left"
fi

done_testing
