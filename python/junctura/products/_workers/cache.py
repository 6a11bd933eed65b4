"""Caches of expensive results: in memory up to a size limit, and on disk.

The cache on disk is in the folder that the environment variable ``JUNCTURA_CACHE`` names, else in
``$XDG_CACHE_HOME/junctura``, else in ``~/.cache/junctura``.

Its folder `eccodes` has answers of ecCodes, which needs 0.4 s to read its parameter tables before the first answer. An
answer is a JSON file with its question, which includes the versions of ecCodes and of Junctura; the file name is a hash
of the question. Files are written atomically; processes may share them. An unreadable file, or one with another
question, is ignored, and an answer that cannot be written is returned anyway.

Other folders have arrays that take longer to compute than to read, such as the lines of maps: a file each, by a hash of
what determines them.
"""

from __future__ import annotations

import contextlib
import functools
import hashlib
import json
import os
import secrets
from collections import OrderedDict
from collections.abc import Callable, Hashable, Sequence
from pathlib import Path
from typing import Any, Generic, TypeAlias, TypeVar

import numpy as np
import numpy.typing as npt

import junctura
from junctura import _forks

_Made = TypeVar("_Made")
Array: TypeAlias = npt.NDArray[Any]
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
    except RuntimeError:  # the user has no home folder
        return ask()
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        kept = json.loads(path.read_bytes())
        if kept["question"] == said:
            return kept["answer"]
    answer = ask()
    with contextlib.suppress(OSError):
        _keep(path, json.dumps({"question": said, "answer": answer}).encode())
    return answer


def arrays_of(kind: str, question: object, make: Callable[[], Sequence[Array]]) -> list[Array]:
    """Returns arrays of one dimension: from disk, or computed.

    Parameters
    ----------
    kind
        The name of their folder in the cache.
    question
        Everything that determines the arrays, including the code that computes them; must have a string form.
    make
        Computes them.

    """
    said = repr((question, junctura.__version__, np.__version__, _FORM)).encode()
    digest = hashlib.sha256(said).digest()
    try:
        path = folder_of(kind) / f"{digest.hex()[:40]}.bin"
    except RuntimeError:  # the user has no home folder
        return [*make()]
    with contextlib.suppress(OSError, ValueError, KeyError, TypeError):
        return _arrays_in(path.read_bytes(), digest)
    made = [*make()]
    with contextlib.suppress(OSError):
        _keep(path, _bytes_of(made, digest))
    return made


def _bytes_of(arrays: Sequence[Array], digest: bytes) -> bytes:
    """Returns a SHA-256, that of the question, a line of JSON, and the arrays; the first is that of all behind it."""
    about = json.dumps([(one.dtype.str, one.size) for one in arrays]).encode()
    content = b"".join((digest, about, b"\n", *(one.tobytes() for one in arrays)))
    return hashlib.sha256(content).digest() + content


def _arrays_in(content: bytes, digest: bytes) -> list[Array]:
    """Returns the arrays of a file.

    Raises
    ------
    ValueError
        The file is damaged, or has another question.

    """
    behind = memoryview(content)[len(digest) :]
    if hashlib.sha256(behind).digest() != content[: len(digest)] or behind[: len(digest)] != digest:
        raise ValueError(digest.hex())
    end = content.index(b"\n", 2 * len(digest))
    at, found = end + 1, []
    for kind, size in json.loads(content[2 * len(digest) : end]):
        # A copy, since elements need not be aligned in a file.
        found.append(np.frombuffer(content, kind, size, at).copy())
        at += found[-1].nbytes
    return found


@functools.lru_cache
def digest_of(*files: Path) -> str:
    """Returns a SHA-256 of the contents of files."""
    return hashlib.sha256(b"".join(hashlib.sha256(file.read_bytes()).digest() for file in files)).hexdigest()


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
