#!/bin/sh
# device-check.sh [--build DIR] [--results DIR] [--quick] [--seconds N] [MODEL...]: what target cuda
# does on this machine's NVIDIA GPU, in at most eight minutes, or N seconds: its logits and tokens
# beside the CPU's, its speed beside a measured copy of memory, what its kernels take to compile.
# Builds Pawl unless DIR has a build, of which it needs tools/pawl, bench/copy_bandwidth and
# plugins/.libs, and in lib the libraries that this machine lacks.  Without models: SmolLM2 and
# Gemma 3 270M, as far as they are in the cache folder or can be fetched, and files of random
# weights with the shapes of SmolLM2 (where that is missing) and of Llama 3.2 1B in bf16 (2.5 GB in
# the folder of results while it runs).  --quick: short prompts and one round, to try the script.
#
# Leaves in build/device, or the folder of --results, in place of what an earlier run left there:
# machine.txt, for each model NAME.check.json, NAME.bench.json and NAME.plan.txt, failures.txt where
# anything failed, and device.md, tables for docs/performance.md.  One run at a time writes there.
# Every stage has a deadline; one that fails is told, the others go on, the exit status is then 1.
set -eu
. "$(dirname "$0")/setup-lib.sh"

total=480
reserve=20 # seconds for the tables, whatever happened before
build= results=$root/build/device quick=
while [ $# -gt 0 ]; do
  case $1 in
  --help)
    sed -n '2,/^set /s/^# \{0,1\}//p' "$0"
    exit
    ;;
  --quick) quick=yes ;;
  --seconds)
    case ${2:-} in
    [1-9] | [1-9][0-9] | [1-9][0-9][0-9] | [1-9][0-9][0-9][0-9]) total=$2 ;;
    *) refuse "--seconds N: '${2:-}' is no whole number from 1 to 9999" ;;
    esac
    shift
    ;;
  --build | --results)
    test -n "${2:-}" || refuse "$1 DIR: the folder is missing"
    test "$1" = --results || build=$2
    test "$1" = --build || results=$2
    shift
    ;;
  -*) refuse "'$1' is no option: device-check.sh --help explains" ;;
  *) break ;;
  esac
  shift
done
names=/
for model_file; do
  case $model_file in
  -*) refuse "'$model_file': options come before models" ;;
  esac
  name=$(basename "$model_file" .gguf)
  test -e "$model_file" || refuse "$model_file: there is none"
  test -f "$model_file" || refuse "$model_file: no file"
  case $names in
  */"$name"/*) refuse "$model_file: results have the names of models, and two are named $name" ;;
  esac
  names=$names$name/
done
test -z "$build" || test -x "$build/tools/pawl" || refuse "$build: no build of Pawl"
began=$(date +%s)
mkdir -p -- "$results" 2>/dev/null || refuse "$results: it cannot be made"
results=$(cd -- "$results" && pwd)
exec 9<"$results"
flock -n 9 || refuse "$results: another device-check.sh writes there"
rm -rf "$results"/work.*
work=$(mktemp -d "$results/work.XXXXXX" 2>/dev/null) || refuse "$results: it cannot be written"
running=
# What is running has a group of its own, which timeout ends with itself.
leave() {
  test -z "$running" || { kill "$running" && wait "$running"; } 2>/dev/null || :
  rm -rf "$work"
}
trap leave EXIT
trap 'exit 129' HUP
trap 'exit 130' INT
trap 'exit 143' TERM
rm -f "$results"/*.check.json "$results"/*.bench.json "$results"/*.plan.txt \
  "$results"/.*.check.json "$results"/.*.bench.json "$results"/.*.plan.txt "$results/machine.txt" \
  "$results/failures.txt" "$results/device.md" 2>"$work/err" ||
  refuse "results of an earlier run: $(tail -n 1 "$work/err")"
n_passed=0 n_failed=0

# failure WORDS: what a stage did not reach.
failure() {
  n_failed=$((n_failed + 1))
  say "failed: $*"
  { echo "$*" >>"$results/failures.txt"; } 2>/dev/null || :
}

# bounded SECONDS OUT COMMAND...: runs it, at most so long, its output into the file OUT.
# $work/err is what it says meanwhile.  In the background, since a shell that waits for what is in
# front does not hear signals.
bounded() {
  most=$1 out=$2
  shift 2
  { exec timeout -k 5 "$most" "$@" >"$out" </dev/null; } 2>"$work/err" &
  running=$!
  ended=0
  wait "$running" || ended=$?
  running=
  return $ended
}

# keep FILE NAME: adds it to a result.
keep() {
  { cat "$1" >>"$results/$2"; } 2>"$work/err" || failure "$2: $(tail -n 1 "$work/err")"
}

# stage WHAT SECONDS OUT COMMAND...: what bounded does, told and counted, in the time that is left.
stage() {
  what=$1 most=$2 out=$3
  shift 3
  left=$((total - reserve + began - $(date +%s)))
  test "$most" -le $left || most=$left
  if [ "$most" -lt 1 ]; then
    failure "$what: no time is left"
    return 1
  fi
  say "$what"
  bounded "$most" "$out" "$@" || :
  case $ended in
  0)
    n_passed=$((n_passed + 1))
    return 0
    ;;
  124 | 137) failure "$what: not ready after $most s" ;;
  *) failure "$what: $(tail -n 1 "$work/err")" ;;
  esac
  return 1
}

# Runs a function of setup-lib.sh in a process of its own, which stage can end.
library='. "$(dirname "$0")/setup-lib.sh"; "$@"'

describe_machine() {
  cat "$work/device"
  commit=$(git -C "$root" rev-parse --short HEAD 2>/dev/null || echo unknown)
  processor=$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -n 1)
  echo "date $(date -u +%Y-%m-%d), commit $commit"
  echo "host $processor, $(nproc) CPUs, $(uname -sr)"
  "$pawl" --version
  ! command -v nvidia-smi >/dev/null || nvidia-smi || :
}

# eval_logits TARGET OUT: those of $prompt, $options.
eval_logits() {
  stage "$name: logits of target $1, prompt $number" 60 "$work/out" "$pawl" eval "$file" \
    --tokens "$prompt" --logits "$2" --target "$1" $options
}

# compare_logits NUMBER POSITIONS PROMPT [OPTION...]: how far from each other they are.
compare_logits() {
  number=$1 positions=$2 prompt=$3
  shift 3
  options=$*
  eval_logits cuda "$work/cuda" || return 0
  eval_logits "$reference" "$work/reference" || return 0
  stage "$name: logits beside those of $reference, prompt $number" 30 "$work/compared" \
    "$root/bench/device_report.py" logits "$work/cuda" "$work/reference" "$positions" \
    "$reference" || :
  test ! -s "$work/compared" || keep "$work/compared" "$name.check.json"
}

# tokens N: as many ids, which every vocabulary has.
tokens() {
  awk -v n="$1" 'BEGIN { for (i = 0; i < n; i++) printf "%s%d", i ? "," : "", 3 + i * 7919 % 250 }'
}

# same_text: what a session says, token by token, when it always chooses the likeliest.
same_text() {
  set -- run "$file" --raw -p "Once upon a time there was" -n $n_session --temp 0 --ignore-end
  stage "$name: a session on the GPU" 60 "$work/said" "$pawl" "$@" --target cuda || return 0
  stage "$name: the same on target $reference" 60 "$work/wanted" "$pawl" "$@" \
    --target "$reference" || return 0
  stage "$name: the text of both" 10 "$work/out" cmp "$work/said" "$work/wanted" || return 0
  echo "{\"session\": $n_session}" >"$work/session"
  keep "$work/session" "$name.check.json"
}

# compile: a plan without any kernel that is kept, and with all of them.
compile() {
  : >"$work/plan"
  for state in cold warm; do
    stage "$name: compiling, $state" 60 "$work/out" env PAWL_KERNEL_CACHE="$work/kernels.$name" \
      PAWL_DEBUG=time "$pawl" plan "$file" --target cuda || return 0
    sed -n "s/.*: plan [^:]*: \([0-9]* steps, .*\)/$state \1/p" "$work/err" >>"$work/plan"
  done
  grep '^launches' "$work/out" >>"$work/plan" || :
  keep "$work/plan" "$name.plan.txt"
}

# check_model NAME FILE HAS_TEXT
check_model() {
  name=$1 file=$2
  compile
  PAWL_KERNEL_CACHE=$work/kernels.$name
  export PAWL_KERNEL_CACHE
  reference=cpu
  # The compiler of the CPU's kernels may be missing where the build was carried to.
  bounded 60 "$work/out" "$pawl" eval "$file" --tokens 3 --logits "$work/reference" --target cpu ||
    reference=ref
  test $reference = cpu || say "$name: compared with target ref: $(tail -n 1 "$work/err")"
  compare_logits 1 $n_steps "$(tokens $n_steps)" --chunk 1
  if [ $reference = cpu ]; then
    compare_logits 2 8 "$(tokens $n_prompt)" --from $((n_prompt - 8))
    compare_logits 3 1 "$(tokens $((4 * n_prompt)))" --last
  fi
  test "$3" = no || same_text
  stage "$name: speed" 90 "$results/$name.bench.json" "$pawl" bench "$file" --target cuda --json \
    $bench_options || rm -f "$results/$name.bench.json"
}

# random_model SHAPE: a stand-in, gone after its checks.
random_model() {
  if stage "random weights of the shape of $1" 60 "$work/out" \
    "$root/bench/random_model.py" "$work/$1.gguf" "$1"; then
    check_model "random-$1" "$work/$1.gguf" no
  fi
  rm -f "$work/$1.gguf"
}

# real_model NAME FILE: the file, once it is there.
real_model() {
  test -f "$2" || bounded 60 "$work/out" "$root/tools/fetch-model.sh" "$1" || {
    say "$1: not at hand: $(tail -n 1 "$work/err")"
    echo "$1" >>"$work/absent"
    return 1
  }
  check_model "$1" "$2" yes
}

if [ -n "$quick" ]; then
  n_steps=2 n_prompt=10 n_session=4 megabytes=1 bench_options="-d 0,8 -p 4 -n 2 -r 1"
else
  n_steps=8 n_prompt=40 n_session=32 megabytes=1024 bench_options="-d 0,1024 -p 128 -n 64 -r 3"
fi
if [ -z "$build" ]; then
  build=$root/build
  stage "building" 240 "$work/out" sh -c "$library" "$0" build "$build" ||
    { test -x "$build/tools/pawl" || exit 1; }
fi
pawl=$build/tools/pawl
PAWL_PLUGIN_PATH=$build/plugins/.libs
export PAWL_PLUGIN_PATH
if [ -d "$build/lib" ]; then
  LD_LIBRARY_PATH=$build/lib${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}
  export LD_LIBRARY_PATH
fi
if ! bounded 60 "$work/device" "$build/bench/copy_bandwidth" $megabytes; then
  say "$(tail -n 1 "$work/err")"
  exit 1
fi
if [ -z "${PAWL_NVRTC:-}" ]; then
  stage "NVRTC" 60 "$work/out" sh -c "$library" "$0" try_install_nvrtc || :
fi
describe_machine >"$work/machine" 2>/dev/null
keep "$work/machine" machine.txt
head -n 2 "$work/machine" >&2
: >"$work/absent"

if [ $# -gt 0 ]; then
  for model_file; do
    check_model "$(basename "$model_file" .gguf)" "$model_file" yes
  done
else
  real_model smollm2 "$model" || random_model smollm2
  random_model llama-1b
  real_model gemma "$gemma" || :
fi
reserve=0
stage "tables" 20 "$results/device.md" "$root/bench/device_report.py" tables "$results" \
  $(cat "$work/absent") || :
say "$n_passed stages passed, $n_failed failed, $(($(date +%s) - began)) s; results are in $results"
test $n_failed = 0
