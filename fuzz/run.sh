#!/usr/bin/env bash
# fuzz/run.sh SECONDS [TARGET...]: fuzzes each target for that long, with libFuzzer and AddressSanitizer.
# cargo-fuzz would take minutes to install; these are the flags that it gives. Stable Rust has all that is needed.
# Seeds are fuzz/corpus and the wire's golden frames, and are not written to. What is found grows in
# target/sanitize/corpus, failures in target/sanitize/failures; one is repeated by
# JUNCTURA_FUZZ_TARGET=TARGET target/sanitize/*/sanitize/junctura-libfuzzer FILE.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
seconds=${1:?usage: fuzz/run.sh SECONDS [TARGET...]}
shift
targets=("$@")
if [ ${#targets[@]} -eq 0 ]; then
    mapfile -t targets < <(sed -n 's/^    ("\(.*\)", targets::.*/\1/p' fuzz/src/lib.rs)
fi

out="${CARGO_TARGET_DIR:-$PWD/target}/sanitize"
# shellcheck source=tools/sanitize.sh
source tools/sanitize.sh
# The coverage that libFuzzer needs.
RUSTFLAGS+=" -Cpasses=sancov-module -Cllvm-args=-sanitizer-coverage-level=4"
RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-trace-compares -Cllvm-args=-sanitizer-coverage-inline-8bit-counters"
RUSTFLAGS+=" -Cllvm-args=-sanitizer-coverage-pc-table"
echo "fuzz: building ${targets[*]}"
cargo build --profile sanitize --manifest-path fuzz/libfuzzer/Cargo.toml --target "$host" || exit 1

seeds_of_wire() {
    python3 - docs/formats/wire-golden.txt "$1" <<'PYTHON'
import pathlib, sys
for line in pathlib.Path(sys.argv[1]).read_text().splitlines():
    if line and not line.startswith("#"):
        name, frame = line.split()
        pathlib.Path(sys.argv[2], name).write_bytes(bytes.fromhex(frame))
PYTHON
}

# fuzz TARGET: true when nothing failed.
fuzz() {
    local target=$1 seeds="fuzz/corpus/$1" log="$out/logs/$1" runs
    mkdir -p "$out/corpus/$target" "$out/failures/$target" "$out/logs"
    if [ "$target" = wire ]; then
        seeds="$out/seeds"
        mkdir -p "$seeds"
        seeds_of_wire "$seeds" || return 1
    fi
    local options=("-max_total_time=$seconds" -timeout=10 -rss_limit_mb=2048 -malloc_limit_mb=512 -max_len=16384
        "-artifact_prefix=$out/failures/$target/" -print_final_stats=1)
    if [ -e "fuzz/dict/$target" ]; then
        options+=("-dict=fuzz/dict/$target")
    fi
    if JUNCTURA_FUZZ_TARGET=$target "$out/$host/sanitize/junctura-libfuzzer" "${options[@]}" "$out/corpus/$target" "$seeds" >"$log" 2>&1; then
        runs=$(sed -n 's/^stat::number_of_executed_units: *//p' "$log")
        printf 'fuzz: %-12s no failure in %s runs, %s s\n' "$target" "$runs" "$seconds"
    else
        printf 'fuzz: %-12s FAILED\n' "$target"
        tail -n 60 "$log"
        return 1
    fi
}

# A target uses one core: as many at a time as there are, and each is asked how it ended.
# What runs in the background does not hear Ctrl-C.
trap 'trap - TERM; kill 0; exit 130' INT TERM
cores=$(nproc)
passed=0
failed=0
running=0
ended() {
    if wait -n; then passed=$((passed + 1)); else failed=$((failed + 1)); fi
    running=$((running - 1))
}
for target in "${targets[@]}"; do
    [ "$running" -lt "$cores" ] || ended
    fuzz "$target" &
    running=$((running + 1))
done
while [ "$running" -gt 0 ]; do ended; done
echo "fuzz: $passed passed, $failed failed"
[ "$failed" -eq 0 ]
