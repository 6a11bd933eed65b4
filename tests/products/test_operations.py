"""Arithmetic on fields: statistics as NumPy has them, formulas, units, and what is missing."""

from __future__ import annotations

import itertools
import json
import random
import warnings
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

import junctura
from junctura._document.located_yaml import Wrong
from junctura.products._input.decoded_field import Field
from junctura.products._operations import (
    Compute,
    Crop,
    Ensemble,
    Fill,
    FollowingSteps,
    Keep,
    Mask,
    Method,
    Operation,
    Statistics,
    ToGrid,
    Units,
    Window,
    Winds,
)
from junctura.products._operations._base import combined
from junctura.products._recipe.formulas import formula
from junctura.products._regrid.grids import Grid, grid, points, regular_ll, spectral
from junctura.products._units import canonical, conversion

Floats = npt.NDArray[np.float64]
FIXED = settings(derandomize=True, database=None, deadline=None, max_examples=150)
COARSE = regular_ll(90, 90)
NAN = float("nan")


class Fake:
    """Brings every field to a grid with its mean there, and counts."""

    def __init__(self) -> None:
        self.calls: list[tuple[str, str, str]] = []

    def to_grid(self, field: Field, on: Grid, method: Method) -> Field:
        self.calls.append((field.param, on.name, method))
        return field.having(np.full(on.shape, field.values.mean()), on)

    def located(self, field: Field, latitude: str, longitude: str) -> Field:
        self.calls.append((latitude, longitude, ""))
        return field

    def wind(self, vo: Field, d: Field, on: Grid) -> tuple[Field, Field]:
        self.calls.append(("wind", on.name, ""))
        made = [Field(np.full(on.shape, field.values.sum()), on, dict(vo.attributes)) for field in (vo, d)]
        return made[0], made[1]


def field(values: npt.ArrayLike = 0.0, units: str = "K", on: Grid = COARSE, **attributes: Any) -> Field:
    said = {"param": "t", "step": 6, "levelist": 850, **attributes}
    return Field(np.array(np.broadcast_to(np.asarray(values, np.float64), on.shape)), on, said, units)


def applied(operation: Operation, *fields: Field) -> list[Field]:
    before = [one.values.copy() for one in fields]
    made = operation(fields, Fake())
    for one, values in zip(fields, before, strict=True):
        np.testing.assert_array_equal(one.values, values)
    return made


def one(operation: Operation, *fields: Field) -> Field:
    (made,) = applied(operation, *fields)
    return made


def members(count: int, seed: int = 1) -> list[Field]:
    rng = np.random.default_rng(seed)
    return [
        field(rng.normal(280, 10, COARSE.shape), number=number, type="pf", shortName="t")
        for number in range(1, count + 1)
    ]


ALL = Ensemble.read(
    ["mean", "spread", "min", "max", {"percentile": [0, 10, 50, 90, 100]}, {"probability": {"above": 280}}]
)


@pytest.mark.parametrize("count", [1, 2, 6, 51])
def test_ensemble_statistics_are_those_of_numpy(count: int) -> None:
    fields = members(count)
    stack = np.stack([one.values for one in fields])
    expected = [
        *(of(stack, axis=0) for of in (np.mean, np.std, np.min, np.max)),
        *np.percentile(stack, [0, 10, 50, 90, 100], axis=0),
        100.0 * np.count_nonzero(stack > 280, axis=0) / count,
    ]
    for made, values in zip(applied(ALL, *fields), expected, strict=True):
        np.testing.assert_array_equal(made.values, values, err_msg=str(made.attributes))


@pytest.mark.parametrize("missing", [False, True])
@pytest.mark.parametrize("count", [1, 3, 24])
def test_statistics_over_fields_are_those_of_numpy(count: int, missing: bool) -> None:
    fields = members(count)
    if missing:
        holed = fields[-1].values.copy()
        holed[2, 1] = np.nan
        fields[-1] = fields[-1].having(holed)
    stack = np.stack([one.values for one in fields])
    kinds = ("sum", "mean", "min", "max")
    for kind, values in zip(kinds, combined(fields, [(kind, 0.0) for kind in kinds]), strict=True):
        np.testing.assert_array_equal(values, getattr(np, kind)(stack, axis=0), err_msg=kind)


def test_the_order_in_which_members_come_does_not_matter() -> None:
    fields = members(9)
    made = applied(ALL, *fields)
    for seed in range(3):
        random.Random(seed).shuffle(fields)
        for one_made, other in zip(made, applied(ALL, *fields), strict=True):
            assert one_made.values.tobytes() == other.values.tobytes()
            assert one_made.attributes == other.attributes


def test_a_value_that_one_member_lacks_is_missing_in_each_statistic() -> None:
    fields = members(5)
    holed = fields[2].values.copy()
    holed[1, 2] = np.nan
    fields[2] = fields[2].having(holed)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for made in applied(ALL, *fields):
            assert np.flatnonzero(np.isnan(made.values)).tolist() == [1 * COARSE.shape[1] + 2]


def test_ensemble_statistics_are_named_as_mars_does() -> None:
    operation = Ensemble.read(
        ["mean", "spread", "min", "max", {"percentile": 10}, {"probability": {"at_most": [1, 2.5]}}]
    )
    made = applied(operation, *members(4))
    for one_made in made:
        assert "number" not in one_made.attributes
        assert one_made.attributes["members"] == 4
        assert one_made.attributes["step"] == 6
    assert [one_made.attributes["type"] for one_made in made] == ["em", "es", "pb", "pb", "pb", "ep", "ep"]
    assert [one_made.attributes["statistic"] for one_made in made] == [
        "mean",
        "spread",
        "min",
        "max",
        "percentile",
        "probability",
        "probability",
    ]
    assert [one_made.attributes.get("quantile") for one_made in made[:5]] == [None, None, "0:100", "100:100", "10:100"]
    assert made[4].attributes["percentile"] == 10
    assert [one_made.attributes["threshold"] for one_made in made[5:]] == [1, 2.5]
    assert [one_made.attributes["condition"] for one_made in made[5:]] == ["below", "below"]
    assert [one_made.units for one_made in made] == ["K"] * 5 + ["%"] * 2


@pytest.mark.parametrize(
    ("comparison", "percent"), [("above", 25.0), ("below", 50.0), ("at_least", 50.0), ("at_most", 75.0)]
)
def test_probabilities_are_in_percent_of_the_members(comparison: str, percent: float) -> None:
    fields = [field(value, number=number) for number, value in enumerate([1.0, 2.0, 3.0, 4.0])]
    made = one(Ensemble.read([{"probability": {comparison: 3}}]), *fields)
    assert np.all(made.values == percent)


def test_control_and_perturbed_members_are_one_ensemble() -> None:
    fields = [field(0.0, number=0, type="cf"), field(2.0, number=1, type="pf")]
    assert np.all(one(Ensemble.read(["mean"]), *fields).values == 1)


def test_steps_levels_and_parameters_have_ensembles_of_their_own() -> None:
    fields = [
        field(step + number, number=number, step=step, param=param)
        for step, number, param in itertools.product((0, 6), (1, 3), "tu")
    ]
    made = applied(Ensemble.read(["mean"]), *fields)
    assert [(f.attributes["step"], f.param, f.values[0, 0]) for f in made] == [
        (0, "t", 2),
        (0, "u", 2),
        (6, "t", 8),
        (6, "u", 8),
    ]


@pytest.mark.parametrize(
    ("fields", "says"),
    [
        ([field(number=1), field(number=1)], "a member of the ensemble is there twice"),
        ([field()], "no member of an ensemble"),
        ([field(number=1), field(number=2, on=regular_ll(45, 45))], "field t: it is on 45/45, others are on 90/90"),
        ([field(number=1), field(number=2, units="degC")], "it is in degC, others are in K"),
        ([Field(np.zeros(12), spectral(2), {"param": "t", "number": 1})], "it is spectral"),
    ],
)
def test_members_that_do_not_go_together_are_refused(fields: list[Field], says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        applied(ALL, *fields)


VALUES = st.floats(-1e6, 1e6) | st.just(NAN)


@FIXED
@given(arrays.arrays(np.float64, st.tuples(st.integers(1, 8), st.just(15)), elements=VALUES), st.integers(0, 100))
def test_any_members_have_the_statistics_of_numpy(stack: Floats, percentile: int) -> None:
    fields = [field(values.reshape(3, 5)[:, :4], number=number) for number, values in enumerate(stack)]
    stack = np.stack([one.values for one in fields])
    operation = Ensemble.read(["mean", "spread", "min", "max", {"percentile": percentile}])
    expected = [of(stack, axis=0) for of in (np.mean, np.std, np.min, np.max)]
    expected.append(np.percentile(stack, percentile, axis=0))
    for made, values in zip(applied(operation, *fields), expected, strict=True):
        np.testing.assert_array_equal(made.values, values)


HOURS = [field(float(step), step=step, number=1) for step in range(0, 49, 6)]


def test_statistics_of_windows_leave_their_first_step_to_the_window_before() -> None:
    operation = Statistics.read({"over": "24h", "of": ["mean", "min", "max", "sum", "accumulation", "instant"]}, 0)
    made = applied(operation, *reversed(HOURS))
    assert [(f.attributes["step"], f.attributes["stepType"], f.values[0, 0]) for f in made] == [
        ("0-24", "avg", 15),
        ("0-24", "min", 6),
        ("0-24", "max", 24),
        ("0-24", "accum", 60),
        ("0-24", "accum", 24),
        (24, "instant", 24),
        ("24-48", "avg", 39),
        ("24-48", "min", 30),
        ("24-48", "max", 48),
        ("24-48", "accum", 156),
        ("24-48", "accum", 24),
        (48, "instant", 48),
    ]
    assert {f.attributes["number"] for f in made} == {1}


RANGE: dict[str, Any] = {"stepType": "max", "stepStart": "6"}


def test_a_range_that_fields_came_with_stays_as_long_as_it_is_true() -> None:
    came = [field(float(step), step=step, stepType="max", stepStart=str(step - 6)) for step in (6, 12)]
    made = applied(Statistics(12, ("max", "accumulation", "instant")), *came)
    said = [[one.attributes.get(word) for word in ("step", "stepType", "stepStart")] for one in made]
    assert said == [["0-12", "max", None], ["0-12", "accum", None], [12, "max", "6"]]
    for operation in (Ensemble.read(["mean"]), Units.read("degC")):
        assert one(operation, field(number=1, **RANGE)).attributes.items() >= RANGE.items()


def _added_up(*ranges: tuple[int, int]) -> list[Field]:
    return [field(1.0, step=end, stepType="accum", stepStart=str(start)) for start, end in ranges]


@pytest.mark.parametrize(
    ("of", "ranges", "expected"),
    [
        ("sum", [(0, 6), (6, 12)], 2),
        ("accumulation", [(0, 6), (0, 12)], 1),
        ("sum", [(0, 6), (0, 12)], "step 12 is added up from step 0 on, expected from 6 on: write accumulation"),
        ("accumulation", [(0, 6), (6, 12)], "step 12 is added up from step 6 on, .*: write sum"),
    ],
)
def test_what_is_added_up_is_not_added_up_twice(of: str, ranges: list[tuple[int, int]], expected: int | str) -> None:
    if isinstance(expected, str):
        with pytest.raises(junctura.InvalidArgument, match=expected):
            applied(Statistics(12, (of,)), *_added_up(*ranges))
    else:
        assert one(Statistics(12, (of,)), *_added_up(*ranges)).values[0, 0] == expected


@pytest.mark.parametrize(
    ("of", "kind", "ranges", "gap"),
    [
        ("sum", "accum", [(step - 1, step) for step in range(3, 25, 3)], "0 to 2"),
        ("sum", "accum", [(18, 24)], "0 to 18"),
        ("sum", "accum", [(0, 6), (12, 24)], "6 to 12"),
        ("max", "max", [(0, 6), (18, 24)], "6 to 18"),
        ("min", "min", [(6, 12), (12, 24)], "0 to 6"),
        ("mean", "avg", [(0, 12), (18, 24)], "12 to 18"),
    ],
)
def test_ranges_that_leave_hours_of_a_window_out_are_refused(
    of: str, kind: str, ranges: list[tuple[int, int]], gap: str
) -> None:
    came = [field(1.0, step=end, stepType=kind, stepStart=str(start)) for start, end in ranges]
    with pytest.raises(junctura.InvalidArgument, match=f"steps {gap} of the window 0-24 are missing"):
        applied(Statistics(24, (of,)), *came)


HOURLY_RESET = [(0, 1), (0, 2), (0, 3), (3, 4), (3, 5), (3, 6)]


def amounts(*ranges: tuple[int, int], kind: str = "accum") -> list[Field]:
    """Of a rain that grows: the integral of 2 t over each range."""
    return [field(end**2 - start**2, step=end, stepType=kind, stepStart=str(start)) for start, end in ranges]


@pytest.mark.parametrize(
    ("kind", "ranges", "says"),
    [
        # Accumulations that begin anew: the last one of each run has what the others have.
        ("accum", HOURLY_RESET, "step 2 is added up from step 0 on, .* 1 on: name only the steps 3/6 in from"),
        ("accum", [(0, 3), (0, 6), (6, 9), (6, 12)], "step 6 .*: name only the steps 6/12 in from"),
        ("accum", [(0, 3), (1, 6)], "no ranges among 0-3, 1-6 follow one another from 0"),
        ("avg", [(0, 3), (0, 6)], "step 6 is from step 0 on, expected from 3 on: name only the steps 6 in from"),
        ("max", [(0, 4), (3, 6)], "step 6 is from step 3 on, expected from 4 on"),
        ("min", [(0, 12), (6, 24)], "step 24 is from step 6 on, expected from 12 on"),
    ],
)
@pytest.mark.parametrize("of", ["sum", "mean", "max", "min"])
def test_ranges_that_overlap_are_refused_with_what_to_name(
    of: str, kind: str, ranges: list[tuple[int, int]], says: str
) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        applied(Statistics(ranges[-1][1], (of,)), *amounts(*ranges, kind=kind))


def test_the_steps_that_an_error_names_give_the_amount_of_the_window() -> None:
    chosen = [one for one in amounts(*HOURLY_RESET) if one.attributes["step"] in (3, 6)]
    assert one(Statistics(6, ("sum",)), *chosen).values[0, 0] == 6**2


def test_an_accumulation_that_begins_anew_is_that_of_its_own_range() -> None:
    came = amounts((0, 3), (0, 6), (6, 9), (6, 12), (12, 18))
    made = applied(Statistics(3, ("accumulation",)), *came[:4])
    assert [(f.attributes["step"], f.values[0, 0]) for f in made] == [
        (f"{end - 3}-{end}", end**2 - (end - 3) ** 2) for end in (3, 6, 9, 12)
    ]
    with pytest.raises(junctura.InvalidArgument, match="step 12 is added up from step 6 on, and step 3 from step 0 on"):
        applied(Statistics(9, ("accumulation",), 3), came[0], came[3])
    with pytest.raises(junctura.InvalidArgument, match="expected from the start of the forecast: write sum"):
        applied(Statistics(18, ("accumulation",)), came[4])


@pytest.mark.parametrize("of", ["mean", "max", "min", "sum"])
@pytest.mark.parametrize(
    ("steps", "says"),
    [
        ([3, 6, 9, 15, 18, 21, 24], "step 12 of the window 0-24 is missing: its fields are 3 hours apart"),
        ([1, 6, 12, 18, 24], "step 2 of the window 0-24 is missing: its fields are 1 hour apart"),
        ([12, 18, 24], "step 6 of the window 0-24 is missing: its fields are 6 hours apart"),
        ([7, 14, 24], "step 21 of the window 0-24 is missing"),
        ([10, 20, 24], "step 4 of the window"),
        ([1, 24], "step 2 of"),
        ([3, 6, 24], "step 9 of"),
        ([6, 9, 12, 18, 24], "step 3 of .*; or name only those 6 hours apart"),
    ],
)
def test_instants_that_leave_steps_of_a_window_out_are_refused(of: str, steps: list[int], says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        applied(Statistics(24, (of,)), *(field(step=step) for step in steps))


SPARSER = [[*range(1, 19), 21, 24], [3, 6, 12, 24], [*range(1, 23), 24], ["30m", 1, *range(2, 25)]]


@pytest.mark.parametrize("steps", SPARSER)
def test_steps_that_a_recipe_lists_may_grow_further_apart(steps: list[int | str]) -> None:
    """As those of a forecast that is hourly at first: a mean is the integral of what holds since the step before."""
    hours = np.array([0.5 if step == "30m" else step for step in steps], float)
    came = [field(float(hour**2), step=step) for hour, step in zip(hours, steps, strict=True)]
    made = applied(Statistics(24, ("mean", "max", "min")), *came)
    every = np.arange(0.5, 24.5, 0.5)
    held = hours[np.searchsorted(hours, every)] ** 2
    assert [one.values[0, 0] for one in made] == pytest.approx([held.mean(), 24**2, hours[0] ** 2], rel=1e-14)


@pytest.mark.parametrize("steps", SPARSER[:2])
def test_a_sum_of_instants_that_grow_further_apart_is_refused(steps: list[int]) -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"are \d hours? to \d+ hours apart, so a sum of instants"):
        applied(Statistics(24, ("sum",)), *(field(step=step) for step in steps))


def test_ranges_that_grow_longer_are_summed() -> None:
    ends = [*range(1, 19), 21, 24]
    came = amounts(*itertools.pairwise([0, *ends]))
    assert one(Statistics(24, ("sum",)), *came).values[0, 0] == 24**2
    extremes = amounts(*itertools.pairwise([0, *ends]), kind="max")
    assert one(Statistics(24, ("max",)), *extremes).values[0, 0] == 24**2 - 21**2


@pytest.mark.parametrize("of", ["mean", "max", "min", "sum"])
def test_instants_that_nobody_lists_must_be_at_equal_distances(of: str) -> None:
    """One that a plan has not got may be one that was lost."""
    says = "step 19 of .*: its fields are 1 hour apart; or name only those 3 hours apart"
    with pytest.raises(junctura.InvalidArgument, match=says):
        applied(FollowingSteps(24, (of,)), *(field(step=step) for step in SPARSER[0]))


def test_windows_of_minutes_are_those_of_numpy() -> None:
    """Hourly rates each quarter of an hour, and amounts of ten minutes."""
    minutes = range(15, 121, 15)
    came = [field(float(at**2), step=at // 60 if at % 60 == 0 else f"{at}m") for at in minutes]
    made = applied(Statistics.read({"over": "1h", "of": ["mean", "max", "min", "instant"]}, 0), *reversed(came))
    squares = np.array(minutes).reshape(2, 4).astype(float) ** 2
    expected = [of for row in squares for of in (row.mean(), row.max(), row.min(), row[-1])]
    assert [f.values[0, 0] for f in made] == expected
    assert [f.attributes["step"] for f in made][::4] == ["0-1", "1-2"]
    amounts = [field(1.0, step=f"{at}m", stepType="accum", stepStart=f"{at - 10}m") for at in (10, 20, 30)]
    total = one(Statistics.read({"over": "30m", "of": "sum"}, 0), *amounts)
    assert (total.values[0, 0], total.attributes["step"]) == (3, "0m-30m")
    with pytest.raises(junctura.InvalidArgument, match=r"step 30m begins at 20m, and steps 10m to 20m .* 0m-30m"):
        applied(Statistics("30m", ("sum",)), amounts[0], amounts[2])


def test_instants_and_ranges_are_not_mixed() -> None:
    came = [field(step=6), field(step=12, stepType="avg", stepStart="6")]
    with pytest.raises(junctura.InvalidArgument, match="step 6 is an instant, step 12 a range of steps"):
        applied(Statistics(12, ("mean",)), *came)


def test_means_of_ranges_count_as_they_are_long() -> None:
    """Means of 2 t over ranges, whose mean is that of 2 t over the window."""
    ranges = [(0, 3), (3, 12), (12, 24)]
    means = [field((b**2 - a**2) / (b - a), step=b, stepType="avg", stepStart=str(a)) for a, b in ranges]
    assert one(Statistics(24, ("mean",)), *means).values[0, 0] == pytest.approx(24, rel=1e-15)
    with pytest.raises(
        junctura.InvalidArgument, match=r"several lengths \(steps 0 to 3, steps 3 to 12, steps 12 to 24\): write sum"
    ):
        applied(Statistics(24, ("mean",)), *amounts(*ranges))
    assert one(Statistics(24, ("sum",)), *amounts(*ranges)).values[0, 0] == 24**2


@pytest.mark.parametrize(("others", "stays"), [(RANGE, RANGE), ({}, {}), ({**RANGE, "stepStart": "0"}, {})])
def test_what_is_computed_of_several_ranges_has_none(others: dict[str, Any], stays: dict[str, Any]) -> None:
    came = [field(param="a", **RANGE), field(param="b", **others)]
    made = applied(Compute.read({"c": {"formula": "a - b", "units": "K"}}), *came)
    assert [one.param for one in made] == ["a", "b", "c"]
    assert {word: made[2].attributes[word] for word in RANGE if word in made[2].attributes} == stays


def test_the_field_before_a_window_is_no_window_of_its_own() -> None:
    operation = Statistics(24, ("mean", "accumulation"), 0).of_window(Window(24, 48))
    made = applied(operation, *HOURS[4:])
    assert [(f.attributes["step"], f.values[0, 0]) for f in made] == [("24-48", 39), ("24-48", 24)]


def test_a_missing_value_in_a_window_stays_missing() -> None:
    holed = [field([[NAN if step == 12 else step, step, step, step]] * 3, step=step) for step in (6, 12)]
    made = one(Statistics(12, ("mean",)), *holed)
    assert np.isnan(made.values[:, 0]).all() and np.all(made.values[:, 1:] == 9)


@pytest.mark.parametrize(
    ("of", "begin", "steps", "says"),
    [
        ("mean", 0, [6, 12], "step 24 of the window 0-24 is missing"),
        ("accumulation", 24, [30, 48], "step 24 of the window 24-48 is missing"),
        ("mean", 0, [6, 6, 24], "a step is there twice"),
        ("mean", 0, ["0-24"], "step 0-24 is a range already"),
    ],
)
def test_windows_that_are_not_filled_are_refused(of: str, begin: int, steps: list[Any], says: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match=says):
        applied(Statistics(24, (of,), begin), *(field(step=step) for step in steps))


def test_fields_are_computed_from_others_of_the_same_step() -> None:
    fields = [
        field(value + step, "m s**-1", param=param, step=step, shortName=param, paramId=1)
        for (param, value), step in itertools.product((("u", 3.0), ("v", 4.0)), (0, 6))
    ]
    operation = Compute.read(
        {"ws": {"formula": "sqrt(u*u + v*v)", "units": "m/s"}, "two": {"formula": "2 * ws", "units": "kt"}}
    )
    made = applied(operation, *fields)
    assert [f.param for f in made] == ["u", "v", "ws", "two"] * 2
    assert made[2].values[0, 0] == 5 and made[3].values[0, 0] == 10
    assert made[6].values[0, 0] == np.sqrt(81.0 + 100.0)
    assert made[2].attributes == {"param": "ws", "step": 0, "levelist": 850}
    assert (made[2].units, made[3].units) == ("m s**-1", "kt")


def test_a_computed_field_may_take_the_place_of_another() -> None:
    made = one(Compute.read({"t": {"formula": "t + 1", "units": "K"}}), field(1.0))
    assert np.all(made.values == 2)


def test_a_formula_without_fields_is_a_field() -> None:
    made = applied(Compute.read({"c": {"formula": "2 ** 3", "units": "1"}}), field())
    assert np.all(made[1].values == 8) and made[1].values.shape == COARSE.shape


def test_fields_on_other_grids_are_refused_by_name() -> None:
    operation = Compute.read({"w": {"formula": "u + v", "units": "kt"}})
    with pytest.raises(junctura.InvalidArgument, match=r"formula 'u \+ v': v is on 45/45, u is on 90/90"):
        applied(operation, field(param="u"), field(param="v", on=regular_ll(45, 45)))
    with pytest.raises(junctura.InvalidArgument, match="v is missing beside u"):
        applied(operation, field(param="u"), field(param="v", step=12))
    with pytest.raises(junctura.InvalidArgument, match="spectral"):
        applied(operation, *(Field(np.zeros(12), spectral(2), {"param": param}) for param in "uv"))


A, B = np.array([4.0, -1.0, 0.0, NAN]), np.array([2.0, 3.0, 0.0, 1.0])


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("a + b * 2", A + B * 2),
        ("-(a - b)", B - A),
        ("a / b", [2, -1 / 3, NAN, NAN]),
        ("a ** 0.5", [2, NAN, 0, NAN]),
        ("sqrt(a)", [2, NAN, 0, NAN]),
        ("log(a)", [np.log(4), NAN, NAN, NAN]),
        ("exp(1e6 * b)", [NAN, NAN, 1, NAN]),
        ("a > b", [1, 0, 0, NAN]),
        ("a >= b", [1, 0, 1, NAN]),
        ("a != b", [1, 1, 0, NAN]),
        ("a > 0 and b > 0", [1, 0, 0, NAN]),
        ("a > 0 or not b > 0", [1, 0, 1, NAN]),
        ("where(a > 0, b, -b)", [2, -3, 0, NAN]),
        ("where(b > 0, b, a)", [2, 3, 0, 1]),
        ("min(a, b, 1)", [1, -1, 0, NAN]),
        ("max(a, b)", [4, 3, 0, NAN]),
        ("hypot(3 * b, 4 * b)", 5 * B),
        ("abs(a) + sin(0) + cos(0)", [5, 2, 1, NAN]),
        ("2t + 10u * 1e3", A + B * 1000),
        ("(a\n + b)", A + B),
    ],
)
def test_formulas_mean_what_they_say(text: str, expected: npt.ArrayLike) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        read = formula(text)
        made = read({name: {"a": A, "b": B, "2t": A, "10u": B}[name] for name in read.names})
    np.testing.assert_array_equal(made, expected)


@pytest.mark.parametrize(
    ("text", "says"),
    [
        ("__import__('os')", '"__import__" is no function'),
        ("sqr(a)", 'did you mean "sqrt"?'),
        ("a.real", '"a.real" has no meaning in a formula'),
        ("a[0]", "has no meaning"),
        ("(lambda: 1)()", "is no function"),
        ("[a for a in b]", "has no meaning"),
        ("a if b else 1", "has no meaning"),
        ("(a := 1)", "has no meaning"),
        ("f'{a}'", "has no meaning"),
        ("'a'", "is no number"),
        ("True", "is no number"),
        ("a // b", r"known are \+"),
        ("a % b", r"known are \+"),
        ("~a", "known are - and not"),
        ("a < b < 1", "one at a time"),
        ("a in b", "one at a time"),
        ("sqrt(a, b)", "sqrt has 1 arguments, not 2"),
        ("min(a)", "min has at least 2 arguments, not 1"),
        ("sqrt(x=a)", "is no function"),
        ("sqrt(*a)", "has no meaning"),
        ("", "is no formula"),
        ("a = 1", "is no formula"),
        ("a; b", "is no formula"),
        ("import os", "is no formula"),
        ("a\0", "is no formula"),
        ("(" * 300 + "a" + ")" * 300, "is no formula"),
        ("-" * 900 + "a", "nested deeper than 40"),
        ("+".join(["a"] * 400), "parts"),
        ("a" * 1001, "at most 1000 characters"),
        ("9" * 400, "too large"),
        ("digit_first_2t", "has no meaning"),
    ],
)
def test_what_is_no_formula_is_refused(text: str, says: str) -> None:
    with pytest.raises(Wrong, match=says):
        formula(text)


def test_large_exponents_are_no_value_and_take_no_time() -> None:
    assert np.isnan(formula("9**9**9**9")({}))


@FIXED
@given(st.text(alphabet="ab1.e+-*/()<>=!,' \t_[]{}:sqrtwhenotandmix", max_size=40))
def test_any_text_is_a_formula_or_refused(text: str) -> None:
    try:
        read = formula(text)
    except Wrong:
        return
    made = read(dict.fromkeys(read.names, A))
    assert made.dtype == np.float64 and not np.isinf(made).any()


@pytest.mark.parametrize(
    ("source", "target", "value", "expected"),
    [
        ("K", "degC", 273.15, 0.0),
        ("degC", "K", 0.0, 273.15),
        ("degC", "degF", 100.0, 212.0),
        ("degF", "K", -459.67, 0.0),
        ("Pa", "hPa", 101325.0, 1013.25),
        ("mbar", "Pa", 1.0, 100.0),
        ("m s**-1", "km h-1", 10.0, 36.0),
        ("m/s", "knots", 1852.0, 3600.0),
        ("kt", "m s^-1", 3600.0, 1852.0),
        ("m", "mm", 0.5, 500.0),
        ("kg m**-2", "mm", 5.0, 5.0),
        ("mm", "kg m-2", 5.0, 5.0),
        ("kg m**-2 s**-1", "mm/h", 1.0, 3600.0),
        ("m**2 s**-2", "gpm", 9.80665, 1.0),
        ("gpm", "m2 s-2", 2.0, 19.6133),
        ("m2 s-2", "gpdm", 98.0665, 1.0),
        ("(0 - 1)", "%", 0.25, 25.0),
        ("%", "1", 25.0, 0.25),
        ("s**-1", "1/h", 1.0, 3600.0),
        ("J m**-2", "W h m**-2", 3600.0, 1.0),
        ("kg kg**-1", "g/kg", 0.001, 1.0),
        ("K", "K", 7.0, 7.0),
    ],
)
def test_units_are_converted_by_exact_factors(source: str, target: str, value: float, expected: float) -> None:
    made = conversion(source, target)(np.array([value, NAN]))
    assert made[0] == pytest.approx(expected, rel=1e-15, abs=1e-13)
    assert np.isnan(made[1])


@pytest.mark.parametrize(
    ("spelt", "said"),
    [
        ("m/s", "m s**-1"),
        ("m s-1", "m s**-1"),
        ("m s ^ -1", "m s**-1"),
        ("m·s**-1", "m s**-1"),
        ("kg m-2 s-1", "kg m**-2 s**-1"),
        ("Knots", "kt"),
        ("celsius", "degC"),
        ("1/s", "s**-1"),
        ("(0 - 1)", "1"),
    ],
)
def test_units_have_one_spelling(spelt: str, said: str) -> None:
    assert canonical(spelt) == said == canonical(said)


@pytest.mark.parametrize("text", ["", "/", "xyz", "m s--1", "degC/m", "m**99", "m" * 70, "m " * 30, "2 m", "%%"])
def test_what_is_no_unit_is_refused(text: str) -> None:
    with pytest.raises(junctura.InvalidArgument, match="unit"):
        canonical(text)


def test_units_of_another_quantity_are_refused_with_what_is_possible() -> None:
    with pytest.raises(junctura.InvalidArgument, match=r"field t: unit 'hPa': 'K' is of another quantity.*degC"):
        applied(Units.read("hPa"), field())
    with pytest.raises(junctura.InvalidArgument, match="field t"):
        applied(Units.read("hPa"), field(units=""))


def test_units_may_be_of_some_parameters() -> None:
    operation = Units.read({"t": "degC"})
    made = applied(operation, field(273.15, unit="K"), field(1.0, "m s**-1", param="u"))
    assert [(f.units, f.values[0, 0]) for f in made] == [("degC", 0), ("m s**-1", 1)]
    assert "unit" not in made[0].attributes
    assert operation.concerns("t") and not operation.concerns("u") and Units.read("K").concerns("u")


def test_a_spread_has_no_zero_to_be_moved() -> None:
    made = one(Units.read("degF"), field(5.0, statistic="spread"))
    assert np.all(made.values == 9)


ONES = np.array([[-1.0, 0.0, 1.0, NAN]] * 3)


@pytest.mark.parametrize(
    ("said", "left"),
    [
        ({"below": 0}, [NAN, 0, 1, NAN]),
        ({"at_most": 0}, [NAN, NAN, 1, NAN]),
        ({"above": 0}, [-1, 0, NAN, NAN]),
        ({"at_least": 0}, [-1, NAN, NAN, NAN]),
        ({"where": "t == 0"}, [-1, NAN, 1, NAN]),
    ],
)
def test_masked_values_are_missing(said: dict[str, Any], left: list[float]) -> None:
    operation = Mask.read(said)
    np.testing.assert_array_equal(one(operation, field(ONES)).values, [left] * 3)
    assert operation.is_alone is ("where" not in said)


def test_a_condition_masks_all_fields_of_its_step() -> None:
    fields = [field(5.0), field([[0.0, 1.0, NAN, 1.0]] * 3, "1", param="lsm"), field(5.0, step=12)]
    with pytest.raises(junctura.InvalidArgument, match="lsm is missing beside t"):
        applied(Mask.read({"where": "lsm < 0.5"}), *fields)
    made = applied(Mask.read({"where": "lsm < 0.5"}), *fields[:2])
    np.testing.assert_array_equal(made[0].values, [[NAN, 5, NAN, 5]] * 3)


@pytest.mark.parametrize("operation", [Mask.read({"below": 0}), Fill(0.0), Units.read("degC"), Crop(1, 0, 0, 1)])
def test_coefficients_are_no_values(operation: Operation) -> None:
    with pytest.raises(junctura.InvalidArgument, match="field t: it is spectral"):
        applied(operation, Field(np.zeros(12), spectral(2), {"param": "t"}, "K"))


def test_coefficients_change_their_scale() -> None:
    made = one(Units.read("gpm"), Field(np.full(12, 9.80665), spectral(2), {"param": "z"}, "m**2 s**-2"))
    assert np.all(made.values == 1) and made.on == spectral(2)


def test_what_is_missing_can_be_filled() -> None:
    np.testing.assert_array_equal(one(Fill(7.0), field(ONES)).values, [[-1, 0, 1, 7]] * 3)


def test_only_some_parameters_are_kept() -> None:
    fields = [field(param=param) for param in "abc"]
    assert [f.param for f in applied(Keep.read(["c", "a"]), *fields)] == ["a", "c"]
    assert Keep.read(["c", "a"]).params(("a", "b", "c")) == ("a", "c")


def test_fields_are_brought_to_a_grid_once() -> None:
    fake = Fake()
    operation = ToGrid.read({"name": "45/45", "method": "nearest"})
    made = operation([field(1.0), field(2.0, on=regular_ll(45, 45))], fake)
    assert [f.on.name for f in made] == ["45/45", "45/45"]
    assert fake.calls == [("t", "45/45", "nearest")]
    assert "places" not in made[0].attributes


def test_places_keep_their_names() -> None:
    operation = ToGrid.read([{"name": "Bonn", "latitude": 50.7, "longitude": 7.1}, {"latitude": 0, "longitude": 0}])
    made = operation([field(3.0)], Fake())
    assert made[0].on == points([(50.7, 7.1), (0, 0)])
    assert made[0].attributes["places"] == ("Bonn", "")


def test_vorticity_and_divergence_become_winds() -> None:
    on = spectral(2)
    fields = [
        Field(np.full(12, value), on, {"param": param, "step": step, "shortName": param}, "s**-1")
        for step in (0, 6)
        for param, value in (("vo", 1.0 + step), ("t", 9.0), ("d", 2.0 + step))
    ]
    fake = Fake()
    made = Winds("45/45")(fields, fake)
    assert [(f.param, f.attributes["step"], f.units) for f in made] == [
        (param, step, units) for step in (0, 6) for param, units in (("u", "m s**-1"), ("v", "m s**-1"), ("t", "s**-1"))
    ]
    assert made[0].values[0, 0] == 12 and made[1].values[0, 0] == 24
    assert "shortName" not in made[0].attributes
    assert fake.calls == [("wind", "45/45", "")] * 2
    with pytest.raises(junctura.InvalidArgument, match="wind: d is missing beside vo, t"):
        Winds("45/45")(fields[:2], fake)


def test_an_area_is_cut_out() -> None:
    whole = regular_ll(10, 10)
    values = np.arange(whole.size, dtype=np.float64).reshape(whole.shape)
    made = one(Crop(70, -20, 50, 10), field(values, on=whole))
    assert made.on == grid("10/10@70/-20/50/10")
    rows, columns = [2, 3, 4], [34, 35, 0, 1]
    np.testing.assert_array_equal(made.values, values[np.ix_(rows, columns)])
    with pytest.raises(junctura.InvalidArgument, match="no rows of equal length"):
        applied(Crop(70, -20, 50, 10), field(on=grid("O4")))  # type: ignore[arg-type]


OPERATIONS: Sequence[Callable[[], Operation]] = (
    lambda: ToGrid.read("1/1"),
    lambda: Winds("1/1"),
    lambda: Crop(1.0, 2.0, 3.0, 4.0),
    lambda: Ensemble.read(["mean", {"percentile": [1, 2]}]),
    lambda: Statistics.read({"over": 6, "of": "mean"}, 0),
    lambda: Compute.read({"b": {"formula": "a", "units": "K"}, "a": {"formula": "b", "units": "K"}}),
    lambda: Units.read({"t": "degC"}),
    lambda: Mask.read({"below": 0}),
    lambda: Fill(0.0),
    lambda: Keep.read("t"),
)


@pytest.mark.parametrize("make", OPERATIONS)
def test_an_operation_is_known_by_its_text(make: Callable[[], Operation]) -> None:
    operation = make()
    assert operation == make() and hash(operation) == hash(make())
    assert operation.text == make().text
    assert list(json.loads(operation.text)) == [operation.name]
    assert len({other().text for other in OPERATIONS}) == len(OPERATIONS)


@pytest.mark.parametrize("make", [make for make in OPERATIONS if make().name != "wind"])
def test_nothing_becomes_nothing(make: Callable[[], Operation]) -> None:
    assert make()([], Fake()) == []
