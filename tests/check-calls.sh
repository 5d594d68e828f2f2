# Only ir/debug.c reads the environment, and library code never prints, exits or aborts.
. "$top_srcdir/tests/source-files.sh"

failed=0
n=0

# refuse FILE WHAT PATTERN
refuse() {
  without_comments "$1" | grep -E "(^|[^A-Za-z0-9_])$3" >"$calls" || return 0
  failed=1
  sed "s|^|$1: $2: |" "$calls"
}

calls=$(mktemp) || exit 99
trap 'rm -f "$calls"' EXIT
for file in $(source_files $library_folders tools | grep '\.c$'); do
  n=$((n + 1))
  test "$file" = ir/debug.c ||
    refuse "$file" "reads the environment" '(secure_)?getenv[[:space:]]*\('
  case $file in tools/*) continue ;; esac
  refuse "$file" "ends the process" '(abort|exit|_exit|_Exit|quick_exit)[[:space:]]*\('
  refuse "$file" "prints" \
    '(v?printf|puts|putchar|perror)[[:space:]]*\(|(stdout|stderr)([^A-Za-z0-9_]|$)'
done
echo "$n files"
test $n -gt 0 && exit $failed
