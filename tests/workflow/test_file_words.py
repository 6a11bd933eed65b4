"""Words in braces, sweeps, sizes and times: what they mean, and that filling in at two times is filling in once."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura._document.located_yaml import Wrong
from junctura._document.sizes import bytes_of, seconds_of, shown_bytes, shown_seconds
from junctura.workflow._spec.matrix import combinations
from junctura.workflow._spec.placeholders import (
    as_name,
    check,
    displayed,
    escaped,
    fill,
    fill_some,
    instance,
    words,
    written,
)

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=200)
WORDS = ("member", "pool", "step")
texts = st.text(alphabet=st.characters(codec="utf-8", exclude_characters="\0"), max_size=20)
values = st.dictionaries(st.sampled_from(WORDS), texts | st.integers() | st.booleans(), max_size=3)
templates = st.lists(texts.map(escaped) | st.sampled_from([f"{{{word}}}" for word in WORDS])).map("".join)


@pytest.mark.parametrize(
    ("template", "means"),
    [
        ("{member}", "7"),
        ("{member:03}", "007"),
        ("{member:3}", "  7"),
        ("m{member}/{pool}", "m7/unix:x"),
        ("{{member}}", "{member}"),
        ('{{"a": {member}}}', '{"a": 7}'),
        ("{flag}", "true"),
        ("", ""),
    ],
)
def test_words_are_filled_in(template: str, means: str) -> None:
    assert fill(template, {"member": 7, "pool": "unix:x", "flag": True}) == means


@pytest.mark.parametrize(
    "template", ["{", "}", "{}", "{ member}", "{member:x}", "{member:0}", "{0}", "{a}}", '{"a": 1}']
)
def test_what_is_no_word_in_braces_is_refused(template: str) -> None:
    with pytest.raises(Wrong, match="a brace itself is written twice"):
        words(template)


def test_a_width_is_for_whole_numbers() -> None:
    assert fill("{a:03}", {"a": "-5"}) == "-05"
    for value in ("x", 0.5, True):
        with pytest.raises(Wrong, match=r'"\{a:03\}" is for whole numbers'):
            fill("{a:03}", {"a": value})


def test_an_unknown_word_is_told_with_the_nearest() -> None:
    with pytest.raises(Wrong, match=r'"\{membre\}" is not known; did you mean "member"\?'):
        fill("{membre}", {"member": 1})
    with pytest.raises(Wrong, match=r'did you mean "pool"\?'):
        check("{pol}", ("pool", "run"))
    with pytest.raises(Wrong, match="is known when the task starts, and not here"):
        check("{task}", ("member",), ("task",))
    check("{anything}", None)


@FIXED
@given(texts)
def test_an_escaped_text_means_itself(text: str) -> None:
    assert fill(escaped(text), {}) == displayed(escaped(text), {}) == text


@FIXED
@given(templates, values, values)
def test_what_is_filled_in_at_two_times_is_filled_in_once(
    template: str, early: dict[str, str | int | bool], late: dict[str, str | int | bool]
) -> None:
    late = {**dict.fromkeys(WORDS, ""), **late}
    assert fill(fill_some(template, early), late) == fill(template, late | early)
    assert set(words(fill_some(template, early))) == set(words(template)) - set(early)


def test_what_is_displayed_keeps_words_that_are_not_known() -> None:
    assert displayed("{{{member}}} {step:03} {pool}", {"member": 1}) == "{1} {step:03} {pool}"


def test_a_task_is_called_by_its_values() -> None:
    assert instance("member", {}) == "member"
    assert instance("member", {"n": 3, "model": "icon", "on": False}) == "member-3-icon-false"
    assert instance("a", {"s": "param=t/u, 2"}) == "a-param=t_u,_2"


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("0/to/3", [0, 1, 2, 3]),
        ("3/to/0", [3, 2, 1, 0]),
        ("0/to/24/by/12", [0, 12, 24]),
        ("0/to/1/by/0.25", [0, 0.25, 0.5, 0.75, 1]),
        ("-1/to/1", [-1, 0, 1]),
        ("5/to/5", [5]),
        (["0/to/2", 10, "x"], [0, 1, 2, 10, "x"]),
        ([True, False], [True, False]),
        ("data/one", ["data/one"]),
        (["from/to", "a/to/b"], ["from/to", "a/to/b"]),
        (0.5, [0.5]),
    ],
)
def test_values_of_a_sweep(said: object, means: list[object]) -> None:
    assert [one["n"] for one in combinations({"n": said})] == means


def test_several_words_have_all_combinations_the_first_slowest() -> None:
    found = combinations({"model": ["a", "b"], "n": "1/to/3"}, [{"model": "a", "n": 2}, {"n": 3}])
    assert [tuple(one.values()) for one in found] == [("a", 1), ("b", 1), ("b", 2)]


@FIXED
@given(
    st.dictionaries(st.sampled_from("abc"), st.lists(st.integers(), min_size=1, max_size=4, unique=True), min_size=1)
)
def test_combinations_are_those_of_itertools(matrix: dict[str, list[int]]) -> None:
    found = combinations(matrix)
    assert [tuple(one.values()) for one in found] == list(itertools.product(*matrix.values()))
    first = found[0]
    if len(found) > 1:
        left = combinations(matrix, [first])
        assert left == found[1:]


@pytest.mark.parametrize(
    ("matrix", "exclude", "cause", "place"),
    [
        ({"n": "0/to/x"}, [], '"0/to/x": a range is a/to/b', ("matrix", "n")),
        ({"n": "0/to/5/by/0"}, [], "0 is no number to go on by", ("matrix", "n")),
        ({"n": "0/to/9/by/"}, [], "a range is", ("matrix", "n")),
        ({"n": [1, "0/to/1"]}, [], "1 stands there twice", ("matrix", "n", 1)),
        ({"n": [1, "1"]}, [], '"1" stands there twice', ("matrix", "n", 1)),
        ({"n": "1/to/100001"}, [], "100001 values, at most 100000", ("matrix", "n")),
        ({"n": "1/to/1000", "m": "1/to/101"}, [], "101000 tasks, at most 100000", ("matrix",)),
        ({"n": [1, "a\0b"]}, [], "no program can be given", ("matrix", "n", 1)),
        ({"attempt": 1}, [], '"{attempt}" means something else', ("matrix", "attempt")),
        ({"n": 1}, [{"m": 1}], '"m" is not in the matrix', ("exclude", 0, "m")),
        ({"n": [1, 2]}, [{"n": 1}, {"n": 3}], "3 is no value of the matrix", ("exclude", 1, "n")),
        ({"n": [1, 2]}, [{"n": 1}, {"n": "2"}], "no combination is left", ("exclude",)),
    ],
)
def test_what_is_no_sweep_is_refused(matrix: object, exclude: object, cause: str, place: object) -> None:
    with pytest.raises(Wrong, match=cause) as caught:
        combinations(matrix, exclude)  # type: ignore[arg-type]
    assert caught.value.place == place


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("500MiB", 500 << 20),
        ("2GiB", 2 << 30),
        ("1.5 GB", 1_500_000_000),
        (4096, 4096),
        ("17", 17),
        ("1k", 1024),
        ("3B", 3),
    ],
)
def test_sizes(said: str | int, means: int) -> None:
    assert bytes_of(said) == means


@pytest.mark.parametrize(
    ("said", "means"),
    [
        ("10min", 600),
        ("10m", 600),
        ("1.5h", 5400),
        ("250ms", 0.25),
        ("1h30m", 5400),
        ("1 h 30 min", 5400),
        (30, 30),
        ("2 d", 172_800),
        (0.5, 0.5),
    ],
)
def test_times(said: str | float, means: float) -> None:
    assert seconds_of(said) == means


@pytest.mark.parametrize("said", ["", "MiB", "-1MiB", "1e3", "5 apples", "0", "9999999TiB", "1.2.3", "1MiB\n2", True])
def test_what_is_no_size_is_refused(said: str) -> None:
    with pytest.raises(Wrong):
        bytes_of(said)


@pytest.mark.parametrize(
    "said", ["", "min", "-1s", "5 weeks", 0, "0s", "4000d", "1h30q", "MIN", "h1", "1h-30m", "1h30", "9" * 400]
)
def test_what_is_no_time_is_refused(said: str) -> None:
    with pytest.raises(Wrong):
        seconds_of(said)


def test_sizes_and_times_for_people() -> None:
    assert [shown_bytes(count) for count in (17, 500 << 20, 3 << 29)] == ["17 B", "500 MiB", "1.5 GiB"]
    assert [shown_seconds(one) for one in (0.5, 59, 600, 5400, 172_800)] == ["0.5 s", "59 s", "10 min", "1.5 h", "2 d"]


def test_a_truth_is_written_as_in_the_file() -> None:
    assert [written(value) for value in (True, False, 1, 0.5, "x")] == ["true", "false", "1", "0.5", "x"]


def test_names_from_outside_become_names_of_folders() -> None:
    long = [as_name("x" * 900 + end) for end in "ab"]
    for name in (*long, as_name("a/../b"), as_name(".."), as_name("a\0b"), as_name("\u202e")):
        assert len(name) <= 200 and set(name) <= set("abcdefx0123456789._-") and name.strip(".")
    assert long[0] != long[1], "the hash tells them apart"
