#!/usr/bin/env bash
# build.sh [DESTINATION]: builds the libraries of MPI-IO into a folder, for each MPI whose compiler is here.
set -euo pipefail
here=$(cd "$(dirname "$0")" && pwd)
destination=${1:-.}
mkdir -p "$destination"
flags=(-std=c11 -Wall -Wextra -Werror -pedantic -O2 -g1 -fPIC -fvisibility=hidden -I "$here/../../include")
for family in openmpi mpich; do
    if ! command -v "mpicc.$family" >/dev/null; then
        echo "build.sh: mpicc.$family is not installed: libjunctura-mpiio-$family.so is left out" >&2
        continue
    fi
    # Only the headers of MPI are needed: its library is that of the program.
    read -ra words <<<"$(mpicc.$family -show)"
    headers=()
    for word in "${words[@]}"; do
        case $word in -I*) headers+=(-isystem "${word#-I}") ;; esac
    done
    cc "${flags[@]}" "${headers[@]}" -shared -Wl,-z,defs -Wl,-z,now -Wl,-soname,"libjunctura-mpiio-$family.so" \
        "$here"/*.c "$here"/../common/*.c -o "$destination/libjunctura-mpiio-$family.so" -ldl -lpthread
done
