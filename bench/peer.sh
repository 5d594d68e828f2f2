#!/bin/sh
# peer.sh [TOOL...]: builds tools of llama.cpp, as vendored in the source archive of llama-cpp-python,
# into the cache folder (about five minutes on two cores) and prints the folder where they are: those that
# measurements need, and those that are named.
set -eu
. "$(dirname "$0")/../tools/setup-lib.sh"

version=0.3.36
peer=$cache/llama-cpp-python-$version
tools="llama-bench llama-batched-bench llama-perplexity llama-quantize $*"

missing=
for tool in $tools; do
  test -x "$peer/build/bin/$tool" || missing=yes
done
if [ -n "$missing" ]; then
  install_packages cmake g++ make python3 $(pip_package)
  mkdir -p "$peer"
  if [ ! -d "$peer/source" ]; then
    say "fetching the source of llama-cpp-python $version"
    logged "$peer/fetch.log" "pip download" python3 -m pip --disable-pip-version-check download \
      --no-deps --no-binary llama-cpp-python -d "$peer" "llama-cpp-python==$version"
    mkdir -p "$peer/source.part"
    tar -xzf "$peer/llama_cpp_python-$version.tar.gz" -C "$peer/source.part" --strip-components=1
    mv "$peer/source.part" "$peer/source"
  fi
  say "building llama.cpp in $peer/build"
  logged "$peer/configure.log" "cmake" cmake -S "$peer/source/vendor/llama.cpp" -B "$peer/build" \
    -DCMAKE_BUILD_TYPE=Release -DGGML_NATIVE=ON -DLLAMA_CURL=OFF -DLLAMA_OPENSSL=OFF \
    -DLLAMA_BUILD_SERVER=OFF -DLLAMA_BUILD_UI=OFF
  logged "$peer/make.log" "building llama.cpp" nice -n 10 \
    cmake --build "$peer/build" --target $tools -j"$jobs"
fi
echo "$peer/build/bin"
