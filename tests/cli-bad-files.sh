# Malformed files, each through the commands that read it: status 1 and one line that names the file.
. "$top_srcdir/tests/cli-lib.sh"

mkdir "$dir/bad"
"$top_builddir/tests/bad-gguf" "$dir/bad" >"$dir/says" || exit 99
n=0
tab=$(printf '\t')
while IFS=$tab read -r name says; do
  n=$((n + 1))
  file=$dir/bad/$name.gguf
  test -s "$file" || says="byte 0: " # no bytes to be mapped
  for command in "info" "run -p x"; do
    # shellcheck disable=SC2086
    set -- $command
    command=$1
    shift
    tool "$command" "$file" "$@"
    if [ $status = 1 ] && [ "$(wc -l <"$dir/err")" = 1 ] && [ ! -s "$dir/out" ] &&
      grep -qF "$name.gguf: $says" "$dir/err"; then
      pass
    else
      fail "status $status: pawl $command $name, wanted: $says"
    fi
  done
done <"$dir/says"
check "at least 80 malformed model files" test $n -ge 80

n=0
for file in "$top_srcdir"/tests/text/bad/*.pawl; do
  n=$((n + 1))
  refused 1 "^pawl opt: $file:[0-9]*:[0-9]*: " opt "$file"
  refused 1 "^pawl plan: $file:[0-9]*:[0-9]*: " plan "$file" --target ref
done
check "at least 40 malformed graphs" test $n -ge 40

tiny model.gguf
model=$dir/model.gguf
printf 'caf\351' >"$dir/latin1"
for input in '[1, 2' '1 2]' '[1,,2]' '[1, x]' '-1' '1.5' '2147483648' '[[1]]' '[1] 2' ',1' '1,'; do
  printf '%s' "$input" | "$pawl" detokenize "$model" >"$dir/out" 2>"$dir/err"
  status=$?
  check "detokenize '$input'" test $status = 1 -a "$(wc -l <"$dir/err")" = 1
  check "'$input' is located" grep -q '^pawl detokenize: standard input: byte [0-9]*: ' "$dir/err"
done
printf '300' | "$pawl" detokenize "$model" >"$dir/out" 2>"$dir/err"
check "an id beyond the vocabulary" grep -q '300' "$dir/err"
"$pawl" tokenize "$model" <"$dir/latin1" >"$dir/out" 2>"$dir/err"
status=$?
check "tokenize refuses what is not UTF-8" test $status = 1 -a ! -s "$dir/out"
check "and gives its position" grep -q '^pawl tokenize: standard input: .* at byte 3$' "$dir/err"
refused 1 'byte 3' run "$model" -f "$dir/latin1" --target ref
refused 1 'No such file' run "$model" -f "$dir/none" --target ref
refused 1 '^pawl eval: .*none: No such file' eval "$model" --tokens "$dir/none" --logits "$dir/l"
refused 1 '^pawl eval: --tokens: byte 2: ' eval "$model" --tokens '1,' --logits "$dir/l"
for word in -5 1.5 '1;2' x; do
  refused 1 "^pawl eval: --tokens: not a list of token ids, and as a file: $word: No such file" \
    eval "$model" --tokens "$word" --logits "$dir/l"
done
refused 1 'the list is empty' eval "$model" --tokens '[]' --logits "$dir/l"
refused 1 'token 1 is 300, the model has 300' eval "$model" --tokens 1,300 --logits "$dir/l" --target ref
check "no logits after a failure" test ! -e "$dir/l"
refused 1 'No such file' eval "$model" --tokens 1 --logits "$dir/none/l" --target ref

: >"$dir/empty"
refused 1 'empty: ' info "$dir/empty"
refused 1 'model.gguf:1:1: ' opt "$model"
refused 1 'not a GGUF file' plan "$top_srcdir/tests/cli-lib.sh" --target ref
tiny inf.gguf inf
tool run "$dir/inf.gguf" -p x -n 4 --target ref
check "logits that are no numbers are refused" test $status = 1 -a "$(wc -l <"$dir/err")" = 1
finish
