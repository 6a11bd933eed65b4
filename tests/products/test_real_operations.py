"""Every file of fields that others wrote, and every operation: each file is fit for it, or refuses it by name.

What comes out is compared with what NumPy makes of the decoded values; values on other grids, with what they came from:
what interpolation itself is worth is looked at elsewhere (`test_interpolate.py`, `test_interpolate_beside.py`). Each
file is brought to one grid in three, each grid has some files; with ``JUNCTURA_FILES=all``, as in ``make soak``, all.
"""

from __future__ import annotations

import functools
import os
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import pytest
from grib_messages import messages

from junctura.errors import Error
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import (
    Compute,
    Crop,
    Ensemble,
    Fill,
    Keep,
    Mask,
    Operation,
    Statistics,
    ToGrid,
    Units,
    Winds,
)
from junctura.products._recipe.mars_words import canonical
from junctura.products._regrid.grids import Spectral
from junctura.products._regrid.interpolate import prepare, quantity_of
from junctura.products._workers.make_product import FieldTransforms

pytest.importorskip("scipy")
pytest.importorskip("mir")

Floats = npt.NDArray[np.float64]
Made = Sequence[Field]
# Points of all regular grids of latitudes and longitudes that are in the files.
PLACES = ((60.0, 30.0), (-30.0, 330.0), (0.0, 0.0))
EUROPE = (72.0, -24.0, 33.0, 45.0)


class Case(NamedTuple):
    """An operation, and what is to be seen of what it makes."""

    operation: Operation
    check: Callable[[Made, Made], None]


def is_on_another_grid(given: Made, made: Made) -> None:
    """Values between the least and the greatest that there were, and with nearly their mean."""
    assert [one.param for one in made] == [one.param for one in given]
    for one, was in zip(made, given, strict=True):
        if isinstance(was.on, Spectral):
            assert mean(one) == pytest.approx(was.values[0], abs=0.03 * np.ptp(one.values))
            continue
        low, high = np.nanmin(was.values), np.nanmax(was.values)
        assert low - 1e-9 * abs(low) <= np.nanmin(one.values) <= np.nanmax(one.values) <= high + 1e-9 * abs(high)
        if np.isnan(was.values).any():
            gaps, there = (mean(field.having(np.isnan(field.values).astype(float))) for field in (one, was))
            assert gaps == pytest.approx(there, abs=0.03)
        else:
            assert mean(one) == pytest.approx(mean(was), abs=0.03 * (high - low))


def mean(field: Field) -> float:
    """Over the sphere: rows count as the cosine of their latitude."""
    latitudes, _ = field.grid.points()
    _, rows, counts = np.unique(latitudes, return_inverse=True, return_counts=True)
    return float(np.average(field.values.ravel(), weights=np.cos(np.radians(latitudes)) / counts[rows]))


def is_taken(given: Made, made: Made) -> None:
    """No value that was not there."""
    is_on_another_grid(given, made)
    for one, was in zip(made, given, strict=True):
        assert isinstance(was.on, Spectral) or np.isin(one.values[~np.isnan(one.values)], was.values).all()


def is_at_places(given: Made, made: Made) -> None:
    for one, was in zip(made, given, strict=True):
        assert one.values.shape == (len(PLACES),)
        if isinstance(was.on, Spectral) or was.grid.kind != "regular_ll":
            continue
        latitudes, longitudes = (list(axis) for axis in (was.grid.latitudes, was.grid.longitudes))
        values = [was.values[latitudes.index(north), longitudes.index(east)] for north, east in PLACES]
        np.testing.assert_allclose(one.values, values, rtol=1e-12)


def has(expected: Callable[[Made], Sequence[Floats]], rtol: float = 0.0) -> Callable[[Made, Made], None]:
    """That made are these values, in this order."""

    def check(given: Made, made: Made) -> None:
        for one, values in zip(made, expected(given), strict=True):
            np.testing.assert_allclose(one.values, values, rtol=rtol, atol=0)

    return check


def of_each(expected: Callable[[Floats], Floats]) -> Callable[[Made, Made], None]:
    return has(lambda given: [expected(one.values) for one in given])


def cut_out(given: Made) -> list[Floats]:
    north, west, south, east = EUROPE
    found = []
    for one in given:
        longitudes = np.mod(one.grid.longitudes + 180, 360) - 180
        columns = np.flatnonzero((longitudes >= west) & (longitudes <= east))
        rows = (one.grid.latitudes <= north) & (one.grid.latitudes >= south)
        found.append(one.values[rows][:, columns[np.argsort(longitudes[columns])]])
    return found


def grouped(fields: Made, by: str) -> dict[Any, dict[Any, Floats]]:
    """Values of fields that differ in nothing but one word, by that word."""
    words = [word for word in ("param", "levtype", "levelist", "date", "time", "step", "number") if word != by]
    groups: dict[Any, dict[Any, Floats]] = {}
    for one in fields:
        groups.setdefault(tuple(str(one.attributes.get(word)) for word in words), {})[one.attributes[by]] = one.values
    return groups


def stacked(fields: Made, by: str) -> list[Floats]:
    return [np.stack([group[at] for at in sorted(group, key=int)]) for group in grouped(fields, by).values()]


def beside(expected: Callable[[dict[str, Floats]], dict[str, Floats]]) -> Callable[[Made, Made], None]:
    """That of each place, time and member fields of these parameters are made, with these values."""

    def check(given: Made, made: Made) -> None:
        found, wanted = grouped(made, "param"), grouped(given, "param")
        assert found.keys() == wanted.keys() and len(made) == sum(map(len, found.values()))
        for key, group in wanted.items():
            for param, values in {**group, **expected(group)}.items():
                np.testing.assert_allclose(found[key][param], values, rtol=1e-15, atol=0)

    return check


def of_members(given: Made) -> list[Floats]:
    return [
        made
        for members in stacked(given, "number")
        for made in (
            np.mean(members, axis=0),
            np.std(members, axis=0),
            np.max(members, axis=0),
            np.percentile(members, 90, axis=0),
            100 * np.mean(members > 260, axis=0),
        )
    ]


def over_steps(given: Made) -> list[Floats]:
    return [np.max(steps, axis=0) for steps in stacked(given, "step")]


def none_fits(_given: Made, _made: Made) -> None:
    pytest.fail("no file has this")


STATISTICS = ["mean", "spread", "max", {"percentile": 90}, {"probability": {"above": 260}}]
CASES = {
    "grid linear": Case(ToGrid.read("10/10"), is_on_another_grid),
    "grid bilinear": Case(ToGrid.read({"name": "10/10", "method": "bilinear"}), is_on_another_grid),
    "grid nearest": Case(ToGrid.read({"name": "10/10", "method": "nearest"}), is_taken),
    "grid conservative": Case(ToGrid.read({"name": "10/10", "method": "conservative"}), is_on_another_grid),
    "grid F16": Case(ToGrid.read("F16"), is_on_another_grid),
    "grid N32": Case(ToGrid.read("N32"), is_on_another_grid),
    "grid O16": Case(ToGrid.read("O16"), is_on_another_grid),
    "points": Case(ToGrid.read([{"latitude": north, "longitude": east} for north, east in PLACES]), is_at_places),
    "points conservative": Case(
        ToGrid.read({"points": [{"latitude": 60, "longitude": 30}], "method": "conservative"}), lambda *_: None
    ),
    "wind": Case(Winds("10/10"), none_fits),
    "crop": Case(Crop(*EUROPE), has(cut_out)),
    "units": Case(Units.read("degC"), of_each(lambda values: values - 273.15)),
    "units of t": Case(Units.read({"t": "degC"}), beside(lambda group: {"t": group["t"] - 273.15})),
    "mask": Case(Mask.read({"below": 260}), of_each(lambda values: np.where(values < 260, np.nan, values))),
    "mask where": Case(
        Mask.read({"where": "t >= 260"}),
        beside(lambda group: {param: np.where(group["t"] < 260, values, np.nan) for param, values in group.items()}),
    ),
    "fill": Case(Fill(-1.0), of_each(lambda values: np.where(np.isnan(values), -1, values))),
    "keep": Case(Keep.read("t"), has(lambda given: [one.values for one in given if one.param == "t"])),
    "compute of t": Case(
        Compute.read({"t": {"formula": "t * t", "units": "K"}}), beside(lambda group: {"t": group["t"] ** 2})
    ),
    "compute of z": Case(
        Compute.read({"gh": {"formula": "z / 9.80665", "units": "gpm"}}),
        beside(lambda group: {"gh": group["z"] / 9.80665}),
    ),
    "compute of u, v": Case(Compute.read({"ws": {"formula": "hypot(u, v)", "units": "m s**-1"}}), none_fits),
    "ensemble": Case(Ensemble.read(STATISTICS), has(of_members, 1e-12)),
    "statistics": Case(Statistics.read({"over": 12, "of": "max"}, 0), has(over_steps)),
}
# Files of projections, and why some of their messages are no field; `test_located` has them on other grids.
PROJECTED = {"lambert_grid.grib": "nothing", "nam.t00z.awp21100.tm00.grib2": "2 fields in one message"}
# No file has vorticity and divergence, or both components of a wind.
ALWAYS = {"wind": '"vo" is no field here', "compute of u, v": '"u" is no field here'}
ON_GRIDS = {**ALWAYS, "points conservative": "points have no boxes to take means of"}
ALONE = {"ensemble": "it is no member of an ensemble"}
AT_STEP_0 = {"statistics": "the steps fill no window of 12 hours"}
NO_T = dict.fromkeys(("units of t", "mask where", "keep", "compute of t"), '"t" is no field here')
NO_Z = {"compute of z": '"z" is no field here'}
# What each file refuses, and how; all else fits it.
REFUSED: dict[str, dict[str, str]] = {
    "era5-levels-corrupted.grib": {**ON_GRIDS, **ALONE, **AT_STEP_0, **NO_Z},
    "era5-levels-members.grib": {
        **ON_GRIDS, **AT_STEP_0,
        "units": r"field z: .*'m\*\*2 s\*\*-2' is of another quantity",
    },
    "fields_with_missing_values.grib": {**ON_GRIDS, **ALONE, **AT_STEP_0, **NO_T, **NO_Z},
    "reduced_gg.grib": {
        **ON_GRIDS, **ALONE, **AT_STEP_0, **NO_T, **NO_Z,
        "units": r"field 10u: .*'m s\*\*-1' is of another quantity",
        "crop": "grid N48: it has no rows of equal length: bring it to a grid first",
    },
    "regular_gg_ml_g2.grib": {**ON_GRIDS, **ALONE, **NO_Z},
    "regular_gg_sfc.grib": {
        **ON_GRIDS, **ALONE, **AT_STEP_0, **NO_T, **NO_Z,
        "units": r"field 10u: .*'m s\*\*-1' is of another quantity",
    },
    "regular_ll_msl.grib": {
        **ON_GRIDS, **NO_T, **NO_Z,
        "units": "field prmsl: .*'Pa' is of another quantity",
        "statistics": "the window 0-12 lacks step 12",
    },
    "spherical_harmonics.grib": {
        **ALWAYS, **ALONE, **AT_STEP_0, **NO_T,
        **dict.fromkeys(("crop", "mask", "fill", "compute of z"), r"field z: it is spectral \(T63\)"),
        "units": r"field z: .*'m\*\*2 s\*\*-2' is of another quantity",
    },
    "t_analysis_and_fc_0.grib": {**ON_GRIDS, **ALONE, **AT_STEP_0, **NO_Z},
    "t_on_different_level_types.grib": {**ON_GRIDS, **ALONE, **AT_STEP_0, **NO_Z},
}  # fmt: skip


def cases_of(name: str) -> list[str]:
    """Of the cases that take a matrix of their own, one in three, and others for the next file."""
    place = list(REFUSED).index(name)
    is_all = os.environ.get("JUNCTURA_FILES") == "all"
    return [
        case
        for number, case in enumerate(CASES)
        if is_all or not isinstance(CASES[case].operation, ToGrid) or case in REFUSED[name] or (number + place) % 3 == 0
    ]


@functools.cache
def found(path: Path) -> tuple[list[Field], list[str]]:
    """The fields of a file, and why others are none."""
    outcomes = [field_or_cause(message) for message in messages(path)]
    fields = [one for one in outcomes if isinstance(one, Field)]
    prepare_all(fields, cases_of(path.name))
    return fields, [one for one in outcomes if isinstance(one, str)]


def field_or_cause(message: bytes) -> Field | str:
    try:
        return decode(message)
    except Error as error:
        return str(error)


def prepare_all(fields: list[Field], cases: list[str]) -> None:
    """Makes the matrices for a file, two at a time: most of what these tests take is MIR's beginning."""
    sources = {(one.on.name, quantity_of(one.param)) for one in fields}
    targets = [CASES[case].operation for case in cases if case != "points conservative"]
    wanted = [
        (source, one.grid, one.method, quantity)
        for source, quantity in sources
        for one in targets
        if isinstance(one, ToGrid)
    ]
    with ThreadPoolExecutor(2) as pool:
        list(pool.map(lambda one: prepare(*one), wanted))


def applied(operation: Operation, given: list[Field]) -> list[Field]:
    """As for a product: what can be known to be wrong beforehand is said then."""
    operation.params(tuple(dict.fromkeys(one.param for one in given)))
    if isinstance(operation, Statistics):
        operation.windows(sorted({canonical("step", one.attributes["step"]) for one in given}))
    return operation(given, FieldTransforms())


@pytest.mark.parametrize(("name", "case"), [(name, case) for name in REFUSED for case in cases_of(name)])
def test_a_field_is_fit_for_an_operation_or_refuses_it_by_name(shared: Path, name: str, case: str) -> None:
    given, _ = found(shared / name)
    if case in REFUSED[name]:
        with pytest.raises(Error, match=REFUSED[name][case]):
            applied(CASES[case].operation, given)
        return
    made = applied(CASES[case].operation, given)
    assert made
    CASES[case].check(given, made)


@pytest.mark.parametrize("name", PROJECTED)
def test_what_lies_on_a_projection_is_not_cut(shared: Path, name: str) -> None:
    outcomes = [field_or_cause(message) for message in messages(shared / name)]
    given = [one for one in outcomes if isinstance(one, Field)]
    assert all(PROJECTED[name] in one for one in outcomes if isinstance(one, str))
    assert given and all(one.on.name.startswith("lambert:") for one in given)
    with pytest.raises(Error, match=r"grid lambert: it has no rows of equal length"):
        applied(CASES["crop"].operation, given)


def test_no_file_and_no_operation_is_left_out(shared: Path) -> None:
    assert {path.name for path in shared.glob("*.grib*")} == {*REFUSED, *PROJECTED}
    assert {case for refused in REFUSED.values() for case in refused} <= set(CASES)
    done = {case.operation.name for case in CASES.values()}
    assert done == {"grid", "wind", "crop", "units", "mask", "fill", "keep", "compute", "ensemble", "statistics"}
