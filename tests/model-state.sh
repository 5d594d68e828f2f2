#!/bin/sh
# Batches, pages, forks, files, eviction, guesses and rings give the logits of a contiguous cache, and
# plan once.
. "$top_srcdir/tests/model-test.sh"

if [ ! -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  echo "the compiler of CPU kernels was not built"
  exit 77
fi
"$top_builddir/tests/model-state" "$model" cpu
