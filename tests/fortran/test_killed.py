"""A rank that is killed inside an exchange: the others get an error that names it."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

Compile = Callable[..., Path]


def test_the_others_get_an_error_that_names_a_killed_rank(
    compiled: Compile, pool: str, environment: dict[str, str]
) -> None:
    program = compiled("rank")

    def start(rank: int) -> subprocess.Popen[str]:
        words = [str(program), pool, str(rank)]
        return subprocess.Popen(words, env=environment, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def next_of(rank: subprocess.Popen[str]) -> str:
        assert rank.stdout is not None
        return rank.stdout.readline().strip()

    first, killed, last = ranks = [start(rank) for rank in range(3)]
    assert [[next_of(rank), next_of(rank)] for rank in ranks] == [["put", "got"]] * 3
    # It waits for a line before it puts anything of the second step.
    killed.kill()
    killed.communicate()
    # The last rank has put when the first one begins, which therefore lacks the killed one alone.
    assert last.stdin is not None
    last.stdin.write("go on\n")
    last.stdin.flush()
    assert next_of(last) == "put"
    said = first.communicate("go on\n", timeout=300)[0].splitlines()
    assert said[:2] == ["put", "Timeout"] and "rank 1 did not offer" in said[2], said
    said = last.communicate(timeout=300)[0].splitlines()
    assert said[0] == "Timeout" and "did not offer" in said[1], said
    assert [first.returncode, last.returncode] == [0, 0]
