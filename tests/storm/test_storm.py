"""kill -9 of producers, consumers and members of groups, at random: nothing is lost, and everything returns."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_shell import Shell
from storm_run import CASES, Served, Storm, check

SEED = 20261121
# Twice this for each case.
SECONDS = 3
# A second storm of the same seed finds room in what the first has left; heaps are not laid out alike twice. Forty in a
# row came to rest within a MiB of the first.
GROWTH_KIB_MAX = 4096


@pytest.mark.parametrize("case", CASES)
def test_whoever_is_killed_nothing_is_lost_and_everything_returns(
    bare: Shell, tmp_path: Path, case: str, tell: Callable[[str], None]
) -> None:
    served = Served(bare, case)
    with served.watched() as watch:
        states = [watch.state()]
        for number in (1, 2):
            directory = tmp_path / str(number)
            figures = served.storm(Storm(case, SEED, SECONDS), directory)
            verdict = check(figures, directory)
            states.append(watch.state())
            tell(
                f"{case} {number}: {figures['killed']} killed, {verdict.acknowledged} acknowledged, "
                f"{verdict.under_way} under way when a producer died, {verdict.deliveries} deliveries, "
                f"{figures['redelivered']} of them again; "
                f"{states[-1].spilled} spilled so far, private memory of the server {states[-1].private_kib} KiB"
            )
    before, first, second = states
    assert first.exact() == second.exact() == before.exact()
    assert before.memory == dict.fromkeys(before.memory, 0)
    assert before.spill == dict.fromkeys(before.spill, 0)
    assert (case == "spilled") == (second.spilled > first.spilled > 0)
    assert second.private_kib <= first.private_kib + GROWTH_KIB_MAX
