#!/usr/bin/env bash
# What the rivals of the benchmarks need from the system; `make bench` calls it, no test does.
# What cannot be had is left out of the figures, so this never fails.
set -euo pipefail

say() { printf 'benches: %s\n' "$*"; }

as_root() {
    if [ "$(id -u)" -eq 0 ]; then "$@"; else sudo -n "$@"; fi
}

missing=()
command -v redis-server >/dev/null || missing+=(redis-server)
echo '#include <hiredis/hiredis.h>' | cc -E -x c - >/dev/null 2>&1 || missing+=(libhiredis-dev)
install() {
    as_root apt-get -qq update || return 1
    # No service is to be started: each run has a Redis of its own.
    as_root env DEBIAN_FRONTEND=noninteractive RUNLEVEL=1 apt-get -qq install -y --no-install-recommends "$@" >/dev/null
}

if [ "${#missing[@]}" -gt 0 ]; then
    say "apt-get install ${missing[*]}"
    install "${missing[@]}" || say "cannot be had here, Redis is left out: ${missing[*]}"
fi
