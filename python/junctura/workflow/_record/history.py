"""The history of a run, parsed from its record into plain objects.

A record is untrusted input: a crash may have truncated a line, a disk error may have lost some, a later version may
have written it. Therefore every value is validated; an invalid line is skipped and counted, and missing values are
treated as unknown. Only a file without any valid record is an error.
"""

from __future__ import annotations

import json
import os
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, TypeAlias

from junctura.errors import Corrupt, InvalidArgument, Io, LimitExceeded, NotFound, Unsupported

FORMAT = 1
RECORD = "record.jsonl"
_RECORD_BYTES_MAX = 2 << 30
_LINE_BYTES_MAX = 64 << 20
_SESSIONS_MAX = 1000
_TASKS_MAX = 200_000
_ATTEMPTS_MAX = 1_000_000
_EVENTS_MAX = 250_000
_NAME_MAX = 10_000
# The end of the year 9999.
_AT_MAX = 253_402_300_800.0
OUTCOMES = ("done", "failed", "skipped", "cancelled")

Line: TypeAlias = "dict[str, Any]"


@dataclass(frozen=True)
class Reason:
    """The reason for the start of a task.

    Attributes
    ----------
    kind
        ``start``, ``after``, ``object``, ``bundle``, ``joined``, ``restart``, or an unknown kind.
    tasks, object, selector, attributes, offered_at, bundle, clients
        Details of the kind; empty, or None, if not applicable.

    """

    kind: str
    tasks: tuple[str, ...] = ()
    object: str = ""
    selector: str = ""
    attributes: Mapping[str, Any] = field(default_factory=dict)
    offered_at: float | None = None
    bundle: str = ""
    clients: tuple[str, ...] = ()


@dataclass
class Attempt:
    """One attempt of a task.

    Attributes
    ----------
    number
        From 1.
    ready_at
        When it could start; None if the record does not have it.
    start_at, begin_at, end_at
        When it was submitted, started, and ended; None if it did not, or if unknown.
    code, signal, cause
        How it ended.
    identity, log, command
        Its external name, its output (relative to the run), and its command.
    session
        The position of its session.

    """

    number: int
    start_at: float
    session: int
    ready_at: float | None = None
    begin_at: float | None = None
    end_at: float | None = None
    code: int | None = None
    signal: int | None = None
    cause: str = ""
    identity: str = ""
    log: str = ""
    command: tuple[str, ...] = ()

    @property
    def is_good(self) -> bool:
        return self.code == 0


@dataclass
class Course:
    """The history of one task.

    Attributes
    ----------
    name, of, service
        As in the file.
    after
        The tasks that it waits for, if known at the start.
    condition
        The awaited condition, as text.
    known_at
        When it became known: the beginning of the run, or the arrival of its object.
    ready_at, reason
        When it could start for the first time, or, after a resumption, for the first time since then; and the reason.
    attempts
        In the order in which they began.
    outcome
        One of `OUTCOMES`; empty if there is none yet.
    outcome_at, cause
        Time and reason.
    counts
        Whether the task is counted: an `each`, which creates tasks for objects, is not.
    is_warned
        Whether it is done without an object, with a warning.
    cores
        Its cores, if the record has them.
    end_asked
        When and why it was asked to stop.

    """

    name: str
    of: str
    known_at: float
    service: bool = False
    after: tuple[str, ...] = ()
    condition: str = ""
    ready_at: float | None = None
    reason: Reason | None = None
    attempts: list[Attempt] = field(default_factory=list)
    outcome: str = ""
    outcome_at: float | None = None
    cause: str = ""
    counts: bool = True
    is_warned: bool = False
    cores: int | None = None
    end_asked: tuple[float, str] | None = None


@dataclass(frozen=True)
class Event:
    """An event of the pool."""

    at: float
    kind: str
    object: str
    client: str
    nbytes: int
    attributes: Mapping[str, Any]


@dataclass
class Session:
    """The time from the start, or resumption, of a run until its end.

    Attributes
    ----------
    end_at
        For a session that was cut off, the time of the last known event.
    status
        ``done``, ``failed``, ``interrupted``; empty if it was cut off, or is in progress.

    """

    begin_at: float
    end_at: float
    resumed: bool = False
    status: str = ""
    code: int | None = None
    workflow: str = ""
    file: str = ""
    run: str = ""
    pool: str = ""
    host: str = ""
    version: str = ""
    pid: int | None = None


@dataclass
class History:
    """A run.

    Attributes
    ----------
    sessions
        At least one; a resumed run has more.
    courses
        Its tasks, by name, in the order of their first mention.
    events
        In the order of time.
    left_out
        Number of invalid lines.
    events_left_out
        Number of events beyond the limit.

    """

    sessions: list[Session] = field(default_factory=list)
    courses: dict[str, Course] = field(default_factory=dict)
    events: list[Event] = field(default_factory=list)
    left_out: int = 0
    events_left_out: int = 0

    @property
    def first(self) -> Session:
        return self.sessions[0]

    @property
    def last(self) -> Session:
        return self.sessions[-1]

    @property
    def seconds(self) -> float:
        """The duration, without the time between sessions."""
        return sum(session.end_at - session.begin_at for session in self.sessions)

    def end_of(self, attempt: Attempt) -> float:
        """Returns when an attempt ended, or the last time at which it is known to have run."""
        return self.sessions[attempt.session].end_at if attempt.end_at is None else attempt.end_at

    def begin_of(self, attempt: Attempt) -> float:
        """Returns when an attempt started to run, or, if it never did, until when it waited."""
        return self.end_of(attempt) if attempt.begin_at is None else attempt.begin_at

    @property
    def tasks(self) -> list[Course]:
        """The counted tasks."""
        return [course for course in self.courses.values() if course.counts]

    @property
    def warned(self) -> list[Course]:
        """The tasks with a warning."""
        return [course for course in self.courses.values() if course.is_warned]

    def count(self, outcome: str) -> int:
        """Returns the number of tasks with this outcome."""
        return sum(course.outcome == outcome for course in self.tasks)


def read(run: str | os.PathLike[str]) -> History:
    """Reads the record of a run.

    Parameters
    ----------
    run
        The folder of the run, or the record itself.

    Raises
    ------
    junctura.errors.NotFound
        The record does not exist.
    junctura.errors.Io
        The record cannot be read.
    junctura.errors.Corrupt
        The file is not a record: it has no line with the start of a run.
    junctura.errors.Unsupported
        The record has the format of a later version of Junctura.
    junctura.errors.LimitExceeded
        The record exceeds 2 GiB, or the limits of sessions, tasks or attempts.

    """
    path = Path(run)
    try:
        if path.is_dir():
            path = path / RECORD
        with path.open("rb") as file:
            if (nbytes := os.fstat(file.fileno()).st_size) > _RECORD_BYTES_MAX:
                raise LimitExceeded(str(path), f"{nbytes} bytes, more than {_RECORD_BYTES_MAX >> 30} GiB")
            return history(lines(file), str(path))
    except FileNotFoundError:
        cause = "there is no record of a run; name the folder of one, such as runs/NAME/latest"
        raise NotFound(str(path), cause) from None
    except (OSError, ValueError) as error:
        if isinstance(error, InvalidArgument):
            raise
        # A path with a NUL character causes a ValueError.
        raise Io(str(path), getattr(error, "strerror", None) or str(error)) from error


def lines(file: BinaryIO) -> Iterator[Line | None]:
    """Yields the complete lines of a record; None for an invalid line. A truncated last line is skipped."""
    while line := file.readline(_LINE_BYTES_MAX):
        if line.endswith(b"\n"):
            yield _object(line)
            continue
        while line and not line.endswith(b"\n"):
            line = file.readline(_LINE_BYTES_MAX)
        if line:
            yield None


def _object(line: bytes) -> Line | None:
    try:
        value = json.loads(line)
    except (ValueError, RecursionError):
        return None
    return value if isinstance(value, dict) else None


def history(said: Iterable[Line | None], subject: str = "record") -> History:
    """Builds a history from the lines of a record.

    Raises
    ------
    junctura.errors.Corrupt, junctura.errors.Unsupported, junctura.errors.LimitExceeded
        As `read`.

    """
    reader = Reader(subject)
    for line in said:
        reader.take(line)
    if not reader.history.sessions:
        raise Corrupt(subject, "it is no record of a run: no line says that one begins")
    return reader.history


class _NonsenseError(Exception):
    """A line lacks required values of its kind."""


class Reader:
    """Builds a history line by line; also of a record in progress.

    Parameters
    ----------
    subject
        The subject of errors.

    """

    def __init__(self, subject: str = "record") -> None:
        self.history = History()
        self._subject = subject
        self._attempts = 0
        # When an attempt that has not started could start.
        self._ready: dict[str, float] = {}
        self._takes: dict[str, Callable[[Line, float], None]] = {
            "ready": self._take_ready,
            "start": self._take_start,
            "taken": self._take_taken,
            "begin": self._take_begin,
            "end": self._take_end,
            "event": self._take_event,
            "end_asked": self._take_end_asked,
            "run_end": self._take_run_end,
            **dict.fromkeys(OUTCOMES, self._take_outcome),
        }

    def take(self, line: Line | None) -> None:
        """Adds a line; None is an invalid one.

        Raises
        ------
        junctura.errors.Unsupported, junctura.errors.LimitExceeded
            As `read`.

        """
        try:
            if line is None:
                raise _NonsenseError
            self._take(line)
        except _NonsenseError:
            self.history.left_out += 1

    def _take(self, line: Line) -> None:
        at, kind = _time(line), _text(line, "kind", needed=True)
        sessions = self.history.sessions
        if kind == "run":
            self._take_run(line, max(at, sessions[-1].end_at) if sessions else at)
            return
        if not sessions:
            raise _NonsenseError
        # Times of a run do not decrease; an adjusted clock may have.
        at = sessions[-1].end_at = max(at, sessions[-1].end_at)
        if kind in self._takes:
            self._takes[kind](line, at)

    def _take_run(self, line: Line, at: float) -> None:
        written = line.get("format", FORMAT)
        if type(written) is int and written > FORMAT:
            raise Unsupported(self._subject, f"it is of format {written}, and {FORMAT} is the last that is read here")
        texts = {name: _text(line, name) for name in ("workflow", "file", "run", "pool", "host", "version")}
        if len(self.history.sessions) == _SESSIONS_MAX:
            raise LimitExceeded(self._subject, f"it went on more than {_SESSIONS_MAX} times")
        session = Session(at, at, **texts)  # type: ignore[arg-type]
        session.resumed, session.pid = line.get("resumed") is True, _whole(line, "pid")
        self.history.sessions.append(session)
        self._ready.clear()
        tasks = line.get("tasks")
        for task in tasks if isinstance(tasks, list) else ():
            if isinstance(task, dict) and _text(task, "task"):
                course = self._course(task, at)
                course.after = course.after or _texts(task, "after")
                course.condition = course.condition or _text(task, "start")

    def _course(self, line: Line, at: float) -> Course:
        name = _text(line, "task", needed=True)
        courses = self.history.courses
        if name not in courses:
            if len(courses) == _TASKS_MAX:
                raise LimitExceeded(self._subject, f"more than {_TASKS_MAX} tasks")
            courses[name] = Course(name, _text(line, "of") or name, at)
        course = courses[name]
        course.service = course.service or line.get("service") is True
        cores = _whole(line, "cores")
        course.cores = cores if cores and cores > 0 else course.cores
        return course

    def _take_ready(self, line: Line, at: float) -> None:
        is_new = _text(line, "task") not in self.history.courses
        course, reason = self._course(line, at), _reason(line.get("reason"))
        if (each := self.history.courses.get(_text(line, "each"))) is not None:
            each.counts = False
        self._ready[course.name] = at
        if reason.kind == "restart" and course.attempts:
            return
        if course.outcome or course.ready_at is None:
            course.ready_at, course.reason = at, reason
            course.outcome, course.outcome_at, course.cause = "", None, ""
        if is_new and reason.offered_at is not None:
            course.known_at = min(max(reason.offered_at, self.history.first.begin_at), at)

    def _take_start(self, line: Line, at: float) -> None:
        course = self._course(line, at)
        self._attempts += 1
        if self._attempts > _ATTEMPTS_MAX:
            raise LimitExceeded(self._subject, f"more than {_ATTEMPTS_MAX} attempts")
        number, command = _whole(line, "attempt"), _texts(line, "command")
        attempt = Attempt(number or len(course.attempts) + 1, at, len(self.history.sessions) - 1)
        attempt.ready_at, attempt.command = self._ready.pop(course.name, None), command
        attempt.identity, attempt.log = _text(line, "identity"), _text(line, "log")
        course.attempts.append(attempt)
        course.outcome, course.outcome_at, course.cause = "", None, ""

    def _attempt(self, line: Line) -> Attempt:
        """Returns the running attempt of a line."""
        course = self.history.courses.get(_text(line, "task", needed=True))
        if course is None or not course.attempts or course.attempts[-1].end_at is not None:
            raise _NonsenseError
        number = _whole(line, "attempt")
        if number is not None and number != course.attempts[-1].number:
            raise _NonsenseError
        return course.attempts[-1]

    def _take_taken(self, line: Line, _at: float) -> None:
        self._attempt(line).identity = _text(line, "identity")

    def _take_begin(self, line: Line, at: float) -> None:
        attempt = self._attempt(line)
        attempt.begin_at = at if attempt.begin_at is None else attempt.begin_at
        attempt.identity = attempt.identity or _text(line, "identity")

    def _take_end(self, line: Line, at: float) -> None:
        attempt = self._attempt(line)
        attempt.end_at, attempt.cause = at, _text(line, "cause")
        attempt.code, attempt.signal = _whole(line, "code"), _whole(line, "signal")

    def _take_outcome(self, line: Line, at: float) -> None:
        course = self._course(line, at)
        course.outcome, course.outcome_at, course.cause = line["kind"], at, _text(line, "cause")
        course.counts = line["counts"] is not False if "counts" in line else course.counts
        course.is_warned = line.get("warning") is True

    def _take_event(self, line: Line, at: float) -> None:
        if len(self.history.events) == _EVENTS_MAX:
            self.history.events_left_out += 1
            return
        attributes, nbytes = line.get("attributes"), _whole(line, "bytes") or 0
        self.history.events.append(
            Event(
                at,
                _text(line, "event", needed=True),
                _text(line, "object"),
                _text(line, "client"),
                max(nbytes, 0),
                attributes if isinstance(attributes, dict) else {},
            )
        )

    def _take_end_asked(self, line: Line, at: float) -> None:
        course = self._course(line, at)
        course.end_asked = (at, _text(line, "cause"))

    def _take_run_end(self, line: Line, at: float) -> None:
        session = self.history.last
        session.end_at, session.status, session.code = at, _text(line, "status"), _whole(line, "code")


def _reason(said: Any) -> Reason:
    if not isinstance(said, dict):
        return Reason("")
    attributes, offered = said.get("attributes"), said.get("offered_at")
    return Reason(
        _text(said, "kind"),
        _texts(said, "tasks"),
        _text(said, "object"),
        _text(said, "selector"),
        attributes if isinstance(attributes, dict) else {},
        _as_time(offered),
        _text(said, "bundle"),
        _texts(said, "clients"),
    )


def _time(line: Line) -> float:
    at = _as_time(line.get("at"))
    if at is None:
        raise _NonsenseError
    return at


def _as_time(at: Any) -> float | None:
    return float(at) if type(at) in (int, float) and 0 <= at < _AT_MAX else None


def _text(line: Line, name: str, *, needed: bool = False) -> str:
    value = line.get(name)
    if isinstance(value, str) and (value or not needed):
        return value[:_NAME_MAX]
    if needed:
        raise _NonsenseError
    return ""


def _texts(line: Line, name: str) -> tuple[str, ...]:
    value = line.get(name)
    return tuple(one[:_NAME_MAX] for one in value if isinstance(one, str)) if isinstance(value, list) else ()


def _whole(line: Line, name: str) -> int | None:
    value = line.get(name)
    return value if type(value) is int and abs(value) < 1 << 63 else None
