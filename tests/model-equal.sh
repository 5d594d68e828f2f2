#!/bin/sh
# The logits of a short prompt have the same bits on every target, instruction set, number of
# threads and chunk of the prompt.
. "$top_srcdir/tests/model-test.sh"

prompt=1,4093,198,2683,359,253,5356,5646,11173,3365,3511,308,34519,28,7018,411,407,19712,8182,2
prompt=$prompt,198,1,4093,198,1780,314,260,3575,282,4649,47,2,198,1,520,9531,198,504,3575,282

logits() { # NAME ARGUMENT...: writes $dir/NAME
  name=$1
  shift
  "$pawl" eval "$model" --tokens $prompt --logits "$dir/$name" "$@"
}

same() { # NAME ARGUMENT...: the bits of $dir/ref
  logits "$@" && cmp "$dir/ref" "$dir/$1" && rm "$dir/$1"
}

differs() { # NAME ARGUMENT...: a comparison that cannot fail would pass all of this
  logits "$@" && ! cmp -s "$dir/ref" "$dir/$1" && rm "$dir/$1"
}

refused() { # MESSAGE ARGUMENT...: status 1 and that message
  message=$1
  shift
  logits other "$@" 2>"$dir/why"
  test $? = 1 && grep -q "$message" "$dir/why"
}

if [ ! -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  echo "the compiler of CPU kernels was not built"
  exit 77
fi
logits ref --target ref || exit 1
check "40 rows of logits" test "$(wc -c <"$dir/ref")" -eq $((40 * 49152 * 4))
for threads in 1 2 3; do
  check "cpu, $threads threads" same other --target cpu --threads $threads
done
for chunk in 1 3 8 32; do
  check "cpu, chunks of $chunk" same other --target cpu --chunk $chunk
done
PAWL_CPU=none
export PAWL_CPU
check "PAWL_CPU is obeyed" refused 'no cpu variant none' --target cpu
unset PAWL_CPU
for variant in avx512vnni avx512 avx2 baseline; do
  PAWL_CPU=$variant
  export PAWL_CPU
  if logits other --target cpu 2>"$dir/why"; then
    check "cpu, $variant" cmp "$dir/ref" "$dir/other"
  elif grep -q 'this machine does not run' "$dir/why"; then
    skip "cpu, $variant" "$(cat "$dir/why")"
  else
    check "cpu, $variant: $(cat "$dir/why")" false
  fi
  unset PAWL_CPU
done
check "another capacity" same other --target cpu --ctx 2048
check "other activations differ" differs other --target cpu --activations a8
check "another cache differs" differs other --target cpu --kv f32
end
