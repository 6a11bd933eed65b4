"""What broker and workers tell each other, as objects of the broker's own pool.

```text
  name             kind    payload                         by
  job              job     recipes, where the source is    broker   once, pickled
  task/12          task    what to do, in JSON             broker   for the group "workers": one of them gets it,
  begun/12/…       begun   that another one begins it      worker     and another one if that one dies
  array/7          array   values of a node's fields, and  worker   which may have thousands of places
                           what they mean, in JSON
  done/12          done    what came of it, in JSON        worker
  hint/63/…        hint    Legendre functions, in JSON     broker  for all workers, when they have nothing to do
```
Tasks name nodes and products of the graph that both sides have made of the same recipes by their numbers.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, NamedTuple

import numpy as np

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._recipe.definitions import Recipe
from junctura.products._regrid.grids import grid
from junctura.products._regrid.weight_matrices import Method, Quantity

GROUP = "workers"
# What workers are called in both pools.
BROKER = "junctura run"
WORKER = "products-worker"
# A task that ended so many workers is given up.
ATTEMPTS_MAX = 3


@dataclass(frozen=True)
class Job:
    """What all workers have to know: once."""

    recipes: list[Recipe]
    source: str
    store: str | None
    out: str
    incarnation: int | None = None
    """Of the pool that `source` is: its address may mean another one elsewhere."""


class Weights(NamedTuple):
    """What `junctura.products._regrid.interpolate.prepare` makes."""

    source: str
    target: str
    method: Method
    quantity: Quantity


class Legendre(NamedTuple):
    """What `junctura.products._regrid.harmonics.warm` makes, in each process for itself."""

    truncation: int
    target: str
    is_wind: bool


class File(NamedTuple):
    """A product that is there."""

    path: str
    nbytes: int
    words: dict[str, str]
    """What its fields say of it, as ``date``."""
    extremes: tuple[float, float] | None = None
    """The least and the greatest value of a map whose range is its own."""


@dataclass(frozen=True)
class Task:
    """One thing to do: look at an input, make weights, decode an input, transform a pair, or make products.

    Attributes
    ----------
    number
        Tells tasks apart.
    keep
        The nodes whose fields are wanted.
    inputs
        With these numbers the input is a node.
    pair
        The node that is made of several ones that are kept.
    key
        Of the object to be decoded: its newest version is.
    products
        To be made: one of fields that are kept, or those whose last fields come of the input, and are nobody else's.
    sources
        By products, keys and versions of the objects that each is made of. The one that is to be decoded
        has no version yet.
    looks
        Whether it is to be told only on which grid the input is.
    weights
        To be made, if it is that.

    """

    number: int
    keep: tuple[int, ...] = ()
    inputs: tuple[int, ...] = ()
    pair: int | None = None
    key: str = ""
    products: tuple[int, ...] = ()
    sources: dict[int, tuple[tuple[str, str], ...]] = field(default_factory=dict)
    looks: bool = False
    weights: Weights | None = None


@dataclass(frozen=True)
class Done:
    """What came of a task.

    Attributes
    ----------
    kept
        The nodes that are there now.
    version
        Of the object that was decoded.
    files, unmade
        By their numbers the products that are there, and why others are not.
    grid
        Of an input that was looked at; see `junctura.products._broker.weights_planner.grid_of`.
    failed
        The nodes that cannot be had, and why.
    decodes
        How many messages were decoded for it, at most: who died while it had the task counts as having decoded one.
    seconds
        How long it took.
    worker, peak_bytes
        The process that did it, and the most memory that it has had resident so far.

    """

    number: int
    kept: tuple[int, ...] = ()
    version: str = ""
    files: dict[int, File] = field(default_factory=dict)
    unmade: dict[int, str] = field(default_factory=dict)
    grid: str = ""
    failed: dict[int, str] = field(default_factory=dict)
    decodes: int = 0
    seconds: float = 0.0
    worker: int = 0
    peak_bytes: int = 0


def write_job(job: Job) -> bytes:
    """As an object's payload. The broker's pool is its user's own: nobody else can put code into it."""
    return pickle.dumps(job)


def read_job(payload: bytes) -> Job:
    job = pickle.loads(payload)
    assert isinstance(job, Job)
    return job


def write(about: Task | Done) -> bytes:
    """As an object's payload: what is not as it is by default."""
    return json.dumps({name: said for name, said in vars(about).items() if said or name == "number"}).encode()


def read_task(payload: bytes) -> Task:
    said = json.loads(payload)
    read: dict[str, Callable[[Any], Any]] = {
        "keep": tuple,
        "inputs": tuple,
        "products": tuple,
        "sources": lambda sources: {product: tuple(map(tuple, all_of)) for product, all_of in _numbered(sources)},
        "weights": lambda weights: Weights(*weights),
    }
    return Task(**{name: read.get(name, _as_it_is)(value) for name, value in said.items()})


def read_done(payload: bytes) -> Done:
    said = json.loads(payload)
    read: dict[str, Callable[[Any], Any]] = {
        "kept": tuple,
        "failed": lambda failed: dict(_numbered(failed)),
        "unmade": lambda unmade: dict(_numbered(unmade)),
        "files": lambda files: {number: File(*one) for number, one in _numbered(files)},
    }
    return Done(**{name: read.get(name, _as_it_is)(value) for name, value in said.items()})


def _as_it_is(value: Any) -> Any:
    return value


def _numbered(said: dict[str, Any]) -> Iterator[tuple[int, Any]]:
    """JSON has no numbers as names."""
    return ((int(number), one) for number, one in said.items())


def hint(pool: junctura.Pool, legendre: Legendre) -> None:
    """Tells all workers, also those that come later, what will be needed."""
    pool.offer(json.dumps(legendre).encode(), name=f"hint/{'/'.join(map(str, legendre))}", kind="hint")


def read_hint(payload: bytes) -> Legendre:
    return Legendre(*json.loads(payload))


def begin(pool: junctura.Pool, number: int) -> int:
    """Says that a task is begun; returns how many have said so before."""
    for count in itertools.count():
        with contextlib.suppress(junctura.AlreadyExists):
            pool.offer(b"", name=f"begun/{number}/{count}", kind="begun")
            return count
    raise AssertionError("counting has no end")


def is_there(pool: junctura.Pool, name: str) -> bool:
    """Whether an object of this name can be seen."""
    return bool(pool.list(f'name="{name}"'))


def given_up(task: Task, lost: int) -> Done:
    """A task that ended so many workers."""
    cause = f"{lost} workers ended while they had it"
    return replace(undone(task, cause), decodes=lost if task.inputs else 0)


def undone(task: Task, cause: str) -> Done:
    """A task of which nothing came."""
    failed, unmade = dict.fromkeys(task.keep, cause), dict.fromkeys(task.products, cause)
    return Done(task.number, failed=failed, unmade=unmade)


def offer_once(pool: junctura.Pool, data: Any, **attributes: str) -> None:
    """Offers what a worker that died may have offered before."""
    with contextlib.suppress(junctura.AlreadyExists):
        pool.offer(data, attributes)


def keep(pool: junctura.Pool, node: int, fields: Sequence[Field]) -> None:
    """Puts the fields of a node into the pool, for all workers: one object."""
    about = json.dumps([_about(one) for one in fields]).encode()
    size = sum(one.values.size for one in fields)
    with pool.allocate(8 * size + len(about)) as place:
        memory = memoryview(place)
        memory[8 * size :] = about
        values = np.frombuffer(memory, np.float64, size)
        np.concatenate([one.values.ravel() for one in fields], out=values)
        # The place cannot be offered while somebody may write to it.
        del values
        memory.release()
        # A worker that died may have kept them before.
        with contextlib.suppress(junctura.AlreadyExists):
            place.offer(name=_name(node), kind="array", values=str(size))


def kept(pool: junctura.Pool, node: int) -> list[Field]:
    """The fields of a node, where they lie in the pool's memory: read-only, without a copy."""
    obj = pool.demand(name=_name(node), timeout=0)
    size = int(obj["values"])
    # Arrays of it hold the object: its memory stays as it is until the last one is gone.
    values, fields = np.frombuffer(memoryview(obj), np.float64, size), []
    for name, units, attributes, header in json.loads(bytes(memoryview(obj)[8 * size :])):
        on = grid(name)
        fields.append(Field(values[: on.size].reshape(on.shape), on, attributes, units, header))
        values = values[on.size :]
    return fields


def free(pool: junctura.Pool, nodes: Iterable[int]) -> None:
    """Nobody needs the fields of these nodes any more."""
    if names := [_name(node) for node in nodes]:
        forget(pool, *names)


def _name(node: int) -> str:
    return f"array/{node}"


def forget(pool: junctura.Pool, *names: str) -> None:
    """Removes objects that everybody has read, where they are there."""
    named = "/".join(f'"{name}"' for name in names)
    pool.withdraw_all(f"name={named}", timeout=0, force=True)


def _about(one: Field) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    return one.on.name, one.units, {name: _plain(value) for name, value in one.attributes.items()}, dict(one.header)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | bool | list) else str(value)
