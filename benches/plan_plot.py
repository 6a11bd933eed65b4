"""Draws how long one rank plans, over the number of ranks, beside a scan over all of them.

``plan_plot.py --out plans.png``: from 4 ranks to 2^20, whose blocks of 64 go to three quarters as many ranks with
blocks of 48. The scan asks of each rank, by a formula, whether anything is shared with it, and does nothing else.
"""

from __future__ import annotations

import argparse
import json
import subprocess
from pathlib import Path

import matplotlib.pyplot as plt

plt.switch_backend("Agg")
ROOT = Path(__file__).resolve().parent.parent
SPEED = ["cargo", "run", "--quiet", "--release", "-p", "junctura-copy", "--example", "array_speed", "--", "plan"]


def planned(ranks: int) -> dict[str, float]:
    """Figures of one rank."""
    layouts = [f"shape={2**36} grid={ranks} block=64", f"shape={2**36} grid={ranks * 3 // 4} block=48"]
    done = subprocess.run([*SPEED, *layouts], cwd=ROOT, capture_output=True, text=True, check=True)
    figures: dict[str, float] = json.loads(done.stdout)
    return figures


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--out", type=Path, default=Path("plans.png"), help="the picture (default: plans.png)")
    arguments = parser.parse_args()
    ranks = [4**power for power in range(1, 11)]
    rows = [planned(count) for count in ranks]
    for count, row in zip(ranks, rows, strict=True):
        print(f"{count:>9,} ranks: plan {row['plan_us']:.2f} us, {row['listed']} runs; scan {row['scan_us']:,.2f} us")
    figure, axes = plt.subplots(figsize=(7, 4.5), layout="constrained")
    axes.loglog(ranks, [row["scan_us"] for row in rows], "s--", label="a scan over all ranks")
    axes.loglog(ranks, [row["plan_us"] for row in rows], "o-", label="plan")
    axes.set(xlabel="ranks that have the array", ylabel="µs for one rank")
    axes.grid(visible=True, which="both", alpha=0.3)
    axes.legend()
    figure.savefig(arguments.out, dpi=120)


if __name__ == "__main__":
    main()
