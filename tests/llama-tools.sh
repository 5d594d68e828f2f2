# Tools of a llama.cpp that was built from source, with libggml-pawl.so: what the prebuilt one of
# llama-host.sh has no door to.  `bench/peer.sh llama-eval-callback test-backend-ops` builds them.
tools=$PAWL_TEST_PEER
plugin=$top_builddir/plugins/.libs/libggml-pawl.so
for tool in llama-eval-callback llama-perplexity llama-quantize test-backend-ops; do
  if [ ! -x "$tools/$tool" ]; then
    echo "no $tool in $tools"
    exit 77
  fi
done
. "$top_srcdir/tests/model-test.sh"

# tool NAME TOOL ARGUMENT...: its output goes to $dir/NAME.out, its log to $dir/NAME.log.
tool() {
  to=$dir/$1 tool=$2
  shift 2
  GGML_BACKEND_PATH=$plugin PAWL_KERNEL_CACHE=$dir/kernels PAWL_DEBUG=ggml \
    timeout 1800 "$tools/$tool" "$@" >"$to.out" 2>"$to.log"
}

# Two pages of prose that no model has seen.
text=$dir/text
sed -n '/^# /,$p' "$top_srcdir/docs/arithmetic.md" "$top_srcdir/docs/quality.md" |
  head -c 6000 >"$text"

# expanded MODEL: the path of the file with F32 weights.
expanded() {
  f32=${1%.*}.F32.gguf
  if [ ! -f "$f32" ]; then
    f32=$dir/f32.gguf
    tool quantize llama-quantize --allow-requantize --pure "$1" "$f32" F32 >&2
  fi
  echo "$f32"
}

perplexity() { # NAME
  sed -n 's/.*Final estimate: PPL = \([0-9.]*\) .*/\1/p' "$dir/$1.out" "$dir/$1.log"
}

no_fallback() { # NAME
  grep -q 'graphs [1-9].* runs [1-9].* fallbacks 0' "$dir/$1.out" "$dir/$1.log"
}

models() { # WHO MODEL
  who=$1 f32=$(expanded "$2")
  tool "$who-f32-text" llama-perplexity -m "$f32" -f "$text" -c 256 --chunks 4 -dev none
  truth=$(perplexity "$who-f32-text")
  for attention in on off; do
    tool "$who-text" llama-perplexity -m "$2" -f "$text" -c 256 --chunks 4 -dev PAWL0 -ngl 99 \
      -fa "$attention"
    found=$(perplexity "$who-text")
    echo "$who, flash attention $attention: perplexity $found, with F32 weights $truth"
    check "$who, flash attention $attention: perplexity $found, not $truth" \
      awk -v x="$found" -v y="$truth" 'BEGIN { exit !(y > 1 && x / y < 1.001 && x / y > 0.999) }'
    check "$who, flash attention $attention: no fallback" no_fallback "$who-text"
  done
  prompt='Once upon a time there was a king who'
  tool "$who-f32-values" llama-eval-callback -m "$f32" -p "$prompt" -fa on -dev none
  tool "$who-values" llama-eval-callback -m "$2" -p "$prompt" -fa on -dev PAWL0 -ngl 99
  check "$who: no fallback when each node is looked at" no_fallback "$who-values"
  check "$who: the value of each node" python3 "$top_srcdir/tests/llama_values.py" \
    "$dir/$who-f32-values.out" "$dir/$who-values.out"
}

models smollm2 "$model"
if [ -f "$PAWL_TEST_GEMMA" ]; then
  models gemma "$PAWL_TEST_GEMMA"
else
  skip "Gemma" "no model at $PAWL_TEST_GEMMA"
fi
tool ops test-backend-ops test -b PAWL0
check "test-backend-ops" grep -q 'Backend Pawl: .*OK' "$dir/ops.out"
sed -n 's/^ *\([0-9]*\/[0-9]* tests passed\)/test-backend-ops: \1/p' "$dir/ops.out"
end
