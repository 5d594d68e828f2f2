# The benchmark's own parts: bandwidth, its summary of samples, tables, the plot.
. "$top_srcdir/tests/cli-lib.sh"

"$top_builddir/bench/read_bandwidth" 1 8 >"$dir/gbs"
check "a bandwidth" grep -qE '^[1-9][0-9]*\.[0-9][0-9]$|^0\.[0-9]*[1-9]' "$dir/gbs"
for words in "" "1" "0 8" "1 0" "2 1" "x 8" "257 512"; do
  status=0
  "$top_builddir/bench/read_bandwidth" $words >"$dir/out" 2>"$dir/err" || status=$?
  check "read_bandwidth '$words' is refused" test $status = 2
done

cat >"$dir/data.py" <<'PYTHON'
import json, sys

samples = []

def add(kind, threads, n, engine, tps, way="", clean=True, **more):
    samples.append({"kind": kind, "file": "m.gguf", "threads": threads, "n": n, "engine": engine,
                    "way": way, "tps": tps, "clean": clean, **more})

for tps, clean in (90, True), (100, True), (110, True), (1, False):
    add("decode", 1, 0, "pawl a16", tps, clean=clean, host_us=5, weight_bytes=9e7, kv_bytes=1e7)
add("decode", 1, 1000, "pawl a16", 50, host_us=6, weight_bytes=9e7, kv_bytes=6e7)
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
printf '# Head\n<!-- figures: begin -->\nold\n<!-- figures: end -->\nTail\n' >"$dir/doc.md"
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
# 10 ms longer for 50 MB, which take 2.5
row "decoding at depth 1000" 1 1000 50.0 20.0 2.50 7.5 '38 %' 4.00 6.0
row "a batch" 1 4 '~150.0' 2.50
row "beside a busy process" 'pawl a16' 2 100.0 80.0 0.80
check "old figures are gone" sh -c '! grep -q old "$1"' - "$dir/doc.md"
check "the rest stays" test "$(sed -n '1p;$p' "$dir/doc.md" | xargs)" = "# Head Tail"
cp "$dir/doc.md" "$dir/before.md"
report "$dir/run.json" --update "$dir/doc.md"
check "again the same" cmp "$dir/before.md" "$dir/doc.md"
report "$dir/run.json" >"$dir/printed"
check "printed as in the document" sh -c '
  sed "1,3d" "$1" | head -n "$(wc -l <"$2")" | cmp - "$2"' - "$dir/doc.md" "$dir/printed"
check "the plot is XML" python3 -c '
import sys, xml.dom.minidom
lines = xml.dom.minidom.parse(sys.argv[1]).getElementsByTagName("polyline")
assert len(lines) == 2, lines
' "$dir/plot.svg"
finish
