#!/usr/bin/env bash
# Programs of C with the C library, both under AddressSanitizer; CALLS random calls, a million by default.
set -euo pipefail
cd "$(dirname "$0")/.."
built="${CARGO_TARGET_DIR:-$PWD/target}"
(
    # shellcheck source=tools/sanitize.sh
    source tools/sanitize.sh
    # No coverage: its symbols are those of libFuzzer. So this has a folder of its own.
    RUSTFLAGS="-Zsanitizer=address --cfg address_sanitizer" CARGO_TARGET_DIR="$built/sanitize-c" \
        cargo build --quiet --profile sanitize --target "$host" -p junctura-c
)
host=$(rustc -vV | sed -n 's/^host: //p')
library="$built/sanitize-c/$host/sanitize/libjunctura_c.so"
echo "asan: programs of C with $library"
JUNCTURA_C_CHECKED=$library JUNCTURA_C_CALLS=${CALLS:-1000000} PYTHONPATH=$PWD/python \
    .venv/bin/python -m pytest -q --timeout 1800 tests/c/test_programs.py -k 'succeeds or random_calls_return or killed'
