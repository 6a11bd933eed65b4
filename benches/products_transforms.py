"""Measures what a decoded field costs on its way to another grid: interpolation with weights, and spectral synthesis.

Ours stands beside the sparse product of SciPy on the same matrix, which is all that interpolation has to do, and beside
MIR called for each field, in a process of its own. Weights and Legendre matrices are there before the clock starts, for
MIR as well; each figure is the best of its calls. MIR makes winds of messages and into messages only, and so does ours
beside it, with decoding and encoding.
"""

from __future__ import annotations

import io
import json
import os
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

# One thread for each; read when libraries are loaded.
os.environ["OMP_NUM_THREADS"] = "1"

import eccodes
import numpy as np
from harness import TARGET, Bench, Case, Check, Contender, Figures, Measure, begin, call
from scipy.sparse import csr_array

from junctura.products._input.decoded_field import Field
from junctura.products._input.decoding import decode
from junctura.products._outputs import Output, grib2
from junctura.products._regrid.grids import Grid, grid
from junctura.products._regrid.harmonics import wind
from junctura.products._regrid.interpolate import prepare, to_grid
from junctura.products._regrid.weight_matrices import weights

MS = Measure("ms", "ms a field", more_is_better=False)
MARK = "figures: "
WEIGHED, SUMMED = "F48", "T63"
MESSAGES = "junctura, of messages into messages"
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


def vorticity_and_divergence() -> tuple[bytes, bytes]:
    """Messages of T63, in complex packing."""
    truncation = int(SUMMED.removeprefix("T"))
    made = []
    for seed, param in enumerate(("vo", "d")):
        handle = eccodes.codes_grib_new_from_samples("sh_pl_grib2")
        keys = {**dict.fromkeys("JKM", truncation), "subSetJ": 20, "subSetK": 20, "subSetM": 20, "bitsPerValue": 16}
        for name, value in {**keys, "shortName": param, "level": 500}.items():
            eccodes.codes_set(handle, name, value)
        values = 1e-6 * np.random.default_rng(seed).normal(size=(truncation + 1) * (truncation + 2))
        eccodes.codes_set_values(handle, values)
        made.append(bytes(eccodes.codes_get_message(handle)))
        eccodes.codes_release(handle)
    return made[0], made[1]


def by_mir(what: str, source: str, target: str, calls: int) -> Contender:
    """MIR's interface, with weights of its own that it keeps; `what` is ``field`` or ``wind``."""
    options: dict[str, Any] = {"grid": target.partition("@")[0], "intgrid": "none"}
    if "@" in target:
        options["area"] = target.partition("@")[2]
    command = [sys.executable, str(Path(__file__)), "mir", what, source, json.dumps(options), str(calls)]

    def run() -> Figures:
        said = [line for line in call(command, 300).splitlines() if line.startswith(MARK)]
        figures: Figures = json.loads(said[0].removeprefix(MARK))
        return figures

    return Contender("MIR", "rival", "the values", "each value, once", command, run)


def mir(what: str, source: str, options: str, calls: str) -> None:
    """The child: measures MIR, which has words of its own for the standard output."""
    work = mir_wind(json.loads(options)) if what == "wind" else mir_field(source, json.loads(options))
    print(f"\n{MARK}{json.dumps(timed(work, int(calls)))}")


def mir_field(source: str, options: dict[str, Any]) -> Callable[[], object]:
    import mir

    values = np.ascontiguousarray(field_on(source).values).ravel()
    return lambda: mir.Job(**options).execute(mir.ArrayInput(values, {"grid": source}), mir.ArrayOutput())


def mir_wind(options: dict[str, Any]) -> Callable[[], object]:
    """It reads both messages from one file, here in memory; into arrays it writes no winds."""
    import mir

    file = os.memfd_create("vorticity and divergence")
    os.write(file, b"".join(vorticity_and_divergence()))

    def work() -> None:
        given, made = mir.MultiDimensionalGribFileInput(f"/proc/self/fd/{file}", 2), io.BytesIO()
        mir.Job(vod2uv="true", **options).execute(given, mir.PyGribOutput(made))
        if made.getvalue().count(b"GRIB") < 2:
            raise RuntimeError("MIR made no two messages")

    return work


def interpolations(calls: int) -> list[Case]:
    cases = []
    field = field_on(WEIGHED)
    flat = field.values.ravel()
    for name, target in (("weights-1", "1/1"), ("weights-half", "0.5/0.5"), ("weights-quarter", "0.25/0.25")):
        prepare(WEIGHED, target)
        on = on_grid(target)
        ours = weights(field.grid, on)
        matrix = csr_array((ours.data, ours.indices, ours.indptr), shape=ours.shape)
        contenders = [
            contender("junctura", "us", lambda on=on: to_grid(field, on), calls),  # type: ignore[misc]
            contender("scipy", "limit", lambda matrix=matrix: matrix @ flat, calls),  # type: ignore[misc]
            by_mir("field", WEIGHED, target, calls),
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
        checks = [Check("junctura", at_most=1, times="MIR"), Check("junctura", at_most=at_most)]
        contenders = [ours, by_mir("field", SUMMED, target, calls)]
        cases.append(Case(name, f"{SUMMED} to {target}", MS, contenders, checks))
    return [*cases, winds(calls)]


def winds(calls: int) -> Case:
    half, field = on_grid("0.5/0.5"), field_on(SUMMED)
    messages = vorticity_and_divergence()

    def of_messages() -> bytes:
        vo, d = map(decode, messages)
        return grib2.made(wind(vo, d, half), Output("grib2"))

    ours = contender("junctura", "us", lambda: wind(field, field, half), calls)
    whole = contender(MESSAGES, "us", of_messages, calls)
    question = f"vorticity and divergence {SUMMED} to u and v on 0.5/0.5, both"
    checks = [Check(MESSAGES, at_most=1, times="MIR"), Check("junctura", at_most=12)]
    return Case("wind-half", question, MS, [ours, whole, by_mir("wind", SUMMED, "0.5/0.5", calls)], checks)


def cases(bench: Bench) -> list[Case]:
    calls = 5 if bench.quick else 40
    return [*interpolations(calls), *syntheses(calls)]


def main() -> int:
    if sys.argv[1:2] == ["mir"]:
        mir(*sys.argv[2:])
        return 0
    os.environ.setdefault("JUNCTURA_CACHE", str(CACHE))
    # MIR makes no folders above its own.
    CACHE.mkdir(parents=True, exist_ok=True)
    os.environ.setdefault("MIR_CACHE_PATH", str(CACHE / "mir"))
    bench = begin("products_transforms", "What does a decoded field cost on its way to another grid?")
    return bench.run(cases(bench))


if __name__ == "__main__":
    sys.exit(main())
