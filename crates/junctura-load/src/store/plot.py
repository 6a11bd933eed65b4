"""Draws what ``junctura load store`` has measured: ``--plot FILE``.

``plot.py FILE``, with a line of JSON for each row of the table on standard input, as ``--json`` prints them. The
bandwidth of writing and reading beside that of a plain write, and how fast everything was listed, over the number of
processes; a line for each number of threads. Standard output says ``ready`` before the first row is read, and ``drawn``
at the end, or in place of either what is wrong.
"""

# ruff: noqa: E402
import sys

# Modules come from where Python has its own, not from the folder in which the command happens to run.
sys.path = [folder for folder in sys.path if folder]

import importlib
import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Row = dict[str, Any]
# matplotlib's, once it is known to be there.
plt: Any = None
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


def panel(axes: "Axes", rows: list[Row], figures: tuple[tuple[str, str, str], ...], unit: str) -> None:
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


def refused(out: Path) -> str | None:
    """Why there can be no such picture, before anybody has worked for it."""
    if not out.parent.is_dir():
        return f"there is no folder {out.parent}"
    kinds = plt.gcf().canvas.get_supported_filetypes()
    if out.suffix[1:].lower() not in kinds:
        return f"a picture is a file that ends with one of .{', .'.join(sorted(kinds))}"
    return None


def main() -> int:
    global plt
    out = Path(sys.argv[1])
    try:
        plt = importlib.import_module("matplotlib.pyplot")
    except ImportError as error:
        print(f"{error}; a picture is drawn by matplotlib: pip install matplotlib")
        return 1
    plt.switch_backend("Agg")
    if (wrong := refused(out)) is not None:
        print(wrong)
        return 1
    print("ready", flush=True)
    rows: list[Row] = [json.loads(line) for line in sys.stdin if line.strip()]
    try:
        draw(rows, out)
    except OSError as error:
        print(error)
        return 1
    print("drawn")
    return 0


if __name__ == "__main__":
    sys.exit(main())
