"""Computes weights between grids: with YAC in a separate process, and bilinear weights in this module.

YAC splits cells of lon-lat grids into triangles to interpolate. Bilinear interpolation between meridians and parallels
is two linear interpolations, which are written here.
"""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from junctura._forks import missing
from junctura.errors import InvalidArgument, Unsupported
from junctura.remap import _files
from junctura.remap._grids import Floats, Grid, LonLat, described

Integers = npt.NDArray[np.int64]
# Environment variables from which MPI detects that it is one of many processes; the child is not.
_OF_MPI = ("OMPI_", "PMIX_", "PRTE_", "PMI_", "OPAL_", "SLURM_", "MPI_", "HYDRA_")
# A fraction this close to 1 counts as the whole cell.
_ALL = 1e-9


class Links(NamedTuple):
    """Which source points contribute how much to which target points."""

    targets: Integers
    sources: Integers
    weights: Floats


def by_yac(source: Grid, target: Grid, method: str) -> Links:
    """Conservative weights by the area of the target, or nearest ones."""
    if importlib.util.find_spec("yac") is None:
        raise missing("yac", "remap")
    with tempfile.TemporaryDirectory(prefix="junctura-remap-") as name:
        folder = Path(name)
        grids = {"source": described(source), "target": described(target)}
        np.savez(
            folder / "grids.npz",
            **{f"{side}_{key}": value for side, known in grids.items() for key, value in known.items()},
        )
        command = [sys.executable, str(Path(__file__).with_name("_yac.py")), name, method]
        # One process: it needs no network for MPI.
        environment = {key: value for key, value in os.environ.items() if not key.startswith(_OF_MPI)}
        environment |= {"OMPI_MCA_pml": "ob1", "OMPI_MCA_btl": "self"}
        done = subprocess.run(
            command,
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            check=False,
        )
        if done.returncode:
            said = "; ".join(line.strip() for line in done.stderr.splitlines() if line.strip())
            raise Unsupported("yac", f"it ended with {done.returncode}: {said[-2000:]}")
        links = _files.yac_links(folder / "weights.nc")
    return Links(*links)


def bilinear(source: Grid, target: Grid) -> Links:
    """Weights between the four centers around a point. Beyond the centers, within the grid, values are extended."""
    if not isinstance(source, LonLat):
        raise InvalidArgument("method", f"bilinear needs a LonLat grid to come from, not {source!r}")
    lon, lat = target.points()
    columns, x, is_within = _columns(source, lon)
    rows, y, is_between = _along(source.lat, source.lat_bounds, lat)
    count = source.shape[1]
    keep = np.flatnonzero(is_within & is_between)
    targets, sources, weights = [], [], []
    for row, by in ((rows[0], 1 - y), (rows[1], y)):
        for column, also in ((columns[0], 1 - x), (columns[1], x)):
            targets.append(keep)
            sources.append((row * count + column)[keep])
            weights.append((by * also)[keep])
    return Links(np.concatenate(targets), np.concatenate(sources), np.concatenate(weights))


_Place = tuple[tuple[Integers, Integers], Floats, npt.NDArray[np.bool_]]


def _columns(source: LonLat, lon: Floats) -> _Place:
    """Returns the columns on both sides, the distance from the first to the second, and whether they exist."""
    if not source.is_cyclic:
        middle = (source.lon_bounds[0] + source.lon_bounds[-1]) / 2
        return _along(source.lon, source.lon_bounds, (lon - middle + 180) % 360 - 180 + middle)
    centres = np.append(source.lon, source.lon[0] + 360)
    turned = (lon - source.lon[0]) % 360 + source.lon[0]
    at = np.clip(np.searchsorted(centres, turned, "right") - 1, 0, len(source.lon) - 1)
    share = (turned - centres[at]) / (centres[at + 1] - centres[at])
    return (at, (at + 1) % len(source.lon)), share, np.ones(len(lon), np.bool_)


def _along(centres: Floats, bounds: Floats, values: Floats) -> _Place:
    if centres[0] > centres[-1]:
        (one, other), share, within = _along(centres[::-1], bounds[::-1], values)
        last = len(centres) - 1
        return (last - one, last - other), share, within
    within = (values >= bounds[0]) & (values <= bounds[-1])
    if len(centres) == 1:
        nothing = np.zeros(len(values), np.int64)
        return (nothing, nothing), np.zeros(len(values)), within
    clamped = np.clip(values, centres[0], centres[-1])
    at = np.clip(np.searchsorted(centres, clamped, "right") - 1, 0, len(centres) - 2)
    share = (clamped - centres[at]) / (centres[at + 1] - centres[at])
    return (at, at + 1), share, within


def taking_part(links: Links, source: Grid, target: Grid) -> Links:
    """Returns the links without cells that a mask excludes."""
    keep = np.ones(len(links.targets), np.bool_)
    for grid, points in ((source, links.sources), (target, links.targets)):
        if grid.mask is not None:
            keep &= grid.mask.ravel()[points]
    return Links(links.targets[keep], links.sources[keep], links.weights[keep])


def divided(links: Links, count: int) -> tuple[Links, Floats]:
    """Returns the weights of each target point divided by their sum, and these sums."""
    sums = np.bincount(links.targets, links.weights, count).astype(np.float64)
    whole = sums[links.targets]
    weights = np.divide(links.weights, whole, out=np.zeros_like(links.weights), where=whole != 0)
    return Links(links.targets, links.sources, weights), sums


def fractions(links: Links, source: Grid, target: Grid) -> tuple[Floats, Floats]:
    """Returns the fraction of each source and target cell that takes part, from weights that are fractions of target
    cells.
    """
    areas, given = target.areas.ravel(), source.areas.ravel()
    covered = np.bincount(links.targets, links.weights, len(areas))
    taken = np.bincount(links.sources, links.weights * areas[links.targets], len(given)) / given
    # A cell that takes part completely has fraction 1: if its weights add up to less, that is visible as an error.
    return np.where(np.abs(taken - 1) < _ALL, 1.0, taken), np.where(np.abs(covered - 1) < _ALL, 1.0, covered)
