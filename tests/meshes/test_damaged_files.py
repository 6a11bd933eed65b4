"""Files that lack something, or claim what they do not have, give errors that name the file."""

from __future__ import annotations

import contextlib
import shutil
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
from mesh_files import copy
from random_meshes import random_mesh, with_fields

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
