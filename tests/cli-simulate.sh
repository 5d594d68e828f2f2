# pawl simulate: requests of a file through a scheduler, on a tiny random model.
. "$top_srcdir/tests/cli-lib.sh"
tiny model.gguf q8_0
model=$dir/model.gguf
requests=$dir/requests.jsonl
cat >"$requests" <<'LINES'
{"prompt": "the other one is here and there", "n": 20, "id": "a"}

{"n": 12, "prompt": "the other one is here and there", "arrival": 6, "id": "again"}
{"prompt": "another beginning of it all, somewhere over the rainbow", "n": 30, "priority": "low"}
{"prompt": "x", "n": 4, "arrival": 3, "priority": "critical", "id": "urgent"}
{"prompt": "x", "n": 10, "arrival": 3, "temp": 2, "seed": 5, "id": "drawn"}
LINES
simulate() {
  succeeds "simulate $*" simulate "$model" "$requests" --target ref --ignore-end --block-size 16 "$@"
}

simulate --every 10 --show
check "a header" grep -q '^request  *arrival  *prompt ' "$dir/out"
check "the pool" grep -q '^step 10: waiting 0, prefilling 0, decoding [0-9]*, evicted 0, finished [0-9]*; blocks free 5 of 12, prefixes 2$' "$dir/out"
check "one that fits" grep -q '^a  *0  *21  *0  *20  *0 .* length$' "$dir/out"
check "by its line" grep -q '^line 4  *0  *40  *0  *30 .* length$' "$dir/out"
check "one that shares" grep -q '^again  *6  *21  *16  *12  *0 .* length$' "$dir/out"
check "a summary" grep -q '^evictions 0, restores 0, recomputes 0; optimizes [56], rebuilds 0$' "$dir/out"
check "texts" grep -q '^== urgent$' "$dir/out"

# The same tokens whatever the policy, and those of pawl run.
cat >"$dir/same.py" <<'PYTHON'
import json, sys
one, two = (json.load(open(path)) for path in sys.argv[1:3])
tokens = lambda r: {q["id"]: q["tokens"] for q in r["requests"]}
assert tokens(one) == tokens(two), (tokens(one), tokens(two))
s = two["summary"]
assert s["rebuilds"] == 0 and s["free_blocks"] <= s["blocks"] and s["peak_blocks"] <= s["blocks"]
for name in sys.argv[3:]:
    assert s[name] > 0, name
    assert two["requests"][0]["id"] == "a"
PYTHON
simulate --json --show
cp "$dir/out" "$dir/first.json"
same_tokens() { # WHAT-MUST-BE-POSITIVE... -- OPTION...
  wants=
  while [ "$1" != -- ]; do wants="$wants $1"; shift; done
  shift
  simulate --json "$@"
  cp "$dir/out" "$dir/second.json"
  # shellcheck disable=SC2086
  check "the same tokens with $*" python3 "$dir/same.py" "$dir/first.json" "$dir/second.json" $wants
}
same_tokens tokens_shared -- --max-batch 2 --admission reserved --blocks 5
same_tokens evictions -- --max-batch 4 --blocks 5 --prefixes 0
same_tokens evictions -- --policy round-robin --blocks 5
same_tokens steps -- --policy=batched --max-batch=1 --prefixes 0 --chunk 5 --threads 2
tool run "$model" --target ref --ignore-end --raw -p "the other one is here and there" -n 20 --stats-json "$dir/run.json"
check "the tokens of pawl run" python3 - "$dir/first.json" "$dir/run.json" <<'PYTHON'
import json, sys
simulated, run = (json.load(open(path)) for path in sys.argv[1:])
by_id = {q["id"]: q for q in simulated["requests"]}
assert by_id["a"]["tokens"] == run["tokens"]
assert by_id["again"]["tokens"] == run["tokens"][:12] and by_id["again"]["shared_tokens"] == 16
assert by_id["urgent"]["admit_step"] == 4 and by_id["urgent"]["queue_steps"] == 0
assert by_id["line 4"]["first_token_steps"] > 1
assert all(q["text"] is not None for q in simulated["requests"])
PYTHON
simulate --json --every 5
check "the pool as JSON" python3 - "$dir/out" <<'PYTHON'
import json, sys
pool = json.load(open(sys.argv[1]))["pool"]
assert [look["step"] for look in pool] == list(range(5, 5 * len(pool) + 1, 5)) and len(pool) > 4
assert pool[0]["decoding"] > 0 and pool[0]["resident_bytes"] > 0
PYTHON
# Every byte a token: all of text, whatever it holds, comes out of JSON as detokenize gives it.
for seed in 1 2 3 4 5 6 7 8; do
  echo '{"prompt": "x", "n": 200, "temp": 100, "seed": '$seed'}'
done >"$dir/drawn.jsonl"
succeeds "texts of any bytes" simulate "$model" "$dir/drawn.jsonl" --target ref --ignore-end --json --show
check "as they are" python3 - "$dir/out" "$pawl" "$model" <<'PYTHON'
import json, subprocess, sys
rows = json.load(open(sys.argv[1]))["requests"]
drawn = "".join(r["text"] for r in rows)
for r in rows:
    bytes = subprocess.run([*sys.argv[2:3], "detokenize", "--no-special", sys.argv[3]], check=True,
                           input=json.dumps(r["tokens"]).encode(), stdout=subprocess.PIPE).stdout
    assert r["text"] == bytes.decode("utf-8", "replace"), (r["text"], bytes)
for character in '\0\1\b\f\n\r\t"\\\x1f\x7f\ufffd':
    assert character in drawn, character
PYTHON
succeeds "standard input" simulate --help
"$pawl" simulate "$model" - --target ref --ignore-end --block-size 16 --json <"$requests" >"$dir/second.json" 2>"$dir/err"
check "the same from standard input" python3 "$dir/same.py" "$dir/first.json" "$dir/second.json"

# One that never fits, by the model or by --blocks: told with that limit, the others go on, and the
# status is 1.
{ cat "$requests"; echo '{"prompt": "x", "n": 400, "arrival": 3, "id": "never"}'; } >"$dir/never.jsonl"
never() { # LIMIT OPTION...
  limit=$1
  shift
  tool simulate "$model" "$dir/never.jsonl" --target ref --ignore-end --block-size 16 "$@"
  check "a request that never fits $*: status $status" test $status = 1
  check "with the reason" grep -q "^never  *3 .* refused: a prompt of 1 and 400 new tokens do not fit in the $limit$" "$dir/out"
  check "a line about it" test "$(cat "$dir/err")" = "pawl simulate: 1 of 6 requests were refused or failed"
  check "the others go on" test "$(grep -c ' length$' "$dir/out")" = 5
}
never "256 positions the model was made for"
never "256 positions the model was made for" --policy round-robin
printf '{"prompt": "x", "n": 100}\n{"prompt": "x", "n": 20, "id": "a"}\n' >"$dir/large.jsonl"
tool simulate "$model" "$dir/large.jsonl" --target ref --ignore-end --block-size 16 --blocks 3
check "too few blocks: status $status" test $status = 1
check "too few blocks" grep -q 'refused: a prompt of 1 and 100 new tokens do not fit in the 3 blocks of 16 (--blocks)$' "$dir/out"
tool simulate "$model" "$dir/never.jsonl" --target ref --ignore-end --block-size 16 --json
check "in JSON: status $status" test $status = 1
check "in JSON: the reason" python3 - "$dir/out" <<'PYTHON'
import json, sys
never, = (q for q in json.load(open(sys.argv[1]))["requests"] if q["end"] == "refused")
assert never["id"] == "never" and "256 positions" in never["reason"] and never["tokens"] == []
PYTHON

# round-robin: the pool is for eight of the longest, or all, so that nobody is evicted
simulate --policy round-robin --json
check "room for all" python3 - "$dir/out" <<'PYTHON'
import json, sys
s = json.load(open(sys.argv[1]))["summary"]
assert s["evictions"] == 0 and s["blocks"] == 12, s
PYTHON

# an answer that ends by itself
simulate_ending() { tool simulate "$model" "$requests" --target ref --json; }
simulate_ending
check "eos" grep -q '"end":	"eos"' "$dir/out"

# What of a line is wrong.
bad() { # MESSAGE LINE
  printf '{"prompt": "x", "n": 1}\n%s\n' "$2" >"$dir/bad.jsonl"
  refused 1 "^pawl simulate: .*bad.jsonl:2: $1$" simulate "$model" "$dir/bad.jsonl" --target ref
}
bad 'no JSON at byte [0-9]*' '{"prompt": "x", "n": 1'
bad 'no JSON at byte [0-9]*' '{"prompt": "x", "n": 1} 2'
bad 'no JSON at byte [0-9]*' 'hello'
bad 'not an object' '[1, 2]'
bad 'not an object' '"x"'
bad 'not an object' 'null'
bad 'prompt is missing' '{"n": 1}'
bad 'n is missing' '{"prompt": "x"}'
bad 'prompt is missing' '{}'
bad "there is no field 'promt'" '{"promt": "x", "n": 1}'
bad "there is no field 'N'" '{"prompt": "x", "N": 1}'
bad 'n is there twice' '{"prompt": "x", "n": 1, "n": 2}'
bad 'prompt is not a text' '{"prompt": 7, "n": 1}'
bad 'prompt is not a text' '{"prompt": ["x"], "n": 1}'
bad 'prompt is empty' '{"prompt": "", "n": 1}'
bad 'prompt: .* is not UTF-8 at byte 2' "{\"prompt\": \"ab$(printf '\377')\", \"n\": 1}"
bad 'a zero character at byte 14' '{"prompt": "ab\u0000cd", "n": 1}'
bad 'n is not a whole number' '{"prompt": "x", "n": "1"}'
bad 'n is not a whole number' '{"prompt": "x", "n": 1.5}'
bad 'n is 0, not in 1 \.\. 16777216' '{"prompt": "x", "n": 0}'
bad 'n is -3, not in 1 \.\. 16777216' '{"prompt": "x", "n": -3}'
bad 'n is 1e+300, not in 1 \.\. 16777216' '{"prompt": "x", "n": 1e300}'
bad 'n is inf, not in 1 \.\. 16777216' '{"prompt": "x", "n": 1e999}'
bad 'arrival is -1, not in 0 \.\. 1000000' '{"prompt": "x", "n": 1, "arrival": -1}'
bad 'arrival is 1000001, not in 0 \.\. 1000000' '{"prompt": "x", "n": 1, "arrival": 1000001}'
bad 'arrival is not a whole number' '{"prompt": "x", "n": 1, "arrival": null}'
bad 'temp is 101, not in -100 \.\. 100' '{"prompt": "x", "n": 1, "temp": 101}'
bad 'temp is not a number' '{"prompt": "x", "n": 1, "temp": true}'
bad 'seed is 9007199254740992, not in 0 \.\. 9007199254740991' '{"prompt": "x", "n": 1, "seed": 9007199254740992}'
bad 'seed is 9007199254740992, not in 0 \.\. 9007199254740991' '{"prompt": "x", "n": 1, "seed": 9007199254740993}'
bad 'seed is -1, not in 0 \.\. 9007199254740991' '{"prompt": "x", "n": 1, "seed": -1}'
bad 'seed is not a whole number' '{"prompt": "x", "n": 1, "seed": 0.5}'
bad 'priority is none of low, normal, high, critical' '{"prompt": "x", "n": 1, "priority": "top"}'
bad 'priority is none of low, normal, high, critical' '{"prompt": "x", "n": 1, "priority": 3}'
bad 'id is not a text' '{"prompt": "x", "n": 1, "id": 4}'
bad 'id is empty' '{"prompt": "x", "n": 1, "id": ""}'
for code in 0001 000A 001F 007F 0080 009F 061C 200E 200F 2028 2029 202A 202E 2066 2069; do
  bad "id holds the control character U+$code" "{\"prompt\": \"x\", \"n\": 1, \"id\": \"a\\u${code}b\"}"
done
for code in 0020 007E 00A0 061B 061D 200D 2010 2027 202F 2065 206A; do
  printf '{"prompt": "x", "n": 1, "id": "a\\u%sb"}\n' $code >"$dir/name.jsonl"
  succeeds "an id with U+$code" simulate "$model" "$dir/name.jsonl" --target ref --json
done
bad 'id has 65 bytes, 64 are possible' "{\"prompt\": \"x\", \"n\": 1, \"id\": \"$(printf '%065d' 0)\"}"
printf '{"prompt": "x", "n": 1, "id": "b"}\n{"prompt": "x", "n": 1, "id": "a"}\n{"prompt": "y", "n": 1, "arrival": 9, "id": "a"}\n' >"$dir/bad.jsonl"
refused 1 "bad.jsonl:3: the id 'a' is that of line 2 too$" simulate "$model" "$dir/bad.jsonl"
bad "the id 'line 1' is that of line 1 too" '{"prompt": "x", "n": 1, "id": "line 1"}'
bad 'id is not UTF-8' "{\"prompt\": \"x\", \"n\": 1, \"id\": \"$(printf '\377')\"}"
printf '{"prompt": "x", "n": 1}\n{"prompt": "a\0b", "n": 1}\n' >"$dir/bad.jsonl"
refused 1 'bad.jsonl:2: a zero character at byte 13$' simulate "$model" "$dir/bad.jsonl"
{ printf '{"prompt": "'; head -c 1100000 /dev/zero | tr '\0' x; printf '", "n": 1}'; } >"$dir/bad.jsonl"
refused 1 'bad.jsonl:1: 11000[0-9]* bytes, a line may have 1048576$' simulate "$model" "$dir/bad.jsonl"
yes '{}' | head -n 3 | tr -d '{}' >"$dir/bad.jsonl"
refused 1 'bad.jsonl: no requests$' simulate "$model" "$dir/bad.jsonl"
: >"$dir/bad.jsonl"
refused 1 'bad.jsonl: no requests$' simulate "$model" "$dir/bad.jsonl"
refused 1 'nothing-here: No such file' simulate "$model" "$dir/nothing-here"
refused 1 'nothing-here: .*No such file' simulate "$dir/nothing-here" "$requests"
awk 'BEGIN { for (i = 0; i < 65537; i++) print "{\"prompt\": \"x\", \"n\": 1}" }' >"$dir/bad.jsonl"
refused 1 'bad.jsonl:65537: more than 65536 requests$' simulate "$model" "$dir/bad.jsonl"

# What of the command line is wrong.
refused 2 '^pawl simulate: no MODEL REQUESTS.jsonl given' simulate "$model"
refused 2 "'x' is one word too many" simulate "$model" "$requests" x
refused 2 '^pawl simulate: --block-size: 40 is no multiple of 16' simulate "$model" "$requests" --block-size 40
refused 2 '^pawl simulate: --block-size: 8 is not in 16 ' simulate "$model" "$requests" --block-size 8
refused 2 '^pawl simulate: --blocks: 0 is not in 1 ' simulate "$model" "$requests" --blocks 0
refused 2 "^pawl simulate: --max-batch: '3' is none of 1|2|4|8" simulate "$model" "$requests" --max-batch 3
refused 2 '^pawl simulate: --max-batch is for --policy batched' simulate "$model" "$requests" --policy round-robin --max-batch 2
refused 2 "^pawl simulate: --policy: 'fifo' is none of" simulate "$model" "$requests" --policy fifo
refused 2 "^pawl simulate: --admission: 'bold' is none of" simulate "$model" "$requests" --admission bold
refused 2 '^pawl simulate: --prefixes: -1 is not in 0 ' simulate "$model" "$requests" --prefixes -1
refused 2 '^pawl simulate: --every: 0 is not in 1 ' simulate "$model" "$requests" --every 0
refused 1 '^pawl simulate: a block of 512 is more than the 256 positions the model was made for$' simulate "$model" "$requests" --target ref --block-size 512
finish
