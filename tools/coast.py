"""Makes the coastlines and the borders of the maps out of Natural Earth's, as the npm package `world-atlas` has them.

Run by hand when these change:
```text
  npm pack world-atlas@2.0.2 && tar xzf world-atlas-2.0.2.tgz
  python tools/coast.py package python/junctura/products/_map/lines/coast.npz
```
TopoJSON has arcs of points on a grid of whole numbers, each by its distance from the one before. They stay so, as
int16:
```text
  first_110m    int32 (arcs, 2)     column and row of the first point of each arc
  counts_110m   int32 (arcs,)       how many points it has
  steps_110m    int16 (points, 2)   from the point before; 0 for the first
  scale_110m    float64 (4,)        degrees east and north of a column and a row, and of the point 0, 0
```
and the same for 50m, and for borders, `first_borders_110m` and so on: the arcs that two countries share. Left out are
the lines along which the map was cut: the date line, and the southernmost rows.
"""

from __future__ import annotations

import argparse
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

Points = npt.NDArray[np.int64]
_CUT_DEGREES = 0.001
_CUT_ROWS = 100
# Of TopoJSON's grid, around the globe.
_COLUMNS = 99_999


def main() -> None:
    parser = argparse.ArgumentParser(description="Coastlines of world-atlas in a short form.")
    parser.add_argument("package", type=Path, help="the folder with land-110m.json, countries-110m.json, …")
    parser.add_argument("output", type=Path)
    options = parser.parse_args()
    arrays: dict[str, Any] = {}
    for scale in ("110m", "50m"):
        land, countries = (
            json.loads((options.package / f"{of}-{scale}.json").read_text()) for of in ("land", "countries")
        )
        for name, array in converted(land["arcs"], land["transform"]).items():
            arrays[f"{name}_{scale}"] = array
        for name, array in converted(list(shared(countries)), countries["transform"]).items():
            arrays[f"{name}_borders_{scale}"] = array
    np.savez_compressed(options.output, **arrays)
    print(f"{options.output}: {options.output.stat().st_size} bytes")


def shared(atlas: dict[str, Any]) -> Iterator[Any]:
    """The arcs of two countries."""
    owners: dict[int, set[int]] = {}
    for number, country in enumerate(atlas["objects"]["countries"]["geometries"]):
        for arc in arcs_of(country.get("arcs", [])):
            owners.setdefault(arc, set()).add(number)
    return (arc for number, arc in enumerate(atlas["arcs"]) if len(owners.get(number, ())) > 1)


def arcs_of(nested: list[Any]) -> Iterator[int]:
    """Numbers of arcs in rings of polygons; those that are walked backwards are negative there."""
    for one in nested:
        if isinstance(one, int):
            yield one if one >= 0 else ~one
        else:
            yield from arcs_of(one)


def converted(arcs: list[Any], scaling: dict[str, Any]) -> dict[str, Any]:
    """The arrays of one scale."""
    transform = np.array([*scaling["scale"], *scaling["translate"]])
    lines = [line for arc in arcs for line in without_cuts(going_on(np.cumsum(arc, axis=0)), transform)]
    steps = np.concatenate([np.diff(line, axis=0, prepend=line[:1]) for line in lines])
    if np.abs(steps).max() > np.iinfo(np.int16).max:
        raise SystemExit("two points of an arc are too far apart for int16")
    return {
        "first": np.array([line[0] for line in lines], np.int32),
        "counts": np.array([len(line) for line in lines], np.int32),
        "steps": steps.astype(np.int16),
        "scale": transform,
    }


def going_on(points: Points) -> Points:
    """An arc that does not jump around the globe at the date line."""
    return np.stack([np.unwrap(points[:, 0], period=_COLUMNS), points[:, 1]], axis=1)


def without_cuts(points: Points, transform: npt.NDArray[np.float64]) -> Iterator[Points]:
    """The pieces of an arc between lines that no coast is."""
    longitudes = points[:, 0] * transform[0] + transform[2]
    from_date_line = np.abs(np.mod(longitudes, 360) - 180)
    on_edge = (from_date_line < _CUT_DEGREES) | (points[:, 1] < _CUT_ROWS)
    is_cut = on_edge[1:] & on_edge[:-1]
    for piece in np.split(np.arange(len(points)), np.flatnonzero(is_cut) + 1):
        if len(piece) > 1:
            yield points[piece]


if __name__ == "__main__":
    main()
