"""Counts of objects by the server, and the first objects of a list, beside lists of all."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import pytest

import junctura

SELECTORS = ["", "*", "space=a", "name=1/2/30", 'kind~"^x"', "not space=b", "exists(kind),space=a"]


@pytest.fixture
def pool() -> Iterator[junctura.Pool]:
    """A pool with objects of two schemas, of which some have attributes of their own."""
    with junctura.Pool(schema=["free", "record"]) as pool:
        for number in range(60):
            own = {"kind": f"{'xy'[number % 2]}{number % 5}"} if number % 3 else {}
            pool.offer(b"x" * number, {"space": "abc"[number % 3], "name": str(number), **own})
        yield pool


@pytest.mark.parametrize("selector", SELECTORS)
def test_a_tally_is_what_a_list_counts(pool: junctura.Pool, selector: str) -> None:
    entries = pool.list(selector)
    tally = pool.tally(selector, sum_bytes=True)
    assert (tally.objects, tally.nbytes) == (len(entries), sum(entry.nbytes for entry in entries))
    assert (tally.others, tally.newer, pool.tally(selector).nbytes) == (0, 0, None)
    for by in (["space"], ["kind"], ["space", "kind"]):
        counted = {group.values: group.objects for group in pool.tally(selector, by=by).groups}
        assert counted == Counter(tuple(entry.get(name) for name in by) for entry in entries)


def test_groups_are_in_order_and_limited(pool: junctura.Pool) -> None:
    groups = pool.tally(by=["space", "kind"]).groups
    assert [group.values for group in groups][:3] == [("a", None), ("b", "x0"), ("b", "x1")]
    assert {group.schema.name for group in groups} == {"free"}
    few = pool.tally(by=["name"], limit=7, sum_bytes=True)
    assert (len(few.groups), few.others, few.objects) == (7, 53, 60)
    assert few.nbytes == sum(range(60))
    assert "60 objects, 7 groups" in repr(few)
    assert "objects" in repr(few.groups[0])


def test_claims_are_refused(pool: junctura.Pool) -> None:
    for options in ({"limit": 0}, {"limit": 1001}, {"by": ["space"] * 9}):
        with pytest.raises(junctura.InvalidArgument):
            pool.tally(**options)
    with pytest.raises(junctura.InvalidSelector):
        pool.tally("space=")
    for listed in ({"limit": 0}, {"limit": 1001}, {"limit": 1, "incomplete": True}, {"after": pool.list()[0]}):
        with pytest.raises(junctura.InvalidArgument):
            pool.list(**listed)


@pytest.mark.parametrize("order_by", [None, "space", "name"])
def test_pages_of_a_list_are_the_list(pool: junctura.Pool, order_by: str | None) -> None:
    entries = [entry.key for entry in pool.list("not name=7", order_by=order_by)]
    found: list[junctura.Entry] = []
    while page := pool.list("not name=7", order_by=order_by, limit=8, after=found[-1] if found else None):
        assert len(page) <= 8
        found += page
    assert [entry.key for entry in found] == entries


def test_a_page_goes_on_behind_an_object_that_is_gone(pool: junctura.Pool) -> None:
    first = pool.list("space=a", limit=2)
    pool.withdraw(first[1].key)
    second = pool.list("space=a", limit=2, after=first[1])
    assert [entry["name"] for entry in first + second] == ["0", "12", "15", "18"]


@pytest.mark.parametrize("limit", range(1, 9))
def test_pages_have_what_only_a_store_behind_the_pool_has(tmp_path: Path, limit: int) -> None:
    with junctura.Store.create(tmp_path / "store", schema="free") as store:
        for name in "aceh":
            store.archive(b"kept", name=name)
    with junctura.Pool(schema="free", store=store.path) as pool:
        for name in "bdfg":
            pool.offer(b"here", name=name)
        found: list[junctura.Entry] = []
        while page := pool.list(limit=limit, after=found[-1] if found else None):
            found += page
        assert [(entry["name"], entry.archived) for entry in found] == [
            *((name, name in "aceh") for name in "abcdefgh"),
        ]
        assert pool.tally().objects == 4


def test_tasks_count_too() -> None:
    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            for name in ("a", "b", "c"):
                await pool.offer(b"payload", name=name)
            assert (await pool.tally("name=a/b")).objects == 2
            first = await pool.list(limit=2)
            rest = await pool.list(limit=2, after=first[-1])
            assert [entry["name"] for entry in first + rest] == ["a", "b", "c"]

    asyncio.run(main())


def test_an_attribute_that_no_object_has_is_reported(pool: junctura.Pool) -> None:
    with pytest.warns(junctura.SelectorWarning, match=r'no object has the attribute "nme"; did you mean name'):
        assert pool.tally(by="nme").objects == 60
    with junctura.Pool(schema="record") as closed:
        with pytest.raises(junctura.InvalidArgument, match=r"no schema has an attribute producr; .* mean producer\?"):
            closed.tally(by=["producr"])
        with pytest.raises(junctura.InvalidArgument, match=r"`junctura schema show NAME --pool \S+` lists"):
            closed.tally(by=["colour"])


def test_one_attribute_needs_no_list(pool: junctura.Pool) -> None:
    assert [group.values for group in pool.tally(by="space").groups][:3] == [("a",), ("b",), ("c",)]
