#!/usr/bin/env bash
# Workers: the members of a group share what matches; each field goes to one of them.
set -euo pipefail

export JUNCTURA_POOL=${1:-unix:story-$$}
forecast=(--set class=od --set stream=oper --set date=2026-11-20 --set time=12 --set type=fc --set levtype=pl)

# From now on what matches is kept for the group, though nobody is there yet.
junctura pool require param=t --name workers --group >/dev/null
for step in 0 6 12 18 24; do
    echo "$step" |
        junctura put - --schema mars "${forecast[@]}" --set step=$step --set levelist=500 --set param=t --quiet
done

# Each takes fields until the group is owed nothing any more.
exec 3< <(junctura get --all --group workers -o - --quiet)
exec 4< <(junctura get --all --group workers -o - --quiet)
{ cat <&3 && cat <&4; } | sort -n | uniq -c | while read -r times step; do
    echo "step $step: done $times time"
done
junctura pool retract workers >/dev/null
junctura pool withdraw-all '*' >/dev/null
