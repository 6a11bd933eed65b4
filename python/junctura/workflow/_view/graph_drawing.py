"""Draws dependencies between rows, to the left of the rows.

```text
  ╭─────  forecast        a lane begins at the row that others wait for, and ends at the last that does;
  ├─╭───▶ products        the arrow is at those that wait; the shorter a lane, the nearer to the rows
  ╰─┴───▶ report
```
Crossing lines without an end do not connect: the vertical one is drawn.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass

_LANES_MAX = 12
_ROWS_MAX = 1000
# By whether a line arrives from the left: the character of a lane in a row.
_CELLS = {"begin": "╭┬", "middle": "├┼", "end": "╰┴", "by": "││", "": " ─"}


@dataclass(frozen=True)
class _Lane:
    """A lane from one row to its dependents."""

    begin: int
    ends: frozenset[int]

    @property
    def last(self) -> int:
        return max(self.ends)

    def part(self, row: int) -> str:
        if not self.begin <= row <= self.last:
            return ""
        if row == self.begin:
            return "begin"
        if row == self.last:
            return "end"
        return "middle" if row in self.ends else "by"


def rails(waits: Sequence[Iterable[int]]) -> list[str]:
    """Returns the drawing to the left of each row; `waits` has for each row its dependencies above it.

    If the drawing would be too wide to read, it is empty.
    """
    ends: dict[int, set[int]] = {}
    for row, before in enumerate(waits):
        for other in before:
            if other < row:
                ends.setdefault(other, set()).add(row)
    if not ends or len(waits) > _ROWS_MAX:
        return [""] * len(waits)
    columns = _columns([_Lane(begin, frozenset(rows)) for begin, rows in ends.items()])
    if len(columns) > _LANES_MAX:
        return [""] * len(waits)
    targets = frozenset(row for rows in ends.values() for row in rows)
    # The nearest column is the last in the line.
    return [_line([_of(column, row) for column in reversed(columns)], row in targets) for row in range(len(waits))]


def _columns(lanes: list[_Lane]) -> list[list[_Lane]]:
    columns: list[list[_Lane]] = []
    for lane in sorted(lanes, key=lambda one: (one.last - one.begin, one.begin)):
        free = (column for column in columns if all(one.last < lane.begin or lane.last < one.begin for one in column))
        column = next(free, None)
        if column is None:
            columns.append([lane])
        else:
            column.append(lane)
    return columns


def _of(column: list[_Lane], row: int) -> str:
    return next((part for lane in column if (part := lane.part(row))), "")


def _line(parts: list[str], is_target: bool) -> str:
    made, comes = "", False
    for part in parts:
        made += _CELLS[part][comes]
        comes = comes or part in ("begin", "middle", "end")
        made += "─" if comes else " "
    return made + ("▶ " if is_target else "─ " if comes else "  ")


def in_columns(rows: Sequence[Mapping[str, str]]) -> list[str]:
    """Returns rows with aligned texts."""
    widths = {name: max(len(row[name]) for row in rows) for name in (rows[0] if rows else {})}
    shown = [name for name, width in widths.items() if width]
    return ["  ".join(row[name].ljust(widths[name]) for name in shown).rstrip() for row in rows]
