# An unmodified llama.cpp, prebuilt in a package, decodes through libggml-pawl.so.
host=$PAWL_TEST_HOST
plugin=$top_builddir/plugins/.libs/libggml-pawl.so
if ! PYTHONPATH=$host python3 -c 'import xllamacpp' 2>/dev/null; then
  echo "no package xllamacpp in $host"
  exit 77
fi
. "$top_srcdir/tests/model-test.sh"

# run NAME COMMAND...: a process that loads what $backend names; its log goes to $dir/NAME.log.
run() {
  name=$1
  shift
  GGML_BACKEND_PATH=$backend PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$host \
    PAWL_KERNEL_CACHE=$dir/kernels \
    timeout 600 "$@" >"$dir/$name.out" 2>"$dir/$name.log"
}

host_py() { # NAME ARGUMENT...
  run_name=$1
  shift
  run "$run_name" python3 "$top_srcdir/tests/llama_host.py" "$@"
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
  sed -n '/^FAILED/p; /^mean/p' "$dir/$1.out" | sed "s/^/$1: /"
  passed=$((passed + $2)) failed=$((failed + $3)) skipped=$((skipped + $4))
}

backend=$plugin
counted smollm2-on golden "$model" "$top_srcdir/tests/data/golden-smollm2-135m.json" on
counted smollm2-off golden "$model" "$top_srcdir/tests/data/golden-smollm2-135m.json" off
counted growing grow "$model"
counted together together "$model"
if [ -f "$PAWL_TEST_GEMMA" ]; then
  counted gemma-on golden "$PAWL_TEST_GEMMA" "$top_srcdir/tests/data/golden-gemma3-270m.json" on
else
  skip "Gemma" "no model at $PAWL_TEST_GEMMA"
fi

# A host goes on without what it cannot use, and its log says why.
goes_on() { # NAME PATTERN
  host_py "$1" devices
  check "$1: the host goes on" grep -q '^CPU$' "$dir/$1.out"
  check "$1: its log says so" grep -q "$2" "$dir/$1.log"
}

echo 'no object' >"$dir/libggml-pawl.so"
backend=$dir/libggml-pawl.so
goes_on junk 'file too short\|invalid ELF'
backend=$dir/nowhere/libggml-pawl.so
goes_on missing 'No such file'
cat >"$dir/other.c" <<'C'
const char *ggml_version(void);
const char *
ggml_version(void)
{
	return "0.31.2";
}
C
if $CC -shared -fPIC -o "$dir/other.so" "$dir/other.c"; then
  backend=$plugin
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
