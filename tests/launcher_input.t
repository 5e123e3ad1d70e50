#!/bin/bash
# launcher_input.t - what a user gets wrong: one or two lines that say so, exit status 2, and nothing started.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"

# wrong PATTERN ARGUMENTS...: PATTERN is what the message has to name
wrong() {
    local pattern=$1 lines; shift
    job "$(printf '%.60s' "$*")" 2 "$@"
    like "says $pattern" "$pattern" "$err"
    lines=$(grep -c . <<<"$err")
    if [ "$lines" -le 2 ] && [ -z "$out" ]; then pass "in two lines at most, on standard error"; else fail "in two lines at most, on standard error" "$err" "$out"; fi
    [ -e "$scratch/started" ] && { fail "nothing is started"; rm -f "$scratch/started"; }
}
touch="touch $scratch/started"

wrong "program" 
wrong "program" -n 2
wrong "no-such-option" --no-such-option $touch
wrong "-z" -z $touch
wrong "-n" -n
for number in 0 -1 +1 1.5 two "" " 3" 3x 0x3 99999999999999999999 1000000000 -9999999999; do wrong "-n" -n "$number" $touch; done
wrong "-np" -np none $touch
wrong "--map-by" --map-by nonsense $touch
wrong "--bind-to" --bind-to "" $touch
wrong "--timeout" --timeout soon $touch
wrong "--timeout" --timeout -5 $touch
wrong "--timeout" --timeout nan $touch
wrong "--timeout" --timeout inf $touch
wrong "--kill-grace" --kill-grace 1e99 $touch
wrong "--stdin" --stdin some $touch
wrong "--stdin" -n 2 --stdin 2 $touch
wrong "--display" --display everything $touch
wrong "--quiet" --quiet=yes $touch
wrong "-x" -x =value $touch
wrong "-x" -x "" $touch
wrong "--host" --host "" $touch
wrong "--rsh-agent" --rsh-agent " " $touch
wrong "--rsh-agent" -H elsewhere.invalid --rsh-agent "ssh 'x" $touch
wrong "--prefix" --prefix relative $touch
for radix in 0 257 x; do wrong "--tree-radix" --tree-radix $radix $touch; done
for range in 5 0-5 5-4 1-65536 a-b; do wrong "--port-range" --port-range $range $touch; done
wrong "--start-timeout" --start-timeout 0 $touch
wrong "--silence-timeout" --silence-timeout -1 $touch
for hosts in localhost:0 localhost:-1 localhost:x localhost:99999999999 localhost, ,localhost :2 localhost:2:3; do wrong "$hosts|--host" --host "$hosts" -n 1 $touch; done
wrong "slot" --no-oversubscribe --host localhost:1 -n 2 $touch
wrong "':'" -n 1 $touch :
wrong "-n" $touch : -n 1 $touch
wrong "program" : -n 1 $touch
NCCLX_TIMEOUT=soon wrong "NCCLX_TIMEOUT" -n 2 $touch
NCCLX_LOG=louder wrong "NCCLX_LOG" -n 2 $touch
wrong "NCCLX_TIMEOUT" -n 2 -x NCCLX_TIMEOUT=soon $touch

job "--help" 0 --help
like "lists options on standard output" "--kill-grace" "$out"
job "--version" 0 --version
like "says the version" "ncclx.* [0-9]+\.[0-9]+\.[0-9]+" "$out"
is "on one line" 1 "$(grep -c . <<<"$out")"
job "-- ends the options" 0 -n 1 -- true
job "names that options resemble are not abbreviated" 2 --ver

done_testing
