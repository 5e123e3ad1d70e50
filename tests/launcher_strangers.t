#!/bin/bash
# launcher_strangers.t - jobs of several hosts, all of them this machine, while others try the ports on which their daemons wait for each other.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

# As ssh to one host that takes its time: until then the daemon above it waits.
cat >"$scratch/agent" <<'TEXT'
#!/bin/bash
[ "$1" != late ] || while [ -e "$LATE" ]; do sleep 0.05; done
shift
exec sh -c "$*"
TEXT
chmod +x "$scratch/agent"
export LATE=$scratch/late

low=$((24000 + $$ % 400 * 20)) # a range of its own, as far as this test can know
high=$((low + 19))
listening() { # ADDRESS PORT, in hexadecimal, of each socket in the range
    local where state
    while read -r _ where _ state _; do
        [ "$state" = 0A ] && ((0x${where##*:} >= low && 0x${where##*:} <= high)) && echo "${where%:*} ${where##*:}"
    done < <(cat /proc/net/tcp /proc/net/tcp6 2>/dev/null)
}
ports() { local port; for port in $(listening | cut -d' ' -f2); do echo $((0x$port)); done; }
start() { # start ARGUMENTS...: a job whose last host is late
    new_mark
    touch "$LATE"
    TMPDIR=$mark ncclxrun --rsh-agent "$scratch/agent" -H a,b,late --tree-radix 1 --port-range $low-$high "$@" \
        >"$scratch/out" 2>"$scratch/err" </dev/null &
    launcher=$!
    waits 20 some_port || fail "somebody listens" "$(cat "$scratch/err")"
}
some_port() { [ -n "$(ports)" ]; }
no_port() { [ -z "$(ports)" ]; }
visit() { # visit PORT COUNT WORDS: who say something and stay
    local i fd
    for ((i = 0; i < $2; i++)); do
        exec {fd}<>"/dev/tcp/127.0.0.1/$1" && [ -z "$3" ] || printf '%b' "$3" >&$fd
    done
} 2>/dev/null
visitors=
heard_of_http() { grep -q 'speaks HTTP' "$scratch/err"; }

start --map-by node -n 3 sh -c 'echo $PMIX_HOSTNAME'
sleep 0.5 # for a and b; late is not there
for port in $(ports); do
    (
        visit "$port" 80 'GET / HTTP/1.0\r\n\r\n'
        visit "$port" 80 '\0377garbage'
        visit "$port" 300 ''
        exec sleep 60
    ) &
    visitors+=" $!"
done
waits 10 heard_of_http || fail "strangers are noticed" "$(cat "$scratch/err")"
rm "$LATE"
wait $launcher
status=$?
kill $visitors
is "a job starts though its ports are tried hundreds of times" 0 $status
is "on all hosts" "a,b,late" "$(sort "$scratch/out" | paste -sd,)"
like "it says who came where" 'ncclxrun: [ab]: a connection from 127.0.0.1 was dropped: it speaks HTTP' "$(cat "$scratch/err")"
is "in few lines" yes "$([ "$(wc -l <"$scratch/err")" -le 12 ] && echo yes || cat "$scratch/err")"
nothing_left "nothing is left"

start --map-by node -n 3 sleep 60
rm "$LATE"
waits 20 no_port && pass "once all daemons are there, nobody listens any more" || fail "once all daemons are there, nobody listens any more" "$(ports)"
kill -TERM $launcher
wait $launcher
is "the job ends" 143 $?
nothing_left "nothing is left of it"

start --networks 127.0.0.0/8 --map-by node -n 3 true
is "listening where it is told to" 0100007F "$(listening | cut -d' ' -f1 | sort -u)"
rm "$LATE"
wait $launcher
is "is enough" 0 $?
nothing_left "nothing is left of that"
job "networks that this host does not have" 2 --rsh-agent "$scratch/agent" -H a,b --networks 255.255.255.255 -n 2 true
like "are named" 'no address of this host is of the networks 255.255.255.255' "$err"
job "and what is none" 2 --rsh-agent "$scratch/agent" -H a,b --networks 10.0.0.0/99 -n 2 true
like "is, too" '"10.0.0.0/99" is neither a network' "$err"
done_testing
