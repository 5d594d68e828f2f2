#!/bin/sh
# A token costs no system call but those of threads that wait for each other: 2,000 tokens more make
# no other call more often.
. "$top_srcdir/tests/model-test.sh"

if ! command -v strace >/dev/null; then
  echo "no strace"
  exit 77
fi
# Processes may not be traced everywhere.
if ! strace -f -o /dev/null true 2>/dev/null; then
  echo "strace may not trace"
  exit 77
fi

# calls ROUNDS: the system calls of so many rounds of 100 tokens, counted by name.
calls() {
  PAWL_KERNEL_CACHE=$dir/kernels strace -f -c -U name,calls -o "$dir/counts" \
    "$pawl" bench "$model" -t 2 -p 0 -n 100 -r "$1" --json >"$dir/rows" 2>"$dir/err" ||
    return 1
  awk '$2 ~ /^[0-9]+$/ && $1 != "total" && $1 != "futex" { print $1, $2 }' "$dir/counts" |
    sort >"$dir/calls.$1"
}

check "kernels are on disk" calls 1
check "1 round" calls 1
check "21 rounds" calls 21
# What the pool's memory allocator and the loader do differs by a few calls from run to run.
few=8
check "calls were counted" test "$(wc -l <"$dir/calls.21")" -gt 5
check "there are threads that wait" grep -q futex "$dir/counts"
join -a 1 -a 2 -e 0 -o 0,1.2,2.2 "$dir/calls.1" "$dir/calls.21" |
  awk -v few=$few '$3 - $2 > few { print $1 ": " $2 " calls, then " $3 }' >"$dir/more"
cat "$dir/more"
check "no call more often in 2000 tokens more" test ! -s "$dir/more"
end
