"""Files of weights as other programs write them, and what SciPy makes of a field with them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Array = npt.NDArray[Any]
SOURCE, TARGET = (6, 8), (4, 6)


def links(seed: int = 1) -> tuple[Array, Array, Array]:
    """Random links; those of the last target point are left out, so that it has no source."""
    random = np.random.default_rng(seed)
    count = 100
    targets = np.sort(random.integers(0, np.prod(TARGET) - 1, count))
    # Neighbors, so that one rank often has all sources of a target point.
    sources = (targets * 2 + random.integers(0, 4, count)) % np.prod(SOURCE)
    return targets, sources, random.random(count) + 0.1


def write_netcdf(path: Path, form: str) -> tuple[Array, Array, Array]:
    """Writes the links as SCRIP, ESMF or YAC write them: numbers from 1; YAC has no sizes of grids."""
    import netCDF4

    targets, sources, weights = links()
    with netCDF4.Dataset(path, "w", format="NETCDF3_64BIT_OFFSET") as data:
        is_esmf = form == "esmf"
        names = ("row", "col", "S") if is_esmf else ("dst_address", "src_address", "remap_matrix")
        link = "n_s" if is_esmf else "num_links"
        data.createDimension(link, len(weights))
        for name, values in zip(names[:2], (targets + 1, sources + 1), strict=True):
            data.createVariable(name, "i4", (link,))[:] = values
        if is_esmf:
            data.createVariable("S", "f8", (link,))[:] = weights
        else:
            data.createDimension("num_wgts", 1)
            data.createVariable("remap_matrix", "f8", (link, "num_wgts"))[:, 0] = weights
        if form != "yac":
            sizes = ("n_a", "n_b") if is_esmf else ("src_grid_size", "dst_grid_size")
            for size, prefix, shape in zip(sizes, ("src", "dst"), (SOURCE, TARGET), strict=True):
                data.createDimension(size, int(np.prod(shape)))
                data.createDimension(f"{prefix}_grid_rank", len(shape))
                data.createVariable(f"{prefix}_grid_dims", "i4", (f"{prefix}_grid_rank",))[:] = shape[::-1]
    return targets, sources, weights


def expected(found: tuple[Array, Array, Array], field: Array, norm: str, missing: float | None) -> Array:
    """The field on the target grid, by SciPy."""
    from scipy.sparse import csr_matrix

    targets, sources, weights = found
    matrix = csr_matrix((weights, (targets, sources)), shape=(int(np.prod(TARGET)), int(np.prod(SOURCE))))
    values = field.astype("f8").ravel()
    is_there = ~np.isnan(values) if missing is None else ~(np.isnan(values) | (values == missing))
    nothing = np.nan if missing is None else missing
    sums, parts = matrix @ np.where(is_there, values, 0), matrix @ is_there.astype("f8")
    linked, lost = (matrix @ np.ones(matrix.shape[1])) > 0, (matrix @ (~is_there).astype("f8")) > 0
    if norm == "fracarea":
        sums = np.divide(sums, parts, out=np.zeros_like(sums), where=parts > 0)
    has = linked & ~lost if norm == "whole" else parts > 0
    return np.where(has, sums, nothing)
