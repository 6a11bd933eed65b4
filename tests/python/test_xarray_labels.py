"""Datasets of arrays with labels are what `xarray.concat` makes of them, or an error names the difference."""

from __future__ import annotations

import itertools
import pickle
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import junctura

xarray = pytest.importorskip("xarray")
pytest.importorskip("dask")

SCHEMA = """
name: xr
key: {dataset: [run], collocation: [], element: [name, step]}
attributes:
  run: {type: string, default: r}
  name: {type: string}
  step: {type: integer}
  dtype: {type: string}
  shape: {type: list of integer}
  content_type: {type: string}
"""
# The catalogue has the labels, the dimensions or the units, or none of these.
SCHEMAS = {
    "behind": SCHEMA,
    "attribute": SCHEMA + "  labels: {type: string}\n",
    "dims": SCHEMA + "  dims: {type: string}\n",
    "units": SCHEMA + "  units: {type: string}\n",
    "unit": SCHEMA + "  unit: {type: string}\n",
}
NAMES = (f"xarray-labels-{number}" for number in itertools.count())
WAYS = ("open_dataset", "listing", "dask of a store", "dask of a pool")


def field(step: int = 0, **more: Any) -> Any:
    attrs = {"units": "K", "long_name": "2 m temperature", "standard_name": "air_temperature", "valid": [1, 99]}
    coords = {
        "latitude": ("latitude", [30.0, 20.0], {"units": "degrees_north"}),
        "longitude": ("longitude", [0.0, 10.0, np.nan]),
        "area": (("latitude", "longitude"), np.arange(6, dtype="i2").reshape(2, 3)),
        "step": ((), step, {"long_name": "lead time"}),
        "height": ((), 2.0, {"units": "m"}),
        "valid_at": np.datetime64("2026-11-20", "ns") + np.timedelta64(step, "h"),
    }
    values = np.arange(6.0).reshape(2, 3) + 100 * step
    return xarray.DataArray(values, coords, ("latitude", "longitude"), "t2m", {**attrs, **more})


def opened(way: str, arrays: dict[int, Any], schema: str = SCHEMA, **options: Any) -> Any:
    """The dataset of arrays by their step, lazily."""
    kind = junctura.Schema.from_yaml(schema)
    if way == "dask of a pool":
        pool = junctura.Pool(schema=kind)
        for step, array in arrays.items():
            pool.offer(array, step=step)
        data = junctura.dask.from_selector("", pool=pool, as_="xarray")
        data.set_close(pool.close)
        return data
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=kind)
    with store:
        for step, array in arrays.items():
            store.archive(array, step=step)
    if way == "dask of a store":
        data = junctura.dask.from_selector("", store=store, as_="xarray")
        # A store in memory is there as long as it is open.
        data.set_close(lambda: print(store, end=""))
        return data
    given = store if way == "open_dataset" else store.list()
    return xarray.open_dataset(given, engine="junctura", **options)


def loaded(way: str, arrays: dict[int, Any], schema: str = SCHEMA) -> Any:
    data = opened(way, arrays, schema)
    try:
        return data.compute(scheduler="synchronous")
    finally:
        data.close()


@pytest.mark.parametrize("kind", sorted(SCHEMAS))
@pytest.mark.parametrize("way", WAYS)
def test_a_dataset_is_what_concat_makes(way: str, kind: str) -> None:
    arrays = {step: field(step) for step in (0, 6, 12, 18)}
    data = loaded(way, arrays, SCHEMAS[kind])
    expected = xarray.concat(arrays.values(), "step", coords="different", compat="equals").drop_vars("valid_at")
    xarray.testing.assert_identical(data.t2m, expected)
    assert data.latitude.attrs == {"units": "degrees_north"}
    assert data.step.attrs == {"long_name": "lead time"} and data.height.attrs == {"units": "m"}


REFUSED: dict[str, tuple[Callable[[Any], Any], str]] = {
    "reversed": (lambda a: a[::-1], "different latitude: 30.0/20.0 in .*, and 20.0/30.0 in"),
    "transposed": (lambda a: a.T, "different dimensions: latitude: 2, longitude: 3 in .*, and longitude: 3, latitude"),
    "another grid": (lambda a: a.assign_coords(latitude=[10.0, 30.0]), "different latitude: 30.0/20.0 in"),
    "renamed": (lambda a: a.rename(latitude="lat"), "different dimensions: latitude: 2, .*, and lat: 2"),
    "absent": (
        lambda a: a.drop_vars("latitude"),
        "different coordinates: latitude is 30.0/20.0 in .*, and no latitude",
    ),
    "more": (lambda a: a.assign_coords(z=("latitude", [1, 2])), "different coordinates: no z in .*, and z is 1/2 in"),
    "between": (
        lambda a: a.assign_coords(area=xarray.where(a.area == 3, np.int16(7), a.area)),
        "different area: 3 at position 3 in .*, and 7 in",
    ),
    "larger": (lambda a: a.isel(longitude=[0, 1]), "different dimensions: .*longitude: 3 in .*, and .*longitude: 2 in"),
    "type": (lambda a: a.astype("f4"), "different types: float64 in .*, and float32 in"),
    "type of a coordinate": (lambda a: a.assign_coords(latitude=[30, 20]), r"\(float64\) in .* \(int64\)|int64"),
    "units": (lambda a: (a - 273).assign_attrs(a.attrs, units="degC"), "different units: K in .*, and degC in"),
    "no units": (lambda a: a.drop_attrs(), "different units: K in .*, and none in"),
    "units of a coordinate": (
        lambda a: a.assign_coords(latitude=a.latitude.assign_attrs(units="rad")),
        "units of latitude: degrees_north in .*, and rad in",
    ),
}


@pytest.mark.parametrize("kind", ["attribute", "behind"])
@pytest.mark.parametrize("way", WAYS)
@pytest.mark.parametrize("case", sorted(REFUSED))
def test_another_array_is_refused(case: str, way: str, kind: str) -> None:
    changed, message = REFUSED[case]
    arrays = {step: field(step) for step in (0, 6, 12)}
    for step in (6, 12):
        other = changed(arrays[step])
        with pytest.raises(junctura.InvalidArgument, match=message) as raised:
            loaded(way, {**arrays, step: other}, SCHEMAS[kind])
        text = str(raised.value)
        assert "{r}" not in text and "step=0}" in text and f"step={step}}}" in text, text


def test_an_array_without_labels_among_others_is_refused() -> None:
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(SCHEMA))
    with store:
        store.archive(field(0), step=0)
        store.archive(field(6).values, name="t2m", step=6)
    with pytest.raises(junctura.InvalidArgument, match=r"latitude: 2, longitude: 3 in .*dim_0: 2"):
        store.list().to_xarray()


def test_a_difference_at_an_end_is_found_when_the_dataset_is_opened() -> None:
    arrays = {step: field(step) for step in (0, 6, 12)}
    for kind, step in (("behind", 12), ("attribute", 6), ("dims", 6), ("units", 6)):
        changed = {"dims": arrays[step].T, "units": arrays[step].assign_attrs(units="degC")}
        other = changed.get(kind, arrays[step][::-1])
        with pytest.raises(junctura.InvalidArgument, match=r"^dataset: t2m has .*: choose by the selector"):
            opened("listing", {**arrays, step: other}, SCHEMAS[kind])
    data = opened("listing", {**arrays, 6: arrays[6][::-1]})
    np.testing.assert_array_equal(data.t2m.sel(step=12).values, arrays[12].values)
    with pytest.raises(junctura.InvalidArgument, match=r"step=6.*as step=0 or step=6"):
        data.t2m.sel(step=6).load()


def test_a_pickled_dataset_refuses_the_same(tmp_path: Any) -> None:
    with junctura.Store.create(tmp_path / "store", schema=junctura.Schema.from_yaml(SCHEMA)) as store:
        for step in (0, 6, 12, 18):
            array = field(step)
            store.archive(array if step != 6 else array.assign_coords(latitude=[30.0, 25.0]), step=step)
    lazy = pickle.loads(pickle.dumps(store.list().to_xarray()))
    np.testing.assert_array_equal(lazy.t2m.sel(step=[0, 12, 18]).values, np.stack([field(s) for s in (0, 12, 18)]))
    with pytest.raises(junctura.InvalidArgument, match=r"different latitude: 30.0/20.0 in .*, and 30.0/25.0"):
        lazy.t2m.sel(step=6).load()


def test_a_coordinate_that_differs_can_be_left_out() -> None:
    arrays = {step: field(step).assign_coords(latitude=[30.0 + step, 20.0]) for step in (0, 6, 12)}
    data = opened("open_dataset", arrays, drop_variables="latitude").load()
    assert "latitude" not in data.coords
    np.testing.assert_array_equal(data.t2m.values, np.stack([one.values for one in arrays.values()]))


def test_scalar_coordinates_that_differ_within_a_dataset_are_refused() -> None:
    arrays = {step: field(step).assign_coords(height=2.0 if step != 6 else 10.0) for step in (0, 6, 12)}
    data = opened("listing", arrays)
    assert data.height == 2.0
    with pytest.raises(junctura.InvalidArgument, match=r"different height: 2.0 in .*, and 10.0 in .*drop_variables"):
        data.load()
    arrays[12] = arrays[12].assign_coords(height=3.0)
    assert "height" not in opened("listing", arrays).load().coords


def test_each_variable_keeps_its_labels() -> None:
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(SCHEMA))
    arrays = {}
    with store:
        for name, height, units in (("t2m", 2.0, "K"), ("u10", 10.0, "m s-1")):
            parts = [field(step, units=units, long_name=name * 2).assign_coords(height=height) for step in (0, 6)]
            arrays[name] = xarray.concat(parts, "step", coords="different", compat="equals").rename(name)
            for part in parts:
                store.archive(part.rename(name), step=int(part.step))
    data = store.list().to_xarray().load()
    for name, array in arrays.items():
        np.testing.assert_array_equal(data[name].values, array.values)
        assert data[name].attrs == {**array.attrs, "height": float(array.height)}
    assert "height" not in data.coords


def of_texts(step: int, dtype: Any) -> Any:
    coords = {"station": ("x", np.array(["a", "b"], dtype)), "site": ((), np.array("c", dtype))}
    return xarray.DataArray([step, step + 1], coords, "x", "t2m")


@pytest.mark.parametrize("way", WAYS)
def test_texts_of_coordinates_are_compared_by_value(way: str) -> None:
    dtypes: dict[int, Any] = {0: "U1", 6: "U3", 12: object}
    data = loaded(way, {step: of_texts(step, dtype) for step, dtype in dtypes.items()})
    assert data.station.values.tolist() == ["a", "b"] and data.site.values.tolist() == "c"
    assert data.t2m.values.tolist() == [[0, 1], [6, 7], [12, 13]]
    for at, dtype in dtypes.items():
        arrays = {step: of_texts(step, "U1") for step in dtypes}
        arrays[at] = of_texts(at, dtype).assign_coords(station=("x", np.array(["a", "c"], dtype)))
        with pytest.raises(junctura.InvalidArgument, match=r"different station: a/b in .*, and a/c in|: a/c in .* a/b"):
            loaded(way, arrays)


def test_texts_of_coordinates_are_compared_after_pickling(tmp_path: Any) -> None:
    with junctura.Store.create(tmp_path / "store", schema=junctura.Schema.from_yaml(SCHEMA)) as store:
        for step, dtype in {0: "U1", 6: "U3", 12: object, 18: "U1"}.items():
            store.archive(of_texts(step, dtype), step=step)
        other = of_texts(24, "U3").assign_coords(station=("x", ["a", "c"]))
        store.archive(other, step=24)
        store.archive(of_texts(30, "U1"), step=30)
    lazy = pickle.loads(pickle.dumps(store.list().to_xarray()))
    assert lazy.t2m.sel(step=[0, 6, 12, 18, 30]).values[:, 0].tolist() == [0, 6, 12, 18, 30]
    with pytest.raises(junctura.InvalidArgument, match=r"different station: a/b in .*, and a/c in"):
        lazy.t2m.sel(step=24).load()


@pytest.mark.parametrize("kind", "US")
@pytest.mark.parametrize("way", WAYS)
def test_values_that_are_texts_have_the_widest_type(way: str, kind: str) -> None:
    def texts(width: int) -> Any:
        return xarray.DataArray(np.array(["x" * width] * 2, f"{kind}{width}"), dims="x", name="t2m")

    data = loaded(way, {step: texts(width) for step, width in {0: 1, 6: 2, 12: 3}.items()})
    assert data.t2m.dtype == np.dtype(f"{kind}3")
    assert [len(text) for text in data.t2m.values[:, 0]] == [1, 2, 3]


def test_values_that_are_wider_than_those_of_an_opened_dataset_are_not_cut() -> None:
    schema = SCHEMA.replace("  dtype: {type: string}\n", "")
    arrays = {
        step: xarray.DataArray(["x" * width], dims="x", name="t2m") for step, width in {0: 1, 6: 3, 12: 1}.items()
    }
    data = opened("listing", arrays, schema)
    with pytest.raises(junctura.InvalidArgument, match=r"different types: <U1 in .*, and <U3 in"):
        data.t2m.sel(step=6).load()


@pytest.mark.parametrize("dtype", ["U", object])
def test_scalar_texts_that_differ_between_variables_are_their_attributes(dtype: Any) -> None:
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(SCHEMA))
    with store:
        for name, site, gap in (("a", "Rome", None), ("b", "Oslo", np.nan)):
            coords = {"site": ((), np.array(site, dtype)), "same": ((), np.array("x", dtype if name == "a" else "U3"))}
            coords["gap"] = ((), np.array(gap, object))
            store.archive(xarray.DataArray([1.0], coords, "x", name), step=0)
    data = store.list().to_xarray().load()
    assert (data.a.attrs["site"], data.b.attrs["site"]) == ("Rome", "Oslo")
    assert data["same"].item() == "x" and "site" not in data.coords


@pytest.mark.parametrize("dtype", ["f4", "i8", "c16", "M8[ns]", "m8[s]"])
def test_values_where_no_object_is(dtype: str) -> None:
    store = junctura.Store.create(f"memory:{next(NAMES)}", schema=junctura.Schema.from_yaml(SCHEMA))
    with store:
        for name, step in (("a", 0), ("a", 6), ("b", 0)):
            store.archive(xarray.DataArray(np.arange(3).astype(dtype), dims="x", name=name), step=step)
    data = store.list().to_xarray(partial=True).load()
    assert data.b.isel(step=1).isnull().all() and not data.b.isel(step=0).isnull()[1:].any()
    assert data.b.dtype == (np.dtype("f8") if dtype == "i8" else np.dtype(dtype))
    assert np.array_equal(data.b.isel(step=0).values, np.arange(3).astype(data.b.dtype))


@pytest.mark.parametrize("pooled", [False, True])
def test_units_in_the_key_are_a_dimension(pooled: bool) -> None:
    schema = junctura.Schema.from_yaml(
        SCHEMA.replace("[name, step]", "[name, step, units]") + "  units: {type: string}"
    )
    arrays = [field(units="K"), field(units="degC")]
    if pooled:
        with junctura.Pool(schema=schema) as pool:
            for array in arrays:
                pool.offer(array, step=0)
            data = junctura.dask.from_selector("", pool=pool, as_="xarray").compute(scheduler="synchronous")
    else:
        store = junctura.Store.create(f"memory:{next(NAMES)}", schema=schema)
        with store:
            for array in arrays:
                store.archive(array, step=0)
        data = store.list().to_xarray().load()
    assert data.units.values.tolist() == ["K", "degC"] and "units" not in data.t2m.attrs
