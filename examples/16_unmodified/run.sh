#!/bin/sh
# run.sh FOLDER [RANKS]: runs the model twice in FOLDER, once with its history in a pool and a reader beside it, once with
# a file that is read afterwards, and compares the pictures.
set -eu
here=$(cd "$(dirname "$0")" && pwd) ranks=${2:-4}
mkdir -p "$1"
cd "$1"
export JUNCTURA_POOL=unix:unmodified
# shellcheck disable=SC2046
mpif90.openmpi -O2 $(nf-config --fflags) "$here/model.f90" -o model $(nf-config --flibs)
rm -f announced
mkfifo announced
junctura pool serve --announce >announced &
server=$!
trap 'kill $server 2>/dev/null || true' EXIT
read -r JUNCTURA_POOL <announced

python3 "$here/pictures.py" pool pool &
reader=$!
junctura with --netcdf 'wrfout*=pool' -- mpirun.openmpi --oversubscribe -n "$ranks" ./model 40
wait $reader
[ ! -e wrfout_d01.nc ]

mpirun.openmpi --oversubscribe -n "$ranks" ./model 40
python3 "$here/pictures.py" wrfout_d01.nc file
diff -r pool file
echo "the pictures are equal"
