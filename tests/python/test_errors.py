"""Errors: one class for each code, each with its words."""

from __future__ import annotations

import pickle
import traceback

import pytest

import junctura
from junctura import _native


def test_there_is_a_class_for_each_code() -> None:
    for name, number, advice in _native.codes():
        error = getattr(junctura, name)
        assert issubclass(error, junctura.Error)
        assert (error.code, error.advice) == (name, advice)
        assert number > 0
    classes = {error.__name__ for error in junctura.Error.__subclasses__()}
    assert classes == {name for name, _, _ in _native.codes()}
    assert classes <= set(junctura.__all__)


@pytest.mark.parametrize("error", junctura.Error.__subclasses__(), ids=lambda error: error.__name__)
def test_each_says_what_and_why(error: type[junctura.Error]) -> None:
    raised = error("subject", "cause", 7)
    assert str(raised) == "subject: cause (at byte 7)"
    # The last line of a traceback has the name once.
    assert traceback.format_exception_only(raised) == [f"{error.__module__}.{error.code}: {raised}\n"]
    assert (raised.subject, raised.cause, raised.position) == ("subject", "cause", 7)
    assert str(error()) == ""
    copy = pickle.loads(pickle.dumps(raised))
    assert type(copy) is error
    assert str(copy) == str(raised)


@pytest.mark.parametrize(
    ("error", "base"),
    [
        (junctura.Timeout, TimeoutError),
        (junctura.NotFound, KeyError),
        (junctura.Gone, KeyError),
        (junctura.InvalidSelector, ValueError),
        (junctura.SchemaMismatch, ValueError),
        (junctura.TypeMismatch, ValueError),
        (junctura.Disconnected, ConnectionError),
        (junctura.Unsupported, NotImplementedError),
        (junctura.Denied, PermissionError),
        (junctura.Io, OSError),
    ],
)
def test_pythons_own_classes_are_bases(error: type[junctura.Error], base: type[Exception]) -> None:
    with pytest.raises(base):
        raise error("a", "b")


def test_a_selector_shows_the_place() -> None:
    with pytest.raises(junctura.InvalidSelector) as raised:
        junctura.Selector("class=od,levelist=abc")
    error = raised.value
    assert error.position == 18
    assert error.picture == "  class=od,levelist=abc\n                    ^"
    assert str(error).endswith(error.picture)


def test_a_pool_that_is_not_there() -> None:
    with pytest.raises(junctura.Unavailable) as raised:
        junctura.Pool("unix:@no-pool-has-this-name")
    assert "no-pool-has-this-name" in raised.value.subject
    with pytest.raises(junctura.InvalidArgument):
        junctura.Pool("carrier-pigeon:roof")


@pytest.mark.parametrize("budget", ["much", "4 elephants", -1, 1.5, ""])
def test_a_budget_that_is_none(budget: object) -> None:
    with pytest.raises(junctura.InvalidArgument):
        junctura.Pool(budget=budget)  # type: ignore[arg-type]


@pytest.mark.parametrize("seconds", [-1.0, float("nan"), float("-inf")])
def test_a_timeout_that_is_none(pool: junctura.Pool, seconds: float) -> None:
    with pytest.raises(junctura.InvalidArgument):
        pool.demand(name="a", timeout=seconds)


def test_a_schema_that_is_none(tmp_path: object) -> None:
    with pytest.raises(junctura.Io):
        junctura.Pool(schema=f"{tmp_path}/missing.yaml")
    with pytest.raises(junctura.Error):
        junctura.Pool(schema="name: x\nkey: 3\n")
    with pytest.raises(junctura.NotFound):
        junctura.Schema.builtin("nothing")
    with pytest.raises(junctura.InvalidArgument):
        junctura.Pool(schema=3)  # type: ignore[arg-type]


def test_schemas_that_differ_between_clients(pool: junctura.Pool) -> None:
    other = junctura.Schema.builtin("free").to_yaml().replace("element: [name]", 'element: ["name?"]')
    with pytest.raises(junctura.SchemaMismatch):
        junctura.Pool(pool.url, schema=other)


def test_a_closed_pool() -> None:
    pool = junctura.Pool(schema="free")
    pool.offer(b"payload", name="a")
    held = pool.demand(name="a")
    pool.close()
    pool.close()
    for call in (lambda: pool.offer(b"", name="b"), pool.list, pool.stat, lambda: pool.demand(name="a")):
        with pytest.raises(junctura.Closed):
            call()
    assert bytes(held) == b"payload"
