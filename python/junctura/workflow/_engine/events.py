"""Events that the engine handles, and actions that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from junctura.workflow._executors.jobs import Ended
from junctura.workflow._spec.tasks import Task

Status: TypeAlias = Literal["done", "failed", "interrupted"]


@dataclass(frozen=True)
class JobTaken:
    """A batch system has accepted an attempt, under this job name; it decides when the attempt runs."""

    task: str
    attempt: int
    identity: str


@dataclass(frozen=True)
class Began:
    """An attempt runs."""

    task: str
    attempt: int


@dataclass(frozen=True)
class AttemptServed:
    """An attempt runs and serves the pool of the run."""

    task: str
    attempt: int
    url: str


@dataclass(frozen=True)
class Finished:
    """An attempt has ended."""

    task: str
    attempt: int
    ended: Ended


@dataclass(frozen=True)
class Offered:
    """An object that matches a selector exists.

    Attributes
    ----------
    selector
        As written in the workflow.
    key
        The target for `Pool.demand`.
    version
        As text, ``incarnation.sequence``.
    at
        When this became known, in seconds since 1970.

    """

    selector: str
    key: str
    version: str
    attributes: Mapping[str, Any] = field(default_factory=dict)
    nbytes: int = 0
    at: float = 0.0


@dataclass(frozen=True)
class Completed:
    """A bundle is complete."""

    bundle: str


@dataclass(frozen=True)
class Joined:
    """A client has connected to the pool."""

    client: int
    name: str
    host: str = ""
    pid: int = 0


@dataclass(frozen=True)
class Left:
    """A client has disconnected.

    Attributes
    ----------
    reason
        That of the server's event.
    offered
        Number of objects that it has offered.

    """

    client: int
    reason: str = ""
    offered: int = 0


@dataclass(frozen=True)
class Fenced:
    """Every event of the pool before the request for this fence has been delivered."""

    number: int


@dataclass(frozen=True)
class Hinted:
    """The probable mistakes of a selector that matched nothing, as text; empty: none is known."""

    selector: str
    hint: str


@dataclass(frozen=True)
class PoolEnded:
    """No more events of the pool will arrive."""

    cause: str


@dataclass(frozen=True)
class RunInterrupted:
    """The user interrupts the run; a second interrupt ends it at once."""


@dataclass(frozen=True)
class Stopped:
    """The run cannot continue: its time limit is exceeded, or its record cannot be written."""

    cause: str


Event: TypeAlias = (
    "JobTaken | Began | AttemptServed | Finished | Offered | Completed | Joined | Left | Fenced | Hinted | PoolEnded "
    "| RunInterrupted | Stopped"
)


@dataclass(frozen=True)
class Begin:
    """Start an attempt; `sight` is its object, if it has one."""

    task: Task
    attempt: int
    sight: Offered | None = None


@dataclass(frozen=True)
class End:
    """Stop an attempt."""

    task: str
    attempt: int
    at_once: bool = False


@dataclass(frozen=True)
class Fence:
    """Request a `Fenced` with this number."""

    number: int


@dataclass(frozen=True)
class AskHint:
    """Request the `Hinted` of a selector."""

    selector: str


@dataclass(frozen=True)
class Note:
    """A line of the record: docs/formats/workflow-record.md."""

    kind: str
    words: Mapping[str, Any]


@dataclass(frozen=True)
class Over:
    """No task runs, and none will start."""

    status: Status
    code: int
    cause: str = ""


Action: TypeAlias = "Begin | End | Fence | AskHint | Note | Over"


@dataclass(frozen=True)
class Seen:
    """The task that an earlier run created for one object."""

    task: str
    of: str
    key: str
    version: str
    is_done: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Past:
    """The state of the run that is resumed.

    Attributes
    ----------
    done
        Tasks that are not repeated.
    attempts
        Number of attempts of each.
    seen
        Objects for which tasks were created.
    left
        Job names of batch systems for attempts that may still run.
    producers
        Tasks that have offered objects, or may have.
    clients
        For each name of a client of the pool, the tasks that it may have belonged to.
    offered
        The versions of the objects that the record has.

    """

    done: frozenset[str] = frozenset()
    attempts: Mapping[str, int] = field(default_factory=dict)
    seen: tuple[Seen, ...] = ()
    left: tuple[str, ...] = ()
    producers: frozenset[str] = frozenset()
    clients: Mapping[str, frozenset[str]] = field(default_factory=dict)
    offered: frozenset[str] = frozenset()
