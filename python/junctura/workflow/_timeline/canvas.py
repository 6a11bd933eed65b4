"""SVG and HTML as text, in which external values cannot be markup."""

from __future__ import annotations

import html
from collections.abc import Iterable

from junctura.workflow._view.text_format import clean

_TITLE_LINES_MAX = 16


def escape(text: str, cut: int = 200) -> str:
    """Escapes an external text for an element or a quoted attribute."""
    return html.escape(clean(text, cut), quote=True)


def number(value: float) -> str:
    """Returns a coordinate; a tenth of a unit is the resolution of a printer."""
    text = f"{value:.1f}"
    return text[:-2] if text.endswith(".0") else text


class Canvas:
    """Shapes, in drawing order."""

    def __init__(self) -> None:
        self.parts: list[str] = []
        # Shapes that lines must not cover.
        self.over: list[str] = []

    def __str__(self) -> str:
        return "\n".join(self.parts + self.over)

    def add(self, part: str) -> None:
        """Adds trusted markup."""
        self.parts.append(part)

    def rect(
        self, x: float, y: float, width: float, height: float, css: str, title: str = "", radius: float = 0
    ) -> None:
        """Adds a box."""
        round_ = f' rx="{number(radius)}"' if radius else ""
        place = f'x="{number(x)}" y="{number(y)}" width="{number(max(width, 0.4))}" height="{number(height)}"{round_}'
        self._shape(f'rect class="{css}" {place}', title)

    def line(self, x: float, y: float, to_x: float, to_y: float, css: str, title: str = "") -> None:
        """Adds a straight line."""
        place = f'x1="{number(x)}" y1="{number(y)}" x2="{number(to_x)}" y2="{number(to_y)}"'
        self._shape(f'line class="{css}" {place}', title)

    def path(self, steps: str, css: str, title: str = "") -> None:
        """Adds a line or an area from trusted path steps."""
        self._shape(f'path class="{css}" d="{steps}"', title)

    def text(
        self, x: float, y: float, said: str, css: str = "", anchor: str = "", title: str = "", cut: int = 60
    ) -> None:
        """Adds a text; `anchor` is ``middle`` or ``end``."""
        place = f'x="{number(x)}" y="{number(y)}"' + (f' text-anchor="{anchor}"' if anchor else "")
        layer = self.over if css == "figure" else self.parts
        layer.append(f'<text class="{css}" {place}>{_title(title)}{escape(said, cut)}</text>')

    def mark(self, kind: str, x: float, y: float, size: float, title: str = "", css: str = "") -> None:
        """Adds the shape of an outcome: ``done``, ``failed``, ``skipped``, ``cancelled``, ``cut``."""
        self.path(_MARKS[kind](x, y, size), f"mark {kind} {css}".rstrip(), title)

    def _shape(self, inner: str, title: str) -> None:
        self.add(f"<{inner}>{_title(title)}</{inner.split()[0]}>" if title else f"<{inner}/>")


def _title(said: str) -> str:
    """Returns the tooltip, in lines."""
    shown = "\n".join(escape(line) for line in said.split("\n")[:_TITLE_LINES_MAX])
    return f"<title>{shown}</title>" if said else ""


def steps(points: Iterable[tuple[float, float]], *, is_closed: bool = False) -> str:
    """Returns a path through points."""
    text = "L".join(f"{number(x)} {number(y)}" for x, y in points)
    return f"M{text}{'z' if is_closed else ''}"


def _dot(x: float, y: float, r: float) -> str:
    n, d = number, number(2 * r)
    return f"M{n(x - r)} {n(y)}a{n(r)} {n(r)} 0 1 0 {d} 0a{n(r)} {n(r)} 0 1 0 -{d} 0z"


def _cross(x: float, y: float, r: float) -> str:
    return steps([(x - r, y - r), (x + r, y + r)]) + steps([(x - r, y + r), (x + r, y - r)])


def _diamond(x: float, y: float, r: float) -> str:
    return steps([(x - r, y), (x, y - r), (x + r, y), (x, y + r)], is_closed=True)


def _square(x: float, y: float, r: float) -> str:
    return steps([(x - r, y - r), (x + r, y - r), (x + r, y + r), (x - r, y + r)], is_closed=True)


def _up(x: float, y: float, r: float) -> str:
    return steps([(x - r, y + r), (x, y - r), (x + r, y + r)], is_closed=True)


def _down(x: float, y: float, r: float) -> str:
    return steps([(x - r, y - r), (x, y + r), (x + r, y - r)], is_closed=True)


def _zigzag(x: float, y: float, r: float) -> str:
    return steps([(x, y - r), (x + r, y - r / 3), (x, y + r / 3), (x + r, y + r)])


_MARKS = {
    "done": _dot,
    "failed": _cross,
    "skipped": _diamond,
    "cancelled": _square,
    "cut": _zigzag,
    "joined": _up,
    "left": _down,
    "completed": _dot,
}
