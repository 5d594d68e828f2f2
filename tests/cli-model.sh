# The commands that run a model, on tiny random ones.
. "$top_srcdir/tests/cli-lib.sh"
tiny q8.gguf q8_0
model=$dir/q8.gguf

# run: greedy text, the same whatever the threads and wherever the prompt comes from
succeeds "run" run "$model" --target ref -p "the other one" -n 12 --ignore-end --stats-json "$dir/s.json"
cp "$dir/out" "$dir/text"
check "text came" test "$(wc -c <"$dir/text")" -gt 4
printf 'the other one' >"$dir/prompt"
succeeds "run -f" run "$model" --target ref -f "$dir/prompt" -n 12 --ignore-end --threads 2
check "-f and two threads give the same text" cmp "$dir/out" "$dir/text"
"$pawl" run "$model" --target ref -f - -n 12 --ignore-end <"$dir/prompt" >"$dir/out" 2>"$dir/err"
check "standard input gives the same text" cmp "$dir/out" "$dir/text"
for temp in 0 -1 1e-9; do
  succeeds "temperature $temp" run "$model" --target ref -p "the other one" -n 12 --ignore-end --temp $temp --seed 7
  check "temperature $temp is greedy" cmp "$dir/out" "$dir/text"
done
succeeds "seed 1" run "$model" --target ref -p "the other one" -n 12 --ignore-end --temp 2 --seed 1
cp "$dir/out" "$dir/seed1"
succeeds "seed 1 again" run "$model" --target ref -p "the other one" -n 12 --ignore-end --temp 2 --seed 1
check "one seed, one text" cmp "$dir/out" "$dir/seed1"
succeeds "seed 2" run "$model" --target ref -p "the other one" -n 12 --ignore-end --temp 2 --seed 2
check "another seed, another text" sh -c '! cmp -s "$1" "$2"' - "$dir/out" "$dir/seed1"
succeeds "top-k 1" run "$model" --target ref -p "the other one" -n 12 --ignore-end --temp 2 --top-k 1
check "top-k 1 is greedy" cmp "$dir/out" "$dir/text"
succeeds "raw" run "$model" --target ref -p "the other one" -n 12 --ignore-end --raw
check "a raw prompt is another prompt" sh -c '! cmp -s "$1" "$2"' - "$dir/out" "$dir/text"

# the object of --stats-json
cat >"$dir/stats.py" <<'PYTHON'
import json, sys
s = json.load(open(sys.argv[1]))
names = """prompt_tokens restored_tokens generated_tokens end tokens prompt_tps decode_tps optimizes rebuilds
rebuild_reasons plan_reuses regrows validity_checks kernel_compiles kernels_read kernel_folder captures graph_launches capture_failures
thread_step_backs allocations_per_token bytes_bound_per_token
proposed_tokens accepted_tokens decode_runs peak_rss_bytes
first_token_s""".split()
assert list(s) == names, list(s)
assert s["generated_tokens"] == len(s["tokens"]) == 12
assert s["rebuilds"] == 0 and s["allocations_per_token"] == 0 and s["kernel_compiles"] == 0
assert s["kernels_read"] == 0 and s["kernel_folder"] is None
assert s["rebuild_reasons"] == {"stale": 0, "refused": 0, "asked": 0} and s["regrows"] == 0
assert s["end"] == "length"
assert s["optimizes"] in (2, 3) and s["plan_reuses"] == s["validity_checks"] >= 11
# ids u32, rope tables of 64 floats each, offset i64
assert s["bytes_bound_per_token"] == 4 + 2 * 64 * 4 + 8, s["bytes_bound_per_token"]
assert s["proposed_tokens"] == s["accepted_tokens"] == 0 and s["decode_runs"] == 11
assert s["prompt_tps"] > 0 and s["decode_tps"] > 0 and s["peak_rss_bytes"] > 1e6
PYTHON
check "figures as JSON" python3 "$dir/stats.py" "$dir/s.json"
tool run "$model" --target ref -p "the other one" -n 12 --ignore-end --stats
check "--stats keeps the text" cmp "$dir/out" "$dir/text"
check "a line of figures" grep -q '^pawl run: prompt [0-9]* tokens at [0-9.]*/s, then 12 at [0-9.]*/s; optimizes [23], rebuilds 0, plan reuses [0-9]*, allocations per token 0$' "$dir/err"
tool run "$model" --target ref -p x -n 1 --ignore-end --stats
check "no rate of no runs" grep -q '/s, then 1; optimizes ' "$dir/err"
tool run "$model" --target ref -p x -n 1 --stats-json "$dir/none/s.json"
check "figures that cannot be written are a failure" test $status = 1
check "which is said" grep -q 'none/s.json: No such file' "$dir/err"

# what of the prompt is wrong
for raw in '' --raw; do
  # shellcheck disable=SC2086
  refused 1 '^pawl run: -p: .* is not UTF-8 at byte 2$' run "$model" --target ref -p "$(printf 'ab\377')" $raw
done
: >"$dir/nothing"
refused 1 "^pawl run: $dir/nothing: the prompt is empty$" run "$model" --target ref -f "$dir/nothing" --raw

tiny q4.gguf q4_0
run_ref() { tool run "$model" --target ref --ignore-end "$@"; }

# guesses change figures and no text
run_ref -p "the other one" -n 100 --stats-json "$dir/plain.json"
cp "$dir/out" "$dir/long"
guesses() { # JSON TEST: of the figures s beside those of the plain run
  python3 - "$dir/plain.json" "$1" "$2" <<'PYTHON'
import json, sys
plain, s = (json.load(open(path)) for path in sys.argv[1:3])
assert s["tokens"] == plain["tokens"] and s["rebuilds"] == 0, s
assert s["decode_runs"] + s["accepted_tokens"] == 99, s
assert s["optimizes"] <= plain["optimizes"] + 1, s
assert eval(sys.argv[3]), (sys.argv[3], s)
PYTHON
}
for ahead in 1 3 7 31; do
  succeeds "lookup, $ahead ahead" run "$model" --target ref --ignore-end -p "the other one" -n 100 --lookup --guess $ahead --stats-json "$dir/s.json"
  check "lookup, $ahead ahead: the text" cmp "$dir/out" "$dir/long"
  check "lookup, $ahead ahead: figures" guesses "$dir/s.json" 's["proposed_tokens"] > s["accepted_tokens"] > 0'
done
run_ref -p "the other one" -n 100 --temp 0.3 --seed 5
cp "$dir/out" "$dir/drawn"
succeeds "lookup with draws" run "$model" --target ref --ignore-end -p "the other one" -n 100 --temp 0.3 --seed 5 --lookup
check "gives the same draws" cmp "$dir/out" "$dir/drawn"
tool run "$model" --target ref --ignore-end -p "the other one" -n 100 --lookup --stats
check "lookup: a line of figures" grep -q 'allocations per token [0-9.]*; of [0-9]* guesses [0-9]* right, [0-9]* runs$' "$dir/err"
succeeds "the model as its own draft" run "$model" --target ref --ignore-end -p "the other one" -n 100 --draft "$model" --guess 3 --stats-json "$dir/s.json"
check "own draft: the text" cmp "$dir/out" "$dir/long"
check "own draft: figures" guesses "$dir/s.json" 's["decode_runs"] == 25 and s["proposed_tokens"] == 75'
succeeds "another draft" run "$model" --target ref --ignore-end -p "the other one" -n 100 --draft "$dir/q4.gguf" --save "$dir/drafted" --stats-json "$dir/s.json"
check "another draft: the text" cmp "$dir/out" "$dir/long"
check "another draft: figures" guesses "$dir/s.json" 's["proposed_tokens"] > s["accepted_tokens"]'
succeeds "without it" run "$model" --target ref --ignore-end -p "the other one" -n 100 --save "$dir/alone"
check "a session has no guesses in it" python3 - "$dir/alone" "$dir/drafted" <<'PYTHON'
import os, sys
assert os.path.getsize(sys.argv[1]) == os.path.getsize(sys.argv[2]) > 0
PYTHON
run_ref --restore "$dir/alone" -n 20
cp "$dir/out" "$dir/after"
run_ref --restore "$dir/drafted" -n 20 --lookup
check "goes on alike" cmp "$dir/out" "$dir/after"
tiny other.gguf other
tiny more.gguf more
refused 1 "^pawl run: --draft: $dir/other.gguf: token 0 differs from the model's: the vocabulary is another one$" run "$model" --target ref -p x -n 2 --draft "$dir/other.gguf"
refused 1 "^pawl run: --draft: $dir/more.gguf: 301 tokens, the model has 300: " run "$model" --target ref -p x -n 2 --draft "$dir/more.gguf"
refused 1 '^pawl run: --draft: .*none: ' run "$model" --target ref -p x -n 2 --draft "$dir/none"
cp "$dir/q4.gguf" "$dir/draft.gguf"
refused 1 'is the same file as the input' run "$model" --target ref -p x -n 2 --draft "$dir/draft.gguf" --stats-json "$dir/draft.gguf"
refused 1 'is the same file as the input' run "$model" --target ref -p x -n 2 --draft "$dir/draft.gguf" --save "$dir/draft.gguf"
check "a draft is not overwritten" cmp "$dir/q4.gguf" "$dir/draft.gguf"

# caches of other types: each is a plan of its own
for kv in f16 f32 bf16; do
  succeeds "logits with a cache of $kv" eval "$model" --target ref --kv $kv --tokens 5,6,7,8,9,5,6,7,8,9 --logits "$dir/logits.$kv"
done
check "a bf16 cache is another than f16" sh -c '! cmp -s "$1" "$2"' - "$dir/logits.bf16" "$dir/logits.f16"
check "and than f32" sh -c '! cmp -s "$1" "$2"' - "$dir/logits.bf16" "$dir/logits.f32"

# context: never cut silently
refused 1 '^pawl run: 1[0-9]* positions are needed, the context holds 64' run "$model" --target ref -p "the other one" -n 100 --ctx 64
refused 1 '^pawl run: 3[0-9]* positions are needed, the context holds 256 (--ctx sets it)' run "$model" --target ref -p "the other one" -n 300
tool run "$model" --target ref -p "the other one" -n 2 --ctx 512
check "a context beyond the model's is said" grep -q '^pawl run: --ctx 512 is beyond the 256 positions' "$dir/err"
cut() { # END MESSAGE OPTION...
  wanted=$1 message=$2
  shift 2
  tool run "$model" --target ref -p x --raw --stats-json "$dir/s.json" "$@"
  check "$*: status $status" test $status = 0
  check "$*: its end" grep -q "\"end\":	\"$wanted\"," "$dir/s.json"
  printf '%s' "${message:+$message
}" >"$dir/said"
  check "$*: what is said" cmp "$dir/said" "$dir/err"
}
cut context "pawl run: cut off after 255 tokens: the context of 256 positions is full" --ignore-end
check "255 tokens fit" grep -q '"generated_tokens":	255,' "$dir/s.json"
cut context "pawl run: cut off after 63 tokens: the context of 64 positions is full" --ignore-end --ctx 64
cut length "" --ignore-end -n 63 --ctx 64
tool run "$model" --target ref -p x --raw --ignore-end --ctx 512
check "the default of -n is said" grep -qx 'pawl run: cut off after 256 tokens (-n sets how many)' "$dir/err"
cut eos "" -n 255
cut eos ""

# what is announced
tiny extra.gguf extra
tool run "$dir/extra.gguf" --target ref -p x -n 1
check "unused tensors are a warning" grep -q '^pawl run: warning: 1 tensors of the file are not used, such as blk.0.adapter.weight$' "$dir/err"
check "and no failure" test $status = 0
tool run "$model" --target ref -p x -n 1 -v
check "-v: model" grep -q '^pawl run: model: llama, 2 layers' "$dir/err"
check "-v: ends" grep -q 'a generation ends at 297 299$' "$dir/err"
check "-v: template" grep -q 'template: ChatML, from tokenizer.chat_template' "$dir/err"
check "-v: threads" grep -qE '[0-9] threads?: .*; cache for 256 positions' "$dir/err"
tool run "$model" --target ref -p x -n 1 --threads 1000
check "more threads than CPUs" test $status = 0 -a "$(wc -l <"$dir/err")" = 1
check "are said" grep -qE '^pawl run: 1000 threads share the [0-9]+ CPUs? that (is|are) granted \(affinity [0-9]+, .*\), and wait for each other$' "$dir/err"
tool eval "$model" --target ref --tokens 1,2 --logits "$dir/l" --threads 1000
check "in eval too" grep -q '^pawl eval: 1000 threads share the ' "$dir/err"
PAWL_THREADS=1000 tool run "$model" --target ref -p x -n 1
check "whoever asked" grep -q '^pawl run: 1000 threads share the ' "$dir/err"
tool run "$model" --target ref -p x -n 1 --threads 1
check "one thread is never too many" test ! -s "$dir/err"
tiny plain.gguf plain
refused 1 'no chat template; --raw' run "$dir/plain.gguf" --target ref -p x
succeeds "--raw needs no template" run "$dir/plain.gguf" --target ref -p x -n 2 --raw

# tokenize, detokenize
encode() { # TEXT ARGUMENT...
  text=$1
  shift
  printf '%s' "$text" | "$pawl" tokenize "$model" "$@"
}
check "marks are tokens" test "$(encode '<|im_start|>th')" = "[298, 256]"
check "unless they are text" test "$(encode '<|im_end|>' --no-special | tr ',' '\n' | wc -l)" -gt 3
check "BOS" test "$(encode th --bos)" = "[298, 256]"
check "no BOS" test "$(encode th --no-bos)" = "[256]"
check "nothing" test "$(encode '')" = "[]"
printf 'the caf\303\251 \360\237\231\202 in <|im_end|>\n\n' >"$dir/plain"
"$pawl" tokenize "$model" <"$dir/plain" | "$pawl" detokenize "$model" >"$dir/back"
check "there and back" cmp "$dir/plain" "$dir/back"
check "without control tokens" test "$(printf '256 299 257' | "$pawl" detokenize "$model" --no-special)" = "thhe"

# eval
size() {
  wc -c <"$1" | tr -d ' '
}
list=12,80,250,3,77,298,4,19,33,201,5,6,7,8,9,10,11,13,14,15
row=$((300 * 4))
succeeds "eval" eval "$model" --target ref --tokens $list --logits "$dir/all"
check "a row for each token" test "$(size "$dir/all")" = $((20 * row))
for chunk in 1 3 8; do
  succeeds "chunk $chunk" eval "$model" --target ref --tokens $list --logits "$dir/c" --chunk $chunk --threads 3
  check "chunks of $chunk give the same bits" cmp "$dir/all" "$dir/c"
done
succeeds "last" eval "$model" --target ref --tokens $list --logits "$dir/last" --last
tail -c $row "$dir/all" >"$dir/tail"
check "the last row" cmp "$dir/last" "$dir/tail"
echo "[$list]" >"$dir/list"
echo precious >"$dir/kept"
refused 1 'token 1 is 99999' eval "$model" --target ref --tokens 1,99999 --logits "$dir/kept"
check "a bad id leaves the file alone" grep -q precious "$dir/kept"
cp "$model" "$dir/self.gguf"
refused 1 'is the same file as the input' eval "$dir/self.gguf" --target ref --tokens 1,2 --logits "$dir/self.gguf"
check "the model is not overwritten" cmp "$model" "$dir/self.gguf"
succeeds "a file of tokens" eval "$model" --target ref --tokens "$dir/list" --logits "$dir/c"
check "gives the same bits" cmp "$dir/all" "$dir/c"
succeeds "a8" eval "$model" --target ref --tokens $list --logits "$dir/a8" --activations a8
succeeds "exact" eval "$model" --tokens $list --logits "$dir/exact" --exact
succeeds "exact in chunks" eval "$model" --tokens $list --logits "$dir/exact3" --exact --chunk 3
cat >"$dir/distance.py" <<'PYTHON'
import array, sys
a, b = (array.array("f", open(name, "rb").read()) for name in sys.argv[1:3])
least, most = map(float, sys.argv[3:5])
distance = max(abs(x - y) for x, y in zip(a, b))
assert len(a) == len(b) > 0 and least <= distance <= most, distance
PYTHON
check "a16 is near exact" python3 "$dir/distance.py" "$dir/all" "$dir/exact" 1e-7 0.02
check "a8 is further" python3 "$dir/distance.py" "$dir/a8" "$dir/exact" 0.005 0.5
check "exact in chunks rounds the cache to f32" python3 "$dir/distance.py" "$dir/exact" "$dir/exact3" 0 1e-4

# perplexity: of windows by their logits
succeeds "perplexity" eval "$model" --target ref --tokens "$dir/list" --perplexity --window 9
cp "$dir/out" "$dir/nll"
for chunk in 1 2; do
  succeeds "perplexity in chunks" eval "$model" --target ref --tokens $list --perplexity --window 9 --chunk $chunk --threads 2
  check "chunks of $chunk give the same" cmp "$dir/nll" "$dir/out"
done
succeeds "exact perplexity" eval "$model" --tokens $list --perplexity --window 9 --exact
cp "$dir/out" "$dir/nll.exact"
tiny bos.gguf gemma
check "this one wants no BOS, the other does" test "$(encode '')" = '[]' -a \
  "$("$pawl" tokenize "$dir/bos.gguf" </dev/null)" = '[2]'
succeeds "perplexity behind BOS" eval "$dir/bos.gguf" --target ref --tokens $list --perplexity --window 9
cp "$dir/out" "$dir/nll.bos"
for i in 0 1; do
  window=$(echo $list | command cut -d, -f$((9 * i + 1))-$((9 * i + 9)))
  "$pawl" eval "$model" --target ref --tokens "$window" --logits "$dir/window$i"
  "$pawl" eval "$model" --exact --tokens "$window" --logits "$dir/exact$i"
  "$pawl" eval "$dir/bos.gguf" --target ref --tokens "2,${window#*,}" --logits "$dir/bos$i"
done
cat >"$dir/nll.py" <<'PYTHON'
import array, math, re, sys
folder, tokens, said, name, n_vocab = sys.argv[1:]
tokens, surprises, n_vocab = list(map(int, tokens.split(","))), [], int(n_vocab)
for i in range(2):
    logits = array.array("f", open("%s/%s%d" % (folder, name, i), "rb").read())
    for position in range(4, 8): # 4 of 9 are the first half, nothing follows the last
        row = logits[n_vocab * position:n_vocab * (position + 1)]
        surprises.append(math.log(sum(map(math.exp, row))) - row[tokens[9 * i + position + 1]])
nll = sum(surprises) / len(surprises)
wanted = "perplexity %.4f, mean negative log likelihood %.6f nats; 8 of 20 tokens scored, windows of 9\n"
assert open(said).read() == wanted % (math.exp(nll), nll), (wanted % (math.exp(nll), nll))
PYTHON
check "as the logits say" python3 "$dir/nll.py" "$dir" $list "$dir/nll" window 300
check "as the exact ones say" python3 "$dir/nll.py" "$dir" $list "$dir/nll.exact" exact 300
check "as those behind BOS say" python3 "$dir/nll.py" "$dir" $list "$dir/nll.bos" bos 304
refused 1 '^pawl eval: --tokens: 20 tokens, a window has 21$' eval "$model" --target ref --tokens $list --perplexity --window 21
refused 1 'token 1 is 99999' eval "$model" --target ref --tokens 1,99999,3 --perplexity --window 3

# the CPU target gives the reference's bits
if [ -f "$top_builddir/plugins/.libs/target_cpu.so" ] && [ -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
  succeeds "run on cpu" run "$model" --target cpu -p "the other one" -n 12 --ignore-end
  check "the same text" cmp "$dir/out" "$dir/text"
  for times in first second; do
    PAWL_KERNEL_CACHE=$dir/kernels tool run "$model" --target cpu -p x --raw -n 2 -v --stats --stats-json "$dir/$times.json"
    grep -o '; kernels: .*' "$dir/err" >"$dir/$times"
  done
  n=$(sed -n 's/^; kernels: \([1-9][0-9]*\) compiled, 0 read from .*/\1/p' "$dir/first")
  check "compiled kernels are counted" test "${n:-0}" -gt 0
  check "then those of the folder" grep -qx "; kernels: 0 compiled, $n read from $dir/kernels" "$dir/second"
  check "and named in JSON" grep -q "\"kernel_folder\":	\"$dir/kernels\"" "$dir/second.json"
  PAWL_KERNEL_CACHE=off tool run "$model" --target cpu -p x --raw -n 2 -v
  check "-v counts them too" grep -qx "pawl run: kernels: $n compiled, 0 read, none kept" "$dir/err"
  succeeds "lookup on cpu" run "$model" --target cpu -p "the other one" -n 100 --ignore-end --lookup
  check "the same text with guesses" cmp "$dir/out" "$dir/long"
  succeeds "bench --steps" bench "$model" --target cpu -t 1,2 -p 0 -n 3 -d 0,5 -r 1 --steps --json
  cp "$dir/out" "$dir/steps.json"
  tool plan "$model" --target cpu
  n=$(sed -n 's/.* nodes became \([0-9]*\) steps.*/\1/p' "$dir/out")
  check "all steps of the plan" python3 -c '
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert len(rows) == 4
for row in rows:
    steps = row["steps"]
    assert sum(step["n"] for step in steps) == int(sys.argv[2]), steps
    assert all(step["us"] > 0 for step in steps), steps
    assert [step["us"] for step in steps] == sorted((step["us"] for step in steps), reverse=True)
    assert sum(step["weight_bytes"] for step in steps) == row["weight_bytes"], row
    assert {"matmul", "attend", "gather"} <= {step["template"] for step in steps}
' "$dir/steps.json" "$n"
  succeeds "bench --steps as text" bench "$model" --target cpu -t 1 -p 0 -n 3 -d 0,5 -r 1 --steps
  check "a table below each row" test "$(grep -c ' attend  .*; rope+attention$' "$dir/out")" = 2
  for dtype in f32 f16 bf16 q4_0 q4_1 q5_0 q5_1 q8_0 q4_k q5_k q6_k; do
    tiny t.gguf $dtype
    succeeds "$dtype on ref" eval "$dir/t.gguf" --target ref --tokens $list --logits "$dir/ref"
    succeeds "$dtype on cpu" eval "$dir/t.gguf" --target cpu --tokens $list --logits "$dir/cpu" --threads 2
    check "$dtype: the same bits" cmp "$dir/ref" "$dir/cpu"
  done
  ln -s "$dir" "$dir/link"
  PAWL_KERNEL_CACHE=$dir/link tool eval "$dir/t.gguf" --target cpu --tokens $list --logits "$dir/cpu" --threads 1
  check "no kernel cache behind a link" test $status = 0
  check "said once" test "$(grep -c 'link: a link, which is not followed; kernels are compiled at every start$' "$dir/err")" = 1
else
  skip "the CPU target is not built"
fi

# bench
succeeds "bench" bench "$model" --target ref -t 1,2 -p 4 -n 2 -d 0,5 -r 1 --json
cat >"$dir/bench.py" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [(r["threads"], r["depth"]) for r in rows] == [(1, 0), (1, 5), (2, 0), (2, 5)]
assert all(r["prompt_tps"] > 0 and r["decode_tps"] > 0 for r in rows)
assert all(r["rebuilds"] == 0 and r["thread_step_backs"] == 0 for r in rows)
assert all((r["model"], r["target"], r["activations"], r["kv"]) == (sys.argv[2], "ref", "a16", "f16") for r in rows)
# f32 or f16 keys and values of so many positions: 1 and 6, with -n 2
assert [r["kv_bytes"] / rows[0]["kv_bytes"] for r in rows] == [1, 6, 1, 6], rows
PYTHON
check "rows of the benchmark" python3 "$dir/bench.py" "$dir/out" "$model"
succeeds "bench as text" bench "$model" --target ref -t 1 -p 4 -n 0 -r 1
check "a head and a row" test "$(wc -l <"$dir/out")" = 2
check "one round has no range" grep -qE '^ +1 +0 +[0-9.]+ \+-     - +0\.0 \+-     - +0\.0$' "$dir/out"
succeeds "two rounds" bench "$model" --target ref -t 1 -p 4 -n 2 -r 2
check "have one" grep -qE '^ +1 +0 +[0-9.]+ \+- +[0-9.]+% +[0-9.]+ \+- +[0-9.]+% +[0-9.]+$' "$dir/out"
tool bench "$model" --target ref -t 1,1000 -p 4 -n 0 -r 1 -v
check "-v: threads" grep -qx 'pawl bench: 1 thread: as asked for' "$dir/err"
check "-v: how they fared" grep -qx 'pawl bench: threads 1, depth 0: 0 steps back to fewer threads until then' "$dir/err"
check "more threads than CPUs" grep -q '^pawl bench: 1000 threads share the ' "$dir/err"
tool bench "$model" --target ref -p 4 -n 0 -r 1 -v
check "-v: the default" grep -qE '^pawl bench: [0-9]+ threads?: affinity ' "$dir/err"
succeeds "bench --replan" bench "$model" --target ref -t 1 -n 3 -r 1 --replan
check "no ranges" test "$(grep -cE '[0-9] \+-   - ' "$dir/out")" = 4
check "four ways" test "$(grep -c ', plan held\|, replanned every token' "$dir/out")" = 4
succeeds "bench --replan as JSON" bench "$model" --target ref -t 1 -n 3 -r 1 --replan --json
check "four rows" test "$(grep -c '"token_s"' "$dir/out")" = 4
check "and what they are of" test "$(grep -c '"threads":	1,\|"kv":	"f16"\|"model":	"' "$dir/out")" = 15
succeeds "bench --batch" bench "$model" --target ref -t 1 -n 2 -d 3 -r 1 --batch 1,3
check "a row for each batch" test "$(grep -cE '^ +[13] +3 ' "$dir/out")" = 2
succeeds "bench --batch as JSON" bench "$model" --target ref -t 1 -n 2 -r 1 --batch 8 --json
check "aggregate of a batch" python3 -c '
import json, sys
row, = json.load(open(sys.argv[1]))["rows"]
assert row["sequences"] == 8 and row["decode_tps"] > 0
assert (row["threads"], row["target"], row["activations"], row["kv"]) == (1, "ref", "a16", "f16")' "$dir/out"
succeeds "bench --batch up to the context" bench "$model" --target ref -t 1 -n 2 -d 254 -r 1 --batch 1
refused 1 '^pawl bench: 257 positions are needed, the model was made for 256$' bench "$model" --target ref -t 1 -n 2 -d 255 -r 1 --batch 1
refused 2 '\-p is not for --batch' bench "$model" --batch 2 -p 5
refused 2 '^pawl bench: --batch: 9 is not in 1 .. 8' bench "$model" --batch 9
refused 2 '\-d is not for --replan' bench "$model" --replan -d 5
refused 2 '^pawl bench: -t: one number with --replan and --batch' bench "$model" --replan -t 1,2
refused 2 '^pawl bench: -t: one number with --replan and --batch' bench "$model" --batch 2 -t 1,2
refused 2 '^pawl bench: -d: one number with --batch' bench "$model" --batch 2 -d 0,5
refused 2 '^pawl bench: -n 0 leaves nothing to measure' bench "$model" --batch 2 -n 0
refused 2 '^pawl bench: -n 0 leaves nothing to measure' bench "$model" --replan -n 0
refused 2 '^pawl bench: -n 0 leaves nothing to measure' bench "$model" --steps -n 0
refused 2 '\--steps is not for --replan' bench "$model" --replan --steps
refused 2 '\--steps is not for --batch' bench "$model" --batch 2 --steps
refused 1 '^pawl bench: target ref does not time its steps$' bench "$model" --target ref -p 0 -n 1 -r 1 --steps
succeeds "bench of the whole context" bench "$model" --target ref -t 1 -p 0 -n 3 -d 253 -r 1
refused 1 '^pawl bench: 257 positions are needed' bench "$model" --target ref -t 1 -p 0 -n 3 -d 254 -r 1
succeeds "a prompt up to the context" bench "$model" --target ref -t 1 -p 20 -n 0 -d 5,236 -r 1
refused 1 '^pawl bench: 257 positions are needed' bench "$model" --target ref -t 1 -p 20 -n 1 -d 237 -r 1
succeeds "bench up to --ctx" bench "$model" --target ref -t 1 -p 9 -n 4 -d 55 --ctx 64 -r 1
refused 1 '^pawl bench: 65 positions are needed' bench "$model" --target ref -t 1 -p 9 -n 4 -d 56 --ctx 64 -r 1
refused 1 'up to 512 tokens' bench "$model" --target ref -t 1 --replan -n 513
refused 1 'positions are needed' bench "$model" --target ref -t 1 -p 4 -n 2 -d 10000
finish
