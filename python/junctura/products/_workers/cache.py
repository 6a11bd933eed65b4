"""Caches of expensive results: in memory up to a size limit, and on disk.

The cache on disk is in the folder that the environment variable ``JUNCTURA_CACHE`` names, else in
``$XDG_CACHE_HOME/junctura``, else in ``~/.cache/junctura``.

Its folder `eccodes` has answers of ecCodes, which needs 0.4 s to read its parameter tables before the first answer. An
answer is a JSON file with its question, which includes the versions of ecCodes and of Junctura; the file name is a hash
of the question. Files are written atomically; processes may share them. An unreadable file, or one with another
question, is ignored, and an answer that cannot be written is returned anyway.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable
from pathlib import Path
from typing import Any, Generic, TypeVar

import junctura
from junctura import _forks

_Made = TypeVar("_Made")
# Format version of answers on disk.
_FORM = 1
# Users of these variables may change the tables at any time: then nothing is cached.
_OWN_TABLES = (
    "ECCODES_DEFINITION_PATH",
    "ECCODES_EXTRA_DEFINITION_PATH",
    "ECCODES_EXTRA_SAMPLES_PATH",
    "ECCODES_SAMPLES_PATH",
    "GRIB_DEFINITION_PATH",
    "GRIB_SAMPLES_PATH",
)
# Limit of answer files: a folder with this number receives no more.
_FILES_MAX = 10_000


def folder_of(kind: str) -> Path:
    """Returns the folder for a kind of cached results."""
    given = os.environ.get("JUNCTURA_CACHE")
    if given:
        return Path(given) / kind
    of_the_user = os.environ.get("XDG_CACHE_HOME") or Path.home() / ".cache"
    return Path(of_the_user) / "junctura" / kind


def answered(question: object, ask: Callable[[], Any]) -> Any:
    """Returns the answer of ecCodes: from disk, or from ecCodes itself.

    Parameters
    ----------
    question
        Everything that determines the answer, besides ecCodes; must have a string form.
    ask
        Calls ecCodes; the result must be representable in JSON.

    """
    if any(os.environ.get(name) for name in _OWN_TABLES):
        return ask()
    said = repr((question, _version(), _FORM))
    try:
        path = folder_of("eccodes") / f"{hashlib.sha256(said.encode()).hexdigest()[:40]}.json"
    except RuntimeError:  # nobody knows this user's home
        return ask()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["question"] == said:
            return kept["answer"]
    answer = ask()
    with contextlib.suppress(OSError):
        _keep(path, json.dumps({"question": said, "answer": answer}).encode())
    return answer


def _keep(path: Path, content: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    with os.scandir(path.parent) as entries:
        if sum(1 for _ in entries) >= _FILES_MAX:
            return
    hidden = path.with_name(f".{secrets.token_hex(8)}")
    try:
        hidden.write_bytes(content)
        hidden.rename(path)
    finally:
        hidden.unlink(missing_ok=True)


@functools.lru_cache(maxsize=1)
def _version() -> str:
    eccodes = _forks.needed("eccodes", "products")
    ours = junctura.__version__
    return f"{ours} {eccodes.codes_get_api_version()} {eccodes.codes_definition_path()} {eccodes.codes_samples_path()}"


class Bounded(Generic[_Made]):
    """Values by key, up to a total size in bytes; the least recently used is evicted first.

    Threads that request the same value wait for the thread that computes it.
    """

    def __init__(self, bytes_max: int) -> None:
        self._bytes_max = bytes_max
        self._bytes = 0
        self._kept: OrderedDict[Hashable, tuple[_Made, int]] = OrderedDict()
        self._lock = _forks.Lock()

    def get(self, key: Hashable, make: Callable[[], _Made], size_of: Callable[[_Made], int]) -> _Made:
        """Returns the value of a key, which is computed if missing. A value above the total limit is not kept."""
        with self._lock:
            if key in self._kept:
                self._kept.move_to_end(key)
                return self._kept[key][0]
            made = make()
            size = size_of(made)
            if size <= self._bytes_max:
                self._kept[key] = (made, size)
                self._bytes += size
            while self._bytes > self._bytes_max:
                _, (_, gone) = self._kept.popitem(last=False)
                self._bytes -= gone
            return made
