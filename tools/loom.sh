#!/usr/bin/env bash
# Every interleaving of two threads at a ring's words, as loom makes them.
set -euo pipefail
cd "$(dirname "$0")/.."
export RUSTFLAGS="--cfg loom"
export CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-target}/loom"
echo "loom: junctura-transport"
cargo test --quiet -p junctura-transport --lib loom_tests "$@"
