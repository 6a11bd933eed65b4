"""YAML as plain Python values with positions, so that an error can name file, line and key.

A subset of YAML is accepted: mappings, lists and plain values. Anchors, aliases, tags and duplicate keys are rejected,
as are documents beyond the limits of size and depth. Plain values have the types of YAML 1.2: ``no``, ``12:30``,
``0600`` and ``2026-11-20`` are strings, not a boolean, a number of minutes, an octal number and a date.
"""

from __future__ import annotations

import difflib
import glob
import math
import re
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeAlias

from junctura._forks import needed
from junctura._near_file import near_file
from junctura.errors import InvalidArgument, Io, LimitExceeded, NotFound

Step: TypeAlias = "str | int"
Place: TypeAlias = "tuple[Step, ...]"
_BYTES_MAX = 4 << 20
_DEPTH_MAX = 32
_VALUES_MAX = 250_000
_DOCUMENTS_MAX = 10_000
# Maximum number of errors at one position.
WRONG_MAX = 100
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+\.[0-9]*|(0|[1-9][0-9]*)(?=[eE]))([eE][-+]?[0-9]+)?")
_DIGITS_MAX = 18
# Words of other tools for those of recipes, plans and workflows.
_ELSEWHERE = {
    **dict.fromkeys(("shortname", "paramid", "variable", "var"), "param"),
    **dict.fromkeys(("leadtime", "lead_time", "hour", "hours"), "step"),
    **dict.fromkeys(("member", "members", "realization"), "number"),
    **dict.fromkeys(("plev", "pressure", "height"), "levelist"),
    **dict.fromkeys(("output", "target"), "to"),
    **dict.fromkeys(("input", "request", "select"), "from"),
    **dict.fromkeys(("operations", "process"), "do"),
    **dict.fromkeys(("nc", "netcdf4", "cdf"), "netcdf"),
    **dict.fromkeys(("map", "plot", "image"), "png"),
    **dict.fromkeys(("table", "txt"), "csv"),
    **dict.fromkeys(("retries", "retry"), "attempts"),
    **dict.fromkeys(("timeout", "time_limit"), "limit"),
    **dict.fromkeys(("needs", "depends", "depends_on", "dependencies"), "after"),
    **dict.fromkeys(("workdir", "cwd"), "folder"),
    **dict.fromkeys(("command", "cmd"), "run"),
    **dict.fromkeys(("convert", "unit"), "units"),
    "name": "product",
    "lat": "latitude",
    "lon": "longitude",
    "env": "environment",
    "allow_failure": "may_fail",
}
_WORDS = {"": None, "~": None, "null": None, "true": True, "false": False}


class Wrong(InvalidArgument):
    """An error in a document; `place` is its path from the validated value.

    `others` are further errors, if several values were validated.
    """

    def __init__(self, cause: str, *place: Step, others: Sequence[Wrong] = ()) -> None:
        super().__init__(named(place), cause)
        self.place = place
        self.others = tuple(others)

    def within(self, *place: Step) -> Wrong:
        """Returns the error with a path from an enclosing value."""
        return Wrong(self.cause, *place, *self.place, others=[other.within(*place) for other in self.others])

    def each(self) -> tuple[Wrong, ...]:
        """Returns this error and the others."""
        return (self, *self.others)


def raise_all(found: Sequence[Wrong]) -> None:
    """Raises the errors, if any, as one; of very many, the first ones and the number of the others."""
    if len(found) > WRONG_MAX:
        found = [*found[:WRONG_MAX], Wrong(f"{len(found) - WRONG_MAX} more mistakes")]
    if found:
        raise Wrong(found[0].cause, *found[0].place, others=found[1:])


@dataclass(frozen=True)
class Document:
    """One document of a file.

    Attributes
    ----------
    value
        Plain Python: dict, list, str, int, float, bool or None.
    path
        The file name, for messages.

    """

    value: Any
    path: str
    lines: dict[Place, int] = field(repr=False)

    def line(self, place: Place = ()) -> int:
        """Returns the line of a value; for a missing value, that of its container."""
        while place and place not in self.lines:
            place = place[:-1]
        return self.lines[place]

    def error(self, wrong: Wrong) -> InvalidArgument:
        """Returns an error with file, line and key."""
        key = named(wrong.place)
        return InvalidArgument(f"{self.path}:{self.line(wrong.place)}", f"{key}: {wrong.cause}" if key else wrong.cause)


def named(place: Place) -> str:
    """Returns the keys on the path to a value, as one text."""
    return ".".join(step for step in place if isinstance(step, str))


@contextmanager
def at(*place: Step) -> Iterator[None]:
    """The position for errors that a block raises."""
    try:
        yield
    except Wrong as wrong:
        raise wrong.within(*place) from None
    except InvalidArgument as error:
        # Errors of grids and units name their subject themselves.
        raise Wrong(f"{error.subject}: {error.cause}", *place) from error


def nearest(word: str, known: Iterable[str]) -> str:
    """Returns a hint for an unknown word: the closest known word, or all known words."""
    words = list(known)
    if (elsewhere := _ELSEWHERE.get(word.lower())) in words:
        return f'; did you mean "{elsewhere}"?'
    if close := difflib.get_close_matches(word.lower(), words, n=1, cutoff=0.6):
        return f'; did you mean "{close[0]}"?'
    return f"; known are {', '.join(words)}" if words else ""


def files_of(paths: Iterable[str | Path]) -> Iterator[str]:
    """Expands patterns: the matching files in place of the pattern, in order.

    Raises
    ------
    NotFound
        A pattern matches no file.

    """
    for path in paths:
        if not glob.has_magic(str(path)) or Path(path).exists():
            yield str(path)
            continue
        root = Path(path).anchor or "."
        matches = sorted(str(match) for match in Path(root).glob(str(path).removeprefix(Path(path).anchor)))
        if not matches:
            raise NotFound(str(path), "no file is found")
        yield from matches


def read(path: str | Path) -> list[Document]:
    """Reads the documents of a file.

    Raises
    ------
    NotFound, Io
        The file does not exist, or cannot be read.
    LimitExceeded
        The file is larger than 4 MiB.
    InvalidArgument
        The file is not YAML, or uses a rejected feature; the error names the line.

    """
    try:
        with Path(path).open("rb") as file:
            content = file.read(_BYTES_MAX + 1)
    except FileNotFoundError as error:
        raise NotFound(str(path), f"there is no such file{near_file(path)}") from error
    except (OSError, ValueError) as error:
        raise Io(str(path), str(error)) from error
    return documents(content, str(path))


def documents(content: bytes, path: str) -> list[Document]:
    """Returns the documents in the content of a file; see `read`."""
    if len(content) > _BYTES_MAX:
        raise LimitExceeded(path, f"larger than {_BYTES_MAX >> 20} MiB")
    try:
        text = content.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = content.count(b"\n", 0, error.start) + 1
        raise InvalidArgument(f"{path}:{line}", "the text is not UTF-8") from error
    yaml = needed("yaml", "products")
    try:
        return list(_Composer(yaml, text, path).documents())
    except InvalidArgument:
        raise
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        raise InvalidArgument(f"{path}:{line}", f"a character that no text has: {error.character!r}") from error
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{path}:{mark.line + 1}" if mark else path
        bad = text.splitlines()[mark.line] if mark and mark.line < len(text.splitlines()) else ""
        remedy = ": indent by spaces, not by tabs" if "\t" in bad[: len(bad) - len(bad.lstrip())] else ""
        raise InvalidArgument(where, f"not YAML: {error.problem or error.context}{remedy}") from error
    except (yaml.YAMLError, ValueError, RecursionError) as error:
        raise InvalidArgument(path, f"not YAML: {error}") from error


class _Composer:
    """Builds documents from the events of a parser."""

    def __init__(self, yaml: Any, text: str, path: str) -> None:
        self._yaml = yaml
        self._path = path
        # The parser of libyaml if PyYAML has it: ten times as fast.
        loader = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
        self._events: Iterator[Any] = yaml.parse(text, Loader=loader)
        self._lines: dict[Place, int] = {}

    def documents(self) -> Iterator[Document]:
        count = 0
        for event in self._events:
            if isinstance(event, self._yaml.DocumentStartEvent):
                count += 1
                if count > _DOCUMENTS_MAX:
                    self._refuse(event, f"more than {_DOCUMENTS_MAX} documents")
                self._lines = {}
                yield Document(self._value(next(self._events), ()), self._path, self._lines)

    def _value(self, event: Any, place: Place) -> Any:
        self._check(event, place)
        self._lines.setdefault(place, event.start_mark.line + 1)
        if isinstance(event, self._yaml.ScalarEvent):
            return event.value if event.style else plain(event.value)
        if isinstance(event, self._yaml.SequenceStartEvent):
            return [self._value(item, (*place, index)) for index, item in enumerate(self._until_end())]
        return self._mapping(place)

    def _mapping(self, place: Place) -> dict[str, Any]:
        found: dict[str, Any] = {}
        for event in self._until_end():
            self._check(event, place)
            if not isinstance(event, self._yaml.ScalarEvent):
                self._refuse(event, "a key is a word")
            key = event.value
            if key in found:
                self._refuse(event, f'"{key}" stands there twice, first on line {self._lines[(*place, key)]}')
            self._lines[(*place, key)] = event.start_mark.line + 1
            found[key] = self._value(next(self._events), (*place, key))
        return found

    def _until_end(self) -> Iterator[Any]:
        ends = (self._yaml.SequenceEndEvent, self._yaml.MappingEndEvent)
        for event in self._events:
            if isinstance(event, ends):
                return
            yield event

    def _check(self, event: Any, place: Place) -> None:
        if isinstance(event, self._yaml.AliasEvent) or event.anchor is not None:
            self._refuse(event, "anchors (&) and aliases (*) are not read here: write the value out")
        if event.tag is not None:
            self._refuse(event, f"tags are not read here: {event.tag}")
        if len(place) > _DEPTH_MAX:
            self._refuse(event, f"nested deeper than {_DEPTH_MAX}")
        if len(self._lines) > _VALUES_MAX:
            self._refuse(event, f"more than {_VALUES_MAX} values")

    def _refuse(self, event: Any, cause: str) -> None:
        raise InvalidArgument(f"{self._path}:{event.start_mark.line + 1}", cause)


def plain(text: str) -> str | int | float | bool | None:
    """Returns the value of an unquoted scalar."""
    if text in _WORDS:
        return _WORDS[text]
    if len(text) <= _DIGITS_MAX and _INTEGER.fullmatch(text):
        return int(text)
    if _FLOAT.fullmatch(text) and math.isfinite(value := float(text)):
        return value
    return text
