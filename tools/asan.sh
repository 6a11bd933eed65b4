#!/usr/bin/env bash
# Tests of the crates that use `unsafe`, under AddressSanitizer. Stable Rust carries the sanitizer's runtime;
# RUSTC_BOOTSTRAP only opens the flag.
set -euo pipefail
cd "$(dirname "$0")/.."
host=$(rustc -vV | sed -n 's/^host: //p')
export RUSTC_BOOTSTRAP=1
export RUSTFLAGS="-Zsanitizer=address -Cdebuginfo=line-tables-only"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/asan"
echo "asan: junctura-memory junctura-copy junctura-transport"
cargo test --quiet --no-fail-fast --target "$host" -p junctura-memory -p junctura-copy -p junctura-transport --lib --tests "$@"
