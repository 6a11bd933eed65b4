#!/usr/bin/env bash
# Tests of the crates that use `unsafe`, under AddressSanitizer.
set -euo pipefail
cd "$(dirname "$0")/.."
# shellcheck source=tools/sanitize.sh
source tools/sanitize.sh
echo "asan: junctura-memory junctura-copy junctura-transport"
cargo test --profile sanitize --no-fail-fast --target "$host" -p junctura-memory -p junctura-copy -p junctura-transport \
    --lib --tests "$@" -- --quiet
