"""Takes the figures of docs/guide/comparison.md from docs/benchmarks.md.

``comparison.py`` writes them into the page; ``comparison.py --check`` says whether they are there as they should be.
"""

from __future__ import annotations

import re
import sys
from dataclasses import dataclass
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent
FIGURES = ROOT / "docs/benchmarks.md"
PAGE = ROOT / "docs/guide/comparison.md"
BEGIN, END = "<!-- figures: tools/comparison.py writes between these marks -->", "<!-- end of figures -->"


@dataclass(frozen=True)
class Row:
    """A question, the case that answers it, and who is compared: in the page's words, and as the case has them."""

    question: str
    case: str
    contenders: dict[str, str]


ROWS = [
    Row(
        "fields of 804 KiB, every byte written and read, GiB/s",
        "touch-804KiB-window-64",
        {
            "Junctura": "junctura",
            "Redis": "Redis streams (C, unix socket)",
            "Zenoh": "Zenoh (Rust, shared memory), touched",
            "iceoryx2": "iceoryx2 (Rust, events), touched, as many slots as ours",
            "one copy": "limit: memcpy, one thread",
        },
    ),
    Row(
        "fields of 804 KiB that stay in place, a second",
        "transfer-804KiB-window-64",
        {
            "Junctura": "junctura",
            "Zenoh": "Zenoh (Rust, shared memory), untouched",
            "iceoryx2": "iceoryx2 (Rust, events), untouched",
        },
    ),
    Row(
        "objects of 1 KiB, a second",
        "small-1KiB-window-64",
        {
            "Junctura": "junctura",
            "Redis": "Redis streams (C, unix socket)",
            "Zenoh": "Zenoh (Rust, shared memory), touched",
            "iceoryx2": "iceoryx2 (Rust, events), touched",
        },
    ),
    Row(
        "a set four times the memory, in and then out, GiB/s",
        "spill-set",
        {"Junctura": "pool with a file tier", "files": "a file for each"},
    ),
]
COLUMNS = ["Junctura", "files", "Redis", "Zenoh", "iceoryx2", "one copy"]


def best(text: str, case: str, contender: str) -> str:
    """The best figure of a contender in a case."""
    _, _, rest = text.partition(f"**{case}**")
    table = rest.split("\n\n")[1] if rest else ""
    for line in table.splitlines():
        cells = [cell.strip() for cell in line.strip("|").split("|")]
        if cells[0].removesuffix(" (disturbed)") == contender:
            return cells[1]
    raise SystemExit(f"{FIGURES.name} has no figure of {contender!r} in {case!r}: tools/comparison.py asks for it")


def table(text: str) -> str:
    lines = ["| " + " | ".join(["", *COLUMNS]) + " |", "|---|" + "--:|" * len(COLUMNS)]
    for row in ROWS:
        figures = (row.contenders.get(column) for column in COLUMNS)
        cells = [best(text, row.case, figure) if figure else "" for figure in figures]
        lines.append("| " + " | ".join([row.question, *cells]) + " |")
    return "\n".join(lines)


def main() -> int:
    page = PAGE.read_text()
    made = re.sub(
        f"{re.escape(BEGIN)}.*?{re.escape(END)}",
        lambda _: f"{BEGIN}\n\n{table(FIGURES.read_text())}\n\n{END}",
        page,
        flags=re.S,
    )
    if "--check" in sys.argv[1:]:
        if made != page:
            print("the figures of docs/guide/comparison.md are not those of docs/benchmarks.md: tools/comparison.py")
        return int(made != page)
    PAGE.write_text(made)
    return 0


if __name__ == "__main__":
    sys.exit(main())
