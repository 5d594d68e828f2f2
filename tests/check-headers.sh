# Every header compiles alone.
. "$top_srcdir/tests/source-files.sh"

failed=0
n=0
for header in $(source_files include $library_folders tools tests | grep '\.h$'); do
  case $header in
  codegen/llvm/*) echo "$PAWL_CPPFLAGS" | grep -q llvm || continue ;;
  esac
  n=$((n + 1))
  $CC $PAWL_CPPFLAGS -I"$top_srcdir/include" -include build-aux/config.h -std=c11 -Wall -Wextra -Werror \
    -fsyntax-only -x c "$top_srcdir/$header" || { echo "$header: does not compile alone"; failed=1; }
done
echo "$n headers"
test $n -gt 0 && exit $failed
