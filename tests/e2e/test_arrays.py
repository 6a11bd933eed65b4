"""Arrays from M processes to N processes: what becomes of them when some die, and who waits for whom."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from e2e_shell import Process, Shell

RANK = Path(__file__).with_name("e2e_rank.py")
WEIGHED = Path(__file__).with_name("e2e_weighed.py")
Start = Callable[[str, int], Process]


@pytest.fixture
def start(shell: Shell) -> Iterator[Start]:
    """Starts a rank, which is ready then."""
    started: list[Process] = []
    url = f"unix:{shell.folder}/junctura/test.sock"

    def start(side: str, rank: int) -> Process:
        process = Process([sys.executable, str(RANK), url, side, str(rank)], shell.environment, subprocess.PIPE)
        started.append(process)
        assert process.line() == "ready"
        return process

    yield start
    for process in started:
        process.popen.kill()
        process.end()


def ask(process: Process, line: str) -> str:
    process.write(f"{line}\n".encode())
    return process.line()


def test_a_producer_killed_before_its_piece_is_named(shell: Shell, start: Start) -> None:
    producers = [start("from", rank) for rank in range(4)]
    consumer = start("to", 1)
    for rank in [0, 1, 3]:
        assert ask(producers[rank], "offer 0") == "offered 0"
    producers[2].kill()
    said = ask(consumer, "look 0")
    assert said.startswith("NotFound of 4 pieces, rank 2 did not offer theirs"), said
    assert shell.text("ls", "--count") == "0\n"
    # One that takes its place completes the array.
    assert ask(start("from", 2), "offer 0") == "offered 0"
    assert ask(consumer, "take 0") == "took 0"


def test_producers_killed_after_their_pieces_are_not_missed(shell: Shell, start: Start) -> None:
    producers = [start("from", rank) for rank in range(4)]
    for rank, producer in enumerate(producers):
        assert ask(producer, "offer 0") == "offered 0"
        if rank > 0:
            producer.kill()
    producers[0].kill()
    assert shell.text("ls", "--count") == "1\n"
    for rank in range(3):
        assert ask(start("to", rank), "take 0") == "took 0"


def test_consumers_hold_a_step_before_the_producers_begin_the_one_after_the_next(start: Start) -> None:
    """The order is forced: a producer begins step k + 2 only when all consumers have step k."""
    producers = [start("from", rank) for rank in range(4)]
    consumers = [start("to", rank) for rank in range(3)]
    for step in range(20):
        for producer in producers:
            assert ask(producer, f"offer {step}") == f"offered {step}"
        if step > 0:
            for consumer in consumers:
                assert ask(consumer, f"take {step - 1}") == f"took {step - 1}"
    assert [ask(consumer, "take 19") for consumer in consumers] == ["took 19"] * 3


def test_nobody_has_more_than_his_part_and_the_pool_has_the_array_once(shell: Shell) -> None:
    array_bytes = 4000 * 4096 * 8
    url = f"unix:{shell.folder}/junctura/test.sock"

    def start(side: str, rank: int) -> Process:
        command = [sys.executable, str(WEIGHED), url, side, str(rank)]
        return Process(command, shell.environment, subprocess.PIPE)

    producers = [start("from", rank) for rank in range(4)]
    assert [producer.line() for producer in producers] == ["offered"] * 4
    assert array_bytes <= shell.stat()["memory"]["segment_bytes"] < 1.1 * array_bytes
    consumers = [start("to", rank) for rank in range(3)]
    sums = [[float(word) for word in consumer.line().split()] for consumer in consumers]
    assert [found[:2] for found in sums] == [[0.0, 3.0]] * 3
    assert sum(found[2] for found in sums) == array_bytes / 8 * 1.5
    assert shell.stat()["memory"]["segment_bytes"] < 1.1 * array_bytes
    for process in producers + consumers:
        process.popen.communicate()
        assert process.popen.returncode == 0
