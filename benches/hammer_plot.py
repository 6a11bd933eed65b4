"""Draws what ``junctura hammer --store ... --json`` has measured.

``junctura hammer --store --writers 1,2,4 --threads 1,2 --json | hammer_plot.py --out sweep.png``. The bandwidth of
writing and reading beside that of a plain write, and how fast everything was listed, over the number of processes; a
line for each number of threads.
"""

from __future__ import annotations

import argparse
import json
import sys
from pathlib import Path
from typing import Any

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

plt.switch_backend("Agg")

Row = dict[str, Any]
# A figure, what it is called, and how its line is drawn.
BANDWIDTHS = (
    ("write_gib_per_s", "write", "o-"),
    ("limit_write_gib_per_s", "plain write", "o:"),
    ("read_gib_per_s", "read, verified", "s--"),
    ("read_back_gib_per_s", "read back meanwhile", "^--"),
)
RATES = (("list_per_s", "listed", "o-"),)


def draw(rows: list[Row], out: Path) -> None:
    figure, (left, right) = plt.subplots(1, 2, figsize=(11, 4.5), layout="constrained")
    figure.suptitle(title(rows[0]["run"]))
    panel(left, rows, BANDWIDTHS, "GiB/s")
    panel(right, rows, RATES, "objects/s")
    figure.savefig(out, dpi=120)
    plt.close(figure)


def title(run: Row) -> str:
    size = run["payload_bytes"]
    shown = f"{size / 1024:.0f} KiB" if size >= 1024 else f"{size} B"
    datasets = "one dataset for all" if run["contended"] else "a dataset for each writer"
    found = "found by the log" if run["catalogue"] == "log" else "found by a checkpoint"
    return (
        f"pattern {run['pattern']}: {run['objects']:,} objects of {shown}, {run['every']} a flush, {datasets}, {found}"
    )


def panel(axes: Axes, rows: list[Row], figures: tuple[tuple[str, str, str], ...], unit: str) -> None:
    threads = sorted({row["threads"] for row in rows})
    for number, count in enumerate(threads):
        of_count = sorted((row for row in rows if row["threads"] == count), key=lambda row: row["writers"])
        for name, called, style in figures:
            if of_count[0][name] is not None:
                label = f"{called}, {count} thread{'s' if count > 1 else ''}"
                writers, values = [row["writers"] for row in of_count], [row[name] for row in of_count]
                axes.plot(writers, values, style, color=f"C{number}", label=label)
    axes.set(xlabel="processes that write, or read", ylabel=unit, ylim=(0, None))
    axes.set_xticks(sorted({row["writers"] for row in rows}))
    axes.grid(visible=True, alpha=0.3)
    axes.legend(fontsize="small")


def main() -> int:
    parser = argparse.ArgumentParser(description="Draw what junctura hammer --store --json has measured.")
    parser.add_argument("figures", nargs="?", type=Path, help="the lines of JSON (default: standard input)")
    parser.add_argument("--out", type=Path, default=Path("hammer.png"), help="the picture (default: hammer.png)")
    arguments = parser.parse_args()
    lines = arguments.figures.read_text(encoding="utf-8") if arguments.figures else sys.stdin.read()
    rows: list[Row] = [json.loads(line) for line in lines.splitlines() if line.strip()]
    if not rows:
        print("hammer_plot: there are no figures", file=sys.stderr)
        return 1
    draw(rows, arguments.out)
    return 0


if __name__ == "__main__":
    sys.exit(main())
