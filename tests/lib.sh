# lib.sh - TAP for bash test scripts. Source it, call the functions, end with `done_testing`.
#
# $top_builddir and $top_srcdir are set by make check; without them the script's own place and ./build are used.
set -u
top_srcdir=${top_srcdir:-$(cd "$(dirname "${BASH_SOURCE[1]}")/.." && pwd)}
top_builddir=${top_builddir:-$top_srcdir/build}
export PATH=$top_builddir/launcher:$PATH
export LSAN_OPTIONS=suppressions=$top_srcdir/tests/lsan.supp:print_suppressions=0 # of sanitized builds: what is not ours
tests_run=0
tests_failed=0
scratch=$(mktemp -d "${TMPDIR:-/tmp}/ncclx-test.XXXXXX")
trap 'rm -rf "$scratch"' EXIT

# The build under test has sanitizers: everything takes several times as long.
is_sanitized() { grep -q fsanitize "$top_builddir/config.status"; }

pass() { tests_run=$((tests_run + 1)); echo "ok $tests_run - $1"; }
fail() { # fail NAME [explanation...]
    tests_run=$((tests_run + 1)); tests_failed=$((tests_failed + 1)); echo "not ok $tests_run - $1"
    shift; [ $# -eq 0 ] || printf '%s\n' "$@" | sed 's/^/# /' >&2 # prove passes it on, where it hides other lines
}
skip() { tests_run=$((tests_run + 1)); echo "ok $tests_run - $1 # SKIP $2"; } # skip NAME REASON
skip_all() { echo "1..0 # SKIP $1"; exit 0; }
diag() { printf '%s\n' "$@" | sed 's/^/# /'; }

# is NAME EXPECTED ACTUAL
is() { if [ "$2" = "$3" ]; then pass "$1"; else fail "$1" "expected: $2" "     got: $3"; fi; }
# like NAME REGEX ACTUAL
like() { if [[ "$3" =~ $2 ]]; then pass "$1"; else fail "$1" "expected to match: $2" "got: $3"; fi; }
unlike() { if [[ "$3" =~ $2 ]]; then fail "$1" "expected not to match: $2" "got: $3"; else pass "$1"; fi; }
# runs NAME EXPECTED_STATUS COMMAND...: output in $out, errors in $err
runs() {
    local name=$1 want=$2 status; shift 2
    timeout -k 5 "${TEST_TIMEOUT:-60}" "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; status=$?
    out=$(cat "$scratch/out"); err=$(cat "$scratch/err")
    if [ "$status" = "$want" ]; then pass "$name"; else fail "$name" "status $status, expected $want: $*" "$err" "$out"; fi
}
done_testing() { echo "1..$tests_run"; [ "$tests_failed" -eq 0 ]; exit; }
