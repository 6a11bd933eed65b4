"""Writes a product atomically: first the complete file, and last its provenance.

```text
  .t850.grib2.<random>.part              written here first; nobody looks at names that begin with a dot
  t850.grib2                             renamed to its name: there whole, or the one before is
  t850.grib2.provenance.json             renamed last: a product without it is not finished
```
Everything that needs disk space is written before anything is renamed, so that a full disk changes nothing. A killed
writer leaves only hidden files, which are removed when no writer can be active any more (`clear`), or when they are a
day old. A Zarr group is a directory: an existing one is exchanged with the new one in one step (Linux'
``RENAME_EXCHANGE``); on file systems without this operation the old one is moved aside first, and for a moment neither
exists.
"""

from __future__ import annotations

import contextlib
import ctypes
import errno
import functools
import hashlib
import json
import os
import re
import secrets
import shutil
import time
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from junctura.errors import Io
from junctura.products._recipe.file_names import PROVENANCE

Content: TypeAlias = bytes | Mapping[str, bytes]
"""The contents of a file, or of the files of a directory by relative name."""

# `json.dumps` makes an encoder for each call with options.
_JSON = json.JSONEncoder(ensure_ascii=False)
_AT_FDCWD = -100
_RENAME_EXCHANGE = 2
_HIDDEN = re.compile(r"\.(.+)\.[0-9a-f]{12}\.part", re.DOTALL)
# Older files have no active writer.
_LEFT_SECONDS = 86_400.0
# Errors that mean that the file system or kernel does not support the exchange.
_CANNOT = (errno.EINVAL, errno.ENOSYS, errno.EOPNOTSUPP)


def provenance_of(path: Path) -> Path:
    """Returns the path of the provenance of a product."""
    return path.with_name(f"{path.name}{PROVENANCE}")


def measured(content: Content) -> tuple[int, str]:
    """Returns size in bytes and SHA-256; for a directory: of each name, a zero, the size, a zero, and the file, by
    name.
    """
    if not isinstance(content, Mapping):
        return len(content), hashlib.sha256(content).hexdigest()
    digest = hashlib.sha256()
    for name in sorted(content):
        digest.update(f"{name}\0{len(content[name])}\0".encode())
        digest.update(content[name])
    return sum(map(len, content.values())), digest.hexdigest()


def size(path: Path) -> int | None:
    """Returns the size in bytes of a file or of all files of a directory; None if it does not exist."""
    if path.is_dir():
        return sum(file.stat().st_size for file in path.rglob("*") if file.is_file())
    return path.stat().st_size if path.is_file() else None


def put(path: Path, content: Content, provenance: Mapping[str, Any], durable: bool) -> None:
    """Writes a product and its provenance.

    Raises
    ------
    Io
        A write failed; the previous product is unchanged.

    """
    beside = provenance_of(path)
    try:
        _sweep(path.parent)
        with _hidden(path) as product, _hidden(beside) as said:
            _write(product, content, durable)
            _write(said, _lines(provenance).encode(), durable)
            # From here on the old product has no provenance.
            beside.unlink(missing_ok=True)
            _rename(product, path)
            said.rename(beside)
            if durable:
                _sync(path.parent)
    except OSError as error:
        raise Io(str(path), f"cannot be written: {error.strerror or error}") from error


def _lines(said: Mapping[str, Any]) -> str:
    """Returns JSON with a line for each name; full indentation would take ten times as long to write."""
    made = (f" {json.dumps(name)}: {_JSON.encode(value)}" for name, value in said.items())
    return "{\n" + ",\n".join(made) + "\n}\n"


def clear(paths: Iterable[Path]) -> None:
    """Removes temporary files that killed writers of these products have left; no writer may be active."""
    names: dict[Path, set[str]] = {}
    for path in paths:
        names.setdefault(path.parent, set()).update((path.name, provenance_of(path).name))
    for folder, wanted in names.items():
        for left in folder.glob(".*.part"):
            found = _HIDDEN.fullmatch(left.name)
            if found and found[1] in wanted:
                with contextlib.suppress(OSError):
                    _remove(left)


@contextlib.contextmanager
def _hidden(path: Path) -> Iterator[Path]:
    """Yields a temporary path beside the product, which is removed at the end."""
    name = path.with_name(f".{path.name}.{secrets.token_hex(6)}.part")
    try:
        yield name
    finally:
        _remove(name)


@functools.lru_cache(maxsize=4096)
def _sweep(folder: Path) -> None:
    """Removes temporary files of killed writers; once per process, since folders may be large."""
    for left in folder.glob(".*.part"):
        with contextlib.suppress(OSError):
            if _HIDDEN.fullmatch(left.name) and left.lstat().st_mtime < time.time() - _LEFT_SECONDS:
                _remove(left)


def _remove(path: Path) -> None:
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    else:
        path.unlink(missing_ok=True)


def _write(path: Path, content: Content, durable: bool) -> None:
    if not isinstance(content, Mapping):
        with path.open("xb") as file:
            file.write(content)
            if durable:
                file.flush()
                os.fsync(file.fileno())
        return
    path.mkdir()
    for name, data in content.items():
        file_path = path / name
        file_path.parent.mkdir(parents=True, exist_ok=True)
        _write(file_path, data, durable)
    if durable:
        for folder in (path, *(found for found in path.rglob("*") if found.is_dir())):
            _sync(folder)


def _sync(folder: Path) -> None:
    descriptor = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)


def _rename(new: Path, path: Path) -> None:
    is_replaced_at_once = not new.is_dir() and not path.is_dir()
    if is_replaced_at_once or not path.exists():
        new.rename(path)
    elif not _exchange(new, path):
        with _hidden(path) as old:
            path.rename(old)
            try:
                new.rename(path)
            except OSError:
                old.rename(path)
                raise


def _exchange(one: Path, other: Path) -> bool:
    """Exchanges two paths; returns False if the system does not support that."""
    renameat2 = getattr(ctypes.CDLL(None, use_errno=True), "renameat2", None)
    if renameat2 is None:
        return False
    if renameat2(_AT_FDCWD, os.fsencode(one), _AT_FDCWD, os.fsencode(other), _RENAME_EXCHANGE) == 0:
        return True
    number = ctypes.get_errno()
    if number in _CANNOT:
        return False
    raise OSError(number, os.strerror(number), str(other))
