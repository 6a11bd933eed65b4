"""Payloads for other libraries, and theirs for the pool: DLPack, array interface, xarray, pandas, Arrow, PyTorch."""

from __future__ import annotations

import asyncio
import gc
import subprocess
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import junctura

LARGE = 1 << 18
ONCE = junctura.Released(1)


class ByDLPack:
    """An array of a library that knows nothing but DLPack."""

    def __init__(self, array: np.ndarray[Any, Any], device: tuple[int, int] = (1, 0)) -> None:
        self.array = array
        self.device = device

    def __dlpack__(self, **keywords: Any) -> Any:
        if self.device != (1, 0):
            raise BufferError("it is on a device")
        return self.array.__dlpack__(**keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.device


class ByInterface:
    """An array of a library that gives its address."""

    def __init__(self, array: np.ndarray[Any, Any]) -> None:
        self.array = array
        self.__array_interface__ = array.__array_interface__


class Before1:
    """What a consumer that knows DLPack before 1.0 sees: it does not say a version."""

    def __init__(self, exporter: Any, **keywords: Any) -> None:
        self.exporter = exporter
        self.keywords = keywords

    def __dlpack__(self, **_: Any) -> Any:
        return self.exporter.__dlpack__(**self.keywords)

    def __dlpack_device__(self) -> tuple[int, int]:
        device: tuple[int, int] = self.exporter.__dlpack_device__()
        return device


@pytest.mark.parametrize("size", [100, LARGE])
def test_an_object_goes_out_by_dlpack_read_only_and_held(pool: junctura.Pool, size: int) -> None:
    pool.offer(np.arange(size, dtype="f4").reshape(2, -1), name="a", retention=ONCE)
    obj = pool.demand(name="a")
    assert obj.__dlpack_device__() == (1, 0)
    array = np.from_dlpack(obj)
    assert array.shape == (2, size // 2) and array.dtype == np.float32 and not array.flags.writeable
    assert np.shares_memory(array, obj.array())
    del obj
    gc.collect()
    assert len(pool.list()) == 1
    assert array[1, -1] == size - 1
    del array
    gc.collect()
    assert pool.list() == []


def test_who_cannot_be_told_that_it_is_read_only_gets_a_copy_or_nothing(pool: junctura.Pool) -> None:
    pool.offer(np.arange(4.0), name="a")
    obj = pool.demand(name="a")
    with pytest.raises(BufferError, match="readonly"):
        np.from_dlpack(Before1(obj))
    copied = np.from_dlpack(Before1(obj, copy=True))
    assert copied.tolist() == [0, 1, 2, 3] and not np.shares_memory(copied, obj.array())
    with pytest.raises(BufferError):
        obj.__dlpack__(stream=1)
    with pytest.raises(BufferError):
        obj.__dlpack__(dl_device=(2, 0), max_version=(1, 0))
    del copied
    obj.release()


def test_an_object_whose_address_was_taken_stays(pool: junctura.Pool) -> None:
    pool.offer(np.arange(LARGE), name="a", retention=ONCE)
    obj = pool.demand(name="a")
    interface = obj.__array_interface__
    assert interface["shape"] == (LARGE,) and interface["data"][1] is True
    with obj:
        pass
    assert obj.released
    pool.sync()
    assert pool.list() == []
    assert pool.stat()["objects"]["held"] == 1, "its memory is not used again"
    del obj
    pool.sync()
    assert pool.stat()["objects"]["held"] == 0


def test_an_allocation_is_not_offered_while_others_may_write_to_it(pool: junctura.Pool) -> None:
    with pool.allocate(shape=(3, LARGE), dtype="f8") as field:
        theirs = np.from_dlpack(field)
        theirs[:] = 2.5
        with pytest.raises(junctura.InvalidArgument, match="writable views"):
            field.offer(name="a")
        del theirs
        gc.collect()
        field.offer(name="a")
    assert pool.demand(name="a").array().mean() == 2.5


@pytest.mark.parametrize("wrap", [ByDLPack, ByInterface])
@pytest.mark.parametrize(
    "array", [np.arange(6.0).reshape(2, 3), np.arange(LARGE)[::2], np.zeros((0, 3), "i2")], ids=str
)
def test_what_others_have_is_offered(pool: junctura.Pool, wrap: Any, array: np.ndarray[Any, Any]) -> None:
    pool.offer(wrap(array), name="a")
    found = pool.demand(name="a").array()
    assert found.dtype == array.dtype and np.array_equal(found, array)

    async def offer() -> None:
        await junctura.aio.Pool(pool).offer(wrap(array), name="b")

    asyncio.run(offer())
    assert np.array_equal(pool.demand(name="b").array(), array)


def test_what_lies_on_a_device_is_refused_clearly(pool: junctura.Pool) -> None:
    with pytest.raises(junctura.InvalidArgument, match="ByDLPack"):
        pool.offer(ByDLPack(np.zeros(3), (2, 0)), name="a")


def test_objects_are_not_pickled_by_mistake(pool: junctura.Pool) -> None:
    import pickle

    pool.offer(b"", name="a")
    with pytest.raises(TypeError, match="demand"):
        pickle.dumps(pool.demand(name="a"))


def test_torch(pool: junctura.Pool) -> None:
    torch = pytest.importorskip("torch", reason="its wheel is 540 MB, and more with what it needs")
    pool.offer(torch.arange(6, dtype=torch.float32).reshape(2, 3), name="a")
    obj = pool.demand(name="a")
    with pytest.raises(BufferError):
        torch.from_dlpack(Before1(obj))
    tensor = torch.from_numpy(obj.array())
    assert tensor.sum().item() == 15.0


def test_xarray_there_and_back(pool: junctura.Pool) -> None:
    xarray = pytest.importorskip("xarray")
    field = xarray.DataArray(
        np.arange(6.0).reshape(2, 3),
        dims=("lat", "lon"),
        name="t",
        coords={"number": 7, "valid": np.datetime64("2026-11-20T12:00")},
        attrs={"units": "K", "odd": [1, 2], "scale": 0.5},
    )
    pool.offer(field, colour="red")
    obj = pool.demand(name="t")
    labels = obj["labels"]
    assert obj.attributes == {
        "space": "default",
        "name": "t",
        "dtype": "float64",
        "shape": [2, 3],
        "dims": "lat/lon",
        "units": "K",
        "scale": "0.5",
        "number": "7",
        "valid": "2026-11-20T12:00:00Z",
        "colour": "red",
        "labels": labels,
    }
    back = obj.to_xarray()
    xarray.testing.assert_identical(back, field)
    assert np.shares_memory(back.values, obj.array())
    # What is said stands.
    pool.offer(field, name="other", units="degC")
    assert pool.demand(name="other")["units"] == "degC"


def test_xarray_in_a_schema_takes_what_the_schema_knows() -> None:
    xarray = pytest.importorskip("xarray")
    with junctura.Pool(schema="record") as pool:
        field = xarray.DataArray(
            np.zeros((2, 2)),
            coords={
                "sequence": 5,
                "time": np.datetime64("2026-11-20T12:00"),
                "took": np.timedelta64(90, "m"),
                "other": 1,
            },
            attrs={"units": "K"},
        )
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            pool.offer(field, collection="c", producer="p")
        obj = pool.demand("sequence=5")
        assert obj["time"] == "2026-11-20T12:00:00Z" and obj["took"] == "90m"
        assert obj.get("other") is None
        back = obj.to_xarray()
        assert back.dims == ("dim_0", "dim_1") and back.sequence.item() == 5

        async def offer() -> None:
            await junctura.aio.Pool(pool).offer(field.assign_coords(sequence=6), collection="c", producer="p")

        asyncio.run(offer())
        assert pool.demand("sequence=6")["took"] == "90m"


def grib(kind: str = "regular_ll_pl_grib2", **keys: Any) -> bytes:
    eccodes = pytest.importorskip("eccodes")
    message = eccodes.codes_grib_new_from_samples(kind)
    for key, value in keys.items():
        if key == "values":
            eccodes.codes_set_values(message, value)
        else:
            eccodes.codes_set(message, key, value)
    try:
        return bytes(eccodes.codes_get_message(message))
    finally:
        eccodes.codes_release(message)


def test_grib_is_decoded_with_latitudes_and_longitudes(pool: junctura.Pool) -> None:
    pytest.importorskip("xarray")
    values = np.arange(16 * 31, dtype="f8")
    values[7] = -5000.0
    payload = grib(bitmapPresent=1, missingValue=-5000.0, bitsPerValue=24, values=values)
    pool.offer(payload, name="t", step="6")
    field = pool.demand(name="t").to_xarray()
    assert field.dims == ("latitude", "longitude") and field.shape == (31, 16)
    assert field.latitude.values[[0, 1, -1]].tolist() == [60.0, 58.0, 0.0]
    assert field.longitude.values[[0, 1, -1]].tolist() == [0.0, 2.0, 30.0]
    assert np.isnan(field.values[0, 7]) and np.isnan(field.values).sum() == 1
    assert float(field.sel(latitude=60, longitude=4)) == pytest.approx(2, abs=0.01)
    assert (field.name, field.step.item()) == ("t", "6")


def test_grib_on_a_reduced_grid_is_a_list_of_points(pool: junctura.Pool) -> None:
    pytest.importorskip("xarray")
    pool.offer(grib("reduced_gg_pl_32_grib2"), name="t")
    field = pool.demand(name="t").to_xarray()
    assert field.dims == ("values",)
    assert field.latitude.dims == field.longitude.dims == ("values",)
    pool.offer(grib("sh_pl_grib2"), name="s")
    assert pool.demand(name="s").to_xarray().dims == ("coefficient",)


def test_lists_as_tables() -> None:
    pandas = pytest.importorskip("pandas")
    arrow = pytest.importorskip("pyarrow")
    with junctura.Pool(schema=["mars", "record"]) as pool:
        mars = {"class": "od", "stream": "oper", "type": "fc", "levtype": "pl", "date": "2026-11-20", "time": "12"}
        pool.offer(b"1", mars, param="t", step=6, levelist=500, validity="2026-11-20T18:00:00.25Z", tags=["a", "b"])
        pool.offer(b"22", mars, param="t", step=12, levelist=0.5)
        pool.offer(b"333", schema="record", collection="c", producer="p", sequence=3)
        entries = pool.list()
        frame = junctura.to_pandas(entries)
        assert list(frame.columns[:6]) == ["class", "expver", "stream", "date", "time", "type"]
        assert list(frame.columns[-4:]) == ["key", "version", "nbytes", "schema"]
        assert frame["nbytes"].tolist() == [1, 2, 3]
        assert frame["date"][0] == pandas.Timestamp("2026-11-20") and pandas.isna(frame["date"][2])
        assert frame["levelist"].tolist()[:2] == [500.0, 0.5]
        assert frame["validity"][0] == pandas.Timestamp("2026-11-20T18:00:00.25Z")
        assert frame["sequence"].dtype == "Int64" and frame["sequence"][2] == 3
        assert frame["tags"][0] == ["a", "b"]
        assert frame[frame["step"] == "12"]["key"].tolist() == [entries[1].key]
        table = junctura.to_arrow(entries)
        assert table.schema.field("date").type == arrow.date32()
        assert table.schema.field("tags").type == arrow.list_(arrow.string())
        assert table.column("version").to_pylist() == [str(entry.version) for entry in entries]
        assert junctura.to_pandas([]).empty
        assert junctura.to_arrow([]).num_rows == 0
        with pool.follow(until_live=True) as follow:
            assert junctura.to_pandas(follow)["nbytes"].tolist() == [1, 2, 3]


def test_a_table_of_missing_values_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pytest.importorskip("pandas")
    pytest.importorskip("pyarrow")
    monkeypatch.setattr("junctura._store.tables._MISSING_MAX", 100)
    with junctura.Pool(schema="free") as pool:
        for number in range(11):
            pool.offer(b"", {"name": str(number), f"own{number}": "x"})
        for table in (junctura.to_pandas, junctura.to_arrow):
            with pytest.raises(junctura.LimitExceeded, match="attributes="):
                table(pool.list())
        frame = junctura.to_pandas(pool.list(), ["name", "own3"])
    assert list(frame.columns) == ["name", "own3", "key", "version", "nbytes", "schema"]
    assert frame["own3"].notna().sum() == 1


WITHOUT = """
import sys
class Nothing:
    def find_spec(self, name, path=None, target=None):
        if name.partition(".")[0] in ("xarray", "pandas", "pyarrow", "eccodes"):
            raise ModuleNotFoundError(name)
sys.meta_path.insert(0, Nothing())
import junctura, numpy
assert not {"asyncio", "numpy.ma"} & {"asyncio"} & set(sys.modules), "loaded for nothing"
with junctura.Pool(schema="free") as pool:
    pool.offer(numpy.zeros(3), name="a")
    obj = pool.demand(name="a")
    for call in (obj.to_xarray, lambda: junctura.to_pandas([]), lambda: junctura.to_arrow([])):
        try:
            call()
        except ImportError as error:
            print(error)
"""


def test_what_is_missing_is_named_with_its_extra() -> None:
    said = subprocess.run(
        [sys.executable, "-c", WITHOUT], capture_output=True, text=True, check=True
    ).stdout.splitlines()
    assert [line.rpartition(" ")[2] for line in said] == [
        "'junctura[xarray]'",
        "'junctura[pandas]'",
        "'junctura[arrow]'",
    ]
    assert Path(sys.executable).exists()
