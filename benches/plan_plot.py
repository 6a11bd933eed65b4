"""Draws how long one rank plans, over the number of ranks, beside a scan over all of them.

``plan_plot.py --figures bench-out/arrays.json --out plans.png``, from what ``benches/arrays.py`` has measured, which
draws it, too: from 4 ranks to 2^20, whose blocks of 64 go to three quarters as many ranks with blocks of 48. The scan
asks of each rank, by a formula, whether anything is shared with it, and does nothing else.
"""

from __future__ import annotations

import argparse
import json
from pathlib import Path
from typing import Any

ROOT = Path(__file__).resolve().parent.parent
# What its cases are called, before the number of ranks.
CASE = "plan-ranks-"


def draw(cases: list[dict[str, Any]], out: Path) -> None:
    """A line for each contender; nothing where none of its cases was measured."""
    lines: dict[str, dict[int, float]] = {}
    for case in cases:
        for contender in case["contenders"]:
            if case["name"].startswith(CASE) and "best" in contender:
                lines.setdefault(contender["name"], {})[int(case["name"].removeprefix(CASE))] = contender["best"]
    if not lines:
        return
    import matplotlib.pyplot as plt

    plt.switch_backend("Agg")
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    for style, (name, by_ranks) in zip(("o-", "s--"), lines.items(), strict=True):
        axes.loglog(list(by_ranks), list(by_ranks.values()), style, label=name)
    axes.set(xlabel="ranks that have the array", ylabel="µs for one rank")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(out, dpi=120)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    figures = ROOT / "bench-out/arrays.json"
    parser.add_argument("--figures", type=Path, default=figures, help="from bench-out/arrays.json")
    parser.add_argument("--out", type=Path, default=Path("plans.png"), help="the picture (default: plans.png)")
    arguments = parser.parse_args()
    draw(json.loads(arguments.figures.read_text(encoding="utf-8"))["cases"], arguments.out)


if __name__ == "__main__":
    main()
