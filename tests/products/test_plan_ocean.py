"""A plan as the I/O server of an ocean model: pieces of many ranks, land without values, rows from the south."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from broker_runs import BASE
from outputs_fields import surface, written
from plan_runs import Work, through

import junctura
from junctura.products import Grid, grid
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._outputs import Output
from junctura.products._plan import plan_of

Floats = npt.NDArray[np.float64]
ABOUT = {word: value for word, value in BASE.items() if word != "levelist"} | {"levtype": "sfc", "param": "sst"}
# Of 24 bits, over some 30 K.
PACKED = 4e-6
FILL = np.float32(1e20)
# Of each of three ranks the boxes that it has of 37 rows and 72 columns; the last one has the south and the east.
BOXES = ([np.s_[:20, :30]], [np.s_[20:, :40]], [np.s_[:20, 30:], np.s_[20:, 40:]])
Pieces = tuple[junctura.Layout, list[Any]]


def in_blocks(values: npt.NDArray[Any]) -> Pieces:
    layout = junctura.Layout(shape=values.shape, grid=(3, 2))
    return layout, [np.ascontiguousarray(values[np.ix_(*layout.indices(rank))]) for rank in range(layout.ranks)]


def in_boxes(values: npt.NDArray[Any]) -> Pieces:
    text = "shape=37x72 slabs=0:20x0:30;20:37x0:40;0:20x30:72,20:37x40:72"
    parts = [[np.ascontiguousarray(values[box]) for box in boxes] for boxes in BOXES]
    return junctura.Layout(text), [part if len(part) > 1 else part[0] for part in parts]


def on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def land(where: Grid) -> npt.NDArray[np.bool_]:
    """Two continents."""
    north, east = (part.reshape(where.shape) for part in where.points())
    east = np.mod(east, 360)
    return ((abs(north - 10) < 40) & (abs(east - 30) < 35)) | ((north > 20) & (abs(east - 250) < 31))


def temperature(where: Grid) -> Floats:
    north, east = (np.radians(part.reshape(where.shape)) for part in where.points())
    made: Floats = 272 + 28 * np.cos(north) ** 2 + np.sin(3 * east)
    return made


def offers(pieces: Pieces) -> Work:
    """What the ranks of a model do with their parts of an array."""
    layout, parts = pieces

    def work(pool: junctura.Pool) -> None:
        for rank, part in enumerate(parts):
            pool.offer_piece(part, layout, rank, {**ABOUT, "step": 6}, retention=junctura.Released(1))

    return work


def aggregated(folder: Path, pieces: Pieces, options: str) -> Field:
    """What lies in the file of a plan that gathers an array."""
    text = f"""
sources: [{{follow: param=sst}}]
actions: [{{aggregate: {{units: K, {options}}}}}, {{encode: {{bits: 24}}}}]
sinks: [{{file: {{format: grib2, bits: 24, name: "sst_{{step}}.grib2"}}}}]
"""
    (ran,) = through(folder, text, offers(pieces))
    assert (ran.told, ran.fields) == ([], 1)
    return decode((folder / "out/sst_6.grib2").read_bytes())


def mask_file(folder: Path, where: Grid, name: str = "mask.grib2") -> None:
    field = surface("lsm", "(0 - 1)", where.name)
    written(Output("grib2"), folder / name, field.having(land(where).astype(float)))


@pytest.mark.parametrize("kind", ["i2", ">i4", "u8", "b1", "f2"])
def test_arrays_of_any_real_numbers_become_fields(tmp_path: Path, kind: str) -> None:
    ocean = on("5/5")
    values = (np.arange(37 * 72).reshape(37, 72) % 2).astype(kind)
    made = aggregated(tmp_path, in_blocks(values), "grid: 5/5, missing: 1")
    expected = np.where(values.astype(float) == 1, np.nan, 0.0)
    assert made.on == ocean
    np.testing.assert_array_equal(made.values, expected)


def test_a_number_that_is_missing_only_in_single_precision_stays_in_double(tmp_path: Path) -> None:
    values = np.full((37, 72), 280.0)
    values[0, :2] = -0.1, float(np.float32(-0.1))
    made = aggregated(tmp_path, in_blocks(values), "grid: 5/5, missing: -0.1")
    assert np.isnan(made.values[0, 0]) and not np.isnan(made.values[0, 1])


@pytest.mark.parametrize("pieces", [in_blocks, in_boxes])
@pytest.mark.parametrize("kind", ["f4", "f8"])
def test_land_is_known_by_its_value_in_any_precision(
    tmp_path: Path, kind: str, pieces: Callable[[npt.NDArray[Any]], Pieces]
) -> None:
    ocean = on("5/5")
    values = np.where(land(ocean), FILL if kind == "f4" else 1e20, temperature(ocean)).astype(kind)
    made = aggregated(tmp_path, pieces(values), "grid: 5/5, missing: 1e20")
    assert made.on == ocean and (made.param, made.units) == ("sst", "K")
    expected = np.where(land(ocean), np.nan, temperature(ocean))
    # Single precision has seven digits.
    np.testing.assert_allclose(made.values, expected, rtol=0, atol=PACKED + (2e-5 if kind == "f4" else 0))


@pytest.mark.parametrize("of_file", ["5/5", "5/5@90/-180/-60/175"])
def test_land_is_known_by_a_mask_whatever_is_there(tmp_path: Path, of_file: str) -> None:
    """The model's array is an area that begins at the date line; its mask that of the area, or of the globe."""
    ocean = on("5/5@90/-180/-60/175")
    mask_file(tmp_path, on(of_file))
    values = np.where(land(ocean), 0.0, temperature(ocean))
    made = aggregated(
        tmp_path, in_blocks(values), f'grid: {ocean.name}, mask: {{file: mask.grib2, where: "lsm > 0.5"}}'
    )
    assert made.grid.shape == ocean.shape
    np.testing.assert_allclose(made.grid.points(), ocean.points(), rtol=0, atol=1e-9)
    np.testing.assert_allclose(made.values, np.where(land(ocean), np.nan, values), rtol=0, atol=PACKED)


def test_an_ocean_that_begins_in_the_south_is_turned_before_it_is_masked(tmp_path: Path) -> None:
    ocean = on("5/5")
    mask_file(tmp_path, ocean)
    values = np.where(land(ocean), 1e20, temperature(ocean))
    values[30, 10] = 1e20
    options = 'grid: 5/5, from_south: true, missing: 1e20, mask: {file: mask.grib2, where: "lsm > 0.5"}'
    made = aggregated(tmp_path, in_boxes(values[::-1]), options)
    expected = np.where(land(ocean) | (values == 1e20), np.nan, values)
    np.testing.assert_allclose(made.values, expected, rtol=0, atol=PACKED)


def test_a_gap_stays_one_on_the_way_to_products(tmp_path: Path) -> None:
    """The sea at a place on land is missing, and nothing of the land comes into the sea."""
    ocean = on("5/5")
    mask_file(tmp_path, ocean)
    values = np.where(land(ocean), -1e30, temperature(ocean))
    (tmp_path / "wanted.yaml").write_text(
        "product: sea\nfrom: {param: sst, step: 6}\n"
        'do: [{grid: {name: 4/4, method: bilinear}}]\nto: {format: netcdf, name: "sea.nc"}\n'
    )
    text = """
sources: [{follow: param=sst}]
actions: [{aggregate: {grid: 5/5, units: K, mask: {file: mask.grib2, where: lsm > 0.5}}}]
sinks: [{product: {recipe: wanted.yaml, out: made}}]
"""
    (ran,) = through(tmp_path, text, offers(in_blocks(values)))
    assert ran.told == []
    xarray = pytest.importorskip("xarray")
    with xarray.open_dataset(tmp_path / "out/made/sea.nc") as data:
        made = data["sst"].squeeze().values
    there = ~np.isnan(made)
    assert 0.6 < there.mean() < 0.95
    assert np.abs(made - temperature(on("4/4")))[there].max() < 1


def test_an_array_of_another_size_is_named(tmp_path: Path) -> None:
    text = (
        "sources: [{follow: param=sst}]\nactions: [{aggregate: {grid: 5/5}}]\nsinks: [{file: {format: csv, name: x}}]\n"
    )
    (ran,) = through(tmp_path, text, offers(in_blocks(np.zeros((36, 72)))))
    (told,) = ran.told
    assert "param=sst" in told and "2592 values, but the grid 5/5 has 2664" in told


@pytest.mark.parametrize(
    ("aggregate", "says"),
    [
        ("{grid: eORCA1}", "eORCA1: names of grids are like 0.5/0.5"),
        ("{grid: eORCA1_T, missing: 0}", "names of grids are like"),
        ("{grid: N32, from_south: true}", "from_south: N32 has no rows of equal length"),
        ("{grid: 5/5, mask: mask.grib2}", "mask: expected a mapping"),
        ("{grid: 5/5, mask: {file: mask.grib2}}", 'mask: "where" is missing'),
        ("{grid: 5/5, mask: {file: none.grib2, where: lsm > 0}}", "none.grib2: No such file"),
        ("{grid: 5/5, mask: {file: plan.yaml, where: lsm > 0}}", "GRIB message: it begins with b'sour'"),
        ("{grid: 5/5, mask: {file: twice.grib2, where: lsm > 0}}", "twice.grib2: GRIB message"),
        ("{grid: 10/10, mask: {file: mask.grib2, where: lsm > 0}}", "mask.grib2 is on 5/5, and the array on 10/10"),
        ("{grid: 5/5, mask: {file: mask.grib2, where: lms > 0}}", "lms is missing beside lsm"),
        ("{grid: 5/5, mask: {file: mask.grib2, where: lsm >}}", "is no formula"),
    ],
)
def test_what_cannot_be_gathered_is_said_before_anything_runs(tmp_path: Path, aggregate: str, says: str) -> None:
    mask_file(tmp_path, on("5/5"))
    whole = (tmp_path / "mask.grib2").read_bytes()
    (tmp_path / "twice.grib2").write_bytes(whole + whole)
    file = tmp_path / "plan.yaml"
    file.write_text(
        "sources: [{follow: param=sst}]\nsinks: [{file: {format: csv, name: x}}]\n"
        f"actions:\n  - aggregate: {aggregate}\n"
    )
    with pytest.raises(junctura.InvalidArgument) as raised:
        plan_of([file])
    assert "plan.yaml:4" in str(raised.value) and says in str(raised.value)
