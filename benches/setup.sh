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

# Beside the start of tasks of workflows.
if ! parallel --version 2>/dev/null | grep -q GNU; then
    say "apt-get install parallel"
    install parallel || say "cannot be had here, GNU parallel is left out"
fi

# MPI and ScaLAPACK, for arrays that change their layout.
if ! command -v mpicxx >/dev/null || ! compgen -G '/usr/lib/*/libscalapack-openmpi.so' >/dev/null; then
    say "apt-get install libopenmpi-dev openmpi-bin libscalapack-openmpi-dev"
    install libopenmpi-dev openmpi-bin libscalapack-openmpi-dev g++ || say "cannot be had here, MPI is left out"
fi

# OASIS3-MCT, for coupled exchanges; YAC is among the packages of development.
if [ ! -d /usr/include/psmile.MPI1 ]; then
    say "apt-get install liboasis3-dev gfortran"
    install liboasis3-dev gfortran || say "cannot be had here, OASIS3-MCT is left out"
fi

# The field store of a weather centre, in an environment of its own, since it brings libraries along.
fdb="${CARGO_TARGET_DIR:-target}/rivals/fdb"
if ! "$fdb/bin/python" -c 'import pyfdb, eccodes' 2>/dev/null; then
    say "pip install pyfdb"
    { python3 -m venv "$fdb" && "$fdb/bin/pip" install --quiet pyfdb==5.25.0.33 fdb5lib==5.25.0.33 \
        eccodes==2.50.0 eccodeslib==2.50.0.33 numpy==2.4.6; } || say "cannot be had here, pyfdb is left out"
fi
