# tools/device-check.sh from end to end on the mock of a driver, and where there is none; the parts of
# bench/ that it runs.
. "$top_srcdir/tests/cli-lib.sh"

PYTHONDONTWRITEBYTECODE=1
PAWL_CUDA_DRIVER=$dir/none.so
PAWL_NVRTC=$top_builddir/tests/.libs/mock_nvrtc.so
export PYTHONDONTWRITEBYTECODE PAWL_CUDA_DRIVER PAWL_NVRTC
results=$dir/results
tiny tiny.gguf q4_1

# device_check WHAT STATUS ARGUMENT...
device_check() {
  what=$1 wanted=$2
  shift 2
  status=0
  "$top_srcdir/tools/device-check.sh" --build "$top_builddir" --results "$results" --quick "$@" \
    >"$dir/out" 2>"$dir/err" </dev/null || status=$?
  check "$what: status $status" test $status = "$wanted"
}

device_check "no driver" 1 "$dir/tiny.gguf"
check "no driver is one line" test "$(wc -l <"$dir/err")" = 1
check "no driver is told" grep -q '^device-check.sh: copy_bandwidth: there is no CUDA driver: ' "$dir/err"
check "no driver leaves nothing to mistake for results" test ! -e "$results/device.md"
# refuses PATTERN ARGUMENT...: status 2, and that on one line.
refuses() {
  pattern=$1
  shift
  device_check "refused: $*" 2 "$@"
  check "one line: $*" test "$(wc -l <"$dir/err")" = 1
  check "it says '$pattern'" grep -q "^device-check.sh: .*$pattern" "$dir/err"
}
mkfifo "$dir/pipe.gguf"
mkdir "$dir/other"
ln -s ../tiny.gguf "$dir/other/tiny.gguf"
refuses 'none.gguf: there is none$' "$dir/none.gguf"
refuses 'other: no file$' "$dir/other"
refuses 'pipe.gguf: no file$' "$dir/pipe.gguf"
refuses "'--quick': options come before models" "$dir/tiny.gguf" --quick
refuses 'two are named tiny$' "$dir/tiny.gguf" "$dir/other/tiny.gguf"
refuses 'no option' --quickly
for seconds in "" x 0 08 0x10 99999 9999999999999999999 -1 "1 2"; do
  refuses 'no whole number from 1 to 9999$' --seconds "$seconds" "$dir/tiny.gguf"
done
refuses 'the folder is missing$' --results ""
refuses 'it cannot be made$' --results "$dir/tiny.gguf"
mkdir -p "$dir/blocked/x.plan.txt"
refuses 'results of an earlier run: ' --results "$dir/blocked" "$dir/tiny.gguf"
check "a blocked folder is left as it was" test "$(ls -A "$dir/blocked")" = x.plan.txt
status=0
env -u HOME -u PAWL_CACHE_DIR -u XDG_CACHE_HOME "$top_srcdir/tools/device-check.sh" --quick \
  >"$dir/out" 2>"$dir/err" || status=$?
check "no HOME: status $status" test $status = 2
check "no HOME is told" grep -qx 'device-check.sh: HOME is not set, .*' "$dir/err"

device_check "its help" 0 --help
check "all of its help" grep -q 'the exit status is then 1\.$' "$dir/out"

# What it ends with itself: a process that never ends, its folder.  Meanwhile the results are its own.
mkdir -p "$dir/idle/tools" "$dir/idle/bench"
cp "$pawl" "$dir/idle/tools"
printf '#!/bin/sh\necho $$ >%s\nsleep 1000\n' "$dir/idle/pid" >"$dir/idle/bench/copy_bandwidth"
chmod +x "$dir/idle/bench/copy_bandwidth"
check "signals end all of it" python3 - "$top_srcdir/tools/device-check.sh" "$dir/idle" "$results" <<'PYTHON'
import os, signal, subprocess, sys, time
script, build, results = sys.argv[1:]
command = [script, "--build", build, "--results", results]
pid = build + "/pid"
for number in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
    signal.signal(number, signal.SIG_DFL)
    with subprocess.Popen(command, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and not (os.path.exists(pid) and os.path.getsize(pid)):
            time.sleep(0.02)
        second = subprocess.run(command, stderr=subprocess.PIPE, text=True)
        assert second.returncode == 2, second
        assert second.stderr.endswith(results + ": another device-check.sh writes there\n"), second
        process.send_signal(number)
    assert process.returncode == 128 + number, process.returncode
    assert not os.listdir(results), os.listdir(results)
    with open(pid) as file:
        child = int(file.read())
    try:
        os.kill(child, 0)
        assert False, "the process of a stage goes on"
    except ProcessLookupError:
        pass
    os.remove(pid)
PYTHON

# What an earlier run left is gone, whatever its name, and nothing is written where it leads.
echo kept >"$dir/kept"
ln -s "$dir/kept" "$results/old.plan.txt"
ln -s "$dir/kept" "$results/machine.txt"
ln -s "$dir/kept" "$results/failures.txt"
echo '{' >"$results/.hidden.bench.json"

PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
device_check "the mock" 0 "$dir/tiny.gguf"
check "links lead nowhere" test "$(cat "$dir/kept")" = kept
check "results are those of this run" test "$(ls -A "$results" | tr '\n' ' ')" = \
  "device.md machine.txt tiny.bench.json tiny.check.json tiny.plan.txt "
check "the machine" grep -qE '^device .*, sm_[0-9]+, [0-9]+ multiprocessors, driver of CUDA 13.0$' "$results/machine.txt"
check "the copy" grep -qE '^copy [0-9.]+ GB/s$' "$results/machine.txt"
check "nothing failed" test ! -e "$results/failures.txt"
check "three prompts and a session" test "$(wc -l <"$results/tiny.check.json")" = 4
check "speed at two depths" python3 - "$results/tiny.bench.json" <<'PYTHON'
import json, sys
rows = json.load(open(sys.argv[1]))["rows"]
assert [row["depth"] for row in rows] == [0, 8]
assert all(row["target"] == "cuda" and row["decode_tps"] > 0 and row["prompt_tps"] > 0 for row in rows)
assert all(row["uploads"] == 1 and row["launches"] == 1 for row in rows)
PYTHON
check "kernels compiled" grep -qE '^cold [0-9]+ steps, [1-9][0-9]* kernels compiled, 0 from disk: [0-9.]+ ms$' "$results/tiny.plan.txt"
check "kernels kept" grep -qE '^warm [0-9]+ steps, 0 kernels compiled, [1-9][0-9]* from disk: [0-9.]+ ms$' "$results/tiny.plan.txt"
check "its launches" grep -qE '^launches [0-9]+, 6 a layer$' "$results/tiny.plan.txt"
check "a table of speed" grep -qE '^\| *tiny \| *0 \|( *[0-9.]+ \|){3} *[0-9]+ % \| *14 \| *1 \| *1 \| *[0-9.]+ \|$' "$results/device.md"
check "a table of differences" grep -qE '^\| *tiny \| *cpu \| *11 \| *[0-9.e-]+ \| *0 \| *4 the same \|$' "$results/device.md"

# A build that was carried to a machine without LLVM.
mkdir -p "$dir/carried/tools" "$dir/carried/bench" "$dir/carried/plugins/.libs"
cp "$pawl" "$dir/carried/tools"
cp "$top_builddir/bench/copy_bandwidth" "$dir/carried/bench"
cp "$top_builddir/plugins/.libs/target_cuda.so" "$top_builddir/plugins/.libs/target_ref.so" \
  "$dir/carried/plugins/.libs"
device_check "without LLVM" 0 --build "$dir/carried" --results "$dir/carried/results" "$dir/tiny.gguf"
check "without LLVM it is compared with ref" \
  grep -qE '^\| *tiny \| *ref \| *2 \| *[0-9.e-]+ \| *0 \| *4 the same \|$' "$dir/carried/results/device.md"

# A model that cannot be opened: told, and the other one measured nevertheless.
printf 'GGUF' >"$dir/broken.gguf"
device_check "a broken model" 1 "$dir/broken.gguf" "$dir/tiny.gguf"
check "which is told" grep -q '^broken: ' "$results/failures.txt"
check "which is in the report" grep -q '^- broken: ' "$results/device.md"
check "the other is measured" test -s "$results/tiny.bench.json"

device_check "no time" 1 --seconds 20 "$dir/tiny.gguf"
check "no time is told" grep -qx 'tiny: speed: no time is left' "$results/failures.txt"
check "there are tables nevertheless" grep -q '^- tiny: speed: no time is left' "$results/device.md"
device_check "no seconds" 2 --seconds x

report() {
  status=0
  python3 "$top_srcdir/bench/device_report.py" "$@" >"$dir/out" 2>"$dir/err" || status=$?
}
python3 - "$dir" <<'PYTHON'
import array, sys
for name, row in (("right", [1, 4, -8, 2]), ("near", [1, 4.004, -8, 2]), ("far", [1, 4.1, -8, 2]),
                  ("tie", [1, 4, -8, 3.999]), ("tied", [1, 3.999, -8, 4]),
                  ("nan", [1, float("nan"), -8, 2])):
    open(sys.argv[1] + "/" + name, "wb").write(array.array("f", row * 2).tobytes())
PYTHON
for pair in "near right 0" "far right 1" "nan right 1" "tied tie 0"; do
  set -- $pair
  report logits "$dir/$1" "$dir/$2" 2 ref
  check "$1 beside $2: status $status" test $status = "$3"
done
check "another choice" grep -q '"other_choices": 2, "wrong_choices": 0' "$dir/out"
report logits "$dir/near" "$dir/right" 3 ref
check "no whole rows: status $status" test $status = 2
printf 123 >"$dir/bytes"
report logits "$dir/bytes" "$dir/right" 1 ref
check "no whole numbers: status $status" test $status = 2
head -c 16 /dev/zero >"$dir/zeros"
report logits "$dir/zeros" "$dir/zeros" 1 ref
check "nothing but zeros: status $status" test $status = 0

# told WHAT STATUS: that status, and one line without a traceback.
told() {
  check "$1: status $status" test $status = "$2" -a "$(wc -l <"$dir/err")" = 1
}
report tables "$dir"
told "no results" 2
mkdir "$dir/broken"
for line in "machine.txt:copy x" "machine.txt:copy 0 GB/s" "a.bench.json:{" 'a.bench.json:{"rows":[{}]}' \
  "a.check.json:[1" 'a.check.json:{"positions":1}'; do
  echo "copy 10 GB/s" >"$dir/broken/machine.txt"
  echo "${line#*:}" >"$dir/broken/${line%%:*}"
  report tables "$dir/broken"
  told "$line" 2
  check "$line is named" grep -q "^device_report.py: $dir/broken/${line%%:*}: not what " "$dir/err"
  rm "$dir/broken"/*
done
echo "copy 10 GB/s" >"$dir/broken/machine.txt"
status=0
python3 "$top_srcdir/bench/device_report.py" tables "$dir/broken" >/dev/full 2>"$dir/err" || status=$?
told "a full disk" 1

for words in "" "0" "x" "70000" "1 1" "1e9" "64abc" "-1"; do
  status=0
  "$top_builddir/bench/copy_bandwidth" $words >"$dir/out" 2>"$dir/err" || status=$?
  check "copy_bandwidth '$words' is refused" test $status = 2
done
PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_nvrtc.so
status=0
"$top_builddir/bench/copy_bandwidth" 1 >"$dir/out" 2>"$dir/err" || status=$?
check "copy_bandwidth without a driver: status $status" test $status = 1
PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
status=0
"$top_builddir/bench/copy_bandwidth" 1 >/dev/full 2>"$dir/err" || status=$?
told "copy_bandwidth onto a full disk" 1

# Small ones of its shapes; their real vocabularies would be large files.
for shape in smollm2 llama-1b; do
  check "$shape is written" env PYTHONPATH="$top_srcdir/bench" python3 -c '
import random_model, sys
with open(sys.argv[1], "wb") as out:
    random_model.write(out, {**random_model.SHAPES[sys.argv[2]], "vocabulary": 256}, 2)
' "$dir/random.gguf" $shape
  succeeds "$shape is a model" info "$dir/random.gguf"
  check "$shape runs" grep -qx 'runs          yes' "$dir/out"
  cp "$dir/out" "$dir/info.$shape"
  succeeds "$shape is evaluated" eval "$dir/random.gguf" --tokens 1,2,3 --last --logits "$dir/logits"
  check "$shape has finite logits" python3 -c '
import array, sys
logits = array.array("f", open(sys.argv[1], "rb").read())
assert len(logits) == 256 and 0.1 < sum(x * x for x in logits) / 256 < 10
' "$dir/logits"
done
check "one shape" grep -qE '^shape .* 2 layers of 576, 9 heads \(3 for keys\) of 64, feed-forward 1536$' "$dir/info.smollm2"
check "the other" grep -qE '^shape .* 2 layers of 2048, 32 heads \(8 for keys\) of 64, feed-forward 8192$' "$dir/info.llama-1b"
check "its type" grep -qE '^tensors +15 of bf16, ' "$dir/info.llama-1b"
status=0
python3 "$top_srcdir/bench/random_model.py" "$dir/random.gguf" gpt 2>"$dir/err" || status=$?
check "no such shape: status $status" test $status = 2

# Neither a limit nor a signal leaves a part of a file.
mkdir "$dir/parts"
status=0
(ulimit -f 64 && exec python3 "$top_srcdir/bench/random_model.py" "$dir/parts/a.gguf" smollm2 1) \
  2>"$dir/err" || status=$?
told "too large a file" 1
check "signals end it" python3 - "$top_srcdir/bench/random_model.py" "$dir/parts" <<'PYTHON'
import os, signal, subprocess, sys, time
for number in signal.SIGINT, signal.SIGTERM, signal.SIGHUP:
    signal.signal(number, signal.SIG_DFL)
    with subprocess.Popen([sys.executable, sys.argv[1], sys.argv[2] + "/a.gguf", "llama-1b"],
                          stderr=subprocess.PIPE) as process:
        while process.poll() is None and not os.listdir(sys.argv[2]):
            time.sleep(0.02)
        process.send_signal(number)
        assert process.stderr.read() == b""
    assert process.returncode == 128 + number, process.returncode
PYTHON
check "no part of a file is left" test -z "$(ls "$dir/parts")"
status=0
python3 "$top_srcdir/bench/random_model.py" /dev/full smollm2 2>"$dir/err" || status=$?
told "no file to replace" 2

finish
