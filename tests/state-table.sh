# Every name in the tables of docs/state.md exists: what Pawl calls a thing in the header named beside
# it, and each test; every defect of the list has its row, and every equality a test for each family.
. "$top_srcdir/tests/source-files.sh"

page=$(cd "$top_srcdir" && pwd)/docs/state.md
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT
headers=$(source_files $library_folders tools | grep -v '\.c$')
tests=$(cd "$top_srcdir" && ls tests/test_*.c)
test -n "$headers" && test -n "$tests" || exit 99

# complaints PAGE: a line for each thing that is wrong, then "N names, N tests, N rows".
complaints() {
  (cd "$top_srcdir" && awk '
    function complain(text) { print "line " FNR ": " text }
    function note_words(line,    words, n, i) {
      while (match(line, /[A-Za-z_][A-Za-z0-9_]*\(?/)) {
        word = substr(line, RSTART, RLENGTH)
        line = substr(line, RSTART + RLENGTH)
        if (sub(/\($/, "", word))
          called[FILENAME, word] = 1
        known[FILENAME, word]++
      }
    }
    function in_a_header(name,    i) {
      for (i = 1; i <= n_paths; i++)
        if (name ~ /^pawl_/ ? (paths[i], name) in called : (paths[i], name) in known)
          return 1
      return 0
    }
    function is_there(path,    line, status) {
      status = (getline line < path)
      close(path)
      return status > 0
    }
    function see_test(name,    part, file) {
      n_tests++
      row_tests++
      if (name ~ /^tests\//) {
        if (!is_there(name))
          complain("no " name)
        return
      }
      split(name, part, ":")
      file = "tests/test_" part[1] ".c"
      if (!(part[1] in suites))
        complain("no suite " part[1])
      else if (!((file, part[2]) in starts) || known[file, part[2]] < 2)
        complain("no test " part[2] " in suite " part[1])
    }
    # Names in backticks: tests, files, or what one of those files declares.
    function see_cell(text,    name, rest, i) {
      n_paths = n_words = 0
      for (rest = text; match(rest, /`[^`]*`/); rest = substr(rest, RSTART + RLENGTH)) {
        name = substr(rest, RSTART + 1, RLENGTH - 2)
        if (name ~ /^tests\/|:/)
          see_test(name)
        else if (name ~ /\//)
          paths[++n_paths] = name
        else
          words[++n_words] = name
      }
      for (i = 1; i <= n_paths; i++)
        if (!is_there(paths[i]))
          complain("no " paths[i])
      for (i = 1; i <= n_words; i++) {
        n_names++
        if (sub(/^(struct|enum) /, "", words[i]) ? !((words[i]) in types) : !in_a_header(words[i]))
          complain("no header of the row declares " words[i])
      }
    }
    FILENAME == "tests/suites.def" {
      if (sub(/^PAWL_SUITE\(/, "") && sub(/\).*/, ""))
        suites[$0] = 1
      next
    }
    FILENAME ~ /^tests\/test_/ {
      note_words($0)
      if (match($0, /^START_TEST\([a-z0-9_]*\)/))
        starts[FILENAME, substr($0, 12, RLENGTH - 12)] = 1
      next
    }
    FILENAME != page {
      note_words($0)
      if (match($0, /^(struct|enum) pawl_[a-z0-9_]*( \{|;)/)) {
        split($0, part, " ")
        sub(/;.*/, "", part[2])
        types[part[2]] = 1
      }
      next
    }
    /^## / {
      in_equalities = /^## Equalities/
      in_defects = /^## Defects/
    }
    /^\|/ && !/^\|---/ && !/shown by \|$/ {
      n_rows++
      row_tests = 0
      n_cells = split($0, cell, "|")
      if (in_equalities) {
        for (column = 3; column < n_cells; column++) {
          row_tests = 0
          see_cell(cell[column])
          if (!row_tests && cell[column] !~ /^ —/)
            complain("neither a test nor a dash in column " column - 1 ":" cell[2])
        }
        n_equalities++
        next
      }
      see_cell(cell[3])
      row_tests = 0
      see_cell(cell[4])
      if (!row_tests && cell[3] !~ /^ —/)
        complain("neither a test nor a dash:" cell[2])
      if (in_defects) {
        split(cell[2], part, " ")
        defects[part[1]]++
      }
    }
    END {
      for (i = 1; i <= 48; i++) {
        id = i <= 32 ? i : substr("abcdefghijklmnop", i - 32, 1)
        if (defects[id] != 1)
          print "defect " id " has " defects[id] + 0 " rows"
      }
      if (n_equalities < 9)
        print n_equalities + 0 " rows of equalities"
      print n_names + 0 " names, " n_tests + 0 " tests, " n_rows + 0 " rows"
    }' page="$1" tests/suites.def $tests $headers "$1")
}

complaints "$page" >"$dir/found"
cat "$dir/found"
failed=0
test "$(wc -l <"$dir/found")" = 1 || failed=1

# damaged WHAT SED-SCRIPT: a page that is wrong in one place gets one complaint.
damaged() {
  sed "$2" "$page" >"$dir/page"
  complaints "$dir/page" >"$dir/found"
  if [ "$(wc -l <"$dir/found")" != 2 ]; then
    echo "FAILED: $1"
    cat "$dir/found"
    failed=1
  fi
}

if [ $failed = 0 ]; then
  damaged "a function that is in another header" 's|`pawl_symenv_clear`|`pawl_weights_id`|'
  damaged "a struct that is not there" 's|`struct pawl_symenv`|`struct pawl_sym_env`|'
  damaged "a header that is not there" 's|^\(. `LatentSlot`.*\)runtime/kv_cache.h|\1runtime/none.h|'
  damaged "a suite that is not there" 's|`symenv:write_once`|`symbols:write_once`|'
  damaged "a test that is not there" 's|`symenv:write_once`|`symenv:write_twice`|'
  damaged "a row without a test" 's|`block_pool:splices`||'
  damaged "a family without a test" 's/^\(| batched row = alone |[^|]*|\)[^|]*/\1 /'
  damaged "a defect without a row" '/^| 17 /d'
fi
exit $failed
