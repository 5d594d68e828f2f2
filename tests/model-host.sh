#!/bin/sh
# A host that hands the real models to the plugin decodes the tokens of `pawl run`.
. "$top_srcdir/tests/model-test.sh"
. "$top_srcdir/tests/host-tokens.sh"

text='The capital of France is'
if [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  check 'tokens of SmolLM2' tokens_as_run "$model" cpu "$text" 64
  if [ -f "$PAWL_TEST_GEMMA" ]; then
    check 'tokens of Gemma 3' tokens_as_run "$PAWL_TEST_GEMMA" cpu "$text" 32
  else
    skip 'tokens of Gemma 3' "no model at $PAWL_TEST_GEMMA"
  fi
else
  skip 'tokens on cpu' 'built without LLVM'
fi
end
