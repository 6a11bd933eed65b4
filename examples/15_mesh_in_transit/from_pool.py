"""Draws the steps that a simulation offers into a pool, while it runs: ``from_pool.py --pool unix:wave``.

A viewer that is started again goes on where it was ended: its requirement retains the steps that it has not released.
"""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import Any

import numpy as np
from wave_picture import WavePicture, arrays_of, tree_of

import junctura


def shared_arrays(
    pool: junctura.Pool, part: junctura.Object, known: dict[Any, Any]
) -> list[np.ndarray[Any, Any]] | None:
    """The arrays of the mesh that a step refers to; they are received once."""
    if part.get("mesh") is None:
        return None
    key = (part["channel"], part["rank"], part["mesh"])
    if key not in known:
        selector = f'case="{part["case"]}",channel="{key[0]}",rank={key[1]},part=mesh,mesh="{key[2]}"'
        mesh = pool.demand(selector, timeout=10)
        known[key] = (mesh, arrays_of(memoryview(mesh))[1])
    arrays: list[np.ndarray[Any, Any]] = known[key][1]
    return arrays


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--pool", required=True)
    parser.add_argument("--case", default="wave")
    parser.add_argument("--out", type=Path, default=Path("pictures"))
    parser.add_argument("--last", type=int, help="ends after this step")
    options = parser.parse_args()
    picture = WavePicture(options.out)
    with junctura.Pool(options.pool) as pool:
        requirement = pool.require(f'case="{options.case}",part=fields', name=f"viewer:{options.case}")
        print("ready", flush=True)
        known: dict[Any, Any] = {}
        parts: dict[int, list[junctura.Object]] = {}
        for part in requirement.follow():
            assert isinstance(part, junctura.Object)
            step = int(str(part["step"]))
            parts.setdefault(step, []).append(part)
            if len(parts[step]) < int(str(part["ranks"])):
                continue
            whole = parts.pop(step)
            drawn = [
                ((one["rank"], one.get("mesh")), tree_of(memoryview(one), shared_arrays(pool, one, known)))
                for one in whole
            ]
            picture.draw(step, drawn)
            del drawn
            for one in whole:
                one.release()
            pool.sync()
            print(f"step {step}", flush=True)
            if step == options.last:
                break


if __name__ == "__main__":
    main()
