# Each shared object exports exactly its entry points and needs only its own libraries.

failed=0
n=0

# object FILE "EXPORT..." NEEDED-PATTERN
object() {
  n=$((n + 1))
  exports=$($NM -D --defined-only "$1" | awk '$2 != "A" { sub(/@.*/, "", $3); print $3 }' |
    LC_ALL=C sort | tr '\n' ' ')
  test "${exports% }" = "$2" ||
    { echo "$1: exports ${exports:-nothing}, not $2"; failed=1; }
  needed=$($READELF -d "$1" | sed -n 's/.*(NEEDED).*\[\(.*\)\]/\1/p' |
    grep -Ev "^(lib(c|m|pthread|dl|rt|gcc_s|asan|ubsan|lsan|tsan)\.so\.[0-9]+|ld-linux.*|linux-vdso.*)$" |
    grep -Ev "^($3)$")
  test -z "$needed" || { echo "$1: needs" $needed; failed=1; }
}

core='libcjson\.so\.[0-9]+|libpcre2-8\.so\.[0-9]+'
host='pawl_get_api pawl_negotiate pawl_version'
plugins=$top_builddir/plugins/.libs
object "$top_builddir/.libs/libpawl.so" "$host" "$core"
object "$plugins/pawl_plugin.so" 'pawl_get_api pawl_negotiate' "$core"
object "$plugins/libggml-pawl.so" 'ggml_backend_init ggml_backend_score' "$core"
for file in "$plugins"/target_*.so; do
  object "$file" pawl_target_query "$core"
done
if [ -f "$plugins/cpu_compiler.so" ]; then
  object "$plugins/cpu_compiler.so" pawl_cpu_compiler_query "$core|libLLVM.*"
fi
for file in "$plugins"/*.so; do
  case $(basename "$file") in
  pawl_plugin.so | libggml-pawl.so | target_*.so | cpu_compiler.so) ;;
  *)
    echo "$file: what may it export?"
    failed=1
    ;;
  esac
done
echo "$n shared objects"
test $n -ge 5 && exit $failed
