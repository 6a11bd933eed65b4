"""Valid calls that are probably mistakes: misspelled options, labels that differ, schemas that differ."""

from __future__ import annotations

import asyncio
import os
import tempfile
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura
import junctura.aio

xarray = pytest.importorskip("xarray")

# Every call that takes attributes as keywords.
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
        pool.withdraw_all("name=a", force=True, forget=True)
        assert messages(lambda: CALLS[call](pool, {name: "5"})) == []
    with junctura.Pool(schema="free") as pool:
        # Of another pool it is reported again.
        assert len(messages(lambda: CALLS[call](pool, {name: "5"}))) == 1


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


def test_a_warning_can_be_an_error() -> None:
    with junctura.Pool(schema="free") as pool, warnings.catch_warnings():
        warnings.simplefilter("error", junctura.UsageWarning)
        with pytest.raises(junctura.UsageWarning):
            pool.offer(b"", name="a", retentin="5")
        assert pool.list() == []


def labelled(block: Any) -> Any:
    return xarray.DataArray(np.zeros(2), dims="x", name="t", coords={"block": block}, attrs={"source": "model"})


def test_an_attribute_that_differs_from_a_coordinate_is_reported() -> None:
    with junctura.Pool(schema="free") as pool:
        found = messages(lambda: pool.offer(labelled(1), name="a", block="7"))
        assert found == [
            "block=7 is given, and the array has the coordinate block=1: the object has block=7. "
            "Drop the coordinate, or give block=1"
        ]
        assert pool.demand(name="a")["block"] == "7"
        # A correction of an attribute of the array.
        assert messages(lambda: pool.offer(labelled(1), name="b", source="other")) == []

        async def awaited() -> None:
            async with junctura.aio.Pool(pool) as other:
                await other.offer(labelled(1), name="c", block="7")

        assert len(messages(lambda: asyncio.run(awaited()))) == 1
        same = [{"block": "1"}, {"block": "1.0"}, {"source": "model"}, {}, {"step": "6"}]
        for number, given in enumerate(same):
            assert messages(lambda: pool.offer(labelled(1), {"name": f"{number}", **given})) == []  # noqa: B023
        when = np.datetime64("2026-11-30T00:00:00", "ns")
        assert messages(lambda: pool.offer(labelled(when), name="e", block="2026-11-30T00:00:00Z")) == []


BARE = """
name: bare
key: {dataset: [name], collocation: [], element: []}
attributes: {name: {type: string}FORM}
"""


@pytest.mark.parametrize(
    ("form", "lost", "effect"),
    [
        ("", "dtype", "readers get bytes instead of the array, unless they pass its type and shape"),
        (
            ", dtype: {type: string}",
            "shape",
            "readers get an array of one dimension, unless they pass its shape",
        ),
    ],
)
def test_an_array_whose_form_its_schema_cannot_hold_is_reported(form: str, lost: str, effect: str) -> None:
    schema = BARE.replace("FORM", form)
    expected = (
        f"schema bare declares no attribute {lost}: {effect}; declare `dtype: {{type: string}}` and "
        "`shape: {type: list of integer}` among its attributes"
    )

    async def awaited(pool: junctura.Pool, data: Any) -> None:
        async with junctura.aio.Pool(pool) as awaiting:
            await awaiting.offer(data, name="a")

    offers: list[Callable[[junctura.Pool, Any], Any]] = [
        lambda pool, data: pool.offer(data, name="a"),
        lambda pool, data: pool.offer_many([(data, {"name": "a"})]),
        lambda pool, data: asyncio.run(awaited(pool, data)),
    ]
    big = np.zeros((1000, 1000))
    for offer in offers:
        for data in (np.eye(2), big):
            with junctura.Pool(schema=schema) as pool:
                # All labels are in the payload.
                assert messages(lambda: offer(pool, xarray.DataArray(data))) == []  # noqa: B023
                assert messages(lambda: pool.offer(b"1234", name="b")) == []
                assert pool.demand(name="a").to_xarray().shape == data.shape
            with junctura.Pool(schema=schema) as pool:
                assert messages(lambda: offer(pool, data)) == [expected]  # noqa: B023
                assert messages(lambda: pool.offer(data, name="c")) == []  # noqa: B023
    with junctura.Store.create("memory:bare", schema=junctura.Schema.from_yaml(schema)) as store:
        assert messages(lambda: store.archive(np.eye(2), name="a")) == [expected]
    with junctura.Pool(schema=BARE.replace("FORM", ", dtype: {type: string}, shape: {type: list of integer}")) as pool:
        assert messages(lambda: pool.offer(np.eye(2), name="a")) == []


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


@pytest.mark.skipif("JUNCTURA_TEST_DETOUR" in os.environ, reason="only its board states when a server has started")
def test_options_of_a_server_that_runs_already_are_reported(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    # Names of sockets are short, so the folders of tests are not for them.
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="junctura-usage-"))
    given: dict[str, Any] = {
        "budget": "64MiB",
        "spill": tmp_path / "spill",
        "spill_size": "1GiB",
        "inline_max": 1024,
        "checked": True,
        "orphan_timeout": 5.0,
        "until_gone": ["model"],
    }
    begin = "the server of unix:fields runs already: "
    end = ". Leave the options out, or end the server first: `junctura pool stop --pool unix:fields`"

    def opened(**options: Any) -> list[str]:
        return messages(lambda: junctura.Pool("unix:fields", start=True, schema="free", **options).close())

    holder: list[junctura.Pool] = []
    assert messages(lambda: holder.append(junctura.Pool("unix:fields", start=True, schema="free", **given))) == []
    assert opened(**{**given, "orphan_timeout": None}) == []
    assert opened() == []
    assert opened(budget="128MiB") == [f"{begin}budget=128 MiB is ignored, it has 64 MiB{end}"]
    assert opened(orphan_timeout=5) == [f"{begin}orphan_timeout=5 is ignored, it keeps its own{end}"]
    assert opened(until_gone=["viewer"], inline_max="2KiB") == [
        f"{begin}inline_max=2 KiB is ignored, it has 1 KiB, until_gone=viewer is ignored, it has model{end}"
    ]
    assert opened(spill=tmp_path / "other") == [
        f"{begin}spill={tmp_path / 'other'} is ignored, it has {tmp_path / 'spill'}{end}"
    ]
    assert len(messages(lambda: junctura.Pool("unix:fields", budget="1GiB").close())) == 1
    for pool in holder:
        pool.stop(timeout=0)


def test_a_misspelled_name_of_a_pool_is_suggested(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_RUNTIME_DIR", tempfile.mkdtemp(prefix="junctura-usage-"))
    with junctura.Pool("unix:ocean", schema="free", start=True):
        with pytest.raises(junctura.Unavailable, match=r"; did you mean unix:ocean\?$"):
            junctura.Pool("unix:oceon")
        for other in ("unix:atmosphere", "unix:ocean2"):
            with pytest.raises(junctura.Unavailable) as caught:
                junctura.Pool(other)
            assert "did you mean" not in str(caught.value)


def test_a_schema_that_a_store_lacks_is_reported_when_an_archiver_starts() -> None:
    runs = junctura.Schema.from_yaml(RUNS)
    store = junctura.Store.create("memory:lacks", schema="free")
    expected = (
        "the store memory:lacks lacks the schema runs of the pool: objects of this schema are not archived, and stay "
        'in the pool; add it first with store = store.set_schema(pool.schema("runs"))'
    )
    with junctura.Pool(schema=["free", runs]) as pool:
        assert messages(lambda: junctura.Archiver(pool, store, "").stop()) == [expected]
        more = store.set_schema(pool.schema("runs"))
        assert messages(lambda: junctura.Archiver(pool, more, "").stop()) == []
    store = junctura.Store.create("memory:none", schema="free")
    refused = r"has the schemas free, and none of the pool's \(runs\)"
    with junctura.Pool(schema=runs) as pool, pytest.raises(junctura.SchemaMismatch, match=refused):
        junctura.Archiver(pool, store, "")
    # All built-in schemas: probably none was chosen.
    with junctura.Pool() as pool:
        assert messages(lambda: junctura.Archiver(pool, store, "").stop()) == []
