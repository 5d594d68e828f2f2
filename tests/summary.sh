#!/bin/sh
# summary.sh BUILD_DIR: counts what the last `make check` there did, names what did not pass, and
# ends with "N passed, N failed, N skipped".  A test whose log ends with such a line counts as
# many tests; every other test counts as one.
passed=0 failed=0 skipped=0
for trs in $(find "$1/tests" -name '*.trs' | LC_ALL=C sort); do
  log=${trs%.trs}.log
  name=${log#"$1"/}
  result=$(sed -n 's/^:test-result: //p' "$trs")
  counts=$(tail -n 2 "$log" | sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
  case $result in
  PASS | XFAIL) set -- "$1" ${counts:-1 0 0} ;;
  SKIP)
    set -- "$1" ${counts:-0 0 1}
    echo "skipped: ${name%.log}: $(grep -v '^SKIP ' "$log" | tail -n 1)"
    ;;
  *)
    set -- "$1" ${counts:-0 1 0}
    test "$3" -gt 0 || set -- "$1" "$2" 1 "$4"
    echo "failed: ${name%.log}: see $log"
    ;;
  esac
  grep '^skipped: ' "$log"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
done
test $((passed + failed)) -gt 0 || { echo "no test ran" >&2; failed=1; }
echo "$passed passed, $failed failed, $skipped skipped"
test $failed -eq 0
