# The variables of ir/debug.def, one by one, as the tool obeys them.
. "$top_srcdir/tests/cli-lib.sh"
# shellcheck disable=SC2086
unset PAWL_DEBUG PAWL_DUMP PAWL_SKIP PAWL_BISECT PAWL_CPU
graph=$top_srcdir/tests/data/plan-blocks.pawl
tiny model.gguf q4_1
model=$dir/model.gguf
tokens="--tokens 1,5,7,9,11,13,2,4,6,8,3,3"
has_cpu=
test ! -f "$top_builddir/plugins/.libs/target_cpu.so" ||
  test ! -f "$top_builddir/plugins/.libs/cpu_compiler.so" || has_cpu=yes

# with VARIABLE=VALUE... -- ARGUMENT...: as `tool`, in that environment.
with() {
  variables=
  while [ "$1" != -- ]; do
    variables="$variables $1"
    shift
  done
  shift
  # shellcheck disable=SC2086
  env $variables "$pawl" "$@" >"$dir/out" 2>"$dir/err" </dev/null
  status=$?
}

# fails NAME PATTERN: the run before failed with one line that matches.
fails() {
  check "$1: status $status" test $status = 1 -a "$(wc -l <"$dir/err")" = 1
  check "$1: says so" grep -q -e "$2" "$dir/err"
}

# passes: of the plan that was printed, "NAME runs" or "NAME skipped" each.
passes() {
  sed -n 's/^passes *//p' "$dir/out" | tr ',' '\n' | sed 's/^ *//; s/ [0-9]*$/ runs/'
}

tool --help
for name in PAWL_DEBUG PAWL_DUMP PAWL_SKIP PAWL_BISECT PAWL_PLUGIN_PATH PAWL_THREADS PAWL_CPU \
  PAWL_CACHE_DIR verify roundtrip time poison all-threads perf; do
  check "help lists $name" grep -q "^  $name " "$dir/out"
done

# words
with PAWL_DEBUG=help -- plan "$graph" --target ref
fails "a word that is none" "^pawl plan: PAWL_DEBUG: 'help' is none of verify, roundtrip, time, poison, all-threads, perf, ggml$"
with PAWL_DEBUG=verify,roundtrip,poison -- plan "$graph" --target ref
check "verify, roundtrip, poison are silent" test $status = 0 -a ! -s "$dir/err"
cp "$dir/out" "$dir/watched"
tool plan "$graph" --target ref
check "and change no plan" cmp "$dir/out" "$dir/watched"
with PAWL_DEBUG=verify,roundtrip,poison -- eval "$model" $tokens --logits "$dir/logits" --target ref
mv "$dir/logits" "$dir/poisoned"
tool eval "$model" $tokens --logits "$dir/logits" --target ref
check "nor a result" test $status = 0
check "bit by bit" cmp "$dir/logits" "$dir/poisoned"

# times
with PAWL_DEBUG=time -- plan "$graph" --target ref
check "times: status" test $status = 0
check "of passes" grep -q '^pawl plan: plan blocks: pass fuse-norm: [0-9]* changes, [0-9]*\.[0-9]* ms$' "$dir/err"
check "of compilation" grep -q '^pawl plan: plan blocks: [0-9]* steps, 0 kernels compiled, 0 from disk: [0-9.]* ms$' "$dir/err"
check "not among the results" sh -c '! grep -q " ms$" "$1"' - "$dir/out"
with PAWL_DEBUG=time -- opt "$graph"
check "times in opt" test "$(grep -c '^pawl opt: [0-9]* [a-z-]*: [0-9]* changes, [0-9.e-]* ms$' "$dir/err")" -ge 18
with PAWL_DEBUG=time -- eval "$model" $tokens --logits "$dir/logits" --target ref
check "times of every plan" test "$(grep -c 'steps, 0 kernels compiled, 0 from disk: ' "$dir/err")" -ge 1

# passes
with PAWL_SKIP=fuse-norm,cse -- plan "$graph" --target ref
check "skip" test "$(grep '^passes ' "$dir/out" | grep -o '[a-z-]* skipped' | sort -u | tr '\n' ' ')" = \
  'cse skipped fuse-norm skipped '
with PAWL_SKIP=fuse-nrom -- plan "$graph" --target ref
fails "skip of a pass that is none" "^pawl plan: PAWL_SKIP: there is no pass 'fuse-nrom'$"
with PAWL_SKIP=order-effects -- opt "$graph"
fails "skip of a required pass" '^pawl opt: PAWL_SKIP: order-effects is required$'
for list in , cse, ,cse cse,,dce; do
  with PAWL_SKIP=$list -- opt "$graph"
  fails "skip of an empty name" "^pawl opt: PAWL_SKIP: an empty name in '$list'$"
done
cat >"$dir/start.pawl" <<'PAWL'
pawl 1
graph @start stage values {
  %at = const {role = data} : i64[]
  %0 = copy %at : i64[]
  %state = const {role = kv} : f16[16, 4]
  %slab = const {role = data} : f16[1, 4]
  %1 = write_slice %state, %slab, %0 {axis = 0} : f16[16, 4]
  output %1
}
PAWL
with PAWL_SKIP=canonicalize,fold -- plan "$dir/start.pawl" --target ref
fails "a start that is computed" \
  "^pawl plan: $dir/start.pawl: step write_slice: the start in a temporary is computed by the program, "
tool opt --list-passes
cp "$dir/out" "$dir/kinds"
tool plan "$graph" --target ref
passes >"$dir/all"
check "all passes run" test -s "$dir/all" -a "$(grep -c -v ' runs$' "$dir/all")" = 0
awk 'FNR == NR { kind[$1] = $2; next }
  { print $1, (kind[$1] == "optional" && ++n > 2 ? "skipped" : "runs") }' \
  "$dir/kinds" "$dir/all" >"$dir/wanted"
check "some are optional" grep -q ' skipped$' "$dir/wanted"
with PAWL_BISECT=2 -- plan "$graph" --target ref
passes >"$dir/bisected"
same "bisect runs what is required and two others" "$dir/wanted" "$dir/bisected"
with PAWL_BISECT=two -- plan "$graph" --target ref
fails "bisect by a word" "PAWL_BISECT: 'two' is no whole number"

# dumps
with PAWL_DUMP="$dir/dump" -- opt "$graph"
check "dump: status" test $status = 0 -a ! -s "$dir/err"
check "what went in" cmp "$dir/dump/input.pawl" "$graph"
last=$(ls "$dir/dump" | grep '^[0-9]' | sort | tail -n 1)
check "the last change is the result" cmp "$dir/dump/$last" "$dir/out"
with -- opt --changes "$graph"
sed -n 's/^pawl opt: \([0-9]*\) \(.*\): .*/\1 \2/p' "$dir/err" | while read -r n name; do
  printf '%02d-%s.pawl\n' "$n" "$name"
done >"$dir/changed"
for file in $(cat "$dir/changed"); do
  check "dump of $file" test -s "$dir/dump/$file"
done
check "there are changes" test -s "$dir/changed"
with PAWL_DUMP="$dir/dumps" -- eval "$model" $tokens --logits "$dir/logits" --target ref
check "a second plan has names of its own" test -s "$dir/dumps/input.pawl" -a -s "$dir/dumps/input.2.pawl"
with PAWL_DUMP=/dev/null -- opt "$graph"
fails "a dump to no folder" '^pawl opt: PAWL_DUMP: /dev/null: Not a directory$'
with PAWL_DUMP="$dir/no/where" -- plan "$graph" --target ref
fails "a dump to a folder in none" "^pawl plan: PAWL_DUMP: $dir/no/where: No such file"

# kernels
if [ -z "$has_cpu" ]; then
  skip "kernels: there is no compiler for the CPU target"
  finish
fi
with PAWL_DUMP="$dir/kernels" -- plan "$graph" --target cpu
check "kernels: status" test $status = 0
n=$(ls "$dir/kernels" | grep -c '^k[0-9]*\.key$')
check "kernels are dumped" test "$n" -gt 1
for kind in ll s; do
  check "as .$kind" test "$(ls "$dir/kernels" | grep -c "^k[0-9]*\\.$kind\$")" = "$n"
done
check "with the step they were made for" grep -q '^[0-9a-f]\{16\} for .*w25' "$dir"/kernels/k*.key
check "in functions" grep -q '^define .*@pawl_phase0(' "$dir/kernels/k00.ll"
mkdir -p "$dir/taken/k00.ll"
with PAWL_DUMP="$dir/taken" -- plan "$graph" --target cpu
fails "kernels that cannot be dumped" 'cannot dump to .*/taken/k00.ll: '
for variant in baseline avx2; do
  with PAWL_CPU=$variant -- plan "$graph" --target cpu
  case $(cat "$dir/err") in
  *'does not run cpu variant'*) skip "PAWL_CPU=$variant: not on this machine" ;;
  *) check "PAWL_CPU=$variant" grep -q "^target   cpu, $variant, " "$dir/out" ;;
  esac
done
with PAWL_CPU=mmx -- plan "$graph" --target cpu
fails "a variant that is none" 'there is no cpu variant mmx'

PAWL_DEBUG=perf "$pawl" plan "$graph" --target cpu >"$dir/out" 2>"$dir/err" &
map=/tmp/perf-$!.map
wait $!
check "perf: status" test $? = 0
check "a map" test -f "$map" -a ! -L "$map"
check "of kernels with names" grep -q \
  '^[0-9a-f]* [0-9a-f]* pawl_matmul_[a-z0-9]*_[0-9a-f]\{16\}_phase0 for .*w25' "$map"
check "of sizes" sh -c '! grep -q "^[0-9a-f]* 0 " "$1"' - "$map"
rm -f "$map"
finish
