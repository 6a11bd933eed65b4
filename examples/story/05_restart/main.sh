#!/usr/bin/env bash
# A restart: what comes while a consumer is away is kept for it, under a name.
set -euo pipefail

export JUNCTURA_POOL=${1:-unix:story-$$}
forecast=(--set class=od --set stream=oper --set date=2026-11-20 --set time=12 --set type=fc --set levtype=pl)

offer() {
    echo "temperature of step $1" |
        junctura put - --schema mars "${forecast[@]}" --set step="$1" --set levelist=500 --set param=t --quiet
}

# A life of the consumer: a process of its own.
live() {
    junctura get --all --group archive --as archive -o - --quiet | sed "s/^/$1 life: /"
}

junctura pool require param=t --name archive --group >/dev/null
offer 0
live first
offer 6
offer 12
live second
junctura pool retract archive | sed 's/.*still owed \([0-9]*\).*/still owed: \1/'
junctura pool withdraw-all '*' >/dev/null
