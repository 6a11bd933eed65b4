"""The events that the product engine takes, and the actions that it returns."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, TypeAlias

from junctura.products._broker.run_report import Failed, Made
from junctura.products._tasks.tasks import LegendreSpec, TaskAnswer, TaskOrder


@dataclass(frozen=True)
class InputArrived:
    """An object of the producers' pool arrived; the broker holds it.

    Attributes
    ----------
    number
        The broker's number of the object.
    at
        The time by the broker's clock, seconds.

    """

    number: int
    key: str
    attributes: Mapping[str, Any]
    nbytes: int
    at: float


@dataclass(frozen=True)
class TaskAnswered:
    """An answer of a worker arrived."""

    answer: TaskAnswer
    at: float


@dataclass(frozen=True)
class ProductFound:
    """A product exists, made by an earlier run from the same recipe."""

    product: int


@dataclass(frozen=True)
class ProductAbandoned:
    """Nothing that this product needs can arrive any more."""

    product: int
    failure: Failed


EngineEvent: TypeAlias = InputArrived | TaskAnswered | ProductFound | ProductAbandoned


@dataclass(frozen=True)
class BeginTask:
    """A task is ready; the task with the earliest due time is first.

    Attributes
    ----------
    is_brief
        Whether a later task may wait until it is done while another worker is idle.

    """

    order: TaskOrder
    due: float
    is_brief: bool = False


@dataclass(frozen=True)
class ReleaseInput:
    """An object is no longer needed."""

    number: int


@dataclass(frozen=True)
class FreeArrays:
    """The fields of these nodes are no longer needed."""

    nodes: tuple[int, ...]


@dataclass(frozen=True)
class HintLegendre:
    """Workers will need these functions."""

    legendre: LegendreSpec


@dataclass(frozen=True)
class ReportMade:
    """A product was made; `words` are attributes that its fields have in common."""

    product: int
    event: Made
    words: Mapping[str, str]


@dataclass(frozen=True)
class ReportFailed:
    """A product cannot be made."""

    event: Failed


EngineAction: TypeAlias = BeginTask | ReleaseInput | FreeArrays | HintLegendre | ReportMade | ReportFailed
