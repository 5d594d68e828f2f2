#!/bin/sh
# summary.sh BUILD_DIR...: counts what `make check` last did there, shows what did not pass, and
# ends with "N passed, N failed, N skipped".  A test whose log ends with such a line counts as
# that many tests, every other test as one.
passed=0 failed=0 skipped=0

# count PASSED FAILED SKIPPED
count() {
  passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
}

for trs in $(for dir; do find "$dir" -name '*.trs'; done | LC_ALL=C sort); do
  log=${trs%.trs}.log
  counts=$(tail -n 2 "$log" |
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
  case $(sed -n 's/^:test-result: //p' "$trs") in
  PASS)
    grep -iH '^skipped: ' "$log" | sed 's/\.log:skipped//I'
    count ${counts:-1 0 0}
    ;;
  SKIP)
    echo "${log%.log}: $(grep -v '^SKIP ' "$log" | tail -n 1)"
    count ${counts:-0 0 1}
    ;;
  *)
    echo "failed: $log ends with"
    tail -n 20 "$log" | sed 's/^/  /'
    case $counts in
    '' | *' 0 '*) count 0 1 0 ;;
    *) count $counts ;;
    esac
    ;;
  esac
done
if [ $((passed + failed)) -eq 0 ]; then
  echo "no test ran"
  failed=1
fi
echo "$passed passed, $failed failed, $skipped skipped"
test $failed -eq 0
