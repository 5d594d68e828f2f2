# Sessions in files: saved, gone on with, begun anew with what they have, on a tiny random model.
. "$top_srcdir/tests/cli-lib.sh"
tiny q8.gguf q8_0
model=$dir/q8.gguf
figure() { sed -n "s/.*\"$1\":	\([0-9]*\),\{0,1\}$/\1/p" "$2"; }
run_ref() { tool run "$model" --target ref --ignore-end "$@"; }
restores() { # NAME NOTE OPTION...: a run that prints that note and nothing else on stderr
  what=$1 note=$2
  shift 2
  tool run "$model" --target ref "$@"
  check "$what: status $status" test $status = 0
  check "$what: the note" grep -q "^pawl run: $note$" "$dir/err"
  check "$what: no other" test "$(wc -l <"$dir/err")" = 1
}

# 6 tokens, saved, 6 more are the 12 at once, and what was saved is not computed.
run_ref -p "the other one" -n 12 --stats-json "$dir/whole.json"
cp "$dir/out" "$dir/text"
n_prompt=$(figure prompt_tokens "$dir/whole.json")
n_saved=$((n_prompt + 6))
succeeds "save" run "$model" --target ref --ignore-end -p "the other one" -n 6 --save "$dir/session"
cp "$dir/session" "$dir/kept"
restores "restore without a prompt" "--restore: goes on after $n_saved saved tokens, $((n_saved - 1)) positions of which are taken over" \
  --ignore-end --restore "$dir/session" -n 6 --save "$dir/session" --stats-json "$dir/rest.json"
check "the rest of the tokens" python3 - "$dir/whole.json" "$dir/rest.json" <<'PYTHON'
import json, sys
whole, rest = (json.load(open(path)) for path in sys.argv[1:])
assert rest["tokens"] == whole["tokens"][6:], (rest["tokens"], whole["tokens"])
assert rest["restored_tokens"] == whole["prompt_tokens"] + 5
assert rest["prompt_tokens"] == whole["prompt_tokens"] + 6
PYTHON

# What is kept, and an answer that is complete already.
tool run "$model" --target ref -p "the other one" -n 100 -v --save "$dir/complete" --stats-json "$dir/complete.json"
check "the answer ends" grep -q '"end":	"eos"' "$dir/complete.json"
n_complete=$((n_prompt + $(figure generated_tokens "$dir/complete.json")))
check "-v says what was saved" grep -qx "pawl run: --save: $n_complete tokens, $n_complete positions of them, in $dir/complete" "$dir/err"
tool run "$model" --target ref --restore "$dir/complete" -n 20
check "nothing to add: status" test $status = 0
check "is said" grep -q '^pawl run: --restore: the saved answer was complete, nothing was added ' "$dir/err"
for more in "--ignore-end" "-p over"; do
  # shellcheck disable=SC2086
  tool run "$model" --target ref --restore "$dir/complete" -n 20 $more
  check "not with $more" sh -c '! grep -q "was complete" "$1"' - "$dir/err"
done

# --restore with a prompt: the user's next message after all that was said.  The saved tokens are an
# answer that was cut, so that its end comes first.  The same ids computed anew give the same file.
cat >"$dir/saved.py" <<'PYTHON'
import struct, sys
def checksum(before, data):
    hash = before ^ len(data)
    for at in range(0, len(data), 8):
        word = int.from_bytes(data[at:at + 8], "little")
        hash = (hash ^ word) * 0x9e3779b97f4a7c15 % 2**64
        hash ^= hash >> 29
    return hash
def tokens(path):
    data = open(path, "rb").read()
    n, = struct.unpack_from("<Q", data, 72)
    return list(struct.unpack_from("<%dI" % n, data, 128))
def write(path, like, tokens): # a session of no positions
    head = open(like, "rb").read()[:64] + struct.pack("<QQ", 0, len(tokens))
    body = struct.pack("<%dI" % len(tokens), *tokens)
    whole = head.ljust(120, b"\0")
    whole += struct.pack("<Q", checksum(0, whole)) + body + struct.pack("<Q", checksum(0, body))
    open(path, "wb").write(whole)
PYTHON
text_of() { # SESSION COUNT: that many of its tokens as text
  python3 -c 'import sys; sys.path.insert(0, sys.argv[1]); import saved
print(saved.tokens(sys.argv[2])[:int(sys.argv[3])])' "$dir" "$1" "$2" | "$pawl" detokenize "$model"
}
continues() { # NAME SESSION SAID-BETWEEN OPTION...
  what=$1 session=$2 between=$3
  shift 3
  run_ref --restore "$session" "$@" -n 9 --save "$dir/next" --stats-json "$dir/next.json"
  check "$what: status $status" test $status = 0
  n=$(figure prompt_tokens "$dir/next.json")
  { text_of "$session" 100000; printf "$between"; } >"$dir/wanted"
  text_of "$dir/next" "$n" >"$dir/got"
  same "$what: what the model sees" "$dir/wanted" "$dir/got"
  check "$what: one session to write anew" python3 - "$dir" "$n" <<'PYTHON'
import sys
folder, n = sys.argv[1], int(sys.argv[2])
sys.path.insert(0, folder)
import saved
saved.write(folder + "/anew", folder + "/next", saved.tokens(folder + "/next")[:n])
PYTHON
  run_ref --restore "$dir/anew" -n 9 --save "$dir/computed" --stats-json "$dir/computed.json"
  check "$what: nothing of it is restored" test "$(figure restored_tokens "$dir/computed.json")" = 0
  check "$what: the bits of the whole in one prompt" cmp "$dir/next" "$dir/computed"
}
turn='<|im_start|>user\nand here<|im_end|>\n<|im_start|>assistant\n'
run_ref -p "over" -n 6 --save "$dir/chat" --stats-json "$dir/chat.json"
n_chat=$(($(figure prompt_tokens "$dir/chat.json") + 6))
continues "a chat" "$dir/chat" "<|im_end|>\\n$turn" -p "and here"
check "all positions are taken over" test "$(figure restored_tokens "$dir/next.json")" = $((n_chat - 1))
restores "and it says so" "--restore: goes on after $n_chat saved tokens, $((n_chat - 1)) positions of which are taken over" \
  --restore "$dir/chat" -p "and here" -n 2
mv "$dir/next" "$dir/third"
continues "a third message" "$dir/third" "<|im_end|>\\n$turn" -p "and here"
continues "plain text" "$dir/kept" " and here" -p " and here" --raw
run_ref --raw -p "the end" -n 4 --save "$dir/plain"
continues "plain text after plain text" "$dir/plain" " and" -p " and" --raw
refused 1 '^pawl run: -p: what it continues has no message of ChatML; --raw takes the text as it is$' run "$model" --target ref --restore "$dir/plain" -p x -n 2
refused 1 '^pawl run: -p: .* is not UTF-8 at byte 2$' run "$model" --target ref --restore "$dir/kept" -n 2 -p "$(printf 'ab\377')"
refused 2 '^pawl run: --restore and --reuse exclude each other' run "$model" --restore "$dir/kept" --reuse "$dir/kept" -p x
refused 2 '^pawl run: no prompt given' run "$model" --reuse "$dir/kept"

# --reuse: a whole prompt, of which the session has the beginning.
restores "a prompt that is there" "--reuse: the prompt begins with $((n_prompt - 1)) of $((n_saved - 1)) saved positions, which are taken over; 6 are dropped" \
  --ignore-end -p "the other one" -n 12 --reuse "$dir/kept" --stats-json "$dir/again.json"
check "is not computed" test "$(figure restored_tokens "$dir/again.json")" = $((n_prompt - 1))
tool run "$model" --target ref --ignore-end -p "the other one" -n 2 --reuse "$dir/kept" --stats
check "--stats tells them apart" grep -q "^pawl run: prompt $n_prompt tokens, $((n_prompt - 1)) of them restored, 1 at [0-9.]*/s, then 2 at " "$dir/err"
run_ref -p "the other one" -n 12 --reuse "$dir/kept"
check "and gives the same text" cmp "$dir/out" "$dir/text"
run_ref -p "another beginning" -n 3 --stats-json "$dir/other.json"
cp "$dir/out" "$dir/other"
run_ref -p "another beginning" -n 3 --reuse "$dir/kept"
check "another prompt is not mixed up with it" cmp "$dir/out" "$dir/other"
tiny q4.gguf q4_0
refused 1 '^pawl run: --restore: .*kept: the snapshot is of another model' run "$dir/q4.gguf" --target ref --restore "$dir/kept" -n 2
# One bit of one weight, wherever it is.
bytes=$(wc -c <"$model")
for tenth in 5 6 7 8 9; do
  cp "$model" "$dir/bit.gguf"
  at=$((bytes * tenth / 10))
  old=$(od -An -tu1 -j $at -N 1 "$model")
  printf "\\$(printf %o $((old ^ 1)))" | dd of="$dir/bit.gguf" bs=1 seek=$at conv=notrunc 2>/dev/null
  refused 1 'the snapshot is of another model' run "$dir/bit.gguf" --target ref --restore "$dir/kept" -n 2
done
refused 1 'of a cache of f16, this one is of f32' run "$model" --target ref --restore "$dir/kept" -n 2 --kv f32
refused 1 'positions are needed, the context holds 16' run "$model" --target ref --restore "$dir/kept" -p x -n 2 --ctx 16
head -c 1000 "$dir/kept" >"$dir/short"
refused 1 '^pawl run: --restore: .*short: 1000 bytes, the header is that of' run "$model" --target ref --restore "$dir/short" -n 2
refused 1 '^pawl run: --restore: .*none: No such file' run "$model" --target ref --restore "$dir/none" -n 2
mkfifo "$dir/fifo"
exec 9<>"$dir/fifo"
refused 1 '^pawl run: --restore: .*fifo: not a regular file$' run "$model" --target ref --restore "$dir/fifo" -n 2
head -c 4096 "$dir/kept" >&9
refused 1 '^pawl run: --reuse: .*fifo: not a regular file$' run "$model" --target ref --reuse "$dir/fifo" -p x -n 2
exec 9>&-
refused 1 '^pawl run: --restore: .*: not a regular file$' run "$model" --target ref --restore "$dir" -n 2
refused 1 '^pawl run: --save: .*none/x: No such file' run "$model" --target ref -p x -n 2 --save "$dir/none/x"
refused 1 '^pawl run: --save: .*is the same file as the input' run "$model" --target ref -p x -n 2 --save "$model"
python3 - "$dir" <<'PYTHON'
import sys
folder = sys.argv[1]
sys.path.insert(0, folder)
import saved
def write(name, tokens):
    saved.write(folder + "/" + name, folder + "/kept", tokens)
write("good", [1, 2, 299])
write("alien", [1, 2, 300])
write("huge", [1, 2**32 - 1])
write("empty", [])
PYTHON
restores "tokens without positions" "--restore: goes on after 3 saved tokens, 0 positions of which are taken over" --restore "$dir/good" -n 2
refused 1 "^pawl run: --restore: $dir/alien: token 2 is 300, the model has 300$" run "$model" --target ref --restore "$dir/alien" -n 2
refused 1 "^pawl run: --restore: $dir/huge: token 1 is 4294967295, the model has 300$" run "$model" --target ref --restore "$dir/huge" -n 2
refused 1 "^pawl run: --restore: $dir/empty: a session without tokens, and no prompt is given$" run "$model" --target ref --restore "$dir/empty" -n 2
restores "a prompt after no tokens" "--restore: goes on after 0 saved tokens, 0 positions of which are taken over" --restore "$dir/empty" -p x -n 2
refused 1 '^pawl run: --reuse: .*none: No such file' run "$model" --target ref --reuse "$dir/none" -p x -n 2
refused 1 '^pawl run: --reuse: .*kept: the snapshot is of another model' run "$dir/q4.gguf" --target ref --reuse "$dir/kept" -p x -n 2
check "nothing stays beside a session" test -z "$(find "$dir" -name '.pawl-*' -o -name 'session.*')"
finish
