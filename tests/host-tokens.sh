# Sourced by tests of hosts: tokens that a host decodes from a model file beside those of the tool.

# ids FILE: the array that stands behind "tokens" or is all of the file, as words.
ids() {
  tr -d '\n' <"$1" | sed 's/.*"tokens": *//; s/^[^[]*\[\([^]]*\)\].*/\1/' | tr -s ', ' ' '
}

# tokens_as_run MODEL TARGET TEXT N: the host's three ways to continue a text give what `pawl run` gives.
tokens_as_run() {
  "$pawl" run "$1" --target "$2" --raw -p "$3" -n "$4" --ignore-end --stats-json "$dir/run.json" >/dev/null &&
    printf %s "$3" | "$pawl" tokenize "$1" >"$dir/prompt.json" || return 1
  test "$(ids "$dir/run.json" | wc -w)" = "$4" || return 1
  for way in decoder guesses scheduler; do
    echo $(ids "$dir/run.json")
  done >"$dir/run.ids"
  # shellcheck disable=SC2046
  "$top_builddir/tests/host-gguf" "$top_builddir/plugins/.libs/pawl_plugin.so" "$2" "$1" "$4" \
    $(ids "$dir/prompt.json") >"$dir/host.ids" && cmp "$dir/run.ids" "$dir/host.ids"
}
