"""Locks of output files: several runs may make products in one folder, but no two runs the same file.

```text
  out/.run-3f9c….claims     which files a run makes, and who it is; locked (flock) as long as the run lives
```
A run first writes the list of its files, and then reads the lists of other runs. An unlocked list belongs to a run that
was killed, and is removed. If two runs begin at the same moment, both may be refused, but at least one is.
"""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import secrets
import socket
from collections.abc import Collection
from pathlib import Path
from types import TracebackType
from typing import IO, TYPE_CHECKING

from junctura.errors import AlreadyExists, Io

if TYPE_CHECKING:
    from typing_extensions import Self

_PATTERN = ".run-*.claims"


class OutputLocks:
    """The files that this run makes in a folder, and no other run may make.

    Parameters
    ----------
    out
        The folder, which must exist.
    files
        File names, relative to the folder.
    name
        Name of the run.

    Raises
    ------
    AlreadyExists
        Another run makes one of these files.
    Io
        The folder is not writable.

    """

    def __init__(self, out: Path, files: Collection[str], name: str) -> None:
        self._path = out / f".run-{secrets.token_hex(8)}.claims"
        by = f"{name}, process {os.getpid()} on {socket.gethostname()}"
        try:
            self._file = self._claim(json.dumps({"by": by, "files": sorted(files)}))
        except OSError as error:
            raise Io(str(out), f"products cannot go there: {error.strerror or error}") from error
        try:
            for other in out.glob(_PATTERN):
                if other != self._path:
                    _compare(other, set(files), out)
        except BaseException:
            self.close()
            raise

    def _claim(self, text: str) -> IO[str]:
        """Renames the list when it is complete and locked."""
        hidden = self._path.with_suffix(".part")
        file = hidden.open("x")
        try:
            file.write(text)
            file.flush()
            # Without file locks, runs do not detect each other.
            with contextlib.suppress(OSError):
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            hidden.rename(self._path)
        except BaseException:
            file.close()
            hidden.unlink(missing_ok=True)
            raise
        return file

    def close(self) -> None:
        """Releases the files for other runs."""
        with contextlib.suppress(OSError):
            self._path.unlink(missing_ok=True)
        self._file.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _compare(other: Path, files: set[str], out: Path) -> None:
    """Refuses files that a live run makes already; removes lists of killed runs."""
    try:
        with other.open() as file:
            if _is_free(file):
                other.unlink(missing_ok=True)
                return
            said = json.load(file)
    except (OSError, ValueError):
        # The run has just ended.
        return
    common = sorted(files.intersection(said["files"]))
    if common:
        more = f" and {len(common) - 1} more" if len(common) > 1 else ""
        cause = f"another run ({said['by']}) makes this file{more} in {out}: give this one another folder or name"
        raise AlreadyExists(f"product {common[0]}", cause)


def _is_free(file: IO[str]) -> bool:
    # Without file locks, the owner of a list is unknown.
    with contextlib.suppress(OSError):
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
    return True
