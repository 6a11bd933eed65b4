"""What both models share: the grid, the keys, and how each steps; and the same without ranks, to compare with."""

from __future__ import annotations

import argparse
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

import junctura

Field: TypeAlias = npt.NDArray[np.float64]

SHAPE = (60, 90)
# The sea before the first step, in degrees Celsius.
BEFORE = 15.0

SCHEMA = """
name: coupled
doc: Fields that two models give each other
key: {dataset: [run], collocation: [field], element: [step]}
attributes:
  run: {type: string, default: example, doc: Which run}
  field: {type: string, doc: "wind, of the atmosphere, or sst, of the ocean"}
  step: {type: integer, doc: Number of the time step}
  dtype: {type: string, doc: Type of the elements}
  shape: {type: list of integer, doc: Extents}
"""


def atmosphere_layout(ranks: int) -> junctura.Layout:
    """Bands of four rows are dealt out in turn, as models do that want each rank to have some of each climate."""
    return junctura.Layout(shape=SHAPE, grid=(ranks, 1), block=(4, SHAPE[1]))


def ocean_layout(ranks: int) -> junctura.Layout:
    """One block of columns for each rank, in memory as Fortran has it."""
    return junctura.Layout(shape=SHAPE, grid=(1, ranks), order="F")


def wind(step: int, rows: npt.NDArray[np.int64], columns: npt.NDArray[np.int64], sst: Field) -> Field:
    """The wind over some rows and columns: waves that travel east, stronger where the sea is warm."""
    waves = 8 * np.sin(rows[:, None] / 9) * np.cos(columns[None, :] / 7 - step / 3)
    return waves + 0.1 * sst


def sea(sst: Field, blowing: Field) -> Field:
    """The surface of the sea a step later: the wind stirs and cools it, the sun warms it."""
    return sst + 0.02 * (BEFORE - sst) - 0.01 * np.abs(blowing)


def serial(steps: int) -> tuple[Field, Field]:
    """The last wind and sea of a run without ranks."""
    rows, columns = (np.arange(extent) for extent in SHAPE)
    blowing, sst = np.zeros(SHAPE), np.full(SHAPE, BEFORE)
    for step in range(steps):
        blowing = wind(step, rows, columns, sst)
        sst = sea(sst, blowing)
    return blowing, sst


def arguments(what: str | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(description=what)
    parser.add_argument("url", help="the pool")
    parser.add_argument("--steps", type=int, default=20, help="how many (20)")
    parser.add_argument("--takers", type=int, default=1, help="how many clients take each of its fields (1)")
    parser.add_argument("--recorded", help="a store with the other model's fields: it need not run, then")
    return parser.parse_args()


def connect(given: argparse.Namespace) -> junctura.Pool:
    return junctura.Pool(given.url, schema=SCHEMA, store=given.recorded)
