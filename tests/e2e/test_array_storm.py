"""Readers of arrays while producers are killed, and arrays and single pieces are withdrawn.

No reader crashes, or gets values of another array.
"""

from __future__ import annotations

import itertools
import random
from collections.abc import Callable

import pytest
from e2e_shell import Process, Shell


@pytest.mark.parametrize("seed", [1, 2])
def test_readers_of_arrays_survive_what_others_do(seed: int, bare: Shell, program: Callable[..., Process]) -> None:
    bare.serve("--schema", "free", "--budget", "48MiB", "--orphan-timeout", "50ms")
    draw, numbers = random.Random(seed), itertools.count(100 * seed)
    consumers = [program("e2e_array_storm.py", "consumer", next(numbers), 150) for _ in range(2)]
    producers = [program("e2e_array_storm.py", "producer", next(numbers)) for _ in range(2)]
    remover = program("e2e_array_storm.py", "remover", next(numbers))
    while any(consumer.popen.poll() is None for consumer in consumers):
        at = draw.randrange(len(producers))
        for _ in range(draw.randrange(8)):
            assert producers[at].line().startswith("offered")
        if draw.random() < 0.2:
            producers[at].kill()
            producers[at] = program("e2e_array_storm.py", "producer", next(numbers))
        if draw.random() < 0.3:
            assert remover.ask("now").startswith("removed")
    for consumer in consumers:
        status, said, messages = consumer.end()
        assert (status, said) == (0, "took 150\n"), messages
