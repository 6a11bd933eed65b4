"""The interface of an executor: jobs, their resources, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Resources:
    """What one task needs; None is whatever there is."""

    cores: int = 1
    memory_bytes: int | None = None
    nodes: int = 1
    # Processes that the batch system, or `mpirun`, starts of it.
    ranks: int | None = None


@dataclass(frozen=True)
class Job:
    """One attempt at a task, ready to run: nothing in it is left to be filled in.

    Attributes
    ----------
    name
        Of the task and its attempt, as ``member-3.1``; unique in a run.
    command
        Program and arguments; no shell reads them.
    folder
        The working directory, which is there.
    log
        Where both of its outputs go, appended; its folder is there.
    environment
        What it has besides the executor's own environment.
    limit_s
        After so long it is ended.

    """

    name: str
    command: tuple[str, ...]
    folder: Path
    log: Path
    environment: Mapping[str, str] = field(default_factory=dict)
    resources: Resources = field(default_factory=Resources)
    limit_s: float | None = None


@dataclass(frozen=True)
class Ended:
    """How a job came to its end.

    Attributes
    ----------
    code
        The exit status; None where there is none, since a signal ended it or it never began.
    signal
        The number of the signal that ended it.
    cause
        In words, where it did not just exit: ``there is no program swell``, ``ran longer than 600 s``, ``cancelled``.

    """

    code: int | None
    signal: int | None = None
    cause: str = ""

    @property
    def is_good(self) -> bool:
        return self.code == 0


class Running(Protocol):
    """A job that was begun."""

    @property
    def identity(self) -> str:
        """What others call it, for people and records: ``process 4711``, ``slurm job 12``."""

    def end(self, *, at_once: bool = False) -> None:
        """Asks it and all that it started to end: SIGTERM, then after a grace SIGKILL; `at_once`: SIGKILL. No wait.

        May be called often, and of one that has ended; `on_end` tells when it did.
        """


class Executor(Protocol):
    """Runs jobs. Calls come from one thread and do not wait for jobs."""

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,
    ) -> Running:
        """Begins a job; `on_begin` when it runs (a batch system may let it wait), `on_end` once, whatever happens.

        `on_taken` is told its identity as soon as it is known, if the job would outlive this process.

        They are called in threads of the executor's, maybe before this returns, and do not wait. A program that is not
        there, or resources that cannot be had, are an `Ended` with its cause, not an error.
        """

    def check(self, job: Job) -> str:
        """What is known before it starts to be impossible, in words: a missing program, too many cores; else empty."""

    def end_left(self, identities: Sequence[str]) -> Mapping[str, str]:
        """Ends jobs that an earlier process has started, and waits for it: which may run still, and why."""

    def close(self) -> None:
        """Ends all that still runs, at once, and waits until nothing is left. May be called twice."""
