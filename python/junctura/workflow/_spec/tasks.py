"""The parts of a validated workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from junctura.workflow._executors.jobs import Resources


@dataclass(frozen=True)
class Start:
    """When a task starts: when all that is said here holds; at once where nothing is said.

    Attributes
    ----------
    after
        Tasks that have ended well (of a service: that has begun). Names of the file: all instances of them.
    on
        A selector; the first object that it matches, then or before.
    bundle
        The name of a bundle that is complete.
    joined
        Names of components in the pool, each there at that moment; ``*`` is anything.
    each
        A selector: not once, but once for each object that it matches. ``{object}``, and ``{word}`` for each of its
        attributes, may stand in what the task says.
    count
        Of `each`: after so many objects it has them all. None: when nobody who could offer one runs any more.

    """

    after: tuple[str, ...] = ()
    on: str | None = None
    bundle: str | None = None
    joined: tuple[str, ...] = ()
    each: str | None = None
    count: int | None = None


@dataclass(frozen=True)
class Task:
    """One task of a run, or what the tasks for each object are made after.

    Attributes
    ----------
    name
        Unique in the run: that of the file, or with the values of its matrix, as ``member-3``.
    of
        The name in the file.
    command
        Program and arguments. Where values are known only in the run (``{pool}``, ``{object}``) they stand there still.
    folder
        Where it runs; relative to the folder of the run.
    environment
        What it has besides that of `junctura run`.
    values
        Those of its matrix.
    service
        It runs until its users are done, and is then told to end: that is not a failure.
    users
        Of a service the tasks for which it runs; empty: all that are no services.
    start
        When.
    attempts
        How often it is begun at most.
    limit_s
        After so long an attempt is ended, and has failed.
    resources
        What it needs.
    may_fail
        The run goes on as if it had ended well, and says so.
    executor
        ``local``, or the name of a batch system.
    line
        Where it stands in the file.

    """

    name: str
    of: str
    command: tuple[str, ...]
    folder: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    values: Mapping[str, Any] = field(default_factory=dict)
    service: bool = False
    users: tuple[str, ...] = ()
    start: Start = field(default_factory=Start)
    attempts: int = 1
    limit_s: float | None = None
    resources: Resources = field(default_factory=Resources)
    may_fail: bool = False
    executor: str = "local"
    line: int = 0


@dataclass(frozen=True)
class PoolWanted:
    """The pool of a run.

    Attributes
    ----------
    url
        One that others serve; None: the run serves one of its own, and takes it away at its end.
    schema, memory_bytes, spill
        Of the run's own.
    service
        The task that serves it; None: none of the workflow does.

    """

    url: str | None = None
    schema: str | None = None
    memory_bytes: int | None = None
    spill: Path | None = None
    service: str | None = None


@dataclass(frozen=True)
class Workflow:
    """A workflow whose file has been checked.

    Attributes
    ----------
    name
        What it is called.
    path
        Its file.
    tasks
        All tasks, each instance of a matrix by itself; in an order in which each stands behind those it waits for.
    pool
        Where its tasks meet; None where it has none.
    limit_s
        After so long the run ends.
    parallel
        How many cores its local tasks may have at once; None: those of the machine.

    """

    name: str
    path: Path
    tasks: tuple[Task, ...]
    pool: PoolWanted | None = None
    limit_s: float | None = None
    parallel: int | None = None
