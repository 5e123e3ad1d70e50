#!/bin/bash
# hosts_start.t - jobs on hosts with networks of their own: ranks meet, read each other's keys and end, whichever way daemons are started.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/hosts.sh"
hosts 16

placed() { sed -n 's/^rank \([0-9]*\) of '"$1"' on \(h[0-9]*\),.*/\1 \2/p' <<<"$out" | sort -n | paste -sd,; }
four="-H h1:4,h2:4,h3:4,h4:4"
by_four=$(for ((rank = 0; rank < 16; rank++)); do echo "$rank h$((rank / 4 + 1))"; done | paste -sd,)
all=$(IFS=,; echo "${names[*]}")
one_each=$(for ((rank = 0; rank < 16; rank++)); do echo "$rank h$((rank + 1))"; done | paste -sd,)

# ---- Four ranks on each of four hosts ---------------------------------------------------------------------------------------

job "sixteen ranks on four hosts" 0 $four "$mp/exchange" hello
is "are where they belong" "$by_four" "$(placed 16)"
is "and say nothing else" "" "$err"
job "the keys of every rank are read by every other" 0 $four "$mp/exchange" keys 1000
is "from all hosts" "$by_four" "$(placed 16)"
job "a fence that collects 1 MiB of each" 0 $four "$mp/exchange" collect 1048576
is "lets every rank read all" "$by_four" "$(placed 16)"
job "names published on one host are found on another, and taken back" 0 $four "$mp/names"
job "hosts that this one is not among" 0 -H h2:2,h3:2 "$mp/exchange" hello
is "do all the work" "0 h2,1 h2,2 h3,3 h3" "$(placed 4)"
job "hosts called by full name and by addresses" 0 -H "h1.cluster:2,10.99.0.2:2,[fd99::3]:2" "$mp/exchange" hello
is "are the same hosts" "0 h1,1 h1,2 h2,3 h2,4 h3,5 h3" "$(placed 6)"
job "and their ranks read each other's keys" 0 -H h1.cluster:2,10.99.0.2:2 "$mp/exchange" keys 100

# ---- Sixteen hosts --------------------------------------------------------------------------------------------------------------

ways=("--tree-radix 2")
[ -z "${NCCLX_TEST_LONG-}" ] || ways+=("--tree-radix 1" "--no-tree-spawn --tree-radix 2" "--tree-radix 32")
for way in "${ways[@]}"; do
    job "sixteen hosts, $way" 0 -H "$all" $way --map-by node -n 16 "$mp/exchange" keys 100
    is "have a rank each" "$one_each" "$(placed 16)"
done
for host in "${names[@]}"; do prlimit --pid "$(first_process $host)" --nofile=256:256; prlimit --pid "$(processes $host -x sshd | head -1)" --nofile=256:256; done
runs "256 descriptors a process are enough" 0 on h1 sh -c 'ulimit -n 256; exec "$@"' sh ncclxrun -H "$all" --no-tree-spawn --map-by node -n 32 \
    sh -c 'ulimit -n; exec "$@"' sh "$mp/exchange" hello
is "on every host" "32 32" "$(grep -cx 256 <<<"$out") $(grep -c 'of 32' <<<"$out")"

# ---- Strangers ------------------------------------------------------------------------------------------------------------------

# On the ports of the daemons of h1 and h2, from the first moment on: one that says nothing, one that speaks another protocol, one that says much.
cat >"$scratch/strangers" <<'TEXT'
while :; do
    for host in h1 h2; do
        for ((port = 20000; port < 20008; port++)); do
            (exec 5<>/dev/tcp/$host/$port && printf 'GET / HTTP/1.1\r\nHost: h\r\n\r\n' >&5 && echo hit >>"$0.hits" && timeout 1 cat <&5)
            (exec 5<>/dev/tcp/$host/$port && head -c 100000 /dev/urandom >&5)
            (exec 5<>/dev/tcp/$host/$port && sleep 3) &
        done
    done
    sleep 0.01
done 2>/dev/null >/dev/null
TEXT
on h8 bash "$scratch/strangers" & strangers=$!
sleep 0.3
job_in_noise() { runs "$1" 0 on h1 ncclxrun --port-range 20000-20007 -H h1,h2,h3,h4,h5,h6,h7 --tree-radix 2 --map-by node -n 7 "$mp/exchange" keys 1000; }
for ((try = 1; try <= ${NCCLX_TEST_LONG:+2}1; try++)); do job_in_noise "a start with strangers on every port (try $try)"; done
if [ -s "$scratch/strangers.hits" ]; then pass "who were there"; else fail "who were there"; fi
is "are not taken for ranks" 7 "$(grep -c 'of 7' <<<"$out")"
kill $strangers; kill $(pgrep -f "$scratch/strangers"); wait $strangers 2>/dev/null
nothing_left_on_hosts "and nothing is left" 10

# ---- Other clusters: one kind of address, another shell -------------------------------------------------------------------------

for family in 4 6; do
    runs "hosts with addresses of version $family only" 0 "$top_srcdir/tests/hosts-cluster" -$family 3 ncclxrun -H h1,h2,h3 --tree-radix 1 --map-by node -n 3 "$mp/exchange" keys 100
    is "have a rank each ($family)" "0 h1,1 h2,2 h3" "$(placed 3)"
done
by_agent='for what in hello "keys 1000" "collect 1048576"; do ncclxrun --rsh-agent "$HOSTS_AGENT" -H h1:4,h2:4,h3:4,h4:4 "$0" $what || exit; done'
runs "the same through a plain agent" 0 "$top_srcdir/tests/hosts-cluster" --agent 4 bash -c "$by_agent" "$mp/exchange"
is "three times" "48" "$(grep -c 'of 16 on h' <<<"$out")"

done_testing
