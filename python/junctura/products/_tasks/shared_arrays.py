"""Arrays of nodes, as objects of the broker's pool: one for each node, read in place by every worker."""

from __future__ import annotations

import contextlib
import json
from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

import junctura
from junctura.products._input.decoded_field import Field
from junctura.products._regrid.grids import grid
from junctura.products._tasks.task_messages import forget


def keep(pool: junctura.Pool, node: int, fields: Sequence[Field], pipeline: junctura.Pipeline | None = None) -> None:
    """Stores the fields of a node in the pool as one object, for all workers.

    With a pipeline the object is offered without waiting for the acknowledgment. A crashed worker must not have stored
    the same fields before.
    """
    about = json.dumps([_about(one) for one in fields]).encode()
    size = sum(one.values.size for one in fields)
    with pool.allocate(8 * size + len(about)) as place:
        memory = memoryview(place)
        memory[8 * size :] = about
        values = np.frombuffer(memory, np.float64, size)
        np.concatenate([one.values.ravel() for one in fields], out=values)
        # The allocation cannot be offered while a writable view exists.
        del values
        memory.release()
        attributes = {"name": _name(node), "kind": "array", "values": str(size)}
        if pipeline is not None:
            pipeline.offer(place, attributes)
            return
        # A crashed worker may have stored them before.
        with contextlib.suppress(junctura.AlreadyExists):
            place.offer(attributes)


def kept(pool: junctura.Pool, node: int) -> list[Field]:
    """Returns the fields of a node in place, in the pool's memory: read-only, without a copy."""
    obj = pool.demand(name=_name(node), timeout=0)
    size = int(obj["values"])
    # Its arrays hold the object: its memory is unchanged until the last one is released.
    values, fields = np.frombuffer(memoryview(obj), np.float64, size), []
    for name, units, attributes, header in json.loads(bytes(memoryview(obj)[8 * size :])):
        on = grid(name)
        fields.append(Field(values[: on.size].reshape(on.shape), on, attributes, units, header))
        values = values[on.size :]
    return fields


def free(pool: junctura.Pool, nodes: Iterable[int]) -> None:
    """Removes the fields of these nodes, which are no longer needed."""
    if names := [_name(node) for node in nodes]:
        forget(pool, *names)


def _name(node: int) -> str:
    return f"array/{node}"


def _about(one: Field) -> tuple[str, str, dict[str, Any], dict[str, str]]:
    return one.on.name, one.units, {name: _plain(value) for name, value in one.attributes.items()}, dict(one.header)


def _plain(value: Any) -> Any:
    if isinstance(value, tuple):
        return list(value)
    return value if isinstance(value, str | int | float | bool | list) else str(value)
