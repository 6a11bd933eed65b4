"""Arrays from M processes to N processes: what becomes of them when some die, who waits for whom, what it takes."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from e2e_shell import DETOUR, Process, Shell

import junctura

WEIGHED = Path(__file__).with_name("e2e_weighed.py")
Start = Callable[[str, int], Process]


@pytest.fixture
def start(shell: Shell, program: Callable[..., Process]) -> Start:  # noqa: ARG001 - it serves the pool
    """Starts a rank, which is ready then."""
    return lambda side, rank: program("e2e_rank.py", side, rank)


def test_a_producer_killed_before_its_piece_is_named(shell: Shell, start: Start) -> None:
    producers = [start("from", rank) for rank in range(4)]
    consumer = start("to", 1)
    for rank in [0, 1, 3]:
        assert producers[rank].ask("offer 0") == "offered 0"
    producers[2].kill()
    for verb, error in [("look", "NotFound"), ("wait", "Timeout")]:
        said = consumer.ask(f"{verb} 0")
        assert said == f"{error} of 4 pieces, rank 2 did not offer theirs"
    assert shell.text("ls", "--count") == "0\n"
    # One that takes its place completes the array.
    assert start("from", 2).ask("offer 0") == "offered 0"
    assert consumer.ask("take 0") == "took 0"


def test_producers_killed_after_their_pieces_are_not_missed(shell: Shell, start: Start) -> None:
    producers = [start("from", rank) for rank in range(4)]
    for rank, producer in enumerate(producers):
        assert producer.ask("offer 0") == "offered 0"
        if rank > 0:
            producer.kill()
    producers[0].kill()
    assert shell.text("ls", "--count") == "1\n"
    for rank in range(3):
        assert start("to", rank).ask("take 0") == "took 0"


def test_consumers_hold_a_step_before_the_producers_begin_the_one_after_the_next(start: Start) -> None:
    """The order is forced: a producer begins step k + 2 only when all consumers have step k."""
    producers = [start("from", rank) for rank in range(4)]
    consumers = [start("to", rank) for rank in range(3)]
    for step in range(20):
        for producer in producers:
            assert producer.ask(f"offer {step}") == f"offered {step}"
        if step > 0:
            for consumer in consumers:
                assert consumer.ask(f"take {step - 1}") == f"took {step - 1}"
    assert [consumer.ask("take 19") for consumer in consumers] == ["took 19"] * 3


def test_nobody_has_more_than_his_part_and_the_pool_has_the_array_once(
    shell: Shell, tell: Callable[[str], None]
) -> None:
    mib = 1 << 20
    array_bytes = 4000 * 4096 * 8
    url = f"unix:{shell.folder}/junctura/test.sock"

    def start(side: str, rank: int) -> Process:
        command = [sys.executable, str(WEIGHED), url, side, str(rank)]
        return Process(command, shell.environment, subprocess.PIPE)

    producers = [start("from", rank) for rank in range(4)]
    given = [[float(word) for word in producer.line().split()] for producer in producers]
    pool_bytes = shell.stat()["memory"]["segment_bytes"]
    assert array_bytes <= pool_bytes < 1.1 * array_bytes
    consumers = [start("to", rank) for rank in range(3)]
    taken = [[float(word) for word in consumer.line().split()] for consumer in consumers]
    assert [found[3:5] for found in taken] == [[0.0, 3.0]] * 3
    assert sum(found[5] for found in taken) == array_bytes / 8 * 1.5
    assert shell.stat()["memory"]["segment_bytes"] < 1.1 * array_bytes
    for process in producers + consumers:
        process.popen.communicate()
        assert process.popen.returncode == 0
    # Over TCP a producer has its piece in memory of its own until it has gone.
    if DETOUR not in os.environ:
        for side, ranks in [("producer", given), ("consumer", taken)]:
            for rank, (own, before, peak, *_) in enumerate(ranks):
                more = peak - before
                tell(
                    f"arrays: {side} {rank} had {before / mib:.1f} MiB of private memory, {peak / mib:.1f} at most: "
                    f"{more / mib:.1f} more, of which {own / mib:.1f} are its part"
                )
                assert own <= more < own + 8 * mib
        tell(f"arrays: the pool had {pool_bytes / mib:.1f} MiB for an array of {array_bytes / mib:.1f}")


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("shape=60x70 grid=2x2 block=7x5", "shape=60x70 grid=3x1 order=F"),
        ("shape=100 grid=6 block=10", "shape=100 cuts=0,10,10,95,100"),
        ("shape=8x9 slabs=0:8x0:4;0:8x4:9", "shape=8x9 grid=2x2 block=3x2 storage=packed"),
    ],
)
@pytest.mark.parametrize("side", ["from", "to"])
def test_the_command_tells_the_plan_that_programs_have(bare: Shell, source: str, target: str, side: str) -> None:
    planned = junctura.Layout(source)
    for rank in range((planned if side == "from" else junctura.Layout(target)).ranks):
        words = ["--from", source, "--to", target, "--rank", str(rank), "--side", side, "--type", "f4", "--json"]
        (told,) = bare.documents("layout", "plan", *words)
        plan = planned.plan(target, rank, side=side)  # type: ignore[arg-type]
        shares = [{"rank": peer, "elements": count, "bytes": 4 * count} for peer, count in plan.partners]
        assert told.pop("plan_us") > 0
        # Runs are listed for each dimension, of one period; boxes are their products.
        assert 0 < told.pop("runs") <= 2 * 70 or plan.elements == 0
        assert told == {
            "rank": rank,
            "partners": len(plan.partners),
            "boxes": plan.count,
            "elements": plan.elements,
            "bytes": 4 * plan.elements,
            "shares": shares,
        }
    assert "no rank 99" in bare.error(2, "layout", "plan", "--from", source, "--to", target, "--rank", "99")
