"""File names with words in braces: ``t850_{step:03}.grib2``.

Braces enclose words of the file's attributes, with an optional width for numbers: other replacement fields of Python
are rejected, so that a name cannot access objects. Names stay below their folder.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping
from typing import Any

from junctura._document.located_yaml import Wrong, nearest

# The end of the name of a provenance, which is beside its product.
PROVENANCE = ".provenance.json"
_SPEC = re.compile(r"(0?[1-9][0-9]?d?)?")
# Space for the suffix of the hidden provenance file.
_LENGTH_MAX = 220
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')


class Open(str):
    """The placeholder for the value of a word that only fields have; fits any width."""

    __slots__ = ()


class Template:
    """A text with words in braces."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = _parts(text)

    @property
    def words(self) -> tuple[str, ...]:
        """The words in braces."""
        return tuple(dict.fromkeys(word for _, word, _ in self._parts if word))

    def fill(self, attributes: Mapping[str, Any]) -> str:
        """Returns the text with the values of its words.

        Raises
        ------
        Wrong
            A word is unknown, or has a width and its value is not one number.

        """
        return "".join(
            literal + (_shown(word, spec, attributes) if word else "") for literal, word, spec in self._parts
        )


def _parts(text: str) -> list[tuple[str, str, str]]:
    try:
        parsed = list(string.Formatter().parse(text))
    except ValueError as error:
        raise Wrong(f'"{text[:60]}": {error}') from error
    for _, word, spec, conversion in parsed:
        if word is not None and not re.fullmatch(r"[a-z]+", word, re.ASCII):
            raise Wrong(f'"{{{word}}}": in braces stands a word such as step')
        if conversion or not _SPEC.fullmatch(spec or ""):
            raise Wrong(f'"{{{word}}}": behind the colon stands a width such as 03')
    return [(literal, word or "", spec or "") for literal, word, spec, _ in parsed]


def _shown(word: str, spec: str, attributes: Mapping[str, Any]) -> str:
    if word not in attributes:
        raise Wrong(f'"{{{word}}}" has no single value in a file{nearest(word, attributes)}')
    value = attributes[word]
    if not spec or isinstance(value, Open):
        return str(value)
    # For a range of steps, each end.
    ends = [re.fullmatch(r"(-?[0-9]+)([ms]?)", end) for end in re.split(r"(?<=[0-9ms])-", str(value))]
    if not all(ends):
        raise Wrong(f'"{{{word}:{spec}}}" is for whole numbers, and {word} is {value}')
    return "-".join(format(int(end[1]), spec) + end[2] for end in ends if end)


def file_name(template: Template, attributes: Mapping[str, Any]) -> str:
    """Returns the name of a file; see `Template.fill`.

    Raises
    ------
    Wrong
        The path would not be a file below a folder.

    """
    name = template.fill(attributes)
    parts = name.split("/")
    if found := _FORBIDDEN.search(name):
        raise Wrong(f"{name[:60]!r} is no file's name: {found[0]!r} is in it")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise Wrong(f'"{name[:60]}" is no name below a folder')
    if name.endswith(PROVENANCE):
        raise Wrong(f'"{name[:60]}" would be the provenance of another file: a name cannot end with {PROVENANCE}')
    if max(len(part.encode()) for part in parts) > _LENGTH_MAX:
        raise Wrong(f"the name has more than {_LENGTH_MAX} bytes: {name[:60]}...")
    return name


def unknown(template: Template, words: Collection[str]) -> str | None:
    """Returns the first word in braces that is not among these."""
    return next((word for word in template.words if word not in words), None)
