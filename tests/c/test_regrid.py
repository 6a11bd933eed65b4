"""Weights of netCDF files, converted by the command and applied in C and C++; SciPy is the reference."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest
from c_programs import PROGRAMS, compile_cpp, has
from regrid_files import SOURCE, TARGET, expected, write_netcdf

netcdf = pytest.importorskip("netCDF4")
pytest.importorskip("scipy")

Compile = Callable[..., Path]
Run = Callable[..., str]

SHAPES = ("--source-shape", "6x8", "--target-shape", "4x6")
# Of source, target, the whole source and the whole target.
ROWS = ("shape=6x8 grid=3x1", "shape=4x6 grid=2x1", "shape=6x8", "shape=4x6")
BLOCKS = ("shape=6x8 grid=2x2 block=2x3", "shape=4x6 grid=1x3 block=2x1", "shape=6x8", "shape=4x6")
COLUMN_MAJOR = ("shape=8x6 grid=2x1 order=F", "shape=6x4 grid=1x2 order=F", "shape=8x6 order=F", "shape=6x4 order=F")
MIXED = ("shape=48 slabs=0:20,40:48;20:40", "shape=6x4 grid=1x2 order=F", "shape=48", "shape=6x4 order=F")
LAYOUTS = {"rows": ROWS, "blocks": BLOCKS, "column-major": COLUMN_MAJOR, "mixed": MIXED}


@pytest.mark.parametrize("layouts", LAYOUTS.values(), ids=list(LAYOUTS))
@pytest.mark.parametrize(
    ("form", "kind", "norm", "missing"),
    [("scrip", "f8", "whole", None), ("esmf", "f8", "fracarea", None), ("yac", "f4", "destarea", 1e20)],
)
def test_a_field_is_that_of_scipy(
    form: str,
    kind: str,
    norm: str,
    missing: float | None,
    layouts: tuple[str, ...],
    compiled: Compile,
    pool: str,
    run: Run,
    tmp_path: Path,
) -> None:
    found = write_netcdf(tmp_path / "weights.nc", form)
    weights = tmp_path / "weights"
    said = run("junctura", "weights", "convert", *SHAPES, tmp_path / "weights.nc", weights)
    assert "links, 6x8 -> 4x6" in said
    broken = bytearray(weights.read_bytes())
    broken[-1] ^= 1
    (tmp_path / "broken").write_bytes(broken)
    field = np.random.default_rng(2).normal(280, 10, SOURCE).astype(kind)
    missing = None if missing is None else float(np.dtype(kind).type(missing))
    field[2, 3:5] = np.nan if missing is None else missing
    field.tofile(tmp_path / "field")
    options = f"norm={norm}" + ("" if missing is None else f",missing={missing!r}")
    source, target, whole_source, whole_target = layouts
    files = (tmp_path / "field", tmp_path / "result")
    more = {"WHOLE_SOURCE": whole_source, "BROKEN": str(tmp_path / "broken")}
    program = compiled("regrid.c")
    assert run(program, pool, weights, kind, source, target, whole_target, options, *files, **more) == "done\n"
    result = np.fromfile(tmp_path / "result", kind)
    tolerance = 1e-13 if kind == "f8" else 1e-6
    np.testing.assert_allclose(result, expected(found, field, norm, missing), rtol=tolerance)


def test_the_wrapper_of_cpp(libraries: Path, pool: str, run: Run, tmp_path: Path) -> None:
    if not has("g++"):
        pytest.skip("g++ is not installed: tools/setup.sh dev")
    found = write_netcdf(tmp_path / "weights.nc", "esmf")
    run("junctura", "weights", "convert", "--quiet", tmp_path / "weights.nc", tmp_path / "weights")
    program = compile_cpp(PROGRAMS / "regrid.cpp", tmp_path / "regrid", libraries)
    values = [float(word) for word in run(program, pool, tmp_path / "weights").split()]
    field = np.arange(np.prod(SOURCE), dtype="f8").reshape(SOURCE)
    np.testing.assert_allclose(np.reshape(values, TARGET), expected(found, field, "whole", None).reshape(TARGET))
