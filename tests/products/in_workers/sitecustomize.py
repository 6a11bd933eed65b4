"""Loaded by each Python that finds this folder on its path: writes down what libraries are asked for, or stands still.

In the folder that ``JUNCTURA_WITNESS`` names:

```text
  calls    a line for each call: the process, what was done, and the SHA-256 of the message it was done with
  told     a pipe, which gets the number of the process that stands still
```
``JUNCTURA_WITNESS_HOLDS`` says where the first one that comes there stands still, until it is killed: ``decoded HASH``
when ecCodes or the package has decoded this message, or ``rename NAME`` before a file gets this name. No file that a
process writes grows beyond ``JUNCTURA_WITNESS_FILE_BYTES``, as if the disk were full. ``JUNCTURA_WITNESS_KILLS`` is
``TAG COUNT``: so many processes that begin a task with this tag are killed then.
"""

from __future__ import annotations

import contextlib
import hashlib
import importlib.abc
import importlib.machinery
import io
import os
import resource
import signal
import sys
from collections.abc import Callable, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

FOLDER = Path(os.environ.get("JUNCTURA_WITNESS", ""))
HOLDS = os.environ.get("JUNCTURA_WITNESS_HOLDS", "")
KILLS = os.environ.get("JUNCTURA_WITNESS_KILLS", "")
# What of ecCodes decodes values: if it is asked for this key, or always.
_VALUES = (b"values", b"codedValues")
_BY_KEY = ("grib_get_double_array", "grib_get_float_array", "grib_get_double_element", "grib_get_double_elements")
_WHOLE = ("grib_get_data", "grib_iterator_new", "grib_nearest_new", "grib_nearest_find_multiple")


def note(what: str, message: bytes) -> None:
    """A line, in one piece whoever else writes."""
    line = f"{os.getpid()} {what} {hashlib.sha256(message).hexdigest()}\n"
    descriptor = os.open(FOLDER / "calls", os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o666)
    os.write(descriptor, line.encode())
    os.close(descriptor)


def hold(where: str) -> None:
    """Goes no further, if this is the place and nobody has come here before."""
    if where != HOLDS:
        return
    try:
        os.close(os.open(FOLDER / "held", os.O_CREAT | os.O_EXCL))
    except FileExistsError:
        return
    told = os.open(FOLDER / "told", os.O_WRONLY)
    os.write(told, f"{os.getpid()}\n".encode())
    while True:
        signal.pause()


class Library:
    """ecCodes, which is called as ever."""

    def __init__(self, library: Any, ffi: Any) -> None:
        self._library, self._ffi = library, ffi

    def __getattr__(self, name: str) -> Any:
        whole = getattr(self._library, name)
        if name not in _BY_KEY + _WHOLE:
            return whole

        def call(handle: Any, *given: Any) -> Any:
            status = whole(handle, *given)
            if name in _WHOLE or given[0] in _VALUES:
                self._decoded(handle)
            return status

        return call

    def _decoded(self, handle: Any) -> None:
        at, length = self._ffi.new("const void**"), self._ffi.new("size_t*")
        self._library.grib_get_message(handle, at, length)
        message = bytes(self._ffi.buffer(at[0], length[0]))
        note("decoded", message)
        hold(f"decoded {hashlib.sha256(message).hexdigest()}")


def watch_eccodes(module: Any) -> None:
    module.lib = Library(module.lib, module.ffi)


def watch_native(module: Any) -> None:
    """Notes the messages in simple packing, which ecCodes does not decode."""
    whole = module._unpack

    def call(message: bytes, into: Any) -> None:
        whole(message, into)
        note("decoded", message)
        hold(f"decoded {hashlib.sha256(message).hexdigest()}")

    module._unpack = call


def watch_tasks(module: Any) -> None:
    """Kills processes that have begun a task."""
    whole = module.Worker._do

    def do(worker: Any, task: Any) -> Any:
        tag, _, most = KILLS.partition(" ")
        for count in range(int(most or 0) if tag == type(task).__name__ else 0):
            with contextlib.suppress(FileExistsError):
                os.close(os.open(FOLDER / f"killed-{count}", os.O_CREAT | os.O_EXCL))
                os.kill(os.getpid(), signal.SIGKILL)
        return whole(worker, task)

    module.Worker._do = do


def watch_mir(module: Any) -> None:
    """Notes all that is given to an interpolation."""
    for name in [name for name in dir(module) if name.endswith("Input")]:
        setattr(module, name, _noted(name, getattr(module, name)))


def _noted(name: str, whole: Callable[..., Any]) -> Callable[..., Any]:
    def call(*given: Any, **named: Any) -> Any:
        note(name, given[0].getvalue() if given and isinstance(given[0], io.BytesIO) else b"")
        return whole(*given, **named)

    return call


class Watch(importlib.abc.MetaPathFinder):
    """Has libraries watched as soon as they are loaded; nothing is loaded for that."""

    WATCHED = {  # noqa: RUF012 - it is never changed
        "gribapi.gribapi": watch_eccodes,
        "junctura._native": watch_native,
        "junctura.products._workers.worker_process": watch_tasks,
        "mir": watch_mir,
    }

    def find_spec(
        self, fullname: str, path: Sequence[str] | None, target: ModuleType | None = None
    ) -> importlib.machinery.ModuleSpec | None:
        if fullname not in self.WATCHED:
            return None
        spec = importlib.machinery.PathFinder.find_spec(fullname, path, target)
        loader: Any = spec and spec.loader
        if loader is not None:
            loader.exec_module = self._executing(loader.exec_module, self.WATCHED[fullname])
        return spec

    @staticmethod
    def _executing(whole: Callable[[ModuleType], None], watch: Callable[[Any], None]) -> Callable[[ModuleType], None]:
        def execute(module: ModuleType) -> None:
            whole(module)
            watch(module)

        return execute


def _hear(event: str, given: tuple[Any, ...]) -> None:
    if event == "os.rename":
        hold(f"rename {Path(os.fsdecode(given[1])).name}")


if "JUNCTURA_WITNESS" in os.environ:
    sys.meta_path.insert(0, Watch())
    if HOLDS.startswith("rename "):
        sys.addaudithook(_hear)
    if most := os.environ.get("JUNCTURA_WITNESS_FILE_BYTES"):
        # The signal that comes with it Python ignores.
        resource.setrlimit(resource.RLIMIT_FSIZE, (int(most), resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
