"""Valid calls that are probably mistakes: misspelled options, labels that differ, schemas that differ."""

from __future__ import annotations

import asyncio
import tempfile
import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import junctura
import junctura.aio

xarray = pytest.importorskip("xarray")

# Every call that takes attributes as keywords, with a name of its own: each is checked once in a process.
CALLS: dict[str, Callable[[junctura.Pool, dict[str, Any]], Any]] = {
    "offer": lambda pool, given: pool.offer(b"", name="a", **given),
    "allocation": lambda pool, given: pool.allocate(8).offer(name="a", **given),
    "pipeline": lambda pool, given: _piped(pool, given),
    "bundle": lambda pool, given: _bundled(pool, given),
    "chunks": lambda pool, given: pool.offer_chunks(_chunked(), name="a", **given),
    "piece": lambda pool, given: pool.offer_piece(np.zeros(4), junctura.Layout(shape=[4]), 0, name="a", **given),
    "awaited": lambda pool, given: asyncio.run(_awaited(pool, given)),
}
# For each call: a misspelled option, and what is meant.
SLIPS = {
    "offer": ("retenton", "retention"),
    "allocation": ("tmeout", "timeout"),
    "pipeline": ("same_kye", "same_key"),
    "bundle": ("durabilty", "durability"),
    "chunks": ("retentio", "retention"),
    "piece": ("epohc", "epoch"),
    "awaited": ("if_wantd", "if_wanted"),
}


def _chunked() -> Any:
    return pytest.importorskip("dask.array").zeros(4, chunks=2)


def _piped(pool: junctura.Pool, given: dict[str, Any]) -> None:
    with pool.pipeline() as pipeline:
        pipeline.offer(b"", name="a", **given)


def _bundled(pool: junctura.Pool, given: dict[str, Any]) -> None:
    with pool.bundle() as bundle:
        bundle.offer(b"", name="a", **given)


async def _awaited(pool: junctura.Pool, given: dict[str, Any]) -> None:
    async with junctura.aio.Pool(pool) as awaited:
        await awaited.offer(b"", name="a", **given)


def messages(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in caught if issubclass(one.category, junctura.UsageWarning)]


@pytest.mark.parametrize("call", CALLS)
def test_a_misspelled_option_is_reported_once(call: str) -> None:
    name, meant = SLIPS[call]
    with junctura.Pool(schema="free") as pool:
        assert messages(lambda: CALLS[call](pool, {name: "5"})) == [
            f"{name} is stored as an attribute; did you mean the option {meant}? "
            f"{name}_= gives an attribute of that name without this warning"
        ]
    with junctura.Pool(schema="free") as pool:
        assert messages(lambda: CALLS[call](pool, {name: "5"})) == []


def test_a_declared_attribute_one_of_an_object_and_one_with_an_underscore_are_no_mistakes() -> None:
    schema = """
name: own
open: true
key: {dataset: [name], collocation: [], element: []}
attributes: {name: {type: string}, retentions: {type: integer}}
"""
    with junctura.Pool(schema=schema) as pool:
        assert messages(lambda: pool.offer(b"", name="a", retentions=5)) == []
        assert messages(lambda: pool.offer(b"", {"scheme": "x"}, name="b")) == []
        assert messages(lambda: pool.offer(b"", name="c", scheme="upwind")) == []
        assert messages(lambda: pool.offer(b"", name="d", retentio_="x", step="6", level="3")) == []
        assert pool.demand(name="d")["retentio"] == "x"


def test_a_bundle_reports_its_own_options() -> None:
    with junctura.Pool(schema="free") as pool:
        found = messages(lambda: pool.bundle("a", membrs="2").abort())
        assert [text.partition("?")[0] for text in found] == [
            "membrs is stored as an attribute; did you mean the option members"
        ]


def test_a_store_reports_misspelled_options_and_refuses_those_of_a_pool() -> None:
    with junctura.Store.create("memory:usage", schema="free") as store:
        assert len(messages(lambda: store.archive(b"", name="a", schemma="free"))) == 1
        with pytest.raises(junctura.InvalidArgument, match=r"it is an option of Pool\.offer"):
            store.archive(b"", name="a", retention="10min")
        for _ in range(2):
            with pytest.raises(junctura.InvalidArgument, match="it is part of a schema"):
                store.archive(b"", name="a", same_key="supersede")


KEYS: dict[str, Callable[[junctura.Pool], Any]] = {
    "timeou": lambda pool: pool.demand(name="a", timeou="0").release(),
    "tmeout": lambda pool: pool.begin_demand(name="a", tmeout="3").close(),
    "forc": lambda pool: pool.withdraw(name="a", forc="yes"),
    "requirment": lambda pool: asyncio.run(_demanded(pool)),
}


async def _demanded(pool: junctura.Pool) -> None:
    async with junctura.aio.Pool(pool) as awaited:
        (await awaited.demand(name="a", requirment="x")).release()


@pytest.mark.parametrize("name", KEYS)
def test_a_misspelled_option_among_the_attributes_of_a_key_is_reported(name: str) -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"", name="a")
        (found,) = messages(lambda: KEYS[name](pool))
        assert found.startswith(f"{name} is no part of the key, and has no effect; did you mean the option ")


def test_a_warning_can_be_an_error() -> None:
    with junctura.Pool(schema="free") as pool, warnings.catch_warnings():
        warnings.simplefilter("error", junctura.UsageWarning)
        with pytest.raises(junctura.UsageWarning):
            pool.offer(b"", name="a", retentin="5")
        assert pool.list() == []


def labelled(block: Any) -> Any:
    return xarray.DataArray(np.zeros(2), dims="x", name="t", coords={"block": block}, attrs={"source": "model"})


def test_an_attribute_that_differs_from_a_label_is_reported() -> None:
    with junctura.Pool(schema="free") as pool:
        found = messages(lambda: pool.offer(labelled(1), name="a", block="7"))
        assert found == [
            "block=7 is given, and the array has the label block=1: the object has block=7. "
            "Drop the label, or give block=1"
        ]
        assert pool.demand(name="a")["block"] == "7"
        assert len(messages(lambda: pool.offer(labelled(1), name="b", source="other"))) == 1

        async def awaited() -> None:
            async with junctura.aio.Pool(pool) as other:
                await other.offer(labelled(1), name="c", block="7")

        assert len(messages(lambda: asyncio.run(awaited()))) == 1
        same = [{"block": "1"}, {"block": "1.0"}, {"source": "model"}, {}, {"step": "6"}]
        for number, given in enumerate(same):
            assert messages(lambda: pool.offer(labelled(1), {"name": f"{number}", **given})) == []  # noqa: B023
        when = np.datetime64("2026-11-30T00:00:00", "ns")
        assert messages(lambda: pool.offer(labelled(when), name="e", block="2026-11-30T00:00:00Z")) == []


RUNS = """
name: runs
key: {dataset: [run], collocation: [], element: [step]}
attributes: {run: {type: string}, step: {type: integer}, note: {type: string, doc: Any text}}
"""


def test_a_schema_that_differs_from_that_of_the_pool_is_reported() -> None:
    own = RUNS.replace("name: runs", "name: runs\nsame_key: supersede").replace(
        "note: {type: string", "note: {type: bool"
    )
    with junctura.Pool(schema=RUNS) as pool:
        found = messages(lambda: junctura.Pool(pool.url, schema=own).close())
        assert found == [
            "schema runs of this client (here) differs from that of the pool (there), which applies: "
            "same_key: supersede here, reject there; attribute note: {type: bool} here, {type: string} there"
        ]
        assert messages(lambda: junctura.Pool(pool.url, schema=RUNS.replace("Any text", "A text")).close()) == []
        assert messages(lambda: junctura.Pool(pool.url).close()) == []


def test_a_server_that_is_started_beside_one_with_a_similar_name_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    # Names of sockets are short, so the folders of tests are not for them.
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="junctura-usage-"))
    with junctura.Pool("unix:ocean", schema="free", start=True):
        assert messages(lambda: junctura.Pool("unix:ocean2", schema="free", start=True).close()) == []
        found = messages(lambda: junctura.Pool("unix:oceon", schema="free", start=True).close())
        assert found == ["no pool unix:oceon was served, so one was started; did you mean unix:ocean?"]
        assert messages(lambda: junctura.Pool("unix:atmosphere", schema="free", start=True).close()) == []


def test_an_object_keeps_its_attributes_where_it_is_archived_or_offered() -> None:
    with (
        junctura.Pool(schema="free") as pool,
        junctura.Pool(schema="free") as other,
        junctura.Store.create("memory:kept", schema="free") as store,
    ):
        pool.offer(np.eye(2), name="a", step="6")
        with pool.demand(name="a") as obj:
            store.archive(obj)
            store.archive(obj, name="b")
            store.archive(obj, {"name": "c"})
            store.flush()
            other.offer(obj, step="12")
            bare = dict(obj.attributes)

            async def awaited() -> None:
                async with junctura.aio.Pool(other) as awaiting:
                    await awaiting.offer(obj, name="d")

            asyncio.run(awaited())
        found = {stored["name"]: stored for stored in store.list()}
        assert found["a"].attributes == bare
        assert found["b"].attributes == {**bare, "name": "b"}
        assert "step" not in found["c"].attributes
        assert (found["a"].array() == np.eye(2)).all()
        assert other.demand(name="a").attributes == {**bare, "step": "12"}
        assert other.demand(name="d").attributes == {**bare, "name": "d"}


def test_a_misspelled_attribute_of_objects_is_suggested() -> None:
    with junctura.Pool(schema=["free", "mars"]) as pool, warnings.catch_warnings():
        pool.offer(b"", name="a", level="3", ensemble_member="x")
        expected = (
            r'level=3,ensemble_membr=x: no object has the attribute "ensemble_membr"; did you mean ensemble_member\?'
        )
        with pytest.warns(junctura.SelectorWarning, match=expected):
            assert pool.list("level=3,ensemble_membr=x") == []
        warnings.simplefilter("ignore")
        hint = r'no object has the attribute "ensemble_membr"; did you mean ensemble_member\?'
        with pytest.raises(junctura.Timeout, match=hint):
            pool.demand("ensemble_membr=x", timeout=0.05)
