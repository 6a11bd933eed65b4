"""What readers of files have in common: errors and limits of files from outside."""

from __future__ import annotations

import abc
import contextlib
import os
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from junctura.errors import Corrupt, Error, Io, LimitExceeded
from junctura.mesh._model import MeshStep

# Values may be compressed, but not beyond this.
_RATIO_MAX = 1024
_SMALL = 16 << 20


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Reports parts that are missing, or have another form, as damage of the file."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        raise Io(path, error.strerror or str(error)) from error
    except (AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError) as error:
        raise Corrupt(path, f"{type(error).__name__}: {error}") from error


def check_size(path: str, name: str, nbytes: int) -> None:
    """Refuses an array that is much larger than its file, before memory is taken for it."""
    limit = _SMALL + _RATIO_MAX * Path(path).stat().st_size
    if nbytes > limit:
        raise LimitExceeded(path, f"{name} would have {nbytes} bytes, more than {_RATIO_MAX} times the file")


class FileMeshReader(abc.ABC):
    """A file of meshes: iterate over it for its steps.

    Parameters
    ----------
    path
        The file.
    open_file
        Opens it with the library of its format.

    """

    def __init__(self, path: str | os.PathLike[str], open_file: Callable[[str, str], Any]) -> None:
        self.path = os.fspath(path)
        with reading(self.path):
            self._file = open_file(self.path, "r")
        try:
            with reading(self.path):
                self._begin()
        except BaseException:
            self.close()
            raise

    def __enter__(self) -> FileMeshReader:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def __iter__(self) -> Iterator[MeshStep]:
        for index in range(len(self)):
            yield self.mesh(index)

    def close(self) -> None:
        """Closes the file."""
        self._file.close()

    @abc.abstractmethod
    def __len__(self) -> int: ...

    @abc.abstractmethod
    def mesh(self, index: int) -> MeshStep:
        """Returns the mesh with the fields of one step, counted from 0."""

    @abc.abstractmethod
    def _begin(self) -> None:
        """Reads what all steps have in common."""
