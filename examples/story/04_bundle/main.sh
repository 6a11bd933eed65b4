#!/usr/bin/env bash
# A bundle: fields that belong together become visible together, or not at all.
set -euo pipefail

export JUNCTURA_POOL=${1:-unix:story-$$}
forecast=(--set class=od --set stream=oper --set date=2026-11-20 --set time=12 --set type=fc --set levtype=pl)

# Two producers know the bundle by its path; either may come first.
produce() {
    junctura put - --bundle run/step=6 --members 2 --schema mars "${forecast[@]}" \
        --set step=6 --set levelist=500 --set param="$1" --quiet 2>/dev/null
}

echo "temperature" | produce t
echo "one of two is staged, $(junctura ls --count step=6) to be seen"

echo "wind" | produce u
echo "two of two, $(junctura ls --count step=6) to be seen"
junctura pool withdraw-all '*' >/dev/null
