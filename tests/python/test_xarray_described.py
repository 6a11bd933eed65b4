"""Attributes outside the key are coordinates along the dimensions that determine them."""

from __future__ import annotations

import itertools
from typing import Any

import numpy as np
import pytest

import junctura

xarray = pytest.importorskip("xarray")
pytest.importorskip("dask")

SCHEMA = """
name: images
key: {dataset: [run], collocation: [], element: ["name?", start, level]}
attributes:
  run: {type: string, default: r}
  name: {type: string}
  start: {type: timestamp}
  level: {type: integer, default: 0}
  filter: {type: string}
  exposure: {type: duration}
  temperature: {type: float, unit: K}
  gain: {type: decimal}
  frames: {type: integer}
  open: {type: bool}
  ended: {type: timestamp}
  day: {type: date}
  tags: {type: list of string}
  dtype: {type: string}
  shape: {type: list of integer}
  content_type: {type: string}
"""
STARTS = [f"2026-11-20T1{hour}:00:00Z" for hour in range(4)]
TIMES = np.array([text.removesuffix("Z") for text in STARTS], "M8[ns]")
NAMES = (f"xarray-described-{number}" for number in itertools.count())
Objects = list[tuple[Any, dict[str, Any]]]


def in_a_store(objects: Objects, **options: Any) -> Any:
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(SCHEMA))
    with store:
        for data, about in objects:
            store.archive(data, about)
    return xarray.open_dataset(store, engine="junctura", **options).load()


def in_a_pool(objects: Objects, **options: Any) -> Any:
    with junctura.Pool(schema=junctura.Schema.from_yaml(SCHEMA)) as pool:
        for data, about in objects:
            pool.offer(data, about)
        data = junctura.dask.from_selector("", pool=pool, as_="xarray", **options)
        return data.compute(scheduler="synchronous")


@pytest.fixture(params=[in_a_store, in_a_pool])
def cube(request: pytest.FixtureRequest) -> Any:
    return request.param


def image(value: float = 0.0) -> Any:
    return np.full((2, 2), value)


DESCRIBED: dict[str, tuple[list[Any], Any]] = {
    "filter": (["V", "R", "V", "B"], np.array(["V", "R", "V", "B"])),
    "exposure": (["500ms", "1s", "90m", "1s"], np.array([500, 1000, 5_400_000, 1000], "m8[ms]").astype("m8[ns]")),
    "temperature": ([77.5, 78.0, -1.0, 78.0], np.array([77.5, 78.0, -1.0, 78.0])),
    "gain": (["0.1", "2", "0.10", "3"], np.array([0.1, 2.0, 0.1, 3.0])),
    "frames": ([3, 1, 2, 1], np.array([3, 1, 2, 1])),
    "open": ([True, False, False, True], np.array([True, False, False, True])),
    "ended": (STARTS[::-1], TIMES[::-1]),
    "day": (["20261120", "20261119", "20261120", "20261121"], np.array(["2026-11-20", "2026-11-19"] * 2, "M8[ns]")),
    "tags": ([["a", "b"], ["a"], ["c"], ["a"]], np.array(["a/b", "a", "c", "a"])),
}
DESCRIBED["day"][1][2:] = np.array(["2026-11-20", "2026-11-21"], "M8[ns]")


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_an_attribute_is_a_coordinate_along_what_determines_it(cube: Any, name: str) -> None:
    values, expected = DESCRIBED[name]
    objects = [
        (image(), {"start": start, "level": level, name: value})
        for start, value in zip(STARTS, values, strict=True)
        for level in (1, 2)
    ]
    data = cube(objects)
    assert data["data"].dims[:2] == ("start", "level") and data[name].dims == ("start",)
    np.testing.assert_array_equal(data[name].values, expected)
    assert data[name].dtype.kind == expected.dtype.kind
    assert data[name].attrs == ({"units": "K"} if name == "temperature" else {})


@pytest.mark.parametrize("name", sorted(DESCRIBED))
def test_an_absent_value_and_an_absent_object_are_gaps(cube: Any, name: str) -> None:
    values, expected = DESCRIBED[name]
    objects = [
        (image(), {"start": start, "level": 1, name: value}) for start, value in zip(STARTS, values, strict=True)
    ]
    del objects[1][1][name]
    # At this place along the start, there is no object at the other level either.
    objects += [(image(), {**about, "level": 2}) for _, about in objects[2:]]
    data = cube(objects, partial=True)
    found = data[name]
    assert found.dims == ("start",)
    kept = [0, 2, 3]
    np.testing.assert_array_equal(found.values[kept], expected[kept])
    assert found.values[1] == "" if found.dtype.kind == "U" else found.isnull().values.tolist() == [0, 1, 0, 0]


def test_an_attribute_of_each_object_is_along_all_dimensions_with_gaps(cube: Any) -> None:
    objects = [
        (image(), {"start": start, "level": level, "frames": 10 * hour + level})
        for hour, start in enumerate(STARTS)
        for level in (1, 2)
    ][:-1]
    data = cube(objects, partial=True)
    assert data.frames.dims == ("start", "level")
    np.testing.assert_array_equal(data.frames.values, [[1, 2], [11, 12], [21, 22], [31, np.nan]])


def test_one_value_is_a_scalar_or_an_attribute(cube: Any) -> None:
    about = {"filter": "V", "temperature": 77.5, "exposure": "1s", "tags": ["a", "b"]}
    data = cube([(image(), {"start": start, **about}) for start in STARTS])
    assert data.temperature.item() == 77.5 and data.temperature.units == "K"
    assert data.exposure.values == np.timedelta64(1, "s") and data.attrs["filter"] == "V"
    assert data["data"].attrs == {"tags": ["a", "b"]}


def test_variables_share_a_coordinate_or_have_their_own(cube: Any) -> None:
    objects = [
        (image(), {"name": name, "start": start, "frames": hour, "temperature": hour if name == "a" else -hour})
        for hour, start in enumerate(STARTS)
        for name in ("a", "b")
    ]
    for _, about in objects:
        about["filter"] = str(about["name"]).upper()
    data = cube(objects)
    np.testing.assert_array_equal(data.frames.values, range(4))
    np.testing.assert_array_equal(data.a_temperature.values, range(4))
    np.testing.assert_array_equal(data.b_temperature.values, [0, -1, -2, -3])
    assert "temperature" not in data.coords
    assert (data.a.attrs["filter"], data.b.attrs["filter"]) == ("A", "B")


def test_coordinates_are_in_memory_beside_chunks() -> None:
    objects = [(image(hour), {"start": start, "frames": hour}) for hour, start in enumerate(STARTS)]
    with junctura.Pool(schema=junctura.Schema.from_yaml(SCHEMA)) as pool:
        for data, about in objects:
            pool.offer(data, about)
        lazy = junctura.dask.from_selector("", pool=pool, as_="xarray")
        assert lazy["data"].chunks == ((1,) * 4, (2,), (2,)) and lazy.frames.chunks is None
        assert lazy["data"].sel(start=lazy.start[lazy.frames == 2]).values.tolist() == [[[2, 2], [2, 2]]]


def test_attributes_of_records_do_not_make_valid_times() -> None:
    schema = SCHEMA.replace("start, level]", "step]").replace("{type: integer, default: 0}", "{type: integer}")
    schema += "  step: {type: step}\n  time: {type: timestamp}\n"
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(schema))
    with store:
        for step, start in enumerate(STARTS):
            store.archive(image(), step=step, time=start)
    data = store.list().to_xarray()
    assert data.time.dims == ("step",) and "valid_time" not in data.coords


def test_a_name_in_use_gets_an_underscore(cube: Any) -> None:
    objects = [(image(), {"name": "frames", "start": start, "frames": hour}) for hour, start in enumerate(STARTS)]
    data = cube(objects)
    assert list(data.data_vars) == ["frames"]
    np.testing.assert_array_equal(data.frames_.values, range(4))


def test_labels_of_arrays_are_what_concat_makes(cube: Any) -> None:
    arrays = []
    for hour, start in enumerate(TIMES):
        coords = {"start": start, "filter": "VR"[hour % 2], "frames": ((), hour, {"long_name": "number of frames"})}
        coords |= {"temperature": 77.5, "x": [1.0, 2.0], "run": "r"}
        arrays.append(xarray.DataArray(image(hour), coords, ("y", "x"), "image", {"gain": 2.5, "units": "1"}))
    data = cube([(array, {"start": start}) for array, start in zip(arrays, STARTS, strict=True)])
    expected = xarray.concat(arrays, "start", coords="different", compat="equals")
    # The unit is that of the schema.
    expected.temperature.attrs["units"] = "K"
    xarray.testing.assert_identical(data.image.drop_vars("level"), expected)
