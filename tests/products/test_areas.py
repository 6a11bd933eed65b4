"""Fields of areas on other grids: what MIR itself makes of them, missing outside, and memory that follows the area."""

from __future__ import annotations

import importlib.util
import json
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import grib_messages
import numpy as np
import pytest

from junctura.errors import InvalidArgument, TooLarge, Unsupported
from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._operations import Crop
from junctura.products._outputs import Output
from junctura.products._outputs.grib2 import made
from junctura.products._regrid import weight_matrices
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.interpolate import prepare, to_grid
from junctura.products._workers.make_product import FieldTransforms

pytest.importorskip("scipy")
if importlib.util.find_spec("mir") is None:
    pytest.skip("MIR is not installed", allow_module_level=True)

_MIR_NAMES = {"linear": "linear", "bilinear": "bilinear", "nearest": "nearest-neighbour"}
# Areas with any origin and spacing, globes whose rows or columns begin elsewhere, and areas of whole grids: the last
# one of a grid that is too large to be made for its areas.
_SOURCES = {
    "11x19@73/-27/33/45": 4.0,
    "144x192@89.375/0.9375/-89.375/359.0625": 1.875,
    "45x90@88/0/-88/356": 4.0,
    "27x27@9.5/-10/-10/9.5": 0.75,
    "31x41@50.013/3.007/49.713/3.407": 0.01,
    "F48@72/-24/33/45": 1.875,
    "0.1/0.1@60/-5/50/8": 0.1,
}
_TARGETS = ("O32", "7x9@50.3/3.1/49.7/3.9")


def _needs_yac() -> None:
    if importlib.util.find_spec("yac") is None:
        pytest.skip("YAC is not installed")


def _on(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def _smooth(on: Grid) -> Any:
    """A field without a seam or a pole of its own: a linear function on the unit sphere, which is curved on it."""
    north, east = map(np.radians, on.points())
    return (10 * np.sin(north) + np.cos(north) * (3 * np.cos(east) - 4 * np.sin(east))).reshape(on.shape)


def _covers(source: Grid, target: Grid) -> Any:
    """Which points lie between the outermost rows and columns, or beyond these on a globe."""
    north, east = target.points()
    rows, columns = source.latitudes, source.longitudes
    if source.name.startswith(("144x192", "45x90")):
        return np.ones(target.size, np.bool_)
    east = np.where(east > 180, east - 360, east)
    is_row = (north <= rows[0] + 1e-7) & (north >= rows[-1] - 1e-7)
    return is_row & (east >= columns[0] - 1e-7) & (east <= columns[-1] + 1e-7)


@pytest.mark.parametrize("target", _TARGETS)
@pytest.mark.parametrize("source", _SOURCES)
def test_values_are_near_the_truth_and_missing_outside(source: str, target: str) -> None:
    origin, on = _on(source), _on(target)
    field, truth = Field(_smooth(origin), origin, {"param": "t"}), _smooth(on).ravel()
    spacing = np.radians(_SOURCES[source])
    # The function's second derivative along any great circle is 11.2 at most, and its first one, too.
    bounds = {"linear": 11.2 * spacing**2 / 4, "bilinear": 11.2 * spacing**2 / 4, "nearest": 11.2 * spacing}
    for method, bound in bounds.items():
        made = to_grid(field, on, method).values.ravel()  # type: ignore[arg-type]
        assert np.array_equal(~np.isnan(made), _covers(origin, on)), method
        assert np.abs(made - truth)[_covers(origin, on)].max(initial=0) <= bound + 1e-6, method


# MIR drops the first row of a message of a Gaussian area, whose latitude is rounded.
@pytest.mark.parametrize("source", [name for name in _SOURCES if not name.startswith("F")])
def test_results_are_those_of_mir(by_mir: Callable[..., list[Any]], source: str) -> None:
    origin = _on(source)
    north, south = float(origin.latitudes[0]), float(origin.latitudes[-1])
    west, east = float(origin.longitudes[0]), float(origin.longitudes[-1])
    rng = np.random.default_rng(3)
    places = np.column_stack([rng.uniform(south, north, 50), rng.uniform(west, east, 50)]).round(3)
    if not origin.goes_around:
        places[:2] = [[north, west], [south, east]]
    on = _on(f"points@{','.join(f'{lat:.10g}/{lon:.10g}' for lat, lon in places)}")
    values = rng.normal(size=origin.shape)
    ends = (north, west % 360, south, east % 360)
    rows, columns = origin.shape
    message = grib_messages.latlon(rows, columns, ends, values, shortName="t")
    field = decode(message)
    assert np.allclose(field.grid.points(), origin.points(), rtol=0, atol=1e-6)
    at = {"latitudes": on.latitudes.tolist(), "longitudes": np.mod(on.longitudes, 360).tolist()}
    jobs = [([message], {**at, "interpolation": name}) for name in _MIR_NAMES.values()]
    for method, theirs in zip(_MIR_NAMES, by_mir(*jobs), strict=True):
        made = to_grid(field, on, method).values  # type: ignore[arg-type]
        # MIR reads rounded ends from the message.
        assert np.allclose(made, theirs, rtol=0, atol=1e-4), method


def _overlaps(source: Grid, target: Grid) -> Any:
    """Shares of boxes in boxes between parallels and meridians, in closed form; rows are boxes of the target."""

    def bounds(axis: Any) -> Any:
        middle = (axis[1:] + axis[:-1]) / 2
        return np.concatenate([[2 * axis[0] - middle[0]], middle, [2 * axis[-1] - middle[-1]]])

    shares = []
    for name in ("latitudes", "longitudes"):
        one, other = (bounds(getattr(on, name)) for on in (source, target))
        if name == "latitudes":
            one, other = (np.sin(np.radians(np.clip(edges, -90, 90)))[::-1] for edges in (one, other))
        low = np.maximum(other[:-1, None], one[None, :-1])
        high = np.minimum(other[1:, None], one[None, 1:])
        share = np.maximum(high - low, 0)
        shares.append(share[::-1, ::-1] if name == "latitudes" else share)
    return np.kron(*shares)


@pytest.mark.parametrize(
    ("source", "target"),
    [
        ("11x19@73/-27/33/45", "13x9@70.5/-20.3/40.5/30.1"),
        ("31x41@50.013/3.007/49.713/3.407", "4x5@50/3.1/49.8/3.4"),
        ("0.1/0.1@60/-5/50/8", "0.5/0.5@58/-4/51/7"),
        ("0.1/0.1@60/-5/50/8", "31x21@56.7/1.3/53.3/5.6"),
        ("13x9@70.5/-20.3/40.5/30.1", "11x19@73/-27/33/45"),
    ],
)
def test_conservative_means_are_shares_of_boxes(source: str, target: str) -> None:
    _needs_yac()
    origin, on = _on(source), _on(target)
    values = np.random.default_rng(5).normal(size=origin.shape)
    made = to_grid(Field(values, origin), on, "conservative").values.ravel()
    shares = _overlaps(origin, on)
    is_in = _covers(origin, on)
    assert np.array_equal(~np.isnan(made), is_in)
    expected = (shares @ values.ravel())[is_in] / shares.sum(axis=1)[is_in]
    assert np.allclose(made[is_in], expected, rtol=0, atol=1e-9)


def test_conservative_means_of_a_large_globe_in_an_area_are_those_of_mir(monkeypatch: pytest.MonkeyPatch) -> None:
    _needs_yac()
    area = _on("2/2@72/-24/34/44")
    fields = [Field(np.random.default_rng(5).normal(size=_on("3/3").shape), _on("3/3"))]
    fields += [Field(_smooth(_on("O32")), _on("O32"))]
    by_mir = [to_grid(field, area, "conservative").values for field in fields]
    monkeypatch.setattr(weight_matrices, "_SHARED_MAX", 0)
    monkeypatch.setattr(weight_matrices, "_kept", type(weight_matrices._kept)(1 << 20))
    # MIR's boxes of Gaussian grids do not end half way between rows.
    for field, expected, apart in zip(fields, by_mir, (1e-9, 5e-3), strict=True):
        assert np.allclose(to_grid(field, area, "conservative").values, expected, rtol=0, atol=apart), field.on


def test_an_area_of_a_grid_too_large_to_share_has_the_bits_of_the_whole(monkeypatch: pytest.MonkeyPatch) -> None:
    origin, area = _on("F16"), _on("3/3@71/-25/33/45")
    field = Field(np.random.default_rng(5).normal(size=origin.shape), origin, {"param": "u"})
    whole = {method: to_grid(field, area, method).values for method in _MIR_NAMES}  # type: ignore[arg-type]
    monkeypatch.setattr(weight_matrices, "_SHARED_MAX", 0)
    monkeypatch.setattr(weight_matrices, "_kept", type(weight_matrices._kept)(1 << 20))
    for method, values in whole.items():
        assert np.array_equal(to_grid(field, area, method).values, values), method  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["11x19@73/-27/33/45", "4/4@73/-27/33/45", "F16@70/-20/30/40", "90x180@89/1/-89/359"])
def test_an_area_is_cut_out_of_an_area(name: str) -> None:
    origin = _on(name)
    field = Field(np.arange(origin.size, dtype=np.float64).reshape(origin.shape), origin)
    (made,) = Crop(60, -10, 40, 20)([field], FieldTransforms())
    north, east = (places.reshape(origin.shape) for places in origin.points())
    east = np.where(east > 180, east - 360, east)
    is_in = (north <= 60) & (north >= 40) & (east >= -10) & (east <= 20)
    expected = sorted(zip(-north[is_in], east[is_in], field.values[is_in], strict=True))
    found = zip(-made.grid.points()[0], made.grid.points()[1], made.values.ravel(), strict=True)
    assert np.allclose(list(found), expected, rtol=0, atol=1e-6) and _on(made.grid.name) == made.grid
    assert np.allclose(_on(made.grid.name).points(), made.grid.points(), rtol=0, atol=1e-8)


def test_two_parts_of_an_area_are_refused() -> None:
    with pytest.raises(InvalidArgument, match="area 60/160/40/200: the grid 11x341@60/-170/40/170 has two parts in it"):
        _on("11x341@60/-170/40/170").crop(60, 160, 40, 200)
    with pytest.raises(InvalidArgument, match="has no point in it"):
        _on("11x19@73/-27/33/45").crop(30, 0, 20, 10)


def test_one_row_or_point_is_taken_by_the_nearest_only() -> None:
    origin = _on("1x1@51.07/7.27/51.07/7.27")
    field, on = Field(np.array([[5.0]]), origin), _on("points@51.07/7.27,51.1/7.27")
    made = to_grid(field, on, "nearest").values
    assert made[0] == 5 and np.isnan(made[1])
    with pytest.raises(Unsupported, match="one row or column has nothing beside it: take nearest"):
        to_grid(field, on)


def test_weights_that_take_too_much_memory_are_refused_before(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setenv("JUNCTURA_CACHE", str(tmp_path))
    monkeypatch.setattr(weight_matrices, "free_bytes", lambda: 400 << 20)
    monkeypatch.setattr(weight_matrices, "_run", lambda *_: pytest.fail("begun"))
    with pytest.raises(TooLarge, match=r"linear weights .*: about 0\.\d GB of memory are needed .* 0\.4 GB are free"):
        prepare("717x1121@55.4/-12/37.5/16", "0.1/0.1@55/-12/38/15")
    with pytest.raises(TooLarge, match="GB of memory are needed"):
        prepare("F320", "0.25/0.25")


_PROGRAM = """
import resource, sys
from junctura.products._regrid.interpolate import prepare
prepare(*sys.argv[1:])
print(1024 * resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss)
"""


@pytest.mark.parametrize(
    ("source", "area"),
    [("717x1121@55.4/-12/37.5/16", (0.025, [55.4, -12, 37.5, 16])), ("0.1/0.1@72/-25/34/45", (0.1, [72, -25, 34, 45]))],
)
def test_memory_is_at_most_twice_that_of_mir_itself(tmp_path: Path, source: str, area: tuple[float, Any]) -> None:
    spacing, edges = area
    target = f"{spacing}/{spacing}@{edges[0] - 0.3}/{edges[1] + 0.3}/{edges[2] + 0.3}/{edges[3] - 0.3}"
    if spacing == 0.1:
        target = target.replace("0.1/0.1", "0.25/0.25")
    ours = _took([sys.executable, "-c", _PROGRAM, source, target], tmp_path)
    direct = (
        "import json, mir, resource, sys; job = mir.Job(); spec, options = map(json.loads, sys.argv[1:3]);"
        "[job.set(name, value) for name, value in options.items()];"
        "job.execute(mir.GridSpecInput(json.dumps(spec)), mir.EmptyOutput());"
        "print(1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss)"
    )
    name, _, cut = target.partition("@")
    options = {"grid": name, "area": cut, "interpolation": "linear", "interpolation-matrix": str(tmp_path / "m")}
    spec = {"grid": [spacing, spacing], "area": edges}
    theirs = _took([sys.executable, "-c", direct, json.dumps(spec), json.dumps(options)], tmp_path)
    assert ours <= 2 * theirs
    sizes = _on(source).size, _on(target).size
    assert 0.7 * ours < weight_matrices.memory_bytes("linear", *sizes) < 1.5 * ours


def _took(command: list[str], folder: Path) -> int:
    environment = {**os.environ, "JUNCTURA_CACHE": str(folder), "MIR_CACHE_PATH": str(folder), "OMP_NUM_THREADS": "1"}
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=True)
    return int(done.stdout.splitlines()[-1])


@pytest.mark.parametrize("name", ["11x19@73/-27/33/45", "1x3@50/5/50/7", "1x1@51.07/7.27/51.07/7.27"])
def test_an_area_goes_into_grib_and_comes_back(name: str) -> None:
    on = _on(name)
    values = np.random.default_rng(5).normal(size=on.shape)
    said = {"param": "t", "levtype": "pl", "levelist": 500, "date": 20261120, "time": 0, "step": 6}
    back = decode(made([Field(values, on, said, "K")], Output("grib2", bits=24)))
    assert back.on == on and np.allclose(back.values, values, rtol=0, atol=1e-6)
