# launcher.sh - for tests of ncclxrun: starts jobs whose every process can be found afterwards, whoever its parent is by then. Source it after lib.sh.

# Every job has a TMPDIR of its own: it marks the daemon and all ranks, and shows the files they leave.
mp=$top_builddir/tests/mp
jobs_started=0
new_mark() { jobs_started=$((jobs_started + 1)); mark=$scratch/tmp/job-$jobs_started; mkdir -p "$mark"; in_memory_before=" $(echo /dev/shm/ncclx-*) "; }
marked() { grep -lzsxF "TMPDIR=$mark" /proc/[0-9]*/environ | cut -d/ -f3; }
marked_commands() { local pid; for pid in $(marked); do tr '\0' ' ' <"/proc/$pid/cmdline" 2>/dev/null; echo "($pid)"; done; }

# job NAME STATUS ARGUMENTS OF ncclxrun...: as runs in lib.sh; afterwards nothing of it may be left
job() {
    local name=$1 want=$2; shift 2
    new_mark
    runs "$name" "$want" env TMPDIR="$mark" ncclxrun "$@"
    nothing_left "$name: nothing is left"
}

# A process that has ended may take a moment to go; files of a job lie in its TMPDIR and, private ones, on /dev/shm.
nothing_left() {
    local i left=
    for ((i = 0; i < 50; i++)); do
        left=$(marked)$(ls -A "$mark")$(in_memory)
        [ -z "$left" ] && { pass "$1"; return; }
        sleep 0.1
    done
    fail "$1" "processes: $(marked_commands)" "files: $(ls -A "$mark")" "in memory: $(in_memory)"
    kill -9 $(marked) 2>/dev/null
}

# A job's private directory is called ncclx-PID-NOISE after the launcher's process; those that were there before, and those of other
# launchers that live, are no business of this test.
in_memory() {
    local path pid
    for path in /dev/shm/ncclx-*; do
        pid=${path#/dev/shm/ncclx-}; pid=${pid%%-*}
        [ -e "$path" ] && ! kill -0 "$pid" 2>/dev/null && [[ $in_memory_before != *" $path "* ]] && echo "$path"
    done
}

# waits SECONDS COMMAND...: until it succeeds
waits() {
    local end=$((SECONDS + $1)); shift
    until "$@"; do [ $SECONDS -lt $end ] || return 1; sleep 0.1; done
}
