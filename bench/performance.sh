#!/bin/sh
# performance.sh [ROUNDS [PART...]]: measures what docs/performance.md shows and puts it there.
# Parts are smollm2, formats and gemma (default: all, 5 rounds, about 40 minutes on two idle cores).
# What was measured stays in build/performance as JSON, so that parts can be repeated alone.
set -eu
. "$(dirname "$0")/../tools/setup-lib.sh"

rounds=${1:-5}
test $# = 0 || shift
parts=${*:-smollm2 formats gemma}
case $rounds in
'' | *[!0-9]* | 0*) refuse "'$rounds' is no number of rounds" ;;
esac
for name in $parts; do
  case $name in
  smollm2 | formats | gemma) ;;
  *) refuse "'$name' is no part: smollm2, formats or gemma" ;;
  esac
done
results=$root/build/performance

# part NAME ARGUMENT...
part() {
  json=$results/$1.json
  shift
  "$root/bench/compare.py" -r "$rounds" --activations a16,a8 --json "$json" "$@" >/dev/null
  files=
  for name in smollm2 formats gemma; do
    test ! -f "$results/$name.json" || files="$files $results/$name.json"
  done
  "$root/bench/report.py" $files --update "$root/docs/performance.md"
}

install_packages $build_packages
build "$root/build"
mkdir -p "$results"
try_fetch_model || die "no model"
for name in $parts; do
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
