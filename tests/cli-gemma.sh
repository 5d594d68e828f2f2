#!/bin/sh
# The tool on a random model of family gemma3: windows, rings, SentencePiece tokens, its chat template.
. "$top_srcdir/tests/cli-lib.sh"

model=$dir/gemma.gguf
"$top_builddir/tests/make-tiny-gguf" "$model" gemma || exit 99

succeeds "info" info "$model"
check "info: windows" grep -qx 'window        20 tokens in 6 of 7 layers, rope base 10000' "$dir/out"
check "info: rope" grep -qx 'rope          32 of 32 elements, base 1000000, scale 1' "$dir/out"
check "info: vocabulary" grep -qx 'vocabulary    304 tokens' "$dir/out"
check "info: ends" grep -qx 'ends at       1 <eos>, 5 <end_of_turn>' "$dir/out"
check "info: template" grep -qx 'template      Gemma, from tokenizer.chat_template, BOS first' "$dir/out"

encode() { # TEXT ARGUMENT...
  text=$1
  shift
  printf '%s' "$text" | "$pawl" tokenize "$model" "$@"
}
check "BOS first" test "$(encode ' the')" = "[2, 270]"
check "no BOS" test "$(encode ' the' --no-bos)" = "[270]"
printf 'the  caf\303\251 \360\237\231\202 in <end_of_turn>\n\n' >"$dir/plain"
"$pawl" tokenize "$model" --no-bos <"$dir/plain" | "$pawl" detokenize "$model" >"$dir/back"
check "there and back" cmp "$dir/plain" "$dir/back"

# Without rings for --save, a run takes back nothing and keeps everything: the same text.
run() {
  succeeds "run $*" run "$model" --target ref --ignore-end -p "the sun" "$@"
}
tool run "$model" --target ref --ignore-end -p "the sun" -n 200 -v
cp "$dir/out" "$dir/text"
check "-v: template" grep -q 'template: Gemma, from tokenizer.chat_template' "$dir/err"
check "-v: rings" grep -q '; cache for 512 positions, 163840 bytes, rings of 128$' "$dir/err"
run -n 200 --save "$dir/session"
check "without rings" cmp "$dir/text" "$dir/out"
run -n 200 --lookup
check "guesses over rings" cmp "$dir/text" "$dir/out"
run -n 200 --draft "$model" --guess 5
check "a draft over rings" cmp "$dir/text" "$dir/out"
tool run "$model" --target ref --ignore-end --restore "$dir/session" -n 20
check "a session goes on" test $status = 0
check "20 tokens" test -s "$dir/out"

# Rings in chunks of 32, in chunks of 500 the whole context; the rows from a position on.
list=$(awk 'BEGIN { for (i = 0; i < 300; i++) printf "%d,", (i * 7919 + i * i * 31) % 304; print 2 }')
succeeds "rings" eval "$model" --target ref --tokens $list --logits "$dir/rings"
succeeds "everything" eval "$model" --target ref --tokens $list --logits "$dir/all" --chunk 500
check "a row for each token" test "$(wc -c <"$dir/all")" -eq $((301 * 304 * 4))
check "the same bits" cmp "$dir/rings" "$dir/all"
succeeds "from a position" eval "$model" --target ref --tokens $list --logits "$dir/from" --from 270
tail -c $((31 * 304 * 4)) "$dir/all" >"$dir/tail"
check "the last rows" cmp "$dir/from" "$dir/tail"
refused 1 '^pawl eval: --from: position 301 of 301 tokens$' eval "$model" --target ref --tokens $list --logits "$dir/no" --from 301
refused 2 '^pawl eval: --last and --from exclude each other' eval "$model" --tokens 1 --logits "$dir/no" --last --from 0
succeeds "exact" eval "$model" --tokens 5,6,7 --logits "$dir/exact" --exact
succeeds "exact from a position" eval "$model" --tokens 5,6,7 --logits "$dir/from" --exact --from 1
tail -c $((2 * 304 * 4)) "$dir/exact" >"$dir/tail"
check "the last exact rows" cmp "$dir/from" "$dir/tail"

# 6 rings of 128 and a layer of 512 positions of 2 * 32 f16.
succeeds "memory" plan "$model" --memory --json --threads 1 --target ref --ctx 512
check "with rings" grep -q '"kv":	"163840"' "$dir/out"
succeeds "memory of a run that saves" plan "$model" --memory --save --json --threads 1 --target ref --ctx 512
forecast=$(sed -n 's/.*"kv":	"\([0-9]*\)".*/\1/p' "$dir/out")
tool run "$model" --target ref -p "the sun" -n 2 --ctx 512 -v --save "$dir/session"
check "which has no rings: $forecast bytes" grep -q "; cache for 512 positions, $forecast bytes\$" "$dir/err"
tool run "$model" --target ref -p "the sun" -n 2 --ctx 512 -v --reuse "$dir/session"
check "nor has one that restores" grep -q "; cache for 512 positions, $forecast bytes\$" "$dir/err"
refused 2 '\-\-save is for --memory' plan "$model" --save
succeeds "memory of a short context" plan "$model" --memory --json --threads 1 --target ref --ctx 128
check "without" grep -q '"kv":	"114688"' "$dir/out"
succeeds "a plan of more rows than a ring is for" plan "$model" --target ref --ctx 512 --seq 150 --logits none

finish
