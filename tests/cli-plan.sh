# pawl plan and pawl opt: JSON that is valid and always the same, execution of graphs on targets.
. "$top_srcdir/tests/cli-lib.sh"
schema=$top_srcdir/docs/plan-schema.json
tiny model.gguf q4_1
model=$dir/model.gguf

targets=ref
if [ -f "$top_builddir/plugins/.libs/target_cpu.so" ] && [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  targets="ref cpu"
else
  skip "plans of the CPU target: it is not built"
fi

documents=
for target in $targets; do
  for seq in 1 8; do
    succeeds "plan of $seq on $target" plan "$model" --json --seq $seq --target $target
    cp "$dir/out" "$dir/$target$seq.json"
    documents="$documents $dir/$target$seq.json"
    succeeds "the same again" plan "$model" --json --seq $seq --target $target
    check "the same bytes" cmp "$dir/out" "$dir/$target$seq.json"
  done
  for graph in "$top_srcdir"/tests/data/plan-*.pawl; do
    name=$(basename "$graph" .pawl)
    succeeds "$name on $target" plan "$graph" --json --target $target
    cp "$dir/out" "$dir/$target-$name.json"
    documents="$documents $dir/$target-$name.json"
  done
done
mock=$top_builddir/tests/.libs/mock_nvrtc.so
if [ -f "$mock" ]; then
  PAWL_NVRTC=$mock "$pawl" plan "$model" --json --target cuda:sm_90 >"$dir/cuda1.json"
  documents="$documents $dir/cuda1.json"
fi
# shellcheck disable=SC2086
check "valid, and not without any one member" \
  python3 "$top_srcdir/tests/check-schema.py" --deletions "$schema" $documents

sed 's/"seq":	"1"/"seq":	1/' "$dir/ref1.json" >"$dir/wrong.json"
check "64-bit integers are strings" \
  sh -c '! python3 "$@" >/dev/null 2>&1' - "$top_srcdir/tests/check-schema.py" "$schema" "$dir/wrong.json"
sed 's/"format":/"extra":	1, "format":/' "$dir/ref1.json" >"$dir/wrong.json"
check "nothing that the schema does not know" \
  sh -c '! python3 "$@" >/dev/null 2>&1' - "$top_srcdir/tests/check-schema.py" "$schema" "$dir/wrong.json"

for option in "--seq 2" "--ctx 64" "--kv f32" "--activations a8" "--logits all"; do
  # shellcheck disable=SC2086
  succeeds "plan $option" plan "$model" --json --target ref $option
  check "$option changes the plan" sh -c '! cmp -s "$1" "$2"' - "$dir/out" "$dir/ref1.json"
done
succeeds "plan as text" plan "$model" --target ref
check "its head" grep -q '^target   ref, ' "$dir/out"
check "its key" grep -q '^key      seq 1, max_seq_len 256, n_layers 2, ' "$dir/out"
steps=$(sed -n 's/^	*"steps":	\([0-9]*\),$/\1/p' "$dir/ref1.json")
check "one line a step" test "$(grep -c '^ *[0-9]*  [a-z]*  *[0-9]*  *[0-9]*  [a-z]' "$dir/out")" = "$steps"
refused 1 'positions are needed' plan "$model" --seq 300 --target ref

succeeds "memory" plan "$model" --memory --threads 1 --target ref
check "of the cache" grep -q '^ *[1-9][0-9]*  cache$' "$dir/out"
total=$(sed -n 's/^ *\([0-9]*\)  in all$/\1/p' "$dir/out")
check "in all" test "$(awk '/  / && !/in all/ && $1 ~ /^[0-9]+$/ {n += $1} END {print n}' "$dir/out")" = "$total"
succeeds "as JSON" plan "$model" --memory --json --threads 1 --target ref
for context in 1 16 32; do # a run on 16 takes no chunks of a prompt
  succeeds "memory of $context positions" plan "$model" --memory --json --threads 1 --target ref --ctx $context
  cp "$dir/out" "$dir/memory$context.json"
done
check "which grows with them" python3 - "$dir" <<'PYTHON'
import json, sys
one, least, two = (json.load(open("%s/memory%d.json" % (sys.argv[1], n))) for n in (1, 16, 32))
assert one["capacity"] == "1" and one["kv"] == least["kv"] and int(two["kv"]) == 2 * int(least["kv"])
assert one["total"] == least["total"] and int(least["scratch"]) < int(two["scratch"])
assert least["weights"] == two["weights"] and int(least["weights"]) > 0
PYTHON
succeeds "as JSON" plan "$model" --memory --json --threads 1 --target ref
check "no compiler for ref" grep -q '"compiler":	"0"' "$dir/out"
check "the same sum" grep -q "\"total\":	\"$total\"" "$dir/out"
check "nor in the table" sh -c '! "$1" plan "$2" --memory --target ref | grep -q compiled' - "$pawl" "$model"
if [ -f "$top_builddir/plugins/.libs/target_cpu.so" ] && [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  succeeds "memory on cpu" plan "$model" --memory --threads 1 --target cpu
  check "of the compiler" grep -q '^and about 72 MB when kernels are compiled' "$dir/out"
  succeeds "on cpu as JSON" plan "$model" --memory --json --threads 1 --target cpu
  check "the compiler is not in the sum" python3 - "$dir/out" <<'PYTHON'
import json, sys
f = {k: int(v) for k, v in json.load(open(sys.argv[1])).items()}
parts = "weights mapped kv scratch data code".split()
assert f["total"] == sum(f[p] for p in parts) and f["compiler"] == 72500000, f
PYTHON
else
  skip "the CPU target is not built"
fi
refused 2 '\-\-seq is not for --memory' plan "$model" --memory --seq 4
refused 2 '\-\-threads is for --memory' plan "$model" --threads 2
refused 2 '\-\-memory is for models' plan "$graph" --memory

# the text form
for graph in "$top_srcdir"/tests/data/plan-*.pawl; do
  succeeds "canonical" opt --passes none "$graph"
  check "$(basename "$graph") is canonical" cmp "$dir/out" "$graph"
  "$pawl" opt --passes none - <"$graph" >"$dir/out" 2>"$dir/err"
  check "from standard input" cmp "$dir/out" "$graph"
  succeeds "optimized" opt "$graph"
  check "in its last stage" grep -q '^graph @[a-z0-9_.]* stage fused {$' "$dir/out"
  succeeds "print after" opt --print-after cse "$graph"
  check "twice in the pipeline" test "$(grep -c '^; [0-9]* cse: ' "$dir/out")" = 2
  succeeds "input, interp" opt --passes canonicalize,fold,cse,dce --exec input,interp "$graph"
  check "exact passes keep the bits" sh -c 'grep -q "same bits" "$1" && ! grep -q differ "$1"' - "$dir/out"
  succeeds "exact and input are near" opt --exec exact,input --within 1e-2 "$graph"
  for target in $targets; do
    for activations in a16 a8; do
      succeeds "interp,$target" opt --exec interp,$target --activations $activations "$graph"
      check "same bits" sh -c 'grep -q "same bits" "$1" && ! grep -q differ "$1"' - "$dir/out"
    done
  done
done
graph=$top_srcdir/tests/data/plan-blocks.pawl
tool opt --exec exact,input "$graph"
check "bits that differ are a failure" test $status = 1
check "which says so" grep -q '^pawl opt: exact and input differ in [0-9]* elements$' "$dir/err"
check "of all values" test "$(sed -n 's/.* elements, \([0-9]*\) differ.*/\1/p' "$dir/out" | awk '{n += $1} END {print n}')" = \
  "$(sed -n 's/.* differ in \([0-9]*\) .*/\1/p' "$dir/err")"
far=$(sed -n 's/.* differ in \([0-9]*\) .*/\1/p' "$dir/err")
tool opt --exec exact,input --within 1e-4 "$graph"
check "within a distance fewer differ" test "$(sed -n 's/.* differ in \([0-9]*\) .*/\1/p' "$dir/err")" -lt "$far"
check "and by how much" grep -q 'elements, [0-9]* differ, first at [0-9]*, by at most [0-9]' "$dir/out"
cat >"$dir/nan.pawl" <<'PAWL'
pawl 1
graph @nan stage values {
  %x = const {role = data} : f32[7]
  %a = scale %x {scale = 1e+30} : f32[7]
  %b = mul %a, %a : f32[7]
  %c = sub %b, %b : f32[7]
  output %c
}
PAWL
tool opt --exec exact,input --within 1000 "$dir/nan.pawl"
check "a nan is never near" test $status = 1
check "and is called one" grep -q ' 7 differ, first at 0, 7 nan in one of the two$' "$dir/out"
refused 1 'no target_none.so' opt --exec interp,none "$graph"
refused 1 "^pawl opt: $graph: pass form-groups works on stage ordered, graph 'blocks' is at stage values$" \
  opt --passes form-groups "$graph"
"$pawl" opt --passes form-groups - <"$graph" >"$dir/out" 2>"$dir/err"
check "or its stream" grep -q '^pawl opt: standard input: pass form-groups ' "$dir/err"
{
  cat "$graph"
  head -c 17000000 /dev/zero | tr '\0' ' '
} >"$dir/long.pawl"
refused 1 "^pawl opt: $dir/long.pawl: longer than 16 MiB$" opt "$dir/long.pawl"
refused 1 "^pawl plan: $dir/long.pawl: longer than 16 MiB$" plan "$dir/long.pawl" --target ref

cat >"$dir/large.pawl" <<'PAWL'
pawl 1
graph @large stage values {
  %x = const {role = data} : f32[1099511627776]
  output %x
}
PAWL
refused 1 'has 4398046511104 bytes; graphs are run up to' opt --passes none --exec input,exact "$dir/large.pawl"
finish
