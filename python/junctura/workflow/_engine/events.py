"""The events that the engine takes, and the actions that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any, Literal, TypeAlias

from junctura.workflow._executors.jobs import Ended
from junctura.workflow._spec.tasks import Task

Status: TypeAlias = Literal["done", "failed", "interrupted"]


@dataclass(frozen=True)
class JobTaken:
    """A batch system has taken an attempt, and calls it so; when it runs is its own matter."""

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
    """An attempt runs, and serves the pool of the run."""

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
    """An object that a selector matches is there.

    Attributes
    ----------
    selector
        As it stands in the workflow.
    key
        What `Pool.demand` takes.
    version
        As text, ``incarnation.sequence``.
    at
        When this became known, seconds since 1970.

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
    """A client is in the pool."""

    client: int
    name: str
    host: str = ""
    pid: int = 0


@dataclass(frozen=True)
class Left:
    """A client has left the pool; `reason` is what the server says of it."""

    client: int
    reason: str = ""


@dataclass(frozen=True)
class Fenced:
    """All that had happened in the pool before this fence was asked for has been told."""

    number: int


@dataclass(frozen=True)
class PoolEnded:
    """Nothing more comes of the pool."""

    cause: str


@dataclass(frozen=True)
class RunInterrupted:
    """Somebody wants the run to end; of two, the second wants it at once."""


@dataclass(frozen=True)
class Stopped:
    """The run cannot go on: its time is over, or its record cannot be written."""

    cause: str


Event: TypeAlias = (
    "JobTaken | Began | AttemptServed | Finished | Offered | Completed | Joined | Left | Fenced | PoolEnded "
    "| RunInterrupted | Stopped"
)


@dataclass(frozen=True)
class Begin:
    """An attempt is to be begun; `sight` is the object that it is for, where it is for one."""

    task: Task
    attempt: int
    sight: Offered | None = None


@dataclass(frozen=True)
class End:
    """An attempt is to be ended."""

    task: str
    attempt: int
    at_once: bool = False


@dataclass(frozen=True)
class Fence:
    """`Fenced` with this number is wanted."""

    number: int


@dataclass(frozen=True)
class Note:
    """A line of the record: docs/formats/workflow-record.md."""

    kind: str
    words: Mapping[str, Any]


@dataclass(frozen=True)
class Over:
    """Nothing runs any more, and nothing will."""

    status: Status
    code: int
    cause: str = ""


Action: TypeAlias = "Begin | End | Fence | Note | Over"


@dataclass(frozen=True)
class Seen:
    """What an earlier run made for one object."""

    task: str
    of: str
    key: str
    version: str
    is_done: bool
    attributes: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Past:
    """What is known of the run that is resumed.

    Attributes
    ----------
    done
        Tasks that are not done again.
    attempts
        How often each was begun.
    seen
        For which objects tasks were made.
    left
        What batch systems call attempts that may run still.

    """

    done: frozenset[str] = frozenset()
    attempts: Mapping[str, int] = field(default_factory=dict)
    seen: tuple[Seen, ...] = ()
    left: tuple[str, ...] = ()
