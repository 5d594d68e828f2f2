#!/bin/sh
# quality.sh [WINDOWS]: measures what docs/quality.md shows and prints its tables (default: 16
# windows of 512 tokens; about half an hour on two cores, most of it float64).  What was measured
# stays in build/quality as JSON.
set -eu
. "$(dirname "$0")/../tools/setup-lib.sh"

windows=${1:-16}
case $windows in
'' | *[!0-9]* | 0*) refuse "'$windows' is no number of windows" ;;
esac
results=$root/build/quality
licenses=/usr/share/common-licenses
text_sha256=b5f629f9cf0108c7606b6103efc74feec9b97c42a5a2ba96681b65d6a87d00d6

install_packages $build_packages
build "$root/build"
mkdir -p "$results"
try_fetch_model || die "no model"
try_fetch_gemma || die "no Gemma"
try_install_reference || die "no numpy"

cat "$licenses/MPL-1.1" "$licenses/GFDL-1.2" >"$results/text"
test "$(sha256sum <"$results/text")" = "$text_sha256  -" ||
  die "the licences in $licenses are not those that the figures are about"

peer=$("$root/bench/peer.sh")
library=$peer/../../source/vendor/llama.cpp
logged "$results/cc.log" "cc" cc -std=c11 -O2 -I"$library/include" -I"$library/ggml/include" \
  -o "$results/peer_logits" "$root/bench/peer_logits.c" -L"$peer" -lllama -lggml -lggml-base \
  -Wl,-rpath,"$peer"

for file in "$model" "$gemma"; do
  f32=${file%.*}.F32.gguf
  if [ ! -f "$f32" ]; then
    say "expanding $(basename "$file") to F32"
    logged "$results/quantize.log" "llama-quantize" \
      "$peer/llama-quantize" --allow-requantize --pure "$file" "$f32.part" F32
    mv "$f32.part" "$f32"
  fi
  PAWL_PLUGIN_PATH=$root/build/plugins/.libs PYTHONDONTWRITEBYTECODE=1 \
    PYTHONPATH=$reference_folder "$root/bench/quality.py" "$file" "$f32" "$results/text" \
    --pawl "$root/build/tools/pawl" --peer "$peer" --peer-logits "$results/peer_logits" \
    --cache "$cache/reference" --windows "$windows" \
    --json "$results/$(basename "$file" .gguf).json"
  echo
done
