#!/bin/bash
# examples.t - the examples do what their first lines say.
. "$(dirname "$0")/lib.sh"
examples=$top_builddir/examples
matrix=$top_srcdir/examples/data/1138_bus.mtx
TEST_TIMEOUT=120

field() { awk -v name="$1" '$1 == name { print $2 }' <<<"$out"; } # field NAME: its value in the output of cg
at_most() { # at_most NAME LIMIT VALUE
    if awk -v value="$3" -v limit="$2" 'BEGIN { exit !(value != "" && value + 0 <= limit + 0) }'; then pass "$1"
    else fail "$1" "$3 is more than $2"; fi
}

# By the commands that their first lines give.
compile() { # compile NAME FILES AND LIBRARIES
    runs "ncclxcc compiles $1" 0 "$top_builddir/runtime/ncclxcc" -Wall -Wextra -Werror "${@:2}" -o "$scratch/$1"
}
cd "$top_srcdir/examples" || exit 1
compile hello hello.c
compile ring ring.c
compile pingpong pingpong.c
compile cg cg.c cg_halo.c cg_system.c matrix_market.c -lm
cd "$scratch" || exit 1
runs "what ncclxcc compiled runs" 0 ncclxrun -n 2 "$scratch/cg" "$matrix"

runs "hello" 0 ncclxrun -n 4 "$examples/hello"
is "hello: each rank once" "0 1 2 3" "$(sed -n 's/^hello from rank \([0-9]*\) of 4 on .*/\1/p' <<<"$out" | sort -n | xargs)"
runs "hello without a launcher" 0 "$examples/hello"
like "hello without a launcher: a job of one" "rank 0 of 1 on ." "$out"

for ranks in 1 2 5; do
    runs "ring of $ranks" 0 ncclxrun -n $ranks "$examples/ring" 20
    like "ring of $ranks: the token counts every hop" "ring of $ranks ranks, 20 rounds: token $((ranks * 20))," "$out"
done
runs "ring: not a number" 2 ncclxrun -n 2 "$examples/ring" 3x

runs "pingpong" 0 ncclxrun -n 3 "$examples/pingpong" 64K
is "pingpong: one line a size" "$(printf '%s\n' bytes 0 $(for ((i = 1; i <= 65536; i *= 2)); do echo $i; done))" "$(awk '{ sub(",", "", $1); print $1 }' <<<"$out")"
runs "pingpong: one rank is too few" 2 ncclxrun -n 1 "$examples/pingpong"
like "pingpong: one rank is too few, and it says so" "needs two ranks" "$err"

for ranks in 1 2 3 4 7; do
    runs "cg on $ranks" 0 ncclxrun -n $ranks "$examples/cg" --stats "$matrix"
    is "cg on $ranks: the job's size" $ranks "$(field ranks)"
    at_most "cg on $ranks: residual" 1e-9 "$(field residual)"
    at_most "cg on $ranks: error" 1e-6 "$(field error)"
    iterations=$(field iterations) puts=$(field puts)
    if [ $ranks = 1 ]; then is "cg alone puts nothing" 0 "${puts%,}"
    else at_most "cg on $ranks: each rank put in each iteration" "${puts%,}" $((ranks * iterations)); fi
done

# A tridiagonal matrix of four rows, and mistakes in it.
small() { printf '%%%%MatrixMarket matrix coordinate real symmetric\r\n%% a comment\n\n4 4 7\n1 1 2\n2 2 2\r\n3 3 2e0\n4 4 2.0\n2 1 -1\n3 2 -1\n  4 3 -1.0  '; }
small >"$scratch/small.mtx"
runs "cg with more ranks than rows" 0 ncclxrun -n 7 "$examples/cg" "$scratch/small.mtx"
like "cg with more ranks than rows: counts both halves" "4 rows, 10 nonzeros" "$out"
runs "cg does not converge in one iteration" 1 ncclxrun -n 2 "$examples/cg" -i 1 "$matrix"
like "cg does not converge, and says so" "not converged" "$err"
runs "cg: --help" 0 ncclxrun -n 2 "$examples/cg" --help
like "cg: --help names its options" "usage: cg .*-t TOLERANCE.*-i ITERATIONS" "$out"
runs "cg: unknown option" 2 ncclxrun -n 2 "$examples/cg" --frob "$matrix"
runs "cg: no file" 1 ncclxrun -n 2 "$examples/cg" "$scratch/absent.mtx"
like "cg: no file, and it is named" "absent.mtx: No such file" "$err"

wrong() { # wrong NAME SED_SCRIPT MESSAGE
    small | sed "$2" >"$scratch/wrong.mtx"
    runs "cg: $1" 1 "$examples/cg" "$scratch/wrong.mtx"
    like "cg: $1, and where" "wrong.mtx: $3" "$err"
}
wrong "not a matrix" '1s/.*/hello/' 'line 1: not a Matrix Market file'
wrong "complex" '1s/real/complex/' "line 1: entries 'complex'"
wrong "missing entry" '$d' 'line 11: the file ends after 6 of 7'
wrong "one entry more" '4s/7/6/' 'line 11: more than the 6 entries'
wrong "row outside" '8s/4/5/' 'line 8: entry \(5, 4\) is outside'
wrong "row 0" '8s/4/0/' 'line 8: entry \(0, 4\) is outside'
wrong "negative row" '8s/4/-4/' 'line 8: an entry starts with'
wrong "no number" '9s/-1/one/' 'line 9: the entry has no value'
wrong "infinite" '9s/-1/inf/' 'line 9: the entry has no value'
wrong "junk behind" '9s/$/ 7/' "line 9: ' 7' is left over"
wrong "above the diagonal" '9s/2 1/1 2/' 'line 9: entry \(1, 2\) is above'
wrong "hostile sizes" '4s/.*/9000000000000000000 9000000000000000000 9000000000000000000/' 'line 12: the file ends after 7'
wrong "many rows" '4s/.*/4000000000 4000000000 7/' 'a row of the matrix is empty'
wrong "overflow" '4s/.*/99999999999999999999 4 7/' 'line 4: the size line'
wrong "indefinite" '6s/.*/2 2 -2/' 'the diagonal of row 2'
done_testing
