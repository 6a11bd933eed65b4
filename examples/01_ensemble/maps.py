"""A consumer: follows all fields and draws a step's mean and spread as soon as its last member is there.

It keeps sums, not fields: each object is decoded, added and given back at once.
"""

from __future__ import annotations

import argparse
import json
import time
from pathlib import Path

import numpy as np
from drawing import Globe, animate
from fields import PARAMS, SELECTOR, Field, Forecast, decode

import junctura


class Statistics:
    """Mean and spread of the members that were added, by Welford's updates."""

    def __init__(self, shape: tuple[int, int]) -> None:
        self.members = 0
        self.mean: Field = np.zeros(shape)
        self._squares: Field = np.zeros(shape)

    def add(self, field: Field) -> None:
        self.members += 1
        off = field - self.mean
        self.mean += off / self.members
        self._squares += off * (field - self.mean)

    @property
    def spread(self) -> Field:
        return np.sqrt(self._squares / max(1, self.members - 1))


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("pool", help="where the pool is")
    parser.add_argument("forecast", type=Forecast.parse, help="what all processes agree on")
    parser.add_argument("out", type=Path, help="where the pictures go")
    arguments = parser.parse_args()
    forecast: Forecast = arguments.forecast
    globe, shape = Globe(forecast), (round(180 / forecast.grid_deg) + 1, round(360 / forecast.grid_deg))
    open_steps: dict[int, dict[str, Statistics]] = {}
    pictures: dict[int, Path] = {}
    drawn_ns: list[int] = []

    with junctura.Pool(arguments.pool) as pool:
        for found in pool.follow(SELECTOR):
            step, param = int(found["step"]), found["param"]
            with found:
                field = decode(bytes(memoryview(found)), shape)
            statistics = open_steps.setdefault(step, {param: Statistics(shape) for param in PARAMS})
            statistics[param].add(field)
            if all(of_param.members == forecast.members for of_param in statistics.values()):
                del open_steps[step]
                path = arguments.out / f"step_{step:03}.png"
                means = {param: of_param.mean for param, of_param in statistics.items()}
                globe.draw(step, means, {param: of_param.spread for param, of_param in statistics.items()}, path)
                pictures[step] = path
                drawn_ns.append(time.monotonic_ns())
                if len(pictures) == forecast.steps:
                    break
    ordered = [pictures[step] for step in sorted(pictures)]
    animation = arguments.out / "ensemble.gif"
    animate(ordered, animation)
    print(json.dumps({"pictures": [str(path) for path in ordered], "animation": str(animation), "drawn_ns": drawn_ns}))


if __name__ == "__main__":
    main()
