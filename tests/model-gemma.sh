#!/bin/sh
# Gemma 3 270M against expected values that were made without Pawl; the same bits from both targets, and
# from rings as from a cache that keeps everything.
golden=gemma3-270m
. "$top_srcdir/tests/model-test.sh"

last() { # NAME ARGUMENT...: the logits after $tokens in $dir/NAME
  name=$1
  shift
  "$pawl" eval "$model" --tokens "$tokens" --logits "$dir/$name" --last "$@"
}

python_parts text logits rows
if [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  tokens=2,818,5279,529,7001,563
  last ref --target ref && last cpu --target cpu --threads 2 || exit 1
  check "cpu and reference" cmp "$dir/ref" "$dir/cpu"
  tokens=$(python3 -c '
import json, sys
cases = json.load(open(sys.argv[1], encoding="utf-8"))["cases"]
print(*max((case["tokens"] for case in cases), key=len), sep=",")' \
    "$top_srcdir/tests/data/golden-gemma3-270m.json")
  check "a prompt beyond a ring" test "$(echo "$tokens" | tr ',' '\n' | wc -l)" -gt 640
  last rings && last all --chunk 900 || exit 1
  check "rings and everything" cmp "$dir/rings" "$dir/all"
else
  skip "cpu and reference, rings and everything" "the compiler of CPU kernels was not built"
fi
end
