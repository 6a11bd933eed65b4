"""The interface of an executor: jobs, their resources, and their ends."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol


@dataclass(frozen=True)
class Resources:
    """The resources of one task; None is the default of the executor."""

    cores: int = 1
    memory_bytes: int | None = None
    nodes: int = 1
    # Processes that the batch system, or `mpirun`, starts for it.
    ranks: int | None = None


@dataclass(frozen=True)
class Job:
    """One attempt of a task, ready to run: without placeholders.

    Attributes
    ----------
    name
        The task and the number of the attempt, as ``member-3.1``; unique in a run.
    command
        Program and arguments; not interpreted by a shell.
    folder
        The working directory, which must exist.
    log
        The file to which both outputs are appended; its folder must exist.
    environment
        Variables in addition to the executor's environment.
    limit_s
        Time limit.

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
    """The end of a job.

    Attributes
    ----------
    code
        The exit status; None if a signal ended the job or it never started.
    signal
        The number of the signal that ended it.
    cause
        A description, if it did not just exit: ``there is no program swell``, ``ran longer than 600 s``, ``cancelled``.

    """

    code: int | None
    signal: int | None = None
    cause: str = ""

    @property
    def is_good(self) -> bool:
        return self.code == 0


class Running(Protocol):
    """A started job."""

    @property
    def identity(self) -> str:
        """Its external name, for messages and records: ``process 4711``, ``slurm job 12``."""

    def end(self, *, at_once: bool = False) -> None:
        """Stops it and its processes: SIGTERM, then after a grace period SIGKILL; `at_once`: SIGKILL. Does not block.

        May be called repeatedly, and after the end; `on_end` reports the end.
        """


class Executor(Protocol):
    """Runs jobs. Methods are called from one thread and do not wait for jobs."""

    def start(
        self,
        job: Job,
        on_begin: Callable[[], None],
        on_end: Callable[[Ended], None],
        on_taken: Callable[[str], None] | None = None,
    ) -> Running:
        """Starts a job; calls `on_begin` when it runs (a batch system may delay it), `on_end` once, in any case.

        `on_taken` is called with its identity as soon as it is known, if the job would outlive this process.

        The functions are called in threads of the executor, possibly before this returns, and must not block. A missing
        program, or unavailable resources, are reported as an `Ended` with its cause, not as an error.
        """

    def check(self, job: Job) -> str:
        """Returns why a job can never start: a missing program, too many cores; else an empty text."""

    def end_left(self, identities: Sequence[str]) -> Mapping[str, str]:
        """Ends jobs that an earlier process started, and waits; returns those that may still run, and why."""

    def close(self) -> None:
        """Ends all running jobs at once, and waits until none is left. May be called twice."""
