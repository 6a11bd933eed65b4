"""Probable mistakes in selectors: warnings about attributes and values that nothing matches."""

from __future__ import annotations

import asyncio
import warnings
from collections.abc import Callable
from typing import Any

import pytest

import junctura
import junctura.aio

WRONG = "class=od,parm=t"
SLIP = r'class=od,parm=t: no object has the attribute "parm"; did you mean param \(schema mars\)\?'

# Every call that reads by a selector.
CALLS: dict[str, Callable[[junctura.Pool, str], Any]] = {
    "follow": lambda pool, selector: pool.follow(selector),
    "follow in a group": lambda pool, selector: pool.follow(selector, group="workers"),
    "list": lambda pool, selector: pool.list(selector),
    "tally": lambda pool, selector: pool.tally(selector),
    "require": lambda pool, selector: pool.require(selector),
    "subscribe": lambda pool, selector: pool.subscribe(selector),
    "withdraw_all": lambda pool, selector: pool.withdraw_all(selector),
    "begin_demand": lambda pool, selector: pool.begin_demand(selector),
    "demand": lambda pool, selector: _demanded(pool.demand, selector),
}


def _demanded(demand: Callable[..., Any], selector: str) -> None:
    with pytest.raises(junctura.NotFound):
        demand(selector, timeout=0)


async def _awaited_demand(pool: junctura.aio.Pool, selector: str) -> None:
    with pytest.raises(junctura.NotFound):
        await pool.demand(selector, timeout=0)


async def _opened(source: Any) -> None:
    await source
    if hasattr(source, "close"):
        await source.close()


AWAITED: dict[str, Callable[[junctura.aio.Pool, str], Any]] = {
    "follow": lambda pool, selector: _opened(pool.follow(selector)),
    "list": lambda pool, selector: pool.list(selector),
    "tally": lambda pool, selector: pool.tally(selector),
    "require": lambda pool, selector: _opened(pool.require(selector)),
    "subscribe": lambda pool, selector: _opened(pool.subscribe(selector)),
    "withdraw_all": lambda pool, selector: pool.withdraw_all(selector),
    "demand": _awaited_demand,
}


def _await(pool: junctura.Pool, call: Callable[[junctura.aio.Pool, str], Any], selector: str) -> None:
    async def main() -> None:
        async with junctura.aio.Pool(pool) as awaited:
            await call(awaited, selector)

    asyncio.run(main())


def messages(run: Callable[[], Any]) -> list[str]:
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        run()
    return [str(one.message) for one in caught if issubclass(one.category, junctura.SelectorWarning)]


@pytest.mark.parametrize("call", CALLS)
def test_a_misspelled_attribute_is_reported_once(call: str) -> None:
    with junctura.Pool() as pool:
        with pytest.warns(junctura.SelectorWarning, match=SLIP):
            CALLS[call](pool, WRONG)
        assert messages(lambda: CALLS[call](pool, WRONG)) == []


@pytest.mark.parametrize("call", AWAITED)
def test_a_misspelled_attribute_is_reported_by_coroutines(call: str) -> None:
    with junctura.Pool() as pool:
        with pytest.warns(junctura.SelectorWarning, match=SLIP):
            _await(pool, AWAITED[call], WRONG)
        assert messages(lambda: _await(pool, AWAITED[call], WRONG)) == []


@pytest.mark.parametrize("call", CALLS)
def test_a_value_that_its_schema_cannot_read_is_reported(call: str) -> None:
    with junctura.Pool() as pool, pytest.warns(junctura.SelectorWarning, match=r'schema mars: step: "six" is no step'):
        CALLS[call](pool, "step=six")


CFD = """
name: cfd
key: {dataset: [case], collocation: [step], element: [variable]}
attributes:
  case: {type: string}
  step: {type: integer, range: [0, 1000]}
  variable: {type: string, values: [p, u, v]}
"""


@pytest.mark.parametrize("call", ["follow", "list", "tally", "withdraw_all", "demand"])
def test_a_value_that_its_schema_does_not_allow_is_reported(call: str) -> None:
    allowed = r"\(the schema allows p, u, v\); did you mean p\?"
    with junctura.Pool(schema=[junctura.Schema.from_yaml(CFD), "free"]) as pool:
        with pytest.warns(junctura.SelectorWarning, match=r'variable=P: variable: "P" is not allowed ' + allowed):
            CALLS[call](pool, "variable=P")
        with pytest.warns(
            junctura.SelectorWarning, match=r"step: .*2000.* is not allowed \(the schema allows 0 to 1000"
        ):
            CALLS[call](pool, "variable=p,step=2000")
        for right in ("variable=u/v,step=1000", "not variable=P", "variable~P"):
            assert messages(lambda right=right: CALLS[call](pool, right)) == []  # type: ignore[misc]
        pool.offer(b"", schema="free", name="a", variable="Q")
        assert messages(lambda: pool.follow("variable=Q")) == []


@pytest.mark.parametrize("call", CALLS)
@pytest.mark.parametrize("selector", ["", "class=od,param=t", "unit=K", "name=a", "step=6"])
def test_a_selector_without_a_mistake_is_not_reported(call: str, selector: str) -> None:
    with junctura.Pool() as pool:
        if selector:
            assert messages(lambda: CALLS[call](pool, selector)) == []


def test_an_attribute_that_an_object_has_is_no_mistake() -> None:
    with junctura.Pool() as pool:
        pool.offer(b"", schema="free", name="a", parm="t")
        assert messages(lambda: pool.follow("parm=u")) == []
        assert messages(lambda: pool.list("parm=w")) == []


def test_selectors_that_differ_in_digits_count_as_one() -> None:
    with junctura.Pool() as pool:
        found = messages(lambda: [pool.list(f"parm=t,step={step}") for step in range(12)])
        assert len(found) == 1
        assert len(messages(lambda: pool.list("param=t,leveltist=5"))) == 1


VALUES: dict[str, Callable[[junctura.Pool, str], Any]] = {
    "list": lambda pool, selector: pool.list(selector),
    "withdraw_all": lambda pool, selector: pool.withdraw_all(selector),
    "list of a coroutine": lambda pool, selector: _await(pool, AWAITED["list"], selector),
    "withdraw_all of a coroutine": lambda pool, selector: _await(pool, AWAITED["withdraw_all"], selector),
}


@pytest.mark.parametrize("call", VALUES)
def test_a_misspelled_value_is_reported_once(call: str) -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"", space="fields", name="step-6", param="t2m")
        found = messages(lambda: VALUES[call](pool, "space=filds,param=t2m"))
        assert found == ["space=filds,param=t2m: nothing matches space=filds; did you mean space=fields?"]
        assert messages(lambda: VALUES[call](pool, "space=filds,param=t2m")) == []
        # Another member of a series, another value, and one that another condition excludes.
        for absent in ("name=step-7", "space=ocean", "space=fields,param=z"):
            assert messages(lambda absent=absent: VALUES[call](pool, absent)) == []  # type: ignore[misc]
        assert len(pool.list()) == 1


def test_a_demand_names_the_nearest_value() -> None:
    with junctura.Pool(schema="free") as pool:
        pool.offer(b"", space="fields", name="a")
        with pytest.raises(junctura.Timeout, match=r"did you mean space=fields\?"):
            pool.demand("space=filds", timeout=0.01)


def test_a_warning_can_be_an_error() -> None:
    with junctura.Pool() as pool, warnings.catch_warnings():
        warnings.simplefilter("error", junctura.SelectorWarning)
        with pytest.raises(junctura.SelectorWarning):
            pool.demand("parm=t")


def test_a_store_reports_mistakes() -> None:
    with junctura.Store.create("memory:mistakes", schema=["mars", "free"]) as store:
        with pytest.warns(junctura.SelectorWarning, match=SLIP):
            assert len(store.list(WRONG)) == 0
        assert messages(lambda: store.list("class=od,param=t")) == []
        assert messages(lambda: store.list(WRONG, after=0)) == []
        store.archive(b"", schema="free", name="a", parm="t")
        store.flush()
        assert messages(lambda: store.list("parm=u")) == []
