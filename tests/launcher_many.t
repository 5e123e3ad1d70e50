#!/bin/bash
# launcher_many.t [RANKS...] - many ranks on one machine: all meet, and what a rank and the daemon take of memory is told.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
TEST_TIMEOUT=500
# The program itself where it is built: the script that stands for it there takes several times its time.
program=$mp/memory
if [ -x "$mp/.libs/memory" ]; then
    program=$mp/.libs/memory
    export LD_LIBRARY_PATH=$top_builddir/.libs${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
fi
[ $# -gt 0 ] || set -- 128 1024
# at_least LIMIT NUMBER: a limit of ulimit's allows so many
at_least() { [ "$1" = unlimited ] || [ "$1" -ge "$2" ]; }

for ranks; do
    if ! at_least "$(ulimit -Hn)" $((3 * ranks + 100)) || ! at_least "$(ulimit -u)" $((3 * ranks + 500)); then
        skip "$ranks ranks" "ulimit -Hn or ulimit -u is too low"
        continue
    fi
    for what in pmix ncclx; do
        begin=$EPOCHREALTIME
        job "$ranks ranks of $what" 0 -n $ranks "$program" $what
        is "each of them once" $ranks "$(sed -n "s/^rank \([0-9]*\) of $ranks: .*/\1/p" <<<"$out" | sort -u | wc -l)"
        awk -v what=$what -v ranks=$ranks -v begin=$begin -v end=$EPOCHREALTIME '/^rank/ { sum += $5; if ($5 > most) most = $5 } /^daemon/ { daemon = $2 }
            END { printf "# %d ranks of %s: %d KiB a rank, %d at most, the daemon %d KiB; %.1f s\n", ranks, what, sum / ranks, most, daemon, end - begin }' <<<"$out"
    done
done

done_testing
