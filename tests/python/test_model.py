"""The model through Python: keys and selectors of an independent implementation, where at hand, and our own."""

from __future__ import annotations

import datetime
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import junctura

ROOT = Path(__file__).resolve().parents[2]
FORMATS = ROOT / "docs/formats"
INDEPENDENT = ROOT.parent / "shared/vectors/model"
needs_independent = pytest.mark.skipif(not INDEPENDENT.is_dir(), reason="the independent vectors are not here")


def load(path: Path) -> Any:
    return json.loads(path.read_text())


def schema_of(given: str | list[str]) -> junctura.Schema:
    """A built-in schema by its name, or the lines of one."""
    return junctura.Schema.builtin(given) if isinstance(given, str) else junctura.Schema.from_yaml("\n".join(given))


def independent_schema(**changes: str) -> junctura.Schema:
    text = (INDEPENDENT / "schema.yaml").read_text()
    return junctura.Schema.from_yaml(text + "".join(f"{name}: {value}\n" for name, value in changes.items()))


def independent_cases() -> list[dict[str, Any]]:
    """Steps before the base time became values after these vectors were written (WMO regulation 92.6.3)."""
    cases = load(INDEPENDENT / "keys.json")
    return [case for case in cases if not str(case["attributes"].get("step", "")).startswith("-")]


def outcome(call: Callable[..., Any], *arguments: Any) -> Any:
    """What it returns, or the name of the error."""
    try:
        return call(*arguments)
    except junctura.Error as error:
        return {"error": error.code}


def test_our_own_keys() -> None:
    for part in load(FORMATS / "key-vectors.json")["sets"]:
        schema = schema_of(part["schema"])
        for case in part["cases"]:
            attributes = case["attributes"]
            wanted = case.get("key", {"error": case.get("error")})
            assert outcome(schema.key, attributes) == wanted, attributes
            if "hash" in case:
                assert schema.key_hash(attributes) == case["hash"]


@needs_independent
def test_independent_keys() -> None:
    schema = independent_schema()
    cases = independent_cases()
    assert len(cases) >= 140
    for case in cases:
        assert outcome(schema.key, case["attributes"]) == case["key"], case


@needs_independent
def test_independent_keys_through_a_pool() -> None:
    schema = independent_schema(same_key="supersede")
    with junctura.Pool(schema=schema) as pool:

        def offered(attributes: dict[str, Any]) -> str:
            version = pool.offer(b"", attributes)
            obj = pool.demand(schema.key(attributes), timeout=0)
            assert obj.version == version
            # What is given back can be offered again.
            assert schema.key(obj.attributes) == obj.key
            return obj.key

        for case in independent_cases():
            assert outcome(offered, case["attributes"]) == case["key"], case


@needs_independent
def test_independent_selectors() -> None:
    schema = independent_schema()
    vectors = load(INDEPENDENT / "selectors.json")
    objects, cases = vectors["objects"], vectors["selectors"]
    assert len(cases) >= 265

    def matches(text: str) -> list[int]:
        selector = junctura.Selector(text, schema)
        assert junctura.Selector(str(selector), schema) == selector
        assert selector.explain() is not None
        return [at for at, attributes in enumerate(objects) if selector.matches(attributes)]

    for case in cases:
        wanted = case.get("matches", {"error": case.get("error")})
        assert outcome(matches, case["selector"]) == wanted, case["selector"]


@needs_independent
def test_independent_selectors_through_a_pool() -> None:
    schema = independent_schema()
    vectors = load(INDEPENDENT / "selectors.json")
    objects, cases = vectors["objects"], vectors["selectors"]
    with junctura.Pool(schema=schema) as pool:
        # Objects of the same key are versions of one object: the newest is the one that is there.
        newest = {}
        for at, attributes in enumerate(objects):
            newest[schema.key(attributes)] = at
            pool.offer(str(at).encode(), attributes)
        there = set(newest.values())

        def listed(text: str) -> list[int]:
            return sorted(newest[entry.key] for entry in pool.list(text))

        def followed(text: str) -> list[int]:
            with pool.follow(text, until_live=True) as follow:
                return sorted(int(bytes(obj)) for obj in follow)

        for case in cases:
            matches = case.get("matches")
            wanted = {"error": case["error"]} if matches is None else sorted(there.intersection(matches))
            assert outcome(listed, case["selector"]) == wanted, case["selector"]
            assert outcome(followed, case["selector"]) == wanted, case["selector"]


def test_our_own_selectors() -> None:
    for part in load(FORMATS / "selector-vectors.json")["sets"]:
        schema = schema_of(part["schema"])
        for case in part["selectors"]:
            if "error" in case:
                assert outcome(junctura.Selector, case["selector"], schema) == {"error": case["error"]}
                continue
            selector = junctura.Selector(case["selector"], schema)
            matching = [at for at, given in enumerate(part["objects"]) if selector.matches(given)]
            assert matching == case["matches"], case["selector"]
            assert str(selector) == case.get("printed", str(selector))
            assert selector.explain() == case.get("explained", selector.explain())


def test_a_schema_describes_itself() -> None:
    schema = junctura.Schema.builtin("free")
    assert (schema.name, schema.is_open, schema.key_attributes) == ("free", True, ["space", "name"])
    assert schema.attributes["shape"] == "list of integer"
    assert len(schema.fingerprint) == 32
    again = junctura.Schema.from_yaml(schema.to_yaml())
    assert again == schema
    assert hash(again) == hash(schema)
    assert set(junctura.Schema.BUILTIN_NAMES) == {"mars", "record", "rowcol", "mesh", "netcdf", "free"}


def test_a_key_reads_back_typed() -> None:
    schema = junctura.Schema.builtin("mars")
    attributes = {
        "class": "od",
        "stream": "enfo",
        "date": "20261120",
        "time": 0,
        "type": "pf",
        "levtype": "pl",
        "number": 3,
        "levelist": 0.5,
        "param": "t",
    }
    read = schema.parse_key(schema.key(attributes))
    assert (read["number"], read["levelist"], read["step"], read["time"]) == (3, 0.5, "0", "0000")
    with pytest.raises(junctura.Error):
        schema.parse_key("{nonsense")


def test_relative_dates_need_a_today() -> None:
    with pytest.raises(junctura.InvalidSelector):
        junctura.Selector("date=-1")
    selector = junctura.Selector("date=-1", today=datetime.date(2026, 3, 1))
    assert str(selector) == "date=20260228"


def test_a_mars_request_is_a_selector() -> None:
    selector = junctura.Selector("RETRIEVE,CLASS=od,LEVEL=500/850,PARAM=t")
    assert str(selector) == "class=od,levelist=500/850,param=t"
