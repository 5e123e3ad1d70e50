#!/bin/bash
# chaos.t [LAUNCHES [SEED]] - jobs of which a rank, a daemon, the launcher or several of them are killed at any time: each ends soon, with the
# right status, says what was killed, and leaves no process, file, segment or socket on any host. A failure tells the seed, with which the
# same is tried again. Without arguments: a small sample, or 1,000 launches with NCCLX_TEST_LONG=1.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
launches=${1-} seed=${2-}
: "${launches:=${NCCLX_TEST_LONG:+1000}}" "${launches:=12}"
hosts 3 --agent
bound=15 # seconds, on a busy machine; the grace before KILL is one of them
is_sanitized && bound=60

pick() { eval "$1=\${$((RANDOM % ($# - 1) + 2))}"; } # pick VARIABLE VALUE...

# The two processes of a host's daemon; a child that is about to become something else has the same name.
daemon_processes() {
    local pid
    for pid in $(processes "$1" -x ncclxd); do
        [ "$(ps -o sid= -p "$pid" | tr -d ' ')" != "$pid" ] || echo "$pid" $(pgrep -P "$pid" -x ncclxd)
    done
}

# The processes of a job that a kill may hit, by what they are.
victims() {
    local host=h$((RANDOM % HOSTS_COUNT + 1))
    case $1 in
    rank) for host in "${names[@]}"; do processes $host -x 'exchange|life|sleep|spawn' | comm -23 - "$cluster/$host/own-processes"; done ;;
    daemon) daemon_processes $host | tr ' ' '\n' ;;
    daemons) daemon_processes $host ;; # it and its guard at the same time
    launcher) processes h1 -o -x ncclxrun ;;
    esac
}

there_or_gone() { [ -n "$(victims launcher)" ] || gone; } # a short job may be over before anybody has looked
# one: a launch, a kill, the end. Prints what is wrong.
one() {
    local program placement victim how status pids pid killed= wants
    pick placement "${placements[@]}"
    pick program "exchange hello" "exchange keys 1000" "exchange collect 100000" "exchange wait 1" "exchange wait 3" "sleep 1000" life "life receive 1" \
        "spawn many 5 3 true" "spawn nest 2 2" "spawn hold 4 sleep 1000" "spawn meet 3"
    pick victim rank rank daemon daemon daemons launcher rank+rank daemon+rank launcher+daemon launcher+daemons nobody
    # shellcheck disable=SC2086 # lists of words
    case $program in
    sleep*) start --rsh-agent "$HOSTS_AGENT" --kill-grace 1 $placement $program ;;
    *) start --rsh-agent "$HOSTS_AGENT" --kill-grace 1 $placement "$mp/"$program ;;
    esac
    waits 30 there_or_gone || { echo "no launcher"; return; }
    sleep "0.$(printf %03d $((RANDOM % 600)))"
    for how in ${victim//+/ }; do
        mapfile -t pids < <(victims $how)
        [ ${#pids[@]} -gt 0 ] || continue
        pid=${pids[RANDOM % ${#pids[@]}]}
        [ -n "$pid" ] || continue
        # shellcheck disable=SC2086 # may be two
        kill -KILL $pid 2>/dev/null && killed+="$how "
    done
    what="$program, $placement, killed: ${killed:-nobody}"
    if [ -z "$killed" ] && [[ $program =~ wait|receive|sleep ]]; then kill -TERM $(victims launcher) && killed="the job ended "; fi
    if ! waits $bound gone; then echo "still there after $bound s"; return; fi
    wait "$launcher" 2>/dev/null; status=$?
    case $killed in
    "") wants="0" ;;
    "the job ended ") wants="143" ;;
    *launcher* | "rank " | "rank rank ") wants="137" ;;
    "daemon " | "daemons ") wants="1" ;;
    *) wants="1|137" ;;
    esac
    # A rank that had done its work, or a daemon of a job that was over, may be the one that was hit.
    [[ $program =~ wait|receive|sleep ]] || wants+="|0"
    [[ $status =~ ^($wants)$ ]] || echo "status $status instead of $wants"
    case $killed in
    rank*) [ $status = 0 ] || grep -q '^ncclxrun: rank .* was killed by signal 9' "$scratch/err" || echo "it is not said who was killed" ;;
    "daemon " | "daemons ") [ $status = 0 ] || grep -q '^ncclxrun: .*ncclxd' "$scratch/err" || echo "it is not said which daemon was killed" ;;
    daemon*) [ $status = 0 ] || [ -s "$scratch/err" ] || echo "no word about it" ;;
    esac
    for ((i = 0; i < 100; i++)); do
        left=$(left_on_hosts)
        [ -z "$left" ] && return
        sleep 0.1
    done
    echo "left: $left"
    clean_hosts
}

placements=("-H h1:4" "-H h1:2,h2:1,h3:2 --tree-radix 1" "-H h1,h2,h3:2" "-H h2:2,h3:2 --no-tree-spawn")
RANDOM=${seed:=$((EPOCHSECONDS % 30000))}
bad=0
for ((launch = 0; launch < launches; launch++)); do
    one >"$scratch/wrong" # not in a shell of its own, which would draw the same numbers again
    [ -s "$scratch/wrong" ] || continue
    bad=$((bad + 1))
    [ $bad -gt 20 ] || diag "launch $launch of seed $seed: $what" "$(cat "$scratch/wrong")" "$(head -20 "$scratch/err")"
done
is "$launches launches end within $bound s with the right status and leave nothing (seed $seed)" 0 $bad

done_testing
