# Sourced by the tests of the tool: runs it, counts, and ends with "N passed, N failed, N skipped".
pawl=$top_builddir/tools/pawl
test -x "$pawl" || { echo "no $pawl"; exit 99; }
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

pass() {
  passed=$((passed + 1))
}

fail() {
  failed=$((failed + 1))
  echo "FAILED: $*"
  sed 's/^/  /' "$dir/err" | head -n 5
}

skip() {
  skipped=$((skipped + 1))
  echo "SKIPPED: $*"
}

# tool ARGUMENT...: leaves $status, $dir/out and $dir/err.
tool() {
  "$pawl" "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
}

# check NAME COMMAND...: whether the command succeeds.
check() {
  what=$1
  shift
  if "$@"; then pass; else fail "$what"; fi
}

# same NAME WANTED GOT: whether two files are; a failure prints where they differ.
same() {
  if diff "$2" "$3" >"$dir/err"; then pass; else fail "$1"; fi
}

# succeeds NAME ARGUMENT...: status 0 and nothing on stderr, but that CPUs are fewer than threads.
succeeds() {
  what=$1
  shift
  tool "$@"
  check "$what: status $status" test $status = 0 -a -z "$(grep -v ' threads share the ' "$dir/err")"
}

# refused STATUS PATTERN ARGUMENT...: that status, one line on stderr that matches, no output.
refused() {
  wanted=$1 pattern=$2
  shift 2
  tool "$@"
  if [ $status = "$wanted" ] && [ "$(wc -l <"$dir/err")" = 1 ] && [ ! -s "$dir/out" ] &&
    grep -q -e "$pattern" "$dir/err"; then
    pass
  else
    fail "status $status, wanted $wanted and '$pattern': pawl $*"
  fi
}

# tiny NAME [ARGUMENT...]: a model file.
tiny() {
  file=$dir/$1
  shift
  "$top_builddir/tests/make-tiny-gguf" "$file" "$@" || exit 99
}

# unit_suites NAME...: suites of tests/unit side by side, whose checks are counted.
unit_suites() {
  for suite; do
    CK_RUN_SUITE=$suite "$top_builddir/tests/unit" >"$dir/suite.$suite" 2>&1 &
  done
  wait
  for suite; do
    cat "$dir/suite.$suite"
    counts=$(sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p' "$dir/suite.$suite")
    # shellcheck disable=SC2086
    set -- ${counts:-0 1 0}
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
  done
}

finish() {
  echo "$passed passed, $failed failed, $skipped skipped"
  test $failed = 0 -a $passed -gt 0
  exit
}
