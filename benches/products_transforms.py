"""Measures what a decoded field costs on its way to another grid: interpolation with weights, and spectral synthesis.

Ours stands beside the sparse product of SciPy on the same matrix, which is all that interpolation has to do, and beside
MIR called for each field, in a process of its own. Weights and Legendre matrices are there before the clock starts, for
MIR as well; each figure is the best of its calls.
"""

from __future__ import annotations

import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread for each; read when libraries are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import numpy as np
from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin, call

from junctura.products._field import Field
from junctura.products._grid import Grid, grid
from junctura.products._interpolate import prepare, to_grid
from junctura.products._spectral import wind
from junctura.products._weights import weights

MS = Measure("ms", "ms a field", more_is_better=False)
MARK = "figures: "
WEIGHED, SUMMED = "F48", "T63"
CACHE = TARGET / "benches/weights"


def timed(work: Callable[[], object], calls: int) -> Figures:
    work()
    took = []
    for _ in range(calls):
        begun = time.perf_counter()
        work()
        took.append(time.perf_counter() - begun)
    return {"ms": min(took) * 1e3, "calls": calls}


def field_on(name: str) -> Field:
    on = grid(name)
    values = np.random.default_rng(1).normal(size=on.shape)
    return Field(values, on, {"param": "t"})


def on_grid(name: str) -> Grid:
    named = grid(name)
    assert isinstance(named, Grid)
    return named


def contender(name: str, kind: str, work: Callable[[], object], calls: int) -> Contender:
    return Contender(
        name, kind, "the values", "each value, once", [sys.executable, *sys.argv], lambda: timed(work, calls)
    )


def by_mir(source: str, target: str, calls: int) -> Contender:
    """MIR's interface for arrays, with weights of its own that it keeps."""
    options: dict[str, Any] = {"grid": target.partition("@")[0], "intgrid": "none"}
    if "@" in target:
        options["area"] = target.partition("@")[2]
    command = [sys.executable, str(Path(__file__)), "mir", source, json.dumps(options), str(calls)]

    def run() -> Figures:
        said = [line for line in call(command, 300).splitlines() if line.startswith(MARK)]
        figures: Figures = json.loads(said[0].removeprefix(MARK))
        return figures

    return Contender("MIR", "rival", "the values", "each value, once", command, run)


def mir(source: str, options: str, calls: str) -> None:
    """The child: measures MIR, which has words of its own for the standard output."""
    import mir

    values = np.ascontiguousarray(field_on(source).values).ravel()

    def work() -> None:
        mir.Job(**json.loads(options)).execute(mir.ArrayInput(values, {"grid": source}), mir.ArrayOutput())

    print(f"\n{MARK}{json.dumps(timed(work, int(calls)))}")


def interpolations(calls: int) -> list[Case]:
    cases = []
    field = field_on(WEIGHED)
    flat = field.values.ravel()
    for name, target in (("weights-1", "1/1"), ("weights-half", "0.5/0.5"), ("weights-quarter", "0.25/0.25")):
        prepare(WEIGHED, target)
        on = on_grid(target)
        matrix = weights(field.grid, on)
        contenders = [
            contender("junctura", "us", lambda on=on: to_grid(field, on), calls),  # type: ignore[misc]
            contender("scipy", "limit", lambda matrix=matrix: matrix @ flat, calls),  # type: ignore[misc]
            by_mir(WEIGHED, target, calls),
        ]
        checks = [Check("junctura", at_most=1.3, times="scipy")]
        cases.append(Case(name, f"{WEIGHED} to {target}, linear", MS, contenders, checks))
    return cases


def syntheses(calls: int) -> list[Case]:
    cases = []
    field = field_on(SUMMED)
    for name, target, at_most in (("synthesis-half", "0.5/0.5", 6.0), ("synthesis-area", "0.5/0.5@72/-25/34/45", 2.0)):
        on = on_grid(target)
        ours = contender("junctura", "us", lambda on=on: to_grid(field, on), calls)  # type: ignore[misc]
        question = f"{SUMMED} to {target}"
        cases.append(
            Case(name, question, MS, [ours, by_mir(SUMMED, target, calls)], [Check("junctura", at_most=at_most)])
        )
    half = on_grid("0.5/0.5")
    pair = contender("junctura", "us", lambda: wind(field, field, half), calls)
    question = f"vorticity and divergence {SUMMED} to u and v on 0.5/0.5, both"
    return [*cases, Case("wind-half", question, MS, [pair], [Check("junctura", at_most=12)])]


def cases(bench: Bench) -> list[Case]:
    calls = 5 if bench.quick else 40
    return [*interpolations(calls), *syntheses(calls)]


def main() -> int:
    if sys.argv[1:2] == ["mir"]:
        mir(*sys.argv[2:])
        return 0
    os.environ.setdefault("JUNCTURA_CACHE", str(CACHE))
    os.environ.setdefault("MIR_CACHE_PATH", str(CACHE / "mir"))
    bench = begin("products_transforms", "What does a decoded field cost on its way to another grid?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
