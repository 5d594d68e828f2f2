#!/bin/sh
# The public ABI is the one that is written down, for this compiler, and its header is C++ and old C too.
if ! command -v python3 >/dev/null; then
  echo 'no python3'
  exit 77
fi
python3 "$top_srcdir/tests/check-abi.py" "$top_srcdir/include/pawl/plugin.h" "$top_srcdir/tests/abi-1.txt" || exit 1
for language in 'c++ -std=c++11' 'c -std=c99'; do
  compiler=$CC
  case $language in 'c++'*) compiler=g++ ;; esac
  if ! command -v "${compiler%% *}" >/dev/null; then
    echo "skipped: the header in ${language%% *}: no $compiler"
    continue
  fi
  $compiler -x$language -Wall -Wextra -pedantic -Werror -fsyntax-only \
    -I"$top_srcdir/include" "$top_srcdir/include/pawl/plugin.h" || exit 1
done
