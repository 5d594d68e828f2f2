# Sourced by the tests of the real models: the model, a folder for results, and a count of checks.
# golden: which one, smollm2-135m unless set.
pawl=$top_builddir/tools/pawl
case ${golden:=smollm2-135m} in
smollm2-135m)
  model=$PAWL_TEST_MODEL
  model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
  ;;
gemma3-270m)
  model=$PAWL_TEST_GEMMA
  model_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
  ;;
esac
export golden model

if [ ! -f "$model" ]; then
  echo "no model at $model"
  exit 77
fi
if [ "$(sha256sum <"$model")" != "$model_sha256  -" ]; then
  echo "$model is not the file that the expected values were made from"
  exit 77
fi
mkdir -p "$PAWL_CACHE_DIR" || exit 99
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
passed=0 failed=0 skipped=0

check() { # NAME COMMAND...: counts whether the command succeeds
  name=$1
  shift
  if "$@"; then
    passed=$((passed + 1))
  else
    failed=$((failed + 1))
    echo "FAILED: $name"
  fi
}

skip() { # NAME REASON
  skipped=$((skipped + 1))
  echo "skipped: $1: $2"
}

end() {
  echo "$passed passed, $failed failed, $skipped skipped"
  test "$failed" = 0
  exit
}

# python_parts PART...: runs tests/model_PART.py, whose last line counts checks.
python_parts() {
  if ! command -v python3 >/dev/null; then
    echo "no python3"
    exit 77
  fi
  for part; do
    PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$PAWL_TEST_PYTHONPATH \
      python3 "$top_srcdir/tests/model_$part.py" >"$dir/out" 2>&1
    status=$?
    counts=$(tail -n 1 "$dir/out" |
      sed -n 's/^\([0-9]*\) passed, \([0-9]*\) failed, \([0-9]*\) skipped$/\1 \2 \3/p')
    if [ -n "$counts" ]; then
      sed '$d' "$dir/out"
    else
      cat "$dir/out"
      echo "FAILED: model_$part.py ended with status $status"
      counts="0 1 0"
    fi
    set -- $counts
    passed=$((passed + $1)) failed=$((failed + $2)) skipped=$((skipped + $3))
  done
}
