"""The parts of a validated workflow."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from junctura.workflow._executors.jobs import Resources


@dataclass(frozen=True)
class Start:
    """The start condition of a task: when all parts are met; at once if there are none.

    Attributes
    ----------
    after
        Tasks that must have succeeded (services: started). Names of the file: all their instances.
    on
        A selector; satisfied by the first matching object, new or existing.
    bundle
        The name of a bundle that must be complete.
    joined
        Names of components, each of which must be connected at that moment; ``*`` matches anything.
    each
        A selector: the task starts once for each matching object. Its texts may contain ``{object}``, and ``{word}``
        for each attribute.
    count
        For `each`: the number of objects that is complete. None: complete when no possible producer runs any more.
    none
        For `each` without an object: ``warn``, and it is done; ``allow``: it is done; ``fail``: it fails.

    """

    after: tuple[str, ...] = ()
    on: str | None = None
    bundle: str | None = None
    joined: tuple[str, ...] = ()
    each: str | None = None
    count: int | None = None
    none: str = "warn"


@dataclass(frozen=True)
class Task:
    """One task of a run, or the template of the tasks for each object.

    Attributes
    ----------
    name
        Unique in the run: that of the file, or with the values of its matrix, as ``member-3``.
    of
        The name in the file.
    command
        Program and arguments. Values that are known only in the run (``{pool}``, ``{object}``) are still words in
        braces.
    folder
        Its working directory, relative to the folder of the run.
    environment
        Variables in addition to the environment of `junctura run`.
    values
        The values of its matrix.
    service
        It runs until its users have ended, and is then stopped: that is not a failure.
    users
        For a service: the tasks that use it; empty: all tasks that are not services.
    start
        The start condition.
    attempts
        Maximum number of attempts.
    limit_s
        Time limit of an attempt, after which it is stopped and has failed.
    resources
        The requested resources.
    may_fail
        The run continues after a failure as if it had succeeded, and reports it.
    executor
        ``local``, or the name of a batch system.
    line
        Its line in the file.

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
        The URL of an external pool; None: the run serves its own pool, and removes it at the end.
    schema, memory_bytes, spill
        Options of the run's own pool.
    service
        The task that serves it; None: no task does.

    """

    url: str | None = None
    schema: str | None = None
    memory_bytes: int | None = None
    spill: Path | None = None
    service: str | None = None


@dataclass(frozen=True)
class Workflow:
    """A validated workflow.

    Attributes
    ----------
    name
        Its name.
    path
        Its file.
    tasks
        All tasks, with each instance of a matrix; each task after its dependencies.
    pool
        The pool of its tasks; None if it has none.
    limit_s
        Time limit of the run.
    parallel
        Number of cores for its local tasks; None: those of the host.

    """

    name: str
    path: Path
    tasks: tuple[Task, ...]
    pool: PoolWanted | None = None
    limit_s: float | None = None
    parallel: int | None = None
