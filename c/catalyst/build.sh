#!/usr/bin/env bash
# build.sh DESTINATION LIBRARY: compiles DESTINATION/catalyst/libcatalyst-junctura.so, the implementation of the Catalyst 2 API.
# LIBRARY is the folder of libjunctura.so.0; the program looks for it there, and in the parent of its own folder.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: build.sh DESTINATION LIBRARY" >&2; exit 2; }
mkdir -p "$1/catalyst"
destination=$(cd "$1" && pwd) library=$(cd "$2" && pwd)
cd "$(dirname "$0")"
[ -e "$library/libjunctura.so.0" ] || { echo "build.sh: there is no $library/libjunctura.so.0: make install-c" >&2; exit 1; }
# shellcheck disable=SC2016
${CC:-cc} -std=c11 -Wall -Wextra -Werror -pedantic -O2 -fPIC -shared -fvisibility=hidden -I ../include -o \
    "$destination/catalyst/libcatalyst-junctura.so" ./*.c -L "$library" -l:libjunctura.so.0 -ldl \
    -Wl,--no-undefined -Wl,-rpath,'$ORIGIN/..' ${JUNCTURA_RPATH:+-Wl,-rpath,"$JUNCTURA_RPATH"}
