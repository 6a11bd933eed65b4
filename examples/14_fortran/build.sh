#!/bin/sh
# build.sh SOURCES FOLDER: compiles both models with gfortran, or the compiler in FC. pkg-config finds the library, which
# `make install-c` installs.
set -eu
cd "$2"
compiler=${FC:-gfortran}
"$compiler" -O2 -c "$(pkg-config --variable=fortran junctura)" -o module.o
for model in ocean atmosphere; do
    # shellcheck disable=SC2046
    "$compiler" -O2 "$1/$model.f90" module.o -o "$model" $(pkg-config --libs junctura)
done
