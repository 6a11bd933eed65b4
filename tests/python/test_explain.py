"""Why requests wait, why objects stay, and what keeps memory: in both forms of the pool."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
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
            assert pool.explain(version=pool.offer(b"333", name="c"))["key"] == "{set=all}{}{name=c}"
        with pytest.raises(junctura.NotFound, match="superseded"):
            pool.explain(version=first)
        with pytest.raises(junctura.NotFound):
            pool.explain(name="b")
        with pytest.raises(junctura.InvalidArgument):
            pool.explain("name=a", version=first)
        pool.retract("archive")


def test_a_selector_is_explained(pool: junctura.Pool) -> None:
    assert (pool.explain("name=a")["matches"], pool.explain("")["of"]) == (0, 0)
    for level in ("1000", "850", "500"):
        pool.offer(b"", name=f"n{level}", kind="t", level=level)
    (miss,) = pool.explain("kind=t,level=85")["without"]
    assert (miss["condition"], miss["matches"], miss["nearest"]) == ("level=85", 3, "850")
    assert (miss["attribute"], miss["values"]) == ("level", ["500", "850", "1000"])
    found = pool.explain("kind=t")
    assert (found["matches"], found["more"], found["without"]) == (3, 0, [])
    assert [one["because"] for one in found["objects"]] == [["retention"]] * 3
    assert pool.explain("nme=n500")["mistakes"] == [
        'no object has the attribute "nme"; did you mean name (schema free)?'
    ]
    with pytest.raises(junctura.InvalidSelector, match="at byte"):
        pool.explain("kind=")


def test_an_array_that_lacks_pieces_is_explained(pool: junctura.Pool) -> None:
    for rank in (0, 1, 3):
        pool.offer_piece(np.zeros((2, 3)), "shape=4x6 grid=2x2", rank, name="t")
    pool.offer_piece(np.zeros((4, 6)), "shape=4x6", 0, name="u")
    (array,) = pool.explain("name=t")["arrays"]
    assert (array["key"], array["pieces"], array["of"]) == ("{space=default}{}{name=t}", 3, 4)
    assert array["missing"] == [{"rank": 2, "boxes": ["[2:4, 0:3]"]}]
    assert [client["pid"] for client in array["clients"]] == [os.getpid()]
    assert pool.explain("name=u")["arrays"] == pool.explain("name=v")["arrays"] == []
    assert len(pool.explain("")["arrays"]) == 1


def test_a_timeout_has_the_nearest_name_and_value(pool: junctura.Pool) -> None:
    def hint(*target: str, **key: Any) -> str:
        with pytest.raises(junctura.Timeout) as caught:
            pool.demand(*target, timeout=0.02, **key)
        with pytest.raises(junctura.Timeout) as late:
            pool.begin_demand(*target, timeout=0.02, **key).get()
        assert str(late.value) == str(caught.value)
        return str(caught.value)

    assert hint("name=a").endswith("the pool has no objects")
    for level in ("1000", "850", "500"):
        pool.offer(b"", name=f"forecast-{level}", level=level)
    assert "did you mean level=850? level is 500/850/1000" in hint("level=85")
    assert "did you mean name=forecast-850?" in hint(name="forcast-850")
    assert 'no object has the attribute "nme"; did you mean name' in hint("nme=forecast-850")


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
            version = await pool.offer(b"payload", name="a")
            assert (await pool.explain(name="a"))["because"] == ["retention"]
            assert (await pool.explain(version=version))["key"] == "{space=default}{}{name=a}"
            assert (await pool.keepers())["sums"][0]["bytes"] == 7
            assert (await pool.explain("name=b"))["without"][0]["nearest"] is None
            with pytest.raises(junctura.Timeout, match="name is a"):
                await pool.demand("name=b", timeout=0.02)
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
