"""Combines several selectors for a pool into as few selectors as possible."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

# The limits of a selector: docs/formats/selector.md.
SELECTOR_BYTES_MAX, SELECTOR_VALUES_MAX = 65_536, 10_000
_OR = " or "


def joined(selectors: Iterable[str]) -> Iterator[str]:
    """Returns selectors that together match the same objects, with as few as possible in this order."""
    return map(either, together(selectors))


def together(selectors: Iterable[str]) -> Iterator[list[str]]:
    """Yields groups of selectors that fit into one, in this order."""
    parts: list[str] = []
    size = values = 0
    for text in selectors:
        # Not all slashes and commas separate values: this is an upper bound.
        more_bytes, more_values = len(f"({text}){_OR}".encode()), text.count("/") + text.count(",") + 1
        if parts and (size + more_bytes > SELECTOR_BYTES_MAX or values + more_values > SELECTOR_VALUES_MAX):
            yield parts
            parts, size, values = [], 0, 0
        parts.append(text)
        size, values = size + more_bytes, values + more_values
    if parts:
        yield parts


def either(parts: list[str]) -> str:
    """Returns one selector that matches what any of these matches."""
    # A single selector may have the maximum length, without brackets.
    return parts[0] if len(parts) == 1 else _OR.join(f"({part})" for part in parts)
