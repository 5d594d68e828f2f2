# The tool's target cuda: what it says where there is no GPU, and what it says of a mock of one.
. "$top_srcdir/tests/cli-lib.sh"
# shellcheck disable=SC2086

tiny tiny.gguf f16
model=$dir/tiny.gguf
run="run $model --ignore-end -p ab -n 6 --temp 0"

PAWL_CUDA_DRIVER=$dir/none.so
export PAWL_CUDA_DRIVER
refused 1 '^pawl run: there is no CUDA driver: .*none\.so' $run --target cuda
refused 1 '^pawl eval: there is no CUDA driver: ' eval "$model" --tokens 1,2 --logits "$dir/logits" --target cuda
refused 1 '^pawl bench: there is no CUDA driver: ' bench "$model" --target cuda
refused 1 '^pawl plan: there is no CUDA driver: .*; cuda:sm_90, for a GPU elsewhere, needs NVRTC only$' \
  plan "$model" --target cuda

succeeds "cpu" $run --target cpu
mv "$dir/out" "$dir/cpu"
tool $run --target auto
check "auto without a GPU: status $status" test $status = 0
check "auto without a GPU says why" \
  grep -qx 'pawl run: target cpu, since there is no CUDA driver: .*' "$dir/err"
check "auto without a GPU says no more" test "$(wc -l <"$dir/err")" = 1
same "auto without a GPU" "$dir/cpu" "$dir/out"

printf 'not a library' >"$dir/none.so"
refused 1 '^pawl run: there is no CUDA driver: ' $run --target cuda
cp "$top_builddir/tests/.libs/mock_nvrtc.so" "$dir/none.so"
refused 1 '^pawl run: .*/none.so is no CUDA driver: it has no cuDriverGetVersion$' $run --target cuda
PAWL_CUDA_DRIVER=$dir/pipe
mkfifo "$dir/pipe"
refused 1 '^pawl run: there is no CUDA driver: .*/pipe: no regular file$' $run --target cuda
head -c 4096 "$top_builddir/tests/.libs/mock_cuda.so" >"$dir/half.so"
PAWL_CUDA_DRIVER=$dir/half.so
refused 1 '^pawl run: there is no CUDA driver: .*/half.so: .* the file of 4096 bytes$' $run --target cuda

PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
PAWL_NVRTC=$top_builddir/tests/.libs/mock_nvrtc.so
export PAWL_NVRTC
succeeds "mock" $run --target cuda
same "the mock's tokens are those of the cpu" "$dir/cpu" "$dir/out"
succeeds "a plan on the mock" plan "$model" --target cuda
refused 1 'no/such.gguf: .*No such file or directory$' plan "$dir/no/such.gguf" --target cuda
refused 1 '^pawl bench: target cuda does not time its steps$' \
  bench "$model" --target cuda -p 0 -n 1 -r 1 --steps
tool $run --target cuda -v
check "-v counts kernels" grep -q '^pawl run: kernels: [0-9]* compiled, [0-9]* read' "$dir/err"
tool $run --target cuda --stats
check "--stats counts kernels" grep -q '; kernels: [0-9]* compiled, [0-9]* read' "$dir/err"
tool $run --target ref --stats
check "ref has no kernels to count" test $status = 0 -a -z "$(grep 'kernels:' "$dir/err")"
tool $run --target auto
check "auto with a GPU says so" grep -qx 'pawl run: target cuda' "$dir/err"
same "auto with a GPU" "$dir/cpu" "$dir/out"

# Ahead of time: for an architecture, with no driver at all.
PAWL_CUDA_DRIVER=$dir/none.so
succeeds "ahead of time" plan "$model" --target cuda:sm_90 --code "$dir/code"
check "launches by layer" grep -qx 'launches [0-9]*, 6 a layer' "$dir/out"
check "its architecture" grep -q '^target   cuda, sm_90, code of ' "$dir/out"
check "sources, code and table" test "$(ls "$dir/code" | tr '\n' ' ')" = \
  "llama-0.cu llama-0.sm_90.cubin llama-1.cu llama-1.sm_90.cubin llama.sm_90.txt "
check "a line a kernel" test "$(grep -c '^step' "$dir/code/llama.sm_90.txt")" = \
  "$(cat "$dir/code/"*.cu | grep -c '^PAWL_KERNEL(step')"
newline='
'
for word in cuda: cuda:90 cuda:sm_ cuda:sm_9 cuda:sm_090 cuda:sm_9000 "cuda:sm_90 " \
  "cuda:sm_90$newline" cuda:sm_90:x cuda:sm_90b cuda:sm_90aa; do
  refused 2 "'cuda:.*' is none of" plan "$model" --target "$word"
done
succeeds "an architecture with a letter" plan "$model" --target cuda:sm_90a
check "resources that are not told" grep -q '^step.* - .* - .* - .* - .* -  ' "$dir/code/llama.sm_90.txt"
check "no resource of -1" test -z "$(grep -e ' -1' "$dir/code/llama.sm_90.txt")"
tool plan "$model" --target cuda:sm_999 --code "$dir/ptx"
check "an unknown architecture: status $status" test $status = 0
check "an unknown architecture is said to be" test "$(cat "$dir/err")" = \
  "pawl plan: NVRTC 13.0 does not know sm_999: PTX for sm_121, resources unknown"
check "its code is PTX" test "$(ls "$dir/ptx" | tr '\n' ' ')" = \
  "llama-0.cu llama-0.sm_999.ptx llama-1.cu llama-1.sm_999.ptx llama.sm_999.txt "
rm "$dir/code/llama-1.sm_90.cubin"
mkfifo "$dir/code/llama-1.sm_90.cubin"
refused 1 'cannot dump to .*/code/llama-1.sm_90.cubin: a pipe$' plan "$model" --target cuda:sm_90 --code "$dir/code"
refused 2 '^pawl plan: --code: target ref ' plan "$model" --target ref --code "$dir/code"
refused 2 "'cuda:sm_90' is none of" $run --target cuda:sm_90

PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
PAWL_NVRTC=$dir/half.so
refused 1 'NVRTC: .*/half.so: .* the file of 4096 bytes$' $run --target cuda
PAWL_NVRTC=$dir/pipe
refused 1 'PAWL_NVRTC=.*/pipe: neither NVRTC nor a folder' $run --target cuda
PAWL_NVRTC=$dir/none
refused 1 '^pawl run: PAWL_NVRTC=.*/none: neither NVRTC nor ' $run --target cuda
tool $run --target auto
check "auto without NVRTC: status $status" test $status = 0
check "auto without NVRTC says why" \
  grep -qx 'pawl run: target cpu, since PAWL_NVRTC=.*/none: neither NVRTC nor .*' "$dir/err"
check "auto without NVRTC says no more" test "$(wc -l <"$dir/err")" = 1
same "auto without NVRTC" "$dir/cpu" "$dir/out"

finish
