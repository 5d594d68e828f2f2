#!/bin/sh
# Hosts that open pawl_plugin.so, in C and in Python: the tokens that the interpreter decodes, on every
# target that was built, optimizing once; clear errors and status 1 where they must; and a host that traps
# what must not happen at its border, a hundred times, and beside LLVMs of other versions.
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

skip() { # WHAT: counts what is not tested
  skipped=$((skipped + 1))
  echo "skipped: $1"
}

targets=ref
if [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  targets="$targets cpu"
else
  skip 'hosts on cpu: built without LLVM'
fi

# A GPU that is a mock: kernels are compiled for the CPU and run on fibers.
PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
PAWL_NVRTC=$top_builddir/tests/.libs/mock_nvrtc.so
export PAWL_CUDA_DRIVER PAWL_NVRTC
test -f "$PAWL_CUDA_DRIVER" && test -f "$PAWL_NVRTC" || exit 99
targets="$targets cuda"

host_c() {
  "$top_builddir/examples/host" "$plugin" "$@"
}
host_py() {
  python3 "$top_srcdir/examples/host.py" "$plugin" "$@"
}
hosts=host_c
if command -v python3 >/dev/null; then
  hosts="$hosts host_py"
else
  skip 'the host in Python: no python3'
fi

"$top_builddir/tests/toy-decode" >"$dir/wanted" || exit 99
test "$(wc -w <"$dir/wanted")" = 32 || exit 99
stale='refused: session_use_cache: stale: max_seq_len is 32, 64 is asked for'
for host in $hosts; do
  for target in $targets; do
    $host $target >"$dir/out" 2>&1
    head -n 2 "$dir/out" >"$dir/tokens"
    check "tokens of $host on $target" cmp "$dir/wanted" "$dir/tokens"
    check "refusal of $host on $target" grep -q "^$stale" "$dir/out"
    check "counters of $host on $target" grep -q \
      '^plans.compiled 1, plans.regrown 1, .*runs 32, positions 32, .*cache.rebound 32, cache.stale 1' \
      "$dir/out"
  done
  $host nowhere >/dev/null 2>"$dir/err"
  check "$host says that there is no target" test $? = 1
  check "$host says so in a line" test "$(wc -l <"$dir/err")" = 1
  check "$host names the module" grep -q 'no target_nowhere.so' "$dir/err"
done
drive() {
  python3 "$top_srcdir/examples/driver.py" "$plugin" "$1" >"$dir/out" 2>&1
}
if command -v python3 >/dev/null; then
  for target in $targets; do
    check "a host that lets Pawl drive on $target" drive $target
    head -n 2 "$dir/out" >"$dir/tokens"
    check "tokens of that host on $target" cmp "$dir/wanted" "$dir/tokens"
    # A token and a chunk of one sequence, two rows to verify; a token, a chunk and a batch of two.
    check "plans of that host on $target" grep -q '^plans.compiled 9, ' "$dir/out"
  done
fi
plugin=$top_builddir/tests/.libs/plugin_other.so
test -f "$plugin" || exit 99
for older in version table; do
  for host in $hosts; do
    PAWL_TEST_PLUGIN=$older $host ref >"$dir/out" 2>"$dir/err"
    check "$host beside an older $older" test $? = 1
    check "$host says that the $older is older" grep -q 'is too old for this program' "$dir/err"
  done
done
for host in $hosts; do
  PAWL_TEST_PLUGIN=newer $host ref >"$dir/out" 2>&1
  head -n 2 "$dir/out" >"$dir/tokens"
  check "$host beside a newer table" cmp "$dir/wanted" "$dir/tokens"
done
plugin=$top_builddir/plugins/.libs/pawl_plugin.so
host_c ref "$dir/plan.json" >/dev/null
check 'the plan is dumped' grep -q '"graph_hash"' "$dir/plan.json"
"$top_builddir/examples/host" "$dir/none.so" >/dev/null 2>"$dir/err"
check 'no such module' test $? = 1
check 'the reason of the system' grep -q 'cannot open shared object' "$dir/err"

pawl=$top_builddir/tools/pawl
. "$top_srcdir/tests/host-tokens.sh"
"$top_builddir/tests/make-tiny-gguf" "$dir/llama.gguf" q8_0 || exit 99
"$top_builddir/tests/make-tiny-gguf" "$dir/gemma.gguf" gemma || exit 99
for target in $targets; do
  for family in llama gemma; do
    check "tokens of a $family model on $target as of pawl run" \
      tokens_as_run "$dir/$family.gguf" $target 'the other one' 24
  done
done

border() { # ROUNDS TARGET [LLVM]: the host that traps; says what it saw
  (cd "$dir" && LD_PRELOAD=${3:-} "$top_builddir/tests/host-border" "$plugin" "$2" "$1" 3>&1)
}
for target in $targets; do
  check "a hundred loads, runs and unloads with $target" border 100 $target
done

# Those of other versions that are installed, by development packages or not.
ours=$($READELF -d "$top_builddir/plugins/.libs/cpu_compiler.so" 2>/dev/null |
  sed -n 's/.*(NEEDED).*\[\(libLLVM[^]]*\)\]/\1/p')
seen=" $ours "
for llvm in /usr/lib/llvm-*/lib/libLLVM*.so* /usr/lib/*/libLLVM*.so*; do
  test -n "$ours" && test -f "$llvm" || continue
  name=$($READELF -d "$llvm" | sed -n 's/.*(SONAME).*\[\(.*\)\]/\1/p')
  case $seen in *" $name "*) continue ;; esac
  seen="$seen$name "
  border 2 cpu "$llvm" >"$dir/border" 2>&1
  check "beside $name" test $? = 0
  check "kernels are compiled beside $name" grep -q ', [1-9][0-9]* kernels compiled' "$dir/border"
  check "$name was there" grep -q 'LLVM of its own: yes' "$dir/border"
done
for version in 14 22; do
  case $seen in
  *"libLLVM-$version.so"* | *"libLLVM.so.$version."*) ;;
  *) skip "a host with LLVM $version: it is not installed, or Pawl is built without LLVM" ;;
  esac
done

echo "$passed passed, $failed failed, $skipped skipped"
test $failed = 0
