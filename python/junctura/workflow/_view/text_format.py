"""Formats times, sizes and foreign names as text."""

from __future__ import annotations

import unicodedata
from pathlib import Path

_CUT = 200
_LOG_BYTES = 4096
# An error with its remedy is a long line.
_LINE_CUT = 1000
# Characters that change the direction of the surrounding text.
_TURNS = {chr(code) for code in (*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x200E, 0x200F, 0x061C)}
_NOT_SHOWN = ("Cc", "Cs", "Cn", "Co", "Zl", "Zp")


def clean(text: str, cut: int = _CUT) -> str:
    """Returns an external text without control characters and unpaired surrogates, limited in length."""
    if len(text) > cut:
        text = text[: cut - 1] + "…"
    if text.isascii() and text.isprintable():
        return text
    return "".join("\N{REPLACEMENT CHARACTER}" if _is_no_text(one) else one for one in text)


def _is_no_text(one: str) -> bool:
    return one in _TURNS or unicodedata.category(one) in _NOT_SHOWN


def last_lines(log: Path, count: int) -> list[str]:
    """Returns the end of a log for display; empty if it does not exist, or cannot be read."""
    try:
        if not log.is_file():
            return []
        with log.open("rb") as file:
            file.seek(max(0, log.stat().st_size - _LOG_BYTES))
            said = file.read(_LOG_BYTES).decode(errors="replace").splitlines()
    except (OSError, ValueError):
        return []
    return [clean(line.expandtabs(4), _LINE_CUT) for line in said[-count:]]


def seconds(value: float) -> str:
    """As 0.3 ms, 42 ms, 1.25 s, 42.5 s, 3 min 12 s, 2 h 5 min, 3 d 4 h."""
    for limit, factor, form in ((0.001, 1000, ".2f"), (0.01, 1000, ".1f"), (1, 1000, ".0f")):
        if value < limit:
            return "0 s" if value < 0.000005 else f"{value * factor:{form}} ms"
    if value < 59.95:
        return f"{value:.2f} s" if value < 9.995 else f"{value:.1f} s"
    whole = round(value)
    for low, high, large, small in ((60, 3600, "min", "s"), (3600, 86400, "h", "min")):
        if whole < high:
            rest = whole % low // (low // 60)
            return f"{whole // low} {large} {rest} {small}" if rest else f"{whole // low} {large}"
    hours = whole % 86400 // 3600
    return f"{whole // 86400} d {hours} h" if hours else f"{whole // 86400} d"


def size(nbytes: int) -> str:
    """As 512 B, 1.5 KiB, 20 GiB."""
    value, unit = float(nbytes), "B"
    for larger in ("KiB", "MiB", "GiB", "TiB", "PiB"):
        if value < 999.95:
            break
        value, unit = value / 1024, larger
    return f"{nbytes} B" if unit == "B" else f"{value:.1f} {unit}".replace(".0 ", " ")


def count(number: int, one: str, many: str = "") -> str:
    """As 1 task, 1,200 tasks."""
    return f"{number:,} {one if number == 1 else many or one + 's'}"
