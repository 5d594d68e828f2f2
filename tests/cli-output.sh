# Files that commands write: never over an input, complete or not at all, tried before the work.
. "$top_srcdir/tests/cli-lib.sh"
# shellcheck disable=SC2086
unset PAWL_DEBUG PAWL_DUMP PAWL_SKIP PAWL_BISECT PAWL_CPU
tiny model.gguf q4_1
model=$dir/model.gguf
graph=$top_srcdir/tests/data/plan-blocks.pawl
cp "$model" "$dir/model.kept"
work=$dir/work
mkdir "$work"

# is_empty FOLDER: not even a hidden file is left in it.
is_empty() {
  test -z "$(ls -A "$1")"
}

# fresh: a model and texts, under several names each, in an otherwise empty folder.
fresh() {
  rm -rf "$work"
  mkdir "$work"
  cp "$dir/model.kept" "$work/m.gguf"
  printf 'the other one' >"$work/prompt"
  printf '1,5,7' >"$work/tokens"
  for name in m.gguf prompt tokens; do
    ln "$work/$name" "$work/hard-$name"
    ln -s "$name" "$work/soft-$name"
  done
  ls -A "$work" >"$dir/names"
}

# is_fresh: as fresh left it.
is_fresh() {
  ls -A "$work" | cmp -s - "$dir/names" && cmp -s "$dir/model.kept" "$work/m.gguf" &&
    test "$(cat "$work/prompt")" = 'the other one' -a "$(cat "$work/tokens")" = 1,5,7
}

for link in '' hard- soft- ../work/; do
  fresh
  for name in m.gguf prompt; do
    refused 1 "^pawl run: --stats-json: $work/$link$name is the same file as the input " \
      run "$work/m.gguf" -f "$work/prompt" -n 2 --raw --target ref --stats-json "$work/$link$name"
  done
  for name in m.gguf tokens; do
    for exact in '' --exact; do
      # shellcheck disable=SC2086
      refused 1 "^pawl eval: --logits: $work/$link$name is the same file as the input " \
        eval "$work/m.gguf" --tokens "$work/tokens" $exact --logits "$work/$link$name"
    done
  done
  check "inputs stay as they were (${link:-the name itself})" is_fresh
done
"$pawl" run "$work/m.gguf" -f - -n 2 --raw --target ref --stats-json "$work/prompt" \
  <"$work/prompt" >"$dir/out" 2>"$dir/err"
status=$?
check "standard input is an input" test $status = 1 -a ! -s "$dir/out"
check "and is named" grep -q 'prompt is the same file as the input standard input$' "$dir/err"
check "and stays as it was" is_fresh
(cd "$work" && "$pawl" eval m.gguf --tokens 1 --logits 1 --target ref && "$pawl" eval m.gguf --tokens 1 --logits 1 --target ref) >"$dir/out" 2>"$dir/err"
check "a list of tokens is no file" test $? = 0

# PAWL_DUMP writes *.pawl
mkdir "$dir/dump"
cp "$graph" "$dir/dump/input.pawl"
ln -s dump/input.pawl "$dir/elsewhere.pawl"
export PAWL_DUMP="$dir/dump"
for name in dump/input elsewhere; do
  refused 1 "^pawl opt: PAWL_DUMP: $dir/dump holds the input file $dir/$name.pawl" opt "$dir/$name.pawl"
  refused 1 "^pawl plan: PAWL_DUMP: $dir/dump holds the input file" plan "$dir/$name.pawl" --target ref
done
check "the graph stays as it was" cmp "$graph" "$dir/dump/input.pawl"
check "and alone" test "$(ls -A "$dir/dump")" = input.pawl
succeeds "a graph elsewhere is dumped" opt "$graph"
unset PAWL_DUMP

# Tried first: the model is not there, but the path is what is said.
for path in "$dir/none/s" "$dir/model.gguf/s" "$work/" "$work/new/" /proc/none; do
  refused 1 "^pawl run: --stats-json: $path: " run "$dir/no-model" -p x --stats-json "$path"
  refused 1 "^pawl eval: --logits: $path: " eval "$dir/no-model" --tokens 1 --logits "$path"
done
long=$(printf '%0300d' 0)
refused 1 '^pawl eval: --logits: .*File name too long' eval "$dir/no-model" --tokens 1 --logits "$dir/$long"
for folder in "$dir/none/dump" /dev/null /proc/none; do
  export PAWL_DUMP="$folder"
  for words in "run -p x" "eval --tokens 1 --logits $dir/none-l" plan bench; do
    # shellcheck disable=SC2086
    set -- $words
    command=$1
    shift
    refused 1 "^pawl $command: PAWL_DUMP: $folder: " "$command" "$dir/no-model" "$@"
  done
  refused 1 "^pawl opt: PAWL_DUMP: $folder: " opt "$dir/no-graph.pawl"
done
unset PAWL_DUMP
refused 1 '^pawl run: .*no-model: .*No such file' run "$dir/no-model" -p x --stats-json "$work/s"
for variable in PAWL_SKIP=none PAWL_DEBUG=none PAWL_BISECT=none; do
  env $variable "$pawl" run "$dir/no-model" -p x >"$dir/out" 2>"$dir/err"
  check "$variable is refused first" grep -q "^pawl run: ${variable%=*}: " "$dir/err"
done

# A failure leaves what was there, and nothing else.
fresh
printf precious >"$work/s"
ls -A "$work" >"$dir/names"
refused 1 'positions are needed' run "$work/m.gguf" -p x -n 300 --target ref --stats-json "$work/s"
refused 1 'token 0 is 300' eval "$work/m.gguf" --tokens 300 --logits "$work/s" --target ref
refused 1 'positions are needed' eval "$work/m.gguf" --tokens 1,2,3 --ctx 2 --logits "$work/l" --target ref
check "nothing is left by failures" is_fresh
check "and nothing is lost" test "$(cat "$work/s")" = precious
mkfifo "$dir/fifo"
for signal in INT TERM HUP QUIT; do
  env --default-signal=$signal "$pawl" run "$work/m.gguf" -f "$dir/fifo" --target ref --stats-json "$work/s" \
    >"$dir/out" 2>"$dir/err" &
  pid=$!
  exec 9>"$dir/fifo" # the prompt is being read
  check "a file of its own is in the making" sh -c 'ls -A "$1" | grep -q "^\.pawl-"' - "$work"
  kill -$signal $pid
  wait $pid 2>"$dir/err"
  status=$?
  exec 9>&-
  check "ended by SIG$signal" test $status -gt 128
  check "SIG$signal leaves nothing" is_fresh
done
"$pawl" run "$work/m.gguf" -p x --raw -n 200 --ignore-end --target ref --stats-json "$work/s" 2>"$dir/err" | :
check "a pipe that nobody reads leaves nothing" is_fresh
(ulimit -f 0 && "$pawl" eval "$work/m.gguf" --tokens 1 --target ref --logits "$work/s") >/dev/null 2>&1
check "a limit of file sizes: status" test $? != 0
check "a limit of file sizes leaves nothing" is_fresh
check "and nothing is lost" test "$(cat "$work/s")" = precious

# Success replaces the file: what links to it by name stays, its mode too.
chmod 640 "$work/s"
ln -s s "$work/soft-s"
succeeds "written through a link" run "$work/m.gguf" -p x -n 1 --raw --target ref --stats-json "$work/soft-s"
check "the link is one still" test -L "$work/soft-s"
check "the file is written" grep -q '"generated_tokens"' "$work/s"
check "with the mode it had" test "$(stat -c %a "$work/s")" = 640
(umask 027 && "$pawl" eval "$work/m.gguf" --tokens 1 --target ref --logits "$work/l")
check "a new file has that of the umask" test "$(stat -c %a "$work/l")" = 640
check "nothing beside them" sh -c '! ls -A "$1" | grep -q "^\.pawl-"' - "$work"

# No regular files.
succeeds "a device" eval "$model" --tokens 1 --target ref --logits /dev/null
check "stays one" test -c /dev/null
refused 1 '^pawl eval: --logits: /dev/full: No space left' eval "$model" --tokens 1 --target ref --logits /dev/full
succeeds "a file" eval "$model" --tokens 1,2 --target ref --logits "$dir/l"
"$pawl" eval "$model" --tokens 1,2 --target ref --logits /dev/stdout 2>"$dir/err" | cat >"$dir/piped"
check "a pipe" cmp "$dir/l" "$dir/piped"
"$pawl" eval "$model" --tokens 1,2 --target ref --logits /dev/stdout 2>"$dir/err" >"$dir/out"
check "standard output" cmp "$dir/l" "$dir/out"
"$pawl" run "$model" -p x -n 2 --raw --target ref --stats-json /dev/stdout 2>"$dir/err" >"$dir/out"
check "figures behind the text" sh -c 'grep -q "^{$" "$1" && ! head -c 1 "$1" | grep -q "{"' - "$dir/out"

# Standard streams that are closed.
"$pawl" run "$model" -p x -n 1 --raw -v --target ref --stats-json "$dir/s" <&- >&- 2>&-
check "closed streams: status" test $? = 1
"$pawl" run "$model" -p x -n 1 --raw -v --target ref --stats-json "$dir/s" <&- 2>&- >"$dir/out"
check "no messages: status" test $? = 0
check "nothing but figures in the file" python3 -c 'import json, sys; json.load(open(sys.argv[1]))' "$dir/s"
"$pawl" eval "$model" --tokens 1,2 --target ref --logits "$dir/l2" <&- >&- 2>&-
check "no streams: status" test $? = 0
check "the file is right" cmp "$dir/l" "$dir/l2"
"$pawl" eval "$model" --tokens 1,300 --target ref --logits "$dir/l2" <&- >&- 2>&-
check "a failure: status" test $? = 1
check "its message is not in a file" cmp "$dir/l" "$dir/l2"
"$pawl" --version >&- 2>"$dir/err"
check "closed standard output: status" test $? = 1
check "closed standard output is said" grep -q '^pawl: standard output: Bad file descriptor$' "$dir/err"
"$pawl" tokenize "$model" <&- >"$dir/out" 2>"$dir/err"
check "closed standard input: status" test $? = 1
check "closed standard input is said" grep -q '^pawl tokenize: standard input: Bad file descriptor$' "$dir/err"

# A full disk under standard output, at the first piece, with its reason.
for words in "run $model -p x -n 200 --raw --ignore-end --target ref" "plan $model --json --target ref" \
  "plan $model --target ref" "opt $graph" "bench $model -t 1 -p 2 -n 1 --target ref" "info $model --all"; do
  # shellcheck disable=SC2086
  "$pawl" $words >/dev/full 2>"$dir/err"
  status=$?
  check "full disk: $words" test $status = 1
  check "full disk is said" grep -q '^pawl [a-z]*: standard output: No space left on device$' "$dir/err"
done
finish
