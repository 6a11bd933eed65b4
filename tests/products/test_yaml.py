"""YAML with the place of every value: what it means, what is refused and on which line, and that nothing else comes."""

from __future__ import annotations

import contextlib
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import junctura
from junctura._document.located_yaml import Wrong, documents, nearest, plain, read
from junctura._document.validation import KnownMapping, ListOf, Number

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=200)


@pytest.mark.parametrize(
    ("text", "means"),
    [
        ("no", "no"),
        ("yes", "yes"),
        ("on", "on"),
        ("12:30", "12:30"),
        ("0600", "0600"),
        ("0001", "0001"),
        ("2026-11-20", "2026-11-20"),
        ("0/to/240/by/6", "0/to/240/by/6"),
        ("1_000", "1_000"),
        ("0x10", "0x10"),
        ("2t", "2t"),
        (".inf", ".inf"),
        ("1e999", "1e999"),
        ("9" * 40, "9" * 40),
        ("850", 850),
        ("-25", -25),
        ("+5", 5),
        ("0.25", 0.25),
        ("1e5", 1e5),
        ("-1.5e-3", -1.5e-3),
        ("true", True),
        ("false", False),
        ("null", None),
        ("~", None),
    ],
)
def test_plain_values_mean_what_they_look_like(text: str, means: object) -> None:
    (document,) = documents(f"a: {text}\n".encode(), "f")
    assert document.value == {"a": means}
    assert type(document.value["a"]) is type(means)


def test_a_quoted_value_is_a_text() -> None:
    (document,) = documents(b"a: '850'\nb: \"true\"\nc: |\n  x\n", "f")
    assert document.value == {"a": "850", "b": "true", "c": "x\n"}


def test_a_word_that_yaml_1_1_takes_for_a_truth_is_a_key() -> None:
    (document,) = documents(b"{n: 320, y: 1, on: 2}", "f")
    assert document.value == {"n": 320, "y": 1, "on": 2}


def test_places_are_kept() -> None:
    (document,) = documents(b"a: 1\nb:\n  - c\n  - d: 2\n    e:\n      f\n", "f")
    assert document.value == {"a": 1, "b": ["c", {"d": 2, "e": "f"}]}
    assert [document.line(place) for place in ((), ("a",), ("b",), ("b", 0), ("b", 1), ("b", 1, "e"))] == [
        1,
        1,
        2,
        3,
        4,
        5,
    ]
    assert document.line(("b", 1, "not there", "nor this")) == 4
    assert str(document.error(Wrong("is wrong", "b", 1, "d"))) == "f:4: b.d: is wrong"
    assert str(document.error(Wrong("is wrong"))) == "f:1: is wrong"


def test_a_file_may_have_several_documents() -> None:
    found = documents(b"a: 1\n---\nb: 2\n...\n---\n- 3\n", "f")
    assert [document.value for document in found] == [{"a": 1}, {"b": 2}, [3]]
    assert [document.line() for document in found] == [1, 3, 6]


def test_nothing_has_no_documents() -> None:
    assert documents(b"", "f") == []
    assert documents(b"# only words\n", "f") == []
    assert [document.value for document in documents(b"---\n", "f")] == [None]


def test_a_byte_order_mark_is_no_part_of_the_text() -> None:
    assert documents("\ufeffa: 1\n".encode(), "f")[0].value == {"a": 1}


@pytest.mark.parametrize(
    ("text", "line", "says"),
    [
        (b"a: 1\nb: &x 2\n", 2, "anchors"),
        (b"a: 1\nb: *x\n", 2, "aliases"),
        (b"<<: *x\n", 1, "aliases"),
        (b"a:\n  - !!python/object:os.system x\n", 2, "tags"),
        (b"a: !!str 1\n", 1, "tags"),
        (b"a: !!binary aGVsbG8=\n", 1, "tags"),
        (b"a: 1\nb: 2\na: 3\n", 3, '"a" stands there twice, first on line 1'),
        (b"a: 1\n? [b]\n: 2\n", 2, "a key is a word"),
        (b"a: 1\nb: [1\n", 3, "not YAML"),
        (b"a: 1\n\tb: 2\n", 2, "not YAML"),
        (b"a: 1\nb: 'x\n", 3, "not YAML"),
        (b"a: 1\nb: \x01\n", 2, "a character that no text has"),
        (b"a: 1\nb: \xff\n", 2, "not UTF-8"),
        ("a: 1".encode("utf-16"), 1, "not UTF-8"),
        (b"[" * 100, 1, "nested deeper"),
        (b"a:\n" + b"".join(b" " * (4 * depth) + b"- x:\n" for depth in range(20)), 18, "nested deeper"),
        (b"%YAML 3.0\n---\na: 1\n", 1, "not YAML"),
    ],
)
def test_what_is_refused_names_its_line(text: bytes, line: int, says: str) -> None:
    with pytest.raises(junctura.InvalidArgument) as caught:
        documents(text, "dir/f.yaml")
    assert caught.value.subject == f"dir/f.yaml:{line}"
    assert says in caught.value.cause


def test_what_is_too_large_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "large.yaml"
    path.write_bytes(b"# " + b"x" * (4 << 20))
    with pytest.raises(junctura.LimitExceeded, match=r"large\.yaml"):
        read(path)
    path.write_bytes(b"#" + b"x" * ((4 << 20) - 1))
    assert read(path) == []


def test_values_documents_and_named_mistakes_are_limited() -> None:
    with pytest.raises(junctura.InvalidArgument, match="more than 250000 values"):
        documents(b"a: [" + b"1," * 250_001 + b"]\n", "f")
    with pytest.raises(junctura.InvalidArgument, match="more than 10000 documents"):
        documents(b"---\n" * 10_001, "f")
    record = KnownMapping({"known": Number()})
    with pytest.raises(Wrong) as caught:
        record.check({f"k{number}": 1 for number in range(1000)})
    assert len(caught.value.each()) == 100
    assert caught.value.others[-1].cause == "901 more keys are not known here"
    with pytest.raises(Wrong) as caught:
        ListOf(Number()).check(["no"] * 1000)
    assert caught.value.others[-1].cause == "900 more mistakes"


def test_a_file_that_is_not_there_is_named(tmp_path: Path) -> None:
    with pytest.raises(junctura.NotFound, match="nothing"):
        read(tmp_path / "nothing.yaml")
    with pytest.raises(junctura.Io):
        read(tmp_path)
    with pytest.raises(junctura.Io):
        read("a\0b")


def test_the_nearest_word_is_said() -> None:
    assert nearest("ensembel", ["ensemble", "grid"]) == '; did you mean "ensemble"?'
    assert nearest("xyz", ["ensemble", "grid"]) == "; known are ensemble, grid"
    assert nearest("x", []) == ""


@pytest.mark.parametrize(
    ("word", "known", "meant"),
    [
        ("shortName", ["param", "step"], "param"),
        ("nc", ["grib2", "netcdf"], "netcdf"),
        ("retries", ["attempts", "resources"], "attempts"),
        ("name", ["product", "from"], "product"),
        # What is known itself is nearer than what others call so.
        ("members", ["member", "step"], "member"),
    ],
)
def test_words_of_other_tools_are_understood(word: str, known: list[str], meant: str) -> None:
    assert nearest(word, known) == f'; did you mean "{meant}"?'


def loaded(content: bytes) -> None:
    with contextlib.suppress(junctura.Error):
        documents(content, "f")


@FIXED
@given(st.binary(max_size=200))
def test_any_bytes_are_read_or_refused(content: bytes) -> None:
    loaded(content)


@FIXED
@given(st.text(alphabet="{}[]:,-?&*!|>'\"%@`#~ \n\tab01.\\<=", max_size=80))
def test_any_punctuation_is_read_or_refused(text: str) -> None:
    loaded(text.encode())


@FIXED
@given(st.text(max_size=40))
def test_any_text_means_something(text: str) -> None:
    assert plain(text) is None or isinstance(plain(text), str | int | float | bool)
