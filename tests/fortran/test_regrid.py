"""Weights of a netCDF file, applied in Fortran; SciPy is the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from regrid_files import SOURCE, expected, write_netcdf

pytest.importorskip("netCDF4")
pytest.importorskip("scipy")

Compile = Callable[..., Path]
Run = Callable[..., str]


def test_a_field_is_that_of_scipy(compiled: Compile, pool: str, run: Run, tmp_path: Path) -> None:
    found = write_netcdf(tmp_path / "weights.nc", "scrip")
    run("junctura", "weights", "convert", "--quiet", tmp_path / "weights.nc", tmp_path / "weights")
    values = [float(word) for word in run(compiled("regrid"), pool, tmp_path / "weights").split()]
    field = np.arange(np.prod(SOURCE), dtype="f8")
    np.testing.assert_allclose(values, expected(found, field, "whole", None), rtol=1e-13)
