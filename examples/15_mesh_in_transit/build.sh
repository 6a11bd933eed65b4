#!/usr/bin/env bash
# build.sh DESTINATION CATALYST: compiles the solver, with MPI where `mpicc` is there (or MPICC names one), and the implementation
# `python`. CATALYST is the folder of an installed Catalyst 2, with include/catalyst-2.0 or include, and lib.
set -euo pipefail
[ $# -eq 2 ] || { echo "usage: build.sh DESTINATION CATALYST" >&2; exit 2; }
mkdir -p "$1/catalyst"
destination=$(cd "$1" && pwd) catalyst=$(cd "$2" && pwd)
cd "$(dirname "$0")"
strict="-std=c11 -Wall -Wextra -Werror -O2"
headers="-I $catalyst/include -I $catalyst/include/catalyst-2.0"
links="$catalyst/lib/libcatalyst.so.3 -Wl,-rpath,$catalyst/lib -lm"
# shellcheck disable=SC2086
${CC:-cc} $strict $headers wave.c wave_ranks.c -o "$destination/wave" $links
mpicc=${MPICC:-mpicc}
if command -v "$mpicc" >/dev/null; then
    # shellcheck disable=SC2086
    "$mpicc" $strict -DWAVE_MPI $headers wave.c wave_ranks.c -o "$destination/wave_mpi" $links
fi
own=../../c/catalyst
# shellcheck disable=SC2046
${CC:-cc} -std=c11 -Wall -Wextra -O2 -fPIC -shared -fvisibility=hidden -I $own $(python3-config --includes) \
    python_implementation.c $own/{conduit_nodes,gpu_memory,mesh_hash,mesh_object,mpi_ranks,text_buffer}.c \
    -o "$destination/catalyst/libcatalyst-python.so" $(python3-config --ldflags --embed) \
    -Wl,-rpath,"$(python3 -c 'import sysconfig; print(sysconfig.get_config_var("LIBDIR"))')"
