#!/bin/sh
# The public ABI is the one that is written down, for this compiler.
if ! command -v python3 >/dev/null; then
  echo 'no python3'
  exit 77
fi
python3 "$top_srcdir/tests/check-abi.py" "$top_srcdir/include/pawl/plugin.h" "$top_srcdir/tests/abi-1.txt"
