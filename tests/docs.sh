# Graphs in the documentation are read as they stand there: a fenced block that begins with
# `pawl 1` parses; one marked `pawl canonical` is what Pawl prints; one marked `pawl wrong` gives
# the messages of the block behind it.  Together they show every op.  Step graphs of docs/hosts.md,
# marked `step`, are those that examples/driver.py hands over, which tests/host.sh runs.
. "$top_srcdir/tests/cli-lib.sh"

# extract FILE: writes its blocks as $dir/block-N and their fences as $dir/fence-N.
extract() {
  rm -f "$dir"/block-* "$dir"/fence-*
  awk -v dir="$dir" '
    !/^```/ { if (inside) print > (dir "/block-" n); next }
    inside { close(dir "/block-" n); inside = 0; next }
    { inside = 1; n++; print > (dir "/fence-" n); close(dir "/fence-" n); printf "" > (dir "/block-" n) }
  ' "$1"
}

# graph FILE N
graph() {
  name="$1, block $2"
  case $(cat "$dir/fence-$2") in
  *' wrong')
    tool opt --passes none --all-errors "$dir/block-$2"
    check "$name is wrong" test $status = 1
    sed "s|^pawl opt: $dir/block-$2:|FILE:|" "$dir/err" >"$dir/found"
    check "$name is wrong as it says" diff "$dir/block-$(($2 + 1))" "$dir/found"
    ;;
  *)
    succeeds "$name" opt --passes none "$dir/block-$2"
    case $(cat "$dir/fence-$2") in
    *' canonical') check "$name is canonical" cmp "$dir/out" "$dir/block-$2" ;;
    esac
    sed -n 's/^ *%[A-Za-z0-9_.]* = \([a-z_]*\) .*/\1/p' "$dir/out" >>"$dir/ops"
    ;;
  esac
}

for file in README.md docs/text-form.md; do
  extract "$top_srcdir/$file"
  n=0 found=0
  while n=$((n + 1)) && [ -f "$dir/fence-$n" ]; do
    if [ "$(head -n 1 "$dir/block-$n")" = 'pawl 1' ]; then
      graph "$file" $n
      found=$((found + 1))
    fi
  done
  check "$file has graphs" test $found -gt 0
done

extract "$top_srcdir/docs/hosts.md"
n=0
: >"$dir/steps"
while n=$((n + 1)) && [ -f "$dir/fence-$n" ]; do
  test "$(cat "$dir/fence-$n")" != '```step' || cat "$dir/block-$n" >>"$dir/steps"
done
grep -E '^(sym |%|output )' "$top_srcdir/examples/driver.py" >"$dir/handed-over"
check 'the steps of docs/hosts.md are those of examples/driver.py' \
  diff "$dir/steps" "$dir/handed-over"

sort -u "$dir/ops" >"$dir/shown"
tool opt --list-ops
sed 's/ .*//' "$dir/out" | sort >"$dir/all"
check "every op is shown" diff "$dir/all" "$dir/shown"
finish
