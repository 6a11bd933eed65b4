"""The pool that blocks and the pool of asyncio have the same verbs, with the same arguments."""

from __future__ import annotations

import inspect
from typing import Any

import pytest

import junctura

# What one form alone has, and why.
ONE_FORM: dict[str, dict[str, str]] = {
    "Pool": {
        "begin_demand": "a task is what begins a demand",
        "fileno": "the loop watches it",
        "blocking": "the pool that blocks, of a pool of asyncio",
    },
    "Pipeline": {"push": "each offer is sent at once"},
}
# `bundle` opens what both forms use; these make what is opened when it is awaited.
CLASSES = sorted(set(junctura.aio.__all__) - {"Exchange"})


def public(kind: type) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def arguments(call: Any) -> dict[str, tuple[Any, Any]]:
    """Kind and default of each argument; defaults that no literal states are left out."""
    parameters = list(inspect.signature(call).parameters.values())
    return {
        one.name: (one.kind, None if one.default in (..., ()) else one.default)
        for one in parameters
        if one.name != "self"
    }


@pytest.mark.parametrize("name", CLASSES)
def test_both_forms_have_the_same_names(name: str) -> None:
    blocking, awaited = public(getattr(junctura, name)), public(getattr(junctura.aio, name))
    assert blocking ^ awaited == set(ONE_FORM.get(name, {}))


@pytest.mark.parametrize("name", CLASSES)
def test_both_forms_take_the_same_arguments(name: str) -> None:
    blocking, awaited = getattr(junctura, name), getattr(junctura.aio, name)
    for verb in sorted(public(blocking) & public(awaited)):
        ours, theirs = getattr(awaited, verb), getattr(blocking, verb)
        if callable(theirs):
            assert arguments(ours) == arguments(theirs), verb
    if name == "Pool":
        assert arguments(awaited) == arguments(blocking)


def test_the_exchange_has_the_same_names() -> None:
    assert public(junctura.Exchange) == public(junctura.aio.Exchange)
