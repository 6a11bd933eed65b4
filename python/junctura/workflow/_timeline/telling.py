"""Descriptions of tasks as text: for tooltips, and for the table."""

from __future__ import annotations

from junctura.workflow._record.critical_path import Attribution, Clock
from junctura.workflow._record.history import Attempt, Course, History
from junctura.workflow._view.text_format import clean, seconds

_SHOWN = 8


def ended(course: Course) -> str:
    """Returns the outcome as a word; without an outcome, the last known state."""
    if course.outcome:
        return course.outcome
    return "cut off" if course.attempts else "not begun"


def reason(course: Course) -> str:
    """Returns why it started."""
    why = course.reason
    if why is None:
        return "it never could" if course.attempts == [] else ""
    many = {"after": why.tasks, "joined": why.clients}.get(why.kind, ())
    names = ", ".join(clean(name, 60) for name in many[:_SHOWN]) + (
        f" and {len(many) - _SHOWN} more" * (len(many) > _SHOWN)
    )
    texts = {
        "start": "at once",
        "after": f"after {names}",
        "object": f"object {clean(why.object, 120)}",
        "bundle": f"bundle {clean(why.bundle, 120)} was complete",
        "joined": f"{names} in the pool",
        "restart": "the run went on",
    }
    return texts.get(why.kind, clean(why.kind, 60))


def waited(course: Course, attribution: Attribution) -> str:
    """Returns its waits and their durations."""
    waits = sorted(attribution.waits(course), key=lambda wait: -wait.seconds)
    return ", ".join(f"{seconds(wait.seconds)} for {wait.words}" for wait in waits[:_SHOWN] if wait.seconds >= 0.001)


def of_attempt(attempt: Attempt, history: History, clock: Clock) -> str:
    """Returns when an attempt ran, how it ended, and its command."""
    if attempt.begin_at is None and attempt.end_at is None:
        told = [f"attempt {attempt.number}: handed over at {seconds(clock(attempt.start_at))}, never began"]
    else:
        begin, end = clock(history.begin_of(attempt)), clock(history.end_of(attempt))
        told = [f"attempt {attempt.number}: from {seconds(begin)}, ran {seconds(end - begin)}"]
    told += [clean(attempt.cause)] if attempt.cause else ["no end is known"] if attempt.end_at is None else []
    told += [clean(attempt.identity, 60)] if attempt.identity else []
    return ", ".join(told)


def of_task(course: Course, history: History, attribution: Attribution) -> str:
    """Returns the whole description, in lines."""
    name = clean(course.name, 120)
    lines = [name if course.name == course.of else f"{name}, one of {clean(course.of, 80)}"]
    cause = f": {clean(course.cause)}" if course.cause else ""
    lines.append(f"{ended(course)}{cause}")
    lines.append(f"why it started: {reason(course)}" if course.reason else "")
    text = waited(course, attribution)
    lines.append(f"waited {text}" if text else "")
    lines += [of_attempt(attempt, history, attribution.clock) for attempt in course.attempts[-_SHOWN:]]
    lines.append(f"told to end: {clean(course.end_asked[1])}" if course.end_asked else "")
    lines.append(f"log {clean(course.attempts[-1].log, 120)}" if course.attempts and course.attempts[-1].log else "")
    return "\n".join(line for line in lines if line)
