"""The record of a run (docs/formats/workflow-record.md): appended during the run, and read to resume the run."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import re
import time
from collections.abc import Mapping
from pathlib import Path
from types import TracebackType
from typing import TYPE_CHECKING, Any

from junctura.errors import AlreadyExists, Conflict, Corrupt, Io, NotFound
from junctura.workflow._engine.events import Past, Seen
from junctura.workflow._record.history import RECORD, Line, lines
from junctura.workflow._record.pool_users import PoolUsers

if TYPE_CHECKING:
    from typing_extensions import Self

_OUTCOMES = ("done", "failed", "skipped", "cancelled")
_TAIL_BYTES = 1 << 16
_JOB = re.compile(r"\w+ job \S+")


class RunRecord:
    """Appends to the record of a run; no other process writes to it meanwhile.

    Parameters
    ----------
    folder
        The folder of the run, which must exist.
    is_resumed
        Whether a record exists already.

    Raises
    ------
    AlreadyExists
        There is a record, and the run is not resumed.
    NotFound
        There is no record to resume.
    Conflict
        Another process is writing the record.
    Io
        The record cannot be opened or written.

    """

    def __init__(self, folder: Path, *, is_resumed: bool = False) -> None:
        self.path = folder / RECORD
        self._last_at = 0.0
        flags = os.O_RDWR | os.O_CLOEXEC | (0 if is_resumed else os.O_CREAT | os.O_EXCL)
        try:
            self._file = os.open(self.path, flags, 0o644)
        except FileExistsError:
            raise AlreadyExists(
                str(folder), "a run is there already: go on with it, or choose another folder"
            ) from None
        except FileNotFoundError:
            raise NotFound(str(self.path), "there is no record of a run; name the folder of one") from None
        except OSError as error:
            raise Io(str(self.path), f"the record cannot be written: {error.strerror}") from error
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
            self._end = self._whole()
            os.ftruncate(self._file, self._end)
        except OSError as error:
            os.close(self._file)
            if isinstance(error, BlockingIOError):
                raise Conflict(str(folder), "this run goes on in another process") from None
            raise Io(str(self.path), f"the record cannot be written: {error.strerror}") from error

    def _whole(self) -> int:
        """Returns the end of the last complete line: bytes after it are from a write that a crash interrupted."""
        end = os.lseek(self._file, 0, os.SEEK_END)
        while end > 0:
            begin = max(0, end - _TAIL_BYTES)
            found = os.pread(self._file, end - begin, begin).rfind(b"\n")
            if found >= 0:
                return begin + found + 1
            end = begin
        return 0

    def note(self, kind: str, words: Mapping[str, Any]) -> dict[str, Any]:
        """Appends a line and returns it.

        Raises
        ------
        Io
            The line cannot be written. Nothing remains.

        """
        self._last_at = max(self._last_at, round(time.time(), 6))
        line = {"kind": kind, "at": self._last_at, **words}
        self._append((json.dumps(line, ensure_ascii=False) + "\n").encode(errors="surrogateescape"))
        return line

    def _append(self, content: bytes) -> None:
        try:
            written = 0
            while written < len(content):
                written += os.pwrite(self._file, content[written:], self._end + written)
        except OSError as error:
            with contextlib.suppress(OSError):
                os.ftruncate(self._file, self._end)
            raise Io(str(self.path), f"the record cannot be written: {error.strerror}") from error
        self._end += written

    def past(self, workflow: str) -> Past:
        """Returns the state of tasks, to resume a run of this workflow.

        Raises
        ------
        Conflict
            The record belongs to another workflow.
        Corrupt
            The file is not a record.

        """
        with self.path.open("rb") as file:
            said = [line for line in lines(file) if line is not None]
        begun = [line for line in said if line.get("kind") == "run"]
        if not begun:
            raise Corrupt(str(self.path), "it is no record of a run: no line says that one begins")
        if begun[-1].get("workflow") != workflow:
            raise Conflict(str(self.path), f'it is a run of "{begun[-1].get("workflow")}", not of "{workflow}"')
        self._last_at = max((at for line in said if isinstance(at := line.get("at"), (int, float))), default=0.0)
        return _past(said)

    def close(self) -> None:
        """Syncs the file to disk, or removes it if it is empty; may be called twice."""
        if self._file >= 0:
            if self._end == 0:
                self.path.unlink(missing_ok=True)
            with contextlib.suppress(OSError):
                os.fsync(self._file)
            os.close(self._file)
            self._file = -1

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, _type: type[BaseException] | None, _value: BaseException | None, _trace: TracebackType | None
    ) -> None:
        self.close()


def _past(said: list[Line]) -> Past:
    outcomes: dict[str, str] = {}
    attempts: dict[str, int] = {}
    seen: dict[str, Line] = {}
    left: dict[tuple[str, Any], str] = {}
    offered: set[str] = set()
    users = PoolUsers()
    for line in said:
        kind, task = line.get("kind"), line.get("task")
        users.take(line)
        if kind == "event" and line.get("event") == "offered":
            offered.add(str(line.get("version")))
        if not isinstance(task, str):
            continue
        if kind in _OUTCOMES:
            outcomes[task] = str(kind)
        elif kind == "start" and isinstance(line.get("attempt"), int):
            attempts[task] = line["attempt"]
            outcomes.pop(task, None)
        elif kind in ("taken", "begin") and isinstance(line.get("identity"), str):
            left[task, line.get("attempt")] = line["identity"]
        elif kind == "end":
            left.pop((task, line.get("attempt")), None)
        elif kind == "ready" and isinstance(line.get("each"), str):
            reason = line.get("reason")
            if isinstance(reason, dict) and reason.get("kind") == "object":
                seen[task] = {**reason, "each": line["each"]}
    done = frozenset(task for task, outcome in outcomes.items() if outcome == "done")
    known = tuple(_seen(task, reason, task in done) for task, reason in seen.items())
    # Local tasks have ended with their run.
    jobs = tuple(identity for identity in left.values() if _JOB.fullmatch(identity))
    return Past(done, attempts, known, jobs, users.producers(), users.clients(), frozenset(offered))


def _seen(task: str, reason: Line, is_done: bool) -> Seen:
    attributes = reason.get("attributes")
    words = attributes if isinstance(attributes, dict) else {}
    return Seen(task, reason["each"], str(reason.get("object")), str(reason.get("version")), is_done, words)
