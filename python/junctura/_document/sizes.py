"""Parses sizes and durations in the same notation as the command line."""

from __future__ import annotations

import math
import re

from junctura._document.located_yaml import Wrong

BYTES = {
    "b": 1,
    **dict.fromkeys(("k", "kib"), 1 << 10),
    **dict.fromkeys(("m", "mib"), 1 << 20),
    **dict.fromkeys(("g", "gib"), 1 << 30),
    **dict.fromkeys(("t", "tib"), 1 << 40),
    "kb": 10**3,
    "mb": 10**6,
    "gb": 10**9,
    "tb": 10**12,
}
SECONDS = {"ms": 1e-3, "s": 1, "m": 60, "min": 60, "h": 3600, "d": 86400}
BYTES_PATTERN = r"^[0-9]+(\.[0-9]+)? ?([kKMGT]i?)?[bB]?$"
SECONDS_PATTERN = r"^([0-9]+(\.[0-9]+)? ?(ms|s|min|m|h|d) ?)+$|^[0-9]+(\.[0-9]+)?$"
_BYTES_MAX, _SECONDS_MAX = 1 << 60, 86400 * 3660
_SHOWN_BYTES = (("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10))
_SHOWN_SECONDS = (("d", 86400), ("h", 3600), ("min", 60))


def bytes_of(said: str | float) -> int:
    """Returns the bytes of ``500MiB``, ``1.5 GB`` or ``4096``.

    Raises
    ------
    Wrong
        The text is not a size, or exceeds any memory.

    """
    number, unit = _split(said, "a size as 500MiB")
    if unit.lower() not in BYTES and unit:
        raise Wrong(f'"{unit}" is no unit of size: B, KiB, MiB, GiB, TiB, kB, MB, GB, TB')
    found = number * BYTES.get(unit.lower(), 1)
    if not 1 <= found <= _BYTES_MAX:
        raise Wrong(f"{said} is no size that memory has")
    return round(found)


def seconds_of(said: str | float) -> float:
    """Returns the seconds of ``10min``, ``1h30m``, ``1.5h``, ``250ms`` or ``30``.

    Raises
    ------
    Wrong
        The text is not a duration, or exceeds ten years.

    """
    # After each unit another number may follow.
    parts = re.split(r"(?<=[A-Za-z]) ?(?=[0-9])", str(said))
    found = 0.0
    for number, unit in (_split(part, "a time as 10min") for part in parts):
        if unit not in SECONDS and (unit or len(parts) > 1):
            raise Wrong(f'"{unit}" is no unit of time: ms, s, m or min, h, d')
        found += number * SECONDS.get(unit, 1)
    if not 0 < found <= _SECONDS_MAX:
        raise Wrong(f"{said} is not between 0 and ten years")
    return found


def shown_bytes(count: int) -> str:
    """Formats a size: ``500 MiB``."""
    name, unit = next(((name, unit) for name, unit in _SHOWN_BYTES if count >= unit), ("B", 1))
    return f"{_short(count / unit)} {name}"


def shown_seconds(seconds: float) -> str:
    """Formats a duration: ``10 min``."""
    name, unit = next(((name, unit) for name, unit in _SHOWN_SECONDS if seconds >= unit), ("s", 1))
    return f"{_short(seconds / unit)} {name}"


def _split(said: str | float, what: str) -> tuple[float, str]:
    found = re.fullmatch(r"([0-9]+(?:\.[0-9]+)?) ?([A-Za-z]*)", str(said).strip(), re.ASCII)
    if found is None or not math.isfinite(number := float(found[1])):
        raise Wrong(f'expected {what}, not "{str(said)[:60]}"')
    return number, found[2]


def _short(number: float) -> str:
    """Formats a number with one decimal if it adds information."""
    return f"{number:.1f}".removesuffix(".0")
