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
PAWL_DUMP=$dir/nowhere/dump
export PAWL_DUMP
goes_on dump "pawl: not used: cannot dump to $dir/nowhere/dump: "
unset PAWL_DUMP
PAWL_THREADS=many
export PAWL_THREADS
goes_on threads "pawl: not used: PAWL_THREADS"
unset PAWL_THREADS
# A host of a version that is not known, with all symbols that are looked for.
{
  cat <<'C'
#include <dlfcn.h>
#include <stdarg.h>
#include <stdio.h>
const char *ggml_version(void);
void ggml_log_internal(int level, const char *format, ...);
const char *
ggml_version(void)
{
	return "0.31.2";
}
void
ggml_log_internal(int level, const char *format, ...)
{
	va_list args;
	va_start(args, format);
	fprintf(stderr, "%d ", level);
	vfprintf(stderr, format, args);
	va_end(args);
}
int
main(int argc, char **argv)
{
	void *module = dlopen(argv[argc - 1], RTLD_NOW);
	void *(*init)(void) = module ? (void *(*)(void))dlsym(module, "ggml_backend_init") : NULL;
	return !init || init() != NULL;
}
C
  for symbol in op_name unary_op_name glu_op_name tensor_overhead backend_buffer_init \
    backend_dev_by_type backend_dev_init backend_graph_compute backend_free \
    backend_dev_backend_reg backend_reg_get_proc_address; do
    echo "void ggml_$symbol(void); void ggml_$symbol(void) {}"
  done
} >"$dir/other.c"
if $CC -rdynamic -o "$dir/other" "$dir/other.c" -ldl 2>"$dir/cc.log"; then
  run version "$dir/other" "$plugin"
  check "version: the host goes on" test $? = 0
  check "version: its log says so" \
    grep -q '^4 pawl: not used: ggml 0.31.2 is none of the versions known here' "$dir/version.log"
else
  skip "another version" "no compiler"
fi
# Two of them in one process: the module is for the one that loads it first, and not for the other.
second=$PAWL_TEST_PEER/libggml.so
if [ -f "$second" ]; then
  host_py two-ggml two "$second"
  check "two ggml: one has it" grep -q "^\['CPU', 'PAWL0'\]$" "$dir/two-ggml.out"
  check "two ggml: the other has not" grep -q "^0$" "$dir/two-ggml.out"
  check "two ggml: a log says so" \
    grep -q 'pawl: not used: another ggml of this process, 0.26.0, has it already' \
    "$dir/two-ggml.log"
else
  skip "two ggml" "no second one at $second"
fi
# A program that shows no symbol of ggml is told that there is no backend, and nothing else happens.
check "no ggml at all" python3 -c '
import ctypes, sys
init = ctypes.CDLL(sys.argv[1]).ggml_backend_init
init.restype = ctypes.c_void_p
sys.exit(init() is not None)' "$plugin"
end
