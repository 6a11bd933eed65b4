#!/bin/sh
# For cargo, as RUSTC_WRAPPER: compiles test programs and examples of some crates without optimization. They run for less
# time than it takes to optimize them; cargo has no profile for them apart from the library of their crate.
compiler=$1
shift
for word; do
    case $word in
        --test | crates/*/examples/*) runs_once=yes ;;
    esac
done
case ${runs_once:+$CARGO_PKG_NAME} in
    junctura-board | junctura-grib | junctura-memory | junctura-model | junctura-pool | junctura-wire)
        exec "$compiler" "$@" -C opt-level=0
        ;;
esac
exec "$compiler" "$@"
