#!/bin/sh
# check.sh [--ci]: builds Pawl and runs its tests; the last line is "N passed, N failed,
# N skipped".  Tests of a real model run when it is in the cache folder.  With --ci the models
# and the packages of its float64 reference are fetched, warnings are errors, the unit tests run
# in two more builds, under sanitizers and by clang, and those with threads under ThreadSanitizer.
# Where llvm-config-22 is installed a further build tests the kernels that LLVM 22 makes.
set -eu
. "$(dirname "$0")/setup-lib.sh"

ci=
case ${1:-} in
'') ;;
--ci) ci=yes ;;
--help)
  sed -n '2,/^set /s/^# //p' "$0"
  exit
  ;;
*)
  echo "usage: check.sh [--ci] (check.sh --help explains)" >&2
  exit 2
  ;;
esac

# run_tests DIR TARGET [MAKE ARGUMENT...]: failed tests are summary.sh's to report, but without
# a single result there is nothing to report.
run_tests() {
  dir=$1 target=$2
  shift 2
  say "make $target in $dir"
  make -k -C "$dir" -j"$jobs" "$target" "$@" >"$dir/$target.log" 2>&1 && return 0
  grep -q '^# TOTAL:' "$dir/$target.log" && return 0
  tail -n 30 "$dir/$target.log" >&2
  die "make $target; all of it is in $dir/$target.log"
}

# skip_tests DIR NAME REASON: leaves for summary.sh what a skipped test leaves.
skip_tests() {
  mkdir -p "$1/tests"
  echo "$3" >"$1/tests/$2.log"
  echo ":test-result: SKIP" >"$1/tests/$2.trs"
}

if [ -n "$ci" ]; then
  install_packages $build_packages strace clang-19 libclang-rt-19-dev libllvm14 $(pip_package)
  try_fetch_model || say "going on without the model"
  try_fetch_gemma || say "going on without Gemma"
  try_install_reference || say "going on without the float64 reference"
  try_install_host || say "going on without llama.cpp as a host"
else
  install_packages $build_packages
fi
try_install_nvrtc || say "going on without NVRTC"

directories=$root/build
build "$root/build" ${ci:+--enable-werror}
find "$root/build" -name '*.trs' -exec rm -f {} +
run_tests "$root/build" check
run_tests "$root/build" check-cuda
run_tests "$root/build" check-cuda-mock
PAWL_TEST_MODEL=$model PAWL_TEST_GEMMA=$gemma run_tests "$root/build" check-model
PAWL_TEST_MODEL=$model PAWL_TEST_GEMMA=$gemma PAWL_TEST_HOST=$host_folder \
  run_tests "$root/build" check-host

if [ -n "$ci" ]; then
  build "$root/build-sanitize" --enable-werror --enable-sanitize=address,undefined
  run_tests "$root/build-sanitize" check TESTS=tests/unit
  build "$root/build-threads" --enable-werror --enable-sanitize=thread
  run_tests "$root/build-threads" check TESTS=tests/threads.sh
  build "$root/build-clang" --enable-werror CC=clang-19
  run_tests "$root/build-clang" check TESTS=tests/unit
  directories="$directories $root/build-sanitize $root/build-threads $root/build-clang $root/build-llvm-22"
  if command -v llvm-config-22 >/dev/null; then
    build "$root/build-llvm-22" --enable-werror --with-llvm=llvm-config-22
    run_tests "$root/build-llvm-22" check TESTS=tests/kernels.sh
  else
    skip_tests "$root/build-llvm-22" kernels "there is no llvm-config-22"
  fi
fi
exec "$root/tests/summary.sh" $directories
