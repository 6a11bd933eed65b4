"""The codec of messages between broker and workers: JSON objects with a tag for the type.

```text
  {"number": 12, "task":   {"tag": "PairWinds", "pair": 7, "keep": [7, 8]}}
  {"number": 12, "result": {"tag": "WindsPaired", "kept": [7, 8], "failed": {}}, "usage": [0, 4711, 104857600]}
```
A message with several tasks or answers is a list.
The types of fields decide how values are read: JSON has no tuples, no named tuples and no integers as keys. A task in
a field has no tag, since the field has one type.
"""

from __future__ import annotations

import functools
import json
import types
import typing
from collections.abc import Callable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any, Generic, TypeVar, Union, get_args, get_origin, get_type_hints

from junctura.errors import Corrupt
from junctura.products._tasks.tasks import Result, Task, TaskAnswer, TaskOrder, TaskUsage

MessageT = TypeVar("MessageT")
# Reads a value; None where JSON has the type itself.
_Reader = Callable[[Any], Any] | None
_SUBJECT = "task message"


def _field_readers(of: Any) -> list[tuple[str, Callable[[Any], Any]]]:
    """Returns the fields whose values JSON does not have as they are, and how those are read."""
    hints = get_type_hints(of)
    readers = [(one.name, _reader(hints[one.name])) for one in fields(of)]
    return [(name, reader) for name, reader in readers if reader is not None]


def _reader(hint: Any) -> _Reader:
    """Returns how a value of a type is read from that of JSON."""
    origin, given = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        (some,) = (one for one in given if one is not types.NoneType)
        return _optional(_reader(some))
    if origin is tuple:
        reader = _reader(given[0])
        return tuple if reader is None else lambda values: tuple(map(reader, values))
    if origin is dict:
        return functools.partial(_read_mapping, key=given[0], reader=_reader(given[1]))
    if isinstance(hint, type) and issubclass(hint, tuple):
        return _named_reader(hint)
    if is_dataclass(hint):
        return functools.partial(_read_fields, hint, _field_readers(hint))
    return None


def _read_fields(of: Any, readers: Sequence[tuple[str, Callable[[Any], Any]]], value: dict[str, Any]) -> Any:
    """Returns a dataclass of its fields, read by those readers."""
    given = dict(value)
    for name, reader in readers:
        if name in given:
            given[name] = reader(given[name])
    return of(**given)


def _optional(reader: _Reader) -> _Reader:
    return None if reader is None else lambda value: None if value is None else reader(value)


def _read_mapping(value: dict[str, Any], key: Callable[[str], Any], reader: _Reader) -> dict[Any, Any]:
    return {key(name): one if reader is None else reader(one) for name, one in value.items()}


def _named_reader(hint: type[tuple[Any, ...]]) -> Callable[[Any], Any]:
    """Returns the reader of a named tuple."""
    readers = [_reader(one) for one in typing.get_type_hints(hint).values()]

    def read(values: Any) -> Any:
        return hint(*(one if reader is None else reader(one) for one, reader in zip(values, readers, strict=True)))

    if all(reader is None for reader in readers):
        return lambda values: hint(*values)
    return read


class TaggedCodec(Generic[MessageT]):
    """Writes and reads messages of several dataclasses; the tag is the name of the class.

    Parameters
    ----------
    members
        A union of dataclasses.

    """

    def __init__(self, members: Any) -> None:
        self.types: dict[str, Any] = {one.__name__: one for one in get_args(members)}
        self._readers = {name: _field_readers(one) for name, one in self.types.items()}

    def packed(self, message: MessageT) -> dict[str, Any]:
        """Returns the message as an object for JSON."""
        return {"tag": type(message).__name__, **vars(message)}

    def unpacked(self, packed: Any) -> MessageT:
        """Returns the message that was packed.

        Raises
        ------
        Corrupt
            The tag is unknown, or the fields are not those of its type.

        """
        if not isinstance(packed, dict):
            raise Corrupt(_SUBJECT, "expected an object with a tag")
        given = dict(packed)
        tag = str(given.pop("tag", None))
        if tag not in self.types:
            raise Corrupt(_SUBJECT, f"unknown tag {tag}; known are {', '.join(self.types)}")
        try:
            message: MessageT = _read_fields(self.types[tag], self._readers[tag], given)
        except (AttributeError, TypeError, ValueError) as error:
            raise Corrupt(_SUBJECT, f"invalid {tag}: {type(error).__name__}: {error}") from error
        return message


TASKS: TaggedCodec[Task] = TaggedCodec(Task)
RESULTS: TaggedCodec[Result] = TaggedCodec(Result)


def write_order(*orders: TaskOrder) -> bytes:
    """Returns the payload of one task, or of several."""
    return _written([{"number": order.number, "task": TASKS.packed(order.task)} for order in orders])


def read_orders(payload: bytes) -> list[TaskOrder]:
    """Returns the tasks of a payload; raises `Corrupt` where there are none."""
    all_found = [_checked(one, {"number", "task"}) for one in _read(payload)]
    return [TaskOrder(found["number"], TASKS.unpacked(found["task"])) for found in all_found]


def read_order(payload: bytes) -> TaskOrder:
    """Returns the only task of a payload; raises `Corrupt` where there is none."""
    (order,) = read_orders(payload)
    return order


def write_answer(*answers: TaskAnswer) -> bytes:
    """Returns the payload of one answer, or of several."""
    return _written(
        [{"number": one.number, "result": RESULTS.packed(one.result), "usage": one.usage} for one in answers]
    )


def read_answers(payload: bytes) -> list[TaskAnswer]:
    """Returns the answers of a payload; raises `Corrupt` where there are none."""
    return [_answer_of(_checked(one, {"number", "result", "usage"})) for one in _read(payload)]


def read_answer(payload: bytes) -> TaskAnswer:
    """Returns the only answer of a payload; raises `Corrupt` where there is none."""
    (answer,) = read_answers(payload)
    return answer


def _answer_of(found: dict[str, Any]) -> TaskAnswer:
    try:
        usage = TaskUsage(*found["usage"])
    except TypeError as error:
        raise Corrupt(_SUBJECT, f"invalid usage: {error}") from error
    return TaskAnswer(found["number"], RESULTS.unpacked(found["result"]), usage)


def _written(packed: list[dict[str, Any]]) -> bytes:
    return json.dumps(packed[0] if len(packed) == 1 else packed, default=vars).encode()


def _read(payload: bytes) -> list[Any]:
    try:
        found = json.loads(payload)
    except ValueError as error:
        raise Corrupt(_SUBJECT, f"invalid JSON: {error}") from error
    return found if isinstance(found, list) and found else [found]


def _checked(found: Any, names: set[str]) -> dict[str, Any]:
    if not isinstance(found, dict) or found.keys() != names:
        raise Corrupt(_SUBJECT, f"expected an object with {', '.join(sorted(names))}")
    return found
