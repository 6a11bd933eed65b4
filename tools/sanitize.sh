# shellcheck shell=bash
# For `source`: builds with AddressSanitizer. Stable Rust carries its runtime; RUSTC_BOOTSTRAP only opens the flags.
host=$(rustc -vV | sed -n 's/^host: //p')
export host
export RUSTC_BOOTSTRAP=1
RUSTFLAGS="-Zsanitizer=address --cfg address_sanitizer"
export RUSTFLAGS
CARGO_TARGET_DIR="${CARGO_TARGET_DIR:-$PWD/target}/sanitize"
export CARGO_TARGET_DIR
