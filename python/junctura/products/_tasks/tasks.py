"""The tasks that a broker gives to workers, and the answers that it receives.

A task names its subject: an input by the number that the broker gave it, or a node or a product by its number in the
graph that both sides build of the same recipes. The answer to a task has its number.

```text
  task           subject        answer          or TaskFailed
  LookAtInput    input          GridFound
  MakeWeights    weights        WeightsMade
  DecodeInput    input          InputDecoded
  PairWinds      pair           WindsPaired
  MakeProduct    product        ProductBuilt
  JoinedTasks    inputs         JoinedResults, or TasksParted
```
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import NamedTuple, TypeAlias

from junctura.products._regrid.weight_matrices import Method, Quantity

# The key and the version of an object that a product is made of.
Source: TypeAlias = tuple[str, str]


class WeightsSpec(NamedTuple):
    """The weights that `junctura.products._regrid.interpolate.prepare` makes."""

    source: str
    target: str
    method: Method
    quantity: Quantity


class LegendreSpec(NamedTuple):
    """The functions that `junctura.products._regrid.harmonics.warm` makes, in each process for itself."""

    truncation: int
    target: str
    is_wind: bool


class ProductFile(NamedTuple):
    """The file of a product that was made.

    Attributes
    ----------
    words
        Attributes that its fields have in common, as ``date``.
    extremes
        The least and the greatest value of a map whose range is its own.

    """

    path: str
    nbytes: int
    words: dict[str, str]
    extremes: tuple[float, float] | None = None


@dataclass(frozen=True)
class LookAtInput:
    """Determines the grid of an input without decoding its values."""

    input: int
    key: str


@dataclass(frozen=True)
class MakeWeights:
    """Makes weights and keeps them on disk, for all workers."""

    weights: WeightsSpec


@dataclass(frozen=True)
class DecodeInput:
    """Decodes the newest version of an input and makes what depends on it alone.

    Attributes
    ----------
    key
        The key of the object.
    nodes
        The nodes that the input is.
    keep
        The nodes whose fields are wanted.
    products
        Products that wait for nothing else.
    sources
        By product the objects that it is made of; this input has no version yet.

    """

    input: int
    key: str
    nodes: tuple[int, ...] = ()
    keep: tuple[int, ...] = ()
    products: tuple[int, ...] = ()
    sources: dict[int, tuple[Source, ...]] = field(default_factory=dict)


@dataclass(frozen=True)
class PairWinds:
    """Transforms a pair of nodes whose fields are kept, and keeps the fields of the nodes `keep`."""

    pair: int
    keep: tuple[int, ...] = ()


@dataclass(frozen=True)
class MakeProduct:
    """Makes a product of fields that are kept."""

    product: int
    sources: tuple[Source, ...] = ()


@dataclass(frozen=True)
class JoinedTasks:
    """Decodes several inputs, and makes their pairs and products, in one process.

    Fields that only these tasks need are not kept: `keep` of an input or of a pair has the other ones. The products of
    the inputs are in `products`, and their sources that are decoded here have no version yet.
    """

    decodes: tuple[DecodeInput, ...]
    pairs: tuple[PairWinds, ...] = ()
    products: tuple[MakeProduct, ...] = ()


Task: TypeAlias = LookAtInput | MakeWeights | DecodeInput | PairWinds | MakeProduct | JoinedTasks


@dataclass(frozen=True)
class GridFound:
    """The grid of an input; empty if it is unknown."""

    grid: str


@dataclass(frozen=True)
class WeightsMade:
    """Weights are on disk."""


@dataclass(frozen=True)
class InputDecoded:
    """An input was decoded.

    Attributes
    ----------
    version
        The version of the object that was decoded.
    kept
        The nodes whose fields are available now.
    failed
        By node why it is not available.
    files, unmade
        The products that were made, and by product why it was not.

    """

    version: str = ""
    kept: tuple[int, ...] = ()
    failed: dict[int, str] = field(default_factory=dict)
    files: dict[int, ProductFile] = field(default_factory=dict)
    unmade: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class WindsPaired:
    """A pair was transformed; `kept` and `failed` as in `InputDecoded`."""

    kept: tuple[int, ...] = ()
    failed: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ProductBuilt:
    """A product was made."""

    file: ProductFile


@dataclass(frozen=True)
class JoinedResults:
    """The results of joined tasks.

    Attributes
    ----------
    decoded, paired
        In the order of the tasks. The products of an input are in `files` and `unmade`.
    decodes
        By input how many messages were decoded for it.
    files, unmade
        The products that were made, and by product why it was not.

    """

    decoded: tuple[InputDecoded, ...]
    paired: tuple[WindsPaired, ...] = ()
    decodes: tuple[int, ...] = ()
    files: dict[int, ProductFile] = field(default_factory=dict)
    unmade: dict[int, str] = field(default_factory=dict)


@dataclass(frozen=True)
class TasksParted:
    """A worker crashed with joined tasks: each input has to be decoded by a task of its own.

    So only the input that caused the crash fails, if one did. Fields that the worker had kept are removed.
    """


@dataclass(frozen=True)
class TaskFailed:
    """A task has failed."""

    cause: str


Result: TypeAlias = (
    GridFound | WeightsMade | InputDecoded | WindsPaired | ProductBuilt | JoinedResults | TasksParted | TaskFailed
)


class TaskUsage(NamedTuple):
    """The cost of a task.

    Attributes
    ----------
    decodes
        How many messages were decoded for it, at most: a worker that died with the task counts as one decode.
    worker, peak_bytes
        The process that did it, and the maximum of its resident memory so far.

    """

    decodes: int = 0
    worker: int = 0
    peak_bytes: int = 0


@dataclass(frozen=True)
class TaskOrder:
    """A task with the number that its answer has."""

    number: int
    task: Task


@dataclass(frozen=True)
class TaskAnswer:
    """The result of the task with this number."""

    number: int
    result: Result
    usage: TaskUsage
