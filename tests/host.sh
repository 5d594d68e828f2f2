#!/bin/sh
# A host that opens pawl_plugin.so decodes the tokens that the interpreter decodes, on every target that
# was built, optimizing once; and it gets a clear error and status 1 where it must.
plugin=$top_builddir/plugins/.libs/pawl_plugin.so
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

check() { # NAME COMMAND...: counts whether the command succeeds
  name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

"$top_builddir/tests/toy-decode" >"$dir/wanted" || exit 99
test "$(wc -w <"$dir/wanted")" = 16 || exit 99
for target in ref cpu; do
  if [ $target = cpu ] && [ ! -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
    echo "skipped: host on cpu: built without LLVM"
    skipped=$((skipped + 1))
    continue
  fi
  "$top_builddir/examples/host" "$plugin" $target "$dir/$target.json" >"$dir/$target" 2>&1
  head -n 1 "$dir/$target" >"$dir/tokens"
  check "tokens on $target" cmp "$dir/wanted" "$dir/tokens"
  check "one optimize on $target" grep -q '^1 optimizes, 16 runs, ' "$dir/$target"
  check "plan of $target" grep -q '"graph_hash"' "$dir/$target.json"
done

refused() { # MESSAGE ARGUMENT...: status 1 and that message
  message=$1
  shift
  "$top_builddir/examples/host" "$@" >/dev/null 2>"$dir/err"
  test $? = 1 && test "$(wc -l <"$dir/err")" = 1 && grep -q "$message" "$dir/err"
}
check "no such target" refused 'no target_nowhere.so' "$plugin" nowhere
check "no such module" refused 'cannot open shared object' "$dir/none.so"

echo "$passed passed, $failed failed, $skipped skipped"
test $failed = 0
