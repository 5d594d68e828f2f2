# SmolLM2 by target cuda with no GPU: the mock of a driver in tests/cuda.
. "$top_srcdir/tests/model-test.sh"

PAWL_CUDA_DRIVER=$top_builddir/tests/.libs/mock_cuda.so
PAWL_NVRTC=$top_builddir/tests/.libs/mock_nvrtc.so
export PAWL_CUDA_DRIVER PAWL_NVRTC
python_parts cuda
end
