#!/bin/sh
# Installs OpenVINO GenAI into an environment of its own in the cache folder (about 500 MB) and
# prints the path of its Python.
set -eu
. "$(dirname "$0")/../tools/setup-lib.sh"

version=2026.4.1.0
folder=$cache/openvino-$version

if ! "$folder/bin/python" -c 'import openvino_genai' 2>/dev/null; then
  install_packages python3 python3-venv
  say "installing openvino-genai $version into $folder"
  mkdir -p "$cache"
  logged "$cache/openvino.log" "venv" python3 -m venv "$folder"
  logged "$cache/openvino.log" "pip install" "$folder/bin/pip" --disable-pip-version-check \
    install -q --no-cache-dir "openvino-genai==$version"
fi
echo "$folder/bin/python"
