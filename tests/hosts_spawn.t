#!/bin/bash
# hosts_spawn.t - jobs that ranks ask for with PMIx_Spawn, on four hosts; kills in each phase. All ends soon, who was killed is named, and nothing
# is left on any host.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts 4 --agent
spawn=$mp/spawn
# A tree of three levels: h4 stands below h2.
four="--rsh-agent $HOSTS_AGENT --kill-grace 1 -H h1:2,h2:2,h3:2,h4:2 --tree-radix 2"

job "16 ranks of another job on four hosts" 0 $four -n 3 "$spawn" run 16 "$mp/life"
job "jobs whose ranks are all elsewhere" 0 $four -n 1 "$spawn" with pmix.host h4 2 "$mp/life" + run 2 "$mp/exchange" collect 1000
job "parents and children on all hosts meet" 0 $four --map-by node -n 4 "$spawn" meet 7
job "spawned ranks spawn" 0 $four --map-by node -n 2 "$spawn" nest 2 3
is "to the last" 3 "$(grep -c "depth 0" <<<"$out")"

on h3 sh -c 'printf "#!/bin/sh\nexit 0\n" >/tmp/program; chmod +x /tmp/program'
for host in h1 h2; do cp "/proc/$(first_process h3)/root/tmp/program" "/proc/$(first_process $host)/root/tmp/"; done
for host in h1 h2 h3; do files $host >"$cluster/$host/own-files"; done
job "a program that one host lacks is the parent's affair" 0 $four --map-by node -n 4 "$spawn" refused "EXECUTABLE NOT FOUND" 4 /tmp/program + run 3 true
like "and told" "PMIx_Spawn: cannot run '/tmp/program' on h4: No such file" "$err"

# ---- Kills ------------------------------------------------------------------------------------------------------------------

# hit NAME STATUS PATTERN SECONDS VICTIM HOST [NAME] -- ARGUMENTS: a job is hit so long after its first word; what is said of it matches
hit() {
    local name=$1 want=$2 pattern=$3 after=$4 victims=(); shift 4
    while [ "$1" != -- ]; do victims+=("$1"); shift; done; shift
    start $four "$@"
    waits 20 test -s "$scratch/out"
    sleep "$after"
    # shellcheck disable=SC2046 # a list of processes
    kill -KILL $("${victims[@]}")
    ends "$name" "$want" 20
    like "$name: is told" "$pattern" "$err"
    nothing_left_on_hosts "$name: nothing is left"
}
ranks_of() { processes "$1" -x "$2" | comm -23 - "$cluster/$1/own-processes" | head -1; }
inner() { local pid; for pid in $(processes "$1" -x ncclxd); do pgrep -P "$pid" -x ncclxd; done | head -1; }

busy=(--map-by node -n 4 sh -c "echo ready; exec $spawn many 1000 4 true")
for after in 0.1 ${NCCLX_TEST_LONG:+0.33 0.7}; do
    hit "the parent, $after s after its first spawn" 137 "rank 0 on h1 .*killed by signal 9" $after ranks_of h1 spawn -- "${busy[@]}"
    hit "a daemon, $after s after the first spawn" 1 "ncclxd on h3 was killed by signal 9" $after inner h3 -- "${busy[@]}"
    hit "a daemon below another, $after s after the first spawn" 1 "ncclxd on h4 was killed by signal 9" $after inner h4 -- "${busy[@]}"
done
hit "a daemon above another, 0.4 s after the first spawn" 1 "ncclxd on h2 was killed by signal 9" 0.4 inner h2 -- "${busy[@]}"
held=(--map-by node -n 4 "$spawn" hold 6 sleep 100)
hit "a spawned rank" 137 "rank [0-9] of ncclx-[^ ]*[.]1 on h4 .*killed by signal 9" 0.5 ranks_of h4 sleep -- "${held[@]}"
hit "a daemon with spawned ranks only" 1 "ncclxd on h4 was killed by signal 9" 0.5 inner h4 -- -n 1 "$spawn" hold 8 sleep 100
hit "the launcher" 137 "^$" 0.4 processes h1 -o -x ncclxrun -- "${busy[@]}"
job "--timeout ends it all" 124 $four --timeout 2 "${busy[@]}"

done_testing
