#!/bin/bash
# window.t - windows between processes, over every way to reach memory: mapped, copied by the kernel, and by messages.
. "$(dirname "$0")/lib.sh"
window=$top_builddir/tests/mp/window
TEST_TIMEOUT=120
sanitized=$(is_sanitized && echo yes)

# job NAME RANKS CASE [NUMBER]
job() {
    local name=$1 ranks=$2; shift 2
    runs "$name: $ranks ranks, $*" 0 ncclxrun -n "$ranks" "$window" "$@"
    is "$name: $ranks ranks, $*: all took part" "ok $ranks" "$out"
}

# counts NAME RANKS...: with sanitizers each case meets all numbers of ranks in one way only, and the last of them in the others.
counts() {
    if [ "$1" = "as it comes" ] || [ -z "$sanitized" ]; then echo "${@:2}"; else echo "${!#}"; fi
}

some_cases() { # some_cases NAME ROUNDS
    local ranks
    for ranks in $(counts "$1" 1 2 3 5); do job "$1" $ranks put; done
    for ranks in $(counts "$1" 2 4); do job "$1" $ranks signal "$2"; done
    for ranks in $(counts "$1" 1 3 8); do job "$1" $ranks counter 300; done
    for ranks in $(counts "$1" 2 3); do job "$1" $ranks passive; done
    for ranks in $(counts "$1" 1 4 7); do job "$1" $ranks shapes; done
    for ranks in $(counts "$1" 1 2 3); do job "$1" $ranks errors; done
    for ranks in $(counts "$1" 1 2 5); do job "$1" $ranks split; done
    for ranks in $(counts "$1" 1 2); do job "$1" $ranks threads; done
    job "$1" 3 many 10
}

# Atomic operations: atomics NAME
atomics() {
    local ranks window=$top_builddir/tests/mp/window_atomics
    for ranks in $(counts "$1" 1 3); do job "$1" $ranks values; done
    for ranks in $(counts "$1" 2 3 5); do job "$1" $ranks shared 50; done
    for ranks in $(counts "$1" 1 4); do job "$1" $ranks large; done
    for ranks in $(counts "$1" 1 2); do job "$1" $ranks threads 30; done
    job "$1" 2 errors
}

# forms NAME
forms() {
    local ranks window=$top_builddir/tests/mp/window_forms
    for ranks in $(counts "$1" 1 3); do job "$1" $ranks iov 5; done
    for ranks in $(counts "$1" 2 5); do job "$1" $ranks requests 3; done
    for ranks in $(counts "$1" 1 4); do job "$1" $ranks several 20; done
    job "$1" 3 asleep 3
    for ranks in $(counts "$1" 1 5); do job "$1" $ranks plans 7; done
}

# epochs NAME
epochs() {
    local ranks window=$top_builddir/tests/mp/window_epochs
    for ranks in $(counts "$1" 1 3 5); do job "$1" $ranks locks 30; done
    for ranks in $(counts "$1" 1 3); do job "$1" $ranks threads 10; done
    job "$1" 3 passive
    for ranks in $(counts "$1" 1 2 5); do job "$1" $ranks groups 10; done
    job "$1" 4 star 5
    for ranks in $(counts "$1" 1 3); do job "$1" $ranks errors; done
    job "$1" 2 query
}

some_cases "as it comes" 5000
job "as it comes" 2 signal 100000
for ranks in 4 7 8 16; do job "as it comes" $ranks put; done
for ranks in 1 3 5 7 8 16; do job "as it comes" $ranks signal 1000; done

atomics "as it comes"
for ranks in 7 8 16; do window=$window'_atomics' job "as it comes" $ranks shared 10; done
forms "as it comes"
for ranks in 7 8 16; do window=$top_builddir/tests/mp/window_forms job "as it comes" $ranks several 10; done
epochs "as it comes"
for ranks in 7 8 16; do
    window=$top_builddir/tests/mp/window_epochs job "as it comes" $ranks locks 16
    window=$top_builddir/tests/mp/window_epochs job "as it comes" $ranks groups 5
done
NCCLX_SHM_DIRECT=0 epochs "kernel copies"
NCCLX_SHM_CMA=0 epochs "no kernel copies"
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 epochs "messages"
NCCLX_SHM_DIRECT=0 forms "kernel copies"
NCCLX_SHM_CMA=0 forms "no kernel copies"
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 forms "messages"
window=$top_builddir/tests/mp/window_forms NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 job "messages" 3 handlers 3
NCCLX_SHM_DIRECT=0 atomics "kernel copies"
NCCLX_SHM_CMA=0 atomics "no kernel copies"
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 atomics "messages"
NCCLX_SHM_DIRECT=0 some_cases "kernel copies" 600
NCCLX_SHM_CMA=0 some_cases "no kernel copies" 600
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 some_cases "messages" 600
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 job "messages" 16 put
NCCLX_SHM_DIRECT=0 NCCLX_SHM_CMA=0 job "messages" 16 signal 100
done_testing
