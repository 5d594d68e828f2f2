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
for signal in INT TERM HUP QUIT USR1 USR2 ALRM VTALRM PROF IO; do
  env --default-signal=$signal "$pawl" run "$work/m.gguf" -f "$dir/fifo" --target ref --stats-json "$work/s" \
    --save "$work/t" >"$dir/out" 2>"$dir/err" &
  pid=$!
  exec 9>"$dir/fifo" # the prompt is being read
  check "files of their own are in the making" sh -c 'test "$(ls -A "$1" | grep -c "^\.pawl-")" = 2' - "$work"
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
(ulimit -f 0 && "$pawl" run "$work/m.gguf" -p x -n 2 --raw --target ref --save "$work/t") >/dev/null 2>&1
check "a limit of file sizes, a session: status" test $? != 0
check "a limit of file sizes, a session, leaves nothing" is_fresh
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

# session PATH [OPTION]...: a run that saves there.
session() {
  tool run "$work/m.gguf" -p x -n 2 --raw --target ref --save "$@"
  test $status = 0 -a ! -s "$dir/err"
}
figures() {
  tool run "$work/m.gguf" -p x -n 1 --raw --target ref --stats-json "$1"
  test $status = 0 && grep -q '"generated_tokens"' "$1"
}

# A session, too: through links, under the mode it had or the umask's, whatever the length of its name.
fresh
check "a session" session "$dir/session"
printf old >"$work/s"
chmod 640 "$work/s"
ln -s s "$work/soft-s"
check "a session through a link" session "$work/soft-s"
check "the link of a session is one still" test -L "$work/soft-s"
check "a session where the link leads" cmp "$dir/session" "$work/s"
check "a session with the mode there was" test "$(stat -c %a "$work/s")" = 640
umask 027
check "a new session" session "$work/n"
umask 022
check "a new session has the mode of the umask" test "$(stat -c %a "$work/n")" = 640
long=$(printf '%0255d' 0)
check "a session with a long name" session "$work/$long"
check "is there" cmp "$dir/session" "$work/$long"
refused 1 "^pawl run: --save: $work/0$long: File name too long" run "$dir/no-model" -p x --save "$work/0$long"

# Links whose file is not there yet.
mkdir "$work/folder"
for to in new folder/new "$work/absolute" soft-new; do
  ln -sf "$to" "$work/link"
  check "a session through a link to $to, which is not there" session "$work/link"
  check "the link to $to is one still" test -L "$work/link"
  check "its file is written" cmp "$dir/session" "$work/link"
  rm -f "$(readlink -f "$work/link")"
  ln -sf folder/newer "$work/soft-new"
  check "figures through a link to $to" figures "$work/link"
  check "the link to $to is one again" test -L "$work/link"
  rm -f "$(readlink -f "$work/link")"
done
ln -sf "$dir/none/new" "$work/link"
refused 1 "^pawl run: --save: $work/link: No such file" run "$dir/no-model" -p x --save "$work/link"
ln -sf folder/none/ "$work/link"
refused 1 "^pawl run: --save: $work/link: " run "$dir/no-model" -p x --save "$work/link"

# Two outputs in one file, or a session among text.
ln -sf new "$work/link"
ln "$work/s" "$work/hard-s"
for pair in new:new new:./new new:folder/../new new:link link:new s:s s:soft-s s:hard-s; do
  save=$work/${pair%:*} figures=$work/${pair#*:}
  refused 1 "^pawl run: --stats-json: $figures is the same file as --save $save$" \
    run "$dir/no-model" -p x --save "$save" --stats-json "$figures"
done
check "nothing is left by them" sh -c '! ls -A "$1" | grep -q "^\.pawl-\|^new"' - "$work"
check "and nothing is lost" cmp "$dir/session" "$work/s"
check "two files" session "$work/new" --stats-json "$work/newer"
check "of two kinds" sh -c 'cmp "$1/session" "$2/new" && grep -q "^{" "$2/newer"' - "$dir" "$work"
"$pawl" run "$work/m.gguf" -p x --target ref --save "$work/s" >>"$work/s" 2>"$dir/err"
check "a session among the text: status" test $? = 1
check "is refused" grep -q "^pawl run: --save: $work/s is the same file as standard output$" "$dir/err"
"$pawl" run "$work/m.gguf" -p x --target ref --save "$work/s" 2>>"$work/s" >"$dir/out"
check "a session among messages: status" test $? = 1
check "before anything is computed" test ! -s "$dir/out"
check "it names standard error" grep -aq "pawl run: --save: $work/s is the same file as standard error$" "$work/s"
"$pawl" run "$work/m.gguf" -p x --target ref --save /dev/fd/1 2>"$dir/err" | cat >"$dir/out"
check "nor into a pipe" grep -q 'fd/1 is the same file as standard output$' "$dir/err"
check "which gets nothing" test ! -s "$dir/out"
for option in --save --restore --reuse; do
  refused 2 "^pawl run: $option: a session is in a file, not in a standard stream" run "$dir/no-model" -p x $option -
done
(cd "$work" && "$pawl" run m.gguf -p x -n 2 --raw --target ref --save ./-) >"$dir/out" 2>"$dir/err"
check "but a file may have that name" cmp "$dir/session" "$work/-"

# A session in what is no regular file.
mkfifo "$work/pipe"
timeout 60 cat "$work/pipe" >"$dir/piped" &
pid=$!
check "a session into a pipe" session "$work/pipe"
wait $pid
check "all of it comes out" cmp "$dir/session" "$dir/piped"
check "the pipe is one still" test -p "$work/pipe"
if mknod "$work/null" c 1 3 2>"$dir/err" && mknod "$work/full" c 1 7 2>"$dir/err" && : 2>"$dir/err" >"$work/null"; then
  check "a session into a device" session "$work/null"
  check "the device is one still" test -c "$work/null"
  check "one device for two" session "$work/null" --stats-json "$work/null"
  session "$work/full"
  check "a full device" grep -q "^pawl run: --save: $work/full: No space left on device$" "$dir/err"
  check "is one still" test -c "$work/full"
else
  skip "devices of its own: $(cat "$dir/err")"
fi

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

# "-" is standard output.
for to in cat tee; do
  (cd "$work" && "$pawl" eval "$model" --tokens 1,2 --target ref --logits - 2>"$dir/err") | $to >"$dir/piped"
  check "- in a pipe" cmp "$dir/l" "$dir/piped"
done
(cd "$work" && "$pawl" eval "$model" --tokens 1,2 --target ref --logits - >"$dir/out" 2>"$dir/err")
check "- in a file" cmp "$dir/l" "$dir/out"
(cd "$work" && "$pawl" run "$model" -p x -n 2 --raw --target ref --stats-json - >"$dir/out" 2>"$dir/err")
check "figures behind the text in it" sh -c 'grep -q "^{$" "$1" && ! head -c 1 "$1" | grep -q "{"' - "$dir/out"
check "and no file of that name" cmp "$dir/session" "$work/-"
"$pawl" eval "$model" --tokens 1 --target ref --logits - >/dev/full 2>"$dir/err"
check "a full device: status" test $? = 1
check "is called what it is" grep -q '^pawl eval: --logits: standard output: No space left on device$' "$dir/err"
"$pawl" eval "$model" --tokens 1 --target ref --logits - >&- 2>"$dir/err"
check "closed: status" test $? = 1
check "is said" grep -q '^pawl eval: --logits: standard output: Bad file descriptor$' "$dir/err"
cp "$work/tokens" "$work/ids"
"$pawl" eval "$model" --tokens "$work/ids" --target ref --logits - >>"$work/ids" 2>"$dir/err"
check "the input as standard output: status" test $? = 1
check "is refused" grep -q "^pawl eval: --logits: standard output is the same file as the input $work/ids$" "$dir/err"

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
