#!/usr/bin/env bash
# The gate's runs with sanitizers: the tests of unsafe code, and each fuzz target for five seconds.
set -uo pipefail
cd "$(dirname "$0")/.." || exit 2
status=0
tools/asan.sh || status=1
fuzz/run.sh "${1:-5}" || status=1
exit $status
