"""Listings as tables, and the files of a checkpoint as others read them."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from python_stores import FIELD

import junctura

arrow = pytest.importorskip("pyarrow")


def filled(path: Path) -> junctura.Store:
    """Several commits, some of which mask others; levels that are no whole numbers; members of which some have none."""
    store = junctura.Store.create(path)
    for commit in range(7):
        with store:
            for step in range(commit + 1):
                number = step if commit % 2 else None
                about = {**FIELD, "levtype": "pl", "step": step, "number": number, "levelist": 0.5 + commit % 3}
                store.archive(f"{commit}/{step}".encode(), about)
    return store


def test_a_table_says_what_the_objects_say(tmp_path: Path) -> None:
    store = filled(tmp_path / "store")
    for listing in (store.list(), store.list("step=1/3,level=0.5"), store.list(all_versions=True)):
        table = listing.to_arrow()
        assert table.num_rows == len(listing)
        for row, obj in zip(table.to_pylist(), listing, strict=True):
            place = obj.location
            assert (row["_file"], row["_offset"], row["_length"]) == (place.file, place.offset, place.nbytes)
            assert row["_commit"] == obj.commit and row["_sequence"] is None
            attributes = {name: value for name, value in row.items() if name[0] != "_" and value is not None}
            attributes["date"] = attributes["date"].strftime("%Y%m%d")
            attributes["levelist"] = float(attributes["levelist"])
            assert attributes == {**obj.attributes, "levelist": float(obj["levelist"])}


def test_texts_are_dictionaries_and_numbers_are_numbers(tmp_path: Path) -> None:
    table = filled(tmp_path / "store").list().to_arrow()
    assert table.column_names[:4] == ["class", "expver", "stream", "date"]
    types = {field.name: field.type for field in table.schema}
    text = arrow.dictionary(arrow.int32(), arrow.string())
    assert types["param"] == types["step"] == types["_file"] == text
    assert (types["number"], types["date"], types["levelist"]) == (
        arrow.int64(),
        arrow.date32(),
        arrow.decimal128(38, 18),
    )
    assert [types[name] for name in ("_offset", "_length", "_checksum")] == [
        arrow.uint64(),
        arrow.uint64(),
        arrow.uint32(),
    ]


def test_a_listing_speaks_the_stream_interface(tmp_path: Path) -> None:
    listing = filled(tmp_path / "store").list()
    reader = arrow.RecordBatchReader.from_stream(listing)
    assert reader.read_all() == listing.to_arrow() == arrow.table(listing)
    # A capsule that nobody takes is given back.
    assert "arrow_array_stream" in repr(listing.__arrow_c_stream__())


def test_an_empty_listing_is_an_empty_table(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema="free")
    table = store.list().to_arrow()
    assert table.num_rows == 0 and "_file" in table.column_names and "name" not in table.column_names


def test_several_schemas_and_open_attributes(tmp_path: Path) -> None:
    store = junctura.Store.create(tmp_path / "store", schema=["free", "record"])
    with store:
        store.archive(b"", name="a", colour="red")
        store.archive(b"", collection="c", producer="p", sequence=1, schema="record")
    rows = store.list().to_arrow().to_pylist()
    assert [row["_schema"] for row in rows] == ["free", "record"]
    assert [row["@colour"] for row in rows] == ["red", None]
    assert [row["name"] for row in rows] == ["a", None]


def test_a_data_frame(tmp_path: Path) -> None:
    pytest.importorskip("pandas")
    frame = filled(tmp_path / "store").list().to_pandas()
    assert str(frame["param"].dtype) == "category" and str(frame["levelist"].dtype) == "Float64"
    assert str(frame["number"].dtype) == "Int64" and frame["date"].dtype.kind == "M"
    assert frame["_length"].sum() == frame.shape[0] * 3


TIMES = """
name: times
key: {dataset: [run], collocation: [], element: [taken]}
attributes:
  run: {type: string, default: r}
  taken: {type: timestamp}
  ended: {type: timestamp}
  exposure: {type: duration}
  day: {type: date}
  gain: {type: decimal}
  dtype: {type: string}
  shape: {type: list of integer}
"""


@pytest.mark.parametrize("fraction", ["", ".5", ".123456789"])
def test_times_are_times_in_both_tables(tmp_path: Path, fraction: str) -> None:
    pandas = pytest.importorskip("pandas")
    with junctura.Store.create(tmp_path / "store", schema=junctura.Schema.from_yaml(TIMES)) as store:
        for hour in range(3):
            about = {"exposure": f"{hour}ms", "ended": f"1600-01-01T0{hour}:00:00Z"} if hour else {}
            store.archive(b"", taken=f"2026-11-20T0{hour}:00:00{fraction}Z", day="2026-11-20", gain="0.5", **about)
    listing = store.list()
    of_listing, of_objects = listing.to_pandas(), junctura.to_pandas(listing)
    unit = "ns" if len(fraction) > 7 else "us"
    for frame in (of_listing, of_objects):
        assert str(frame["taken"].dtype) == f"datetime64[{unit}, UTC]"
        expected = [pandas.Timestamp(f"2026-11-20T0{hour}:00:00{fraction}Z") for hour in range(3)]
        assert frame["taken"].tolist() == expected
        assert str(frame["ended"].dtype) == "datetime64[us, UTC]" and frame["ended"].isna().tolist() == [
            True,
            False,
            False,
        ]
        assert frame["ended"][2].year == 1600 and frame["ended"][2].hour == 2
        assert str(frame["exposure"].dtype) == "timedelta64[ns]"
        assert frame["exposure"][2] == pandas.Timedelta("2ms") and frame["exposure"].isna().tolist() == [
            True,
            False,
            False,
        ]
        assert str(frame["day"].dtype) == "datetime64[s]"
    pandas.testing.assert_frame_equal(
        of_listing[["taken", "ended", "exposure", "day", "gain"]],
        of_objects[["taken", "ended", "exposure", "day", "gain"]],
    )
    table = junctura.to_arrow(listing)
    assert table.schema.field("taken").type == arrow.timestamp(unit, "UTC")
    assert table.schema.field("exposure").type == arrow.duration("ns") and table["exposure"].null_count == 1
    # Others read the texts of the catalogue.
    assert listing.to_arrow()["exposure"].to_pylist() == [None, "1ms", "2ms"]
    assert store.list("taken=2026-11-21").to_pandas().empty


@pytest.mark.parametrize(
    ("name", "values", "dtype"),
    [
        ("exposure", ["1ms", "3000000h"], "timedelta64[ms]"),
        ("exposure", ["1us", "3000000h"], "timedelta64[us]"),
        ("exposure", ["2s", "3000000h"], "timedelta64[s]"),
        ("exposure", ["1ns", "3000000h"], None),
        ("ended", ["1600-01-01T00:00:00Z", "2026-11-20T00:00:00.123456Z"], "datetime64[us, UTC]"),
        ("ended", ["1600-01-01T00:00:00Z", "2026-11-20T00:00:00.123456789Z"], None),
        ("ended", ["1600-01-01T00:00:00.123456789Z", "2026-11-20T00:00:00Z"], None),
    ],
)
def test_times_that_fit_no_unit_are_texts(tmp_path: Path, name: str, values: list[str], dtype: str | None) -> None:
    pandas = pytest.importorskip("pandas")
    with junctura.Store.create(tmp_path / "store", schema=junctura.Schema.from_yaml(TIMES)) as store:
        for hour, value in enumerate(values):
            store.archive(np.zeros(1), taken=f"2026-11-20T0{hour}:00:00Z", **{name: value})
        store.archive(np.zeros(1), taken="2026-11-20T02:00:00Z")
    listing = store.list()
    texts = [obj.get(name) for obj in listing]
    of_dataset = store.list(f"exists({name})").to_xarray()[name]
    for frame in (listing.to_pandas(), junctura.to_pandas(listing)):
        assert frame[name].isna().tolist() == [False, False, True]
        if dtype is None:
            assert frame[name].tolist()[:2] == texts[:2] and str(frame[name].dtype) in ("str", "object", "category")
        else:
            assert str(frame[name].dtype) == dtype
            read = pandas.Timestamp if name == "ended" else pandas.Timedelta
            assert [read(text) for text in values[:1]] == frame[name].tolist()[:1]
    column = junctura.to_arrow(listing)[name]
    if dtype is None:
        assert column.to_pylist() == texts and of_dataset.values.tolist() == texts[:2]
    else:
        assert not arrow.types.is_string(column.type) and of_dataset.dtype.kind in "mM"
        # The short one was not rounded.
        assert len(set(column[:2].cast(arrow.int64()).to_pylist())) == 2 and 0 not in of_dataset.values.astype(int)


def checkpointed(store: junctura.Store) -> list[str]:
    """The files of the newest checkpoint."""
    store.checkpoint()
    newest = max((Path(store.path) / "checkpoints").glob("*.json"))
    return [str(Path(store.path) / name) for name in json.loads(newest.read_text())["files"]]


def test_the_files_of_a_checkpoint_have_the_same_columns(tmp_path: Path) -> None:
    parquet = pytest.importorskip("pyarrow.parquet")
    store = filled(tmp_path / "store")
    listing = store.list(all_versions=True).to_arrow()
    tables = [parquet.read_table(name) for name in checkpointed(store)]
    whole = arrow.concat_tables(tables, promote_options="default")
    assert set(whole.column_names) == set(listing.column_names)
    rows = whole.select(listing.column_names).to_pylist()
    assert rows == listing.to_pylist()


def test_duckdb_reads_both(tmp_path: Path) -> None:
    duckdb = pytest.importorskip("duckdb")
    store = filled(tmp_path / "store")
    files = checkpointed(store)
    listing = store.list(all_versions=True)
    question = "select step, count(*), sum(_length) from {} group by step order by step"
    with duckdb.connect() as database:
        by_file = database.sql(question.format(f"read_parquet({files}, union_by_name=true)")).fetchall()
        database.register("listing", listing.to_arrow())
        by_arrow = database.sql(question.format("listing")).fetchall()
    assert by_file == by_arrow and sum(count for _, count, _ in by_file) == len(listing) == 28


def test_without_the_packages_it_says_what_to_install(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    listing = filled(tmp_path / "store").list()
    for name in [name for name in sys.modules if name.partition(".")[0] in ("pandas", "pyarrow", "xarray")]:
        monkeypatch.delitem(sys.modules, name)
    absent: Any = None
    for name in ("pandas", "pyarrow", "xarray"):
        monkeypatch.setitem(sys.modules, name, absent)
    for call in (listing.to_arrow, listing.to_pandas, listing.to_xarray, listing[0].to_xarray):
        with pytest.raises(ImportError, match="pip install 'junctura"):
            call()
