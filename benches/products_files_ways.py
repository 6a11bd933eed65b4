"""How fields come from members to products without a junction, for ``products_files.py``: both ends of two ways.

``Files`` are a folder for each step with a file for each field, so that a reader reads nothing that it does not need;
a file is written under a name that nobody looks at, and then renamed. Nobody tells of it: readers look again and again.
``Archive`` is a weather centre's field store (``pyfdb``): a member archives the fields of a step with their keys given,
flushes, and then tells of it by a line in a pipe; readers retrieve all that a task needs by one request.
"""

from __future__ import annotations

import functools
import importlib
import multiprocessing
import os
import sys
import time
from collections import defaultdict
from collections.abc import Collection, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple, Protocol

import eccodes

# By the short names of all that a member hands over what the field store calls them.
PARAMS = {"vo": "138", "d": "155", "z": "129", "u": "131", "v": "132", "gh": "156"}
# What all fields have, as the model says it.
COMMON: dict[str, Any] = {"class": "rd", "expver": "swel", "stream": "enfo", "date": 20261120, "time": 0}
COMMON |= {"type": "pf", "levtype": "pl", "levelist": 500}
PIPE = "told"


class Name(NamedTuple):
    """Which field it is, of all of one forecast."""

    param: str
    number: int
    step: int

    def attributes(self) -> dict[str, Any]:
        return COMMON | self._asdict()


class Writer(Protocol):
    """A member's end."""

    def take(self, name: Name, data: bytes) -> None:
        """Hands a field over."""

    def end_step(self) -> None:
        """There are no more fields of this step."""


class Source(Protocol):
    """The products' end: one process waits for fields, and others read them."""

    def wait(self) -> list[Name]:
        """Fields that have come since, one or more."""

    def mark(self) -> int:
        """How far this is; what has come by now can be read with it."""

    def read(self, names: Sequence[Name], mark: int) -> Iterator[tuple[Name, bytes]]:
        """Fields that have come."""


class FileWriter:
    """Writes a file for each field."""

    def __init__(self, place: Path) -> None:
        self.place = place

    def take(self, name: Name, data: bytes) -> None:
        path = path_of(self.place, name)
        path.parent.mkdir(exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(data)
        hidden.rename(path)

    def end_step(self) -> None:
        """Nobody is told."""


class SyncedFileWriter:
    """Writes a file for each field; at the end of a step they are on the disk, and only then renamed."""

    def __init__(self, place: Path) -> None:
        self.place = place
        # Of this step: temporary names, and their final names.
        self.files: dict[Path, Path] = {}

    def take(self, name: Name, data: bytes) -> None:
        path = path_of(self.place, name)
        path.parent.mkdir(exist_ok=True)
        hidden = path.with_name(f".{path.name}")
        hidden.write_bytes(data)
        self.files[hidden] = path

    def end_step(self) -> None:
        for hidden in self.files:
            synced(hidden)
        for hidden, path in self.files.items():
            hidden.rename(path)
        for folder in {path.parent for path in self.files.values()}:
            synced(folder)
        self.files.clear()


def synced(path: Path) -> None:
    """Returns when a file, or the names in a folder, are on the disk."""
    descriptor = os.open(path, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


class Files:
    """Looks every so often into the folders of the steps of which something is missing, and nowhere else."""

    def __init__(self, place: Path, wanted: Collection[Name], every_s: float) -> None:
        self.place, self.every_s = place, every_s
        self.left: dict[Path, dict[str, Name]] = defaultdict(dict)
        for name in wanted:
            path = path_of(place, name)
            self.left[path.parent][path.name] = name
        self.next_look = time.monotonic()

    def wait(self) -> list[Name]:
        while not (come := self._look()):
            now = time.monotonic()
            # A look that is overdue is not made up for.
            self.next_look = max(self.next_look + self.every_s, now)
            time.sleep(self.next_look - now)
        return come

    def _look(self) -> list[Name]:
        come = []
        for folder, left in list(self.left.items()):
            if folder.exists():
                come += [left.pop(file) for file in left.keys() & os.listdir(folder)]  # noqa: PTH208 - names, not paths
            if not left:
                del self.left[folder]
        return sorted(come, key=lambda name: name.step)

    def mark(self) -> int:
        return 0

    def read(self, names: Sequence[Name], mark: int) -> Iterator[tuple[Name, bytes]]:  # noqa: ARG002 - as all sources
        for name in names:
            yield name, path_of(self.place, name).read_bytes()


def path_of(place: Path, name: Name) -> Path:
    return place / str(name.step) / f"{name.param}_{name.number}.grib2"


class ArchiveWriter:
    """Archives a step, and tells of it when it can be read."""

    def __init__(self, place: Path) -> None:
        self.place, self.store = place, opened(place)
        self.step = ""

    def take(self, name: Name, data: bytes) -> None:
        self.store.archive(data, keys([name], *name._asdict()))
        self.step = f"{name.number} {name.step}\n"

    def end_step(self) -> None:
        self.store.flush()
        os.write(self._pipe, self.step.encode())

    @functools.cached_property
    def _pipe(self) -> int:
        # Waits until somebody listens, which is so before a member has anything to tell.
        return os.open(self.place / PIPE, os.O_WRONLY)


class Archive:
    """Is told what has come.

    A store that was opened before a flush does not see what it brought, once it has looked there: it is opened again,
    but only by those who need something newer than when they opened it last.
    """

    def __init__(self, place: Path, wanted: Collection[Name]) -> None:
        self.place, self.wanted = place, frozenset(wanted)
        # Open for writing, too: so it never ends.
        self.pipe = os.fdopen(os.open(place / PIPE, os.O_RDWR), "rb")
        # Shared with those who read.
        self.told = multiprocessing.get_context("fork").Value("L", 0)
        self.store: Any = None
        self.opened_at = -1

    def wait(self) -> list[Name]:
        number, step = map(int, self.pipe.readline().split())
        with self.told:
            self.told.value += 1
        return [name for param in PARAMS if (name := Name(param, number, step)) in self.wanted]

    def mark(self) -> int:
        return int(self.told.value)

    def read(self, names: Sequence[Name], mark: int) -> Iterator[tuple[Name, bytes]]:
        if mark > self.opened_at:
            self.opened_at, self.store = self.mark(), opened(self.place)
        with self.store.retrieve(keys(names, "param", "number", "step")) as handle:
            given = bytes(handle.readall())
        # In whatever order.
        for data in messages(given):
            yield name_of(data), data


def opened(place: Path) -> Any:
    return rival().opened(str(place / "store"), sub_tocs=True)


def keys(names: Sequence[Name], *of: str) -> dict[str, Any]:
    """What the field store calls one field, or all of a task by one request."""
    found: dict[str, Any] = {**rival().COMMON, **{word: str(COMMON[word]) for word in ("expver", "date", "type")}}
    found |= {"levtype": "pl", "levelist": "500"}
    for word in of:
        values = dict.fromkeys(getattr(name, word) for name in names)
        said = [PARAMS[value] if word == "param" else str(value) for value in values]
        found[word] = said if len(said) > 1 else said[0]
    return found


@functools.cache
def rival() -> Any:
    """The field store as it is in the benchmark of stores."""
    sys.path.insert(0, str(Path(__file__).resolve().parent / "rivals"))
    return importlib.import_module("fdb")


def messages(data: bytes) -> Iterator[bytes]:
    """GRIB2 messages, one behind the other."""
    at = 0
    while at < len(data):
        length = int.from_bytes(data[at + 8 : at + 16], "big")
        yield data[at : at + length]
        at += length


def name_of(message: bytes) -> Name:
    """What its header says; no value is decoded."""
    handle = eccodes.codes_new_from_message(message)
    try:
        number, step = (eccodes.codes_get_long(handle, key) for key in ("number", "endStep"))
        return Name(eccodes.codes_get_string(handle, "shortName"), number, step)
    finally:
        eccodes.codes_release(handle)
