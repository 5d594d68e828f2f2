# Kernels for AArch64, run by an emulator: every step of a graph leaves the bytes that the reference
# leaves here.
compiler=$top_builddir/plugins/.libs/cpu_compiler.so
test -f "$compiler" || { echo "built without LLVM"; exit 77; }
for tool in qemu-aarch64 aarch64-linux-gnu-gcc aarch64-linux-gnu-objcopy; do
  command -v $tool >/dev/null || { echo "there is no $tool"; exit 77; }
done
dir=$(mktemp -d) || exit 99
trap 'rm -rf "$dir"' EXIT

echo 'int main(void) { return 0; }' >"$dir/try.c"
aarch64-linux-gnu-gcc -static -o "$dir/try" "$dir/try.c" 2>"$dir/why" && qemu-aarch64 "$dir/try" || {
  echo "no program for AArch64 can be made here: $(head -n 1 "$dir/why")"
  exit 77
}
"$top_builddir/tests/emit-aarch64" "$compiler" "$top_srcdir/tests/aarch64/model.pawl" "$dir" || exit 1
for object in "$dir"/k*.o; do
  aarch64-linux-gnu-objcopy --prefix-symbols="$(basename "$object" .o)_" "$object" || exit 1
done
aarch64-linux-gnu-gcc -std=c11 -O1 -static -I"$top_srcdir" -o "$dir/run" \
  "$top_srcdir/tests/aarch64/run_steps.c" "$dir/steps.c" "$top_srcdir/ir/fpenv.c" "$dir"/k*.o || exit 1
qemu-aarch64 "$dir/run" "$dir"
