#!/usr/bin/env bash
# What the gate runs with sanitizers: the tests of unsafe code, and each fuzz target for ten seconds.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
status=0
tools/asan.sh || status=1
fuzz/run.sh "${1:-10}" || status=1
exit $status
