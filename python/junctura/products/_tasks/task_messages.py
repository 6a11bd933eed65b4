"""Messages between broker and workers, as objects of the broker's own pool.

```text
  name             kind    payload                         by
  job              job     recipes, where the source is    broker   once, pickled
  task/12          task    what to do, in JSON             broker   for the group "workers": one of them gets it,
  begun/12/…       begun   that another one begins it      worker     and another worker after its crash
  array/7          array   values of a node's fields, and  worker   which may have thousands of places
                           what they mean, in JSON
  done/12          done    the result, in JSON             worker
  done/12/13       done    the result of task 13, whose    worker  to which the message was redelivered
                           message has the number 12
  hint/63/…        hint    Legendre functions, in JSON     broker  for all workers, when they have nothing to do
```
Tasks refer to nodes and products by their numbers in the graph, which both sides build from the same recipes.

A message has several tasks when more tasks wait than workers can begin. A worker does these in their order, and
sends one answer. The number of the message is the number of its first task. Joined tasks are one task, alone in its
message.
"""

from __future__ import annotations

import contextlib
import itertools
import json
import pickle
from dataclasses import dataclass
from typing import Any

import junctura
from junctura.products._recipe.definitions import Recipe
from junctura.products._tasks.tasks import DecodeInput, LegendreSpec, TaskAnswer, TaskFailed, TaskOrder, TaskUsage

GROUP = "workers"
# The client name of workers in both pools.
BROKER = "junctura run"
WORKER = "products-worker"
# A task that has crashed this many workers fails.
ATTEMPTS_MAX = 3


@dataclass(frozen=True)
class BrokerJob:
    """The data that all workers of a run need; offered once."""

    recipes: list[Recipe]
    source: str
    store: str | None
    out: str
    incarnation: int | None = None
    """The identity of the pool `source`: its address may denote another pool on other hosts."""


def write_job(job: BrokerJob) -> bytes:
    """Returns the payload. The broker's pool belongs to its user: no other user can place code in it."""
    return pickle.dumps(job)


def read_job(payload: bytes) -> BrokerJob:
    job = pickle.loads(payload)
    assert isinstance(job, BrokerJob)
    return job


def hint(pool: junctura.Pool, legendre: LegendreSpec) -> None:
    """Announces to all workers, including later ones, what will be needed."""
    pool.offer(json.dumps(legendre).encode(), name=f"hint/{'/'.join(map(str, legendre))}", kind="hint")


def read_hint(payload: bytes) -> LegendreSpec:
    return LegendreSpec(*json.loads(payload))


def begin(pool: junctura.Pool, number: int) -> int:
    """Records that a task is begun; returns how often it was begun before."""
    for count in itertools.count():
        with contextlib.suppress(junctura.AlreadyExists):
            pool.offer(b"", name=f"begun/{number}/{count}", kind="begun")
            return count
    raise AssertionError("counting has no end")


def is_there(pool: junctura.Pool, name: str) -> bool:
    """Whether an object of this name is visible."""
    return bool(pool.list(f'name="{name}"'))


def given_up(order: TaskOrder, lost: int) -> TaskAnswer:
    """Returns the answer to a task with which this many workers crashed."""
    usage = TaskUsage(decodes=lost if isinstance(order.task, DecodeInput) else 0)
    return TaskAnswer(order.number, TaskFailed(f"{lost} workers ended while they had it"), usage)


def offer_once(pool: junctura.Pool, data: Any, **attributes: str) -> None:
    """Offers an object that a crashed worker may have offered before."""
    with contextlib.suppress(junctura.AlreadyExists):
        pool.offer(data, attributes)


def forget(pool: junctura.Pool, *names: str) -> None:
    """Removes existing objects that every client has read."""
    named = "/".join(f'"{name}"' for name in names)
    pool.withdraw_all(f"name={named}", timeout=0, force=True)
