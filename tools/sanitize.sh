# shellcheck shell=bash
# For `source`: builds with AddressSanitizer, and with the coverage that libFuzzer needs. Fuzz targets and the tests of unsafe code have
# the same flags, profile and folder, so that both share the crates of others. Stable Rust carries the runtimes; RUSTC_BOOTSTRAP only
# opens the flags.
host=$(rustc -vV | sed -n 's/^host: //p')
export host
export RUSTC_BOOTSTRAP=1
RUSTFLAGS="-Zsanitizer=address -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-pc-table"
RUSTFLAGS+=" --cfg address_sanitizer"
export RUSTFLAGS
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/sanitize"
export CARGO_TARGET_DIR
