#!/bin/sh
# performance.sh [ROUNDS [PART...]] [-- OPTION...]: measures what docs/performance.md shows and
# puts it there.  Parts are smollm2, formats and gemma (default: all, 5 rounds, about 40 minutes on
# two idle cores); each replaces its own tables.  Options are those of compare.py, such as
# --patience 300.  What was measured stays in build/performance as JSON.
set -eu
. "$(dirname "$0")/../tools/setup-lib.sh"

rounds=5 parts=
case ${1:---} in
--) ;;
--help)
  sed -n '2,/^set /s/^# //p' "$0"
  exit
  ;;
*[!0-9]* | 0*) refuse "'$1' is no number of rounds" ;;
*)
  rounds=$1
  shift
  ;;
esac
while [ $# -gt 0 ] && [ "$1" != -- ]; do
  case $1 in
  smollm2 | formats | gemma) parts="$parts $1" ;;
  *) refuse "'$1' is no part: smollm2, formats or gemma" ;;
  esac
  shift
done
test $# = 0 || shift
options=$*
results=$root/build/performance

# part NAME ARGUMENT...
part() {
  json=$results/$1.json
  shift
  "$root/bench/compare.py" -r "$rounds" --activations a16,a8 --json "$json" "$@" $options \
    >/dev/null
  "$root/bench/report.py" "$json" --update "$root/docs/performance.md"
}

install_packages $build_packages
build "$root/build"
mkdir -p "$results"
try_fetch_model || die "no model"
for name in ${parts:-smollm2 formats gemma}; do
  case $name in
  smollm2)
    part smollm2 "$model" -d 0,512,1024,2048 -p 128,512 --batch 1,4 --busy --openvino
    "$root/bench/report.py" "$results/smollm2.json" --svg "$root/docs/performance.svg" >/dev/null
    ;;
  formats) part formats "$model" --quantize Q4_0,Q8_0,F16 ;;
  gemma)
    try_fetch_gemma || die "no Gemma"
    part gemma "$gemma" -d 0,1024 --openvino
    ;;
  esac
done
say "docs/performance.md holds the figures"
