"""The common part of all writers of files: the file appears complete, when it is closed."""

from __future__ import annotations

import abc
import os
from pathlib import Path
from typing import Any

from junctura.mesh._model import MeshStep


class FileMeshWriter(abc.ABC):
    """Writes the steps of a series into a file.

    Parameters
    ----------
    path
        The file; an existing one is replaced by `close`.

    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self._path = Path(path)
        self._partial = self._path.with_name(f".{self._path.name}.{os.getpid()}.partial")
        # Opened by the first step.
        self._file: Any = None
        self._first: MeshStep | None = None

    @abc.abstractmethod
    def write(self, mesh: MeshStep) -> None:
        """Writes one step; the first one with points, blocks and sets."""

    def close(self) -> None:
        """Completes the file."""
        if self._file is not None:
            self._complete()
            self._file.close()
            self._file = None
            self._partial.replace(self._path)

    def abort(self) -> None:
        """Removes what was written."""
        if self._file is not None:
            try:
                self._file.close()
            finally:
                self._file = None
                self._partial.unlink(missing_ok=True)

    def _complete(self) -> None:  # noqa: B027 (a format may have nothing)
        """Writes what is known only when all steps are."""
