"""Keywords that a call does not have: the error names the nearest option."""

from __future__ import annotations

import asyncio
import gc
import inspect
import warnings
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import junctura
import junctura.aio

# A call with a misspelled option, and the right one.
SLIPS: dict[str, tuple[Callable[[junctura.Pool], Any], str]] = {
    "Pool": (lambda _: junctura.Pool(nme="x"), "name"),  # type: ignore[call-arg]
    "Pool.demand": (lambda pool: pool.demand("name=a", timout=0), "timeout"),
    "Pool.begin_demand": (lambda pool: pool.begin_demand("name=a", timout=0), "timeout"),
    "Pool.demand_array": (lambda pool: pool.demand_array("name=a", thread=2), "threads"),
    "Pool.demand_chunks": (lambda pool: pool.demand_chunks("name=a", chunk=2), "chunks"),
    "Pool.explain": (lambda pool: pool.explain("name=a", versoin=2), "version"),
    "Pool.follow": (lambda pool: pool.follow("name=a", windw=1), "window"),  # type: ignore[call-arg]
    "Pool.list": (lambda pool: pool.list("name=a", limt=1), "limit"),  # type: ignore[call-arg]
    "Pool.offer_many": (lambda pool: pool.offer_many([], retenton="1h"), "retention"),  # type: ignore[call-arg]
    "Pool.require": (lambda pool: pool.require("name=a", nme="b"), "name"),  # type: ignore[call-arg]
    "Pool.subscribe": (lambda pool: pool.subscribe("name=a", kind=["offered"]), "kinds"),  # type: ignore[call-arg]
    "Pool.tally": (lambda pool: pool.tally("name=a", limt=1), "limit"),  # type: ignore[call-arg]
    "Pool.withdraw": (lambda pool: pool.withdraw("{space=default}{}{name=a}", forse=True), "force"),
    "Pool.withdraw_all": (lambda pool: pool.withdraw_all("name=a", forgt=True), "forget"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("call", SLIPS)
def test_the_nearest_option_is_named(call: str) -> None:
    run, option = SLIPS[call]
    message = rf"^{call}\(\) has no option \"\w+\": did you mean {option}\?$"
    with junctura.Pool(schema="free") as pool, pytest.raises(TypeError, match=message):
        run(pool)


# The same of the pool of asyncio.
AWAITED: dict[str, tuple[Callable[[junctura.aio.Pool], Any], str]] = {
    "Pool.allocate": (lambda pool: pool.allocate(shap=3), "shape"),  # type: ignore[call-arg]
    "Pool.demand": (lambda pool: pool.demand("name=a", timout=0), "timeout"),
    "Pool.demand_array": (lambda pool: pool.demand_array("name=a", thread=2), "threads"),
    "Pool.follow": (lambda pool: pool.follow("name=a", windw=1), "window"),  # type: ignore[call-arg]
    "Pool.list": (lambda pool: pool.list("name=a", limt=1), "limit"),  # type: ignore[call-arg]
    "Pool.offer_many": (lambda pool: pool.offer_many([], retenton="1h"), "retention"),  # type: ignore[call-arg]
    "Pool.require": (lambda pool: pool.require("name=a", nme="b"), "name"),  # type: ignore[call-arg]
    "Pool.tally": (lambda pool: pool.tally("name=a", limt=1), "limit"),  # type: ignore[call-arg]
}


@pytest.mark.parametrize("call", AWAITED)
def test_the_nearest_option_of_a_coroutine_is_named(call: str) -> None:
    run, option = AWAITED[call]

    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            await run(pool)

    with pytest.raises(TypeError, match=rf"^{call}\(\) has no option \"\w+\": did you mean {option}\?$"):
        asyncio.run(main())


def test_other_keywords_of_asyncio() -> None:
    with pytest.raises(TypeError, match=r'^Pool\(\) has no option "nme": did you mean name\?$'):
        junctura.aio.Pool(nme="x")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r'^Pool\(\) has no option "colour": it has url, name, schema, start, '):
        junctura.aio.Pool(colour="red")  # type: ignore[call-arg]

    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            with pytest.raises(TypeError, match=r'selector, as in "level=VALUE"; it has selector'):
                await pool.list(level=1)  # type: ignore[call-arg]
            async with pool.follow() as follow:
                with pytest.raises(TypeError, match=r"^Follow\.next\(\) has no option .*timeout\?$"):
                    await follow.next(timout=1)  # type: ignore[call-arg]

    asyncio.run(main())


def made(make: Callable[[], Any]) -> None:
    make()
    gc.collect()


def test_what_is_never_awaited_is_reported() -> None:
    async def main() -> None:
        async with junctura.aio.Pool(schema="free") as pool:
            for make in (pool.follow, pool.subscribe, pool.bundle, lambda: pool.require("name=a")):
                with pytest.warns(RuntimeWarning, match=r"^\w+ was never awaited, so it has no effect"):
                    made(make)
            with warnings.catch_warnings():
                warnings.simplefilter("error")
                async with pool.require("name=a"), pool.follow(), pool.subscribe():
                    pass
                gc.collect()

    asyncio.run(main())


def test_an_allocation_names_its_options() -> None:
    with junctura.Pool(schema="free") as pool:
        with pytest.raises(TypeError, match=r'^Pool.allocate\(\) has no option "shap": did you mean shape\?$'):
            pool.allocate(shap=3)  # type: ignore[call-arg]
        with pytest.raises(TypeError, match=r"has no option .retention.: give it to offer\(\) of the allocation$"):
            pool.allocate(8, retention="1h")  # type: ignore[call-arg]


def test_a_key_with_an_option_with_a_slip() -> None:
    with junctura.Pool(schema="free") as pool, pytest.raises(TypeError, match=r"did you mean timeout\?"):
        pool.demand(name="a", timout=1)
    with junctura.Pool(schema="mars") as pool, pytest.raises(TypeError, match=r"did you mean timeout\?"):
        pool.demand(param="t", timout=1)


def test_a_far_keyword_gets_all_options() -> None:
    with pytest.raises(TypeError, match=r'^Pool\(\) has no option "colour": it has url, name, schema, start, '):
        junctura.Pool(colour="red")  # type: ignore[call-arg]


def test_an_attribute_of_a_call_with_a_selector() -> None:
    message = r'has no option "level": .* selector, as in "level=VALUE"; it has selector'
    with junctura.Pool(schema="free") as pool:
        calls: list[Callable[..., Any]] = [pool.list, pool.follow, pool.tally]
        for call in calls:
            with pytest.raises(TypeError, match=message):
                call(level=1)


def test_conditions_belong_into_the_selector() -> None:
    message = r'as in "name=a, step=VALUE"'
    with junctura.Pool(schema="free") as pool, pytest.raises(junctura.InvalidArgument, match=message):
        pool.demand("name=a", step=6)


def test_an_option_of_create_is_named_by_the_constructor(tmp_path: Path) -> None:
    with pytest.raises(TypeError, match=r"^Store\(\) has no option \"schema\": Store.create\(path, \.\.\.\) has it"):
        junctura.Store(tmp_path / "store", create=True, schema="free")  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Store\(\) has no option \"creat\": did you mean create\?"):
        junctura.Store(tmp_path / "store", creat=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"Store.create\(\) has no option \"shema\": did you mean schema\?"):
        junctura.Store.create(tmp_path / "store", shema="free")  # type: ignore[call-arg]
    store = junctura.Store.create(tmp_path / "store", schema="free")
    with pytest.raises(TypeError, match=r"did you mean all_versions\?"):
        store.list(all_version=True)  # type: ignore[call-arg]
    with pytest.raises(TypeError, match=r"did you mean partial\?"):
        store.retrieve("name=a", partal=True)  # type: ignore[call-arg]
    with junctura.Pool(schema="free") as pool, pytest.raises(TypeError, match=r"did you mean window\?"):
        junctura.Archiver(pool, store, "", windw=1)  # type: ignore[call-arg]


def test_signatures_show_no_unknown_keywords() -> None:
    for call in (junctura.Pool, junctura.Store, junctura.Store.create, junctura.Pool.follow, junctura.Archiver):
        assert "unknown" not in inspect.signature(call).parameters
