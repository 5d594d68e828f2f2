# Command lines: help, version, and what is wrong with wrong ones.
. "$top_srcdir/tests/cli-lib.sh"

succeeds "help" --help
check "help names the commands" grep -q '^  pawl detokenize ' "$dir/out"
check "and the environment, in columns" grep -q '^  PAWL_KERNEL_CACHE  [a-z]' "$dir/out"
succeeds "version" --version
check "one line of version" grep -q '^pawl [0-9.]*, build .' "$dir/out"

commands="run eval tokenize detokenize plan opt bench simulate info"
for command in $commands; do
  succeeds "help of $command" $command --help
  check "usage of $command" grep -q "^usage: pawl $command " "$dir/out"
  check "line length of $command" test "$(wc -L <"$dir/out")" -le 100
  refused 2 "^pawl $command: there is no option --none " $command --none
  refused 2 "^pawl $command: there is no option -X " $command -X
  refused 2 "one word too many" $command a b c
  test $command = opt || refused 2 "^pawl $command: no " $command
  refused 2 "^pawl $command: [A-Z|]*\( REQUESTS.jsonl\|FILE.pawl\)*: an empty value " $command ""
done

refused 2 '^pawl: no command given'
refused 2 "^pawl: there is no command 'talk'" talk
refused 2 "^pawl: there is no command '--none'" --none
refused 2 "^pawl: there is no command ''" ''

# A missing, a wrong and an extreme value of each kind of option.
refused 2 '^pawl run: -n: no N after it' run m -p x -n
refused 2 "^pawl run: -n: 'x' is not a whole number" run m -p x -n x
refused 2 "^pawl run: -n: '' is not a whole number" run m -p x -n ''
refused 2 "^pawl run: -n: '1.5' is not a whole number" run m -p x -n 1.5
refused 2 "^pawl run: -n: '5 ' is not a whole number" run m -p x -n '5 '
refused 2 "^pawl run: -n: '+5' is not a whole number" run m -p x -n +5
refused 2 "^pawl run: -n: '0x10' is not a whole number" run m -p x -n 0x10
refused 2 "^pawl run: -n: '99999999999999999999' is not a whole number" run m -p x -n 99999999999999999999
refused 2 '^pawl run: -n: 0 is not in 1 \.\. ' run m -p x -n 0
refused 2 '^pawl run: -n: -1 is not in 1 \.\. ' run m -p x -n -1
refused 2 '^pawl run: -n: 99999999 is not in 1 \.\. ' run m -p x -n=99999999
refused 2 "^pawl run: -n: '' is not a whole number" run m -p x -n=
refused 2 '^pawl run: -p: an empty value' run m -p ''
refused 2 '^pawl run: -p: no TEXT after it' run m -p
refused 2 '^pawl run: no prompt given' run m
refused 2 '^pawl run: -p and -f exclude each other' run m -p x -f y
refused 2 '^pawl run: no MODEL given' run -p x
refused 2 '^pawl run: --raw takes no value' run m -p x --raw=1
refused 2 "^pawl run: --temp: 'nan' is not a finite number" run m -p x --temp nan
refused 2 "^pawl run: --temp: 'inf' is not a finite number" run m -p x --temp inf
refused 2 "^pawl run: --temp: '1,5' is not a finite number" run m -p x --temp 1,5
refused 2 "^pawl run: --temp: '0.5x' is not a finite number" run m -p x --temp 0.5x
refused 2 "^pawl run: --temp: '1e999' is not a finite number" run m -p x --temp 1e999
refused 2 '^pawl run: --temp: 1e308 is not in -100 \.\. 100' run m -p x --temp 1e308
refused 2 '^pawl run: --temp: -101 is not in -100 \.\. 100' run m -p x --temp -101
refused 2 '^pawl run: --temp: no X after it' run m -p x --temp
refused 2 '^pawl run: --top-k: -1 is not in 0 \.\. ' run m -p x --temp 1 --top-k -1
refused 2 '^pawl run: --top-p: 1.1 is not in 0 \.\. 1' run m -p x --top-p 1.1
refused 2 '^pawl run: --top-p: -0.1 is not in 0 \.\. 1' run m -p x --top-p -0.1
refused 2 '^pawl run: --min-p: 2 is not in 0 \.\. 1' run m -p x --min-p 2
refused 2 '^pawl run: --seed: -1 is below 0' run m -p x --seed -1
refused 2 '^pawl run: --threads: 0 is not in 1 \.\. 1024' run m -p x --threads 0
refused 2 '^pawl run: --threads: 1025 is not in 1 \.\. 1024' run m -p x --threads 1025
refused 2 "^pawl run: --threads: 'two' is not a whole number" run m -p x --threads two
refused 2 "^pawl run: --target: 'gpu' is none of ref|cpu" run m -p x --target gpu
refused 2 "^pawl run: --target: 're' is none of ref|cpu" run m -p x --target re
refused 2 "^pawl run: --target: '' is none of ref|cpu" run m -p x --target ''
refused 2 "^pawl run: --activations: 'A16' is none of a16|a8" run m -p x --activations A16
refused 2 "^pawl run: --kv: 'q3' is none of f16|f32|bf16|q8_0" run m -p x --kv q3
refused 2 '^pawl run: --ctx: 0 is not in 1 \.\. ' run m -p x --ctx 0
refused 2 '^pawl run: --ctx: 99999999999 is not in 1 \.\. ' run m -p x --ctx 99999999999
refused 2 '^pawl run: --draft and --lookup exclude each other' run m -p x --draft m --lookup
refused 2 '^pawl run: --guess is for guesses, and there are none without' run m -p x --guess 3
refused 2 '^pawl run: --guess: 32 is not in 1 \.\. 31' run m -p x --lookup --guess 32
refused 2 '^pawl run: --guess: 0 is not in 1 \.\. 31' run m -p x --lookup --guess 0
refused 2 '^pawl run: --stats-json: no FILE after it' run m -p x --stats-json
refused 2 '^pawl run: there is no option --sta ' run m -p x --sta

refused 2 '^pawl eval: --tokens LIST|FILE is missing' eval m --logits o
refused 2 '^pawl eval: --logits OUT or --perplexity is missing' eval m --tokens 1
for option in "--logits o" --last "--from 1"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl eval: ${option% *} does not go with --perplexity " eval m --tokens 1 --perplexity $option
done
refused 2 '^pawl eval: --window is for --perplexity ' eval m --tokens 1 --logits o --window 4
refused 2 '^pawl eval: --window: 2 is not in 3 \.\. ' eval m --tokens 1 --perplexity --window 2
refused 2 '^pawl eval: --chunk: 0 is not in 1 \.\. 4096' eval m --tokens 1 --logits o --chunk 0
for option in "--target ref" "--activations a8" "--activations a16" "--threads 1" "--kv f16" "--ctx 64"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl eval: ${option% *} does not go with --exact, which runs no plan " \
    eval m --tokens 1 --logits o --exact $option
done
for option in "--seq 1" "--logits last" "--ctx 64" "--kv f16"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl plan: ${option% *} is for models, and a file named " plan x.pawl $option
done
for option in "--seed 1" "--within 0" "--threads 1"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl opt: ${option% *} is for --exec " opt x.pawl $option
done
refused 2 '^pawl opt: --print-after does not go with --exec' opt --exec input,exact --print-after cse x.pawl
for list in --list-ops --list-passes; do
  refused 2 "^pawl opt: 'x.pawl' is one word too many for --list-ops and --list-passes" opt $list x.pawl
  for option in "--passes none" "--print-after cse" --changes --all-errors "--activations a16" \
    "--exec input,exact" "--seed 1" "--within 0" "--threads 1"; do
    # shellcheck disable=SC2086
    refused 2 "^pawl opt: ${option% *} does not go with --list-ops and --list-passes" opt $option $list
  done
done
for option in "--top-k 5" "--top-p 0.5" "--min-p 0.5" "--seed 1"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl run: ${option% *} is for draws, and without --temp " run m -p x $option
done
refused 2 "^pawl tokenize: 'text' is one word too many: the text is read from standard input " tokenize m text
refused 2 "^pawl detokenize: '5' is one word too many: the ids are read from standard input " detokenize m 5
for words in "run - -p x" "eval - --tokens 1 --logits o" "tokenize -" "detokenize -" "plan -" "bench -" \
  "simulate - -" "info -"; do
  # shellcheck disable=SC2086
  refused 2 "^pawl ${words%% *}: a model is in a file, not in a standard stream " $words
done
refused 2 '^pawl run: --draft: a model is in a file, not in a standard stream ' run m -p x --draft -
refused 2 '^pawl tokenize: --bos and --no-bos exclude each other' tokenize m --bos --no-bos
refused 2 '^pawl plan: --seq: 0 is not in 1 \.\. 4096' plan m --seq 0
refused 2 "^pawl plan: --logits: 'some' is none of none|last|all|greedy" plan m --logits some
refused 2 "^pawl bench: -t: entry 2: '' is not a whole number" bench m -t 1,
refused 2 "^pawl bench: -t: entry 1: '' is not a whole number" bench m -t ,1
refused 2 '^pawl bench: -t: entry 2: 0 is not in 1 \.\. 1024' bench m -t 1,0,2
refused 2 "^pawl bench: -d: entry 3: 'x' is not a whole number" bench m -d 1,0,x
refused 2 '^pawl bench: -t: 0 is not in 1 \.\. 1024' bench m -t 0
refused 2 '^pawl bench: -d: more than 16 numbers' bench m -d 1,2,3,4,5,6,7,8,9,10,11,12,13,14,15,16,17
refused 2 '^pawl bench: -p 0 and -n 0 leave nothing to measure' bench m -p 0 -n 0
refused 2 '^pawl bench: -r: 0 is not in 1 \.\. ' bench m -r 0
refused 2 '^pawl opt: no FILE.pawl given' opt
refused 2 "^pawl opt: --passes: there is no pass 'nothing'" opt --passes cse,nothing x.pawl
refused 2 "^pawl opt: --print-after: there is no pass 'nothing'" opt --print-after nothing x.pawl
refused 2 '^pawl opt: --print-after: dce is not among the passes' opt --passes cse --print-after dce x.pawl
refused 2 "^pawl opt: --exec: 'ref' is not TARGET,TARGET" opt --exec ref x.pawl
refused 2 "^pawl opt: --exec: ',ref' is not TARGET,TARGET" opt --exec ,ref x.pawl
refused 2 "^pawl opt: --exec: 'ref,' is not TARGET,TARGET" opt --exec ref, x.pawl
refused 2 "^pawl opt: --exec: 'a,b,c' is not TARGET,TARGET" opt --exec a,b,c x.pawl
refused 2 '^pawl opt: --within: -1 is not in 0 \.\. 1000' opt --within -1 x.pawl
refused 2 '^pawl opt: --within: 1e30 is not in 0 \.\. 1000' opt --within 1e30 x.pawl
refused 2 "^pawl opt: --passes: an empty name in 'cse,'" opt --passes cse, x.pawl
refused 2 "^pawl opt: --passes: an empty name in ','" opt --passes , x.pawl

# Words of the file system.
refused 1 '^pawl info: .*nothing-here: .*No such file' info "$dir/nothing-here"
refused 1 '^pawl info: .*a file' info "$dir"
refused 1 '^pawl opt: .*nothing-here: .*No such file' opt "$dir/nothing-here"
refused 1 '^pawl info: .*new?line: .*No such file' info "$dir/new
line"
refused 1 'x: .*No such file' info -- x
refused 1 '^pawl info: --help: .*No such file' info -- --help

succeeds "list of passes" opt --list-passes
check "passes have meanings" grep -q '^cse  *optional  *values -> values: .' "$dir/out"
succeeds "list of ops" opt --list-ops
check "ops have attributes" grep -q '^rms_norm  *2  .*{eps}$' "$dir/out"

# Without its modules the tool says once where they were looked for.
mkdir "$dir/alone"
"$top_builddir/libtool" --mode=install cp "$pawl" "$dir/alone/pawl" >/dev/null 2>"$dir/err"
tiny model.gguf
kept=$pawl pawl=$dir/alone/pawl
unset PAWL_PLUGIN_PATH
refused 1 "^pawl run: target cpu: no target_cpu.so in .*$dir/alone.* (PAWL_PLUGIN_PATH names other folders)$" \
  run "$dir/model.gguf" -p x
refused 1 "^pawl run: target ref: no target_ref.so in " run "$dir/model.gguf" -p x --target ref
mkdir "$dir/only-ref"
cp "$top_builddir/plugins/.libs/target_ref.so" "$dir/only-ref"
PAWL_PLUGIN_PATH="$dir/only-ref" tool run "$dir/model.gguf" -p x -n 2
check "target ref in place of cpu" test $status = 0
check "which is said" grep -q '^pawl run: target cpu: no target_cpu.so in .*; going on with target ref, which is slow$' "$dir/err"
pawl=$kept

"$pawl" --help >/dev/full 2>"$dir/err"
status=$?
check "a full disk is a failure" test $status = 1
check "and says so" grep -q '^pawl: standard output: No space left' "$dir/err"
finish
