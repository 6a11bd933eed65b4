"""The critical path of a run: the waits of each task, and the chain of tasks and waits that determined its duration.

Times are seconds of the run, without the time between sessions. The chain is traced backward from the end of the run:
the last task to end, its attempts, its last wait, and then the task that ended this wait. The links are consecutive and
add up to the whole duration. If the record does not have the producer of an object, the chain ends there, with a note.
"""

from __future__ import annotations

from bisect import bisect_right
from dataclasses import dataclass
from itertools import accumulate

from junctura.workflow._record.history import Attempt, Course, Event, History
from junctura.workflow._view.text_format import clean

_LINKS_MAX = 4000
_TINY = 1e-6


class Clock:
    """Seconds of the run, for times of day."""

    def __init__(self, history: History) -> None:
        self._begins = [session.begin_at for session in history.sessions]
        lengths = [session.end_at - session.begin_at for session in history.sessions]
        self._lengths = lengths
        self.offsets = [0.0, *accumulate(lengths)]
        self.length = self.offsets[-1]

    def session(self, at: float) -> int:
        """Returns the session that contains a time, or precedes it."""
        return max(0, bisect_right(self._begins, at) - 1)

    def __call__(self, at: float) -> float:
        session = self.session(at)
        return self.offsets[session] + min(max(0.0, at - self._begins[session]), self._lengths[session])


@dataclass(frozen=True)
class Wait:
    """A part of a task's life in which it did not run.

    Attributes
    ----------
    kind
        ``start``, ``after``, ``object``, ``bundle``, ``joined``: until it could start; ``room``: until cores were free;
        ``queue``: until it ran; ``restart``: until its next attempt.
    words
        The awaited condition.
    begin, end
        In seconds of the run.

    """

    kind: str
    words: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class Link:
    """A link of the chain that determined the duration of a run.

    Attributes
    ----------
    kind
        ``run``, ``end`` (from the last task's end to that of the run), or that of a `Wait`.
    task
        The task that runs or waits; empty for ``end``.

    """

    kind: str
    task: str
    words: str
    begin: float
    end: float

    @property
    def seconds(self) -> float:
        return self.end - self.begin


@dataclass(frozen=True)
class _Origin:
    """The origin of a task's start."""

    course: Course | None
    at: float
    words: str


class Attribution:
    """The waits of the tasks of a run.

    Parameters
    ----------
    history
        The run.

    """

    def __init__(self, history: History) -> None:
        self.clock = Clock(history)
        self._history = history
        self._events: dict[tuple[str, str], Event] = {}
        for event in history.events:
            self._events.setdefault((event.kind, event.client if event.kind == "joined" else event.object), event)

    def waits(self, course: Course) -> list[Wait]:
        """Returns the waits of a task, in the order of time; without those of no duration."""
        clock = self.clock
        until = course.outcome_at if course.outcome and not course.attempts else self._history.last.end_at
        ready = course.ready_at if course.ready_at is not None else until
        ready = min(ready if ready is not None else course.known_at, _first_start(course))
        kind = (course.reason.kind if course.reason else "") or ("after" if course.after else "start")
        found = [Wait(kind, self.origin(course).words, clock(course.known_at), clock(ready))]
        before: Attempt | None = None
        for attempt in course.attempts:
            at = attempt.ready_at if attempt.ready_at is not None else attempt.start_at
            if before is not None:
                text = "the run to go on" if before.session != attempt.session else f"attempt {attempt.number}"
                found.append(Wait("restart", text, clock(self._history.end_of(before)), clock(at)))
            begin = self._history.begin_of(attempt)
            found.append(Wait("room", "free cores", clock(at), clock(attempt.start_at)))
            found.append(Wait("queue", _queue(attempt), clock(attempt.start_at), clock(begin)))
            before = attempt
        return [wait for wait in found if wait.seconds > _TINY]

    def origin(self, course: Course) -> _Origin:
        """Returns the task or the object after which a task could start, and the time."""
        reason, clock = course.reason, self.clock
        kind = reason.kind if reason else ""
        if reason and kind == "object":
            at = reason.offered_at if reason.offered_at is not None else course.ready_at
            return self._of_event("offered", reason.object, at, f"object {clean(reason.object)}")
        if reason and kind == "bundle":
            return self._of_event("completed", reason.bundle, None, f"bundle {clean(reason.bundle)}")
        if reason and kind == "joined":
            last = max(reason.clients, key=lambda name: self._at("joined", name), default="")
            return self._of_event("joined", last, None, f"{clean(last)} in the pool")
        tasks = (reason.tasks if reason else ()) or course.after
        courses = [self._history.courses[name] for name in tasks if name in self._history.courses]
        ended = [one for one in courses if self._stands(one) is not None]
        if ended:
            last_one = max(ended, key=lambda one: self._stands(one) or 0.0)
            at = self._stands(last_one) or 0.0
            return _Origin(last_one, clock(at), f"{clean(last_one.name)}")
        words = clean(course.condition) or (", ".join(map(clean, tasks[:3])) if tasks else "the run to begin")
        return _Origin(None, clock(course.known_at), words)

    def _of_event(self, kind: str, name: str, at: float | None, words: str) -> _Origin:
        event = self._events.get((kind, name))
        when = at if at is not None else (event.at if event else None)
        client = event.client if event else ""
        course = self._history.courses.get(client) or self._history.courses.get(client.rpartition(".")[0])
        if when is None:
            return _Origin(None, 0.0, words)
        return _Origin(course, self.clock(when), words)

    def _at(self, kind: str, name: str) -> float:
        event = self._events.get((kind, name))
        return event.at if event else 0.0

    def _stands(self, course: Course) -> float | None:
        """Returns when the dependents of a task could continue: at its end, or when a service ran."""
        if course.service and course.attempts:
            return self._history.begin_of(course.attempts[0])
        if course.outcome_at is not None:
            return course.outcome_at
        return self._history.end_of(course.attempts[-1]) if course.attempts else None

    def chain(self) -> list[Link]:
        """Returns the chain of tasks and waits that determined the duration of the run, from its beginning to its
        end.
        """
        links: list[Link] = []
        until = self.clock.length
        ends = [
            (self.clock(self._history.end_of(one.attempts[-1])), one)
            for one in self._history.courses.values()
            if one.attempts and not one.service
        ]
        course: Course | None = None
        if ends:
            at, course = max(ends, key=lambda end: end[0])
            _add(links, Link("end", "", "services end, and the run", at, until))
            until = min(at, until)
        seen: set[str] = set()
        while course is not None and course.name not in seen and len(links) < _LINKS_MAX:
            seen.add(course.name)
            until = self._through(course, until, links)
            origin = self.origin(course)
            at = min(origin.at, until)
            known = origin.course is not None and origin.course.name not in seen
            words = origin.words if known or at <= _TINY else f"{origin.words} (the record does not say from whom)"
            kind = course.reason.kind if course.reason and course.reason.kind else "start"
            _add(links, Link(kind, course.name, words, at if known else 0.0, until))
            until, course = (at, origin.course) if known else (0.0, None)
        _add(links, Link("start", "", "the run to begin", 0.0, until))
        return links[::-1]

    def _through(self, course: Course, until: float, links: list[Link]) -> float:
        """Traces the attempts of a task backward; returns when it could start."""
        kind, words = "run", "its end to be seen"
        for attempt in reversed(course.attempts):
            start = self.clock(attempt.start_at)
            if start > until:
                continue
            begin, end = self.clock(self._history.begin_of(attempt)), self.clock(self._history.end_of(attempt))
            until = _link(links, kind, course, words, end, until)
            until = _link(links, "run", course, _ran(attempt), begin, until)
            until = _link(links, "queue", course, _queue(attempt), start, until)
            if attempt.ready_at is not None:
                until = _link(links, "room", course, "free cores", self.clock(attempt.ready_at), until)
            kind, words = "restart", f"attempt {attempt.number}"
        return until


def _link(links: list[Link], kind: str, course: Course, words: str, begin: float, end: float) -> float:
    begin = min(begin, end)
    _add(links, Link(kind, course.name, words, begin, end))
    return begin


def _add(links: list[Link], link: Link) -> None:
    if link.seconds > 0:
        links.append(link)


def _ran(attempt: Attempt) -> str:
    return f"runs, attempt {attempt.number}" if attempt.number > 1 else "runs"


def _queue(attempt: Attempt) -> str:
    kind = attempt.identity.partition(" ")[0]
    return "its process" if kind in ("", "process") else f"the queue ({clean(attempt.identity, 40)})"


def _first_start(course: Course) -> float:
    return course.attempts[0].start_at if course.attempts else float("inf")
