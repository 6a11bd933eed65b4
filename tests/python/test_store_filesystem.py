"""A store as a file system of fsspec's."""

import json
from contextlib import nullcontext

import fsspec
import pyarrow as pa
import pyarrow.parquet
import pytest
from fsspec.implementations.local import LocalFileSystem

import junctura
from junctura._store.filesystem import StoreFileSystem, path_of

OF_DAY = {"class": "od", "stream": "oper", "date": "2026-11-20", "time": "00:00"}
FIELD = {**OF_DAY, "type": "fc", "levtype": "pl", "levelist": 500}
FOLDER = "mars/class=od,expver=0001,stream=oper,date=20261120,time=0000/type=fc,levtype=pl"
ODD = ["", "a/b", "{", '}{"', "ä ö", "100%", "*?[x]", "\\", "a=b,c", "..", "#"]


@pytest.fixture
def archive(tmp_path):
    with junctura.Store(tmp_path / "archive", create=True) as store:
        for step in (0, 6):
            for param in ("t", "u"):
                store.archive(f"{param}{step}".encode() * 1000, step=step, param=param, **FIELD)
    return str(tmp_path / "archive")


def test_levels_of_a_key_are_folders_and_objects_are_files(archive):
    files = fsspec.filesystem("junctura", store=archive)
    assert isinstance(files, StoreFileSystem)
    assert files.ls("", detail=False) == ["mars"]
    assert files.ls("mars", detail=False) == [FOLDER.rpartition("/")[0]]
    names = [f"{FOLDER}/step={step},levelist=500,param={param}" for step in (0, 6) for param in ("t", "u")]
    assert files.ls(FOLDER, detail=False) == names == files.find("")
    assert files.glob("mars/*/type=fc*/*param=t") == names[::2]
    assert files.isdir(FOLDER) and files.isfile(names[0]) and not files.exists(f"{FOLDER}/step=9")
    info = files.info(f"junctura://{names[3]}")
    assert (info["size"], info["type"], info["commit"]) == (2000, "file", 1)
    assert files.ls(names[3]) == [info] and files.du("") == 8000
    # One that says less is another one.
    for path in (
        f"{FOLDER}/step=9",
        f"{FOLDER}/step=6,param=t",
        f"{FOLDER}/no=word",
        f"{FOLDER}/",
        f"free{FOLDER}/x",
        "a/b",
    ):
        assert not files.isfile(path)
        with pytest.raises(FileNotFoundError):
            files.open(path)
    assert fsspec.filesystem("junctura", store=archive, selector="param=u").find("") == names[1::2]


def test_objects_are_read_as_files(archive, tmp_path):
    name = f"{FOLDER}/step=6,levelist=500,param=t"
    with fsspec.open(f"junctura://{name}", store=archive) as file:
        assert file.read(4) == b"t6t6"
        file.seek(-2, 2)
        assert file.read() == b"t6"
    with fsspec.open(f"junctura://{name}", "rt", store=archive, verified=False) as file:
        assert file.read() == "t6" * 1000
    files = fsspec.filesystem("junctura", store=archive)
    assert files.cat_file(name, 2, 5) == b"t6t" and files.cat_file(name, -3) == b"6t6"
    assert files.cat_file(name, 5, 2) == b"" and files.cat_file(name, 1999, 3000) == b"6"
    assert {path: len(whole) for path, whole in files.cat(f"{FOLDER}/*").items()} == dict.fromkeys(files.find(""), 2000)
    files.get(FOLDER, str(tmp_path / "copied"), recursive=True)
    assert len(LocalFileSystem().find(str(tmp_path / "copied"))) == 4


def test_a_snapshot_stays_until_a_new_one_is_asked_for(archive):
    files = fsspec.filesystem("junctura", store=archive)
    with junctura.Store(archive) as store:
        store.archive(b"new", name="n", schema="free")
        store.archive(b"newer", step=6, param="t", **FIELD)
    assert files.ls("", detail=False) == ["mars"]
    assert not files.exists("free/space=default/-/name=n")
    assert fsspec.filesystem("junctura", store=archive).ls("", detail=False) == ["free", "mars"]
    files.invalidate_cache()
    assert files.ls("", detail=False) == ["free", "mars"]
    assert files.cat_file("free/space=default/-/name=n") == b"new"
    assert files.cat_file(f"{FOLDER}/step=6,levelist=500,param=t") == b"newer"


def test_any_value_is_a_path(tmp_path):
    with junctura.Store.create(tmp_path / "odd", schema="free") as store:
        for name in ODD:
            store.archive(name.encode(), space=name or "empty", name=name)
    files = fsspec.filesystem("junctura", store=str(tmp_path / "odd"))
    found = {path_of(stored): stored.read() for stored in store.list()}
    assert sorted(found) == sorted(files.find("")) and len(found) == len(ODD)
    assert all(path.count("/") == 3 and files.cat_file(path) == whole for path, whole in found.items())


def test_nothing_is_written(archive):
    files = fsspec.filesystem("junctura", store=archive)
    for write in (
        lambda: files.open("mars/x", "wb"),
        lambda: files.pipe("mars/x", b"y"),
        lambda: files.rm(FOLDER, recursive=True),
        lambda: files.mkdir("mars/x"),
        lambda: files.touch("mars/x"),
    ):
        with pytest.raises(OSError, match=r"junctura\.Store\.archive"):
            write()
    assert len(files.find("")) == 4


def test_programs_that_know_only_fsspec_read_objects(tmp_path):
    pandas = pytest.importorskip("pandas")
    sink = pa.BufferOutputStream()
    pa.parquet.write_table(pa.table({"a": [1, 2, 3]}), sink)
    with junctura.Store.create(tmp_path / "tables", schema="free") as store:
        store.archive(sink.getvalue(), name="table")
        store.archive(json.dumps([{"b": 4}]).encode(), name="text")
    place = {"store": str(tmp_path / "tables")}
    url = "junctura://free/space=default/-/name="
    assert pandas.read_parquet(f"{url}table", storage_options=place)["a"].sum() == 6
    assert pandas.read_json(f"{url}text", storage_options=place)["b"].sum() == 4


def test_damage_is_told(tmp_path):
    with junctura.Store.create(tmp_path / "harmed", schema="free") as store:
        store.archive(b"x" * 300_000, name="n")
    place = store.list()[0].location
    with (tmp_path / "harmed" / place.file).open("r+b") as file:
        file.seek(place.offset)
        file.write(b"damage")
    for verified in (True, False):
        files = fsspec.filesystem("junctura", store=str(tmp_path / "harmed"), verified=verified)
        with files.open(files.find("")[0]) as file, pytest.raises(junctura.Corrupt) if verified else nullcontext():
            assert file.read(8) == b"damagexx"
