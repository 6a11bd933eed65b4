"""What workers ask libraries for, seen from outside of them; and workers that stand still where a test says."""

from __future__ import annotations

import os
import select
from collections import Counter
from pathlib import Path

import pytest

_IN_WORKERS = Path(__file__).with_name("in_workers")


class Witness:
    """Of all Python processes that are started from now on; see ``in_workers/sitecustomize.py``.

    Parameters
    ----------
    folder
        Where what it knows may lie.
    monkeypatch
        Of the test.
    file_bytes
        So large may files become that they write.

    """

    def __init__(self, folder: Path, monkeypatch: pytest.MonkeyPatch, file_bytes: int | None = None) -> None:
        self._monkeypatch = monkeypatch
        self._folder = folder / "witness"
        self._folder.mkdir()
        os.mkfifo(self._folder / "told")
        monkeypatch.setenv("JUNCTURA_WITNESS", str(self._folder))
        monkeypatch.setenv("PYTHONPATH", str(_IN_WORKERS), prepend=os.pathsep)
        if file_bytes is not None:
            monkeypatch.setenv("JUNCTURA_WITNESS_FILE_BYTES", str(file_bytes))

    def holds(self, where: str) -> None:
        """The first one that comes there stands still: ``decoded HASH``, or ``rename NAME``."""
        self._monkeypatch.setenv("JUNCTURA_WITNESS_HOLDS", where)

    def kills(self, tag: str, count: int) -> None:
        """So many workers are killed when they begin a task with this tag."""
        self._monkeypatch.setenv("JUNCTURA_WITNESS_KILLS", f"{tag} {count}")

    def held(self) -> int:
        """The one that stands still, as soon as it does."""
        told = os.open(self._folder / "told", os.O_RDONLY | os.O_NONBLOCK)
        try:
            poll = select.poll()
            poll.register(told, select.POLLIN)
            assert poll.poll(50_000), "nobody has come there"
            return int(os.read(told, 100))
        finally:
            os.close(told)

    def decoded(self) -> Counter[str]:
        """How often ecCodes or the package has decoded values, by the SHA-256 of the message."""
        return Counter(digest for what, digest in self._calls() if what == "decoded")

    def given_to_mir(self) -> Counter[str]:
        """How often MIR was given something, by its name of that kind of input."""
        return Counter(what for what, _ in self._calls() if what != "decoded")

    def _calls(self) -> list[tuple[str, str]]:
        lines = (self._folder / "calls").read_text().splitlines()
        return [(what, digest) for _, what, digest in map(str.split, lines)]
