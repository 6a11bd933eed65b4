#!/usr/bin/env bash
# build.sh DESTINATION [-DCATALYST_DOUBLE_...]: compiles the test double: DESTINATION/include/catalyst.h, DESTINATION/lib/libcatalyst.so.3.
set -euo pipefail
[ $# -ge 1 ] || { echo "usage: build.sh DESTINATION [-DCATALYST_DOUBLE_...]" >&2; exit 2; }
mkdir -p "$1/include" "$1/lib"
destination=$(cd "$1" && pwd)
cd "$(dirname "$0")"
install -m 644 catalyst.h "$destination/include"
${CC:-cc} -std=c11 -Wall -Wextra -Werror -pedantic -g -O1 -fPIC -shared -Wl,-soname,libcatalyst.so.3 "${@:2}" nodes.c loader.c \
    -o "$destination/lib/libcatalyst.so.3" -ldl
