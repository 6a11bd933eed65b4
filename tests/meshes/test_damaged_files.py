"""Files that lack something, or claim what they do not have, give errors that name the file."""

from __future__ import annotations

import contextlib
import os
import shutil
import tracemalloc
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from mesh_files import copy, differences
from random_meshes import one_block, random_mesh, with_fields

import junctura
from junctura.mesh import create, read


def tried(path: Path) -> None:
    with contextlib.suppress(junctura.Error), read(path) as series:
        list(series)


def test_each_node_of_a_cgns_file_is_missing_once(tmp_path: Path) -> None:
    copy(with_fields(0, random_mesh(0, with_mixed=True), 2), create(tmp_path / "whole.cgns"))
    names: list[str] = []
    with h5py.File(tmp_path / "whole.cgns") as file:
        file.visit(names.append)
    assert len(names) > 100
    for name in names:
        path = tmp_path / "part.cgns"
        shutil.copy(tmp_path / "whole.cgns", path)
        with h5py.File(path, "r+") as file:
            del file[name]
        tried(path)


@pytest.mark.parametrize("value", [0, -1, 1 << 30])
def test_each_number_of_a_cgns_file_is_another_once(tmp_path: Path, value: int) -> None:
    copy(with_fields(3, random_mesh(3, with_mixed=True), 1), create(tmp_path / "whole.cgns"))
    names: list[str] = []
    with h5py.File(tmp_path / "whole.cgns") as file:
        file.visit(lambda name: names.append(name) if name.endswith(" data") and file[name].dtype.kind == "i" else None)
    for name in names:
        path = tmp_path / "part.cgns"
        shutil.copy(tmp_path / "whole.cgns", path)
        with h5py.File(path, "r+") as file:
            numbers = file[name][()]
            if numbers.dtype.itemsize > 1 and numbers.size:
                numbers.flat[numbers.size // 2] = value
                file[name][...] = numbers
        tried(path)


def test_each_variable_of_an_exodus_file_is_missing_once(tmp_path: Path) -> None:
    copy(with_fields(0, random_mesh(0), 2), create(tmp_path / "whole.exo"))
    with netCDF4.Dataset(tmp_path / "whole.exo") as whole:
        whole.set_auto_maskandscale(False)
        for missing in whole.variables:
            path = tmp_path / "part.exo"
            with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as part:
                for name, dimension in whole.dimensions.items():
                    part.createDimension(name, None if dimension.isunlimited() else len(dimension))
                for name, variable in whole.variables.items():
                    if name != missing:
                        made = part.createVariable(name, variable.dtype, variable.dimensions)
                        made.setncatts({key: variable.getncattr(key) for key in variable.ncattrs() if key[0] != "_"})
                        made[...] = variable[...]
            tried(path)


def test_claims(tmp_path: Path) -> None:
    """Arrays that were never written have a size, and take no space in the file."""
    path = tmp_path / "a.exo"
    with netCDF4.Dataset(path, "w") as file:
        for name, size in (("num_dim", 3), ("num_nodes", 1 << 40), ("num_elem", 0)):
            file.createDimension(name, size)
        for axis in "xyz":
            file.createVariable(f"coord{axis}", "f8", ("num_nodes",), chunksizes=(1 << 20,))
    with pytest.raises(junctura.LimitExceeded, match=r"a\.exo"):
        read(path)
    copy(with_fields(0, random_mesh(0), 1), create(tmp_path / "a.cgns"))
    with h5py.File(tmp_path / "a.cgns", "r+") as file:
        grid = file["Base/nodes/GridCoordinates/CoordinateX"]
        del grid[" data"]
        grid.create_dataset(" data", (1 << 40,), np.float64, chunks=(1 << 20,))
    with pytest.raises(junctura.LimitExceeded, match=r"a\.cgns"):
        read(tmp_path / "a.cgns")


def test_other_files(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.cgns", "w") as file:
        file["x"] = 1
    with pytest.raises(junctura.Corrupt, match="is not a CGNS file"):
        read(tmp_path / "a.cgns")
    with netCDF4.Dataset(tmp_path / "a.exo", "w") as other:
        other.createDimension("x", 1)
    with pytest.raises(junctura.Corrupt, match="is not an Exodus file"):
        read(tmp_path / "a.exo")
    for name in ("b.exo", "b.cgns"):
        (tmp_path / name).write_bytes(b"nothing of this kind" * 100)
        with pytest.raises(junctura.Io, match=name):
            read(tmp_path / name)


@pytest.mark.parametrize("ending", ["exo", "cgns"])
def test_a_truncated_file(tmp_path: Path, ending: str) -> None:
    """At many places: the netCDF library would read zeros behind the end."""
    series = with_fields(1, one_block(7, "tet"), 2)
    copy(series, create(tmp_path / f"whole.{ending}"))
    whole, part = (tmp_path / f"whole.{ending}").read_bytes(), tmp_path / f"part.{ending}"
    cuts = [1, 2, 3, *range(4, len(whole), max(1, len(whole) // 60))]
    for cut in cuts:
        part.write_bytes(whole[:-cut])
        with pytest.raises((junctura.Corrupt, junctura.Io), match=f"part.{ending}"):
            list(read(part))
    part.write_bytes(whole)
    assert differences(series, read(part)) == []


@pytest.mark.parametrize("form", ["NETCDF3_CLASSIC", "NETCDF3_64BIT_OFFSET", "NETCDF3_64BIT_DATA"])
@pytest.mark.parametrize("steps", [0, 1, 2])
def test_a_truncated_file_of_each_classic_format(tmp_path: Path, form: str, steps: int) -> None:
    """With none, one and several variables that have records."""
    path = tmp_path / "a.exo"
    with netCDF4.Dataset(path, "w", format=form) as file:  # type: ignore[arg-type]
        file.title = "t"
        for name, size in {"num_dim": 1, "num_nodes": 5, "time_step": None, "num_nod_var": 1, "len_name": 3}.items():
            file.createDimension(name, size)
        file.createVariable("coordx", "f4", ("num_nodes",))[...] = 1
        if steps:
            file.createVariable("time_whole", "f8", ("time_step",))[...] = np.arange(float(steps))
            file.createVariable("name_nod_var", "S1", ("num_nod_var", "len_name"))[...] = b"T"
            file.createVariable("vals_nod_var1", "f4", ("time_step", "num_nodes"))[...] = np.ones((steps, 5))
    whole = path.read_bytes()
    assert len(list(read(path))) == max(1, steps)
    for cut in (1, 4, 9):
        path.write_bytes(whole[:-cut])
        with pytest.raises((junctura.Corrupt, junctura.Io), match=r"a\.exo"):
            list(read(path))


def test_a_version_with_other_numbers(tmp_path: Path) -> None:
    copy(with_fields(1, one_block(1, "hex")), create(tmp_path / "a.cgns"))
    with h5py.File(tmp_path / "a.cgns", "a") as file:
        file["CGNSLibraryVersion/ data"][...] = 3.0
    with pytest.raises(junctura.Unsupported, match="convert the file with cgnsupdate"):
        read(tmp_path / "a.cgns")


def claiming(path: Path, dimensions: dict[str, int | None], variables: dict[str, tuple[str, ...]]) -> None:
    """An Exodus file of a tetrahedron, with more dimensions, and variables that were never written."""
    with netCDF4.Dataset(path, "w") as file:
        for name, size in {"num_dim": 3, "num_nodes": 4, "num_elem": 0, **dimensions}.items():
            file.createDimension(name, size)
        for axis in "xyz":
            file.createVariable(f"coord{axis}", "f8", ("num_nodes",))[:] = np.arange(4.0)
        for name, shape in variables.items():
            chunks = [min(dimensions.get(one) or 1, 1 << 10) for one in shape]
            file.createVariable(name, "S1" if "name" in name else "f8", shape, chunksizes=chunks)


@pytest.mark.parametrize(
    ("dimensions", "variables"),
    [
        ({"num_el_blk": 1 << 60}, {}),
        ({"num_el_blk": 1 << 30, "len": 1 << 20}, {"eb_names": ("num_el_blk", "len")}),
        ({"num_node_sets": 1 << 60}, {}),
        ({"num_fa_blk": 1 << 60}, {}),
        ({"time_step": 1 << 60}, {"time_whole": ("time_step",)}),
        ({"time_step": 1, "num_nod_var": 1 << 60}, {"time_whole": ("time_step",)}),
        (
            {"time_step": 1, "num_nod_var": 1, "len": 1 << 50},
            {"time_whole": ("time_step",), "name_nod_var": ("num_nod_var", "len")},
        ),
        (
            {"time_step": 1, "num_nod_var": 1, "many": 1 << 40},
            {"time_whole": ("time_step",), "vals_nod_var1": ("time_step", "many")},
        ),
        (
            {"time_step": 1, "num_glo_var": 1, "many": 1 << 40},
            {"time_whole": ("time_step",), "vals_glo_var": ("time_step", "many")},
        ),
    ],
)
def test_counts_are_refused_before_they_cost(
    dimensions: dict[str, int | None], variables: dict[str, tuple[str, ...]], tmp_path: Path
) -> None:
    claiming(tmp_path / "a.exo", dimensions, variables)
    tracemalloc.start()
    with pytest.raises(junctura.LimitExceeded, match=r"a\.exo"), read(tmp_path / "a.exo") as series:
        next(iter(series))
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < 64 << 20


def test_more_than_three_axes(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.exo", "w") as file:
        for name, size in (("num_dim", 1 << 40), ("num_nodes", 1)):
            file.createDimension(name, size)
        file.createVariable("coord", "f8", ("num_dim", "num_nodes"), chunksizes=(1 << 10, 1))
    with pytest.raises(junctura.Corrupt, match="num_dim"):
        read(tmp_path / "a.exo")


@pytest.mark.parametrize("name", ["a.cgns", "a.exo"])
def test_no_other_file_is_read(name: str, tmp_path: Path) -> None:
    """Links and external storage could name a file that only the reader may read, or a pipe that blocks."""
    pipe, secret = tmp_path / "pipe", tmp_path / "secret"
    os.mkfifo(pipe)
    secret.write_bytes(bytes(800))
    for how in ("link", "storage"):
        path = tmp_path / f"{how}-{name}"
        if name == "a.cgns":
            copy(with_fields(0, random_mesh(0), 1), create(path))
        else:
            claiming(path, {}, {})
        with h5py.File(path, "r+") as file:
            if how == "link":
                file["other"] = h5py.ExternalLink(str(pipe), "/")
            else:
                place = file["Base/nodes/GridCoordinates/CoordinateX"] if name == "a.cgns" else file
                kept = " data" if name == "a.cgns" else "x"
                if kept in place:
                    del place[kept]
                place.create_dataset(kept, (100,), np.float64, external=[(str(secret), 0, 800)])
        with pytest.raises(junctura.Unsupported, match="other file"):
            read(path)
