"""Why requests wait, why objects stay, and what keeps memory: in both forms of the pool."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path

import pytest

import junctura

# A schema in which a new version supersedes the one before.
LETTERS = """
name: letters
same_key: supersede
key: {dataset: [set], collocation: [], element: [name]}
attributes:
  set: {type: string, default: all}
  name: {type: string}
"""


def test_a_wait_has_its_client_and_its_cause() -> None:
    with junctura.Pool(schema="free", name="reader") as pool:
        assert pool.waits() == []
        demands = [pool.begin_demand(name=f"n{number}") for number in range(3)]
        pool.sync()
        waits = pool.waits()
        assert [wait["what"] for wait in waits] == [f"space=default,name=n{number}" for number in range(3)]
        assert {(wait["client"]["name"], wait["kind"], wait["because"]) for wait in waits} == {
            ("reader", "demand", "nothing_matches")
        }
        assert [wait["what"] for wait in pool.waits(limit=2)] == ["space=default,name=n0", "space=default,name=n1"]
        for demand in demands:
            demand.close()


def test_an_object_is_explained_by_key_and_by_version(tmp_path: Path) -> None:
    (tmp_path / "letters.yaml").write_text(LETTERS)
    with junctura.Pool(schema=str(tmp_path / "letters.yaml")) as pool:
        with pool.require("name=a", name="archive"):
            first = pool.offer(b"1", name="a")
            pool.offer(b"22", name="a")
            assert pool.explain(name="a")["bytes"] == pool.explain("{set=all}{}{name=a}")["bytes"] == 2
            earlier = pool.explain(name="a", version=first)
            assert (earlier["state"], earlier["version"]) == ("superseded", str(first))
        with pytest.raises(junctura.NotFound):
            pool.explain(name="b")
        with pytest.raises(junctura.InvalidArgument):
            pool.explain("name=a")
        pool.retract("archive")


def test_keepers_of_many_objects_are_added_up() -> None:
    with junctura.Pool(schema="free") as pool:
        with pool.pipeline() as pipeline:
            for number in range(10_000):
                pipeline.offer(b"12345678", name=f"n{number}")
        keepers = pool.keepers()
        assert keepers["sums"] == [
            {"because": "until_withdrawn", "objects": 10_000, "bytes": 80_000, "alone_bytes": 80_000}
        ]
        assert keepers["memory"]["inline_bytes"] == 80_000


def test_tasks_ask_the_same() -> None:
    async def ask() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            await pool.offer(b"payload", name="a")
            assert (await pool.explain(name="a"))["because"] == ["retention"]
            assert (await pool.keepers())["sums"][0]["bytes"] == 7
            demand = asyncio.ensure_future(pool.demand("name=b"))
            while not (waits := await pool.waits()):
                pass
            assert waits[0]["what"] == "name=b"
            demand.cancel()
            with pytest.raises(asyncio.CancelledError):
                await demand

    asyncio.run(ask())


def test_the_command_of_the_package_explains() -> None:
    done = subprocess.run(
        [sys.executable, "-m", "junctura", "explain", "--pool", "unix:no-such-pool-here"],
        capture_output=True,
        check=False,
    )
    assert done.returncode == 5
