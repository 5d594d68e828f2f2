#!/bin/sh
# Every kernel of the tiny families and of blocks of the real models, compiled by NVRTC for every
# architecture, within tests/cuda/resources.txt.  PAWL_TEST_BLESS=1 raises its bounds to what they
# take.
# NVRTC is that of a toolkit, else what tools/check.sh has installed in $PAWL_TEST_NVRTC.
for found in "$PAWL_TEST_NVRTC"/nvidia/*/lib/libnvrtc.so.1?; do
  test ! -f "$found" || : "${PAWL_NVRTC:=$found}"
done
export PAWL_NVRTC
table=$top_srcdir/tests/cuda/resources.txt
if ! "$top_builddir/tests/check-cuda" --nvrtc; then
  echo "skipped: kernels for NVIDIA GPUs were not compiled: there is no NVRTC"
  exit 77
fi
exec "$top_builddir/tests/check-cuda" ${PAWL_TEST_BLESS:+--bless} "$table"
