# Includes go one way: ir <- passes <- codegen <- runtime <- models <- plugins, tools.
. "$top_srcdir/tests/source-files.sh"

files=$(source_files include $library_folders tools)
test -n "$files" || exit 1
cd "$top_srcdir" && grep -Hn '^[[:space:]]*#[[:space:]]*include[[:space:]]*"' $files |
  sed 's/^\([^:]*\):\([0-9]*\):[^"]*"\([^"]*\)".*/\1 \2 \3/' |
  awk '
    BEGIN {
      n = split("pawl ir passes codegen runtime models", order, " ")
      for (i = 1; i <= n; i++)
        rank[order[i]] = i
      rank["plugins"] = rank["tools"] = n + 1
    }
    function complain(text) { print $1 ":" $2 ": " text " \"" $3 "\""; bad = 1 }
    {
      split($1, from, "/")
      split($3, to, "/")
      folder = from[1] == "include" ? "pawl" : from[1]
      n_includes++
      if (!(to[1] in rank))
        complain("includes no file of a known folder:")
      else if (rank[to[1]] > rank[folder] || (rank[to[1]] == rank[folder] && to[1] != folder))
        complain(folder " may not include")
      else if ($3 ~ /^codegen\/llvm\// && $1 !~ /^(codegen\/llvm\/|plugins\/cpu_compiler)/)
        complain("only the compiler module may include")
    }
    END { print n_includes " includes"; exit bad || n_includes == 0 }'
