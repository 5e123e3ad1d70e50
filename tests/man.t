#!/bin/bash
# The manual says what there is: every public name, option and variable has an entry, nothing else has one, and what pages show as
# C compiles.
. "$(dirname "${BASH_SOURCE[0]}")/lib.sh"
man=$top_srcdir/man
header=$top_srcdir/runtime/ncclx.h
compiler=${CC:-cc}
cd "$man" || exit 1

# nothing NAME LIST: passes when the list is empty, otherwise shows it.
nothing() { if [ -z "$2" ]; then pass "$1"; else fail "$1" "$2"; fi; }
# missing FIRST SECOND: lines of the first list that the second lacks.
missing() { comm -23 <(sort -u <<<"$1") <(sort -u <<<"$2") | sed '/^$/d'; }
names_of() { sed -n '/^\.Sh NAME/,/^\.Nd/s/^\.Nm \([^ ]*\).*/\1/p' "$@"; }

# ---- The header -------------------------------------------------------------------------------------------------

plain_header=$("$compiler" -fpreprocessed -dD -E -P "$header" 2>/dev/null) || plain_header=$(cat "$header")
functions=$(grep -o '__typeof__(ncclx_[a-z0-9_]*)' <<<"$plain_header" | sed 's/.*(//; s/)//' | sort)
constants=$(grep -oE '\bNCCLX_[A-Z0-9_]+' <<<"$plain_header" | sort -u | grep -vxE 'NCCLX_H|NCCLX_ERR_LAST')
like "the header declares functions" "ncclx_init" "$functions"
nothing "each function has a page" "$(missing "$functions" "$(names_of ./*.3)")"
nothing "no function has two pages" "$(names_of ./*.3 | sort | uniq -d)"
nothing "each constant is in the manual" "$(missing "$constants" "$(grep -ohE '\bNCCLX_[A-Z0-9_]+' ./*.[137])")"
nothing "each constant in the manual exists" "$(missing \
    "$(grep -hE '^\.(Dv|Er|It (Dv|Er)) ' ./*.[137] | grep -oE '\bNCCLX_[A-Z0-9_]+')" "$constants")"
nothing "each result code has its number in ncclx_error(3)" "$(missing \
    "$(grep -oE '\bNCCLX_ERR_[A-Z_]+ = [0-9]+' <<<"$plain_header" | sed 's/ =//; /ERR_LAST/d')" \
    "$(sed -n 's/^\.It Er \(NCCLX_ERR_[A-Z_]*\) No (\([0-9]*\))$/\1 \2/p' ncclx_error.3)")"

# ---- Synopses ---------------------------------------------------------------------------------------------------

# C declarations of a page's SYNOPSIS. Only what stands there is used: an .In that is missing makes the compilation fail.
synopsis() {
    awk '/^\.Sh / { on = $2 == "SYNOPSIS"; next }
         !on { next }
         { line = $0; sub(/^\.[A-Z][a-z] ?/, "", line); gsub(/"/, "", line); }
         /^\.In / { print "#include <" line ">\n#ifdef __cplusplus\nextern \"C\" {\n#endif" }
         /^\.Fd / { name = line; sub(/#define /, "", name); print "#ifndef " name "\n#error no such macro: " name "\n#endif" }
         /^\.Vt / { print line }
         /^\.Ft / { printf "%s ", line }
         /^\.Fo / { printf "%s(", line; separator = "" }
         /^\.Fa / { printf "%s%s", separator, line; separator = ", " }
         /^\.Fc/ { print ");" }
         END { print "#ifdef __cplusplus\n}\n#endif" }' "$1"
}
declared=
for page in *.3; do
    synopsis "$page" >"$scratch/$page.c"
    declared+=$'\n'$(grep -o '\bncclx_[a-z0-9_]*(' "$scratch/$page.c" | tr -d '(')
    name="$page: the synopsis agrees with the header"
    if "$compiler" -std=gnu11 -Wall -Wextra -Wpedantic -Werror -fsyntax-only -I"$top_srcdir/runtime" "$scratch/$page.c" 2>"$scratch/err"
    then pass "$name"; else fail "$name" "$(cat "$scratch/err")"; fi
    names=$(names_of "$page" | grep -Fx "$functions")
    is "$page: name and synopsis list the same functions" "$(sort <<<"$names")" \
        "$(grep -o '\bncclx_[a-z0-9_]*(' "$scratch/$page.c" | tr -d '(' | grep -Fx "$functions" | sort)"
done
if command -v "${CXX:-c++}" >/dev/null; then
    cat "$scratch"/*.3.c >"$scratch/all.cpp"
    runs "all synopses compile as C++" 0 "${CXX:-c++}" -Wall -Wextra -Werror -fsyntax-only -I"$top_srcdir/runtime" "$scratch/all.cpp"
else
    skip "all synopses compile as C++" "no C++ compiler"
fi

# ---- References, form -------------------------------------------------------------------------------------------

pages=$(for page in *.[137]; do names_of "$page" | sed "s/\$/ ${page##*.}/"; done)
nothing "each reference leads to a page" "$(missing \
    "$(grep -hE '^\.(Xr|It Xr) ' ./*.[137] | grep -oE '\bncclx[a-z0-9_-]* [137]')" "$pages")"
nothing "each page is installed" "$(missing "$(printf '%s\n' *.[137])" "$(grep -oE '[a-z0-9_-]+\.[137]\b' local.mk)")"
if command -v mandoc >/dev/null; then
    nothing "mandoc has nothing to say" "$(mandoc -Tlint -Wwarning ./*.[137] 2>&1)"
else
    skip "mandoc has nothing to say" "mandoc is not installed"
fi
if command -v groff >/dev/null && groff -mdoc -z /dev/null 2>/dev/null; then
    nothing "groff has nothing to say" "$(for page in *.[137]; do groff -mdoc -Tutf8 -ww -z "$page" 2>&1; done)"
else
    skip "groff has nothing to say" "groff is not installed with its macros"
fi

# ---- Options ----------------------------------------------------------------------------------------------------

# Options as a page lists them: "Fl -help" is --help.
listed_options() {
    grep -E '^\.It Fl ' "$1" | sed 's/^\.It//' | grep -oE ' Fl -?[a-zA-Z][a-zA-Z-]*' | sed 's/ Fl /-/' | sort -u
}
# Options as --help lists them, at the beginning of lines.
real_options() { "$@" --help | grep -E '^ +-' | sed 's/  [^-].*//' | grep -oE '(^|[ ,])--?[a-zA-Z][a-zA-Z-]*' | tr -d ' ,' | sort -u; }

for program in launcher/ncclxrun runtime/ncclx-info runtime/ncclxcc; do
    name=${program##*/}
    real=$(real_options "$top_builddir/$program")
    like "$name --help lists options" "--version" "$real"
    listed=$(listed_options "$name.1")
    nothing "$name: each option is in the manual" "$(missing "$real" "$listed")"
    nothing "$name: each option of the manual exists" "$(missing "$listed" "$real")"
done

# The examples that need no program of the reader's own.
export PATH=$top_builddir/launcher:$top_builddir/runtime:$PATH
while read -r example; do
    case $example in *./* | *build/* | srun*) continue ;; *false) want=1 ;; *) want=0 ;; esac
    runs "example: $example" "$want" bash -c "cd '$scratch' && $example"
done < <(sed -n 's/^\.Dl \(.*\(ncclxrun\|ncclx-info\).*\)/\1/p' ncclxrun.1 ncclx-info.1)

# Whole programs that pages show.
for page in *.[137]; do
    sed -n '/^\.Bd -literal/,/^\.Ed/p' "$page" | sed '/^\.[BE]d/d; s/\\e/\\/g; s/^\\&//' >"$scratch/program.c"
    grep -q '^int main' "$scratch/program.c" || continue
    sed -i '/^}/q' "$scratch/program.c" # what follows a program is how it is started
    runs "$page: the program compiles" 0 ncclxcc -Wall -Werror -o "$scratch/program" "$scratch/program.c"
    runs "$page: the program runs" 0 ncclxrun -n 3 "$scratch/program"
done

# ---- Variables --------------------------------------------------------------------------------------------------

# "NAME default" of each. An empty default is written as "empty" in the manual.
real_variables=$("$top_builddir/runtime/ncclx-info" --config=table 2>/dev/null)
like "ncclx-info lists variables" "NCCLX_TIMEOUT" "$real_variables"
listed_variables=$(sed -n '/^\.Ss Read by programs/q; s/^\.It Ev \(NCCLX_[A-Z0-9_]*\) Bq \(.*\)$/\1 \2/p' ncclx_env.7 | tr -d '\\')
nothing "each variable is in the manual with its default" "$(missing "$real_variables" "$listed_variables")"
nothing "each variable of the manual exists" "$(missing "$listed_variables" "$real_variables")"
# The choices of a variable: from "valid: one of a, b" below its name, and from its entry in the manual.
real_choices=$("$top_builddir/runtime/ncclx-info" --config 2>/dev/null | awk '
    /^NCCLX_/ { name = $1 }
    /^    valid: one of / { sub(/.*one of /, ""); gsub(/,/, ""); for (i = 1; i <= NF; i++) print name, $i }')
listed_choices=$(awk '/^\.It Ev / { name = $3 } /^\.(Cm|It Cm) / { for (i = 2; i <= NF; i++) if ($i ~ /^[a-z][a-z_-]*$/) print name, $i }' ncclx_env.7)
like "ncclx-info lists choices" "NCCLX_ERRORS return" "$real_choices"
nothing "each choice is in the manual" "$(missing "$real_choices" "$listed_choices")"
done_testing
