#!/bin/sh
# Model files, graphs as text, and vocabularies with texts: each fuzzed for $PAWL_FUZZ_SECONDS (5)
# under the address and undefined behaviour sanitizers.  What breaks is left in tests/fuzzers/found
# of the build folder.
seconds=${PAWL_FUZZ_SECONDS:-5}
seeds=$top_srcdir/tests/fuzz/seeds
place=$top_builddir/tests/fuzzers
unset MAKEFLAGS MFLAGS MAKELEVEL
mkdir -p "$place/found" || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

echo 'int LLVMFuzzerTestOneInput(const char *x, long n) { return x && n == -1; }' >"$dir/try.c"
clang=
for name in clang-19 clang; do
  if "$name" -fsanitize=fuzzer,address,undefined -o "$dir/try" "$dir/try.c" >"$dir/why" 2>&1; then
    clang=$name
    break
  fi
done
if [ -z "$clang" ]; then
  echo "no clang with libFuzzer: $(head -n 1 "$dir/why")"
  exit 77
fi
make -C "$place" -f "$top_srcdir/tests/fuzz/fuzz.mk" -j2 SOURCE="$top_srcdir" \
  BUILD="$top_builddir" CLANG="$clang" >"$dir/make.log" 2>&1 || {
  tail -n 30 "$dir/make.log"
  echo "FAILED: building the fuzzers"
  exit 1
}

passed=0 failed=0
fuzz() { # NAME MAX_LEN: in the folder of seeds $dir/NAME
  n_seeds=$(ls "$dir/$1" | wc -l)
  if "$place/fuzz_$1" -max_total_time="$seconds" -max_len="$2" -timeout=10 -rss_limit_mb=1024 \
    -malloc_limit_mb=128 -print_final_stats=1 -artifact_prefix="$place/found/$1-" \
    "$dir/$1" >"$dir/log" 2>&1; then
    n=$(sed -n 's/^stat::number_of_executed_units: *//p' "$dir/log")
    echo "$1: $n inputs in $seconds s, from $n_seeds seeds"
    if [ "${n:-0}" -ge 1000 ] && [ "$n_seeds" -gt 0 ]; then
      passed=$((passed + 1))
      return
    fi
    echo "FAILED: $1: that is too few"
  else
    tail -n 40 "$dir/log"
    echo "FAILED: $1"
  fi
  failed=$((failed + 1))
}

mkdir "$dir/gguf" "$dir/text" "$dir/tokenizer"
"$top_builddir/tests/bad-gguf" "$dir/gguf" >/dev/null || exit 99
cp "$top_srcdir"/tests/text/*.pawl "$top_srcdir"/tests/text/bad/* "$dir/text"
cp "$seeds"/tokenizer/* "$dir/tokenizer"
fuzz gguf 4096
fuzz text 4096
fuzz tokenizer 1024
echo "$passed passed, $failed failed, 0 skipped"
test $failed = 0
