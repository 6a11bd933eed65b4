"""Attributes of an own schema as coordinates: times, lengths of time, decimals and units, of a pool and of a store."""

from __future__ import annotations

import datetime
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura

xarray = pytest.importorskip("xarray")

SCHEMA = """
name: images
key: {dataset: [camera], collocation: [], element: [taken, height, exposure]}
attributes:
  camera: {type: string}
  taken: {type: timestamp}
  height: {type: decimal, unit: m, default: "2"}
  exposure: {type: duration, default: "1s"}
  temperature: {type: float, unit: K}
  dtype: {type: string}
  shape: {type: list of integer}
"""
# Out of order, at an offset, and with a fraction.
TAKEN = [
    "2026-11-20T12:00:00Z",
    "2026-11-20T11:30:00+01:00",
    "2026-11-20T11:00:00.5Z",
    "2026-11-19T23:59:59.123456789Z",
]
SORTED = np.array(
    ["2026-11-19T23:59:59.123456789", "2026-11-20T10:30:00", "2026-11-20T11:00:00.5", "2026-11-20T12:00:00"], "M8[ns]"
)


def archived(folder: Path, objects: list[dict[str, Any]], schema: str = SCHEMA) -> junctura.Store:
    store = junctura.Store.create(folder / "store", schema=junctura.Schema.from_yaml(schema))
    with store:
        for number, about in enumerate(objects):
            store.archive(np.full(2, float(number)), {"camera": "north", **about})
    return store


def cubes(folder: Path, objects: list[dict[str, Any]], schema: str = SCHEMA) -> list[Any]:
    """The same objects as a dataset: of a store, by xarray's own function, of a pool and by Dask of the store."""
    store = archived(folder, objects, schema)
    found = [store.list().to_xarray(), xarray.open_dataset(folder / "store", engine="junctura")]
    select = pytest.importorskip("junctura.dask").from_selector
    with junctura.Pool(schema=junctura.Schema.from_yaml(schema)) as pool:
        for number, about in enumerate(objects):
            pool.offer(np.full(2, float(number)), {"camera": "north", **about})
        found.append(select("camera=north", pool=pool, as_="xarray").compute(scheduler="synchronous"))
    found.append(select("camera=north", store=folder / "store", as_="xarray").compute(scheduler="synchronous"))
    return found


def test_timestamps_are_moments_in_order(tmp_path: Path) -> None:
    for data in cubes(tmp_path, [{"taken": taken} for taken in TAKEN]):
        assert data.taken.dtype == np.dtype("M8[ns]") and data.data.dims[0] == "taken"
        np.testing.assert_array_equal(data.taken.values, SORTED)
        assert data.data.isel(dim_0=0).values.tolist() == [3, 1, 2, 0]
        day = data.sel(taken="2026-11-20")
        assert day.sizes["taken"] == 3
        assert data.sel(taken=slice("2026-11-20T11:00", None)).data.isel(dim_0=0).values.tolist() == [2, 0]
        assert float(data.data.sel(taken=np.datetime64("2026-11-20T10:30")).mean()) == 1


def test_timestamps_beyond_nanoseconds_are_moments(tmp_path: Path) -> None:
    taken = ["1600-01-01T00:00:00Z", "2600-01-01T00:00:00.25Z"]
    for data in cubes(tmp_path, [{"taken": one} for one in taken]):
        assert data.taken.dtype.kind == "M"
        assert [str(one)[:22] for one in data.taken.values] == ["1600-01-01T00:00:00.00", "2600-01-01T00:00:00.25"]


def test_durations_are_lengths_of_time_in_order(tmp_path: Path) -> None:
    for data in cubes(tmp_path, [{"taken": TAKEN[0], "exposure": length} for length in ("2m", "500ms", "90s")]):
        assert data.exposure.dtype == np.dtype("m8[ns]")
        assert data.exposure.values.astype("m8[ms]").astype(int).tolist() == [500, 90_000, 120_000]
        assert data.data.isel(dim_0=0).values.tolist() == [1, 2, 0]


def test_decimals_are_floats_with_their_unit(tmp_path: Path) -> None:
    both: list[list[float]] = [[2, 10], [0.5, 10]]
    for number, heights in enumerate(both):
        for data in cubes(tmp_path / str(number), [{"taken": TAKEN[0], "height": height} for height in heights]):
            assert data.height.dtype == np.float64 and data.height.units == "m"
            assert data.height.values.tolist() == heights


def test_one_object_has_the_same_coordinates(tmp_path: Path) -> None:
    about = {"taken": TAKEN[2], "height": 2, "exposure": "90s", "temperature": 77.5}
    (stored,) = archived(tmp_path, [about]).list()
    found = [stored.to_xarray()]
    with junctura.Pool(schema=SCHEMA) as pool:
        pool.offer(np.zeros(2), {"camera": "north", **about})
        with pool.demand("camera=north") as obj:
            found.append(obj.to_xarray())
            again = obj.to_xarray()
            # What is offered again has the same key.
            assert pool.list()[0].key == obj.key
        (fetched,) = (
            pytest.importorskip("junctura.dask")
            .from_selector("camera=north", pool=pool)
            .compute(scheduler="synchronous")
        )
        found.append(fetched.to_xarray())
        with junctura.Pool(schema=SCHEMA) as other:
            other.offer(again)
            assert other.list()[0].key == pool.list()[0].key
    for array in found:
        assert array.taken.dtype == np.dtype("M8[ns]") and array.taken.values == SORTED[2]
        assert array.exposure.values == np.timedelta64(90, "s")
        assert array.height.dtype == np.float64 and array.height.units == "m"
        assert array.temperature.values == 77.5 and array.temperature.units == "K"
        assert "units" not in array.taken.attrs


def test_moments_of_numpy_are_in_utc() -> None:
    with junctura.Pool(schema=SCHEMA) as pool:
        for moment in (
            np.datetime64("2026-11-20T11:00:00.5", "ns"),
            np.datetime64("2026-11-20T11:00:00.500", "ms"),
            datetime.datetime(2026, 11, 20, 12, 0, 0, 500_000, datetime.timezone(datetime.timedelta(hours=1))),
        ):
            pool.offer(b"", camera="north", taken=moment, exposure=np.timedelta64(1500, "ms"))
            with pool.demand(camera="north", taken=moment, exposure="1500ms", timeout=0) as obj:
                assert obj["taken"] == "2026-11-20T11:00:00.5Z"
            pool.withdraw_all("camera=north", forget=True)


def test_a_datetime_without_a_zone_is_refused() -> None:
    naive = datetime.datetime(2026, 11, 20, 11)
    with junctura.Pool(schema=SCHEMA) as pool:
        with pytest.raises(junctura.TypeMismatch, match="a time with its offset, such as 2026-11-20T12:00:00Z"):
            pool.offer(b"", camera="north", taken=naive)
        with pytest.raises(junctura.TypeMismatch, match="a time with its offset, such as 2026-11-20T12:00:00Z"):
            pool.demand(camera="north", taken=naive)
        with pytest.raises(junctura.InvalidSelector, match="a time with its offset"):
            pool.list(f"taken>={naive.isoformat()}")


def test_a_float_with_a_rounding_error_is_no_decimal() -> None:
    with junctura.Pool(schema=SCHEMA) as pool:
        refused = "0.30000000000000004 has more than the 15 digits that a float keeps.*round"
        for call in (
            lambda: pool.offer(b"", camera="a", taken=TAKEN[0], height=0.1 * 3),
            lambda: pool.demand(camera="a", taken=TAKEN[0], height=0.1 * 3, timeout=0),
            lambda: pool.withdraw(camera="a", taken=TAKEN[0], height=0.1 * 3),
            lambda: pool.schema().key(camera="a", taken=TAKEN[0], height=0.1 * 3),
        ):
            with pytest.raises(junctura.TypeMismatch, match=refused):
                call()
        pool.offer(b"", camera="a", taken=TAKEN[0], height=round(0.1 * 3, 6))
        pool.demand(camera="a", taken=TAKEN[0], height=0.3, timeout=0).release()
        assert len(pool.list("height=0.3")) == 1
        with pytest.warns(junctura.SelectorWarning, match="has the rounding error of a float; did you mean 0.3"):
            assert pool.list(f"height={0.1 * 3}") == []


def test_small_floats_are_their_own_shortest_text() -> None:
    with junctura.Pool(schema=SCHEMA) as pool:
        for height in (np.float32(0.1), np.float16(0.1), xarray.DataArray(np.float32(0.1)).values[()]):
            pool.offer(b"", camera="a", taken=TAKEN[0], height=height)
            pool.demand(camera="a", taken=TAKEN[0], height=0.1, timeout=0).release()
            pool.withdraw_all("camera=a", forget=True)
