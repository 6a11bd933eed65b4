"""A world of tasks without processes, for the engine of a run: what it does is drawn."""

from __future__ import annotations

from collections import deque
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Protocol

from junctura.workflow._engine import events as ev
from junctura.workflow._engine.engine import Engine
from junctura.workflow._executors.jobs import Ended, Resources
from junctura.workflow._spec.tasks import PoolWanted, Start, Task, Workflow

GOOD, BAD = Ended(0), Ended(1)
KILLED = Ended(None, 9)


class Draws(Protocol):
    """Where chance comes from."""

    def below(self, count: int) -> int: ...


def task(name: str, **words: Any) -> Task:
    """A task whose start is given by its words."""
    keys = ("after", "on", "bundle", "joined", "each", "count", "none")
    start = {key: words.pop(key) for key in keys if key in words}
    resources = Resources(words.pop("cores", 1), words.pop("memory_bytes", None))
    words.setdefault("of", name)
    return Task(name, command=("true",), folder=Path(), start=Start(**start), resources=resources, **words)


def workflow(*tasks: Task, pool: PoolWanted | None = None) -> Workflow:
    return Workflow("test", Path("test.yaml"), tasks, pool or PoolWanted())


@dataclass
class World:
    """Does what the engine of a run wants, notes what it did, and looks whether that was right."""

    engine: Engine
    chance: Draws | None = None
    # What each task offers while it runs, by its name in the file.
    offers: dict[str, list[str]] = field(default_factory=dict)
    live: dict[str, int] = field(default_factory=dict)
    begun: list[str] = field(default_factory=list)
    ended: list[tuple[str, Ended]] = field(default_factory=list)
    notes: list[ev.Note] = field(default_factory=list)
    pool: deque[ev.Event] = field(default_factory=deque)
    over: ev.Over | None = None
    sequence: int = 0
    all_offered: list[ev.Offered] = field(default_factory=list)
    sights: list[tuple[str, ev.Offered]] = field(default_factory=list)
    asked: set[str] = field(default_factory=set)
    # The probable mistakes of selectors.
    hints: dict[str, str] = field(default_factory=dict)

    def begin(self) -> None:
        self._do(self.engine.begin())

    def take(self, event: ev.Event) -> None:
        self._do(self.engine.take(event))

    def _do(self, actions: list[ev.Action]) -> None:
        for action in actions:
            assert self.over is None, "nothing comes behind the end"
            match action:
                case ev.Begin():
                    self._begin(action)
                case ev.End():
                    assert self.live[action.task] == action.attempt
                    self.asked.add(action.task)
                case ev.Fence():
                    self.pool.append(ev.Fenced(action.number))
                case ev.AskHint():
                    self.pool.append(ev.Hinted(action.selector, self.hints.get(action.selector, "")))
                case ev.Note():
                    self.notes.append(action)
                case ev.Over():
                    assert not self.live
                    self.over = action

    def _begin(self, action: ev.Begin) -> None:
        one = action.task
        assert one.name not in self.live, "an attempt at a time"
        self.live[one.name] = action.attempt
        self.begun.append(one.name)
        self.asked.discard(one.name)
        if action.sight is not None and one.start.each is not None:
            self.sights.append((one.of, action.sight))

    def run(self, name: str) -> None:
        """A task that was launched runs."""
        self.take(ev.Began(name, self.live[name]))

    def offer(self, name: str, selector: str, key: str = "", incarnation: int = 1) -> ev.Offered:
        """Somebody offers something; it is told later."""
        self.sequence += 1
        event = ev.Offered(selector, key or f"{name}:{self.sequence}", f"{incarnation}.{self.sequence}")
        self.all_offered.append(event)
        self.pool.append(event)
        return event

    def end(self, name: str, ended: Ended = GOOD) -> None:
        attempt = self.live.pop(name)
        self.ended.append((name, ended))
        self.take(ev.Finished(name, attempt, ended))

    def tell(self) -> None:
        """All that has happened in the pool is told."""
        while self.pool:
            self.take(self.pool.popleft())

    def said(self, kind: str) -> dict[str, str]:
        """Of whom a note of this kind was made, and the cause."""
        return {note.words["task"]: str(note.words.get("cause", "")) for note in self.notes if note.kind == kind}

    def status(self) -> tuple[str, int]:
        # Before a run ends badly, it hears all that has happened in its pool.
        self.tell()
        assert self.over is not None, f"not over: {sorted(self.live)}"
        return self.over.status, self.over.code


def world(
    *tasks: Task,
    cores: int = 8,
    pool: PoolWanted | None = None,
    past: ev.Past | None = None,
    memory_bytes: int | None = None,
) -> World:
    """A world that has begun."""
    made = World(Engine(workflow(*tasks, pool=pool), cores, past, memory_bytes))
    made.begin()
    return made
