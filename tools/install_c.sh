#!/usr/bin/env bash
# install_c.sh PREFIX BUILT: copies the C library in BUILT, the headers of C and C++, the Fortran module, and what
# pkg-config and CMake read.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: install_c.sh PREFIX BUILT" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd) built=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)

fill() { sed -e "s|@PREFIX@|$prefix|g" -e "s|@VERSION@|$version|g" "$1"; }

mkdir -p "$prefix"/include "$prefix"/lib/pkgconfig "$prefix"/lib/cmake/Junctura "$prefix"/share/junctura
install -m 755 "$built/libjunctura_c.so" "$prefix/lib/libjunctura.so.0"
ln -sf libjunctura.so.0 "$prefix/lib/libjunctura.so"
install -m 644 c/include/junctura.h c/include/junctura.hpp "$prefix/include"
install -m 644 fortran/junctura.f90 "$prefix/share/junctura/junctura.f90"
fill c/install/junctura.pc.in >"$prefix/lib/pkgconfig/junctura.pc"
for file in JuncturaConfig JuncturaConfigVersion; do
    fill "c/install/$file.cmake.in" >"$prefix/lib/cmake/Junctura/$file.cmake"
done
