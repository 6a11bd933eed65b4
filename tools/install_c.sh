#!/usr/bin/env bash
# install_c.sh PREFIX BUILT [relocatable]: copies the C library in BUILT, the headers of C and C++, the Fortran module, and what
# pkg-config and CMake read; compiles the implementation of Catalyst. `relocatable`, for the wheel: the folder may be moved, and
# has no links; the library is stripped.
set -euo pipefail
[ $# -eq 2 ] || [ "${3:-}" = relocatable ] || { echo "usage: install_c.sh PREFIX BUILT [relocatable]" >&2; exit 2; }
mkdir -p "$1"
prefix=$(cd "$1" && pwd) built=$(cd "$2" && pwd)
cd "$(dirname "$0")/.."
version=$(sed -n 's/^version = "\(.*\)"/\1/p' Cargo.toml | head -n 1)
if [ $# -eq 3 ]; then
    # shellcheck disable=SC2016
    base='${pcfiledir}/../..' link=-l:libjunctura.so.0
else
    base=$prefix link=-ljunctura
fi

fill() { sed -e "s|@PREFIX@|$base|g" -e "s|@VERSION@|$version|g" -e "s|@LINK@|$link|g" "$1"; }

mkdir -p "$prefix"/include "$prefix"/lib/pkgconfig "$prefix"/lib/cmake/Junctura "$prefix"/share/junctura
install -m 755 "$built/libjunctura_c.so" "$prefix/lib/libjunctura.so.0"
if [ $# -eq 3 ]; then
    strip --strip-unneeded "$prefix/lib/libjunctura.so.0"
else
    ln -sf libjunctura.so.0 "$prefix/lib/libjunctura.so"
fi
tools/build_intercept.sh "$prefix/lib"
install -m 644 c/include/junctura.h c/include/junctura.hpp "$prefix/include"
install -m 644 fortran/junctura.f90 "$prefix/share/junctura/junctura.f90"
fill c/install/junctura.pc.in >"$prefix/lib/pkgconfig/junctura.pc"
for file in JuncturaConfig JuncturaConfigVersion; do
    fill "c/install/$file.cmake.in" >"$prefix/lib/cmake/Junctura/$file.cmake"
done
c/catalyst/build.sh "$prefix/lib" "$prefix/lib"
