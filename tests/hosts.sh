# hosts.sh - for tests of several hosts, which run beside a cluster of them (tests/hosts-cluster). Source it after lib.sh, and call
# `hosts` first: the script starts again inside the cluster.
#
# on HOST COMMAND... is a program there: COMMAND as if somebody sat at HOST, in the same folder.
cluster=/run/cluster
script_arguments=("$@")
mp=$top_builddir/tests/mp

hosts() { # hosts COUNT [OPTION OF hosts-cluster...]
    local host
    if [ -z "${HOSTS_COUNT-}" ]; then
        rm -rf "$scratch" # exec runs no trap
        exec "$top_srcdir/tests/hosts-cluster" --control "${@:2}" "$1" "$0" "${script_arguments[@]}"
    fi
    names=()
    for ((host = 1; host <= HOSTS_COUNT; host++)); do names+=("h$host"); done
    for host in "${names[@]}"; do
        processes "$host" >"$cluster/$host/own-processes"
        files "$host" >"$cluster/$host/own-files"
    done
}

first_process() { echo "$(<"$cluster/$1/pid")"; }
processes() { pgrep --ns "$(first_process "$1")" --nslist net "${@:2}" | sort; } # processes HOST [-x NAME...]
files() { local root; root=/proc/$(first_process "$1")/root; (shopt -s nullglob dotglob; cd "$root" && printf '%s\n' tmp/* dev/shm/* | sort); }
# Ports somebody listens at, other than ssh's; and connections other than ssh's.
sockets() {
    local first; first=$(first_process "$1")
    awk 'FNR > 1 && ($4 == "0A" || $4 == "01") && $2 !~ /:0016$/ && $3 !~ /:0016$/ { print $2, $3 }' "/proc/$first/net/tcp" "/proc/$first/net/tcp6" 2>/dev/null
}

# What a job has left on any host, a line each: nothing, if all is well.
left_on_hosts() {
    local host pid
    for host in "${names[@]}"; do
        for pid in $(comm -13 "$cluster/$host/own-processes" <(processes "$host")); do
            [ -e "/proc/$pid" ] && echo "$host: process $pid $(tr '\0' ' ' <"/proc/$pid/cmdline")"
        done
        comm -13 "$cluster/$host/own-files" <(files "$host") | sed "s/^/$host: file /"
        sockets "$host" | sed "s/^/$host: socket /"
    done 2>/dev/null
}
# nothing_left_on_hosts NAME [SECONDS]: what has ended may take a moment to go
nothing_left_on_hosts() {
    local end=$((SECONDS + ${2:-5})) left
    while left=$(left_on_hosts); [ -n "$left" ]; do
        if [ $SECONDS -ge $end ]; then fail "$1" "$left"; clean_hosts; return; fi
        sleep 0.1
    done
    pass "$1"
}
clean_hosts() { # so that one test's mess is not the next one's
    local host pid file
    for host in "${names[@]}"; do
        for pid in $(comm -13 "$cluster/$host/own-processes" <(processes "$host")); do kill -9 "$pid"; done
        comm -13 "$cluster/$host/own-files" <(files "$host") | while IFS= read -r file; do rm -rf "/proc/$(first_process "$host")/root/$file"; done
    done 2>/dev/null
}

# job NAME STATUS ARGUMENTS OF ncclxrun...: on h1, as runs in lib.sh; afterwards nothing of it may be left on any host
job() {
    local name=$1 want=$2; shift 2
    runs "$name" "$want" on h1 ncclxrun "$@"
    nothing_left_on_hosts "$name: nothing is left"
}
# The same in the background: $launcher is a process that ends with its status.
start() {
    : >"$scratch/out"; : >"$scratch/err"
    { on h1 ncclxrun "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; exit; } 2>/dev/null & # where the shell says who was killed
    launcher=$!
}
says() { [ "$(grep -c -- "$2" "$scratch/$1")" -ge "$3" ]; } # says out|err PATTERN TIMES
# ends NAME STATUS SECONDS: what was started does so in time; $took is how many it was
ends() {
    local begin=$EPOCHREALTIME status
    if ! waits "$3" gone; then
        fail "$1" "still there after $3 s" "$(left_on_hosts)" "$(cat "$scratch/err")"
        clean_hosts
        return
    fi
    wait "$launcher" 2>/dev/null; status=$?
    took=$(awk "BEGIN { printf \"%.2f\", $EPOCHREALTIME - $begin }")
    out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
    is "$1" "$2" "$status"
    [ "$status" = "$2" ] || diag "$err"
}
gone() { [ ! -e "/proc/$launcher" ] || grep -q '^State:.Z' "/proc/$launcher/status" 2>/dev/null; }
# waits SECONDS COMMAND...: until it succeeds
waits() {
    local end=$((SECONDS + $1)); shift
    until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.05; done
}

# The network: a cable that leads nowhere behind the switch (nobody notices), one pulled out of the card (the host's card notices), a slow one.
cut() { ip link set dev "v${1#h}" nomaster; }
mend() { ip link set dev "v${1#h}" master switch up; }
unplug() { ip link set dev "v${1#h}" down; }
slow() { tc qdisc replace dev "v${1#h}" root tbf rate "$2" burst 64kb latency 50ms; } # slow HOST RATE: what HOST receives
