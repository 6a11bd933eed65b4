"""Names of grids, and where their points are."""

from __future__ import annotations

import math
import pickle

import eccodes
import grib_messages
import numpy as np
import pytest

from junctura.errors import InvalidArgument
from junctura.products._regrid.grids import Grid, Spectral, gaussian_latitudes, grid, points, reduced_gg, regular_ll


@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("0.5/0.5", (361, 720)),
        ("2/1", (181, 180)),
        ("0.5/0.5@72/-25/34/45", (77, 141)),
        ("F48", (96, 192)),
        ("F48@72/-25/34/45", (21, 38)),
        ("N48", (13280,)),
        ("O48", (10944,)),
        ("R2:8,12,12,8", (40,)),
        ("points@50.1/8.7,48.2/16.4", (2,)),
        ("T63", (4160,)),
    ],
)
def test_a_name_names_a_grid(name: str, shape: tuple[int, ...]) -> None:
    named = grid(name)
    assert (named.name, named.shape, named.size) == (name, shape, math.prod(shape))
    assert pickle.loads(pickle.dumps(named)) == named
    if isinstance(named, Grid):
        latitudes, longitudes = named.points()
        assert len(latitudes) == len(longitudes) == named.size
        assert (np.diff(latitudes) <= 0).all() or named.kind == "points"


@pytest.mark.parametrize(
    "name",
    ["", "nonsense", "-1/1", "0/0", "7/7", "1/nan", "F0", "F9000", "N1", "N47", "T0", "T63@1/2/3/4", "R2:8,12,8"]
    + ["1/1@40/0/50/10", "1/1@50/10/40/0", "1/1@1/2/3", "1/1@60.2/10.2/60.1/10.3", "points@", "points@91/0", "R1:"]
    + ["N48@72/-25/34/45", "points@1/2/3", "1/1@90/0/-90/361", "0.001/0.001"],
)
def test_what_names_no_grid_is_refused(name: str) -> None:
    with pytest.raises(InvalidArgument):
        grid(name)


def test_rows_of_a_third_of_a_degree_end_at_the_pole() -> None:
    third = regular_ll(1 / 3, 1 / 3)
    assert third.latitudes[-1] == -90 and third.longitudes[3] == 1
    again = grid(third.name)
    assert isinstance(again, Grid) and again == third and (again.latitudes == third.latitudes).all()


@pytest.mark.parametrize("n", [1, 2, 3, 32, 80, 640])
def test_gaussian_latitudes_are_those_of_eccodes(n: int) -> None:
    assert np.allclose(gaussian_latitudes(n), list(eccodes.codes_get_gaussian_latitudes(n))[: 2 * n], rtol=0, atol=1e-9)


def test_points_of_a_reduced_grid_are_those_of_eccodes() -> None:
    named = grid("N32")
    assert isinstance(named, Grid)
    handle = eccodes.codes_new_from_message(grib_messages.reduced(np.zeros(named.size)))
    for ours, key in ((named.latitudes, "latitudes"), (named.longitudes, "longitudes")):
        assert np.allclose(ours, eccodes.codes_get_array(handle, key), rtol=0, atol=2e-6)
    eccodes.codes_release(handle)


def test_a_reduced_grid_has_the_shortest_name() -> None:
    octahedral = [20 + 4 * row for row in range(32)]
    assert reduced_gg(32, octahedral + octahedral[::-1]).name == "O32"
    classical = grid("N32")
    assert isinstance(classical, Grid)
    _, counts = np.unique(-classical.latitudes, return_counts=True)
    assert reduced_gg(32, counts.tolist()).name == "N32"


def test_an_area_has_the_rows_and_columns_of_the_whole() -> None:
    whole = grid("1/1")
    assert isinstance(whole, Grid)
    area = whole.crop(72, -25, 34, 45)
    rows, columns = whole.rows_and_columns(area)
    assert (whole.latitudes[rows] == area.latitudes).all()
    assert np.allclose(np.mod(area.longitudes, 360), whole.longitudes[columns])
    assert area.longitudes[0] == -25 and area.longitudes[-1] == 45
    assert not area.is_global and whole.is_global


def test_an_area_around_the_globe_begins_where_it_says() -> None:
    whole = grid("1/1")
    assert isinstance(whole, Grid)
    area = whole.crop(90, -180, -90, 179)
    assert area.shape == whole.shape and area.longitudes[0] == -180
    assert area != whole


def test_rows_of_another_grid_are_not_looked_for() -> None:
    whole, other = grid("1/1"), grid("2/2@72/-24/34/44")
    assert isinstance(whole, Grid) and isinstance(other, Grid)
    with pytest.raises(InvalidArgument):
        whole.rows_and_columns(other)


def test_too_many_points_are_refused() -> None:
    with pytest.raises(InvalidArgument):
        points((0, 0) for _ in range(100_001))
    for name in ("O8000", "F4000", "0.01/0.01", "R2:100000000,1,1,1"):
        with pytest.raises(InvalidArgument, match="at most 67108864 are possible"):
            grid(name)


def test_a_truncation_is_no_grid() -> None:
    assert isinstance(grid("T63"), Spectral)
