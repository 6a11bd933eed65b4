"""The common part of all readers of files: errors and limits of files from outside."""

from __future__ import annotations

import abc
import contextlib
import os
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

from junctura.errors import Corrupt, Error, Io, LimitExceeded, TooLarge, Unsupported
from junctura.mesh._model import MeshStep

# Errors of parts that are missing, or have another form.
_DAMAGE = (
    *(AttributeError, IndexError, KeyError, OverflowError, RuntimeError, TypeError, ValueError),
    struct.error,
)
# Values may be compressed, but not beyond this.
_RATIO_MAX = 1024
_SMALL = 16 << 20
# Blocks, sets and variables of a kind.
_NAMED_MAX = 100_000


@contextlib.contextmanager
def reading(path: str) -> Iterator[None]:
    """Reports parts that are missing, or have another form, as damage of the file."""
    try:
        yield
    except Error:
        raise
    except OSError as error:
        raise Io(path, error.strerror or str(error)) from error
    except MemoryError as error:
        raise TooLarge(path, f"there is not enough memory: {error}") from error
    except (
        AttributeError,
        IndexError,
        KeyError,
        OverflowError,
        RuntimeError,
        TypeError,
        ValueError,
        struct.error,
    ) as error:
        raise Corrupt(path, f"{type(error).__name__}: {error}") from error


def check_size(path: str, name: str, nbytes: int) -> None:
    """Refuses an array that is much larger than its file, before memory is taken for it."""
    limit = _SMALL + _RATIO_MAX * Path(path).stat().st_size
    if nbytes > limit:
        raise LimitExceeded(path, f"{name} would have {nbytes} bytes, more than {_RATIO_MAX} times the file")


def check_count(path: str, name: str, count: int) -> int:
    """Returns a number of blocks, sets or variables that a file states, unless it is too large."""
    if count > _NAMED_MAX:
        raise LimitExceeded(path, f"{name} is {count}; at most {_NAMED_MAX} are supported")
    return count


def check_links(path: str, file: Any, external_link: type) -> None:
    """Refuses an HDF5 file with links to other files: a name from outside could be that of any file of the reader."""
    found = file.visititems_links(lambda name, link: name if isinstance(link, external_link) else None)
    if found is not None:
        raise Unsupported(path, f"{found} is in another file: links to other files are not followed")


def check_storage(path: str, dataset: Any) -> None:
    """Refuses an HDF5 dataset whose values are in other files."""
    if getattr(dataset, "external", None) or getattr(dataset, "is_virtual", False):
        raise Unsupported(path, f"the values of {dataset.name} are in other files")


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
