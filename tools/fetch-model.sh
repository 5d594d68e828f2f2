#!/bin/sh
# fetch-model.sh [smollm2|gemma]: fetches SmolLM2-135M-Instruct (98 MB, the default) or Gemma 3 270M
# (253 MB) into the cache folder, unless it is there, and prints the path of the file.
set -eu
. "$(dirname "$0")/setup-lib.sh"

case $#:${1:-smollm2} in
0:* | 1:smollm2)
  try_fetch_model || die "no model"
  echo "$model"
  ;;
1:gemma)
  try_fetch_gemma || die "no Gemma"
  echo "$gemma"
  ;;
1:--help) sed -n '2,3s/^# //p' "$0" ;;
*)
  echo "usage: fetch-model.sh [smollm2|gemma]" >&2
  exit 2
  ;;
esac
