"""Asking a pool for what several selectors find, in as few selectors as can be."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# What a selector may have at most: docs/formats/selector.md.
SELECTOR_BYTES_MAX, SELECTOR_VALUES_MAX = 65_536, 10_000
_OR = " or "


def joined(selectors: Iterable[str]) -> Iterator[str]:
    """Selectors for all that these find, as few as can be made of them in this order."""
    return map(either, together(selectors))


def together(selectors: Iterable[str]) -> Iterator[list[str]]:
    """Which of them can be asked at once, in this order."""
    parts: list[str] = []
    size = values = 0
    for text in selectors:
        # Not all slashes and commas are between values: it is no less than this.
        more_bytes, more_values = len(f"({text}){_OR}".encode()), text.count("/") + text.count(",") + 1
        if parts and (size + more_bytes > SELECTOR_BYTES_MAX or values + more_values > SELECTOR_VALUES_MAX):
            yield parts
            parts, size, values = [], 0, 0
        parts.append(text)
        size, values = size + more_bytes, values + more_values
    if parts:
        yield parts


def either(parts: list[str]) -> str:
    """One selector for what any of these find."""
    # One alone may be as long as may be, without brackets.
    return parts[0] if len(parts) == 1 else _OR.join(f"({part})" for part in parts)
