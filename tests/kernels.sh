# The tests of generated code alone, for a build with another LLVM: suites that compare kernels with
# the reference bit by bit, graphs on both targets, and logits on every variant.
. "$top_srcdir/tests/cli-lib.sh"
unset PAWL_CPU

unit_suites cpu cpu_objects equal

for graph in "$top_srcdir"/tests/data/plan-*.pawl; do
  tool opt --exec interp,cpu --threads 2 "$graph"
  check "$(basename "$graph") on cpu" test $status = 0
done

tiny model.gguf q4_1
# logits TARGET
logits() {
  "$pawl" eval "$dir/model.gguf" --tokens 1,5,7,9,11,13,2,4,6,8,3,3 --logits "$dir/$1" --target "$1" \
    >"$dir/out" 2>"$dir/err"
}
check "logits on ref" logits ref
for variant in avx512vnni avx512 avx2 baseline; do
  rm -f "$dir/cpu"
  if PAWL_CPU=$variant logits cpu; then
    check "logits of $variant" cmp "$dir/cpu" "$dir/ref"
  elif grep -q 'does not run cpu variant' "$dir/err"; then
    skip "logits of $variant: not on this machine"
  else
    fail "logits of $variant"
  fi
done
finish
