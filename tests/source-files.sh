# Sourced: the source files the checks look at, relative to top_srcdir, one per line.
library_folders="ir passes codegen runtime models plugins"

# source_files FOLDER...: the .c, .h and .def files under the folders that exist.
source_files() {
  for folder; do
    test -d "$top_srcdir/$folder" || continue
    (cd "$top_srcdir" && find "$folder" -name '*.[ch]' -o -name '*.def')
  done | LC_ALL=C sort
}

# without_comments FILE: the file with comments and the contents of string literals removed.
without_comments() {
  $CC -fpreprocessed -dD -E -P -w -x c "$top_srcdir/$1" |
    sed -e 's/"\(\\.\|[^"\\]\)*"/""/g'
}
