# every.sh - all programs of several ranks over a way that the script chooses: what passes by shared memory has to pass by it, too.
# Source it after lib.sh.
#
# every START TRANSPORTS all|odd|even [PROGRAM...]: START NAME STATUS RANKS COMMAND... runs a job, as `runs` in lib.sh; each has to have the
# size asked for, and bytes have to pass by just these TRANSPORTS, such as "shm tcp". odd, even: one half of the jobs, or the other. PROGRAM...:
# only these. NCCLX_TEST_LONG=1: all of them, with more rounds and cases.
#
# Not here are programs that move no data between ranks, but ask PMIx or live and die: exchange, keys, life, memory, names, spawn, surroundings,
# upcalls (tests/tree.t looks).
#
# partings START TRANSPORTS [HOW...]: the last of four ranks, which is behind a socket, stops, or is killed in all phases of a connection.

# What each rank has said at its end: "RANKS RANKS_WITH_BYTES... TRANSPORT..." as one line, without what ranks told themselves.
passed() {
    awk '/ pml: info: passed by / {
             for (i = 1; i < NF; i++) {
                 if ($i == "rank" && !seen[$(i + 1)]++) ranks++
                 if ($i == "by") { name = $(i + 1); sub(":", "", name); bytes[name] += $(i + 2) + $(i + 5) }
             }
         }
         END {
             printf "%d ranks", ranks
             for (i = split("shm tcp", names, " "); i > 0; i--) if (bytes[names[i]] > 0) list = " " names[i] list
             print list
         }' <<<"$err"
}

# each STATUS RANKS PROGRAM [ARGUMENT...]
each() {
    local want=$1 ranks=$2 program=$3 name; shift 3
    case " ${every_only:-$program} " in *" $program "*) ;; *) return ;; esac
    case $every_half$((every_count++ % 2)) in odd1 | even0) return ;; esac
    name="$program${*:+ }$*, $ranks ranks by $every_transports"
    case $program in cg | heat) program=$top_builddir/examples/$program ;; *) program=$top_builddir/tests/mp/$program ;; esac
    NCCLX_LOG=warn,pml:info $every_start "$name" "$want" "$ranks" "$program" "$@"
    is "$name: that many took part, and so it passed" "$ranks ranks $every_transports" "$(passed)"
}

every() {
    local every_start=$1 every_transports=$2 every_half=$3 every_only=${*:4} every_count=0 case rounds=1 more=0
    [ -z "${NCCLX_TEST_LONG:-}" ] || { every_half=all; rounds=20; more=1; }
    each 0 4 p2p
    each 0 4 requests
    each 0 4 comm
    each 0 4 errors
    each 0 4 threads
    each 0 4 coll
    each 0 4 grid -e $((more ? 3 : 60)) all=6144,32768,65536
    each 0 4 grid -o 4 -e $((more ? 1 : 8))
    each 0 4 grid -r $((more ? 200 : 10))
    export NCCLX_CHECK=1
    each 0 4 coll
    each 0 4 window put
    export NCCLX_ERRORS=return NCCLX_TIMEOUT=60
    each 0 4 check
    each 0 3 check finalize
    unset NCCLX_CHECK NCCLX_ERRORS NCCLX_TIMEOUT
    for case in put passive shapes errors split threads; do each 0 4 window $case; done
    each 0 3 window busy $((more ? 5 : 3))
    each 0 4 window signal $((100 * rounds))
    each 0 4 window counter $((50 * rounds))
    each 0 4 window many $((5 * rounds))
    for case in values large errors "shared $((10 * rounds))" "threads $((10 * rounds))"; do each 0 4 window_atomics $case; done
    for case in "iov $((3 * rounds))" "requests $((2 * rounds))" "several $((5 * rounds))" "asleep 2" "plans $((3 * rounds))"; do
        each 0 4 window_forms $case
    done
    for case in "locks $((5 * rounds))" "threads $((3 * rounds))" "groups $((3 * rounds))" "star $((3 * rounds))" passive errors query; do each 0 4 window_epochs $case; done
    each 0 4 signals $((200 * rounds))
    each 0 4 behind 128
    each 0 4 huge 3000001
    each 0 4 burst order
    each 0 4 burst first "$scratch/come"
    each 0 4 crowd 1
    each 0 4 ten
    each 0 4 absent 2
    each 0 4 profile
    each 0 4 lifecycle
    is_sanitized || each 0 3 no_memory # which has a malloc of its own
    each 0 4 cg "$top_srcdir/examples/data/1138_bus.mtx"
    each 0 4 heat --size 90 61 --steps $((20 * rounds)) --out "$scratch/heat.ppm"
}

# The last rank stops: NCCLX_TIMEOUT ends every call of rank 0 that waits. It is killed: each call that waits for it names it, in time.
partings() {
    local start=$1 transports=$2 how hour; shift 2
    local phases=("${@:-connecting authenticated connected unknown receiving sending signal fence collective}")
    NCCLX_TIMEOUT=0.2 NCCLX_ERRORS=return NCCLX_LOG=warn,tcp:info $start "NCCLX_TIMEOUT ends every call that waits, by $transports" 42 4 \
        "$top_builddir/tests/mp/deadline" messages
    like "also for one behind a socket" 'rank 0 on [^ ]*: tcp: info: connected to rank 3' "$err"
    for how in ${phases[*]}; do
        hour=$(awk '{ print $1 + 2 }' /proc/uptime)
        NCCLX_ERRORS=return NCCLX_LOG=warn,tcp:info $start "rank 3 is killed by $transports: $how" 137 4 "$top_builddir/tests/mp/death" $how "$hour"
        case $how in # in the others rank 0 may never be connected
        connecting | authenticated | unknown) ;;
        *) like "$how: it was behind a socket" 'rank 0 on [^ ]*: tcp: info: connected to rank 3' "$err" ;;
        esac
        like "$how: the call that waits names it" '^NCCLX_ERR_PROC_FAILED.*rank 3 is lost' "$out"
        if [[ $out =~ after\ (-?[0-9]+)\ ms ]] && [ "${BASH_REMATCH[1]}" -ge 0 ] && [ "${BASH_REMATCH[1]}" -lt 2000 ]; then pass "$how: in time"
        else fail "$how: in time" "$out"; fi
    done
}
