"""The fields of a store as a dataset of xarray's: what ecCodes and cfgrib say of the same messages."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_stores import DATA, cube, grib, needs_data

import junctura

xarray = pytest.importorskip("xarray")
pytest.importorskip("eccodes")


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("grib") / "cube.grib"
    path.write_bytes(b"".join(cube()))
    return path


@pytest.fixture
def store(tmp_path: Path, file: Path) -> junctura.Store:
    return junctura.Store.from_grib(tmp_path / "store", file)


def by_cfgrib(file: Path) -> Any:
    pytest.importorskip("cfgrib")
    return xarray.open_dataset(file, engine="cfgrib", backend_kwargs={"indexpath": ""}, decode_timedelta=True)


def opened(store: Any, **options: Any) -> Any:
    given = store.path if isinstance(store, junctura.Store) else store
    return xarray.open_dataset(given, engine="junctura", **options)


def compare(ours: Any, theirs: Any) -> None:
    theirs = theirs.rename({name: "level" for name in theirs.coords if name in ("isobaricInhPa", "hybrid")})
    for name, variable in theirs.data_vars.items():
        mine = ours[name].transpose(*[dim for dim in variable.dims if dim in ours[name].dims])
        assert mine.dims == variable.dims
        for dim in mine.dims:
            if dim in theirs.coords:
                np.testing.assert_array_equal(np.sort(mine[dim].values), np.sort(variable[dim].values))
        along = {dim: mine[dim].values for dim in mine.dims if dim in theirs.indexes}
        np.testing.assert_array_equal(mine.values, variable.sel(along).values)
        assert mine.units == variable.units


def test_the_axes_are_those_of_the_keys(store: junctura.Store) -> None:
    data = opened(store)
    assert dict(data.sizes) == {"time": 2, "step": 2, "level": 3, "latitude": 31, "longitude": 16}
    assert set(data.data_vars) == {"t", "u"}
    assert data.t.dims == ("time", "step", "level", "latitude", "longitude") and data.t.dtype == np.float32
    assert data.level.values.tolist() == [500, 850, 1000] and data.level.units == "hPa"
    assert data.step.values.astype("timedelta64[h]").astype(int).tolist() == [0, 6]
    assert str(data.time.values[1])[:10] == "2026-11-20"
    assert data.valid_time.shape == (2, 2)
    assert data.attrs["levtype"] == "pl" and data.t.units == "K" and data.t.long_name == "Temperature"
    for coordinate, first in (("latitude", 60.0), ("longitude", 0.0)):
        assert data[coordinate].values[0] == first


def test_the_values_are_those_that_cfgrib_reads(store: junctura.Store, file: Path) -> None:
    compare(opened(store), by_cfgrib(file))


@needs_data
@pytest.mark.parametrize(
    "name",
    ["era5-levels-members.grib", "regular_gg_ml_g2.grib", "fields_with_missing_values.grib", "reduced_gg.grib"],
)
def test_real_fields_are_what_cfgrib_reads(tmp_path: Path, name: str) -> None:
    theirs = by_cfgrib(DATA / name)
    ours = opened(junctura.Store.from_grib(tmp_path / "store", DATA / name))
    # cfgrib has names of its own for some parameters.
    named = {"u10": "10u", "t2m": "2t"}
    compare(ours, theirs.rename({old: new for old, new in named.items() if old in theirs}))


def test_only_what_is_asked_for_is_read(store: junctura.Store) -> None:
    data = opened(store, selector="param=t")
    assert list(data.data_vars) == ["t"]
    # All files but the catalogue may be gone, as long as nobody asks.
    place = store.list("param=t")[5].location
    with (Path(store.path) / place.file).open("r+b") as damaged:
        damaged.seek(place.offset + place.nbytes - 5)
        damaged.write(b"\xff")
    one = data.t.isel(time=0, step=0).sel(level=1000)
    assert one.isel(latitude=0, longitude=slice(2, 5)).values == pytest.approx([2, 3, 4], abs=0.01)
    with pytest.raises(junctura.Corrupt):
        data.t.load()


@pytest.mark.parametrize(
    "pick",
    [
        {"time": 1},
        {"step": [1, 0], "level": slice(None, None, -1)},
        {"level": [2, 0], "latitude": [30, 0, 5], "longitude": -1},
        {"time": slice(0, 0)},
        {"time": 0, "step": 1, "level": 2, "latitude": 3, "longitude": 4},
    ],
    ids=str,
)
def test_parts_are_the_parts_of_the_whole(store: junctura.Store, pick: dict[str, Any]) -> None:
    lazy, whole = opened(store), opened(store).load()
    xarray.testing.assert_identical(lazy.isel(pick).load(), whole.isel(pick))


def test_vectorised_and_by_dask(store: junctura.Store) -> None:
    pytest.importorskip("dask")
    whole = opened(store).load()
    points = {"latitude": xarray.DataArray([0, 1, 2], dims="p"), "level": xarray.DataArray([2, 1, 0], dims="p")}
    xarray.testing.assert_equal(opened(store).isel(points).load(), whole.isel(points))
    chunked = opened(store, chunks={})
    assert chunked.t.chunks == ((1, 1), (1, 1), (1, 1, 1), (31,), (16,))
    xarray.testing.assert_equal(chunked.mean("time").compute(), whole.mean("time"))
    again = pickle.loads(pickle.dumps(chunked))
    xarray.testing.assert_equal(again.compute(), whole)


def test_a_lazy_dataset_is_pickled_by_what_it_is(store: junctura.Store) -> None:
    lazy = opened(store)
    saved = pickle.dumps(lazy)
    whole = opened(store).load()
    with store:
        store.archive(b"not what was listed", store.list("param=t")[0].attributes)
    for again in (pickle.loads(saved), pickle.loads(pickle.dumps(pickle.loads(saved)))):
        xarray.testing.assert_equal(again.load(), whole)


def test_missing_combinations_are_an_error_or_nan(tmp_path: Path) -> None:
    store = junctura.Store(tmp_path / "store", create=True)
    file = tmp_path / "fields.grib"
    file.write_bytes(grib(step=0, level=500) + grib(step=6, level=500) + grib(step=6, level=850))
    store.archive_grib(file)
    store.flush()
    with pytest.raises(junctura.NotFound, match=r"missing: \{step=0,levelist=850\}"):
        opened(store)
    data = opened(store, partial=True)
    there = np.isfinite(data.t).all(["latitude", "longitude"])
    assert there.values.tolist() == [[True, False], [True, True]]
    with pytest.raises(junctura.NotFound, match="nothing that is there matches"):
        opened(store, selector="param=v")
    with pytest.raises(junctura.InvalidSelector):
        opened(store, selector="param=(")


def test_values_that_are_missing_in_a_message_are_nan(tmp_path: Path) -> None:
    values = np.arange(16 * 31, dtype="f8")
    values[7] = -5000.0
    file = tmp_path / "field.grib"
    file.write_bytes(grib(bitmapPresent=1, missingValue=-5000.0, values=values))
    data = opened(junctura.Store.from_grib(tmp_path / "store", file), dtype="float64")
    assert data.t.dtype == np.float64 and np.isnan(data.t.values.reshape(-1)).nonzero()[0].tolist() == [7]


def test_grids_without_rows_have_one_dimension(tmp_path: Path) -> None:
    file = tmp_path / "field.grib"
    file.write_bytes(grib("reduced_gg_pl_32_grib2"))
    data = opened(junctura.Store.from_grib(tmp_path / "store", file))
    assert data.t.dims == ("values",) == data.latitude.dims == data.longitude.dims


def test_what_makes_no_cube_is_said(tmp_path: Path) -> None:
    file = tmp_path / "fields.grib"
    file.write_bytes(grib(shortName="t") + grib("reduced_gg_pl_32_grib2", shortName="u"))
    store = junctura.Store.from_grib(tmp_path / "store", file)
    with pytest.raises(junctura.InvalidArgument, match="different grids"):
        opened(store, partial=True)
    (obj, _) = store.list()
    with store:
        store.archive(obj.read(), obj.attributes)
    with pytest.raises(junctura.InvalidArgument, match="several objects of t"):
        opened(store.list("param=t", all_versions=True))
    with store:
        store.archive(obj.read(), {**obj.attributes, "number": 1})
        store.archive(obj.read(), {**obj.attributes, "number": 2})
    with pytest.raises(junctura.InvalidArgument, match="some objects of t have no number"):
        opened(store, selector="param=t", partial=True)


def test_arrays_and_several_ways_to_name_a_store(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema=["record", "free"])
    with store:
        for sequence in range(3):
            about = {"collection": "c", "producer": "p", "sequence": sequence}
            store.archive(np.full((2, 2), sequence), about)
    assert store.list()[0].to_xarray().shape == (2, 2)
    for given in (store.path, str(store.path), Path(store.path).as_uri(), store, store.snapshot(), store.list()):
        data = opened(given)
        assert data["data"].dims[0] == "sequence" and data["data"].shape == (3, 2, 2)
        assert data["data"].isel(sequence=2).values.tolist() == [[2, 2], [2, 2]]
    assert store.list().to_xarray().identical(opened(store))
    with store:
        store.archive(b"", name="a", schema="free")
    with pytest.raises(junctura.InvalidArgument, match="several schemas: record, free"):
        opened(store)
    with pytest.raises(junctura.InvalidArgument, match="a listing is taken as it is"):
        opened(store.list(), selector="sequence=1")
    with pytest.raises(junctura.NotFound):
        opened(tmp_path / "nowhere")


CFD = """
name: cfd
key: {dataset: [case], collocation: [step], element: [quantity]}
attributes:
  case: {type: string}
  step: {type: integer}
  quantity: {type: string}
  dtype: {type: string}
  shape: {type: list of integer}
"""


def test_the_attribute_that_separates_variables_is_an_option(tmp_path: Path) -> None:
    with junctura.Store.create(tmp_path / "store", schema=CFD) as store:
        for step in (1, 2):
            for quantity in ("p", "u"):
                store.archive(np.full((2, 3), float(step)), case="a", step=step, quantity=quantity)
    assert store.list().to_xarray()["data"].dims == ("step", "quantity", "dim_0", "dim_1")
    for data in (store.list().to_xarray(variable="quantity"), opened(store, variable="quantity")):
        assert set(data.data_vars) == {"p", "u"}
        assert data.p.dims == ("step", "dim_0", "dim_1")
        np.testing.assert_array_equal(data.p.sel(step=2).values, np.full((2, 3), 2.0))
    with pytest.raises(junctura.InvalidArgument, match=r"variable: .* case, step, quantity, .* mean quantity\?"):
        store.list().to_xarray(variable="quanity")
    with pytest.raises(junctura.InvalidArgument, match=r"p is a value of quantity: .* variable='quantity'"):
        store.list().to_xarray(variable="p")


def test_the_engine_is_found_by_itself(store: junctura.Store) -> None:
    assert "junctura" in xarray.backends.list_engines()
    assert set(xarray.open_dataset(store.path, drop_variables="u").data_vars) == {"t"}


def test_one_object_is_an_array(store: junctura.Store) -> None:
    field = store.list("param=u,step=6,level=850")[0].to_xarray()
    assert field.dims == ("latitude", "longitude") and field.name == "u" and field.levelist.item() == 850
