# The example of the runtime: the same text on the reference and, with LLVM, the CPU.  It looks by itself that a
# sequence in a batch, branched, has the tokens it has alone and restored from a file.
. "$top_srcdir/tests/cli-lib.sh"

tiny m.gguf
serve() { # ARGUMENT...: leaves $status, $dir/out and $dir/err
  "$top_builddir/examples/serve" "$@" >"$dir/out" 2>"$dir/err"
  status=$?
}

for target in ref cpu; do
  if [ $target = cpu ] && [ ! -f "$top_builddir/plugins/.libs/cpu_compiler.so" ]; then
    skip "serve on cpu: built without LLVM"
    continue
  fi
  serve "$dir/m.gguf" "$dir/snapshot" $target
  check "serve on $target: status $status" test $status = 0 -a ! -s "$dir/err"
  mv "$dir/out" "$dir/$target"
  check "three texts on $target" test "$(grep -a -c '^[012]: ' "$dir/$target")" = 3
  check "a snapshot by $target" test -s "$dir/snapshot"
  check "the branch is another text on $target" \
    test "$(sed -n 's/^0: //p' "$dir/$target")" != "$(sed -n 's/^1: //p' "$dir/$target")"
  same "the text of $target" "$dir/ref" "$dir/$target"
done

complains() { # PATTERN ARGUMENT...: status 1 and that line
  pattern=$1
  shift
  serve "$@"
  check "status $status, wanted 1 and '$pattern'" \
    test $status = 1 -a "$(grep -c -e "^serve: .*$pattern" "$dir/err")" = 1
}
complains 'No such file' "$dir/none.gguf" "$dir/snapshot" ref
complains 'cannot be written' "$dir/m.gguf" "$dir/none/snapshot" ref
if [ -w /dev/full ]; then
  complains 'No space left\|incomplete' "$dir/m.gguf" /dev/full ref
else
  skip "no /dev/full"
fi

serve "$dir/m.gguf"
check "usage" test $status = 2 -a "$(grep -c '^usage: ' "$dir/err")" = 1

# The line of README.md compiles it against the build tree.
if "$NM" "$top_builddir/.libs/libpawlcore.a" 2>/dev/null | grep -q '__asan_\|__ubsan_\|__tsan_'; then
  skip "README.md's line: the library is built with sanitizers"
  finish
fi
command=$(sed -n 's/^cc -std=c11 /$CC -std=c11 /p' "$top_srcdir/README.md")
check "README.md has the line" test -n "$command"
(cd "$top_srcdir" && eval "$(printf '%s' "$command" | sed "s|build/|$top_builddir/|g; s|-o serve|-o $dir/serve|")") \
  >"$dir/out" 2>"$dir/err"
check "README.md's line compiles it" test $? = 0 -a ! -s "$dir/err"
"$dir/serve" "$dir/m.gguf" "$dir/snapshot" ref >"$dir/out" 2>"$dir/err"
same "what it says, so compiled" "$dir/ref" "$dir/out"
finish
