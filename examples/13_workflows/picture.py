"""Draws what `statistics_of.py` wrote of each step."""

from __future__ import annotations

import json
import sys
from pathlib import Path

import matplotlib as mpl

mpl.use("agg")
import matplotlib.pyplot as plt


def main(folder: Path, out: Path) -> None:
    said = sorted((json.loads(file.read_text()) for file in folder.glob("*.json")), key=lambda one: int(one["step"]))
    days = [one["step"] / 24 for one in said]
    _, axes = plt.subplots(figsize=(8, 4), layout="constrained")
    axes.fill_between(days, [one["min"] for one in said], [one["max"] for one in said], alpha=0.3)
    for word in ("max", "min"):
        axes.plot(days, [one[word] for one in said], label=f"{word} of u")
    axes.set(title="A jet that rolls up", xlabel="days", ylabel="wind towards east, m/s")
    axes.legend()
    plt.savefig(out, dpi=120)
    print(f"{len(said)} steps in {out}")


if __name__ == "__main__":
    main(Path(sys.argv[1]), Path(sys.argv[2]))
