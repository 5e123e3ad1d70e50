#!/bin/bash
# launcher_surroundings.t - what a rank finds: environment, directory, limits, descriptors, signals and processors.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
. "$(dirname "${BASH_SOURCE[0]}")/launcher.sh"
ulimit -c 0

# field NAME: of what tests/mp/surroundings printed
field() { sed -n "s/^$1: \{0,1\}//p" <<<"$out"; }
# within SETUP STATUS ARGUMENTS...: ncclxrun in a shell that was prepared by SETUP
within() {
    local setup=$1 status=$2; shift 2
    new_mark
    TMPDIR=$mark timeout -k 5 60 bash -c "$setup"$'\n''exec ncclxrun "$@"' within "$@" >"$scratch/out" 2>"$scratch/err" </dev/null; got=$?
    out=$(<"$scratch/out"); err=$(<"$scratch/err")
    [ $got = "$status" ] || fail "$setup; ncclxrun $*" "status $got, expected $status" "$err"
}

# ---- Descriptors, signals, limits ----------------------------------------------------------------------------------

within 'exec 5</dev/null 7>/dev/null 200</dev/null' 0 -n 2 "$mp/surroundings"
is "a rank has descriptors 0, 1 and 2, and no other" "0 1 2" "$(field descriptors | sort -u)"
own_handlers=ASAN_OPTIONS=handle_segv=0:handle_sigbus=0:handle_sigfpe=0 # a sanitizer's would be in the way
within 'trap "" PIPE USR1 TSTP' 0 -n 2 -x $own_handlers "$mp/surroundings"
is "signals the launcher ignores are not ignored by ranks" "" "$(field 'not default' | sort -u)"
new_mark
out=$(TMPDIR=$mark env --block-signal=TERM,USR1,CHLD timeout 60 ncclxrun -n 2 "$mp/surroundings" </dev/null 2>&1)
is "signals the launcher blocks are not blocked in ranks" "" "$(field blocked | sort -u)"
is "and it hears of its children nevertheless" "0 1 2" "$(field descriptors | sort -u)"
within 'umask 027' 0 -n 2 "$mp/surroundings"
is "the umask is the caller's" 027 "$(field umask | sort -u)"
within 'ulimit -S -n 256; ulimit -S -s 4096' 0 -n 2 "$mp/surroundings"
is "so are limits on descriptors" "256 $(ulimit -Hn)" "$(field nofile | sort -u)"
is "on core files" "0 0" "$(field core | sort -u)"
is "and on the stack" "$((4096 * 1024))" "$(field stack | sort -u | cut -d' ' -f1)"
within 'ulimit -n 256' 0 -n 64 true
nothing_left "64 ranks with ulimit -n 256 leave nothing"
within 'ulimit -n 40' 2 -n 64 true
like "too few descriptors are an error that names the remedy" "ulimit -H?n" "$err"
nothing_left "and nothing is left"

# ---- Directory and arguments ---------------------------------------------------------------------------------------

mkdir -p "$scratch/a b/c"
within "cd '$scratch/a b'" 0 -n 2 "$mp/surroundings"
is "ranks start where the launcher does" "$scratch/a b" "$(field directory | sort -u)"
within "cd '$scratch/a b'" 0 -n 2 --wdir c "$mp/surroundings"
is "or in a directory relative to that" "$scratch/a b/c" "$(field directory | sort -u)"
within : 0 -n 2 --wdir / "$mp/surroundings"
is "or in any other" / "$(field directory | sort -u)"
job "a directory that is not there" 2 -n 2 --wdir "$scratch/none" true
like "is named" "$scratch/none" "$err"
printf '#!/bin/sh\necho found\n' >"$scratch/a b/c/tool"
chmod +x "$scratch/a b/c/tool"
within "cd '$scratch'" 0 -n 1 --wdir "a b/c" ./tool
is "a relative program is looked for there" found "$out"
within "PATH='$scratch/a b/c':\$PATH" 0 -n 1 tool
is "a plain name in PATH" found "$out"
within : 0 -n 1 "$mp/surroundings" "" "a b" $'new\nline' '$HOME' '*' "it's" --help -n
is "arguments arrive as they are" '8|<>|<a b>|<new|line>|<$HOME>|<*>|<it'\''s>|<--help>|<-n>' "$(sed -n '/^arguments: /,$p' <<<"$out" | sed 's/^arguments\{0,1\}: //' | paste -sd'|')"

# ---- Environment ---------------------------------------------------------------------------------------------------

# Bytes of every variable but those of the process manager and the shell's own.
variables() { tr '\0\n' '\n\1' <"$1" | grep -av '^PMIX_\|^_=\|^PWD=\|^OLDPWD=\|^SHLVL=\|^TMPDIR=\|^NCCLX_' | LC_ALL=C sort; }
export PLAIN=value EMPTY= EQUALS=a=b=c QUOTES="a'b\"c\\d" LINES_TWO=$'one\ntwo\n' SPACES='  x  ' HIGH=$'\xff\xfe'
function_of_shell() { echo "from a function"; }
export -f function_of_shell
env -0 >"$scratch/before"
job "the environment" 0 -n 2 --output "$scratch/after" env -0
variables "$scratch/before" >"$scratch/want"
for rank in 0 1; do
    variables "$scratch/after/rank.$rank.out" >"$scratch/have"
    if difference=$(diff -a "$scratch/want" "$scratch/have"); then pass "reaches rank $rank byte for byte"; else fail "reaches rank $rank byte for byte" "$difference"; fi
done
job "a shell's functions" 0 -n 1 bash -c function_of_shell
is "can be called" "from a function" "$out"
job "-x sets variables" 0 -n 1 -x A=1 -x B=b=c -x C= -x PLAIN sh -c 'echo "$A|$B|${C-unset}|$PLAIN"'
is "to what it says" "1|b=c||value" "$out"
job "-x overrides" 0 -n 1 -x PLAIN=other sh -c 'env | grep -c "^PLAIN="; echo $PLAIN'
is "and leaves one" "1 other" "$(paste -sd' ' <<<"$out")"
job "-x with a name that is not set" 0 -n 1 -x NOT_SET_AT_ALL sh -c 'echo "${NOT_SET_AT_ALL-unset}"'
export PMIX_NAMESPACE=outer PMIX_RANK=17 PMIX_SERVER_URI41='outer;tcp4://127.0.0.1:1' PMI_RANK=3 PMIX_GDS_MODULE=nonsense
job "variables of an outer process manager" 0 -n 2 "$mp/life"
is "do not reach ranks" "rank 0 of 2,rank 1 of 2" "$(sort <<<"$out" | paste -sd,)"
job "not one of them" 0 -n 1 sh -c 'echo "$PMIX_NAMESPACE ${PMI_RANK-none} $PMIX_RANK"'
if [[ $out != *outer* && $out == *" none 0" ]]; then pass "is seen"; else fail "is seen" "$out"; fi
unset PMIX_NAMESPACE PMIX_RANK PMIX_SERVER_URI41 PMI_RANK PMIX_GDS_MODULE
mkdir "$scratch/lib"
echo "not a library" >"$scratch/lib/libpmix.so.2"
cp "$scratch/lib/libpmix.so.2" "$scratch/lib/libhwloc.so.15"
LD_LIBRARY_PATH=$scratch/lib job "a libpmix of the user's does not get into the launcher" 0 -n 1 sh -c 'echo $LD_LIBRARY_PATH'
is "but reaches ranks" "$scratch/lib" "$out"

# ---- Processors ----------------------------------------------------------------------------------------------------

allowed=$(grep Cpus_allowed_list /proc/self/status | cut -f2)
one=${allowed%%[-,]*}
within : 0 -n 2 --bind-to none "$mp/surroundings"
is "unbound ranks may use what the launcher may" "$("$mp/surroundings" | sed -n 's/^cpus: //p')" "$(field cpus | sort -u)"
within : 0 -n 1 --bind-to core "$mp/surroundings"
is "a rank bound to a core has that only" "$one" "$(field cpus | cut -d' ' -f1)"
new_mark
out=$(TMPDIR=$mark taskset -c "$one" timeout 60 ncclxrun -n 3 --bind-to core "$mp/surroundings" 2>"$scratch/err" </dev/null); status=$?
is "in a set of one cpu" 0 $status
is "every rank stays there" "$one" "$(field cpus | sort -u)"
out=$(TMPDIR=$mark taskset -c "$one" timeout 60 ncclxrun --report-bindings --bind-to core true 2>&1 </dev/null)
like "one rank a slot is the default, and the binding is reported" "rank 0.*$one" "$out"
is "for each rank" 1 "$(grep -c 'rank [0-9]' <<<"$out")"
if [ "$(nproc)" -ge 2 ]; then
    within : 0 -n 2 --map-by core --bind-to core "$mp/surroundings"
    is "two ranks on cores of their own" 2 "$(field cpus | sort -u | wc -l)"
else
    skip "two ranks on cores of their own" "one processor"
fi
job "the map" 0 --display map --bind-to none -n 2 true
like "is shown" "rank 1|1" "$out$err"

# ---- What others have left -----------------------------------------------------------------------------------------------

# As if every process of three jobs had been killed at the same time, one of which is somehow still there.
stale=/dev/shm/ncclx-$$-dead
for job in gone used young; do mkdir -m 700 "$stale-$job" && touch "$stale-$job/file"; done
touch -d '2 minutes ago' "$stale-gone" "$stale-used"
exec {used}<"$stale-used"
flock -s $used
within : 0 -n 2 true
is "a directory that nobody uses any more is removed by the next job, others are not" "used young" \
    "$(for job in gone used young; do [ ! -e "$stale-$job" ] || echo $job; done | paste -sd' ')"
rm -rf "$stale"-*

done_testing
