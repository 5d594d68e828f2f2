# An unmodified llama.cpp, prebuilt in a package, decodes through libggml-pawl.so.
# PAWL_TEST_CHAT=2000 makes the chats as long, PAWL_TEST_MINUTES=10 serves for that time.
host=$PAWL_TEST_HOST
plugin=$top_builddir/plugins/.libs/libggml-pawl.so
if ! PYTHONPATH=$host python3 -c 'import xllamacpp' 2>/dev/null; then
  echo "no package xllamacpp in $host"
  exit 77
fi
. "$top_srcdir/tests/model-test.sh"

kernels=$dir/kernels
# run NAME COMMAND...: a process that loads what $backend names; its log goes to $dir/NAME.log.
run() {
  name=$1
  shift
  GGML_BACKEND_PATH=$backend PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$host \
    PAWL_KERNEL_CACHE=$kernels \
    timeout 1800 "$@" >"$dir/$name.out" 2>"$dir/$name.log"
}

script=llama_host.py
host_py() { # NAME ARGUMENT...
  run_name=$1
  shift
  run "$run_name" python3 "$top_srcdir/tests/$script" "$@"
}

# counted NAME ARGUMENT...: takes over the counts of its last line.
counted() {
  host_py "$@"
  status=$?
  set -- "$1" $(tail -n 1 "$dir/$1.out" |
    sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
  if [ -z "$2" ]; then
    tail -n 20 "$dir/$1.out" "$dir/$1.log"
    echo "FAILED: $1 ended with status $status"
    failed=$((failed + 1))
    return
  fi
  sed -n '/^FAILED/p; /^[a-z].*: /p' "$dir/$1.out" | sed "s/^/$1: /"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

# models NAME MODEL GOLDEN: what each model does.
models() {
  for attention in on off q8_0; do
    counted "$1-$attention" golden "$2" "$top_srcdir/tests/data/golden-$3.json" $attention
  done
  for shift in stop shift; do
    counted "$1-chat-$shift" chat "$2" "${PAWL_TEST_CHAT:-600}" $shift
    check "$1-chat-$shift: whole graphs" grep -q 'splits = 2,' "$dir/$1-chat-$shift.log"
  done
  check "$1-chat-stop: no shift" test "$(grep -c 'context shift' "$dir/$1-chat-stop.log")" = 0
  check "$1-chat-shift: a shift" grep -q 'context shift' "$dir/$1-chat-shift.log"
}

backend=$plugin
models smollm2 "$model" smollm2-135m
counted growing grow "$model"
counted together together "$model"
counted contexts contexts "$model"
script=llama_server.py
counted server "$model" "${PAWL_TEST_MINUTES:-0.1}"
script=llama_host.py
if [ -f "$PAWL_TEST_GEMMA" ]; then
  models gemma "$PAWL_TEST_GEMMA" gemma3-270m
else
  skip "Gemma" "no model at $PAWL_TEST_GEMMA"
fi

# A host goes on without what it cannot use, and its log says why.
goes_on() { # NAME PATTERN
  host_py "$1" devices
  check "$1: the host goes on" grep -q '^CPU$' "$dir/$1.out"
  check "$1: its log says so" grep -q "$2" "$dir/$1.log"
}

mkdir "$dir/bare"
backend=$dir/bare/libggml-pawl.so
goes_on missing 'No such file'
echo 'no object' >"$backend"
goes_on junk 'file too short\|invalid ELF'
cp "$plugin" "$backend"
plugins=$PAWL_PLUGIN_PATH
PAWL_PLUGIN_PATH=$dir/nowhere
export PAWL_PLUGIN_PATH
goes_on alone "pawl: not used: target cpu: no target_cpu.so in $dir/nowhere or $dir/bare"
ln -s target_cpu.so "$dir/bare/target_cpu.so"
goes_on unreadable "pawl: not used: target cpu: $dir/bare/target_cpu.so: "
rm "$dir/bare/target_cpu.so"
cp "$top_builddir/plugins/.libs/target_cpu.so" "$dir/bare"
kernels=$dir/none
host_py no-compiler answer "$model"
check "no compiler: an answer" grep -q '[a-z]' "$dir/no-compiler.out"
check "no compiler: its log says so" \
  grep -q 'W pawl: the host computes .* cannot open the cpu compiler' "$dir/no-compiler.log"
PAWL_PLUGIN_PATH=$plugins
kernels=$dir/kernels
backend=$plugin
PAWL_CPU=aarch64
export PAWL_CPU
goes_on processor 'pawl: not used: this machine does not run cpu variant aarch64'
unset PAWL_CPU
PAWL_DEBUG=ggml,hlep
export PAWL_DEBUG
goes_on debug-word "pawl: not used: PAWL_DEBUG: 'hlep' is none of verify"
PAWL_DEBUG=ggml
host_py debug answer "$model"
check "PAWL_DEBUG=ggml: counters when a context ends" \
  grep -q 'W pawl: graphs [1-9].* fallbacks 0; declined: ' "$dir/debug.log"
PAWL_DEBUG=all-threads
PAWL_SKIP=nothing
export PAWL_SKIP
goes_on skip "pawl: not used: PAWL_SKIP: "
unset PAWL_SKIP
PAWL_THREADS=many
export PAWL_THREADS
goes_on threads "pawl: not used: PAWL_THREADS"
unset PAWL_THREADS
cat >"$dir/other.c" <<'C'
const char *ggml_version(void);
const char *
ggml_version(void)
{
	return "0.31.2";
}
C
if $CC -shared -fPIC -o "$dir/other.so" "$dir/other.c"; then
  LD_PRELOAD=$dir/other.so
  export LD_PRELOAD
  goes_on version 'pawl: not used: ggml 0.31.2 is none of the versions known here'
  unset LD_PRELOAD
else
  skip "another version" "no compiler"
fi
# A program that shows no symbol of ggml is told that there is no backend, and nothing else happens.
check "no ggml at all" python3 -c '
import ctypes, sys
init = ctypes.CDLL(sys.argv[1]).ggml_backend_init
init.restype = ctypes.c_void_p
sys.exit(init() is not None)' "$plugin"
end
