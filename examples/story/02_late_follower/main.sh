#!/usr/bin/env bash
# A late follower: what was there before it came, and what comes after, are one stream without a gap.
set -euo pipefail

export JUNCTURA_POOL=${1:-unix:story-$$}
forecast=(--set class=od --set stream=oper --set date=2026-11-20 --set time=12 --set type=fc --set levtype=pl)

offer() {
    echo "temperature of step $1" |
        junctura put - --schema mars "${forecast[@]}" --set step="$1" --set levelist=500 --set param=t --quiet
}

offer 0
offer 6

exec 3< <(junctura get --follow 'param=t, step=0/to/240/by/6' --count 3 -o - --quiet)
for expected in there there comes; do
    if [ $expected = comes ]; then offer 12; fi
    read -r field <&3
    echo "$expected: $field"
done
junctura pool withdraw-all '*' >/dev/null
