#!/usr/bin/env bash
# Hand-over: a consumer asks for a field by what it means, a producer offers it, in whichever order.
set -euo pipefail

# A pool of this user's, started by the first who asks; or where the address says.
export JUNCTURA_POOL=${1:-unix:story-$$}
forecast=(--set class=od --set stream=oper --set date=2026-11-20 --set time=12 --set type=fc --set levtype=pl)

exec 3< <(junctura get --wait 'param=t, levelist=500, step=6' -o - --quiet)
echo "asked for: param=t, levelist=500, step=6"

for step in 0 6; do
    printf 'temperature of step %s' $step |
        junctura put - --schema mars "${forecast[@]}" --set step=$step --set levelist=500 --set param=t --quiet
done

echo "got: $(cat <&3)"
junctura pool withdraw-all '*' >/dev/null
