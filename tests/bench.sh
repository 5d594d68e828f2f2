# The benchmark's own parts: bandwidth, its summary of samples, tables, the plot.
. "$top_srcdir/tests/cli-lib.sh"

"$top_builddir/bench/read_bandwidth" 1 8 >"$dir/gbs"
check "a bandwidth" grep -qE '^[1-9][0-9]*\.[0-9][0-9]$|^0\.[0-9]*[1-9]' "$dir/gbs"
for words in "" "1" "0 8" "1 0" "2 1" "x 8" "1x 8" "1 8.5" "257 512"; do
  status=0
  "$top_builddir/bench/read_bandwidth" $words >"$dir/out" 2>"$dir/err" || status=$?
  check "read_bandwidth '$words' is refused" test $status = 2
done

if [ -w /dev/full ]; then
  status=0
  "$top_builddir/bench/read_bandwidth" 1 8 >/dev/full 2>"$dir/err" || status=$?
  check "read_bandwidth says that it could not write" test $status = 1
fi

cat >"$dir/data.py" <<'PYTHON'
import json, sys

samples = []

def add(kind, threads, n, engine, tps, way="", clean=True, **more):
    samples.append({"kind": kind, "file": "m.gguf", "threads": threads, "n": n, "engine": engine,
                    "way": way, "tps": tps, "clean": clean, **more})

for tps, clean in (90, True), (100, True), (110, True), (1, False):
    add("decode", 1, 0, "pawl a16", tps, clean=clean, host_us=5, weight_bytes=9e7, kv_bytes=1e7)
add("decode", 1, 1000, "pawl a16", 50, host_us=6, attention_us=4500, weight_bytes=9e7, kv_bytes=6e7)
for depth, off, on in (0, 30, 40), (1000, 20, 10):
    add("decode", 1, depth, "llama.cpp", off, "flash attention off")
    add("decode", 1, depth, "llama.cpp", on, "flash attention on")
for n, tps in (1, 60), (4, 150):
    add("batch", 1, n, "pawl a16", tps, clean=False)
add("busy", 2, 0, "pawl a16", 80)
json.dump({"machine": {"cpu": "a processor", "cpus": 2, "system": "Linux 6"}, "date": "2026-01-02",
           "commit": "abc", "versions": {"pawl a16": "pawl 1", "llama.cpp": "llama.cpp 2"},
           "rounds": 4, "refused": {}, "bandwidth": [
               {"file": "m.gguf", "threads": t, "gbs": 20, "clean": True} for t in (1, 2)],
           "samples": samples}, open(sys.argv[1], "w"))
PYTHON
report() {
  PYTHONDONTWRITEBYTECODE=1 python3 "$top_srcdir/bench/report.py" "$@"
}
python3 "$dir/data.py" "$dir/run.json"
{
  printf '# Head\n<!-- figures: begin -->\n\n### first.gguf\n\nkept\n\n### m.gguf\n\nold\n\nold too\n\n'
  printf '### last.gguf\n\nkept too\n\n<!-- figures: end -->\nTail\n'
} >"$dir/doc.md"
report "$dir/run.json" --update "$dir/doc.md" --svg "$dir/plot.svg" >"$dir/report.err" 2>&1
check "the report is made" test ! -s "$dir/report.err"

# row WHAT CELL...: a row of the document with these cells
row() {
  what=$1
  shift
  pattern='^'
  for cell; do
    pattern="$pattern\\| *$cell "
  done
  check "$what" grep -qE "$pattern\\|\$" "$dir/doc.md"
}

# the median of what was undisturbed; 100 tokens/s of 100 MB are half of 20 GB/s
row "decoding at depth 0" 1 0 100.0 40.0 2.50 10.0 '50 %' - 5.0
# 4.5 ms for 60 MB, which take 3
row "decoding at depth 1000" 1 1000 50.0 20.0 2.50 7.5 '38 %' 1.50 6.0
row "a batch" 1 4 '~150.0' '~2.50'
row "beside a busy process" 'pawl a16' 2 100.0 80.0 0.80
check "old figures are gone" sh -c '! grep -q old "$1"' - "$dir/doc.md"
check "those of other files stay" test "$(grep -A2 '^### ' "$dir/doc.md" | grep -v '^-*$' | cut -c1-14 | xargs)" = \
  "### first.gguf kept ### m.gguf a processor, 2 ### last.gguf kept too"
check "the rest stays" test "$(sed -n '1p;$p' "$dir/doc.md" | xargs)" = "# Head Tail"
cp "$dir/doc.md" "$dir/before.md"
report "$dir/run.json" --update "$dir/doc.md"
check "again the same" cmp "$dir/before.md" "$dir/doc.md"
report "$dir/run.json" >"$dir/printed"
check "printed as in the document" sh -c '
  sed -n "/^### m.gguf/,\$p" "$1" | head -n "$(wc -l <"$2")" | cmp - "$2"' - "$dir/doc.md" "$dir/printed"
printf '<!-- figures: begin -->\n<!-- figures: end -->\n' >"$dir/doc.md"
report "$dir/run.json" --update "$dir/doc.md"
check "new tables" sh -c 'sed "1,2d;\$d" "$1" | head -n "$(wc -l <"$2")" | cmp - "$2"' - "$dir/doc.md" "$dir/printed"
python3 - "$dir/run.json" "$dir/disturbed.json" "$dir/once.json" <<'PYTHON'
import json, sys
run = json.load(open(sys.argv[1]))
once = {**run, "rounds": 1, "samples": [s for s in run["samples"] if s["clean"]]}
json.dump(once, open(sys.argv[3], "w"))
for row in run["bandwidth"]:
    row["clean"] = False
for sample in run["samples"]:
    sample["clean"] &= sample["n"] != 1000 or sample["engine"] != "llama.cpp"
json.dump(run, open(sys.argv[2], "w"))
PYTHON
report "$dir/disturbed.json" --update "$dir/doc.md"
row "a disturbed bandwidth is marked in what follows from it" 1 0 100.0 40.0 2.50 10.0 '~50 %' - 5.0
row "a disturbed peer in its ratio" 1 1000 50.0 '~20.0' '~2.50' 7.5 '~38 %' '~1.50' 6.0
check "in the bandwidth itself" grep -q 'threads read ~20.0 GB/s with 1, ~20.0 GB/s with 2' "$dir/doc.md"
check "and the mark is explained" grep -q '^- ~: others used the machine' "$dir/doc.md"
report "$dir/once.json" --update "$dir/doc.md"
check "one round is no median" grep -q ', commit abc, one round\.$' "$dir/doc.md"
check "no mark, no explanation" sh -c '! grep -q "~" "$1"' - "$dir/doc.md"

PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top_srcdir/bench python3 -c '
from idle_gate import wait_until_idle
assert not wait_until_idle(1, idle_share=2)' 2>"$dir/err"
check "waiting is said" grep -qE '^waiting up to 1 s for an idle machine: others use [0-9.]+ of [0-9]+ CPUs$' "$dir/err"
check "and its end" test "$(wc -l <"$dir/err")" = 2
PYTHONDONTWRITEBYTECODE=1 PYTHONPATH=$top_srcdir/bench python3 -c '
from idle_gate import wait_until_idle
assert wait_until_idle(3, idle_share=-1)' 2>"$dir/err"
check "no waiting is not" test ! -s "$dir/err"

# Help needs nothing that only measuring does.
for script in compare.py quality.py performance.sh; do
  PAWL_CACHE_DIR=$dir/none PYTHONDONTWRITEBYTECODE=1 "$top_srcdir/bench/$script" --help >"$dir/out" 2>"$dir/err"
  check "help of $script" test $? = 0 -a -s "$dir/out" -a ! -s "$dir/err"
done
PAWL_CACHE_DIR=$dir/none "$top_srcdir/tools/fetch-model.sh" nothing >"$dir/out" 2>"$dir/err"
check "a model that is none is refused" test $? = 2 -a "$(wc -l <"$dir/err")" = 1
check "the plot is XML" python3 -c '
import sys, xml.dom.minidom
lines = xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("polyline")
assert len(lines) == 2, lines
' "$dir/plot.svg"
# What is refused before anything is measured: one line, exit status 2.
bench=$top_srcdir/bench
PYTHONDONTWRITEBYTECODE=1
export PYTHONDONTWRITEBYTECODE
stops() { # PATTERN SCRIPT ARGUMENT...
  pattern=$1 script=$2
  shift 2
  status=0
  "$bench/$script" "$@" >"$dir/out" 2>"$dir/err" || status=$?
  check "$script $*: exit status 2, not $status" test $status = 2
  check "$script $*: one line" test "$(wc -l <"$dir/err")" = 1
  check "$script $*: $pattern" grep -q -- "$pattern" "$dir/err"
  check "$script $*: nothing else" test ! -s "$dir/out"
}
model=$dir/model.gguf
echo >"$model"
mkdir "$dir/built" "$dir/built/tools" "$dir/built/bench"
for program in tools/pawl bench/read_bandwidth; do
  echo 'exit 3' >"$dir/built/$program"
  chmod +x "$dir/built/$program"
done
compare() { # PATTERN ARGUMENT...
  pattern=$1
  shift
  stops "^compare.py: $pattern" compare.py "$model" --build "$dir/built" "$@"
}
compare '/nonexistent/x: it cannot be written$' --json /nonexistent/x
compare '.*: it cannot be written$' --json "$dir"
compare ".*-r.*: '0' is no whole number from 1 " -r 0
compare ".*-r.*: '-1' is no whole number from 1 " -r -1
compare ".*-r.*: 'x' is no whole number from 1 " -r x
compare ".*-n.*: '0' is no whole number from 1 " -n 0
compare ".*-d.*: '-1' is no whole number from 0 " -d 0,-1
compare ".*--batch.*: '9' is no whole number from 1 to 8$" --batch 9
compare '-t: no number of threads$' -t ''
compare ".*-t.*: '' is no whole number" -t 1,
compare '--activations: a16, a8 or both$' --activations a9
compare 'nothing to measure$' -d '' -p ''
compare '--at-least nan is no ratio$' --at-least nan
compare '--at-least is about -d and -p, and neither is measured$' -d '' -p '' --batch 1 --at-least 1
stops '^compare.py: .*/none: there is none$' compare.py "$dir/none" --build "$dir/built"
stops '^compare.py: .*: no file$' compare.py "$dir" --build "$dir/built"
stops '^compare.py: .*/tools/pawl: there is none$' compare.py "$model" --build "$dir/none"
chmod -x "$dir/built/tools/pawl"
compare '.*/tools/pawl: no program$'
echo '{}' >"$dir/empty.json"
echo x >"$dir/no.json"
sed 's/"samples": .*/"samples": []}/' "$dir/run.json" >"$dir/nothing.json"
stops '^report.py: .*: not of bench/compare.py$' report.py "$dir/empty.json"
stops '^report.py: .*: no JSON$' report.py "$dir/no.json"
stops '^report.py: .*: nothing was measured$' report.py "$dir/nothing.json"
for damage in '"versions": "x"' '"bandwidth": []' '"machine": -1' '"samples": [1]' '"samples": {"a": 1}'; do
  python3 -c 'import json, sys
run = json.load(open(sys.argv[1]))
run.update(json.loads("{%s}" % sys.argv[2]))
json.dump(run, open(sys.argv[3], "w"))' "$dir/run.json" "$damage" "$dir/damaged.json"
  stops '^report.py: .*/damaged.json: not as bench/compare.py writes it (' report.py "$dir/damaged.json"
done
printf '%100000s' '' | tr ' ' '[' >"$dir/deep.json"
stops '^report.py: .*/deep.json: no JSON$' report.py "$dir/deep.json"
stops '^report.py: .*/none: there is none$' report.py "$dir/none"
stops '^report.py: .*: no place for figures: ' report.py "$dir/run.json" --update "$dir/no.json"
check "the document stays" test "$(cat "$dir/no.json")" = x
stops '^report.py: /nonexistent/x: it cannot be written$' report.py "$dir/run.json" --svg /nonexistent/x
stops '^usage: beside_busy.py COMMAND' beside_busy.py
stops '^beside_busy.py: /nonexistent/x: ' beside_busy.py /nonexistent/x
stops "^performance.sh: '0' is no number of rounds$" performance.sh 0 gemma
stops "^performance.sh: 'gema' is no part" performance.sh 1 smollm2 gema
stops "^quality.sh: 'x' is no number of windows$" quality.sh x
check "nothing half-written stays" test -z "$(find "$dir" -name '*.part')"

# quality ARGUMENT...: with what is asked for, but for what the arguments say
PYTHONPATH=${PAWL_TEST_PYTHONPATH-}
export PYTHONPATH
if python3 -c 'import numpy, gguf' 2>/dev/null; then
  quality() { # PATTERN MODEL F32 TEXT ARGUMENT...
    pattern=$1
    shift
    stops "^quality.py: $pattern" quality.py --pawl "$bench/compare.py" --peer "$dir/peer" \
      --peer-logits "$bench/compare.py" --cache "$dir" "$@"
  }
  mkdir "$dir/peer"
  quality '.*/llama-perplexity: there is none$' "$model" "$model" "$model"
  cp "$bench/compare.py" "$dir/peer/llama-perplexity"
  quality '.*/none: there is none$' "$dir/none" "$model" "$model"
  quality '.*/none: there is none$' "$model" "$dir/none" "$model"
  quality '.*/none: there is none$' "$model" "$model" "$dir/none"
  quality ".*--windows: '0' is no whole number from 1 " "$model" "$model" "$model" --windows 0
  quality ".*--length: '3' is no whole number from 4 " "$model" "$model" "$model" --length 3
  quality '/nonexistent/x: it cannot be written$' "$model" "$model" "$model" --json /nonexistent/x
  # tokenize, and the ids of the peer
  printf '#!/bin/sh\ncase $* in *tokenize*) echo "[1, 2, 3, 4, 5]" ;; *) echo 1 2 3 4 5 ;; esac\n' >"$dir/ids"
  chmod +x "$dir/ids"
  quality '.*: 5 tokens are less than a window of 6$' "$model" "$model" "$model" --pawl "$dir/ids" \
    --peer-logits "$dir/ids" --length 6
else
  skip "what quality.py refuses" "numpy or gguf is not installed"
fi

# A script that is ended ends what it started; what is killed ends the busy process.
cat >"$dir/ended.py" <<'PYTHON'
import os, signal, subprocess, sys, time

def parents():
    found = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open("/proc/%s/stat" % name) as stat:
                state, parent = stat.read().rsplit(") ", 1)[1].split()[:2]
        except OSError:
            continue
        if state != "Z":
            found[int(name)] = int(parent)
    return found

def below(top):
    found, all_of_them = {top}, parents()
    while more := {pid for pid, parent in all_of_them.items() if parent in found} - found:
        found |= more
    return found - {top}

def wait_for(condition, what):
    for _ in range(600):
        if condition():
            return
        time.sleep(0.1)
    sys.exit("no " + what)

# What runs in the background of a shell is told to ignore SIGINT, and so is what it starts.
for usual in signal.SIGHUP, signal.SIGINT, signal.SIGTERM:
    signal.signal(usual, signal.SIG_DFL)
number, n_children, n_left, *command = sys.argv[1:]
script = subprocess.Popen(command)
wait_for(lambda: len(below(script.pid)) == int(n_children), "children")
started = below(script.pid)
script.send_signal(int(number))
left = lambda: started & set(parents())
try:
    status = script.wait(60)
    wait_for(lambda: len(left()) == int(n_left), "end")
finally:
    script.kill()
    for pid in left():
        os.kill(pid, signal.SIGKILL)
assert status == (-9 if number == "9" else 128 + int(number)), status
PYTHON
for number in 2 15; do
  check "beside_busy.py and signal $number" \
    python3 "$dir/ended.py" $number 3 0 "$bench/beside_busy.py" sh -c 'sleep 1000 & wait'
done
check "beside_busy.py that is killed" python3 "$dir/ended.py" 9 3 2 "$bench/beside_busy.py" sh -c 'sleep 1000 & wait'
cat >"$dir/alone.py" <<'PYTHON'
import sys
sys.path.insert(0, sys.argv[1])
import children, idle_gate
children.end_on_signals()
idle_gate.run_alone([sys.argv[1] + "/beside_busy.py", "sleep", "1000"], 0)
PYTHON
check "what is measured" python3 "$dir/ended.py" 15 3 0 python3 "$dir/alone.py" "$bench"
status=0
"$bench/beside_busy.py" sh -c 'exit 7' || status=$?
check "the status of the command" test $status = 7
finish
