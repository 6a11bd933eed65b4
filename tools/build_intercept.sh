#!/usr/bin/env bash
# build_intercept.sh FOLDER [strict]: compiles the preload libraries that can be compiled here into FOLDER, beside the C library.
# `strict`, for tests: warnings are errors.
set -euo pipefail
[ $# -eq 1 ] || [ "${2:-}" = strict ] || { echo "usage: build_intercept.sh FOLDER [strict]" >&2; exit 2; }
mkdir -p "$1"
folder=$(cd "$1" && pwd)
cd "$(dirname "$0")/../c/intercept"
flags=(-std=c11 -O2 -g -Wall -Wextra -pedantic -fPIC -shared -fvisibility=hidden -I ../include)
[ $# -eq 1 ] || flags+=(-Werror)
# build NAME COMPILER SOURCES...: compiles under another name first, since a program may have the library loaded.
build() {
    local target=$folder/lib$1.so compiler=$2
    shift 2
    "$compiler" "${flags[@]}" "$@" common/*.c -o "$target.$$" -ldl -lpthread -lm -Wl,-soname,"${target##*/}"
    mv "$target.$$" "$target"
}
# Those of MPI-IO need the headers of each MPI.
if [ -x mpi_io/build.sh ]; then
    mpi_io/build.sh "$folder"
fi
build junctura-netcdf "${CC:-cc}" netcdf/*.c netcdf/map/*.c
