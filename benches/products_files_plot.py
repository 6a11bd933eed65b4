"""Draws how soon the last product is there over the number of members, by each way, from what the benchmark left.

``products_files_plot.py --figures bench-out/products_files.json --out products_files.png``: a picture for each length
of a forecast, the best of the rounds; what disturbed a round is in the figures. Below, how many times as long as with
Junctura.
"""

from __future__ import annotations

import argparse
import json
import re
from collections import defaultdict
from pathlib import Path
from typing import Any, TypeAlias

import matplotlib.pyplot as plt
from matplotlib.axes import Axes

plt.switch_backend("Agg")
# Letters of an SVG stay letters.
plt.rcParams["svg.fonttype"] = "none"
ROOT = Path(__file__).resolve().parent.parent
# Of each way the seconds by members.
Lines: TypeAlias = dict[str, dict[int, float]]


def read(path: Path) -> dict[int, Lines]:
    """By steps."""
    found: dict[int, Lines] = defaultdict(lambda: defaultdict(dict))
    for case in json.loads(path.read_text(encoding="utf-8"))["cases"]:
        sizes = re.fullmatch(r"(\d+)-members-(\d+)-steps", case["name"])
        # Larger fields are no point of these lines.
        if sizes is None:
            continue
        members, steps = map(int, sizes.groups())
        for contender in case["contenders"]:
            if "best" in contender:
                found[steps][contender["name"]][members] = contender["best"]
    return found


def draw(axes: Any, steps: int, lines: Lines) -> None:
    ours = next(iter(lines.values()))
    seconds, ratio = axes
    for name, by_members in lines.items():
        members = sorted(by_members)
        style = "o-" if by_members is ours else "s--"
        seconds.plot(members, [by_members[count] for count in members], style, label=name)
        ratio.plot(members, [by_members[count] / ours[count] for count in members if count in ours], style)
    seconds.set(title=f"{steps} steps", ylabel="s to the last product", ylim=(0, None))
    ratio.set(xlabel="members", ylabel="times as long as with Junctura", ylim=(0, None))
    for one in axes:
        tidy(one, sorted(ours))


def tidy(axes: Axes, members: list[int]) -> None:
    axes.set_xticks(members)
    axes.grid(visible=True, alpha=0.3)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    figures = ROOT / "bench-out/products_files.json"
    parser.add_argument("--figures", type=Path, default=figures, help="from bench-out/products_files.json")
    text = "the picture (default: products_files.png)"
    parser.add_argument("--out", type=Path, default=Path("products_files.png"), help=text)
    arguments = parser.parse_args()
    # Of one number of members there is no line.
    by_steps = {steps: lines for steps, lines in read(arguments.figures).items() if len(next(iter(lines.values()))) > 1}
    figure, axes = plt.subplots(2, len(by_steps), squeeze=False, sharex=True, layout="constrained")
    figure.set_size_inches(5.5 * len(by_steps), 7.5)
    for column, (steps, lines) in enumerate(sorted(by_steps.items())):
        draw(axes[:, column], steps, lines)
    axes[0, 0].legend(fontsize="small")
    figure.savefig(arguments.out, dpi=120)


if __name__ == "__main__":
    main()
