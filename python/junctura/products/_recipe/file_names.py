"""Names of files with braces in them: ``t850_{step:03}.grib2``.

In braces stand words of the file's attributes, with a width for numbers at most: nothing of Python's other
replacement fields, so that a name cannot reach into anything. Names stay below the folder that they are for.
"""

from __future__ import annotations

import re
import string
from collections.abc import Collection, Mapping
from typing import Any

from junctura._document.located_yaml import Wrong, nearest

_SPEC = re.compile(r"(0?[1-9][0-9]?d?)?")
# Room for what a hidden provenance has besides.
_LENGTH_MAX = 220
_FORBIDDEN = re.compile(r'[\x00-\x1f\x7f\\:*?"<>|]')


class Open(str):
    """Stands for the value of a word that only fields tell; fits any width."""

    __slots__ = ()


class Template:
    """A text with words in braces."""

    def __init__(self, text: str) -> None:
        self.text = text
        self._parts = _parts(text)

    @property
    def words(self) -> tuple[str, ...]:
        """What stands in braces."""
        return tuple(dict.fromkeys(word for _, word, _ in self._parts if word))

    def fill(self, attributes: Mapping[str, Any]) -> str:
        """The text with values for its words.

        Raises
        ------
        Wrong
            A word is not known, or its value is not one number where a width is given.

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
    # Of a range of steps, each end.
    ends = [re.fullmatch(r"(-?[0-9]+)([ms]?)", end) for end in re.split(r"(?<=[0-9ms])-", str(value))]
    if not all(ends):
        raise Wrong(f'"{{{word}:{spec}}}" is for whole numbers, and {word} is {value}')
    return "-".join(format(int(end[1]), spec) + end[2] for end in ends if end)


def file_name(template: Template, attributes: Mapping[str, Any]) -> str:
    """The name of a file; see `Template.fill`.

    Raises
    ------
    Wrong
        It would be no file below a folder.

    """
    name = template.fill(attributes)
    parts = name.split("/")
    if found := _FORBIDDEN.search(name):
        raise Wrong(f"{name[:60]!r} is no file's name: {found[0]!r} is in it")
    if name.startswith("/") or any(part in ("", ".", "..") for part in parts):
        raise Wrong(f'"{name[:60]}" is no name below a folder')
    if max(len(part.encode()) for part in parts) > _LENGTH_MAX:
        raise Wrong(f"the name has more than {_LENGTH_MAX} bytes: {name[:60]}...")
    return name


def unknown(template: Template, words: Collection[str]) -> str | None:
    """The first word in braces that is none of these."""
    return next((word for word in template.words if word not in words), None)
