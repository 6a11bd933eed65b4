"""The order of tasks and the drawing of it: any graph without a circle has one, and the drawing can be read back."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from junctura._document.located_yaml import Wrong
from junctura.workflow._spec.graph import Graph
from junctura.workflow._spec.tasks import Start, Task
from junctura.workflow._view.graph_drawing import in_columns, rails

FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=200)


def task(name: str, after: Sequence[str] = (), of: str = "", service: bool = False, users: Sequence[str] = ()) -> Task:
    start = Start(after=tuple(after))
    return Task(name, of or name, ("true",), Path(), service=service, users=tuple(users), start=start)


def ordered(*tasks: Task) -> list[str]:
    return [one.name for one in Graph(tasks).ordered()]


@st.composite
def without_circles(draw: st.DrawFn) -> list[Task]:
    """Tasks in any order of the file, each waiting for some that were made before it."""
    count = draw(st.integers(1, 12))
    made = [
        task(
            str(number),
            draw(st.lists(st.sampled_from([str(one) for one in range(number)]), max_size=3)) if number else (),
        )
        for number in range(count)
    ]
    return draw(st.permutations(made))


def test_tasks_stand_as_in_the_file_where_nothing_is_said() -> None:
    assert ordered(task("c"), task("a"), task("b")) == ["c", "a", "b"]


def test_a_task_stands_behind_those_it_waits_for() -> None:
    assert ordered(task("c", ["b"]), task("a"), task("b", ["a"])) == ["a", "b", "c"]


def test_a_name_of_the_file_is_all_its_tasks() -> None:
    members = [task(f"m-{number}", of="m") for number in range(3)]
    assert ordered(task("end", ["m"]), *members) == ["m-0", "m-1", "m-2", "end"]
    assert ordered(task("end", ["m-1"]), *members) == ["m-0", "m-1", "end", "m-2"]


def test_tasks_of_one_name_may_wait_for_each_other() -> None:
    chain = [task("m-0", of="m"), task("m-1", ["m-0"], of="m"), task("m-2", ["m-1"], of="m")]
    assert ordered(*reversed(chain)) == ["m-0", "m-1", "m-2"]


@FIXED
@given(without_circles())
def test_any_graph_without_a_circle_has_an_order(tasks: list[Task]) -> None:
    found = Graph(tasks).ordered()
    assert sorted(one.name for one in found) == sorted(one.name for one in tasks)
    places = {one.name: index for index, one in enumerate(found)}
    assert all(places[other] < places[one.name] for one in tasks for other in one.start.after)


@FIXED
@given(without_circles(), st.data())
def test_a_circle_is_named_by_its_path(tasks: list[Task], data: st.DataObject) -> None:
    last = data.draw(st.sampled_from(tasks))
    waits = {one.name: set(one.start.after) for one in tasks}
    behind = {last.name}
    while more := {name for name in behind for name in waits[name]} - behind:
        behind |= more
    first = data.draw(st.sampled_from(sorted(behind)))
    circled = [task(one.name, (*one.start.after, last.name)) if one.name == first else one for one in tasks]
    waits[first].add(last.name)
    with pytest.raises(Wrong, match="waits for") as caught:
        Graph(circled).ordered()
    cause = caught.value.cause.partition(";")[0]
    if cause.endswith("itself"):
        assert cause.split()[0] in waits[cause.split()[0]]
    elif "..." not in cause:
        path = cause.replace(", which waits for ", " waits for ").split(" waits for ")
        assert path[0] == path[-1]
        assert all(other in waits[one] for one, other in itertools.pairwise(path))


@pytest.mark.parametrize(
    ("tasks", "cause", "place"),
    [
        ([task("a", ["a"])], "a waits for itself", ("tasks", "a", "start", "after")),
        (
            [task("c", ["a"]), task("a", ["b"]), task("b", ["a"])],
            "a waits for b, which waits for a",
            ("tasks", "a", "start", "after"),
        ),
        (
            [task("a", ["m"]), task("m-0", of="m"), task("m-1", ["a"], of="m")],
            "a waits for m-1, which waits for a",
            ("tasks", "a", "start", "after"),
        ),
        (
            [task("abc"), task("b", ["abd"])],
            'there is no task "abd"; did you mean "abc"',
            ("tasks", "b", "start", "after", 0),
        ),
        ([task("m-2"), task("m-2", of="m")], 'called "m-2", and so is a task of "m-2"', ("tasks", "m")),
        ([task("m-2", of="m"), task("m-2")], 'called "m-2", and so is a task of "m"', ("tasks", "m-2")),
        ([task("s", service=True, users=["x"]), task("y")], 'there is no task "x"', ("tasks", "s", "users", 0)),
        ([task("s", service=True)], "there are services only", ("tasks", "s")),
        ([task("s", ["a"], service=True), task("a")], "it waits for all tasks", ("tasks", "s")),
        (
            [task("s", ["b"], service=True, users=["a"]), task("a"), task("b", ["a"])],
            'it waits for "a", for which it is to run',
            ("tasks", "s", "users"),
        ),
        (
            [task("s", service=True, users=["t"]), task("t", service=True, users=["s"]), task("a")],
            "s runs until the end of t, which runs until the end of s",
            ("tasks", "s", "users"),
        ),
        ([task("s", service=True, users=["s"]), task("a")], "s runs until the end of itself", ("tasks", "s", "users")),
    ],
)
def test_what_could_not_end_is_refused(tasks: list[Task], cause: str, place: object) -> None:
    with pytest.raises(Wrong, match=cause) as caught:
        Graph(tasks).ordered()
    assert caught.value.place == place


def test_services_may_run_for_each_other_in_a_line() -> None:
    tasks = [task("s", service=True, users=["t"]), task("t", ["s"], service=True, users=["a"]), task("a", ["t"])]
    assert ordered(*tasks) == ["s", "t", "a"]
    assert ordered(task("s", ["a"], service=True), task("a"), task("b")) == ["a", "s", "b"]


def test_a_long_circle_is_not_written_out() -> None:
    many = [task(str(number), [str((number + 1) % 1000)]) for number in range(1000)]
    with pytest.raises(Wrong) as caught:
        Graph(many).ordered()
    assert caught.value.cause.startswith("0 waits for 1, which waits for 2")
    assert caught.value.cause.endswith(
        "which waits for ..., which waits for 999, which waits for 0; remove one of these"
    )


def test_many_tasks_that_wait_for_many_are_quick() -> None:
    sides = [
        [task(f"{of}-{number}", after, of=of) for number in range(3000)] for of, after in (("a", ()), ("b", ["a"]))
    ]
    assert [one.of for one in Graph([*sides[1], *sides[0]]).ordered()] == ["a"] * 3000 + ["b"] * 3000


def test_a_drawing() -> None:
    assert rails([(), (0,), (0, 1)]) == ["╭──── ", "├─┬─▶ ", "╰─┴─▶ "]
    assert rails([(), ()]) == ["", ""]
    assert rails([]) == []


@FIXED
@given(st.lists(st.integers(0, 255), max_size=8))
def test_what_is_drawn_can_be_read_back(masks: list[int]) -> None:
    waits = [{other for other in range(row) if mask >> other & 1} for row, mask in enumerate(masks)]
    drawn = rails(waits)
    if not any(waits):
        assert drawn == [""] * len(waits)
        return
    assert [_read(drawn, row) for row in range(len(drawn))] == waits
    assert [line.rstrip().endswith("▶") for line in drawn] == [bool(before) for before in waits]


def _read(drawn: list[str], row: int) -> set[int]:
    """From which rows lines lead to this one."""
    found = set()
    for column, sign in enumerate(drawn[row]):
        if sign in "├┼╰┴":
            # Straight up to where it begins.
            above = next(other for other in range(row - 1, -1, -1) if drawn[other][column] in "╭┬")
            assert all(drawn[other][column] in "│├┼" for other in range(above + 1, row))
            found.add(above)
    return found


def test_too_much_to_look_at_is_not_drawn() -> None:
    rows: list[tuple[int, ...]] = [()] * 40 + [tuple(range(40))]
    assert rails(rows) == [""] * 41


def test_columns_that_are_empty_are_left_out() -> None:
    assert in_columns([{"a": "x", "b": "", "c": "1"}, {"a": "long", "b": "", "c": ""}]) == ["x     1", "long"]
    assert in_columns([]) == []
